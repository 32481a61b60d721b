//! The exported symbols; no other module exports any. One `entry!` per MPI function defines `MPI_X`
//! and `PMPI_X`. An entry looks up the window, passes the arguments on, and returns an error code
//! after it has called the appropriate error handler. `exported.txt` lists all symbols; a test
//! compares the list with the code.
//!
//! Handles arrive as register-sized integers whatever the ABI; see `mpi::host`. A call on a
//! delegated window is passed on to the host MPI: the documentation of the entries covers the
//! windows that libfompi implements. No entry may call another exported function, because a
//! profiler may intercept it. The standard states the duties of the caller.
//!
//! Entries, callbacks of the program and functions of the host MPI are `extern "C-unwind"`: an
//! exception that leaves a callback of the program unwinds through the entry, which drops
//! everything that it holds. A panic of libfompi ends the process (`sys::process::end_at_panics`).

#![allow(non_camel_case_types, non_snake_case, clippy::missing_safety_doc)]

#[macro_use]
mod entry;
mod answer;
mod bare_fork;
mod counters;
mod cxx;
mod describe;
mod duplicates;
mod epochs;
mod errhandler;
mod errhandler_calls;
mod fortran;
mod fortran_handles;
mod fortran_notified;
mod handle_calls;
mod handle_transfers;
mod integer;
mod keyvals;
mod loader_call;
mod memory;
mod mpix;
mod notified_calls;
mod notify;
mod ordering_calls;
mod other_jobs;
mod pass_through;
mod reason;
mod request_calls;
mod startup_report;
#[cfg(not(fuzzing))] // the sanitizer sees each thread by a hook of its own
mod thread_call;
mod tool;
mod transfer;
mod verbs_counts;
mod windows;

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
/// The type of a status.
pub type MPI_Status = crate::mpi::host::Status;
/// An info handle.
pub type MPI_Info = usize;
/// An error handler handle.
pub type MPI_Errhandler = usize;
/// An address or a difference of addresses.
pub type MPI_Aint = isize;
/// A large count.
pub type MPI_Count = i64;
/// A Fortran INTEGER.
pub type MPI_Fint = c_int;

/// The type of a copy callback of window attributes.
pub type MPI_Win_copy_attr_function = c_void;
/// The type of a delete callback of window attributes.
pub type MPI_Win_delete_attr_function = c_void;
/// The type of an error handler of windows.
pub type MPI_Win_errhandler_function = c_void;

/// The text that `strings` finds in the file, so that scripts can read the version without loading
/// the library.
const NAMED: &str = concat!("libfompi version ", env!("CARGO_PKG_VERSION"), "\0");
/// The offset of the version number in it.
const NUMBER: usize = NAMED.len() - env!("CARGO_PKG_VERSION").len() - 1;

/// Returns the version of libfompi, in the form of FOMPI_VERSION in fompi.h, with which a program
/// was compiled: "0.2.0" is a release, "0.3.0-dev" a development version. Not an MPI function;
/// raises no error.
#[unsafe(no_mangle)]
pub extern "C-unwind" fn fompi_version() -> *const c_char {
    NAMED[NUMBER..].as_ptr().cast()
}
