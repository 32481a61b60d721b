//! Layout and operations of the bytes of a transfer. `type_map` is a flattened datatype, and walks
//! two buffers at once; `basic` names the kinds of predefined elements and the operations defined
//! for each; `reduce` applies operations to window memory. No code here knows MPI handles, windows
//! or transports, and none keeps state.

#![cfg(not(loom))]
#![cfg_attr(test, allow(clippy::pedantic))] // tests cast small numbers
#![deny(unsafe_code)]
use fompi_base::{error, messages, number, sync};

pub mod basic;
#[allow(unsafe_code)] // elements of window memory
pub mod reduce;
pub mod type_map;
