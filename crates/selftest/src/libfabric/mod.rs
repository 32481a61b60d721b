//! Checks of the order, the delivery and the keys of libfabric between two ranks on two nodes. No
//! window uses libfabric; the checks show whether a network keeps what a device over it would need.
//! The host MPI carries names and keys. Invariant: both ranks meet equally often, whatever fails.

#[allow(clippy::all, clippy::pedantic, clippy::undocumented_unsafe_blocks, dead_code)]
#[allow(clippy::missing_docs_in_private_items, missing_docs, non_camel_case_types)]
#[path = "generated/fabric.rs"]
mod fabric;
mod fabric_checks;
mod fabric_endpoint;
mod fabric_library;
mod fabric_pair;
mod fabric_run;
mod key_checks;
mod order_checks;

pub use fabric_run::{LIBFABRIC, run};
