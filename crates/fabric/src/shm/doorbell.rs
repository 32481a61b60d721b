//! Doorbell of a rank: a 32-bit word on which its threads sleep while they wait for a control word
//! of the rank. A rank or service thread that has changed such a word rings it. The system calls
//! are in `sys::futex`. A rank has one for all its words that ranks of its node reach by load and
//! store, and one in each window over several nodes for the words of that window
//! ([`DOORBELL`](crate::layout::DOORBELL)).
//!
//! | doorbell | meaning                                                                   |
//! |----------|---------------------------------------------------------------------------|
//! | even     | no thread sleeps, or all sleeping threads are being woken                 |
//! | odd      | a thread of the rank sleeps or is about to; a notifier adds 1 and wakes all |
//!
//! The sleeper makes it odd, then reads its word once more, then sleeps while the doorbell has that
//! value. The notifier changes the word, then reads the doorbell. A full barrier is between the two
//! steps on either side, so that at least one of them sees the other. Only notifiers make it even:
//! a thread that wakes up without a notifier must not silence the doorbell under another that still
//! sleeps. It counts, and is not a flag, because a second thread may announce its sleep between the
//! notifier's step and the first one's sleep. The cost: it may stay odd after its sleeper has woken
//! up, and cause one needless wake. A notifier that is killed between its step and its wake loses
//! that wake; the bounded sleep repairs it.

use crate::sync::{AtomicU32, AtomicU64, Ordering, fence_after_rmw};

/// Announces that a thread is about to sleep. Returns the value on which it sleeps after it has
/// read its word once more.
pub fn announce(doorbell: &AtomicU32) -> u32 {
    // Relaxed: the fence orders it before the read of the word.
    let announced = doorbell.fetch_or(1, Ordering::Relaxed) | 1;
    fence_after_rmw();
    announced
}

/// Adds to a word, and wakes the threads that sleep on the doorbell. Returns what the word held
/// before.
#[inline]
pub fn add_and_ring(
    word: &AtomicU64,
    add: u64,
    doorbell: &AtomicU32,
    wake: impl FnOnce(&AtomicU32),
) -> u64 {
    // Release: pairs with the Acquire of the rank that reads the sum.
    let before = word.fetch_add(add, Ordering::Release);
    fence_after_rmw(); // the first step (the word) before the second (the doorbell)
    // Relaxed: the fence orders it.
    let value = doorbell.load(Ordering::Relaxed);
    if value % 2 == 1 {
        ring(doorbell, value, wake);
    }
    before
}

#[cold]
fn ring(doorbell: &AtomicU32, odd: u32, wake: impl FnOnce(&AtomicU32)) {
    // Relaxed: the doorbell carries no data. The second of two threads that ring leaves the wake-up
    // to the first; a thread that has announced itself since then has read its word after our
    // change of it.
    let even = odd.wrapping_add(1);
    let rung = doorbell.compare_exchange(odd, even, Ordering::Relaxed, Ordering::Relaxed);
    if rung.is_ok() {
        wake(doorbell);
    }
}

/// Returns the doorbell in a control word of 64 bits, which has no other use.
#[cfg(not(loom))]
pub fn in_word(word: &AtomicU64) -> &AtomicU32 {
    // SAFETY: the first half of a live, aligned word. All threads and processes access it as this
    // half, but for its owner, which zeroes the word between two windows.
    unsafe { AtomicU32::from_ptr(word.as_ptr().cast()) }
}
