//! The ranks of a window over several nodes as this process reaches them. `targets` fills them in,
//! and a record of `quick_window` leads to each.

use crate::arena::descriptor::Descriptor;
use crate::arena::wide::Member;
use crate::epoch::lock::unconfirmed_targets::UnconfirmedMarks;
use crate::epoch::lock::{Mode, acquire_and_read, atomic_calls};
use crate::error::Result;
use crate::fabric::net::Peer;
use crate::fabric::remote::{AtTarget, LockAt, Network, Remote};
use crate::fabric::remote_words::word_in;
use crate::rank_numbers::Rank;
use parking_lot::Mutex;
use std::sync::{Arc, OnceLock};

/// A rank of the window that this process has contacted.
pub struct WideTarget {
    pub(super) rank: Rank,
    /// its place
    pub member: Member,
    /// the process that serves it
    pub peer: Arc<Peer>,
    /// the address of its control words
    pub block: Remote,
    pub(super) data: OnceLock<Data>,
    /// held by the thread of this process that holds the target's accumulate lock by its queue.
    /// That queue would order the threads too, as it does for other calls, but each handover there
    /// costs several requests and waits, and here none
    pub accumulating: Mutex<()>,
    /// whether it has unconfirmed accumulates
    pub(super) unconfirmed: UnconfirmedMarks,
}

impl WideTarget {
    /// The rank.
    pub fn rank(&self) -> Rank {
        self.rank
    }

    /// Its accumulate lock.
    pub fn accumulate_lock(&self) -> LockAt {
        LockAt {
            at: word_in(self.block, atomic_calls::word(self.rank).word),
            take: acquire_and_read::taken(Mode::Exclusive),
            release: acquire_and_read::freed(Mode::Exclusive),
        }
    }

    /// Takes the accumulate lock by the target, does `work`, and releases the lock behind it.
    pub fn under_lock<R>(
        &self,
        to: &<Peer as Network>::AtTarget,
        work: impl FnOnce() -> Result<R>,
    ) -> Result<R> {
        let (_turn, lock) = (to.locking().lock(), self.accumulate_lock());
        to.take_lock(lock)?;
        let done = work();
        to.release_lock(lock)?;
        done
    }
}

/// The memory that a target exposes.
pub struct Data {
    /// its descriptor
    pub descriptor: KnownDescriptor,
    /// the address of the memory
    pub at: Remote,
}

/// The descriptor of a rank, as this process keeps it.
pub enum KnownDescriptor {
    /// in a block of the window, or in a note
    Shared(*const Descriptor),
    /// a copy of this process, if the notes are full
    Copy(Box<Descriptor>),
}

// SAFETY: the descriptor that a pointer points to is constant.
unsafe impl Send for KnownDescriptor {}
// SAFETY: as for `Send`.
unsafe impl Sync for KnownDescriptor {}

impl KnownDescriptor {
    /// Returns the descriptor.
    #[inline]
    pub fn get(&self) -> &Descriptor {
        match self {
            // SAFETY: blocks and notes last as long as the window.
            KnownDescriptor::Shared(shared) => unsafe { &**shared },
            KnownDescriptor::Copy(copy) => copy,
        }
    }
}
