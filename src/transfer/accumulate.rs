//! The accumulate calls: MPI_Accumulate and MPI_Get_accumulate (MPI-4.1 §12.3.4); those of one
//! element are in `single`. All take part in one protocol, which the type and the address of an
//! element choose, never the call: see `datatype::reduce`.
//!
//! A call on several elements is atomic as a whole: it holds the target's accumulate lock from its
//! begin to its end, and a call on a single element reads that lock (`epoch::lock::whole`).
//!
//! They are ordered as the standard's default demands (§12.7.2): each is done when it returns, and
//! atomic instructions of one process on one location keep their order.

use super::acc::{AccLock, LookBehind, locked, single, try_locked};
use super::acc_run::{AccRun, Guard};
use super::combine::UnmappedAcc;
use super::distant::is_changed_at_once;
use super::put_get::{all_in_regions, reach, total};
use super::target_acc::one_word;
use super::{Buffer, Place, Quick, Target, elements, fits, not_null, unpaired};
use crate::datatype::basic::Basic;
use crate::datatype::reduce::{self, Op, pairs};
use crate::datatype::type_map::{Shape, zip_elements};
use crate::error::{Class, Error, Result};
use crate::fabric::spot::{Spot, Unmapped};
use crate::mpi::Handle;
use crate::number::{Number, Offset};
use crate::rank_numbers::Rank;
use crate::sync::fence_after_rmw;
use crate::window::address::Reach;

/// A call with one type and fewer elements than this takes the quick path.
const FEW: u64 = 16;

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
        return Err(Error::Wrong(Class::Op, "MPI_NO_OP without a result"));
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
    let sides = (origin.as_ref(), result.as_ref());
    let several = target_count > 1 || !matches!(target_shape, Shape::Basic(_));
    let guard = match several {
        // The device changes a few words at once by its own operations.
        true if place.window.epochs.is_exclusive(rank) => match place.node.spans_nodes() {
            true if target_count < FEW => Guard::Held,
            _ => Guard::Alone,
        },
        true => Guard::Several,
        false => Guard::Single,
    };
    let work = AccCall { place, rank, disp: target.disp, op, zero: None, guard };
    // SAFETY: the caller vouches for the buffers.
    unsafe { work.begin(sides, &target_shape, target_count) }
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
            not_null(buffer.address, "null pointer as the origin or result address")?;
        }
        Ok(Side { address: buffer.address, count, shape, bytes })
    }
}

/// Elements that are contiguous both in a buffer of the origin and at the target.
struct ElementRun {
    here: *mut u8,
    /// offset from displacement zero of the target's type map
    there: i64,
    basic: Basic,
    count: u64,
}

impl ElementRun {
    fn skip(&mut self, count: u64) {
        let bytes = (count * self.basic.extent().to_u64()).cast_signed();
        self.here = self.here.wrapping_offset(bytes.to_isize());
        self.there += bytes;
        self.count -= count;
    }
}

/// The runs of elements that are contiguous both in a buffer and at the target; without a buffer,
/// at the target alone.
fn overlay<'a>(
    side: Option<&'a Side>,
    target: &'a Shape,
    count: u64,
) -> impl Iterator<Item = Result<ElementRun>> {
    let nowhere = (core::ptr::null_mut::<u8>(), target, count);
    let (zero, shape, own) = side.map_or(nowhere, |side| (side.address, &side.shape, side.count));
    zip_elements(shape.pieces(own), target.pieces(count)).map(move |run| {
        let (here, there, basic, count) = run?;
        Ok(ElementRun { here: zero.wrapping_offset(here.to_isize()), there, basic, count })
    })
}

/// Does `work` on the runs that are contiguous in both buffers and at the target. It gets the
/// offset from displacement zero of the target's type map, and the run without its address at the
/// target.
fn each_run(
    (origin, result): Sides<'_>,
    target: &Shape,
    count: u64,
    mut work: impl FnMut(i64, AccRun) -> Result<()>,
) -> Result<()> {
    let mut results = overlay(result, target, count);
    let mut into = results.next().transpose()?;
    for run in overlay(origin, target, count) {
        let mut run = run?;
        while run.count > 0 {
            let Some(old) = &mut into else { return Ok(()) };
            debug_assert_eq!((run.there, run.basic), (old.there, old.basic));
            let count = run.count.min(old.count);
            let (basic, origin) = (run.basic, run.here.cast_const());
            let result = result.is_some().then_some(old.here);
            let count_here = count.to_usize();
            work(run.there, AccRun { there: 0, basic, count: count_here, origin, result })?;
            run.skip(count);
            old.skip(count);
            if old.count == 0 {
                into = results.next().transpose()?;
            }
        }
    }
    Ok(())
}

/// Checks that the elements of both sides are of the same kinds, in the same order, and that the
/// operation is defined for them. Each side must have one kind only (§12.3.4), so this is nearly
/// always quick.
fn kinds_agree(op: Op, side: Option<&Side>, target: &Shape, count: u64) -> Result<()> {
    let mut others = target.kinds().filter(|basic| !pairs(op, *basic));
    others.try_for_each(|basic| unpaired(op, basic))?;
    match side {
        Some(side) if target.uniform().is_none() || side.shape.uniform() != target.uniform() => {
            overlay(Some(side), target, count).try_for_each(|run| run.map(|_| ()))
        }
        _ => Ok(()),
    }
}

/// An accumulate whose arguments are checked.
#[derive(Clone, Copy)]
pub(super) struct AccCall<'a> {
    pub place: Place<'a>,
    pub rank: Rank,
    /// the target displacement
    pub disp: i64,
    pub op: Op,
    /// the location of displacement zero of the target's type map; `None`: each run is looked up
    pub zero: Option<Spot<'a>>,
    /// the protection of the target now
    pub guard: Guard,
}

/// The origin's buffer and the result buffer.
type Sides<'a> = (Option<&'a Side>, Option<&'a Side>);

impl<'a> AccCall<'a> {
    /// Finds the target, and applies the operation there.
    ///
    /// # Safety
    /// The buffers are valid for their shapes.
    unsafe fn begin(self, sides: Sides<'_>, target: &Shape, count: u64) -> Result<()> {
        let (reach, offset) = reach(target, count)?;
        let AccCall { place, rank, disp, .. } = self;
        let whole = place.node.at_common(rank, disp, reach, |spot| {
            let zero = spot.offset(-offset);
            // SAFETY: `at` checked the window's side, the caller vouches for the other two.
            self.protected(zero, |work| unsafe { work.run(sides, zero, target, count) })
        });
        if !matches!(whole, Err(Error::NotInRegion { .. })) {
            return whole;
        }
        // The regions of a dynamic window need not cover the gaps between the runs. Each run is
        // found in a region before anything is changed, and the regions stay for the whole call:
        // the holder of the lock waits for nothing.
        place.node.while_attached(rank, || {
            all_in_regions((target, count), |reach| {
                place.node.at_held(rank, disp, reach, |_| Ok(()))
            })?;
            let run = |guard| {
                // SAFETY: the caller vouches for the buffers; each run is checked again.
                unsafe { AccCall { guard, ..self }.run_shaped(sides, target, count) }
            };
            match self.guard {
                Guard::Alone => run(Guard::Alone),
                _ => locked(place, rank, || run(Guard::Held)),
            }
        })
    }

    /// Does `work` at `zero`: under the target's accumulate lock if there are several elements, or
    /// if not all ranks reach the memory by atomic instructions. A rank that is alone already needs
    /// no lock, and over the device the lock is taken together with the elements.
    pub fn protected<'s>(
        self,
        zero: Spot<'s>,
        work: impl FnOnce(AccCall<'s>) -> Result<()>,
    ) -> Result<()>
    where
        'a: 's,
    {
        let found = AccCall { zero: Some(zero), ..self };
        let guard = match (zero, self.guard) {
            (Spot::Mapped(_), Guard::Several) => Guard::Held,
            (Spot::Mapped(_) | Spot::Unmapped(Unmapped::Distant(_)), _) => return work(found),
            (_, Guard::Held | Guard::Alone) => return work(found),
            _ => Guard::Alone,
        };
        locked(self.place, self.rank, || work(AccCall { guard, ..found }))
    }

    /// The target's lock, for elements that are not mapped here, if this call has to take it.
    fn lock(&self) -> Option<AccLock<'a>> {
        match self.guard {
            Guard::Single | Guard::Several => Some(AccLock::new(self.place, self.rank)),
            Guard::Held | Guard::Alone => None,
        }
    }

    /// # Safety
    /// The buffers are valid for their shapes, and `zero` for the target's.
    unsafe fn run(
        &self,
        sides: Sides<'_>,
        zero: Spot<'_>,
        target: &Shape,
        count: u64,
    ) -> Result<()> {
        match sides {
            // One type everywhere, which is the common case: no type map is needed.
            (Some(o), None) if same(&o.shape, target) && o.count == count => unsafe {
                // SAFETY: the caller's promise.
                self.element_run(basic(target), zero, o.address, None, count)
            },
            (Some(o), Some(r))
                if same(&o.shape, target)
                    && same(&r.shape, target)
                    && o.count == count
                    && r.count == count =>
            unsafe {
                // SAFETY: the caller's promise.
                self.element_run(basic(target), zero, o.address, Some(r.address), count)
            },
            // SAFETY: the caller's promise.
            _ => unsafe { self.run_shaped(sides, target, count) },
        }
    }

    /// Applies the operation to any types: lays the type maps over each other.
    ///
    /// # Safety
    /// As for `run`.
    unsafe fn run_shaped(&self, sides: Sides<'_>, target: &Shape, count: u64) -> Result<()> {
        let (origin, result) = sides;
        // All kinds are checked before anything is changed.
        kinds_agree(self.op, origin, target, count)?;
        kinds_agree(self.op, result, target, count)?;
        let Some(Spot::Unmapped(whose)) = self.zero else {
            return each_run(sides, target, count, |there, run| {
                let AccRun { basic, origin, result, count, .. } = run;
                // SAFETY: runs of type maps for which the caller vouches.
                unsafe { self.run_at(there, basic, origin, result, count.to_u64()) }
            });
        };
        let mut combine = UnmappedAcc::new(whose, self.op, self.guard, self.lock());
        let pushed = each_run(sides, target, count, |there, run| {
            let there = whose.address().wrapping_add_signed(there);
            // SAFETY: likewise, until `done`; all such elements of this target share the lock.
            unsafe { combine.push(AccRun { there, ..run }) }
        });
        // SAFETY: likewise.
        unsafe { combine.done(pushed) }
    }

    /// Applies the operation to elements that begin `there` in the target's type map.
    ///
    /// # Safety
    /// As for `element_run`.
    unsafe fn run_at(
        &self,
        there: i64,
        basic: Basic,
        origin: *const u8,
        result: Option<*mut u8>,
        count: u64,
    ) -> Result<()> {
        if let Some(zero) = self.zero {
            // SAFETY: the caller's promise.
            return unsafe { self.element_run(basic, zero.offset(there), origin, result, count) };
        }
        let reach = Reach { first: there, bytes: count * basic.extent().to_u64() };
        self.place.node.at_held(self.rank, self.disp, reach, |spot| {
            // SAFETY: the caller's promise, and `at_held` checked the window's side.
            unsafe { self.element_run(basic, spot, origin, result, count) }
        })
    }

    /// Applies the operation to contiguous elements.
    ///
    /// # Safety
    /// All buffers hold `count` elements of the type.
    pub unsafe fn element_run(
        &self,
        basic: Basic,
        at: Spot<'_>,
        origin: *const u8,
        result: Option<*mut u8>,
        count: u64,
    ) -> Result<()> {
        if !pairs(self.op, basic) {
            unpaired(self.op, basic)?;
        }
        let (op, count) = (self.op, count.to_usize());
        match (at, self.guard) {
            (Spot::Mapped(at), Guard::Single) => {
                debug_assert!(count == 1);
                // SAFETY: the caller vouches for the buffers; all elements that are not changed by
                // instructions share the lock.
                unsafe { self.element(basic, at, origin, result) }
            }
            (Spot::Mapped(at), Guard::Several | Guard::Held) => {
                debug_assert!(self.guard == Guard::Held);
                // SAFETY: likewise.
                unsafe { reduce::accumulate_locked(op, basic, at, origin, result, count) };
                Ok(())
            }
            (Spot::Mapped(at) | Spot::Own(at), _) => {
                // SAFETY: likewise; no other call changes the target: all hold the lock.
                unsafe { reduce::accumulate_exclusive(op, basic, at, origin, result, count) };
                Ok(())
            }
            (Spot::Unmapped(whose), guard) => {
                let run = AccRun { there: whose.address(), basic, count, origin, result };
                if guard == Guard::Single {
                    let behind = || LookBehind::new(self.place, self.rank);
                    // SAFETY: likewise.
                    if let Some(done) = unsafe { one_word(whose, (op, &run), behind) } {
                        return done;
                    }
                }
                let mut combine = UnmappedAcc::new(whose, op, guard, self.lock());
                // SAFETY: likewise; all such elements of this target share the lock.
                unsafe {
                    let pushed = combine.push(run);
                    combine.done(pushed)
                }
            }
        }
    }

    /// Applies the operation to a single element that is mapped here.
    ///
    /// # Safety
    /// As for `element_run`.
    unsafe fn element(
        &self,
        basic: Basic,
        at: *mut u8,
        origin: *const u8,
        result: Option<*mut u8>,
    ) -> Result<()> {
        let AccCall { place, rank, op, .. } = *self;
        if !by_instruction(place, basic, at) {
            return locked(place, rank, || {
                // SAFETY: the caller's promise, and the lock is held.
                unsafe { reduce::accumulate_locked(op, basic, at, origin, result, 1) };
                Ok(())
            });
        }
        single(place, rank, || {
            // SAFETY: the caller's promise, and `needs_lock` was asked.
            unsafe { reduce::accumulate(op, basic, at, origin, result, 1) };
        })
    }
}

/// An accumulate with the same predefined type on both sides, and elements that need no lock.
/// Returns whether the arguments were such, and the accumulate is done.
///
/// # Safety
/// As for [`accumulate`].
#[inline(always)]
pub unsafe fn accumulate_quick(to: &Quick<'_>, origin: Buffer, target: Target, op: Handle) -> bool {
    let find = || {
        let (op, known) =
            (to.host.tables.ops.find(op)?, to.host.tables.types.find(origin.datatype)?);
        let same = origin.datatype == target.datatype && origin.count == target.count;
        let few = origin.count > 0 && origin.count.cast_unsigned() < FEW;
        let given = known.dense && !origin.address.is_null() && op != Op::NoOp;
        if !(same && few && given && pairs(op, known.basic)) {
            return None;
        }
        let bytes = origin.count.cast_unsigned() * u64::from(known.size);
        let at = match origin.count {
            1 => to.element(target.disp, bytes)?,
            _ => to.address(target.disp, bytes)?,
        };
        (!reduce::needs_lock(known.basic, at)).then_some((op, known.basic, at))
    };
    let Some((op, basic, at)) = find() else { return false };
    let count = origin.count.cast_unsigned().to_usize();
    if count == 1 {
        // SAFETY: the window's side was checked, the caller vouches for the origin's.
        unsafe { reduce::accumulate(op, basic, at, origin.address, None, 1) };
        fence_after_rmw(); // as in `acc::single`
        return true;
    }
    if to.window.epochs.is_exclusive(to.rank) {
        // SAFETY: likewise; no other process changes the target.
        unsafe { reduce::accumulate_exclusive(op, basic, at, origin.address, None, count) };
        return true;
    }
    try_locked(to.node, to.rank, || {
        // SAFETY: likewise, and the lock is held.
        unsafe { reduce::accumulate_locked(op, basic, at, origin.address, None, count) };
    })
}

/// Whether all ranks change elements of this kind, which are mapped here, by atomic instructions:
/// on one node most kinds, over several nodes those that other nodes change atomically, too.
#[inline]
pub(super) fn by_instruction(place: Place<'_>, basic: Basic, at: *mut u8) -> bool {
    !reduce::needs_lock(basic, at)
        && (!place.node.spans_nodes() || is_changed_at_once(place.node, basic, at.addr().to_u64()))
}

#[inline]
pub(super) fn operation(place: Place<'_>, op: Handle) -> Result<Op> {
    let unknown = || Error::Wrong(Class::Op, "operation that is not a predefined one");
    place.host.tables.ops.find(op).ok_or_else(unknown)
}

/// Returns the element of a predefined type, also of one without a name (MPI-4.1 §19.1.5).
#[inline]
pub(super) fn predefined(place: Place<'_>, datatype: Handle) -> Result<Basic> {
    match place.shape(datatype)? {
        Shape::Basic(basic) => Ok(basic),
        _ => Err(Error::Wrong(Class::Type, "datatype that is not a predefined one")),
    }
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
