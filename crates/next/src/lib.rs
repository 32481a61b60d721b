//! `libfompi_next.so`: the notified operations of the MPI Forum's proposal (issue 59) under its
//! MPI_ and PMPI_ names, for programs that are linked with these. Each entry calls the function of
//! libfompi.so that does the work: `MPI_Put_notify` calls `FOMPI_Put_notify`, `mpi_put_notify_` of
//! Fortran calls `fompi_put_notify_`.
//!
//! The names stand in a library of their own, because an MPI that has the functions must be able to
//! serve them: without this library, no such name is visible in a process. Invariant: an entry
//! looks at none of its arguments, which are integers and pointers.

// The proposal states the duties of callers.
#![allow(non_snake_case, clippy::missing_safety_doc)]

use core::ffi::{CStr, c_int};
use std::io::Write;
use std::sync::OnceLock;

/// Returns the address of a function of libfompi.so. Ends the process, and so the job, if no
/// library has it.
#[cold]
fn look_up(name: &CStr) -> usize {
    // SAFETY: a C string; the answer is an address or null.
    let address = unsafe { libc::dlsym(libc::RTLD_DEFAULT, name.as_ptr()) }.addr();
    if address == 0 {
        let name = name.to_string_lossy();
        let line = format!(
            "libfompi_next.so: {name}: no library has this function; start the program with \
             `fompirun --mpi-next`, or preload libfompi.so of the same version, too\n"
        );
        // In one call: other ranks write there, too. The process ends with or without the line.
        let _ = std::io::stderr().write_all(line.as_bytes());
        std::process::abort();
    }
    address
}

/// The type of an argument: each one is passed as a register is.
macro_rules! word {
    ($argument:ident) => {
        usize
    };
}

/// Entries: the names in the proposal, the function of libfompi, a name for each argument, and the
/// type of the answer.
macro_rules! forward {
    ($($mpi:ident $pmpi:ident = $ours:literal ($($argument:ident)*) $(-> $answer:ty)?;)*) => {$(
        forward! { @entry $mpi = $ours ($($argument)*) $(-> $answer)? }
        forward! { @entry $pmpi = $ours ($($argument)*) $(-> $answer)? }
    )*};
    (@entry $entry:ident = $ours:literal ($($argument:ident)*) $(-> $answer:ty)?) => {
        /// Calls the function of libfompi.so with its own arguments.
        #[unsafe(no_mangle)]
        pub unsafe extern "C-unwind" fn $entry($($argument: usize),*) $(-> $answer)? {
            type Called = unsafe extern "C-unwind" fn($(word!($argument)),*) $(-> $answer)?;
            static ADDRESS: OnceLock<usize> = OnceLock::new();
            let address = *ADDRESS.get_or_init(|| look_up($ours));
            // SAFETY: the function has this type, as arguments are integers and pointers.
            let function: Called = unsafe { core::mem::transmute(address) };
            // SAFETY: the arguments of the caller.
            unsafe { function($($argument),*) }
        }
    };
}

forward! {
    MPI_Put_notify PMPI_Put_notify = c"FOMPI_Put_notify" (a b c d e f g h i) -> c_int;
    MPI_Put_notify_c PMPI_Put_notify_c = c"FOMPI_Put_notify_c" (a b c d e f g h i) -> c_int;
    MPI_Rput_notify PMPI_Rput_notify = c"FOMPI_Rput_notify" (a b c d e f g h i j) -> c_int;
    MPI_Rput_notify_c PMPI_Rput_notify_c = c"FOMPI_Rput_notify_c" (a b c d e f g h i j) -> c_int;
    MPI_Get_notify PMPI_Get_notify = c"FOMPI_Get_notify" (a b c d e f g h i) -> c_int;
    MPI_Get_notify_c PMPI_Get_notify_c = c"FOMPI_Get_notify_c" (a b c d e f g h i) -> c_int;
    MPI_Rget_notify PMPI_Rget_notify = c"FOMPI_Rget_notify" (a b c d e f g h i j) -> c_int;
    MPI_Rget_notify_c PMPI_Rget_notify_c = c"FOMPI_Rget_notify_c" (a b c d e f g h i j) -> c_int;
    MPI_Accumulate_notify PMPI_Accumulate_notify = c"FOMPI_Accumulate_notify"
        (a b c d e f g h i j) -> c_int;
    MPI_Accumulate_notify_c PMPI_Accumulate_notify_c = c"FOMPI_Accumulate_notify_c"
        (a b c d e f g h i j) -> c_int;
    MPI_Raccumulate_notify PMPI_Raccumulate_notify = c"FOMPI_Raccumulate_notify"
        (a b c d e f g h i j k) -> c_int;
    MPI_Raccumulate_notify_c PMPI_Raccumulate_notify_c = c"FOMPI_Raccumulate_notify_c"
        (a b c d e f g h i j k) -> c_int;
    MPI_Get_accumulate_notify PMPI_Get_accumulate_notify = c"FOMPI_Get_accumulate_notify"
        (a b c d e f g h i j k l m) -> c_int;
    MPI_Get_accumulate_notify_c PMPI_Get_accumulate_notify_c = c"FOMPI_Get_accumulate_notify_c"
        (a b c d e f g h i j k l m) -> c_int;
    MPI_Rget_accumulate_notify PMPI_Rget_accumulate_notify = c"FOMPI_Rget_accumulate_notify"
        (a b c d e f g h i j k l m n) -> c_int;
    MPI_Rget_accumulate_notify_c PMPI_Rget_accumulate_notify_c = c"FOMPI_Rget_accumulate_notify_c"
        (a b c d e f g h i j k l m n) -> c_int;
    MPI_Win_set_num_notify PMPI_Win_set_num_notify = c"FOMPI_Win_set_num_notify" (a b c) -> c_int;
    MPI_Win_get_num_notify PMPI_Win_get_num_notify = c"FOMPI_Win_get_num_notify" (a b c) -> c_int;
    MPI_Win_get_notify_value PMPI_Win_get_notify_value = c"FOMPI_Win_get_notify_value"
        (a b c) -> c_int;
    MPI_Win_reset_notify_value PMPI_Win_reset_notify_value = c"FOMPI_Win_reset_notify_value"
        (a b c) -> c_int;

    // Of Fortran: by reference, with the error code as the last argument.
    mpi_put_notify_ pmpi_put_notify_ = c"fompi_put_notify_" (a b c d e f g h i j);
    mpi_get_notify_ pmpi_get_notify_ = c"fompi_get_notify_" (a b c d e f g h i j);
    mpi_accumulate_notify_ pmpi_accumulate_notify_ = c"fompi_accumulate_notify_"
        (a b c d e f g h i j k);
    mpi_get_accumulate_notify_ pmpi_get_accumulate_notify_ = c"fompi_get_accumulate_notify_"
        (a b c d e f g h i j k l m n);
    mpi_rput_notify_ pmpi_rput_notify_ = c"fompi_rput_notify_" (a b c d e f g h i j k);
    mpi_rget_notify_ pmpi_rget_notify_ = c"fompi_rget_notify_" (a b c d e f g h i j k);
    mpi_raccumulate_notify_ pmpi_raccumulate_notify_ = c"fompi_raccumulate_notify_"
        (a b c d e f g h i j k l);
    mpi_rget_accumulate_notify_ pmpi_rget_accumulate_notify_ = c"fompi_rget_accumulate_notify_"
        (a b c d e f g h i j k l m n o);
    mpi_win_set_num_notify_ pmpi_win_set_num_notify_ = c"fompi_win_set_num_notify_" (a b c d);
    mpi_win_get_num_notify_ pmpi_win_get_num_notify_ = c"fompi_win_get_num_notify_" (a b c d);
    mpi_win_get_notify_value_ pmpi_win_get_notify_value_ = c"fompi_win_get_notify_value_" (a b c d);
    mpi_win_reset_notify_value_ pmpi_win_reset_notify_value_ = c"fompi_win_reset_notify_value_"
        (a b c d);
}
