//! The accumulate lock of a target (`ACC` of `fabric::layout`). All calls on several elements run
//! under it, and all calls on elements that not all ranks can change by an atomic instruction.
//! Calls on a single word only read it (docs/decisions/0004, `epoch::lock::atomic_calls`).
//!
//! Between nodes the request for the lock leaves together with the gets of the elements. If
//! the answer says that the lock was free, the elements are as the previous holder left them. So an
//! accumulate waits twice, once for the lock with the elements and once for the release with the
//! new elements, and not four times.

use super::Place;
use super::acc_run::Guard;
use crate::epoch::lock::passes::{Caller, SwitchLimits};
use crate::epoch::lock::used_nodes::Wanted;
use crate::epoch::lock::{self, Mode, acquire_and_read, atomic_calls};
use crate::error::Result;
use crate::fabric::location::Unmapped;
use crate::fabric::net::Peer;
use crate::fabric::remote::{LockAt, Remote};
use crate::fabric::remote_words::Begun;
use crate::fabric::{WordAt, Words};
use crate::rank_numbers::Rank;
use crate::window::protocols::{Protocols, on_protocols, on_words};
use crate::window::wide::WideWindow;
use crate::window::wide::many_nodes::ManyNodes;
use crate::window::wide::targets::WideTarget;
use crate::window::{LocalWindow, Window};
use parking_lot::MutexGuard;

/// Over several nodes the device changes fewer elements than this at once by its own operations.
const FEW: u64 = 16;
/// Runs `work`, which changes about `elements` elements, under the accumulate lock of a target.
/// `work` gets the protection that mapped elements have then.
#[inline]
pub fn locked(
    place: Place<'_>,
    rank: Rank,
    elements: u64,
    work: impl FnOnce(Guard) -> Result<()>,
) -> Result<()> {
    let (node, nodes) = (place.node, place.node.nodes_for(Wanted::Accumulate(rank)));
    let at = (rank, caller(place.window, node));
    on_protocols!(node, |protocols| {
        protocols.several(at, elements, nodes, |others| work(Guard::under_lock(others)))
    })
}

/// The protection of several elements before the call.
pub fn guard_of_several(place: Place<'_>, rank: Rank, count: u64) -> Guard {
    match (place.window.is_exclusive(rank), place.node.spans_nodes()) {
        // The device changes a few words at once by its own operations.
        (true, true) if count < FEW => Guard::Held,
        (true, _) => Guard::Alone,
        (false, _) => Guard::Several,
    }
}

/// Returns the description of this process in a request for elements of a target.
#[inline(always)]
fn caller(window: &Window, node: &LocalWindow) -> Caller {
    let (threads, fences) = (window.epochs.has_threads(), node.fences());
    Caller { rank: node.rank, threads, fences, limits: SwitchLimits::USUAL }
}

/// Does `work`, a single instruction on a word that is mapped here, such that each call on several
/// words sees either all or nothing of it.
#[inline]
pub fn single(place: Place<'_>, rank: Rank, work: impl FnOnce()) -> Result<()> {
    let (node, nodes) = (place.node, place.node.nodes_for(Wanted::Accumulate(rank)));
    let at = (rank, caller(place.window, node));
    on_protocols!(node, |protocols| protocols.single(at, nodes, work))
}

/// The end of a call on a single word through the device: the call reads the lock of its target
/// after its operation.
#[derive(Clone, Copy)]
pub struct LockCheck<'a> {
    place: Place<'a>,
    part: &'a WideWindow,
    target: &'a WideTarget,
    rank: Rank,
}

impl<'a> LockCheck<'a> {
    /// Returns the end of a call on a word of this rank, or `None` on a window of one node.
    #[inline]
    pub fn new(place: Place<'a>, rank: Rank) -> Result<Option<LockCheck<'a>>> {
        let Some(ManyNodes { part, .. }) = place.node.many_nodes() else { return Ok(None) };
        Ok(Some(LockCheck { place, part, target: part.target(place.node, rank)?, rank }))
    }

    /// The address of the lock.
    pub fn lock(&self) -> Remote {
        self.target.accumulate_lock()
    }

    /// Ends the call. `lock`: the value of the lock, read after the operation; `None` if the call
    /// has not waited for its operation, so that it ends later.
    #[inline]
    pub fn end(self, lock: Option<u64>) -> Result<()> {
        let LockCheck { place, part, target, rank } = self;
        let Some(lock) = lock else {
            part.note_unsettled(target);
            return Ok(());
        };
        let node = place.node;
        atomic_calls::wait_if_held(
            &part.far(node),
            rank,
            node.nodes_for(Wanted::Accumulate(rank)),
            lock,
        )
    }
}

impl LockCheck<'_> {
    /// Ends a call that has not waited for its result: the call that waits checks the lock first. A
    /// rank that is alone at the target needs no check.
    #[inline]
    pub fn end_with_result(self) {
        if !self.place.window.is_exclusive(self.rank) {
            self.part.note_result(self.target);
        }
    }
}

fn word(rank: Rank) -> WordAt {
    atomic_calls::word(rank)
}

/// The lock of a target, for one accumulate on memory that is not mapped here.
pub struct AccLock<'a> {
    place: Place<'a>,
    rank: Rank,
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
}

impl<'a> AccLock<'a> {
    /// Returns the lock of a target, not held yet.
    pub fn new(place: Place<'a>, rank: Rank) -> AccLock<'a> {
        AccLock { place, rank, state: State::Idle, turn: None }
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
    pub fn check(&self) -> Result<Option<LockCheck<'a>>> {
        LockCheck::new(self.place, self.rank)
    }

    /// Returns the lock for a chain of requests that takes it if it is free, and releases it.
    pub fn around(&mut self) -> Result<LockAt> {
        let node = self.place.node;
        let Some(ManyNodes { part, .. }) = node.many_nodes() else { unreachable!("no device") };
        let target = part.target(node, self.rank)?;
        self.turn = Some(target.accumulating.lock());
        let at = target.accumulate_lock();
        Ok(LockAt {
            at,
            take: acquire_and_read::taken(Mode::Exclusive),
            release: acquire_and_read::freed(Mode::Exclusive),
        })
    }

    /// Ends what the chain has begun, which has seen these values of the lock word: wakes the next
    /// rank if one waits. Takes the lock if it was not free. Returns whether it was.
    pub fn has_been(&mut self, (before, at_release): (u64, u64)) -> Result<bool> {
        let (node, at) = (self.place.node, word(self.rank));
        let nodes = node.nodes_for(Wanted::Accumulate(self.rank));
        let was_free = before == acquire_and_read::taken(Mode::Exclusive).0;
        if was_free {
            let woken = on_words!(node, |words| acquire_and_read::end_release(words, at_release));
            self.turn = None;
            return woken.map(|()| true);
        }
        on_words!(node, |words| acquire_and_read::acquire_seen(
            words,
            at,
            Mode::Exclusive,
            before,
            nodes
        ))?;
        self.state = State::Held;
        Ok(false)
    }

    /// Requests the lock before gets from memory of `whose`; takes it where such gets are not
    /// ordered after the request. Does nothing if the lock is held.
    fn ask(&mut self, whose: Unmapped<'a>) -> Result<()> {
        let State::Idle = self.state else { return Ok(()) };
        let (node, word) = (self.place.node, word(self.rank));
        if let (Some(ManyNodes { part, words, .. }), Unmapped::Distant(_)) =
            (node.many_nodes(), whose)
        {
            self.turn = Some(part.target(node, self.rank)?.accumulating.lock());
            let words = &words;
            words.order(word.rank)?;
            let asked = acquire_and_read::begin_acquire(words, word, Mode::Exclusive)?;
            words.order(word.rank)?;
            self.state = State::Asked(asked);
            return Ok(());
        }
        let nodes = node.nodes_for(Wanted::Accumulate(self.rank));
        on_words!(node, |words| lock::acquire(words, word, Mode::Exclusive, false, nodes))?;
        self.state = State::Held;
        Ok(())
    }

    /// Waits until the lock is held. Returns whether it was held already when the gets after
    /// [`AccLock::ask`] were carried out.
    fn settle(&mut self) -> Result<bool> {
        let node = self.place.node;
        let (Some(many), State::Asked(asked)) =
            (node.many_nodes(), core::mem::replace(&mut self.state, State::Idle))
        else {
            self.state = State::Held;
            return Ok(true);
        };
        let nodes = node.nodes_for(Wanted::Accumulate(self.rank));
        let asked = (word(self.rank), asked);
        let is_valid =
            acquire_and_read::end_acquire(&many.words, asked, Mode::Exclusive, false, nodes)?;
        self.state = State::Held;
        Ok(is_valid)
    }

    /// Releases the lock; all puts before it are done.
    pub fn release(&mut self) -> Result<()> {
        if let State::Asked(..) = self.state {
            self.settle()?;
        }
        let released = match core::mem::replace(&mut self.state, State::Idle) {
            State::Held => on_words!(self.place.node, |words| {
                lock::release(words, word(self.rank), Mode::Exclusive)
            }),
            State::Idle | State::Asked(..) => Ok(()),
        };
        self.turn = None;
        released
    }
}
