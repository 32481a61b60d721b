//! Calls whose buffers may be memory of a GPU. Such a buffer has a copy in memory of the host
//! ([`HostCopy`]), and the call uses the copy. Data are copied to the host before the call. For a
//! get or a result, the call waits until the data have arrived and copies them back. So such a call
//! is complete when it returns.
//!
//! Calls on windows that check for conflicts come here, too (`window::conflicts`).
//!
//! Only bytes of the type map are read or written. A buffer may be of both kinds of memory, because
//! a datatype may name any addresses.

use super::noted::{CallKind, Noted};
use super::put_get::{reach, total};
use super::{Accumulation, Buffer, Place, TargetBuffer, accumulate, elements, put_get, single};
use crate::datatype::reduce::Op;
use crate::datatype::type_map::{Shape, each_run};
use crate::error::Result;
use crate::fabric::Way;
use crate::messages;
use crate::mpi::Handle;
use crate::number::{Number, Offset};
use crate::window::library_loads::{CopyDirection, Diverted, Gpu, HostRoom, PageKinds};
use core::ptr;
use smallvec::SmallVec;

/// MPI_Put and MPI_Get.
///
/// # Safety
/// As for [`put_get::transfer`].
#[cold]
pub unsafe fn transfer(
    Diverted(gpu): Diverted,
    place: Place<'_>,
    way: Way,
    origin: Buffer,
    target: TargetBuffer,
) -> Result<()> {
    let noted = Noted::before(&place, CallKind::Transfer(way), (Some(origin), target))?;
    let copy = HostCopy::of(gpu, place, Some(origin), target)?;
    let origin = copy.as_ref().map_or(origin, |copy| copy.buffer);
    let (from, into) = match way {
        Way::Put => (copy.as_ref(), None),
        Way::Get => (None, copy.as_ref()),
    };
    // SAFETY: the caller's promise; the copy is as the buffer is.
    let work = || unsafe { put_get::transfer(place, way, origin, target) };
    // SAFETY: the copies live until the call is complete.
    let done = unsafe { with_copies((place, target), &[from], into, work) };
    noted.after(done)
}

/// MPI_Accumulate and MPI_Get_accumulate.
///
/// # Safety
/// As for [`accumulate::accumulate`].
#[cold]
pub unsafe fn accumulate(
    Diverted(gpu): Diverted,
    place: Place<'_>,
    call: &Accumulation,
) -> Result<()> {
    let Accumulation { origin, result, target, op } = *call;
    // The origin of MPI_NO_OP is no buffer.
    let given = (!is_no_op(place, op)).then_some(origin);
    let noted = Noted::before(&place, CallKind::Accumulate(Some(op)), (given, target))?;
    let from = HostCopy::of(gpu, place, given, target)?;
    let into = HostCopy::of(gpu, place, result, target)?;
    let call = Accumulation {
        origin: from.as_ref().map_or(origin, |from| from.buffer),
        result: into.as_ref().map(|into| into.buffer).or(result),
        ..*call
    };
    // SAFETY: the caller's promise; the copies are as the buffers are.
    let work = || unsafe { accumulate::accumulate(place, &call) };
    // SAFETY: the copies live until the call is complete.
    let done = unsafe { with_copies((place, target), &[from.as_ref()], into.as_ref(), work) };
    noted.after(done)
}

/// MPI_Fetch_and_op.
///
/// # Safety
/// As for [`single::fetch_and_op`].
#[cold]
pub unsafe fn fetch_and_op(
    Diverted(gpu): Diverted,
    place: Place<'_>,
    (origin, result): (*const u8, *mut u8),
    target: TargetBuffer,
    op: Handle,
) -> Result<()> {
    let noted = Noted::before(&place, CallKind::Accumulate(Some(op)), (None, target))?;
    let given = (!is_no_op(place, op)).then_some(origin);
    let from = HostCopy::of(gpu, place, given.map(|one| element(one, target)), target)?;
    let into = HostCopy::of(gpu, place, Some(element(result, target)), target)?;
    let origin = from.as_ref().map_or(origin, |from| from.address().cast_const());
    let result = into.as_ref().map_or(result, HostCopy::address);
    // SAFETY: the caller's promise; the copies are as the buffers are.
    let work = || unsafe { single::fetch_and_op(place, origin, result, target, op) };
    // SAFETY: the copies live until the call is complete.
    let done = unsafe { with_copies((place, target), &[from.as_ref()], into.as_ref(), work) };
    noted.after(done)
}

/// MPI_Compare_and_swap.
///
/// # Safety
/// As for [`single::compare_and_swap`].
#[cold]
pub unsafe fn compare_and_swap(
    Diverted(gpu): Diverted,
    place: Place<'_>,
    (origin, compare, result): (*const u8, *const u8, *mut u8),
    target: TargetBuffer,
) -> Result<()> {
    let noted = Noted::before(&place, CallKind::Accumulate(None), (None, target))?;
    let copy = |one| HostCopy::of(gpu, place, Some(element(one, target)), target);
    let (from, with, into) = (copy(origin)?, copy(compare)?, copy(result)?);
    let origin = from.as_ref().map_or(origin, |from| from.address().cast_const());
    let compare = with.as_ref().map_or(compare, |with| with.address().cast_const());
    let result = into.as_ref().map_or(result, HostCopy::address);
    // SAFETY: the caller's promise; the copies are as the buffers are.
    let work = || unsafe { single::compare_and_swap(place, (origin, compare, result), target) };
    // SAFETY: the copies live until the call is complete.
    let done = unsafe {
        with_copies((place, target), &[from.as_ref(), with.as_ref()], into.as_ref(), work)
    };
    noted.after(done)
}

/// Carries out a call by `work`, which uses the copies in place of the buffers that have one: reads
/// `from` first, and writes `into` back when the call does not use its buffers any more.
///
/// # Safety
/// The buffers of `from` may be read, that of `into` written.
unsafe fn with_copies(
    (place, target): (Place<'_>, TargetBuffer),
    from: &[Option<&HostCopy>],
    into: Option<&HostCopy>,
    work: impl FnOnce() -> Result<()>,
) -> Result<()> {
    let is_staged = into.is_some() || from.iter().any(Option::is_some);
    for read in from.iter().flatten() {
        // SAFETY: guaranteed by the caller.
        unsafe { read.read()? };
    }
    let done = work();
    if !is_staged {
        return done;
    }
    completed(place, target, done)?;
    // SAFETY: the caller lets `into` be written.
    into.map_or(Ok(()), |into| unsafe { into.write_back() })
}

/// Whether an operation is MPI_NO_OP.
fn is_no_op(place: Place<'_>, op: Handle) -> bool {
    place.host.tables.ops.find(op) == Some(&Op::NoOp)
}

/// One element of the target's type at an address of the origin.
fn element(address: *const u8, target: TargetBuffer) -> Buffer {
    Buffer { address: address.cast_mut(), count: 1, datatype: target.datatype }
}

/// Waits until a call does not use its buffers any more, also one that has failed.
fn completed(place: Place<'_>, target: TargetBuffer, done: Result<()>) -> Result<()> {
    let Ok(rank) = place.node.target(target.rank) else { return done };
    done.and(place.node.flush_local(rank))
}

/// Contiguous bytes of a buffer.
#[derive(Clone, Copy, Debug)]
struct Run {
    /// bytes from the buffer's address
    first: i64,
    bytes: u64,
    /// whether the processor may not access them
    is_device: bool,
}

impl Run {
    fn end(&self) -> i64 {
        self.first.wrapping_add_unsigned(self.bytes)
    }
}

/// The data of a buffer that a call moves, in the order of the type map.
type Runs = SmallVec<[Run; 2]>;

/// A copy of a buffer that is, at least partly, memory of a GPU.
struct HostCopy {
    gpu: Gpu,
    _memory: HostRoom,
    /// the user's buffer
    user: *mut u8,
    runs: Runs,
    /// the same in the copy
    buffer: Buffer,
}

impl HostCopy {
    /// Makes the copy, without its data. `None`: the call uses no byte of a GPU, or it fails; it
    /// finds the error itself.
    fn of(
        gpu: Option<Gpu>,
        place: Place<'_>,
        buffer: Option<Buffer>,
        target: TargetBuffer,
    ) -> Result<Option<HostCopy>> {
        let (Some(gpu), Some(buffer)) = (gpu, buffer) else { return Ok(None) };
        let Ok(Some(_)) = place.access(target.rank) else { return Ok(None) };
        if place.dense_bytes(buffer.count, buffer.datatype).is_some()
            && !gpu.is_device(buffer.address.addr().to_u64())
        {
            return Ok(None);
        }
        let Ok((runs, (first, bytes))) = runs(gpu, place, buffer, target) else { return Ok(None) };
        if !runs.iter().any(|run| run.is_device) {
            return Ok(None);
        }
        let memory = gpu.room(at(buffer.address, first), bytes)?;
        let zero = at(memory.begin(), -first);
        let copy = Buffer { address: zero, ..buffer };
        Ok(Some(HostCopy { gpu, _memory: memory, user: buffer.address, runs, buffer: copy }))
    }

    /// Returns the address of the copy.
    fn address(&self) -> *mut u8 {
        self.buffer.address
    }

    /// Copies the data of the buffer into the copy.
    ///
    /// # Safety
    /// The buffer may be read.
    unsafe fn read(&self) -> Result<()> {
        // SAFETY: guaranteed by the caller.
        unsafe { self.move_data(CopyDirection::ToHost) }
    }

    /// Copies the data of the copy into the buffer.
    ///
    /// # Safety
    /// The buffer may be written.
    unsafe fn write_back(&self) -> Result<()> {
        // SAFETY: guaranteed by the caller.
        unsafe { self.move_data(CopyDirection::ToDevice) }
    }

    /// # Safety
    /// The buffer may be read or written, as the direction needs it.
    unsafe fn move_data(&self, way: CopyDirection) -> Result<()> {
        self.runs.iter().try_for_each(|run| {
            let (there, here) = (at(self.user, run.first), at(self.buffer.address, run.first));
            let bytes = run.bytes.to_usize();
            // SAFETY: the caller's promise; the copy is large enough for all runs.
            unsafe {
                match way {
                    _ if run.is_device => self.gpu.copy(way, here, there, run.bytes)?,
                    CopyDirection::ToHost => ptr::copy_nonoverlapping(there, here, bytes),
                    CopyDirection::ToDevice => ptr::copy_nonoverlapping(here, there, bytes),
                }
            }
            Ok(())
        })
    }
}

/// Returns the address of an offset from a buffer's address.
fn at(zero: *mut u8, offset: i64) -> *mut u8 {
    zero.wrapping_offset(offset.to_isize())
}

/// Returns the runs of a buffer that a call moves, where they begin, and the bytes that they span.
fn runs(
    gpu: Gpu,
    place: Place<'_>,
    buffer: Buffer,
    target: TargetBuffer,
) -> Result<(Runs, (i64, u64))> {
    let count = elements(&messages::ORIGIN_COUNT, buffer.count)?;
    let target_count = elements(&messages::TARGET_COUNT, target.count)?;
    let (shape, target_shape) = (place.shape(buffer.datatype)?, place.shape(target.datatype)?);
    let mut runs = Runs::new();
    let moved = total(&shape, count)?.min(total(&target_shape, target_count)?);
    let (reach, first) = reach(&shape, count)?;
    put_get::reach(&target_shape, target_count)?;
    if moved == 0 || is_null(buffer, &shape) {
        return Ok((runs, (first, reach.bytes)));
    }
    let mut kinds = PageKinds::new(gpu);
    each_run((&shape, count), (&target_shape, target_count), |here, _, bytes| {
        match runs.last_mut() {
            Some(last) if last.end() == here => last.bytes += bytes,
            _ => {
                let is_device = kinds.is_device(at(buffer.address, here).addr().to_u64());
                runs.push(Run { first: here, bytes, is_device });
            }
        }
    });
    Ok((runs, (first, reach.bytes)))
}

/// Whether a buffer is a null pointer, which is an error unless its type has absolute addresses.
fn is_null(buffer: Buffer, shape: &Shape) -> bool {
    buffer.address.is_null() && matches!(shape, Shape::Basic(_))
}
