//! Typed interface to the host MPI: its symbols, constants, communicators, groups, requests and
//! datatypes. This library uses it for launch, collectives at set-up, datatypes and requests; never
//! for one-sided transfers.

pub mod attributes;
pub mod comm;
mod completed;
pub mod datatype;
mod flavor;
pub mod grequests;
pub mod hints;
pub mod host;
pub mod info;
pub mod level;
pub mod own_job;
pub mod table;
pub mod transfer_attributes;

pub use flavor::Flavor;
pub use fompi_host::{constants, family, functions, handle};
pub use handle::Handle;
pub use host::{EntryName, Host};
