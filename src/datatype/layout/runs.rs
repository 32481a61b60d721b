//! The items of a transfer, walked without memory: pieces of one buffer, and the superposition of
//! two type maps in the largest runs that are contiguous on both sides.

use super::{Block, Layout, Piece, Shape, members};
use crate::datatype::basic::Basic;
use crate::error::{Class, Error, Result};
use core::iter;
use std::sync::Arc;

/// The pieces of some items in the order of the type map.
#[derive(Clone, Debug)]
pub struct Pieces<'a> {
    /// a single piece, where one block is all
    single: Option<Piece>,
    blocks: &'a [Block],
    /// the next block of the item
    block: usize,
    /// where the item begins
    item: i64,
    extent: i64,
    /// this item and those behind it
    items: u64,
}

impl Pieces<'static> {
    /// `count` elements.
    #[inline]
    pub(super) fn of_basic(basic: Basic, count: u64) -> Pieces<'static> {
        let single = (count > 0).then_some(Block { offset: 0, basic, count });
        Pieces { single, blocks: &[], block: 0, item: 0, extent: 0, items: 0 }
    }
}

impl<'a> Pieces<'a> {
    pub(super) fn of_layout(layout: &'a Layout, count: u64) -> Pieces<'a> {
        let (blocks, extent) = (layout.blocks(), layout.extent());
        match *blocks {
            [block] if block.next() - block.offset as i128 == extent as i128 => {
                let all = Block { count: block.count.saturating_mul(count), ..block };
                let single = (count > 0).then_some(all);
                Pieces { single, ..Pieces::of_basic(block.basic, 0) }
            }
            _ => {
                let items = if blocks.is_empty() { 0 } else { count };
                Pieces { single: None, blocks, block: 0, item: 0, extent, items }
            }
        }
    }
}

impl Iterator for Pieces<'_> {
    type Item = Piece;

    #[inline]
    fn next(&mut self) -> Option<Piece> {
        if self.items == 0 {
            return self.single.take();
        }
        let block = self.blocks[self.block];
        // Wraps only behind the last item: all others lie inside of the reach.
        let piece = Block { offset: self.item.wrapping_add(block.offset), ..block };
        self.block += 1;
        if self.block == self.blocks.len() {
            self.block = 0;
            self.items -= 1;
            self.item = self.item.wrapping_add(self.extent);
        }
        Some(piece)
    }
}

/// The bytes of data in some pieces, as runs of offset and length that do not touch the next.
struct Bytes<I> {
    pieces: I,
    /// elements of the current piece that are still to come
    piece: Option<Piece>,
    /// the next member of the current element
    member: usize,
    /// a run that may still grow
    pending: Option<(i64, u64)>,
}

impl<I: Iterator<Item = Piece>> Bytes<I> {
    fn new(pieces: I) -> Bytes<I> {
        Bytes { pieces, piece: None, member: 0, pending: None }
    }

    /// The next run of one piece, or of one member of a pair with padding.
    #[inline]
    fn part(&mut self) -> Option<(i64, u64)> {
        let mut piece = match self.piece.take() {
            Some(piece) => piece,
            None => self.pieces.next()?,
        };
        let (size, extent) = (piece.basic.size() as u64, piece.basic.extent() as i64);
        if size == extent as u64 {
            return Some((piece.offset, piece.count * size));
        }
        let (member, bytes) = members(piece.basic)[self.member];
        let run = (piece.offset + member as i64, bytes as u64);
        self.member ^= 1;
        if self.member == 0 {
            piece.count -= 1;
            piece.offset = piece.offset.wrapping_add(extent);
        }
        self.piece = (piece.count > 0).then_some(piece);
        Some(run)
    }
}

impl<I: Iterator<Item = Piece>> Iterator for Bytes<I> {
    type Item = (i64, u64);

    #[inline]
    fn next(&mut self) -> Option<(i64, u64)> {
        while let Some((offset, bytes)) = self.part() {
            match &mut self.pending {
                Some((start, length)) if start.wrapping_add(*length as i64) == offset => {
                    *length += bytes;
                }
                pending => {
                    if let Some(run) = pending.replace((offset, bytes)) {
                        return Some(run);
                    }
                }
            }
        }
        self.pending.take()
    }
}

/// The superposition of two type maps as streams of bytes: offset at the origin, offset at the
/// target and number of bytes of each run that is contiguous on both sides and cannot grow. Ends
/// with the shorter of the two.
pub fn zip_bytes(
    origin: impl Iterator<Item = Piece>,
    target: impl Iterator<Item = Piece>,
) -> impl Iterator<Item = (i64, i64, u64)> {
    let (mut origin, mut target) = (Bytes::new(origin), Bytes::new(target));
    let (mut from, mut to) = ((0, 0), (0, 0));
    iter::from_fn(move || {
        if from.1 == 0 {
            from = origin.next()?;
        }
        if to.1 == 0 {
            to = target.next()?;
        }
        let bytes = from.1.min(to.1);
        let run = (from.0, to.0, bytes);
        for side in [&mut from, &mut to] {
            *side = (side.0.wrapping_add(bytes as i64), side.1 - bytes);
        }
        Some(run)
    })
}

/// Does `work` on each run of [`zip_bytes`], for `count` items on either side. The commonest shapes
/// take a shorter way: the same type on both sides, and one side without holes.
pub fn each_run(
    (origin, origin_count): (&Shape, u64),
    (target, target_count): (&Shape, u64),
    mut work: impl FnMut(i64, i64, u64),
) {
    let width = |shape: &Shape| {
        let basic = shape.uniform().filter(|basic| basic.size() == basic.extent());
        basic.map(|basic| basic.size() as u64)
    };
    match (origin, target, width(origin), width(target)) {
        (Shape::Derived(one), Shape::Derived(other), Some(width), _)
            if Arc::ptr_eq(one, other) && origin_count == target_count =>
        {
            for piece in one.pieces(origin_count) {
                work(piece.offset, piece.offset, piece.count * width);
            }
        }
        (Shape::Basic(_), Shape::Derived(layout), Some(dense), Some(width)) => {
            let runs =
                beside(origin_count.saturating_mul(dense), layout.pieces(target_count), width);
            runs.for_each(|(here, there, bytes)| work(here, there, bytes));
        }
        (Shape::Derived(layout), Shape::Basic(_), Some(width), Some(dense)) => {
            let runs =
                beside(target_count.saturating_mul(dense), layout.pieces(origin_count), width);
            runs.for_each(|(there, here, bytes)| work(here, there, bytes));
        }
        _ => zip_bytes(origin.pieces(origin_count), target.pieces(target_count))
            .for_each(|(here, there, bytes)| work(here, there, bytes)),
    }
}

/// `bytes` bytes without holes beside pieces of elements of `width` bytes: the offset on the dense
/// side, the offset of the piece, and the bytes of each.
fn beside(bytes: u64, pieces: Pieces<'_>, width: u64) -> impl Iterator<Item = (i64, i64, u64)> {
    let mut done = 0;
    pieces.map_while(move |piece| {
        let run = (done as i64, piece.offset, (piece.count * width).min(bytes - done));
        done += run.2;
        (run.2 > 0).then_some(run)
    })
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
