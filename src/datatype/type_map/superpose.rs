//! Any two type maps laid over each other. In each step the smaller of both blocks is used up
//! (foMPI's paper on datatypes, §2); here a step takes as many equal blocks as there are on both
//! sides.

use super::block::Block;
use super::map::Row;
use super::overlay::{Strip, in_bytes, one_row};
use super::rows::Rows;
use super::{Layout, Shape};
use crate::number::Number;

/// Rows of bytes; no row touches the next.
struct Joined<'a> {
    rows: Rows<'a>,
    /// a row that comes before the pending one
    ready: Option<Row>,
    /// a row of which the last block may still grow
    pending: Option<Row>,
}

impl<'a> Joined<'a> {
    fn of(items: (&'a Shape, u64)) -> Joined<'a> {
        let rows = match (one_row(items), items) {
            (Some(row), _) => Rows::single(Some(row)),
            (None, (Shape::Basic(basic), count)) => {
                Rows::of(Layout::padded(*basic), count, basic.extent().to_u64().cast_signed())
            }
            (None, (Shape::Derived(layout), count)) => {
                Rows::of(layout.bytes(), count, layout.extent())
            }
        };
        Joined { rows, ready: None, pending: None }
    }

    /// Joins the last block of the pending row and the first one of `row`, which touch. Returns the
    /// row that is complete then.
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
            if last.last().next() != i128::from(row.block.offset) {
                return Some(last);
            }
            if let Some(complete) = self.join(last, row) {
                return Some(complete);
            }
        }
    }
}

/// One of the two sides of a superposition.
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

    /// Splits the row: its first block is next, and the blocks behind it come after that.
    fn split(&mut self) {
        if let Some(behind) = self.now.behind() {
            debug_assert!(self.then.is_none());
            self.then = Some(behind);
            self.now = Row::of(self.now.block);
        }
    }

    /// Skips `blocks` blocks; returns false at the end.
    fn skip_blocks(&mut self, blocks: u64) -> bool {
        if blocks < self.now.blocks {
            let offset = blocks.cast_signed().wrapping_mul(self.now.stride);
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

    /// Skips `bytes` bytes of the only block; returns false at the end.
    fn skip_bytes(&mut self, bytes: u64) -> bool {
        let Block { offset, basic, count } = self.now.block;
        if bytes == count {
            return self.skip_blocks(1);
        }
        let offset = offset.wrapping_add(bytes.cast_signed());
        self.now = Row::of(Block { offset, basic, count: count - bytes });
        true
    }
}

/// Does `work` on all data of `count` items on either side, in the order of the type maps. Ends
/// with the shorter of the two. The blocks are maximal.
pub(super) fn superpose(origin: (&Shape, u64), target: (&Shape, u64), mut work: impl FnMut(Strip)) {
    let (Some(mut one), Some(mut two)) = (Side::of(origin), Side::of(target)) else { return };
    loop {
        let bytes = one.bytes().min(two.bytes());
        let (here, there) = (one.now.block.offset, two.now.block.offset);
        let [first, second] = [&mut one, &mut two].map(|side| {
            if side.bytes() > bytes {
                side.split();
            }
            // A longer block counts as the number of blocks of the other side that fit into it.
            match side.bytes() == bytes {
                true => (side.now.blocks, side.now.stride),
                false => (side.bytes() / bytes, bytes.cast_signed()),
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
