//! The synchronisation protocols, generic over [`crate::fabric::Words`]. No unsafe, no MPI, no data
//! of the user.

pub mod exposure;
pub mod fence;
#[cfg(not(loom))]
pub mod known_ranks;
pub mod lock;
pub mod pscw;
pub mod regions;
#[cfg(not(loom))]
pub mod state;
#[cfg(test)]
mod tests;
