//! The items of a transfer, walked without memory: the rows of a type map, item after item, and
//! their blocks.

use super::block::{Block, Piece};
use super::map::{DEPTH_MAX, Map, Node, Row};
use crate::basic::Basic;

/// A repetition under way.
#[derive(Clone, Copy, Debug, Default)]
struct Frame {
    /// its nodes
    start: usize,
    end: usize,
    /// copies to come, this one included
    left: u64,
    stride: i64,
    /// the bytes by which this copy is moved
    base: i64,
}

/// The rows of some items in the order of the type map.
#[derive(Clone, Debug)]
pub(super) struct Rows<'a> {
    /// the only row, if there is only one
    single: Option<Row>,
    nodes: &'a [Node],
    /// the next node
    at: usize,
    /// the items, and the repetitions inside of them
    frames: [Frame; DEPTH_MAX + 1],
    depth: usize,
}

impl<'a> Rows<'a> {
    pub fn single(row: Option<Row>) -> Rows<'a> {
        Rows { single: row, nodes: &[], at: 0, frames: Default::default(), depth: 0 }
    }

    /// Walks `items` items that are `extent` bytes apart.
    pub fn of(map: &'a Map, items: u64, extent: i64) -> Rows<'a> {
        let nodes = map.nodes();
        if items == 0 || nodes.is_empty() {
            return Rows::single(None);
        }
        if let Some(row) = map.row().and_then(|row| row.items(items, extent)) {
            return Rows::single(Some(row));
        }
        let mut frames: [Frame; DEPTH_MAX + 1] = Default::default();
        frames[0] = Frame { start: 0, end: nodes.len(), left: items, stride: extent, base: 0 };
        Rows { single: None, nodes, at: 0, frames, depth: 0 }
    }
}

impl Iterator for Rows<'_> {
    type Item = Row;

    // Inlined always: a row that is returned in memory is loaded by other pieces than were stored,
    // and the processor waits for that longer than for all the rest.
    #[inline(always)]
    fn next(&mut self) -> Option<Row> {
        if self.nodes.is_empty() {
            return self.single.take();
        }
        loop {
            let frame = &mut self.frames[self.depth];
            if self.at == frame.end {
                frame.left = frame.left.saturating_sub(1);
                if frame.left > 0 {
                    // Does not wrap: all copies lie inside of the reach.
                    frame.base = frame.base.wrapping_add(frame.stride);
                    self.at = frame.start;
                } else if self.depth > 0 {
                    self.depth -= 1;
                } else {
                    return None;
                }
                continue;
            }
            let base = frame.base;
            let node = self.nodes[self.at];
            self.at += 1;
            match node {
                Node::Row(row) => return Some(row.at(row.block.offset.wrapping_add(base))),
                Node::Repeat { copies, stride, nodes } => {
                    let (start, end) = (self.at, self.at + nodes);
                    self.depth += 1;
                    self.frames[self.depth] = Frame { start, end, left: copies, stride, base };
                }
            }
        }
    }
}

/// The pieces of some items in the order of the type map.
#[derive(Clone, Debug)]
pub struct Pieces<'a> {
    rows: Rows<'a>,
    /// blocks of a row that are still to come
    row: Option<Row>,
}

impl<'a> Pieces<'a> {
    pub(super) fn of(rows: Rows<'a>) -> Pieces<'a> {
        Pieces { rows, row: None }
    }

    /// `count` elements.
    #[inline]
    pub(super) fn of_basic(basic: Basic, count: u64) -> Pieces<'a> {
        let row = (count > 0).then(|| Row::of(Block { offset: 0, basic, count }));
        Pieces::of(Rows::single(row))
    }
}

impl Iterator for Pieces<'_> {
    type Item = Piece;

    #[inline]
    fn next(&mut self) -> Option<Piece> {
        let row = match self.row.take() {
            Some(row) => row,
            None => self.rows.next()?,
        };
        self.row = row.behind();
        Some(row.block)
    }
}
