//! Requests of communication calls (MPI-4.1 §12.3.5). A request belongs to the host MPI, so every
//! MPI_Wait and MPI_Test accepts it together with other requests. Within a node the transfer and
//! its request are complete when the call returns. Between nodes the request completes with the
//! transfer ([`grequests`]), so a program can compute meanwhile.

use super::answer::{check_output, code_with_reason, on_window};
use super::{MPI_Request, MPI_Status, MPI_Win};
use crate::epoch::state::REQUEST;
use crate::error::Result;
use crate::mpi::{Handle, Host, grequests};
use crate::rank_numbers::Rank;
use crate::report::{Wrong, carry_out};
use crate::transfer::{Place, Quick};
use crate::window::{LocalWindow, synchronise};
use core::ffi::c_int;

/// Executes a fast-path call by `transfer`, which returns `Some` if the data have moved, and stores
/// a request. Returns `Some` if both are done. Has no effect if the full call is needed because the
/// request or the epoch may be invalid. The host MPI may have to create the request; if that fails,
/// the full call begins again.
#[inline(always)]
pub(super) fn with_request(
    to: &Quick,
    request: *mut MPI_Request,
    transfer: impl FnOnce() -> Option<()>,
) -> Option<()> {
    if !may_request(to, request) {
        return None;
    }
    transfer()?;
    let Some(handle) = to.window.host().completed.known() else { return make_request(to, request) };
    // SAFETY: the caller's pointer to a request, which is not null.
    unsafe { to.window.host().store(request, handle) };
    Some(())
}

/// Lets the host MPI create a completed request, and stores it.
#[inline(never)]
fn make_request(to: &Quick, request: *mut MPI_Request) -> Option<()> {
    let node = to.window.whole().local()?;
    // SAFETY: the caller's pointer to a request, which is not null.
    unsafe { node.comm().completed_request(to.window.host(), request) }.ok()
}

/// Whether a call with a request is known to be valid in this epoch, and its request pointer is not
/// null.
#[inline(always)]
fn may_request(to: &Quick, request: *mut MPI_Request) -> bool {
    to.is_passive() && !request.is_null()
}

/// Executes a communication call on `rank`, and stores a request. The request and the epoch are
/// checked before any byte moves.
#[inline]
pub(super) fn on_target_with(
    (call, host): (&'static str, &'static Host),
    win: MPI_Win,
    rank: c_int,
    request: *mut MPI_Request,
    ours: impl FnOnce(Place<'static>) -> Result<()>,
    theirs: impl FnOnce(Handle) -> Result<()>,
) -> c_int {
    on_window(
        call,
        host,
        win,
        |window, node| {
            check_output(request)?;
            let target = node.target(rank).ok();
            if let Some(target) = target {
                match window.epochs.may_request(|| window.access_of(target)) {
                    Ok(()) => {}
                    Err(REQUEST) => carry_out(call, Wrong::Request, REQUEST)?,
                    Err(error) => node.needs_asked(window, target, error)?,
                }
            }
            let before = target.map_or(0, |target| node.lent(target));
            ours(Place { host, window, node, memory: None })?;
            if let Some(target) = target {
                if window.epochs.awaits_operation() {
                    window.epochs.accessed();
                }
                if node.spans_nodes() {
                    synchronise::note_target(window, node, target);
                }
            }
            // SAFETY: the caller's pointer to a request.
            unsafe { store_request((call, host), node, target, before, request) }
        },
        theirs,
    )
}

/// Stores a request that is complete once the transfers with `target` are that were begun since
/// [`LocalWindow::lent`] returned `before`.
///
/// # Safety
/// `request` points to a request handle.
pub(super) unsafe fn store_request(
    (call, host): (&'static str, &'static Host),
    node: &LocalWindow,
    target: Option<Rank>,
    before: u64,
    request: *mut MPI_Request,
) -> Result<()> {
    // The program may wait for the request before it accesses the bytes again.
    target.into_iter().for_each(|target| node.have_arrived(Some(target)));
    let transfer = target.map_or(Ok(None), |target| node.pending(target, before))?;
    match transfer {
        Some(transfer) if grequests::are_possible(host) => {
            // SAFETY: guaranteed by the caller.
            unsafe { grequests::start(host, Box::new(transfer), (call, code_with_reason), request) }
        }
        transfer => {
            // No call of the host MPI would advance the transfer.
            if let (Some(_), Some(target)) = (transfer, target) {
                node.flush_local(target)?;
            }
            // SAFETY: guaranteed by the caller.
            unsafe { node.comm().completed_request(host, request) }
        }
    }
}

entry! {
    /// Returns whether a request is complete, without freeing it (MPI-4.1 §3.7.6). The host MPI
    /// returns it. libfompi first advances a transfer between nodes that belongs to the request,
    /// because MPICH 4.0 does not do so in this call. Errors: those of the host MPI.
    MPI_Request_get_status PMPI_Request_get_status (
        request: MPI_Request, flag: *mut c_int, status: *mut MPI_Status,
    ) {
        let host = Host::get();
        let request = host.handle(request);
        grequests::advance(host, request);
        // SAFETY: the caller's arguments, passed on unchanged.
        unsafe { (host.call.request_get_status)(request, flag, status) }
    }
}
