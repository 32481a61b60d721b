//! The loops for the vectors of newer processors of x86-64. They take whole blocks only, and
//! know from references that no buffers overlap. So they need neither loops of single elements nor
//! comparisons of addresses, and are short.

use core::hint::black_box;
use core::mem::MaybeUninit;
use core::slice;

use super::element::Element;
use super::loops::{BLOCK, OldElements, each};
use super::ops::Combine;
use super::processor::{Vectors, vectors};

/// An element at any address.
#[repr(C, packed)]
struct Unaligned<T>(MaybeUninit<T>);

/// As many of the elements as whole blocks have.
#[inline(always)]
const fn in_blocks<T: Element>(count: usize) -> usize {
    count & !(BLOCK / T::EXTENT - 1)
}

/// Applies an op to whole blocks, puts the old elements into the result, if there is one, and
/// returns how many elements the blocks have.
///
/// # Safety
/// For `count` elements: `target` may be read and written, `origin` read, and `result` written.
/// They do not overlap, and no other thread changes them.
#[inline(always)]
pub unsafe fn change_wide<T: Element, C: Combine<T>, R: OldElements>(
    target: *mut u8,
    origin: *const u8,
    result: R,
    count: usize,
) -> usize {
    let count = in_blocks::<T>(count);
    // SAFETY: the caller guarantees the elements, that they do not overlap, and that no other
    // thread changes them; the processor has the vectors.
    unsafe {
        let target = slice::from_raw_parts_mut(target.cast(), count);
        let origin = slice::from_raw_parts(origin.cast(), count);
        let result = match R::FETCHES {
            true => slice::from_raw_parts_mut(result.place().cast(), count),
            false => &mut [],
        };
        match vectors() {
            Vectors::Avx512 => change_avx512::<T, C, R>(target, origin, result),
            Vectors::Avx2 => change_avx2::<T, C, R>(target, origin, result),
            Vectors::Baseline => return 0,
        }
    }
    count
}

macro_rules! versions {
    ($($features:literal $change:ident, flip: $flip:expr;)*) => {$(
        /// # Safety
        /// The elements of target and origin hold values; all are whole blocks.
        #[target_feature(enable = $features)]
        unsafe fn $change<T: Element, C: Combine<T>, R: OldElements>(
            target: &mut [Unaligned<T>],
            origin: &[Unaligned<T>],
            result: &mut [Unaligned<T>],
        ) {
            let count = in_blocks::<T>(target.len());
            let (target, origin) = (target.as_mut_ptr().cast(), origin.as_ptr().cast());
            let result = R::FETCHES.then(|| result.as_mut_ptr().cast());
            // SAFETY: elements of the slices.
            unsafe { each::<T, C>(target, origin, result, count, $flip) }
        }
    )*};
}

versions! {
    // If the compiler sees that MPI_MAX or MPI_MIN may store what was loaded from there, it stores
    // by a mask, which takes AMD's processors with AVX2 ten times as long.
    "avx2" change_avx2, flip: black_box(0);
    "avx512f,avx512bw,avx512dq,avx512vl" change_avx512, flip: 0;
}
