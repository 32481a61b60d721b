//! State machine of the small puts to one process: when they wait, are sent and are completed; and
//! the count of the processes that a completing call has to check. `cma/small_puts.rs` keeps and
//! sends the puts themselves. Invariant: while puts wait for a process, or an error is kept, the
//! process is counted.
//!
//! A process is *due* while the next call that completes operations there has something to do. The
//! fast path does not serve a window with processes that are due, because it does not check for
//! puts.
//!
//! | from    | to      | by                                                  |
//! |---------|---------|-----------------------------------------------------|
//! | not due | due     | a put                                               |
//! | due     | not due | a completing call that leaves neither put nor error |
//!
//! Both happen under the mutex, in a turn of the count. So a thread that holds the mutex and finds
//! the process due knows that it stays so, and every change is counted in the same turn. A call
//! that sends the puts but completes nothing leaves the process due. No thread takes a process out
//! of the count before its puts are sent.

use crate::sync::{AtomicBool, Mutex, Ordering};

/// A count of the processes that are due.
pub trait PendingCount {
    /// Calls `change` in a turn of its own, and adds its answer to the count. No thread is in a
    /// `change` of the same count meanwhile, and `change` sees what earlier ones did. Before this
    /// returns, and before another `change`, all that depends on whether the count is 0 is done.
    fn change(&self, change: impl FnOnce() -> i32);
}

/// The state of one process, and `T`: the puts that wait for it.
pub struct PendingPuts<T> {
    is_due: AtomicBool,
    kept: Mutex<T>,
}

/// What is left of a process.
pub enum Left {
    /// nothing: all puts have arrived, and no error is kept
    Nothing,
    /// puts that wait, or an error
    Something,
}

impl<T: Default> Default for PendingPuts<T> {
    fn default() -> PendingPuts<T> {
        PendingPuts { is_due: AtomicBool::new(false), kept: Mutex::new(T::default()) }
    }
}

impl<T> PendingPuts<T> {
    /// Whether puts may wait, or an error is kept.
    #[inline]
    pub fn is_due(&self) -> bool {
        // Acquire: pairs with the Release of the thread that has completed what waited.
        self.is_due.load(Ordering::Acquire)
    }

    /// Keeps a put by `push`.
    #[inline]
    pub fn gather(&self, count: &impl PendingCount, push: impl FnOnce(&mut T)) {
        let mut kept = self.kept.lock();
        push(&mut kept);
        // Relaxed: it does not change without the mutex.
        if !self.is_due.load(Ordering::Relaxed) {
            count.change(|| {
                // Relaxed: the turn orders it; a thread that finds it takes the mutex.
                self.is_due.store(true, Ordering::Relaxed);
                1
            });
        }
    }

    /// Sends the waiting puts by `work`. Returns whether an error is kept.
    #[inline]
    pub fn send(&self, work: impl FnOnce(&mut T) -> Left) -> bool {
        self.is_due() && matches!(work(&mut self.kept.lock()), Left::Something)
    }

    /// Completes the puts so far: as [`PendingPuts::send`].
    #[inline]
    pub fn complete(&self, count: &impl PendingCount, work: impl FnOnce(&mut T) -> Left) -> bool {
        let is_left = |kept: &mut T| match work(kept) {
            Left::Nothing => (false, Left::Nothing),
            Left::Something => (true, Left::Something),
        };
        self.is_due() && self.take(count, is_left)
    }

    /// Takes something out of what is kept. Returns it; `work` also says what is left then.
    #[inline(never)]
    pub fn take<R>(&self, count: &impl PendingCount, work: impl FnOnce(&mut T) -> (R, Left)) -> R {
        let mut kept = self.kept.lock();
        let (taken, left) = work(&mut kept);
        // Relaxed: as in `gather`. Another thread may have completed all.
        if matches!(left, Left::Nothing) && self.is_due.load(Ordering::Relaxed) {
            count.change(|| {
                // Release: pairs with the Acquire of a thread that need not complete.
                self.is_due.store(false, Ordering::Release);
                -1
            });
        }
        taken
    }
}

/// The protocol under loom: every order of the threads, within a bound of preemptions, and every
/// stale value that the orderings allow; without loom the same tests on threads of the machine.
#[cfg(test)]
mod tests {
    use super::*;
    use fompi_testkit::model;
    #[cfg(loom)]
    use loom::thread;
    use std::sync::Arc;
    #[cfg(not(loom))]
    use std::thread;

    /// The count of a window, and its entry for the fast path.
    struct Table {
        due: Mutex<i32>,
        is_quick: AtomicBool,
    }

    impl PendingCount for Table {
        fn change(&self, change: impl FnOnce() -> i32) {
            let mut due = self.due.lock();
            let before = *due;
            *due += change();
            assert!(*due >= 0);
            match (before, *due) {
                (0, 1) => self.is_quick.store(false, Ordering::Relaxed),
                (1, 0) => self.is_quick.store(true, Ordering::Release),
                _ => {}
            }
        }
    }

    /// A window: puts to two targets, by their numbers.
    struct Window {
        table: Table,
        targets: [PendingPuts<Vec<usize>>; 2],
        /// which puts have arrived
        arrived: [AtomicBool; 4],
    }

    impl Window {
        fn new() -> Arc<Window> {
            Arc::new(Window {
                table: Table { due: Mutex::new(0), is_quick: AtomicBool::new(true) },
                targets: Default::default(),
                arrived: std::array::from_fn(|_| AtomicBool::new(false)),
            })
        }

        fn arrive(&self, put: usize) {
            self.arrived[put].store(true, Ordering::Relaxed);
        }

        fn put(&self, target: usize, put: usize) {
            self.targets[target].gather(&self.table, |waiting| waiting.push(put));
        }

        fn send(&self, waiting: &mut Vec<usize>) -> Left {
            waiting.drain(..).for_each(|put| self.arrive(put));
            Left::Nothing
        }

        /// As MPI_Win_flush: on the fast path if there is an entry.
        fn flush(&self, target: usize) {
            if !self.table.is_quick.load(Ordering::Acquire) {
                let error = self.targets[target].complete(&self.table, |puts| self.send(puts));
                assert!(!error);
            }
        }

        fn has_arrived(&self, put: usize) -> bool {
            self.arrived[put].load(Ordering::Relaxed)
        }

        /// All puts of this thread to one target, with a flush after each put.
        fn work(&self, target: usize, puts: &[usize]) {
            for put in puts {
                self.put(target, *put);
                self.flush(target);
                assert!(self.has_arrived(*put), "put {put} waits after a flush");
            }
        }

        /// When all threads have completed their puts, the fast path serves the window.
        fn end(&self) {
            assert!(self.table.is_quick.load(Ordering::Acquire), "no fast path after the puts");
            assert_eq!(*self.table.due.lock(), 0);
        }
    }

    #[test]
    fn loom_a_flush_completes_a_put_while_another_thread_completes_its_own() {
        model(4, || {
            let window = Window::new();
            let other = {
                let window = window.clone();
                thread::spawn(move || window.work(0, &[1]))
            };
            window.work(0, &[0]);
            other.join().unwrap();
            window.end();
        });
    }

    #[test]
    fn loom_puts_of_two_epochs_arrive_while_another_thread_has_one() {
        model(3, || {
            let window = Window::new();
            let other = {
                let window = window.clone();
                thread::spawn(move || window.work(0, &[2]))
            };
            window.work(0, &[0, 1]);
            other.join().unwrap();
            window.end();
        });
    }

    #[test]
    fn loom_a_window_is_not_quick_while_another_target_is_due() {
        model(4, || {
            let window = Window::new();
            let other = {
                let window = window.clone();
                thread::spawn(move || window.work(1, &[1]))
            };
            window.work(0, &[0]);
            other.join().unwrap();
            window.end();
        });
    }

    #[test]
    fn loom_a_flush_completes_the_puts_of_a_thread_that_it_has_met() {
        model(3, || {
            let window = Window::new();
            let met = Arc::new(AtomicBool::new(false));
            let other = {
                let (window, met) = (window.clone(), met.clone());
                thread::spawn(move || {
                    window.put(0, 0);
                    window.put(0, 1);
                    met.store(true, Ordering::Release);
                    window.flush(0);
                })
            };
            window.put(0, 2);
            if !window.table.is_quick.load(Ordering::Acquire) {
                window.targets[0].send(|puts| window.send(puts));
            }
            let has_met = met.load(Ordering::Acquire);
            window.flush(0);
            assert!(window.has_arrived(2));
            assert!(!has_met || window.has_arrived(0) && window.has_arrived(1));
            other.join().unwrap();
            window.end();
        });
    }

    #[test]
    fn loom_an_error_that_is_kept_is_due_until_it_is_taken() {
        model(0, || an_error_is_kept(&Window::new()));
    }

    fn an_error_is_kept(window: &Window) {
        let (due, table) = (&window.targets[0], &window.table);
        due.gather(table, |kept| kept.push(0));
        assert!(due.complete(table, |_| Left::Something));
        assert!(due.send(|_| Left::Something), "still there");
        assert_eq!(*table.due.lock(), 1);
        // A put comes in between, and waits after the call that takes the error.
        due.gather(table, |kept| kept.push(1));
        due.take(table, |_| ((), Left::Something));
        assert_eq!((*table.due.lock(), due.is_due()), (1, true));
        // A put comes in between, and is sent.
        assert!(!due.send(|_| Left::Nothing));
        due.gather(table, |kept| kept.push(1));
        due.take(table, |_| ((), Left::Nothing));
        assert_eq!((*table.due.lock(), due.is_due()), (0, false));
        assert!(!due.complete(table, |_| unreachable!("nothing waits")));
        window.end();
        // The error alone.
        due.gather(table, |kept| kept.push(0));
        assert!(due.complete(table, |_| Left::Something));
        due.take(table, |_| ((), Left::Nothing));
        window.end();
    }
}
