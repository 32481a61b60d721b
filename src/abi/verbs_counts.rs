//! Counters of the road between nodes, over an RDMA device or TCP, for programs that measure. Not
//! MPI.

use crate::fabric::net::Wire;
use core::ffi::c_int;

/// The objects of this process on the road between nodes, over an RDMA device or TCP, and its
/// requests there since it began.
#[repr(C)]
#[derive(Clone, Copy, Default)]
pub struct fompi_verbs_counts {
    /// connections on which this process sends: processes that it has contacted
    pub contacted: u64,
    /// connections by which other processes reach this one: processes that have contacted it
    pub accepted: u64,
    /// registered or exposed regions of memory
    pub regions: u64,
    /// their bytes
    pub registered_bytes: u64,
    /// registrations of memory because an operation read or wrote it
    pub registrations: u64,
    /// WRITEs
    pub puts: u64,
    /// READs of data
    pub gets: u64,
    /// FETCH_ADD and CMP_SWAP, with an answer or without
    pub atomics: u64,
    /// READs of a control word
    pub reads: u64,
    /// READs that only prove that WRITEs are done
    pub proofs: u64,
    /// waits for the device, one after the other: round trips
    pub waits: u64,
    /// times that requests were posted to the device, one or a chain of them
    pub doorbells: u64,
}

/// Stores the counters of the road between nodes. Returns 1, or 0 if no device was opened, with all
/// counters 0. Not MPI; raises no error.
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
