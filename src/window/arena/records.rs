//! The first segment of an arena, as its ranks see it: the trouble counters, the process records,
//! two exchange records per rank, and then the first chunk of slots.

use super::slots::Announcement;
use crate::fabric::verbs::Contact;
use crate::memory::Place;
use crate::sync::{AtomicU32, AtomicU64, Ordering};
use crate::sys::segment::Mapping;

/// What the ranks should know of each other's trouble.
#[repr(C, align(64))]
pub struct Trouble {
    /// how many ranks are in trouble with a window that is being made: for two windows, used in
    /// turn, and for two steps of each; they only grow, a rank compares with what it saw before
    pub cries: [AtomicU64; 4],
    /// who is lost, see `losses`
    pub lost: AtomicU64,
    /// a number that no other arena of the node has (from rank 0)
    pub id: AtomicU64,
}

/// What the node knows of a process.
///
/// | `state` | meaning                                                     |
/// |---------|-------------------------------------------------------------|
/// | 0       | the process takes part                                      |
/// | 1       | it has called MPI_Finalize: that it is gone is no failure   |
#[repr(C, align(64))]
pub struct Process {
    /// its process id
    pub pid: AtomicU32,
    /// 0 or 1, see above
    pub state: AtomicU32,
    /// what it sleeps on, see `fabric::shm::words`
    pub doorbell: AtomicU32,
    /// when it was started, see `sys::life`
    pub start: AtomicU64,
    /// where in its memory `cookie` is to be found, if one may look
    pub cookie_address: AtomicU64,
    /// a number that no other process has there
    pub cookie: AtomicU64,
    /// how ranks of other nodes reach it, if it has exposed memory of its own
    contact: [AtomicU64; 16],
}

impl Process {
    /// Where its contact is in the record, in bytes.
    pub const CONTACT: u64 = core::mem::offset_of!(Process, contact) as u64;

    /// How ranks of other nodes reach it.
    pub fn contact(&self) -> Contact {
        // Relaxed: written before this rank met that one for the first time.
        Contact(core::array::from_fn(|word| self.contact[word].load(Ordering::Relaxed)))
    }

    /// Says how ranks of other nodes reach it. Before all meet.
    pub fn set_contact(&self, contact: &Contact) {
        for (to, from) in self.contact.iter().zip(contact.0) {
            // Relaxed: the meeting orders it.
            to.store(from, Ordering::Relaxed);
        }
    }
}

/// What ranks tell each other while a window is made; two of them per rank, used in turn. Plain
/// data: written before a barrier, read behind it.
#[repr(C, align(64))]
#[derive(Clone, Copy, Default)]
pub struct Record {
    /// see `exchange`, as for the next two
    pub status: u64,
    /// (from rank 0)
    pub offered: u64,
    /// whether the rank has mapped it all
    pub mapped: u64,
    /// bytes that the rank wants
    pub bytes: u64,
    /// to a multiple of which its part begins; odd if it must follow the part of the rank before it
    pub alignment: u64,
    /// the common memory of the window (from rank 0)
    pub data: Place,
    /// whether that memory was used before and must be cleared (from rank 0)
    pub dirty: u64,
    /// the slot of the next window (from rank 0)
    pub announcement: Announcement,
}

/// Bytes of all that lies before the first chunk of slots.
pub fn bytes(size: u32) -> usize {
    size_of::<Trouble>() + size as usize * (size_of::<Process>() + 2 * size_of::<Record>())
}

/// The trouble counters.
pub fn trouble(first: &Mapping) -> &Trouble {
    // SAFETY: the first segment starts with them; it is zeroed memory that lives as long as the
    // mapping, and all of it are atomics.
    unsafe { &*first.base().cast::<Trouble>() }
}

/// The record of a rank's process; `rank` is less than the size that the segment was made for.
pub fn process(first: &Mapping, rank: u32) -> &Process {
    // SAFETY: `size` process records follow the counters; else as for `trouble`.
    unsafe {
        let processes = first.base().add(size_of::<Trouble>()).cast::<Process>();
        &*processes.add(rank as usize)
    }
}

/// Where the record of a rank's process is in the first segment, in bytes.
pub fn process_offset(rank: u32) -> u64 {
    (size_of::<Trouble>() + rank as usize * size_of::<Process>()) as u64
}

/// Where a rank's exchange record for the creation number `turn` is.
pub fn record(first: &Mapping, size: u32, turn: u64, rank: u32) -> *mut Record {
    let before = size_of::<Trouble>() + size as usize * size_of::<Process>();
    let index = 2 * rank as usize + (turn % 2) as usize;
    // SAFETY: inside of the first segment, see `bytes`.
    unsafe { first.base().add(before).cast::<Record>().add(index) }
}
