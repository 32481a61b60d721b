//! The layout of an arena's first segment: the failure words, the process records, two exchange
//! records per rank, and then the first chunk of slots.

use crate::fabric::net::Contact;
use crate::liveness::lives::{LifeRecord, Places};
use crate::memory::HeapPlace;
use crate::memory::slots::Announcement;
use crate::number::Number;
use crate::rank_numbers::RankOnNode;
use crate::sync::{AtomicU32, AtomicU64, Ordering};
use crate::sys::segment::Mapping;

/// The words by which the ranks report failures.
#[repr(C, align(64))]
pub struct Failures {
    /// what the ranks report, by [`Counter`]
    pub counters: [AtomicU64; Counter::COUNT],
    /// the lost process, see `liveness::losses`
    lost: AtomicU64,
    /// a number that no other arena of the node has (from rank 0)
    pub id: AtomicU64,
    /// whether the ranks share cores, by the count of rank 0: 0 or 1 (from rank 0)
    pub shares_cores: AtomicU64,
}

/// The number of a counter of the ranks that report something in a collective call. Two calls use
/// their counters in turn. A counter only grows: a rank compares with the value that it saw before.
#[derive(Clone, Copy)]
pub struct Counter(pub usize);

impl Counter {
    /// How many there are.
    pub const COUNT: usize = 8;

    /// The ranks that have failed in step 0 or 1 of window creation number `turn`.
    pub fn failed(turn: u64, step: usize) -> Counter {
        Counter(2 * (turn % 2).to_usize() + step)
    }

    /// The ranks that ask for the quiet part of call number `round` (`create::quiet`).
    pub fn asks(round: u64) -> Counter {
        Counter(4 + 2 * (round % 2).to_usize())
    }

    /// The ranks that refuse it, because they are not quiet.
    pub fn refuses(round: u64) -> Counter {
        Counter(5 + 2 * (round % 2).to_usize())
    }
}

/// The record of a process.
#[repr(C, align(64))]
pub struct ProcessRecord {
    /// the record by which the others know whether it runs
    life: LifeRecord,
    /// the futex that it sleeps on, see `fabric::shm::words`
    pub doorbell: AtomicU32,
    /// its contact for ranks of other nodes, if it has registered memory of its own
    contact: [AtomicU64; 16],
}

impl ProcessRecord {
    /// Offset of the contact in the record, in bytes.
    pub const CONTACT: u64 = core::mem::offset_of!(ProcessRecord, contact) as u64;

    /// Returns its contact for ranks of other nodes.
    pub fn contact(&self) -> Contact {
        // Relaxed: a collective call orders the stores of `set_contact` before these loads.
        Contact(core::array::from_fn(|word| self.contact[word].load(Ordering::Relaxed)))
    }

    /// Stores its contact for ranks of other nodes. Call before the collective call after which
    /// other ranks read it.
    pub fn set_contact(&self, contact: &Contact) {
        for (to, from) in self.contact.iter().zip(contact.0) {
            // Relaxed: that collective call orders it.
            to.store(from, Ordering::Relaxed);
        }
    }
}

/// The exchange record of a rank, for the creation of a window. Each rank has two, used in turn.
/// Plain data: the rank writes it before a barrier, and the others read it after the barrier.
#[repr(C, align(64))]
#[derive(Clone, Copy, Default)]
pub struct Record {
    /// see `create::agreement`, as for the next two
    pub status: u64,
    /// (from rank 0)
    pub offered: u64,
    /// whether the rank has mapped all memory of the window
    pub mapped: u64,
    /// bytes that the rank requests
    pub bytes: u64,
    /// alignment of the beginning of its part; odd if the part must directly follow that of the
    /// rank before it
    pub alignment: u64,
    /// the kept memory that fits its request, see `window_memory_cache`
    pub kept: u64,
    /// whether the common memory was used before and must be cleared (from rank 0)
    pub dirty: u64,
    /// whether the common memory is kept when the window is freed (from rank 0)
    pub keeps: u64,
    /// the common memory of the window (from rank 0)
    pub data: HeapPlace,
    /// the slot of the next window (from rank 0)
    pub announcement: Announcement,
}

/// Returns the bytes of all that lies before the first chunk of slots.
pub fn bytes(size: u32) -> usize {
    size_of::<Failures>() + size.to_usize() * (size_of::<ProcessRecord>() + 2 * size_of::<Record>())
}

/// Returns the failure words.
pub fn failures(first: &Mapping) -> &Failures {
    // SAFETY: the first segment starts with them. It is zeroed memory that lives as long as the
    // mapping, and all their fields are atomics.
    unsafe { &*first.base().cast::<Failures>() }
}

/// Returns the record of a rank's process; `rank` is less than the size of the arena.
pub fn process(first: &Mapping, rank: RankOnNode) -> &ProcessRecord {
    // SAFETY: `size` process records follow the failure words; otherwise as for `failures`.
    unsafe {
        let processes = first.base().add(size_of::<Failures>()).cast::<ProcessRecord>();
        &*processes.add(rank.0.to_usize())
    }
}

/// The offsets of the liveness records. This file does not use these bytes otherwise.
pub const LIVES: Places = Places {
    lost: core::mem::offset_of!(Failures, lost),
    first: size_of::<Failures>() + core::mem::offset_of!(ProcessRecord, life),
    stride: size_of::<ProcessRecord>(),
};

/// Returns the offset in bytes of the record of a rank's process in the first segment.
pub fn process_offset(rank: RankOnNode) -> u64 {
    (size_of::<Failures>() + rank.0.to_usize() * size_of::<ProcessRecord>()).to_u64()
}

/// Returns the address of a rank's exchange record for the creation number `turn`.
pub fn record(first: &Mapping, size: u32, turn: u64, rank: RankOnNode) -> *mut Record {
    let before = size_of::<Failures>() + size.to_usize() * size_of::<ProcessRecord>();
    let index = 2 * rank.0.to_usize() + (turn % 2).to_usize();
    // SAFETY: the record is inside the first segment, see `bytes`.
    unsafe { first.base().add(before).cast::<Record>().add(index) }
}
