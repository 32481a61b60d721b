//! Memory handles for Fortran: the entries to which the module in `fortran/fompi.f90` binds. As in
//! `fortran_notified`, arguments are by reference; a memory handle is the address that it is in C.
//! FOMPI_Xfer, whose buffers are a structure of C, has no entry.

use super::fortran_notified::{by_reference, by_value, handle};
use super::handle_calls::{
    FOMPI_Complete, FOMPI_Mem, FOMPI_Mem_allocate, FOMPI_Mem_expose, FOMPI_Mem_pack,
    FOMPI_Mem_query, FOMPI_Mem_release, FOMPI_Mem_unpack, FOMPI_Mem_withdraw,
};
use super::handle_transfers::{
    FOMPI_Mem_accumulate, FOMPI_Mem_compare_and_swap, FOMPI_Mem_fetch_and_op, FOMPI_Mem_get,
    FOMPI_Mem_put,
};
use super::integer::window_from_fortran;
use super::pass_through::{self, window_from_fortran as window_from_mpi};
use super::{MPI_Aint, MPI_Count, MPI_Fint};
use crate::messages::{self, filled};
use core::ffi::{c_int, c_void};

/// Returns the code with which a call is refused in pass-through mode. `number`: the window, or 0.
fn refused(call: &str, number: MPI_Fint) -> Option<c_int> {
    if !pass_through::may_apply() {
        return None;
    }
    let window = |host: &_| if number == 0 { 0 } else { window_from_mpi(host, number) };
    pass_through::refuse_own_with(call, &filled!(messages::NO_HANDLES), window)
}

/// Rows of entries: name, function of C, the window, if there is one, and kind and name of each
/// argument.
macro_rules! fortran_entries_of_handles {
    ($(
        $name:ident = $function:ident [$($window:ident)?] ($($kind:ident $argument:ident),*);
    )*) => {$(
        /// An entry of Fortran: see the top of this file.
        #[unsafe(no_mangle)]
        pub unsafe extern "C-unwind" fn $name(
            $($argument: by_reference!($kind),)* ierror: *mut MPI_Fint,
        ) {
            let window: Option<*const MPI_Fint> = optional!($($window)?);
            // SAFETY: the caller's pointer to an INTEGER, if there is one.
            let number = window.map_or(0, |window| unsafe { *window });
            let code = match refused(stringify!($name), number) {
                Some(code) => code,
                // SAFETY: the caller's arguments.
                None => unsafe { $function($(by_value!($kind $argument)),*) },
            };
            // SAFETY: the caller's pointer to an INTEGER.
            unsafe { ierror.write(code) };
        }
    )*};
}

fortran_entries_of_handles! {
    fompi_mem_expose_ = FOMPI_Mem_expose [win] (
        buffer base, disp size, info info, win win, to_mem mem);
    fompi_mem_allocate_ = FOMPI_Mem_allocate [win] (
        disp size, info info, win win, buffer baseptr, to_mem mem);
    fompi_mem_pack_ = FOMPI_Mem_pack [] (mem mem, buffer packed);
    fompi_mem_unpack_ = FOMPI_Mem_unpack [win] (buffer packed, win win, to_mem mem);
    fompi_mem_query_ = FOMPI_Mem_query [] (
        mem mem, to_int rank, to_size size, buffer baseptr);
    fompi_mem_withdraw_ = FOMPI_Mem_withdraw [] (to_mem mem);
    fompi_mem_release_ = FOMPI_Mem_release [] (to_mem mem);
    fompi_complete_ = FOMPI_Complete [win] (int rank, win win);
    fompi_mem_put_ = FOMPI_Mem_put [] (
        buffer origin, count number, datatype datatype, mem mem, disp disp, int attributes);
    fompi_mem_get_ = FOMPI_Mem_get [] (
        buffer origin, count number, datatype datatype, mem mem, disp disp, int attributes);
    fompi_mem_accumulate_ = FOMPI_Mem_accumulate [] (
        buffer origin, count number, datatype datatype, mem mem, disp disp, op op,
        int attributes);
    fompi_mem_fetch_and_op_ = FOMPI_Mem_fetch_and_op [] (
        buffer origin, buffer result, datatype datatype, mem mem, disp disp, op op,
        int attributes);
    fompi_mem_compare_and_swap_ = FOMPI_Mem_compare_and_swap [] (
        buffer origin, buffer compare, buffer result, datatype datatype, mem mem, disp disp,
        int attributes);
}
