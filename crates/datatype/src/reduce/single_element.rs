//! One function for each op and type that changes a single element by the processor's atomics: a
//! call finds it in a table by the numbers of its op and its type, instead of by a `match` of each.
//!
//! Not for elements that need the lock ([`super::needs_lock`]), nor for those with holes. The
//! address is the caller's check: it is a multiple of the width.

use super::element::{Atom, Complex, Element, Pair, Word};
use super::ops::{self, Combine, OPS, Op};
use crate::basic::Basic;
use crate::sync::fence_after_rmw;

/// Changes the element at `target`. One that fetches stores its old value in `result`, another one
/// ignores `result`.
///
/// # Safety
/// The caller guarantees [`Word`] for the target, and that `origin` may be read (unless the op is
/// NO_OP) and `result` written, one element each, which do not overlap the target.
pub type Kernel = unsafe fn(origin: *const u8, result: *mut u8, target: *mut u8);

/// Stores the element of `origin` in `target` if that equals the one of `compare`; `result` gets
/// the old value.
///
/// # Safety
/// As for [`Kernel`]; `compare` may be read.
pub type CompareKernel =
    unsafe fn(origin: *const u8, compare: *const u8, result: *mut u8, target: *mut u8);

/// Ops in a row of a table; a power of two, so that the place in it is found by a shift.
const COLUMNS: usize = 16;
const _: () = assert!(OPS.len() <= COLUMNS);

type Table = [[Option<Kernel>; COLUMNS]; Basic::ALL.len()];

/// Fills a table.
const fn table(of: Ways) -> Table {
    let mut table: Table = [[None; COLUMNS]; Basic::ALL.len()];
    let mut row = 0;
    while row < Basic::ALL.len() {
        let (basic, mut column) = (Basic::ALL[row], 0);
        while column < OPS.len() {
            let op = OPS[column].op;
            let is_dense = basic.size() == basic.extent();
            if is_dense && ops::kinds(op) & ops::bit(basic.kind()) != 0 {
                table[row][column] = match of {
                    Ways::Fetch => words!(fetching, op, basic, (), wider: None),
                    Ways::Change => words!(changing, op, basic, (), wider: None),
                };
            }
            column += 1;
        }
        row += 1;
    }
    table
}

/// The functions of a table.
#[derive(Clone, Copy)]
enum Ways {
    Fetch,
    Change,
}

static FETCHING: Table = table(Ways::Fetch);
static CHANGING: Table = table(Ways::Change);

/// Returns the function for a Fetch_and_op; `None` if this op is not carried out by an atomic
/// instruction on elements of this type.
#[inline(always)]
pub fn fetch_kernel(op: Op, basic: Basic) -> Option<Kernel> {
    FETCHING[basic as usize][op as usize]
}

/// Returns the function for an Accumulate of one element; `None` as for [`fetch_kernel`], and for
/// NO_OP.
#[inline(always)]
pub fn change_kernel(op: Op, basic: Basic) -> Option<Kernel> {
    CHANGING[basic as usize][op as usize]
}

/// Returns the function for a Compare_and_swap; `None` if no atomic instruction compares elements
/// of this type, or if MPI does not.
#[inline(always)]
pub fn compare_kernel(basic: Basic) -> Option<CompareKernel> {
    COMPARING[basic as usize]
}

static COMPARING: [Option<CompareKernel>; Basic::ALL.len()] = {
    let mut table: [Option<CompareKernel>; Basic::ALL.len()] = [None; Basic::ALL.len()];
    let mut row = 0;
    while row < Basic::ALL.len() {
        let basic = Basic::ALL[row];
        if basic.compares() {
            table[row] = match basic.extent() {
                1 => Some(compare::<u8> as CompareKernel),
                2 => Some(compare::<u16> as CompareKernel),
                4 => Some(compare::<u32> as CompareKernel),
                8 => Some(compare::<u64> as CompareKernel),
                _ => None,
            };
        }
        row += 1;
    }
    table
};

/// The function of an op that the standard does not pair with a type.
const fn unpaired(_: Op) -> Option<Kernel> {
    None
}

/// Functions that fetch.
mod fetching {
    use super::*;

    pub const fn apply<T: Atom, C: Combine<T>>((): ()) -> Option<Kernel> {
        Some(fetch_one::<T, C>)
    }

    pub const fn fetch<T: Atom>((): ()) -> Option<Kernel> {
        Some(load::<T>)
    }

    /// # Safety
    /// As for [`Kernel`].
    unsafe fn fetch_one<T: Atom, C: Combine<T>>(
        origin: *const u8,
        result: *mut u8,
        target: *mut u8,
    ) {
        // SAFETY: the caller's guarantees. The origin is read before the result is written: they
        // may be one buffer.
        unsafe { C::fetch_and_combine(target, T::read(origin)).write(result) };
        fence_after_rmw(); // as in `epoch::lock::atomic_calls`
    }

    /// # Safety
    /// As for [`Kernel`].
    unsafe fn load<T: Atom>(_: *const u8, result: *mut u8, target: *mut u8) {
        // SAFETY: the caller's guarantees; a word has the extent of its element.
        unsafe {
            let word = T::Word::load(target);
            T::read((&raw const word).cast()).write(result);
        }
        fence_after_rmw(); // as above
    }
}

/// Functions that only change the target.
mod changing {
    use super::*;

    pub const fn apply<T: Atom, C: Combine<T>>((): ()) -> Option<Kernel> {
        Some(change_one::<T, C>)
    }

    pub const fn fetch<T: Atom>((): ()) -> Option<Kernel> {
        None
    }

    /// # Safety
    /// As for [`Kernel`].
    unsafe fn change_one<T: Atom, C: Combine<T>>(origin: *const u8, _: *mut u8, target: *mut u8) {
        // SAFETY: guaranteed by the caller.
        unsafe { C::fetch_and_combine(target, T::read(origin)) };
        fence_after_rmw(); // as above
    }
}

/// # Safety
/// As for [`CompareKernel`].
unsafe fn compare<W: Word + Element>(
    origin: *const u8,
    compare: *const u8,
    result: *mut u8,
    target: *mut u8,
) {
    // SAFETY: guaranteed by the caller.
    unsafe { super::atomic::compare_and_swap::<W>(target, compare, origin, result) };
    fence_after_rmw(); // as above
}
