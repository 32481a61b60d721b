//! A type map, stored compactly: rows of equal blocks, and repetitions of nodes. A vector or
//! subarray needs a node or two whatever its counts are; only an irregular map has a node per
//! block. The order is that of the type map.

use super::block::{BasicKinds, Block, members};
use super::strip::ByteRow;
use crate::basic::Basic;
use crate::error::{Error, Result};
use crate::number::Number;

/// The deepest nesting of repetitions in a map; deeper ones are written out.
pub(super) const DEPTH_MAX: usize = 6;

/// The most nodes that are written out instead of repeated: walking them is quicker.
const FEW: u64 = 16;

/// The fewest blocks at equal distances that become a row.
const ROW: usize = 8;

/// Equal blocks at equal distances.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Row {
    /// the first block
    pub block: Block,
    /// number of blocks, not 0
    pub blocks: u64,
    /// bytes from one block to the next; 0 if there is one block
    pub stride: i64,
}

impl Row {
    pub fn of(block: Block) -> Row {
        Row { block, blocks: 1, stride: 0 }
    }

    /// Makes a row; blocks that touch become one block.
    pub fn new(block: Block, blocks: u64, stride: i64) -> Row {
        if blocks > 1 && block.next() - i128::from(block.offset) == i128::from(stride) {
            return Row::of(Block { count: block.count * blocks, ..block });
        }
        Row { block, blocks, stride: if blocks > 1 { stride } else { 0 } }
    }

    /// Returns a row of elements without padding as a row of bytes.
    #[inline]
    pub fn in_bytes(self) -> Row {
        let Block { offset, basic, count } = self.block;
        let count = count * basic.size().to_u64();
        Row { block: Block { offset, basic: Basic::Byte, count }, ..self }
    }

    /// Returns a row whose elements are bytes as callers of this module see it.
    #[inline(always)]
    pub fn of_bytes(self) -> ByteRow {
        debug_assert_eq!(self.block.basic, Basic::Byte);
        let Row { block, blocks, stride } = self;
        ByteRow { first: block.offset, bytes: block.count, blocks, stride }
    }

    pub fn at(self, offset: i64) -> Row {
        Row { block: Block { offset, ..self.block }, ..self }
    }

    /// Returns `items` copies of it, `extent` bytes apart, if they are one row.
    #[inline]
    pub fn items(self, items: u64, extent: i64) -> Option<Row> {
        match self.blocks {
            _ if items <= 1 => (items == 1).then_some(self),
            1 => Some(Row::new(self.block, items, extent)),
            _ if i128::from(self.blocks) * i128::from(self.stride) == i128::from(extent) => {
                Some(Row { blocks: self.blocks.saturating_mul(items), ..self })
            }
            _ => None,
        }
    }

    /// The place of a further block.
    fn next(&self) -> i128 {
        i128::from(self.block.offset) + i128::from(self.blocks) * i128::from(self.stride)
    }

    /// The last block.
    pub fn last(&self) -> Block {
        // Does not wrap: all blocks lie inside of the reach of a layout.
        let offset = (self.blocks.cast_signed() - 1).wrapping_mul(self.stride);
        Block { offset: self.block.offset.wrapping_add(offset), ..self.block }
    }

    /// All blocks but the first.
    pub fn behind(&self) -> Option<Row> {
        let offset = self.block.offset.wrapping_add(self.stride);
        let block = Block { offset, ..self.block };
        (self.blocks > 1).then(|| Row::new(block, self.blocks - 1, self.stride))
    }

    /// All blocks but the last.
    pub fn before(&self) -> Option<Row> {
        (self.blocks > 1).then(|| Row::new(self.block, self.blocks - 1, self.stride))
    }

    /// Returns this row with `other` after it, if both are one row. Two single blocks that do not
    /// touch do not make a row: they are seldom the first of many.
    fn followed(self, other: Row) -> Option<Row> {
        let (one, two) = (self.block, other.block);
        if one.basic != two.basic {
            return None;
        }
        match (self.blocks, other.blocks) {
            (1, 1) if one.next() == i128::from(two.offset) => {
                return Some(Row::of(Block { count: one.count + two.count, ..one }));
            }
            (1, _) => return None,
            _ => {}
        }
        let continued = self.next() == i128::from(two.offset)
            && (other.blocks == 1 || other.stride == self.stride);
        let whole = Row { blocks: self.blocks + other.blocks, ..self };
        (one.count == two.count && continued).then_some(whole)
    }
}

/// A step of a map.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Node {
    Row(Row),
    /// the next `nodes` nodes `copies` times, each `stride` bytes after the one before
    Repeat {
        copies: u64,
        stride: i64,
        nodes: usize,
    },
}

/// Returns the sum of a number of each row of some nodes and of their repetitions.
pub(super) fn total(mut nodes: &[Node], of: &impl Fn(Row) -> u64) -> u64 {
    let mut sum = 0_u64;
    while let [node, rest @ ..] = nodes {
        nodes = rest;
        sum = sum.saturating_add(match *node {
            Node::Row(row) => of(row),
            Node::Repeat { copies, nodes: length, .. } => {
                let (body, behind) = rest.split_at(length);
                nodes = behind;
                copies.saturating_mul(total(body, of))
            }
        });
    }
    sum
}

/// A type map.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Map {
    nodes: Vec<Node>,
    /// the number of nodes after all repetitions
    open: usize,
    /// the depth of nested repetitions
    depth: usize,
    /// the kinds of all elements
    pub kinds: BasicKinds,
}

impl Map {
    pub fn nodes(&self) -> &[Node] {
        &self.nodes
    }

    /// Returns the row of a map that has only one.
    pub fn row(&self) -> Option<Row> {
        match self.nodes[..] {
            [Node::Row(row)] => Some(row),
            _ => None,
        }
    }

    /// Appends a row. A block that touches the block before it is merged with that.
    pub fn push(&mut self, row: Row) -> Result<()> {
        self.kinds.join(BasicKinds::of(row.block.basic));
        let last = match self.nodes[self.open..].last_mut() {
            Some(Node::Row(last)) => last,
            _ => return self.append(Node::Row(row)),
        };
        if let Some(joined) = last.followed(row) {
            *last = joined;
            return Ok(());
        }
        let end = last.last();
        let touches = end.basic == row.block.basic && end.next() == i128::from(row.block.offset);
        if !touches {
            return self.append(Node::Row(row));
        }
        match last.before() {
            Some(before) => *last = before,
            None => drop(self.nodes.pop()),
        }
        let count = end.count + row.block.count;
        self.append(Node::Row(Row::of(Block { count, ..end })))?;
        row.behind().map_or(Ok(()), |rest| self.append(Node::Row(rest)))
    }

    /// Appends `copies` copies of another map, the first one moved by `first`, `stride` bytes
    /// apart. All of it has to lie inside of an address space.
    pub fn add(&mut self, inner: &Map, first: i64, copies: u64, stride: i64) -> Result<()> {
        let shifted = |row: Row, by: i64| row.at(row.block.offset.wrapping_add(by));
        if let Some(row) = inner.row() {
            let row = shifted(row, first);
            if row.blocks == 1 {
                return self.push(Row::new(row.block, copies, stride));
            }
            if i128::from(row.blocks) * i128::from(row.stride) == i128::from(stride) {
                return self.push(Row { blocks: row.blocks * copies, ..row });
            }
        }
        let few = copies.saturating_mul(inner.nodes.len().to_u64()) <= FEW;
        if copies > 1 && !few && inner.depth < DEPTH_MAX {
            self.append(Node::Repeat { copies, stride, nodes: inner.nodes.len() })?;
            self.append_all(inner, first)?;
            self.depth = self.depth.max(inner.depth + 1);
            return Ok(());
        }
        for copy in 0..copies {
            let by = first.wrapping_add(copy.cast_signed().wrapping_mul(stride));
            match inner.depth {
                0 => {
                    for node in &inner.nodes {
                        if let Node::Row(row) = node {
                            self.push(shifted(*row, by))?;
                        }
                    }
                }
                _ => self.append_all(inner, by)?,
            }
            self.depth = self.depth.max(inner.depth);
        }
        Ok(())
    }

    /// Appends the nodes of another map as they are, moved by some bytes.
    fn append_all(&mut self, inner: &Map, by: i64) -> Result<()> {
        self.kinds.join(inner.kinds);
        self.reserve(inner.nodes.len())?;
        self.nodes.extend(inner.nodes.iter().map(|node| match *node {
            Node::Row(row) => Node::Row(row.at(row.block.offset.wrapping_add(by))),
            repeat => repeat,
        }));
        self.open = self.nodes.len();
        Ok(())
    }

    fn append(&mut self, node: Node) -> Result<()> {
        self.reserve(1)?;
        self.nodes.push(node);
        self.gather();
        Ok(())
    }

    /// Makes a row of the last blocks, if they are at equal distances.
    fn gather(&mut self) {
        let Some(first) = self.nodes.len().checked_sub(ROW).filter(|first| *first >= self.open)
        else {
            return;
        };
        let single = |node: &Node| match node {
            Node::Row(row) if row.blocks == 1 => Some(row.block),
            _ => None,
        };
        let blocks = &self.nodes[first..];
        let (Some(one), Some(two)) = (single(&blocks[0]), single(&blocks[1])) else { return };
        let Some(stride) = two.offset.checked_sub(one.offset) else { return };
        let equal = |pair: &[Node]| {
            let (Some(one), Some(two)) = (single(&pair[0]), single(&pair[1])) else { return false };
            one.offset.checked_add(stride) == Some(two.offset)
                && (one.basic, one.count) == (two.basic, two.count)
        };
        // From the end: the last blocks show soonest that distances are irregular.
        if blocks.windows(2).rev().all(equal) {
            self.nodes.truncate(first);
            self.nodes.push(Node::Row(Row::new(one, ROW.to_u64(), stride)));
        }
    }

    fn reserve(&mut self, more: usize) -> Result<()> {
        let bytes = ((self.nodes.len() + more) * size_of::<Node>()).to_u64();
        self.nodes.try_reserve(more).map_err(|_| Error::NoMemory { bytes })
    }

    /// Returns the map of its bytes: elements of different kinds that touch are one block, and the
    /// padding of pair types is left out. `None` if all elements are of one kind without padding,
    /// so that they are bytes as they are.
    pub fn bytes(&self) -> Result<Option<Map>> {
        match self.kinds.only() {
            Some(basic) if basic.size() == basic.extent() => Ok(None),
            None if self.nodes.is_empty() => Ok(None),
            _ => of_bytes(&self.nodes).map(Some),
        }
    }
}

/// The bytes of some nodes.
fn of_bytes(mut nodes: &[Node]) -> Result<Map> {
    let mut made = Map::default();
    while let [node, rest @ ..] = nodes {
        nodes = rest;
        match *node {
            // Without a map for the block: an irregular map has very many of these rows.
            Node::Row(row) if row.block.basic.size() == row.block.basic.extent() => {
                let count = row.block.count * row.block.basic.size().to_u64();
                let block = Block { basic: Basic::Byte, count, ..row.block };
                made.push(Row::new(block, row.blocks, row.stride))?;
            }
            Node::Row(row) => {
                let block = bytes_of(row.block)?;
                made.add(&block, 0, row.blocks, row.stride)?;
            }
            Node::Repeat { copies, stride, nodes: length } => {
                let (body, behind) = rest.split_at(length);
                made.add(&of_bytes(body)?, 0, copies, stride)?;
                nodes = behind;
            }
        }
    }
    Ok(made)
}

/// The bytes of a block of elements with padding.
fn bytes_of(block: Block) -> Result<Map> {
    let Block { offset, basic, count } = block;
    let mut element = Map::default();
    for (from, bytes) in members(basic).into_iter().filter(|(_, bytes)| *bytes > 0) {
        let (offset, count) = (offset + from.to_u64().cast_signed(), bytes.to_u64());
        element.push(Row::of(Block { offset, basic: Basic::Byte, count }))?;
    }
    let mut made = Map::default();
    made.add(&element, 0, count, basic.extent().to_u64().cast_signed())?;
    Ok(made)
}
