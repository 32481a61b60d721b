//! Copies between memory of this process and window memory that other processes may read and write
//! at the same time, by the transport that reaches it. One element of a predefined type at its
//! natural alignment is one load or store where the memory is mapped, so that no reader sees half
//! of it.

use super::acc::AccLock;
use crate::datatype::type_map::{Offsets, Portion, Scattered, Strip};
use crate::error::Result;
use crate::fabric::Way;
use crate::fabric::location::Unmapped;
pub use crate::fabric::shm::mapped::copy;
use crate::fabric::word_copies::{both_ends, some_bytes};
use crate::number::{Number, Offset};

/// Copies `bytes` bytes between `here` and window memory that is mapped `at`.
///
/// # Safety
/// `bytes` bytes at `at` are inside of the window, and those at `here` may be read or, for a get,
/// written.
#[inline(always)]
pub unsafe fn mapped(way: Way, at: *mut u8, here: *mut u8, bytes: u64) {
    // SAFETY: the caller guarantees both sides.
    unsafe {
        match way {
            Way::Put => copy(at, here, bytes),
            Way::Get => copy(here, at, bytes),
        }
    }
}

/// Copies a portion of a transfer, as [`strip`].
///
/// # Safety
/// As for [`strip`].
#[inline(always)]
pub unsafe fn portion(way: Way, at: *mut u8, here: *mut u8, portion: Portion<'_>) {
    // SAFETY: guaranteed by the caller.
    unsafe {
        match portion {
            Portion::Strip(blocks) => strip(way, at, here, blocks),
            Portion::Scattered(blocks) => scattered(way, at, here, blocks),
        }
    }
}

/// Copies a strip between the origin and window memory that is mapped. `here` and `at` are their
/// offsets zero.
///
/// # Safety
/// As for [`mapped`], of each block.
#[inline(always)]
pub unsafe fn strip(way: Way, at: *mut u8, here: *mut u8, strip: Strip) {
    let Strip { blocks, bytes, .. } = strip;
    // SAFETY: guaranteed by the caller.
    unsafe {
        if blocks == 1 {
            let at = at.wrapping_offset(strip.there.to_isize());
            let here = here.wrapping_offset(strip.here.to_isize());
            match way {
                Way::Put => one_block(at, here, bytes),
                Way::Get => one_block(here, at, bytes),
            }
        } else {
            let there = Offsets::Every { first: strip.there, stride: strip.there_stride };
            let own = Offsets::Every { first: strip.here, stride: strip.here_stride };
            scattered(way, at, here, Scattered { here: own, there, bytes, blocks });
        }
    }
}

/// Copies one block. Irregular type maps have many short blocks, and a call of a function takes
/// longer than such a copy.
///
/// # Safety
/// `bytes` bytes at `from` may be read, and `bytes` bytes at `to` written.
#[inline(always)]
unsafe fn one_block(to: *mut u8, from: *const u8, bytes: u64) {
    let aligned = |width: usize| (to.addr() | from.addr()) & (width - 1) == 0;
    // SAFETY: the caller's promise, and elements are at multiples of their size.
    unsafe {
        match bytes {
            8 if aligned(8) => element::<u64>(to, from),
            4 if aligned(4) => element::<u32>(to, from),
            12 => some_bytes::<12>(to, from),
            16 => some_bytes::<16>(to, from),
            17..=32 => both_ends::<16>(to, from, bytes.to_usize()),
            33..=64 => both_ends::<32>(to, from, bytes.to_usize()),
            _ => copy(to, from, bytes),
        }
    }
}

/// Copies several blocks, as [`strip`].
///
/// # Safety
/// As for [`strip`].
#[inline(never)]
unsafe fn scattered(way: Way, at: *mut u8, here: *mut u8, blocks: Scattered<'_>) {
    let (there, here) = ((at, blocks.there), (here, blocks.here));
    let ((to, to_places), (from, from_places)) = match way {
        Way::Put => (there, here),
        Way::Get => (here, there),
    };
    let (length, bytes) = (blocks.blocks.to_usize(), blocks.bytes);
    let all = (length, bytes, bits(to, to_places) | bits(from, from_places));
    // SAFETY: guaranteed by the caller.
    unsafe {
        match (to_places, from_places) {
            (Offsets::Listed { places, base, .. }, Offsets::Every { first, stride }) => {
                each_place(listed(to, &places[..length], base), every(from, first, stride), all)
            }
            (Offsets::Every { first, stride }, Offsets::Listed { places, base, .. }) => {
                each_place(every(to, first, stride), listed(from, &places[..length], base), all)
            }
            (
                Offsets::Listed { places, base, .. },
                Offsets::Listed { places: others, base: other, .. },
            ) => each_place(
                listed(to, &places[..length], base),
                listed(from, &others[..length], other),
                all,
            ),
            (
                Offsets::Every { first, stride },
                Offsets::Every { first: other, stride: other_stride },
            ) => each_place(every(to, first, stride), every(from, other, other_stride), all),
        }
    }
}

/// Returns bits whose lowest is the alignment of all places.
fn bits(zero: *mut u8, places: Offsets<'_>) -> usize {
    let offsets = match places {
        Offsets::Every { first, stride } => first.cast_unsigned() | stride.cast_unsigned(),
        Offsets::Listed { base, bits, .. } => base.cast_unsigned() | bits,
    };
    zero.addr() | offsets.to_usize()
}

/// The address of each of the listed places.
#[inline(always)]
fn listed(zero: *mut u8, places: &[i64], base: i64) -> impl Fn(usize) -> *mut u8 + Copy {
    let zero = zero.wrapping_offset(base.to_isize());
    move |n| zero.wrapping_offset(places[n].to_isize())
}

/// The address of each place at equal distances.
#[inline(always)]
fn every(zero: *mut u8, first: i64, stride: i64) -> impl Fn(usize) -> *mut u8 + Copy {
    let (first, stride) = (zero.wrapping_offset(first.to_isize()), stride.to_isize());
    move |n| first.wrapping_offset(n.cast_signed().wrapping_mul(stride))
}

/// Copies blocks: their number, the bytes of each, and bits whose lowest is the alignment of all.
///
/// # Safety
/// As for [`strip`].
#[inline(always)]
unsafe fn each_place(
    to: impl Fn(usize) -> *mut u8 + Copy,
    from: impl Fn(usize) -> *mut u8 + Copy,
    (blocks, bytes, bits): (usize, u64, usize),
) {
    let aligned = |width: usize| bits & (width - 1) == 0;
    macro_rules! each {
        ($copy:expr $(, $bytes:expr)?) => {
            for n in 0..blocks {
                // SAFETY: the caller guarantees all blocks, and elements are at multiples of their
                // size.
                unsafe { $copy(to(n), from(n) $(, $bytes)?) };
            }
        };
    }
    match bytes {
        8 if aligned(8) => each!(element::<u64>),
        4 if aligned(4) => each!(element::<u32>),
        2 if aligned(2) => each!(element::<u16>),
        1 => each!(element::<u8>),
        12 => each!(some_bytes::<12>),
        16 => each!(some_bytes::<16>),
        24 => each!(some_bytes::<24>),
        32 => each!(some_bytes::<32>),
        17..=32 => each!(both_ends::<16>, bytes.to_usize()),
        33..=64 => each!(both_ends::<32>, bytes.to_usize()),
        _ => each!(copy, bytes),
    }
}

/// Copies one element by one load and one store.
///
/// # Safety
/// It may be read and written, and both addresses are aligned.
#[inline(always)]
unsafe fn element<T: Copy>(to: *mut u8, from: *const u8) {
    // SAFETY: guaranteed by the caller.
    unsafe { to.cast::<T>().write_volatile(from.cast::<T>().read_volatile()) };
}

/// The bytes that are combined at once.
pub const COPY_BYTES: usize = 16 << 10;

/// A buffer on the stack for bytes that are combined with memory of another process.
#[repr(C, align(64))]
pub struct CopyBuffer([core::mem::MaybeUninit<u8>; COPY_BYTES]);

impl CopyBuffer {
    /// Returns a buffer whose bytes are not initialised.
    pub const fn empty() -> CopyBuffer {
        CopyBuffer([const { core::mem::MaybeUninit::uninit() }; COPY_BYTES])
    }

    /// Returns the address of its first byte.
    pub fn as_mut_ptr(&mut self) -> *mut u8 {
        self.0.as_mut_ptr().cast()
    }

    /// Gets `bytes` bytes that are not mapped here, lets `work` change them, and puts them back if
    /// `work` returns true. Holds the target's lock meanwhile: takes it if `lock` does not have it
    /// yet, and releases it.
    ///
    /// # Safety
    /// The bytes are inside of the window, and others change them under the lock alone.
    pub unsafe fn change<'a>(
        whose: Unmapped<'a>,
        bytes: usize,
        mut lock: AccLock<'a>,
        work: impl FnOnce(*mut u8) -> bool,
    ) -> Result<()> {
        assert!(bytes <= COPY_BYTES);
        let mut buffer = CopyBuffer::empty();
        let here = buffer.as_mut_ptr();
        // SAFETY: the buffer is large enough; the caller guarantees the window's side.
        let once = |way| unsafe {
            let mut runs = whose.runs(way);
            runs.push(here, whose.address(), bytes.to_u64());
            runs.finish_here()
        };
        let read = lock.read(whose, || once(Way::Get));
        let done = read.and_then(|()| if work(here) { once(Way::Put) } else { Ok(()) });
        lock.release().and(done)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns bytes that differ from their neighbours.
    fn pattern(bytes: usize, first: u8) -> Vec<u8> {
        (0..bytes).map(|n| (n as u8).wrapping_mul(7).wrapping_add(first)).collect()
    }

    #[test]
    fn a_block_of_any_length_and_alignment_is_copied_and_nothing_else() {
        const LENGTH: usize = 160;
        for bytes in (0..=72).chain([80, 96, 128]) {
            for (from_at, to_at) in [(0, 0), (8, 16), (4, 12), (1, 0), (3, 5), (2, 8), (7, 15)] {
                let from = pattern(LENGTH, 1);
                let mut to = pattern(LENGTH, 100);
                let mut expected = to.clone();
                expected[to_at..to_at + bytes].copy_from_slice(&from[from_at..from_at + bytes]);
                let (at, here) =
                    (to.as_mut_ptr().wrapping_add(to_at), from.as_ptr().wrapping_add(from_at));
                // SAFETY: both have that many bytes after their offsets.
                unsafe { one_block(at, here, bytes as u64) };
                assert_eq!(to, expected, "{bytes} bytes from {from_at} to {to_at}");
            }
        }
    }
}
