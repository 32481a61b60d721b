//! The accumulate lock of a target (`ACC` of `epoch::layout`): under it are changed all elements
//! that no atomic instruction changes for all ranks alike (docs/decisions/0004).
//!
//! On a distant road the lock is asked for together with the elements: what was got is what others
//! had left if the answer says that the lock was free. So an accumulate waits twice, for the lock
//! with the elements and for its release with the new ones, and not four times.

use super::Place;
use super::unmapped::Unmapped;
use crate::epoch::layout;
use crate::epoch::lock::{self, Mode, look};
use crate::error::Result;
use crate::fabric::{Rank, WordAt, Words};
use crate::window::on_words;
use crate::window::wide::words::Asked;

/// Runs `work` under the accumulate lock of a target.
#[cold]
pub fn locked(place: Place<'_>, rank: u32, work: impl FnOnce() -> Result<()>) -> Result<()> {
    let node = place.node;
    // Not nested: who holds this lock waits for nothing.
    let nodes = node.nodes_for_operations();
    on_words!(node, |words| lock::acquire(words, word(rank), Mode::Exclusive, false, nodes))?;
    let done = work();
    on_words!(node, |words| lock::release(words, word(rank), Mode::Exclusive))?;
    done
}

fn word(rank: u32) -> WordAt {
    WordAt { rank: Rank(rank), word: layout::ACC }
}

/// The lock of a target, for one accumulate on memory that is not mapped here.
pub struct Acc<'a> {
    place: Place<'a>,
    rank: u32,
    state: State<'a>,
}

/// How far it is.
enum State<'a> {
    /// nothing was asked for
    Idle,
    /// asked for, and the answer is not here
    Asked(Asked<'a>),
    /// held
    Held,
}

impl<'a> Acc<'a> {
    /// That of a target, not held yet.
    pub fn new(place: Place<'a>, rank: u32) -> Acc<'a> {
        Acc { place, rank, state: State::Idle }
    }

    /// Takes it and reads what it guards: `get` is called again if others had it at first.
    pub fn read(&mut self, whose: Unmapped<'a>, mut get: impl FnMut() -> Result<()>) -> Result<()> {
        self.ask(whose)?;
        let read = get();
        if self.settle()? { read } else { get() }
    }

    /// Asks for it, ahead of gets from memory of `whose`; or takes it, where these would not come
    /// behind. Nothing to do if it is held.
    fn ask(&mut self, whose: Unmapped<'a>) -> Result<()> {
        let State::Idle = self.state else { return Ok(()) };
        let (node, word) = (self.place.node, word(self.rank));
        if let (Some(part), Unmapped::Distant(_)) = (&node.wide, whose) {
            let words = &part.far(node);
            words.order(word.rank)?;
            let asked = look::begin_acquire(words, word, Mode::Exclusive)?;
            words.order(word.rank)?;
            self.state = State::Asked(asked);
            return Ok(());
        }
        let nodes = node.nodes_for_operations();
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
        let nodes = node.nodes_for_operations();
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
        match core::mem::replace(&mut self.state, State::Idle) {
            State::Held => on_words!(self.place.node, |words| {
                lock::release(words, word(self.rank), Mode::Exclusive)
            }),
            State::Idle | State::Asked(..) => Ok(()),
        }
    }
}
