//! Copies between a buffer of the service thread and exposed memory, in which other threads and
//! processes may read and write at the same time. An aligned word of the exposed memory is one load
//! or one store, so no reader sees half of it (law 8).

use crate::sync::{AtomicU64, Ordering};
use core::ptr;

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
            ptr::copy_nonoverlapping(from.as_ptr(), to, head);
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
    let (head, words, tail) = split(from.addr(), bytes);
    let begin = to.len();
    to.resize(begin + bytes, 0);
    let to = to[begin..].as_mut_ptr();
    // SAFETY: each access is inside of the given bytes and of the new ones of the buffer.
    unsafe {
        ptr::copy_nonoverlapping(from, to, head);
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

/// Copies fewer than eight bytes; an aligned element of four bytes is one load and one store.
///
/// # Safety
/// `bytes` bytes at `from` may be read, and as many written at `to`.
unsafe fn copy_end(to: *mut u8, from: *const u8, bytes: usize) {
    // SAFETY: inside of the given bytes.
    unsafe {
        if bytes >= 4 {
            let value = from.cast::<u32>().read_unaligned();
            to.cast::<u32>().write_unaligned(value);
            ptr::copy_nonoverlapping(from.add(4), to.add(4), bytes - 4);
        } else {
            ptr::copy_nonoverlapping(from, to, bytes);
        }
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
