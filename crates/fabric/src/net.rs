//! Names of the transport between nodes for `window` and `transfer`, which name no network and no
//! device. The library has one such transport. In addition to the contract ([`super::remote`]) it
//! has what no trait names: how processes find each other and which of them have gone, for the
//! making of windows ([`Wire`], [`Peers`]); transfers of MPI requests ([`Pending`]); bounce
//! buffers and the largest gap between runs that one request bridges, for accumulates; and the
//! registrations and counts of the device.

pub use super::contact::{Contact, Probe, Secret, interfaces};
pub use super::wire::{
    BounceBlock, DeviceChoice, DeviceKind, DeviceOffer, Exposed, GAP_MAX, Peer, Peers, Pending,
    SPIN, Serving, Wire, settings_differ, tcp_settings, why_no_device,
};
