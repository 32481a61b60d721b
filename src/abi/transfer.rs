//! Communication calls (MPI-4.1 §12.3).

use super::answer::on_window;
use super::{MPI_Aint, MPI_Count, MPI_Datatype, MPI_Op, MPI_Win};
use crate::error::{Class, Result};
use crate::mpi::{Handle, Host};
use crate::transfer::{Buffer, Place, Quick, Target, accumulate, put_get, single};
use core::ffi::{c_int, c_void};

/// A buffer of the caller's.
#[inline]
pub(super) fn buffer(
    host: &Host,
    address: *const c_void,
    count: i64,
    datatype: MPI_Datatype,
) -> Buffer {
    let address = address.cast_mut().cast();
    Buffer { address, count, datatype: host.handle(datatype) }
}

/// A place in a window.
#[inline]
pub(super) fn target(
    host: &Host,
    rank: c_int,
    disp: MPI_Aint,
    count: i64,
    datatype: MPI_Datatype,
) -> Target {
    Target { rank, disp: disp as i64, count, datatype: host.handle(datatype) }
}

/// Carries a communication call on `rank` out. Where it has succeeded after a fence it has begun an
/// epoch; a call that was refused has not, nor has one on MPI_PROC_NULL.
#[inline]
pub(super) fn on_target(
    call: &'static str,
    host: &'static Host,
    win: MPI_Win,
    rank: c_int,
    ours: impl FnOnce(Place<'static>) -> Result<()>,
    theirs: impl FnOnce(Handle) -> c_int,
) -> c_int {
    on_window(
        call,
        host,
        win,
        |window, node| {
            ours(Place { host, window, node })?;
            if rank != host.constants.proc_null {
                window.epochs.accessed();
            }
            Ok(())
        },
        theirs,
    )
}

/// A large count for an MPI without large counts.
pub(super) fn narrow(count: MPI_Count) -> Option<c_int> {
    c_int::try_from(count).ok()
}

card! {
    /// MPI-4.1 §12.3.1, with large counts.
    MPI_Put_c PMPI_Put_c (
        origin: *const c_void, origin_count: MPI_Count, origin_type: MPI_Datatype, rank: c_int,
        disp: MPI_Aint, target_count: MPI_Count, target_type: MPI_Datatype, win: MPI_Win,
    ) {
        let host = Host::get();
        let from = buffer(host, origin, origin_count, origin_type);
        let target = target(host, rank, disp, target_count, target_type);
        on_target("MPI_Put_c", host, win, rank, |place| {
            // SAFETY: the caller's buffers.
            unsafe { put_get::put(place, from, target) }
        }, |native| {
            let (ot, tt) = (host.handle(origin_type), host.handle(target_type));
            if let Some(call) = host.call.put_c {
                // SAFETY: the caller's arguments, as for the MPI underneath alone.
                return unsafe {
                    call(origin, origin_count, ot, rank, disp, target_count, tt, native)
                };
            }
            let (Some(oc), Some(tc)) = (narrow(origin_count), narrow(target_count)) else {
                return host.constants.class(Class::Count);
            };
            // SAFETY: likewise, with the counts narrowed.
            unsafe {
                (host.call.put)(origin, oc, ot, rank, disp, tc, tt, native)
            }
        })
    }

    /// MPI-4.1 §12.3.2, with large counts.
    MPI_Get_c PMPI_Get_c (
        origin: *mut c_void, origin_count: MPI_Count, origin_type: MPI_Datatype, rank: c_int,
        disp: MPI_Aint, target_count: MPI_Count, target_type: MPI_Datatype, win: MPI_Win,
    ) {
        let host = Host::get();
        let from = buffer(host, origin, origin_count, origin_type);
        let target = target(host, rank, disp, target_count, target_type);
        on_target("MPI_Get_c", host, win, rank, |place| {
            // SAFETY: the caller's buffers.
            unsafe { put_get::get(place, from, target) }
        }, |native| {
            let (ot, tt) = (host.handle(origin_type), host.handle(target_type));
            if let Some(call) = host.call.get_c {
                // SAFETY: the caller's arguments, as for the MPI underneath alone.
                return unsafe {
                    call(origin, origin_count, ot, rank, disp, target_count, tt, native)
                };
            }
            let (Some(oc), Some(tc)) = (narrow(origin_count), narrow(target_count)) else {
                return host.constants.class(Class::Count);
            };
            // SAFETY: likewise, with the counts narrowed.
            unsafe {
                (host.call.get)(origin, oc, ot, rank, disp, tc, tt, native)
            }
        })
    }

    /// MPI-4.1 §12.3.4, with large counts.
    MPI_Accumulate_c PMPI_Accumulate_c (
        origin: *const c_void, origin_count: MPI_Count, origin_type: MPI_Datatype, rank: c_int,
        disp: MPI_Aint, target_count: MPI_Count, target_type: MPI_Datatype, op: MPI_Op,
        win: MPI_Win,
    ) {
        let host = Host::get();
        let from = buffer(host, origin, origin_count, origin_type);
        let target = target(host, rank, disp, target_count, target_type);
        on_target("MPI_Accumulate_c", host, win, rank, |place| {
            let op = host.handle(op);
            // SAFETY: the caller's buffers.
            unsafe { accumulate::accumulate(place, from, None, target, op) }
        }, |native| {
            let (ot, tt) = (host.handle(origin_type), host.handle(target_type));
            let o = host.handle(op);
            if let Some(call) = host.call.accumulate_c {
                // SAFETY: the caller's arguments, as for the MPI underneath alone.
                return unsafe {
                    call(origin, origin_count, ot, rank, disp, target_count, tt, o, native)
                };
            }
            let (Some(oc), Some(tc)) = (narrow(origin_count), narrow(target_count)) else {
                return host.constants.class(Class::Count);
            };
            // SAFETY: likewise, with the counts narrowed.
            unsafe {
                (host.call.accumulate)(origin, oc, ot, rank, disp, tc, tt, o, native)
            }
        })
    }

    /// MPI-4.1 §12.3.4.
    MPI_Get_accumulate PMPI_Get_accumulate (
        origin: *const c_void, origin_count: c_int, origin_type: MPI_Datatype,
        result: *mut c_void, result_count: c_int, result_type: MPI_Datatype, rank: c_int,
        disp: MPI_Aint, target_count: c_int, target_type: MPI_Datatype, op: MPI_Op, win: MPI_Win,
    ) {
        let host = Host::get();
        let from = buffer(host, origin, origin_count.into(), origin_type);
        let into = buffer(host, result, result_count.into(), result_type);
        let target = target(host, rank, disp, target_count.into(), target_type);
        on_target("MPI_Get_accumulate", host, win, rank, |place| {
            let op = host.handle(op);
            // SAFETY: the caller's buffers.
            unsafe { accumulate::accumulate(place, from, Some(into), target, op) }
        }, |native| {
            let (ot, tt) = (host.handle(origin_type), host.handle(target_type));
            let rt = host.handle(result_type);
            let o = host.handle(op);
            // SAFETY: the caller's arguments, as for the MPI underneath alone.
            unsafe {
                (host.call.get_accumulate)(
                    origin, origin_count, ot, result, result_count, rt, rank, disp,
                    target_count, tt, o, native,
                )
            }
        })
    }

    /// MPI-4.1 §12.3.4, with large counts.
    MPI_Get_accumulate_c PMPI_Get_accumulate_c (
        origin: *const c_void, origin_count: MPI_Count, origin_type: MPI_Datatype,
        result: *mut c_void, result_count: MPI_Count, result_type: MPI_Datatype, rank: c_int,
        disp: MPI_Aint, target_count: MPI_Count, target_type: MPI_Datatype, op: MPI_Op,
        win: MPI_Win,
    ) {
        let host = Host::get();
        let from = buffer(host, origin, origin_count, origin_type);
        let into = buffer(host, result, result_count, result_type);
        let target = target(host, rank, disp, target_count, target_type);
        on_target("MPI_Get_accumulate_c", host, win, rank, |place| {
            let op = host.handle(op);
            // SAFETY: the caller's buffers.
            unsafe { accumulate::accumulate(place, from, Some(into), target, op) }
        }, |native| {
            let (ot, tt) = (host.handle(origin_type), host.handle(target_type));
            let rt = host.handle(result_type);
            let o = host.handle(op);
            if let Some(call) = host.call.get_accumulate_c {
                // SAFETY: the caller's arguments, as for the MPI underneath alone.
                return unsafe {
                    call(
                        origin, origin_count, ot, result, result_count, rt, rank, disp,
                        target_count, tt, o, native,
                    )
                };
            }
            let counts = (narrow(origin_count), narrow(result_count), narrow(target_count));
            let (Some(oc), Some(rc), Some(tc)) = counts else {
                return host.constants.class(Class::Count);
            };
            // SAFETY: likewise, with the counts narrowed.
            unsafe {
                (host.call.get_accumulate)(
                    origin, oc, ot, result, rc, rt, rank, disp, tc, tt, o, native,
                )
            }
        })
    }
}

quick_card! {
    /// MPI-4.1 §12.3.1.
    MPI_Put PMPI_Put (
        origin: *const c_void, origin_count: c_int, origin_type: MPI_Datatype, rank: c_int,
        disp: MPI_Aint, target_count: c_int, target_type: MPI_Datatype, win: MPI_Win,
    ) {
        Quick::new(win, rank, ENTRY).is_some_and(|to| {
            let from = buffer(to.host, origin, origin_count.into(), origin_type);
            let target = target(to.host, rank, disp, target_count.into(), target_type);
            // SAFETY: the caller's buffer.
            unsafe { put_get::put_quick(&to, from, target) }
        })
    } {
        let host = Host::get();
        let from = buffer(host, origin, origin_count.into(), origin_type);
        let target = target(host, rank, disp, target_count.into(), target_type);
        on_target("MPI_Put", host, win, rank, |place| {
            // SAFETY: the caller's buffers.
            unsafe { put_get::put(place, from, target) }
        }, |native| {
            let (ot, tt) = (host.handle(origin_type), host.handle(target_type));
            // SAFETY: the caller's arguments, as for the MPI underneath alone.
            unsafe {
                (host.call.put)(origin, origin_count, ot, rank, disp, target_count, tt, native)
            }
        })
    }

    /// MPI-4.1 §12.3.2.
    MPI_Get PMPI_Get (
        origin: *mut c_void, origin_count: c_int, origin_type: MPI_Datatype, rank: c_int,
        disp: MPI_Aint, target_count: c_int, target_type: MPI_Datatype, win: MPI_Win,
    ) {
        Quick::new(win, rank, ENTRY).is_some_and(|to| {
            let from = buffer(to.host, origin, origin_count.into(), origin_type);
            let target = target(to.host, rank, disp, target_count.into(), target_type);
            // SAFETY: the caller's buffer.
            unsafe { put_get::get_quick(&to, from, target) }
        })
    } {
        let host = Host::get();
        let from = buffer(host, origin, origin_count.into(), origin_type);
        let target = target(host, rank, disp, target_count.into(), target_type);
        on_target("MPI_Get", host, win, rank, |place| {
            // SAFETY: the caller's buffers.
            unsafe { put_get::get(place, from, target) }
        }, |native| {
            let (ot, tt) = (host.handle(origin_type), host.handle(target_type));
            // SAFETY: the caller's arguments, as for the MPI underneath alone.
            unsafe {
                (host.call.get)(origin, origin_count, ot, rank, disp, target_count, tt, native)
            }
        })
    }

    /// MPI-4.1 §12.3.4.
    MPI_Fetch_and_op PMPI_Fetch_and_op (
        origin: *const c_void, result: *mut c_void, datatype: MPI_Datatype, rank: c_int,
        disp: MPI_Aint, op: MPI_Op, win: MPI_Win,
    ) {
        Quick::new(win, rank, ENTRY).is_some_and(|to| {
            let target = target(to.host, rank, disp, 1, datatype);
            let op = to.host.handle(op);
            // SAFETY: the caller's buffers.
            unsafe {
                single::fetch_and_op_quick(&to, origin.cast(), result.cast(), target, op)
            }
        })
    } {
        let host = Host::get();
        let target = target(host, rank, disp, 1, datatype);
        on_target("MPI_Fetch_and_op", host, win, rank, |place| {
            let op = host.handle(op);
            // SAFETY: the caller's buffers.
            unsafe { single::fetch_and_op(place, origin.cast(), result.cast(), target, op) }
        }, |native| {
            let (t, o) = (host.handle(datatype), host.handle(op));
            // SAFETY: the caller's arguments, as for the MPI underneath alone.
            unsafe { (host.call.fetch_and_op)(origin, result, t, rank, disp, o, native) }
        })
    }

    /// MPI-4.1 §12.3.4.
    MPI_Compare_and_swap PMPI_Compare_and_swap (
        origin: *const c_void, compare: *const c_void, result: *mut c_void,
        datatype: MPI_Datatype, rank: c_int, disp: MPI_Aint, win: MPI_Win,
    ) {
        Quick::new(win, rank, ENTRY).is_some_and(|to| {
            let target = target(to.host, rank, disp, 1, datatype);
            let (origin, compare, result) = (origin.cast(), compare.cast(), result.cast());
            // SAFETY: the caller's buffers.
            unsafe { single::compare_and_swap_quick(&to, origin, compare, result, target) }
        })
    } {
        let host = Host::get();
        let target = target(host, rank, disp, 1, datatype);
        on_target("MPI_Compare_and_swap", host, win, rank, |place| {
            let (origin, compare, result) = (origin.cast(), compare.cast(), result.cast());
            // SAFETY: the caller's buffers.
            unsafe { single::compare_and_swap(place, origin, compare, result, target) }
        }, |native| {
            let t = host.handle(datatype);
            // SAFETY: the caller's arguments, as for the MPI underneath alone.
            unsafe { (host.call.compare_and_swap)(origin, compare, result, t, rank, disp, native) }
        })
    }

    /// MPI-4.1 §12.3.4.
    MPI_Accumulate PMPI_Accumulate (
        origin: *const c_void, origin_count: c_int, origin_type: MPI_Datatype, rank: c_int,
        disp: MPI_Aint, target_count: c_int, target_type: MPI_Datatype, op: MPI_Op, win: MPI_Win,
    ) {
        Quick::new(win, rank, ENTRY).is_some_and(|to| {
            let from = buffer(to.host, origin, origin_count.into(), origin_type);
            let target = target(to.host, rank, disp, target_count.into(), target_type);
            // SAFETY: the caller's buffer.
            unsafe { accumulate::accumulate_quick(&to, from, target, to.host.handle(op)) }
        })
    } {
        let host = Host::get();
        let from = buffer(host, origin, origin_count.into(), origin_type);
        let target = target(host, rank, disp, target_count.into(), target_type);
        on_target("MPI_Accumulate", host, win, rank, |place| {
            let op = host.handle(op);
            // SAFETY: the caller's buffers.
            unsafe { accumulate::accumulate(place, from, None, target, op) }
        }, |native| {
            let (ot, tt) = (host.handle(origin_type), host.handle(target_type));
            let o = host.handle(op);
            // SAFETY: the caller's arguments, as for the MPI underneath alone.
            unsafe {
                (host.call.accumulate)(
                    origin, origin_count, ot, rank, disp, target_count, tt, o, native,
                )
            }
        })
    }
}
