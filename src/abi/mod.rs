//! The exported symbols; no other room exports any. One `entry!` per MPI function makes `MPI_X` and
//! `PMPI_X`. It looks the window up, passes the arguments on, and returns an error code after it
//! has called the right error handler. `exported.txt` lists all symbols; a test compares the list
//! with the code.
//!
//! Handles arrive as register-sized integers whatever the ABI; see `mpi::host`. For a window that
//! the MPI underneath carries, the call is passed on to the function of that MPI: the docs of the
//! entries say what they do for the windows that this library carries. No entry may call another
//! exported function, because a profiler may intercept it. The standard states the duties of the
//! caller.
//!
//! Entries, callbacks of the program and functions of the MPI underneath are `extern "C-unwind"`:
//! an exception that leaves a callback of the program passes through, and everything that the entry
//! held is dropped. A panic of this library ends the process (`sys::process::end_at_panics`).

#![allow(non_camel_case_types, non_snake_case, clippy::missing_safety_doc)]

#[macro_use]
mod entry;
#[macro_use]
mod transfer_rows;
mod answer;
mod aside;
mod bare_fork;
mod begin;
mod cxx;
mod describe;
mod epochs;
mod errhandler;
mod errhandler_calls;
mod fortran;
mod integer;
mod keyvals;
mod loader_call;
mod memory;
mod mpix;
mod notify;
mod other_jobs;
mod reason;
mod request_calls;
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
/// A count that is large enough for anything.
pub type MPI_Count = i64;
/// A Fortran INTEGER.
pub type MPI_Fint = c_int;

/// The type of a copy callback of window attributes.
pub type MPI_Win_copy_attr_function = c_void;
/// The type of a delete callback of window attributes.
pub type MPI_Win_delete_attr_function = c_void;
/// The type of an error handler of windows.
pub type MPI_Win_errhandler_function = c_void;

/// The text that `strings` finds in the file, so that scripts know the version without loading it.
const NAMED: &str = concat!("libfompi version ", env!("CARGO_PKG_VERSION"), "\0");
/// The place of the number in it.
const NUMBER: usize = NAMED.len() - env!("CARGO_PKG_VERSION").len() - 1;

/// Returns the version of this library, as FOMPI_VERSION in fompi.h, which a program was compiled
/// with: "0.2.0" is a release, "0.3.0-dev" a build on the way to the next one. Not MPI; raises no
/// error.
#[unsafe(no_mangle)]
pub extern "C-unwind" fn fompi_version() -> *const c_char {
    NAMED[NUMBER..].as_ptr().cast()
}
