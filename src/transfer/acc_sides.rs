//! The buffers of an accumulate with their type maps, laid over that of the target. Not for those
//! accumulates of one predefined type that need no type map.

use super::acc_run::AccRun;
use super::put_get::total;
use super::{Buffer, Place, elements, not_null, unpaired};
use crate::datatype::basic::Basic;
use crate::datatype::reduce::{Op, pairs};
use crate::datatype::type_map::{Shape, zip_elements};
use crate::error::Result;
use crate::messages::{self, Message};
use crate::number::{Number, Offset};
use std::sync::Arc;

/// The origin's buffer and the result buffer.
pub type Sides<'a> = (Option<&'a Side>, Option<&'a Side>);

/// One of the origin's buffers with its shape.
pub struct Side {
    address: *mut u8,
    count: u64,
    shape: Shape,
    /// bytes of data
    pub bytes: u64,
}

/// The messages about a buffer of the origin.
pub struct SideMessages {
    count: &'static Message,
    address: &'static Message,
}

/// Those of the buffer whose data an accumulate combines.
pub static ORIGIN: SideMessages =
    SideMessages { count: &messages::ORIGIN_COUNT, address: &messages::NULL_ORIGIN };
/// Those of the buffer for the values before.
pub static RESULT: SideMessages =
    SideMessages { count: &messages::RESULT_COUNT, address: &messages::NULL_RESULT };

impl Side {
    /// Checks a buffer, [`ORIGIN`] or [`RESULT`].
    pub fn new(place: Place<'_>, buffer: Buffer, wrong: &'static SideMessages) -> Result<Side> {
        let count = elements(wrong.count, buffer.count)?;
        let shape = place.shape(buffer.datatype)?;
        let bytes = total(&shape, count)?;
        if let (Shape::Basic(_), true) = (&shape, bytes > 0) {
            not_null(buffer.address, wrong.address)?;
        }
        Ok(Side { address: buffer.address, count, shape, bytes })
    }

    /// Its displacement zero.
    pub fn address(&self) -> *mut u8 {
        self.address
    }

    /// Its type map, and the number of items.
    pub fn items(&self) -> (&Shape, u64) {
        (&self.shape, self.count)
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

/// Returns the buffer to transfer, the kind of all its elements, and the address for old elements.
/// `None` unless all elements have one kind without padding, and the result buffer has the layout
/// of the origin's.
pub fn same_layout<'a>(
    (origin, result): Sides<'a>,
    target: &Shape,
) -> Option<(&'a Side, Basic, Option<*mut u8>)> {
    let basic = target.uniform().filter(|basic| basic.size() == basic.extent())?;
    let side = origin.or(result)?;
    let is_same = result.is_none_or(|result| {
        result.count == side.count
            && match (&result.shape, &side.shape) {
                (Shape::Basic(one), Shape::Basic(other)) => one == other,
                (Shape::Derived(one), Shape::Derived(other)) => Arc::ptr_eq(one, other),
                _ => false,
            }
    });
    let is_uniform = side.shape.uniform() == Some(basic);
    (is_same && is_uniform).then_some((side, basic, result.map(|result| result.address)))
}

/// Does `work` on the runs that are contiguous in both buffers and at the target. It gets the
/// offset from displacement zero of the target's type map, and the run without its address at the
/// target.
pub fn each_run(
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
/// always fast.
pub fn kinds_agree(op: Op, side: Option<&Side>, target: &Shape, count: u64) -> Result<()> {
    let mut others = target.kinds().filter(|basic| !pairs(op, *basic));
    others.try_for_each(|basic| unpaired(op, basic))?;
    match side {
        Some(side) if target.uniform().is_none() || side.shape.uniform() != target.uniform() => {
            overlay(Some(side), target, count).try_for_each(|run| run.map(|_| ()))
        }
        _ => Ok(()),
    }
}
