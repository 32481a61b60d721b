//! Verbs device of the transport between nodes: InfiniBand or RoCE, by reliable connections,
//! without a call of the target (decision 0005). [`VerbsDevice`] is the port that this process
//! uses, with its registered memory and the ends of connections; a [`VerbsLink`] is the origin's
//! end of one. `wire`, which this module does not name, decides what is sent and when. Invariant:
//! memory and queue pairs are O(processes contacted), and the number of requests under way has a
//! bound.

mod accepted;
mod connect;
#[cfg(any(test, feature = "test-util"))]
pub mod fake_device;
mod limits;
mod link;
mod opened;
mod port;
mod registrations;
#[cfg(test)]
mod tests;

pub use link::VerbsLink;
pub use opened::{VerbsDevice, VerbsOpening};
#[cfg(any(test, feature = "test-util"))]
pub use port::Port;
pub use registrations::{LastingMemory, Registrations, VerbsRegion};
