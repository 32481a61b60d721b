//! The MPI underneath, typed: its symbols, constants, communicators, groups, requests and
//! datatypes. What it does for us is launch, collectives at set-up, datatypes and requests; never
//! one-sided transfers.

pub mod comm;
pub mod constants;
pub mod datatype;
mod family;
pub mod functions;
pub mod host;
pub mod info;
pub mod level;
pub mod pending;
pub mod table;

pub use host::{Entry, Handle, Host};
