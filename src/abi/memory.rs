//! MPI_Alloc_mem and MPI_Free_mem (MPI-4.1 §9.2): the MPI underneath's own.

use super::{MPI_Aint, MPI_Info};
use crate::mpi::Host;
use core::ffi::c_void;

card! {
    /// MPI-4.1 §9.2.
    MPI_Alloc_mem PMPI_Alloc_mem (size: MPI_Aint, info: MPI_Info, baseptr: *mut c_void) {
        let host = Host::get();
        // SAFETY: the caller's arguments, as for the MPI underneath alone.
        unsafe { (host.call.alloc_mem)(size, host.handle(info), baseptr) }
    }

    /// MPI-4.1 §9.2.
    MPI_Free_mem PMPI_Free_mem (base: *mut c_void) {
        let host = Host::get();
        // SAFETY: the caller's argument, as for the MPI underneath alone.
        unsafe { (host.call.free_mem)(base) }
    }
}
