//! The synchronisation protocols, generic over [`crate::fabric::Words`]. No unsafe, no MPI, no data
//! of the user.

// Every cast says how it changes the value. Tests cast small numbers.
#![cfg_attr(
    not(test),
    warn(clippy::cast_possible_truncation, clippy::cast_possible_wrap, clippy::cast_sign_loss)
)]

pub mod exposure;
pub mod fence;
pub mod lock;
pub mod pscw;
pub mod regions;
#[cfg(not(loom))]
pub mod state;
#[cfg(test)]
mod tests;
