//! The copy between memory of this process and window memory that it has mapped. Other processes
//! may read and write the window at the same time: one element of a predefined type at its natural
//! alignment is one load and one store, so that no process sees half of it.

use crate::number::Number;
use core::ptr;

/// Copies `bytes` bytes; the buffers may overlap.
///
/// # Safety
/// `bytes` bytes at `from` may be read, and `bytes` bytes at `to` written.
#[inline]
pub unsafe fn copy(to: *mut u8, from: *const u8, bytes: u64) {
    let aligned = |width: usize| (to.addr() | from.addr()) & (width - 1) == 0;
    match bytes {
        // SAFETY: eight bytes on either side, at multiples of eight.
        8 if aligned(8) => unsafe { to.cast::<u64>().write_volatile(*from.cast::<u64>()) },
        // SAFETY: four bytes on either side, at multiples of four.
        4 if aligned(4) => unsafe { to.cast::<u32>().write_volatile(*from.cast::<u32>()) },
        // SAFETY: the caller vouches for `bytes` bytes on either side.
        _ => unsafe { ptr::copy(from, to, bytes.to_usize()) },
    }
}
