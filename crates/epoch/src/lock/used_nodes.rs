//! Queue nodes of this process in a window, and the locks that its threads wait for with them. A
//! program may hold the locks of a window for any time; locks within one operation are held for a
//! moment. The latter have their own nodes, so that they find one even if all other nodes are in
//! use.

use crate::fabric::layout::{NODES_FOR_LOCKS, NODES_PER_RANK};
use crate::number::Number;
use crate::rank_numbers::Rank;
use crate::sync::{AtomicU32, AtomicU64, Ordering};
use core::ops::Range;

/// The lock that a thread wants and for which it needs a queue node.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Wanted {
    /// the lock of a rank (MPI_Win_lock)
    Lock(Rank),
    /// MPI_Win_lock_all
    LockAll,
    /// to accumulate at a rank
    Accumulate(Rank),
    /// to access, attach or detach memory of a rank, in a dynamic window
    Regions(Rank),
}

impl Wanted {
    /// Returns the nodes for it.
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
            Wanted::LockAll => (1, Rank::FIRST),
            Wanted::Accumulate(rank) => (2, rank),
            Wanted::Regions(rank) => (3, rank),
        };
        kind << 32 | u64::from(rank.0)
    }

    fn of_word(word: u64) -> Wanted {
        let rank = Rank(word.low_u32());
        match word >> 32 {
            0 => Wanted::Lock(rank),
            1 => Wanted::LockAll,
            2 => Wanted::Accumulate(rank),
            _ => Wanted::Regions(rank),
        }
    }
}

/// The nodes that are in use, one bit each. A process with one thread takes a node, too: a session
/// may raise the level of thread support while the thread waits, so that other threads wait as
/// well.
#[derive(Default)]
pub struct UsedNodes {
    bits: AtomicU32,
    /// the lock that the thread with a node wants, for a report
    wanted: [AtomicU64; NODES_PER_RANK as usize],
}

impl UsedNodes {
    /// Takes a node that no thread uses for a thread that wants this; `None`: all are in use.
    pub fn take(&self, wanted: Wanted) -> Option<u32> {
        let node = wanted.range().find(|node| {
            // Acquire: pairs with the Release of `give_back`; one user of a node after the other.
            self.bits.fetch_or(1 << node, Ordering::Acquire) & 1 << node == 0
        })?;
        // Relaxed: as in `wanted`.
        self.wanted[node.to_usize()].store(wanted.to_word(), Ordering::Relaxed);
        Some(node)
    }

    /// Gives back a node that this thread has taken.
    pub fn give_back(&self, queue_node: u32) {
        // Release: pairs with the Acquire of `take`.
        self.bits.fetch_and(!(1 << queue_node), Ordering::Release);
    }

    /// Returns the lock that the thread with a node wants.
    pub fn wanted(&self, queue_node: u32) -> Wanted {
        // Relaxed: a thread reads this of its own node. For nodes of other threads it may be out of
        // date, and only reports read it.
        Wanted::of_word(self.wanted[queue_node.to_usize()].load(Ordering::Relaxed))
    }

    /// Returns the locks that all threads with nodes want.
    pub fn all_wanted(&self) -> Vec<Wanted> {
        let bits = self.bits.load(Ordering::Acquire);
        let used = (0..NODES_PER_RANK).filter(|node| bits & 1 << node != 0);
        used.map(|node| self.wanted(node)).collect()
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    #[test]
    fn what_is_wanted_is_kept_in_a_word() {
        use Wanted::{Accumulate, Lock, LockAll, Regions};
        for wanted in [Lock(Rank(7)), LockAll, Accumulate(Rank(u32::MAX)), Regions(Rank::FIRST)] {
            assert_eq!(Wanted::of_word(wanted.to_word()), wanted);
        }
    }
}
