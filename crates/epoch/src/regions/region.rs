//! One entry of the table of a rank's regions.

use crate::sys::segment::Name;

/// A region, as other ranks read it from the memory of its owner.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(C)]
pub struct RegionEntry {
    /// its address in its owner
    pub base: u64,
    /// its length
    pub bytes: u64,
    /// its offset in the segment
    pub offset: u64,
    /// the segment that it lies in; a name of no bytes: it lies in no segment that others can map
    pub name: Name,
    /// the key by which the device reaches it, together with the regions that continue it without a
    /// gap
    pub key: u64,
}

const _: () = assert!(size_of::<RegionEntry>() == 72);

impl RegionEntry {
    /// Returns the address behind its last byte.
    pub fn end(&self) -> u64 {
        self.base + self.bytes
    }

    /// Returns whether a rank can have attached it: it has bytes, ends where memory of a process
    /// may end, and lies inside of its segment. Then no sum of its numbers wraps around, a search
    /// in which each region continues the one before ends, and what is found in a segment is
    /// mapped.
    pub fn may_be(&self) -> bool {
        let end = self.base.checked_add(self.bytes).filter(|end| *end <= i64::MAX as u64);
        let place = self.offset.checked_add(self.bytes);
        let fits = place.is_some_and(|place| !self.is_mapped() || place <= self.name.bytes);
        self.bytes > 0 && end.is_some() && fits
    }

    /// Returns whether it lies in a segment that others can map.
    pub fn is_mapped(&self) -> bool {
        self.name.bytes > 0
    }

    /// Returns whether `next`, which begins where this one ends, continues it in the same segment.
    pub fn continues_in(&self, next: &RegionEntry) -> bool {
        next.name == self.name && next.offset == self.offset + self.bytes
    }
}
