//! The accumulate lock of a target (`ACC` of `fabric::layout`): under it are all calls on several
//! elements, and those on elements that no atomic instruction changes for all ranks alike. Calls on
//! a single word look at it (docs/decisions/0004, `epoch::lock::whole`).
//!
//! On a distant road the lock is asked for together with the elements: what was got is what others
//! had left if the answer says that the lock was free. So an accumulate waits twice, for the lock
//! with the elements and for its release with the new ones, and not four times.

use super::Place;
use super::unmapped::Unmapped;
use crate::epoch::lock::{self, Mode, look, whole};
use crate::error::Result;
use crate::fabric::verbs::Remote;
use crate::fabric::{Rank, WordAt, Words};
use crate::sync::fence_after_rmw;
use crate::window::nodes::Wanted;
use crate::window::wide::WideWindow;
use crate::window::wide::words::Begun;
use crate::window::{LocalWindow, on_words};
use parking_lot::MutexGuard;

/// Runs `work` under the accumulate lock of a target.
#[inline]
pub fn locked(place: Place<'_>, rank: u32, work: impl FnOnce() -> Result<()>) -> Result<()> {
    let (node, nodes) = (place.node, place.node.nodes_for(Wanted::Accumulate(rank)));
    on_words!(node, |words| whole::several(words, Rank(rank), nodes, work))
}

/// The same for memory of this node, if the lock is free. Says whether it was, and is done.
#[inline(always)]
pub fn try_locked(node: &LocalWindow, rank: u32, work: impl FnOnce()) -> bool {
    let words = &node.words;
    if !matches!(lock::try_free(words, word(rank), Mode::Exclusive), Ok(true)) {
        return false;
    }
    fence_after_rmw(); // as in `locked`
    work();
    let released = lock::release(words, word(rank), Mode::Exclusive);
    debug_assert!(released.is_ok(), "words of this node fail in waits alone");
    true
}

/// Does `work`, a single instruction on a word that is mapped here, so that no call on several is
/// seen in parts.
#[inline]
pub fn single(place: Place<'_>, rank: u32, work: impl FnOnce()) -> Result<()> {
    let (node, nodes) = (place.node, place.node.nodes_for(Wanted::Accumulate(rank)));
    match &node.wide {
        None => whole::look_before(&node.words, Rank(rank), nodes, || {
            work();
            Ok(())
        }),
        Some(part) => {
            work();
            whole::look_behind(&part.far(node), Rank(rank), nodes)
        }
    }
}

/// How a call on a single word of the device ends, which looks at the lock of its target behind its
/// operation.
#[derive(Clone, Copy)]
pub struct Behind<'a> {
    node: &'a LocalWindow,
    part: &'a WideWindow,
    rank: u32,
    /// where the lock is
    pub lock: Remote,
}

impl<'a> Behind<'a> {
    /// The end of a call on a word of this rank.
    pub fn new(place: Place<'a>, rank: u32) -> Result<Option<Behind<'a>>> {
        let node = place.node;
        let Some(part) = &node.wide else { return Ok(None) };
        let lock = part.accumulate_lock(node, rank)?;
        Ok(Some(Behind { node, part, rank, lock }))
    }

    /// Ends it; the lock was read as `lock` behind the operation. `None`: nobody waits for the
    /// operation, and it ends later.
    pub fn end(self, lock: Option<u64>) -> Result<()> {
        let Behind { node, part, rank, .. } = self;
        let Some(lock) = lock else {
            part.note_unsettled(rank);
            return Ok(());
        };
        whole::wait_if_held(
            &part.far(node),
            Rank(rank),
            node.nodes_for(Wanted::Accumulate(rank)),
            lock,
        )
    }
}

fn word(rank: u32) -> WordAt {
    whole::word(Rank(rank))
}

/// The lock of a target, for one accumulate on memory that is not mapped here.
pub struct Acc<'a> {
    place: Place<'a>,
    rank: u32,
    state: State<'a>,
    /// the turn among the threads of this process that do this at the target
    turn: Option<MutexGuard<'a, ()>>,
}

/// How far it is.
enum State<'a> {
    /// nothing was asked for
    Idle,
    /// asked for, and the answer is not here
    Asked(Begun<'a>),
    /// held
    Held,
}

impl<'a> Acc<'a> {
    /// That of a target, not held yet.
    pub fn new(place: Place<'a>, rank: u32) -> Acc<'a> {
        Acc { place, rank, state: State::Idle, turn: None }
    }

    /// Takes it and reads what it guards: `get` is called again if others had it at first.
    pub fn read(&mut self, whose: Unmapped<'a>, mut get: impl FnMut() -> Result<()>) -> Result<()> {
        self.ask(whose)?;
        let read = get();
        if self.settle()? { read } else { get() }
    }

    /// Takes it, for changes of words of the device.
    pub fn take(&mut self, whose: Unmapped<'a>) -> Result<()> {
        self.ask(whose)?;
        self.settle().map(|_| ())
    }

    /// How a call on a single word ends, which does not take it.
    pub fn behind(&self) -> Result<Option<Behind<'a>>> {
        Behind::new(self.place, self.rank)
    }

    /// Asks for it, ahead of gets from memory of `whose`; or takes it, where these would not come
    /// behind. Nothing to do if it is held.
    fn ask(&mut self, whose: Unmapped<'a>) -> Result<()> {
        let State::Idle = self.state else { return Ok(()) };
        let (node, word) = (self.place.node, word(self.rank));
        if let (Some(part), Unmapped::Distant(_)) = (&node.wide, whose) {
            self.turn = Some(part.target(node, self.rank)?.accumulating.lock());
            let words = &part.far(node);
            words.order(word.rank)?;
            let asked = look::begin_acquire(words, word, Mode::Exclusive)?;
            words.order(word.rank)?;
            self.state = State::Asked(asked);
            return Ok(());
        }
        let nodes = node.nodes_for(Wanted::Accumulate(self.rank));
        on_words!(node, |words| lock::acquire(words, word, Mode::Exclusive, false, nodes))?;
        self.state = State::Held;
        Ok(())
    }

    /// Waits until it is held. Says whether it was when what was got behind [`Acc::ask`] was got.
    fn settle(&mut self) -> Result<bool> {
        let node = self.place.node;
        let (Some(part), State::Asked(asked)) =
            (&node.wide, core::mem::replace(&mut self.state, State::Idle))
        else {
            self.state = State::Held;
            return Ok(true);
        };
        let nodes = node.nodes_for(Wanted::Accumulate(self.rank));
        let asked = (word(self.rank), asked);
        let is_valid = look::end_acquire(&part.far(node), asked, Mode::Exclusive, false, nodes)?;
        self.state = State::Held;
        Ok(is_valid)
    }

    /// Gives it back; what was put before is done.
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
