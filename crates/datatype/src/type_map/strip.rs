//! Equal blocks at equal distances on both sides of a transfer. Not for the ways to find them,
//! which are in `overlay`, `dense`, `list` and `superpose`.

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

/// Equal blocks of bytes at equal distances.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ByteRow {
    /// offset of the first block
    pub first: i64,
    /// bytes of each block
    pub bytes: u64,
    /// number of blocks; 0 if there is no row
    pub blocks: u64,
    /// bytes from one block to the next; 0 if there is one block
    pub stride: i64,
}

impl ByteRow {
    /// No block.
    pub const NONE: ByteRow = ByteRow { first: 0, bytes: 0, blocks: 0, stride: 0 };

    /// Returns a row of one block.
    pub fn single(first: i64, bytes: u64) -> ByteRow {
        ByteRow { first, bytes, blocks: 1, stride: 0 }
    }

    /// Returns its last block.
    #[inline(always)]
    pub fn last(self) -> ByteRow {
        // Does not wrap: all blocks lie inside of the reach of a layout.
        let steps = (self.blocks.cast_signed() - 1).wrapping_mul(self.stride);
        ByteRow::single(self.first.wrapping_add(steps), self.bytes)
    }

    /// Returns one past its last byte; wraps at most to the end of the address space.
    #[inline(always)]
    pub fn end(self) -> i64 {
        self.last().first.wrapping_add(self.bytes.cast_signed())
    }

    /// Returns all blocks but the first `some`, which are fewer than all.
    #[inline(always)]
    pub fn behind(self, some: u64) -> ByteRow {
        let first = self.first.wrapping_add(some.cast_signed().wrapping_mul(self.stride));
        ByteRow { first, ..self }.shortened(some)
    }

    /// Returns all blocks but the last `some`; `NONE` if there are no others.
    #[inline(always)]
    pub fn shortened(self, some: u64) -> ByteRow {
        match self.blocks - some {
            0 => ByteRow::NONE,
            1 => ByteRow { blocks: 1, stride: 0, ..self },
            blocks => ByteRow { blocks, ..self },
        }
    }
}

impl Strip {
    /// Returns one block.
    #[inline(always)]
    pub fn single(here: i64, there: i64, bytes: u64) -> Strip {
        Strip { here, there, bytes, blocks: 1, here_stride: 0, there_stride: 0 }
    }

    /// Returns all data of two rows, if that is one strip, as in the commonest transfers.
    #[inline(always)]
    pub fn whole(one: ByteRow, two: ByteRow) -> Option<Strip> {
        let strip = |bytes, blocks, here_stride, there_stride| {
            let (here, there) = (one.first, two.first);
            Some(Strip { here, there, bytes, blocks, here_stride, there_stride })
        };
        if one.bytes == two.bytes && one.blocks == two.blocks {
            return strip(one.bytes, one.blocks, one.stride, two.stride);
        }
        if one.blocks == 1 && two.blocks.checked_mul(two.bytes) == Some(one.bytes) {
            return strip(two.bytes, two.blocks, two.bytes.cast_signed(), two.stride);
        }
        if two.blocks == 1 && one.blocks.checked_mul(one.bytes) == Some(two.bytes) {
            return strip(one.bytes, one.blocks, one.stride, one.bytes.cast_signed());
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
        /// bitwise OR of all places: its lowest set bit is their common alignment
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
            // Wraps at most after the last block.
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

#[cfg(test)]
mod tests {
    use super::*;

    const TWO: ByteRow = ByteRow { first: 4, bytes: 8, blocks: 2, stride: 24 };

    #[test]
    fn rows_of_as_many_bytes_are_a_strip_if_their_blocks_fit() {
        let dense = |bytes| ByteRow { first: 0, bytes, blocks: 1, stride: 0 };
        let strip = Strip::whole(dense(16), TWO).unwrap();
        assert_eq!((strip.bytes, strip.blocks, strip.here_stride), (8, 2, 8));
        assert_eq!((strip.there, strip.there_stride), (4, 24));
        assert_eq!(Strip::whole(TWO, dense(16)).map(|strip| strip.there_stride), Some(8));
        assert_eq!(Strip::whole(TWO, dense(17)), None);
        assert_eq!(Strip::whole(TWO, ByteRow { bytes: 4, blocks: 4, ..TWO }), None);
    }
}
