//! The quick calls of MPI_Accumulate and MPI_Get_accumulate (docs/hot-path.md): one element, and
//! several elements of one predefined type. They take part in the protocol of `accumulate`.

use super::acc::{try_lock, unlock};
use super::acc_run::Guard;
use super::single::fetch_and_op_quick;
use super::{Buffer, Quick, Target};
use crate::datatype::reduce::{self, Op, pairs};
use crate::mpi::Handle;
use crate::number::Number;
use crate::window::address::Reach;
use core::ptr;

/// An accumulate of one element of one predefined type by one atomic instruction. `Some` if
/// the arguments allowed that, and the accumulate is done.
///
/// # Safety
/// As for [`accumulate`](super::accumulate::accumulate), with one element at `origin`.
#[inline(always)]
pub unsafe fn one_quick(
    to: &Quick,
    origin: *const u8,
    (disp, datatype, op): (i64, Handle, Handle),
) -> Option<()> {
    let (at, kernel) =
        to.word((disp, datatype), |host, basic| reduce::change_kernel(host.op(op)?, basic))?;
    // SAFETY: the window's side was checked, the caller vouches for the origin's; there is no
    // result.
    unsafe { kernel(origin, ptr::null_mut(), at) };
    Some(())
}

/// The arguments of a quick call on several elements: operands, and a buffer for old elements.
type Buffers = (Buffer, Option<Buffer>);

/// Whether a buffer has as many elements of the same type as the target.
#[inline(always)]
fn is_alike(buffer: &Buffer, target: &Target) -> bool {
    let (count, datatype) = (buffer.count, buffer.datatype);
    count == target.count && datatype == target.datatype && !buffer.address.is_null()
}

/// An MPI_Get_accumulate of elements of one predefined type: of one by one atomic instruction, of
/// several as [`several_quick`]. `Some` if the arguments allowed that, and it is done.
///
/// # Safety
/// As for [`accumulate`](super::accumulate::accumulate).
#[inline(always)]
pub unsafe fn get_quick(
    to: &Quick,
    (origin, result): (Buffer, Buffer),
    target: Target,
    op: Handle,
) -> Option<()> {
    let known = to.host().op(op)?;
    // MPI_NO_OP has no operands: its origin may be anything (MPI-4.1 section 12.3.4).
    let operands = if known == Op::NoOp { result } else { origin };
    if target.count != 1 {
        // SAFETY: the caller's promise.
        return unsafe { of_several(to, (operands, Some(result)), target, known) };
    }
    if !(is_alike(&operands, &target) && is_alike(&result, &target)) {
        return None;
    }
    let what = (target.disp, target.datatype, op);
    // SAFETY: likewise.
    unsafe { fetch_and_op_quick(to, operands.address, result.address, what) }
}

/// An accumulate of several elements of one predefined type that need no lock each, or of none.
/// `Some` if the arguments were such, and the accumulate is done.
///
/// # Safety
/// As for [`accumulate`](super::accumulate::accumulate).
#[inline(always)]
pub unsafe fn several_quick(to: &Quick, origin: Buffer, target: Target, op: Handle) -> Option<()> {
    let op = to.host().op(op)?;
    if op == Op::NoOp {
        return None;
    }
    // SAFETY: the caller's promise.
    unsafe { of_several(to, (origin, None), target, op) }
}

/// An accumulate without elements. It looks at no address, nor at the displacement.
#[cold]
fn of_none(
    (origin, result): (&Buffer, Option<&Buffer>),
    target: &Target,
    is_pair: bool,
) -> Option<()> {
    let is_empty = |of: &Buffer| of.count == 0 && of.datatype == target.datatype;
    let empty = target.count == 0 && is_empty(origin) && result.is_none_or(is_empty);
    (empty && is_pair).then_some(())
}

/// # Safety
/// As for [`several_quick`]; MPI_NO_OP has a result, and that as its operands.
#[inline(always)]
unsafe fn of_several(to: &Quick, (origin, result): Buffers, target: Target, op: Op) -> Option<()> {
    let known = to.host().predefined(target.datatype)?;
    let alike = |buffer| is_alike(buffer, &target);
    let same = alike(&origin) && result.as_ref().is_none_or(alike);
    if !(same && target.count > 1 && pairs(op, known.basic)) {
        return of_none((&origin, result.as_ref()), &target, pairs(op, known.basic));
    }
    // No bytes for a type with holes.
    let bytes = origin.count.cast_unsigned().checked_mul(u64::from(known.dense_size))?;
    if bytes == 0 {
        return None;
    }
    let result = result.map(|result| result.address);
    let (basic, at) = (known.basic, to.reach(target.disp, Reach { first: 0, bytes })?);
    if reduce::needs_lock(basic, at) {
        return None;
    }
    let count = origin.count.cast_unsigned().to_usize();
    if to.window.epochs.is_exclusive(to.rank) {
        // SAFETY: the window's side was checked, the caller vouches for the origin's; no other
        // process changes the target.
        unsafe { reduce::accumulate_exclusive(op, basic, at, origin.address, result, count) };
        return Some(());
    }
    let node = to.window.node();
    let guard = try_lock((&*to.window, node), to.rank, count.to_u64())?;
    // SAFETY: likewise. The lock is held, and with `Alone` no other call changes the target.
    unsafe {
        match guard {
            Guard::Alone => {
                reduce::accumulate_exclusive(op, basic, at, origin.address, result, count);
            }
            _ => reduce::accumulate_locked(op, basic, at, origin.address, result, count),
        }
    }
    unlock(node, to.rank);
    Some(())
}
