//! The back-off of a thread that waits for the device. Invariant: a wait that lasts long pings
//! again and again, so that it ends when the other process is gone or the device has forgotten a
//! request.

use std::time::{Duration, Instant};

use super::device_link::News;
use crate::sync::{AtomicBool, AtomicU64, Ordering, spin_hint};

/// Polls of a queue before the waiting thread yields its core.
const SPINS: u32 = 16;
/// Time after which a waiting thread pings, and the number of pauses between two readings of the
/// clock.
const PING_AFTER: Duration = Duration::from_millis(if cfg!(test) { 20 } else { 1000 });
const PAUSES: u32 = 64;

/// The longest sleep of a thread that waits for answers, unless other threads wait for them, too.
pub const SLEEP_MAX: Duration = Duration::from_millis(1);
/// The longest sleep of a thread that waits for resources of other threads or connections.
pub const SLEEP_OF_MANY: Duration = Duration::from_micros(100);

/// Time for which a thread spins before it sleeps, if it spins. About twice the time of a message
/// and of the wake-up of its receiver.
pub const SPIN: Duration = Duration::from_micros(50);

/// How the threads of this process wait for answers.
#[derive(Default)]
pub struct WaitPolicy {
    /// nanoseconds for which a thread spins before it sleeps
    spin_ns: AtomicU64,
    /// whether several threads may communicate at once
    threads: AtomicBool,
}

impl WaitPolicy {
    /// Time for which a thread spins before it sleeps.
    pub fn spin(&self) -> Duration {
        // Relaxed: it decides nothing else.
        Duration::from_nanos(self.spin_ns.load(Ordering::Relaxed))
    }

    /// Sets that time.
    pub fn set_spin(&self, spin: Duration) {
        // Relaxed: as in `spin`.
        self.spin_ns.store(u64::try_from(spin.as_nanos()).unwrap_or(u64::MAX), Ordering::Relaxed);
    }

    /// Whether a thread may keep its connection to itself while it sleeps, because no other thread
    /// communicates. A thread that does nevertheless waits for a few milliseconds.
    pub fn is_alone(&self) -> bool {
        // Relaxed: it decides nothing else.
        !self.threads.load(Ordering::Relaxed)
    }

    /// Records that several threads may communicate at once.
    pub fn several_threads(&self) {
        // Relaxed: as in `is_alone`.
        self.threads.store(true, Ordering::Relaxed);
    }
}

/// The back-off of a wait: a few polls, then the thread yields its core at each pause, or sleeps.
#[derive(Default)]
pub struct Pause {
    pauses: u32,
    /// how long the thread spins before it sleeps, and the start of that time
    spin: Duration,
    began: Option<Instant>,
    /// time of the last ping, or the start of the wait
    since: Option<Instant>,
}

impl Pause {
    /// Returns the back-off of a thread that spins for this long before it sleeps.
    pub fn spinning(spin: Duration) -> Pause {
        Pause { spin, ..Pause::default() }
    }

    /// Pauses once, before the next poll of a link. Returns whether it is time to ping. `most`: the
    /// longest sleep, where the thread sleeps until the link has news.
    pub fn pause_for(&mut self, news: &News, most: Duration) -> bool {
        match news {
            News::Asked => self.is_over_now(),
            News::Polled => self.pause(),
            News::Stream(_) => {
                if self.spins() {
                    spin_hint();
                    return false;
                }
                news.wait(most);
                self.is_over_now()
            }
        }
    }

    /// Whether the thread still spins.
    pub fn spins(&mut self) -> bool {
        !self.spin.is_zero() && self.began.get_or_insert_with(Instant::now).elapsed() < self.spin
    }

    /// Pauses once, for a thread that waits for any link. Returns whether it is time to ping.
    pub fn pause_for_any(&mut self, sleeps: bool) -> bool {
        if !sleeps {
            return self.pause();
        }
        std::thread::sleep(SLEEP_OF_MANY);
        self.is_over_now()
    }

    /// Pauses once. Returns whether it is time to ping.
    pub fn pause(&mut self) -> bool {
        if self.pauses < SPINS {
            self.pauses += 1;
            spin_hint();
            return false;
        }
        std::thread::yield_now();
        self.is_over()
    }

    /// Counts a pause without making one, for a caller that calls again later. Returns whether it
    /// is time to ping.
    pub fn is_over(&mut self) -> bool {
        self.pauses = self.pauses.wrapping_add(1);
        if !self.pauses.is_multiple_of(PAUSES) {
            return false;
        }
        self.is_over_now()
    }

    fn is_over_now(&mut self) -> bool {
        let now = Instant::now();
        let long = now - *self.since.get_or_insert(now) >= PING_AFTER;
        if long {
            self.since = Some(now);
        }
        long
    }
}
