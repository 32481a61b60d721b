//! State machine of the small puts to one process: whether they are made at once or wait, and when
//! they are sent and completed; and the count of the processes that a completing call has to check.
//! `cma/small_puts.rs` keeps and sends the puts themselves. Invariant: while puts wait for a
//! process, or an error is kept, the process is counted.
//!
//! A process is *due* while the next call that completes operations there has something to do. The
//! fast path does not serve a window with processes that are due, because it does not check for
//! puts.
//!
//! | state   | meaning                                                               | counted |
//! |---------|-----------------------------------------------------------------------|---------|
//! | NOTHING | no put was made since the last completing call                        | no      |
//! | MADE    | puts were made since then, and all have arrived                       | yes     |
//! | WAITING | puts may wait, or an error is kept                                    | yes     |
//!
//! | from    | to      | by                                     | under                        |
//! |---------|---------|----------------------------------------|------------------------------|
//! | NOTHING | MADE    | a put that is made at once             | the count's turn             |
//! | any     | WAITING | a put that is gathered                 | the mutex and the turn       |
//! | WAITING | MADE    | a call that sends the puts             | the mutex                    |
//! | MADE    | NOTHING | a completing call                      | the turn                     |
//! | WAITING | NOTHING | a completing call                      | the mutex and the turn       |
//!
//! So a thread that holds the mutex and finds WAITING knows that the state stays so; and every
//! change from or to NOTHING is counted in the same turn. A thread whose put waits has found
//! WAITING, or has made it so, under the mutex: no other thread takes the process out of the count
//! from then on, except after the system call that sends the put. A put that is made at once may
//! find its process out of the count when it returns, because another thread has completed
//! meanwhile. Then no call notices that it was the only put, and nothing else depends on that.

use crate::sync::{AtomicBool, AtomicU32, Mutex, Ordering};

/// A count of the processes that are due.
pub trait PendingCount {
    /// Calls `change` in a turn of its own, and adds its answer to the count. No thread is in a
    /// `change` of the same count meanwhile, and `change` sees what earlier ones did. Before this
    /// returns, and before another `change`, all that depends on whether the count is 0 is done.
    fn change(&self, change: impl FnOnce() -> i32);
}

/// The state of one process, and `T`: the puts that wait for it.
pub struct PendingPuts<T> {
    state: AtomicU32,
    /// puts since the last completing call
    puts: AtomicU32,
    /// whether there were several puts before the last completing call that had any
    were_several: AtomicBool,
    kept: Mutex<T>,
}

/// Values of `state`, see the head of this file.
const NOTHING: u32 = 0;
const MADE: u32 = 1;
const WAITING: u32 = 2;

/// What is left of a process.
pub enum Left {
    /// nothing: all puts have arrived, and no error is kept
    Nothing,
    /// puts that wait, or an error
    Something,
}

impl<T: Default> Default for PendingPuts<T> {
    fn default() -> PendingPuts<T> {
        PendingPuts {
            state: AtomicU32::new(NOTHING),
            puts: AtomicU32::new(0),
            were_several: AtomicBool::new(false),
            kept: Mutex::new(T::default()),
        }
    }
}

impl<T> PendingPuts<T> {
    /// Returns whether the next put is made at once, and counts the process then.
    #[inline]
    pub fn begins(&self, count: &impl PendingCount) -> bool {
        // Acquire: pairs with the Release of the thread that has sent what waited.
        let begins = self.state.load(Ordering::Acquire) == NOTHING
            // Relaxed: any value is right.
            && !self.were_several.load(Ordering::Relaxed);
        if begins {
            // Relaxed: only the mutex orders the number.
            self.puts.store(1, Ordering::Relaxed);
            count.change(|| self.leave(NOTHING, MADE, 1));
        }
        begins
    }

    /// Keeps a put by `push`.
    #[inline]
    pub fn gather(&self, count: &impl PendingCount, push: impl FnOnce(&mut T)) {
        let mut kept = self.kept.lock();
        push(&mut kept);
        // Relaxed: any value is right, and only threads with the mutex add to it.
        let puts = self.puts.load(Ordering::Relaxed).saturating_add(1);
        self.puts.store(puts, Ordering::Relaxed);
        // Relaxed: WAITING does not change without the mutex.
        if self.state.load(Ordering::Relaxed) != WAITING {
            count.change(|| {
                // Relaxed: the turn orders it; a thread that reads WAITING takes the mutex.
                let was = self.state.load(Ordering::Relaxed);
                self.state.store(WAITING, Ordering::Relaxed);
                i32::from(was == NOTHING)
            });
        }
    }

    /// Sends the waiting puts by `work`. Returns whether an error is kept.
    #[inline]
    pub fn send(&self, work: impl FnOnce(&mut T) -> Left) -> bool {
        // Acquire: as in `begins`.
        self.state.load(Ordering::Acquire) == WAITING && self.send_waiting(work)
    }

    #[inline(never)]
    fn send_waiting(&self, work: impl FnOnce(&mut T) -> Left) -> bool {
        let mut kept = self.kept.lock();
        // Relaxed: as in `gather`. Another thread may have sent all.
        if self.state.load(Ordering::Relaxed) != WAITING {
            return false;
        }
        match work(&mut kept) {
            Left::Something => true,
            Left::Nothing => {
                // Release: pairs with the Acquire of a thread that need not send.
                self.state.store(MADE, Ordering::Release);
                false
            }
        }
    }

    /// Completes the puts so far: as [`PendingPuts::send`]. They decide how the next put is made.
    #[inline]
    pub fn complete(&self, count: &impl PendingCount, work: impl FnOnce(&mut T) -> Left) -> bool {
        // Acquire: as in `begins`.
        match self.state.load(Ordering::Acquire) {
            NOTHING => false,
            MADE => {
                self.decide();
                count.change(|| self.leave(MADE, NOTHING, -1));
                false
            }
            _ => self.complete_waiting(count, work),
        }
    }

    #[inline(never)]
    fn complete_waiting(
        &self,
        count: &impl PendingCount,
        work: impl FnOnce(&mut T) -> Left,
    ) -> bool {
        let mut kept = self.kept.lock();
        self.decide();
        match work(&mut kept) {
            Left::Something => true,
            Left::Nothing => {
                self.end(count);
                false
            }
        }
    }

    /// Takes a part out of the kept state. Returns the part, and the rest.
    pub fn take<R>(&self, count: &impl PendingCount, work: impl FnOnce(&mut T) -> (R, Left)) -> R {
        let mut kept = self.kept.lock();
        let (taken, left) = work(&mut kept);
        // Relaxed: any number of puts is right; the state as in `gather`.
        let (puts, state) = (self.puts.load(Ordering::Relaxed), self.state.load(Ordering::Relaxed));
        match left {
            Left::Nothing if state == WAITING && puts == 0 => self.end(count),
            // A completing call has to complete the puts that were sent. Release: as in `send`.
            Left::Nothing if state == WAITING => self.state.store(MADE, Ordering::Release),
            _ => {}
        }
        taken
    }

    /// Decides by the puts since the last completing call whether the next put is made at once.
    #[inline]
    fn decide(&self) {
        // Relaxed: any value is right.
        let puts = self.puts.load(Ordering::Relaxed);
        if puts > 0 {
            self.were_several.store(puts > 1, Ordering::Relaxed);
            self.puts.store(0, Ordering::Relaxed);
        }
    }

    /// Takes the process out of the count, with the mutex held and nothing kept.
    #[inline]
    fn end(&self, count: &impl PendingCount) {
        // Relaxed: as in `gather`; MADE may become NOTHING before the turn begins.
        if self.state.load(Ordering::Relaxed) != NOTHING {
            count.change(|| {
                let is_counted = self.state.load(Ordering::Relaxed) != NOTHING;
                // Release: pairs with the Acquire of a thread that need not complete.
                self.state.store(NOTHING, Ordering::Release);
                -i32::from(is_counted)
            });
        }
    }

    /// Changes the state in a turn of the count if it is `from`, and returns by how much the count
    /// changes then.
    #[inline]
    fn leave(&self, from: u32, to: u32, by: i32) -> i32 {
        // Acquire: a thread that reads `to` need not have met the thread that sent what waited.
        if self.state.load(Ordering::Acquire) != from {
            return 0;
        }
        // Release: pairs with the Acquire of a thread that finds nothing to send.
        self.state.store(to, Ordering::Release);
        by
    }
}

#[cfg(test)]
impl<T> PendingPuts<T> {
    /// Returns whether puts may wait, or an error is kept.
    pub fn is_waiting(&self) -> bool {
        self.state.load(Ordering::Acquire) == WAITING
    }
}

/// The protocol under loom: every order of the threads, within a bound of preemptions, and every
/// stale value that the orderings allow; without loom the same tests on threads of the machine.
#[cfg(test)]
mod tests {
    use super::*;
    use crate::sync::model;
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
        /// `is_gathered`: whether the first put of each target is gathered.
        fn new(is_gathered: bool) -> Arc<Window> {
            let window = Window {
                table: Table { due: Mutex::new(0), is_quick: AtomicBool::new(true) },
                targets: Default::default(),
                arrived: std::array::from_fn(|_| AtomicBool::new(false)),
            };
            for target in &window.targets {
                target.were_several.store(is_gathered, Ordering::Relaxed);
            }
            Arc::new(window)
        }

        fn arrive(&self, put: usize) {
            self.arrived[put].store(true, Ordering::Relaxed);
        }

        fn put(&self, target: usize, put: usize) {
            let due = &self.targets[target];
            match due.begins(&self.table) {
                true => self.arrive(put),
                false => due.gather(&self.table, |waiting| waiting.push(put)),
            }
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

    fn is_gathered_or_not(
        preemptions: usize,
        body: impl Fn(Arc<Window>) + Copy + Sync + Send + 'static,
    ) {
        for is_gathered in [false, true] {
            model(preemptions, move || body(Window::new(is_gathered)));
        }
    }

    #[test]
    fn loom_a_flush_completes_a_put_while_another_thread_completes_its_own() {
        is_gathered_or_not(4, |window| {
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
        is_gathered_or_not(3, |window| {
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
        is_gathered_or_not(4, |window| {
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
        is_gathered_or_not(3, |window| {
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
        model(0, || an_error_is_kept(&Window::new(true)));
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
        assert_eq!((*table.due.lock(), due.is_waiting()), (1, true));
        // A put comes in between, and is sent.
        assert!(!due.send(|_| Left::Nothing));
        due.gather(table, |kept| kept.push(1));
        due.take(table, |_| ((), Left::Nothing));
        assert_eq!((*table.due.lock(), due.is_waiting()), (1, false));
        assert!(!due.complete(table, |_| unreachable!("nothing waits")));
        window.end();
        // The error alone.
        due.gather(table, |kept| kept.push(0));
        assert!(due.complete(table, |_| Left::Something));
        due.take(table, |_| ((), Left::Nothing));
        window.end();
    }
}
