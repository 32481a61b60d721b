//! Copies between a buffer of this process and exposed memory, in which other threads and processes
//! may read and write at the same time. An aligned word of the exposed memory is one load
//! or one store, so no reader sees half of it (law 8).

use crate::sync::{AtomicU64, Ordering};

const WORD: usize = size_of::<u64>();

/// Splits `bytes` bytes at an address into those before the first whole aligned word, the whole
/// words, and the bytes behind them.
fn split(at: usize, bytes: usize) -> (usize, usize, usize) {
    let head = (at.wrapping_neg() & (WORD - 1)).min(bytes);
    let words = (bytes - head) / WORD;
    (head, words, bytes - head - words * WORD)
}

/// Copies bytes into exposed memory. Mostly they are whole words, and a call of the C library for
/// no bytes takes longer than a word.
///
/// # Safety
/// `from.len()` bytes at `to` may be written.
#[inline]
pub unsafe fn store(to: *mut u8, from: &[u8]) {
    let (head, words, tail) = split(to.addr(), from.len());
    // SAFETY: each access is inside of the given bytes.
    unsafe {
        if head > 0 {
            copy_head(to, from.as_ptr(), head);
        }
        let mut at = head;
        while at < head + words * WORD {
            let value = from.as_ptr().add(at).cast::<u64>().read_unaligned();
            // Release: a reader that sees this word sees what was stored before it.
            (*to.add(at).cast::<AtomicU64>()).store(value, Ordering::Release);
            at += WORD;
        }
        if tail > 0 {
            copy_end(to.add(at), from.as_ptr().add(at), tail);
        }
    }
}

/// Appends bytes of exposed memory to a buffer.
///
/// # Safety
/// `bytes` bytes at `from` may be read.
pub unsafe fn load(to: &mut Vec<u8>, from: *const u8, bytes: usize) {
    let begin = to.len();
    to.resize(begin + bytes, 0);
    // SAFETY: the caller's promise, and the new bytes of the buffer.
    unsafe { load_into(to[begin..].as_mut_ptr(), from, bytes) };
}

/// Copies bytes out of exposed memory.
///
/// # Safety
/// `bytes` bytes at `from` may be read, and as many written at `to`.
#[inline]
pub unsafe fn load_into(to: *mut u8, from: *const u8, bytes: usize) {
    let (head, words, tail) = split(from.addr(), bytes);
    // SAFETY: each access is inside of the given bytes.
    unsafe {
        copy_head(to, from, head);
        for index in 0..words {
            let at = head + index * WORD;
            // Acquire: pairs with the stores of data ahead of this word.
            let value = (*from.add(at).cast::<AtomicU64>()).load(Ordering::Acquire);
            to.add(at).cast::<u64>().write_unaligned(value);
        }
        let at = head + words * WORD;
        copy_end(to.add(at), from.add(at), tail);
    }
}

/// Copies fewer than eight bytes ahead of a whole word; an aligned element of two or four bytes is
/// one load and one store.
///
/// # Safety
/// `bytes` bytes at `from` may be read, and as many written at `to`.
#[inline(always)]
unsafe fn copy_head(to: *mut u8, from: *const u8, bytes: usize) {
    // SAFETY: guaranteed by the caller.
    unsafe {
        copy_part::<u8>(to, from, bytes, bytes & 1);
        copy_part::<u16>(to, from, bytes, bytes & 3);
        copy_part::<u32>(to, from, bytes, bytes);
    }
}

/// Copies fewer than eight bytes behind a whole word; elements as in [`copy_head`].
///
/// # Safety
/// As for [`copy_head`].
#[inline(always)]
unsafe fn copy_end(to: *mut u8, from: *const u8, bytes: usize) {
    // SAFETY: guaranteed by the caller.
    unsafe {
        copy_part::<u32>(to, from, bytes, 4);
        copy_part::<u16>(to, from, bytes, (bytes & 4) + 2);
        copy_part::<u8>(to, from, bytes, bytes);
    }
}

/// Copies the element that ends at `end`, if `bytes` has the bit of its size.
///
/// # Safety
/// As for [`copy_head`].
#[inline(always)]
unsafe fn copy_part<T: Copy>(to: *mut u8, from: *const u8, bytes: usize, end: usize) {
    if bytes & size_of::<T>() != 0 {
        let at = end - size_of::<T>();
        // SAFETY: inside of the given bytes.
        unsafe {
            let value = from.add(at).cast::<T>().read_unaligned();
            to.add(at).cast::<T>().write_unaligned(value);
        }
    }
}

/// Copies `BYTES` bytes through registers.
///
/// # Safety
/// They may be read and written.
#[inline(always)]
pub unsafe fn some_bytes<const BYTES: usize>(to: *mut u8, from: *const u8) {
    let (to, from) = (to.cast::<[u8; BYTES]>(), from.cast::<[u8; BYTES]>());
    // SAFETY: the caller's promise; bytes have no alignment.
    unsafe { to.write(from.read()) };
}

/// Copies `bytes` bytes through registers: the first `BYTES` and the last `BYTES`, which may
/// overlap.
///
/// # Safety
/// They may be read and written, and are `BYTES` at least and twice as many at most.
#[inline(always)]
pub unsafe fn both_ends<const BYTES: usize>(to: *mut u8, from: *const u8, bytes: usize) {
    let last = bytes - BYTES;
    let last_from = from.wrapping_add(last).cast::<[u8; BYTES]>();
    let last_to = to.wrapping_add(last).cast::<[u8; BYTES]>();
    let (from, to) = (from.cast::<[u8; BYTES]>(), to.cast::<[u8; BYTES]>());
    // SAFETY: the caller's promise; bytes have no alignment.
    unsafe {
        let (first, last) = (from.read(), last_from.read());
        to.write(first);
        last_to.write(last);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_bytes_arrive_and_none_around_them() {
        let from: Vec<u8> = (1..=64).collect();
        for (at, bytes) in (0..9).flat_map(|at| (0..40).map(move |bytes| (at, bytes))) {
            let mut words = [0u64; 8];
            let to = words.as_mut_ptr().cast::<u8>();
            // SAFETY: inside of the eight words.
            unsafe { store(to.add(at), &from[..bytes]) };
            let mut back = vec![7];
            // SAFETY: the eight words.
            unsafe { load(&mut back, to.add(at), bytes) };
            assert_eq!(back[1..], from[..bytes]);
            // SAFETY: the words as bytes.
            let all = unsafe { core::slice::from_raw_parts(to, 64) };
            assert!(all[..at].iter().chain(&all[at + bytes..]).all(|byte| *byte == 0));
        }
    }
}
