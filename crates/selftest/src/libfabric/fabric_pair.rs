//! The two ranks between which libfabric is checked: the origin, which is rank 0, and the target.

use super::fabric_endpoint::Endpoint;
use super::fabric_library::Provider;
use crate::job_rank::{JobRank, RankIn};
use std::cell::Cell;
use std::time::{Duration, Instant};

/// What a check saw, on the origin.
pub struct Seen {
    /// whether the check passes or fails; otherwise it only observes
    pub is_promised: bool,
    /// numbers for the report
    pub detail: String,
}

impl Default for Seen {
    fn default() -> Seen {
        Seen { is_promised: true, detail: String::new() }
    }
}

/// Differences that a rank found, with the first of them.
#[derive(Default)]
pub struct Differences {
    /// their number
    pub count: i64,
    /// the expected value, and the value found
    pub first: Option<(u64, u64)>,
}

impl Differences {
    /// Notes a value that should be another.
    pub fn note(&mut self, expected: u64, found: u64) {
        self.count += 1;
        self.first.get_or_insert((expected, found));
    }
}

/// A rank of the pair.
pub struct FabricPair<'a> {
    rank: &'a JobRank,
    /// the two ranks
    pub ranks: RankIn,
    /// the endpoint of this rank
    pub endpoint: Endpoint<'a>,
    /// its provider
    pub provider: &'a Provider<'a>,
    seconds: Duration,
    is_lost: Cell<bool>,
}

impl<'a> FabricPair<'a> {
    /// A rank of the pair. `seconds`: the time of a check.
    pub fn new(
        rank: &'a JobRank,
        ranks: RankIn,
        endpoint: Endpoint<'a>,
        provider: &'a Provider<'a>,
        seconds: Duration,
    ) -> FabricPair<'a> {
        FabricPair { rank, ranks, endpoint, provider, seconds, is_lost: Cell::new(false) }
    }

    /// Whether this rank is the origin.
    pub fn is_origin(&self) -> bool {
        self.ranks.me == 0
    }

    /// Whether an operation failed, so that more would mean nothing.
    pub fn is_lost(&self) -> bool {
        self.is_lost.get()
    }

    /// Whether a check that began then may go on.
    pub fn has_time(&self, start: Instant) -> bool {
        start.elapsed() < self.seconds && !self.is_lost()
    }

    /// Records a failure.
    pub fn fail(&self, call: &str, expected: impl ToString, got: impl ToString) {
        self.rank.fail(call, expected, got);
    }

    /// Records a failure if an operation has failed.
    pub fn done(&self, result: Result<(), String>) {
        if let Err(why) = result {
            self.lose("an operation of libfabric", "a completion", why);
        }
    }

    /// Records a failure after which the endpoint is of no use.
    pub fn lose(&self, call: &str, expected: &str, got: String) {
        self.is_lost.set(true);
        self.fail(call, expected, got);
    }

    /// Adds up a number of both ranks. Until the other rank comes, this one drives its provider.
    pub fn meet(&self, own: i64) -> i64 {
        self.meet_meanwhile(own, || {})
    }

    /// As [`FabricPair::meet`], and looks at memory meanwhile.
    pub fn meet_meanwhile(&self, own: i64, mut look: impl FnMut()) -> i64 {
        self.rank.sum_meanwhile(self.ranks.comm, own, || {
            if self.endpoint.in_flight() == 0 {
                self.done(self.endpoint.progress());
            }
            (0..64).for_each(|_| look());
            std::thread::yield_now();
        })
    }

    /// Runs the part of the origin, while the target looks at its memory.
    pub fn run(&self, origin: impl FnOnce() -> Result<(), String>, look: impl FnMut()) {
        if self.is_origin() {
            self.done(origin());
            self.meet(0);
        } else {
            self.meet_meanwhile(0, look);
        }
    }

    /// Agrees on the differences that the target found. They are failures if the provider promises
    /// that there are none. Returns their number.
    pub fn judge(&self, call: &str, found: &Differences, is_promised: bool) -> i64 {
        if let (true, Some((expected, got))) = (is_promised, found.first) {
            self.fail(call, expected, got);
        }
        self.meet(found.count)
    }

    /// Hands bytes of the target to the origin.
    pub fn receive_from_target(&self, bytes: Vec<u8>) -> Vec<u8> {
        self.rank.broadcast(bytes, self.ranks.comm, 1)
    }
}
