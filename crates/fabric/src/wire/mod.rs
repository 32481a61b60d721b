//! Transport between nodes: access to the memory of other processes by a network device, without a
//! call of the target (decision 0005). A process has one [`Wire`] and one [`Peer`] for each process
//! that it contacts. The first operation on a peer makes the connection, with the help of the
//! target's connection thread. This module accesses its device through `device.rs` and
//! `device_link.rs` alone, and does not define the control words of the protocols;
//! `fabric/remote_words.rs` builds them from these operations. Invariant: memory and connections
//! are O(processes contacted), and the number of operations under way has a bound.

mod answer_waits;
mod atomics;
mod bounce_buffers;
mod chain;
mod coalesce;
mod counts;
mod device;
mod device_choice;
mod device_link;
mod fault;
mod gathering;
mod greeting;
#[cfg(any(test, fuzzing))]
mod greeting_fuzz;
mod held;
mod pause;
mod peer;
mod peers;
mod pending;
mod pool;
mod put_and_get;
mod queue;
mod row_messages;
mod scatter_messages;
mod silence;
mod target_side;
#[cfg(any(test, feature = "test-util"))]
pub mod test_processes;
#[cfg(test)]
mod tests;
mod this_process;

pub use bounce_buffers::BounceBlock;
pub use coalesce::GAP_MAX;
pub use device::{DeviceKind, Serving};
pub use device_choice::{DeviceChoice, DeviceOffer, settings_differ, tcp_settings, why_no_device};
#[cfg(any(test, fuzzing))]
pub use greeting_fuzz::greetings;
pub use pause::SPIN;
pub use peer::Peer;
pub use peers::Peers;
pub use pending::Pending;
pub use this_process::{Exposed, Wire};
