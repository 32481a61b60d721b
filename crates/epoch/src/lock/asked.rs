//! Locks of a process that MPI_Win_lock has asked for, and that their first use takes
//! ([`super::in_one_trip`]), with what is kept for that call. Not for locks that are held.
//! Invariant: one thread takes a lock, with everything that was kept for it.
//!
//! | entry  | meaning                                                              |
//! |--------|----------------------------------------------------------------------|
//! | none   | no lock was asked for, or it is held                                 |
//! | kept   | the lock is to be taken; calls add to what is kept                   |
//! | taking | a thread takes the lock, and may wait for it; other threads that use |
//! |        | the target wait for that thread                                      |
//!
//! A process takes its locks in the order of the calls, and takes all of them before it releases
//! one. A program that locks several targets in one order everywhere does not deadlock therefore,
//! and no other process sees what was done under one of its locks ahead of the others. A lock is
//! released in the trip that takes it only if it is the last one to be taken.
//!
//! Locks are asked for in processes with one thread only. A session may raise the thread level
//! while they are kept, so several threads may use them.

use crate::rank_numbers::Rank;
use crate::sync::Mutex;

/// The asked locks of a window, each with a `T`, in the order of the calls.
pub struct AskedLocks<T>(Mutex<Vec<(Rank, Entry<T>)>>);

enum Entry<T> {
    Kept(T),
    Taking,
}

/// What a thread does that needs a lock.
#[derive(Debug, PartialEq, Eq)]
pub enum Turn<T> {
    /// takes it: [`AskedLocks::taken`] or [`AskedLocks::not_taken`] follows
    Take(T),
    /// waits until another thread has taken it, and asks again
    Wait,
    /// nothing: no lock is to be taken
    Nothing,
}

impl<T> Default for AskedLocks<T> {
    fn default() -> AskedLocks<T> {
        AskedLocks(Mutex::new(Vec::new()))
    }
}

/// Returns the entry of a rank.
fn find<T>(entries: &mut [(Rank, Entry<T>)], rank: Rank) -> Option<&mut Entry<T>> {
    entries.iter_mut().find(|(of, _)| *of == rank).map(|(_, entry)| entry)
}

impl<T> AskedLocks<T> {
    /// Records a lock that is to be taken. The process has none of this rank.
    pub fn ask(&self, rank: Rank, kept: T) {
        self.0.lock().push((rank, Entry::Kept(kept)));
    }

    /// Does `work` with what is kept for a lock, if no thread takes it.
    pub fn with<R>(&self, rank: Rank, work: impl FnOnce(&mut T) -> R) -> Option<R> {
        match find(&mut self.0.lock(), rank) {
            Some(Entry::Kept(kept)) => Some(work(kept)),
            Some(Entry::Taking) | None => None,
        }
    }

    /// Begins to take a lock.
    pub fn begin(&self, rank: Rank) -> Turn<T> {
        match find(&mut self.0.lock(), rank) {
            None => Turn::Nothing,
            Some(entry) => match core::mem::replace(entry, Entry::Taking) {
                Entry::Kept(kept) => Turn::Take(kept),
                Entry::Taking => Turn::Wait,
            },
        }
    }

    /// Records that a lock was taken, or its epoch has ended.
    pub fn taken(&self, rank: Rank) {
        self.0.lock().retain(|(of, _)| *of != rank);
    }

    /// Records that a lock could not be taken. It still is to be taken, and this is kept for it.
    pub fn not_taken(&self, rank: Rank, kept: T) {
        if let Some(entry) = find(&mut self.0.lock(), rank) {
            *entry = Entry::Kept(kept);
        }
    }

    /// Returns the ranks whose locks are to be taken before that of `rank`; all if it has none.
    pub fn before(&self, rank: Rank) -> Vec<Rank> {
        self.0.lock().iter().map(|(of, _)| *of).take_while(|of| *of != rank).collect()
    }

    /// Returns the ranks whose locks are to be taken.
    pub fn ranks(&self) -> Vec<Rank> {
        self.0.lock().iter().map(|(rank, _)| *rank).collect()
    }

    /// Whether something is kept for which this holds.
    pub fn any(&self, which: impl Fn(&T) -> bool) -> bool {
        let is_it = |entry: &Entry<T>| matches!(entry, Entry::Kept(kept) if which(kept));
        self.0.lock().iter().any(|(_, entry)| is_it(entry))
    }
}

/// Under loom, and without it on threads of the machine.
#[cfg(test)]
mod tests {
    use super::*;
    use crate::sync::{AtomicU64, Ordering};
    use fompi_testkit::model;
    #[cfg(loom)]
    use loom::thread;
    use std::sync::Arc;
    #[cfg(not(loom))]
    use std::thread;

    const RANK: Rank = Rank(3);

    #[test]
    fn a_lock_is_taken_once_with_what_is_kept() {
        let asked = AskedLocks::default();
        assert_eq!(asked.begin(RANK), Turn::Nothing);
        asked.ask(RANK, vec![1]);
        asked.ask(Rank(5), vec![]);
        assert_eq!(asked.with(RANK, |kept| kept.push(2)), Some(()));
        assert!(asked.any(|kept| kept.len() == 2) && !asked.any(|kept| kept.len() == 1));
        assert_eq!((asked.before(RANK), asked.before(Rank(5))), (vec![], vec![RANK]));
        assert_eq!(asked.begin(RANK), Turn::Take(vec![1, 2]));
        assert_eq!(asked.begin(RANK), Turn::Wait);
        assert_eq!(asked.with(RANK, |kept| kept.push(2)), None);
        assert!(!asked.any(|kept| kept.len() == 2));
        asked.not_taken(RANK, vec![]);
        assert_eq!(asked.ranks(), [RANK, Rank(5)], "in the order of the calls");
        assert_eq!(asked.begin(RANK), Turn::Take(vec![]));
        asked.taken(RANK);
        assert_eq!(asked.begin(RANK), Turn::Nothing);
        assert_eq!(asked.ranks(), [Rank(5)]);
        assert_eq!(asked.before(RANK), [Rank(5)]);
    }

    /// A lock that threads use at once.
    struct Shared {
        asked: AskedLocks<u64>,
        /// the number of times that it was taken
        taken: AtomicU64,
        /// the puts that were carried out
        done: AtomicU64,
    }

    impl Shared {
        /// Returns once the lock is held.
        fn take(&self, fails: bool) {
            loop {
                match self.asked.begin(RANK) {
                    Turn::Take(puts) if fails && self.taken.load(Ordering::Relaxed) == 0 => {
                        self.asked.not_taken(RANK, puts);
                        return self.take(false);
                    }
                    Turn::Take(puts) => {
                        self.taken.fetch_add(1, Ordering::Relaxed);
                        self.done.fetch_add(puts, Ordering::Relaxed);
                        self.asked.taken(RANK);
                    }
                    Turn::Wait => thread::yield_now(),
                    Turn::Nothing => return,
                }
            }
        }

        fn put(&self, fails: bool) {
            if self.asked.with(RANK, |puts| *puts += 1).is_none() {
                self.take(fails);
                assert_eq!(self.taken.load(Ordering::Relaxed), 1, "a put without the lock");
                self.done.fetch_add(1, Ordering::Relaxed);
            }
        }
    }

    #[test]
    fn loom_threads_take_a_lock_once_with_all_puts() {
        for fails in [false, true] {
            model(3, move || {
                let asked = AskedLocks::default();
                asked.ask(RANK, 0);
                let (taken, done) = (AtomicU64::new(0), AtomicU64::new(0));
                let shared = Arc::new(Shared { asked, taken, done });
                let other = shared.clone();
                let other = thread::spawn(move || {
                    other.put(fails);
                    other.take(fails);
                });
                shared.put(false);
                shared.take(fails);
                other.join().unwrap();
                let counts = [&shared.taken, &shared.done].map(|at| at.load(Ordering::Relaxed));
                assert_eq!(counts, [1, 2]);
            });
        }
    }
}
