//! Whether a rank with a core of its own looks for what it waits for before it sleeps. A look that
//! finds nothing costs its time where the awaited rank needs the same core, or where other threads
//! of the program do. So a rank whose looks found nothing several times, one after the other,
//! sleeps at once for some waits, and then tries again. Not for waits between nodes, whose looks
//! are short: see [`look_or_sleep`](crate::fabric::look_or_sleep).

use crate::sync::{AtomicU32, Ordering};

/// Looks that find nothing, one after the other, before a rank sleeps at once.
const MISSED_MAX: u32 = 8;
/// Waits that sleep at once after these looks, and after many more of them.
const ASLEEP: u32 = 64;
const ASLEEP_MAX: u32 = 1024;

/// What the last waits of a process tell about the next one.
#[derive(Default)]
pub struct Looking {
    /// the looks that found nothing since the last one that did
    missed: AtomicU32,
    /// the waits to come that sleep at once
    asleep: AtomicU32,
}

impl Looking {
    /// Whether the next wait looks before it sleeps.
    pub fn next(&self) -> bool {
        // Relaxed, here and below: hints, of which a thread may take those of another one.
        let asleep = self.asleep.load(Ordering::Relaxed);
        if asleep > 0 {
            self.asleep.store(asleep - 1, Ordering::Relaxed);
        }
        asleep == 0
    }

    /// Notes whether a look found nothing.
    pub fn end(&self, is_missed: bool) {
        if !is_missed {
            return self.missed.store(0, Ordering::Relaxed);
        }
        let missed = self.missed.load(Ordering::Relaxed).saturating_add(1);
        self.missed.store(missed, Ordering::Relaxed);
        if let Some(more) = missed.checked_sub(MISSED_MAX) {
            let asleep = ASLEEP_MAX.min(ASLEEP << more.min(8));
            self.asleep.store(asleep, Ordering::Relaxed);
        }
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;
    use crate::error::Result;
    use crate::fabric::shm::words::{Cells, CpuWords, Idle};
    use crate::fabric::{WordAt, WordId, Words};
    use crate::rank_numbers::Rank;
    use crate::sync::AtomicU64;
    use std::cell::Cell;
    use std::time::Duration;

    /// Returns the number of `waits` that look, where each look finds nothing or none does.
    fn looks(looking: &Looking, waits: u32, is_missed: bool) -> u32 {
        let one = |_: &u32| {
            let looks = looking.next();
            if looks {
                looking.end(is_missed);
            }
            looks
        };
        (0..waits).filter(one).count().try_into().unwrap()
    }

    /// A rank alone, whose word changes when it has let the MPI make progress some times.
    struct Alone {
        word: AtomicU64,
        doorbell: AtomicU32,
    }

    impl Cells for &Alone {
        fn cell(&self, _at: WordAt) -> &AtomicU64 {
            &self.word
        }

        fn rank(&self) -> Rank {
            Rank(0)
        }

        fn size(&self) -> u32 {
            1
        }

        fn doorbell(&self, _rank: Rank) -> &AtomicU32 {
            &self.doorbell
        }
    }

    /// How this rank waits: the calls of `progress` until the word changes, the look, and whether
    /// it has slept.
    struct Waits<'a> {
        of: &'a Alone,
        calls: Cell<u32>,
        look: Duration,
        missed: Cell<Option<bool>>,
        slept: Cell<bool>,
    }

    impl Idle for Waits<'_> {
        type Wait = ();

        fn begin(&self, _word: WordId) {}

        fn end(&self, _wait: ()) {}

        fn round(&self, _round: u32) {
            self.progress();
        }

        fn progress(&self) {
            self.calls.set(self.calls.get().saturating_sub(1));
            self.of.word.store(u64::from(self.calls.get() == 0), Ordering::Relaxed);
        }

        fn check(&self, _wait: &mut ()) -> Result<()> {
            Ok(())
        }

        fn sleep(&self, _doorbell: &AtomicU32, _value: u32, _ns: u64) {
            self.slept.set(true);
        }

        fn wake(&self, _doorbell: &AtomicU32) {}

        fn spins(&self) -> u32 {
            1
        }

        fn look(&self) -> Duration {
            self.look
        }

        fn looked(&self, is_missed: bool) {
            self.missed.set(Some(is_missed));
        }
    }

    /// Waits for a word that changes after 100 calls of `progress`. Returns whether the wait slept,
    /// and whether its look found nothing.
    fn wait(look: Duration) -> (bool, Option<bool>) {
        let of = Alone { word: AtomicU64::new(0), doorbell: AtomicU32::new(0) };
        let (missed, slept) = (Cell::new(None), Cell::new(false));
        let waits = Waits { of: &of, calls: Cell::new(100), look, missed, slept };
        let words = CpuWords::new(&of, waits);
        assert_eq!(words.wait_own(WordId(0), |value| value == 1).unwrap(), 1);
        (words.idle().slept.get(), words.idle().missed.get())
    }

    #[test]
    fn a_wait_looks_before_it_sleeps() {
        assert_eq!(wait(Duration::from_secs(60)), (false, Some(false)));
        assert_eq!(wait(Duration::from_nanos(1)), (true, Some(true)));
        assert_eq!(wait(Duration::ZERO), (true, None));
    }

    #[test]
    fn looks_that_find_are_kept_and_looks_missed_are_not() {
        let looking = Looking::default();
        assert_eq!(looks(&looking, 1000, false), 1000);
        assert_eq!(looks(&looking, MISSED_MAX - 1, true), MISSED_MAX - 1);
        assert_eq!(looks(&looking, 1, false), 1);
        assert_eq!(looks(&looking, MISSED_MAX, true), MISSED_MAX);
        assert_eq!(looks(&looking, ASLEEP, true), 0);
        assert_eq!(looks(&looking, 1, true), 1);
        assert_eq!(looks(&looking, 2 * ASLEEP, true), 0);
        assert_eq!(looks(&looking, 100 * ASLEEP_MAX, true), 3 + 99);
        let waits = ASLEEP_MAX + 1;
        assert!(looks(&looking, waits, false) > 0);
        assert_eq!(looks(&looking, waits, false), waits);
    }
}
