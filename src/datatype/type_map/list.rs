//! The blocks of a type map one by one, in a plain list, and two such lists laid over each other.
//! For maps whose blocks lie at irregular places; rows of many blocks are quicker as rows.
//!
//! On paper, some twenty instructions a block, of which none stores anything but the data. A loop
//! that keeps its place in memory loads what it has just stored, and if the processor cannot
//! forward such a store, the load waits until all stores before it are done: those to memory that
//! another process has in its cache take up to 100 ns each.

use super::map::{Map, Node, Row};
use super::rows::Rows;
use super::strip::{Strip, in_bytes};
use crate::number::Number;
use core::slice;
use std::sync::OnceLock;

/// The most blocks that are listed where they are fewer as rows.
const BLOCKS_MAX: u64 = 1024;

/// The most blocks for each node of a map that counts as irregular.
const BLOCKS_PER_NODE: u64 = 4;

/// A block of bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct ByteBlock {
    pub offset: i64,
    /// not 0
    pub bytes: u64,
}

impl ByteBlock {
    /// Returns the first block of a row.
    pub fn first(row: Row) -> ByteBlock {
        let block = in_bytes(row).block;
        ByteBlock { offset: block.offset, bytes: block.count }
    }
}

/// The list of a layout, made when it is first needed. It follows from the layout: two lists do not
/// differ, and a copy makes its own.
#[derive(Debug, Default)]
pub(super) struct List(OnceLock<Option<Box<[ByteBlock]>>>);

impl Clone for List {
    fn clone(&self) -> List {
        List::default()
    }
}

impl PartialEq for List {
    fn eq(&self, _: &List) -> bool {
        true
    }
}

impl Eq for List {}

impl List {
    /// Returns the blocks of a map of bytes; `None` if it has too many.
    pub fn of(&self, map: &Map) -> Option<&[ByteBlock]> {
        self.0.get_or_init(|| listed(map)).as_deref()
    }
}

/// Whether the blocks of a map are mostly nodes of their own.
fn is_irregular(map: &Map) -> bool {
    let nodes = map.nodes();
    nodes.len() > 1 && blocks_in(nodes) <= BLOCKS_PER_NODE.saturating_mul(nodes.len().to_u64())
}

/// Makes the list of a map. Blocks that touch are one.
fn listed(map: &Map) -> Option<Box<[ByteBlock]>> {
    let blocks = blocks_in(map.nodes());
    if blocks > BLOCKS_MAX && !is_irregular(map) {
        return None;
    }
    let mut list: Vec<ByteBlock> = Vec::new();
    list.try_reserve_exact(blocks.to_usize()).ok()?;
    for row in Rows::of(map, 1, 0) {
        let mut block = ByteBlock::first(row);
        for _ in 0..row.blocks {
            match list.last_mut() {
                Some(last) if last.offset.wrapping_add_unsigned(last.bytes) == block.offset => {
                    last.bytes += block.bytes;
                }
                _ => list.push(block),
            }
            // Wraps at most behind the last block.
            block.offset = block.offset.wrapping_add(row.stride);
        }
    }
    Some(list.into_boxed_slice())
}

/// Returns the number of blocks of some nodes.
fn blocks_in(mut nodes: &[Node]) -> u64 {
    let mut blocks = 0_u64;
    while let [node, rest @ ..] = nodes {
        nodes = rest;
        blocks = blocks.saturating_add(match *node {
            Node::Row(row) => row.blocks,
            Node::Repeat { copies, nodes: length, .. } => {
                let (body, behind) = rest.split_at(length);
                nodes = behind;
                copies.saturating_mul(blocks_in(body))
            }
        });
    }
    blocks
}

/// Copies of a list of blocks.
#[derive(Clone, Copy)]
pub(super) struct Blocks<'a> {
    list: &'a [ByteBlock],
    copies: u64,
    /// bytes from one copy to the next
    extent: i64,
}

impl<'a> Blocks<'a> {
    /// The blocks of a row, of which the first is `block`.
    pub fn of_row(row: Row, block: &'a ByteBlock) -> Blocks<'a> {
        Blocks::new(slice::from_ref(block), row.blocks, row.stride)
    }

    /// `copies` copies of a list, `extent` bytes apart.
    pub fn new(list: &'a [ByteBlock], copies: u64, extent: i64) -> Blocks<'a> {
        Blocks { list, copies, extent }
    }
}

/// The next block of a side, and those behind it.
struct Cursor<'a> {
    /// the rest of the next block
    offset: i64,
    bytes: u64,
    /// the blocks of this copy that come then
    rest: &'a [ByteBlock],
    /// the bytes by which this copy is moved
    base: i64,
    /// this copy and the others to come
    blocks: Blocks<'a>,
}

impl<'a> Cursor<'a> {
    /// Begins with the first block, if there is one.
    fn of(blocks: Blocks<'a>) -> Option<Cursor<'a>> {
        let (first, rest) = blocks.list.split_first().filter(|_| blocks.copies > 0)?;
        Some(Cursor { offset: first.offset, bytes: first.bytes, rest, base: 0, blocks })
    }

    /// Skips `bytes` bytes of the next block. Returns whether there is more.
    #[inline(always)]
    fn skip(&mut self, bytes: u64) -> bool {
        if self.bytes > bytes {
            self.bytes -= bytes;
            self.offset = self.offset.wrapping_add_unsigned(bytes);
            return true;
        }
        if self.rest.is_empty() {
            self.blocks.copies -= 1;
            if self.blocks.copies == 0 {
                return false;
            }
            // Does not wrap: all copies lie inside of the reach.
            self.base = self.base.wrapping_add(self.blocks.extent);
            self.rest = self.blocks.list;
        }
        let [next, rest @ ..] = self.rest else { return false };
        self.rest = rest;
        self.offset = next.offset.wrapping_add(self.base);
        self.bytes = next.bytes;
        true
    }
}

/// Does `work` on all data of either side, block by block, in the order of the lists. Ends with the
/// shorter of the two.
#[inline]
pub(super) fn merge(origin: Blocks<'_>, target: Blocks<'_>, mut work: impl FnMut(Strip)) {
    let (Some(mut one), Some(mut two)) = (Cursor::of(origin), Cursor::of(target)) else { return };
    loop {
        let bytes = one.bytes.min(two.bytes);
        let (here, there) = (one.offset, two.offset);
        work(Strip { here, there, bytes, blocks: 1, here_stride: 0, there_stride: 0 });
        if !one.skip(bytes) || !two.skip(bytes) {
            return;
        }
    }
}
