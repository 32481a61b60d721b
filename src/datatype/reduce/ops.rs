//! What each op makes of the target's value and the origin's, and which processor instruction does
//! it in one step where there is one. One row per op; a new op is one row here, one in
//! `basic::Op` with its line in `basic::pairs`, and its name in the rows of `reduce`.
//!
//! The order of the operands is that of MPI-4.1 §12.3.4: target op origin. Integers wrap around, so
//! that signed and unsigned are the same but for Max and Min. Logical results are 1 and 0.

use super::element::{Atom, Complex, Element, Pair, Word};

/// An op on one type of element.
pub trait Combine<T: Element> {
    /// The target's new value.
    fn combine(target: T, origin: T) -> T;

    /// Changes the target's element in one atomic step and returns what it was. Ops for which the
    /// processor has an instruction replace this loop.
    ///
    /// # Safety
    /// As [`Word`] asks of `at`.
    #[inline(always)]
    unsafe fn fetch_and_combine(at: *mut u8, origin: T) -> T
    where
        T: Atom,
    {
        // SAFETY: the caller keeps the promise of `Word`.
        let mut old = unsafe { T::Word::load(at) };
        loop {
            // SAFETY: a word has the extent of its element.
            let value = unsafe { T::read((&raw const old).cast()) };
            // Padding of the element stays as it was.
            let mut new = old;
            // SAFETY: likewise.
            unsafe { Self::combine(value, origin).write((&raw mut new).cast()) };
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

    /// The same when nobody asks for the old value.
    ///
    /// # Safety
    /// As [`Word`] asks of `at`.
    #[inline(always)]
    unsafe fn atomic_combine(at: *mut u8, origin: T)
    where
        T: Atom,
    {
        // SAFETY: the caller's promise is the same.
        unsafe { Self::fetch_and_combine(at, origin) };
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
                // SAFETY: the caller keeps the promise of `Word`.
                unsafe { Word::$instruction(at, origin) }
            }
        }
    )+};
}

macro_rules! ops {
    ($($(#[$doc:meta])* $op:ident)*) => {$(
        $(#[$doc])*
        pub struct $op;
    )*};
}

ops! {
    /// the larger value; like C, `target > origin ? target : origin`, also for a NaN
    Max
    /// the smaller value, likewise
    Min
    /// the sum
    Sum
    /// the product
    Prod
    /// both are not zero
    Land
    /// one of them is not zero
    Lor
    /// one of them, not both, is not zero
    Lxor
    /// bitwise and
    Band
    /// bitwise or
    Bor
    /// bitwise exclusive or
    Bxor
    /// the pair with the larger value, or of equal ones the value with the lower index
    MaxLoc
    /// the pair with the smaller value, or of equal ones the value with the lower index
    MinLoc
    /// the origin's value
    Replace
}

combine!(Max, |t, o| if t > o { t } else { o },
    for i8 i16 i32 i64 i128 u8 u16 u32 u64 f32 f64);
combine!(Min, |t, o| if t < o { t } else { o },
    for i8 i16 i32 i64 i128 u8 u16 u32 u64 f32 f64);
combine!(Sum, |t, o| t.wrapping_add(o), by add, for u8 u16 u32 u64);
combine!(Sum, |t, o| t.wrapping_add(o), for u128);
combine!(Sum, |t, o| t + o, for f32 f64 Complex<f32> Complex<f64>);
combine!(Prod, |t, o| t.wrapping_mul(o), for u8 u16 u32 u64 u128);
combine!(Prod, |t, o| t * o, for f32 f64 Complex<f32> Complex<f64>);
combine!(Land, |t, o| (t != 0 && o != 0).into(), for u8 u16 u32 u64 u128);
combine!(Lor, |t, o| (t != 0 || o != 0).into(), for u8 u16 u32 u64 u128);
combine!(Lxor, |t, o| ((t != 0) != (o != 0)).into(), for u8 u16 u32 u64 u128);
combine!(Band, |t, o| t & o, by and, for u8 u16 u32 u64);
combine!(Band, |t, o| t & o, for u128);
combine!(Bor, |t, o| t | o, by or, for u8 u16 u32 u64);
combine!(Bor, |t, o| t | o, for u128);
combine!(Bxor, |t, o| t ^ o, by xor, for u8 u16 u32 u64);
combine!(Bxor, |t, o| t ^ o, for u128);

#[cfg(target_arch = "x86_64")]
mod long_double {
    use super::super::element::LongDouble;
    use super::*;

    combine!(Max, |t, o| if t > o { t } else { o }, for LongDouble);
    combine!(Min, |t, o| if t < o { t } else { o }, for LongDouble);
    combine!(Sum, |t, o| t + o, for LongDouble Complex<LongDouble>);
    combine!(Prod, |t, o| t * o, for LongDouble Complex<LongDouble>);
}

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

combine!(Replace, |_target, origin| origin, for u128 [u8; 32]);

impl<V: Element, I: Element> Combine<Pair<V, I>> for Replace {
    #[inline(always)]
    fn combine(_target: Pair<V, I>, origin: Pair<V, I>) -> Pair<V, I> {
        origin
    }
}

macro_rules! replace {
    ($($word:ty)*) => {$(
        impl Combine<$word> for Replace {
            #[inline(always)]
            fn combine(_target: $word, origin: $word) -> $word {
                origin
            }
            #[inline(always)]
            unsafe fn fetch_and_combine(at: *mut u8, origin: $word) -> $word {
                // SAFETY: the caller keeps the promise of `Word`.
                unsafe { Word::swap(at, origin) }
            }
            #[inline(always)]
            unsafe fn atomic_combine(at: *mut u8, origin: $word) {
                // SAFETY: the caller keeps the promise of `Word`.
                unsafe { Word::store(at, origin) }
            }
        }
    )*};
}

replace!(u8 u16 u32 u64);
