//! The lock that a step of a move holds while the program's own pages and those of the segment are
//! exchanged. A thread that discards such pages by madvise(2) also takes it, perhaps inside of an
//! allocator and with the allocator's locks held. So the holder allocates nothing, runs no signal
//! handler, and calls no function that another library intercepts.
//!
//! States of the word, which is 0 in a new process:
//!
//! | word            | meaning                                         | who changes it         |
//! |-----------------|-------------------------------------------------|------------------------|
//! | 0               | free                                            | a thread that takes it |
//! | id of a process | a thread of that process holds it               | the holder; one that   |
//! |                 |                                                 | begins to wait         |
//! | that and WAITED | a thread holds it, and threads may sleep for it | the holder             |
//!
//! A child of fork(2) has no thread of its parent but one. So an id of another process is that of a
//! holder that does not exist here, and the word counts as free.

use crate::signals::{Blocked, FAULTS};
use crate::sync::{AtomicU32, Ordering};
use crate::{futex, process};

/// Threads may sleep for the lock.
const WAITED: u32 = 1 << 31;
/// The longest sleep in nanoseconds, after which a thread checks again.
const LOOK_AGAIN: u64 = 100_000_000;

static WORD: AtomicU32 = AtomicU32::new(0);

/// This thread holds the lock, and no signal handler runs in it, until this is dropped.
pub struct StepLock {
    _blocked: Blocked,
}

impl StepLock {
    /// Waits for the lock. Not to be called by a thread that holds it.
    pub fn take() -> StepLock {
        let blocked = Blocked::all_but(&FAULTS);
        let own = process::id().cast_unsigned();
        // Once it has slept, other threads may sleep as well, and it cannot know of them.
        let mut wanted = own;
        loop {
            let seen = WORD.load(Ordering::Relaxed);
            let is_free = seen & !WAITED != own;
            let next = if is_free { wanted } else { seen | WAITED };
            // Acquire pairs with the Release of `drop`: what the holder before has changed.
            let changed =
                WORD.compare_exchange(seen, next, Ordering::Acquire, Ordering::Relaxed).is_ok();
            if changed && is_free {
                return StepLock { _blocked: blocked };
            }
            if changed {
                futex::wait(&WORD, next, LOOK_AGAIN);
                wanted = own | WAITED;
            }
        }
    }
}

impl Drop for StepLock {
    fn drop(&mut self) {
        // Release pairs with the Acquire of `take`.
        if WORD.swap(0, Ordering::Release) & WAITED != 0 {
            futex::wake(&WORD);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sync::AtomicU64;

    #[test]
    fn one_thread_at_a_time_holds_it() {
        let counter = &AtomicU64::new(0);
        std::thread::scope(|scope| {
            for _ in 0..3 {
                scope.spawn(|| {
                    for turn in 0..20_000 {
                        let _lock = StepLock::take();
                        let seen = counter.load(Ordering::Relaxed);
                        if turn % 1000 == 0 {
                            std::thread::yield_now();
                        }
                        counter.store(seen + 1, Ordering::Relaxed);
                    }
                });
            }
        });
        assert_eq!(counter.load(Ordering::Relaxed), 60_000);
    }
}
