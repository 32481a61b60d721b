//! An accumulate on any types whose arguments are checked: where its elements are, and how they are
//! protected. Not for the calls themselves, which are in `accumulate` and `single`.

use super::acc::{AccLock, guard_of_several, locked, single};
use super::acc_run::{AccRun, Guard};
use super::acc_sides::{ORIGIN, RESULT, Side, Sides, each_run, kinds_agree, same_layout};
use super::combine::UnmappedAcc;
use super::distant::is_changed_at_once;
use super::put_get::{all_in_regions, reach, total};
use super::target_acc::{one_word, send_word};
use super::{Buffer, OpenTarget, Place, TargetBuffer, elements, fits, unpaired};
use crate::datatype::basic::Basic;
use crate::datatype::reduce::{self, Op, pairs};
use crate::datatype::type_map::{Portion, Shape, each_portion};
use crate::error::{Error, Result};
use crate::fabric::location::{Distant, Location, Unmapped};
use crate::fabric::remote::Portions;
use crate::messages;
use crate::mpi::Handle;
use crate::number::Number;
use crate::window::LocalWindow;
use crate::window::address::{By, Reach};

/// Bytes of a word, by which elements of several types are counted.
const WORD_BYTES: u64 = 8;

/// Carries out an accumulate of any types.
///
/// # Safety
/// As for [`accumulate`](super::accumulate::accumulate).
#[cold]
pub(super) unsafe fn accumulate_shaped(
    to: OpenTarget<'_>,
    (origin, result): (Option<Buffer>, Option<Buffer>),
    target: TargetBuffer,
    op: Op,
) -> Result<()> {
    let place = *to.place;
    let target_count = elements(&messages::TARGET_COUNT, target.count)?;
    let target_shape = place.shape(target.datatype)?;
    let origin = origin.map(|buffer| Side::new(place, buffer, &ORIGIN)).transpose()?;
    let result = result.map(|buffer| Side::new(place, buffer, &RESULT)).transpose()?;
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
        true => guard_of_several(to, target_count),
        false => Guard::Single,
    };
    let disp = target.disp;
    let (touched, offset) = reach(&target_shape, target_count)?;
    let elements = moved / WORD_BYTES;
    let work = AccCall { to, disp, op, zero: None, guard, elements };
    // SAFETY: the caller guarantees the buffers.
    unsafe { work.begin(sides, (&target_shape, target_count), (touched, offset)) }
}

/// An accumulate whose arguments are checked.
#[derive(Clone, Copy)]
pub(super) struct AccCall<'a> {
    pub to: OpenTarget<'a>,
    /// the target displacement
    pub disp: i64,
    pub op: Op,
    /// the location of displacement zero of the target's type map; `None`: each run is found alone
    pub zero: Option<Location<'a>>,
    /// the protection of the target now
    pub guard: Guard,
    /// the number of elements, about
    pub elements: u64,
}

impl<'a> AccCall<'a> {
    /// Finds the target, and applies the operation there. `reach` and `offset`: those of its items.
    ///
    /// # Safety
    /// The buffers are valid for their shapes.
    unsafe fn begin(
        self,
        sides: Sides<'_>,
        (target, count): (&Shape, u64),
        (reach, offset): (Reach, i64),
    ) -> Result<()> {
        let (node, disp) = (self.to.place.node, self.disp);
        let whole = self.to.at((disp, reach), By::All, |location| {
            // SAFETY: `at` checked the window's side, the caller guarantees the other two.
            self.protected((location, location.offset(-offset)), reach, |work| unsafe {
                work.run_shaped(sides, target, count)
            })
        });
        if !matches!(whole, Err(Error::NotInRegion { .. })) {
            return whole;
        }
        // The regions of a dynamic window need not cover the gaps between the runs. Each run is
        // found in a region before anything is changed, and the regions stay for the whole call:
        // the holder of the lock waits for nothing.
        node.while_attached(self.to.rank, || {
            all_in_regions((target, count), |reach| self.at_held(reach, |_| Ok(())))?;
            // SAFETY: the caller guarantees the buffers; each run is checked again.
            self.in_parts(|work| unsafe { work.run_shaped(sides, target, count) })
        })
    }

    /// Does `work` at a part of the target's items, whose regions stay attached.
    fn at_held<R>(&self, reach: Reach, work: impl FnOnce(Location<'_>) -> Result<R>) -> Result<R> {
        let OpenTarget { place, rank, record } = self.to;
        place.node.at_held((rank, record), (self.disp, reach), work)
    }

    /// Does `work`, which finds each run by itself, for memory that is partly not mapped. The lock
    /// of the target is held meanwhile, so that the call is atomic as a whole.
    pub fn in_parts(self, work: impl FnOnce(AccCall<'a>) -> Result<()>) -> Result<()> {
        let run = |guard| work(AccCall { guard, zero: None, ..self });
        match self.guard {
            Guard::Alone => run(Guard::Alone),
            _ => locked(self.to, self.elements, run),
        }
    }

    /// Applies the operation to contiguous elements that are at a location, under the protection
    /// that they need. `reach`: their bytes.
    ///
    /// # Safety
    /// As for `element_run`.
    #[inline]
    pub unsafe fn on_elements(
        self,
        basic: Basic,
        (at, reach): (Location<'_>, Reach),
        (origin, result): (*const u8, Option<*mut u8>),
        count: u64,
    ) -> Result<()> {
        let width = if basic.size() == basic.extent() { basic.size().to_u64() } else { 0 };
        if let (Location::Unmapped(Unmapped::Distant(there)), 1) = (at, count)
            && let Some(way) = one_word(there, (self.op, basic), width)
        {
            // SAFETY: guaranteed by the caller.
            return unsafe { send_word(self.to, way, there.at, (origin, result)) };
        }
        self.protected((at, at), reach, |work| {
            // SAFETY: guaranteed by the caller.
            unsafe { work.run_at(0, basic, origin, result, count) }
        })
    }

    /// Does `work` at a location, with its displacement zero: under the target's accumulate lock
    /// unless the elements are mapped or a device changes them. There the call takes the lock
    /// itself, if there are several elements. If memory of `reach` is partly not mapped, `work`
    /// finds each run by itself.
    #[inline]
    pub fn protected<'s>(
        self,
        (location, zero): (Location<'s>, Location<'s>),
        reach: Reach,
        work: impl FnOnce(AccCall<'s>) -> Result<()>,
    ) -> Result<()>
    where
        'a: 's,
    {
        let found = AccCall { zero: Some(zero), ..self };
        let is_mapped = match (location, self.guard) {
            (Location::Mapped(_), Guard::Several) => true,
            (Location::Mapped(_) | Location::Unmapped(Unmapped::Distant(_)), _) => {
                return work(found);
            }
            _ if self.to.place.node.is_mixed(self.to.rank, self.disp, reach)? => {
                return self.in_parts(work);
            }
            (_, Guard::Held | Guard::Alone) => return work(found),
            _ => false,
        };
        // All calls on memory that is not mapped hold the lock.
        let of = |guard| if is_mapped { guard } else { Guard::Alone };
        let held = |guard| work(AccCall { guard: of(guard), ..found });
        locked(self.to, self.elements, held)
    }

    /// The target's lock, for elements that are not mapped here, if this call has to take it.
    fn lock(&self) -> Option<AccLock<'a>> {
        match self.guard {
            Guard::Single | Guard::Several => Some(AccLock::new(self.to)),
            Guard::Held | Guard::Alone => None,
        }
    }

    /// Applies the operation to any types: lays the type maps over each other.
    ///
    /// # Safety
    /// The buffers are valid for their shapes, and the target's is inside of the window.
    unsafe fn run_shaped(&self, sides: Sides<'_>, target: &Shape, count: u64) -> Result<()> {
        let (origin, result) = sides;
        // All kinds are checked before anything is changed.
        kinds_agree(self.op, origin, target, count)?;
        kinds_agree(self.op, result, target, count)?;
        let Some(Location::Unmapped(whose)) = self.zero else {
            return each_run(sides, target, count, |there, run| {
                let AccRun { basic, origin, result, count, .. } = run;
                // SAFETY: runs of type maps for which the caller vouches.
                unsafe { self.run_at(there, basic, origin, result, count.to_u64()) }
            });
        };
        let mut combine = UnmappedAcc::new(whose, self.op, self.guard, self.lock());
        if let (UnmappedAcc::AtTarget(requests), Some((side, basic, result))) =
            (&mut combine, same_layout(sides, target))
            && let Unmapped::Distant(Distant { at: there, .. }) = whose
        {
            let each = |work: &mut dyn FnMut(Portion<'_>)| {
                each_portion(side.items(), (target, count), work);
            };
            let portions = Portions { there, here: side.address(), each: &each };
            // SAFETY: the caller guarantees the buffers until `done`.
            unsafe {
                let sent = requests.send_portions(basic, portions, result);
                return combine.done(sent);
            }
        }
        let pushed = each_run(sides, target, count, |there, run| {
            let there = whose.address().wrapping_add_signed(there);
            // SAFETY: the caller guarantees the buffers until `done`; all such elements of this
            // target share the lock.
            unsafe { combine.push(AccRun { there, ..run }) }
        });
        // SAFETY: all pushed runs are valid until now.
        unsafe { combine.done(pushed) }
    }

    /// Applies the operation to elements that begin `there` in the target's type map.
    ///
    /// # Safety
    /// As for `element_run`.
    pub unsafe fn run_at(
        &self,
        there: i64,
        basic: Basic,
        origin: *const u8,
        result: Option<*mut u8>,
        count: u64,
    ) -> Result<()> {
        if let Some(zero) = self.zero {
            // SAFETY: guaranteed by the caller.
            return unsafe { self.element_run(basic, zero.offset(there), origin, result, count) };
        }
        let (extent, mut done) = (basic.extent().to_u64(), 0);
        let OpenTarget { place, rank, .. } = self.to;
        let parts = place.node.split((rank, self.disp), there, (extent, count))?;
        for part in parts.into_iter().filter(|part| *part > 0) {
            let passed = done * extent;
            let at = there.wrapping_add_unsigned(passed);
            let reach = Reach { first: at, bytes: part * extent };
            let passed = passed.to_usize();
            let origin = origin.wrapping_add(passed);
            let result = result.map(|result| result.wrapping_add(passed));
            self.at_held(reach, |location| {
                // SAFETY: the caller's promise, and `at_held` checked the window's side.
                unsafe { self.element_run(basic, location, origin, result, part) }
            })?;
            done += part;
        }
        Ok(())
    }

    /// Applies the operation to contiguous elements.
    ///
    /// # Safety
    /// All buffers hold `count` elements of the type.
    pub unsafe fn element_run(
        &self,
        basic: Basic,
        at: Location<'_>,
        origin: *const u8,
        result: Option<*mut u8>,
        count: u64,
    ) -> Result<()> {
        let (to, what) = (self.to, (self.op, basic));
        match at {
            // SAFETY: guaranteed by the caller.
            Location::Mapped(at) => unsafe {
                on_mapped(to, what, self.guard, at, (origin, result), count)
            },
            // SAFETY: the caller's promise; no other call changes the target without the lock.
            Location::Own(at) => unsafe {
                on_mapped(to, what, Guard::Alone, at, (origin, result), count)
            },
            Location::Unmapped(whose) => {
                if !pairs(self.op, basic) {
                    unpaired(self.op, basic)?;
                }
                let count = count.to_usize();
                let run = AccRun { there: whose.address(), basic, count, origin, result };
                let mut combine = UnmappedAcc::new(whose, self.op, self.guard, self.lock());
                // SAFETY: the caller guarantees the buffers; all such elements of this target
                // share the lock.
                unsafe {
                    let pushed = combine.push(run);
                    combine.done(pushed)
                }
            }
        }
    }
}

/// Applies an operation to contiguous elements that this process reaches by load and store.
///
/// # Safety
/// All buffers hold `count` elements of the type, and the target is protected so.
#[inline(never)]
pub(super) unsafe fn on_mapped(
    to: OpenTarget<'_>,
    (op, basic): (Op, Basic),
    guard: Guard,
    at: *mut u8,
    (origin, result): (*const u8, Option<*mut u8>),
    count: u64,
) -> Result<()> {
    if !pairs(op, basic) {
        unpaired(op, basic)?;
    }
    let number = count.to_usize();
    let change = |guard| {
        // SAFETY: the caller's promise. The lock is held, and with `Alone` no other call changes
        // the target.
        unsafe {
            match guard {
                Guard::Alone => {
                    reduce::accumulate_exclusive(op, basic, at, origin, result, number);
                }
                _ => reduce::accumulate_locked(op, basic, at, origin, result, number),
            }
        }
        Ok(())
    };
    match guard {
        Guard::Single if by_instruction(to.place.node, basic, at) => single(to, || {
            // SAFETY: the caller's promise; an instruction changes the element.
            unsafe { reduce::accumulate(op, basic, at, origin, result, 1) };
        }),
        Guard::Single | Guard::Several => locked(to, count, change),
        Guard::Held | Guard::Alone => change(guard),
    }
}

/// Whether all ranks change elements of this kind, which are mapped here, by atomic instructions:
/// on one node most kinds, over several nodes those that other nodes change atomically, too.
#[inline]
pub(super) fn by_instruction(node: &LocalWindow, basic: Basic, at: *mut u8) -> bool {
    !reduce::needs_lock(basic, at)
        && (!node.spans_nodes() || is_changed_at_once(node, basic, at.addr().to_u64()))
}

#[inline]
pub(super) fn operation(place: Place<'_>, op: Handle) -> Result<Op> {
    let unknown = || Error::Wrong(&messages::OP_NOT_PREDEFINED);
    place.host.tables.ops.find(op).copied().ok_or_else(unknown)
}

/// Returns the element of a predefined type, also of one without a name (MPI-4.1 §19.1.5).
#[inline]
pub(super) fn predefined(place: Place<'_>, datatype: Handle) -> Result<Basic> {
    match place.shape(datatype)? {
        Shape::Basic(basic) => Ok(basic),
        _ => Err(Error::Wrong(&messages::TYPE_NOT_PREDEFINED)),
    }
}
