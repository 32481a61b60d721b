//! Two type maps laid over each other: the maximal blocks of foMPI's paper on datatypes (§2), found
//! on the way instead of in a list, and equal ones at equal distances at once. The commonest
//! transfers are one strip. `dense` has transfers with data without holes on one side, or with the
//! same type on both; `list` has those with blocks at irregular places, or with few blocks;
//! `superpose` has the others.

use super::block::Piece;
use super::dense::{FEW_NODES, ITSELF, ORIGIN, OtherSide, TARGET};
use super::list::{Blocks, Copies, merge};
use super::map::Row;
use super::strip::{Portion, Strip};
use super::superpose::{one_row, superpose};
use super::{Layout, Shape};
use crate::basic::Basic;
use crate::error::{Error, Result};
use crate::messages;
use crate::number::Number;
use core::iter;
use std::sync::Arc;

/// Does `work` on all data of `count` items on either side. Ends with the shorter of the two.
/// Portions come in no order, and need none: the bytes that are written do not overlap (MPI-4.1
/// §12.3).
#[inline]
pub fn each_portion(
    origin: (&Shape, u64),
    target: (&Shape, u64),
    mut work: impl FnMut(Portion<'_>),
) {
    let (one, two) = (one_row(origin), one_row(target));
    if let Some(strip) =
        one.zip(two).and_then(|(one, two)| Strip::whole(one.of_bytes(), two.of_bytes()))
    {
        return work(Portion::Strip(strip));
    }
    let mut by_strip = |strip| work(Portion::Strip(strip));
    match (one, two, origin, target) {
        (_, _, (Shape::Derived(same), count), (Shape::Derived(other), items))
            if Arc::ptr_eq(same, other) && count == items && goes_by_rows(same, count) =>
        {
            OtherSide::<ITSELF>.items(same, count, 0, &mut by_strip)
        }
        (Some(dense), _, _, (Shape::Derived(layout), count))
            if is_dense(dense, layout, count) && goes_by_rows(layout, count) =>
        {
            OtherSide::<ORIGIN>.items(layout, count, dense.block.offset, &mut by_strip)
        }
        (_, Some(dense), (Shape::Derived(layout), count), _)
            if is_dense(dense, layout, count) && goes_by_rows(layout, count) =>
        {
            OtherSide::<TARGET>.items(layout, count, dense.block.offset, &mut by_strip)
        }
        _ => any_two((origin, one), (target, two), work),
    }
}

/// Whether a row is all data of some items without a hole.
fn is_dense(row: Row, layout: &Layout, items: u64) -> bool {
    row.blocks == 1 && layout.holds(items, row.block.count)
}

/// Whether some items with dense data on the other side are faster by the rows of their map than by
/// a list.
fn goes_by_rows(layout: &Layout, items: u64) -> bool {
    let few = items > 1 && layout.bytes().nodes().len() <= FEW_NODES;
    few || !layout.list.of(layout.bytes()).is_some_and(|list| list.is_irregular)
}

/// [`each_portion`] for any two sides; a side that is one row comes with it.
fn any_two(
    (origin, one): ((&Shape, u64), Option<Row>),
    (target, two): ((&Shape, u64), Option<Row>),
    mut work: impl FnMut(Portion<'_>),
) {
    match blocks(origin, one).zip(blocks(target, two)) {
        Some((one, two)) => merge(one, two, work),
        None => superpose(origin, target, |strip| work(Portion::Strip(strip))),
    }
}

/// Returns the blocks of a side, if they are a row or listed.
fn blocks((shape, count): (&Shape, u64), row: Option<Row>) -> Option<Blocks<'_>> {
    match (row, shape) {
        (Some(row), _) => Some(Blocks::Row(row)),
        (None, Shape::Derived(layout)) => {
            let list = layout.list.of(layout.bytes())?;
            Some(Blocks::Copies(Copies { list, left: count, extent: layout.extent() }))
        }
        (None, Shape::Basic(_)) => None,
    }
}

/// Does `work` on all data in the order of the type maps, block by block: offset at the origin,
/// offset at the target, bytes. Blocks that are neighbours at the target come one after the other.
pub fn each_run(origin: (&Shape, u64), target: (&Shape, u64), mut work: impl FnMut(i64, i64, u64)) {
    let by_run = |strip: Strip| {
        let (mut here, mut there) = (strip.here, strip.there);
        for _ in 0..strip.blocks {
            work(here, there, strip.bytes);
            // Wraps at most after the last block.
            here = here.wrapping_add(strip.here_stride);
            there = there.wrapping_add(strip.there_stride);
        }
    };
    superpose(origin, target, by_run);
}

/// The superposition of two type maps as streams of elements: offset at the origin, offset at the
/// target, kind and number of elements. Ends with the shorter of the two; where kinds differ there
/// is an error instead.
pub fn zip_elements(
    origin: impl Iterator<Item = Piece>,
    target: impl Iterator<Item = Piece>,
) -> impl Iterator<Item = Result<(i64, i64, Basic, u64)>> {
    let (mut origin, mut target) = (origin, target);
    let (mut from, mut to): (Option<Piece>, Option<Piece>) = (None, None);
    let zipped = iter::from_fn(move || {
        let (mut first, mut second) =
            (from.take().or_else(|| origin.next())?, to.take().or_else(|| target.next())?);
        if first.basic != second.basic {
            return Some(Err(Error::Wrong(&messages::TYPES_DIFFER)));
        }
        let (basic, count) = (first.basic, first.count.min(second.count));
        let run = (first.offset, second.offset, basic, count);
        for side in [&mut first, &mut second] {
            side.count -= count;
            side.offset = side.offset.wrapping_add((count * basic.extent().to_u64()).cast_signed());
        }
        from = (first.count > 0).then_some(first);
        to = (second.count > 0).then_some(second);
        Some(Ok(run))
    });
    zipped.fuse()
}
