//! Requests that are complete when they are made. The host MPI makes them: a receive from
//! MPI_PROC_NULL, which every MPI_Wait and MPI_Test takes, costs a call, 20 to 100 instructions.
//! Most MPIs return the same object for each such receive, which is part of the library and never
//! changes; then its handle alone is a complete request, and no call is made (`ReusableRequest`).
//! This is known for two families, and the library compares it with the results of the first calls:
//!
//! - Open MPI has the object `ompi_request_empty`; all its functions compare with that address, or
//!   call the object's own functions, which do nothing.
//! - MPICH since 3.4 has built-in requests, which bits in the handle show; its functions do not
//!   count the references to them.
//!
//! Other MPIs, such as Intel MPI, count the references to such a request, so each request is made
//! by a call.

use super::comm::{Comm, check};
use super::handle::{Abi, Handle, Status};
use super::host::Host;
use crate::error::Result;
use crate::number::Number;
use core::ptr;

/// The bits of a handle of MPICH that stand for the kind and the class of the object, and their
/// value for a built-in request.
const MPICH_KIND_AND_CLASS: usize = 0xfc00_0000;
/// See [`MPICH_KIND_AND_CLASS`].
const MPICH_BUILT_IN_REQUEST: usize = 0x6c00_0000;

impl Comm {
    /// Stores a request that is complete.
    ///
    /// # Safety
    /// `request` points to a request handle of this ABI.
    pub unsafe fn completed_request(self, host: &Host, request: *mut usize) -> Result<()> {
        if let Some(handle) = host.completed.known() {
            // SAFETY: the caller guarantees `request`.
            unsafe { host.store(request, handle) };
            return Ok(());
        }
        let (nobody, byte) = (host.constants.proc_null, host.byte());
        // SAFETY: nothing is received; the caller guarantees `request`.
        check(unsafe { (host.call.irecv)(ptr::null_mut(), 0, byte, nobody, 0, self.0, request) })?;
        if host.completed.is_unknown() {
            // SAFETY: the handle was just stored there.
            host.completed.record(self.reusable(host, unsafe { host.fetch(request) }));
        }
        Ok(())
    }

    /// Returns `first`, the handle of a complete request, if it stands for one as often as it is
    /// used.
    #[cold]
    fn reusable(self, host: &Host, first: Handle) -> Option<Handle> {
        let (nobody, byte, mut second) = (host.constants.proc_null, host.byte(), 0);
        // SAFETY: nothing is received; an out parameter of ours, as wide as any handle.
        let code =
            unsafe { (host.call.irecv)(ptr::null_mut(), 0, byte, nobody, 0, self.0, &mut second) };
        if code != 0 {
            return None;
        }
        let again = second;
        let mut status: Status = [0; 8];
        // SAFETY: a request that was just made, and a status that is large enough in every ABI.
        let code = unsafe { (host.call.wait)(&mut second, &mut status) };
        let same = code == 0 && first == again;
        (same && (is_of_openmpi(host, first) || is_of_mpich(host, first))).then_some(first)
    }
}

/// Whether a request is the complete one of Open MPI.
fn is_of_openmpi(host: &Host, request: Handle) -> bool {
    host.abi != Abi::Mpich && request == host.library.symbol(c"ompi_request_empty")
}

/// Whether a request is a built-in one of MPICH. The first of them stands for a message.
fn is_of_mpich(host: &Host, request: Handle) -> bool {
    let handle = match (host.abi, host.call.request_toint) {
        (Abi::Mpich, _) => request,
        // SAFETY: a valid request. MPICH returns its handle, and passes its address in this ABI.
        (Abi::Standard, Some(to_int)) => unsafe { to_int(request) }.cast_unsigned().to_usize(),
        _ => return false,
    };
    handle & MPICH_KIND_AND_CLASS == MPICH_BUILT_IN_REQUEST && handle != MPICH_BUILT_IN_REQUEST
}
