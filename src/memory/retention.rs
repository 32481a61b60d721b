//! The bound on memory that a heap keeps after it was given back: as much as the program uses
//! again, and no more. Keeping too little costs a system call and a page fault for each page;
//! keeping too much costs memory that other processes could use. Pure arithmetic: it touches no
//! memory and reads no clock.
//!
//! The bound grows when a request has to take fresh pages although as many bytes were given to the
//! system before: with a bound that much larger they would have been kept. It falls by the bytes
//! that no request has taken for [`PERIOD`].

/// The bound in bytes while nothing is known of the program.
pub const START: u64 = 16 << 20;
/// The largest bound of a process.
const MAX: u64 = 1 << 30;
/// All processes of a node together keep at most this share of the memory.
const SHARE: u64 = 16;
/// The time in seconds after which unused memory is given to the system.
pub const PERIOD: u64 = 10;

/// The history of a program's requests, as far as the bound depends on it.
pub struct Retention {
    /// the bound
    bound: u64,
    /// bytes given to the system and not taken from it again
    given_up: u64,
    /// the least number of bytes kept since `since`
    least: u64,
    /// the begin of the period, in seconds; 0: none has begun
    since: u64,
}

/// Returns the largest bound of a process where `ranks` ranks share `memory` bytes.
pub fn bound_max(memory: u64, ranks: u32) -> u64 {
    (memory / SHARE / u64::from(ranks.max(1))).min(MAX)
}

impl Retention {
    /// Starts without history.
    pub const UNKNOWN: Retention = Retention { bound: START, given_up: 0, least: 0, since: 0 };

    /// Returns the bound.
    pub fn bound(&self) -> u64 {
        self.bound
    }

    /// Notes that a request has taken fresh pages. `max`: the largest bound.
    pub fn took_fresh(&mut self, bytes: u64, max: impl FnOnce() -> u64) {
        if bytes > self.given_up {
            return;
        }
        self.given_up -= bytes;
        let max = max();
        // A request that can never be kept as a whole is no reason to keep more.
        if bytes <= max {
            self.bound = self.bound.max(max.min(self.bound + bytes));
        }
    }

    /// Notes that a request has taken kept memory; `left` bytes are kept still.
    pub fn took_kept(&mut self, left: u64) {
        self.least = self.least.min(left);
    }

    /// Notes that pages have been given to the system.
    pub fn gave_up(&mut self, bytes: u64) {
        self.given_up += bytes;
    }

    /// Whether the bound depends on time: it is larger than at the start.
    pub fn ages(&self) -> bool {
        self.bound > START
    }

    /// Notes that `kept` bytes are kept at the time `now`, in seconds.
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

    /// Returns the bytes that a program takes from the system in all, if it takes and gives back
    /// `bytes` bytes again and again, and holds nothing meanwhile.
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
        retention.took_fresh(40 * MIB, || panic!("the bound is not needed"));
        retention.gave_up(40 * MIB);
        retention.took_fresh(41 * MIB, || panic!("the bound is not needed"));
        assert_eq!(retention.bound(), START);
        assert!(!retention.ages());
    }

    #[test]
    fn memory_that_is_unused_for_long_is_not_kept() {
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
