//! The bytes of a rank's memory that other processes can map, of a window over memory that the rank
//! had before. They lie in its block behind its descriptor, and do not change once the window is
//! made.

use super::descriptor::Descriptor;
use crate::memory::HeapPlace;

/// The offset of the control words in a block, from its descriptor.
pub const WORDS_AT: usize = size_of::<Descriptor>() + size_of::<MappedBytes>();

/// The bytes of a rank's memory that other processes can map: those from `first` to `end`, which
/// are offsets from the begin of the memory.
#[repr(C, align(64))]
#[derive(Clone, Copy, Debug, Default)]
pub struct MappedBytes {
    /// place in the owner's heap of the first one; a name of no bytes: there are none
    pub place: HeapPlace,
    /// the first byte
    pub first: u64,
    /// one past the last byte
    pub end: u64,
}

const _: () = assert!(size_of::<MappedBytes>() == 64);

impl MappedBytes {
    /// All `exposed` bytes of a rank, which lie at `place`.
    pub fn all(exposed: u64, place: HeapPlace) -> MappedBytes {
        MappedBytes { place, first: 0, end: exposed }
    }

    /// The bytes of a rank whose memory begins at `base` that are in `part`, an address at the
    /// owner and a length, at `place`.
    pub fn part(base: u64, (address, bytes): (u64, u64), place: HeapPlace) -> MappedBytes {
        let first = address - base;
        MappedBytes { place, first, end: first + bytes }
    }

    /// Returns whether there are any.
    #[inline]
    pub fn is_any(&self) -> bool {
        self.place.name.bytes > 0
    }

    /// Returns whether all of `bytes` bytes from the offset `first` are mapped.
    #[inline]
    pub fn maps(&self, first: u64, bytes: u64) -> bool {
        self.is_any() && first >= self.first && first + bytes <= self.end
    }

    /// Returns whether some of `bytes` bytes from the offset `first` are mapped, and others are
    /// not.
    pub fn is_mixed(&self, first: u64, bytes: u64) -> bool {
        let overlaps = first < self.end && first + bytes > self.first;
        self.is_any() && overlaps && !self.maps(first, bytes)
    }

    /// Returns how many of `count` elements of `extent` bytes from the offset `first` lie ahead of
    /// the bytes that are mapped, inside, and behind. An element across an edge is outside.
    pub fn split(&self, first: u64, extent: u64, count: u64) -> [u64; 3] {
        if !self.is_any() {
            return [count, 0, 0];
        }
        let ahead = self.first.saturating_sub(first).div_ceil(extent).min(count);
        let until = (self.end.saturating_sub(first) / extent).min(count);
        let inside = until.saturating_sub(ahead);
        [ahead, inside, count - ahead - inside]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn elements_are_ahead_inside_or_behind() {
        let name =
            crate::sys::segment::Name { pid: 1, fd: 1, device: 1, inode: 1, bytes: 1, passer: 0 };
        let place = HeapPlace { name, offset: 0 };
        let none = MappedBytes::default();
        assert_eq!(none.split(0, 8, 5), [5, 0, 0]);
        let some = MappedBytes::part(4000, (4096, 8192), place);
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
        assert!(some.is_any() && !some.maps(0, 10_000) && !none.maps(0, 0));
        assert!(MappedBytes::all(10, place).maps(0, 10));
        assert!(some.is_mixed(0, 97) && !some.is_mixed(0, 96) && !some.is_mixed(96, 8192));
    }
}
