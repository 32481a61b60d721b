//! Communication calls (MPI-4.1 §12.3). The functions of a family differ in the type of their
//! counts and in whether they have a request: `MPI_Put`, `MPI_Put_c`, `MPI_Rput`, `MPI_Rput_c`.
//! Each is a row below: its two names, the type of its counts, whether it has a `[request]`, and
//! the function of the host MPI, for delegated windows: `(native)`, or `(native_c else native)` if
//! an MPI may lack the function with large counts. Puts and gets also have the kind of their
//! pointer, and their direction. `quick[]` and `quick[request]` say that there is a fast path, and
//! name it if it is not the only one.

use super::answer::on_window;
use super::entry::transfer_block;
use super::request_calls::{on_target_with, with_request};
use super::{MPI_Aint, MPI_Count, MPI_Datatype, MPI_Op, MPI_Request, MPI_Win};
use crate::error::{Class, Error, Result};
use crate::fabric::Way;
use crate::mpi::comm::check;
use crate::mpi::{Handle, Host};
use crate::transfer::{Accumulation, Buffer, Place, Quick, TargetBuffer};
use crate::transfer::{accumulate, put_get, single, staged};
use crate::window::library_loads::diverted;
use crate::window::notifications::Notified;
use crate::window::quick_window::TRANSFERS;
use core::ffi::{c_int, c_void};

/// Returns a buffer of the caller.
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

/// Returns a buffer of the caller with its handle as passed, for the fast path.
#[inline(always)]
pub(super) fn passed(
    address: *const c_void,
    count: i64,
    datatype: MPI_Datatype,
) -> (*mut u8, i64, MPI_Datatype) {
    (address.cast_mut().cast(), count, datatype)
}

/// Returns the target location of a call.
#[inline]
pub(super) fn target(
    host: &Host,
    rank: c_int,
    disp: MPI_Aint,
    count: i64,
    datatype: MPI_Datatype,
) -> TargetBuffer {
    TargetBuffer { rank, disp: disp as i64, count, datatype: host.handle(datatype) }
}

/// Returns a large count for an MPI without large counts, if it fits.
fn narrow(count: MPI_Count) -> Option<c_int> {
    c_int::try_from(count).ok()
}

/// A communication call.
pub(super) struct Call {
    pub name: &'static str,
    pub host: &'static Host,
    /// the target
    pub rank: c_int,
    pub win: MPI_Win,
    /// the caller's pointer to a request; `None`: the call has no request
    pub request: Option<*mut MPI_Request>,
    /// what a notified call does, and the index of its counter
    pub notified: Option<(Notified, c_int)>,
}

impl Call {
    /// Returns a call without a request and a notification.
    #[inline(always)]
    pub fn plain(name: &'static str, rank: c_int, win: MPI_Win) -> Call {
        Call { name, host: Host::get(), rank, win, request: None, notified: None }
    }

    /// Executes the call: `ours` if libfompi implements the window, `theirs` otherwise.
    #[inline(always)]
    pub fn carry_out(
        self,
        ours: impl FnOnce(Place<'static>) -> Result<()>,
        theirs: impl FnOnce(Handle) -> Result<()>,
    ) -> c_int {
        let Some((kind, index)) = self.notified else { return self.on_target(ours, theirs) };
        let counter = (kind, self.rank, index);
        self.on_target(|place| place.notified(counter, || ours(place)), theirs)
    }

    /// Executes the operation of the call. One that succeeds after a fence opens an epoch; one that
    /// fails does not, nor does one on MPI_PROC_NULL.
    #[inline]
    fn on_target(
        self,
        ours: impl FnOnce(Place<'static>) -> Result<()>,
        theirs: impl FnOnce(Handle) -> Result<()>,
    ) -> c_int {
        let Call { name, host, rank, win, request, .. } = self;
        if let Some(request) = request {
            return on_target_with((name, host), win, rank, request, ours, theirs);
        }
        on_window(
            name,
            host,
            win,
            |window, node| {
                ours(Place { host, window, node, memory: None })?;
                if window.epochs.awaits_operation() && rank != host.constants.proc_null {
                    window.epochs.accessed();
                }
                Ok(())
            },
            theirs,
        )
    }
}

/// Executes a call of the put or get family on a window of libfompi.
///
/// # Safety
/// `origin` is a buffer of the caller, which may be written by a get.
#[inline(always)]
pub(super) unsafe fn transfer(
    place: Place<'_>,
    way: Way,
    origin: Buffer,
    target: TargetBuffer,
) -> Result<()> {
    // SAFETY: the caller guarantees valid buffers.
    unsafe {
        match diverted() {
            None => put_get::transfer(place, way, origin, target),
            Some(diverted) => place.by_default(target.rank, way.into(), |place| {
                staged::transfer(diverted, place, way, origin, target)
            }),
        }
    }
}

/// Executes a call of the accumulate family, or of the get_accumulate family, which has a `result`.
///
/// # Safety
/// `from` and `result` are buffers of the caller; `result` may be written.
#[inline(always)]
pub(super) unsafe fn accumulate(
    call: Call,
    (from, result): (Buffer, Option<Buffer>),
    target: TargetBuffer,
    op: MPI_Op,
    theirs: impl FnOnce(Handle) -> Result<()>,
) -> c_int {
    let given = Accumulation { origin: from, result, target, op: call.host.handle(op) };
    // SAFETY: the caller guarantees valid buffers.
    let ours = |place| unsafe {
        match diverted() {
            None => accumulate::accumulate(place, &given),
            Some(diverted) => place.by_default(target.rank, Notified::Accumulate, |place| {
                staged::accumulate(diverted, place, &given)
            }),
        }
    };
    // By itself: with the rest it takes 25 instructions more (`scripts/dev/counts`).
    if call.request.is_none() || result.is_none() {
        return call.carry_out(ours, theirs);
    }
    call.carry_out(
        |place| {
            ours(place)?;
            place.wait_for_results(given.target.rank) // docs/decisions/0017
        },
        theirs,
    )
}

/// Executes MPI_Fetch_and_op on a window of libfompi.
///
/// # Safety
/// `origin` and `result` are buffers of the caller; `result` may be written.
#[inline(always)]
pub(super) unsafe fn fetch_and_op(
    place: Place<'_>,
    (origin, result): (*const c_void, *mut c_void),
    target: TargetBuffer,
    op: MPI_Op,
) -> Result<()> {
    let (op, origin, result) = (place.host.handle(op), origin.cast(), result.cast());
    // SAFETY: the caller guarantees valid buffers.
    unsafe {
        match diverted() {
            None => single::fetch_and_op(place, origin, result, target, op),
            Some(diverted) => place.by_default(target.rank, Notified::Accumulate, |place| {
                staged::fetch_and_op(diverted, place, (origin, result), target, op)
            }),
        }
    }
}

/// Executes MPI_Compare_and_swap on a window of libfompi.
///
/// # Safety
/// As for [`fetch_and_op`], and `compare` is a buffer of the caller.
#[inline(always)]
pub(super) unsafe fn compare_and_swap(
    place: Place<'_>,
    (origin, compare, result): (*const c_void, *const c_void, *mut c_void),
    target: TargetBuffer,
) -> Result<()> {
    let given = (origin.cast(), compare.cast(), result.cast());
    // SAFETY: the caller guarantees valid buffers.
    unsafe {
        match diverted() {
            None => single::compare_and_swap(place, given, target),
            Some(diverted) => place.by_default(target.rank, Notified::Accumulate, |place| {
                staged::compare_and_swap(diverted, place, given, target)
            }),
        }
    }
}

puts_and_gets! {
    /// Transfers data to a target (MPI-4.1 §12.3.1). By stores where the target's memory is mapped
    /// here, by process_vm into other memory of this node, and by RDMA WRITE to other nodes. Only
    /// RDMA WRITE, and small puts by process_vm that an epoch gathers, may be incomplete at the
    /// target when the call returns. The fast path serves one predefined type.
    /// Errors: MPI_ERR_WIN, MPI_ERR_RANK, MPI_ERR_RMA_SYNC without an access epoch,
    /// MPI_ERR_RMA_RANGE, MPI_ERR_COUNT, MPI_ERR_TYPE, MPI_ERR_TRUNCATE, MPI_ERR_BUFFER,
    /// MPI_ERR_OTHER if the target is lost.
    MPI_Put PMPI_Put *const c_int [] = Put(put) quick[];

    /// Transfers data to a target (MPI-4.1 §12.3.1), with large counts. By stores where the
    /// target's memory is mapped here, by process_vm into other memory of this node, and by RDMA
    /// WRITE to other nodes. Only RDMA WRITE, and small puts by process_vm that an epoch gathers,
    /// may be incomplete at the target when the call returns. Errors: MPI_ERR_WIN, MPI_ERR_RANK,
    /// MPI_ERR_RMA_SYNC without an access epoch, MPI_ERR_RMA_RANGE, MPI_ERR_COUNT, MPI_ERR_TYPE,
    /// MPI_ERR_TRUNCATE, MPI_ERR_BUFFER, MPI_ERR_OTHER if the target is lost.
    MPI_Put_c PMPI_Put_c *const MPI_Count [] = Put(put_c else put);

    /// Transfers data to a target, as MPI_Put, with a request (MPI-4.1 §12.3.5). The request is one
    /// of the host MPI: on one node it is complete when the call returns; between nodes it
    /// completes when the buffers may be reused. Errors: those of MPI_Put, and MPI_ERR_RMA_SYNC
    /// outside of a passive-target epoch, MPI_ERR_ARG for a null pointer as the request.
    MPI_Rput PMPI_Rput *const c_int [request] = Put(rput) quick[request];

    /// Transfers data to a target, as MPI_Put, with a request (MPI-4.1 §12.3.5), with large counts.
    /// The request is one of the host MPI: on one node it is complete when the call returns;
    /// between nodes it completes when the buffers may be reused. Errors: those of MPI_Put, and
    /// MPI_ERR_RMA_SYNC outside of a passive-target epoch, MPI_ERR_ARG for a null pointer as the
    /// request.
    MPI_Rput_c PMPI_Rput_c *const MPI_Count [request] = Put(rput_c else rput);

    /// Transfers data from a target (MPI-4.1 §12.3.2). By loads where the target's memory is mapped
    /// here, by process_vm from other memory of this node, and by RDMA READ from other nodes; only
    /// RDMA READ may complete after the call returns. The fast path serves one predefined type.
    /// Errors: MPI_ERR_WIN, MPI_ERR_RANK, MPI_ERR_RMA_SYNC without an access epoch,
    /// MPI_ERR_RMA_RANGE, MPI_ERR_COUNT, MPI_ERR_TYPE, MPI_ERR_TRUNCATE, MPI_ERR_BUFFER,
    /// MPI_ERR_OTHER if the target is lost.
    MPI_Get PMPI_Get *mut c_int [] = Get(get) quick[];

    /// Transfers data from a target (MPI-4.1 §12.3.2), with large counts. By loads where the
    /// target's memory is mapped here, by process_vm from other memory of this node, and by RDMA
    /// READ from other nodes; only RDMA READ may complete after the call returns. Errors:
    /// MPI_ERR_WIN, MPI_ERR_RANK, MPI_ERR_RMA_SYNC without an access epoch, MPI_ERR_RMA_RANGE,
    /// MPI_ERR_COUNT, MPI_ERR_TYPE, MPI_ERR_TRUNCATE, MPI_ERR_BUFFER, MPI_ERR_OTHER if the target
    /// is lost.
    MPI_Get_c PMPI_Get_c *mut MPI_Count [] = Get(get_c else get);

    /// Transfers data from a target, as MPI_Get, with a request (MPI-4.1 §12.3.5). The request is
    /// one of the host MPI: on one node it is complete when the call returns; between nodes it
    /// completes when the buffers may be reused. Errors: those of MPI_Get, and MPI_ERR_RMA_SYNC
    /// outside of a passive-target epoch, MPI_ERR_ARG for a null pointer as the request.
    MPI_Rget PMPI_Rget *mut c_int [request] = Get(rget) quick[request];

    /// Transfers data from a target, as MPI_Get, with a request (MPI-4.1 §12.3.5), with large
    /// counts. The request is one of the host MPI: on one node it is complete when the call
    /// returns; between nodes it completes when the buffers may be reused. Errors: those of
    /// MPI_Get, and MPI_ERR_RMA_SYNC outside of a passive-target epoch, MPI_ERR_ARG for a null
    /// pointer as the request.
    MPI_Rget_c PMPI_Rget_c *mut MPI_Count [request] = Get(rget_c else rget);
}

accumulates! {
    /// Combines origin data with target data by a predefined operation (MPI-4.1 §12.3.4). A single
    /// element is updated by an atomic instruction of the processor or the RDMA device if all ranks
    /// can use it; all other elements are updated under the accumulate lock of the target, unless
    /// this rank holds an exclusive lock. The fast path serves a few elements in mapped memory.
    /// Errors: MPI_ERR_WIN, MPI_ERR_RANK, MPI_ERR_RMA_SYNC without an access epoch,
    /// MPI_ERR_RMA_RANGE, MPI_ERR_COUNT, MPI_ERR_TYPE, MPI_ERR_TRUNCATE, MPI_ERR_BUFFER,
    /// MPI_ERR_OP, MPI_ERR_OTHER if the target is lost.
    MPI_Accumulate PMPI_Accumulate c_int [] = (accumulate) quick[] single::accumulate_quick;

    /// Combines origin data with target data by a predefined operation (MPI-4.1 §12.3.4), with
    /// large counts. A single element is updated by an atomic instruction of the processor or the
    /// RDMA device if all ranks can use it; all other elements are updated under the accumulate
    /// lock of the target, unless this rank holds an exclusive lock. Errors: MPI_ERR_WIN,
    /// MPI_ERR_RANK, MPI_ERR_RMA_SYNC without an access epoch, MPI_ERR_RMA_RANGE, MPI_ERR_COUNT,
    /// MPI_ERR_TYPE, MPI_ERR_TRUNCATE, MPI_ERR_BUFFER, MPI_ERR_OP, MPI_ERR_OTHER if the target is
    /// lost.
    MPI_Accumulate_c PMPI_Accumulate_c MPI_Count [] = (accumulate_c else accumulate);

    /// Combines origin data with target data, as MPI_Accumulate, with a request (MPI-4.1 §12.3.5).
    /// The request is one of the host MPI: on one node it is complete when the call returns;
    /// between nodes it completes when the buffers may be reused. Errors: those of MPI_Accumulate,
    /// and MPI_ERR_RMA_SYNC outside of a passive-target epoch, MPI_ERR_ARG for a null pointer as
    /// the request.
    MPI_Raccumulate PMPI_Raccumulate c_int [request]
        = (raccumulate) quick[request] single::accumulate_quick;

    /// Combines origin data with target data, as MPI_Accumulate, with a request (MPI-4.1 §12.3.5),
    /// with large counts. The request is one of the host MPI: on one node it is complete when the
    /// call returns; between nodes it completes when the buffers may be reused. Errors: those of
    /// MPI_Accumulate, and MPI_ERR_RMA_SYNC outside of a passive-target epoch, MPI_ERR_ARG for a
    /// null pointer as the request.
    MPI_Raccumulate_c PMPI_Raccumulate_c MPI_Count [request] = (raccumulate_c else raccumulate);
}

get_accumulates! {
    /// Returns data of a target and combines them with those of the origin, element by element
    /// (MPI-4.1 §12.3.4). A single element is updated by an atomic instruction of the processor or
    /// the RDMA device if all ranks can use it; all other elements are updated under the accumulate
    /// lock of the target, unless this rank holds an exclusive lock. Errors: MPI_ERR_WIN,
    /// MPI_ERR_RANK, MPI_ERR_RMA_SYNC without an access epoch, MPI_ERR_RMA_RANGE, MPI_ERR_COUNT,
    /// MPI_ERR_TYPE, MPI_ERR_TRUNCATE, MPI_ERR_BUFFER, MPI_ERR_OP, MPI_ERR_OTHER if the target is
    /// lost.
    MPI_Get_accumulate PMPI_Get_accumulate c_int []
        = (get_accumulate) quick[] single::fetch_and_op_quick;

    /// Returns data of a target and combines them with those of the origin, element by element
    /// (MPI-4.1 §12.3.4), with large counts. A single element is updated by an atomic instruction
    /// of the processor or the RDMA device if all ranks can use it; all other elements are updated
    /// under the accumulate lock of the target, unless this rank holds an exclusive lock. Errors:
    /// MPI_ERR_WIN, MPI_ERR_RANK, MPI_ERR_RMA_SYNC without an access epoch, MPI_ERR_RMA_RANGE,
    /// MPI_ERR_COUNT, MPI_ERR_TYPE, MPI_ERR_TRUNCATE, MPI_ERR_BUFFER, MPI_ERR_OP, MPI_ERR_OTHER if
    /// the target is lost.
    MPI_Get_accumulate_c PMPI_Get_accumulate_c MPI_Count []
        = (get_accumulate_c else get_accumulate);

    /// Returns data of a target and combines them, as MPI_Get_accumulate, with a request (MPI-4.1
    /// §12.3.5). The request is one of the host MPI: on one node it is complete when the call
    /// returns; between nodes it completes when the buffers may be reused. Errors: those of
    /// MPI_Get_accumulate, and MPI_ERR_RMA_SYNC outside of a passive-target epoch, MPI_ERR_ARG for
    /// a null pointer as the request.
    MPI_Rget_accumulate PMPI_Rget_accumulate c_int [request]
        = (rget_accumulate) quick[request] single::fetch_and_op_quick;

    /// Returns data of a target and combines them, as MPI_Get_accumulate, with a request (MPI-4.1
    /// §12.3.5), with large counts. The request is one of the host MPI: on one node it is complete
    /// when the call returns; between nodes it completes when the buffers may be reused. Errors:
    /// those of MPI_Get_accumulate, and MPI_ERR_RMA_SYNC outside of a passive-target epoch,
    /// MPI_ERR_ARG for a null pointer as the request.
    MPI_Rget_accumulate_c PMPI_Rget_accumulate_c MPI_Count [request]
        = (rget_accumulate_c else rget_accumulate);
}

quick_entry! {
    /// Returns one element of a target and combines it with one of the origin (MPI-4.1 §12.3.4).
    /// Executed by an atomic instruction of this processor if the memory is mapped, by FETCH_ADD or
    /// CMP_SWAP of the RDMA device for 64-bit words between nodes, by the target's processor over
    /// TCP, and otherwise under the accumulate lock of the target. Complete when it returns, except
    /// over TCP. The fast path serves mapped memory. Errors: those of MPI_Accumulate.
    MPI_Fetch_and_op PMPI_Fetch_and_op (
        origin: *const c_void, result: *mut c_void, datatype: MPI_Datatype, rank: c_int,
        disp: MPI_Aint, op: MPI_Op, win: MPI_Win,
    ) {
        let given = !origin.is_null() && !result.is_null();
        let to = if given { Quick::open(win, rank, ENTRY) } else { None };
        let what = (disp as i64, datatype, op);
        // SAFETY: the caller's buffers.
        to.and_then(|to| unsafe {
            single::fetch_and_op_quick(&to, origin.cast(), result.cast(), what)
        }).is_some()
    } {
        let call = Call::plain("MPI_Fetch_and_op", rank, win);
        let (host, target) = (call.host, target(call.host, rank, disp, 1, datatype));
        let theirs = |native| {
            let (t, o) = (host.handle(datatype), host.handle(op));
            // SAFETY: the caller's arguments, passed on unchanged.
            check(unsafe { (host.call.fetch_and_op)(origin, result, t, rank, disp, o, native) })
        };
        // SAFETY: the caller's buffers.
        let ours = |place| unsafe { fetch_and_op(place, (origin, result), target, op) };
        call.carry_out(ours, theirs)
    }

    /// Returns one element of a target and replaces it if it equals `compare` (MPI-4.1 §12.3.4).
    /// Executed by an atomic instruction of this processor if the memory is mapped, by CMP_SWAP of
    /// the RDMA device for 64-bit words between nodes, by the target's processor over TCP, and
    /// otherwise under the accumulate lock of the target. Complete when it returns, except over
    /// TCP. The fast path serves mapped memory. Errors: those of MPI_Put, MPI_ERR_TYPE for a type
    /// that cannot be compared.
    MPI_Compare_and_swap PMPI_Compare_and_swap (
        origin: *const c_void, compare: *const c_void, result: *mut c_void,
        datatype: MPI_Datatype, rank: c_int, disp: MPI_Aint, win: MPI_Win,
    ) {
        let given = !origin.is_null() && !compare.is_null() && !result.is_null();
        let to = if given { Quick::open(win, rank, ENTRY) } else { None };
        let (origin, what) = ((origin.cast(), compare.cast()), (disp as i64, datatype));
        // SAFETY: the caller's buffers.
        to.and_then(|to| unsafe {
            single::compare_and_swap_quick(&to, origin, result.cast(), what)
        }).is_some()
    } {
        let call = Call::plain("MPI_Compare_and_swap", rank, win);
        let (host, target) = (call.host, target(call.host, rank, disp, 1, datatype));
        let theirs = |native| {
            let t = host.handle(datatype);
            // SAFETY: the caller's arguments, passed on unchanged.
            check(unsafe {
                (host.call.compare_and_swap)(origin, compare, result, t, rank, disp, native)
            })
        };
        // SAFETY: the caller's buffers.
        let ours = |place| unsafe { compare_and_swap(place, (origin, compare, result), target) };
        call.carry_out(ours, theirs)
    }
}
