//! What all crates of the library share: errors, numbers, atomics, settings, and containers that
//! know nothing of MPI.

#![cfg_attr(test, allow(clippy::pedantic))] // tests cast small numbers
#![deny(unsafe_code)]

#[cfg(not(loom))]
mod adopt_setting;
#[cfg(not(loom))]
pub mod config;
#[cfg(not(loom))]
mod config_files;
pub mod error;
mod error_class;
mod error_texts;
#[cfg(not(loom))]
pub mod known_names;
pub mod messages;
#[cfg(not(loom))]
mod net_settings;
pub mod number;
#[cfg(not(loom))]
#[allow(unsafe_code)] // a call of the loader
pub mod object_at;
pub mod rank_numbers;
#[cfg(not(loom))]
mod settings;
#[allow(unsafe_code)] // atomics of two words, and instructions of processors
pub mod sync;
#[allow(unsafe_code)] // values that one thread at a time uses
pub mod util;
#[cfg(not(loom))]
pub mod variables;
