//! Equal blocks at equal distances on both sides of a transfer. Not for the ways to find them,
//! which are in `overlay`, `beside`, `list` and `superpose`.

use super::block::Block;
use super::map::Row;
use crate::datatype::basic::Basic;
use crate::number::Number;

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
    /// Returns one block.
    pub(super) fn single(here: i64, there: i64, bytes: u64) -> Strip {
        Strip { here, there, bytes, blocks: 1, here_stride: 0, there_stride: 0 }
    }

    /// Returns all data of two rows, if that is one strip, as in the commonest transfers.
    #[inline]
    pub(super) fn whole(one: Row, two: Row) -> Option<Strip> {
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

/// The places of blocks on one side.
#[derive(Clone, Copy, Debug)]
pub enum Offsets<'a> {
    /// at equal distances
    Every {
        /// offset of the first
        first: i64,
        /// bytes from one to the next
        stride: i64,
    },
    /// as they are listed
    Listed {
        /// offset of each, before all are moved
        places: &'a [i64],
        /// the bytes by which all are moved
        base: i64,
        /// bits of which the lowest is the alignment of all places
        bits: u64,
    },
}

impl Offsets<'_> {
    /// Returns the first.
    #[inline(always)]
    pub fn first(&self) -> i64 {
        match *self {
            Offsets::Every { first, .. } => first,
            Offsets::Listed { places, base, .. } => places[0].wrapping_add(base),
        }
    }

    /// Skips some, or all.
    #[inline(always)]
    pub fn skip(&mut self, blocks: u64) {
        match self {
            // Wraps at most behind the last block.
            Offsets::Every { first, stride } => {
                *first = first.wrapping_add(blocks.cast_signed().wrapping_mul(*stride));
            }
            Offsets::Listed { places, .. } => *places = &places[blocks.to_usize()..],
        }
    }
}

/// Blocks that are contiguous on both sides, at places that are listed on one side or both.
#[derive(Clone, Copy, Debug)]
pub struct Scattered<'a> {
    /// at the origin
    pub here: Offsets<'a>,
    /// at the target
    pub there: Offsets<'a>,
    /// bytes of each block
    pub bytes: u64,
    /// number of blocks, not 0
    pub blocks: u64,
}

/// A portion of a transfer.
#[derive(Clone, Copy, Debug)]
pub enum Portion<'a> {
    /// at equal distances on both sides
    Strip(Strip),
    /// at listed places
    Scattered(Scattered<'a>),
}

/// Returns a row of elements without padding as a row of bytes.
#[inline]
pub(super) fn in_bytes(row: Row) -> Row {
    let Block { offset, basic, count } = row.block;
    let count = count * basic.size().to_u64();
    Row { block: Block { offset, basic: Basic::Byte, count }, ..row }
}
