//! libfompi: the one-sided (RMA) layer of whatever MPI is installed.
//!
//! Rooms, from the door inwards; dependencies go one way: `abi` (the exported MPI functions) →
//! `transfer` (data movement) → `window` (the object) → `epoch` (which call is legal now, and the
//! synchronisation protocols) → `fabric` (the roads) → `sys` (system calls). `datatype` is the
//! shape of data; `memory` is memory of this process that others can map; `mpi` is the MPI
//! underneath, typed: `abi`, `transfer` and `window` talk to it.

#[cfg(not(loom))]
pub mod abi;
#[cfg(not(loom))]
pub mod config;
pub mod datatype;
pub mod epoch;
pub mod error;
pub mod fabric;
#[cfg(not(loom))]
pub mod memory;
#[cfg(not(loom))]
pub mod mpi;
pub mod sync;
pub mod sys;
#[cfg(test)]
mod tidy;
#[cfg(not(loom))]
pub mod transfer;
#[cfg(not(loom))]
pub mod window;
