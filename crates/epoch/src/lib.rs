//! The synchronisation protocols, generic over [`crate::fabric::Words`]. No unsafe, no MPI, no data
//! of the user.

// Under the model checker a part of the modules is built.
#![cfg_attr(loom, allow(dead_code, unused_imports))]
// Items that the whole crate can name need documentation: clippy.toml says so.
#![warn(clippy::missing_docs_in_private_items)]
// A cast that may change a value needs a name (`number.rs`) or a reason. Tests cast small numbers.
#![cfg_attr(
    not(test),
    warn(clippy::cast_possible_truncation, clippy::cast_possible_wrap, clippy::cast_sign_loss)
)]
#![forbid(unsafe_code)]

use fompi_base::util;
use fompi_base::{error, number, rank_numbers, sync};
use fompi_fabric as fabric;
use fompi_sys as sys;

#[cfg(not(loom))]
pub mod access;
pub mod exposure;
pub mod fence;
pub mod lock;
pub mod pscw;
pub mod regions;
#[cfg(not(loom))]
pub mod state;
#[cfg(test)]
mod tests;
