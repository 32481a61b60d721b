//! Policy that decides whether a rank spins before it sleeps, from the time of its own waits. An
//! idle processor takes tens of microseconds to run a rank that is woken, so spinning is faster.
//! But a rank that spins keeps its processor from other threads, so sleeping is faster where the
//! awaited ranks share that processor. Only the time that waits take distinguishes the two cases.

use crate::sync::Mutex;
use core::time::Duration;

/// Waits of a trial, and those at its beginning that do not count: the system moves threads to
/// other processors meanwhile.
const TRIAL: u32 = 16;
const SETTLING: u32 = 4;
/// Waits in the better way between two trials of the other one.
const KEPT: u32 = 1000;
/// A longer wait counts as one of this length, because it only shows when another rank came.
const COUNTED_MAX: Duration = Duration::from_micros(200);

/// How long the waits of a rank spin.
pub struct SpinTime {
    most: Duration,
    learnt: Mutex<Learnt>,
}

/// What the waits of a rank have taken so far.
struct Learnt {
    spins: bool,
    /// waits of this run so far, and how many there will be
    waits: u32,
    run: u32,
    /// nanoseconds of the waits of this run that count
    sum: u64,
    /// the mean of the last run that slept at once, and of the last one that spun
    means: [Option<u64>; 2],
}

impl SpinTime {
    /// A wait spins for `most`, unless waits that sleep at once are shorter.
    pub fn new(most: Duration) -> SpinTime {
        let learnt = Learnt { spins: true, waits: 0, run: TRIAL, sum: 0, means: [None; 2] };
        SpinTime { most, learnt: Mutex::new(learnt) }
    }

    /// Returns how long the next wait spins.
    pub fn next(&self) -> Duration {
        if !self.most.is_zero() && self.learnt.lock().spins { self.most } else { Duration::ZERO }
    }

    /// Records how long a wait took.
    pub fn end(&self, took: Duration) {
        if !self.most.is_zero() {
            self.learnt.lock().count(took.min(COUNTED_MAX));
        }
    }
}

impl Learnt {
    fn count(&mut self, took: Duration) {
        self.waits += 1;
        if self.waits > SETTLING {
            self.sum += u64::from(took.subsec_nanos());
        }
        if self.waits < self.run {
            return;
        }
        self.means[usize::from(self.spins)] = Some(self.sum / u64::from(self.run - SETTLING));
        let was_trial = self.run == TRIAL;
        self.spins = match self.means {
            [Some(asleep), Some(spinning)] if was_trial => spinning <= asleep,
            _ => !self.spins,
        };
        let is_known = was_trial && self.means.iter().all(Option::is_some);
        (self.waits, self.sum, self.run) = (0, 0, if is_known { KEPT } else { TRIAL });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Makes waits that take these microseconds if they sleep at once, and if they spin. Returns
    /// the number of those that spun.
    fn spun(time: &SpinTime, waits: u32, [asleep, spinning]: [u64; 2]) -> u32 {
        let one = |_: &u32| {
            let spins = !time.next().is_zero();
            time.end(Duration::from_micros(if spins { spinning } else { asleep }));
            spins
        };
        (0..waits).filter(one).count().try_into().unwrap()
    }

    #[test]
    fn a_rank_waits_in_the_way_that_takes_less_time_and_tries_the_other_one_at_times() {
        let time = SpinTime::new(Duration::from_micros(50));
        assert_eq!(spun(&time, 2 * TRIAL, [40, 20]), TRIAL);
        assert_eq!(spun(&time, KEPT, [40, 20]), KEPT);
        assert_eq!(spun(&time, TRIAL, [10, 20]), 0);
        assert_eq!(spun(&time, KEPT, [10, 20]), 0);
        assert_eq!(spun(&time, TRIAL, [10, 20]), TRIAL);
        assert_eq!(spun(&time, KEPT, [10, 20]), 0);
    }

    #[test]
    fn one_long_wait_says_nothing_and_a_rank_that_may_not_spin_never_does() {
        let time = SpinTime::new(Duration::from_micros(50));
        spun(&time, SETTLING, [40, 1_000_000]);
        spun(&time, TRIAL - SETTLING, [40, 20]);
        spun(&time, TRIAL - 1, [40, 20]);
        spun(&time, 1, [900_000, 20]);
        assert_eq!(spun(&time, KEPT, [40, 20]), KEPT);
        assert_eq!(spun(&SpinTime::new(Duration::ZERO), 3 * TRIAL, [40, 20]), 0);
    }
}
