//! Kernels for memory that no other thread changes meanwhile: loops without atomics ([`change`]),
//! and copies where no op computes.

use super::element::{Element, ReduceCall};
use super::loops::BLOCK;
use super::ops::{Combine, Replace};
use super::vectors::{change, is_long};
use core::mem::MaybeUninit;
use core::ptr;

/// Bytes of a piece of a long call that goes through a copy; it stays in the nearest cache.
const PIECE: usize = 2048;

/// The target's elements and the origin's, and their number. There is no result.
type Change = unsafe fn(*mut u8, *const u8, (), usize);

/// Applies an op to every element.
///
/// # Safety
/// The caller guarantees [`ReduceCall`], and no other thread changes the target's elements.
#[inline(always)]
pub unsafe fn apply<T: Element, C: Combine<T>>(call: &ReduceCall) {
    let ReduceCall { target, origin, result, count } = *call;
    if C::MOVES && T::DENSE && count * T::EXTENT >= BLOCK {
        // SAFETY: the caller guarantees the buffers; a dense element is its bytes.
        unsafe { replace(target, origin, result, count * T::EXTENT) };
        return;
    }
    // SAFETY: the caller guarantees the buffers; `in_pieces` gets the op on elements of their type.
    unsafe {
        match result {
            None => change::<T, C, ()>(target, origin, (), count),
            Some(result) if result.cast_const() == origin && is_long::<T>(count) => {
                in_pieces(change::<T, C, ()>, T::EXTENT, target, result, count);
            }
            Some(result) => change::<T, C, *mut u8>(target, origin, result, count),
        }
    }
}

/// Changes the target by operands which the old elements then replace: piece by piece, with a copy
/// of a piece's old elements.
///
/// # Safety
/// The caller guarantees [`ReduceCall`] of elements of this extent whose origin is the result, and
/// that `change` takes them.
#[inline(never)]
unsafe fn in_pieces(
    change: Change,
    extent: usize,
    target: *mut u8,
    operands: *mut u8,
    count: usize,
) {
    let mut old = [const { MaybeUninit::<u8>::uninit() }; PIECE];
    let old = old.as_mut_ptr().cast::<u8>();
    let mut done = 0;
    while done < count {
        let some = (count - done).min(PIECE / extent);
        let (at, bytes) = (done * extent, some * extent);
        // SAFETY: elements below `count`, where the caller guarantees the buffers; the copy is ours
        // and has at least as many bytes.
        unsafe {
            let (target, operands) = (target.add(at), operands.add(at));
            ptr::copy_nonoverlapping(target, old, bytes);
            change(target, operands, (), some);
            ptr::copy_nonoverlapping(old, operands, bytes);
        }
        done += some;
    }
}

/// MPI_REPLACE of bytes.
///
/// # Safety
/// The caller guarantees [`ReduceCall`] of bytes.
#[inline(never)]
unsafe fn replace(target: *mut u8, origin: *const u8, result: Option<*mut u8>, bytes: usize) {
    // SAFETY: the caller guarantees the buffers; target and origin do not overlap.
    unsafe {
        match result {
            None => copy(target, origin, (), bytes),
            Some(result) if result.cast_const() == origin => {
                in_pieces(copy, 1, target, result, bytes);
            }
            Some(result) => change::<u8, Replace, *mut u8>(target, origin, result, bytes),
        }
    }
}

/// # Safety
/// As for [`Change`], of bytes.
unsafe fn copy(target: *mut u8, origin: *const u8, (): (), bytes: usize) {
    // SAFETY: the caller guarantees the buffers.
    unsafe { ptr::copy_nonoverlapping(origin, target, bytes) }
}

/// MPI_NO_OP: copies the target's elements to the result. The origin is not read.
///
/// # Safety
/// As for [`apply`].
pub unsafe fn fetch<T: Element>(call: &ReduceCall) {
    let ReduceCall { target, count, .. } = *call;
    let Some(result) = call.result else { return };
    if T::DENSE && count * T::EXTENT >= BLOCK {
        // SAFETY: the caller guarantees the buffers, which do not overlap.
        unsafe { ptr::copy_nonoverlapping(target.cast_const(), result, count * T::EXTENT) };
        return;
    }
    for at in (0..count).map(|i| i * T::EXTENT) {
        // SAFETY: `at` is an element below `count`, where the caller guarantees both buffers.
        unsafe { T::read(target.add(at)).write(result.add(at)) };
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
