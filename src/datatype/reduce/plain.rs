//! Kernels for memory that no other thread changes meanwhile: loops without atomics, which the
//! compiler turns into vector instructions where the type allows it.
//!
//! On x86-64 each loop is there twice: for every processor, with vectors of 16 bytes, and for those
//! with AVX2, with vectors of 32 bytes. Both compute the same bits: AVX2 has no fused
//! multiplication and addition, and the compiler does not reorder floating-point operations.

use super::element::{Element, ReduceCall};
use super::ops::Combine;

/// Calls on fewer elements than this use the loop for every processor.
#[cfg(target_arch = "x86_64")]
const MANY: usize = 32;

/// Applies an op to every element.
///
/// # Safety
/// The caller guarantees [`ReduceCall`], and no other thread changes the target's elements.
pub unsafe fn apply<T: Element, C: Combine<T>>(call: &ReduceCall) {
    #[cfg(target_arch = "x86_64")]
    if T::EXTENT <= size_of::<u64>() && call.count >= MANY && is_x86_feature_detected!("avx2") {
        // SAFETY: the caller's guarantees, and the processor has AVX2.
        return unsafe { apply_with_avx2::<T, C>(call) };
    }
    // SAFETY: the caller's guarantees.
    unsafe { each::<T, C>(call) }
}

/// # Safety
/// As for [`apply`], and the processor has AVX2.
#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2")]
unsafe fn apply_with_avx2<T: Element, C: Combine<T>>(call: &ReduceCall) {
    // SAFETY: the caller's guarantees.
    unsafe { each::<T, C>(call) }
}

/// # Safety
/// As for [`apply`].
#[inline(always)]
unsafe fn each<T: Element, C: Combine<T>>(call: &ReduceCall) {
    let ReduceCall { target, origin, result, count } = *call;
    let offsets = (0..count).map(|i| i * T::EXTENT);
    match result {
        None => {
            for at in offsets {
                // SAFETY: `at` is an element below `count`, where the caller guarantees the
                // buffers.
                unsafe {
                    let target = target.add(at);
                    C::combine(T::read(target), T::read(origin.add(at))).write(target);
                }
            }
        }
        Some(result) => {
            for at in offsets {
                // SAFETY: as above. The origin's element is read before the result is written:
                // they may be one buffer.
                unsafe {
                    let target = target.add(at);
                    let old = T::read(target);
                    C::combine(old, T::read(origin.add(at))).write(target);
                    old.write(result.add(at));
                }
            }
        }
    }
}

/// MPI_NO_OP: copies the target's elements to the result. The origin is not read.
///
/// # Safety
/// As for [`apply`].
pub unsafe fn fetch<T: Element>(call: &ReduceCall) {
    let Some(result) = call.result else { return };
    for at in (0..call.count).map(|i| i * T::EXTENT) {
        // SAFETY: `at` is an element below `count`, where the caller guarantees both buffers.
        unsafe { T::read(call.target.add(at)).write(result.add(at)) };
    }
}

/// Stores the origin's element into the target if it equals `compare`; its old value is the result.
///
/// # Safety
/// All four hold an element, and no other thread changes the target's.
pub unsafe fn compare_and_swap<T: Element + Eq>(
    target: *mut u8,
    compare: *const u8,
    origin: *const u8,
    result: *mut u8,
) {
    // SAFETY: the caller guarantees all four. Both operands are read before the result is written.
    unsafe {
        let old = T::read(target);
        if old == T::read(compare) {
            T::read(origin).write(target);
        }
        old.write(result);
    }
}
