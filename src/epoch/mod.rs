//! The synchronisation protocols, generic over [`crate::fabric::Words`]. No unsafe, no MPI, no data
//! of the user.

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
