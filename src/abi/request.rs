//! Communication calls with a request (MPI-4.1 §12.3.5). The request is one of the MPI underneath,
//! which every MPI_Wait and MPI_Test takes, mixed with others. Within a node the data have moved
//! when the call returns, and it is complete; between nodes it is complete when the transfer is
//! ([`pending`]), so a program may compute meanwhile.

use super::answer::{code_of_request, on_window, place_for};
use super::transfer::{buffer, narrow, target};
use super::{MPI_Aint, MPI_Count, MPI_Datatype, MPI_Op, MPI_Request, MPI_Status, MPI_Win};
use crate::epoch::state::REQUEST;
use crate::error::{Class, Result};
use crate::mpi::{Handle, Host, pending};
use crate::transfer::{Place, accumulate, put_get};
use crate::window::report::{Wrong, carry_out};
use core::ffi::{c_int, c_void};

/// Carries a communication call on `rank` out, and stores a request. Whatever is wrong with the
/// request or the epoch is found before anything moves.
#[inline]
fn on_target_with(
    call: &'static str,
    host: &'static Host,
    win: MPI_Win,
    rank: c_int,
    request: *mut MPI_Request,
    ours: impl FnOnce(Place<'static>) -> Result<()>,
    theirs: impl FnOnce(Handle) -> c_int,
) -> c_int {
    on_window(
        call,
        host,
        win,
        |window, node| {
            place_for(request)?;
            let target = node.target(rank).ok();
            if let Some(target) = target {
                match window.epochs.may_request(target) {
                    Err(REQUEST) => carry_out(call, Wrong::Request, REQUEST)?,
                    other => other?,
                }
            }
            let before = target.map_or(0, |target| node.lent(target));
            ours(Place { host, window, node })?;
            if target.is_some() {
                window.epochs.accessed();
            }
            let transfer = target.map_or(Ok(None), |target| node.pending(target, before))?;
            match transfer {
                Some(transfer) if pending::are_possible(host) => {
                    // SAFETY: the caller's pointer to a request.
                    unsafe {
                        pending::start(host, Box::new(transfer), (call, code_of_request), request)
                    }
                }
                transfer => {
                    // Nobody would move it.
                    if let (Some(_), Some(target)) = (transfer, target) {
                        node.flush_local(target)?;
                    }
                    // SAFETY: likewise.
                    unsafe { node.comm().completed_request(host, request) }
                }
            }
        },
        theirs,
    )
}

card! {
    /// MPI-4.1 §3.7.6. Ours because MPICH 4.0 looks at the request without moving what it is for.
    MPI_Request_get_status PMPI_Request_get_status (
        request: MPI_Request, flag: *mut c_int, status: *mut MPI_Status,
    ) {
        let host = Host::get();
        let request = host.handle(request);
        pending::advance(host, request);
        // SAFETY: the caller's arguments, as for the MPI underneath alone.
        unsafe { (host.call.request_get_status)(request, flag, status) }
    }

    /// MPI-4.1 §12.3.5.
    MPI_Rput PMPI_Rput (
        origin: *const c_void, origin_count: c_int, origin_type: MPI_Datatype, rank: c_int,
        disp: MPI_Aint, target_count: c_int, target_type: MPI_Datatype, win: MPI_Win,
        request: *mut MPI_Request,
    ) {
        let host = Host::get();
        let from = buffer(host, origin, origin_count.into(), origin_type);
        let target = target(host, rank, disp, target_count.into(), target_type);
        on_target_with("MPI_Rput", host, win, rank, request, |place| {
            // SAFETY: the caller's buffers.
            unsafe { put_get::put(place, from, target) }
        }, |native| {
            let (ot, tt) = (host.handle(origin_type), host.handle(target_type));
            // SAFETY: the caller's arguments, as for the MPI underneath alone.
            unsafe {
                (host.call.rput)(
                    origin, origin_count, ot, rank, disp, target_count, tt, native, request,
                )
            }
        })
    }

    /// MPI-4.1 §12.3.5, with large counts.
    MPI_Rput_c PMPI_Rput_c (
        origin: *const c_void, origin_count: MPI_Count, origin_type: MPI_Datatype, rank: c_int,
        disp: MPI_Aint, target_count: MPI_Count, target_type: MPI_Datatype, win: MPI_Win,
        request: *mut MPI_Request,
    ) {
        let host = Host::get();
        let from = buffer(host, origin, origin_count, origin_type);
        let target = target(host, rank, disp, target_count, target_type);
        on_target_with("MPI_Rput_c", host, win, rank, request, |place| {
            // SAFETY: the caller's buffers.
            unsafe { put_get::put(place, from, target) }
        }, |native| {
            let (ot, tt) = (host.handle(origin_type), host.handle(target_type));
            if let Some(call) = host.call.rput_c {
                // SAFETY: the caller's arguments, as for the MPI underneath alone.
                return unsafe {
                    call(
                        origin, origin_count, ot, rank, disp, target_count, tt, native, request,
                    )
                };
            }
            let (Some(oc), Some(tc)) = (narrow(origin_count), narrow(target_count)) else {
                return host.constants.class(Class::Count);
            };
            // SAFETY: likewise, with the counts narrowed.
            unsafe {
                (host.call.rput)(origin, oc, ot, rank, disp, tc, tt, native, request)
            }
        })
    }

    /// MPI-4.1 §12.3.5.
    MPI_Rget PMPI_Rget (
        origin: *mut c_void, origin_count: c_int, origin_type: MPI_Datatype, rank: c_int,
        disp: MPI_Aint, target_count: c_int, target_type: MPI_Datatype, win: MPI_Win,
        request: *mut MPI_Request,
    ) {
        let host = Host::get();
        let from = buffer(host, origin, origin_count.into(), origin_type);
        let target = target(host, rank, disp, target_count.into(), target_type);
        on_target_with("MPI_Rget", host, win, rank, request, |place| {
            // SAFETY: the caller's buffers.
            unsafe { put_get::get(place, from, target) }
        }, |native| {
            let (ot, tt) = (host.handle(origin_type), host.handle(target_type));
            // SAFETY: the caller's arguments, as for the MPI underneath alone.
            unsafe {
                (host.call.rget)(
                    origin, origin_count, ot, rank, disp, target_count, tt, native, request,
                )
            }
        })
    }

    /// MPI-4.1 §12.3.5, with large counts.
    MPI_Rget_c PMPI_Rget_c (
        origin: *mut c_void, origin_count: MPI_Count, origin_type: MPI_Datatype, rank: c_int,
        disp: MPI_Aint, target_count: MPI_Count, target_type: MPI_Datatype, win: MPI_Win,
        request: *mut MPI_Request,
    ) {
        let host = Host::get();
        let from = buffer(host, origin, origin_count, origin_type);
        let target = target(host, rank, disp, target_count, target_type);
        on_target_with("MPI_Rget_c", host, win, rank, request, |place| {
            // SAFETY: the caller's buffers.
            unsafe { put_get::get(place, from, target) }
        }, |native| {
            let (ot, tt) = (host.handle(origin_type), host.handle(target_type));
            if let Some(call) = host.call.rget_c {
                // SAFETY: the caller's arguments, as for the MPI underneath alone.
                return unsafe {
                    call(
                        origin, origin_count, ot, rank, disp, target_count, tt, native, request,
                    )
                };
            }
            let (Some(oc), Some(tc)) = (narrow(origin_count), narrow(target_count)) else {
                return host.constants.class(Class::Count);
            };
            // SAFETY: likewise, with the counts narrowed.
            unsafe {
                (host.call.rget)(origin, oc, ot, rank, disp, tc, tt, native, request)
            }
        })
    }

    /// MPI-4.1 §12.3.5.
    MPI_Raccumulate PMPI_Raccumulate (
        origin: *const c_void, origin_count: c_int, origin_type: MPI_Datatype, rank: c_int,
        disp: MPI_Aint, target_count: c_int, target_type: MPI_Datatype, op: MPI_Op, win: MPI_Win,
        request: *mut MPI_Request,
    ) {
        let host = Host::get();
        let from = buffer(host, origin, origin_count.into(), origin_type);
        let target = target(host, rank, disp, target_count.into(), target_type);
        on_target_with("MPI_Raccumulate", host, win, rank, request, |place| {
            let op = host.handle(op);
            // SAFETY: the caller's buffers.
            unsafe { accumulate::accumulate(place, from, None, target, op) }
        }, |native| {
            let (ot, tt) = (host.handle(origin_type), host.handle(target_type));
            let o = host.handle(op);
            // SAFETY: the caller's arguments, as for the MPI underneath alone.
            unsafe {
                (host.call.raccumulate)(
                    origin, origin_count, ot, rank, disp, target_count, tt, o, native, request,
                )
            }
        })
    }

    /// MPI-4.1 §12.3.5, with large counts.
    MPI_Raccumulate_c PMPI_Raccumulate_c (
        origin: *const c_void, origin_count: MPI_Count, origin_type: MPI_Datatype, rank: c_int,
        disp: MPI_Aint, target_count: MPI_Count, target_type: MPI_Datatype, op: MPI_Op,
        win: MPI_Win, request: *mut MPI_Request,
    ) {
        let host = Host::get();
        let from = buffer(host, origin, origin_count, origin_type);
        let target = target(host, rank, disp, target_count, target_type);
        on_target_with("MPI_Raccumulate_c", host, win, rank, request, |place| {
            let op = host.handle(op);
            // SAFETY: the caller's buffers.
            unsafe { accumulate::accumulate(place, from, None, target, op) }
        }, |native| {
            let (ot, tt) = (host.handle(origin_type), host.handle(target_type));
            let o = host.handle(op);
            if let Some(call) = host.call.raccumulate_c {
                // SAFETY: the caller's arguments, as for the MPI underneath alone.
                return unsafe {
                    call(
                        origin, origin_count, ot, rank, disp, target_count, tt, o, native,
                        request,
                    )
                };
            }
            let (Some(oc), Some(tc)) = (narrow(origin_count), narrow(target_count)) else {
                return host.constants.class(Class::Count);
            };
            // SAFETY: likewise, with the counts narrowed.
            unsafe {
                (host.call.raccumulate)(origin, oc, ot, rank, disp, tc, tt, o, native, request)
            }
        })
    }

    /// MPI-4.1 §12.3.5.
    MPI_Rget_accumulate PMPI_Rget_accumulate (
        origin: *const c_void, origin_count: c_int, origin_type: MPI_Datatype,
        result: *mut c_void, result_count: c_int, result_type: MPI_Datatype, rank: c_int,
        disp: MPI_Aint, target_count: c_int, target_type: MPI_Datatype, op: MPI_Op, win: MPI_Win,
        request: *mut MPI_Request,
    ) {
        let host = Host::get();
        let from = buffer(host, origin, origin_count.into(), origin_type);
        let into = buffer(host, result, result_count.into(), result_type);
        let target = target(host, rank, disp, target_count.into(), target_type);
        on_target_with("MPI_Rget_accumulate", host, win, rank, request, |place| {
            let op = host.handle(op);
            // SAFETY: the caller's buffers.
            unsafe { accumulate::accumulate(place, from, Some(into), target, op) }
        }, |native| {
            let (ot, tt) = (host.handle(origin_type), host.handle(target_type));
            let rt = host.handle(result_type);
            let o = host.handle(op);
            // SAFETY: the caller's arguments, as for the MPI underneath alone.
            unsafe {
                (host.call.rget_accumulate)(
                    origin, origin_count, ot, result, result_count, rt, rank, disp,
                    target_count, tt, o, native, request,
                )
            }
        })
    }

    /// MPI-4.1 §12.3.5, with large counts.
    MPI_Rget_accumulate_c PMPI_Rget_accumulate_c (
        origin: *const c_void, origin_count: MPI_Count, origin_type: MPI_Datatype,
        result: *mut c_void, result_count: MPI_Count, result_type: MPI_Datatype, rank: c_int,
        disp: MPI_Aint, target_count: MPI_Count, target_type: MPI_Datatype, op: MPI_Op,
        win: MPI_Win, request: *mut MPI_Request,
    ) {
        let host = Host::get();
        let from = buffer(host, origin, origin_count, origin_type);
        let into = buffer(host, result, result_count, result_type);
        let target = target(host, rank, disp, target_count, target_type);
        on_target_with("MPI_Rget_accumulate_c", host, win, rank, request, |place| {
            let op = host.handle(op);
            // SAFETY: the caller's buffers.
            unsafe { accumulate::accumulate(place, from, Some(into), target, op) }
        }, |native| {
            let (ot, tt) = (host.handle(origin_type), host.handle(target_type));
            let rt = host.handle(result_type);
            let o = host.handle(op);
            if let Some(call) = host.call.rget_accumulate_c {
                // SAFETY: the caller's arguments, as for the MPI underneath alone.
                return unsafe {
                    call(
                        origin, origin_count, ot, result, result_count, rt, rank, disp,
                        target_count, tt, o, native, request,
                    )
                };
            }
            let counts = (narrow(origin_count), narrow(result_count), narrow(target_count));
            let (Some(oc), Some(rc), Some(tc)) = counts else {
                return host.constants.class(Class::Count);
            };
            // SAFETY: likewise, with the counts narrowed.
            unsafe {
                (host.call.rget_accumulate)(
                    origin, oc, ot, result, rc, rt, rank, disp, tc, tt, o, native, request,
                )
            }
        })
    }
}
