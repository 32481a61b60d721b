//! The accumulate calls of one element: MPI_Fetch_and_op, MPI_Compare_and_swap, and the fast path
//! of the others (MPI-4.1 §12.3.4). They take part in the protocol of `accumulate`; where an
//! element is a word that all ranks map, they are one instruction.
//!
//! On paper, a fast call of eight bytes: that of a put without its data, and 3 loads for the pass,
//! 3 loads and 1 multiplication for the op, 1 load and 1 call for the function of
//! type and op, which is 1 load, 1 locked instruction and 1 store.

use super::acc::{AccLock, LockCheck, locked, single};
use super::acc_call::{AccCall, by_instruction, operation, predefined};
use super::acc_run::Guard;
use super::copies::CopyBuffer;
use super::distant;
use super::{Place, Quick, TargetBuffer, not_null};
use crate::datatype::reduce::{self, Op};
use crate::error::{Error, Result};
use crate::fabric::location::{Location, Unmapped};
use crate::messages;
use crate::mpi::{Handle, Host};
use crate::number::Number;
use crate::window::address::{By, Reach};
use crate::window::handles::MemoryHandle;
use core::ptr;

/// A Fetch_and_op by one atomic instruction. `Some` if the arguments allowed that, and the
/// operation is done.
///
/// # Safety
/// As for [`fetch_and_op`].
#[inline(always)]
pub unsafe fn fetch_and_op_quick(
    to: &Quick,
    origin: *const u8,
    result: *mut u8,
    (disp, datatype, op): (i64, Handle, Handle),
) -> Option<()> {
    let (at, kernel) = to.word((disp, datatype), |host, basic| {
        reduce::fetch_kernel(*host.tables.ops.find(op)?, basic)
    })?;
    // SAFETY: the window's side was checked, the caller guarantees the other two.
    unsafe { kernel(origin, result, at) };
    Some(())
}

/// An accumulate of one element of one predefined type by one atomic instruction. `Some` if
/// the arguments allowed that, and the accumulate is done.
///
/// # Safety
/// As for [`accumulate`](super::accumulate::accumulate), with one element at `origin`.
#[inline(always)]
pub unsafe fn accumulate_quick(
    to: &Quick,
    origin: *const u8,
    (disp, datatype, op): (i64, Handle, Handle),
) -> Option<()> {
    let (at, kernel) = to.word((disp, datatype), |host, basic| {
        reduce::change_kernel(*host.tables.ops.find(op)?, basic)
    })?;
    // SAFETY: the window's side was checked, the caller guarantees the origin's; there is no
    // result.
    unsafe { kernel(origin, ptr::null_mut(), at) };
    Some(())
}

/// A Compare_and_swap by one atomic instruction. `Some` if the arguments allowed that, and
/// the operation is done.
///
/// # Safety
/// As for [`compare_and_swap`].
#[inline(always)]
pub unsafe fn compare_and_swap_quick(
    to: &Quick,
    (origin, compare): (*const u8, *const u8),
    result: *mut u8,
    (disp, datatype): (i64, Handle),
) -> Option<()> {
    let (at, kernel) = to.word((disp, datatype), |_, basic| reduce::compare_kernel(basic))?;
    // SAFETY: the window's side was checked, the caller guarantees the other three.
    unsafe { kernel(origin, compare, result, at) };
    Some(())
}

/// MPI_Fetch_and_op: one element of a predefined type.
///
/// # Safety
/// `origin` may be read (unless `op` is MPI_NO_OP) and `result` written, one element each.
pub unsafe fn fetch_and_op(
    place: Place<'_>,
    origin: *const u8,
    result: *mut u8,
    target: TargetBuffer,
    op: Handle,
) -> Result<()> {
    let access = place.access(target.rank)?;
    let op = operation(place, op)?;
    let basic = predefined(place, target.datatype)?;
    let Some(to) = access else { return Ok(()) };
    not_null(result, &messages::NULL_RESULT)?;
    if op != Op::NoOp {
        not_null(origin.cast_mut(), &messages::NULL_ORIGIN)?;
    }
    let reach = Reach { first: 0, bytes: basic.extent().to_u64() };
    // Between nodes it costs a round trip to read the lock, and here no process can hold it.
    let alone = place.node.spans_nodes() && to.is_exclusive();
    let guard = if alone { Guard::Held } else { Guard::Single };
    let work = AccCall { to, disp: target.disp, op, zero: None, guard, elements: 1 };
    to.at((target.disp, reach), By::All, |location| {
        // SAFETY: `at` checked the window's side, the caller guarantees the buffers.
        unsafe { work.on_elements(basic, (location, reach), (origin, Some(result)), 1) }
    })
}

/// MPI_Compare_and_swap: one element of a type that the standard allows.
///
/// # Safety
/// `origin` and `compare` may be read and `result` written, one element each.
pub unsafe fn compare_and_swap(
    place: Place<'_>,
    (origin, compare, result): (*const u8, *const u8, *mut u8),
    target: TargetBuffer,
) -> Result<()> {
    let access = place.access(target.rank)?;
    let basic = predefined(place, target.datatype)?;
    if !basic.compares() {
        return Err(Error::Wrong(&messages::TYPE_NOT_COMPARABLE));
    }
    let Some(to) = access else { return Ok(()) };
    not_null(origin.cast_mut(), &messages::NULL_ORIGIN)?;
    not_null(compare.cast_mut(), &messages::NULL_COMPARE)?;
    not_null(result, &messages::NULL_RESULT)?;
    let size = basic.extent();
    let reach = Reach { first: 0, bytes: size.to_u64() };
    to.at((target.disp, reach), By::All, |location| match location {
        Location::Mapped(at) if by_instruction(place.node, basic, at) => {
            // SAFETY: `at` checked the window's side, the caller guarantees the other three, and
            // `needs_lock` was checked.
            single(to, || unsafe {
                reduce::compare_and_swap(basic, at, compare, origin, result);
            })
        }
        Location::Unmapped(Unmapped::Distant(word))
            if distant::is_changed_at_once(place.node, basic, word.at.at) =>
        {
            // SAFETY: the caller guarantees the buffers; `at` checked the window's side.
            unsafe {
                let values = (load_word(compare, size), load_word(origin, size));
                distant::compare_and_swap(word, LockCheck::new(to), size.low_u8(), values, result)
            }
        }
        other => {
            let swap = |at: *mut u8| {
                // SAFETY: both sides are valid, and such elements of this target share the lock; a
                // buffer holds an element and belongs to this call.
                unsafe { reduce::compare_and_swap_exclusive(basic, at, compare, origin, result) };
                true
            };
            match other {
                Location::Mapped(at) | Location::Own(at) => locked(to, 1, |_| {
                    swap(at);
                    Ok(())
                }),
                // SAFETY: `at` checked the window's side; `swap` changes one element.
                Location::Unmapped(whose) => unsafe {
                    CopyBuffer::change(whose, size, AccLock::new(to), swap)
                },
            }
        }
    })
}

/// Returns an element of `bytes` bytes, at most eight, as the low bytes of a word.
///
/// # Safety
/// It may be read.
unsafe fn load_word(from: *const u8, bytes: usize) -> u64 {
    let mut value = 0u64;
    // SAFETY: the caller's duty; an element is no wider than a word.
    unsafe { ptr::copy_nonoverlapping(from, (&raw mut value).cast(), bytes) };
    u64::from_le(value)
}

/// [`fetch_and_op_quick`] on the memory of a handle.
///
/// # Safety
/// As for [`fetch_and_op`] and [`MemoryHandle::memory`].
#[inline(always)]
pub unsafe fn fetch_and_op_by_handle(
    mem: *const MemoryHandle,
    (origin, result): (*const u8, *mut u8),
    (disp, datatype, op): (i64, Handle, Handle),
) -> Option<()> {
    let kernel = |host: &Host, basic| reduce::fetch_kernel(*host.tables.ops.find(op)?, basic);
    // SAFETY: the side of the handle was checked, the caller guarantees the other two.
    unsafe {
        let (_announced, at, kernel) = MemoryHandle::word(mem, (disp, datatype), kernel)?;
        kernel(origin, result, at);
    }
    Some(())
}

/// [`accumulate_quick`] on the memory of a handle.
///
/// # Safety
/// As for [`accumulate_quick`] and [`MemoryHandle::memory`].
#[inline(always)]
pub unsafe fn accumulate_by_handle(
    mem: *const MemoryHandle,
    origin: *const u8,
    (disp, datatype, op): (i64, Handle, Handle),
) -> Option<()> {
    let kernel = |host: &Host, basic| reduce::change_kernel(*host.tables.ops.find(op)?, basic);
    // SAFETY: as above; there is no result.
    unsafe {
        let (_announced, at, kernel) = MemoryHandle::word(mem, (disp, datatype), kernel)?;
        kernel(origin, ptr::null_mut(), at);
    }
    Some(())
}

/// [`compare_and_swap_quick`] on the memory of a handle.
///
/// # Safety
/// As for [`compare_and_swap`] and [`MemoryHandle::memory`].
#[inline(always)]
pub unsafe fn compare_and_swap_by_handle(
    mem: *const MemoryHandle,
    (origin, compare, result): (*const u8, *const u8, *mut u8),
    (disp, datatype): (i64, Handle),
) -> Option<()> {
    // SAFETY: as above.
    unsafe {
        let kernel = |_: &Host, basic| reduce::compare_kernel(basic);
        let (_announced, at, kernel) = MemoryHandle::word(mem, (disp, datatype), kernel)?;
        kernel(origin, compare, result, at);
    }
    Some(())
}
