//! The synchronisation protocols, generic over [`crate::fabric::Words`]. No unsafe, no MPI, no data
//! of the user.

// Under the model checker a part of the modules is built.
#![cfg_attr(loom, allow(dead_code, unused_imports))]
#![cfg_attr(test, allow(clippy::pedantic))] // tests cast small numbers
#![forbid(unsafe_code)]

use fompi_base::util;
use fompi_base::{error, messages, number, rank_numbers, sync};
use fompi_fabric as fabric;
use fompi_sys as sys;

#[cfg(not(loom))]
pub mod access;
pub mod exposure;
pub mod fence;
pub mod lock;
pub mod memory_handles;
pub mod note_keys;
pub mod notification;
pub mod pscw;
pub mod regions;
#[cfg(not(loom))]
pub mod state;
#[cfg(test)]
mod tests;
