//! Memory handles, order and completion for Fortran: the entries to which the module in
//! `fortran/fompi.f90` binds. As in `fortran_notified`, arguments are by reference; a memory handle
//! is the address that it is in C.

use super::duplicates::{FOMPI_Win_dup, FOMPI_Win_from_mem};
use super::fortran_notified::{
    by_reference, by_value, fortran_entries, handle, number_among, request_number,
};
use super::handle_calls::{
    FOMPI_Complete, FOMPI_Mem, FOMPI_Mem_allocate, FOMPI_Mem_expose, FOMPI_Mem_pack,
    FOMPI_Mem_query, FOMPI_Mem_release, FOMPI_Mem_unpack, FOMPI_Mem_withdraw,
};
use super::handle_transfers::{
    FOMPI_Mem_accumulate, FOMPI_Mem_accumulate_scaled, FOMPI_Mem_compare_and_swap,
    FOMPI_Mem_fetch_and_op, FOMPI_Mem_get, FOMPI_Mem_put, FOMPI_Xfer, fompi_buffers,
};
use super::integer::window_from_fortran;
use super::ordering_calls::{FOMPI_Complete_collective, FOMPI_Win_order, nflush};
use super::pass_through::{self, window_from_fortran as window_from_mpi};
use super::{MPI_Aint, MPI_Count, MPI_Datatype, MPI_Fint, MPI_Info, MPI_Op, MPI_Request, MPI_Win};
use crate::messages::{self, filled};
use crate::mpi::Host;
use crate::mpi::transfer_attributes::BLOCKING;
use crate::number::Number;
use core::ffi::{c_int, c_void};
use core::ptr;

/// FOMPI_Xfer with its buffers as arguments. With FOMPI_BLOCKING there is no request.
///
/// # Safety
/// The caller's arguments, and `request` points to a request handle.
#[expect(clippy::too_many_arguments)] // those of Fortran
unsafe fn xfer(
    kind: c_int,
    op: MPI_Op,
    origin: *mut c_void,
    origin_count: MPI_Count,
    origin_type: MPI_Datatype,
    result: *mut c_void,
    result_count: MPI_Count,
    result_type: MPI_Datatype,
    compare: *mut c_void,
    mem: FOMPI_Mem,
    disp: MPI_Aint,
    count: MPI_Count,
    datatype: MPI_Datatype,
    attributes: c_int,
    request: *mut MPI_Request,
) -> c_int {
    let buffers = fompi_buffers {
        origin,
        origin_count,
        origin_type,
        result,
        result_count,
        result_type,
        compare,
    };
    let request = if attributes & BLOCKING != 0 { ptr::null_mut() } else { request };
    let buffers = &raw const buffers;
    // SAFETY: guaranteed by the caller.
    unsafe { FOMPI_Xfer(kind, op, buffers, mem, disp, count, datatype, attributes, request) }
}

/// FOMPI_Win_nflush with the integers of windows.
///
/// # Safety
/// `wins` is null or has `count` integers.
unsafe fn nflush_numbers(rank: MPI_Fint, count: MPI_Fint, wins: *mut c_void) -> c_int {
    let wins = wins.cast::<MPI_Fint>();
    // SAFETY: guaranteed by the caller.
    let window = |at: usize| window_from_fortran(unsafe { wins.add(at).read() });
    nflush(rank, count, wins.is_null(), |at| Host::get().handle(window(at)))
}

/// Stores the integer of a window that `make` has made: a handle of libfompi is its own integer.
/// Returns the code of `make`.
///
/// # Safety
/// `number` points to an INTEGER.
unsafe fn store_window(number: *mut c_void, make: impl FnOnce(*mut MPI_Win) -> c_int) -> c_int {
    let mut window: MPI_Win = 0;
    let code = make(&raw mut window);
    if code == 0 {
        // SAFETY: guaranteed by the caller.
        unsafe { number.cast::<MPI_Fint>().write(window.low_u32().cast_signed()) };
    }
    code
}

/// FOMPI_Win_dup with the integer of the duplicate.
///
/// # Safety
/// `newwin` points to an INTEGER.
unsafe fn dup(win: MPI_Win, info: MPI_Info, newwin: *mut c_void) -> c_int {
    // SAFETY: guaranteed by the caller, and a local window.
    unsafe { store_window(newwin, |made| FOMPI_Win_dup(win, info, made)) }
}

/// FOMPI_Win_from_mem with the integer of the window.
///
/// # Safety
/// `mems` has `count` handles, and `newwin` points to an INTEGER.
unsafe fn from_mem(count: c_int, mems: *mut c_void, info: MPI_Info, newwin: *mut c_void) -> c_int {
    // SAFETY: guaranteed by the caller, and a local window.
    unsafe { store_window(newwin, |made| FOMPI_Win_from_mem(count, mems.cast(), info, made)) }
}

fortran_entries! { NO_HANDLES:
    fompi_win_dup_ = dup (win win, info info, buffer newwin);
    fompi_win_from_mem_ = from_mem (int count, buffer mems, info info, buffer newwin);
    fompi_mem_expose_ = FOMPI_Mem_expose (
        buffer base, disp size, info info, win win, to_mem mem);
    fompi_mem_allocate_ = FOMPI_Mem_allocate (
        disp size, info info, win win, buffer baseptr, to_mem mem);
    fompi_mem_pack_ = FOMPI_Mem_pack (mem mem, buffer packed);
    fompi_mem_unpack_ = FOMPI_Mem_unpack (buffer packed, win win, to_mem mem);
    fompi_mem_query_ = FOMPI_Mem_query (mem mem, to_int rank, to_size size, buffer baseptr);
    fompi_mem_withdraw_ = FOMPI_Mem_withdraw (to_mem mem);
    fompi_mem_release_ = FOMPI_Mem_release (to_mem mem);
    fompi_complete_ = FOMPI_Complete (int rank, win win);
    fompi_complete_collective_ = FOMPI_Complete_collective (win win);
    fompi_win_order_ = FOMPI_Win_order (int rank, win win);
    fompi_win_nflush_ = nflush_numbers (int rank, int count, buffer wins);
    fompi_mem_put_ = FOMPI_Mem_put (
        buffer origin, count number, datatype datatype, mem mem, disp disp, int attributes);
    fompi_mem_get_ = FOMPI_Mem_get (
        buffer origin, count number, datatype datatype, mem mem, disp disp, int attributes);
    fompi_mem_accumulate_ = FOMPI_Mem_accumulate (
        buffer origin, count number, datatype datatype, mem mem, disp disp, op op,
        int attributes);
    fompi_mem_accumulate_scaled_ = FOMPI_Mem_accumulate_scaled (
        buffer factor, buffer origin, count number, datatype datatype, mem mem, disp disp,
        int attributes);
    fompi_mem_fetch_and_op_ = FOMPI_Mem_fetch_and_op (
        buffer origin, buffer result, datatype datatype, mem mem, disp disp, op op,
        int attributes);
    fompi_mem_compare_and_swap_ = FOMPI_Mem_compare_and_swap (
        buffer origin, buffer compare, buffer result, datatype datatype, mem mem, disp disp,
        int attributes);
    fompi_xfer_ = xfer (
        int kind, op op, buffer origin, count origin_count, datatype origin_type, buffer result,
        count result_count, datatype result_type, buffer compare, mem mem, disp disp,
        count number, datatype datatype, int attributes) [request];
}
