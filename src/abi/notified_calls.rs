//! Notified communication calls (issue 59 of the MPI Forum): each is a communication call with one
//! more argument, the index of a counter of the target, directly ahead of the window. The operation
//! adds 1 to that counter, behind its data. The names are libfompi's own: the proposal's MPI_ names
//! become these where a program includes `fompi_mpi_next.h` or runs with `libfompi_next.so`. The
//! counters are in `counters`.

use super::counters::unsupported;
use super::request_calls::with_request;
use super::transfer::{
    Call, accumulate, buffer, compare_and_swap, fetch_and_op, passed, target, transfer,
};
use super::{MPI_Aint, MPI_Count, MPI_Datatype, MPI_Op, MPI_Request, MPI_Win};
use crate::fabric::Way;
use crate::transfer::{Quick, single};
use crate::window::notifications::Notified;
use core::ffi::{c_int, c_void};

/// Rows of notified puts and gets: name, type of the origin, type of the counts, and `request` if
/// the call has one.
macro_rules! notified_puts_and_gets {
    ($(
        $(#[$doc:meta])*
        $name:ident ($pointer:ty, $count:ty $(, $request:ident)?) = $kind:ident;
    )*) => {$( own_entry! {
        $(#[$doc])*
        $name (
            origin: $pointer, origin_count: $count, origin_type: MPI_Datatype, rank: c_int,
            disp: MPI_Aint, target_count: $count, target_type: MPI_Datatype, index: c_int,
            win: MPI_Win, $($request: *mut MPI_Request,)?
        ) {
            // As in `puts_and_gets!`.
            let same_type =
                origin_count == target_count && origin_type == target_type && !origin.is_null();
            let from = passed(origin, origin_count.into(), origin_type);
            let to = if same_type { Quick::open(win, rank, ENTRY) } else { None };
            to.and_then(|to| {
                let counter = to.counter(rank, index)?;
                // SAFETY: the caller's buffer.
                run!(with_request, to [$($request)?] unsafe {
                    to.transfer_here(Way::$kind, from, disp as i64)
                })?;
                counter.notify_mapped();
                Some(())
            }).is_some()
        } {
            let (request, notified) = (optional!($($request)?), Some((Notified::$kind, index)));
            let call = Call { request, notified, ..Call::plain(stringify!($name), rank, win) };
            let host = call.host;
            let buffer = buffer(host, origin, origin_count.into(), origin_type);
            let target = target(host, rank, disp, target_count.into(), target_type);
            // SAFETY: the caller's buffer.
            let ours = |place| unsafe { transfer(place, Way::$kind, buffer, target) };
            call.carry_out(ours, |_| unsupported())
        }
    } )*};
}

/// Rows of notified accumulates.
macro_rules! notified_accumulates {
    ($(
        $(#[$doc:meta])* $name:ident ($count:ty $(, $request:ident)?);
    )*) => {$( own_entry! {
        $(#[$doc])*
        $name (
            origin: *const c_void, origin_count: $count, origin_type: MPI_Datatype, rank: c_int,
            disp: MPI_Aint, target_count: $count, target_type: MPI_Datatype, op: MPI_Op,
            index: c_int, win: MPI_Win, $($request: *mut MPI_Request,)?
        ) {
            let is_one = origin_count == 1 && target_count == 1 && !origin.is_null();
            let same_type = is_one && origin_type == target_type;
            let to = if same_type { Quick::open(win, rank, ENTRY) } else { None };
            to.and_then(|to| {
                let counter = to.counter(rank, index)?;
                let what = (disp as i64, origin_type, op);
                // SAFETY: the caller's buffer.
                run!(with_request, to [$($request)?] unsafe {
                    single::accumulate_quick(&to, origin.cast(), what)
                })?;
                counter.notify_mapped();
                Some(())
            }).is_some()
        } {
            let (kind, request) = (Notified::Accumulate, optional!($($request)?));
            let notified = Some((kind, index));
            let call = Call { request, notified, ..Call::plain(stringify!($name), rank, win) };
            let host = call.host;
            let from = buffer(host, origin, origin_count.into(), origin_type);
            let target = target(host, rank, disp, target_count.into(), target_type);
            // SAFETY: the caller's buffer.
            unsafe { accumulate(call, (from, None), target, op, |_| unsupported()) }
        }
    } )*};
}

/// Rows of notified accumulates with a result.
macro_rules! notified_get_accumulates {
    ($(
        $(#[$doc:meta])* $name:ident ($count:ty $(, $request:ident)?);
    )*) => {$( own_entries! {
        $(#[$doc])*
        $name (
            origin: *const c_void, origin_count: $count, origin_type: MPI_Datatype,
            result: *mut c_void, result_count: $count, result_type: MPI_Datatype, rank: c_int,
            disp: MPI_Aint, target_count: $count, target_type: MPI_Datatype, op: MPI_Op,
            index: c_int, win: MPI_Win, $($request: *mut MPI_Request,)?
        ) {
            let (kind, request) = (Notified::Accumulate, optional!($($request)?));
            let notified = Some((kind, index));
            let call = Call { request, notified, ..Call::plain(stringify!($name), rank, win) };
            let host = call.host;
            let from = buffer(host, origin, origin_count.into(), origin_type);
            let result = buffer(host, result, result_count.into(), result_type);
            let target = target(host, rank, disp, target_count.into(), target_type);
            let theirs = |_| unsupported();
            // SAFETY: the caller's buffers.
            unsafe { accumulate(call, (from, Some(result)), target, op, theirs) }
        }
    } )*};
}

notified_puts_and_gets! {
    /// Transfers data to a target, as MPI_Put, and adds 1 to a counter of the target behind them: a
    /// target that reads the new value may read the data. Only for passive target epochs. Complete
    /// at the target, notification included, after a flush. Errors: those of MPI_Put,
    /// FOMPI_ERR_RMA_NOTIFICATION for an index that the target does not have, MPI_ERR_RMA_SYNC
    /// outside of a passive target epoch.
    FOMPI_Put_notify (*const c_void, c_int) = Put;

    /// Transfers data to a target, as FOMPI_Put_notify, with large counts. Errors: those of
    /// FOMPI_Put_notify.
    FOMPI_Put_notify_c (*const c_void, MPI_Count) = Put;

    /// Transfers data to a target, as FOMPI_Put_notify, with a request, which is complete when the
    /// buffer may be reused: the notification may come later. Errors: those of FOMPI_Put_notify.
    FOMPI_Rput_notify (*const c_void, c_int, request) = Put;

    /// Transfers data to a target, as FOMPI_Rput_notify, with large counts. Errors: those of
    /// FOMPI_Put_notify.
    FOMPI_Rput_notify_c (*const c_void, MPI_Count, request) = Put;

    /// Transfers data from a target, as MPI_Get, and adds 1 to a counter of the target behind the
    /// reads: a target that reads the new value may change the data. Only for passive target
    /// epochs. Errors: those of FOMPI_Put_notify.
    FOMPI_Get_notify (*mut c_void, c_int) = Get;

    /// Transfers data from a target, as FOMPI_Get_notify, with large counts. Errors: those of
    /// FOMPI_Put_notify.
    FOMPI_Get_notify_c (*mut c_void, MPI_Count) = Get;

    /// Transfers data from a target, as FOMPI_Get_notify, with a request, which is complete when
    /// the data have arrived. Errors: those of FOMPI_Put_notify.
    FOMPI_Rget_notify (*mut c_void, c_int, request) = Get;

    /// Transfers data from a target, as FOMPI_Rget_notify, with large counts. Errors: those of
    /// FOMPI_Put_notify.
    FOMPI_Rget_notify_c (*mut c_void, MPI_Count, request) = Get;
}

notified_accumulates! {
    /// Combines origin data with target data, as MPI_Accumulate, and adds 1 to a counter of the
    /// target behind that. Only for passive target epochs. Errors: those of MPI_Accumulate and
    /// FOMPI_Put_notify.
    FOMPI_Accumulate_notify (c_int);

    /// Combines origin data with target data, as FOMPI_Accumulate_notify, with large counts.
    /// Errors: those of FOMPI_Accumulate_notify.
    FOMPI_Accumulate_notify_c (MPI_Count);

    /// Combines origin data with target data, as FOMPI_Accumulate_notify, with a request, which is
    /// complete when the buffer may be reused. Errors: those of FOMPI_Accumulate_notify.
    FOMPI_Raccumulate_notify (c_int, request);

    /// Combines origin data with target data, as FOMPI_Raccumulate_notify, with large counts.
    /// Errors: those of FOMPI_Accumulate_notify.
    FOMPI_Raccumulate_notify_c (MPI_Count, request);
}

notified_get_accumulates! {
    /// Returns data of a target and combines them, as MPI_Get_accumulate, and adds 1 to a counter
    /// of the target behind that. Only for passive target epochs. Errors: those of
    /// MPI_Get_accumulate and FOMPI_Put_notify.
    FOMPI_Get_accumulate_notify (c_int);

    /// Returns data of a target and combines them, as FOMPI_Get_accumulate_notify, with large
    /// counts. Errors: those of FOMPI_Get_accumulate_notify.
    FOMPI_Get_accumulate_notify_c (MPI_Count);

    /// Returns data of a target and combines them, as FOMPI_Get_accumulate_notify, with a request,
    /// which is complete when the result has arrived. Errors: those of FOMPI_Get_accumulate_notify.
    FOMPI_Rget_accumulate_notify (c_int, request);

    /// Returns data of a target and combines them, as FOMPI_Rget_accumulate_notify, with large
    /// counts. Errors: those of FOMPI_Get_accumulate_notify.
    FOMPI_Rget_accumulate_notify_c (MPI_Count, request);
}

own_entries! {
    /// Returns one element of a target and combines it, as MPI_Fetch_and_op, with a request (issue
    /// 128 of the MPI Forum), which is complete when the result has arrived. Only for passive
    /// target epochs. Errors: those of MPI_Fetch_and_op, MPI_ERR_ARG for a null pointer as the
    /// request.
    FOMPI_Rfetch_and_op (
        origin: *const c_void, result: *mut c_void, datatype: MPI_Datatype, rank: c_int,
        disp: MPI_Aint, op: MPI_Op, win: MPI_Win, request: *mut MPI_Request,
    ) {
        let call = Call::plain("FOMPI_Rfetch_and_op", rank, win);
        let target = target(call.host, rank, disp, 1, datatype);
        let call = Call { request: Some(request), ..call };
        call.carry_out(|place| {
            // SAFETY: the caller's buffers.
            unsafe { fetch_and_op(place, (origin, result), target, op) }?;
            place.wait_for_results(rank)
        }, |_| unsupported())
    }

    /// Returns one element of a target and replaces it if it equals `compare`, as
    /// MPI_Compare_and_swap, with a request (issue 128 of the MPI Forum), which is complete when
    /// the result has arrived. Only for passive target epochs. Errors: those of
    /// MPI_Compare_and_swap, MPI_ERR_ARG for a null pointer as the request.
    FOMPI_Rcompare_and_swap (
        origin: *const c_void, compare: *const c_void, result: *mut c_void,
        datatype: MPI_Datatype, rank: c_int, disp: MPI_Aint, win: MPI_Win,
        request: *mut MPI_Request,
    ) {
        let call = Call::plain("FOMPI_Rcompare_and_swap", rank, win);
        let target = target(call.host, rank, disp, 1, datatype);
        let call = Call { request: Some(request), ..call };
        call.carry_out(|place| {
            // SAFETY: the caller's buffers.
            unsafe { compare_and_swap(place, (origin, compare, result), target) }?;
            place.wait_for_results(rank)
        }, |_| unsupported())
    }
}
