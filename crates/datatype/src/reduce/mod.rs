//! The predefined ops on window memory that other processes change at the same time.
//!
//! MPI promises that accumulates are atomic element by element (MPI-4.1 §12.7.1); here each call is
//! atomic as a whole. The type and the address ([`needs_lock`]) and the number of elements decide
//! how, never the call's name or the op:
//!
//! | elements                                   | way                                            |
//! |--------------------------------------------|------------------------------------------------|
//! | one, 1, 2, 4 or 8 bytes wide, at a         | the processor's atomics: [`accumulate`],       |
//! | multiple of that                           | [`compare_and_swap`], [`fetch_kernel`]         |
//! | wider ones, and all at other addresses     | the target's accumulate lock, held by the      |
//! |                                            | caller around [`accumulate_exclusive`] or      |
//! |                                            | [`compare_and_swap_exclusive`]                 |
//! | several                                    | that lock, around [`accumulate_locked`]        |
//!
//! While a process holds the target's exclusive window lock, no other process accesses that memory.
//! If only one of its threads does so at a time, it uses the `exclusive` functions for every type
//! without the accumulate lock. They are the fastest for many elements.
//!
//! Ops with an instruction use it: SUM of integers, the bitwise ops, REPLACE; a NO_OP is a load.
//! All other ops, floating point too, are compare-exchange loops on the word.
//!
//! Buffers have the type's layout in memory, one extent per element. Whether op and type go
//! together is the caller's check ([`pairs`]); here it is an assertion.

mod atomic;
#[cfg(target_arch = "aarch64")]
mod binary128;
mod element;
#[cfg(target_arch = "x86_64")]
mod long_double;
mod loops;
mod ops;
mod plain;
#[cfg(target_arch = "x86_64")]
mod processor;
#[cfg(test)]
mod tests;
mod vectors;
mod wide_elements;
#[cfg(target_arch = "x86_64")]
mod wide_loops;

use self::element::{Complex, LongDouble, Pair, ReduceCall};
use super::basic::Basic;
pub use ops::{OPS, Op, PredefinedOp, pairs, pairs_in_mpis};
pub use single_element::{change_kernel, compare_kernel, fetch_kernel};

/// Whether elements of this type at this address are changed under the target's accumulate lock.
/// The result is equal in all processes, since each maps a window's memory at whole pages. The
/// result for the first element holds for all elements after it.
#[inline]
pub fn needs_lock(basic: Basic, target: *const u8) -> bool {
    let extent = basic.extent();
    debug_assert!(extent.is_power_of_two());
    extent > 8 || target.addr() & (extent - 1) != 0
}

/// Calls a kernel for an op, from the rows of the ops. The arguments: the kernel, the op, the call,
/// the unsigned type of an element's bits, and the kind of the elements with the types that ops
/// compute with: for `signed` ops, and for all others. An op does not go with elements without a
/// kind.
macro_rules! apply {
    (
        ($way:ident, $op:expr, $call:expr, $bits:ty; $kind:ident: $signed:ty, $plain:ty)
        computing {
            $($(#[$doc:meta])* $name:ident $c:literal $mpich:literal $openmpi:literal
                $standard:literal $view:ident [$($paired:ident)*] [$($other:ident)*];)*
        }
        $moving:ident $moves:tt
    ) => {
        match $op {
            Op::NoOp => $way::fetch::<$bits>($call),
            Op::Replace => $way::apply::<$bits, ops::Replace>($call),
            $(Op::$name => listed!(
                $kind in [$($paired)* $($other)*]:
                $way::apply::<view!($view $signed, $plain), ops::$name>($call),
                unpaired(Op::$name)
            ),)*
        }
    };
}

/// The first expression if a kind is in a list, otherwise the second.
macro_rules! listed {
    (Integer in [Integer $($rest:ident)*]: $yes:expr, $no:expr) => { $yes };
    (Float in [Float $($rest:ident)*]: $yes:expr, $no:expr) => { $yes };
    (Complex in [Complex $($rest:ident)*]: $yes:expr, $no:expr) => { $yes };
    (Logical in [Logical $($rest:ident)*]: $yes:expr, $no:expr) => { $yes };
    (Byte in [Byte $($rest:ident)*]: $yes:expr, $no:expr) => { $yes };
    (Pair in [Pair $($rest:ident)*]: $yes:expr, $no:expr) => { $yes };
    ($kind:ident in []: $yes:expr, $no:expr) => { $no };
    ($kind:ident in [$first:ident $($rest:ident)*]: $yes:expr, $no:expr) => {
        listed!($kind in [$($rest)*]: $yes, $no)
    };
}

/// The type with which an op computes.
macro_rules! view {
    (signed $signed:ty, $plain:ty) => {
        $signed
    };
    (bits $signed:ty, $plain:ty) => {
        $plain
    };
}

/// The row of a type: the unsigned type of its bits, for REPLACE and NO_OP; then its kind and the
/// types that ops compute with, if there are any.
macro_rules! row {
    ($way:ident, $op:expr, $call:expr, $bits:ty) => {
        match $op {
            Op::NoOp => $way::fetch::<$bits>($call),
            Op::Replace => $way::apply::<$bits, ops::Replace>($call),
            op => unpaired(op),
        }
    };
    ($way:ident, $op:expr, $call:expr, $bits:ty; Integer: $signed:ty) => {
        ops::op_rows!(apply ($way, $op, $call, $bits; Integer: $signed, $bits))
    };
    ($way:ident, $op:expr, $call:expr, $bits:ty; $kind:ident: $type:ty) => {
        ops::op_rows!(apply ($way, $op, $call, $bits; $kind: $type, $type))
    };
}

/// The rows of the types that are words, and the expression for wider types.
macro_rules! words {
    ($way:ident, $op:expr, $basic:expr, $call:expr, wider: $wider:expr) => {
        match $basic {
            Basic::I8 => row!($way, $op, $call, u8; Integer: i8),
            Basic::I16 => row!($way, $op, $call, u16; Integer: i16),
            Basic::I32 => row!($way, $op, $call, u32; Integer: i32),
            Basic::I64 | Basic::Aint64 => row!($way, $op, $call, u64; Integer: i64),
            Basic::U8 => row!($way, $op, $call, u8; Integer: u8),
            Basic::U16 => row!($way, $op, $call, u16; Integer: u16),
            Basic::U32 => row!($way, $op, $call, u32; Integer: u32),
            Basic::U64 => row!($way, $op, $call, u64; Integer: u64),
            Basic::F32 => row!($way, $op, $call, u32; Float: f32),
            Basic::F64 => row!($way, $op, $call, u64; Float: f64),
            Basic::Complex32 => row!($way, $op, $call, u64; Complex: Complex<f32>),
            Basic::Bool | Basic::Logical1 => row!($way, $op, $call, u8; Logical: u8),
            Basic::Logical2 => row!($way, $op, $call, u16; Logical: u16),
            Basic::Logical4 => row!($way, $op, $call, u32; Logical: u32),
            Basic::Logical8 => row!($way, $op, $call, u64; Logical: u64),
            Basic::Byte | Basic::Char => {
                row!($way, $op, $call, u8; Byte: u8)
            }
            Basic::FloatInt => row!($way, $op, $call, u64; Pair: Pair<f32, i32>),
            Basic::TwoReal => row!($way, $op, $call, u64; Pair: Pair<f32, f32>),
            Basic::TwoInt | Basic::TwoInteger => {
                row!($way, $op, $call, u64; Pair: Pair<i32, i32>)
            }
            // Padded: its bits are its members.
            Basic::ShortInt => {
                row!($way, $op, $call, Pair<i16, i32>; Pair: Pair<i16, i32>)
            }
            Basic::Packed => row!($way, $op, $call, u8),
            Basic::Opaque2 => row!($way, $op, $call, u16),
            Basic::WChar | Basic::Opaque4 => row!($way, $op, $call, u32),
            Basic::Opaque8 => row!($way, $op, $call, u64),
            _ => $wider,
        }
    };
}

mod single_element; // after the macros, which it uses

/// Applies `op` to `count` elements at the target by the processor's atomics and, if there is a
/// result buffer, returns their old values.
///
/// # Safety
/// For `count` elements of the type, one extent apart: `target` may be read and written, `origin`
/// read (unless `op` is NO_OP, which ignores it), and `result` written. `origin` and `result` do
/// not overlap `target`; they may be the same buffer. [`needs_lock`] is false for this target.
/// Other processes change the same elements meanwhile by this module's atomics only.
pub unsafe fn accumulate(
    op: Op,
    basic: Basic,
    target: *mut u8,
    origin: *const u8,
    result: Option<*mut u8>,
    count: usize,
) {
    debug_assert!(!needs_lock(basic, target), "{basic:?} at {target:p} needs the lock");
    let call = &ReduceCall { target, origin, result, count };
    // SAFETY: the caller's guarantees are those of `ReduceCall`, and those of `Word`: every type
    // below has the extent of a word and `needs_lock` saw that the first element is at a multiple
    // of it.
    unsafe { words!(atomic, op, basic, call, wider: too_wide(basic)) }
}

/// Applies `op` to `count` elements at the target, whose accumulate lock the caller holds. No other
/// call sees a part of this one: calls on more than a single word take that lock, and a call on a
/// single word that read the lock earlier sees whole words.
///
/// # Safety
/// The buffers are as for [`accumulate`], at any address. Other processes change the same elements
/// meanwhile by this module's atomics only, one word of eight bytes or less at a time.
pub unsafe fn accumulate_locked(
    op: Op,
    basic: Basic,
    target: *mut u8,
    origin: *const u8,
    result: Option<*mut u8>,
    count: usize,
) {
    let extent = basic.extent();
    // Ops that only move data need no type.
    let moves = matches!(op, Op::Replace | Op::NoOp) && basic.size() == extent;
    // SAFETY: the caller's guarantees. All calls on elements that are wider than a
    // word, or at no multiple of their width, hold the lock.
    unsafe {
        if moves {
            let call = &ReduceCall { target, origin, result, count: count * extent };
            wide_elements::apply(op, Basic::Byte, call);
        } else if needs_lock(basic, target) {
            accumulate_exclusive(op, basic, target, origin, result, count);
        } else if extent == size_of::<u64>() {
            accumulate(op, basic, target, origin, result, count);
        } else {
            wide_elements::apply(op, basic, &ReduceCall { target, origin, result, count });
        }
    }
}

/// Applies `op` to `count` elements at the target that no other thread changes meanwhile: the
/// caller holds the target's accumulate lock where [`needs_lock`] asks for it, or its exclusive
/// window lock.
///
/// # Safety
/// The buffers are as for [`accumulate`], at any address; no other thread changes these elements.
pub unsafe fn accumulate_exclusive(
    op: Op,
    basic: Basic,
    target: *mut u8,
    origin: *const u8,
    result: Option<*mut u8>,
    count: usize,
) {
    let call = &ReduceCall { target, origin, result, count };
    // SAFETY: the caller's guarantees are those of `ReduceCall`, and no other thread uses the
    // target.
    unsafe { words!(plain, op, basic, call, wider: accumulate_wide(op, basic, call)) }
}

/// The rows of the types that are wider than a word.
///
/// # Safety
/// As for [`plain::apply`].
unsafe fn accumulate_wide(op: Op, basic: Basic, call: &ReduceCall) {
    // SAFETY: the caller's guarantees are the same.
    unsafe {
        match basic {
            Basic::I128 => row!(plain, op, call, u128; Integer: i128),
            Basic::Logical16 => row!(plain, op, call, u128; Logical: u128),
            Basic::Complex64 => row!(plain, op, call, u128; Complex: Complex<f64>),
            Basic::DoubleInt => {
                row!(plain, op, call, Pair<f64, i32>; Pair: Pair<f64, i32>)
            }
            Basic::LongInt => {
                row!(plain, op, call, Pair<i64, i32>; Pair: Pair<i64, i32>)
            }
            Basic::TwoDouble => row!(plain, op, call, u128; Pair: Pair<f64, f64>),
            Basic::LongDouble => {
                row!(plain, op, call, u128; Float: LongDouble)
            }
            Basic::ComplexLongDouble => {
                row!(plain, op, call, [u8; 32]; Complex: Complex<LongDouble>)
            }
            Basic::LongDoubleInt => row!(plain, op, call, Pair<LongDouble, i32>;
                Pair: Pair<LongDouble, i32>),
            Basic::Opaque16 => row!(plain, op, call, u128),
            Basic::Opaque32 => row!(plain, op, call, [u8; 32]),
            narrow => unreachable!("{narrow:?} is a word"),
        }
    }
}

/// Stores the origin's element into the target if that equals `compare`, by the processor's
/// atomics; `result` gets the old value of the target.
///
/// # Safety
/// `target` may be read and written, `compare` and `origin` read, `result` written; each is one
/// element, and none overlaps `target`. [`needs_lock`] is false for this target. Other processes
/// change the same element meanwhile by this module's atomics only.
#[inline]
pub unsafe fn compare_and_swap(
    basic: Basic,
    target: *mut u8,
    compare: *const u8,
    origin: *const u8,
    result: *mut u8,
) {
    debug_assert!(basic.compares(), "compare and swap of {basic:?}");
    debug_assert!(!needs_lock(basic, target), "{basic:?} at {target:p} needs the lock");
    match compare_kernel(basic) {
        // SAFETY: the caller's guarantees; the target is at a multiple of its extent.
        Some(kernel) => unsafe { kernel(origin, compare, result, target) },
        None => too_wide(basic),
    };
}

/// Compares and swaps as [`compare_and_swap`] when no other thread changes the target's element.
///
/// # Safety
/// As for [`compare_and_swap`], at any address; no other thread changes this element.
pub unsafe fn compare_and_swap_exclusive(
    basic: Basic,
    target: *mut u8,
    compare: *const u8,
    origin: *const u8,
    result: *mut u8,
) {
    debug_assert!(basic.compares(), "compare and swap of {basic:?}");
    // SAFETY: guaranteed by the caller.
    unsafe {
        match basic.extent() {
            8 => plain::compare_and_swap::<u64>(target, compare, origin, result),
            4 => plain::compare_and_swap::<u32>(target, compare, origin, result),
            2 => plain::compare_and_swap::<u16>(target, compare, origin, result),
            1 => plain::compare_and_swap::<u8>(target, compare, origin, result),
            16 => plain::compare_and_swap::<u128>(target, compare, origin, result),
            _ => too_wide(basic),
        }
    }
}

#[cold]
fn unpaired(op: Op) -> ! {
    panic!("{op:?} does not go with this type; `pairs` says so")
}

#[cold]
fn too_wide(basic: Basic) -> ! {
    panic!("{basic:?} is wider than the words of this function")
}
