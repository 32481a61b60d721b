//! The simulator: a transport between ranks that exist only in this thread, for tests. Each thread
//! of each rank is a coroutine. A scheduler with a seed decides which thread takes the next step,
//! and when an operation that was sent takes effect. The same seed always gives the same run.
//!
//! The simulator is as adverse to a protocol as the laws of a transport allow: an operation may
//! take effect long after it was sent (see [`Profile`]), the buffer of a get is poison until then,
//! and a `fetch` wakes no thread. A run fails if a word is changed in a way that its kind does not
//! allow, if a link is reset while an operation on it is under way, if a rank panics, at a
//! deadlock, and if the run does not end. The failure is reported with the seed of the run.

#![cfg_attr(loom, allow(dead_code))]
#![allow(clippy::missing_docs_in_private_items, clippy::pedantic)] // tests alone use it

#[cfg(all(test, not(loom)))]
mod conformance;
#[cfg(not(loom))]
pub mod example;
pub mod faults;
#[cfg(not(loom))]
pub mod simple_parts;
pub mod test_overrides;
pub mod thread_words;

#[cfg(miri)]
mod on_threads;
mod rank;
mod transport;
mod view;
mod world;

pub use crate::faults::Fault;
pub use rank::Sim;
pub use transport::{FAR, FLAT, POISON, SimCounts};
pub use view::View;
pub use world::{FinalState, run};

use core::ops::Range;

/// When an operation that was sent to another rank takes effect.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Profile {
    /// at once, as with load and store within a node; only the steps of the ranks interleave
    Prompt,
    /// at a random later step, at the latest at a flush; between each two ranks in the order in
    /// which they were sent
    Late,
    /// at a random later step, at the latest at a flush; in any order that calls of `order` allow
    Reordered,
}

/// All profiles.
pub const PROFILES: [Profile; 3] = [Profile::Prompt, Profile::Late, Profile::Reordered];

/// The numbers of ranks, of threads of each rank, and of ranks of each node.
#[derive(Clone, Copy, Debug)]
pub struct SimShape {
    /// ranks
    pub ranks: u32,
    /// threads of each rank
    pub threads: u32,
    /// ranks of each node; the last node may have fewer
    pub per_node: u32,
}

impl From<u32> for SimShape {
    fn from(ranks: u32) -> SimShape {
        SimShape { ranks, threads: 1, per_node: 1 }
    }
}

/// The number of seeds to try.
const SEEDS: u64 = 200;

/// Returns the seeds to try: `FOMPI_SEEDS` of them, or 200.
pub fn seeds() -> Range<u64> {
    let count = std::env::var("FOMPI_SEEDS").ok().and_then(|text| text.parse().ok());
    0..count.unwrap_or(SEEDS)
}

/// Runs the body of all ranks, which `body` makes anew for each run, in every profile with every
/// seed. Calls `check` with the final state of each run. The first run that fails ends the test.
pub fn every<B: Fn(&Sim) + 'static>(
    shape: impl Into<SimShape>,
    body: impl Fn() -> B,
    check: impl Fn(&FinalState),
) {
    let shape = shape.into();
    for profile in PROFILES {
        for seed in seeds() {
            match run(shape, profile, seed, body()) {
                Ok(end) => check(&end),
                Err(why) => panic!("seed {seed}, {profile:?}: {why}"),
            }
        }
    }
}

/// Returns whether a run with some seed and profile fails. For bodies that are wrong on purpose:
/// few seeds do not find each of them.
pub fn is_caught<B: Fn(&Sim) + 'static>(shape: impl Into<SimShape>, body: impl Fn() -> B) -> bool {
    let shape = shape.into();
    let mut runs =
        (0..seeds().end.max(SEEDS)).flat_map(|seed| PROFILES.map(|profile| (profile, seed)));
    runs.any(|(profile, seed)| run(shape, profile, seed, body()).is_err())
}
