//! Subarrays and distributed arrays (MPI-4.1 §5.1.3, §5.1.4), one dimension after the other, from
//! the one whose elements are neighbours in memory outwards.

use super::arguments::{Numbers, scaled, short};
use crate::datatype::type_map::Layout;
use crate::error::Result;
use crate::mpi::handle::Abi;

/// The numbers of storage orders and distributions in an ABI.
pub struct ArrayNumbers {
    /// MPI_ORDER_C; the other one is MPI_ORDER_FORTRAN
    order_c: i64,
    /// MPI_DISTRIBUTE_BLOCK
    block: i64,
    /// MPI_DISTRIBUTE_CYCLIC; the third one is MPI_DISTRIBUTE_NONE
    cyclic: i64,
    /// MPI_DISTRIBUTE_DFLT_DARG
    default: i64,
}

const MPICH: ArrayNumbers = ArrayNumbers { order_c: 56, block: 121, cyclic: 122, default: -49767 };
const OPENMPI: ArrayNumbers = ArrayNumbers { order_c: 0, block: 0, cyclic: 1, default: -1 };
const STANDARD: ArrayNumbers = ArrayNumbers { order_c: 12, block: 17, cyclic: 18, default: 19 };

impl ArrayNumbers {
    /// Returns the numbers of an ABI.
    pub fn of(abi: Abi) -> &'static ArrayNumbers {
        match abi {
            Abi::Mpich => &MPICH,
            Abi::OpenMpi => &OPENMPI,
            Abi::Standard => &STANDARD,
        }
    }

    /// The dimensions from the innermost outwards.
    fn inmost_first(&self, order: i64, dimensions: usize) -> Vec<usize> {
        match order == self.order_c {
            true => (0..dimensions).rev().collect(),
            false => (0..dimensions).collect(),
        }
    }
}

/// MPI_Type_create_subarray: dimensions, sizes, subsizes, starts, order; with large counts the
/// order comes second.
pub fn subarray(
    known: &ArrayNumbers,
    mut numbers: Numbers<'_>,
    large: bool,
    inner: &Layout,
) -> Result<Layout> {
    let dimensions = numbers.count()?;
    let early_order = if large { Some(numbers.next()?) } else { None };
    let (sizes, subsizes) = (numbers.list(dimensions)?, numbers.list(dimensions)?);
    let starts = numbers.list(dimensions)?;
    let order = early_order.map_or_else(|| numbers.next(), Ok)?;
    let mut array = inner.clone();
    for n in known.inmost_first(order, dimensions) {
        let extent = array.extent();
        let part = (scaled(starts[n], extent)?, subsizes[n].cast_unsigned());
        array = array.indexed([part])?.resized(0, scaled(sizes[n], extent)?)?;
    }
    Ok(array)
}

/// MPI_Type_create_darray: size, rank, dimensions, global sizes, distributions, their arguments,
/// process grid, order; with large counts the global sizes come last.
pub fn darray(
    known: &ArrayNumbers,
    mut numbers: Numbers<'_>,
    large: bool,
    inner: &Layout,
) -> Result<Layout> {
    let (_size, rank, dimensions) = (numbers.next()?, numbers.next()?, numbers.count()?);
    let early_sizes = if large { None } else { Some(numbers.list(dimensions)?) };
    let (distributions, arguments) = (numbers.list(dimensions)?, numbers.list(dimensions)?);
    let grid = numbers.list(dimensions)?;
    let order = numbers.next()?;
    let sizes = early_sizes.map_or_else(|| numbers.list(dimensions), Ok)?;
    let coordinates = coordinates(rank, grid)?;
    let mut array = inner.clone();
    for n in known.inmost_first(order, dimensions) {
        let default = arguments[n] == known.default;
        let width = match distributions[n] {
            block if block == known.block && default => {
                sizes[n].cast_unsigned().div_ceil(grid[n].cast_unsigned())
            }
            cyclic if cyclic == known.cyclic && default => 1,
            dealt if dealt == known.block || dealt == known.cyclic => arguments[n].cast_unsigned(),
            _ => sizes[n].cast_unsigned(),
        };
        array = dealt(&array, sizes[n], width.max(1).cast_signed(), coordinates[n], grid[n])?;
    }
    Ok(array)
}

/// Returns the coordinates of a rank in the process grid, which is in C order whatever the array's
/// is.
fn coordinates(rank: i64, grid: &[i64]) -> Result<Vec<i64>> {
    let (mut rest, mut coordinates) = (rank, vec![0; grid.len()]);
    for (coordinate, processes) in coordinates.iter_mut().zip(grid).rev() {
        *coordinate = rest.checked_rem(*processes).ok_or(short())?;
        rest /= processes;
    }
    Ok(coordinates)
}

/// One dimension of a distributed array: `size` elements are dealt to `processes` in turn, in
/// blocks of `width`. Returns the blocks of the process at `coordinate`.
fn dealt(inner: &Layout, size: i64, width: i64, coordinate: i64, processes: i64) -> Result<Layout> {
    let extent = inner.extent();
    let whole = scaled(size, extent)?;
    let first = i128::from(coordinate) * i128::from(width);
    let step = i128::from(processes) * i128::from(width);
    let starts = (0..).map(|n| first + n * step).take_while(|start| *start < i128::from(size));
    // No product overflows: each is inside of the whole.
    let blocks = starts.map(|start| {
        let start = i64::try_from(start).unwrap_or(i64::MAX);
        (start * extent, width.min(size - start).cast_unsigned())
    });
    inner.indexed(blocks)?.resized(0, whole)
}
