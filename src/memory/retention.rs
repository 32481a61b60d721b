//! How much memory that was given back a heap keeps: as much as the program takes again, and no
//! more. Keeping too little costs a system call and a page fault for each page; keeping too much
//! costs memory that others could use. Pure arithmetic: it touches no memory and asks no clock.
//!
//! The bound grows when a request has to take fresh pages although as much was given to the system
//! before: with a bound so much larger it would have been kept. It falls by what nobody took for
//! [`PERIOD`].

/// A heap keeps so much of what is given back, if nothing is known of the program.
pub const START: u64 = 16 << 20;
/// No process keeps more.
const MAX: u64 = 1 << 30;
/// All processes of a node together keep at most this share of the memory.
const SHARE: u64 = 16;
/// What nobody took for so many seconds is given to the system.
pub const PERIOD: u64 = 10;

/// What is known of a program's requests.
pub struct Retention {
    /// bytes that are kept at most
    bound: u64,
    /// bytes given to the system and not taken from it again
    given_up: u64,
    /// the least that was kept since `since`
    least: u64,
    /// when that began, in seconds; 0: not yet
    since: u64,
}

/// The most that a process keeps where `ranks` have `memory` bytes.
pub fn bound_max(memory: u64, ranks: u32) -> u64 {
    (memory / SHARE / u64::from(ranks.max(1))).min(MAX)
}

impl Retention {
    /// Nothing is known yet.
    pub const UNKNOWN: Retention = Retention { bound: START, given_up: 0, least: 0, since: 0 };

    /// Bytes that are kept at most.
    pub fn bound(&self) -> u64 {
        self.bound
    }

    /// A request has taken fresh pages. `max`: what the bound may become.
    pub fn took_fresh(&mut self, bytes: u64, max: impl FnOnce() -> u64) {
        if bytes > self.given_up {
            return;
        }
        self.given_up -= bytes;
        let max = max();
        // What can never be kept as a whole is no reason to keep more.
        if bytes <= max {
            self.bound = self.bound.max(max.min(self.bound + bytes));
        }
    }

    /// A request has taken memory that was kept; so much is left.
    pub fn took_kept(&mut self, left: u64) {
        self.least = self.least.min(left);
    }

    /// Pages have been given to the system.
    pub fn gave_up(&mut self, bytes: u64) {
        self.given_up += bytes;
    }

    /// Whether time matters: whether more may be kept than at the start.
    pub fn ages(&self) -> bool {
        self.bound > START
    }

    /// It is `now`, in seconds, and so much is kept.
    pub fn age(&mut self, now: u64, kept: u64) {
        if self.since != 0 && now < self.since + PERIOD {
            return;
        }
        if self.since != 0 {
            self.bound = START.max(self.bound.saturating_sub(self.least));
            self.given_up = 0;
        }
        (self.since, self.least) = (now, kept);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MIB: u64 = 1 << 20;

    /// A program that takes and gives back so much again and again, and keeps nothing meanwhile:
    /// bytes that it takes from the system in all.
    fn taken(bytes: u64, times: u32, max: u64) -> u64 {
        let (mut retention, mut kept, mut taken) = (Retention::UNKNOWN, 0, 0);
        for _ in 0..times {
            if kept >= bytes {
                kept -= bytes;
                retention.took_kept(kept);
            } else {
                retention.took_fresh(bytes, || max);
                taken += bytes;
            }
            kept += bytes;
            if kept > retention.bound() {
                retention.gave_up(kept);
                kept = 0;
            }
        }
        taken
    }

    #[test]
    fn what_is_taken_again_and_again_is_taken_from_the_system_twice() {
        assert_eq!(taken(MIB, 100, 1 << 30), MIB);
        assert_eq!(taken(16 * MIB, 100, 1 << 30), 16 * MIB);
        assert_eq!(taken(40 * MIB, 100, 1 << 30), 80 * MIB);
        assert_eq!(taken(700 * MIB, 100, 1 << 30), 1400 * MIB);
    }

    #[test]
    fn what_is_larger_than_all_that_may_be_kept_is_never_kept() {
        assert_eq!(taken(40 * MIB, 100, 30 * MIB), 4000 * MIB);
        let mut retention = Retention::UNKNOWN;
        retention.gave_up(400 * MIB);
        retention.took_fresh(40 * MIB, || 30 * MIB);
        assert_eq!(retention.bound(), START);
        retention.took_fresh(20 * MIB, || 30 * MIB);
        assert_eq!(retention.bound(), 30 * MIB);
        retention.took_fresh(20 * MIB, || 4 * MIB);
        assert_eq!(retention.bound(), 30 * MIB);
    }

    #[test]
    fn pages_that_were_never_given_up_are_no_reason() {
        let mut retention = Retention::UNKNOWN;
        retention.took_fresh(40 * MIB, || panic!("nobody asks"));
        retention.gave_up(40 * MIB);
        retention.took_fresh(41 * MIB, || panic!("nobody asks"));
        assert_eq!(retention.bound(), START);
        assert!(!retention.ages());
    }

    #[test]
    fn what_nobody_takes_any_more_is_not_kept() {
        let mut retention = Retention::UNKNOWN;
        retention.gave_up(100 * MIB);
        retention.took_fresh(100 * MIB, || 1 << 30);
        assert!(retention.ages());
        retention.age(5, 110 * MIB);
        retention.took_kept(10 * MIB);
        retention.age(5 + PERIOD - 1, 110 * MIB);
        assert_eq!(retention.bound(), 116 * MIB);
        retention.age(5 + PERIOD, 110 * MIB);
        assert_eq!(retention.bound(), 106 * MIB, "all but 10 MiB were used");
        retention.took_kept(100 * MIB);
        retention.age(5 + 2 * PERIOD, 106 * MIB);
        assert_eq!(retention.bound(), START);
    }

    #[test]
    fn ranks_share_what_may_be_kept() {
        assert_eq!(bound_max(64 << 30, 4), 1 << 30);
        assert_eq!(bound_max(64 << 30, 64), 64 * MIB);
        assert_eq!(bound_max(300 * MIB, 0), 300 * MIB / 16);
    }
}
