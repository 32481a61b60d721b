//! The queue nodes of a window in this process: the threads that wait for its locks take them.
//! Locks of windows are held as long as programs like, the locks inside of one operation for a
//! moment; the latter have nodes of their own, so that all of the others may be waiting.

use super::Node;
use crate::epoch::layout::{NODES_FOR_LOCKS, NODES_PER_RANK};
use crate::epoch::lock::Nodes;
use crate::error::Result;
use crate::fabric::shm::words::Idle;
use crate::mpi::Host;
use crate::sync::{AtomicU32, Ordering};
use core::ops::Range;

/// Which nodes are in use: one bit each. Where one thread waits at a time it takes one too: others
/// may come while it waits, when a session raises the level of thread support.
#[derive(Default)]
pub struct Used {
    bits: AtomicU32,
}

/// The nodes for one kind of waiting.
pub struct NodesOf<'a> {
    node: &'a Node,
    range: Range<u32>,
}

impl Node {
    /// For waiting until another process ends an epoch.
    #[inline]
    pub fn nodes_for_locks(&self) -> NodesOf<'_> {
        NodesOf { node: self, range: 0..NODES_FOR_LOCKS }
    }

    /// For waiting until another thread or process is through with one operation.
    #[inline]
    pub fn nodes_for_operations(&self) -> NodesOf<'_> {
        NodesOf { node: self, range: NODES_FOR_LOCKS..NODES_PER_RANK }
    }
}

impl Nodes for NodesOf<'_> {
    fn take(&self) -> Option<u32> {
        let used = &self.node.nodes;
        self.range.clone().find(|node| {
            // Acquire: pairs with the Release of `give_back`; one user of a node after the other.
            used.bits.fetch_or(1 << node, Ordering::Acquire) & 1 << node == 0
        })
    }

    fn give_back(&self, node: u32) {
        // Release: pairs with the Acquire of `take`.
        self.node.nodes.bits.fetch_and(!(1 << node), Ordering::Release);
    }

    fn pause(&self) -> Result<()> {
        self.node.comm().progress(Host::get());
        std::thread::yield_now();
        self.node.words.idle().check()
    }
}
