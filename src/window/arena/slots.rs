//! The slots of an arena: rank 0 gives them out, and says one window ahead which one is next, so
//! that every rank can make its block ready before the ranks meet. The slots of the first chunk lie
//! in the arena's first segment; further chunks are segments of their own, each twice as large,
//! mapped by a rank when rank 0 first speaks of them.
//!
//! A slot is given back when rank 0 has passed the barrier of MPI_Win_free. Others may still be in
//! it then: they wait in [`Slots::enter`] before they use it again, and until all have entered
//! nobody touches the block of another.

use crate::error::{Error, NO_DESCRIPTOR, Result};
use crate::sys::segment::{Mapping, Name, Segment};
use parking_lot::{Condvar, Mutex};
use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

/// Slots in the first chunk.
pub const FIRST_SLOTS: u32 = 16;

/// How often a rank that waits for a slot looks whether everybody is still there.
const PATIENCE: Duration = Duration::from_millis(100);

/// Instead of a slot, see [`Announcement`].
const SHORT: u64 = u64::MAX;

/// What a rank knows of the slots of an arena.
pub struct Slots {
    /// bytes of a slot
    slot_bytes: u64,
    /// what rank 0 gives out; unused elsewhere
    giving: Mutex<Giving>,
    /// the slot of the next window, as rank 0 said
    next: Mutex<Result<u32>>,
    /// chunks that are mapped here, but for the first
    chunks: Mutex<BTreeMap<u32, Mapping>>,
    /// slots of the windows of this process
    occupied: Mutex<BTreeSet<u32>>,
    left: Condvar,
}

/// The slots that rank 0 gives out.
struct Giving {
    free: Vec<u32>,
    /// the first that was never used
    fresh: u32,
    /// all chunks but the first, open as long as the arena: a rank may have to map them late
    segments: Vec<(Segment, Name)>,
}

/// What rank 0 says of the next window's slot.
#[derive(Clone, Copy, Debug, Default)]
#[repr(C)]
pub struct Announcement {
    /// the slot; 0 is the arena's own, and means here that there is no memory for one; [`SHORT`]:
    /// no descriptor
    pub slot: u64,
    /// the chunk that it is in; no bytes for the first
    pub chunk: Name,
}

/// The chunk that a slot is in, and its place there.
pub fn place(slot: u32) -> (u32, u32) {
    let chunk = (slot / FIRST_SLOTS + 1).ilog2();
    (chunk, slot - FIRST_SLOTS * ((1 << chunk) - 1))
}

impl Slots {
    /// Slots of so many bytes; 0 is taken, 1 comes next.
    pub fn new(slot_bytes: u64) -> Slots {
        let giving = Giving { free: Vec::new(), fresh: 2, segments: Vec::new() };
        Slots {
            slot_bytes,
            giving: Mutex::new(giving),
            next: Mutex::new(Ok(1)),
            chunks: Mutex::default(),
            occupied: Mutex::default(),
            left: Condvar::new(),
        }
    }

    /// The slot of the window that is being made.
    pub fn next(&self) -> Result<u32> {
        self.next.lock().clone()
    }

    /// Takes a slot for the window after the one that is being made. Rank 0 only.
    pub fn announce(&self) -> Announcement {
        let mut giving = self.giving.lock();
        let slot = giving.free.pop().unwrap_or(giving.fresh);
        let (chunk, _) = place(slot);
        if chunk > giving.segments.len() as u32 {
            match self.make_chunk(chunk) {
                Ok(made) => giving.segments.push(made),
                Err(error) if error.is_short_of_descriptors() => {
                    return Announcement { slot: SHORT, chunk: Name::default() };
                }
                Err(_) => return Announcement::default(),
            }
        }
        giving.fresh = giving.fresh.max(slot + 1);
        let name = (chunk as usize).checked_sub(1).map(|index| giving.segments[index].1);
        Announcement { slot: u64::from(slot), chunk: name.unwrap_or_default() }
    }

    fn make_chunk(&self, chunk: u32) -> Result<(Segment, Name)> {
        let bytes = (u64::from(FIRST_SLOTS) << chunk) * self.slot_bytes;
        let segment = Segment::create(bytes)?;
        segment.reserve(0, bytes)?;
        let name = segment.name();
        Ok((segment, name))
    }

    /// Notes which slot comes next, and maps its chunk.
    pub fn learn(&self, said: &Announcement) {
        if said.slot == SHORT {
            *self.next.lock() = Err(NO_DESCRIPTOR);
            return;
        }
        let slot = said.slot as u32;
        let (chunk, _) = place(slot);
        let mut chunks = self.chunks.lock();
        let known = chunk == 0 || chunks.contains_key(&chunk);
        *self.next.lock() = match (slot, known) {
            (0, _) => Err(Error::NoMemory { bytes: self.slot_bytes }),
            (_, true) => Ok(slot),
            (_, false) => Segment::open(&said.chunk).and_then(|segment| segment.map()).map(|map| {
                chunks.insert(chunk, map);
                slot
            }),
        };
    }

    /// Gives a slot back. Rank 0 only.
    pub fn free(&self, slot: u32) {
        self.giving.lock().free.push(slot);
    }

    /// Where a slot of a further chunk is.
    pub fn base(&self, slot: u32) -> *mut u8 {
        let (chunk, index) = place(slot);
        let base = self.chunks.lock()[&chunk].base();
        base.wrapping_add((self.slot_bytes * u64::from(index)) as usize)
    }

    /// A further chunk that is mapped: its number, where it begins, and its length.
    pub fn chunk(&self, chunk: u32) -> (u32, *mut u8, u64) {
        let chunks = self.chunks.lock();
        (chunk, chunks[&chunk].base(), chunks[&chunk].bytes() as u64)
    }

    /// Takes a slot for a window of this process. Waits until the threads of this process that are
    /// still in MPI_Win_free of the window before have left it; `check` fails if they never will.
    pub fn enter(&self, slot: u32, check: impl Fn() -> Result<()>) -> Result<()> {
        let mut occupied = self.occupied.lock();
        while !occupied.insert(slot) {
            self.left.wait_for(&mut occupied, PATIENCE);
            check()?;
        }
        Ok(())
    }

    /// Notes that this process is done with a slot.
    pub fn leave(&self, slot: u32) {
        self.occupied.lock().remove(&slot);
        self.left.notify_all();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_slot_has_its_own_place() {
        assert_eq!(place(0), (0, 0));
        assert_eq!(place(15), (0, 15));
        assert_eq!(place(16), (1, 0));
        assert_eq!(place(47), (1, 31));
        assert_eq!(place(48), (2, 0));
    }

    #[test]
    fn a_slot_is_announced_one_window_ahead_and_used_again() {
        let slots = Slots::new(4096);
        let mut used = Vec::new();
        for window in 1..=40 {
            assert_eq!(slots.next(), Ok(window));
            used.push(window);
            slots.learn(&slots.announce());
        }
        slots.free(7);
        assert_eq!(slots.next(), Ok(41));
        slots.learn(&slots.announce());
        assert_eq!(slots.next(), Ok(7));
        slots.learn(&slots.announce());
        assert_eq!(slots.next(), Ok(42));
    }

    #[test]
    fn a_slot_whose_chunk_cannot_be_mapped_fails_one_window() {
        let slots = Slots::new(4096);
        let lost = Announcement { slot: 16, chunk: Name::default() };
        slots.learn(&lost);
        assert!(slots.next().is_err());
        slots.learn(&Announcement::default());
        assert!(slots.next().is_err());
        slots.learn(&slots.announce());
        assert_eq!(slots.next(), Ok(2));
    }

    #[test]
    fn a_slot_for_which_rank_0_had_no_descriptor_fails_one_window() {
        let slots = Slots::new(4096);
        slots.learn(&Announcement { slot: SHORT, chunk: Name::default() });
        assert!(slots.next().is_err_and(|error| error.is_short_of_descriptors()));
        slots.learn(&slots.announce());
        assert_eq!(slots.next(), Ok(2));
    }

    #[test]
    fn who_enters_waits_for_who_leaves() {
        let slots = Slots::new(4096);
        slots.enter(3, || Ok(())).unwrap();
        std::thread::scope(|scope| {
            let other = scope.spawn(|| slots.enter(3, || Ok(())));
            slots.leave(3);
            other.join().unwrap().unwrap();
        });
        let gone = Error::Died { rank: 1, pid: 1 };
        assert_eq!(slots.enter(3, || Err(gone.clone())), Err(gone.clone()));
    }
}
