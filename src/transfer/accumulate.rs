//! The accumulate calls: MPI_Accumulate and MPI_Get_accumulate (MPI-4.1 §12.3.4); those of one
//! element are in `single`. All take part in one protocol, which the type and the address of an
//! element choose, never the call: see `datatype::reduce`.
//!
//! A call on several elements is atomic as a whole: it holds the target's accumulate lock from its
//! begin to its end, and a call on a single element reads that lock (`epoch::lock::atomic_calls`).
//!
//! They are ordered as the standard's default demands (§12.7.2): each is done when it returns, and
//! atomic instructions of one process on one location keep their order, or the transport keeps it.

use super::acc::guard_of_several;
use super::acc_call::{AccCall, accumulate_shaped, on_mapped, operation};
use super::acc_run::Guard;
use super::target_acc::{one_word, send_word};
use super::{Accumulation, Buffer, OpenTarget, Place, TargetBuffer};
use crate::datatype::basic::Basic;
use crate::datatype::reduce::Op;
use crate::datatype::type_map::Block;
use crate::error::{Error, Result};
use crate::fabric::location::{Location, Unmapped};
use crate::messages;
use crate::mpi::table::{HandleTable, Predefined};
use crate::window::address::{By, Reach};

/// MPI_Accumulate and MPI_Get_accumulate.
///
/// # Safety
/// The origin describes memory that may be read, the result memory that may be written.
#[inline(never)]
pub unsafe fn accumulate(place: Place<'_>, call: &Accumulation) -> Result<()> {
    let access = place.access_record(call.target.rank)?;
    // `accumulate_any` reports an unknown operation.
    if let Some((rank, record)) = access
        && place.memory.is_none()
        && let Some(&op) = place.host.tables.ops.find(call.op)
        && op != Op::NoOp
        && let Some(elements) = elements_of(&place, call)
    {
        let Elements { basic, width, count, bytes, origin, result } = elements;
        // Made where a function needs it, so that its parts are in registers.
        let to = || OpenTarget { place: &place, rank, record };
        let reach = Reach { first: 0, bytes };
        match place.node.at_once((rank, record), (call.target.disp, reach)) {
            Some(Location::Mapped(at)) => {
                let guard = if count == 1 { Guard::Single } else { guard_of_several(to(), count) };
                // SAFETY: `at_once` checked the window's side, the caller guarantees the buffers.
                return unsafe { on_mapped(to(), (op, basic), guard, at, (origin, result), count) };
            }
            Some(Location::Unmapped(Unmapped::Distant(there))) if count == 1 => {
                if let Some(way) = one_word(there, (op, basic), width) {
                    // SAFETY: as above.
                    return unsafe { send_word(to(), way, there.at, (origin, result)) };
                }
            }
            _ => {}
        }
    }
    // SAFETY: the caller guarantees the buffers.
    unsafe { accumulate_any(&place, call) }
}

/// Carries out an accumulate on any elements, wherever they are.
///
/// # Safety
/// As for [`accumulate`].
#[inline(never)]
unsafe fn accumulate_any(place: &Place<'_>, call: &Accumulation) -> Result<()> {
    let op = operation(*place, call.op)?;
    let origin = (op != Op::NoOp).then_some(call.origin);
    if op == Op::NoOp && call.result.is_none() {
        return Err(Error::Wrong(&messages::OP_WITHOUT_RESULT));
    }
    let Some(to) = place.access(call.target.rank)? else {
        return place.on_proc_null(origin.into_iter().chain(call.result), call.target);
    };
    let Some(elements) = elements_of(place, call).filter(|_| origin.is_some()) else {
        // SAFETY: guaranteed by the caller.
        return unsafe { accumulate_shaped(to, (origin, call.result), call.target, op) };
    };
    let Elements { basic, count, bytes, origin, result, .. } = elements;
    let (disp, reach) = (call.target.disp, Reach { first: 0, bytes });
    let guard = if count == 1 { Guard::Single } else { guard_of_several(to, count) };
    let work = AccCall { to, disp, op, zero: None, guard, elements: count };
    to.at((disp, reach), By::All, move |location| {
        // SAFETY: `at` checked the window's side, the caller guarantees the buffers.
        unsafe { work.on_elements(basic, (location, reach), (origin, result), count) }
    })
}

/// Elements of one predefined type in all buffers.
struct Elements {
    basic: Basic,
    /// bytes of an element, or 0 if it has padding
    width: u64,
    count: u64,
    /// bytes from the first element to the end of the last
    bytes: u64,
    origin: *const u8,
    result: Option<*mut u8>,
}

/// Returns the elements of an accumulate whose buffers have as many elements of one predefined type
/// as the target, at least one. Returns `None` for all others, wrong arguments included.
#[inline(always)]
fn elements_of(place: &Place<'_>, call: &Accumulation) -> Option<Elements> {
    let Accumulation { origin, result, target, .. } = call;
    let types = &place.host.tables.types;
    let known = types.find(target.datatype)?;
    if target.count <= 0 || !is_such(origin, (target, known.basic), types) {
        return None;
    }
    if let Some(result) = result
        && !is_such(result, (target, known.basic), types)
    {
        return None;
    }
    let (basic, count) = (known.basic, target.count.cast_unsigned());
    let (bytes, width) = match known.dense_size {
        0 => (i64::try_from(Block { offset: 0, basic, count }.end()).ok()?, 0),
        width => (target.count.checked_mul(width.into())?, width.into()),
    };
    let (bytes, origin) = (bytes.cast_unsigned(), origin.address.cast_const());
    let result = result.map(|result| result.address);
    Some(Elements { basic, width, count, bytes, origin, result })
}

/// Whether a buffer has as many elements as the target, of the same predefined type.
#[inline(always)]
fn is_such(
    buffer: &Buffer,
    (target, basic): (&TargetBuffer, Basic),
    types: &HandleTable<Predefined>,
) -> bool {
    let same = || types.find(buffer.datatype).is_some_and(|other| other.basic == basic);
    let given = buffer.count == target.count && !buffer.address.is_null();
    given && (buffer.datatype == target.datatype || same())
}
