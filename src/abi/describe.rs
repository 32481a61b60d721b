//! Name, group and info of a window (MPI-4.1 §7.8, §12.2.7).

use super::answer::{check_output, is_null, on_any_window, on_window};
use super::{MPI_Group, MPI_Info, MPI_Win};
use crate::error::Error;
use crate::messages;
use crate::mpi::Host;
use crate::number::Number;
use core::ffi::{CStr, c_char, c_int};

entry! {
    /// Sets the name of a window (MPI-4.1 §7.8). libfompi stores the name, also for delegated
    /// windows, truncated to MPI_MAX_OBJECT_NAME of the ABI. Errors: MPI_ERR_WIN, MPI_ERR_ARG for a
    /// null pointer.
    MPI_Win_set_name PMPI_Win_set_name (win: MPI_Win, name: *const c_char) {
        serve!(host, on_any_window, "MPI_Win_set_name", win, |window| {
            if name.is_null() {
                return Err(Error::Wrong(&messages::NULL_NAME));
            }
            // SAFETY: the caller's C string.
            let bytes = unsafe { CStr::from_ptr(name) }.to_bytes();
            let longest = host.constants.max_object_name.cast_unsigned().to_usize() - 1;
            let length = bytes.len().min(longest);
            *window.name.lock() = bytes[..length].to_vec();
            Ok(())
        }, win_set_name |native| (native, name))
    }

    /// Returns the name of a window and its length (MPI-4.1 §7.8). The host MPI answers for
    /// MPI_WIN_NULL. Errors: MPI_ERR_WIN, MPI_ERR_ARG for a null pointer.
    MPI_Win_get_name PMPI_Win_get_name (
        win: MPI_Win, name: *mut c_char, length: *mut c_int,
    ) {
        let host = Host::get();
        if is_null(host, win) {
            // SAFETY: the caller's arguments; the host MPI accepts its null handle or reports an
            // error.
            return unsafe { (host.call.win_get_name)(host.constants.win_null, name, length) };
        }
        on_any_window("MPI_Win_get_name", host, win, |window| {
            check_output(name)?;
            check_output(length)?;
            let bytes = window.name.lock();
            // SAFETY: the caller's buffer has MPI_MAX_OBJECT_NAME characters; the name is shorter.
            unsafe { core::ptr::copy_nonoverlapping(bytes.as_ptr(), name.cast(), bytes.len()) };
            // SAFETY: the buffer also has space for the final zero.
            unsafe { name.add(bytes.len()).write(0) };
            // SAFETY: the caller's pointer.
            unsafe { length.write(bytes.len().to_i32()) };
            Ok(())
        }, theirs!(host.win_get_name |native| (native, name, length)))
    }

    /// Returns the group of a window (MPI-4.1 §12.2.6): a group of the host MPI, created from the
    /// window's own communicator; the caller frees it. Errors: MPI_ERR_WIN, MPI_ERR_ARG for a null
    /// pointer, or those of the host MPI.
    MPI_Win_get_group PMPI_Win_get_group (win: MPI_Win, group: *mut MPI_Group) {
        serve!(host, on_window, "MPI_Win_get_group", win, |_, node| {
            check_output(group)?;
            let copy = node.comm().group(host)?;
            // SAFETY: the caller's pointer to a handle.
            unsafe { host.store(group, copy.0) };
            Ok(())
        }, win_get_group |native| (native, group))
    }

    /// Sets hints of a window (MPI-4.1 §12.2.7); only those that may change after its creation have
    /// an effect. Collective, but waits for no other rank. Errors: MPI_ERR_WIN, MPI_ERR_INFO, or
    /// those of the host MPI, which owns the info object.
    MPI_Win_set_info PMPI_Win_set_info (win: MPI_Win, info: MPI_Info) {
        serve!(host, on_window, "MPI_Win_set_info", win, |window, _| {
            // No lock is held during calls of the host MPI. The call is collective: no other thread
            // changes the hints meanwhile.
            let mut hints = window.info.lock().clone();
            hints.update(host, host.handle(info))?;
            *window.info.lock() = hints;
            Ok(())
        }, win_set_info |native| (native, host.handle(info)))
    }

    /// Returns the hints that a window uses (MPI-4.1 §12.2.7) and its transport, as
    /// `fompi_transport`, in a new info object of the host MPI, which the caller frees.
    /// Errors: MPI_ERR_WIN, MPI_ERR_ARG for a null pointer, or those of the host MPI.
    MPI_Win_get_info PMPI_Win_get_info (win: MPI_Win, info: *mut MPI_Info) {
        serve!(host, on_window, "MPI_Win_get_info", win, |window, node| {
            check_output(info)?;
            let hints = window.info.lock().clone();
            let copy = hints.give(host, node.comm(), node.transport())?;
            // SAFETY: the caller's pointer to a handle.
            unsafe { host.store(info, copy) };
            Ok(())
        }, win_get_info |native| (native, info))
    }
}
