//! Notified operations and their counters for Fortran: the entries to which the module in
//! `fortran/fompi.f90` binds, and those that `libfompi_next.so` calls from `mpi_put_notify_` and so
//! on. All arguments are by reference, handles are integers, and the error code is the last
//! argument. Each converts the handles as the host MPI's own binding does and calls the function of
//! C. MPI_BOTTOM of Fortran is not known here.

use super::counters::{
    FOMPI_Win_get_notify_value, FOMPI_Win_get_num_notify, FOMPI_Win_notify_request,
    FOMPI_Win_reset_notify_value, FOMPI_Win_set_num_notify, FOMPI_Win_wait_any_notify,
    FOMPI_Win_wait_notify,
};
use super::integer::window_from_fortran;
use super::notified_calls::{
    FOMPI_Accumulate_notify, FOMPI_Accumulate_notify_c, FOMPI_Get_accumulate_notify,
    FOMPI_Get_accumulate_notify_c, FOMPI_Get_notify, FOMPI_Get_notify_c, FOMPI_Put_notify,
    FOMPI_Put_notify_c, FOMPI_Raccumulate_notify, FOMPI_Raccumulate_notify_c,
    FOMPI_Rcompare_and_swap, FOMPI_Rfetch_and_op, FOMPI_Rget_accumulate_notify,
    FOMPI_Rget_accumulate_notify_c, FOMPI_Rget_notify, FOMPI_Rget_notify_c, FOMPI_Rput_notify,
    FOMPI_Rput_notify_c,
};
use super::pass_through::{self, window_from_fortran as window_from_mpi};
use super::{MPI_Aint, MPI_Count, MPI_Fint, MPI_Request};
use crate::messages::{self, filled};
use crate::mpi::Host;
use crate::number::Number;
use core::ffi::{CStr, c_int, c_void};

/// Returns the handle of an integer, by a conversion of the host MPI. An MPI without such a
/// function has integers as handles.
pub(super) fn handle(number: MPI_Fint, conversion: &CStr) -> usize {
    let host = Host::get();
    // SAFETY: all callers name a function of this type, with a handle in a register.
    let convert: Option<unsafe extern "C-unwind" fn(MPI_Fint) -> usize> =
        unsafe { host.extra(conversion) };
    // SAFETY: an integer that the host MPI assigned.
    convert.map_or(number.cast_unsigned().to_usize(), |convert| {
        // SAFETY: as above.
        host.handle(unsafe { convert(number) })
    })
}

/// Returns the integer of a request.
pub(super) fn request_number(request: MPI_Request) -> MPI_Fint {
    let host = Host::get();
    // SAFETY: the function of this name has this type, with a handle in a register.
    let convert: Option<unsafe extern "C-unwind" fn(usize) -> MPI_Fint> =
        unsafe { host.extra(c"PMPI_Request_c2f") };
    let request = host.handle(request);
    // SAFETY: a request of the host MPI.
    convert.map_or(request.low_u32().cast_signed(), |convert| unsafe { convert(request) })
}

/// The type of an argument of Fortran.
macro_rules! by_reference {
    (buffer) => { *mut c_void };
    (disp) => { *const MPI_Aint };
    (count) => { *const MPI_Count };
    (to_int) => { *mut c_int };
    (to_count) => { *mut MPI_Count };
    (mem) => { *const FOMPI_Mem };
    (to_mem) => { *mut FOMPI_Mem };
    (to_size) => { *mut MPI_Aint };
    ($handle_or_int:ident) => { *const MPI_Fint };
}

/// The argument of C for one of Fortran.
macro_rules! by_value {
    (buffer $argument:ident) => {
        $argument
    };
    (to_int $argument:ident) => {
        $argument
    };
    (to_count $argument:ident) => {
        $argument
    };
    (to_mem $argument:ident) => {
        $argument
    };
    (to_size $argument:ident) => {
        $argument
    };
    (datatype $argument:ident) => {
        handle(*$argument, c"PMPI_Type_f2c")
    };
    (op $argument:ident) => {
        handle(*$argument, c"PMPI_Op_f2c")
    };
    (info $argument:ident) => {
        handle(*$argument, c"PMPI_Info_f2c")
    };
    (win $argument:ident) => {
        window_from_fortran(*$argument)
    };
    ($number:ident $argument:ident) => {
        *$argument
    };
}

/// The argument that is the window; null: there is none.
macro_rules! number_among {
    () => { core::ptr::null::<MPI_Fint>() };
    (win $window:ident $($rest:ident)*) => { $window };
    ($kind:ident $argument:ident $($rest:ident)*) => { number_among!($($rest)*) };
}

/// Rows of entries: the message in pass-through mode, and for each the name, the function of C,
/// kind and name of each argument, and the argument for a request if there is one.
macro_rules! fortran_entries {
    ($message:ident: $(
        $name:ident = $function:ident ($($kind:ident $argument:ident),*) $([$request:ident])?;
    )*) => {$(
        fortran_entries! {
            @entry $message: $name = $function ($($kind $argument),*)
            ($($argument: by_reference!($kind),)* $($request: *mut MPI_Fint)?) [$($request)?]
        }
    )*};
    (@entry $message:ident: $name:ident = $function:ident ($($kind:ident $argument:ident),*)
     ($($all:ident: $type:ty),* $(,)?) [$($request:ident)?]) => {
        /// An entry of Fortran: see the top of this file.
        #[unsafe(no_mangle)]
        pub unsafe extern "C-unwind" fn $name($($all: $type,)* ierror: *mut MPI_Fint) {
            if pass_through::may_apply() {
                let number = number_among!($($kind $argument)*);
                // SAFETY: the caller's pointer to an INTEGER, or null.
                let number = unsafe { number.as_ref() };
                let window = |host: &_| number.map_or(0, |number| window_from_mpi(host, *number));
                let (name, text) = (stringify!($name), filled!(messages::$message));
                if let Some(code) = pass_through::refuse_own_with(name, &text, window) {
                    // SAFETY: the caller's pointer to an INTEGER.
                    return unsafe { ierror.write(code) };
                }
            }
            $(
                let number = $request;
                let mut $request: MPI_Request = 0;
            )?
            // SAFETY: the caller's arguments, and a local request.
            let code = unsafe {
                $function($(by_value!($kind $argument),)* $(&mut $request)?)
            };
            $(
                if code == 0 && $request != 0 {
                    // SAFETY: the caller's pointer to an INTEGER.
                    unsafe { number.write(request_number($request)) };
                }
            )?
            // SAFETY: the caller's pointer to an INTEGER.
            unsafe { ierror.write(code) };
        }
    };
}

pub(super) use {by_reference, by_value, fortran_entries, number_among};

/// Rows of the transfers with one list of arguments and one kind of counts: name, function of C,
/// and the argument for a request if there is one.
macro_rules! fortran_transfers {
    (puts and gets $count:ident: $($name:ident = $function:ident $([$request:ident])?;)*) => {
        fortran_entries! { NO_NOTIFICATIONS: $( $name = $function (
            buffer origin, $count origin_count, datatype origin_type, int rank, disp disp,
            $count target_count, datatype target_type, int index, win win) $([$request])?;
        )*}
    };
    (accumulates $count:ident: $($name:ident = $function:ident $([$request:ident])?;)*) => {
        fortran_entries! { NO_NOTIFICATIONS: $( $name = $function (
            buffer origin, $count origin_count, datatype origin_type, int rank, disp disp,
            $count target_count, datatype target_type, op op, int index, win win) $([$request])?;
        )*}
    };
    (get_accumulates $count:ident: $($name:ident = $function:ident $([$request:ident])?;)*) => {
        fortran_entries! { NO_NOTIFICATIONS: $( $name = $function (
            buffer origin, $count origin_count, datatype origin_type, buffer result,
            $count result_count, datatype result_type, int rank, disp disp, $count target_count,
            datatype target_type, op op, int index, win win) $([$request])?;
        )*}
    };
}

fortran_transfers! { puts and gets int:
    fompi_put_notify_ = FOMPI_Put_notify;
    fompi_get_notify_ = FOMPI_Get_notify;
    fompi_rput_notify_ = FOMPI_Rput_notify [request];
    fompi_rget_notify_ = FOMPI_Rget_notify [request];
}
fortran_transfers! { puts and gets count:
    fompi_put_notify_c_ = FOMPI_Put_notify_c;
    fompi_get_notify_c_ = FOMPI_Get_notify_c;
    fompi_rput_notify_c_ = FOMPI_Rput_notify_c [request];
    fompi_rget_notify_c_ = FOMPI_Rget_notify_c [request];
}
fortran_transfers! { accumulates int:
    fompi_accumulate_notify_ = FOMPI_Accumulate_notify;
    fompi_raccumulate_notify_ = FOMPI_Raccumulate_notify [request];
}
fortran_transfers! { accumulates count:
    fompi_accumulate_notify_c_ = FOMPI_Accumulate_notify_c;
    fompi_raccumulate_notify_c_ = FOMPI_Raccumulate_notify_c [request];
}
fortran_transfers! { get_accumulates int:
    fompi_get_accumulate_notify_ = FOMPI_Get_accumulate_notify;
    fompi_rget_accumulate_notify_ = FOMPI_Rget_accumulate_notify [request];
}
fortran_transfers! { get_accumulates count:
    fompi_get_accumulate_notify_c_ = FOMPI_Get_accumulate_notify_c;
    fompi_rget_accumulate_notify_c_ = FOMPI_Rget_accumulate_notify_c [request];
}

fortran_entries! { NO_NOTIFICATIONS:
    fompi_rfetch_and_op_ = FOMPI_Rfetch_and_op (
        buffer origin, buffer result, datatype datatype, int rank, disp disp, op op,
        win win) [request];
    fompi_rcompare_and_swap_ = FOMPI_Rcompare_and_swap (
        buffer origin, buffer compare, buffer result, datatype datatype, int rank, disp disp,
        win win) [request];
    fompi_win_set_num_notify_ = FOMPI_Win_set_num_notify (win win, info info, int number);
    fompi_win_get_num_notify_ = FOMPI_Win_get_num_notify (win win, int rank, to_int number);
    fompi_win_get_notify_value_ = FOMPI_Win_get_notify_value (win win, int index, to_count value);
    fompi_win_reset_notify_value_ = FOMPI_Win_reset_notify_value (
        win win, int index, to_count value);
    fompi_win_wait_notify_ = FOMPI_Win_wait_notify (win win, int index, count threshold);
    fompi_win_wait_any_notify_ = FOMPI_Win_wait_any_notify (
        win win, int first, int number, count threshold, to_int index);
    fompi_win_notify_request_ = FOMPI_Win_notify_request (
        win win, int index, count threshold) [request];
}
