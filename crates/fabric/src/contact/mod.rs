//! First contact: the exchange of two processes by TCP before a device connects them. A process has
//! an [`Identity`]; its [`Contact`] has the addresses at which its connection thread ([`Listener`])
//! listens. Both sides prove knowledge of the [`Secret`] of the job, and exchange a question and an
//! answer of [`BYTES`] bytes. A [`Probe`] asks whether a process is still there. The transport that
//! asks a question of a first contact also defines its meaning ([`Service`]); this module knows no
//! device. Invariant: no byte of a question is handled before its sender has proved that it knows
//! the secret.

mod dial;
#[cfg(any(test, fuzzing))]
mod handshake_fuzz;
mod identity;
mod incoming;
mod listener;
mod outgoing;
mod probe;
mod record;
mod sockets;
#[cfg(test)]
pub mod tests;

pub use crate::sys::handshake::BYTES;
pub use crate::sys::secret::Secret;
#[cfg(any(test, fuzzing))]
pub use handshake_fuzz::first_contact;
pub use identity::{Identity, Notices};
pub use incoming::{Reply, Service};
pub use listener::Listener;
pub use outgoing::exchange;
pub use probe::{Probe, reach};
pub use record::{Contact, interface_of, interfaces};
pub use sockets::ListenPlaces;
