//! Memory at one address in all processes of a window (info key `fompi_symmetric`). Each process
//! maps its own part of an allocated window a second time, at an address that is free in all of
//! them; the views of other processes' parts stay where they are. On paper, that costs two
//! reductions of the host MPI, and two more for each address that one of the processes uses
//! otherwise.

use crate::error::Result;
use crate::mpi::Host;
use crate::mpi::comm::Comm;
use crate::mpi::hints::{Hints, SYMMETRIC};
use crate::number::Number;
use crate::sys::page_bytes;
use crate::sys::segment::Mapping;
use crate::window::LocalWindow;
use core::ops::Range;

/// Addresses that Linux gives neither to programs nor to libraries, also where processes have an
/// address space of 39 bits (AArch64).
const ADDRESSES: Range<usize> = match cfg!(target_arch = "x86_64") {
    true => 0x3000_0000_0000..0x5000_0000_0000,
    false => 0x20_0000_0000..0x40_0000_0000,
};

/// Windows begin at multiples of this.
const STEP: usize = 1 << 30;

/// The most addresses on which processes try to agree.
const TRIES: u32 = 32;

/// Lets the memory of a window begin at one address in all processes if its hints ask for that, and
/// reports in the hints whether it does. Collective if they ask.
pub fn place(host: &Host, comm: Comm, node: &mut LocalWindow, hints: &mut Hints) -> Result<()> {
    if hints.is_set(SYMMETRIC) {
        node.symmetric = map(host, comm, node.own_part())?;
        hints.report(SYMMETRIC, node.symmetric.is_some());
    }
    Ok(())
}

/// Maps the `bytes` bytes at `own`, the part of this process, at one address in all processes.
/// Returns the mapping; `None` if no address was free in all of them. A process without bytes has a
/// page without memory there. Collective.
fn map(host: &Host, comm: Comm, (own, bytes): (*mut u8, u64)) -> Result<Option<Mapping>> {
    let length = bytes.next_multiple_of(page_bytes()).to_usize();
    let reserve = |at| Mapping::reserve_at(at, length.max(page_bytes().to_usize()));
    let mut candidates = ADDRESSES;
    for _ in 0..TRIES {
        let first = candidates.clone().step_by(STEP).find_map(reserve);
        let proposed = first.as_ref().map_or(ADDRESSES.end, |range| range.base().addr());
        // The processes agree on the largest one.
        let at = comm.least(host, -proposed.to_u64().cast_signed())?.unsigned_abs().to_usize();
        if at >= ADDRESSES.end {
            break;
        }
        let range = if proposed == at { first } else { reserve(at) };
        let mapped = range.and_then(|range| mirrored(range, own, length));
        if comm.all(host, mapped.is_some())? {
            return Ok(mapped);
        }
        candidates.start = at + STEP;
    }
    Ok(None)
}

/// Maps the bytes at `own` a second time, in a reserved range. `None` if the system refuses.
fn mirrored(mut range: Mapping, own: *mut u8, length: usize) -> Option<Mapping> {
    if length > 0 {
        // SAFETY: the part of this process begins and ends with pages of its own.
        unsafe { range.mirror(own) }.ok()?;
    }
    Some(range)
}
