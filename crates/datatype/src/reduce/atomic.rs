//! Kernels for elements that are words: the processor changes each element in one step, so that
//! calls from any number of processes at the same time lose no update.

use super::element::{Atom, Element, ReduceCall, Word};
use super::ops::Combine;

/// Applies an op to every element, one by one.
///
/// # Safety
/// The caller guarantees [`ReduceCall`], and [`Word`] for each element of the target.
pub unsafe fn apply<T: Atom, C: Combine<T>>(call: &ReduceCall) {
    let ReduceCall { target, origin, result, count } = *call;
    for at in (0..count).map(|i| i * T::EXTENT) {
        // SAFETY: `at` is an element below `count`, where the caller guarantees all buffers. The
        // origin's element is read before the result is written: they may be one buffer.
        unsafe {
            let value = T::read(origin.add(at));
            match result {
                Some(result) => C::fetch_and_combine(target.add(at), value).write(result.add(at)),
                None => drop(C::fetch_and_combine(target.add(at), value)),
            }
        }
    }
}

/// MPI_NO_OP: copies the target's elements to the result. The origin is not read; the user may
/// have given none.
///
/// # Safety
/// As for [`apply`].
pub unsafe fn fetch<T: Atom>(call: &ReduceCall) {
    let Some(result) = call.result else { return };
    for at in (0..call.count).map(|i| i * T::EXTENT) {
        // SAFETY: `at` is an element below `count`, where the caller guarantees both buffers; a
        // word has the extent of its element.
        unsafe {
            let word = T::Word::load(call.target.add(at));
            T::read((&raw const word).cast()).write(result.add(at));
        }
    }
}

/// Stores the origin's word into the target if it holds `compare`; its old value is the result.
///
/// # Safety
/// `compare`, `origin` and `result` hold a word; the caller guarantees [`Word`].
pub unsafe fn compare_and_swap<W: Word + Element>(
    target: *mut u8,
    compare: *const u8,
    origin: *const u8,
    result: *mut u8,
) {
    // SAFETY: the caller guarantees all four. Both operands are read before the result is written.
    unsafe {
        let (Ok(old) | Err(old)) = W::compare_exchange(target, W::read(compare), W::read(origin));
        old.write(result);
    }
}
