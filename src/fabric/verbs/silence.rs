//! A device that says nothing. A device must tell the end of each request: that it is done, or that
//! its retries are over, which takes seconds. Soft-RoCE seems to forget requests when a link goes
//! down: of 45 cuts one left both ranks waiting for ever.

use std::time::{Duration, Instant};

/// A device that has told nothing for so long does not tell any more. Retries take some ten seconds
/// at most.
const SILENT_MAX: Duration = Duration::from_secs(60);

/// Since when a device says nothing of what is under way on a queue.
#[derive(Default)]
pub struct Silence {
    /// the time, and the last request that was done then
    since: Option<(Instant, u64)>,
}

impl Silence {
    /// At a look, behind a look at the completions: whether `posted` requests, of which `done` are
    /// done, have had no answer for too long. Time between two looks that found requests under way
    /// counts in full, so a process that was stopped looks at the completions first.
    pub fn is_too_long(&mut self, now: Instant, done: u64, posted: u64) -> bool {
        match self.since {
            _ if done == posted => self.since = None,
            Some((since, before)) if before == done => return now - since >= SILENT_MAX,
            _ => self.since = Some((now, done)),
        }
        false
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    #[test]
    fn a_device_that_tells_nothing_for_a_minute_has_failed() {
        let began = Instant::now();
        let at = |seconds| began + Duration::from_secs(seconds);
        let mut silence = Silence::default();
        assert!(!silence.is_too_long(at(0), 3, 5));
        assert!(!silence.is_too_long(at(59), 3, 5));
        assert!(!silence.is_too_long(at(61), 4, 6), "one was answered");
        assert!(!silence.is_too_long(at(120), 4, 7));
        assert!(silence.is_too_long(at(121), 4, 7));
        let mut silence = Silence::default();
        assert!(!silence.is_too_long(at(0), 3, 5));
        assert!(!silence.is_too_long(at(50), 5, 5), "all were answered");
        assert!(!silence.is_too_long(at(100), 5, 6));
        assert!(!silence.is_too_long(at(159), 5, 6));
        assert!(silence.is_too_long(at(160), 5, 6));
    }
}
