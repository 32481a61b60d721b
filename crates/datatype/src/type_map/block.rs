//! A run of elements of one kind in a type map, and sets of kinds.

use crate::basic::Basic;
use crate::number::Number;

/// Elements that follow each other at the extent of their kind.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Block {
    /// bytes from the address of the buffer to the first element
    pub offset: i64,
    /// the kind of the elements
    pub basic: Basic,
    /// number of elements, not 0
    pub count: u64,
}

/// A block of one of several items; its offset is from the address of the first item.
pub type Piece = Block;

impl Block {
    /// Returns one past the last byte of data.
    pub fn end(&self) -> i128 {
        let before = (self.count as i128 - 1) * self.basic.extent() as i128;
        let [.., (last, bytes)] = members(self.basic);
        self.offset as i128 + before + last as i128 + bytes as i128
    }

    /// Returns the place of a further element.
    pub fn next(&self) -> i128 {
        self.offset as i128 + self.count as i128 * self.basic.extent() as i128
    }
}

/// Offset and bytes of the data in an element; the first may have no bytes. The index of a pair
/// type with padding is an int, and the padding is not data.
pub const fn members(basic: Basic) -> [(usize, usize); 2] {
    const INDEX_BYTES: usize = 4;
    match basic.second() {
        Some(second) if basic.size() < basic.extent() => {
            [(0, basic.size() - INDEX_BYTES), (second, INDEX_BYTES)]
        }
        _ => [(0, 0), (0, basic.size())],
    }
}

/// A set of kinds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct BasicKinds(u64);

impl BasicKinds {
    /// Returns the set of one kind.
    pub fn of(basic: Basic) -> BasicKinds {
        const { assert!(Basic::ALL.len() <= 64) };
        BasicKinds(1 << basic as u32)
    }

    /// Adds the kinds of another set.
    pub fn join(&mut self, other: BasicKinds) {
        self.0 |= other.0;
    }

    /// Returns the only kind, if there is one.
    pub fn only(self) -> Option<Basic> {
        (self.0.count_ones() == 1).then(|| Basic::ALL[self.0.trailing_zeros().to_usize()])
    }

    /// Returns the kinds.
    pub fn iter(self) -> impl Iterator<Item = Basic> {
        Basic::ALL.iter().copied().filter(move |basic| self.0 >> *basic as u32 & 1 == 1)
    }
}
