//! A road that forgets its duties: the simulator with one fault, to prove that the tests of a
//! protocol would notice the line that is missing. Not for faults of hardware.

use super::Sim;
use crate::error::Result;
use crate::fabric::{Fetch, Rank, WordAt, WordId, Words};

/// What is forgotten.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    /// nothing: with it the same test must pass
    Nothing,
    /// every flush
    Flush,
    /// every order
    Order,
    /// posts to one word
    Post(WordId),
    /// posts that are due, once: every other one to one word
    EveryOtherPost(WordId),
    /// that a word of this rank may be reset
    SetOwn,
    /// waiting
    Wait,
    /// that a CompareSwap is one step
    Atomicity,
}

/// A rank with a fault.
pub struct Weak<'a, 'b> {
    /// the rank without it
    pub sim: &'a Sim<'b>,
    /// the fault
    pub fault: Fault,
}

impl Words for Weak<'_, '_> {
    fn rank(&self) -> Rank {
        self.sim.rank()
    }

    fn size(&self) -> u32 {
        self.sim.size()
    }

    fn fetch(&self, at: WordAt, op: Fetch) -> Result<u64> {
        match op {
            Fetch::CompareSwap { expect, new } if self.fault == Fault::Atomicity => {
                let before = self.sim.fetch(at, Fetch::Add(0))?;
                if before == expect {
                    self.sim.fetch(at, Fetch::Add(new.wrapping_sub(expect)))?;
                }
                Ok(before)
            }
            _ => self.sim.fetch(at, op),
        }
    }

    fn post(&self, at: WordAt, add: u64) -> Result<()> {
        match self.fault {
            Fault::Post(word) if word == at.word => Ok(()),
            Fault::EveryOtherPost(word) if word == at.word && self.sim.random(2) == 0 => Ok(()),
            _ => self.sim.post(at, add),
        }
    }

    fn read(&self, at: WordAt) -> Result<u64> {
        self.sim.read(at)
    }

    fn own(&self, word: WordId) -> u64 {
        self.sim.own(word)
    }

    fn set_own(&self, word: WordId, value: u64) {
        if self.fault != Fault::SetOwn {
            self.sim.set_own(word, value);
        }
    }

    fn wait_own(&self, word: WordId, until: impl Fn(u64) -> bool) -> Result<u64> {
        if self.fault == Fault::Wait {
            Ok(self.sim.own(word))
        } else {
            self.sim.wait_own(word, until)
        }
    }

    fn order(&self, rank: Rank) -> Result<()> {
        if self.fault == Fault::Order { Ok(()) } else { self.sim.order(rank) }
    }

    fn flush(&self, rank: Rank) -> Result<()> {
        if self.fault == Fault::Flush { Ok(()) } else { self.sim.flush(rank) }
    }

    fn flush_all(&self) -> Result<()> {
        if self.fault == Fault::Flush { Ok(()) } else { self.sim.flush_all() }
    }
}
