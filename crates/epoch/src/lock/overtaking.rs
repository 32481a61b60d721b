//! Policy for how often a process may take a free lock before waiting threads, where ranks share
//! cores. Not for nested requests, which overtake for another reason, and not for words of other
//! nodes.
//!
//! A lock that is free while threads wait is unused: its last holder has woken the first waiter,
//! and the system has not yet run it. Where ranks share cores that takes from some microseconds to
//! milliseconds. If the lock were kept for that waiter, each epoch of a contended lock would take
//! a switch between processes. So a process that has just had its turn in the queue may take the
//! lock again in that time: its core runs it anyway.
//!
//! | value                   | meaning                                                         |
//! |-------------------------|-----------------------------------------------------------------|
//! | `None`                  | the process has not waited in a queue: it overtakes no thread   |
//! | `at`, n left, an end    | it may take `at` n times more before others, until that time    |
//! | `at`, none left, or the end has passed | it overtakes no thread                           |
//!
//! | from | step                                                          | to               |
//! |------|---------------------------------------------------------------|------------------|
//! | any  | a request that is not nested got the lock in the queue of `at`| `at`, [`TURN`]   |
//! | `at`, n left | a request that is not nested finds `at` free, and others wait | one left less |
//!
//! *No waiter starves.* A process overtakes only at the lock in whose queue it last had a turn, and
//! [`TURN`] bounds how often. Then it has to wait in that queue, behind all threads that
//! wait there. So a waiter is overtaken at most so often by each process, and once more that often
//! for each thread that stood in the queue before it. Another lock in between only ends the
//! right, because there is one record.

use crate::fabric::WordAt;
use crate::sync::Mutex;
use core::time::Duration;
use std::time::Instant;

/// How often, and for how long, a process may overtake others after one turn in the queue.
#[derive(Clone, Copy, Debug)]
pub struct Bound {
    /// how often
    pub times: u32,
    /// for how long after the turn
    pub lasts: Duration,
}

/// The bound in use. Waking a process takes tens of microseconds where its core was idle; a few
/// times that long, the switches between processes are a small part of it. With 32 processes a
/// waiter waits for some milliseconds, about as long as the scheduler of the system lets it wait
/// for a core.
pub const TURN: Bound = Bound { times: 10_000, lasts: Duration::from_micros(200) };

/// The right of one process to overtake others in one window.
pub struct Overtaking {
    bound: Bound,
    right: Mutex<Option<Right>>,
}

/// The right to take one lock before others.
struct Right {
    at: WordAt,
    left: u32,
    end: Instant,
}

impl Overtaking {
    /// A process that has not waited yet.
    pub fn new(bound: Bound) -> Overtaking {
        Overtaking { bound, right: Mutex::new(None) }
    }

    /// Records that a thread of this process got the lock `at` in its queue.
    pub fn had_turn(&self, at: WordAt) {
        let end = Instant::now() + self.bound.lasts;
        *self.right.lock() = Some(Right { at, left: self.bound.times, end });
    }

    /// Whether a thread of this process may take the lock `at`, which is free, before others that
    /// wait. Counts it.
    pub fn may_overtake(&self, at: WordAt) -> bool {
        match &mut *self.right.lock() {
            Some(right) if right.at == at && right.left > 0 => {
                right.left -= 1;
                Instant::now() < right.end
            }
            _ => false,
        }
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;
    use crate::fabric::layout::LOCK;
    use crate::rank_numbers::Rank;

    const A: WordAt = WordAt { rank: Rank(0), word: LOCK };
    const B: WordAt = WordAt { rank: Rank(1), word: LOCK };

    #[test]
    fn a_process_overtakes_so_often_after_each_turn_and_at_one_lock() {
        let process = Overtaking::new(Bound { times: 2, lasts: Duration::from_secs(3600) });
        assert!(!process.may_overtake(A), "it has not waited");
        process.had_turn(A);
        assert!(!process.may_overtake(B), "it has waited elsewhere");
        assert_eq!([(); 4].map(|()| process.may_overtake(A)), [true, true, false, false]);
        process.had_turn(A);
        process.had_turn(B);
        assert!(!process.may_overtake(A), "it has waited elsewhere since");
        assert!(process.may_overtake(B));
    }

    #[test]
    fn a_turn_ends_after_some_time() {
        let process = Overtaking::new(Bound { times: 2, lasts: Duration::ZERO });
        process.had_turn(A);
        assert!(!process.may_overtake(A));
    }
}
