//! Which targets have had accumulates on single words that no call has waited for: each needs a
//! look at the accumulate lock of its target behind it ([`super::atomic_calls`]), ahead of the end
//! of a call that completes it. Not for the looks themselves. Invariant: a thread that finds no
//! entry for a target knows that a look has ended there that began behind all accumulates that it
//! has sent.
//!
//! So an entry stays until a look has ended: several threads that complete operations at one target
//! look one beside the other. If the first one took the entry away when it begins, the others would
//! return while the lock is still held.
//!
//! | entry      | meaning                                                                      |
//! |------------|------------------------------------------------------------------------------|
//! | none       | looks have ended behind all accumulates                                      |
//! | version n  | the last accumulate that found no mark was the n-th; a look that began since |
//! |            | then, and has ended, removes the entry                                       |
//!
//! A mark saves the way to the entries: the entry is there, and the next look is still to begin.

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

/// What one target has of it.
#[derive(Default)]
pub struct UnconfirmedMarks {
    /// set while the next look has not begun
    is_marked: AtomicBool,
    /// the same since an accumulate with a result
    is_marked_with_result: AtomicBool,
    /// whether an accumulate of its entry may have a result
    has_results: AtomicBool,
}

/// A look that was begun.
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
    /// Notes that an accumulate was sent to this target, and that no call waits for it.
    #[inline]
    pub fn note(&self, looks: &UnconfirmedTargets, rank: Rank) {
        // Relaxed: a thread that finds the mark has sent its accumulate ahead of the read that a
        // looking thread sends after it has cleared the mark. Both lock the connection to send, so
        // a thread that sends behind the read finds no mark.
        if !self.is_marked.load(Ordering::Relaxed) {
            looks.mark(self, rank, false);
        }
    }

    /// Notes the same of an accumulate that has a result.
    #[inline]
    pub fn note_result(&self, looks: &UnconfirmedTargets, rank: Rank) {
        // As in `note`. Acquire: pairs with the Release of the thread that has set the mark, whose
        // `has_results` a local flush of this thread looks at.
        if !self.is_marked_with_result.load(Ordering::Acquire) {
            looks.mark(self, rank, true);
        }
    }

    /// Whether an accumulate that this thread has sent, and that has a result, may need a look.
    #[inline]
    pub fn has_results(&self) -> bool {
        // What this thread has noted is true here until a look has ended. Acquire: that look is
        // behind this thread then.
        self.has_results.load(Ordering::Acquire)
    }

    fn clear(&self) {
        // Relaxed: as in `note`. Changed under the lock of the entries alone.
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
    /// look.
    #[inline]
    pub fn have_results(&self) -> bool {
        // Acquire: as in `UnconfirmedMarks::has_results`.
        self.have_results.load(Ordering::Acquire)
    }

    /// Begins a look at a target: the caller reads the lock now, behind all accumulates that were
    /// sent there, and then calls [`UnconfirmedTargets::end`]. `None`: the target needs none.
    pub fn begin(&self, rank: Rank, marks: &UnconfirmedMarks) -> Option<UnconfirmedTarget> {
        let entries = self.entries.lock();
        let version = entries.of_ranks.get(&rank).map(|entry| entry.version)?;
        marks.clear();
        Some(UnconfirmedTarget { rank, version })
    }

    /// Begins looks at all targets that need one.
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

    /// Ends a look, when the lock was read and, if it was held, waited for; or when that has
    /// failed, with an error that the caller returns.
    pub fn end(&self, look: &UnconfirmedTarget, marks: &UnconfirmedMarks) {
        let mut entries = self.entries.lock();
        let Some(entry) = entries.of_ranks.get(&look.rank).copied() else { return };
        if entry.version != look.version {
            return; // accumulates were sent behind this look
        }
        entries.of_ranks.remove(&look.rank);
        if entry.has_results {
            let rest = entries.of_ranks.values().any(|entry| entry.has_results);
            // Release: pairs with the Acquire of a thread that finds nothing to look for.
            marks.has_results.store(false, Ordering::Release);
            self.have_results.store(rest, Ordering::Release);
        }
    }
}

/// Under loom, and without it on threads of the machine.
#[cfg(test)]
mod tests {
    use super::*;
    use crate::sync::{AtomicU64, model};
    #[cfg(loom)]
    use loom::thread;
    use std::sync::Arc;
    #[cfg(not(loom))]
    use std::thread;

    const RANK: Rank = Rank(3);

    /// A window with one target, to which threads send accumulates over one connection.
    struct Window {
        looks: UnconfirmedTargets,
        marks: UnconfirmedMarks,
        /// the number of accumulates that were sent
        connection: Mutex<u64>,
        /// the number of accumulates ahead of a look that has ended
        seen: AtomicU64,
    }

    /// How a thread completes what it has sent.
    #[derive(Clone, Copy)]
    enum Completion {
        /// MPI_Win_flush
        Flush,
        /// MPI_Win_flush_all
        FlushAll,
        /// MPI_Win_flush_local, behind an accumulate with a result
        FlushLocal,
        /// MPI_Win_flush_local_all, likewise
        FlushLocalAll,
    }
    use Completion::{Flush, FlushAll, FlushLocal, FlushLocalAll};

    impl Window {
        fn new() -> Arc<Window> {
            Arc::new(Window {
                looks: UnconfirmedTargets::default(),
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

        /// Looks at the lock of the target, for as long as another rank holds it.
        fn look(&self, look: UnconfirmedTarget) {
            let ahead = *self.connection.lock();
            thread::yield_now();
            self.seen.fetch_max(ahead, Ordering::Relaxed);
            self.looks.end(&look, &self.marks);
        }

        /// One accumulate, and a call that completes it.
        fn accumulate(&self, completion: Completion) {
            let number = self.send();
            match completion {
                Flush | FlushAll => self.marks.note(&self.looks, RANK),
                FlushLocal | FlushLocalAll => self.marks.note_result(&self.looks, RANK),
            }
            let looks = match completion {
                FlushLocal if !self.marks.has_results() => vec![],
                FlushLocalAll if !self.looks.have_results() => vec![],
                Flush | FlushLocal => {
                    self.looks.begin(RANK, &self.marks).into_iter().collect::<Vec<_>>()
                }
                FlushAll | FlushLocalAll => self.looks.begin_all(|_| Some(&self.marks)),
            };
            looks.into_iter().for_each(|look| self.look(look));
            let seen = self.seen.load(Ordering::Relaxed);
            assert!(
                seen >= number,
                "accumulate {number} ended, and looks behind {seen} have ended"
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
            assert!(window.looks.begin(RANK, &window.marks).is_none(), "all is seen");
            assert!(!window.marks.has_results() && !window.looks.have_results());
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
            let (looks, marks) = (UnconfirmedTargets::default(), UnconfirmedMarks::default());
            marks.note(&looks, RANK);
            let first = looks.begin(RANK, &marks).unwrap();
            let second = looks.begin(RANK, &marks).unwrap();
            looks.end(&first, &marks);
            assert!(looks.begin(RANK, &marks).is_none());
            marks.note_result(&looks, RANK);
            looks.end(&second, &marks);
            assert!(marks.has_results() && looks.have_results(), "noted since it began");
            let third = looks.begin_all(|_| Some(&marks)).pop().unwrap();
            assert!(marks.has_results() && looks.have_results(), "it has not ended");
            looks.end(&third, &marks);
            assert!(!marks.has_results() && !looks.have_results());
        });
    }
}
