//! State that belongs to one thread at a time: behind a mutex where the program asked for
//! MPI_THREAD_MULTIPLE, and free of any atomic instruction where it promised not to call MPI from
//! two threads at once (MPI-4.1 §11.6.2).

use core::cell::UnsafeCell;
use parking_lot::Mutex;

/// A value that is reached through [`Serial::with`] only.
pub struct Serial<T> {
    /// taken around every access if the process runs at MPI_THREAD_MULTIPLE
    turn: Option<Mutex<()>>,
    value: UnsafeCell<T>,
}

// SAFETY: `with` hands out one exclusive reference at a time: by the mutex, or by the program's
// promise to call MPI from one thread at a time.
unsafe impl<T: Send> Sync for Serial<T> {}

impl<T> Serial<T> {
    /// Keeps `value`; `threads` tells whether several threads may call at once.
    pub fn new(threads: bool, value: T) -> Serial<T> {
        Serial { turn: threads.then(|| Mutex::new(())), value: UnsafeCell::new(value) }
    }

    /// Runs `work` on the value. `work` must not come back here, nor call out of the library.
    #[inline]
    pub fn with<R>(&self, work: impl FnOnce(&mut T) -> R) -> R {
        if let Some(turn) = &self.turn {
            return self.with_turn(turn, work);
        }
        // SAFETY: nobody else is inside, see `Sync` above, and `work` does not re-enter.
        work(unsafe { &mut *self.value.get() })
    }

    /// The same where only one thread may call; otherwise nothing is done.
    #[inline(always)]
    pub fn with_alone<R>(&self, work: impl FnOnce(&mut T) -> Option<R>) -> Option<R> {
        if self.turn.is_some() {
            return None;
        }
        // SAFETY: nobody else is inside, see `Sync` above, and `work` does not re-enter.
        work(unsafe { &mut *self.value.get() })
    }

    #[cold]
    fn with_turn<R>(&self, turn: &Mutex<()>, work: impl FnOnce(&mut T) -> R) -> R {
        let _turn = turn.lock();
        // SAFETY: nobody else is inside, by the mutex, and `work` does not re-enter.
        work(unsafe { &mut *self.value.get() })
    }
}
