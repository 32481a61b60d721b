//! Made-up datatypes, decoded and compared with a plain model: the list of all elements of a type,
//! one by one, by the definitions of the standard (MPI-4.1 §5.1). A table stands for the MPI, in
//! the numbers of the MPICH ABI.

use std::cell::Cell;

use super::array::ArrayNumbers;
use super::decode::{self, Arguments, Combiner, Contents, Envelope};
use crate::datatype::basic::Basic;
use crate::datatype::type_map::{Shape, each_run};
use crate::error::Result;
use crate::mpi::handle::{Abi, Handle};
use fompi_testkit::Choices;

/// The first handle of derived types. Those below are predefined.
const DERIVED: Handle = 1000;
/// Elements and levels of a type that is compared with the model.
const ELEMENTS_MAX: usize = 4096;
const TYPES_MAX: usize = 24;

const ORDER_C: i64 = 56;
const ORDER_FORTRAN: i64 = 57;
const BLOCK: i64 = 121;
const CYCLIC: i64 = 122;
const NONE: i64 = 123;
const DEFAULT: i64 = -49767;

/// A type as a list of its elements.
#[derive(Clone)]
struct Plain {
    elements: Vec<(i64, Basic)>,
    lower: i64,
    extent: i64,
}

impl Plain {
    fn basic(basic: Basic) -> Plain {
        Plain { elements: vec![(0, basic)], lower: 0, extent: basic.extent() as i64 }
    }

    /// Copies of types at displacements in bytes. `None` if they are too many.
    fn of(members: &[(i64, &Plain)]) -> Option<Plain> {
        let count: usize = members.iter().map(|(_, plain)| plain.elements.len()).sum();
        if count > ELEMENTS_MAX || members.len() > ELEMENTS_MAX {
            return None;
        }
        let elements = members.iter().flat_map(|(by, plain)| {
            plain.elements.iter().map(move |(at, basic)| (at + by, *basic))
        });
        let lower = members.iter().map(|(by, plain)| by + plain.lower).min().unwrap_or(0);
        let upper = members.iter().map(|(by, plain)| by + plain.lower + plain.extent).max();
        let extent = upper.unwrap_or(0) - lower;
        Some(Plain { elements: elements.collect(), lower, extent })
    }

    /// Returns a type that has this one several times: for each block, a number of copies one
    /// extent apart, from an offset on.
    fn blocks(&self, blocks: &[(i64, i64)]) -> Option<Plain> {
        let copies = |(at, count): &(i64, i64)| {
            let at = *at;
            (0..*count).map(move |n| (at + n * self.extent, self))
        };
        Plain::of(&blocks.iter().flat_map(copies).collect::<Vec<_>>())
    }

    /// The offsets of all bytes of data of `count` items, in their order.
    fn bytes(&self, count: i64) -> Vec<i64> {
        let of_element = |at: i64, basic: Basic| {
            let (size, extent) = (basic.size() as i64, basic.extent() as i64);
            // Padding lies between the two parts of a pair; its second part is an int.
            let gap = if size < extent { basic.second().map(|second| second as i64) } else { None };
            (0..size).map(move |byte| match gap {
                Some(second) if byte >= size - 4 => at + second + byte - (size - 4),
                _ => at + byte,
            })
        };
        let items = (0..count).flat_map(|item| {
            self.elements.iter().map(move |(at, basic)| (at + item * self.extent, *basic))
        });
        items.flat_map(|(at, basic)| of_element(at, basic)).collect()
    }

    fn size(&self) -> i64 {
        self.elements.iter().map(|(_, basic)| basic.size() as i64).sum()
    }
}

/// A type in the table.
struct Made {
    combiner: Combiner,
    numbers: Vec<i64>,
    large: bool,
    types: Vec<Handle>,
    bounds: (i64, i64),
    /// the model; none if the numbers are too large for it
    plain: Option<Plain>,
    references: Cell<i32>,
}

#[derive(Default)]
struct Table(Vec<Made>);

impl Table {
    fn get(&self, datatype: Handle) -> &Made {
        &self.0[datatype - DERIVED]
    }

    fn plain(&self, datatype: Handle) -> Option<Plain> {
        match self.predefined(datatype) {
            Some(basic) => Some(Plain::basic(basic)),
            None => self.get(datatype).plain.clone(),
        }
    }

    /// An old type: a predefined one, or one that was made before.
    fn old(&self, choices: &mut Choices) -> Handle {
        let number = choices.below(256);
        match self.0.len() {
            made if made > 0 && number >= 128 => DERIVED + made - 1 - (number - 128) % made,
            _ => number % Basic::ALL.len(),
        }
    }

    fn shape(&self, datatype: Handle) -> Result<Shape> {
        let shape = decode::shape(self, datatype);
        assert!(self.0.iter().all(|made| made.references.get() == 0), "all types are released");
        shape
    }
}

impl Contents for Table {
    fn predefined(&self, datatype: Handle) -> Option<Basic> {
        Basic::ALL.get(datatype).copied()
    }

    fn envelope(&self, datatype: Handle) -> Result<Envelope> {
        let made = self.get(datatype);
        let (count, types) = (made.numbers.len(), made.types.len());
        let [integers, counts] = if made.large { [0, count] } else { [count, 0] };
        Ok(Envelope { combiner: made.combiner, integers, addresses: 0, counts, types })
    }

    fn contents(&self, datatype: Handle, _: &Envelope) -> Result<Arguments> {
        let made = self.get(datatype);
        for inner in made.types.iter().filter(|inner| **inner >= DERIVED) {
            let inner = self.get(*inner);
            // Types of MPI_Type_get_value_index are never freed.
            let is_given = inner.combiner != Combiner::ValueIndex;
            inner.references.set(inner.references.get() + i32::from(is_given));
        }
        Ok(Arguments { numbers: made.numbers.clone(), types: made.types.clone() })
    }

    fn bounds(&self, datatype: Handle) -> Result<(i64, i64)> {
        Ok(self.get(datatype).bounds)
    }

    fn size(&self, datatype: Handle) -> Result<i64> {
        Ok(self.get(datatype).plain.as_ref().map_or(0, Plain::size))
    }

    fn release(&self, datatype: Handle) {
        let references = &self.get(datatype).references;
        references.set(references.get() - 1);
    }

    fn arrays(&self) -> &'static ArrayNumbers {
        ArrayNumbers::of(Abi::Mpich)
    }
}

/// A small number, which may be negative.
fn small(choices: &mut Choices) -> i64 {
    i64::from(choices.byte().cast_signed() >> 2)
}

/// A number of copies or elements.
fn count(choices: &mut Choices) -> i64 {
    choices.below(9) as i64
}

/// The constructor and its numbers, and the model of the type that it makes.
type Call = (Combiner, Vec<i64>, Option<Plain>);

/// One of the constructors that have one old type, but those of arrays.
fn simple(kind: usize, old: &Plain, choices: &mut Choices) -> Call {
    let lists = |choices: &mut Choices| -> Vec<(i64, i64)> {
        (0..choices.below(7)).map(|_| (small(choices), count(choices))).collect()
    };
    let unit = |scaled: bool| if scaled { old.extent } else { 1 };
    let placed = |list: &[(i64, i64)], unit: i64| -> Vec<(i64, i64)> {
        list.iter().map(|(at, count)| (at * unit, *count)).collect()
    };
    let scaled = kind.is_multiple_of(2);
    match kind {
        0 | 1 => {
            let (count, length, stride) = (count(choices), count(choices), small(choices));
            let all: Vec<_> = (0..count).map(|n| (n * stride * unit(scaled), length)).collect();
            let combiner = if scaled { Combiner::Vector } else { Combiner::Hvector };
            (combiner, vec![count, length, stride], old.blocks(&all))
        }
        2 | 3 => {
            let list = lists(choices);
            let (places, lengths): (Vec<i64>, Vec<i64>) = list.iter().copied().unzip();
            let numbers = [vec![list.len() as i64], lengths, places].concat();
            let combiner = if scaled { Combiner::Indexed } else { Combiner::Hindexed };
            (combiner, numbers, old.blocks(&placed(&list, unit(scaled))))
        }
        4 | 5 => {
            let length = count(choices);
            let list: Vec<_> = lists(choices).into_iter().map(|(at, _)| (at, length)).collect();
            let places: Vec<i64> = list.iter().map(|(at, _)| *at).collect();
            let numbers = [vec![list.len() as i64, length], places].concat();
            let combiner = if scaled { Combiner::IndexedBlock } else { Combiner::HindexedBlock };
            (combiner, numbers, old.blocks(&placed(&list, unit(scaled))))
        }
        6 => {
            let (lower, extent) = (small(choices), small(choices));
            (Combiner::Resized, vec![lower, extent], Some(Plain { lower, extent, ..old.clone() }))
        }
        7 => (Combiner::Dup, Vec::new(), Some(old.clone())),
        _ => {
            let count = count(choices);
            (Combiner::Contiguous, vec![count], old.blocks(&[(0, count)]))
        }
    }
}

/// Dimensions of an array, from the one whose elements are neighbours outwards.
fn inmost_first(order: i64, dimensions: usize) -> Vec<usize> {
    let all = 0..dimensions;
    if order == ORDER_C { all.rev().collect() } else { all.collect() }
}

/// A part of an array: the elements whose index in each dimension is `inside`.
fn part_of(
    old: &Plain,
    (sizes, order): (&[i64], i64),
    inside: impl Fn(usize, i64) -> bool,
) -> Option<Plain> {
    let total: i64 = sizes.iter().product();
    let is_part = |element: &i64| {
        let mut rest = *element;
        inmost_first(order, sizes.len()).into_iter().all(|dimension| {
            let index = rest % sizes[dimension];
            rest /= sizes[dimension];
            inside(dimension, index)
        })
    };
    let parts: Vec<_> = (0..total).filter(is_part).map(|at| (at * old.extent, 1)).collect();
    let array = old.blocks(&parts)?;
    Some(Plain { lower: 0, extent: total * old.extent, ..array })
}

fn subarray(old: &Plain, large: bool, choices: &mut Choices) -> Call {
    let dimensions = 1 + choices.below(3);
    let order = [ORDER_C, ORDER_FORTRAN][choices.below(2)];
    let (mut sizes, mut subsizes, mut starts) = (Vec::new(), Vec::new(), Vec::new());
    for _ in 0..dimensions {
        let size = 1 + choices.below(6);
        let start = choices.below(size);
        sizes.push(size as i64);
        starts.push(start as i64);
        subsizes.push(1 + choices.below(size - start) as i64);
    }
    let plain = part_of(old, (&sizes, order), |dimension, index| {
        (starts[dimension]..starts[dimension] + subsizes[dimension]).contains(&index)
    });
    let [early, late] = if large { [vec![order], vec![]] } else { [vec![], vec![order]] };
    let numbers = [vec![dimensions as i64], early, sizes, subsizes, starts, late].concat();
    (Combiner::Subarray, numbers, plain)
}

fn darray(old: &Plain, large: bool, choices: &mut Choices) -> Call {
    let dimensions = 1 + choices.below(2);
    let order = [ORDER_C, ORDER_FORTRAN][choices.below(2)];
    let [mut sizes, mut kinds, mut arguments, mut grid, mut widths] = [const { Vec::new() }; 5];
    for _ in 0..dimensions {
        let (size, kind) = (1 + choices.below(9) as i64, [BLOCK, CYCLIC, NONE][choices.below(3)]);
        let processes = if kind == NONE { 1 } else { 1 + choices.below(3) as i64 };
        let least = if kind == BLOCK { (size + processes - 1) / processes } else { 1 };
        let argument = if kind == NONE || choices.below(2) == 0 {
            DEFAULT
        } else {
            least + choices.below(3) as i64
        };
        sizes.push(size);
        kinds.push(kind);
        arguments.push(argument);
        grid.push(processes);
        widths.push(match (kind, argument) {
            (NONE, _) => size,
            (_, DEFAULT) => least,
            _ => argument,
        });
    }
    let processes: i64 = grid.iter().product();
    let rank = choices.below(processes as usize) as i64;
    let mut place = vec![0; dimensions];
    let mut rest = rank;
    for dimension in (0..dimensions).rev() {
        (place[dimension], rest) = (rest % grid[dimension], rest / grid[dimension]);
    }
    let plain = part_of(old, (&sizes, order), |dimension, index| {
        index / widths[dimension] % grid[dimension] == place[dimension]
    });
    let [early, late] = if large { [vec![], sizes] } else { [sizes, vec![]] };
    let first = vec![processes, rank, dimensions as i64];
    let numbers = [first, early, kinds, arguments, grid, vec![order], late].concat();
    (Combiner::Darray, numbers, plain)
}

/// Adds a type, as the next bytes say. Returns false if there is none.
fn add(table: &mut Table, choices: &mut Choices) -> bool {
    let (kind, large) = (choices.below(13), choices.below(2) == 1);
    if kind == 12 {
        return add_wild(table, choices);
    }
    if kind == 11 {
        let members: Vec<(Handle, i64, i64)> = (0..choices.below(5))
            .map(|_| (table.old(choices), 2 * small(choices), count(choices)))
            .collect();
        let plains: Option<Vec<_>> = members
            .iter()
            .map(|(old, at, count)| Plain::blocks(&table.plain(*old)?, &[(*at, *count)]))
            .collect();
        let Some(plains) = plains else { return false };
        let plain = Plain::of(&plains.iter().map(|plain| (0, plain)).collect::<Vec<_>>());
        let mut numbers = vec![members.len() as i64];
        numbers.extend(members.iter().map(|(_, _, count)| *count));
        numbers.extend(members.iter().map(|(_, at, _)| *at));
        let types = members.iter().map(|(old, ..)| *old).collect();
        return push(table, (Combiner::Struct, numbers, plain), large, types);
    }
    let old = table.old(choices);
    let Some(plain) = table.plain(old) else { return false };
    let call = match kind {
        9 => subarray(&plain, large, choices),
        10 => darray(&plain, large, choices),
        _ => simple(kind, &plain, choices),
    };
    push(table, call, large, vec![old])
}

fn push(table: &mut Table, call: Call, large: bool, types: Vec<Handle>) -> bool {
    let (combiner, numbers, plain) = call;
    let Some(plain) = plain else { return false };
    let (bounds, references) = ((plain.lower, plain.extent), Cell::new(0));
    table.0.push(Made { combiner, numbers, large, types, bounds, plain: Some(plain), references });
    true
}

/// Adds a type of any numbers, including those that no MPI has. The decoder must accept or refuse
/// it.
fn add_wild(table: &mut Table, choices: &mut Choices) -> bool {
    let combiners = [
        Combiner::Vector,
        Combiner::Hvector,
        Combiner::Indexed,
        Combiner::Hindexed,
        Combiner::IndexedBlock,
        Combiner::Resized,
        Combiner::Contiguous,
        Combiner::Struct,
        Combiner::Subarray,
        Combiner::ValueIndex,
    ];
    let combiner = combiners[choices.below(combiners.len())];
    let types = (0..choices.below(4)).map(|_| table.old(choices)).collect();
    let number = |choices: &mut Choices| match choices.below(3) {
        0 => choices.word().cast_signed(),
        1 => i64::from(choices.byte().cast_signed()) << choices.below(57),
        _ => count(choices),
    };
    let numbers = (0..choices.below(12)).map(|_| number(choices)).collect();
    let bounds = (number(choices), number(choices));
    let references = Cell::new(0);
    let large = choices.below(2) == 1;
    table.0.push(Made { combiner, numbers, large, types, bounds, plain: None, references });
    true
}

/// Compares the type map of a type with its model.
fn compare(plain: &Plain, shape: &Shape) {
    assert_eq!(shape.size(), plain.size() as u64);
    for count in [1, 3] {
        let mut found = Vec::new();
        for piece in shape.pieces(count) {
            let step = piece.basic.extent() as i64;
            found.extend((0..piece.count as i64).map(|n| (piece.offset + n * step, piece.basic)));
        }
        let items = (0..count as i64).flat_map(|item| {
            plain.elements.iter().map(move |(at, basic)| (at + item * plain.extent, *basic))
        });
        let wanted: Vec<_> = items.collect();
        assert!(found == wanted, "{count} items");
        let bytes = plain.bytes(count as i64);
        let (first, end) = shape.reach(count);
        assert!(bytes.iter().all(|at| (first..end).contains(&i128::from(*at))), "the reach");
        let mut runs = Vec::new();
        let total = bytes.len() as u64;
        let other = (&Shape::Basic(Basic::Byte), total);
        each_run((shape, count), other, |here, there, bytes| {
            runs.extend((0..bytes as i64).map(|n| (there + n, here + n)));
        });
        runs.sort_unstable();
        let wanted: Vec<_> = (0..).zip(bytes).collect();
        assert!(runs == wanted, "the bytes of {count} items");
    }
}

/// Compares two types laid over each other with their models.
fn compare_both(one: (&Plain, &Shape), other: (&Plain, &Shape)) {
    let sizes = [one.0.size(), other.0.size()];
    if sizes.contains(&0) || sizes[0] * sizes[1] > ELEMENTS_MAX as i64 {
        return;
    }
    let (counts, mut runs) = ([sizes[1], sizes[0]], Vec::new());
    let sides = ((one.1, counts[0] as u64), (other.1, counts[1] as u64));
    each_run(sides.0, sides.1, |here, there, bytes| {
        runs.extend((0..bytes as i64).map(|n| (here + n, there + n)));
    });
    let mut wanted: Vec<_> =
        one.0.bytes(counts[0]).into_iter().zip(other.0.bytes(counts[1])).collect();
    runs.sort_unstable();
    wanted.sort_unstable();
    assert!(runs == wanted, "two types laid over each other");
}

/// The target `datatypes`: constructors one after the other, each with its numbers.
pub fn datatypes(data: &[u8]) {
    let (mut choices, mut table) = (Choices::of(data), Table::default());
    let mut before: Option<(Plain, Shape)> = None;
    while !choices.are_used_up() && table.0.len() < TYPES_MAX && add(&mut table, &mut choices) {
        let made = DERIVED + table.0.len() - 1;
        let shape = table.shape(made);
        let Some(plain) = table.plain(made) else { continue };
        let shape = shape.unwrap();
        compare(&plain, &shape);
        if let Some((other, shape_of_other)) = &before {
            compare_both((&plain, &shape), (other, shape_of_other));
        }
        before = Some((plain, shape));
    }
}

#[cfg(test)]
#[test]
fn the_kept_datatypes_are_those_of_the_model() {
    fompi_testkit::replay("datatypes", datatypes);
}
