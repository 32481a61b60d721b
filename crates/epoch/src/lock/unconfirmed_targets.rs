//! Targets with accumulates on single words that no call has waited for: each needs a check of the
//! target's accumulate lock after them ([`super::atomic_calls`]), before a call that completes them
//! ends. The checks themselves are in `window::wide::unconfirmed_accumulates`. Invariant: a thread
//! that finds no entry for a target knows that a check has ended there that began after all
//! accumulates that it has sent.
//!
//! So an entry stays until a check has ended: several threads that complete operations at one
//! target check concurrently. If the first one took the entry away when it begins, the others would
//! return while the lock is still held.
//!
//! | entry      | meaning                                                                       |
//! |------------|-------------------------------------------------------------------------------|
//! | none       | checks have ended after all accumulates                                       |
//! | version n  | the last accumulate that found no mark was the n-th; a check that began since |
//! |            | then, and has ended, removes the entry                                        |
//!
//! A mark saves the search for the entry: it exists, and the next check has not begun.

use crate::rank_numbers::Rank;
use crate::sync::{AtomicBool, Mutex, Ordering};
use std::collections::BTreeMap;

/// The targets of a window.
pub struct UnconfirmedTargets {
    entries: Mutex<Entries>,
    /// whether an accumulate of an entry may have a result
    have_results: AtomicBool,
}

struct Entries {
    of_ranks: BTreeMap<Rank, Entry>,
    /// the last version
    version: u64,
}

#[derive(Clone, Copy)]
struct Entry {
    version: u64,
    has_results: bool,
}

/// The state of one target.
#[derive(Default)]
pub struct UnconfirmedMarks {
    /// set while the next check has not begun
    is_marked: AtomicBool,
    /// set, and cleared with it, by an accumulate with a result
    is_marked_with_result: AtomicBool,
    /// whether an accumulate of its entry may have a result
    has_results: AtomicBool,
}

/// A check that was begun.
#[must_use]
pub struct UnconfirmedTarget {
    /// the target
    pub rank: Rank,
    version: u64,
}

impl Default for UnconfirmedTargets {
    fn default() -> UnconfirmedTargets {
        let entries = Entries { of_ranks: BTreeMap::new(), version: 0 };
        UnconfirmedTargets { entries: Mutex::new(entries), have_results: AtomicBool::new(false) }
    }
}

impl UnconfirmedMarks {
    /// Records that an accumulate was sent to this target, and that no call waits for it.
    #[inline]
    pub fn record(&self, targets: &UnconfirmedTargets, rank: Rank) {
        // Relaxed: a thread that finds the mark has sent its accumulate before the read that a
        // checking thread sends after it has cleared the mark. Both lock the connection to send, so
        // a thread that sends after the read finds no mark.
        if !self.is_marked.load(Ordering::Relaxed) {
            targets.mark(self, rank, false);
        }
    }

    /// Records it of an accumulate that has a result.
    #[inline]
    pub fn record_result(&self, targets: &UnconfirmedTargets, rank: Rank) {
        // As in `record`. Acquire: pairs with the Release of the thread that has set the mark,
        // whose `has_results` a local flush of this thread reads.
        if !self.is_marked_with_result.load(Ordering::Acquire) {
            targets.mark(self, rank, true);
        }
    }

    /// Whether an accumulate that this thread has sent, and that has a result, may need a check.
    #[inline]
    pub fn has_results(&self) -> bool {
        // What this thread has recorded is true here until a check has ended. Acquire: this thread
        // sees what that check has seen.
        self.has_results.load(Ordering::Acquire)
    }

    fn clear(&self) {
        // Relaxed: as in `record`. Changed under the lock of the entries alone.
        self.is_marked.store(false, Ordering::Relaxed);
        self.is_marked_with_result.store(false, Ordering::Relaxed);
    }
}

impl UnconfirmedTargets {
    #[cold]
    fn mark(&self, marks: &UnconfirmedMarks, rank: Rank, has_result: bool) {
        let mut entries = self.entries.lock();
        entries.version += 1;
        let version = entries.version;
        let entry = entries.of_ranks.entry(rank).or_insert(Entry { version, has_results: false });
        entry.version = version;
        entry.has_results |= has_result;
        if has_result {
            marks.has_results.store(true, Ordering::Relaxed);
            self.have_results.store(true, Ordering::Relaxed);
            marks.is_marked_with_result.store(true, Ordering::Release);
        }
        marks.is_marked.store(true, Ordering::Relaxed);
    }

    /// Whether an accumulate that this thread has sent, to any target, may have a result and need a
    /// check.
    #[inline]
    pub fn have_results(&self) -> bool {
        // Acquire: as in `UnconfirmedMarks::has_results`.
        self.have_results.load(Ordering::Acquire)
    }

    /// Begins a check of a target: the caller reads the lock now, after all accumulates that were
    /// sent there, and then calls [`UnconfirmedTargets::end`]. `None`: the target needs none.
    pub fn begin(&self, rank: Rank, marks: &UnconfirmedMarks) -> Option<UnconfirmedTarget> {
        let entries = self.entries.lock();
        let version = entries.of_ranks.get(&rank).map(|entry| entry.version)?;
        marks.clear();
        Some(UnconfirmedTarget { rank, version })
    }

    /// Begins checks of all targets that need one.
    pub fn begin_all<'a>(
        &self,
        marks: impl Fn(Rank) -> Option<&'a UnconfirmedMarks>,
    ) -> Vec<UnconfirmedTarget> {
        let entries = self.entries.lock();
        let begin = |(rank, entry): (&Rank, &Entry)| {
            marks(*rank).inspect(|marks| marks.clear());
            UnconfirmedTarget { rank: *rank, version: entry.version }
        };
        entries.of_ranks.iter().map(begin).collect()
    }

    /// Ends a check, when the lock was read and, if it was held, waited for; or when that has
    /// failed, with an error that the caller returns.
    pub fn end(&self, check: &UnconfirmedTarget, marks: &UnconfirmedMarks) {
        let mut entries = self.entries.lock();
        let Some(entry) = entries.of_ranks.get(&check.rank).copied() else { return };
        if entry.version != check.version {
            return; // accumulates were sent after this check
        }
        entries.of_ranks.remove(&check.rank);
        if entry.has_results {
            let rest = entries.of_ranks.values().any(|entry| entry.has_results);
            // Release: pairs with the Acquire of a thread that finds nothing to check.
            marks.has_results.store(false, Ordering::Release);
            self.have_results.store(rest, Ordering::Release);
        }
    }
}

/// Under loom, and without it on threads of the machine.
#[cfg(test)]
mod tests {
    use super::*;
    use crate::sync::AtomicU64;
    use fompi_testkit::model;
    #[cfg(loom)]
    use loom::thread;
    use std::sync::Arc;
    #[cfg(not(loom))]
    use std::thread;

    const RANK: Rank = Rank(3);

    /// A window with one target, to which threads send accumulates over one connection.
    struct Window {
        targets: UnconfirmedTargets,
        marks: UnconfirmedMarks,
        /// the number of accumulates that were sent
        connection: Mutex<u64>,
        /// the number of accumulates before a check that has ended
        seen: AtomicU64,
    }

    /// How a thread completes what it has sent.
    #[derive(Clone, Copy)]
    enum Completion {
        /// MPI_Win_flush
        Flush,
        /// MPI_Win_flush_all
        FlushAll,
        /// MPI_Win_flush_local, after an accumulate with a result
        FlushLocal,
        /// MPI_Win_flush_local_all, after an accumulate with a result
        FlushLocalAll,
    }
    use Completion::{Flush, FlushAll, FlushLocal, FlushLocalAll};

    impl Window {
        fn new() -> Arc<Window> {
            Arc::new(Window {
                targets: UnconfirmedTargets::default(),
                marks: UnconfirmedMarks::default(),
                connection: Mutex::new(0),
                seen: AtomicU64::new(0),
            })
        }

        fn send(&self) -> u64 {
            let mut sent = self.connection.lock();
            *sent += 1;
            *sent
        }

        /// Checks the lock of the target, for as long as another rank holds it.
        fn check(&self, check: UnconfirmedTarget) {
            let before = *self.connection.lock();
            thread::yield_now();
            self.seen.fetch_max(before, Ordering::Relaxed);
            self.targets.end(&check, &self.marks);
        }

        /// One accumulate, and a call that completes it.
        fn accumulate(&self, completion: Completion) {
            let number = self.send();
            match completion {
                Flush | FlushAll => self.marks.record(&self.targets, RANK),
                FlushLocal | FlushLocalAll => self.marks.record_result(&self.targets, RANK),
            }
            let checks = match completion {
                FlushLocal if !self.marks.has_results() => vec![],
                FlushLocalAll if !self.targets.have_results() => vec![],
                Flush | FlushLocal => {
                    self.targets.begin(RANK, &self.marks).into_iter().collect::<Vec<_>>()
                }
                FlushAll | FlushLocalAll => self.targets.begin_all(|_| Some(&self.marks)),
            };
            checks.into_iter().for_each(|check| self.check(check));
            let seen = self.seen.load(Ordering::Relaxed);
            assert!(
                seen >= number,
                "accumulate {number} ended, and checks after {seen} have ended"
            );
        }
    }

    /// Runs one thread for each list: an accumulate for each of its calls.
    fn run(preemptions: usize, threads: &'static [&'static [Completion]]) {
        model(preemptions, move || {
            let window = Window::new();
            let work = |calls: &[Completion], window: &Window| {
                calls.iter().for_each(|call| window.accumulate(*call));
            };
            let spawn = |calls: &'static [Completion]| {
                let window = window.clone();
                thread::spawn(move || work(calls, &window))
            };
            let others: Vec<_> = threads[1..].iter().map(|calls| spawn(calls)).collect();
            work(threads[0], &window);
            others.into_iter().for_each(|thread| thread.join().unwrap());
            assert!(window.targets.begin(RANK, &window.marks).is_none(), "all is seen");
            assert!(!window.marks.has_results() && !window.targets.have_results());
        });
    }

    #[test]
    fn loom_a_flush_returns_behind_a_look_that_began_behind_its_accumulates() {
        run(3, &[&[Flush, Flush], &[Flush]]);
        run(3, &[&[Flush, Flush], &[FlushAll]]);
        run(2, &[&[Flush], &[Flush], &[FlushAll]]);
    }

    #[test]
    fn loom_a_local_flush_returns_behind_a_look_that_began_behind_its_results() {
        run(3, &[&[FlushLocal, FlushLocal], &[FlushLocal]]);
        run(3, &[&[FlushLocal, FlushLocalAll], &[Flush]]);
        run(3, &[&[FlushLocalAll], &[FlushAll, FlushLocal]]);
        run(2, &[&[FlushLocal], &[FlushLocalAll], &[Flush]]);
    }

    #[test]
    fn loom_a_second_look_is_needed_while_the_first_has_not_ended() {
        model(0, || {
            let (targets, marks) = (UnconfirmedTargets::default(), UnconfirmedMarks::default());
            marks.record(&targets, RANK);
            let first = targets.begin(RANK, &marks).unwrap();
            let second = targets.begin(RANK, &marks).unwrap();
            targets.end(&first, &marks);
            assert!(targets.begin(RANK, &marks).is_none());
            marks.record_result(&targets, RANK);
            targets.end(&second, &marks);
            assert!(marks.has_results() && targets.have_results(), "recorded since it began");
            let third = targets.begin_all(|_| Some(&marks)).pop().unwrap();
            assert!(marks.has_results() && targets.have_results(), "it has not ended");
            targets.end(&third, &marks);
            assert!(!marks.has_results() && !targets.have_results());
        });
    }
}
