//! The slots of an arena. Rank 0 allocates them, and announces the slot of a window one window
//! ahead, so that each rank can prepare its block before the first barrier of the new window. The
//! slots of the first chunk lie in the arena's first segment. Each further chunk is a segment of
//! its own, twice as large as the one before; a rank maps it when rank 0 first announces a slot in
//! it.
//!
//! Rank 0 frees a slot after the barrier of MPI_Win_free. Other ranks may then still be in that
//! barrier: they wait in [`Slots::enter`] before they reuse the slot, and no rank accesses another
//! rank's block until all ranks have entered.

#[cfg(any(test, fuzzing))]
mod slots_fuzz;
#[cfg(fuzzing)]
pub use slots_fuzz::announcements;

use crate::error::{Error, NO_DESCRIPTOR, Result};
use crate::messages;
use crate::number::Number;
use crate::rank_numbers::Slot;
use crate::sys::segment::{Mapping, Name, Segment};
use parking_lot::{Condvar, Mutex};
use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

/// Slots in the first chunk.
pub const FIRST_SLOTS: u32 = 16;

/// The interval at which a rank that waits for a slot checks that the other ranks are alive.
const CHECK_INTERVAL: Duration = Duration::from_millis(100);

/// A value in place of a slot, see [`Announcement`].
const OUT_OF_DESCRIPTORS: u64 = u64::MAX;

/// An announcement that rank 0 has not made: it has damaged its memory.
const DAMAGED: Error = Error::Wrong(&messages::DAMAGED_ANNOUNCEMENT);

/// The slots of an arena, as one rank knows them.
pub struct Slots {
    /// bytes of a slot
    slot_bytes: u64,
    /// the allocator of rank 0; unused on other ranks
    allocator: Mutex<Allocator>,
    /// the slot of the next window, as rank 0 has announced it
    next: Mutex<Result<Slot>>,
    /// the chunks that this process has mapped, except for the first
    chunks: Mutex<BTreeMap<u32, Mapping>>,
    /// slots of the windows of this process
    occupied: Mutex<BTreeSet<Slot>>,
    left: Condvar,
}

/// The slots that rank 0 allocates.
struct Allocator {
    free: Vec<Slot>,
    /// the lowest slot that was never used
    fresh: Slot,
    /// all chunks except for the first, open as long as the arena, because a rank may map them
    /// later
    segments: Vec<(Segment, Name)>,
}

/// The announcement of the next window's slot by rank 0.
#[derive(Clone, Copy, Debug, Default)]
#[repr(C)]
pub struct Announcement {
    /// the slot; 0 (the arena's own slot): no memory for a slot; [`OUT_OF_DESCRIPTORS`]: rank 0 has
    /// no file descriptor left
    pub slot: u64,
    /// the chunk of the slot; a name of no bytes for the first chunk
    pub chunk: Name,
}

/// Returns the chunk that a slot is in, and its index there.
pub fn place(slot: Slot) -> (u32, u32) {
    let chunk = (slot.0 / FIRST_SLOTS + 1).ilog2();
    (chunk, slot.0 - FIRST_SLOTS * ((1 << chunk) - 1))
}

impl Slots {
    /// Creates slots of `slot_bytes` bytes; slot 0 is in use, slot 1 is that of the first window.
    pub fn new(slot_bytes: u64) -> Slots {
        let allocator = Allocator { free: Vec::new(), fresh: Slot(2), segments: Vec::new() };
        Slots {
            slot_bytes,
            allocator: Mutex::new(allocator),
            next: Mutex::new(Ok(Slot(1))),
            chunks: Mutex::default(),
            occupied: Mutex::default(),
            left: Condvar::new(),
        }
    }

    /// Returns the slot of the window that is being made.
    pub fn next(&self) -> Result<Slot> {
        self.next.lock().clone()
    }

    /// Allocates a slot for the window after the one that is being made. Rank 0 only.
    pub fn announce(&self) -> Announcement {
        let mut allocator = self.allocator.lock();
        let slot = allocator.free.pop().unwrap_or(allocator.fresh);
        let (chunk, _) = place(slot);
        if chunk > allocator.segments.len().to_u32() {
            match self.make_chunk(chunk) {
                Ok(made) => allocator.segments.push(made),
                Err(error) if error.is_short_of_descriptors() => {
                    return Announcement { slot: OUT_OF_DESCRIPTORS, chunk: Name::default() };
                }
                Err(_) => return Announcement::default(),
            }
        }
        allocator.fresh = allocator.fresh.max(slot.next());
        let name = chunk.to_usize().checked_sub(1).map(|index| allocator.segments[index].1);
        Announcement { slot: u64::from(slot.0), chunk: name.unwrap_or_default() }
    }

    /// Returns the bytes of a chunk.
    fn chunk_bytes(&self, chunk: u32) -> Result<u64> {
        (u64::from(FIRST_SLOTS) << chunk).checked_mul(self.slot_bytes).ok_or(DAMAGED)
    }

    fn make_chunk(&self, chunk: u32) -> Result<(Segment, Name)> {
        let bytes = self.chunk_bytes(chunk)?;
        let segment = Segment::create(bytes)?;
        segment.reserve(0, bytes)?;
        let name = segment.name();
        Ok((segment, name))
    }

    /// Stores the announced slot of the next window, and maps its chunk.
    pub fn learn(&self, announced: &Announcement) {
        if announced.slot == OUT_OF_DESCRIPTORS {
            *self.next.lock() = Err(NO_DESCRIPTOR);
            return;
        }
        *self.next.lock() = self.find(announced);
    }

    /// Returns the announced slot, whose chunk is mapped.
    fn find(&self, announced: &Announcement) -> Result<Slot> {
        let slot = Slot(u32::try_from(announced.slot).map_err(|_| DAMAGED)?);
        if slot == Slot::OF_ARENA {
            return Err(Error::NoMemory { bytes: self.slot_bytes });
        }
        let (chunk, _) = place(slot);
        let mut chunks = self.chunks.lock();
        if chunk > 0 && !chunks.contains_key(&chunk) {
            if announced.chunk.bytes != self.chunk_bytes(chunk)? {
                return Err(DAMAGED);
            }
            chunks.insert(chunk, Segment::open(&announced.chunk)?.map()?);
        }
        Ok(slot)
    }

    /// Frees a slot. Rank 0 only.
    pub fn free(&self, slot: Slot) {
        self.allocator.lock().free.push(slot);
    }

    /// Returns the address of a slot in a further chunk, which is mapped.
    pub fn base(&self, slot: Slot) -> *mut u8 {
        let (chunk, index) = place(slot);
        let base = self.chunks.lock()[&chunk].base();
        base.wrapping_add((self.slot_bytes * u64::from(index)).to_usize())
    }

    /// Returns a further chunk, which is mapped: its number, address and length in bytes.
    pub fn chunk(&self, chunk: u32) -> (u32, *mut u8, u64) {
        let chunks = self.chunks.lock();
        (chunk, chunks[&chunk].base(), chunks[&chunk].bytes().to_u64())
    }

    /// Enters a slot for a window of this process. Waits until the threads of this process that are
    /// still in MPI_Win_free of the slot's previous window have left the slot. Fails with the error
    /// of `check` if they never will.
    pub fn enter(&self, slot: Slot, check: impl Fn() -> Result<()>) -> Result<()> {
        let mut occupied = self.occupied.lock();
        while !occupied.insert(slot) {
            self.left.wait_for(&mut occupied, CHECK_INTERVAL);
            check()?;
        }
        Ok(())
    }

    /// Leaves a slot: this process does not use it any more.
    pub fn leave(&self, slot: Slot) {
        self.occupied.lock().remove(&slot);
        self.left.notify_all();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rank_numbers::Rank;

    #[test]
    fn each_slot_has_its_own_place() {
        assert_eq!(place(Slot(0)), (0, 0));
        assert_eq!(place(Slot(15)), (0, 15));
        assert_eq!(place(Slot(16)), (1, 0));
        assert_eq!(place(Slot(47)), (1, 31));
        assert_eq!(place(Slot(48)), (2, 0));
    }

    #[test]
    fn a_slot_is_announced_one_window_ahead_and_used_again() {
        let slots = Slots::new(4096);
        let mut used = Vec::new();
        for window in 1..=40 {
            assert_eq!(slots.next(), Ok(Slot(window)));
            used.push(window);
            slots.learn(&slots.announce());
        }
        slots.free(Slot(7));
        assert_eq!(slots.next(), Ok(Slot(41)));
        slots.learn(&slots.announce());
        assert_eq!(slots.next(), Ok(Slot(7)));
        slots.learn(&slots.announce());
        assert_eq!(slots.next(), Ok(Slot(42)));
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
        assert_eq!(slots.next(), Ok(Slot(2)));
    }

    #[test]
    fn a_slot_for_which_rank_0_had_no_descriptor_fails_one_window() {
        let slots = Slots::new(4096);
        slots.learn(&Announcement { slot: OUT_OF_DESCRIPTORS, chunk: Name::default() });
        assert!(slots.next().is_err_and(|error| error.is_short_of_descriptors()));
        slots.learn(&slots.announce());
        assert_eq!(slots.next(), Ok(Slot(2)));
    }

    #[test]
    fn an_announcement_that_rank_0_has_damaged_is_refused() {
        let slots = Slots::new(64);
        let made = |bytes| Segment::create(bytes).unwrap();
        let (right, short) = (made(2 * 64 * u64::from(FIRST_SLOTS)), made(4096 / 4));
        let damaged = [
            Announcement { slot: 16, chunk: short.name() },
            Announcement { slot: 48, chunk: right.name() },
            Announcement { slot: 1 << 32 | 16, chunk: right.name() },
            Announcement { slot: u64::from(u32::MAX), chunk: right.name() },
        ];
        for announced in damaged {
            slots.learn(&announced);
            assert_eq!(slots.next(), Err(DAMAGED), "{announced:?}");
        }
        slots.learn(&Announcement { slot: 47, chunk: right.name() });
        assert_eq!(slots.next(), Ok(Slot(47)));
    }

    #[test]
    fn a_thread_enters_a_slot_after_another_one_has_left_it() {
        let slots = Slots::new(4096);
        slots.enter(Slot(3), || Ok(())).unwrap();
        std::thread::scope(|scope| {
            let other = scope.spawn(|| slots.enter(Slot(3), || Ok(())));
            slots.leave(Slot(3));
            other.join().unwrap().unwrap();
        });
        let gone = Error::Died { rank: Rank(1), pid: 1 };
        assert_eq!(slots.enter(Slot(3), || Err(gone.clone())), Err(gone.clone()));
    }
}
