//! The wide arena: what the processes of a communicator on several nodes know of each other. Each
//! node has an arena of its own ([`Arena`]). The *leader* of a node is its lowest rank: it
//! registers the node's control memory and the memory of the node's windows with the RDMA device,
//! one memory region each. A process that accesses memory of another node uses a queue pair to the
//! leader of that node, or to the owner of the memory where only the owner can register it.
//!
//! Memory beyond that of the queue pairs in use: per node and communicator, a table of all nodes
//! (152 bytes each) and a table of the places of all ranks (8 bytes each).

mod checks;
mod make;
mod no_device;
mod nodes;
pub mod notes;
pub mod shared;

use super::Arena;
use super::control_blocks::ControlBlocks;
use crate::error::Result;
use crate::fabric::layout;
use crate::fabric::net::{Contact, Exposed, Peer, Peers, Probe, Secret, Wire};
use crate::fabric::remote::{Addressed, Remote, Transport};
use crate::liveness::departures;
use crate::liveness::watch::Watch;
use crate::mpi::Host;
use crate::mpi::comm::{Comm, Group};
use crate::number::Number;
use crate::rank_numbers::{NodeNumber, Rank, RankOnNode, Slot};
pub use nodes::Need;
use notes::Notes;
use parking_lot::Mutex;
use shared::Shared;
use std::collections::BTreeMap;
use std::collections::btree_map::Entry;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

/// Words of a block for the areas of long lists of posts, behind those of the protocols.
pub const AREA_WORDS: u32 = 8;

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
    pub leaders: Option<Comm>,
    /// the device
    pub wire: &'static Wire,
    /// the secret that two processes show each other at first contact
    pub secret: Secret,
    /// what this node knows of each node
    pub infos: Shared<NodeInfo>,
    /// the contacts of ranks of other nodes that ranks of this node have read; declared before
    /// `members`, whose table precedes the root of these notes, and so dropped before it
    pub contacts: Notes<Contact>,
    /// the place of each rank
    pub members: Shared<Member>,
    /// on the leader: the chunks of the arena that are registered with the device
    pub chunks: Mutex<BTreeMap<u32, Exposed>>,
    /// whether all devices change words atomically with the processors of their nodes
    pub coherent: bool,
    /// whether all ranks report how long they waited (FOMPI_VERBOSE=2)
    pub report_waits: bool,
    /// whether it is for windows over memory of the program only, because ranks of one node may not
    /// copy each other's memory
    pub is_apart: bool,
    /// how long a waiting rank spins before it sleeps, if it sleeps
    pub spin: Duration,
    /// the processes that this one has contacted
    pub peers: Peers<Member>,
    /// the state of the failure checks of waiting ranks
    pub watch: Mutex<Watch<Probe>>,
    /// the node of the first process that is known to be lost
    pub lost_node: OnceLock<&'static str>,
}

/// What is known of a node.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct NodeInfo {
    /// the contact of its leader
    pub contact: Contact,
    /// the first chunk of its arena
    pub first: Remote,
    /// bytes between the blocks of its ranks
    pub stride: u64,
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
    ((layout::WORDS_FAR + AREA_WORDS) as usize * size_of::<u64>()).next_multiple_of(64);

impl WideArena {
    /// Returns the place of a rank of the communicator.
    #[inline]
    pub fn member(&self, rank: Rank) -> Member {
        self.members.at(rank.0)
    }

    /// Returns what is known of a node.
    #[inline]
    pub fn info(&self, node: NodeNumber) -> NodeInfo {
        self.infos.at(node.0)
    }

    /// Returns the leader of a node.
    pub fn leader(&self, node: NodeNumber) -> Arc<Peer> {
        let leader = Member { node, index: RankOnNode::LEADER };
        self.peers.get(leader, || self.wire.connect(&(self.info(node).contact, self.secret)))
    }

    /// Returns the address by which other nodes reach a slot of this node's arena, and registers
    /// the slot's chunk if necessary. Only for the leader.
    pub fn remote_slot(&self, slot: Slot) -> Result<Remote> {
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
