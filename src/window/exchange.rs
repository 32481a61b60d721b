//! How the ranks of a communicator agree on a new window: three barriers in the arena, no call of
//! the MPI underneath. What one rank cannot do, none does, and all return an error.
//!
//! 1. each writes its record: what it wants to expose, or why it cannot;
//! 2. rank 0 takes a slot and makes the data segment, and says where they are;
//! 3. each maps them and backs its own part with memory, and says whether that worked.
//!
//! | value     | `status`, after 1                       | `offered`, after 2 | `mapped`, after 3 |
//! |-----------|-----------------------------------------|--------------------|-------------------|
//! | 0         | wants the window                        | rank 0 has made it | has mapped it     |
//! | 1         | may pass memory of a GPU: must delegate |                    |                   |
//! | 2 + class | refuses with that error class           | rank 0 could not   | has failed so     |
//!
//! Three words, because a rank that is ahead writes the next one while others still read the last:
//! all must come to the same decision at each step, or they would wait in different barriers.

use super::arena::{Arena, Record};
use super::blocks::Descriptor;
use crate::error::{Class, Error, Result};
use crate::sys::segment::{self, Mapping, PAGE, Segment};
use std::sync::Arc;

/// What this rank wants to expose.
pub struct Wish {
    /// bytes
    pub bytes: u64,
    /// displacement unit in bytes
    pub disp_unit: u64,
    /// whether the parts of all ranks must follow each other without a gap
    pub contiguous: bool,
    /// its buffers may lie in the memory of a GPU
    pub gpu: bool,
}

/// What the ranks agreed on.
pub enum Outcome {
    /// a window in this slot, with the data mapped
    Made {
        /// the slot of its control blocks
        slot: u32,
        /// the data of all ranks
        data: Mapping,
        /// bytes of all ranks
        bytes: u64,
    },
    /// to leave it to the MPI underneath
    Delegate,
}

/// From so many bytes on rank 0 asks whether the node has them, before any rank takes its part.
const LARGE: u64 = 16 << 20;

const FINE: u64 = 0;
const GPU: u64 = 1;
const REFUSED: u64 = 2;

/// Agrees on a window. Collective.
pub fn agree(arena: &Arc<Arena>, turn: u64, wish: Result<Wish>) -> Result<Outcome> {
    let mut record = Record::default();
    match &wish {
        Ok(wish) => {
            (record.bytes, record.disp_unit) = (wish.bytes, wish.disp_unit);
            record.contiguous = u64::from(wish.contiguous);
            record.status = if wish.gpu { GPU } else { FINE };
        }
        Err(error) => record.status = REFUSED + error.class() as u64,
    }
    write(arena, turn, record);
    arena.barrier()?;
    let Some(plan) = plan(arena, turn, &wish)? else {
        // Nobody may write a record of the next turn but one before all have read these.
        return wish.map(|_| Outcome::Delegate);
    };
    let (made, new_chunk) = offer(arena, turn, record, &plan);
    arena.barrier()?;
    let answer = read(arena, turn, 0);
    let mapped = made.and_then(|()| map(arena, &answer, &plan));
    let status = mapped.as_ref().map_or_else(|e| REFUSED + e.class() as u64, |_| FINE);
    write_mapped(arena, turn, status);
    arena.barrier()?;
    drop(new_chunk);
    settle(arena, turn, answer, plan, mapped)
}

/// Where this rank's part goes.
struct Plan {
    descriptor: Descriptor,
    total: u64,
}

/// Reads what all want. `None`: the window is delegated.
fn plan(arena: &Arena, turn: u64, wish: &Result<Wish>) -> Result<Option<Plan>> {
    let wish = wish.as_ref().map_err(Error::clone)?;
    let (mut gpu, mut contiguous) = (false, false);
    for rank in 0..arena.size {
        let record = read(arena, turn, rank);
        if record.status >= REFUSED {
            return Err(refusal(rank, record.status));
        }
        gpu |= record.status == GPU;
        contiguous |= record.contiguous != 0;
    }
    let (mut offset, mut total) = (0, 0_u64);
    for rank in 0..arena.size {
        if rank == arena.rank {
            offset = total;
        }
        let bytes = read(arena, turn, rank).bytes;
        // What one rank counts on holds for all: they have to agree on where the parts are.
        let bytes = if contiguous { Some(bytes) } else { bytes.checked_next_multiple_of(PAGE) };
        total = bytes.and_then(|bytes| total.checked_add(bytes)).unwrap_or(u64::MAX);
    }
    let descriptor = Descriptor { offset, bytes: wish.bytes, disp_unit: wish.disp_unit };
    Ok((!gpu).then_some(Plan { descriptor, total }))
}

/// What rank 0 has made; the segments stay open until all have mapped them.
type Offer = (Result<()>, Option<(Segment, Option<Segment>)>);

/// Rank 0 makes the segments and tells their names; the others have nothing to do.
fn offer(arena: &Arena, turn: u64, mut record: Record, plan: &Plan) -> Offer {
    if arena.rank != 0 {
        return (Ok(()), None);
    }
    let mut make = || -> Result<(Segment, Option<Segment>)> {
        if plan.total >= LARGE && !segment::is_available(plan.total) {
            return Err(Error::NoMemory { bytes: plan.total });
        }
        let data = Segment::create(plan.total.min(i64::MAX as u64))?;
        record.data = data.name()?;
        let (slot, chunk) = arena.take_slot()?;
        record.slot = u64::from(slot);
        if let Some(chunk) = &chunk {
            record.chunk = chunk.name()?;
        }
        Ok((data, chunk))
    };
    match make() {
        Ok(segments) => {
            write(arena, turn, record);
            (Ok(()), Some(segments))
        }
        Err(error) => {
            record.offered = REFUSED + error.class() as u64;
            write(arena, turn, record);
            (Err(error), None)
        }
    }
}

/// Maps what rank 0 has offered, and backs this rank's part with memory.
fn map(arena: &Arc<Arena>, answer: &Record, plan: &Plan) -> Result<Mapping> {
    if answer.offered >= REFUSED {
        return Err(refusal(0, answer.offered));
    }
    if answer.chunk.bytes > 0 {
        arena.map_chunk(&answer.chunk)?;
    }
    let segment = Segment::open(&answer.data)?;
    segment.reserve(plan.descriptor.offset, plan.descriptor.bytes)?;
    let data = segment.map()?;
    arena.wait_until_left(answer.slot as u32)?;
    arena.blocks(answer.slot as u32).clear(plan.descriptor);
    Ok(data)
}

/// Either all have mapped it, or all give it up.
fn settle(
    arena: &Arena,
    turn: u64,
    answer: Record,
    plan: Plan,
    mapped: Result<Mapping>,
) -> Result<Outcome> {
    let slot = answer.slot as u32;
    let failed = (0..arena.size)
        .map(|rank| (rank, read(arena, turn, rank).mapped))
        .find(|(_, status)| *status >= REFUSED);
    let error = match (mapped, failed) {
        (Ok(data), None) => return Ok(Outcome::Made { slot, data, bytes: plan.total }),
        (Ok(_), Some((rank, status))) => refusal(rank, status),
        (Err(error), _) => error,
    };
    if answer.offered < REFUSED {
        arena.give_up(slot, answer.chunk.bytes > 0);
    }
    Err(error)
}

/// The error of a rank whose partner refused.
fn refusal(rank: u32, status: u64) -> Error {
    let class = Class::from_number((status - REFUSED) as u8);
    Error::Argument(class, "not possible on rank", i64::from(rank))
}

fn write(arena: &Arena, turn: u64, record: Record) {
    // SAFETY: each rank writes its own record; what others may still read of it does not change.
    unsafe { arena.record(turn, arena.rank).write_volatile(record) };
}

fn write_mapped(arena: &Arena, turn: u64, status: u64) {
    // SAFETY: as for `write`; only this field changes, and nobody reads it before the next barrier.
    unsafe { (&raw mut (*arena.record(turn, arena.rank)).mapped).write_volatile(status) };
}

fn read(arena: &Arena, turn: u64, rank: u32) -> Record {
    // SAFETY: written before a barrier that this rank has passed.
    unsafe { arena.record(turn, rank).read_volatile() }
}
