//! Layout and operations of the bytes of a transfer. `type_map` is a flattened datatype, and walks
//! two buffers at once; `basic` names the kinds of predefined elements and the operations defined
//! for each; `reduce` applies operations to window memory. No code here knows MPI handles, windows
//! or transports, and none keeps state.

// Under the model checker most of the items have no users.
#![cfg_attr(loom, allow(dead_code, unused_imports))]
// Items that the whole crate can name need documentation: clippy.toml says so.
#![warn(clippy::missing_docs_in_private_items)]
// A cast that may change a value needs a name (`number.rs`) or a reason. Tests cast small numbers.
#![cfg_attr(
    not(test),
    warn(clippy::cast_possible_truncation, clippy::cast_possible_wrap, clippy::cast_sign_loss)
)]
#![deny(unsafe_code)]
use fompi_base::{error, number, sync};

pub mod basic;
#[cfg(not(loom))]
#[allow(unsafe_code)] // elements of window memory
pub mod reduce;
pub mod type_map;
