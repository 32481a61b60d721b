//! A type map with data without holes beside it, or with itself: a row is a strip, and of a few
//! blocks that are repeated each is one.

use super::map::Node;
use super::overlay::{Strip, in_bytes};
use super::{Block, Layout};

/// Up to so many nodes, copies of them are done node by node.
const FEW_NODES: usize = 8;

/// So many copies at once: they should not leave the cache between one node and the next.
const COPIES_AT_ONCE: u64 = 256;

/// What lies beside a type map: one of the three below, known when the loops are compiled.
#[derive(Clone, Copy)]
pub(super) struct Beside<const WHAT: u8>;

/// Data without holes, at the origin.
pub(super) const ORIGIN: u8 = 0;
/// Data without holes, at the target.
pub(super) const TARGET: u8 = 1;
/// The same type map.
pub(super) const ITSELF: u8 = 2;

impl<const WHAT: u8> Beside<WHAT> {
    /// All data of some items; what lies beside them begins at `dense`.
    pub fn items(self, layout: &Layout, items: u64, dense: i64, work: &mut impl FnMut(Strip)) {
        let map = layout.bytes();
        let size = layout.size() as i64;
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

    /// Some nodes, moved by `base`; returns the bytes of their data.
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
                    let row = in_bytes(row);
                    let step = row.block.count as i64;
                    work(self.strip(row.block, row.blocks, (row.stride, step), at));
                    row.blocks as i64 * step
                }
                Node::Repeat { copies, stride, nodes: length } => {
                    let (body, behind) = rest.split_at(length);
                    nodes = behind;
                    let bytes = bytes_in(body);
                    self.repeat(body, (copies, stride, bytes), at, work);
                    copies as i64 * bytes
                }
            };
        }
        done
    }

    /// Copies of some nodes, each so many bytes behind the one before and with so many bytes of
    /// data. If all of them are single blocks, block by block, each of all copies at once.
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
            // Wraps nowhere: all copies lie inside of the reach.
            let (base, mut dense) = (
                base.wrapping_add((first as i64).wrapping_mul(stride)),
                dense.wrapping_add((first as i64).wrapping_mul(bytes)),
            );
            first += some;
            if !by_block {
                self.nodes(body, (base, dense), work);
                continue;
            }
            for node in body {
                let Node::Row(row) = *node else { continue };
                let block = in_bytes(row).block;
                work(self.strip(block, some, (stride, bytes), (base, dense)));
                dense = dense.wrapping_add(block.count as i64);
            }
        }
    }

    /// Blocks at a stride, which are at another one beside the map.
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

/// Bytes of data in some nodes.
fn bytes_in(mut nodes: &[Node]) -> i64 {
    let mut bytes = 0;
    while let [node, rest @ ..] = nodes {
        nodes = rest;
        bytes += match *node {
            Node::Row(row) => (row.blocks * in_bytes(row).block.count) as i64,
            Node::Repeat { copies, nodes: length, .. } => {
                let (body, behind) = rest.split_at(length);
                nodes = behind;
                copies as i64 * bytes_in(body)
            }
        };
    }
    bytes
}
