//! Containers that know nothing of MPI. Each is about threads of this process: who may reach a
//! value, and when without a lock.

#[cfg(not(loom))]
pub mod known;
pub mod serial;
