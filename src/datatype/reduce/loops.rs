//! The loops over elements that no other thread changes meanwhile, one without and one with a
//! result. They become a part of each function that calls them, and the compiler makes vector
//! instructions of them for that function's features.

use super::element::Element;
use super::ops::Combine;

/// Bytes of the target in a block, of which the wide loops do whole ones.
pub const BLOCK: usize = 128;

/// Applies an op to every element.
///
/// # Safety
/// For `count` elements: `target` may be read and written, `origin` read. They do not overlap, and
/// no other thread changes them. `flip` is 0.
#[inline(always)]
pub unsafe fn change_each<T: Element, C: Combine<T>>(
    target: *mut u8,
    origin: *const u8,
    count: usize,
    flip: u64,
) {
    for at in 0..count {
        // SAFETY: an element below `count`, where the caller guarantees the buffers.
        unsafe {
            let target = target.add(at * T::EXTENT);
            let old = flipped(T::read(target), flip);
            C::combine(old, T::read(origin.add(at * T::EXTENT))).write(target);
        }
    }
}

/// Applies an op to every element, and puts the old ones into the result.
///
/// # Safety
/// As for [`change_each`], and `result` may be written. It does not overlap the target, and the
/// origin not at all or entirely.
#[inline(always)]
pub unsafe fn exchange_each<T: Element, C: Combine<T>>(
    target: *mut u8,
    origin: *const u8,
    result: *mut u8,
    count: usize,
    flip: u64,
) {
    for at in 0..count {
        // SAFETY: an element below `count`, where the caller guarantees the buffers. The origin's
        // element is read before the result is written: they may be one buffer.
        unsafe {
            let target = target.add(at * T::EXTENT);
            let old = flipped(T::read(target), flip);
            C::combine(old, T::read(origin.add(at * T::EXTENT))).write(target);
            old.write(result.add(at * T::EXTENT));
        }
    }
}

/// A number with some bits flipped. They are none, which the compiler does not know if the caller
/// hides it. Elements of several numbers stay as they are.
#[inline(always)]
fn flipped<T: Element>(value: T, flip: u64) -> T {
    if T::NUMBERS != 1 {
        return value;
    }
    let mut bits = 0u64;
    // SAFETY: a number has at most eight bytes.
    unsafe {
        value.write((&raw mut bits).cast());
        bits ^= flip;
        T::read((&raw const bits).cast())
    }
}
