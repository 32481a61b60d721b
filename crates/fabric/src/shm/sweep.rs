//! Long copies that sweep through more memory than a cache holds, such as a window that is filled
//! block by block. Their bytes leave the cache before the same memory is copied to again. A store
//! into the cache first reads its line from the memory; a store around the cache does not, so the
//! copies of such a sweep go around it. All others go through the cache, where the next reader
//! finds their bytes. Not for short copies, which `mapped` makes.

use crate::number::Number;
use crate::sync::{AtomicUsize, Ordering};
#[cfg(all(target_arch = "x86_64", not(miri)))]
use core::arch::x86_64::{__m128i, _mm_loadu_si128, _mm_sfence, _mm_stream_si128};
use core::ptr;

/// The bytes of a copy that may be a part of a sweep.
pub const LONG: u64 = 256 << 10;

/// Copies that follow each other: each begins where the one before has ended. The values are
/// guesses, and threads that copy at once disturb them; so all accesses are Relaxed.
struct Sweep {
    /// the address at which it has begun
    first: AtomicUsize,
    /// the end of the last copy
    next: AtomicUsize,
    /// the bytes of the last sweep, if that has begun at the same address
    before: AtomicUsize,
}

impl Sweep {
    const fn new() -> Sweep {
        let (first, next) = (AtomicUsize::new(0), AtomicUsize::new(0));
        Sweep { first, next, before: AtomicUsize::new(0) }
    }

    /// Records a copy to `to`. Returns whether the sweep that it is a part of has more bytes than
    /// these, or the last one from the same address has had.
    fn exceeds(&self, short: usize, to: usize, bytes: usize) -> bool {
        let (mut first, next) =
            (self.first.load(Ordering::Relaxed), self.next.load(Ordering::Relaxed));
        if to != next {
            let same = to == first;
            let before = if same { next.wrapping_sub(first) } else { 0 };
            self.before.store(before, Ordering::Relaxed);
            self.first.store(to, Ordering::Relaxed);
            first = to;
        }
        let end = to.wrapping_add(bytes);
        self.next.store(end, Ordering::Relaxed);
        end.wrapping_sub(first).max(self.before.load(Ordering::Relaxed)) > short
    }
}

/// The sweep of this process.
static SWEEP: Sweep = Sweep::new();

/// The bytes of a short sweep: they may stay in the cache.
const SHORT: usize = 16 << 20;

/// Copies `bytes` bytes, at least [`LONG`]; the buffers may overlap.
///
/// # Safety
/// `bytes` bytes at `from` may be read, and `bytes` bytes at `to` written.
#[cold]
#[inline(never)]
pub unsafe fn copy_long(to: *mut u8, from: *const u8, bytes: u64) {
    let bytes = bytes.to_usize();
    let apart = to.addr().abs_diff(from.addr()) >= bytes;
    // SAFETY: the caller's promise, of buffers that do not overlap if they are apart.
    unsafe {
        match SWEEP.exceeds(SHORT, to.addr(), bytes) && apart {
            true => around_cache(to, from, bytes),
            false => ptr::copy(from, to, bytes),
        }
    }
}

/// Copies by stores that go around the cache, where the processor has them.
///
/// # Safety
/// As for [`copy_long`], of buffers that do not overlap.
unsafe fn around_cache(to: *mut u8, from: *const u8, bytes: usize) {
    // SAFETY: guaranteed by the caller.
    #[cfg(any(not(target_arch = "x86_64"), miri))]
    unsafe {
        ptr::copy_nonoverlapping(from, to, bytes);
    }
    #[cfg(all(target_arch = "x86_64", not(miri)))]
    {
        const LINE: usize = 64;
        let head = to.align_offset(LINE).min(bytes);
        let body = (bytes - head) / LINE * LINE;
        // SAFETY: the three parts are all of the caller's bytes, and the body begins and ends at
        // lines of the target. The stores are at multiples of sixteen.
        unsafe {
            ptr::copy_nonoverlapping(from, to, head);
            for at in (head..head + body).step_by(LINE) {
                let (from, to) = (from.add(at).cast::<__m128i>(), to.add(at).cast::<__m128i>());
                let line: [__m128i; 4] = core::array::from_fn(|n| _mm_loadu_si128(from.add(n)));
                for (n, part) in line.into_iter().enumerate() {
                    _mm_stream_si128(to.add(n), part);
                }
            }
            // Such stores are ordered by nothing else: not by the release of a lock after them.
            _mm_sfence();
            let done = head + body;
            ptr::copy_nonoverlapping(from.add(done), to.add(done), bytes - done);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const BLOCK: usize = 1 << 20;

    #[test]
    fn copies_that_follow_each_other_exceed_the_cache_together() {
        let sweep = Sweep::new();
        let copies = |first: usize, count: usize| -> Vec<bool> {
            let places = (0..count).map(|n| first + n * BLOCK);
            places.map(|to| sweep.exceeds(4 * BLOCK, to, BLOCK)).collect()
        };
        let once = [false, false, false, false, true, true];
        assert_eq!(copies(1 << 30, 6), once);
        assert_eq!(copies(1 << 30, 6), [true; 6], "the next sweep is as long");
        assert_eq!(copies(1 << 31, 6), once, "another place");
        assert_eq!(copies(1 << 31, 2), [true; 2]);
        assert_eq!(copies(1 << 31, 2), [false; 2], "the last one was short");
        assert!((0..9).all(|_| !sweep.exceeds(4 * BLOCK, 1 << 30, BLOCK)), "the same place");
    }

    #[test]
    fn all_bytes_are_copied_around_the_cache_and_no_other() {
        let from: Vec<u8> = (0..5000_u32).map(|n| (n * 7 % 251) as u8).collect();
        for (at, offset, bytes) in
            [(0, 0, 4096), (1, 3, 4000), (63, 64, 1), (5, 0, 0), (17, 9, 200)]
        {
            let mut to = vec![0xee_u8; 5000];
            // SAFETY: bytes of the two vectors.
            unsafe { around_cache(to.as_mut_ptr().add(at), from.as_ptr().add(offset), bytes) };
            assert_eq!(to[at..at + bytes], from[offset..offset + bytes]);
            assert!(to[..at].iter().chain(&to[at + bytes..]).all(|byte| *byte == 0xee));
        }
    }
}
