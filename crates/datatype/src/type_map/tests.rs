//! Layouts by hand, after the examples of MPI-4.1 §5.1, and random ones against a type map that is
//! expanded entry by entry as the standard defines it.

use super::block::{Piece, members};
use super::*;
use crate::error::Class;

impl Layout {
    /// The blocks of one item.
    fn blocks(&self) -> Vec<Block> {
        self.pieces(1).collect()
    }
}

/// Returns the runs of both sides, in the order of the type maps. The shorter ways of
/// [`each_portion`] must give the same runs in any order.
fn zip_bytes(origin: (&Shape, u64), target: (&Shape, u64)) -> Vec<(i64, i64, u64)> {
    let mut runs = Vec::new();
    each_run(origin, target, |here, there, bytes| runs.push((here, there, bytes)));
    let mut any_order = pairs_of_bytes(&runs);
    let mut others = Vec::new();
    each_portion(origin, target, |portion| {
        let (here, there, bytes, blocks) = match portion {
            Portion::Strip(strip) => {
                let every = |first, stride| Offsets::Every { first, stride };
                let here = every(strip.here, strip.here_stride);
                (here, every(strip.there, strip.there_stride), strip.bytes, strip.blocks)
            }
            Portion::Scattered(part) => (part.here, part.there, part.bytes, part.blocks),
        };
        for n in 0..blocks as usize {
            others.push((place(here, n), place(there, n), bytes));
        }
    });
    let mut others = pairs_of_bytes(&others);
    any_order.sort();
    others.sort();
    assert_eq!(others, any_order, "{origin:?} {target:?}");
    runs
}

/// Returns the place of a block. Its alignment is that of all places at least.
fn place(places: Offsets, n: usize) -> i64 {
    match places {
        Offsets::Every { first, stride } => first + n as i64 * stride,
        Offsets::Listed { places, base, bits } => {
            assert!(places[n] as u64 & bits == places[n] as u64);
            places[n] + base
        }
    }
}

/// Returns the places of each byte at the origin and at the target.
fn pairs_of_bytes(runs: &[(i64, i64, u64)]) -> Vec<(i64, i64)> {
    let bytes = |(from, to, bytes): &(i64, i64, u64)| -> Vec<(i64, i64)> {
        (0..*bytes as i64).map(|n| (from + n, to + n)).collect()
    };
    runs.iter().flat_map(bytes).collect()
}

fn block(offset: i64, basic: Basic, count: u64) -> Block {
    Block { offset, basic, count }
}

/// {(double, 0), (char, 8)} with extent 16, the type of most examples.
fn double_char() -> Layout {
    let (double, char) = (Layout::basic(Basic::F64), Layout::basic(Basic::Char));
    let members = [(0, 1, &double), (8, 1, &char)];
    Layout::structure(members).unwrap().bounded(0, 16).unwrap()
}

#[test]
fn contiguous_repeats_at_the_extent() {
    let made = double_char().contiguous(3).unwrap();
    let expected = [0, 16, 32].map(|at| [block(at, Basic::F64, 1), block(at + 8, Basic::Char, 1)]);
    assert_eq!(made.blocks(), expected.as_flattened());
    assert_eq!((made.lower(), made.extent(), made.size()), (0, 48, 27));
    assert_eq!((made.first(), made.end()), (0, 41));
}

#[test]
fn a_vector_has_blocks_at_its_stride() {
    let made = double_char().vector(2, 3, 4 * 16).unwrap();
    let offsets: Vec<_> = made.blocks().into_iter().map(|block| block.offset).collect();
    assert_eq!(offsets, [0, 8, 16, 24, 32, 40, 64, 72, 80, 88, 96, 104]);
    assert_eq!(made.extent(), 112);
    let made = double_char().vector(3, 1, -2 * 16).unwrap();
    let offsets: Vec<_> = made.blocks().into_iter().map(|block| block.offset).collect();
    assert_eq!(offsets, [0, 8, -32, -24, -64, -56]);
    assert_eq!((made.lower(), made.extent(), made.first(), made.end()), (-64, 80, -64, 9));
}

#[test]
fn indexed_keeps_the_order_of_its_blocks() {
    let made = double_char().indexed([(4 * 16, 3), (0, 1)]).unwrap();
    let offsets: Vec<_> = made.blocks().into_iter().map(|block| block.offset).collect();
    assert_eq!(offsets, [64, 72, 80, 88, 96, 104, 0, 8]);
    assert_eq!((made.lower(), made.extent()), (0, 112));
}

#[test]
fn a_structure_has_members_of_several_types() {
    let (float, char, inner) =
        (Layout::basic(Basic::F32), Layout::basic(Basic::Char), double_char());
    let made = Layout::structure([(0, 2, &float), (16, 1, &inner), (26, 3, &char)]).unwrap();
    let expected = [
        block(0, Basic::F32, 2),
        block(16, Basic::F64, 1),
        block(24, Basic::Char, 1),
        block(26, Basic::Char, 3),
    ];
    assert_eq!(made.blocks(), expected);
    assert_eq!((made.size(), made.end()), (20, 29));
}

#[test]
fn bounds_that_were_set_outdo_others() {
    let int = Layout::basic(Basic::I32);
    let resized = int.clone().resized(-3, 9).unwrap();
    let two = resized.contiguous(2).unwrap();
    assert_eq!(two.blocks(), [block(0, Basic::I32, 1), block(9, Basic::I32, 1)]);
    assert_eq!((two.lower(), two.extent()), (-3, 18));
    let pair = Layout::structure([(0, 1, &resized), (100, 1, &int)]).unwrap();
    assert_eq!((pair.lower(), pair.extent(), pair.end()), (-3, 9, 104));
    let empty = Layout::empty().resized(-8, 64).unwrap();
    let marked = Layout::structure([(0, 1, &empty), (100, 1, &int)]).unwrap();
    assert_eq!((marked.lower(), marked.extent(), marked.first()), (-8, 64, 100));
}

#[test]
fn nothing_comes_of_zero_counts() {
    let int = Layout::basic(Basic::I32);
    assert_eq!(int.contiguous(0).unwrap(), Layout::empty());
    assert_eq!(int.vector(5, 0, 100).unwrap(), Layout::empty());
    let made = int.indexed([(1000, 0), (8, 1), (-1000, 0)]).unwrap();
    assert_eq!((made.lower(), made.extent(), made.first(), made.end()), (8, 4, 8, 12));
    assert_eq!(made.pieces(0).count(), 0);
    assert_eq!(Layout::empty().pieces(u64::MAX).count(), 0);
    assert_eq!(Layout::empty().reach(7), (0, 0));
    assert_eq!(Shape::Basic(Basic::I32).reach(0), (0, 0));
}

#[test]
fn dense_items_are_one_piece() {
    let made = Layout::basic(Basic::F64).contiguous(1 << 40).unwrap();
    assert_eq!(made.blocks(), [block(0, Basic::F64, 1 << 40)]);
    let pieces: Vec<_> = made.pieces(1 << 10).collect();
    assert_eq!(pieces, [block(0, Basic::F64, 1 << 50)]);
    let strided = made.resized(0, (1 << 43) + 8).unwrap();
    assert_eq!(strided.pieces(3).count(), 3);
    assert_eq!(strided.reach(3), (0, 3 * (1 << 43) + 16));
}

#[test]
fn a_negative_extent_goes_backwards() {
    let made = Layout::basic(Basic::I16).resized(0, -6).unwrap();
    let offsets: Vec<_> = made.pieces(3).map(|piece| piece.offset).collect();
    assert_eq!(offsets, [0, -6, -12]);
    assert_eq!(made.reach(3), (-12, 2));
}

#[test]
fn what_does_not_fit_64_bits_is_an_error() {
    let double = Layout::basic(Basic::F64);
    let class = |made: Result<Layout>| made.unwrap_err().class();
    assert_eq!(class(double.contiguous(1 << 61)), Class::Type);
    assert_eq!(class(double.contiguous(u64::MAX)), Class::Type);
    assert_eq!(class(double.vector(2, 1, i64::MIN)), Class::Type);
    assert_eq!(class(double.indexed([(i64::MAX - 3, 1)])), Class::Type);
    assert_eq!(class(double.indexed([(i64::MIN, 1), (8, 1)])), Class::Type);
    assert_eq!(class(double.clone().resized(i64::MAX, 1)), Class::Type);
    assert!(double.vector(2, 1, i64::MIN + 16).is_ok());
}

#[test]
fn the_padding_of_pairs_is_left_out() {
    let zip = |basic, count| -> Vec<_> {
        let shape = Shape::Basic(basic);
        zip_bytes((&shape, count), (&shape, count))
    };
    assert_eq!(zip(Basic::DoubleInt, 2), [(0, 0, 12), (16, 16, 12)]);
    assert_eq!(zip(Basic::LongInt, 1), [(0, 0, 12)]);
    assert_eq!(zip(Basic::ShortInt, 2), [(0, 0, 2), (4, 4, 6), (12, 12, 4)]);
    assert_eq!(zip(Basic::LongDoubleInt, 2), [(0, 0, 20), (32, 32, 20)]);
    assert_eq!(zip(Basic::TwoInt, 3), [(0, 0, 24)]);
    assert_eq!(Shape::Basic(Basic::DoubleInt).reach(2), (0, 28));
}

#[test]
fn runs_are_as_long_as_both_sides_allow() {
    let ints = Layout::basic(Basic::I32);
    let strided = Shape::Derived(ints.vector(3, 2, 16).unwrap().into());
    let dense = Shape::Basic(Basic::I32);
    let runs = zip_bytes((&dense, 6), (&strided, 1));
    assert_eq!(runs, [(0, 0, 8), (8, 16, 8), (16, 32, 8)]);
    let runs: Vec<_> = zip_elements(strided.pieces(1), dense.pieces(5)).collect();
    let int = Basic::I32;
    assert_eq!(runs, [Ok((0, 0, int, 2)), Ok((16, 8, int, 2)), Ok((32, 16, int, 1))]);
}

#[test]
fn elements_of_different_kinds_do_not_go_together() {
    let (ints, floats) = (Shape::Basic(Basic::I32), Shape::Basic(Basic::F32));
    let runs: Vec<_> = zip_elements(ints.pieces(2), floats.pieces(2)).collect();
    assert_eq!(runs.len(), 1);
    assert_eq!(runs[0].clone().unwrap_err().class(), Class::Type);
}

#[test]
fn a_layout_knows_whether_it_has_one_kind() {
    assert_eq!(double_char().uniform(), None);
    assert_eq!(Layout::empty().uniform(), None);
    let made = Layout::basic(Basic::F32).vector(3, 1, 12).unwrap();
    assert_eq!(Shape::Derived(made.into()).uniform(), Some(Basic::F32));
}

/// Returns the number of nodes that hold a type map.
fn nodes(layout: &Layout) -> usize {
    layout.map.nodes().len().max(layout.bytes().nodes().len())
}

#[test]
#[cfg_attr(miri, ignore = "too many elements")]
fn regular_types_need_a_few_nodes() {
    const MANY: u64 = 1 << 20;
    let double = Layout::basic(Basic::F64);
    let vector = double.vector(MANY, 2, 64).unwrap();
    assert_eq!((nodes(&vector), vector.pieces(1).count() as u64), (1, MANY));
    let indexed = double.indexed((0..1000).map(|n| (n * 24, 1))).unwrap();
    assert_eq!((nodes(&indexed), indexed.pieces(1).count()), (1, 1000));
    // A plane, and a plane of planes: three levels of strides.
    let plane = vector.clone().resized(0, 1 << 30).unwrap().vector(MANY, 1, 1 << 30).unwrap();
    assert_eq!((nodes(&plane), plane.size()), (2, MANY * MANY * 16));
    let planes = plane.clone().resized(0, 1 << 51).unwrap().contiguous(1 << 10).unwrap();
    assert_eq!((nodes(&planes), planes.end()), (3, (1 << 61) - (1 << 51) + plane.end()));
    let structures = double_char().contiguous(MANY).unwrap();
    assert_eq!((nodes(&structures), structures.pieces(1).count() as u64), (3, 2 * MANY));
    let pairs = Layout::basic(Basic::ShortInt).vector(MANY, 3, 100).unwrap();
    assert!(nodes(&pairs) < 16, "{pairs:?}");
}

#[test]
fn repetitions_inside_of_each_other_have_a_bound() {
    let mut layout = double_char();
    let mut expected = 2;
    for level in 0..12 {
        let stride = 32 << (2 * level);
        layout = layout.resized(0, 16).unwrap().vector(3, 1, stride).unwrap();
        expected *= 3;
        if level > 4 {
            layout = layout.vector(1, 1, 0).unwrap();
        }
    }
    assert_eq!(layout.pieces(1).count(), expected);
    assert_eq!(layout.size(), expected as u64 / 2 * 9);
    assert!(nodes(&layout) < expected / 2, "{}", nodes(&layout));
}

/// A type map as in §5.1: entries of data, and markers of lb and ub.
#[derive(Clone, Default)]
struct TypeMap {
    data: Vec<(i64, Basic)>,
    markers: Vec<(i64, i64)>,
}

impl TypeMap {
    fn bounds(&self) -> (i64, i64) {
        let data = self.data.iter().map(|(at, basic)| (*at, at + basic.extent() as i64));
        let entries: Vec<_> = match self.markers.is_empty() {
            true => data.collect(),
            false => self.markers.clone(),
        };
        let lower = entries.iter().map(|entry| entry.0).min().unwrap_or(0);
        (lower, entries.iter().map(|entry| entry.1).max().unwrap_or(0))
    }

    fn extent(&self) -> i64 {
        self.bounds().1 - self.bounds().0
    }

    fn copy(&mut self, inner: &TypeMap, at: i64) {
        self.data.extend(inner.data.iter().map(|(offset, basic)| (offset + at, *basic)));
        self.markers.extend(inner.markers.iter().map(|(lower, upper)| (lower + at, upper + at)));
    }

    fn copies(&mut self, inner: &TypeMap, at: i64, count: u64) {
        for copy in 0..count as i64 {
            self.copy(inner, at + copy * inner.extent());
        }
    }
}

/// A generator of datatypes from a seed.
struct Random(fompi_testkit::Random);

impl Random {
    fn below(&mut self, limit: u64) -> u64 {
        self.0.below(limit)
    }

    fn between(&mut self, low: i64, high: i64) -> i64 {
        low + self.below((high - low) as u64) as i64
    }

    /// Usually a small number; now and then one for which a map repeats nodes instead of writing
    /// them out.
    fn several(&mut self) -> u64 {
        let limit = if self.below(5) == 0 { 30 } else { 4 };
        self.below(limit)
    }

    fn datatype(&mut self, depth: u32) -> (Layout, TypeMap) {
        const KINDS: [Basic; 5] =
            [Basic::I32, Basic::F32, Basic::Char, Basic::DoubleInt, Basic::ShortInt];
        if depth == 0 {
            let basic = KINDS[self.below(KINDS.len() as u64) as usize];
            return (Layout::basic(basic), TypeMap { data: vec![(0, basic)], markers: vec![] });
        }
        let (layout, inner) = self.datatype(depth - 1);
        let mut map = TypeMap::default();
        let made = match self.below(5) {
            0 => {
                let count = self.several();
                map.copies(&inner, 0, count);
                layout.contiguous(count)
            }
            1 => {
                let (count, blocklength) = (self.several(), self.below(3));
                let stride = self.between(-40, 60);
                (0..count as i64).for_each(|row| map.copies(&inner, row * stride, blocklength));
                layout.vector(count, blocklength, stride)
            }
            2 => {
                let blocks: Vec<_> =
                    (0..self.below(4)).map(|_| (self.between(-100, 100), self.below(3))).collect();
                blocks.iter().for_each(|(at, length)| map.copies(&inner, *at, *length));
                layout.indexed(blocks)
            }
            3 => {
                let (other, second) = self.datatype(depth - 1);
                let (at, length) = (self.between(-64, 64), self.below(3));
                map.copies(&inner, 0, 1);
                map.copies(&second, at, length);
                Layout::structure([(0, 1, &layout), (at, length, &other)])
            }
            _ => {
                let (lower, extent) = (self.between(-20, 20), self.between(-30, 60));
                map = TypeMap { markers: vec![(lower, lower + extent)], ..inner };
                layout.resized(lower, extent)
            }
        };
        (made.unwrap(), map)
    }
}

/// The data of an expanded type map, byte by byte.
fn bytes(data: &[(i64, Basic)]) -> Vec<i64> {
    let element = |(at, basic): &(i64, Basic)| -> Vec<i64> {
        let members = members(*basic).map(|(from, bytes)| from as i64..(from + bytes) as i64);
        members.into_iter().flatten().map(|byte| at + byte).collect()
    };
    data.iter().flat_map(element).collect()
}

#[test]
fn random_types_agree_with_their_type_map() {
    for seed in 0..if cfg!(miri) { 3 } else { 2000 } {
        let (layout, map) = Random(fompi_testkit::Random(seed)).datatype(1 + seed as u32 % 4);
        let bounds = (layout.lower(), layout.lower() + layout.extent());
        assert_eq!(bounds, map.bounds(), "seed {seed}");
        let count = seed % 4;
        let mut items = TypeMap::default();
        items.copies(&map, 0, count);
        let element = |piece: Piece| {
            let extent = piece.basic.extent() as i64;
            (0..piece.count as i64).map(move |n| (piece.offset + n * extent, piece.basic))
        };
        let elements: Vec<_> = layout.pieces(count).flat_map(element).collect();
        assert_eq!(elements, items.data, "seed {seed}");
        let touched = bytes(&items.data);
        assert_eq!(layout.size() * count, touched.len() as u64, "seed {seed}");
        let first = touched.iter().min().map_or(0, |at| *at as i128);
        let end = touched.iter().max().map_or(0, |at| *at as i128 + 1);
        assert_eq!(layout.reach(count), (first, end), "seed {seed}");
    }
}

#[test]
fn random_superpositions_agree_byte_by_byte() {
    for seed in 0..if cfg!(miri) { 3 } else { 2000 } {
        let mut random = Random(fompi_testkit::Random(seed));
        let (origin, from) = random.datatype(3);
        let (target, to) = random.datatype(2);
        let (mut origins, mut targets) = (TypeMap::default(), TypeMap::default());
        origins.copies(&from, 0, 2);
        targets.copies(&to, 0, 3);
        let expected: Vec<_> = bytes(&origins.data).into_iter().zip(bytes(&targets.data)).collect();
        let [origin, target] = [origin, target].map(|layout| Shape::Derived(layout.into()));
        let runs = zip_bytes((&origin, 2), (&target, 3));
        let found = pairs_of_bytes(&runs);
        assert_eq!(found, expected, "seed {seed}");
        // One side without holes, and the same type on both sides.
        let (items, bytes) = (1 + seed % 2 * 5, Shape::Basic(Basic::Byte));
        if origin.size() < 2000 {
            zip_bytes((&bytes, origin.size() * items), (&origin, items));
            zip_bytes((&origin, items), (&bytes, origin.size() * items));
            zip_bytes((&origin, items), (&origin, items));
        }
        for pair in runs.windows(2) {
            let bytes = pair[0].2 as i64;
            let grown = (pair[0].0 + bytes, pair[0].1 + bytes);
            assert_ne!(grown, (pair[1].0, pair[1].1), "seed {seed}");
        }
    }
}
