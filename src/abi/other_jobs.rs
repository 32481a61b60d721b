//! Functions that connect the job with processes of other jobs (MPI-4.1 §11.8 to §11.10). They are
//! passed on. Such a process may access memory of this one by process_vm at any time, so after such
//! a call this process moves no pages (`window::create::quiet`).

use super::{MPI_Comm, MPI_Info};
use crate::mpi::{Host, own_job};
use core::ffi::{c_char, c_int, c_void};

entry! {
    /// Starts processes (MPI-4.1 §11.8.2): passed on to the host MPI. Errors: those of that MPI.
    MPI_Comm_spawn PMPI_Comm_spawn (
        command: *const c_char, argv: *mut c_void, maxprocs: c_int, info: MPI_Info, root: c_int,
        comm: MPI_Comm, intercomm: *mut MPI_Comm, array_of_errcodes: *mut c_int,
    ) {
        own_job::note_connection();
        let spawn = Host::get().call.comm_spawn;
        // SAFETY: the caller's arguments, passed on unchanged.
        unsafe {
            spawn(command, argv, maxprocs, info, root, comm, intercomm.cast(), array_of_errcodes)
        }
    }

    /// Starts processes of several programs (MPI-4.1 §11.8.3): passed on to the host MPI. Errors:
    /// those of that MPI.
    MPI_Comm_spawn_multiple PMPI_Comm_spawn_multiple (
        count: c_int, array_of_commands: *mut c_void, array_of_argv: *mut c_void,
        array_of_maxprocs: *const c_int, array_of_info: *const c_void, root: c_int, comm: MPI_Comm,
        intercomm: *mut MPI_Comm, array_of_errcodes: *mut c_int,
    ) {
        own_job::note_connection();
        let spawn = Host::get().call.comm_spawn_multiple;
        // SAFETY: the caller's arguments, passed on unchanged.
        unsafe {
            spawn(count, array_of_commands, array_of_argv, array_of_maxprocs, array_of_info, root,
                comm, intercomm.cast(), array_of_errcodes)
        }
    }

    /// Accepts a connection from another job (MPI-4.1 §11.9.2): passed on to the host MPI. Errors:
    /// those of that MPI.
    MPI_Comm_accept PMPI_Comm_accept (
        port_name: *const c_char, info: MPI_Info, root: c_int, comm: MPI_Comm,
        newcomm: *mut MPI_Comm,
    ) {
        own_job::note_connection();
        // SAFETY: the caller's arguments, passed on unchanged.
        unsafe { (Host::get().call.comm_accept)(port_name, info, root, comm, newcomm.cast()) }
    }

    /// Connects to another job (MPI-4.1 §11.9.3): passed on to the host MPI. Errors: those of that
    /// MPI.
    MPI_Comm_connect PMPI_Comm_connect (
        port_name: *const c_char, info: MPI_Info, root: c_int, comm: MPI_Comm,
        newcomm: *mut MPI_Comm,
    ) {
        own_job::note_connection();
        // SAFETY: the caller's arguments, passed on unchanged.
        unsafe { (Host::get().call.comm_connect)(port_name, info, root, comm, newcomm.cast()) }
    }

    /// Connects to the process at the other end of a socket (MPI-4.1 §11.10.4): passed on to the
    /// host MPI. Errors: those of that MPI.
    MPI_Comm_join PMPI_Comm_join (fd: c_int, intercomm: *mut MPI_Comm) {
        own_job::note_connection();
        // SAFETY: the caller's arguments, passed on unchanged.
        unsafe { (Host::get().call.comm_join)(fd, intercomm.cast()) }
    }
}
