//! The loop over elements that no other thread changes meanwhile. It becomes a part of each
//! function that calls it, and the compiler makes vector instructions of it for that function's
//! features.

use super::element::Element;
use super::ops::Combine;

/// Bytes of the target in a block. The wide loops process whole blocks.
pub const BLOCK: usize = 128;

/// Where a call puts the old elements: at a place, or nowhere.
pub trait OldElements: Copy {
    /// Whether they are wanted.
    const FETCHES: bool;

    /// Returns the place.
    fn place(self) -> *mut u8;
}

impl OldElements for *mut u8 {
    const FETCHES: bool = true;

    fn place(self) -> *mut u8 {
        self
    }
}

impl OldElements for () {
    const FETCHES: bool = false;

    fn place(self) -> *mut u8 {
        core::ptr::null_mut()
    }
}

/// Applies an op to every element, and puts the old ones into the result if there is one. The
/// caller's `result` is a constant variant, so that the loop has no branch.
///
/// # Safety
/// For `count` elements: `target` may be read and written, `origin` read, and `result` written.
/// Neither of these two overlaps the target, and they overlap each other not at all or entirely. No
/// other thread changes any of them. `flip` is 0.
#[inline(always)]
pub unsafe fn each<T: Element, C: Combine<T>>(
    target: *mut u8,
    origin: *const u8,
    result: Option<*mut u8>,
    count: usize,
    flip: u64,
) {
    for at in (0..count).map(|index| index * T::EXTENT) {
        // SAFETY: an element below `count`, where the caller guarantees the buffers. The origin's
        // element is read before the result is written: they may be one buffer.
        unsafe {
            let target = target.add(at);
            let old = flipped(T::read(target), flip);
            C::combine(old, T::read(origin.add(at))).write(target);
            if let Some(result) = result {
                old.write(result.add(at));
            }
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
