//! libfompi: the one-sided (RMA) layer for any MPI.
//!
//! The modules, from the exported functions inwards; dependencies go one way: `abi` (the exported
//! MPI functions) → `transfer` (data movement) → `window` (the object) → `epoch` (which call is
//! legal now, and the synchronisation protocols) → `fabric` (the transports) → `sys` (system
//! calls). `datatype` is the layout of data; `memory` is memory of this process that others can
//! map; `mpi` is the typed interface to the host MPI, which `abi`, `transfer` and `window` call;
//! `util` has containers.

// Items that the whole crate can name need documentation: clippy.toml says so.
#![warn(clippy::missing_docs_in_private_items)]
// A cast that may change a value needs a name (`number.rs`) or a reason. Tests cast small numbers.
#![cfg_attr(
    not(test),
    warn(clippy::cast_possible_truncation, clippy::cast_possible_wrap, clippy::cast_sign_loss)
)]
// Under the model checker only the lower modules are built, and nothing calls most of their items.
#![cfg_attr(loom, allow(dead_code, unused_imports))]

#[cfg(not(loom))]
pub(crate) mod abi;
#[cfg(not(loom))]
mod adopt_setting;
#[cfg(all(any(test, fuzzing), not(loom)))]
mod choices;
#[cfg(not(loom))]
pub(crate) mod config;
pub(crate) mod datatype;
pub(crate) mod epoch;
pub(crate) mod error;
pub(crate) mod fabric;
#[cfg(not(loom))]
pub(crate) mod liveness;
#[cfg(not(loom))]
pub(crate) mod memory;
#[cfg(not(loom))]
pub(crate) mod mpi;
mod net_settings;
pub(crate) mod number;
pub(crate) mod rank_numbers;
pub(crate) mod sync;
pub(crate) mod sys;
#[cfg(test)]
mod tidy;
#[cfg(not(loom))]
pub(crate) mod transfer;
pub(crate) mod util;
#[cfg(not(loom))]
pub(crate) mod window;

/// The items that `benches/process_vm.rs` measures. Programs use the exported C symbols.
#[cfg(not(loom))]
#[doc(hidden)]
pub mod measured {
    pub use crate::fabric::Way;
    pub use crate::fabric::cma::{Batch, Gathering, Process, SmallPuts};
    pub use crate::fabric::pending_puts::PendingCount;
    pub use crate::rank_numbers::RankOnNode;
    pub use crate::sys::life::{Life, Mark};
}

/// What the targets below `fuzz/` call, each with bytes that the fuzzer makes up.
#[cfg(all(any(test, fuzzing), not(loom)))]
#[doc(hidden)]
pub mod fuzz_entries {
    pub use crate::epoch::exposure::posts;
    pub use crate::fabric::contact::first_contact;
    pub use crate::fabric::{greetings, tcp_answers, tcp_requests};
    pub use crate::memory::heap_view::heap_places;
    pub use crate::mpi::datatype::datatypes;
    pub use crate::sys::passing::file_questions;
    pub use crate::window::arena::announcements;
    pub use crate::window::descriptor::descriptors;
    pub use crate::window::regions::region_tables;
    pub use crate::window::waits::lock_claims;
    pub use crate::window::wide::post_lists::post_lists;
    pub use crate::window::wide::wide_notes;
}
