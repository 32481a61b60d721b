//! Tests of the protocols: on the simulator, with faults of the simulator that must be noticed, and
//! under loom.

mod accumulates;
mod barriers;
mod bounds;
mod cost;
mod epochs;
mod exposures;
mod locks;
mod losses;
mod memory_handles;
mod nodes;
mod notifications;
#[cfg(not(loom))]
mod notified_runs;
#[cfg(not(loom))]
mod one_trip;
mod orderings;
#[cfg(not(loom))]
mod overtaking;
mod overtaking_orderings;
mod passes;
mod places;
mod queues;
mod regions;
#[cfg(not(loom))]
mod standing;
mod standing_orderings;
mod whole;
