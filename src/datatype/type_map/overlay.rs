//! Two type maps laid over each other: the maximal blocks of foMPI's paper on datatypes (§2), found
//! on the way instead of in a list, and equal ones at equal distances at once. The commonest
//! transfers are one strip. `beside` has transfers with data without holes on one side, or with the
//! same type on both; `superpose` has the others.

use super::Shape;
use super::beside::{Beside, ITSELF, ORIGIN, TARGET};
use super::block::{Block, Piece};
use super::map::Row;
use super::superpose::superpose;
use crate::datatype::basic::Basic;
use crate::error::{Class, Error, Result};
use crate::number::Number;
use core::iter;
use std::sync::Arc;

/// Blocks that are contiguous on both sides and cannot grow, at equal distances.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Strip {
    /// offset of the first block at the origin
    pub here: i64,
    /// offset of the first block at the target
    pub there: i64,
    /// bytes of each block
    pub bytes: u64,
    /// number of blocks, not 0
    pub blocks: u64,
    /// bytes from one block to the next at the origin
    pub here_stride: i64,
    /// bytes from one block to the next at the target
    pub there_stride: i64,
}

impl Strip {
    /// Returns all data of two rows, if that is one strip, as in the commonest transfers.
    #[inline]
    fn whole(one: Row, two: Row) -> Option<Strip> {
        let (here, there) = (one.block.offset, two.block.offset);
        let (dense, other) = (one.block.count, two.block.count);
        let strip = |bytes, blocks, here_stride, there_stride| {
            Some(Strip { here, there, bytes, blocks, here_stride, there_stride })
        };
        if dense == other && one.blocks == two.blocks {
            return strip(dense, one.blocks, one.stride, two.stride);
        }
        if one.blocks == 1 && two.blocks.checked_mul(other) == Some(dense) {
            return strip(other, two.blocks, other.cast_signed(), two.stride);
        }
        if two.blocks == 1 && one.blocks.checked_mul(dense) == Some(other) {
            return strip(dense, one.blocks, one.stride, dense.cast_signed());
        }
        None
    }
}

/// Returns some items as one row of bytes, if they are one.
#[inline]
pub(super) fn one_row((shape, count): (&Shape, u64)) -> Option<Row> {
    match shape {
        Shape::Basic(basic) if basic.size() == basic.extent() => {
            let bytes = count.saturating_mul(basic.size().to_u64());
            let block = Block { offset: 0, basic: Basic::Byte, count: bytes };
            (count > 0).then(|| Row::of(block))
        }
        Shape::Basic(_) => None,
        Shape::Derived(layout) => layout.bytes().row()?.items(count, layout.extent()).map(in_bytes),
    }
}

/// Returns a row of elements without padding as a row of bytes.
#[inline]
pub(super) fn in_bytes(row: Row) -> Row {
    let Block { offset, basic, count } = row.block;
    let count = count * basic.size().to_u64();
    Row { block: Block { offset, basic: Basic::Byte, count }, ..row }
}

/// Does `work` on all data of `count` items on either side. Ends with the shorter of the two.
/// Strips come in no order, and need none: the bytes that are written do not overlap (MPI-4.1
/// §12.3).
#[inline]
pub fn each_strip(origin: (&Shape, u64), target: (&Shape, u64), mut work: impl FnMut(Strip)) {
    let (one, two) = (one_row(origin), one_row(target));
    if let Some(strip) = one.zip(two).and_then(|(one, two)| Strip::whole(one, two)) {
        return work(strip);
    }
    match (one, two, origin, target) {
        (_, _, (Shape::Derived(same), count), (Shape::Derived(other), items))
            if Arc::ptr_eq(same, other) && count == items =>
        {
            Beside::<ITSELF>.items(same, count, 0, &mut work)
        }
        (Some(dense), _, _, (Shape::Derived(layout), count))
            if dense.blocks == 1 && layout.holds(count, dense.block.count) =>
        {
            Beside::<ORIGIN>.items(layout, count, dense.block.offset, &mut work)
        }
        (_, Some(dense), (Shape::Derived(layout), count), _)
            if dense.blocks == 1 && layout.holds(count, dense.block.count) =>
        {
            Beside::<TARGET>.items(layout, count, dense.block.offset, &mut work)
        }
        _ => superpose(origin, target, work),
    }
}

/// Does `work` on all data in the order of the type maps, block by block: offset at the origin,
/// offset at the target, bytes. Blocks that are neighbours at the target come one after the other.
pub fn each_run(origin: (&Shape, u64), target: (&Shape, u64), mut work: impl FnMut(i64, i64, u64)) {
    let by_run = |strip: Strip| {
        let (mut here, mut there) = (strip.here, strip.there);
        for _ in 0..strip.blocks {
            work(here, there, strip.bytes);
            // Wraps at most behind the last block.
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
            let differ = "elements of the target of another type than those of the origin";
            return Some(Err(Error::Wrong(Class::Type, differ)));
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
