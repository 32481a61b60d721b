//! Records of the targets of a window over several nodes: how this process may access a rank, and
//! how it reaches it. `targets` fills them in.

use crate::arena::descriptor::Descriptor;
use crate::arena::wide::Member;
use crate::epoch::access::TargetAccess;
use crate::epoch::lock::unconfirmed_targets::UnconfirmedMarks;
use crate::epoch::lock::{Mode, acquire_and_read, atomic_calls};
use crate::error::Result;
use crate::fabric::location::{Distant, Location, Unmapped};
use crate::fabric::net::Peer;
use crate::fabric::remote::{AtTarget, LockAt, Network, Remote};
use crate::fabric::remote_words::word_in;
use crate::number::Number;
use crate::rank_numbers::Rank;
use crate::window::extent::Extent;
use core::ptr;
use parking_lot::Mutex;
use std::sync::{Arc, OnceLock};

/// What this process knows of a rank of the window.
#[derive(Default)]
pub struct WideRecord {
    /// how it may access the rank now
    pub access: TargetAccess,
    /// how it reaches the rank, from the first contact on
    pub(super) target: OnceLock<WideTarget>,
    /// the memory of a rank of another node, from the first access on
    pub distant: OnceLock<DistantTarget>,
}

/// A rank of another node, as most calls need it.
#[repr(C)]
pub struct DistantTarget {
    /// its memory, by addresses of that node
    pub extent: Extent,
    /// the handle of its window
    pub window: u32,
    /// the key of this memory
    pub key: u64,
    /// the process that serves it
    pub peer: Arc<Peer>,
}

impl DistantTarget {
    /// Returns the location of a number of bytes from the first one past displacement `disp`, if
    /// all of them are inside.
    #[inline(always)]
    pub fn location(&self, disp: i64, bytes: (i64, u64)) -> Option<Location<'_>> {
        let at = self.extent.reach(disp, bytes)?.addr().to_u64();
        let at = Remote { at, key: self.key };
        Some(Location::Unmapped(Unmapped::Distant(Distant { peer: &self.peer, at })))
    }
}

impl WideRecord {
    /// Records the memory of a rank of another node.
    pub fn note_distant(&self, window: u32, target: &WideTarget, data: &Data) {
        let (exposed, Remote { at, key }) = (data.descriptor.get(), data.at);
        let at = ptr::without_provenance_mut(at.to_usize());
        // Memory is shorter than any negative length as a number.
        let end = exposed.exposed.min(i64::MAX.cast_unsigned());
        let extent = Extent::new(at, (0, end), exposed.disp_unit);
        let (extent, peer) = (Extent { is_distant: true, ..extent }, target.peer.clone());
        self.distant.get_or_init(|| DistantTarget { extent, window, key, peer });
    }

    /// Returns the rank as a target if this process has contacted it.
    #[inline]
    pub fn contacted(&self) -> Option<&WideTarget> {
        self.target.get()
    }
}

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
