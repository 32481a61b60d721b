//! Parts of tests that know nothing of the library: the model checker's entry, and the inputs of
//! fuzz targets. Only tests and fuzz targets depend on this crate.

#![allow(clippy::missing_docs_in_private_items, clippy::pedantic)] // tests alone use it

mod choices;

pub use choices::{Choices, replay};

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
