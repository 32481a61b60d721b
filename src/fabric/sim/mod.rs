//! The merciless simulator: a road between ranks that exist only in this thread, for tests. Each
//! thread of each rank is a coroutine; a scheduler with a seed says who takes the next step, and
//! when what was sent takes effect. The same seed gives the same run, always.
//!
//! What it holds against a protocol: nothing sent is seen before it must be (see [`Profile`]), the
//! buffer of a get is poison until then, a `fetch` wakes nobody, a word that is changed in a way
//! that its kind does not allow ends the world, and so do a link that is reset while something is
//! under way to it, a rank that panics, a deadlock, and a run without an end. What ends the world
//! is told with its seed.

mod rank;
mod road;
mod view;
mod world;

pub use rank::Sim;
pub use road::{Counts, POISON};
pub use view::{FAR, FLAT, Fault, LEADS, NEAR, View};
pub use world::{End, run};

use core::ops::Range;

/// When things take effect that were sent to another rank.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Profile {
    /// At once; only the steps of the ranks interleave. Like load and store within a node.
    Prompt,
    /// At a random later step, or at a flush; in the order sent, between each two ranks.
    Late,
    /// At a random later step, or at a flush; in any order, save for what `order` says.
    Reordered,
}

/// All profiles.
pub const PROFILES: [Profile; 3] = [Profile::Prompt, Profile::Late, Profile::Reordered];

/// How many ranks, threads of each, and nodes.
#[derive(Clone, Copy, Debug)]
pub struct Shape {
    /// ranks
    pub ranks: u32,
    /// threads of each rank
    pub threads: u32,
    /// ranks of each node; the last one may have less
    pub per_node: u32,
}

impl From<u32> for Shape {
    fn from(ranks: u32) -> Shape {
        Shape { ranks, threads: 1, per_node: 1 }
    }
}

/// The seeds to try: `FOMPI_SEEDS` of them, or 200.
pub fn seeds() -> Range<u64> {
    let count = std::env::var("FOMPI_SEEDS").ok().and_then(|text| text.parse().ok());
    0..count.unwrap_or(200)
}

/// Runs a body of all ranks, which `body` makes anew for each run, in every profile with every
/// seed. `check` sees how each run ended. The first run that fails ends the test.
pub fn every<B: Fn(&Sim) + 'static>(
    shape: impl Into<Shape>,
    body: impl Fn() -> B,
    check: impl Fn(&End),
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

/// Whether some seed and profile catches a body that is wrong.
pub fn is_caught<B: Fn(&Sim) + 'static>(shape: impl Into<Shape>, body: impl Fn() -> B) -> bool {
    let shape = shape.into();
    let mut runs = seeds().flat_map(|seed| PROFILES.map(|profile| (profile, seed)));
    runs.any(|(profile, seed)| run(shape, profile, seed, body()).is_err())
}
