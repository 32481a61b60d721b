//! Windows over several nodes. A *wide* arena holds what the processes of a communicator on several
//! nodes know of each other. Each node has an arena of its own ([`super::arena`]). The *leader* of
//! a node is its lowest rank: it registers the node's control memory and the memory of the node's
//! windows with the RDMA device, one memory region each. A process that accesses memory of another
//! node uses a queue pair to the leader of that node, or to the owner of the memory where only the
//! owner can register it.
//!
//! Memory beyond that of the queue pairs in use: per node and communicator, a table of all nodes
//! (152 bytes each) and a table of the places of all ranks (8 bytes each); per node and window, a
//! table of all nodes (32 bytes each). A process keeps nothing per rank, except for the targets
//! that it has contacted ([`targets`]).

mod checks;
pub mod exchange;
mod locate;
mod make;
pub mod many_nodes;
mod no_device;
mod nodes;
mod notes;
pub mod post_lists;
mod shared;
pub mod targets;
mod transfers;
mod unconfirmed_accumulates;
pub mod word_locations;

use super::arena::Arena;
use super::control_blocks::ControlBlocks;
use super::descriptor::Descriptor;
use crate::epoch::exposure::{Posted, Started};
use crate::epoch::lock::unconfirmed_targets::UnconfirmedTargets;
use crate::error::Result;
use crate::fabric::layout;
use crate::fabric::net::{Contact, Exposed, Peer, Peers, Probe, Secret, Wire};
use crate::fabric::remote::{Addressed, Remote, Transport};
use crate::fabric::spin_or_sleep::SpinTime;
use crate::liveness::departures;
use crate::liveness::watch::Watch;
use crate::mpi::Host;
use crate::mpi::comm::{Comm, Group};
use crate::number::Number;
use crate::rank_numbers::{NodeNumber, Rank, RankOnNode, Slot};
use crate::util::known::Known;
pub use nodes::Need;
use notes::Notes;
#[cfg(fuzzing)]
pub use notes::wide_notes;
use parking_lot::Mutex;
use post_lists::Areas;
use shared::Shared;
use std::collections::BTreeMap;
use std::collections::btree_map::Entry;
use std::sync::{Arc, OnceLock};
use targets::WideRecord;

/// The wide arena: what the processes of a communicator over several nodes know of each other.
pub struct WideArena {
    /// internal duplicate of the user's communicator
    pub comm: Comm,
    /// the group of `comm`
    pub group: Group,
    /// the rank of this process
    pub rank: Rank,
    /// the number of ranks
    pub size: u32,
    /// the arena of this node
    pub near: Arc<Arena>,
    /// the number of this node
    pub node: NodeNumber,
    /// the number of nodes
    pub nodes: u32,
    /// the communicator of the leaders of all nodes; `None` on other ranks
    leaders: Option<Comm>,
    /// the device
    pub wire: &'static Wire,
    /// the secret that two processes show each other at first contact
    secret: Secret,
    /// what this node knows of each node
    infos: Shared<NodeInfo>,
    /// the contacts of ranks of other nodes that ranks of this node have read; declared before
    /// `members`, whose table precedes the root of these notes, and so dropped before it
    contacts: Notes<Contact>,
    /// the place of each rank
    members: Shared<Member>,
    /// on the leader: the chunks of the arena that are registered with the device
    chunks: Mutex<BTreeMap<u32, Exposed>>,
    /// whether all devices change words atomically with the processors of their nodes
    coherent: bool,
    /// whether all ranks report how long they waited (FOMPI_VERBOSE=2)
    report_waits: bool,
    /// whether it is for windows over memory of the program only, because ranks of one node may not
    /// copy each other's memory
    is_apart: bool,
    /// how long a waiting rank spins before it sleeps, if it sleeps
    spin: SpinTime,
    /// the processes that this one has contacted
    peers: Peers<Member>,
    /// the state of the failure checks of waiting ranks
    watch: Mutex<Watch<Probe>>,
    /// the node of the first process that is known to be lost
    lost_node: OnceLock<&'static str>,
}

/// What is known of a node.
#[repr(C)]
#[derive(Clone, Copy)]
struct NodeInfo {
    /// the contact of its leader
    contact: Contact,
    /// the first chunk of its arena
    first: Remote,
    /// bytes between the blocks of its ranks
    stride: u64,
}

/// The place of a rank.
#[repr(C)]
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct Member {
    /// the number of its node
    pub node: NodeNumber,
    /// the index of the rank among the ranks of its node
    pub index: RankOnNode,
}

/// Bytes of each block that hold words for ranks of other nodes.
const FAR_BYTES: usize =
    ((layout::WORDS_FAR + post_lists::AREA_WORDS) as usize * size_of::<u64>()).next_multiple_of(64);

impl WideArena {
    /// Returns the place of a rank of the communicator.
    #[inline]
    pub fn member(&self, rank: Rank) -> Member {
        self.members.at(rank.0)
    }

    /// Whether it is for windows over memory of the program only, because ranks of one node may not
    /// copy each other's memory.
    pub fn is_apart(&self) -> bool {
        self.is_apart
    }

    /// Returns what is known of a node.
    #[inline]
    fn info(&self, node: NodeNumber) -> NodeInfo {
        self.infos.at(node.0)
    }

    /// Returns the leader of a node.
    fn leader(&self, node: NodeNumber) -> Arc<Peer> {
        let leader = Member { node, index: RankOnNode::LEADER };
        self.peers.get(leader, || self.wire.connect(&(self.info(node).contact, self.secret)))
    }

    /// Returns the address by which other nodes reach a slot of this node's arena, and registers
    /// the slot's chunk if necessary. Only for the leader.
    fn remote_slot(&self, slot: Slot) -> Result<Remote> {
        let (chunk, base, bytes) = self.near.chunk_of(slot);
        let mut chunks = self.chunks.lock();
        if let Entry::Vacant(entry) = chunks.entry(chunk) {
            entry.insert(self.wire.expose(base, bytes)?);
        }
        let start = ControlBlocks::of(&self.near, slot).start().addr() - base.addr();
        Ok(chunks[&chunk].remote().offset(start.to_u64().cast_signed()))
    }
}

impl Drop for WideArena {
    fn drop(&mut self) {
        if !departures::begun() {
            let host = Host::get();
            self.group.free(host);
            self.comm.free(host);
            if let Some(leaders) = self.leaders {
                leaders.free(host);
            }
        }
    }
}

/// The part of a window that only windows over several nodes have.
pub struct WideWindow {
    /// the wide arena of the window's communicator
    pub wide: Arc<WideArena>,
    /// the descriptors of ranks of other nodes that ranks of this node have read; declared before
    /// `places`, whose table precedes the root of these notes, and so dropped before it
    found: Notes<Descriptor>,
    /// the addresses of each node's memory of the window
    places: Shared<Place>,
    /// the memory that this process has registered for the window
    _exposed: Vec<Exposed>,
    /// what this process knows of the ranks that it has accessed or held
    records: Known<Rank, WideRecord>,
    /// the areas of this rank's long lists of posts
    areas: Areas,
    /// the posts of this rank, for its exposure epochs
    pub posted: Mutex<Posted>,
    /// the posts that this rank has used up in its access epochs
    pub started: Mutex<Started>,
    /// unconfirmed accumulates of this rank
    unconfirmed: UnconfirmedTargets,
}

/// The addresses by which the device reaches a node's memory of a window.
#[repr(C)]
#[derive(Clone, Copy, Default)]
struct Place {
    /// the control blocks of its ranks
    blocks: Remote,
    /// the memory of an allocated window
    data: Remote,
}

impl WideWindow {
    /// Returns the addresses of a node's memory of the window.
    fn place(&self, node: NodeNumber) -> Place {
        self.places.at(node.0)
    }

    /// Returns the address at which ranks of other nodes find the control words of a rank.
    fn block(&self, member: Member) -> Remote {
        let stride = self.wide.info(member.node).stride;
        let at = self.place(member.node).blocks;
        at.offset((member.index.0.to_u64() * stride).cast_signed())
    }
}
