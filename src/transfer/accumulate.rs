//! The accumulate calls: MPI_Accumulate, MPI_Get_accumulate, MPI_Fetch_and_op and
//! MPI_Compare_and_swap (MPI-4.1 §12.3.4, §12.3.5). All take part in one protocol, which the type
//! and the address of an element choose, never the call: see `datatype::reduce`.
//!
//! They are ordered as the standard's default wants it (§12.8.2): each is done when it returns, and
//! atomic instructions of one process on one location keep their order.

use super::put_get::{reach, total};
use super::{Buffer, Place, Quick, Target, elements, fits, not_null};
use crate::datatype::basic::{Basic, Op, pairs};
use crate::datatype::layout::{Piece, Shape, zip_elements};
use crate::datatype::reduce;
use crate::epoch::layout;
use crate::epoch::lock::{self, Mode};
use crate::error::{Class, Error, Result};
use crate::fabric::{Rank, WordAt};
use crate::mpi::Handle;
use crate::window::address::Reach;

/// From so many elements on it is worth looking whether the plain loop may be used.
const MANY: u64 = 16;

/// MPI_Accumulate, and MPI_Get_accumulate with a `result`.
///
/// # Safety
/// `origin` describes memory that may be read, `result` memory that may be written.
pub unsafe fn accumulate(
    place: Place<'_>,
    origin: Buffer,
    result: Option<Buffer>,
    target: Target,
    op: Handle,
) -> Result<()> {
    let access = place.access(target.rank)?;
    let op = operation(place, op)?;
    if op == Op::NoOp && result.is_none() {
        return Err(Error::Argument(Class::Op, "MPI_NO_OP without a result,", 0));
    }
    let origin = if op == Op::NoOp { None } else { Some(origin) };
    let Some(rank) = access else {
        return place.on_proc_null(origin.into_iter().chain(result), target);
    };
    let target_count = elements("target count", target.count)?;
    let target_shape = place.shape(target.datatype)?;
    let origin = origin.map(|buffer| Side::new(place, buffer, "origin count")).transpose()?;
    let result = result.map(|buffer| Side::new(place, buffer, "result count")).transpose()?;
    let target_bytes = total(&target_shape, target_count)?;
    if let Some(origin) = &origin {
        fits(origin.bytes, target_bytes)?;
    }
    if let Some(result) = &result {
        fits(target_bytes, result.bytes)?;
    }
    let moved = origin.as_ref().map_or(target_bytes, |origin| origin.bytes);
    if moved == 0 {
        return Ok(());
    }
    let (reach, offset) = reach(&target_shape, target_count)?;
    let base = place.node.address(rank, target.disp, reach)?.pointer().wrapping_offset(-offset);
    let work = Work { place, rank, op, base, alone: alone(place, rank, target_count) };
    // SAFETY: `address` checked the window's side, the caller vouches for the other two.
    unsafe { work.run(origin, result, &target_shape, target_count) }
}

/// One of the origin's buffers with its shape.
struct Side {
    address: *mut u8,
    count: u64,
    shape: Shape,
    bytes: u64,
}

impl Side {
    fn new(place: Place<'_>, buffer: Buffer, what: &'static str) -> Result<Side> {
        let count = elements(what, buffer.count)?;
        let shape = place.shape(buffer.datatype)?;
        let bytes = total(&shape, count)?;
        if let (Shape::Basic(_), true) = (&shape, bytes > 0) {
            not_null(buffer.address, "address")?;
        }
        Ok(Side { address: buffer.address, count, shape, bytes })
    }
}

/// Elements that follow each other in a buffer of the origin and at the target.
struct Run {
    here: *mut u8,
    /// offset from displacement zero of the target's type map
    there: i64,
    basic: Basic,
    count: u64,
}

impl Run {
    fn skip(&mut self, count: u64) {
        let bytes = (count * self.basic.extent() as u64) as i64;
        self.here = self.here.wrapping_offset(bytes as isize);
        self.there += bytes;
        self.count -= count;
    }
}

/// The runs in which a buffer and the target lie side by side; without a buffer the target's own.
fn overlay(side: Option<&Side>, target: &Shape, count: u64) -> Result<Vec<Run>> {
    let Some(side) = side else {
        let alone = |p: Piece| Run {
            here: core::ptr::null_mut(),
            there: p.offset,
            basic: p.basic,
            count: p.count,
        };
        return Ok(target.pieces(count).map(alone).collect());
    };
    zip_elements(side.shape.pieces(side.count), target.pieces(count))
        .map(|run| {
            let (here, there, basic, count) = run?;
            Ok(Run { here: side.address.wrapping_offset(here as isize), there, basic, count })
        })
        .collect()
}

/// An accumulate whose arguments are all right.
struct Work<'a> {
    place: Place<'a>,
    rank: u32,
    op: Op,
    /// where displacement zero of the target's type map is
    base: *mut u8,
    /// nobody else may access the target now
    alone: bool,
}

impl Work<'_> {
    /// # Safety
    /// The buffers are valid for their shapes, and `base` for the target's.
    unsafe fn run(
        &self,
        origin: Option<Side>,
        result: Option<Side>,
        target: &Shape,
        count: u64,
    ) -> Result<()> {
        match (&origin, &result) {
            // One type everywhere, which is the common case: no type map is needed.
            (Some(o), None) if same(&o.shape, target) && o.count == count => unsafe {
                // SAFETY: the caller's promise.
                self.element_run(basic(target), self.base, o.address, None, count)
            },
            (Some(o), Some(r))
                if same(&o.shape, target)
                    && same(&r.shape, target)
                    && o.count == count
                    && r.count == count =>
            unsafe {
                // SAFETY: the caller's promise.
                self.element_run(basic(target), self.base, o.address, Some(r.address), count)
            },
            // SAFETY: the caller's promise.
            _ => unsafe { self.run_shaped(origin, result, target, count) },
        }
    }

    /// Any types: the type maps, laid over each other.
    ///
    /// # Safety
    /// As for `run`.
    unsafe fn run_shaped(
        &self,
        origin: Option<Side>,
        result: Option<Side>,
        target: &Shape,
        count: u64,
    ) -> Result<()> {
        let operands = overlay(origin.as_ref(), target, count)?;
        let results = overlay(result.as_ref(), target, count)?;
        if let Some(run) = operands.iter().find(|run| !pairs(self.op, run.basic)) {
            return Err(mismatch(run.basic));
        }
        let mut results = results.into_iter();
        let mut into = results.next();
        for mut run in operands {
            while run.count > 0 {
                let Some(old) = &mut into else { return Ok(()) };
                debug_assert_eq!((run.there, run.basic), (old.there, old.basic));
                let count = run.count.min(old.count);
                let at = self.base.wrapping_offset(run.there as isize);
                let old_at = result.is_some().then_some(old.here);
                // SAFETY: runs of type maps for which the caller vouches.
                unsafe { self.element_run(run.basic, at, run.here, old_at, count)? };
                run.skip(count);
                old.skip(count);
                if old.count == 0 {
                    into = results.next();
                }
            }
        }
        Ok(())
    }

    /// Applies the operation to elements that follow each other.
    ///
    /// # Safety
    /// All buffers hold `count` elements of the type.
    unsafe fn element_run(
        &self,
        basic: Basic,
        at: *mut u8,
        origin: *const u8,
        result: Option<*mut u8>,
        count: u64,
    ) -> Result<()> {
        if !pairs(self.op, basic) {
            return Err(mismatch(basic));
        }
        let count = count as usize;
        if self.alone {
            // SAFETY: the caller vouches for the buffers; an exclusive lock is held.
            unsafe { reduce::accumulate_exclusive(self.op, basic, at, origin, result, count) };
            return Ok(());
        }
        if reduce::needs_lock(basic, at) {
            // SAFETY: likewise, under the lock that all such elements of this target share.
            return locked(self.place, self.rank, || unsafe {
                reduce::accumulate_exclusive(self.op, basic, at, origin, result, count);
            });
        }
        // SAFETY: the caller vouches for the buffers, and `needs_lock` was asked.
        unsafe { reduce::accumulate(self.op, basic, at, origin, result, count) };
        Ok(())
    }
}

/// An accumulate with the same predefined type on both sides, and elements that need no lock. Says
/// whether it was one, and is done.
///
/// # Safety
/// As for [`accumulate`].
#[inline(always)]
pub unsafe fn accumulate_quick(to: &Quick<'_>, origin: Buffer, target: Target, op: Handle) -> bool {
    let find = || {
        let (op, known) =
            (to.host.tables.ops.find(op)?, to.host.tables.types.find(origin.datatype)?);
        let same = origin.datatype == target.datatype && origin.count == target.count;
        let few = origin.count > 0 && (origin.count as u64) < MANY;
        let given = known.dense && !origin.address.is_null() && op != Op::NoOp;
        if !(same && few && given && pairs(op, known.basic)) {
            return None;
        }
        let at = to.address(target.disp, origin.count as u64 * u64::from(known.size))?;
        (!reduce::needs_lock(known.basic, at)).then_some((op, known.basic, at))
    };
    let Some((op, basic, at)) = find() else { return false };
    let count = origin.count as usize;
    // SAFETY: the window's side was checked, the caller vouches for the origin's.
    unsafe { reduce::accumulate(op, basic, at, origin.address, None, count) };
    true
}

/// A Fetch_and_op that is one atomic instruction. Says whether it was one, and is done.
///
/// # Safety
/// As for [`fetch_and_op`].
#[inline(always)]
pub unsafe fn fetch_and_op_quick(
    to: &Quick<'_>,
    origin: *const u8,
    result: *mut u8,
    target: Target,
    op: Handle,
) -> bool {
    let find = || {
        let (op, known) =
            (to.host.tables.ops.find(op)?, to.host.tables.types.find(target.datatype)?);
        let at = to.address(target.disp, u64::from(known.size))?;
        (!origin.is_null() && !result.is_null()).then_some((op, known.basic, at))
    };
    match find() {
        // SAFETY: the window's side was checked, the caller vouches for the other two.
        Some((op, basic, at)) => unsafe {
            reduce::fetch_and_op_fast(op, basic, at, origin, result)
        },
        None => false,
    }
}

/// A Compare_and_swap that is one atomic instruction. Says whether it was one, and is done.
///
/// # Safety
/// As for [`compare_and_swap`].
#[inline(always)]
pub unsafe fn compare_and_swap_quick(
    to: &Quick<'_>,
    origin: *const u8,
    compare: *const u8,
    result: *mut u8,
    target: Target,
) -> bool {
    let find = || {
        let known = to.host.tables.types.find(target.datatype)?;
        let at = to.address(target.disp, u64::from(known.size))?;
        let legal = known.basic.compares() && !reduce::needs_lock(known.basic, at);
        let given = !origin.is_null() && !compare.is_null() && !result.is_null();
        (legal && given).then_some((known.basic, at))
    };
    match find() {
        // SAFETY: the window's side was checked, the caller vouches for the other three.
        Some((basic, at)) => unsafe {
            reduce::compare_and_swap(basic, at, compare, origin, result);
        },
        None => return false,
    }
    true
}

/// MPI_Fetch_and_op: one element of a predefined type.
///
/// # Safety
/// `origin` may be read (unless `op` is MPI_NO_OP) and `result` written, one element each.
pub unsafe fn fetch_and_op(
    place: Place<'_>,
    origin: *const u8,
    result: *mut u8,
    target: Target,
    op: Handle,
) -> Result<()> {
    let access = place.access(target.rank)?;
    let op = operation(place, op)?;
    let basic = predefined(place, target.datatype)?;
    let Some(rank) = access else { return Ok(()) };
    not_null(result, "result address")?;
    if op != Op::NoOp {
        not_null(origin.cast_mut(), "origin address")?;
    }
    let reach = Reach { first: 0, bytes: basic.extent() as u64 };
    let at = place.node.address(rank, target.disp, reach)?.pointer();
    // SAFETY: `address` checked the window's side, the caller vouches for the other two.
    if unsafe { reduce::fetch_and_op_fast(op, basic, at, origin, result) } {
        return Ok(());
    }
    let work = Work { place, rank, op, base: at, alone: false };
    // SAFETY: likewise.
    unsafe { work.element_run(basic, at, origin, Some(result), 1) }
}

/// MPI_Compare_and_swap: one element of a type that the standard allows.
///
/// # Safety
/// `origin` and `compare` may be read and `result` written, one element each.
pub unsafe fn compare_and_swap(
    place: Place<'_>,
    origin: *const u8,
    compare: *const u8,
    result: *mut u8,
    target: Target,
) -> Result<()> {
    let access = place.access(target.rank)?;
    let basic = predefined(place, target.datatype)?;
    if !basic.compares() {
        return Err(Error::Argument(Class::Type, "datatype that cannot be compared,", 0));
    }
    let Some(rank) = access else { return Ok(()) };
    not_null(origin.cast_mut(), "origin address")?;
    not_null(compare.cast_mut(), "compare address")?;
    not_null(result, "result address")?;
    let reach = Reach { first: 0, bytes: basic.extent() as u64 };
    let at = place.node.address(rank, target.disp, reach)?.pointer();
    if reduce::needs_lock(basic, at) {
        // SAFETY: `address` checked the window's side, the caller vouches for the other three, and
        // all such elements of this target share the lock.
        return locked(place, rank, || unsafe {
            reduce::compare_and_swap_exclusive(basic, at, compare, origin, result);
        });
    }
    // SAFETY: likewise, and `needs_lock` was asked.
    unsafe { reduce::compare_and_swap(basic, at, compare, origin, result) };
    Ok(())
}

/// Runs `work` under the accumulate lock of a target.
#[cold]
fn locked(place: Place<'_>, rank: u32, work: impl FnOnce()) -> Result<()> {
    let words = &place.node.words;
    let at = WordAt { rank: Rank(rank), word: layout::ACC };
    // Not nested: who holds this lock waits for nothing.
    place.node.with_node(|node| lock::acquire(words, at, Mode::Exclusive, false, node))?;
    work();
    lock::release(words, at, Mode::Exclusive)
}

/// Whether many elements may be changed without atomics: by the exclusive lock of their target.
fn alone(place: Place<'_>, rank: u32, count: u64) -> bool {
    count >= MANY && place.window.epochs.is_exclusive(rank)
}

#[inline]
fn operation(place: Place<'_>, op: Handle) -> Result<Op> {
    let unknown = || Error::Argument(Class::Op, "operation", op as i64);
    place.host.tables.ops.find(op).ok_or_else(unknown)
}

#[inline]
fn predefined(place: Place<'_>, datatype: Handle) -> Result<Basic> {
    let known = place.host.tables.types.find(datatype).map(|known| known.basic);
    known.ok_or(Error::Argument(Class::Type, "datatype", datatype as i64))
}

fn same(one: &Shape, other: &Shape) -> bool {
    matches!((one, other), (Shape::Basic(one), Shape::Basic(other)) if one == other)
}

fn basic(shape: &Shape) -> Basic {
    match shape {
        Shape::Basic(basic) => *basic,
        Shape::Derived(_) => unreachable!("only asked of predefined types"),
    }
}

fn mismatch(basic: Basic) -> Error {
    Error::Argument(Class::Op, "operation for elements of bytes:", basic.size() as i64)
}
