//! Copies between memory of this process and window memory that other processes may read and write
//! at the same time, by the road that leads there. One element of a predefined type at its natural
//! alignment is one load or store where the memory is mapped, so that nobody sees half of it.

use crate::error::Result;
use crate::fabric::Way;
use crate::fabric::cma::Process;
use crate::window::address::Spot;
use core::ptr;

/// Copies `bytes` bytes; the buffers may overlap.
///
/// # Safety
/// So many bytes at `from` may be read and at `to` written.
#[inline]
pub unsafe fn copy(to: *mut u8, from: *const u8, bytes: u64) {
    let aligned = |width: usize| (to.addr() | from.addr()) & (width - 1) == 0;
    match bytes {
        // SAFETY: eight bytes on either side, at multiples of eight.
        8 if aligned(8) => unsafe { to.cast::<u64>().write_volatile(*from.cast::<u64>()) },
        // SAFETY: four bytes on either side, at multiples of four.
        4 if aligned(4) => unsafe { to.cast::<u32>().write_volatile(*from.cast::<u32>()) },
        // SAFETY: the caller vouches for `bytes` bytes on either side.
        _ => unsafe { ptr::copy(from, to, bytes as usize) },
    }
}

/// Copies `bytes` bytes between `here` and the window.
///
/// # Safety
/// So many bytes at `spot` are inside of the window, and those at `here` may be read or, for a get,
/// written.
#[inline]
pub unsafe fn transfer(way: Way, spot: Spot, here: *mut u8, bytes: u64) -> Result<()> {
    // SAFETY: the caller vouches for both sides.
    unsafe {
        match (spot, way) {
            (Spot::Mapped(at) | Spot::Own(at), _) => mapped(way, at, here, bytes),
            (Spot::Foreign(process, there), Way::Put) => return process.put(there, here, bytes),
            (Spot::Foreign(process, there), Way::Get) => return process.get(here, there, bytes),
        }
    }
    Ok(())
}

/// Copies `bytes` bytes between `here` and window memory that is mapped `at`.
///
/// # Safety
/// As for [`transfer`].
#[inline(always)]
pub unsafe fn mapped(way: Way, at: *mut u8, here: *mut u8, bytes: u64) {
    // SAFETY: the caller vouches for both sides.
    unsafe {
        match way {
            Way::Put => copy(at, here, bytes),
            Way::Get => copy(here, at, bytes),
        }
    }
}

/// Bytes that are combined at once.
pub const PIECE: usize = 16 << 10;

/// A buffer on the stack for what is combined with memory of another process.
#[repr(C, align(64))]
pub struct Piece([core::mem::MaybeUninit<u8>; PIECE]);

impl Piece {
    /// Gets `bytes` bytes of another process, lets `work` change them, and puts them back where
    /// `work` says so.
    ///
    /// # Safety
    /// The bytes are inside of the window, and nobody else changes them meanwhile.
    pub unsafe fn change(
        process: Process,
        there: u64,
        bytes: usize,
        work: impl FnOnce(*mut u8) -> bool,
    ) -> Result<()> {
        assert!(bytes <= PIECE);
        let mut piece = Piece([const { core::mem::MaybeUninit::uninit() }; PIECE]);
        let here = piece.0.as_mut_ptr().cast::<u8>();
        // SAFETY: the piece is large enough; the caller vouches for the window's side.
        unsafe { process.get(here, there, bytes as u64)? };
        match work(here) {
            // SAFETY: likewise.
            true => unsafe { process.put(there, here, bytes as u64) },
            false => Ok(()),
        }
    }
}
