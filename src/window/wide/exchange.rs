//! Agreement of the ranks of a communicator over several nodes on a new window.
//!
//! 1. The ranks of each node agree among themselves, as for a window on one node
//!    ([`crate::window::create::agreement`]), on the slot of their control blocks and the memory of
//!    an allocated window.
//! 2. Memory that ranks of other nodes must reach is registered with the device: the leader
//!    registers the blocks and the common memory of its node, each rank registers its own memory of
//!    a created window. *Collective:* the outcome: whether all ranks have succeeded.
//! 3. The leaders exchange the addresses of that memory, and each node shares the table of them.
//!    *Collective:* the outcome: whether all ranks have the table.

use super::post_lists::Areas;
use super::{Place, WideWindow};
use crate::arena::control_blocks::ControlBlocks;
use crate::arena::wide::WideArena;
use crate::arena::wide::shared::Shared;
use crate::epoch::fence::OpeningFence;
use crate::epoch::lock::asked::AskedLocks;
use crate::epoch::lock::unconfirmed_targets::UnconfirmedTargets;
use crate::error::{Error, Result};
use crate::fabric::net::Exposed;
use crate::fabric::remote::{Addressed, Remote, Transport};
use crate::memory::own_ranges::OwnRange;
use crate::memory::window_memory::Common;
use crate::mpi::Host;
use crate::number::Number;
use crate::rank_numbers::{Rank, RankOnNode, Slot};
use crate::report::collective_outcome::{self, StepOutcome};
use crate::report::{self, Why};
use crate::sync::AtomicU32;
use crate::sys::{memory_limits, resident};
use crate::util::known::Known;
use crate::window::create::agreement::{self, Memory, Outcome, OwnRequest};
use crate::window::{Flavor, LocalWindow};
use parking_lot::Mutex;
use std::sync::Arc;

/// The agreement of the ranks on a new window.
pub enum Agreed {
    /// the window
    Made(Box<LocalWindow>),
    /// the window is delegated to the host MPI
    Delegate(Why),
}

/// The reason why a rank cannot make the window.
enum Refusal {
    Error(Error),
    Delegate(Why),
}

impl From<Error> for Refusal {
    fn from(error: Error) -> Refusal {
        match error {
            // The pages are not mapped, or not writable.
            Error::System { errno: libc::EFAULT, .. } => Refusal::Delegate(Why::Unregistered),
            Error::NoListener(_) => Refusal::Delegate(Why::NoListener),
            error => Refusal::Error(error),
        }
    }
}

impl Refusal {
    /// Returns the contribution of a rank to the outcome.
    fn contribution(&self, rank: Rank) -> StepOutcome {
        match self {
            Refusal::Error(error) => StepOutcome::error(rank, error),
            Refusal::Delegate(why) => StepOutcome::why(*why),
        }
    }
}

/// The resources of this rank for the window.
struct Resources {
    slot: Slot,
    common: Option<Common>,
    range: Option<OwnRange>,
    /// the addresses of the node's memory; set by the leader
    place: Place,
    exposed: Vec<Exposed>,
}

impl Resources {
    fn give_up(self, wide: &WideArena) {
        agreement::give_up(&wide.near, Ok(self.slot), true);
    }
}

/// Agrees on a window. Collective.
pub fn agree(
    host: &'static Host,
    wide: &Arc<WideArena>,
    flavor: Flavor,
    own_request: Result<OwnRequest>,
) -> Result<Agreed> {
    if flavor == Flavor::Shared {
        return Ok(Agreed::Delegate(Why::Apart));
    }
    let own = prepare(wide, flavor, own_request);
    let mine =
        own.as_ref().err().map_or(StepOutcome::FINE, |refusal| refusal.contribution(wide.rank));
    let all = mine.of_all(host, wide.comm)?;
    let own = match own {
        Ok(own) if all == StepOutcome::FINE => own,
        Ok(own) => {
            own.give_up(wide);
            return delegated(all);
        }
        Err(Refusal::Error(error)) => return Err(error),
        Err(Refusal::Delegate(_)) => return delegated(all),
    };
    let places = share(host, wide, own.place);
    let places = match collective_outcome::all_succeeded(host, wide.comm, wide.rank, places) {
        Ok(places) => places,
        Err(error) => {
            own.give_up(wide);
            return Err(error);
        }
    };
    // SAFETY: `WideWindow` drops the notes before the table; every bit pattern is a descriptor.
    let found = unsafe { places.notes() };
    let part = WideWindow {
        wide: wide.clone(),
        handle: AtomicU32::new(0),
        found,
        places,
        _exposed: own.exposed,
        records: Known::default(),
        marked: Default::default(),
        opening: OpeningFence::default(),
        areas: Areas::default(),
        posted: Mutex::default(),
        started: Mutex::default(),
        unconfirmed: UnconfirmedTargets::default(),
        asked: AskedLocks::default(),
    };
    let mut node =
        LocalWindow::new(&wide.near, own.slot, flavor, own.common, host.threads(), Some(part));
    node.own_range = own.range;
    Ok(Agreed::Made(Box::new(node)))
}

/// Returns the outcome of a window that some rank cannot make: an error, or the host MPI.
fn delegated(all: StepOutcome) -> Result<Agreed> {
    all.outcome().map(|why| Agreed::Delegate(why.unwrap_or(Why::NoTransport)))
}

/// Does steps 1 and 2 for this rank.
fn prepare(
    wide: &Arc<WideArena>,
    flavor: Flavor,
    own_request: Result<OwnRequest>,
) -> core::result::Result<Resources, Refusal> {
    let memory = own_request.as_ref().ok().map(|own_request| own_request.memory);
    let (slot, common, range) = match agreement::agree(&wide.near, flavor, own_request) {
        Ok(Outcome::Made { slot, common, range }) => (slot, common, range),
        Ok(Outcome::Delegate(why)) => return Err(Refusal::Delegate(why)),
        Err(error) => return Err(Refusal::Error(error)),
    };
    let (place, exposed) = (Place::default(), Vec::new());
    let mut own = Resources { slot, common, range, place, exposed };
    match expose(wide, &mut own, memory) {
        Ok(()) => Ok(own),
        Err(refusal) => {
            own.give_up(wide);
            Err(refusal)
        }
    }
}

/// Registers the memory that ranks of other nodes must reach.
fn expose(
    wide: &WideArena,
    own: &mut Resources,
    memory: Option<Memory>,
) -> core::result::Result<(), Refusal> {
    if let Some(Memory::Expose { address, bytes }) = memory
        && wide.wire.keeps_in_place()
    {
        let fits = has_memory(wide, own.slot, (address, bytes));
        // All ranks of the node check the available memory before any rank registers.
        if !wide.near.comm.all(Host::get(), fits)? {
            return Err(Refusal::Delegate(Why::TooLarge));
        }
    }
    if wide.near.rank == RankOnNode::LEADER {
        own.place.blocks = wide.remote_slot(own.slot)?;
        if let Some(common) = own.common.as_ref().filter(|common| common.bytes() > 0) {
            let exposed = wide.wire.expose(common.base(), common.bytes())?;
            own.place.data = exposed.remote();
            own.exposed.push(exposed);
        }
        if let Some(Memory::Dynamic) = memory {
            own.place.data =
                ControlBlocks::of(&wide.near, own.slot).descriptor(wide.near.rank).remote;
        }
    }
    match memory {
        Some(Memory::Expose { address, bytes }) => Ok(expose_own(wide, own, (address, bytes))?),
        Some(Memory::Dynamic) => Ok(expose_own(wide, own, (0, 0))?),
        Some(Memory::Allocate { .. }) | None => Ok(()),
    }
}

/// Size of one node's share, in bytes, from which its available memory is checked.
const LARGE: u64 = 256 << 20;

/// Returns whether this node has the memory that all of its ranks expose in the slot. The device
/// pins the memory, so that pages which no process has touched yet are allocated at registration.
/// The estimate assumes that each other rank has touched the same fraction of its memory as this
/// rank.
fn has_memory(wide: &WideArena, slot: Slot, (address, bytes): (u64, u64)) -> bool {
    let blocks = ControlBlocks::of(&wide.near, slot);
    let exposed = |rank| blocks.descriptor(rank).exposed;
    let all = RankOnNode::all(wide.near.size).map(exposed).fold(0, u64::saturating_add);
    if bytes == 0 || all < LARGE {
        return true;
    }
    let missing = u128::from(resident::missing(address, bytes)) * u128::from(all);
    memory_limits::is_available(u64::try_from(missing / u128::from(bytes)).unwrap_or(u64::MAX))
}

/// Registers the memory that this rank had before the window, and its control words too: all
/// operations on such a rank go through one queue pair to it, which keeps them in order.
fn expose_own(wide: &WideArena, own: &mut Resources, (address, bytes): (u64, u64)) -> Result<()> {
    let blocks = ControlBlocks::of(&wide.near, own.slot);
    let words = wide.wire.expose(blocks.own_start(), wide.near.stride.to_u64())?;
    let mut descriptor = *blocks.descriptor(wide.near.rank);
    descriptor.words = words.remote();
    own.exposed.push(words);
    if bytes > 0 {
        let base = core::ptr::with_exposed_provenance_mut(address.to_usize());
        let exposed = wide.wire.expose_of_program(base, bytes)?;
        descriptor.remote = exposed.remote();
        own.exposed.push(exposed);
    }
    blocks.describe(descriptor);
    let contact = wide.wire.contact();
    let contact = contact.inspect_err(|error| report::own_cause(wide.rank, error))?;
    wide.near.process(wide.near.rank).set_contact(&contact);
    Ok(())
}

/// Shares the table of the addresses of all nodes' memory. Collective.
fn share(host: &Host, wide: &WideArena, place: Place) -> Result<Shared<Place>> {
    let items = wide.leaders.map(|leaders| {
        let Place { blocks, data } = place;
        let all = leaders.gather_all(host, &[blocks.at, blocks.key, data.at, data.key])?;
        Ok(all
            .iter()
            .map(|[block, block_key, data, data_key]| Place {
                blocks: Remote { at: *block, key: *block_key },
                data: Remote { at: *data, key: *data_key },
            })
            .collect())
    });
    Shared::make(host, wide.near.comm, wide.nodes, items)
}
