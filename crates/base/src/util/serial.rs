//! State that belongs to one thread at a time: in a mutex where the program asked for
//! MPI_THREAD_MULTIPLE, and free of any atomic instruction where it promised not to call MPI from
//! two threads at once (MPI-4.1 §11.6.2).
//!
//! | `threads` | meaning                                                       | next   |
//! |-----------|---------------------------------------------------------------|--------|
//! | false     | one thread at a time uses the value, and takes no mutex       | true   |
//! | true      | several threads may use it at once, and each takes the mutex  | false  |
//!
//! A session can raise the thread level while values exist (MPI-4.1 §11.3.1). One thread may raise
//! it while another thread uses a value. Until then only that other thread may use the object that
//! contains the value, because the object was made at the lower level. A third thread that uses the
//! object later has synchronised with the thread that raised the level, and so reads `true`; the
//! other thread reads `true` from then on, too.
//!
//! A thread that is in a call of MPI may lower the level again once it is known that no session has
//! raised it: then no other thread is in a call.

use crate::sync::{AtomicBool, Ordering};
use core::cell::UnsafeCell;
use parking_lot::Mutex;

/// A value that is reached through [`Serial::with`] only.
pub struct Serial<T> {
    /// whether several threads may use the value at once
    threads: AtomicBool,
    /// taken around every access if so
    turn: Mutex<()>,
    value: UnsafeCell<T>,
}

// SAFETY: only one exclusive reference from `with` exists at a time: by the mutex, or by the
// program's promise to call MPI from one thread at a time.
unsafe impl<T: Send> Sync for Serial<T> {}

impl<T> Serial<T> {
    /// Keeps `value`; `threads` tells whether several threads may call at once.
    pub fn new(threads: bool, value: T) -> Serial<T> {
        let (threads, turn) = (AtomicBool::new(threads), Mutex::new(()));
        Serial { threads, turn, value: UnsafeCell::new(value) }
    }

    /// Allows several threads to call at once from now on.
    pub fn several_threads(&self) {
        // Relaxed: a thread that has to see it has met this one (see the head of this file).
        self.threads.store(true, Ordering::Relaxed);
    }

    /// Allows one thread at a time again.
    pub fn one_thread(&self) {
        // Relaxed: a thread that calls next has synchronised with this one.
        self.threads.store(false, Ordering::Relaxed);
    }

    /// Whether several threads may call at once.
    #[inline(always)]
    pub fn has_threads(&self) -> bool {
        // Relaxed: see `several_threads`.
        self.threads.load(Ordering::Relaxed)
    }

    /// Runs `work` on the value. `work` must not call this function again, nor any code outside of
    /// the library.
    #[inline]
    pub fn with<R>(&self, work: impl FnOnce(&mut T) -> R) -> R {
        if self.has_threads() {
            return self.with_turn(work);
        }
        // SAFETY: no other thread is inside, see `Sync` above, and `work` does not re-enter.
        work(unsafe { &mut *self.value.get() })
    }

    /// Does `work` where only one thread may call, and nothing otherwise.
    #[inline(always)]
    pub fn with_alone<R>(&self, work: impl FnOnce(&mut T) -> Option<R>) -> Option<R> {
        if self.has_threads() {
            return None;
        }
        // SAFETY: no other thread is inside, see `Sync` above, and `work` does not re-enter.
        work(unsafe { &mut *self.value.get() })
    }

    #[cold]
    fn with_turn<R>(&self, work: impl FnOnce(&mut T) -> R) -> R {
        let _turn = self.turn.lock();
        // SAFETY: no other thread is inside, by the mutex, and `work` does not re-enter.
        work(unsafe { &mut *self.value.get() })
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    #[test]
    fn a_value_that_one_thread_had_is_for_several_when_told() {
        let serial = Serial::new(false, 0_u64);
        assert_eq!(serial.with_alone(|value| Some(*value)), Some(0));
        serial.several_threads();
        assert_eq!(serial.with_alone(|value| Some(*value)), None);
        serial.one_thread();
        assert_eq!(serial.with_alone(|value| Some(*value)), Some(0));
        serial.several_threads();
        const TURNS: u64 = if cfg!(miri) { 50 } else { 10_000 };
        let add = || (0..TURNS).for_each(|_| serial.with(|value| *value += 1));
        std::thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(add);
            }
        });
        assert_eq!(serial.with(|value| *value), 4 * TURNS);
    }
}
