//! Detection of a device that reports no completions. A device must report the end of each request:
//! success, or the end of its retries, which takes seconds. Soft-RoCE may forget requests when a
//! link goes down.

use std::time::{Duration, Instant};

/// Time after which a device that has reported nothing has failed. Retries take some ten seconds at
/// most.
const SILENT_MAX: Duration = Duration::from_secs(60);

/// The time since which the device has reported no completion on a queue with requests under way.
#[derive(Default)]
pub struct Silence {
    /// that time, and the last request that was done then
    since: Option<(Instant, u64)>,
}

impl Silence {
    /// Whether requests have made no progress for too long: `posted` were posted, and `done` are
    /// done. The caller has polled for completions just before. The time between two calls counts
    /// in full, so a process that was stopped must poll first.
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
