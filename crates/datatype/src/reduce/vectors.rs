//! Choice of the loop for the elements of a call on memory that no other thread changes meanwhile:
//! the wide loops process whole blocks, if the processor has them, and the baseline loop the rest.
//!
//! On paper, for a block: two loads and a store of each vector, or two of each. For a call: a load
//! that finds the version, and its call.

use super::element::Element;
use super::loops::{BLOCK, OldElements, each};
use super::ops::Combine;
#[cfg(target_arch = "x86_64")]
use super::wide_loops::change_wide;

/// Whether this many elements are at least a block of a type that vectors help with.
#[inline(always)]
pub fn is_long<T: Element>(count: usize) -> bool {
    T::NUMBERS > 0 && count >= BLOCK / T::EXTENT
}

/// Applies an op to every element, and puts the old ones into the result, if there is one.
///
/// # Safety
/// For `count` elements: `target` may be read and written, `origin` read, and `result` written. No
/// other thread changes them. Target and origin do not overlap. The result overlaps neither, but a
/// call that is not long may have the origin as its result.
#[inline(never)] // once, for callers that name it and those that pass it on
pub unsafe fn change<T: Element, C: Combine<T>, R: OldElements>(
    target: *mut u8,
    origin: *const u8,
    result: R,
    count: usize,
) {
    let wide = 0;
    #[cfg(target_arch = "x86_64")]
    let wide = match is_long::<T>(count) {
        // SAFETY: the caller guarantees the same.
        true => unsafe { change_wide::<T, C, R>(target, origin, result, count) },
        false => wide,
    };
    let (at, left) = (wide * T::EXTENT, count - wide);
    let result = R::FETCHES.then(|| result.place().wrapping_add(at));
    // SAFETY: the elements that are left are the caller's, too.
    unsafe { each::<T, C>(target.add(at), origin.add(at), result, left, 0) }
}
