//! MPI_Alloc_mem and MPI_Free_mem (MPI-4.1 §9.2): heap memory that other processes can map, so that
//! they access a window over it by load and store. The host MPI allocates and frees the memory with
//! FOMPI_DISABLE=1, and on systems without memfds.

use super::{MPI_Aint, MPI_Info, answer};
use crate::config::Config;
use crate::error::{Error, Result};
use crate::fabric::net::Wire;
use crate::memory::heap;
use crate::messages;
use crate::mpi::Host;
use crate::mpi::hints;
use crate::number::Number;
use crate::sys::page_bytes;
use core::ffi::{c_int, c_void};

/// The alignment if no info key requests more: a cache line. Memory of at least a page is
/// page-aligned.
const ALIGNMENT: u64 = 64;

entry! {
    /// Allocates memory (MPI-4.1 §9.2) from libfompi's heap, which other processes of the node can
    /// map, so that they access a window over it by load and store. If the system allows no such
    /// memory, the host MPI allocates it. Errors, through the handler of MPI_COMM_SELF or
    /// MPI_COMM_WORLD: MPI_ERR_ARG for a negative size or a null pointer, MPI_ERR_NO_MEM,
    /// MPI_ERR_INFO.
    MPI_Alloc_mem PMPI_Alloc_mem (size: MPI_Aint, info: MPI_Info, baseptr: *mut c_void) {
        let host = Host::get();
        let pass_on = || {
            // SAFETY: the caller's arguments, passed on unchanged.
            unsafe { (host.call.alloc_mem)(size, host.handle(info), baseptr) }
        };
        if Config::get().disable {
            return pass_on();
        }
        match allocate(host, size, info, baseptr) {
            Ok(base) => {
                // SAFETY: the caller's pointer variable, of any type and alignment.
                unsafe { baseptr.cast::<*mut u8>().write_unaligned(base) };
                0
            }
            // A system that denies segments to this process may still allow other memory.
            Err(Error::System { .. }) => pass_on(),
            // The host MPI read the info object and has already raised the error.
            Err(Error::Host(code)) => code,
            Err(error) => answer::raise_alone("MPI_Alloc_mem", host, error),
        }
    }

    /// Frees memory of MPI_Alloc_mem (MPI-4.1 §9.2) and removes its registration with the RDMA
    /// device. Memory that the host MPI allocated is passed on to it. A child of fork(2) frees
    /// nothing, because its parent owns the memory. Errors: MPI_ERR_BASE for an address inside
    /// allocated memory that is not its beginning, or those of the host MPI.
    MPI_Free_mem PMPI_Free_mem (base: *mut c_void) {
        free(base)
    }
}

fn allocate(host: &Host, size: MPI_Aint, info: MPI_Info, place: *mut c_void) -> Result<*mut u8> {
    answer::check_output(place)?;
    let wrong = |_| Error::Argument(&messages::ALLOC_SIZE, size as i64);
    let bytes = u64::try_from(size).map_err(wrong)?;
    let usual = if bytes < page_bytes() { ALIGNMENT } else { page_bytes() };
    heap::allocate(bytes, usual.max(hints::alignment_of(host, host.handle(info))?))
}

fn free(base: *mut c_void) -> c_int {
    // A child of fork(2) has a copy; its parent owns the memory and its registrations.
    if heap::is_inherited(base.addr().to_u64()) {
        return 0;
    }
    if let Some((address, bytes)) = heap::allocation(base.addr().to_u64(), 0) {
        Wire::opened().for_each(|wire| wire.deregister(address, bytes));
    }
    // An allocation of zero bytes by the host MPI may be NULL.
    if base.is_null() || heap::release(base.cast()) {
        return 0;
    }
    let host = Host::get();
    let address = base.addr().to_u64();
    if heap::find(address, 1).is_some() {
        let error = Error::InsideAllocation { address };
        return answer::raise_alone("MPI_Free_mem", host, error);
    }
    // SAFETY: the caller's argument, passed on unchanged.
    unsafe { (host.call.free_mem)(base) }
}
