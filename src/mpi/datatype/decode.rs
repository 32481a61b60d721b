//! The layout of a datatype from the arguments of its constructor (MPI-4.1 §5.1.13), for every
//! constructor. This file calls no MPI: the owner of the types answers by [`Contents`].
//!
//! Integers, addresses and counts are one row of numbers here: whether a constructor took counts of
//! 32 or 64 bits, the numbers come in the same order, except for the arrays.

use super::arguments::{Numbers, scaled, short};
use super::array::{self, ArrayNumbers};
use crate::datatype::basic::Basic;
use crate::datatype::type_map::{Layout, Shape};
use crate::error::{Error, Result};
use crate::messages;
use crate::mpi::constants::Constants;
use crate::mpi::handle::Handle;
use crate::number::Number;
use std::sync::Arc;

/// The most levels that a type may have: a deeper one would need too much stack.
const LEVELS_MAX: u32 = 200;

/// The constructor of a type. Constructors that differ only in the width of their arguments are
/// one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Combiner {
    Named,
    Dup,
    Contiguous,
    Vector,
    Hvector,
    Indexed,
    Hindexed,
    IndexedBlock,
    HindexedBlock,
    Struct,
    Subarray,
    Darray,
    F90Real,
    F90Complex,
    F90Integer,
    Resized,
    ValueIndex,
}

impl Combiner {
    /// Returns the combiner with the number `number` in an ABI.
    pub fn of(c: &Constants, number: i32) -> Result<Combiner> {
        let known = [
            (c.combiner_named, Combiner::Named),
            (c.combiner_dup, Combiner::Dup),
            (c.combiner_contiguous, Combiner::Contiguous),
            (c.combiner_vector, Combiner::Vector),
            (c.combiner_hvector, Combiner::Hvector),
            (c.combiner_hvector_integer, Combiner::Hvector),
            (c.combiner_indexed, Combiner::Indexed),
            (c.combiner_hindexed, Combiner::Hindexed),
            (c.combiner_hindexed_integer, Combiner::Hindexed),
            (c.combiner_indexed_block, Combiner::IndexedBlock),
            (c.combiner_hindexed_block, Combiner::HindexedBlock),
            (c.combiner_struct, Combiner::Struct),
            (c.combiner_struct_integer, Combiner::Struct),
            (c.combiner_subarray, Combiner::Subarray),
            (c.combiner_darray, Combiner::Darray),
            (c.combiner_f90_real, Combiner::F90Real),
            (c.combiner_f90_complex, Combiner::F90Complex),
            (c.combiner_f90_integer, Combiner::F90Integer),
            (c.combiner_resized, Combiner::Resized),
            (c.combiner_value_index, Combiner::ValueIndex),
        ];
        let found = known.iter().find(|(known, _)| *known == number);
        let unknown = Error::Argument(&messages::TYPE_COMBINER, number.into());
        found.map(|(_, combiner)| *combiner).ok_or(unknown)
    }

    /// Whether types of this combiner are predefined, so that they are never freed.
    fn is_predefined(self) -> bool {
        use Combiner::{F90Complex, F90Integer, F90Real, Named, ValueIndex};
        matches!(self, Named | F90Real | F90Complex | F90Integer | ValueIndex)
    }
}

/// The result of MPI_Type_get_envelope.
#[derive(Clone, Copy, Debug)]
pub struct Envelope {
    /// the constructor of the type
    pub combiner: Combiner,
    /// number of integers among the arguments
    pub integers: usize,
    /// number of addresses
    pub addresses: usize,
    /// number of large counts; none if the constructor took integers
    pub counts: usize,
    /// number of datatypes
    pub types: usize,
}

/// The result of MPI_Type_get_contents.
#[derive(Clone, Debug)]
pub struct Arguments {
    /// integers, then addresses, then large counts
    pub numbers: Vec<i64>,
    /// datatypes
    pub types: Vec<Handle>,
}

/// The source of the envelopes and contents of datatypes.
pub trait Contents {
    /// The kind of a predefined type, if it is well known.
    fn predefined(&self, datatype: Handle) -> Option<Basic>;
    /// MPI_Type_get_envelope.
    fn envelope(&self, datatype: Handle) -> Result<Envelope>;
    /// MPI_Type_get_contents. Types that are not predefined have to be released.
    fn contents(&self, datatype: Handle, envelope: &Envelope) -> Result<Arguments>;
    /// MPI_Type_get_extent: lower bound and extent.
    fn bounds(&self, datatype: Handle) -> Result<(i64, i64)>;
    /// MPI_Type_size.
    fn size(&self, datatype: Handle) -> Result<i64>;
    /// MPI_Type_free.
    fn release(&self, datatype: Handle);
    /// The numbers of orders and distributions.
    fn arrays(&self) -> &'static ArrayNumbers;
}

/// Returns the type map of a datatype.
pub fn shape(contents: &impl Contents, datatype: Handle) -> Result<Shape> {
    let envelope = contents.envelope(datatype)?;
    taken_apart(contents, datatype, &envelope, LEVELS_MAX)
}

/// [`shape`] for a type whose envelope is known and that may have `levels` levels.
fn taken_apart(
    contents: &impl Contents,
    datatype: Handle,
    envelope: &Envelope,
    levels: u32,
) -> Result<Shape> {
    match envelope.combiner {
        Combiner::Named => named(contents.size(datatype)?, datatype),
        Combiner::F90Real => sized(&REALS, contents.size(datatype)?),
        Combiner::F90Complex => sized(&COMPLEXES, contents.size(datatype)?),
        Combiner::F90Integer => sized(&INTEGERS, contents.size(datatype)?),
        combiner => {
            let arguments = contents.contents(datatype, envelope)?;
            // Every handle has to be released, so errors are raised last.
            let inner = arguments.types.iter().map(|inner| part(contents, *inner, levels - 1));
            let inner: Vec<Result<Layout>> = inner.collect();
            let inner: Vec<Layout> = inner.into_iter().collect::<Result<_>>()?;
            if let (Combiner::ValueIndex, Some(pair)) = (combiner, known_pair(&inner)) {
                return Ok(Shape::Basic(pair));
            }
            let numbers = Numbers::of(&arguments.numbers);
            let layout = match combiner {
                Combiner::Subarray => {
                    let large = envelope.counts > 0;
                    array::subarray(contents.arrays(), numbers, large, only(&inner)?)?
                }
                Combiner::Darray => {
                    let large = envelope.counts > 0;
                    array::darray(contents.arrays(), numbers, large, only(&inner)?)?
                }
                _ => combined(combiner, numbers, &inner)?,
            };
            // The MPI decides the padding of structures, and users rely on its extent.
            let (lower, extent) = contents.bounds(datatype)?;
            Ok(Shape::Derived(layout.bounded(lower, extent)?.into()))
        }
    }
}

/// Returns the layout of a type among the arguments of another, and releases the type.
fn part(contents: &impl Contents, datatype: Handle, levels: u32) -> Result<Layout> {
    if let Some(basic) = contents.predefined(datatype) {
        return Ok(Layout::basic(basic));
    }
    let envelope = contents.envelope(datatype)?;
    let shape = match levels {
        0 => Err(Error::Wrong(&messages::TYPE_LEVELS)),
        _ => taken_apart(contents, datatype, &envelope, levels),
    };
    if !envelope.combiner.is_predefined() {
        contents.release(datatype);
    }
    Ok(match shape? {
        Shape::Basic(basic) => Layout::basic(basic),
        Shape::Derived(layout) => Arc::unwrap_or_clone(layout),
    })
}

/// Sizes and elements of the types of MPI_Type_create_f90_real; those of sixteen bytes are
/// binary128, as MPI_REAL16 is.
const REALS: [(i64, Basic); 4] =
    [(2, Basic::Opaque2), (4, Basic::F32), (8, Basic::F64), (16, Basic::Opaque16)];

/// Sizes and elements of the types of MPI_Type_create_f90_complex.
const COMPLEXES: [(i64, Basic); 4] =
    [(4, Basic::Opaque4), (8, Basic::Complex32), (16, Basic::Complex64), (32, Basic::Opaque32)];

/// Sizes and elements of the types of MPI_Type_create_f90_integer.
const INTEGERS: [(i64, Basic); 5] =
    [(1, Basic::I8), (2, Basic::I16), (4, Basic::I32), (8, Basic::I64), (16, Basic::I128)];

/// Predefined types that an MPI has beyond the standard: transfers move them, but no operation is
/// defined for them.
const EXTENSIONS: [(i64, Basic); 6] = [
    (1, Basic::Packed),
    (2, Basic::Opaque2),
    (4, Basic::Opaque4),
    (8, Basic::Opaque8),
    (16, Basic::Opaque16),
    (32, Basic::Opaque32),
];

fn sized(kinds: &[(i64, Basic)], size: i64) -> Result<Shape> {
    let kind = kinds.iter().find(|(bytes, _)| *bytes == size);
    let unknown = Error::Argument(&messages::TYPE_SIZE, size);
    kind.map(|(_, basic)| Shape::Basic(*basic)).ok_or(unknown)
}

/// Returns a predefined type that the tables do not know. Types without bytes are the markers
/// MPI_LB and MPI_UB, which MPI-3 removed and MPICH still has; their meaning is in the bounds.
fn named(size: i64, datatype: Handle) -> Result<Shape> {
    match size {
        0 => Ok(Shape::Derived(Layout::empty().into())),
        _ => sized(&EXTENSIONS, size)
            .map_err(|_| Error::Argument(&messages::TYPE_UNKNOWN, datatype.to_u64().cast_signed())),
    }
}

/// Returns the named pair type for which MPI_Type_get_value_index stands.
fn known_pair(inner: &[Layout]) -> Option<Basic> {
    let [value, index] = inner else { return None };
    match (value.uniform()?, index.uniform()?) {
        (Basic::F32, Basic::I32) => Some(Basic::FloatInt),
        (Basic::F64, Basic::I32) => Some(Basic::DoubleInt),
        (Basic::I64, Basic::I32) => Some(Basic::LongInt),
        (Basic::I32, Basic::I32) => Some(Basic::TwoInt),
        (Basic::I16, Basic::I32) => Some(Basic::ShortInt),
        (Basic::LongDouble, Basic::I32) => Some(Basic::LongDoubleInt),
        (Basic::F32, Basic::F32) => Some(Basic::TwoReal),
        (Basic::F64, Basic::F64) => Some(Basic::TwoDouble),
        _ => None,
    }
}

/// Returns the layout of a type that is not an array.
fn combined(combiner: Combiner, mut numbers: Numbers<'_>, inner: &[Layout]) -> Result<Layout> {
    match combiner {
        Combiner::Struct => {
            let count = numbers.count()?;
            let (lengths, displacements) = (numbers.list(count)?, numbers.list(count)?);
            let members = displacements.iter().zip(lengths).zip(inner);
            return Layout::structure(
                members.map(|((at, n), inner)| (*at, (*n).cast_unsigned(), inner)),
            );
        }
        Combiner::ValueIndex => {
            let [value, index] = inner else { return Err(short()) };
            // As in a C structure; an index is an integer, aligned to its size.
            let at = value.size().next_multiple_of(index.size().max(1));
            return Layout::structure([(0, 1, value), (at.cast_signed(), 1, index)]);
        }
        _ => {}
    }
    let inner = only(inner)?;
    let unit = match combiner {
        Combiner::Vector | Combiner::Indexed | Combiner::IndexedBlock => inner.extent(),
        _ => 1,
    };
    match combiner {
        Combiner::Contiguous => inner.contiguous(numbers.length()?),
        Combiner::Vector | Combiner::Hvector => {
            let (count, blocklength) = (numbers.length()?, numbers.length()?);
            inner.vector(count, blocklength, scaled(numbers.next()?, unit)?)
        }
        Combiner::Indexed | Combiner::Hindexed => {
            let count = numbers.count()?;
            let (lengths, displacements) = (numbers.list(count)?, numbers.list(count)?);
            indexed(inner, unit, displacements.iter().zip(lengths))
        }
        Combiner::IndexedBlock | Combiner::HindexedBlock => {
            let (count, length) = (numbers.count()?, numbers.next()?);
            indexed(inner, unit, numbers.list(count)?.iter().map(|at| (at, &length)))
        }
        Combiner::Resized => inner.clone().resized(numbers.next()?, numbers.next()?),
        _ => Ok(inner.clone()),
    }
}

/// Blocks at displacements in multiples of `unit` bytes.
fn indexed<'a>(
    inner: &Layout,
    unit: i64,
    blocks: impl Iterator<Item = (&'a i64, &'a i64)> + Clone,
) -> Result<Layout> {
    for (displacement, _) in blocks.clone() {
        scaled(*displacement, unit)?;
    }
    // No product overflows: the loop above has checked each.
    inner.indexed(blocks.map(|(at, length)| (at * unit, (*length).cast_unsigned())))
}

/// Returns the old type of a constructor that has one.
fn only(inner: &[Layout]) -> Result<&Layout> {
    inner.first().ok_or(short())
}
