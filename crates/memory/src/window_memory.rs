//! The common memory of an allocated window, one range for all its ranks. Rank 0 allocates it. A
//! small range comes from the heap of rank 0, which the other ranks have mapped already from the
//! second window on. A large range is a segment of its own, so that its pages are near the rank
//! that touches them first. The memory may be kept when the window is freed
//! (`window_memory_cache`). It reads as zero. Its pages are taken from the system when they are
//! touched; only where a device or the kernel's policy requires it, each rank backs its own part
//! when the window is made.

use super::window_memory_cache::{Content, HasKeep, Keep, TouchState, content_of_file};
use crate::error::{Error, Result};
use crate::heap::{self, HeapRange};
use crate::number::Number;
use crate::sys::page_bytes;
use crate::sys::segment::{Mapping, Segment};
use crate::sys::{memory_limits, resident};
use crate::{HeapPlace, HeapView};
use core::ptr;
use parking_lot::Mutex;
use std::collections::BTreeMap;

/// Bytes per rank up to which the memory of a window comes from the heap of rank 0.
const SMALL: u64 = 256 << 10;
/// Bytes of all ranks together up to which the memory of a window comes from the heap of rank 0.
const SMALL_ALL: u64 = 16 << 20;
/// Size of a window's memory from which on rank 0 checks whether the node has that much.
pub const LARGE: u64 = 16 << 20;

/// The bytes of the common memory of each window that is not freed, by its address.
static IN_USE: Mutex<BTreeMap<u64, u64>> = Mutex::new(BTreeMap::new());

/// Returns the address and the bytes of the memory of a window that holds a range of addresses. Its
/// pages stay where they are until [`Common::end_use`].
pub fn in_use(address: u64, bytes: u64) -> Option<(u64, u64)> {
    let windows = IN_USE.lock();
    let (base, length) = windows.range(..=address).next_back()?;
    (address.checked_add(bytes)? <= base + length).then_some((*base, *length))
}

/// Whether `total` bytes for `ranks` ranks come from a heap. The result is equal on all ranks. A
/// heap is mapped at whole pages; for a larger alignment each rank has to choose the address
/// itself.
fn is_small(total: u64, alignment: u64, ranks: u32) -> bool {
    total <= SMALL_ALL.min(SMALL * u64::from(ranks)) && alignment <= page_bytes()
}

/// The memory that rank 0 has allocated for all ranks.
pub enum Offer {
    /// no memory: the window has no bytes
    Nothing,
    /// a range of its heap
    Heap(HeapRange),
    /// a segment of its own
    Segment(Segment),
}

impl Offer {
    /// Takes `bytes` bytes, which are `backed` with memory now or when they are touched.
    pub fn of(total: u64, alignment: u64, ranks: u32, backed: bool) -> Result<Offer> {
        if total == 0 {
            return Ok(Offer::Nothing);
        }
        if is_small(total, alignment, ranks) {
            // In pages of its own: a child of fork(2) shares these pages with its parent, but no
            // memory of MPI_Alloc_mem.
            let lease = heap::take(total.next_multiple_of(page_bytes()), page_bytes())?;
            if backed {
                lease.back()?;
            }
            return Ok(Offer::Heap(lease));
        }
        // Checked before any rank backs its part.
        if backed && total >= LARGE && !memory_limits::is_available(total) {
            return Err(Error::NoMemory { bytes: total });
        }
        let pages = total.min(i64::MAX as u64 - page_bytes()).next_multiple_of(page_bytes());
        Segment::create(pages).map(Offer::Segment)
    }

    /// The place of the memory, by which the other ranks map it.
    pub fn place(&self) -> Result<HeapPlace> {
        Ok(match self {
            Offer::Nothing => HeapPlace::default(),
            Offer::Heap(lease) => lease.place(),
            Offer::Segment(segment) => HeapPlace { name: segment.name(), offset: 0 },
        })
    }

    /// Whether the memory has been used before and must be cleared.
    pub fn is_dirty(&self) -> bool {
        matches!(self, Offer::Heap(lease) if lease.is_dirty())
    }
}

/// The common memory, mapped in one process.
pub struct Common {
    base: *mut u8,
    bytes: u64,
    hold: Hold,
    keep: Option<Keep>,
}

// SAFETY: an address and the owner of its mapping; the bytes are accessed by copies and atomics
// only.
unsafe impl Send for Common {}
// SAFETY: as for `Send`.
unsafe impl Sync for Common {}

/// The object that keeps the memory mapped.
enum Hold {
    Nothing,
    Heap(HeapView),
    Segment { map: Mapping, open: Option<Segment> },
}

impl Common {
    /// Maps `total` bytes of `ranks` ranks at `place`, at a multiple of `alignment`. Clears this
    /// rank's own `part` (its offset and its bytes) if it was used before, and backs it with memory
    /// if `backed` is set. `offer`: the memory that rank 0 has allocated.
    pub fn map(
        place: &HeapPlace,
        (total, alignment): (u64, u64),
        ranks: u32,
        part: (u64, u64),
        (dirty, backed): (bool, bool),
        offer: Option<Offer>,
    ) -> Result<Common> {
        let hold = match offer {
            Some(Offer::Nothing) => Hold::Nothing,
            None if total == 0 => Hold::Nothing,
            Some(Offer::Heap(lease)) => Hold::Heap(lease.into()),
            None if is_small(total, alignment, ranks) => Hold::Heap(HeapView::of(place, total)?),
            Some(Offer::Segment(segment)) => Hold::of_segment(segment, alignment)?,
            None => Hold::of_segment(Segment::open(place.segment_of(total)?)?, alignment)?,
        };
        let base = match &hold {
            Hold::Nothing => ptr::without_provenance_mut(page_bytes().to_usize()),
            Hold::Heap(view) => view.base(),
            Hold::Segment { map, .. } => map.base(),
        };
        if let Hold::Segment { map, open: Some(segment) } = &hold
            && backed
        {
            let first = part.0 / page_bytes() * page_bytes();
            segment.back(map, first, (part.0 + part.1).next_multiple_of(page_bytes()) - first)?;
        }
        if dirty {
            // SAFETY: this rank's own part of memory that all ranks have mapped for this window; no
            // other rank touches it before the barrier at the end of the window's creation.
            unsafe { resident::clear(base.wrapping_add(part.0.to_usize()), part.1.to_usize()) };
        }
        Ok(Common { base, bytes: total, hold, keep: None })
    }

    /// The address of the first byte.
    pub fn base(&self) -> *mut u8 {
        self.base
    }

    /// Bytes of all ranks.
    pub fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Begins its use by a window, which [`in_use`] finds.
    pub fn begin_use(&self) {
        if self.bytes > 0 {
            IN_USE.lock().insert(self.base.addr().to_u64(), self.bytes);
        }
    }

    /// Ends its use by a window. Returns its address and its bytes.
    pub fn end_use(&self) -> (u64, u64) {
        let base = self.base.addr().to_u64();
        IN_USE.lock().remove(&base);
        (base, self.bytes)
    }

    /// Called when all ranks have mapped the memory: no process has to open it again. `keep`: the
    /// memory is kept when the window is freed. Rank 0 (`first`) then leaves its file descriptor
    /// open, which shows how much of the memory was touched.
    pub fn all_have_it(&mut self, keep: Option<Keep>, first: bool) {
        if let Hold::Segment { open, .. } = &mut self.hold
            && !(first && keep.is_some())
        {
            *open = None;
        }
        self.keep = keep;
    }

    /// Returns the content of kept memory, on rank 0; `None` if it must not be reused. A small
    /// memory that was touched once is assumed to be touched each time, because a check costs more
    /// than clearing it.
    pub fn content(&self) -> Option<Content> {
        match &self.hold {
            Hold::Nothing => None,
            Hold::Heap(_) if self.keep.as_ref()?.touch != TouchState::Untouched => {
                Some(Content::Some)
            }
            Hold::Heap(view) => {
                Some(if view.has_data()? { Content::Some } else { Content::Nothing })
            }
            Hold::Segment { open, .. } => {
                content_of_file(open.as_ref()?.backed_bytes()?, self.bytes)
            }
        }
    }

    /// Clears this rank's part of kept memory. All ranks have agreed to use it again, and none uses
    /// it before the next barrier.
    pub fn clear(&mut self, content: Content) {
        let Some(keep) = &mut self.keep else { return };
        let base = self.base.wrapping_add(keep.part.offset.to_usize());
        let bytes = keep.part.bytes.to_usize();
        // Pages of kept memory stay allocated. A large memory has its own count of them.
        let full = keep.touch == (TouchState::Touched { all: true });
        let full = full && matches!(self.hold, Hold::Heap(_));
        let all = match content {
            Content::Nothing => return,
            // SAFETY: this rank's own part, which no other rank uses meanwhile.
            Content::Some if !full => unsafe { resident::clear(base, bytes) },
            _ => {
                // SAFETY: this rank's own part, which no other rank uses meanwhile.
                unsafe { base.write_bytes(0, bytes) };
                true
            }
        };
        keep.touch = TouchState::Touched { all };
    }
}

impl HasKeep for Common {
    fn keep(&self) -> Option<&Keep> {
        self.keep.as_ref()
    }
}

impl Hold {
    fn of_segment(segment: Segment, alignment: u64) -> Result<Hold> {
        let map = match alignment > page_bytes() {
            true => segment.map_aligned(alignment.to_usize())?,
            false => segment.map()?,
        };
        Ok(Hold::Segment { map, open: Some(segment) })
    }
}
