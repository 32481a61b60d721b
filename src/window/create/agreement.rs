//! Agreement of the ranks of a communicator on a new window, in the arena, by barriers, without a
//! call of the host MPI. If one rank fails, no rank creates the window, and all return an error.
//!
//! 1. Each rank prepares its block of the announced slot, and writes its request, or the reason why
//!    it cannot make the window, to its record. Rank 0 announces the slot of the next window.
//!    *Barrier.* A window over memory that its ranks have already is then complete.
//! 2. For an allocated window, rank 0 allocates the memory of all ranks and publishes its name.
//!    *Barrier.*
//! 3. Each rank checks that the memory of all ranks can fit on the node, maps it, clears or backs
//!    its own part, and writes whether it has succeeded. *Barrier.*
//!
//! If all ranks have kept the memory of the same earlier window, and it fits their requests, an
//! allocated window needs neither step 2 nor step 3 ([`Reuse`]).
//!
//! | value               | `status`, after 1     | `offered`, after 2    | `mapped`, after 3     |
//! |---------------------|-----------------------|-----------------------|-----------------------|
//! | 0                   | makes the window      | rank 0 has succeeded  | has succeeded         |
//! | flags               | see below             |                       |                       |
//! | [`REFUSED`] + class | has this error        | rank 0 has this error | has this error        |
//!
//! The words are separate, because a rank that is ahead writes the next one while others still read
//! the previous one: all ranks must come to the same decision at each step. A rank whose `status`
//! is more than the flag [`FOREIGN`], or whose `mapped` is not 0, also increments a failure counter
//! of the arena: ranks that see the counter unchanged need not read the records of all others.

use super::quiet::Arrival;
use super::reuse::{self, Reuse};
use crate::arena::barrier::barrier;
use crate::arena::control_blocks::ControlBlocks;
use crate::arena::descriptor::Descriptor;
use crate::arena::mapped_bytes::MappedBytes;
use crate::arena::{Announcement, Arena, Counter, Record};
use crate::config::Adopt;
use crate::error::{Class, Error, Result};
use crate::memory::heap;
use crate::memory::own_ranges::OwnRange;
use crate::memory::window_memory::{Common, LARGE, Offer};
use crate::memory::window_memory_cache::{Keep, OwnPart, Share};
use crate::number::Number;
use crate::rank_numbers::{RankOnNode, Slot};
use crate::report::Why;
use crate::sys::memory_limits::{self, Limits};
use crate::window::{Flavor, handles::packed};
use std::sync::Arc;

/// The request of this rank for a new window.
pub struct OwnRequest {
    /// displacement unit in bytes
    pub disp_unit: u64,
    /// the memory that the rank exposes
    pub memory: Memory,
    /// whether its memory, or a buffer that the CPU cannot copy, may be in a GPU
    pub gpu: bool,
    /// whether its pages may move into the heap
    pub adopt: Adopt,
}

/// The memory that a rank exposes. All ranks of a window name the same kind.
#[derive(Clone, Copy)]
pub enum Memory {
    /// new memory
    Allocate {
        /// bytes
        bytes: u64,
        /// alignment in bytes, whole pages
        alignment: u64,
        /// whether the memory of each rank follows that of the rank before without a gap; then only
        /// the memory of rank 0 is aligned
        contiguous: bool,
    },
    /// memory that the rank has already
    Expose {
        /// its address
        address: u64,
        /// its bytes
        bytes: u64,
    },
    /// memory that will be attached to a dynamic window
    Dynamic,
}

impl Memory {
    /// Returns the address and the bytes of memory that the rank has already.
    pub fn existing(self) -> Option<(u64, u64)> {
        match self {
            Memory::Expose { address, bytes } => Some((address, bytes)),
            Memory::Allocate { .. } | Memory::Dynamic => None,
        }
    }
}

/// The agreement of the ranks on a new window.
#[allow(clippy::large_enum_variant)] // it lives on the stack, for one call
pub enum Outcome {
    /// a window
    Made {
        /// the slot of its control blocks
        slot: Slot,
        /// the memory of an allocated window
        common: Option<Common>,
        /// the memory of this rank that a created window exposes
        range: Option<OwnRange>,
    },
    /// the window is delegated to the host MPI
    Delegate(Why),
}

/// Flag in an alignment, which is whole pages: no gaps between the ranks.
const CONTIGUOUS: u64 = 1;

/// Value of a status: no flag.
const FINE: u64 = 0;
/// Flag: the rank exposes memory of a GPU, or may pass buffers there that cannot be copied.
const GPU: u64 = 1;
/// Flag: the rank may not access the memory of other processes.
const DENIED: u64 = 2;
/// Flag: other ranks must access memory of the rank that is not shared.
const FOREIGN: u64 = 4;
/// Flag: the rank has no file descriptor left for the slot.
const NO_DESCRIPTOR: u64 = 8;
/// Flag: the slot could not be made or mapped when it was announced.
const AGAIN: u64 = 16;
const REFUSED: u64 = 32;

/// The decision on a window after step 1.
enum Decision {
    Make,
    Delegate(Why),
    /// the ranks try again with the slot that rank 0 has announced meanwhile
    Again,
}

/// Agrees on a window. Collective.
pub fn agree(
    arena: &Arc<Arena>,
    flavor: Flavor,
    own_request: Result<OwnRequest>,
) -> Result<Outcome> {
    let (call, is_foreign) = (flavor.call(), matches!(flavor, Flavor::Create | Flavor::Dynamic));
    // All processes must have allowed it before one tries.
    if is_foreign && !arena.knows_permission() {
        arena.permit();
        barrier(arena, call)?;
        arena.find_permission();
    }
    // Memory or a descriptor that was missing when the slot was announced may be available now.
    let outcome = match attempt((arena, call), &own_request, is_foreign, AGAIN)? {
        None => attempt((arena, call), &own_request, is_foreign, FINE)?,
        made => made,
    };
    Ok(outcome.expect("no rank sets AGAIN the second time"))
}

/// Tries to agree on a window with the announced slot; `None`: to be tried again. `is_foreign`:
/// whether the window may need access to memory that is not shared. `no_slot`: the status of a rank
/// without a slot; [`FINE`]: its error is the status.
fn attempt(
    (arena, call): (&Arc<Arena>, &'static str),
    own_request: &Result<OwnRequest>,
    is_foreign: bool,
    no_slot: u64,
) -> Result<Option<Outcome>> {
    let turn = arena.next_turn();
    let slot = arena.slots.next();
    let mut again = own_request.as_ref().ok().and_then(|own_request| kept(arena, own_request));
    let mut range = None;
    let ready = slot.clone().and_then(|slot| {
        let own_request = own_request.as_ref().map_err(Error::clone)?;
        range = enter(arena, slot, own_request, again.as_ref())?;
        Ok((slot, own_request))
    });
    let mut record = request(arena, &ready, is_foreign);
    record.kept = again.as_ref().map_or(0, Reuse::word);
    if slot.is_err() && own_request.is_ok() && no_slot != FINE {
        record.status = no_slot;
    }
    if arena.rank == RankOnNode::LEADER {
        record.announcement = arena.slots.announce();
    }
    write(arena, turn, record);
    if record.status & !FOREIGN != FINE {
        arena.raise(Counter::failed(turn, 0));
    }
    let arrival = Arrival::begin(arena, range.as_ref().is_some_and(OwnRange::wants_quiet));
    barrier(arena, call)?;
    let quiet = arrival.quiet();
    arena.slots.learn(&announcement(arena, turn));
    let decision = match arena.is_raised(Counter::failed(turn, 0)) {
        true => decide(arena, turn),
        false => Ok(Decision::Make),
    };
    let entered = ready.is_ok();
    let outcome = match (ready, decision) {
        (Ok((slot, own_request)), Ok(Decision::Make)) => match own_request.memory {
            Memory::Allocate { .. } => {
                let common = common((arena, call), turn, (slot, own_request, record), again.take());
                common.map(|common| Some(Outcome::Made { slot, common: Some(common), range: None }))
            }
            _ => quiet
                .map_or(Ok(()), |quiet| quiet.adopt(slot, call, range.as_mut()))
                .map(|()| Some(Outcome::Made { slot, common: None, range: range.take() })),
        },
        (_, Ok(Decision::Delegate(why))) => Ok(Some(Outcome::Delegate(why))),
        (_, Ok(Decision::Again)) => Ok(None),
        (Err(error), _) | (_, Err(error)) => Err(error),
    };
    if !matches!(outcome, Ok(Some(Outcome::Made { .. }))) {
        give_up(arena, slot, entered);
    }
    again.into_iter().for_each(|again| again.give_up(arena));
    outcome
}

/// Returns the kept memory, if it fits this rank's request.
fn kept(arena: &Arena, own_request: &OwnRequest) -> Option<Reuse> {
    let Memory::Allocate { bytes, alignment, contiguous } = own_request.memory else { return None };
    Reuse::of(arena, bytes, alignment | u64::from(contiguous))
}

/// Enters the announced slot, and prepares this rank's block. `again`: memory that the window may
/// use again.
fn enter(
    arena: &Arc<Arena>,
    slot: Slot,
    own_request: &OwnRequest,
    again: Option<&Reuse>,
) -> Result<Option<OwnRange>> {
    arena.slots.enter(slot, || arena.check_dead())?;
    let blocks = ControlBlocks::of(arena, slot);
    blocks.clear();
    match own_request.memory {
        Memory::Allocate { .. } => {
            again.inspect(|again| again.describe(&blocks, own_request.disp_unit));
        }
        Memory::Expose { address, bytes } => {
            let place = heap::find(address, bytes);
            blocks.describe(Descriptor::owned(address, bytes, own_request.disp_unit));
            return Ok(match place {
                None => own_range(arena, own_request.adopt, (address, bytes)),
                Some(place) => {
                    blocks.set_mapped_bytes(MappedBytes::all(bytes, place));
                    None
                }
            });
        }
        Memory::Dynamic => blocks.describe(packed::described(own_request.disp_unit, arena.rank)?),
    }
    Ok(None)
}

/// Begins the range of a created window. Its pages may be adopted if another process of this node
/// may profit.
fn own_range(arena: &Arena, adopt: Adopt, (address, bytes): (u64, u64)) -> Option<OwnRange> {
    match arena.size > 1 {
        true => OwnRange::with_consent(address, bytes, adopt),
        false => OwnRange::new(address, bytes),
    }
}

/// Returns the record of this rank for step 1.
fn request(arena: &Arc<Arena>, ready: &Result<(Slot, &OwnRequest)>, is_foreign: bool) -> Record {
    let (slot, own_request) = match ready {
        Ok((slot, own_request)) => (*slot, own_request),
        // For memory that the ranks have already, the host MPI needs no descriptor.
        Err(error) if is_foreign && error.is_short_of_descriptors() => {
            return Record { status: NO_DESCRIPTOR, ..Record::default() };
        }
        Err(error) => {
            return Record { status: REFUSED + error.class() as u64, ..Record::default() };
        }
    };
    let mut record = Record::default();
    let foreign = match own_request.memory {
        Memory::Allocate { bytes, alignment, contiguous } => {
            (record.bytes, record.alignment) = (bytes, alignment | u64::from(contiguous));
            false
        }
        Memory::Expose { bytes, .. } => {
            let blocks = ControlBlocks::of(arena, slot);
            bytes > 0 && !blocks.mapped_bytes(arena.rank).maps(0, bytes)
        }
        Memory::Dynamic => true,
    };
    let flag = |flag: u64, on: bool| if on { flag } else { FINE };
    record.status = flag(GPU, own_request.gpu)
        | flag(DENIED, is_foreign && !arena.is_permitted())
        | flag(FOREIGN, foreign && arena.size > 1);
    record
}

/// Returns the decision on a window for which some rank has a status other than [`FINE`].
fn decide(arena: &Arena, turn: u64) -> Result<Decision> {
    let mut flags = FINE;
    for rank in RankOnNode::all(arena.size) {
        let status = read(arena, turn, rank).status;
        if status >= REFUSED {
            return Err(refusal(arena, rank, status));
        }
        flags |= status;
    }
    Ok(match flags {
        flags if flags & GPU != 0 => Decision::Delegate(Why::Gpu),
        flags if flags & AGAIN != 0 => Decision::Again,
        flags if flags & NO_DESCRIPTOR != 0 => Decision::Delegate(Why::Descriptors),
        flags if flags & (DENIED | FOREIGN) == DENIED | FOREIGN => Decision::Delegate(Why::Denied),
        _ => Decision::Make,
    })
}

/// Leaves and frees the slot of a window that is not made.
pub(in crate::window) fn give_up(arena: &Arena, slot: Result<Slot>, entered: bool) {
    let Ok(slot) = slot else { return };
    if entered {
        arena.slots.leave(slot);
    }
    if arena.rank == RankOnNode::LEADER {
        arena.slots.free(slot);
    }
}

/// The place of this rank's part in the memory of an allocated window.
struct Plan {
    offset: u64,
    total: u64,
    alignment: u64,
}

/// Returns the memory of an allocated window: that of an earlier one, if all ranks have kept it, or
/// new memory.
fn common(
    (arena, call): (&Arc<Arena>, &'static str),
    turn: u64,
    (slot, own_request, record): (Slot, &OwnRequest, Record),
    again: Option<Reuse>,
) -> Result<Common> {
    match again.filter(|again| again.is_agreed(arena, turn)) {
        Some(again) => again.finish(arena, turn, call),
        None => allocate((arena, call), turn, (slot, own_request, record)),
    }
}

/// Does steps 2 and 3.
fn allocate(
    (arena, call): (&Arc<Arena>, &'static str),
    turn: u64,
    (slot, own_request, mut record): (Slot, &OwnRequest, Record),
) -> Result<Common> {
    let plan = plan(arena, turn);
    let (mut offer, mut share) = (None, None);
    if arena.rank == RankOnNode::LEADER {
        let made = Offer::of(plan.total, plan.alignment, arena.size, is_backed(arena));
        match made.and_then(|made| Ok((made.place()?, made))) {
            Ok((place, made)) => {
                (record.data, record.dirty) = (place, u64::from(made.is_dirty()));
                share = share_of(arena, plan.total);
                record.keeps = share.as_ref().map_or(0, |_| reuse::oldest(arena, turn));
                offer = Some(made);
            }
            Err(error) => record.offered = REFUSED + error.class() as u64,
        }
        write(arena, turn, record);
    }
    barrier(arena, call)?;
    let answer = read(arena, turn, RankOnNode::LEADER);
    let fits = fits(arena, turn, plan.total);
    let mapped =
        fits.and_then(|()| part(arena, slot, own_request, record.bytes, &plan, &answer, offer));
    if let Err(error) = &mapped {
        write_mapped(arena, turn, REFUSED + error.class() as u64);
        arena.raise(Counter::failed(turn, 1));
    }
    barrier(arena, call)?;
    let has_failed = arena.is_raised(Counter::failed(turn, 1));
    let mut common = mapped?;
    if has_failed {
        let mapped = |rank| (rank, read(arena, turn, rank).mapped);
        let failed = RankOnNode::all(arena.size).map(mapped).find(|(_, status)| *status >= REFUSED);
        let (rank, status) = failed.unwrap_or((RankOnNode::LEADER, REFUSED + Class::Intern as u64));
        return Err(refusal(arena, rank, status));
    }
    let part = OwnPart { bytes: record.bytes, alignment: record.alignment, offset: plan.offset };
    let keep = (answer.keeps != 0).then(|| {
        reuse::forget(arena, answer.keeps);
        Keep::new(turn, part, share)
    });
    common.all_have_it(keep, arena.rank == RankOnNode::LEADER);
    Ok(common)
}

/// Returns the share of kept memory for a new window; `None`: its memory is not kept. Over several
/// nodes a device has registered it, and where pages are backed at creation they are counted.
fn share_of(arena: &Arena, total: u64) -> Option<Share> {
    let may = arena.is_whole() && !is_backed(arena);
    may.then(|| reuse::share_of(arena, total)).flatten()
}

/// Returns the place of this rank's part. A rank that requests contiguous memory, or an alignment,
/// gets it for all ranks: they must agree on the places of all parts.
fn plan(arena: &Arena, turn: u64) -> Plan {
    let records = || RankOnNode::all(arena.size).map(|rank| read(arena, turn, rank));
    let contiguous = records().any(|record| record.alignment & CONTIGUOUS != 0);
    let alignment = records().map(|record| record.alignment & !CONTIGUOUS).max().unwrap_or(1);
    let step = if contiguous { 1 } else { alignment };
    let (mut offset, mut total) = (0, 0_u64);
    for (rank, record) in RankOnNode::all(arena.size).zip(records()) {
        if rank == arena.rank {
            offset = total;
        }
        let bytes = record.bytes.checked_next_multiple_of(step);
        total = bytes.and_then(|bytes| total.checked_add(bytes)).unwrap_or(u64::MAX);
    }
    Plan { offset, total, alignment }
}

/// Returns whether memory is backed by pages at creation: an RDMA device or the kernel's policy
/// requires that.
fn is_backed(arena: &Arena) -> bool {
    arena.keeps_in_place() || memory_limits::are_strict()
}

/// Fails if the memory of all ranks is more than the node has, or if the memory of the ranks in a
/// control group of this rank is more than that group allows.
fn fits(arena: &Arena, turn: u64, total: u64) -> Result<()> {
    if total < LARGE || memory_limits::fits(total) {
        return Ok(());
    }
    let (own, limits) = (read(arena, turn, arena.rank).bytes, Limits::now());
    if total > limits.node {
        let (limit, of) = (limits.node, memory_limits::NODE);
        return Err(Error::TooMuch { own, all: total, limit, of });
    }
    for limit in limits.groups {
        let is_in = |rank: &RankOnNode| arena.pid_of(*rank).is_some_and(|pid| limit.holds_for(pid));
        let wanted =
            RankOnNode::all(arena.size).filter(is_in).map(|rank| read(arena, turn, rank).bytes);
        let bytes = wanted.fold(0, u64::saturating_add);
        if bytes > limit.bytes {
            return Err(Error::TooMuch {
                own,
                all: bytes,
                limit: limit.bytes,
                of: memory_limits::GROUP,
            });
        }
    }
    Ok(())
}

/// Maps the memory that rank 0 has allocated, and clears or backs this rank's part.
fn part(
    arena: &Arc<Arena>,
    slot: Slot,
    own_request: &OwnRequest,
    bytes: u64,
    plan: &Plan,
    answer: &Record,
    offer: Option<Offer>,
) -> Result<Common> {
    if answer.offered >= REFUSED {
        return Err(refusal(arena, RankOnNode::LEADER, answer.offered));
    }
    let state = (answer.dirty != 0, is_backed(arena));
    let mine = (plan.offset, bytes);
    let shape = (plan.total, plan.alignment);
    let common = Common::map(&answer.data, shape, arena.size, mine, state, offer)?;
    let address = common.base().addr().to_u64() + plan.offset;
    let descriptor = Descriptor::common(plan.offset, address, bytes, own_request.disp_unit);
    ControlBlocks::of(arena, slot).describe(descriptor);
    Ok(common)
}

/// Returns the error for a window that `rank` has refused.
fn refusal(arena: &Arena, rank: RankOnNode, status: u64) -> Error {
    let rank = arena.name_of(rank);
    Error::Refused { rank, class: Class::from_number((status - REFUSED).low_u8()) }
}

fn write(arena: &Arena, turn: u64, record: Record) {
    // SAFETY: a rank writes only its own record; the fields that other ranks may still read do not
    // change.
    unsafe { arena.record(turn, arena.rank).write_volatile(record) };
}

fn write_mapped(arena: &Arena, turn: u64, status: u64) {
    // SAFETY: as for `write`; only this field changes, and no rank reads it before the next
    // barrier.
    unsafe { (&raw mut (*arena.record(turn, arena.rank)).mapped).write_volatile(status) };
}

/// Returns the slot of the next window.
fn announcement(arena: &Arena, turn: u64) -> Announcement {
    let record = arena.record(turn, RankOnNode::LEADER);
    // SAFETY: as for `read`; rank 0 writes the same announcement again in step 2.
    unsafe { (&raw const (*record).announcement).read_volatile() }
}

fn read(arena: &Arena, turn: u64, rank: RankOnNode) -> Record {
    // SAFETY: the record was written before a barrier that this rank has passed.
    unsafe { arena.record(turn, rank).read_volatile() }
}
