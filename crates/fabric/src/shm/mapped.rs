//! Copies between memory of this process and window memory that it has mapped. Other processes may
//! read and write the window at the same time: one element of a predefined type at its natural
//! alignment is one load and one store, so that no process sees half of it.

use super::sweep::{LONG, copy_long};
use crate::number::Number;
use core::ptr;

/// Whether one load and one store, which need no alignment here, are single instructions.
const UNALIGNED: bool = cfg!(any(target_arch = "x86_64", target_arch = "aarch64"));

/// Copies `bytes` bytes; the buffers may overlap. All but elements of four and eight bytes are
/// copied out of line, so that the caller keeps nothing in registers for them.
///
/// # Safety
/// `bytes` bytes at `from` may be read, and `bytes` bytes at `to` written.
#[inline(always)]
pub unsafe fn copy(to: *mut u8, from: *const u8, bytes: u64) {
    let single = |width: usize| UNALIGNED || (to.addr() | from.addr()) & (width - 1) == 0;
    // SAFETY: guaranteed by the caller.
    unsafe {
        match bytes {
            8 if single(8) => to.cast::<u64>().write_unaligned(from.cast::<u64>().read_unaligned()),
            4 if single(4) => to.cast::<u32>().write_unaligned(from.cast::<u32>().read_unaligned()),
            _ => copy_others(to, from, bytes),
        }
    }
}

/// # Safety
/// As for [`copy`].
#[inline(never)]
unsafe fn copy_others(to: *mut u8, from: *const u8, bytes: u64) {
    // SAFETY: guaranteed by the caller.
    unsafe {
        if bytes < LONG {
            ptr::copy(from, to, bytes.to_usize());
        } else {
            copy_long(to, from, bytes);
        }
    }
}
