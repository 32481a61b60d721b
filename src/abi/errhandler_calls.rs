//! Calls on error handlers of windows (MPI-4.1 §9.3). [`errhandler`](super::errhandler) defines a
//! handler and calls its function.

use super::answer::{check_output, code_with_reason, on_any_window, raise_alone};
use super::errhandler::{Function, handle, is_predefined, keep, record, release, set};
use super::{MPI_Errhandler, MPI_Win, MPI_Win_errhandler_function};
use crate::error::Error;
use crate::messages::{self, filled};
use crate::mpi::{Handle, Host};
use crate::report;
use crate::sync::Ordering;
use core::ffi::{c_int, c_void};

/// Creates an error handler.
///
/// # Safety
/// `errhandler` points to a handle.
pub(super) unsafe fn create(
    host: &Host,
    function: *mut c_void,
    errhandler: *mut MPI_Errhandler,
) -> c_int {
    if function.is_null() || errhandler.is_null() {
        let error = Error::Wrong(&messages::NULL_ERRHANDLER);
        return raise_alone("MPI_Win_create_errhandler", host, error);
    }
    let mut handler: Handle = 0;
    // SAFETY: the caller's function, and a local out parameter.
    let code = unsafe { (host.call.win_create_errhandler)(function, &mut handler) };
    if code == 0 {
        let handler = host.handle(handler);
        record(handler, Function::Standard(function.addr()));
        // SAFETY: the caller's pointer to a handle.
        unsafe { host.store(errhandler, handler) };
    }
    code
}

entry! {
    /// Creates an error handler for windows (MPI-4.1 §9.3.2). The host MPI creates the object;
    /// libfompi records its function, because it must be called with libfompi's window handle.
    /// Errors: MPI_ERR_ARG for a null pointer, or those of the host MPI.
    MPI_Win_create_errhandler PMPI_Win_create_errhandler (
        function: *mut MPI_Win_errhandler_function, errhandler: *mut MPI_Errhandler,
    ) {
        // SAFETY: the caller's pointers.
        unsafe { create(Host::get(), function, errhandler) }
    }

    /// Sets the error handler of a window (MPI-4.1 §9.3.2), also of a delegated one. The window
    /// acquires a reference to the handler and releases its reference to the previous one. Errors:
    /// MPI_ERR_WIN, MPI_ERR_ARG for an invalid error handler.
    MPI_Win_set_errhandler PMPI_Win_set_errhandler (win: MPI_Win, errhandler: MPI_Errhandler) {
        let host = Host::get();
        let handler = host.handle(errhandler);
        on_any_window("MPI_Win_set_errhandler", host, win, |window| {
            set(host, window, handler)
        }, theirs!(host.win_set_errhandler |native| (native, handler)))
    }

    /// Returns the error handler of a window (MPI-4.1 §9.3.2): a new reference to the handler,
    /// which the caller frees. Errors: MPI_ERR_WIN, MPI_ERR_ARG for a null pointer.
    MPI_Win_get_errhandler PMPI_Win_get_errhandler (
        win: MPI_Win, errhandler: *mut MPI_Errhandler,
    ) {
        serve!(host, on_any_window, "MPI_Win_get_errhandler", win, |window| {
            check_output(errhandler)?;
            let handler = window.errhandler.load(Ordering::Relaxed);
            keep(handler);
            // SAFETY: the caller's pointer to a handle.
            unsafe { host.store(errhandler, handler) };
            Ok(())
        }, win_get_errhandler |native| (native, errhandler))
    }

    /// Calls the error handler of a window with the program's error code (MPI-4.1 §9.5). A fatal
    /// handler prints this call and the code, then aborts the job. Errors: MPI_ERR_WIN.
    MPI_Win_call_errhandler PMPI_Win_call_errhandler (win: MPI_Win, error: c_int) {
        serve!(host, on_any_window, "MPI_Win_call_errhandler", win, |window| {
            handle(host, window, error, || {
                let filled = filled!(messages::CALLED_HANDLER; code = error);
                report::print_fatal(filled.message, &filled);
            });
            Ok(())
        }, win_call_errhandler |native| (native, error))
    }

    /// Releases the caller's reference to an error handler and stores MPI_ERRHANDLER_NULL (MPI-4.1
    /// §9.3.4). libfompi records handlers of windows only; all others are passed on to the host
    /// MPI. A handler stays valid while a window uses it. Errors: MPI_ERR_ARG for a null pointer,
    /// or those of the host MPI.
    MPI_Errhandler_free PMPI_Errhandler_free (errhandler: *mut MPI_Errhandler) {
        let host = Host::get();
        if errhandler.is_null() {
            let error = Error::Wrong(&messages::NULL_ERRHANDLER);
            return code_with_reason(host, "MPI_Errhandler_free", &error);
        }
        // SAFETY: the caller's pointer to a handle.
        let handler = unsafe { host.fetch(errhandler) };
        // A predefined handler is never freed. The host MPI does not count the references to it
        // that libfompi returned, so it must not decrement its own count.
        let freed = if is_predefined(host, handler) { Some(0) } else { release(host, handler) };
        match freed {
            Some(code) => {
                // SAFETY: the caller's pointer to a handle.
                unsafe { host.store(errhandler, host.constants.errhandler_null) };
                code
            }
            // SAFETY: the caller's argument, passed on unchanged.
            None => unsafe { (host.call.errhandler_free)(errhandler) },
        }
    }
}
