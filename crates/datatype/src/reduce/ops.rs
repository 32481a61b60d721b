//! The predefined operations (MPI-4.1 §6.9.2, §12.3.4): `op_rows` has one row for each. From these
//! rows come [`Op`], the handles in each ABI ([`OPS`]), the kinds of elements that an op goes with
//! ([`pairs`]), and the calls that `reduce` makes. Below the rows, `combine!` defines how an op
//! computes the new value from the target's and the origin's, and the processor instruction that
//! does this in one step if there is one.
//!
//! The order of the operands is that of MPI-4.1 §12.3.4: target op origin. Integers wrap around, so
//! that signed and unsigned are the same but for Max and Min. Logical results are 1 and 0.
//!
//! CONTRIBUTING.md lists what an additional op needs in addition to its row and its `combine!`.

use core::ffi::CStr;
use core::mem::transmute_copy;

use super::element::{Atom, Complex, Element, LongDouble, Pair, Word};
use crate::basic::{Basic, Kind};

/// Hands the rows of the ops to a macro, after its own arguments: first the ops that compute, then
/// those that only move data. The columns of a row:
///
/// - name here, and in C,
/// - handle in the MPICH ABI, data symbol in Open MPI, handle in the MPI-5 ABI,
/// - the view of integers that it computes with, `signed` or `bits`,
/// - kinds of elements that the standard pairs with it,
/// - kinds that the standard does not pair with it and that MPIs compute, as unsigned integers. Not
///   for MPI_MAX and MPI_MIN, as MPIs do not agree whether these have a sign.
macro_rules! op_rows {
    ($then:ident ($($arguments:tt)*)) => {
        $then! {
            ($($arguments)*)
            computing {
                /// the larger value; like C, `target > origin ? target : origin`, also for a NaN
                Max "MPI_MAX" 0x58000001 c"ompi_mpi_op_max" 0x23
                    signed [Integer MultiLanguage Float] [];
                /// the smaller value; like C, `target < origin ? target : origin`, also for a NaN
                Min "MPI_MIN" 0x58000002 c"ompi_mpi_op_min" 0x22
                    signed [Integer MultiLanguage Float] [];
                /// the sum
                Sum "MPI_SUM" 0x58000003 c"ompi_mpi_op_sum" 0x21
                    bits [Integer MultiLanguage Float Complex] [Byte Character];
                /// the product
                Prod "MPI_PROD" 0x58000004 c"ompi_mpi_op_prod" 0x24
                    bits [Integer MultiLanguage Float Complex] [Byte Character];
                /// both are not zero
                Land "MPI_LAND" 0x58000005 c"ompi_mpi_op_land" 0x30
                    bits [Integer Logical] [MultiLanguage Byte Character];
                /// bitwise and
                Band "MPI_BAND" 0x58000006 c"ompi_mpi_op_band" 0x28
                    bits [Integer MultiLanguage Byte] [Character];
                /// one of them is not zero
                Lor "MPI_LOR" 0x58000007 c"ompi_mpi_op_lor" 0x31
                    bits [Integer Logical] [MultiLanguage Byte Character];
                /// bitwise or
                Bor "MPI_BOR" 0x58000008 c"ompi_mpi_op_bor" 0x29
                    bits [Integer MultiLanguage Byte] [Character];
                /// one of them, not both, is not zero
                Lxor "MPI_LXOR" 0x58000009 c"ompi_mpi_op_lxor" 0x32
                    bits [Integer Logical] [MultiLanguage Byte Character];
                /// bitwise exclusive or
                Bxor "MPI_BXOR" 0x5800000a c"ompi_mpi_op_bxor" 0x2a
                    bits [Integer MultiLanguage Byte] [Character];
                /// the pair with the larger value, or of equal ones the value with the lower index
                MaxLoc "MPI_MAXLOC" 0x5800000c c"ompi_mpi_op_maxloc" 0x39
                    bits [Pair] [];
                /// the pair with the smaller value, or of equal ones the value with the lower index
                MinLoc "MPI_MINLOC" 0x5800000b c"ompi_mpi_op_minloc" 0x38
                    bits [Pair] [];
            }
            moving {
                /// the origin's value
                Replace "MPI_REPLACE" 0x5800000d c"ompi_mpi_op_replace" 0x3c;
                /// the target's value
                NoOp "MPI_NO_OP" 0x5800000e c"ompi_mpi_op_no_op" 0x3d;
            }
        }
    };
}
pub(super) use op_rows;

macro_rules! define {
    (
        ()
        computing {
            $($(#[$doc:meta])* $name:ident $c:literal $mpich:literal $openmpi:literal
                $standard:literal $view:ident [$($kind:ident)*] [$($other:ident)*];)*
        }
        moving {
            $($(#[$moving_doc:meta])* $moving:ident $moving_c:literal $moving_mpich:literal
                $moving_openmpi:literal $moving_standard:literal;)*
        }
    ) => {
        /// A predefined operation of the accumulate functions. Users' own operations are not
        /// allowed there.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        #[repr(u8)]
        #[expect(clippy::enum_variant_names, reason = "MPI_NO_OP is called so")]
        pub enum Op {
            $($(#[$doc])* $name,)*
            $($(#[$moving_doc])* $moving,)*
        }

        $($(#[$doc])* pub struct $name;)*

        /// Every op, in the order of its number.
        pub const OPS: &[PredefinedOp] = &[
            $(PredefinedOp {
                op: Op::$name, name: $c, mpich: $mpich, openmpi: $openmpi, standard: $standard,
            },)*
            $(PredefinedOp {
                op: Op::$moving,
                name: $moving_c,
                mpich: $moving_mpich,
                openmpi: $moving_openmpi,
                standard: $moving_standard,
            },)*
        ];

        /// The kinds of elements that the standard pairs with each op, a bit each.
        const STANDARD: [u16; OPS.len()] =
            [$(bits(&[$(Kind::$kind),*]),)* $({ _ = Op::$moving; u16::MAX },)*];
        /// The kinds that only MPIs pair with it.
        const IN_MPIS: [u16; OPS.len()] =
            [$(bits(&[$(Kind::$other),*]),)* $({ _ = Op::$moving; 0 },)*];
    };
}

op_rows!(define());

/// A predefined operation with its handles.
pub struct PredefinedOp {
    /// the op
    pub op: Op,
    /// its name in C
    pub name: &'static str,
    /// its handle in the MPICH ABI
    pub mpich: usize,
    /// its data symbol in Open MPI
    pub openmpi: &'static CStr,
    /// its handle in the MPI-5 ABI
    pub standard: usize,
}

/// The place of a kind in a set of kinds.
pub(super) const fn bit(kind: Kind) -> u16 {
    1 << kind as u16
}

/// The set of kinds that the standard pairs with an op.
pub(super) const fn kinds(op: Op) -> u16 {
    STANDARD[op as usize]
}

/// A set of kinds.
const fn bits(kinds: &[Kind]) -> u16 {
    let (mut set, mut index) = (0, 0);
    while index < kinds.len() {
        set |= bit(kinds[index]);
        index += 1;
    }
    set
}

/// Whether an op goes with a kind of element (MPI-4.1 §6.9.2 and §6.9.4; MPI_REPLACE and MPI_NO_OP
/// with every predefined type, §12.3.4). Fetch_and_op takes every predefined type, so this is its
/// rule too.
#[inline]
pub const fn pairs(op: Op, basic: Basic) -> bool {
    STANDARD[op as usize] & bit(basic.kind()) != 0
}

/// Whether MPIs compute an op on a kind of element although the standard does not pair them.
pub const fn pairs_in_mpis(op: Op, basic: Basic) -> bool {
    IN_MPIS[op as usize] & bit(basic.kind()) != 0
}

/// An op on one type of element.
pub trait Combine<T: Element> {
    /// Whether the new value is the origin's.
    const MOVES: bool = false;

    /// The target's new value.
    fn combine(target: T, origin: T) -> T;

    /// Changes the target's element in one atomic step and returns its old value. Ops for which the
    /// processor has an instruction replace this loop.
    ///
    /// # Safety
    /// As [`Word`] asks of `at`.
    #[inline(always)]
    unsafe fn fetch_and_combine(at: *mut u8, origin: T) -> T
    where
        T: Atom,
    {
        // SAFETY: the caller's guarantee is the same.
        unsafe { in_loop::<T, Self>(at, origin) }
    }
}

/// Changes the target's element when no other process has changed it meanwhile. Its padding stays
/// as it was.
///
/// # Safety
/// As [`Word`] asks of `at`.
#[inline(always)]
unsafe fn in_loop<T: Atom, C: Combine<T> + ?Sized>(at: *mut u8, origin: T) -> T {
    // SAFETY: the caller guarantees what `Word` asks.
    let mut old = unsafe { T::Word::load(at) };
    loop {
        // SAFETY: a word has the extent of its element.
        let value = unsafe { T::read((&raw const old).cast()) };
        let mut new = old;
        // SAFETY: a word has the extent of its element.
        unsafe { C::combine(value, origin).write((&raw mut new).cast()) };
        // A maximum that is already larger need not be stored, nor its cache line taken.
        if new == old {
            return value;
        }
        // SAFETY: as for the load.
        match unsafe { T::Word::compare_exchange(at, old, new) } {
            Ok(_) => return value,
            Err(now) => old = now,
        }
    }
}

/// `op, |target, origin| value, for types`; with `by`, the instruction of [`Word`] that does it.
macro_rules! combine {
    ($op:ident, |$target:ident, $origin:ident| $value:expr, for $($type:ty)+) => {$(
        impl Combine<$type> for $op {
            #[inline(always)]
            fn combine($target: $type, $origin: $type) -> $type {
                $value
            }
        }
    )+};
    ($op:ident, |$target:ident, $origin:ident| $value:expr, by $instruction:ident,
     for $($type:ty)+) => {$(
        impl Combine<$type> for $op {
            #[inline(always)]
            fn combine($target: $type, $origin: $type) -> $type {
                $value
            }
            #[inline(always)]
            unsafe fn fetch_and_combine(at: *mut u8, origin: $type) -> $type {
                // SAFETY: the caller guarantees what `Word` asks.
                unsafe { Word::$instruction(at, origin) }
            }
        }
    )+};
}

combine!(Max, |t, o| if t > o { t } else { o },
    for i8 i16 i32 i64 i128 u8 u16 u32 u64 f32 f64 LongDouble);
combine!(Min, |t, o| if t < o { t } else { o },
    for i8 i16 i32 i64 i128 u8 u16 u32 u64 f32 f64 LongDouble);
combine!(Sum, |t, o| t.wrapping_add(o), by add, for u8 u16 u32 u64);
combine!(Sum, |t, o| t.wrapping_add(o), for u128);
combine!(Sum, |t, o| t + o,
    for f32 f64 LongDouble Complex<f32> Complex<f64> Complex<LongDouble>);
combine!(Prod, |t, o| t.wrapping_mul(o), for u8 u16 u32 u64 u128);
combine!(Prod, |t, o| t * o,
    for f32 f64 LongDouble Complex<f32> Complex<f64> Complex<LongDouble>);
combine!(Land, |t, o| (t != 0 && o != 0).into(), for u8 u16 u32 u64 u128);
combine!(Lor, |t, o| (t != 0 || o != 0).into(), for u8 u16 u32 u64 u128);
combine!(Lxor, |t, o| ((t != 0) != (o != 0)).into(), for u8 u16 u32 u64 u128);
combine!(Band, |t, o| t & o, by and, for u8 u16 u32 u64);
combine!(Band, |t, o| t & o, for u128);
combine!(Bor, |t, o| t | o, by or, for u8 u16 u32 u64);
combine!(Bor, |t, o| t | o, for u128);
combine!(Bxor, |t, o| t ^ o, by xor, for u8 u16 u32 u64);
combine!(Bxor, |t, o| t ^ o, for u128);

/// MPI-4.1 §6.9.4. A NaN is neither larger nor equal: the target stays.
impl<V: Element + PartialOrd, I: Element + PartialOrd> Combine<Pair<V, I>> for MaxLoc {
    #[inline(always)]
    fn combine(target: Pair<V, I>, origin: Pair<V, I>) -> Pair<V, I> {
        let tie = origin.value == target.value && origin.index < target.index;
        if origin.value > target.value || tie { origin } else { target }
    }
}

impl<V: Element + PartialOrd, I: Element + PartialOrd> Combine<Pair<V, I>> for MinLoc {
    #[inline(always)]
    fn combine(target: Pair<V, I>, origin: Pair<V, I>) -> Pair<V, I> {
        let tie = origin.value == target.value && origin.index < target.index;
        if origin.value < target.value || tie { origin } else { target }
    }
}

/// The origin's value. MPI_NO_OP needs no such type: it only loads.
pub struct Replace;

impl<T: Element> Combine<T> for Replace {
    const MOVES: bool = true;

    #[inline(always)]
    fn combine(_target: T, origin: T) -> T {
        origin
    }

    /// No plain store, also where the old value is not wanted: a call on a single word ends after
    /// its change for all others (`epoch::lock::atomic_calls`).
    #[inline(always)]
    unsafe fn fetch_and_combine(at: *mut u8, origin: T) -> T
    where
        T: Atom,
    {
        if !T::DENSE {
            // SAFETY: the caller's guarantee is the same.
            return unsafe { in_loop::<T, Self>(at, origin) };
        }
        // SAFETY: the caller guarantees what `Word` asks; a word has the extent of its element, and
        // this one has no padding.
        unsafe { transmute_copy(&T::Word::swap(at, transmute_copy(&origin))) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_number_is_a_place_in_the_table() {
        for (number, known) in OPS.iter().enumerate() {
            assert_eq!(known.op as usize, number);
        }
    }

    #[test]
    fn ops_go_with_the_groups_of_the_standard() {
        assert!(pairs(Op::Sum, Basic::I32));
        assert!(pairs(Op::Sum, Basic::Complex64));
        assert!(pairs(Op::Band, Basic::Byte));
        assert!(pairs(Op::Land, Basic::Logical4));
        assert!(pairs(Op::Max, Basic::Aint64));
        assert!(pairs(Op::MaxLoc, Basic::TwoReal));
        assert!(!pairs(Op::Max, Basic::Complex32));
        assert!(!pairs(Op::Band, Basic::F64));
        assert!(!pairs(Op::Sum, Basic::Logical4));
        assert!(!pairs(Op::Sum, Basic::Byte));
        assert!(!pairs(Op::Land, Basic::Aint64));
        assert!(!pairs(Op::Sum, Basic::TwoInt));
        for &basic in Basic::ALL {
            assert!(pairs(Op::Replace, basic));
            assert!(pairs(Op::NoOp, basic));
            assert_eq!(pairs(Op::MinLoc, basic), basic.kind() == Kind::Pair);
        }
    }
}
