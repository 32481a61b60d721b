//! What all crates of the library share: errors, numbers, atomics, settings, and containers that
//! know nothing of MPI.

// Items that the whole crate can name need documentation: clippy.toml says so.
#![warn(clippy::missing_docs_in_private_items)]
// A cast that may change a value needs a name (`number.rs`) or a reason. Tests cast small numbers.
#![cfg_attr(
    not(test),
    warn(clippy::cast_possible_truncation, clippy::cast_possible_wrap, clippy::cast_sign_loss)
)]
#![deny(unsafe_code)]

#[cfg(not(loom))]
mod adopt_setting;
#[cfg(not(loom))]
pub mod config;
pub mod error;
#[cfg(not(loom))]
mod net_settings;
pub mod number;
pub mod rank_numbers;
#[allow(unsafe_code)] // atomics of two words, and instructions of processors
pub mod sync;
#[allow(unsafe_code)] // values that one thread at a time uses
pub mod util;
