//! Copies between blocks of memory and contiguous bytes. Other threads and processes may read and
//! write the blocks at the same time: an aligned word of a block is one load or one store.

use crate::sync::{Ordering, fence};
use crate::word_copies::{self, both_ends, some_bytes};

/// Copies each block by a function for its length: `$element` for one element, and `$others` for a
/// length that has no function. `$ends` returns the two addresses of a block.
macro_rules! each_block {
    ($bytes:ident, $blocks:ident, $ends:expr, $element:ident, $others:expr) => {{
        macro_rules! each {
            ($copy:expr) => {
                for n in 0..$blocks {
                    let (to, from) = $ends(n);
                    $copy(to, from);
                }
            };
        }
        match $bytes {
            1 => each!($element::<u8>),
            2 => each!($element::<u16>),
            4 => each!($element::<u32>),
            8 => each!($element::<u64>),
            12 => each!(some_bytes::<12>),
            24 => each!(some_bytes::<24>),
            16..=32 => each!(|to, from| both_ends::<16>(to, from, $bytes)),
            33..=64 => each!(|to, from| both_ends::<32>(to, from, $bytes)),
            _ => each!($others),
        }
    }};
}

/// Copies blocks of `bytes` bytes to contiguous memory. `place` returns the address of each.
///
/// # Safety
/// The blocks may be read, and as many bytes written at `to`.
pub unsafe fn pack(
    to: *mut u8,
    (bytes, blocks): (usize, usize),
    place: impl Fn(usize) -> *const u8,
) {
    let ends = |n: usize| (to.wrapping_add(n * bytes), place(n));
    // SAFETY: guaranteed by the caller, for each block.
    unsafe {
        each_block!(bytes, blocks, ends, load, |to, from| word_copies::load_into(to, from, bytes));
    }
}

/// Copies contiguous memory to blocks of `bytes` bytes. `place` returns the address of each.
///
/// # Safety
/// The blocks may be written, and as many bytes read at `from`.
pub unsafe fn unpack(
    from: *const u8,
    (bytes, blocks): (usize, usize),
    place: impl Fn(usize) -> *mut u8,
) {
    let ends = |n: usize| (place(n), from.wrapping_add(n * bytes));
    // Release: a reader that sees a block sees what was stored before it.
    fence(Ordering::Release);
    // SAFETY: guaranteed by the caller, for each block.
    unsafe {
        each_block!(bytes, blocks, ends, store, |to, from| {
            word_copies::store(to, core::slice::from_raw_parts(from, bytes));
        });
    }
}

/// Copies an element from a block.
///
/// # Safety
/// It may be read at `from` and written at `to`.
#[inline(always)]
unsafe fn load<T: Copy>(to: *mut u8, from: *const u8) {
    let from = from.cast::<T>();
    // SAFETY: guaranteed by the caller; the alignment is checked.
    unsafe {
        let value = if from.is_aligned() { from.read_volatile() } else { from.read_unaligned() };
        to.cast::<T>().write_unaligned(value);
    }
}

/// Copies an element to a block.
///
/// # Safety
/// As for [`load`].
#[inline(always)]
unsafe fn store<T: Copy>(to: *mut u8, from: *const u8) {
    let to = to.cast::<T>();
    // SAFETY: guaranteed by the caller; the alignment is checked.
    unsafe {
        let value = from.cast::<T>().read_unaligned();
        if to.is_aligned() {
            to.write_volatile(value);
        } else {
            to.write_unaligned(value);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn blocks_of_any_length_arrive_and_nothing_around_them_changes() {
        for (bytes, blocks, first) in
            (1..=33).flat_map(|bytes| [(bytes, 5, 0), (bytes, 3, 3), (bytes, 1, 8)])
        {
            let stride = bytes + 3;
            let packed: Vec<u8> = (1..=bytes * blocks).map(|n| n as u8).collect();
            let mut memory = [0u64; 32];
            let base = memory.as_mut_ptr().cast::<u8>();
            let place = |n: usize| base.wrapping_add(first + n * stride);
            let mut back = vec![0; packed.len()];
            // SAFETY: all blocks are in the memory.
            unsafe {
                unpack(packed.as_ptr(), (bytes, blocks), place);
                pack(back.as_mut_ptr(), (bytes, blocks), |n| place(n).cast_const());
            }
            assert_eq!(back, packed, "{bytes} bytes");
            let mut wanted = [0; 256];
            for (n, block) in packed.chunks(bytes).enumerate() {
                wanted[first + n * stride..][..bytes].copy_from_slice(block);
            }
            let now: Vec<u8> = memory.iter().flat_map(|word| word.to_ne_bytes()).collect();
            assert_eq!(now, wanted, "{bytes} bytes");
        }
    }
}
