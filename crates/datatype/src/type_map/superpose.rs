//! Any two type maps laid over each other. In each step the smaller of both blocks is used up
//! (foMPI's paper on datatypes, §2); here a step takes as many equal blocks as there are on both
//! sides.
//!
//! Each side finds some rows before they are used: a processor waits for a row that it loads by
//! other pieces than it has just stored, which took most of the time of an irregular map.

use super::map::Row;
use super::rows::Rows;
use super::strip::{ByteRow, Strip};
use super::{Block, Layout, Shape};
use crate::basic::Basic;
use crate::number::Number;

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
        Shape::Derived(layout) => {
            layout.bytes().row()?.items(count, layout.extent()).map(Row::in_bytes)
        }
    }
}

/// The most rows that are found before they are used.
const AHEAD: usize = 32;

/// One of the two sides of a superposition: rows of bytes that do not touch each other.
struct Side<'a> {
    rows: Rows<'a>,
    /// rows that come next, from `at` to `end`. They are changed in place. The one before `at` is
    /// unused.
    ready: [ByteRow; AHEAD],
    at: usize,
    end: usize,
    /// a row whose last block may still grow
    pending: ByteRow,
}

impl<'a> Side<'a> {
    fn of(items: (&'a Shape, u64)) -> Side<'a> {
        let rows = match (one_row(items), items) {
            (Some(row), _) => Rows::single(Some(row)),
            (None, (Shape::Basic(basic), count)) => {
                Rows::of(Layout::padded(*basic), count, basic.extent().to_u64().cast_signed())
            }
            (None, (Shape::Derived(layout), count)) => {
                Rows::of(layout.bytes(), count, layout.extent())
            }
        };
        Side { rows, ready: [ByteRow::NONE; AHEAD], at: 1, end: 1, pending: ByteRow::NONE }
    }

    /// Returns whether there is a row.
    #[inline(always)]
    fn has_more(&mut self) -> bool {
        if self.at == self.end {
            self.find();
        }
        self.at < self.end
    }

    /// The row that comes next; there must be one.
    #[inline(always)]
    fn now(&mut self) -> &mut ByteRow {
        &mut self.ready[self.at]
    }

    /// Finds the next rows; none at the end.
    #[inline(never)]
    fn find(&mut self) {
        (self.at, self.end) = (1, 1);
        let mut pending = self.pending;
        // A step completes two rows at most.
        while self.end + 2 <= AHEAD {
            let Some(row) = self.rows.next().map(|row| row.in_bytes().of_bytes()) else {
                self.complete(pending);
                pending = ByteRow::NONE;
                break;
            };
            if pending.blocks > 0 && pending.end() == row.first {
                pending = self.join(pending, row);
            } else {
                self.complete(pending);
                pending = row;
            }
        }
        self.pending = pending;
    }

    /// Makes one block of the last block of `pending` and the first one of `row`, which touch.
    /// Completes all but the row whose last block may grow, and returns that row.
    fn join(&mut self, pending: ByteRow, row: ByteRow) -> ByteRow {
        let last = pending.last();
        let joined = ByteRow::single(last.first, last.bytes + row.bytes);
        self.complete(pending.shortened(1));
        if row.blocks == 1 {
            return joined;
        }
        self.complete(joined);
        row.behind(1)
    }

    /// Appends a row, if it has blocks.
    #[inline(always)]
    fn complete(&mut self, row: ByteRow) {
        if row.blocks > 0 {
            self.ready[self.end] = row;
            self.end += 1;
        }
    }

    /// Returns the number of blocks of `bytes` bytes that come next, `most` at most, and their
    /// stride. A longer block counts as the number of such blocks that fit into it; it becomes a
    /// row of its own.
    #[inline(always)]
    fn blocks_of(&mut self, bytes: u64, most: u64) -> (u64, i64) {
        let now = *self.now();
        if now.bytes == bytes {
            return (now.blocks.min(most), now.stride);
        }
        if now.blocks > 1 {
            *self.now() = now.behind(1);
            self.at -= 1;
            *self.now() = ByteRow::single(now.first, now.bytes);
        }
        // Without the division where the answer is known: lists of indices have single blocks.
        let blocks = if most == 1 { 1 } else { (now.bytes / bytes).min(most) };
        (blocks, bytes.cast_signed())
    }

    /// Skips `blocks` blocks of `bytes` bytes, which `blocks_of` has returned.
    #[inline(always)]
    fn skip(&mut self, blocks: u64, bytes: u64) {
        let now = self.now();
        let done = blocks * bytes;
        if now.bytes == bytes && now.blocks > blocks {
            *now = now.behind(blocks);
        } else if now.bytes == bytes || now.bytes == done {
            self.at += 1;
        } else {
            now.first = now.first.wrapping_add(done.cast_signed());
            now.bytes -= done;
        }
    }
}

/// Does `work` on all data of `count` items on either side, in the order of the type maps. Ends
/// with the shorter of the two. The blocks are maximal.
pub(super) fn superpose(origin: (&Shape, u64), target: (&Shape, u64), mut work: impl FnMut(Strip)) {
    let (mut one, mut two) = (Side::of(origin), Side::of(target));
    while one.has_more() && two.has_more() {
        let (first, second) = (*one.now(), *two.now());
        let (here, there) = (first.first, second.first);
        let bytes = first.bytes.min(second.bytes);
        // The side with the shorter blocks has as many as its row.
        let most = if first.bytes == bytes { first.blocks } else { second.blocks };
        let (blocks, here_stride) = one.blocks_of(bytes, most);
        let (blocks, there_stride) = two.blocks_of(bytes, blocks);
        work(Strip { here, there, bytes, blocks, here_stride, there_stride });
        one.skip(blocks, bytes);
        two.skip(blocks, bytes);
    }
}
