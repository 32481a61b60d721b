//! The quick calls of MPI_Accumulate (docs/hot-path.md): one element, and several elements of one
//! predefined type. They take part in the protocol of `accumulate`.

use super::acc::try_locked;
use super::acc_run::Guard;
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
    let (host, at, basic) = to.word(disp, datatype)?;
    let kernel = reduce::change_kernel(host.op(op)?, basic)?;
    // SAFETY: the window's side was checked, the caller vouches for the origin's; there is no
    // result.
    unsafe { kernel(origin, ptr::null_mut(), at) };
    Some(())
}

/// An accumulate of several elements of one predefined type that need no lock each. `Some` if the
/// arguments were such, and the accumulate is done.
///
/// # Safety
/// As for [`accumulate`](super::accumulate::accumulate).
#[inline]
pub unsafe fn several_quick(to: &Quick, origin: Buffer, target: Target, op: Handle) -> Option<()> {
    let (op, known) = (to.host().op(op)?, to.host().predefined(origin.datatype)?);
    let same = origin.datatype == target.datatype && origin.count == target.count;
    let several = origin.count > 1 && !origin.address.is_null();
    if !(same && several && op != Op::NoOp && pairs(op, known.basic)) {
        return None;
    }
    // No bytes for a type with holes.
    let bytes = origin.count.cast_unsigned().checked_mul(u64::from(known.dense_size))?;
    if bytes == 0 {
        return None;
    }
    let (basic, at) = (known.basic, to.reach(target.disp, Reach { first: 0, bytes })?);
    if reduce::needs_lock(basic, at) {
        return None;
    }
    let count = origin.count.cast_unsigned().to_usize();
    if to.window.epochs.is_exclusive(to.rank) {
        // SAFETY: the window's side was checked, the caller vouches for the origin's; no other
        // process changes the target.
        unsafe { reduce::accumulate_exclusive(op, basic, at, origin.address, None, count) };
        return Some(());
    }
    let at_target = (&*to.window, to.window.node());
    let done = try_locked(at_target, to.rank, count.to_u64(), |guard| match guard {
        // SAFETY: likewise; no other call changes the target.
        Guard::Alone => unsafe {
            reduce::accumulate_exclusive(op, basic, at, origin.address, None, count);
        },
        // SAFETY: likewise, and the lock is held.
        _ => unsafe { reduce::accumulate_locked(op, basic, at, origin.address, None, count) },
    });
    done.then_some(())
}
