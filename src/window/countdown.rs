//! The number of calls on a window until one of them makes progress of the host MPI: a rank that
//! polls its window may have a large send in progress, which that MPI completes only while it is
//! called (MPI-4.1 §2.9). Fast-path calls only count; a call that reaches the end makes the
//! progress (`Window::countdown_ended`).
//!
//! | `left`   | meaning                                             |
//! |----------|-----------------------------------------------------|
//! | 0 .. n   | the remaining calls                                 |
//! | negative | no fast-path call serves the window; the next full call makes progress |
//!
//! The number lies in a cache line of its own: otherwise, concurrent threads would invalidate lines
//! that fast-path calls only read. Concurrent updates may be lost.

use crate::sync::{AtomicI32, Ordering};

/// One in this many fast-path calls makes progress: progress takes about 100 ns, the calls tens of
/// microseconds.
const QUICK_CALLS: i32 = 4096;
/// The number of fast-path calls that take the time of a full one.
pub const QUICK_PER_FULL: i32 = 8;

/// One in this many full calls makes progress. They complete operations on a target that fast-path
/// calls would reach if the window were of one node.
pub const NEAR_COMPLETIONS: i32 = 64;
/// One in this many calls makes progress. They may have waited for other nodes, for tens of
/// microseconds; progress over a network takes about 2 us.
pub const FAR_WAITS: i32 = 8;

/// The countdown of a window.
#[repr(C, align(64))]
pub struct Countdown {
    left: AtomicI32,
}

impl Countdown {
    /// Starts at the end, because a program may make windows again and again.
    pub fn new() -> Countdown {
        Countdown { left: AtomicI32::new(-1) }
    }

    /// Restarts the countdown after a call that has made progress.
    #[inline]
    pub fn start(&self) {
        // Relaxed, here and below: it orders nothing.
        self.left.store(QUICK_CALLS, Ordering::Relaxed);
    }

    /// Counts a full call. One in `calls` of them makes progress.
    #[inline]
    pub fn hasten(&self, calls: i32) {
        let left = self.left.load(Ordering::Relaxed);
        self.left.store(left.saturating_sub(QUICK_CALLS / calls), Ordering::Relaxed);
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;
    use crate::sync::{subtract_at, subtract_with_fence};

    /// A call that counts. Returns whether the end is reached.
    type Call<'a> = &'a dyn Fn(&i32) -> bool;

    #[test]
    fn calls_of_each_kind_reach_the_end_and_stay_there() {
        let countdown = Countdown::new();
        // SAFETY: the number is at the beginning of the countdown.
        let quick = |_: &i32| unsafe { subtract_at::<_, 0, 1>(&countdown) };
        // SAFETY: the number is at the beginning of the countdown.
        let fenced = |_: &i32| unsafe { subtract_with_fence::<_, 0>(&countdown) };
        // SAFETY: the number is at the beginning of the countdown.
        let full = |_: &i32| unsafe { subtract_at::<_, 0, QUICK_PER_FULL>(&countdown) };
        assert!(quick(&0) && fenced(&0) && full(&0), "a new window");
        let calls: [(Call<'_>, i32); 3] =
            [(&quick, QUICK_CALLS), (&fenced, QUICK_CALLS), (&full, QUICK_CALLS / QUICK_PER_FULL)];
        for (call, number) in calls {
            countdown.start();
            assert_eq!((0..2 * QUICK_CALLS).find(call), Some(number));
            assert!(quick(&0) && fenced(&0) && full(&0));
        }
        for calls in [NEAR_COMPLETIONS, FAR_WAITS] {
            countdown.start();
            (0..calls - 1).for_each(|_| countdown.hasten(calls));
            assert!(!full(&0));
            countdown.hasten(calls);
            assert!(full(&0));
        }
    }
}
