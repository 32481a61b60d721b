//! Two type maps laid over each other: the maximal blocks of foMPI's paper on datatypes (§2), found
//! on the way instead of in a list, and equal ones at equal distances at once.

use super::map::Row;
use super::rows::Rows;
use super::{Block, Layout, Piece, Shape};
use crate::datatype::basic::Basic;
use crate::error::{Class, Error, Result};
use core::iter;

/// Blocks that are contiguous on both sides and cannot grow, at equal distances.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Strip {
    /// offset of the first block at the origin
    pub here: i64,
    /// offset of the first block at the target
    pub there: i64,
    /// of each block
    pub bytes: u64,
    /// number of blocks, not 0
    pub blocks: u64,
    /// bytes from one block to the next at the origin
    pub here_stride: i64,
    /// likewise at the target
    pub there_stride: i64,
}

/// Rows of bytes that do not touch the next.
struct Joined<'a> {
    rows: Rows<'a>,
    /// a row that is to come before the pending one
    ready: Option<Row>,
    /// a row of which the last block may still grow
    pending: Option<Row>,
}

impl Strip {
    /// All data of two rows, if that is one strip: the commonest transfers are.
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
            return strip(other, two.blocks, other as i64, two.stride);
        }
        if two.blocks == 1 && one.blocks.checked_mul(dense) == Some(other) {
            return strip(dense, one.blocks, one.stride, dense as i64);
        }
        None
    }
}

/// Some items as one row of bytes, if they are one.
#[inline]
fn one_row((shape, count): (&Shape, u64)) -> Option<Row> {
    match shape {
        Shape::Basic(basic) if basic.size() == basic.extent() => {
            let bytes = count.saturating_mul(basic.size() as u64);
            let block = Block { offset: 0, basic: Basic::Byte, count: bytes };
            (count > 0).then(|| Row::of(block))
        }
        Shape::Basic(_) => None,
        Shape::Derived(layout) => layout.bytes().row()?.items(count, layout.extent()).map(in_bytes),
    }
}

impl<'a> Joined<'a> {
    fn of(items: (&'a Shape, u64)) -> Joined<'a> {
        let rows = match (one_row(items), items) {
            (Some(row), _) => Rows::single(Some(row)),
            (None, (Shape::Basic(basic), count)) => {
                Rows::of(Layout::padded(*basic), count, basic.extent() as i64)
            }
            (None, (Shape::Derived(layout), count)) => {
                Rows::of(layout.bytes(), count, layout.extent())
            }
        };
        Joined { rows, ready: None, pending: None }
    }

    /// Joins the last block of the pending row and the first one of `row`, which touch, and gives
    /// the row that is complete by that.
    fn join(&mut self, last: Row, row: Row) -> Option<Row> {
        let end = last.last();
        let joined = Row::of(Block { count: end.count + row.block.count, ..end });
        match (last.before(), row.behind()) {
            (before, None) => {
                self.pending = Some(joined);
                before
            }
            (None, Some(behind)) => {
                self.pending = Some(behind);
                Some(joined)
            }
            (before, Some(behind)) => {
                self.ready = Some(joined);
                self.pending = Some(behind);
                before
            }
        }
    }
}

impl Iterator for Joined<'_> {
    type Item = Row;

    #[inline]
    fn next(&mut self) -> Option<Row> {
        if let Some(ready) = self.ready.take() {
            return Some(ready);
        }
        loop {
            let Some(row) = self.rows.next().map(in_bytes) else { return self.pending.take() };
            let Some(last) = self.pending.replace(row) else { continue };
            if last.last().next() != row.block.offset as i128 {
                return Some(last);
            }
            if let Some(complete) = self.join(last, row) {
                return Some(complete);
            }
        }
    }
}

/// A row of elements without padding as a row of bytes.
#[inline]
fn in_bytes(row: Row) -> Row {
    let Block { offset, basic, count } = row.block;
    let count = count * basic.size() as u64;
    Row { block: Block { offset, basic: Basic::Byte, count }, ..row }
}

/// One of two sides.
struct Side<'a> {
    rows: Joined<'a>,
    now: Row,
    then: Option<Row>,
}

impl<'a> Side<'a> {
    fn of(items: (&'a Shape, u64)) -> Option<Side<'a>> {
        let mut rows = Joined::of(items);
        let now = rows.next()?;
        Some(Side { rows, now, then: None })
    }

    fn bytes(&self) -> u64 {
        self.now.block.count
    }

    /// Leaves one block of the row for now.
    fn split(&mut self) {
        if let Some(behind) = self.now.behind() {
            debug_assert!(self.then.is_none());
            self.then = Some(behind);
            self.now = Row::of(self.now.block);
        }
    }

    /// Goes on behind so many blocks; false at the end.
    fn skip_blocks(&mut self, blocks: u64) -> bool {
        if blocks < self.now.blocks {
            let offset = (blocks as i64).wrapping_mul(self.now.stride);
            let offset = self.now.block.offset.wrapping_add(offset);
            let block = Block { offset, ..self.now.block };
            self.now = Row::new(block, self.now.blocks - blocks, self.now.stride);
            return true;
        }
        match self.then.take().or_else(|| self.rows.next()) {
            Some(row) => self.now = row,
            None => return false,
        }
        true
    }

    /// Goes on behind so many bytes of the only block; false at the end.
    fn skip_bytes(&mut self, bytes: u64) -> bool {
        let Block { offset, basic, count } = self.now.block;
        if bytes == count {
            return self.skip_blocks(1);
        }
        let offset = offset.wrapping_add(bytes as i64);
        self.now = Row::of(Block { offset, basic, count: count - bytes });
        true
    }
}

/// Does `work` on all data of `count` items on either side, in the order of the type maps. Ends
/// with the shorter of the two.
#[inline]
pub fn each_strip(origin: (&Shape, u64), target: (&Shape, u64), mut work: impl FnMut(Strip)) {
    if let (Some(one), Some(two)) = (one_row(origin), one_row(target))
        && let Some(strip) = Strip::whole(one, two)
    {
        return work(strip);
    }
    superpose(origin, target, work);
}

fn superpose(origin: (&Shape, u64), target: (&Shape, u64), mut work: impl FnMut(Strip)) {
    let (Some(mut one), Some(mut two)) = (Side::of(origin), Side::of(target)) else { return };
    loop {
        let bytes = one.bytes().min(two.bytes());
        let (here, there) = (one.now.block.offset, two.now.block.offset);
        let [first, second] = [&mut one, &mut two].map(|side| {
            if side.bytes() > bytes {
                side.split();
            }
            // A longer block holds as many blocks of the other side as go into it.
            match side.bytes() == bytes {
                true => (side.now.blocks, side.now.stride),
                false => (side.bytes() / bytes, bytes as i64),
            }
        });
        let blocks = first.0.min(second.0);
        let (here_stride, there_stride) = (first.1, second.1);
        work(Strip { here, there, bytes, blocks, here_stride, there_stride });
        let [more, also] = [&mut one, &mut two].map(|side| match side.bytes() == bytes {
            true => side.skip_blocks(blocks),
            false => side.skip_bytes(blocks * bytes),
        });
        if !(more && also) {
            return;
        }
    }
}

/// The same, block by block: offset at the origin, offset at the target, bytes.
pub fn each_run(origin: (&Shape, u64), target: (&Shape, u64), mut work: impl FnMut(i64, i64, u64)) {
    each_strip(origin, target, |strip| {
        let (mut here, mut there) = (strip.here, strip.there);
        for _ in 0..strip.blocks {
            work(here, there, strip.bytes);
            // Wraps at most behind the last block.
            here = here.wrapping_add(strip.here_stride);
            there = there.wrapping_add(strip.there_stride);
        }
    });
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
            let kind = second.basic as i64;
            return Some(Err(Error::Argument(Class::Type, "target element of another kind", kind)));
        }
        let (basic, count) = (first.basic, first.count.min(second.count));
        let run = (first.offset, second.offset, basic, count);
        for side in [&mut first, &mut second] {
            side.count -= count;
            side.offset = side.offset.wrapping_add((count * basic.extent() as u64) as i64);
        }
        from = (first.count > 0).then_some(first);
        to = (second.count > 0).then_some(second);
        Some(Ok(run))
    });
    zipped.fuse()
}
