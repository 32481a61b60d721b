//! Counters of the transport between nodes, RDMA or TCP, for programs that measure. Not MPI.
//! `scripts/dev/headers` copies these comments into `include/fompi.h`.

use crate::fabric::net::Wire;
use core::ffi::c_int;

/// Connections, registered memory and requests of this process between nodes since its start, also
/// over TCP, in spite of the name. Operations on memory of the same node are not counted: in a job
/// on one node all counters are 0.
#[repr(C)]
#[derive(Clone, Copy, Default)]
pub struct fompi_verbs_counts {
    /// connections that this process has opened
    pub contacted: u64,
    /// connections that other processes have opened to this process
    pub accepted: u64,
    /// regions of memory that are registered with the device, or that TCP serves
    pub regions: u64,
    /// bytes of these regions
    pub registered_bytes: u64,
    /// registrations of a buffer for one operation
    pub registrations: u64,
    /// requests that write data to the target (RDMA WRITE)
    pub puts: u64,
    /// requests that read data from the target (RDMA READ)
    pub gets: u64,
    /// atomic requests (fetch-and-add, compare-and-swap), with or without a result
    pub atomics: u64,
    /// requests that read a control word of the target
    pub reads: u64,
    /// reads by flushes that confirm the completion of earlier writes
    pub proofs: u64,
    /// waits of this process for a response: round trips
    pub waits: u64,
    /// submissions to the device or to TCP, each of one request or a chain of requests
    pub doorbells: u64,
}

/// Stores the counters of this process. Returns 1 if it has opened an RDMA device or TCP, which it
/// does for its first window over several nodes; otherwise returns 0 and all counters are 0. Not an
/// MPI function; raises no error.
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
