//! The accumulate lock of a target (`ACC` of `fabric::layout`). All calls on several elements run
//! under it, and all calls on elements that not all ranks can change by an atomic instruction.
//! Calls on a single word only read it (docs/decisions/0004, `epoch::lock::atomic_calls`).
//!
//! Between nodes the request for the lock leaves together with the gets of the elements. If
//! the answer says that the lock was free, the elements are as the previous holder left them. So an
//! accumulate waits twice, once for the lock with the elements and once for the release with the
//! new elements, and not four times. Where targets carry out accumulates, they take the lock, too
//! (`AtTarget::take_lock`), and nothing waits.

use super::acc_run::Guard;
use super::{OpenTarget, Place};
use crate::epoch::lock::passes::{Caller, SwitchLimits};
use crate::epoch::lock::used_nodes::Wanted;
use crate::epoch::lock::{self, Mode, Nodes, acquire_and_read, atomic_calls};
use crate::error::Result;
use crate::fabric::location::Unmapped;
use crate::fabric::net::Peer;
use crate::fabric::remote::{AtTarget, Network, Remote};
use crate::fabric::remote_words::Begun;
use crate::fabric::{WordAt, Words};
use crate::window::protocols::{Protocols, on_protocols, on_words};
use crate::window::wide::WideWindow;
use crate::window::wide::target_records::WideTarget;
use parking_lot::MutexGuard;

/// Over several nodes the device changes fewer elements than this at once by its own operations.
const FEW: u64 = 16;
/// Runs `work`, which changes about `elements` elements, under the accumulate lock of a target.
/// `work` gets the protection that mapped elements have then.
#[inline]
pub fn locked(
    to: OpenTarget<'_>,
    elements: u64,
    work: impl FnOnce(Guard) -> Result<()>,
) -> Result<()> {
    let (node, nodes) = (to.place.node, nodes_for(to));
    let at = (to.rank, caller(to));
    on_protocols!(node, |protocols| {
        protocols.several(at, elements, nodes, |others| work(Guard::under_lock(others)))
    })
}

/// The protection of several elements before the call.
#[inline(always)]
pub fn guard_of_several(to: OpenTarget<'_>, count: u64) -> Guard {
    match (to.is_exclusive(), to.place.node.spans_nodes()) {
        // The device changes a few words at once by its own operations.
        (true, true) if count < FEW => Guard::Held,
        (true, _) => Guard::Alone,
        (false, _) => Guard::Several,
    }
}

/// Returns the description of this process in a request for elements of a target.
#[inline(always)]
fn caller(to: OpenTarget<'_>) -> Caller {
    let Place { window, node, .. } = *to.place;
    let (threads, fences) = (window.epochs.has_threads(), node.fences());
    Caller { rank: node.rank, threads, fences, limits: SwitchLimits::USUAL }
}

/// Returns the queue nodes with which this process waits for the accumulate lock of a target.
#[inline(always)]
fn nodes_for(to: OpenTarget<'_>) -> impl Nodes {
    to.place.node.nodes_for(Wanted::Accumulate(to.rank))
}

/// Does `work`, a single instruction on a word that is mapped here, such that each call on several
/// words sees either all or nothing of it.
#[inline]
pub fn single(to: OpenTarget<'_>, work: impl FnOnce()) -> Result<()> {
    let node = to.place.node;
    on_protocols!(node, |protocols| protocols.single((to.rank, caller(to)), nodes_for(to), work))
}

/// The end of a call on a single word through the device: the call reads the lock of its target
/// after its operation.
#[derive(Clone, Copy)]
pub struct LockCheck<'a> {
    to: OpenTarget<'a>,
    part: &'a WideWindow,
    target: &'a WideTarget,
}

impl<'a> LockCheck<'a> {
    /// Returns the end of a call on a word of a target of another node.
    #[inline(always)]
    pub fn new(to: OpenTarget<'a>) -> LockCheck<'a> {
        let (part, target) = to.contacted();
        LockCheck { to, part, target }
    }

    /// The address of the lock.
    pub fn lock(&self) -> Remote {
        self.target.accumulate_lock().at
    }

    /// Ends the call, which has waited for its operation: `lock` is the value of the lock, read
    /// after it.
    pub fn end(self, lock: u64) -> Result<()> {
        self.part.wait_if_held(self.to.place.node, self.target, lock)
    }

    /// Ends a call that has not waited: a later call, which waits, checks the lock first. For a
    /// result a rank that is alone at the target needs no check.
    #[inline(always)]
    pub fn end_later(self, fetches: bool) {
        if !fetches {
            self.part.note_unsettled(self.target);
        } else if !self.to.is_exclusive() {
            self.part.note_result(self.target);
        }
    }
}

/// The lock of a target, for one accumulate on memory that is not mapped here.
pub struct AccLock<'a> {
    to: OpenTarget<'a>,
    state: State<'a>,
    /// held against other threads of this process that accumulate in this way at the target
    turn: Option<MutexGuard<'a, ()>>,
}

/// The state of an [`AccLock`].
enum State<'a> {
    /// not requested
    Idle,
    /// requested, without an answer yet
    Asked(Begun<&'a Peer>),
    /// held
    Held,
    /// requested from the target, which takes it ahead of later requests
    AtTarget(&'a <Peer as Network>::AtTarget),
}

impl<'a> AccLock<'a> {
    /// Returns the lock of a target, not held yet.
    pub fn new(to: OpenTarget<'a>) -> AccLock<'a> {
        AccLock { to, state: State::Idle, turn: None }
    }

    fn word(&self) -> WordAt {
        atomic_calls::word(self.to.rank)
    }

    /// Takes the lock and reads what it guards. Calls `get` again if the lock was not free at
    /// first.
    pub fn read(&mut self, whose: Unmapped<'a>, mut get: impl FnMut() -> Result<()>) -> Result<()> {
        self.ask(whose)?;
        let read = get();
        if self.settle()? { read } else { get() }
    }

    /// Takes the lock, for changes of words by the device.
    pub fn take(&mut self, whose: Unmapped<'a>) -> Result<()> {
        self.ask(whose)?;
        self.settle().map(|_| ())
    }

    /// Returns the end of a call on a single word, which does not take the lock.
    pub fn check(&self) -> LockCheck<'a> {
        LockCheck::new(self.to)
    }

    /// Requests the lock before gets from memory of `whose`; takes it where such gets are not
    /// ordered after the request. Does nothing if the lock is held.
    fn ask(&mut self, whose: Unmapped<'a>) -> Result<()> {
        let State::Idle = self.state else { return Ok(()) };
        let (node, word) = (self.to.place.node, self.word());
        if let Unmapped::Distant(there) = whose {
            let (part, target) = self.to.contacted();
            if let Some(to) = there.peer.at_target() {
                self.turn = Some(to.locking().lock());
                to.take_lock(target.accumulate_lock())?;
                self.state = State::AtTarget(to);
                return Ok(());
            }
            self.turn = Some(target.accumulating.lock());
            let words = &part.far(node);
            words.order(word.rank)?;
            let asked = acquire_and_read::begin_acquire(words, word, Mode::Exclusive)?;
            words.order(word.rank)?;
            self.state = State::Asked(asked);
            return Ok(());
        }
        let nodes = nodes_for(self.to);
        on_words!(node, |words| lock::acquire(words, word, Mode::Exclusive, false, nodes))?;
        self.state = State::Held;
        Ok(())
    }

    /// Waits until the lock is held. Returns whether it was held already when the gets after
    /// [`AccLock::ask`] were carried out.
    fn settle(&mut self) -> Result<bool> {
        let asked = match core::mem::replace(&mut self.state, State::Idle) {
            State::Asked(asked) => asked,
            state => {
                self.state = state;
                return Ok(true);
            }
        };
        let (words, nodes) = (&self.to.contacted().0.far(self.to.place.node), nodes_for(self.to));
        let asked = (self.word(), asked);
        let is_valid = acquire_and_read::end_acquire(words, asked, Mode::Exclusive, false, nodes)?;
        self.state = State::Held;
        Ok(is_valid)
    }

    /// Releases the lock; all puts before it are done.
    pub fn release(&mut self) -> Result<()> {
        if let State::Asked(..) = self.state {
            self.settle()?;
        }
        let released = match core::mem::replace(&mut self.state, State::Idle) {
            State::Held => on_words!(self.to.place.node, |words| {
                lock::release(words, self.word(), Mode::Exclusive)
            }),
            State::AtTarget(to) => to.release_lock(self.to.contacted().1.accumulate_lock()),
            State::Idle | State::Asked(..) => Ok(()),
        };
        self.turn = None;
        released
    }
}
