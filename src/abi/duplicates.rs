//! Duplicates of windows (issue 113 of the MPI Forum), and windows made from memory handles. All
//! names are libfompi's own.

use super::answer::{check_output, on_window, raise, raise_alone};
use super::handle_calls::{FOMPI_Mem, handle_entries, unsupported};
use super::{MPI_Info, MPI_Win, errhandler, keyvals};
use crate::error::{Error, Result};
use crate::messages;
use crate::mpi::Host;
use crate::number::Number;
use crate::sync::Ordering;
use crate::window::{Duplicate, Window, duplicate};
use core::ffi::c_int;

/// Gives a duplicate the error handler of its window, and stores its handle.
///
/// # Safety
/// `new` points to a window handle.
unsafe fn store(host: &Host, made: &Window, new: *mut MPI_Win) -> Result<()> {
    if let Some(duplicate) = made.as_duplicate() {
        errhandler::set(host, made, duplicate.of.errhandler.load(Ordering::Relaxed))?;
    }
    // SAFETY: guaranteed by the caller.
    unsafe { host.store(new, made.handle.to_usize()) };
    Ok(())
}

/// Does the work of MPI_Win_free on a duplicate. Returns the code of the call.
pub(super) fn free(host: &'static Host, window: &'static Window, duplicate: &Duplicate) -> c_int {
    const CALL: &str = "MPI_Win_free";
    let ready = window.may_end().and_then(|()| keyvals::delete_all(host, window));
    if let Err(error) = ready {
        return raise(CALL, host, window, error);
    }
    let (of, handler) = (duplicate.of, window.errhandler.load(Ordering::Relaxed));
    let completed = duplicate::free(window, duplicate);
    errhandler::forget(host, handler);
    completed.map_or_else(|error| raise(CALL, host, of, error), |()| 0)
}

handle_entries! {
    /// Makes a duplicate of a window (issue 113 of the MPI Forum): another window over the same
    /// memory, whose operations complete apart from those of the window and of other duplicates.
    /// Local. An access epoch for all ranks is open on it from now until MPI_Win_free, which is
    /// local, too, and completes its operations: the calls for communication and MPI_Win_flush and
    /// its like are legal, and those that begin or end epochs are errors. It asks for no lock, as
    /// MPI_Win_lock_all with MPI_MODE_NOCHECK; accumulates are atomic with those on the window.
    /// Between nodes a flush waits only for ranks to which this duplicate has sent something since
    /// its last one; the operations of one process on one rank share a connection, so it waits for
    /// what went ahead to that process, too. `info`: hints, such as fompi_attributes; all but that
    /// one are otherwise those of the window. The error handler is that of the window. The window
    /// is freed after its duplicates. Any thread may call. Errors: MPI_ERR_WIN, MPI_ERR_INFO,
    /// MPI_ERR_ARG for a null pointer, MPI_ERR_OTHER for too many windows,
    /// MPI_ERR_UNSUPPORTED_OPERATION on a window of the host MPI.
    FOMPI_Win_dup [win] (win: MPI_Win, info: MPI_Info, newwin: *mut MPI_Win) {
        let host = Host::get();
        on_window("FOMPI_Win_dup", host, win, |window, _| {
            check_output(newwin)?;
            let made = duplicate::make(host, window, host.handle(info), None)?;
            // SAFETY: the caller's pointer.
            unsafe { store(host, made, newwin) }
        }, |_| unsupported())
    }

    /// Makes a window from memory handles (MPI_Win_from_memhandle of Schuchart and others): a
    /// duplicate, as FOMPI_Win_dup makes one, whose target with a rank is the memory of the handle
    /// that this rank has exposed. Displacements are in bytes. `count` handles of one window, one
    /// at most of each rank; a rank without one is no target. The handles may be released before
    /// the window is freed; when an owner withdraws its memory, accesses to it fail. Local. `info`:
    /// as for FOMPI_Win_dup. Any thread may call. Errors: MPI_ERR_COUNT for a negative count,
    /// MPI_ERR_ARG for a null pointer, no handle, or handles of several windows or twice of a rank;
    /// MPI_ERR_INFO, MPI_ERR_OTHER for too many windows.
    FOMPI_Win_from_mem [0] (
        count: c_int, mems: *const FOMPI_Mem, info: MPI_Info, newwin: *mut MPI_Win,
    ) {
        let (call, host) = ("FOMPI_Win_from_mem", Host::get());
        let make = || {
            let wrong = |_| Error::Argument(&messages::HANDLES, count.into());
            let length = usize::try_from(count).map_err(wrong)?;
            check_output(newwin)?;
            if length > 0 {
                check_output(mems)?;
            }
            // SAFETY: the caller's array of handles.
            let given = (0..length).map(|index| unsafe { mems.add(index).read() });
            // SAFETY: the caller's handles and pointer.
            unsafe { store(host, duplicate::make_from(host, given, host.handle(info))?, newwin) }
        };
        match make() {
            Ok(()) => 0,
            Err(error) => raise_alone(call, host, error),
        }
    }
}
