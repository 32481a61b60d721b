//! The common memory of an allocated window, one range for all its ranks. Rank 0 takes it: what is
//! small from its own heap, where it is mapped and backed already by the second window; what is
//! large as a segment of its own, each rank backing its own part, so that the pages are near the
//! rank that uses them and go back to the system with the window. The memory reads as zero.

use crate::error::{Error, Result};
use crate::memory::heap::{self, Lease};
use crate::memory::{Place, View};
use crate::sys::segment::{self, Mapping, PAGE, Segment};
use core::ptr;

/// Bytes per rank up to which the memory of a window comes from the heap of rank 0.
const SMALL: u64 = 256 << 10;
/// The same for all ranks together.
const SMALL_ALL: u64 = 16 << 20;
/// From so many bytes on rank 0 asks whether the node has them, before any rank takes its part.
const LARGE: u64 = 16 << 20;

/// Whether so many bytes for so many ranks come from a heap. All ranks answer alike. A heap is
/// mapped at whole pages: where more is asked for, each rank has to choose the address itself.
fn is_small(total: u64, alignment: u64, ranks: u32) -> bool {
    total <= SMALL_ALL.min(SMALL * u64::from(ranks)) && alignment <= PAGE
}

/// What rank 0 has taken for all.
pub enum Offer {
    /// nothing is wanted
    Nothing,
    /// a range of its heap
    Heap(Lease),
    /// a segment of its own
    Segment(Segment),
}

impl Offer {
    /// Takes so many bytes.
    pub fn of(total: u64, alignment: u64, ranks: u32) -> Result<Offer> {
        if total == 0 {
            return Ok(Offer::Nothing);
        }
        if is_small(total, alignment, ranks) {
            return heap::take(total, PAGE).map(Offer::Heap);
        }
        if total >= LARGE && !segment::is_available(total) {
            return Err(Error::NoMemory { bytes: total });
        }
        let pages = total.min(i64::MAX as u64 - PAGE).next_multiple_of(PAGE);
        Segment::create(pages).map(Offer::Segment)
    }

    /// Where the others find it.
    pub fn place(&self) -> Result<Place> {
        Ok(match self {
            Offer::Nothing => Place::default(),
            Offer::Heap(lease) => lease.place(),
            Offer::Segment(segment) => Place { name: segment.name()?, offset: 0 },
        })
    }

    /// Whether it has been used before and must be cleared.
    pub fn is_dirty(&self) -> bool {
        matches!(self, Offer::Heap(lease) if lease.is_dirty())
    }
}

/// The common memory as one rank has it.
pub struct Common {
    base: *mut u8,
    bytes: u64,
    hold: Hold,
}

/// What keeps it there.
enum Hold {
    Nothing,
    Heap(View),
    Segment { _map: Mapping, open: Option<Segment> },
}

impl Common {
    /// Maps `total` bytes of `ranks` ranks at `place`, at a multiple of `alignment`, and makes sure
    /// of this rank's own `part` (where it begins, and bytes): it is backed with memory and zero.
    /// `offer`: what rank 0 has.
    pub fn map(
        place: &Place,
        (total, alignment): (u64, u64),
        ranks: u32,
        part: (u64, u64),
        dirty: bool,
        offer: Option<Offer>,
    ) -> Result<Common> {
        let hold = match offer {
            Some(Offer::Nothing) => Hold::Nothing,
            None if total == 0 => Hold::Nothing,
            Some(Offer::Heap(lease)) => Hold::Heap(lease.into()),
            None if is_small(total, alignment, ranks) => Hold::Heap(View::of(place)?),
            Some(Offer::Segment(segment)) => Hold::of_segment(segment, part, alignment)?,
            None => Hold::of_segment(Segment::open(&place.name)?, part, alignment)?,
        };
        let base = match &hold {
            Hold::Nothing => ptr::without_provenance_mut(PAGE as usize),
            Hold::Heap(view) => view.base(),
            Hold::Segment { _map, .. } => _map.base(),
        };
        if dirty {
            // SAFETY: this rank's own part of memory that all have mapped for this window; nobody
            // else touches it before the barrier that ends the making of the window.
            unsafe { base.wrapping_add(part.0 as usize).write_bytes(0, part.1 as usize) };
        }
        Ok(Common { base, bytes: total, hold })
    }

    /// Where it begins.
    pub fn base(&self) -> *mut u8 {
        self.base
    }

    /// Bytes of all ranks.
    pub fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Says that all ranks have mapped it: nobody has to open it any more.
    pub fn all_have_it(&mut self) {
        if let Hold::Segment { open, .. } = &mut self.hold {
            *open = None;
        }
    }
}

impl Hold {
    fn of_segment(segment: Segment, (first, bytes): (u64, u64), alignment: u64) -> Result<Hold> {
        segment.reserve(first, bytes)?;
        let map = match alignment > PAGE {
            true => segment.map_aligned(alignment as usize)?,
            false => segment.map()?,
        };
        Ok(Hold::Segment { _map: map, open: Some(segment) })
    }
}
