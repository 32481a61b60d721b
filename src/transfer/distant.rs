//! Accumulates on windows over many nodes. Integers of eight bytes at multiples of eight are words
//! of the device: each is changed by its atomic operations alone, by ranks of the target's own node
//! too. All other elements are read, combined and written back under the target's accumulate lock.
//! The type and the address decide, as everywhere (docs/decisions/0004).
//!
//! On paper: a sum without a result is one request that nobody waits for, with one its answer; a
//! Compare_and_swap its answer; any other operation a look and a CMP_SWAP, repeated if somebody
//! else came between.

use crate::datatype::basic::{Basic, Kind, Op};
use crate::datatype::reduce;
use crate::error::Result;
use crate::fabric::Fetch;
use crate::window::wide::address::Distant;

/// Whether elements of this kind at this address of the target are words of the device.
pub fn is_word(basic: Basic, at: u64) -> bool {
    let whole = matches!(basic.kind(), Kind::Integer | Kind::MultiLanguage | Kind::Logical);
    whole && basic.size() == size_of::<u64>() && at.is_multiple_of(size_of::<u64>() as u64)
}

/// Applies the operation to `count` words that follow each other.
///
/// # Safety
/// `origin` holds as many operands, unless the operation is MPI_NO_OP, and `result` has room for as
/// many old values.
pub unsafe fn accumulate(
    op: Op,
    basic: Basic,
    target: Distant<'_>,
    origin: *const u8,
    result: Option<*mut u8>,
    count: usize,
) -> Result<()> {
    for index in 0..count {
        let bytes = index * size_of::<u64>();
        let word = target.offset(bytes as i64);
        let operand = || {
            // SAFETY: the caller's promise.
            unsafe { origin.wrapping_add(bytes).cast::<u64>().read_unaligned() }
        };
        let old = match (op, result) {
            (Op::Sum, None) => {
                target.peer.post(word.at, operand())?;
                continue;
            }
            (Op::Sum, Some(_)) => ordered(word, Fetch::Add(operand()))?,
            (Op::NoOp, _) => ordered(word, Fetch::Add(0))?,
            // SAFETY: the caller's promise.
            _ => unsafe { change(op, basic, word, origin.wrapping_add(bytes))? },
        };
        if let Some(result) = result {
            // SAFETY: the caller's promise.
            unsafe { result.wrapping_add(bytes).cast::<u64>().write_unaligned(old) };
        }
    }
    Ok(())
}

/// A request behind those that were sent before: accumulates of one origin on one element happen in
/// their order (MPI-4.1 §12.7.2).
fn ordered(word: Distant<'_>, op: Fetch) -> Result<u64> {
    word.peer.order();
    word.peer.fetch(word.at, op)
}

/// Any operation on one word.
///
/// # Safety
/// `origin` holds an operand.
unsafe fn change(op: Op, basic: Basic, word: Distant<'_>, origin: *const u8) -> Result<u64> {
    let mut seen = ordered(word, Fetch::Add(0))?;
    loop {
        let mut new = seen;
        let here = (&raw mut new).cast();
        // SAFETY: a word of ours, which is as large as an element, and the caller's operand.
        unsafe { reduce::accumulate_exclusive(op, basic, here, origin, None, 1) };
        match ordered(word, Fetch::CompareSwap { expect: seen, new })? {
            before if before == seen => return Ok(seen),
            before => seen = before,
        }
    }
}

/// MPI_Compare_and_swap of a word. Returns what it held before.
pub fn compare_and_swap(word: Distant<'_>, expect: u64, new: u64) -> Result<u64> {
    ordered(word, Fetch::CompareSwap { expect, new })
}
