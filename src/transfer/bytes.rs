//! Copies between memory of this process and window memory that other processes may read and write
//! at the same time, by the road that leads there. One element of a predefined type at its natural
//! alignment is one load or store where the memory is mapped, so that nobody sees half of it.

use crate::datatype::layout::Strip;
use crate::error::Result;
use crate::fabric::Way;
use crate::fabric::cma::Process;
use crate::window::address::Spot;
use core::hint::black_box;
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

/// Copies a strip between the origin, of which `here` is offset zero, and window memory that is
/// mapped, of which `at` is.
///
/// # Safety
/// As for [`transfer`], of each block.
pub unsafe fn strip(way: Way, at: *mut u8, here: *mut u8, strip: Strip) {
    let here = Blocks::of(here, strip.here, strip.here_stride);
    let there = Blocks::of(at, strip.there, strip.there_stride);
    let (to, from) = match way {
        Way::Put => (there, here),
        Way::Get => (here, there),
    };
    let aligned = |width: usize| (to.bits() | from.bits()) & (width - 1) == 0;
    // SAFETY: the caller vouches for all blocks, and elements are at multiples of their size.
    unsafe {
        match strip.bytes {
            8 if aligned(8) => elements::<u64>(to, from, strip.blocks),
            4 if aligned(4) => elements::<u32>(to, from, strip.blocks),
            2 if aligned(2) => elements::<u16>(to, from, strip.blocks),
            1 => elements::<u8>(to, from, strip.blocks),
            bytes => {
                for n in 0..strip.blocks {
                    copy(to.block(n), from.block(n), bytes);
                }
            }
        }
    }
}

/// Blocks at equal distances.
#[derive(Clone, Copy)]
struct Blocks {
    first: *mut u8,
    stride: isize,
}

impl Blocks {
    fn of(zero: *mut u8, offset: i64, stride: i64) -> Blocks {
        Blocks { first: zero.wrapping_offset(offset as isize), stride: stride as isize }
    }

    /// What the addresses of all blocks are multiples of, as their lowest bit.
    fn bits(self) -> usize {
        self.first.addr() | self.stride.cast_unsigned()
    }

    fn block(self, n: u64) -> *mut u8 {
        self.first.wrapping_offset((n as isize).wrapping_mul(self.stride))
    }
}

/// Copies blocks of one element: one load and one store each. On paper 2.75 instructions a block,
/// and the addresses of four blocks do not wait for each other; without `black_box` the compiler
/// makes one chain of additions of them, which is as slow as a block per cycle.
///
/// # Safety
/// All blocks may be read at `from` and written at `to`, and are aligned.
#[inline(always)]
unsafe fn elements<T: Copy>(to: Blocks, from: Blocks, blocks: u64) {
    const AT_ONCE: usize = 4;
    let steps = |blocks: Blocks| [0, 1, 2, 3, 4].map(|n| black_box(n * blocks.stride));
    let (to_steps, from_steps) = (steps(to), steps(from));
    let (mut to, mut from) = (to.first, from.first);
    let mut some = |blocks: usize| {
        for n in 0..blocks {
            let (to, from) = (to.wrapping_offset(to_steps[n]), from.wrapping_offset(from_steps[n]));
            // SAFETY: the caller's promise.
            unsafe { to.cast::<T>().write_volatile(from.cast::<T>().read_volatile()) };
        }
        to = to.wrapping_offset(to_steps[blocks]);
        from = from.wrapping_offset(from_steps[blocks]);
    };
    for _ in 0..blocks / AT_ONCE as u64 {
        some(AT_ONCE);
    }
    some(blocks as usize % AT_ONCE);
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
