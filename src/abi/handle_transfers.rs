//! Transfers with memory of a handle (docs/decisions/0033). No epoch is asked. Each is a
//! communication call of `transfer` on the memory of the handle, by its attributes.

use super::answer::check_output;
use super::handle_calls::{FOMPI_Mem, handle_entries, on_memory};
use super::request_calls::store_request;
use super::transfer::{buffer, compare_and_swap, fetch_and_op, passed, target, transfer};
use super::{MPI_Aint, MPI_Count, MPI_Datatype, MPI_Op, MPI_Request};
use crate::error::{Error, Result};
use crate::fabric::Way;
use crate::messages;
use crate::mpi::transfer_attributes::{BLOCKING, TransferAttributes};
use crate::transfer::scaled::Scaled;
use crate::transfer::{Accumulation, Place, accumulate, single, staged};
use crate::window::address::Reach;
use crate::window::handles::{HandleMemory, MemoryHandle, completion};
use crate::window::library_loads::diverted;
use crate::window::notifications::Notified;
use core::ffi::{c_int, c_void};

/// The buffers of this process in FOMPI_Xfer. A kind uses some of them; the others are NULL.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct fompi_buffers {
    /// what is sent: of a put, an accumulate, or the new value of a compare-and-swap
    pub origin: *const c_void,
    /// its elements
    pub origin_count: MPI_Count,
    /// their type
    pub origin_type: MPI_Datatype,
    /// what comes back: of a get, a get-accumulate or a compare-and-swap
    pub result: *mut c_void,
    /// its elements
    pub result_count: MPI_Count,
    /// their type
    pub result_type: MPI_Datatype,
    /// the value to compare with, of a compare-and-swap
    pub compare: *const c_void,
}

/// The kinds of transfers, as fompi_rma.h numbers them.
const PUT: c_int = 0;
const GET: c_int = 1;
const ACCUMULATE: c_int = 2;
const GET_ACCUMULATE: c_int = 3;
const COMPARE_AND_SWAP: c_int = 4;

/// A part of the memory of a handle: the displacement, the count and the type.
type Part = (MPI_Aint, i64, MPI_Datatype);

/// Carries out a put or a get with the memory of a handle.
///
/// # Safety
/// `address` is a buffer of the caller, which may be written by a get.
unsafe fn put_or_get(
    (place, memory): (Place<'_>, &HandleMemory),
    way: Way,
    (address, count, datatype): (*const c_void, i64, MPI_Datatype),
    (disp, target_count, target_type): Part,
) -> Result<()> {
    let (host, rank) = (place.host, memory.rank().0.cast_signed());
    let buffer = buffer(host, address, count, datatype);
    let target = target(host, rank, disp, target_count, target_type);
    // SAFETY: guaranteed by the caller.
    unsafe { transfer(place, way, buffer, target) }
}

/// Carries out an accumulate with the memory of a handle, with a result or without one.
///
/// # Safety
/// The buffers are of the caller; that of the result may be written.
unsafe fn combine(
    (place, memory): (Place<'_>, &HandleMemory),
    (origin, count, datatype): (*const c_void, i64, MPI_Datatype),
    result: Option<(*mut c_void, i64, MPI_Datatype)>,
    (disp, target_count, target_type): Part,
    op: MPI_Op,
) -> Result<()> {
    let (host, rank) = (place.host, memory.rank().0.cast_signed());
    let given = Accumulation {
        origin: buffer(host, origin, count, datatype),
        result: result.map(|(at, count, datatype)| buffer(host, at, count, datatype)),
        target: target(host, rank, disp, target_count, target_type),
        op: host.handle(op),
    };
    // SAFETY: guaranteed by the caller.
    unsafe {
        match diverted() {
            None => accumulate::accumulate(place, &given),
            Some(diverted) => staged::accumulate(diverted, place, &given),
        }
    }
}

handle_entries! {
    /// Transfers `count` elements of `type` from `origin` to displacement `disp`, in bytes, of the
    /// memory of a handle. No epoch is needed. By stores where the memory is mapped here, by
    /// process_vm into other memory of the node, by one request to another node; over an RDMA
    /// device a round trip comes before. `attributes`: 0, or a sum of FOMPI_ORDERED, FOMPI_REMOTE,
    /// FOMPI_ATOMIC, FOMPI_BLOCKING and FOMPI_NOTIFY. Without FOMPI_BLOCKING or FOMPI_REMOTE the
    /// buffer may be in use until FOMPI_Complete. Any thread may call. Errors: MPI_ERR_ARG for no
    /// handle, MPI_ERR_RMA_RANGE for bytes outside or memory that was withdrawn (between nodes by
    /// the call that completes), MPI_ERR_COUNT, MPI_ERR_TYPE, MPI_ERR_BUFFER, MPI_ERR_OTHER if the
    /// owner is lost.
    FOMPI_Mem_put [0] (
        origin: *const c_void, count: MPI_Count, datatype: MPI_Datatype, mem: FOMPI_Mem,
        disp: MPI_Aint, attributes: c_int,
    ) quick[ONE_WORD] {
        let (from, disp) = (passed(origin, count, datatype), disp as i64);
        attributes & !BLOCKING == 0 && !origin.is_null()
            // SAFETY: the caller's handle and buffer.
            && unsafe { MemoryHandle::transfer::<ONE_WORD>(mem, Way::Put, from, disp) }.is_some()
    } {
        // SAFETY: the caller's handle and buffer.
        unsafe {
            on_memory("FOMPI_Mem_put", mem, |place, memory| {
                let attributes = TransferAttributes::of(attributes, false)?;
                let (from, part) = ((origin, count, datatype), (disp, count, datatype));
                let put = || put_or_get((place, memory), Way::Put, from, part);
                place.attributed(memory.rank(), Notified::Put, attributes, put)
            })
        }
    }

    /// Transfers `count` elements of `type` from displacement `disp`, in bytes, of the memory of a
    /// handle to `origin`. Otherwise as FOMPI_Mem_put: without FOMPI_BLOCKING or FOMPI_REMOTE the
    /// data may arrive as late as FOMPI_Complete. Errors: those of FOMPI_Mem_put.
    FOMPI_Mem_get [0] (
        origin: *mut c_void, count: MPI_Count, datatype: MPI_Datatype, mem: FOMPI_Mem,
        disp: MPI_Aint, attributes: c_int,
    ) quick[ONE_WORD] {
        let (to, disp) = (passed(origin, count, datatype), disp as i64);
        attributes & !BLOCKING == 0 && !origin.is_null()
            // SAFETY: the caller's handle and buffer.
            && unsafe { MemoryHandle::transfer::<ONE_WORD>(mem, Way::Get, to, disp) }.is_some()
    } {
        // SAFETY: the caller's handle and buffer.
        unsafe {
            on_memory("FOMPI_Mem_get", mem, |place, memory| {
                let attributes = TransferAttributes::of(attributes, false)?;
                let (to, part) = ((origin.cast_const(), count, datatype), (disp, count, datatype));
                let get = || put_or_get((place, memory), Way::Get, to, part);
                place.attributed(memory.rank(), Notified::Get, attributes, get)
            })
        }
    }

    /// Combines `count` elements of `type` at displacement `disp`, in bytes, of the memory of a
    /// handle with those at `origin` by a predefined operation, as MPI_Accumulate. Atomic for each
    /// element with accumulates by handles and on the window, except those of a process that holds
    /// an exclusive lock. Otherwise as FOMPI_Mem_put. Errors: those of FOMPI_Mem_put, MPI_ERR_OP,
    /// MPI_ERR_UNSUPPORTED_OPERATION with FOMPI_ATOMIC.
    FOMPI_Mem_accumulate [0] (
        origin: *const c_void, count: MPI_Count, datatype: MPI_Datatype, mem: FOMPI_Mem,
        disp: MPI_Aint, op: MPI_Op, attributes: c_int,
    ) quick[] {
        let what = (disp as i64, datatype, op);
        attributes & !BLOCKING == 0 && count == 1 && !origin.is_null()
            // SAFETY: the caller's handle and buffer.
            && unsafe { single::accumulate_by_handle(mem, origin.cast(), what) }.is_some()
    } {
        // SAFETY: the caller's handle and buffer.
        unsafe {
            on_memory("FOMPI_Mem_accumulate", mem, |place, memory| {
                let attributes = TransferAttributes::of(attributes, false)?;
                let (from, part) = ((origin, count, datatype), (disp, count, datatype));
                let add = || combine((place, memory), from, None, part, op);
                place.attributed(memory.rank(), Notified::Accumulate, attributes, add)
            })
        }
    }

    /// Adds `count` elements at `origin` times the one at `factor`, all of one type, to those at
    /// displacement `disp`, in bytes, of the memory of a handle: `target += factor * origin`, the
    /// accumulate of ARMCI, or daxpy. The types are MPI_INT, MPI_LONG, MPI_FLOAT, MPI_DOUBLE, the
    /// complex types of C of the last two, and types of Fortran like these; integers wrap. This
    /// process multiplies the elements into memory of its own, one pass and `count` elements of
    /// memory, and sends a sum by FOMPI_Mem_accumulate, so it is atomic for each element as that
    /// one. The buffers are free when the call returns, as with FOMPI_BLOCKING. Errors: those of
    /// FOMPI_Mem_accumulate, MPI_ERR_TYPE for another type or memory of a GPU, MPI_ERR_BUFFER for a
    /// null pointer as the factor, MPI_ERR_NO_MEM.
    FOMPI_Mem_accumulate_scaled [0] (
        factor: *const c_void, origin: *const c_void, count: MPI_Count, datatype: MPI_Datatype,
        mem: FOMPI_Mem, disp: MPI_Aint, attributes: c_int,
    ) {
        // SAFETY: the caller's handle and buffers.
        unsafe {
            on_memory("FOMPI_Mem_accumulate_scaled", mem, |place, memory| {
                let attributes = TransferAttributes::of(attributes, false)?;
                let part = (disp, count, datatype);
                add_scaled((place, memory), (factor, origin), part, attributes)
            })
        }
    }

    /// Returns one element at displacement `disp`, in bytes, of the memory of a handle in `result`,
    /// and combines it with that at `origin`, as MPI_Fetch_and_op. The result has arrived when the
    /// transfer is complete, as that of FOMPI_Mem_get. Atomic as FOMPI_Mem_accumulate. Errors:
    /// those of FOMPI_Mem_accumulate.
    FOMPI_Mem_fetch_and_op [0] (
        origin: *const c_void, result: *mut c_void, datatype: MPI_Datatype, mem: FOMPI_Mem,
        disp: MPI_Aint, op: MPI_Op, attributes: c_int,
    ) quick[] {
        let (buffers, what) = ((origin.cast(), result.cast()), (disp as i64, datatype, op));
        attributes & !BLOCKING == 0 && !origin.is_null() && !result.is_null()
            // SAFETY: the caller's handle and buffers.
            && unsafe { single::fetch_and_op_by_handle(mem, buffers, what) }.is_some()
    } {
        // SAFETY: the caller's handle and buffers.
        unsafe {
            on_memory("FOMPI_Mem_fetch_and_op", mem, |place, memory| {
                let attributes = TransferAttributes::of(attributes, false)?;
                let rank = memory.rank();
                let target = target(place.host, rank.0.cast_signed(), disp, 1, datatype);
                let fetch = || fetch_and_op(place, (origin, result), target, op);
                place.attributed(rank, Notified::Accumulate, attributes, fetch)
            })
        }
    }

    /// Returns one element at displacement `disp`, in bytes, of the memory of a handle in `result`,
    /// and replaces it by that at `origin` if it equals that at `compare`, as MPI_Compare_and_swap.
    /// Otherwise as FOMPI_Mem_fetch_and_op. Errors: those of FOMPI_Mem_accumulate.
    FOMPI_Mem_compare_and_swap [0] (
        origin: *const c_void, compare: *const c_void, result: *mut c_void,
        datatype: MPI_Datatype, mem: FOMPI_Mem, disp: MPI_Aint, attributes: c_int,
    ) quick[] {
        let buffers = (origin.cast(), compare.cast(), result.cast());
        let what = (disp as i64, datatype);
        let given = !origin.is_null() && !compare.is_null() && !result.is_null();
        attributes & !BLOCKING == 0 && given
            // SAFETY: the caller's handle and buffers.
            && unsafe { single::compare_and_swap_by_handle(mem, buffers, what) }.is_some()
    } {
        // SAFETY: the caller's handle and buffers.
        unsafe {
            on_memory("FOMPI_Mem_compare_and_swap", mem, |place, memory| {
                let attributes = TransferAttributes::of(attributes, false)?;
                let rank = memory.rank();
                let target = target(place.host, rank.0.cast_signed(), disp, 1, datatype);
                let swap = || compare_and_swap(place, (origin, compare, result), target);
                place.attributed(rank, Notified::Accumulate, attributes, swap)
            })
        }
    }

    /// Carries out one transfer with the memory of a handle that says all it wants: the kind
    /// (FOMPI_PUT, FOMPI_GET, FOMPI_ACCUMULATE, FOMPI_GET_ACCUMULATE, FOMPI_COMPARE_AND_SWAP), the
    /// operation of an accumulate, the buffers of this process, `count` elements of `type` at
    /// displacement `disp`, in bytes, and the attributes of FOMPI_Mem_put. A put uses `origin`, a
    /// get `result`, an accumulate `origin`, a get-accumulate `origin` and `result`, a
    /// compare-and-swap of one element all three. `request`: NULL, or where to store a request for
    /// MPI_Wait and its like, which is complete when the buffers may be used again and results have
    /// arrived; with FOMPI_REMOTE the call waits and the request is complete. Without a request,
    /// FOMPI_BLOCKING and FOMPI_REMOTE, FOMPI_Complete completes the transfer. Any thread may call.
    /// Errors: those of the short form of the kind, MPI_ERR_ARG for an unknown kind or attribute, a
    /// null pointer as the buffers, or FOMPI_BLOCKING with a request.
    FOMPI_Xfer [0] (
        kind: c_int, op: MPI_Op, buffers: *const fompi_buffers, mem: FOMPI_Mem, disp: MPI_Aint,
        count: MPI_Count, datatype: MPI_Datatype, attributes: c_int, request: *mut MPI_Request,
    ) {
        // SAFETY: the caller's handle, buffers and pointer to a request.
        unsafe {
            on_memory("FOMPI_Xfer", mem, |place, memory| {
                check_output(buffers)?;
                let attributes = TransferAttributes::of(attributes, !request.is_null())?;
                let part = (disp, count, datatype);
                let what = (kind, op, &*buffers, attributes);
                xfer((place, memory), what, part, request)
            })
        }
    }
}

/// Does the work of FOMPI_Mem_accumulate_scaled.
///
/// # Safety
/// The factor and the origin are buffers of the caller.
unsafe fn add_scaled(
    (place, memory): (Place<'_>, &HandleMemory),
    (factor, origin): (*const c_void, *const c_void),
    (disp, count, datatype): Part,
    attributes: TransferAttributes,
) -> Result<()> {
    let (host, rank) = (place.host, memory.rank());
    let from = buffer(host, origin, count, datatype);
    let room = |bytes: u64| memory.find(disp as i64, Reach { first: 0, bytes }).map(drop);
    // SAFETY: guaranteed by the caller.
    let scaled = unsafe { Scaled::of(&place, factor.cast(), from, room)? };
    let operands = (scaled.address().cast(), count, datatype);
    let add = || {
        let (on, part) = ((place, memory), (disp, count, datatype));
        // SAFETY: as many elements of this type, until the next line.
        let added = unsafe { combine(on, operands, None, part, host.tables.sum) };
        let done = completion::complete_here(place.node, rank);
        added.and(done)
    };
    place.attributed(rank, Notified::Accumulate, attributes, add)
}

/// Does the work of FOMPI_Xfer.
///
/// # Safety
/// The buffers are those of the caller, and `request` is null or points to a request handle.
unsafe fn xfer(
    (place, memory): (Place<'_>, &HandleMemory),
    (kind, op, buffers, attributes): (c_int, MPI_Op, &fompi_buffers, TransferAttributes),
    (disp, count, datatype): Part,
    request: *mut MPI_Request,
) -> Result<()> {
    let (node, rank, part) = (place.node, memory.rank(), (disp, count, datatype));
    let origin = (buffers.origin, buffers.origin_count, buffers.origin_type);
    let result = (buffers.result, buffers.result_count, buffers.result_type);
    let on = (place, memory);
    let element = target(place.host, rank.0.cast_signed(), disp, count, datatype);
    let has_result = matches!(kind, GET_ACCUMULATE | COMPARE_AND_SWAP);
    // SAFETY: guaranteed by the caller, for each of the calls.
    let work = || unsafe {
        match kind {
            PUT => put_or_get(on, Way::Put, origin, part),
            GET => {
                let (at, count, datatype) = result;
                put_or_get(on, Way::Get, (at.cast_const(), count, datatype), part)
            }
            ACCUMULATE => combine(on, origin, None, part, op),
            GET_ACCUMULATE => combine(on, origin, Some(result), part, op),
            _ if count != 1 => Err(Error::Argument(&messages::TARGET_COUNT, count)),
            _ => {
                let compared = (buffers.origin, buffers.compare, buffers.result);
                compare_and_swap(place, compared, element)
            }
        }
    };
    let kind_of = match kind {
        PUT => Notified::Put,
        GET => Notified::Get,
        ACCUMULATE | GET_ACCUMULATE | COMPARE_AND_SWAP => Notified::Accumulate,
        other => return Err(Error::Argument(&messages::MEM_KIND, other.into())),
    };
    let before = node.lent(rank);
    place.attributed(rank, kind_of, attributes, work)?;
    if request.is_null() {
        return Ok(());
    }
    if has_result {
        place.wait_for_results(rank.0.cast_signed())?;
    }
    let call = ("FOMPI_Xfer", place.host);
    // SAFETY: guaranteed by the caller.
    unsafe { store_request(call, node, Some(rank), before, request) }
}
