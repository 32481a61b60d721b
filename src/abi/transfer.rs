//! Communication calls (MPI-4.1 §12.3). The functions of a family differ in the type of their
//! counts and in whether they have a request: `MPI_Put`, `MPI_Put_c`, `MPI_Rput`, `MPI_Rput_c`.
//! Each is a row below, `signature = work(native)`. `work` is a function of this file. `native` is
//! the function of the MPI underneath, for windows of that MPI; `native_c else native` where an MPI
//! may have no function with large counts.

use super::answer::on_window;
use super::request::on_target_with;
use super::{MPI_Aint, MPI_Count, MPI_Datatype, MPI_Op, MPI_Request, MPI_Win};
use crate::error::{Class, Result};
use crate::mpi::{Handle, Host};
use crate::transfer::{Buffer, Place, Quick, Target, accumulate, put_get, single};
use core::ffi::{c_int, c_void};

/// A buffer of the caller's.
#[inline]
fn buffer(host: &Host, address: *const c_void, count: i64, datatype: MPI_Datatype) -> Buffer {
    let address = address.cast_mut().cast();
    Buffer { address, count, datatype: host.handle(datatype) }
}

/// A place in a window.
#[inline]
fn target(host: &Host, rank: c_int, disp: MPI_Aint, count: i64, datatype: MPI_Datatype) -> Target {
    Target { rank, disp: disp as i64, count, datatype: host.handle(datatype) }
}

/// Carries a communication call on `rank` out. Where it has succeeded after a fence it has begun an
/// epoch; a call that was refused has not, nor has one on MPI_PROC_NULL.
#[inline]
fn on_target(
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
fn narrow(count: MPI_Count) -> Option<c_int> {
    c_int::try_from(count).ok()
}

/// A communication call.
struct Call {
    name: &'static str,
    host: &'static Host,
    /// the target
    rank: c_int,
    win: MPI_Win,
    /// where the caller wants a request; none: the call has no request
    request: Option<*mut MPI_Request>,
}

impl Call {
    #[inline]
    fn carry_out(
        self,
        ours: impl FnOnce(Place<'static>) -> Result<()>,
        theirs: impl FnOnce(Handle) -> c_int,
    ) -> c_int {
        let Call { name, host, rank, win, request } = self;
        match request {
            None => on_target(name, host, win, rank, ours, theirs),
            Some(request) => on_target_with((name, host), win, rank, request, ours, theirs),
        }
    }
}

/// The put family.
///
/// # Safety
/// `from` is a buffer of the caller.
#[inline]
unsafe fn put(
    call: Call,
    from: Buffer,
    target: Target,
    theirs: impl FnOnce(Handle) -> c_int,
) -> c_int {
    // SAFETY: the caller's promise.
    call.carry_out(|place| unsafe { put_get::put(place, from, target) }, theirs)
}

/// The get family.
///
/// # Safety
/// `into` is a buffer of the caller, which may be written.
#[inline]
unsafe fn get(
    call: Call,
    into: Buffer,
    target: Target,
    theirs: impl FnOnce(Handle) -> c_int,
) -> c_int {
    // SAFETY: the caller's promise.
    call.carry_out(|place| unsafe { put_get::get(place, into, target) }, theirs)
}

/// The accumulate family, and that of get_accumulate, which has a `result`.
///
/// # Safety
/// `from` and `result` are buffers of the caller; `result` may be written.
#[inline]
unsafe fn accumulate(
    call: Call,
    (from, result): (Buffer, Option<Buffer>),
    target: Target,
    op: MPI_Op,
    theirs: impl FnOnce(Handle) -> c_int,
) -> c_int {
    let op = call.host.handle(op);
    // SAFETY: the caller's promise.
    call.carry_out(
        |place| unsafe { accumulate::accumulate(place, from, result, target, op) },
        theirs,
    )
}

/// `Some` of what stands there, or `None`.
macro_rules! optional {
    () => {
        None
    };
    ($value:expr) => {
        Some($value)
    };
}

/// Calls a function of the MPI underneath. The counts among the arguments are narrowed where it has
/// none with large counts.
macro_rules! native {
    ($host:ident.$small:ident [$($count:ident)*] $arguments:tt) => {
        // SAFETY: the caller's arguments, as for the MPI underneath alone.
        unsafe { ($host.call.$small) $arguments }
    };
    ($host:ident.$large:ident else $small:ident [$($count:ident)*] $arguments:tt) => {
        match $host.call.$large {
            // SAFETY: likewise.
            Some(call) => unsafe { call $arguments },
            None => {
                let ($(Some($count),)*) = ($(narrow($count),)*) else {
                    return $host.constants.class(Class::Count);
                };
                // SAFETY: likewise.
                unsafe { ($host.call.$small) $arguments }
            }
        }
    };
}

/// A card, or a quick card if there is a block that tries the common case.
macro_rules! row {
    ($(#[$doc:meta])* $name:ident $profiled:ident $parameters:tt [] $body:block) => {
        card! { $(#[$doc])* $name $profiled $parameters $body }
    };
    ($(#[$doc:meta])* $name:ident $profiled:ident $parameters:tt [$quick:block] $body:block) => {
        quick_card! { $(#[$doc])* $name $profiled $parameters $quick $body }
    };
}

/// Rows of functions with the arguments of MPI_Put.
macro_rules! puts_and_gets {
    ($(
        $(#[$doc:meta])*
        $name:ident $profiled:ident (
            $origin:ident: $pointer:ty, $oc:ident: $oct:ty, $ot:ident: $ott:ty, $rank:ident: $rt:ty,
            $disp:ident: $dt:ty, $tc:ident: $tct:ty, $tt:ident: $ttt:ty, $win:ident: $wt:ty,
            $($request:ident: $rqt:ty,)?
        ) = $work:ident($($native:ident)+) $(quick $quick:path)?;
    )*) => {$( row! {
        $(#[$doc])*
        $name $profiled (
            $origin: $pointer, $oc: $oct, $ot: $ott, $rank: $rt, $disp: $dt, $tc: $tct, $tt: $ttt,
            $win: $wt, $($request: $rqt,)?
        ) [$({
            Quick::new($win, $rank, ENTRY).is_some_and(|to| {
                let buffer = buffer(to.host, $origin, $oc.into(), $ot);
                let target = target(to.host, $rank, $disp, $tc.into(), $tt);
                // SAFETY: the caller's buffer.
                unsafe { $quick(&to, buffer, target) }
            })
        })?] {
            let (name, host, request) = (stringify!($name), Host::get(), optional!($($request)?));
            let call = Call { name, host, rank: $rank, win: $win, request };
            let buffer = buffer(host, $origin, $oc.into(), $ot);
            let target = target(host, $rank, $disp, $tc.into(), $tt);
            let theirs = |native| native!(host.$($native)+ [$oc $tc] (
                $origin, $oc, host.handle($ot), $rank, $disp, $tc, host.handle($tt), native
                $(, $request)?
            ));
            // SAFETY: the caller's buffer.
            unsafe { $work(call, buffer, target, theirs) }
        }
    } )*};
}

/// Rows of functions with the arguments of MPI_Accumulate.
macro_rules! accumulates {
    ($(
        $(#[$doc:meta])*
        $name:ident $profiled:ident (
            $origin:ident: $pointer:ty, $oc:ident: $oct:ty, $ot:ident: $ott:ty, $rank:ident: $rt:ty,
            $disp:ident: $dt:ty, $tc:ident: $tct:ty, $tt:ident: $ttt:ty, $op:ident: $opt:ty,
            $win:ident: $wt:ty, $($request:ident: $rqt:ty,)?
        ) = $work:ident($($native:ident)+) $(quick $quick:path)?;
    )*) => {$( row! {
        $(#[$doc])*
        $name $profiled (
            $origin: $pointer, $oc: $oct, $ot: $ott, $rank: $rt, $disp: $dt, $tc: $tct, $tt: $ttt,
            $op: $opt, $win: $wt, $($request: $rqt,)?
        ) [$({
            Quick::new($win, $rank, ENTRY).is_some_and(|to| {
                let from = buffer(to.host, $origin, $oc.into(), $ot);
                let target = target(to.host, $rank, $disp, $tc.into(), $tt);
                // SAFETY: the caller's buffer.
                unsafe { $quick(&to, from, target, to.host.handle($op)) }
            })
        })?] {
            let (name, host, request) = (stringify!($name), Host::get(), optional!($($request)?));
            let call = Call { name, host, rank: $rank, win: $win, request };
            let from = buffer(host, $origin, $oc.into(), $ot);
            let target = target(host, $rank, $disp, $tc.into(), $tt);
            let theirs = |native| native!(host.$($native)+ [$oc $tc] (
                $origin, $oc, host.handle($ot), $rank, $disp, $tc, host.handle($tt),
                host.handle($op), native $(, $request)?
            ));
            // SAFETY: the caller's buffer.
            unsafe { $work(call, (from, None), target, $op, theirs) }
        }
    } )*};
}

/// Rows of functions with the arguments of MPI_Get_accumulate.
macro_rules! get_accumulates {
    ($(
        $(#[$doc:meta])*
        $name:ident $profiled:ident (
            $origin:ident: $pointer:ty, $oc:ident: $oct:ty, $ot:ident: $ott:ty,
            $result:ident: $rp:ty, $rc:ident: $rct:ty, $rst:ident: $rstt:ty, $rank:ident: $rt:ty,
            $disp:ident: $dt:ty, $tc:ident: $tct:ty, $tt:ident: $ttt:ty, $op:ident: $opt:ty,
            $win:ident: $wt:ty, $($request:ident: $rqt:ty,)?
        ) = $work:ident($($native:ident)+);
    )*) => {$( row! {
        $(#[$doc])*
        $name $profiled (
            $origin: $pointer, $oc: $oct, $ot: $ott, $result: $rp, $rc: $rct, $rst: $rstt,
            $rank: $rt, $disp: $dt, $tc: $tct, $tt: $ttt, $op: $opt, $win: $wt,
            $($request: $rqt,)?
        ) [] {
            let (name, host, request) = (stringify!($name), Host::get(), optional!($($request)?));
            let call = Call { name, host, rank: $rank, win: $win, request };
            let from = buffer(host, $origin, $oc.into(), $ot);
            let into = buffer(host, $result, $rc.into(), $rst);
            let target = target(host, $rank, $disp, $tc.into(), $tt);
            let theirs = |native| native!(host.$($native)+ [$oc $rc $tc] (
                $origin, $oc, host.handle($ot), $result, $rc, host.handle($rst), $rank, $disp,
                $tc, host.handle($tt), host.handle($op), native $(, $request)?
            ));
            // SAFETY: the caller's buffers.
            unsafe { $work(call, (from, Some(into)), target, $op, theirs) }
        }
    } )*};
}

puts_and_gets! {
    /// MPI-4.1 §12.3.1.
    MPI_Put PMPI_Put (
        origin: *const c_void, origin_count: c_int, origin_type: MPI_Datatype, rank: c_int,
        disp: MPI_Aint, target_count: c_int, target_type: MPI_Datatype, win: MPI_Win,
    ) = put(put) quick put_get::put_quick;

    /// MPI-4.1 §12.3.1, with large counts.
    MPI_Put_c PMPI_Put_c (
        origin: *const c_void, origin_count: MPI_Count, origin_type: MPI_Datatype, rank: c_int,
        disp: MPI_Aint, target_count: MPI_Count, target_type: MPI_Datatype, win: MPI_Win,
    ) = put(put_c else put);

    /// MPI-4.1 §12.3.5.
    MPI_Rput PMPI_Rput (
        origin: *const c_void, origin_count: c_int, origin_type: MPI_Datatype, rank: c_int,
        disp: MPI_Aint, target_count: c_int, target_type: MPI_Datatype, win: MPI_Win,
        request: *mut MPI_Request,
    ) = put(rput);

    /// MPI-4.1 §12.3.5, with large counts.
    MPI_Rput_c PMPI_Rput_c (
        origin: *const c_void, origin_count: MPI_Count, origin_type: MPI_Datatype, rank: c_int,
        disp: MPI_Aint, target_count: MPI_Count, target_type: MPI_Datatype, win: MPI_Win,
        request: *mut MPI_Request,
    ) = put(rput_c else rput);

    /// MPI-4.1 §12.3.2.
    MPI_Get PMPI_Get (
        origin: *mut c_void, origin_count: c_int, origin_type: MPI_Datatype, rank: c_int,
        disp: MPI_Aint, target_count: c_int, target_type: MPI_Datatype, win: MPI_Win,
    ) = get(get) quick put_get::get_quick;

    /// MPI-4.1 §12.3.2, with large counts.
    MPI_Get_c PMPI_Get_c (
        origin: *mut c_void, origin_count: MPI_Count, origin_type: MPI_Datatype, rank: c_int,
        disp: MPI_Aint, target_count: MPI_Count, target_type: MPI_Datatype, win: MPI_Win,
    ) = get(get_c else get);

    /// MPI-4.1 §12.3.5.
    MPI_Rget PMPI_Rget (
        origin: *mut c_void, origin_count: c_int, origin_type: MPI_Datatype, rank: c_int,
        disp: MPI_Aint, target_count: c_int, target_type: MPI_Datatype, win: MPI_Win,
        request: *mut MPI_Request,
    ) = get(rget);

    /// MPI-4.1 §12.3.5, with large counts.
    MPI_Rget_c PMPI_Rget_c (
        origin: *mut c_void, origin_count: MPI_Count, origin_type: MPI_Datatype, rank: c_int,
        disp: MPI_Aint, target_count: MPI_Count, target_type: MPI_Datatype, win: MPI_Win,
        request: *mut MPI_Request,
    ) = get(rget_c else rget);
}

accumulates! {
    /// MPI-4.1 §12.3.4.
    MPI_Accumulate PMPI_Accumulate (
        origin: *const c_void, origin_count: c_int, origin_type: MPI_Datatype, rank: c_int,
        disp: MPI_Aint, target_count: c_int, target_type: MPI_Datatype, op: MPI_Op, win: MPI_Win,
    ) = accumulate(accumulate) quick accumulate::accumulate_quick;

    /// MPI-4.1 §12.3.4, with large counts.
    MPI_Accumulate_c PMPI_Accumulate_c (
        origin: *const c_void, origin_count: MPI_Count, origin_type: MPI_Datatype, rank: c_int,
        disp: MPI_Aint, target_count: MPI_Count, target_type: MPI_Datatype, op: MPI_Op,
        win: MPI_Win,
    ) = accumulate(accumulate_c else accumulate);

    /// MPI-4.1 §12.3.5.
    MPI_Raccumulate PMPI_Raccumulate (
        origin: *const c_void, origin_count: c_int, origin_type: MPI_Datatype, rank: c_int,
        disp: MPI_Aint, target_count: c_int, target_type: MPI_Datatype, op: MPI_Op, win: MPI_Win,
        request: *mut MPI_Request,
    ) = accumulate(raccumulate);

    /// MPI-4.1 §12.3.5, with large counts.
    MPI_Raccumulate_c PMPI_Raccumulate_c (
        origin: *const c_void, origin_count: MPI_Count, origin_type: MPI_Datatype, rank: c_int,
        disp: MPI_Aint, target_count: MPI_Count, target_type: MPI_Datatype, op: MPI_Op,
        win: MPI_Win, request: *mut MPI_Request,
    ) = accumulate(raccumulate_c else raccumulate);
}

get_accumulates! {
    /// MPI-4.1 §12.3.4.
    MPI_Get_accumulate PMPI_Get_accumulate (
        origin: *const c_void, origin_count: c_int, origin_type: MPI_Datatype, result: *mut c_void,
        result_count: c_int, result_type: MPI_Datatype, rank: c_int, disp: MPI_Aint,
        target_count: c_int, target_type: MPI_Datatype, op: MPI_Op, win: MPI_Win,
    ) = accumulate(get_accumulate);

    /// MPI-4.1 §12.3.4, with large counts.
    MPI_Get_accumulate_c PMPI_Get_accumulate_c (
        origin: *const c_void, origin_count: MPI_Count, origin_type: MPI_Datatype,
        result: *mut c_void, result_count: MPI_Count, result_type: MPI_Datatype, rank: c_int,
        disp: MPI_Aint, target_count: MPI_Count, target_type: MPI_Datatype, op: MPI_Op,
        win: MPI_Win,
    ) = accumulate(get_accumulate_c else get_accumulate);

    /// MPI-4.1 §12.3.5.
    MPI_Rget_accumulate PMPI_Rget_accumulate (
        origin: *const c_void, origin_count: c_int, origin_type: MPI_Datatype, result: *mut c_void,
        result_count: c_int, result_type: MPI_Datatype, rank: c_int, disp: MPI_Aint,
        target_count: c_int, target_type: MPI_Datatype, op: MPI_Op, win: MPI_Win,
        request: *mut MPI_Request,
    ) = accumulate(rget_accumulate);

    /// MPI-4.1 §12.3.5, with large counts.
    MPI_Rget_accumulate_c PMPI_Rget_accumulate_c (
        origin: *const c_void, origin_count: MPI_Count, origin_type: MPI_Datatype,
        result: *mut c_void, result_count: MPI_Count, result_type: MPI_Datatype, rank: c_int,
        disp: MPI_Aint, target_count: MPI_Count, target_type: MPI_Datatype, op: MPI_Op,
        win: MPI_Win, request: *mut MPI_Request,
    ) = accumulate(rget_accumulate_c else rget_accumulate);
}

quick_card! {
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
}
