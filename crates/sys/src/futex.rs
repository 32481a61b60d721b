//! Sleeping until a word in shared memory changes (futex(2), across processes).

use crate::sync::AtomicU32;

/// Sleeps while `word` holds `seen`, until another thread wakes it or `ns` nanoseconds have passed.
/// May return at any time: the caller checks again whether it has to wait.
pub fn wait(word: &AtomicU32, seen: u32, ns: u64) {
    let (tv_sec, tv_nsec) =
        ((ns / 1_000_000_000).cast_signed(), (ns % 1_000_000_000).cast_signed());
    let limit = libc::timespec { tv_sec, tv_nsec };
    // SAFETY: `word` is a live, aligned 32-bit word; the kernel only reads it and `limit`.
    unsafe { libc::syscall(libc::SYS_futex, word.as_ptr(), libc::FUTEX_WAIT, seen, &limit, 0, 0) };
}

/// Wakes all threads that sleep on `word`, in any process.
pub fn wake(word: &AtomicU32) {
    // SAFETY: the kernel uses the address as a key only.
    unsafe { libc::syscall(libc::SYS_futex, word.as_ptr(), libc::FUTEX_WAKE, i32::MAX, 0, 0, 0) };
}
