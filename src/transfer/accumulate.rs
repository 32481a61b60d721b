//! The accumulate calls: MPI_Accumulate and MPI_Get_accumulate (MPI-4.1 §12.3.4); those of one
//! element are in `single`. All take part in one protocol, which the type and the address of an
//! element choose, never the call: see `datatype::reduce`.
//!
//! A call on several elements is atomic as a whole: it holds the target's accumulate lock from its
//! begin to its end, and a call on a single element reads that lock (`epoch::lock::atomic_calls`).
//!
//! They are ordered as the standard's default demands (§12.7.2): each is done when it returns, and
//! atomic instructions of one process on one location keep their order, or the transport keeps it.

use super::acc::{guard_of_several, locked, single};
use super::acc_call::{AccCall, accumulate_shaped, operation};
use super::acc_run::Guard;
use super::target_acc::post_word;
use super::{Accumulation, Buffer, Place, unpaired};
use crate::datatype::basic::Basic;
use crate::datatype::reduce::{self, Op, pairs};
use crate::datatype::type_map::Block;
use crate::error::{Class, Error, Result};
use crate::number::Number;
use crate::rank_numbers::Rank;
use crate::window::address::Reach;

/// MPI_Accumulate and MPI_Get_accumulate.
///
/// # Safety
/// The origin describes memory that may be read, the result memory that may be written.
pub unsafe fn accumulate(place: Place<'_>, call: &Accumulation) -> Result<()> {
    let access = place.access(call.target.rank)?;
    let op = operation(place, call.op)?;
    let origin = (op != Op::NoOp).then_some(&call.origin);
    if op == Op::NoOp && call.result.is_none() {
        return Err(Error::Wrong(Class::Op, "MPI_NO_OP without a result"));
    }
    let Some(rank) = access else {
        return place.on_proc_null(origin.copied().into_iter().chain(call.result), call.target);
    };
    // SAFETY: the caller vouches for the buffers.
    unsafe {
        match elements_of(place, origin, call) {
            Some(elements) => accumulate_elements(place, rank, &elements, call.target.disp, op),
            None => accumulate_shaped(place, rank, (origin.copied(), call.result), call.target, op),
        }
    }
}

/// Elements of one predefined type in all buffers.
struct Elements {
    basic: Basic,
    count: u64,
    /// bytes from the first element to the end of the last
    bytes: u64,
    origin: *const u8,
    result: Option<*mut u8>,
}

/// Returns the elements of an accumulate whose buffers have as many elements of one predefined type
/// as the target, at least one. Returns `None` for all others, wrong arguments included.
#[inline(always)]
fn elements_of(place: Place<'_>, origin: Option<&Buffer>, call: &Accumulation) -> Option<Elements> {
    let Accumulation { result, target, .. } = call;
    let types = &place.host.tables.types;
    let known = types.find(target.datatype)?;
    let is_such = |buffer: &Buffer| {
        let same = || types.find(buffer.datatype).is_some_and(|other| other.basic == known.basic);
        let given = buffer.count == target.count && !buffer.address.is_null();
        given && (buffer.datatype == target.datatype || same())
    };
    let count = u64::try_from(target.count).ok().filter(|count| *count > 0)?;
    let origin = origin.filter(|origin| is_such(origin))?;
    if !result.as_ref().is_none_or(is_such) {
        return None;
    }
    let (basic, origin) = (known.basic, origin.address.cast_const());
    let bytes = match known.is_dense() {
        true => count.checked_mul(u64::from(known.size))?,
        false => u64::try_from(Block { offset: 0, basic, count }.end()).ok()?,
    };
    let result = result.map(|result| result.address);
    (bytes < 1 << 63).then_some(Elements { basic, count, bytes, origin, result })
}

/// Carries out an accumulate on elements of one predefined type.
///
/// # Safety
/// The buffers are valid.
#[inline]
unsafe fn accumulate_elements(
    place: Place<'_>,
    rank: Rank,
    elements: &Elements,
    disp: i64,
    op: Op,
) -> Result<()> {
    let Elements { basic, count, bytes, origin, result } = *elements;
    let reach = Reach { first: 0, bytes };
    if let Some(at) = place.window.mapped(rank, disp, reach) {
        // SAFETY: `mapped` checked the window's side, the caller vouches for the buffers.
        return unsafe { on_mapped(place, rank, elements, at, op) };
    }
    if let (1, None) = (count, result)
        && let Some(there) = place.node.elsewhere(rank, disp, reach)?
    {
        // SAFETY: the caller vouches for the origin, `elsewhere` checked the window's side.
        if let Some(sent) = unsafe { post_word(&there, (op, basic), origin) } {
            return sent;
        }
    }
    let guard = if count == 1 { Guard::Single } else { guard_of_several(place, rank, count) };
    let work = AccCall { place, rank, disp, op, zero: None, guard, elements: count };
    if place.node.is_mixed(rank, disp, reach)? {
        // SAFETY: `is_mixed` checked the window's side, the caller vouches for the buffers.
        return work.in_parts(|work| unsafe { work.run_at(0, basic, origin, result, count) });
    }
    place.node.at_common(rank, disp, reach, |location| {
        // SAFETY: `at_common` checked the window's side, the caller vouches for the buffers.
        unsafe { work.on_elements(basic, location, (origin, result), count) }
    })
}

/// Carries out an accumulate on elements of one predefined type that are mapped `at`, on a window
/// of one node.
///
/// # Safety
/// The buffers are valid.
#[inline]
unsafe fn on_mapped(
    place: Place<'_>,
    rank: Rank,
    elements: &Elements,
    at: *mut u8,
    op: Op,
) -> Result<()> {
    let Elements { basic, count, origin, result, .. } = *elements;
    if !pairs(op, basic) {
        unpaired(op, basic)?;
    }
    if count == 1 && !reduce::needs_lock(basic, at) {
        return single(place, rank, || {
            // SAFETY: the caller's promise; an instruction changes the element.
            unsafe { reduce::accumulate(op, basic, at, origin, result, 1) };
        });
    }
    let number = count.to_usize();
    let change = |guard| {
        // SAFETY: the caller's promise. The lock is held, and with `Alone` no other call changes
        // the target.
        unsafe {
            match guard {
                Guard::Alone => {
                    reduce::accumulate_exclusive(op, basic, at, origin, result, number);
                }
                _ => reduce::accumulate_locked(op, basic, at, origin, result, number),
            }
        }
        Ok(())
    };
    match place.window.is_exclusive(rank) {
        true if count > 1 => change(Guard::Alone),
        _ => locked(place, rank, count, change),
    }
}
