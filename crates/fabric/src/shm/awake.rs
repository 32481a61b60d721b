//! Policy that decides whether a waiting rank spins before it sleeps, here called *stays awake*.
//! This saves a wake-up if the awaited rank runs meanwhile. Otherwise it takes the core from other
//! threads of the program and from ranks that a yield does not reach, and a rank that has used its
//! share of the core loses it to other programs just when the awaited rank is done. So after waits
//! that stayed awake without a result, a rank sleeps at once in some waits, and then stays awake
//! again. Not for waits between nodes, which always stay awake for a shorter time.
//!
//! | a wait that stayed awake       | [`AwakeOutcome`] | the next waits           |
//! |--------------------------------|------------------|--------------------------|
//! | found its value in time        | `Found`          | stay awake               |
//! | found nothing                  | `Missed`         | sleep from the eighth on |
//! | found it after the time limit  | `LostCore`       | sleep                    |
//!
//! A loss of the core has no effect if many waits found their values at once since the last loss:
//! then the ranks most often run together, and a time slice has room for thousands of such waits.

use crate::sync::{AtomicU32, Ordering};
use std::time::Duration;

/// Waits without a result before a rank sleeps at once.
const MISSED_MAX: u32 = 8;
/// Waits that sleep at once after these, and after many more of them.
const ASLEEP: u32 = 64;
const ASLEEP_MAX: u32 = 1024;

/// How long a waiting thread stays awake: until one of both limits is reached.
#[derive(Clone, Copy)]
pub struct AwakeLimit {
    /// rounds after the first one
    pub rounds: u32,
    /// measured by the clock, with other threads that the system runs meanwhile
    pub time: Duration,
}

/// The outcome of a wait that stayed awake.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum AwakeOutcome {
    /// the awaited value, in time
    Found,
    /// nothing
    Missed,
    /// the awaited value, after the time limit: the system ran other threads on this core
    LostCore,
}

impl AwakeLimit {
    /// Returns whether a wait of this duration and number of rounds has reached a limit.
    pub fn is_reached(&self, rounds: u32, awake: Duration) -> bool {
        rounds >= self.rounds || awake >= self.time
    }

    /// Returns the outcome of a wait that was awake for so long.
    pub fn outcome(&self, is_found: bool, awake: Duration) -> AwakeOutcome {
        match (is_found, awake < self.time) {
            (false, _) => AwakeOutcome::Missed,
            (true, true) => AwakeOutcome::Found,
            (true, false) => AwakeOutcome::LostCore,
        }
    }
}

/// The outcomes of the last waits of a process, which decide how the next one begins.
#[derive(Default)]
pub struct AwakeRecord {
    /// the number of waits without a result; each wait with a result halves it
    missed: AtomicU32,
    /// the waits that found their values at once since the last loss of the core
    at_once: AtomicU32,
    /// the waits to come that sleep at once
    asleep: AtomicU32,
}

impl AwakeRecord {
    /// Returns whether the next wait stays awake.
    pub fn next(&self) -> bool {
        // Relaxed, here and below: hints, and a thread may take those of another one.
        let asleep = self.asleep.load(Ordering::Relaxed);
        if asleep > 0 {
            self.asleep.store(asleep - 1, Ordering::Relaxed);
        }
        asleep == 0
    }

    /// Records that a wait found its value before it had to stay awake.
    pub fn add_at_once(&self) {
        let more = self.at_once.load(Ordering::Relaxed).saturating_add(1);
        self.at_once.store(more, Ordering::Relaxed);
    }

    /// Records the outcome of a wait that stayed awake.
    pub fn add(&self, outcome: AwakeOutcome) {
        let before = self.missed.load(Ordering::Relaxed);
        let missed = match outcome {
            AwakeOutcome::Found => return self.missed.store(before / 2, Ordering::Relaxed),
            AwakeOutcome::Missed => before + 1,
            AwakeOutcome::LostCore if self.at_once.load(Ordering::Relaxed) >= ASLEEP => before,
            AwakeOutcome::LostCore => MISSED_MAX.max(before + 1),
        };
        if outcome == AwakeOutcome::LostCore {
            self.at_once.store(0, Ordering::Relaxed);
        }
        self.missed.store(missed.min(2 * MISSED_MAX), Ordering::Relaxed);
        if let Some(more) = missed.checked_sub(MISSED_MAX)
            && missed > before
        {
            let asleep = ASLEEP_MAX.min(ASLEEP << more);
            self.asleep.store(asleep, Ordering::Relaxed);
        }
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;
    use crate::error::Result;
    use crate::rank_numbers::Rank;
    use crate::shm::words::{Cells, CpuWords, Idle};
    use crate::sync::AtomicU64;
    use crate::{WordAt, WordId, Words};
    use std::cell::Cell;
    use std::time::Duration;

    /// Returns how many of `waits` stay awake, if each that does has this outcome.
    fn awake(record: &AwakeRecord, waits: u32, outcome: AwakeOutcome) -> u32 {
        let one = |_: &u32| {
            let stays_awake = record.next();
            if stays_awake {
                record.add(outcome);
            }
            stays_awake
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

    /// How this rank waits: the calls of `progress` until the word changes, the limit, the outcome,
    /// and the duration of the first sleep, if there was one.
    struct Waits<'a> {
        of: &'a Alone,
        calls: Cell<u32>,
        limit: Option<AwakeLimit>,
        outcome: Cell<Option<AwakeOutcome>>,
        slept: Cell<Option<u64>>,
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

        fn sleep(&self, _doorbell: &AtomicU32, _value: u32, ns: u64) {
            self.slept.set(self.slept.get().or(Some(ns)));
        }

        fn wake(&self, _doorbell: &AtomicU32) {}

        fn spins(&self) -> u32 {
            1
        }

        fn awake(&self) -> Option<AwakeLimit> {
            self.limit
        }

        fn was_awake(&self, outcome: AwakeOutcome) {
            self.outcome.set(Some(outcome));
        }
    }

    /// Waits for a word that changes after this many calls of `progress`. Returns the first sleep,
    /// and the outcome that was recorded.
    fn wait(calls: u32, limit: Option<AwakeLimit>) -> (Option<u64>, Option<AwakeOutcome>) {
        let of = Alone { word: AtomicU64::new(0), doorbell: AtomicU32::new(0) };
        let (outcome, slept) = (Cell::new(None), Cell::new(None));
        let waits = Waits { of: &of, calls: Cell::new(calls), limit, outcome, slept };
        let words = CpuWords::new(&of, waits);
        assert_eq!(words.wait_own(WordId(0), |value| value == 1).unwrap(), 1);
        (words.idle().slept.get(), words.idle().outcome.get())
    }

    const MINUTE: Duration = Duration::from_secs(60);

    #[test]
    fn a_wait_stays_awake_before_it_sleeps() {
        let limit = |rounds, time| Some(AwakeLimit { rounds, time });
        assert_eq!(wait(100, limit(u32::MAX, MINUTE)), (None, Some(AwakeOutcome::Found)));
        assert_eq!(wait(3, limit(u32::MAX, MINUTE)), (None, None));
        assert_eq!(wait(100, limit(64, MINUTE)), (Some(50_000), Some(AwakeOutcome::Missed)));
        assert_eq!(
            wait(100, limit(u32::MAX, Duration::ZERO)),
            (Some(50_000), Some(AwakeOutcome::Missed))
        );
        assert_eq!(wait(1, limit(u32::MAX, Duration::ZERO)), (None, Some(AwakeOutcome::LostCore)));
        assert_eq!(wait(100, None), (Some(400_000), None));
    }

    #[test]
    fn waits_that_find_stay_awake_and_waits_that_miss_do_not() {
        let record = AwakeRecord::default();
        assert_eq!(awake(&record, 1000, AwakeOutcome::Found), 1000);
        assert_eq!(awake(&record, MISSED_MAX - 1, AwakeOutcome::Missed), MISSED_MAX - 1);
        assert_eq!(awake(&record, 10, AwakeOutcome::Found), 10);
        assert_eq!(awake(&record, MISSED_MAX, AwakeOutcome::Missed), MISSED_MAX);
        assert_eq!(awake(&record, ASLEEP, AwakeOutcome::Missed), 0);
        assert_eq!(awake(&record, 1, AwakeOutcome::Missed), 1);
        assert_eq!(awake(&record, 2 * ASLEEP, AwakeOutcome::Missed), 0);
        assert_eq!(awake(&record, 100 * ASLEEP_MAX, AwakeOutcome::Missed), 3 + 99);
        let waits = ASLEEP_MAX + 1;
        assert!(awake(&record, waits, AwakeOutcome::Found) > 0);
        assert_eq!(awake(&record, waits, AwakeOutcome::Found), waits);
    }

    #[test]
    fn a_wait_that_finds_halves_what_was_missed() {
        let record = AwakeRecord::default();
        awake(&record, 1000 * ASLEEP_MAX, AwakeOutcome::Missed);
        awake(&record, ASLEEP_MAX, AwakeOutcome::Missed);
        while !record.next() {}
        record.add(AwakeOutcome::Found);
        assert_eq!(awake(&record, 1 + ASLEEP, AwakeOutcome::Missed), 1);
    }

    #[test]
    fn a_rank_that_loses_its_core_sleeps_at_once() {
        let record = AwakeRecord::default();
        assert_eq!(awake(&record, 1, AwakeOutcome::LostCore), 1);
        assert_eq!(awake(&record, ASLEEP, AwakeOutcome::Found), 0);
        assert_eq!(awake(&record, 10, AwakeOutcome::Found), 10);
    }

    #[test]
    fn a_loss_of_the_core_after_many_values_found_at_once_has_no_effect() {
        let record = AwakeRecord::default();
        (0..ASLEEP).for_each(|_| record.add_at_once());
        assert_eq!(awake(&record, 1, AwakeOutcome::LostCore), 1);
        assert_eq!(awake(&record, 2, AwakeOutcome::LostCore), 1);
    }

    /// A wait of some microseconds, one of 64 yields, and two in which the system ran another
    /// program for a time slice or more.
    #[test]
    fn waits_next_to_another_program_are_told_by_their_durations() {
        let limit = AwakeLimit { rounds: 64, time: Duration::from_millis(1) };
        let outcomes = |waits: &[(u64, bool)]| -> Vec<AwakeOutcome> {
            let outcome = |&(us, found)| limit.outcome(found, Duration::from_micros(us));
            waits.iter().map(outcome).collect()
        };
        assert_eq!(
            outcomes(&[(2, true), (31, false)]),
            [AwakeOutcome::Found, AwakeOutcome::Missed]
        );
        assert_eq!(
            outcomes(&[(2_804, true), (4_012, false)]),
            [AwakeOutcome::LostCore, AwakeOutcome::Missed]
        );
    }
}
