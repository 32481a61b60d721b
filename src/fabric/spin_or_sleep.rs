//! How long a rank looks for what it waits for before it sleeps, learnt from its own waits. A
//! processor that was idle takes tens of microseconds to run a rank that is woken, so it is better
//! to look. But a rank that looks keeps its processor from other threads, and where the awaited
//! ranks share that processor it is better to sleep. Nothing tells both cases apart but the time
//! that waits take.

use crate::sync::Mutex;
use core::time::Duration;

/// Waits of a trial, and those at its beginning that do not count: the system moves threads to
/// other processors meanwhile.
const TRIAL: u32 = 16;
const SETTLING: u32 = 4;
/// Waits in the better way between two trials of the other one.
const KEPT: u32 = 1000;
/// A longer wait counts as one of this length: it says when another rank came, and no more.
const COUNTED_MAX: Duration = Duration::from_micros(200);

/// How long the waits of a rank look.
pub struct SpinTime {
    most: Duration,
    learnt: Mutex<Learnt>,
}

/// What the waits of a rank have taken so far.
struct Learnt {
    looks: bool,
    /// waits of this run so far, and how many there will be
    waits: u32,
    run: u32,
    /// nanoseconds that those of this run took which count
    sum: u64,
    /// the mean of the last run that slept at once, and of the last one that looked
    means: [Option<u64>; 2],
}

impl SpinTime {
    /// A wait looks for `most`, unless waits that sleep at once are shorter.
    pub fn new(most: Duration) -> SpinTime {
        let learnt = Learnt { looks: true, waits: 0, run: TRIAL, sum: 0, means: [None; 2] };
        SpinTime { most, learnt: Mutex::new(learnt) }
    }

    /// Returns how long the next wait looks.
    pub fn next(&self) -> Duration {
        if !self.most.is_zero() && self.learnt.lock().looks { self.most } else { Duration::ZERO }
    }

    /// Notes how long a wait took.
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
        self.means[usize::from(self.looks)] = Some(self.sum / u64::from(self.run - SETTLING));
        let was_trial = self.run == TRIAL;
        self.looks = match self.means {
            [Some(asleep), Some(looking)] if was_trial => looking <= asleep,
            _ => !self.looks,
        };
        let is_known = was_trial && self.means.iter().all(Option::is_some);
        (self.waits, self.sum, self.run) = (0, 0, if is_known { KEPT } else { TRIAL });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Makes waits that take these microseconds where they sleep at once, and where they look.
    /// Returns the number of those that looked.
    fn looked(look: &SpinTime, waits: u32, [asleep, looking]: [u64; 2]) -> u32 {
        let one = |_: &u32| {
            let looks = !look.next().is_zero();
            look.end(Duration::from_micros(if looks { looking } else { asleep }));
            looks
        };
        (0..waits).filter(one).count().try_into().unwrap()
    }

    #[test]
    fn a_rank_waits_in_the_way_that_takes_less_time_and_tries_the_other_one_at_times() {
        let look = SpinTime::new(Duration::from_micros(50));
        assert_eq!(looked(&look, 2 * TRIAL, [40, 20]), TRIAL);
        assert_eq!(looked(&look, KEPT, [40, 20]), KEPT);
        assert_eq!(looked(&look, TRIAL, [10, 20]), 0);
        assert_eq!(looked(&look, KEPT, [10, 20]), 0);
        assert_eq!(looked(&look, TRIAL, [10, 20]), TRIAL);
        assert_eq!(looked(&look, KEPT, [10, 20]), 0);
    }

    #[test]
    fn one_long_wait_says_nothing_and_a_rank_that_may_not_look_never_does() {
        let look = SpinTime::new(Duration::from_micros(50));
        looked(&look, SETTLING, [40, 1_000_000]);
        looked(&look, TRIAL - SETTLING, [40, 20]);
        looked(&look, TRIAL - 1, [40, 20]);
        looked(&look, 1, [900_000, 20]);
        assert_eq!(looked(&look, KEPT, [40, 20]), KEPT);
        assert_eq!(looked(&SpinTime::new(Duration::ZERO), 3 * TRIAL, [40, 20]), 0);
    }
}
