//! Tests of the decoding of types. A table stands for the MPI, in the numbers of the MPICH ABI.

use super::*;
use crate::datatype::type_map::Layout;
use crate::error::Class;
use crate::mpi::constants::MPICH;
use std::cell::Cell;
use std::sync::Arc;

const INT: Handle = 1;
const DOUBLE: Handle = 2;
const SHORT: Handle = 3;
/// the first handle of the types of a table
const DERIVED: Handle = 100;

/// Integers, addresses and counts of a constructor.
type Numbers<'a> = [&'a [i64]; 3];

struct Type {
    envelope: Envelope,
    arguments: Arguments,
    bounds: (i64, i64),
    size: i64,
    /// references that were given out and not released
    references: Cell<i32>,
}

#[derive(Default)]
struct Table(Vec<Type>);

impl Table {
    /// A type of that combiner with integers, addresses, counts, types and its bounds.
    fn add(
        &mut self,
        combiner: i32,
        [integers, addresses, counts]: Numbers,
        types: &[Handle],
        bounds: (i64, i64),
    ) -> Handle {
        let envelope = Envelope {
            combiner: Combiner::of(&MPICH, combiner).unwrap(),
            integers: integers.len(),
            addresses: addresses.len(),
            counts: counts.len(),
            types: types.len(),
        };
        let numbers = [integers, addresses, counts].concat();
        let arguments = Arguments { numbers, types: types.to_vec() };
        let references = Cell::new(0);
        self.0.push(Type { envelope, arguments, bounds, size: 0, references });
        DERIVED + self.0.len() - 1
    }

    /// A predefined type that is only known by its combiner and size.
    fn add_sized(&mut self, combiner: i32, size: i64) -> Handle {
        let handle = self.add(combiner, [&[], &[], &[]], &[], (0, size));
        self.0[handle - DERIVED].size = size;
        handle
    }

    fn get(&self, datatype: Handle) -> &Type {
        &self.0[datatype - DERIVED]
    }

    fn shape(&self, datatype: Handle) -> Result<Shape> {
        let shape = decode::shape(self, datatype);
        for (number, known) in self.0.iter().enumerate() {
            assert_eq!(known.references.get(), 0, "type {number}");
        }
        shape
    }

    fn layout(&self, datatype: Handle) -> Layout {
        match self.shape(datatype).unwrap() {
            Shape::Derived(layout) => Arc::unwrap_or_clone(layout),
            basic => panic!("{basic:?}"),
        }
    }

    /// Offset and count of each block.
    fn blocks(&self, datatype: Handle) -> Vec<(i64, u64)> {
        let layout = self.layout(datatype);
        layout.pieces(1).map(|piece| (piece.offset, piece.count)).collect()
    }
}

impl Contents for Table {
    fn predefined(&self, datatype: Handle) -> Option<Basic> {
        [(INT, Basic::I32), (DOUBLE, Basic::F64), (SHORT, Basic::I16)]
            .iter()
            .find(|(handle, _)| *handle == datatype)
            .map(|(_, basic)| *basic)
    }

    fn envelope(&self, datatype: Handle) -> Result<Envelope> {
        Ok(self.get(datatype).envelope)
    }

    fn contents(&self, datatype: Handle, _: &Envelope) -> Result<Arguments> {
        let arguments = self.get(datatype).arguments.clone();
        for inner in arguments.types.iter().filter(|inner| **inner >= DERIVED) {
            let inner = self.get(*inner);
            if inner.size == 0 && inner.envelope.combiner != Combiner::ValueIndex {
                inner.references.set(inner.references.get() + 1);
            }
        }
        Ok(arguments)
    }

    fn bounds(&self, datatype: Handle) -> Result<(i64, i64)> {
        Ok(self.get(datatype).bounds)
    }

    fn size(&self, datatype: Handle) -> Result<i64> {
        Ok(self.get(datatype).size)
    }

    fn release(&self, datatype: Handle) {
        let references = &self.get(datatype).references;
        references.set(references.get() - 1);
    }

    fn arrays(&self) -> &'static ArrayNumbers {
        ArrayNumbers::of(Abi::Mpich)
    }
}

#[test]
fn a_structure_has_the_extent_that_the_mpi_says() {
    let mut table = Table::default();
    let (integers, addresses) = (&[2, 1, 1], &[0, 8]);
    let types = [DOUBLE, SHORT];
    let made = table.add(MPICH.combiner_struct, [integers, addresses, &[]], &types, (0, 16));
    let twice = table.add(MPICH.combiner_contiguous, [&[2], &[], &[]], &[made], (0, 32));
    let layout = table.layout(twice);
    assert_eq!((layout.size(), layout.extent(), layout.end()), (20, 32, 26));
    assert_eq!(table.blocks(twice), [(0, 1), (8, 1), (16, 1), (24, 1)]);
}

#[test]
fn numbers_mean_the_same_in_either_width() {
    let c = &MPICH;
    let cases: [(i32, Numbers, &[i64]); 8] = [
        (c.combiner_vector, [&[2, 1, 3], &[], &[]], &[2, 1, 3]),
        (c.combiner_hvector, [&[2, 1], &[12], &[]], &[2, 1, 12]),
        (c.combiner_hvector_integer, [&[2, 1, 12], &[], &[]], &[2, 1, 12]),
        (c.combiner_indexed, [&[2, 1, 1, 0, 3], &[], &[]], &[2, 1, 1, 0, 3]),
        (c.combiner_hindexed, [&[2, 1, 1], &[0, 12], &[]], &[2, 1, 1, 0, 12]),
        (c.combiner_hindexed_integer, [&[2, 1, 1, 0, 12], &[], &[]], &[2, 1, 1, 0, 12]),
        (c.combiner_indexed_block, [&[2, 1, 0, 3], &[], &[]], &[2, 1, 0, 3]),
        (c.combiner_hindexed_block, [&[2, 1], &[0, 12], &[]], &[2, 1, 0, 12]),
    ];
    for (combiner, small, large) in cases {
        for numbers in [small, [&[], &[], large]] {
            let mut table = Table::default();
            let made = table.add(combiner, numbers, &[INT], (0, 16));
            assert_eq!(table.blocks(made), [(0, 1), (12, 1)], "combiner {combiner}");
        }
    }
}

#[test]
fn inner_types_are_released_even_after_an_error() {
    let mut table = Table::default();
    let dup = table.add(MPICH.combiner_dup, [&[]; 3], &[DOUBLE], (0, 8));
    let odd = table.add(MPICH.combiner_resized, [&[], &[0], &[]], &[dup], (0, 8));
    let (numbers, types) = ([&[2, 1, 1][..], &[0, 8], &[]], [odd, dup]);
    let made = table.add(MPICH.combiner_struct, numbers, &types, (0, 16));
    assert_eq!(table.shape(made).unwrap_err().class(), Class::Intern);
    let far = table.add(MPICH.combiner_vector, [&[2, 1, i64::MAX], &[], &[]], &[dup], (0, 8));
    assert_eq!(table.shape(far).unwrap_err().class(), Class::Type);
}

#[test]
fn levels_have_a_bound() {
    let mut table = Table::default();
    let mut made = INT;
    for _ in 0..200 {
        made = table.add(MPICH.combiner_dup, [&[]; 3], &[made], (0, 4));
    }
    assert_eq!(table.blocks(made), [(0, 1)]);
    made = table.add(MPICH.combiner_dup, [&[]; 3], &[made], (0, 4));
    assert_eq!(table.shape(made).unwrap_err().class(), Class::Unsupported);
}

#[test]
fn predefined_types_without_a_name_are_known_by_their_size() {
    let mut table = Table::default();
    let cases = [
        (MPICH.combiner_f90_real, 8, Basic::F64),
        (MPICH.combiner_f90_complex, 8, Basic::Complex32),
        (MPICH.combiner_f90_integer, 8, Basic::I64),
        (MPICH.combiner_named, 2, Basic::Opaque2),
    ];
    for (combiner, size, basic) in cases {
        let made = table.add_sized(combiner, size);
        assert_eq!(table.shape(made), Ok(Shape::Basic(basic)));
        let pair = table.add(MPICH.combiner_contiguous, [&[2], &[], &[]], &[made], (0, 2 * size));
        assert_eq!(table.blocks(pair), [(0, 2)]);
    }
    let odd = table.add_sized(MPICH.combiner_f90_real, 3);
    assert_eq!(table.shape(odd).unwrap_err().class(), Class::Type);
}

#[test]
fn a_value_and_an_index_are_a_pair() {
    let mut table = Table::default();
    let combiner = MPICH.combiner_value_index;
    let known = table.add(combiner, [&[]; 3], &[DOUBLE, INT], (0, 16));
    assert_eq!(table.shape(known), Ok(Shape::Basic(Basic::DoubleInt)));
    let own = table.add(combiner, [&[]; 3], &[SHORT, DOUBLE], (0, 16));
    assert_eq!(table.blocks(own), [(0, 1), (8, 1)]);
    let twice = table.add(MPICH.combiner_contiguous, [&[2], &[], &[]], &[own], (0, 32));
    assert_eq!(table.blocks(twice), [(0, 1), (8, 1), (16, 1), (24, 1)]);
}

#[test]
fn subarrays_are_in_either_order() {
    // Rows 1 and 2, columns 2 to 4 of 4 rows of 6.
    let blocks = [(32, 3), (56, 3)];
    let (order_c, order_fortran) = (56, 57);
    let bounds = (0, 96);
    let cases: [Numbers; 3] = [
        [&[2, 4, 6, 2, 3, 1, 2, order_c], &[], &[]],
        [&[2, 6, 4, 3, 2, 2, 1, order_fortran], &[], &[]],
        [&[2, order_c], &[], &[4, 6, 2, 3, 1, 2]],
    ];
    for numbers in cases {
        let mut table = Table::default();
        let made = table.add(MPICH.combiner_subarray, numbers, &[INT], bounds);
        assert_eq!(table.blocks(made), blocks);
    }
}

/// The elements that a rank owns by the definition of the distributions, one after the other.
fn owned(sizes: &[i64], widths: &[i64], grid: &[i64], rank: i64, fortran: bool) -> Vec<i64> {
    let mut place = vec![0; sizes.len()];
    let mut rest = rank;
    for n in (0..grid.len()).rev() {
        (place[n], rest) = (rest % grid[n], rest / grid[n]);
    }
    let total: i64 = sizes.iter().product();
    let mine = |element: &i64| {
        let mut rest = *element;
        let order: Vec<usize> = match fortran {
            true => (0..sizes.len()).collect(),
            false => (0..sizes.len()).rev().collect(),
        };
        order.into_iter().all(|n| {
            let index = rest % sizes[n];
            rest /= sizes[n];
            index / widths[n] % grid[n] == place[n]
        })
    };
    (0..total).filter(mine).collect()
}

#[test]
fn distributed_arrays_partition_their_elements() {
    const BLOCK: i64 = 121;
    const CYCLIC: i64 = 122;
    const NONE: i64 = 123;
    const DEFAULT: i64 = -49767;
    // Global sizes, distributions, their arguments, grid; and the width of the blocks of each.
    let cases = [
        ([5, 7], [BLOCK, CYCLIC], [DEFAULT, 2], [2, 3], [3, 2]),
        ([6, 4], [CYCLIC, NONE], [DEFAULT, DEFAULT], [4, 1], [1, 4]),
        ([8, 3], [BLOCK, BLOCK], [4, DEFAULT], [3, 2], [4, 2]),
    ];
    for (sizes, distributions, arguments, grid, widths) in cases {
        let processes = grid[0] * grid[1];
        for (rank, order) in (0..processes).flat_map(|rank| [(rank, 56), (rank, 57)]) {
            let rest = [distributions, arguments, grid].concat();
            let small = [&[processes, rank, 2][..], &sizes, &rest, &[order]].concat();
            let large = [&[processes, rank, 2][..], &rest, &[order]].concat();
            let expected = owned(&sizes, &widths, &grid, rank, order == 57);
            for numbers in [[&small[..], &[], &[]], [&large[..], &[], &sizes[..]]] {
                let mut table = Table::default();
                let bounds = (0, 4 * sizes[0] * sizes[1]);
                let made = table.add(MPICH.combiner_darray, numbers, &[INT], bounds);
                let elements = table.blocks(made).into_iter();
                let elements = elements.flat_map(|(at, count)| at / 4..at / 4 + count as i64);
                assert_eq!(elements.collect::<Vec<_>>(), expected, "rank {rank} order {order}");
            }
        }
    }
}

#[test]
fn what_cannot_be_a_datatype_is_known_by_its_handle() {
    assert!(may_be_datatype(Abi::Mpich, 0x8c00_0005) && may_be_datatype(Abi::Mpich, 0xcc00_0100));
    assert!(!may_be_datatype(Abi::Mpich, 0x8400_0002) && !may_be_datatype(Abi::Mpich, 0x0c00_0000));
    assert!(!may_be_datatype(Abi::Standard, 0x101) && !may_be_datatype(Abi::OpenMpi, 0));
}
