//! The road between nodes, by the names that `window` and `transfer` use: they name no network and
//! no device. There is one such road in this library. Beside the contract ([`super::remote`]) it
//! has what only the making of a window needs: how processes find each other, and which of them
//! have gone.

pub use super::contact::{Contact, Probe, Secret};
pub use super::wire::{BlockLease, Exposed, GAP_MAX, Peer, Peers, Pending, Wire};
