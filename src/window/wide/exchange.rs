//! How the ranks of a communicator over several nodes agree on a new window.
//!
//! 1. The ranks of each node agree among themselves, as on a window of their own
//!    ([`crate::window::exchange`]): the slot of their control blocks, the memory of an allocated
//!    window.
//! 2. What others must reach is registered with the device: by the leader the blocks and the common
//!    memory of its node, by each rank memory that it had before. *Collective:* whether all could.
//! 3. The leaders tell each other where it is, and each node shares the table of that.
//!    *Collective:* whether all have it.

use super::lists::Areas;
use super::said::{self, Said};
use super::shared::Shared;
use super::{Part, Place, Wide};
use crate::error::{Error, Result};
use crate::fabric::verbs::{Exposed, Remote};
use crate::mpi::Host;
use crate::sys::{limits, resident};
use crate::window::common::Common;
use crate::window::exchange::{self, Memory, Outcome, Wish};
use crate::window::known::Known;
use crate::window::report::Why;
use crate::window::{Flavor, Node};
use parking_lot::Mutex;
use std::sync::Arc;

/// What the ranks agreed on.
pub enum Agreed {
    /// a window
    Made(Box<Node>),
    /// to leave it to the MPI underneath
    Delegate(Why),
}

/// Why a rank cannot make the window.
enum No {
    Error(Error),
    Delegate(Why),
}

impl From<Error> for No {
    fn from(error: Error) -> No {
        match error {
            // Pages that are not there, or may not be written.
            Error::System { errno: libc::EFAULT, .. } => No::Delegate(Why::Unregistered),
            error => No::Error(error),
        }
    }
}

impl No {
    /// What a rank tells the others.
    fn said(&self, rank: u32) -> Said {
        match self {
            No::Error(error) => Said::error(rank, error),
            No::Delegate(why) => Said::why(*why),
        }
    }
}

/// What a rank has for the window.
struct Own {
    slot: u32,
    common: Option<Common>,
    /// where its node's part is, from the leader
    place: Place,
    exposed: Vec<Exposed>,
}

impl Own {
    fn give_up(self, wide: &Wide) {
        exchange::give_up(&wide.near, Ok(self.slot), true);
    }
}

/// Agrees on a window. Collective.
pub fn agree(
    host: &'static Host,
    wide: &Arc<Wide>,
    flavor: Flavor,
    wish: Result<Wish>,
) -> Result<Agreed> {
    if flavor == Flavor::Shared {
        return Ok(Agreed::Delegate(Why::Apart));
    }
    let own = near(wide, flavor, wish);
    let said = own.as_ref().err().map_or(Said::FINE, |no| no.said(wide.rank));
    let all = said.by_all(host, wide.comm)?;
    let own = match own {
        Ok(own) if all == Said::FINE => own,
        Ok(own) => {
            own.give_up(wide);
            return delegated(all);
        }
        Err(No::Error(error)) => return Err(error),
        Err(No::Delegate(_)) => return delegated(all),
    };
    let places = share(host, wide, own.place);
    let places = match said::all_could(host, wide.comm, wide.rank, places) {
        Ok(places) => places,
        Err(error) => {
            own.give_up(wide);
            return Err(error);
        }
    };
    // SAFETY: they go before the table does; the bits of a descriptor are all values.
    let found = unsafe { places.notes() };
    let part = Part {
        wide: wide.clone(),
        found,
        places,
        _exposed: own.exposed,
        targets: Known::default(),
        areas: Areas::default(),
        posted: Mutex::default(),
        started: Mutex::default(),
        unsettled: super::Unsettled::default(),
    };
    let node = Node::new(&wide.near, own.slot, flavor, own.common, host.threads(), Some(part));
    Ok(Agreed::Made(Box::new(node)))
}

/// What becomes of a window that some rank cannot make: an error, or the MPI underneath.
fn delegated(all: Said) -> Result<Agreed> {
    all.verdict().map(|why| Agreed::Delegate(why.unwrap_or(Why::NoRoad)))
}

/// Steps 1 and 2 for this rank.
fn near(wide: &Arc<Wide>, flavor: Flavor, wish: Result<Wish>) -> core::result::Result<Own, No> {
    let memory = wish.as_ref().ok().map(|wish| wish.memory);
    let (slot, common) = match exchange::agree(&wide.near, flavor, wish) {
        Ok(Outcome::Made { slot, common }) => (slot, common),
        Ok(Outcome::Delegate(why)) => return Err(No::Delegate(why)),
        // Ranks of this node have numbers of their own among themselves.
        Err(Error::Refused { rank, class }) => {
            return Err(No::Error(Error::Refused { rank: wide.rank_of(rank), class }));
        }
        Err(error) => return Err(No::Error(error)),
    };
    let mut own = Own { slot, common, place: Place::default(), exposed: Vec::new() };
    match expose(wide, &mut own, memory) {
        Ok(()) => Ok(own),
        Err(no) => {
            own.give_up(wide);
            Err(no)
        }
    }
}

/// Registers what others must reach.
fn expose(wide: &Wide, own: &mut Own, memory: Option<Memory>) -> core::result::Result<(), No> {
    if let Some(Memory::Expose { address, bytes }) = memory {
        let fits = has_memory(wide, own.slot, (address, bytes));
        // All ranks of the node ask before any takes.
        if !wide.near.comm.all(Host::get(), fits)? {
            return Err(No::Delegate(Why::TooLarge));
        }
    }
    if wide.near.rank == 0 {
        own.place.blocks = wide.remote_slot(own.slot)?;
        if let Some(common) = own.common.as_ref().filter(|common| common.bytes() > 0) {
            let exposed = wide.nic.expose(common.base(), common.bytes())?;
            own.place.data = exposed.remote();
            own.exposed.push(exposed);
        }
    }
    match memory {
        Some(Memory::Expose { address, bytes }) => Ok(expose_own(wide, own, (address, bytes))?),
        Some(Memory::Later) => Ok(expose_own(wide, own, (0, 0))?),
        Some(Memory::Allocate { .. }) | None => Ok(()),
    }
}

/// From so many bytes on a node is asked whether it has the memory.
const LARGE: u64 = 256 << 20;

/// Whether this node has the memory that all of its ranks expose in the slot: the device keeps it
/// in place, so that what nobody has touched yet is taken now. The other ranks are taken to have
/// touched as much of theirs as this one.
fn has_memory(wide: &Wide, slot: u32, (address, bytes): (u64, u64)) -> bool {
    let blocks = wide.near.blocks(slot);
    let exposed = |rank| blocks.descriptor(rank).exposed;
    let all = (0..wide.near.size).map(exposed).fold(0, u64::saturating_add);
    if bytes == 0 || all < LARGE {
        return true;
    }
    let missing = u128::from(resident::missing(address, bytes)) * u128::from(all);
    limits::is_available(u64::try_from(missing / u128::from(bytes)).unwrap_or(u64::MAX))
}

/// Registers memory that this rank had before, and its control words with it: all that others do
/// with such a rank goes through one queue pair to it, so that it stays in order.
fn expose_own(wide: &Wide, own: &mut Own, (address, bytes): (u64, u64)) -> Result<()> {
    let blocks = wide.near.blocks(own.slot);
    let words = wide.nic.expose(blocks.own_start(), wide.near.stride as u64)?;
    let mut descriptor = *blocks.descriptor(wide.near.rank);
    descriptor.words = words.remote();
    own.exposed.push(words);
    if bytes > 0 {
        let base = core::ptr::with_exposed_provenance_mut(address as usize);
        let exposed = wide.nic.expose(base, bytes)?;
        descriptor.remote = exposed.remote();
        own.exposed.push(exposed);
    }
    blocks.describe(descriptor);
    wide.near.process(wide.near.rank).set_contact(&wide.nic.contact()?);
    Ok(())
}

/// Tells all nodes where the parts of all are.
fn share(host: &Host, wide: &Wide, place: Place) -> Result<Shared<Place>> {
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
