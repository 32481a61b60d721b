//! The source of queue nodes for threads that have to wait for a lock, and the right of their
//! process to overtake other waiters ([`super::overtaking`]).

use crate::error::Result;
use crate::fabric::WordAt;

/// The free queue nodes of a rank, as a waiting thread sees them.
pub trait Nodes {
    /// Takes a node, if one is free. No other thread of this rank uses it until it is given back.
    fn take(&self) -> Option<u32>;
    /// Gives a node back.
    fn give_back(&self, queue_node: u32);
    /// Passes some time without a node, so that threads with a node can go on.
    fn pause(&self) -> Result<()>;
    /// Records that a thread of this rank got the lock `at` in its queue.
    fn had_turn(&self, _at: WordAt) {}
    /// Whether a thread of this rank may take the lock `at`, which is free, before others that
    /// wait for it. The answer is `true` a bounded number of times after each
    /// [`had_turn`](Nodes::had_turn) for the same lock, and not before.
    fn may_overtake(&self, _at: WordAt) -> bool {
        false
    }
}

/// The only node of a rank whose threads wait one at a time, and which overtakes no other rank.
impl Nodes for u32 {
    fn take(&self) -> Option<u32> {
        Some(*self)
    }

    fn give_back(&self, _: u32) {}

    fn pause(&self) -> Result<()> {
        Ok(())
    }
}

impl<N: Nodes> Nodes for &N {
    fn take(&self) -> Option<u32> {
        N::take(self)
    }

    fn give_back(&self, queue_node: u32) {
        N::give_back(self, queue_node);
    }

    fn pause(&self) -> Result<()> {
        N::pause(self)
    }

    fn had_turn(&self, at: WordAt) {
        N::had_turn(self, at);
    }

    fn may_overtake(&self, at: WordAt) -> bool {
        N::may_overtake(self, at)
    }
}
