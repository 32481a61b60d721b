//! Superposition of a type map with dense data (without holes), or with itself. Each row gives a
//! strip; where a few blocks are repeated, each of these blocks gives a strip.

use super::map::{Node, total};
use super::strip::Strip;
use super::{Block, Layout};

/// The most nodes whose copies are processed node by node.
pub(super) const FEW_NODES: usize = 8;

/// The copies that are processed together, so that they stay in the cache from one node to the
/// next.
const COPIES_AT_ONCE: u64 = 256;

/// The data on the other side of a type map: one of the three below, known when the loops are
/// compiled.
#[derive(Clone, Copy)]
pub(super) struct OtherSide<const WHAT: u8>;

/// Data without holes, at the origin.
pub(super) const ORIGIN: u8 = 0;
/// Data without holes, at the target.
pub(super) const TARGET: u8 = 1;
/// Data that the same type map describes.
pub(super) const ITSELF: u8 = 2;

impl<const WHAT: u8> OtherSide<WHAT> {
    /// Walks all data of some items; the data of the other side begins at `dense`.
    pub fn items(self, layout: &Layout, items: u64, dense: i64, work: &mut impl FnMut(Strip)) {
        let map = layout.bytes();
        let size = layout.size().cast_signed();
        match map.nodes() {
            nodes if items > 1 && nodes.len() <= FEW_NODES => {
                self.repeat(nodes, (items, layout.extent(), size), (0, dense), work)
            }
            nodes => {
                let (mut base, mut dense) = (0_i64, dense);
                for _ in 0..items {
                    self.nodes(nodes, (base, dense), work);
                    base = base.wrapping_add(layout.extent());
                    dense = dense.wrapping_add(size);
                }
            }
        }
    }

    /// Walks some nodes, moved by `base`. Returns the bytes of their data.
    fn nodes(
        self,
        mut nodes: &[Node],
        (base, dense): (i64, i64),
        work: &mut impl FnMut(Strip),
    ) -> i64 {
        let mut done = 0;
        while let [node, rest @ ..] = nodes {
            let at = (base, dense.wrapping_add(done));
            nodes = rest;
            done += match *node {
                Node::Row(row) => {
                    let row = row.in_bytes();
                    let step = row.block.count.cast_signed();
                    work(self.strip(row.block, row.blocks, (row.stride, step), at));
                    row.blocks.cast_signed() * step
                }
                Node::Repeat { copies, stride, nodes: length } => {
                    let (body, behind) = rest.split_at(length);
                    nodes = behind;
                    let bytes =
                        total(body, &|row| row.blocks * row.in_bytes().block.count).cast_signed();
                    self.repeat(body, (copies, stride, bytes), at, work);
                    copies.cast_signed() * bytes
                }
            };
        }
        done
    }

    /// Walks copies of some nodes, each `stride` bytes after the one before and with `bytes` bytes
    /// of data. If all of them are single blocks, goes block by block, each block of all copies at
    /// once.
    fn repeat(
        self,
        body: &[Node],
        (copies, stride, bytes): (u64, i64, i64),
        (base, dense): (i64, i64),
        work: &mut impl FnMut(Strip),
    ) {
        let single = |node: &Node| matches!(node, Node::Row(row) if row.blocks == 1);
        let by_block = copies >= 4 && body.len() <= FEW_NODES && body.iter().all(single);
        let at_once = if by_block { copies.min(COPIES_AT_ONCE) } else { 1 };
        let mut first = 0;
        while first < copies {
            let some = at_once.min(copies - first);
            // Does not wrap: all copies lie inside of the reach.
            let (base, mut dense) = (
                base.wrapping_add(first.cast_signed().wrapping_mul(stride)),
                dense.wrapping_add(first.cast_signed().wrapping_mul(bytes)),
            );
            first += some;
            if !by_block {
                self.nodes(body, (base, dense), work);
                continue;
            }
            for node in body {
                let Node::Row(row) = *node else { continue };
                let block = row.in_bytes().block;
                work(self.strip(block, some, (stride, bytes), (base, dense)));
                dense = dense.wrapping_add(block.count.cast_signed());
            }
        }
    }

    /// Returns the strip of blocks at one stride in the map, and at another one on the other side.
    #[inline]
    fn strip(
        self,
        block: Block,
        blocks: u64,
        (stride, other): (i64, i64),
        (base, dense): (i64, i64),
    ) -> Strip {
        let (at, bytes) = (block.offset.wrapping_add(base), block.count);
        let strip = |here, there, here_stride, there_stride| Strip {
            here,
            there,
            bytes,
            blocks,
            here_stride,
            there_stride,
        };
        match WHAT {
            ORIGIN => strip(dense, at, other, stride),
            TARGET => strip(at, dense, stride, other),
            _ => strip(at, at, stride, stride),
        }
    }
}
