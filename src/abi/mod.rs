//! The door: the exported symbols, and nothing else exports any. A *card* per MPI function makes
//! `MPI_X` and `PMPI_X`; it looks the window up, hands the arguments on, and answers with an error
//! code through the right error handler. `exported.txt` lists all symbols; a test compares.
//!
//! Handles come as register-sized integers whatever the ABI; see `mpi::host`. A window that the MPI
//! underneath carries out gets the very same call there. Never may an entry call another exported
//! one: a profiler may stand in between.
//!
//! Entries, callbacks of the program and functions of the MPI underneath are `extern "C-unwind"`:
//! an exception that leaves a callback of the program passes through, and what the entry held is
//! dropped. A panic of this library ends the process (`sys::process::end_at_panics`).

#![allow(non_camel_case_types, non_snake_case, clippy::missing_safety_doc)]

#[macro_use]
mod card;
mod answer;
mod aside;
mod attributes;
mod begin;
mod counts;
mod create;
mod cxx;
mod describe;
mod errhandler;
mod fortran;
mod integer;
mod memory;
mod mpix;
mod notify;
mod reason;
mod request;
mod session;
mod synchronise;
mod tool;
mod transfer;

use core::ffi::{c_char, c_int, c_void};

/// A window handle: 32 bits in the MPICH ABI, a pointer elsewhere.
pub type MPI_Win = usize;
/// A communicator handle.
pub type MPI_Comm = usize;
/// A group handle.
pub type MPI_Group = usize;
/// A datatype handle.
pub type MPI_Datatype = usize;
/// An operation handle.
pub type MPI_Op = usize;
/// A request handle.
pub type MPI_Request = usize;
/// A session handle.
pub type MPI_Session = usize;
/// What a status points to.
pub type MPI_Status = crate::mpi::host::Status;
/// An info handle.
pub type MPI_Info = usize;
/// An error handler handle.
pub type MPI_Errhandler = usize;
/// An address or a difference of addresses.
pub type MPI_Aint = isize;
/// A count that is large enough for anything.
pub type MPI_Count = i64;
/// A Fortran INTEGER.
pub type MPI_Fint = c_int;

/// What a user's copy callback of a window attribute points to.
pub type MPI_Win_copy_attr_function = c_void;
/// What a user's delete callback of a window attribute points to.
pub type MPI_Win_delete_attr_function = c_void;
/// What a user's error handler of a window points to.
pub type MPI_Win_errhandler_function = c_void;

/// What `strings` finds in the file, so that scripts know the version without loading it.
const NAMED: &str = concat!("libfompi version ", env!("CARGO_PKG_VERSION"), "\0");
/// Where the number begins.
const NUMBER: usize = NAMED.len() - env!("CARGO_PKG_VERSION").len() - 1;

/// The version of this library, as FOMPI_VERSION in fompi.h.
#[unsafe(no_mangle)]
pub extern "C-unwind" fn fompi_version() -> *const c_char {
    NAMED[NUMBER..].as_ptr().cast()
}
