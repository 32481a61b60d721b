//! Flattened derived datatype: its basic elements and their offsets (MPI-4.1 §5.1). A [`Layout`] is
//! the type map of one item in its order, neighbours merged; the constructors of the standard
//! combine layouts. `map` stores it compactly, `rows` walks the items of a transfer, `overlay`
//! walks two sides at once. Nothing here knows handles or moves data.
//!
//! The MPI decides the padding after a structure for alignment (§5.1.6): the caller gives lower
//! bound and extent by [`Layout::bounded`].

mod block;
mod dense;
mod list;
mod map;
mod overlay;
mod rows;
mod strip;
mod superpose;
#[cfg(test)]
mod tests;

pub use block::Block;
pub use overlay::{each_portion, each_run, zip_elements};
pub use rows::Pieces;
pub use strip::{Offsets, Portion, Scattered, Strip};

use super::basic::Basic;
use crate::error::{Error, Result};
use crate::messages;
use crate::number::Number;
use block::BasicKinds;
use list::List;
use map::{Map, Row};
use rows::Rows;
use std::sync::{Arc, LazyLock};

/// The type map of a derived datatype and its bounds.
#[derive(Clone, Debug)]
#[cfg_attr(any(test, feature = "test-util"), derive(PartialEq))]
pub struct Layout {
    /// in the order of the type map
    map: Map,
    /// the map of its bytes, if that differs
    bytes: Option<Map>,
    /// the blocks of its bytes one by one
    list: List,
    /// bytes of data
    size: u64,
    /// lb and ub
    bounds: Bounds,
    /// true lb and ub
    reach: Bounds,
    /// whether MPI_Type_create_resized has set lb and ub, which then override those of other
    /// members
    marked: bool,
}

/// A first byte and one past the last.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Bounds {
    lower: i64,
    upper: i64,
}

impl Bounds {
    /// The bounds that cover both, or the only one.
    fn join(one: Option<Bounds>, other: Bounds) -> Option<Bounds> {
        let one = one.unwrap_or(other);
        let (lower, upper) = (one.lower.min(other.lower), one.upper.max(other.upper));
        Some(Bounds { lower, upper })
    }

    /// The bounds of all copies; the outermost ones are at `first` and `last`.
    fn copied(self, first: i128, last: i128) -> Result<Bounds> {
        let lower = narrow(i128::from(self.lower) + first.min(last))?;
        let upper = narrow(i128::from(self.upper) + first.max(last))?;
        Ok(Bounds { lower, upper })
    }
}

impl Layout {
    /// One element.
    pub fn basic(basic: Basic) -> Layout {
        let block = Block { offset: 0, basic, count: 1 };
        let mut made = Combination::default();
        // One element always fits.
        let _ = made.map.push(Row::of(block));
        Layout {
            bytes: made.map.bytes().unwrap_or_default(),
            map: made.map,
            list: List::default(),
            size: basic.size().to_u64(),
            bounds: Bounds { lower: 0, upper: basic.extent().to_u64().cast_signed() },
            reach: Bounds { lower: 0, upper: i64::try_from(block.end()).unwrap_or(i64::MAX) },
            marked: false,
        }
    }

    /// No data at all.
    pub fn empty() -> Layout {
        let none = Bounds::default();
        let map = Map::default();
        let list = List::default();
        Layout { map, bytes: None, list, size: 0, bounds: none, reach: none, marked: false }
    }

    /// MPI_Type_contiguous.
    pub fn contiguous(&self, count: u64) -> Result<Layout> {
        let mut made = Combination::default();
        made.add(self, 0, count, self.extent())?;
        made.finish()
    }

    /// MPI_Type_create_hvector: the stride is in bytes.
    pub fn vector(&self, count: u64, blocklength: u64, stride: i64) -> Result<Layout> {
        let mut made = Combination::default();
        made.add(&self.contiguous(blocklength)?, 0, count, stride)?;
        made.finish()
    }

    /// MPI_Type_create_hindexed, of displacements in bytes with block lengths.
    pub fn indexed(&self, blocks: impl IntoIterator<Item = (i64, u64)>) -> Result<Layout> {
        let mut made = Combination::default();
        for (displacement, blocklength) in blocks {
            made.add(self, displacement, blocklength, self.extent())?;
        }
        made.finish()
    }

    /// MPI_Type_create_struct, of displacements in bytes, block lengths and types.
    pub fn structure<'a>(
        members: impl IntoIterator<Item = (i64, u64, &'a Layout)>,
    ) -> Result<Layout> {
        let mut made = Combination::default();
        for (displacement, blocklength, layout) in members {
            made.add(layout, displacement, blocklength, layout.extent())?;
        }
        made.finish()
    }

    /// MPI_Type_create_resized: the bounds override those of the neighbours in a structure.
    pub fn resized(self, lower: i64, extent: i64) -> Result<Layout> {
        let resized = self.bounded(lower, extent)?;
        Ok(Layout { marked: true, ..resized })
    }

    /// Returns the layout with the bounds that the MPI in use gave it.
    pub fn bounded(self, lower: i64, extent: i64) -> Result<Layout> {
        let upper = narrow(i128::from(lower) + i128::from(extent))?;
        Ok(Layout { bounds: Bounds { lower, upper }, ..self })
    }

    /// The map of its bytes.
    fn bytes(&self) -> &Map {
        self.bytes.as_ref().unwrap_or(&self.map)
    }

    /// Whether the data of `count` items is `bytes` bytes long.
    fn holds(&self, count: u64, bytes: u64) -> bool {
        self.size.checked_mul(count) == Some(bytes)
    }

    /// Returns the map of an element of a predefined type with padding.
    fn padded(basic: Basic) -> &'static Map {
        static MAPS: LazyLock<Vec<Layout>> =
            LazyLock::new(|| Basic::ALL.iter().map(|basic| Layout::basic(*basic)).collect());
        MAPS[basic as usize].bytes()
    }

    /// Bytes of data in one item.
    pub fn size(&self) -> u64 {
        self.size
    }

    /// The lower bound.
    #[cfg(any(test, feature = "test-util"))]
    pub fn lower(&self) -> i64 {
        self.bounds.lower
    }

    /// Bytes from one item to the next; may be negative.
    pub fn extent(&self) -> i64 {
        // Fits: `Combination::finish` and `bounded` have checked it.
        self.bounds.upper - self.bounds.lower
    }

    /// The first byte of data (the true lower bound).
    #[cfg(any(test, feature = "test-util"))]
    pub fn first(&self) -> i64 {
        self.reach.lower
    }

    /// One past the last byte of data (the true upper bound).
    #[cfg(any(test, feature = "test-util"))]
    pub fn end(&self) -> i64 {
        self.reach.upper
    }

    /// Returns the one kind of all its elements, or `None` if there are several or no elements.
    pub fn uniform(&self) -> Option<Basic> {
        self.map.kinds.only()
    }

    /// The first byte of `count` items and one past the last.
    #[inline]
    pub fn reach(&self, count: u64) -> (i128, i128) {
        if count == 0 || self.size == 0 {
            return (0, 0);
        }
        let last = (i128::from(count) - 1) * i128::from(self.extent());
        let (first, end) = (i128::from(self.reach.lower), i128::from(self.reach.upper));
        (first + last.min(0), end + last.max(0))
    }

    /// Returns the pieces of `count` items in the order of the type map. [`Layout::reach`] of
    /// `count` items must lie inside of an address space.
    pub fn pieces(&self, count: u64) -> Pieces<'_> {
        Pieces::of(Rows::of(&self.map, count, self.extent()))
    }
}

/// A datatype as transfers see it. Predefined types need no memory of their own.
#[derive(Clone, Debug)]
#[cfg_attr(any(test, feature = "test-util"), derive(PartialEq))]
pub enum Shape {
    /// a predefined type
    Basic(Basic),
    /// any other; shared, because a type may be freed while it is in use
    Derived(Arc<Layout>),
}

impl Shape {
    /// Bytes of data in one item.
    #[inline]
    pub fn size(&self) -> u64 {
        match self {
            Shape::Basic(basic) => basic.size().to_u64(),
            Shape::Derived(layout) => layout.size(),
        }
    }

    /// Returns the one kind of all elements, or `None` if there are several or no elements.
    #[inline]
    pub fn uniform(&self) -> Option<Basic> {
        match self {
            Shape::Basic(basic) => Some(*basic),
            Shape::Derived(layout) => layout.uniform(),
        }
    }

    /// The kinds of its elements.
    pub fn kinds(&self) -> impl Iterator<Item = Basic> {
        match self {
            Shape::Basic(basic) => BasicKinds::of(*basic).iter(),
            Shape::Derived(layout) => layout.map.kinds.iter(),
        }
    }

    /// The first byte of `count` items and one past the last.
    #[inline]
    pub fn reach(&self, count: u64) -> (i128, i128) {
        match self {
            Shape::Basic(_) if count == 0 => (0, 0),
            Shape::Basic(basic) => (0, Block { offset: 0, basic: *basic, count }.end()),
            Shape::Derived(layout) => layout.reach(count),
        }
    }

    /// The pieces of `count` items in the order of the type map.
    #[inline]
    pub fn pieces(&self, count: u64) -> Pieces<'_> {
        match self {
            Shape::Basic(basic) => Pieces::of_basic(*basic, count),
            Shape::Derived(layout) => layout.pieces(count),
        }
    }
}

/// A layout in the making: copies of others, side by side.
#[derive(Default)]
struct Combination {
    map: Map,
    size: i128,
    /// bounds of the members with data
    plain: Option<Bounds>,
    /// bounds of the members whose bounds the user has set
    marked: Option<Bounds>,
    reach: Option<Bounds>,
}

impl Combination {
    /// Appends `count` copies of `inner`, the first at `displacement`, `stride` bytes apart.
    fn add(&mut self, inner: &Layout, displacement: i64, count: u64, stride: i64) -> Result<()> {
        if count == 0 {
            return Ok(());
        }
        let first = i128::from(displacement);
        let steps = (i128::from(count) - 1).checked_mul(i128::from(stride)).ok_or(too_large())?;
        let last = first.checked_add(steps).ok_or(too_large())?;
        // From here on nothing overflows: the outermost copies fit, and so do those between.
        let bounds = inner.bounds.copied(first, last)?;
        if inner.marked {
            self.marked = Bounds::join(self.marked, bounds);
        }
        if inner.size == 0 {
            return Ok(());
        }
        self.plain = Bounds::join(self.plain, bounds);
        self.reach = Bounds::join(self.reach, inner.reach.copied(first, last)?);
        self.size += i128::from(inner.size) * i128::from(count);
        narrow(self.size)?;
        self.map.add(&inner.map, displacement, count, stride)
    }

    fn finish(self) -> Result<Layout> {
        let bounds = self.marked.or(self.plain).unwrap_or_default();
        narrow(i128::from(bounds.upper) - i128::from(bounds.lower))?;
        Ok(Layout {
            bytes: self.map.bytes()?,
            map: self.map,
            list: List::default(),
            size: u64::try_from(self.size).unwrap_or(u64::MAX),
            bounds,
            reach: self.reach.unwrap_or_default(),
            marked: self.marked.is_some(),
        })
    }
}

/// Offsets, extents and sizes are MPI_Count: 64 bits.
fn narrow(wide: i128) -> Result<i64> {
    i64::try_from(wide).map_err(|_| too_large())
}

fn too_large() -> Error {
    Error::Wrong(&messages::TYPE_TOO_LARGE)
}
