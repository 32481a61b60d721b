//! Rows: equal blocks of memory at equal distances, as numbers of a request. A request over rows
//! names memory that is not contiguous; its data are those of all blocks, one after the other.
//!
//! A number has 7 bits in each byte, the lowest ones first; the high bit says that more follow. A
//! signed one has its sign in the lowest bit. The first number is four times the bytes of a block,
//! plus:
//!
//! | plus | then                                                                           |
//! |------|--------------------------------------------------------------------------------|
//! | 0    | the distance of the block                                                      |
//! | 1    | that of the first block, the number of blocks, and signed from one to the next |
//! | 2    | the number of blocks, and the distance of each                                 |
//!
//! A distance is signed, from the end of the block before, at first from the address of the
//! request.

use crate::number::Number;

/// The most bytes of the rows of a request, and of the data of all its blocks.
pub const ROWS_BYTES_MAX: usize = 8 << 10;
/// See [`ROWS_BYTES_MAX`].
pub const DATA_BYTES_MAX: usize = 8 << 10;
/// The most bytes of one row of a request: blocks of [`DATA_BYTES_MAX`] bytes take 3, as many
/// blocks 2, and distances 10 each.
pub const ROW_BYTES_MAX: usize = 25;
/// The most bytes of any number.
pub const NUMBER_BYTES_MAX: usize = 10;

/// What follows the first number of a row.
const BLOCK: u64 = 0;
const EVERY: u64 = 1;
const LISTED: u64 = 2;

/// Equal blocks at equal distances.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Row {
    /// address of the first block
    pub at: u64,
    /// bytes of each block
    pub bytes: u64,
    /// number of blocks
    pub blocks: u64,
    /// bytes from one block to the next; 0 if there is one block
    pub stride: i64,
}

impl Row {
    /// Returns blocks as a row: those without gaps are one block.
    #[inline]
    pub fn of(at: u64, bytes: u64, blocks: u64, stride: i64) -> Row {
        match blocks == 1 || stride == bytes.cast_signed() {
            true => Row { at, bytes: bytes * blocks, blocks: 1, stride: 0 },
            false => Row { at, bytes, blocks, stride },
        }
    }

    /// The address of block `n`.
    #[inline]
    pub fn place(&self, n: u64) -> u64 {
        self.at.wrapping_add_signed(n.cast_signed().wrapping_mul(self.stride))
    }

    /// The end of the last block.
    #[inline]
    pub fn end(&self) -> u64 {
        self.place(self.blocks.wrapping_sub(1)).wrapping_add(self.bytes)
    }

    /// The first byte of all blocks and the bytes from there to the last; `None` if they are not in
    /// one address space.
    pub fn span(&self) -> Option<(u64, u64)> {
        let steps = i128::from(self.blocks) - 1;
        let (at, last) =
            (i128::from(self.at), i128::from(self.at) + steps * i128::from(self.stride));
        let first = u64::try_from(at.min(last)).ok()?;
        let bytes = u64::try_from(at.max(last) - at.min(last)).ok()?.checked_add(self.bytes)?;
        first.checked_add(bytes - 1).map(|_| (first, bytes))
    }

    /// Appends a block to this row if both are one row. Returns whether they are.
    #[inline]
    pub fn absorb(&mut self, next: &Row) -> bool {
        let (is_single, is_equal) = (self.blocks == 1, next.bytes == self.bytes);
        if next.blocks > 1 {
            return false;
        }
        if is_single && next.at == self.end() {
            self.bytes += next.bytes;
            return true;
        }
        let follows = is_equal && (is_single || next.at == self.place(self.blocks));
        if follows && is_single {
            self.stride = next.at.wrapping_sub(self.at).cast_signed();
        }
        self.blocks += u64::from(follows);
        follows
    }
}

/// Rows as bytes, in the making.
#[derive(Default)]
pub struct RowWriter {
    bytes: Vec<u8>,
    /// the address of the request, and the end of the last row
    first: u64,
    end: u64,
}

impl RowWriter {
    /// Appends a row.
    #[inline]
    pub fn push(&mut self, row: &Row) {
        let several = row.blocks > 1;
        self.begin(row.at);
        self.number(row.bytes << 2 | if several { EVERY } else { BLOCK });
        self.distance(row.at);
        if several {
            self.number(row.blocks);
            self.number(folded(row.stride));
        }
        self.end = row.end();
    }

    /// Appends blocks of `bytes` bytes at places that are counted from `zero`.
    pub fn push_blocks(&mut self, places: &[i64], zero: u64, bytes: u64) {
        let Some(first) = places.first() else { return };
        self.begin(zero.wrapping_add_signed(*first));
        self.number(bytes << 2 | LISTED);
        self.number(places.len().to_u64());
        for place in places {
            let at = zero.wrapping_add_signed(*place);
            self.distance(at);
            self.end = at.wrapping_add(bytes);
        }
    }

    fn begin(&mut self, at: u64) {
        if self.bytes.is_empty() {
            (self.first, self.end) = (at, at);
        }
    }

    #[inline]
    fn distance(&mut self, at: u64) {
        self.number(folded(at.wrapping_sub(self.end).cast_signed()));
    }

    #[inline]
    fn number(&mut self, mut value: u64) {
        self.bytes.reserve(NUMBER_BYTES_MAX);
        let mut end = self.bytes.len();
        // SAFETY: there is room for the longest number.
        unsafe {
            let to = self.bytes.as_mut_ptr();
            while value >= 0x80 {
                to.add(end).write(value.low_u8() | 0x80);
                (value, end) = (value >> 7, end + 1);
            }
            to.add(end).write(value.low_u8());
            self.bytes.set_len(end + 1);
        }
    }

    /// The address of the first block.
    pub fn first(&self) -> u64 {
        self.first
    }

    /// The bytes so far.
    pub fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// Forgets all rows.
    pub fn clear(&mut self) {
        self.bytes.clear();
    }
}

/// The blocks of a row, or some of a list.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RowBlocks<'p> {
    /// at equal distances
    Row(Row),
    /// of this number of bytes each, at these addresses
    Listed(u64, &'p [u64]),
}

impl RowBlocks<'_> {
    /// Number of blocks.
    pub fn count(&self) -> u64 {
        match self {
            RowBlocks::Row(row) => row.blocks,
            RowBlocks::Listed(_, places) => places.len().to_u64(),
        }
    }

    /// Bytes of each block.
    pub fn bytes(&self) -> u64 {
        match self {
            RowBlocks::Row(row) => row.bytes,
            RowBlocks::Listed(bytes, _) => *bytes,
        }
    }

    /// The address of block `n`.
    pub fn place(&self, n: u64) -> u64 {
        match self {
            RowBlocks::Row(row) => row.place(n),
            RowBlocks::Listed(_, places) => places[n.to_usize()],
        }
    }

    /// The first byte of all blocks and the bytes from there to the last; `None` if they are not in
    /// one address space.
    pub fn span(&self) -> Option<(u64, u64)> {
        match self {
            RowBlocks::Row(row) => row.span(),
            RowBlocks::Listed(bytes, places) => {
                let bounds = |(low, high): (u64, u64), at: &u64| (low.min(*at), high.max(*at));
                let (first, last) = places.iter().fold((u64::MAX, 0), bounds);
                let bytes = (last - first).checked_add(*bytes)?;
                first.checked_add(bytes - 1).map(|_| (first, bytes))
            }
        }
    }
}

/// Places of a list that are read at once.
pub const LISTED_MAX: usize = 128;

/// Rows from bytes of another process.
pub struct RowReader<'a> {
    bytes: &'a [u8],
    /// the end of the last block
    end: u64,
    /// blocks of a list that are still to come, and the bytes of each
    listed: u64,
    block_bytes: u64,
}

impl<'a> RowReader<'a> {
    /// Begins with the rows of a request for memory at `at`.
    pub fn new(bytes: &'a [u8], at: u64) -> RowReader<'a> {
        RowReader { bytes, end: at, listed: 0, block_bytes: 0 }
    }

    /// Whether there are no other blocks.
    pub fn is_empty(&self) -> bool {
        self.bytes.is_empty() && self.listed == 0
    }

    /// Returns the next blocks, at least one; `None` if the bytes are no row.
    pub fn read<'p>(&mut self, places: &'p mut [u64; LISTED_MAX]) -> Option<RowBlocks<'p>> {
        if self.listed == 0 {
            let head = self.number()?;
            self.block_bytes = head >> 2;
            match head & 3 {
                BLOCK => return self.read_row(false),
                EVERY => return self.read_row(true),
                LISTED => self.listed = self.number()?,
                _ => return None,
            }
        }
        let (bytes, count) = (self.block_bytes, self.listed.min(LISTED_MAX.to_u64()));
        let places = &mut places[..count.to_usize()];
        for place in &mut *places {
            *place = self.distance()?;
            self.end = place.wrapping_add(bytes);
        }
        self.listed -= count;
        (bytes > 0 && count > 0).then_some(RowBlocks::Listed(bytes, places))
    }

    fn read_row(&mut self, several: bool) -> Option<RowBlocks<'static>> {
        let (at, bytes) = (self.distance()?, self.block_bytes);
        let (blocks, stride) = match several {
            true => (self.number()?, unfolded(self.number()?)),
            false => (1, 0),
        };
        let row = Row { at, bytes, blocks, stride };
        self.end = row.end();
        (bytes > 0 && blocks > 0).then_some(RowBlocks::Row(row))
    }

    #[inline]
    fn distance(&mut self) -> Option<u64> {
        let distance = unfolded(self.number()?);
        Some(self.end.wrapping_add_signed(distance))
    }

    #[inline]
    fn number(&mut self) -> Option<u64> {
        let mut value = 0;
        for shift in (0..u64::BITS).step_by(7) {
            let (byte, rest) = self.bytes.split_first()?;
            self.bytes = rest;
            let part = u64::from(byte & 0x7f);
            value |= part << shift;
            if byte & 0x80 == 0 {
                return (value >> shift == part).then_some(value);
            }
        }
        None
    }
}

/// A signed number as one without a sign: the sign is the lowest bit.
#[inline]
fn folded(value: i64) -> u64 {
    (value << 1 ^ value >> 63).cast_unsigned()
}

#[inline]
fn unfolded(value: u64) -> i64 {
    (value >> 1).cast_signed() ^ -(value & 1).cast_signed()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(at: u64, bytes: u64, blocks: u64, stride: i64) -> Row {
        Row { at, bytes, blocks, stride }
    }

    fn read(reader: &mut RowReader<'_>) -> Option<Row> {
        match reader.read(&mut [0; LISTED_MAX])? {
            RowBlocks::Row(row) => Some(row),
            RowBlocks::Listed(bytes, places) => Some(row(places[0], bytes, places.len() as u64, 0)),
        }
    }

    #[test]
    fn rows_arrive_as_they_were_sent() {
        let rows = [
            row(1000, 8, 1, 0),
            row(0, 1, 5, 2),
            row(u64::MAX - 8, 8, 1, 0),
            row(1 << 40, 8192, 1, 0),
            row(1 << 20, 3, 2, -7),
            row(1 << 63, 1, 8192, i64::MIN),
            row(5, 64, 3, i64::MAX),
        ];
        let mut writer = RowWriter::default();
        for row in &rows {
            let before = writer.bytes().len();
            writer.push(row);
            let bytes = writer.bytes().len() - before;
            assert!(bytes <= ROW_BYTES_MAX);
        }
        assert_eq!(writer.first(), 1000);
        let mut reader = RowReader::new(writer.bytes(), 1000);
        for row in rows {
            assert!(!reader.is_empty());
            assert_eq!(read(&mut reader), Some(row));
        }
        assert!(reader.is_empty());
        assert_eq!(read(&mut reader), None);
        writer.clear();
        writer.push(&row(77, 1, 1, 0));
        assert_eq!((writer.first(), writer.bytes()), (77, &[4, 0][..]));
    }

    #[test]
    fn a_list_arrives_in_parts() {
        let mut places = vec![5, 900, -70, 100_000, 100_003, i64::MIN];
        places.extend((0..LISTED_MAX as i64).map(|n| n * n));
        let mut writer = RowWriter::default();
        writer.push_blocks(&[], 1000, 7);
        assert!(writer.bytes().is_empty());
        writer.push_blocks(&places, 1000, 3);
        writer.push(&row(9, 4, 2, 8));
        let wanted: Vec<u64> = places.iter().map(|at| 1000u64.wrapping_add_signed(*at)).collect();
        let (mut reader, mut part) = (RowReader::new(writer.bytes(), wanted[0]), [0; LISTED_MAX]);
        assert_eq!(writer.first(), wanted[0]);
        for wanted in wanted.chunks(LISTED_MAX) {
            assert_eq!(reader.read(&mut part), Some(RowBlocks::Listed(3, wanted)));
        }
        assert_eq!(reader.read(&mut part), Some(RowBlocks::Row(row(9, 4, 2, 8))));
        assert!(reader.is_empty());
        let whole = writer.bytes().len() - 6;
        let mut cut = RowReader::new(&writer.bytes()[..whole - 1], 0);
        assert!(cut.read(&mut part).is_some() && !cut.is_empty());
        assert_eq!(cut.read(&mut part), None, "a place is missing");
    }

    #[test]
    fn bytes_that_are_no_row_are_none() {
        let read = |bytes: &[u8]| read(&mut RowReader::new(bytes, 9));
        assert_eq!(read(&[4, 2]), Some(row(10, 1, 1, 0)));
        assert_eq!(read(&[4, 1]), Some(row(8, 1, 1, 0)));
        assert_eq!(read(&[5, 0, 2, 4]), Some(row(9, 1, 2, 2)));
        assert_eq!(read(&[6, 1, 2]), Some(row(10, 1, 1, 0)));
        let none: [&[u8]; 9] = [
            &[],
            &[4],
            &[0x84],
            &[0, 0],
            &[5, 0, 0, 0],
            &[5, 0, 1],
            &[4, 0x80],
            &[6, 0, 0],
            &[7, 1, 0],
        ];
        for bytes in none {
            assert_eq!(read(bytes), None, "{bytes:?}");
        }
        let mut long = [0xff; 11];
        long[0] = 0xfc;
        assert_eq!(read(&long), None, "a number of more than ten bytes");
        long[9..].copy_from_slice(&[1, 0]);
        assert_eq!(read(&long), Some(row(9, u64::MAX >> 2, 1, 0)));
        long[9] = 2;
        assert_eq!(read(&long), None, "a number of more than 64 bits");
    }

    #[test]
    fn a_span_has_all_blocks_or_is_none() {
        assert_eq!(row(100, 8, 1, 0).span(), Some((100, 8)));
        assert_eq!(row(100, 8, 3, 16).span(), Some((100, 40)));
        assert_eq!(row(100, 8, 3, -16).span(), Some((68, 40)));
        assert_eq!(row(0, 1, 2, -1).span(), None);
        assert_eq!(row(u64::MAX - 7, 8, 1, 0).span(), Some((u64::MAX - 7, 8)));
        assert_eq!(row(u64::MAX - 6, 8, 1, 0).span(), None);
        assert_eq!(row(1 << 63, 8, 3, i64::MAX).span(), None);
        assert_eq!(row(0, u64::MAX, 2, 1).span(), None);
        assert_eq!(row(5, 1, u64::MAX, i64::MAX).span(), None);
    }

    #[test]
    fn blocks_join_a_row_where_they_continue_it() {
        let mut all = row(0, 8, 1, 0);
        assert!(all.absorb(&row(8, 4, 1, 0)));
        assert_eq!(all, row(0, 12, 1, 0));
        assert!(!all.absorb(&row(16, 8, 1, 0)), "of another length");
        assert!(all.absorb(&row(24, 12, 1, 0)));
        assert_eq!(all, row(0, 12, 2, 24));
        assert!(!all.absorb(&row(36, 12, 1, 0)), "another distance");
        assert!(!all.absorb(&row(48, 12, 2, 24)), "several blocks");
        assert!(!all.absorb(&row(48, 11, 1, 0)));
        assert!(all.absorb(&row(48, 12, 1, 0)));
        assert_eq!((all, all.end(), all.place(2)), (row(0, 12, 3, 24), 60, 48));
        assert_eq!(Row::of(4, 8, 3, 8), row(4, 24, 1, 0));
        assert_eq!(Row::of(4, 8, 1, 99), row(4, 8, 1, 0));
        assert_eq!(Row::of(4, 8, 2, 9), row(4, 8, 2, 9));
    }
}
