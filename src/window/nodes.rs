//! The queue nodes of a window in this process: the threads that wait for its locks take them.
//! Locks of windows are held as long as programs like, the locks inside of one operation for a
//! moment; the latter have nodes of their own, so that all of the others may be waiting.

use super::LocalWindow;
use crate::epoch::lock::Nodes;
use crate::error::Result;
use crate::fabric::layout::{NODES_FOR_LOCKS, NODES_PER_RANK};
use crate::mpi::Host;
use crate::sync::{AtomicU32, AtomicU64, Ordering};
use core::ops::Range;

/// What a thread wants that needs a queue node.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Wanted {
    /// the lock of a rank (MPI_Win_lock)
    Lock(u32),
    /// MPI_Win_lock_all
    LockAll,
    /// to accumulate at a rank
    Accumulate(u32),
    /// to access, attach or detach memory of a rank, in a dynamic window
    Regions(u32),
}

impl Wanted {
    /// The nodes for it.
    #[inline]
    fn range(self) -> Range<u32> {
        match self {
            Wanted::Lock(_) | Wanted::LockAll => 0..NODES_FOR_LOCKS,
            Wanted::Accumulate(_) | Wanted::Regions(_) => NODES_FOR_LOCKS..NODES_PER_RANK,
        }
    }

    fn to_word(self) -> u64 {
        let (kind, rank) = match self {
            Wanted::Lock(rank) => (0, rank),
            Wanted::LockAll => (1, 0),
            Wanted::Accumulate(rank) => (2, rank),
            Wanted::Regions(rank) => (3, rank),
        };
        kind << 32 | u64::from(rank)
    }

    fn of_word(word: u64) -> Wanted {
        let rank = word as u32;
        match word >> 32 {
            0 => Wanted::Lock(rank),
            1 => Wanted::LockAll,
            2 => Wanted::Accumulate(rank),
            _ => Wanted::Regions(rank),
        }
    }
}

/// Which nodes are in use: one bit each. Where one thread waits at a time it takes one too: others
/// may come while it waits, when a session raises the level of thread support.
#[derive(Default)]
pub struct Used {
    bits: AtomicU32,
    /// what the thread that uses a node wants, for a report
    wanted: [AtomicU64; NODES_PER_RANK as usize],
}

impl Used {
    /// What the thread wants that uses a node.
    pub fn wanted(&self, node: u32) -> Wanted {
        // Relaxed: a thread asks for its own node; of those of others it is a guess.
        Wanted::of_word(self.wanted[node as usize].load(Ordering::Relaxed))
    }

    /// What all threads want that use a node.
    pub fn all_wanted(&self) -> Vec<Wanted> {
        let bits = self.bits.load(Ordering::Acquire);
        let used = (0..NODES_PER_RANK).filter(|node| bits & 1 << node != 0);
        used.map(|node| self.wanted(node)).collect()
    }
}

/// The nodes for one kind of waiting.
pub struct NodesOf<'a> {
    node: &'a LocalWindow,
    wanted: Wanted,
}

impl LocalWindow {
    /// The nodes for a thread that may have to wait: for a lock of a window, until another process
    /// ends an epoch; for anything else, until another thread or process ends one operation.
    #[inline]
    pub fn nodes_for(&self, wanted: Wanted) -> NodesOf<'_> {
        NodesOf { node: self, wanted }
    }
}

impl Nodes for NodesOf<'_> {
    fn take(&self) -> Option<u32> {
        let used = &self.node.nodes;
        let node = self.wanted.range().find(|node| {
            // Acquire: pairs with the Release of `give_back`; one user of a node after the other.
            used.bits.fetch_or(1 << node, Ordering::Acquire) & 1 << node == 0
        })?;
        // Relaxed: as in `wanted`.
        used.wanted[node as usize].store(self.wanted.to_word(), Ordering::Relaxed);
        Some(node)
    }

    fn give_back(&self, node: u32) {
        // Release: pairs with the Acquire of `take`.
        self.node.nodes.bits.fetch_and(!(1 << node), Ordering::Release);
    }

    fn pause(&self) -> Result<()> {
        self.node.comm().progress(Host::get());
        std::thread::yield_now();
        self.node.arena().check_dead()
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    #[test]
    fn what_is_wanted_is_kept_in_a_word() {
        use Wanted::{Accumulate, Lock, LockAll, Regions};
        for wanted in [Lock(7), LockAll, Accumulate(u32::MAX), Regions(0)] {
            assert_eq!(Wanted::of_word(wanted.to_word()), wanted);
        }
    }
}
