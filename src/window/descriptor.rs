//! The entry by which a rank tells the other ranks of a window what it exposes.

use crate::fabric::remote::Remote;
use crate::memory::HeapPlace;

/// A descriptor of the memory that a rank exposes. Its owner writes it at creation, before other
/// ranks may read it.
///
/// A transfer on an allocated window reads only the first cache line. The field `bytes` is 0 where
/// the memory is not in the common segment, so that no transfer takes it to be there.
#[repr(C, align(64))]
#[derive(Clone, Copy, Debug, Default)]
pub struct Descriptor {
    /// offset of the memory in the window's common segment, in bytes
    pub offset: u64,
    /// bytes of the memory in the common segment
    pub bytes: u64,
    /// the owner's displacement unit in bytes
    pub disp_unit: u64,
    /// the largest displacement whose first byte is in `bytes`, or right behind them
    pub disp_max: u64,
    /// bytes that the rank exposes, in any memory
    pub exposed: u64,
    /// address of the memory in the owner's process
    pub address: u64,
    /// place of the memory in the owner's heap; a name of no bytes: it is not in the heap
    pub place: HeapPlace,
    /// address of the memory for the device, if the owner has registered it itself
    pub remote: Remote,
    /// address of the owner's control words for the device, if the owner has registered them itself
    pub words: Remote,
}

const _: () = assert!(size_of::<Descriptor>() == 128);

impl Descriptor {
    /// Returns a descriptor of memory in the window's common segment.
    pub fn common(offset: u64, address: u64, bytes: u64, disp_unit: u64) -> Descriptor {
        let exposed = bytes;
        let disp_max = disp_max(bytes, disp_unit);
        Descriptor { offset, bytes, disp_unit, disp_max, exposed, address, ..Descriptor::default() }
    }

    /// Returns a descriptor of memory that the owner had before, in its heap or elsewhere.
    pub fn owned(
        address: u64,
        exposed: u64,
        disp_unit: u64,
        place: Option<HeapPlace>,
    ) -> Descriptor {
        let place = place.unwrap_or_default();
        Descriptor { disp_unit, exposed, address, place, ..Descriptor::default() }
    }

    /// Returns whether the memory lies in the owner's heap.
    pub fn is_in_heap(&self) -> bool {
        self.place.name.bytes > 0
    }

    /// Returns the offset of displacement `disp` in the memory in the common segment, and the bytes
    /// from there to its end; `None` if the displacement is negative or behind that end.
    #[inline(always)]
    pub fn start(&self, disp: i64) -> Option<(u64, u64)> {
        // A negative displacement is a number above all maxima here.
        let disp = disp.cast_unsigned();
        if disp > self.disp_max {
            return None;
        }
        // Neither wraps around: up to `disp_max` the product is at most `bytes`.
        let first = disp.wrapping_mul(self.disp_unit);
        Some((first, self.bytes.wrapping_sub(first)))
    }
}

/// Returns the largest displacement in units of `disp_unit` that is not behind the end of `bytes`
/// bytes. With a unit of 0 every displacement is at their begin.
fn disp_max(bytes: u64, disp_unit: u64) -> u64 {
    const DISP_MAX: u64 = i64::MAX.cast_unsigned();
    bytes.checked_div(disp_unit).unwrap_or(DISP_MAX).min(DISP_MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Compares [`Descriptor::start`] with numbers that cannot overflow.
    fn check(bytes: u64, unit: u64, disp: i64) {
        let first = i128::from(disp) * i128::from(unit);
        let inside = disp >= 0 && first <= i128::from(bytes);
        let expected = inside.then(|| (first as u64, bytes - first as u64));
        let start = Descriptor::common(0, 0, bytes, unit).start(disp);
        assert_eq!(start, expected, "{bytes} bytes in units of {unit} at {disp}");
    }

    #[test]
    fn a_start_is_inside_of_the_memory_or_at_its_end() {
        let numbers = [0, 1, 2, 3, 7, 8, 9, 4095, 4096, 1 << 31, 1 << 32, 1 << 62, u64::MAX / 2];
        for bytes in numbers.into_iter().chain([1 << 63, u64::MAX]) {
            for unit in numbers.into_iter().chain([1 << 63, u64::MAX]) {
                for near in numbers.into_iter().chain([bytes / unit.max(1)]) {
                    for disp in [near.wrapping_sub(1), near, near.wrapping_add(1)] {
                        check(bytes, unit, disp.cast_signed());
                        check(bytes, unit, disp.cast_signed().wrapping_neg());
                    }
                }
            }
        }
    }

    #[test]
    fn memory_outside_of_the_common_segment_starts_nowhere_but_at_its_end() {
        let owned = Descriptor::owned(4096, 4096, 8, None);
        assert_eq!((owned.start(0), owned.start(1)), (Some((0, 0)), None));
    }
}
