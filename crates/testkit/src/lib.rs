//! Parts of tests that know nothing of the library: the model checker's entry, random numbers, and
//! the inputs of fuzz targets. Only tests and fuzz targets depend on this crate.

#![allow(clippy::missing_docs_in_private_items, clippy::pedantic)] // tests alone use it

mod choices;

pub use choices::{Choices, replay};

/// A generator of numbers that are the same for the same seed (splitmix64).
pub struct Random(pub u64);

impl Random {
    /// Returns the next number.
    pub fn number(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.0 ^ self.0 >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ mixed >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ mixed >> 31
    }

    /// Returns a number below `bound`.
    pub fn below(&mut self, bound: u64) -> u64 {
        self.number() % bound
    }

    /// Returns an index below `bound`.
    pub fn index(&mut self, bound: usize) -> usize {
        self.below(bound as u64) as usize
    }
}

/// Runs the body of a test under loom: every order of its threads with at most these preemptions,
/// unless LOOM_MAX_PREEMPTIONS says another number; without loom many times on threads of the
/// machine.
pub fn model(preemptions: usize, body: impl Fn() + Send + Sync + 'static) {
    #[cfg(loom)]
    {
        let mut builder = loom::model::Builder::new();
        builder.preemption_bound = builder.preemption_bound.or(Some(preemptions));
        builder.max_branches = 20_000;
        builder.check(body);
    }
    #[cfg(not(loom))]
    {
        let _ = preemptions;
        (0..if cfg!(miri) { 4 } else { 200 }).for_each(|_| body());
    }
}
