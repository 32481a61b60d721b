//! Extent of the memory of a target, with its displacements: mapped here, or on another node. The
//! checks of bounds here return no error; those of `address` do.

use crate::number::Number;
use core::ptr;

/// Memory of a target, and the displacements that are inside. It may have no byte.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct Extent {
    /// where it begins, at displacement `disp_min`: in this process, or on another node
    pub(super) at: *mut u8,
    pub(super) bytes: u64,
    /// the displacement unit in bytes
    pub(super) disp_unit: u64,
    /// the first displacement inside
    pub(super) disp_min: u64,
    /// the largest displacement from there whose first byte is in `bytes`, or right behind them
    pub(super) disp_max: u64,
    /// whether it is the beginning of a [`DistantTarget`]; otherwise it is mapped here
    ///
    /// [`DistantTarget`]: super::wide::target_records::DistantTarget
    pub(super) is_distant: bool,
}

// SAFETY: the address is of shared memory, or of no memory of this process.
unsafe impl Send for Extent {}
// SAFETY: as for `Send`.
unsafe impl Sync for Extent {}

impl Extent {
    /// No memory.
    pub(super) const NOTHING: Extent = Extent {
        at: ptr::null_mut(),
        bytes: 0,
        disp_unit: 0,
        disp_min: 0,
        disp_max: 0,
        is_distant: false,
    };

    /// Returns the bytes from offset `first` to `end` of what a target exposes, at `at`, in units
    /// of `disp_unit` bytes.
    pub fn new(at: *mut u8, (first, end): (u64, u64), disp_unit: u64) -> Extent {
        // With a unit of 0 every displacement is at the begin of the memory.
        let disp_min = first.div_ceil(disp_unit.max(1));
        let begin = disp_min.saturating_mul(disp_unit);
        // Only a rank that has damaged its memory maps bytes behind the last displacement.
        let is_any = begin >= first && disp_min <= DISP_MAX;
        let Some(bytes) = end.checked_sub(begin).filter(|_| is_any) else {
            return Extent::NOTHING;
        };
        let at = at.wrapping_add((begin - first).to_usize());
        let disp_max = disp_max(bytes, disp_unit).min(DISP_MAX - disp_min);
        Extent { at, bytes, disp_unit, disp_min, disp_max, is_distant: false }
    }

    /// Returns the offset of displacement `disp` in the memory, and the bytes from there to its
    /// end; `None` if the displacement is negative, ahead of that memory or behind its end.
    #[inline(always)]
    pub fn start(&self, disp: i64) -> Option<(u64, u64)> {
        // A negative displacement, or one that is ahead, is a number above all maxima here.
        let disp = disp.cast_unsigned().wrapping_sub(self.disp_min);
        if disp > self.disp_max {
            return None;
        }
        // Neither wraps around: up to `disp_max` the product is at most `bytes`.
        let first = disp.wrapping_mul(self.disp_unit);
        Some((first, self.bytes.wrapping_sub(first)))
    }

    /// Returns the address of `bytes` bytes from `first` past the displacement; `None` if one of
    /// them is outside.
    #[inline(always)]
    pub fn reach(&self, disp: i64, (first, bytes): (i64, u64)) -> Option<*mut u8> {
        let (start, _) = self.start(disp)?;
        let first = start.checked_add_signed(first)?;
        let behind = self.bytes.checked_sub(first)?;
        (bytes <= behind).then_some(self.at.wrapping_add(first.to_usize()))
    }
}

/// The largest displacement that there is.
const DISP_MAX: u64 = i64::MAX.cast_unsigned();

/// Returns the largest displacement in units of `disp_unit` that is not behind the end of `bytes`
/// bytes. With a unit of 0 every displacement is at their begin.
fn disp_max(bytes: u64, disp_unit: u64) -> u64 {
    bytes.checked_div(disp_unit).unwrap_or(DISP_MAX).min(DISP_MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn part(part: (u64, u64), unit: u64) -> Extent {
        Extent::new(ptr::without_provenance_mut(1 << 40), part, unit)
    }

    #[test]
    fn a_start_is_inside_of_the_mapped_part_or_at_its_end() {
        for (first, end) in [(0, 4096), (100, 4096), (96, 97), (96, 96), (1 << 40, 1 << 41)] {
            for unit in [0, 1, 8, 12, 5000, 1 << 45, u64::MAX] {
                let extent = part((first, end), unit);
                let near = [0, first, first / unit.max(1), end, end / unit.max(1)];
                for disp in near.into_iter().flat_map(|disp| disp.wrapping_sub(3)..=disp + 3) {
                    let byte = i128::from(disp.cast_signed()) * i128::from(unit);
                    let inside =
                        (i128::from(first)..=i128::from(end)).contains(&byte) && disp <= DISP_MAX;
                    let Some((offset, room)) = extent.start(disp.cast_signed()) else {
                        assert!(!inside, "{first} {end} {unit} {disp}");
                        continue;
                    };
                    if extent.bytes == 0 && room == 0 {
                        continue; // no byte may be accessed
                    }
                    assert!(inside, "{first} {end} {unit} {disp}");
                    assert_eq!(i128::from(room), i128::from(end) - byte);
                    let at = extent.at.addr() as u64 + offset - (1 << 40);
                    assert_eq!(i128::from(at), byte - i128::from(first));
                }
            }
        }
        assert_eq!(part((8, 64), 8).start(i64::MIN), None);
    }

    /// Compares [`Extent::start`] with numbers that cannot overflow.
    fn check(bytes: u64, unit: u64, disp: i64) {
        let first = i128::from(disp) * i128::from(unit);
        let inside = disp >= 0 && first <= i128::from(bytes);
        let expected = inside.then(|| (first as u64, bytes - first as u64));
        let start = part((0, bytes), unit).start(disp);
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
}
