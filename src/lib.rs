//! libfompi: the one-sided (RMA) layer for any MPI.
//!
//! The modules, from the exported functions inwards; dependencies go one way: `abi` (the exported
//! MPI functions) → `transfer` (data movement) → `window` (the object) → `arena` (control memory).
//! `mpi` is the typed interface to the host MPI, `liveness` detects failures, `report` prints.
//! Below are crates: `epoch` (which call is legal now, and the synchronisation protocols) →
//! `fabric` (the transports) → `sys` (system calls), `memory` (memory of this process that others
//! can map), `datatype` (the layout of data), and `base`, which all of them share.

// The model checker has the crates below.
#![cfg(not(loom))]
#![cfg_attr(test, allow(clippy::pedantic))] // tests cast small numbers

use fompi_base::config;
use fompi_base::{error, messages, number, rank_numbers, sync, util};
use fompi_datatype as datatype;
use fompi_epoch as epoch;
use fompi_fabric as fabric;
use fompi_memory as memory;
use fompi_sys as sys;

pub(crate) mod abi;
pub(crate) mod arena;
pub(crate) mod liveness;
pub(crate) mod mpi;
pub(crate) mod report;
#[cfg(test)]
mod tidy;
pub(crate) mod transfer;
pub(crate) mod window;

/// The items that `benches/process_vm.rs` measures. Programs use the exported C symbols.
#[doc(hidden)]
pub mod measured {
    pub use crate::fabric::Way;
    pub use crate::fabric::cma::{Batch, Gathering, Process, SmallPuts};
    pub use crate::fabric::pending_puts::PendingCount;
    pub use crate::rank_numbers::RankOnNode;
    pub use crate::sys::life::{Life, Mark};
}

/// What the targets below `fuzz/` call, each with bytes that the fuzzer makes up.
#[cfg(fuzzing)]
#[doc(hidden)]
pub mod fuzz_entries {
    pub use crate::arena::wide::notes::wide_notes;
    pub use crate::epoch::exposure::posts;
    pub use crate::epoch::regions::region_tables;
    pub use crate::fabric::contact::first_contact;
    pub use crate::fabric::{greetings, tcp_answers, tcp_requests};
    pub use crate::liveness::deadlocks::lock_claims;
    pub use crate::memory::heap_view::heap_places;
    pub use crate::memory::slots::announcements;
    pub use crate::mpi::datatype::datatypes;
    pub use crate::sys::passing::file_questions;
    pub use crate::window::address::descriptors;
    pub use crate::window::handles::packed::packed_handles;
    pub use crate::window::wide::post_lists::post_lists;
}
