//! The entry by which a rank tells the other ranks of a window what it exposes.

use crate::fabric::remote::Remote;
use crate::memory::HeapPlace;

/// A descriptor of the memory that a rank exposes. Its owner writes it at creation, before other
/// ranks may read it.
#[repr(C, align(64))]
#[derive(Clone, Copy, Debug, Default)]
pub struct Descriptor {
    /// offset of the memory in the window's common segment, in bytes
    pub offset: u64,
    /// the owner's displacement unit in bytes
    pub disp_unit: u64,
    /// bytes that the rank exposes, in any memory
    pub exposed: u64,
    /// address of the memory in the owner's process
    pub address: u64,
    /// place in the owner's heap of the bytes that other processes can map; a name of no bytes:
    /// there are none
    pub place: HeapPlace,
    /// the first byte that other processes can map, from the begin of the memory
    pub mapped_first: u64,
    /// one past the last byte that they can map
    pub mapped_end: u64,
    /// address of the memory for the device, if the owner has registered it itself
    pub remote: Remote,
    /// address of the owner's control words for the device, if the owner has registered them itself
    pub words: Remote,
}

const _: () = assert!(size_of::<Descriptor>() == 128);

impl Descriptor {
    /// Returns a descriptor of memory in the window's common segment.
    pub fn common(offset: u64, address: u64, bytes: u64, disp_unit: u64) -> Descriptor {
        Descriptor { offset, disp_unit, exposed: bytes, address, ..Descriptor::default() }
    }

    /// Returns a descriptor of memory that the owner had before, in its heap or elsewhere.
    pub fn owned(
        address: u64,
        exposed: u64,
        disp_unit: u64,
        place: Option<HeapPlace>,
    ) -> Descriptor {
        let mapped_end = place.map_or(0, |_| exposed);
        let place = place.unwrap_or_default();
        Descriptor { disp_unit, exposed, address, place, mapped_end, ..Descriptor::default() }
    }

    /// Sets the bytes that other processes can map: those of `part`, an address at the owner and a
    /// length, at `place`.
    pub fn with_part(self, (address, bytes): (u64, u64), place: HeapPlace) -> Descriptor {
        let mapped_first = address - self.address;
        debug_assert!(mapped_first + bytes <= self.exposed);
        Descriptor { place, mapped_first, mapped_end: mapped_first + bytes, ..self }
    }

    /// Returns whether some of the memory lies in the owner's heap.
    pub fn is_in_heap(&self) -> bool {
        self.place.name.bytes > 0
    }

    /// Returns whether all of `bytes` bytes from the offset `first` lie in the owner's heap.
    #[inline]
    pub fn maps(&self, first: u64, bytes: u64) -> bool {
        self.is_in_heap() && first >= self.mapped_first && first + bytes <= self.mapped_end
    }

    /// Returns whether all of the memory lies in the owner's heap.
    pub fn is_mapped(&self) -> bool {
        self.maps(0, self.exposed)
    }

    /// Returns how many of `count` elements of `extent` bytes from the offset `first` lie ahead of
    /// the bytes that are mapped, inside, and behind. An element across an edge is outside.
    pub fn split(&self, first: u64, extent: u64, count: u64) -> [u64; 3] {
        if !self.is_in_heap() {
            return [count, 0, 0];
        }
        let ahead = self.mapped_first.saturating_sub(first).div_ceil(extent).min(count);
        let until = (self.mapped_end.saturating_sub(first) / extent).min(count);
        let inside = until.saturating_sub(ahead);
        [ahead, inside, count - ahead - inside]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn elements_are_ahead_inside_or_behind() {
        let name = crate::sys::segment::Name { pid: 1, fd: 1, device: 1, inode: 1, bytes: 1 };
        let place = HeapPlace { name, offset: 0 };
        let none = Descriptor::owned(4000, 10_000, 1, None);
        assert_eq!(none.split(0, 8, 5), [5, 0, 0]);
        let some = none.with_part((4096, 8192), place);
        for extent in [1, 2, 4, 8, 12, 16, 32] {
            for first in (0..400).chain(8000..8400) {
                for count in [1, 2, 3, 50, 100] {
                    let begin = |at: u64| first + at * extent;
                    let inside = |at: &u64| some.maps(begin(*at), extent);
                    let ahead = (0..count).take_while(|at| !inside(at)).count() as u64;
                    let within = (ahead..count).take_while(inside).count() as u64;
                    let expected = match within {
                        0 => None,
                        within => Some([ahead, within, count - ahead - within]),
                    };
                    let found = some.split(first, extent, count);
                    assert_eq!(found.iter().sum::<u64>(), count);
                    match expected {
                        Some(expected) => assert_eq!(found, expected, "{first} {extent} {count}"),
                        None => assert_eq!(found[1], 0, "{first} {extent} {count}"),
                    }
                }
            }
        }
        assert!(some.is_in_heap() && !some.is_mapped());
        assert!(Descriptor::owned(4096, 10, 1, Some(place)).is_mapped());
    }
}
