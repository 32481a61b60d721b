//! Counters of the road between nodes, over an RDMA device or TCP, for programs that measure. Not
//! MPI. `scripts/dev/headers` writes the comments here into `include/fompi.h`.

use crate::fabric::net::Wire;
use core::ffi::c_int;

/// The connections, the registered memory and the requests of this process between nodes, since it
/// began. Over TCP, too, in spite of the name. Operations on memory of the own node are not
/// counted: in a job on one node all counters are 0.
#[repr(C)]
#[derive(Clone, Copy, Default)]
pub struct fompi_verbs_counts {
    /// connections that this process has opened: processes that it has contacted
    pub contacted: u64,
    /// connections that others have opened to this process
    pub accepted: u64,
    /// regions of memory that are registered with the device, or that TCP serves
    pub regions: u64,
    /// bytes of these regions
    pub registered_bytes: u64,
    /// registrations for one operation: of a buffer that was not registered before
    pub registrations: u64,
    /// requests that write data to the target (RDMA WRITE)
    pub puts: u64,
    /// requests that read data from the target (RDMA READ)
    pub gets: u64,
    /// atomic requests (fetch-and-add, compare-and-swap), with an answer or without
    pub atomics: u64,
    /// requests that read a control word of the target
    pub reads: u64,
    /// requests of flushes that read a word to learn that earlier writes are done
    pub proofs: u64,
    /// times that this process waited for an answer: round trips
    pub waits: u64,
    /// times that requests were handed to the device or to TCP: one request, or a chain of them
    pub doorbells: u64,
}

/// Stores the counters of this process. Returns 1 if it has opened an RDMA device or TCP, as it
/// does for its first window over several nodes; else 0, with all counters 0. Not MPI; raises no
/// error.
#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn fompi_get_verbs_counts(counts: *mut fompi_verbs_counts) -> c_int {
    let found = Wire::opened().map(Wire::counts).reduce(|mut all, counts| {
        all.add(&counts);
        all
    });
    let filled = found.map_or(fompi_verbs_counts::default(), |found| {
        let kinds = found.kinds;
        fompi_verbs_counts {
            contacted: found.contacted,
            accepted: found.accepted,
            regions: found.regions,
            registered_bytes: found.registered_bytes,
            registrations: found.registrations,
            puts: kinds.inline + kinds.copied + kinds.lent,
            gets: kinds.gets,
            atomics: kinds.fetches + kinds.posts,
            reads: kinds.reads,
            proofs: kinds.proofs,
            waits: kinds.awaited,
            doorbells: kinds.doorbells,
        }
    });
    if !counts.is_null() {
        // SAFETY: the caller's structure.
        unsafe { counts.write(filled) };
    }
    c_int::from(found.is_some())
}
