//! The source of queue nodes for threads that have to wait for a lock.

use crate::error::Result;

/// The free queue nodes of a rank, as a waiting thread sees them.
pub trait Nodes {
    /// Takes a node, if one is free. No other thread of this rank uses it until it is given back.
    fn take(&self) -> Option<u32>;
    /// Gives a node back.
    fn give_back(&self, queue_node: u32);
    /// Passes some time without a node, so that threads with a node can go on.
    fn pause(&self) -> Result<()>;
}

/// The only node of a rank of which one thread waits at a time.
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
}
