//! Windows over many nodes. A *wide* arena is what the processes of a communicator on several nodes
//! know of each other: each node has an arena of its own ([`super::arena`]), and its *leader*, the
//! lowest rank there, registers the node's control memory and the memory of its windows with the
//! RDMA device, one memory region each. Who wants a word or a byte of another node has a queue pair
//! to its leader, or to the process itself where only that one can register the memory.
//!
//! What is kept, beside what is in use: one table per node and communicator of all nodes (152 bytes
//! each) and of where each rank is (8 bytes), one table per node and window of all nodes (32 bytes
//! each). A process keeps nothing per rank but for the targets that it has contacted
//! ([`targets`]).

pub mod address;
pub mod exchange;
pub mod lists;
mod make;
mod notes;
mod pending;
pub mod said;
mod shared;
pub mod targets;
mod unsettled;
mod watch;
pub mod words;

use super::arena::{Arena, departures};
use super::blocks::Descriptor;
use super::known::Known;
use crate::epoch::exposure::{Posted, Started};
use crate::epoch::layout;
use crate::error::Result;
use crate::fabric::verbs::{Contact, Exposed, Nic, Peer, Peers, Remote, Secret};
use crate::mpi::Host;
use crate::mpi::comm::{Comm, Group};
use lists::Areas;
use notes::Notes;
use parking_lot::Mutex;
use shared::Shared;
use std::collections::BTreeMap;
use std::collections::btree_map::Entry;
use std::sync::{Arc, OnceLock};
use targets::Target;
use unsettled::Unsettled;
use watch::Watch;

/// What the processes of a communicator over several nodes know of each other.
pub struct Wide {
    /// internal duplicate of the user's communicator
    pub comm: Comm,
    /// its group
    pub group: Group,
    /// this process
    pub rank: u32,
    /// all of them
    pub size: u32,
    /// the arena of this node
    pub near: Arc<Arena>,
    /// the number of this node
    pub node: u32,
    /// how many there are
    pub nodes: u32,
    /// the first ranks of all nodes, for those
    leaders: Option<Comm>,
    /// the device
    pub nic: &'static Nic,
    /// what they show each other at first contact
    secret: Secret,
    /// what is known of the nodes
    infos: Shared<NodeInfo>,
    /// the contacts of ranks of other nodes that ranks of this node have asked for; ahead of the table
    /// that they begin behind
    contacts: Notes<Contact>,
    /// where each rank is
    members: Shared<Member>,
    /// on the leader: the chunks of the arena that the device knows
    chunks: Mutex<BTreeMap<u32, Exposed>>,
    /// whether all devices change words atomically with the processors of their nodes
    coherent: bool,
    /// the processes that this one has had to do with
    peers: Peers<Member>,
    /// what those who wait have seen of them
    watch: Mutex<Watch>,
    /// the node of the first process that is known to be lost
    lost_node: OnceLock<&'static str>,
}

/// What is known of a node.
#[repr(C)]
#[derive(Clone, Copy)]
struct NodeInfo {
    /// its leader
    contact: Contact,
    /// the first chunk of its arena
    first: Remote,
    /// bytes between the blocks of its ranks
    stride: u64,
}

/// Where a rank is.
#[repr(C)]
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct Member {
    /// on which node
    pub node: u32,
    /// the how manieth there
    pub index: u32,
}

/// Bytes of words for ranks of other nodes in each block.
const FAR_BYTES: usize =
    ((layout::WORDS_FAR + lists::AREA_WORDS) as usize * size_of::<u64>()).next_multiple_of(64);

impl Wide {
    /// Where a rank of the communicator is.
    #[inline]
    pub fn member(&self, rank: u32) -> Member {
        self.members.at(rank)
    }

    /// The leader of a node.
    fn leader(&self, node: u32) -> Arc<Peer> {
        let leader = Member { node, index: 0 };
        self.peers.get(leader, || self.nic.peer(&self.infos.at(node).contact, self.secret))
    }

    /// Where the device of others finds a slot of this node's arena. For the leader.
    fn remote_slot(&self, slot: u32) -> Result<Remote> {
        let (chunk, base, bytes) = self.near.chunk_of(slot);
        let mut chunks = self.chunks.lock();
        if let Entry::Vacant(entry) = chunks.entry(chunk) {
            entry.insert(self.nic.expose(base, bytes)?);
        }
        let start = self.near.blocks(slot).start().addr() - base.addr();
        Ok(chunks[&chunk].remote().offset(start as i64))
    }
}

impl Drop for Wide {
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

/// What a window over many nodes has beside that of its node.
pub struct Part {
    /// what it stands on
    pub wide: Arc<Wide>,
    /// what ranks of this node have found out of those of others; ahead of the table that they
    /// begin behind
    found: Notes<Descriptor>,
    /// where the device finds what each node has of it
    places: Shared<Place>,
    /// what this process has exposed for it
    _exposed: Vec<Exposed>,
    /// what this process knows of the ranks that it has had to do with
    targets: Known<Target>,
    /// long lists of its posts
    areas: Areas,
    /// its posts, and those that it has used up
    pub posted: Mutex<Posted>,
    /// likewise
    pub started: Mutex<Started>,
    /// its accumulates that nobody has waited for
    unsettled: Unsettled,
}

/// Where the device finds what a node has of a window.
#[repr(C)]
#[derive(Clone, Copy, Default)]
struct Place {
    /// the control blocks of its ranks
    blocks: Remote,
    /// the memory of an allocated window
    data: Remote,
}

impl Part {
    /// Where the control words of a rank begin, for ranks of other nodes.
    fn block(&self, member: Member) -> Remote {
        let stride = self.wide.infos.at(member.node).stride;
        let at = self.places.at(member.node).blocks;
        at.offset((u64::from(member.index) * stride) as i64)
    }
}
