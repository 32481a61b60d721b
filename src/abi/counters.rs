//! The counters of notified operations (issue 59 of the MPI Forum): their number, their values, and
//! waits for them. The operations are in `notified_calls`.

use super::answer::{check_output, code_with_reason, on_window};
use super::reason;
use super::{MPI_Count, MPI_Info, MPI_Request, MPI_Win};
use crate::error::{Error, Result};
use crate::messages;
use crate::mpi::hints::COUNTERS;
use crate::mpi::{Host, grequests};
use crate::window::{LocalWindow, Window};
use core::ffi::c_int;

/// The answer for a window of the host MPI, which has no counters.
pub(super) fn unsupported() -> Result<()> {
    Err(Error::Wrong(&messages::NO_NOTIFICATIONS))
}

/// Checks a number of counters that a rank asks for.
pub(super) fn number(window: &Window, number: c_int) -> Result<u32> {
    let wrong = || Error::Argument(&messages::COUNTERS, i64::from(number));
    let asserted = window.info.lock().number(COUNTERS).filter(|most| *most > 0);
    let checked = u32::try_from(number).map_err(|_| wrong())?;
    match asserted {
        Some(most) if u64::from(checked) > most => Err(wrong()),
        _ => Ok(checked),
    }
}

/// Stores the value of a counter of this process, which may be polled.
///
/// # Safety
/// `value` points to a count, or is null.
pub(super) unsafe fn store_value(
    (window, node): (&Window, &LocalWindow),
    index: c_int,
    value: *mut MPI_Count,
) -> Result<()> {
    check_output(value)?;
    let found = window.polled_notify_value(node, index.into())?;
    // SAFETY: guaranteed by the caller.
    unsafe { value.write(found) };
    Ok(())
}

/// Stores a request that is complete once a counter of this process has reached a threshold.
///
/// # Safety
/// `request` points to a request handle, or is null.
pub(super) unsafe fn store_request(
    call: &'static str,
    (host, window, node): (&'static Host, &Window, &LocalWindow),
    (index, threshold): (c_int, MPI_Count),
    request: *mut MPI_Request,
) -> Result<()> {
    check_output(request)?;
    let work = window.notify_request(node, index.into(), threshold)?;
    if !work.is_reached() {
        if grequests::are_possible(host) {
            let code = (call, code_with_reason as grequests::Code);
            // SAFETY: guaranteed by the caller.
            return unsafe { grequests::start(host, Box::new(work), code, request) };
        }
        // No call of the host MPI would advance the request.
        window.wait_notify(node, call, (index.into(), 1), threshold)?;
    }
    // SAFETY: guaranteed by the caller.
    unsafe { node.comm().completed_request(host, request) }
}

own_entries! {
    /// Gives this process counters for notified operations, all 0, in place of those that it has.
    /// Collective and synchronizing over the group of the window; each process gives a number of
    /// its own. No access epoch of this process is open. Indices are 0 to `number` minus 1. Errors:
    /// MPI_ERR_WIN, MPI_ERR_ARG for a number below 0 or above mpi_assert_max_num_notify,
    /// MPI_ERR_RMA_SYNC, MPI_ERR_NO_MEM, MPI_ERR_UNSUPPORTED_OPERATION on a window of the host MPI.
    /// An error of one process is an error of all, and the counters stay.
    FOMPI_Win_set_num_notify (win: MPI_Win, info: MPI_Info, number_of_counters: c_int) {
        let (call, host) = ("FOMPI_Win_set_num_notify", Host::get());
        // mpi_assert_same_num_notifications saves nothing here.
        let _ = info;
        on_window(call, host, win, |window, node| {
            window.set_counters(host, node, number(window, number_of_counters))
        }, |_| unsupported())
    }

    /// Returns the number of counters of a process of the window. Local, but for the first call of
    /// a process of another node. Errors: MPI_ERR_WIN, MPI_ERR_RANK, MPI_ERR_ARG for a null
    /// pointer.
    FOMPI_Win_get_num_notify (win: MPI_Win, rank: c_int, number_of_counters: *mut c_int) {
        let (call, host) = ("FOMPI_Win_get_num_notify", Host::get());
        on_window(call, host, win, |window, node| {
            check_output(number_of_counters)?;
            let counters = window.counters_of(node.target(rank)?)?;
            // SAFETY: the caller's pointer.
            unsafe { number_of_counters.write(counters.cast_signed()) };
            Ok(())
        }, |_| unsupported())
    }

    /// Returns the value of a counter of this process: the notifications since its last reset. What
    /// the counted operations have stored is visible to this process, as after MPI_Win_sync.
    /// Errors: MPI_ERR_WIN, FOMPI_ERR_RMA_NOTIFICATION, MPI_ERR_ARG for a null pointer.
    FOMPI_Win_get_notify_value (win: MPI_Win, index: c_int, value: *mut MPI_Count) {
        let (call, host) = ("FOMPI_Win_get_notify_value", Host::get());
        on_window(call, host, win, |window, node| {
            // SAFETY: the caller's pointer.
            unsafe { store_value((window, node), index, value) }
        }, |_| unsupported())
    }

    /// Sets a counter of this process to 0 and returns its value before; no notification is lost.
    /// Errors: those of FOMPI_Win_get_notify_value.
    FOMPI_Win_reset_notify_value (win: MPI_Win, index: c_int, value: *mut MPI_Count) {
        let (call, host) = ("FOMPI_Win_reset_notify_value", Host::get());
        on_window(call, host, win, |window, node| {
            check_output(value)?;
            let before = window.set_notify_value(node, index.into(), 0)?;
            // SAFETY: the caller's pointer.
            unsafe { value.write(before) };
            Ok(())
        }, |_| unsupported())
    }

    /// Waits until a counter of this process has reached a threshold. The thread spins for up to
    /// about a millisecond where it has a core, then sleeps until a notification comes. Errors:
    /// those of FOMPI_Win_get_notify_value, MPI_ERR_OTHER if a process of the window is lost.
    FOMPI_Win_wait_notify (win: MPI_Win, index: c_int, threshold: MPI_Count) {
        let (call, host) = ("FOMPI_Win_wait_notify", Host::get());
        on_window(call, host, win, |window, node| {
            window.wait_notify(node, call, (index.into(), 1), threshold).map(drop)
        }, |_| unsupported())
    }

    /// Waits until one of the counters `first` to `first` plus `number` minus 1 of this process has
    /// reached a threshold, and returns its index: the lowest one, if there are several. Errors:
    /// those of FOMPI_Win_wait_notify, MPI_ERR_ARG for a number below 1.
    FOMPI_Win_wait_any_notify (
        win: MPI_Win, first: c_int, number_of_counters: c_int, threshold: MPI_Count,
        index: *mut c_int,
    ) {
        let (call, host) = ("FOMPI_Win_wait_any_notify", Host::get());
        on_window(call, host, win, |window, node| {
            check_output(index)?;
            if number_of_counters < 1 {
                return Err(Error::Argument(&messages::COUNTERS, number_of_counters.into()));
            }
            let counters = (first.into(), number_of_counters.into());
            let found = window.wait_notify(node, call, counters, threshold)?;
            // SAFETY: the caller's pointer.
            unsafe { index.write(found.cast_signed()) };
            Ok(())
        }, |_| unsupported())
    }

    /// Returns a request that is complete once a counter of this process has reached a threshold.
    /// Errors: those of FOMPI_Win_wait_notify.
    FOMPI_Win_notify_request (
        win: MPI_Win, index: c_int, threshold: MPI_Count, request: *mut MPI_Request,
    ) {
        let (call, host) = ("FOMPI_Win_notify_request", Host::get());
        on_window(call, host, win, |window, node| {
            // SAFETY: the caller's pointer to a request.
            unsafe { store_request(call, (host, window, node), (index, threshold), request) }
        }, |_| unsupported())
    }
}

/// Returns the error class FOMPI_ERR_RMA_NOTIFICATION: an index of a counter that a process does
/// not have. MPI_Init has been called. Not an MPI function; raises no error.
#[unsafe(no_mangle)]
pub extern "C-unwind" fn fompi_err_rma_notification() -> c_int {
    let host = Host::get();
    reason::NOTIFICATION.class(host, host.constants.class(crate::error::Class::Other))
}
