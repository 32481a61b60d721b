//! Where a thread that has to wait for a lock gets its queue node from.

use crate::error::Result;

/// Where a thread that has to wait in a queue gets its node from.
pub trait Nodes {
    /// A node that no other thread of this rank uses until it is given back, if one is free.
    fn take(&self) -> Option<u32>;
    /// Gives a node back.
    fn give_back(&self, node: u32);
    /// Passes some time without a node, in which those who have one go on.
    fn pause(&self) -> Result<()>;
}

/// The node of a rank that waits with one thread at a time.
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

    fn give_back(&self, node: u32) {
        N::give_back(self, node);
    }

    fn pause(&self) -> Result<()> {
        N::pause(self)
    }
}
