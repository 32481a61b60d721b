//! Containers that know nothing of MPI. Each decides which threads of this process may use a value,
//! and when they need no lock.

#[cfg(not(loom))]
pub mod known;
pub mod serial;
