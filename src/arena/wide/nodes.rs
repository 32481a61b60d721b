//! The nodes of a communicator. Ranks are on one node if they can share memory. All ranks of one
//! machine that reach each other's sockets try first. If they cannot share memory, the ranks that
//! see the same processes try, then those of one container, and finally each rank by itself. Ranks
//! of different nodes reach each other by the device.
//!
//! For windows over memory of the program the ranks of one node also have to be permitted to copy
//! each other's memory (process_vm): [`Need::Copies`].

use super::{FAR_BYTES, Member};
use crate::arena::Arena;
use crate::config::Config;
use crate::error::Result;
use crate::fabric::net::{DeviceChoice, Wire};
use crate::memory::{heap, window_memory};
use crate::mpi::Host;
use crate::mpi::comm::Comm;
use crate::number::Number;
use crate::rank_numbers::{NodeNumber, Rank, RankOnNode};
use crate::report::collective_outcome::{self, CAUSE_ELSEWHERE};
use crate::report::{self, Why};
use crate::sys::process;
use std::collections::BTreeMap;
use std::sync::Arc;

/// Communicators to free, the last one first, unless a wide arena takes them over.
pub struct Comms {
    host: &'static Host,
    made: Vec<Comm>,
}

impl Comms {
    /// Starts without communicators.
    pub fn new(host: &'static Host) -> Comms {
        Comms { host, made: Vec::new() }
    }

    /// Leaves a communicator to others, which free it.
    pub fn give_away(&mut self, comm: Comm) {
        self.made.retain(|made| made.0 != comm.0);
    }

    /// Adds a communicator.
    pub fn add(&mut self, comm: Comm) -> Comm {
        self.made.push(comm);
        comm
    }
}

impl Drop for Comms {
    fn drop(&mut self) {
        self.made.iter().rev().for_each(|comm| comm.free(self.host));
    }
}

/// The nodes of a communicator, and what this rank has on its own.
pub struct Grouping {
    /// the place of each rank
    pub members: Vec<Member>,
    /// the ranks of this node
    pub near: Comm,
    /// the leaders of all nodes; `None` on other ranks
    pub leaders: Option<Comm>,
    /// the arena of this node
    pub arena: Arc<Arena>,
    /// this process on the chosen device
    pub wire: &'static Wire,
}

/// The property that the ranks of a node share.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Apart {
    /// the machine, and its network
    Machine,
    /// the machine, and the processes that they see and may open files of
    Place,
    /// and the files that they see: a container
    Container,
    /// each rank is alone
    Rank,
}

impl Apart {
    fn next(self) -> Option<Apart> {
        match self {
            Apart::Machine => Some(Apart::Place),
            Apart::Place => Some(Apart::Container),
            Apart::Container => Some(Apart::Rank),
            Apart::Rank => None,
        }
    }
}

/// What the ranks of one node must be able to do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Need {
    /// map each other's segments
    Segments,
    /// also copy each other's memory
    Copies {
        /// whether all ranks are known to be on one machine
        one_machine: bool,
    },
}

/// What a rank says that shares memory with its node, in place of 1 if there are smaller nodes to
/// try, and 0 otherwise.
const SHARES: i64 = 2;

impl Grouping {
    /// Finds the nodes of a communicator, or returns the reason why its processes have no
    /// transport. The communicators that it makes are added to `comms`. Collective.
    pub fn find(
        host: &'static Host,
        comm: Comm,
        choice: DeviceChoice,
        need: Need,
        comms: &mut Comms,
    ) -> Result<core::result::Result<Grouping, Why>> {
        let rank = Rank(comm.rank(host)?);
        // Where copies were refused, all of the machine was tried already.
        let mut apart = match need {
            Need::Segments => Apart::Machine,
            Need::Copies { .. } => Apart::Place,
        };
        let (members, node) = loop {
            let members = members(host, comm, node_key(rank, apart))?;
            let node = match count(&members) {
                // All of them have tried already to share memory as one node.
                1 => None,
                _ => Some(TriedNode::of(host, comm, members[rank.0.to_usize()], need, comms)?),
            };
            let refused = |why: &Why| matches!(why, Why::NoTransport | Why::Denied);
            let shares = node.as_ref().is_some_and(|node| !node.arena.as_ref().is_err_and(refused));
            let next = if shares { Some(apart) } else { apart.next() };
            let own = if shares { SHARES } else { i64::from(next.is_some()) };
            match (comm.least(host, own)?, node, next) {
                (SHARES, Some(node), _) => break (members, node),
                // A rank that has no memory of its own has no transport.
                (0, ..) | (_, _, None) => return Ok(Err(Why::NoTransport)),
                (_, _, Some(next)) => apart = next,
            }
        };
        let TriedNode { near, leaders, arena } = node;
        let wire = open(choice, leaders.is_some());
        let wire = wire.inspect_err(|error| report::own_cause(rank, error));
        let part = arena.and_then(|arena| Ok((arena, wire.map_err(|error| Why::no_wire(&error))?)));
        let part = collective_outcome::none_has_reasons(host, comm, part)?;
        Ok(part.map(|(arena, wire)| Grouping { members, near, leaders, arena, wire }))
    }
}

/// The ranks that are tried as a node.
struct TriedNode {
    near: Comm,
    leaders: Option<Comm>,
    /// their arena, or the reason why they have none
    arena: core::result::Result<Arc<Arena>, Why>,
}

impl TriedNode {
    /// Makes the arena of the node of this rank, whose place is `member`. Collective.
    fn of(
        host: &'static Host,
        comm: Comm,
        member: Member,
        need: Need,
        comms: &mut Comms,
    ) -> Result<TriedNode> {
        let near = comm.split(host, Some(member.node.0))?.ok_or(CAUSE_ELSEWHERE)?;
        let near = comms.add(near);
        let leads = member.index == RankOnNode::LEADER;
        let leaders = comm.split(host, leads.then_some(0))?.map(|comm| comms.add(comm));
        let mut arena = Arena::make(host, near, FAR_BYTES)?;
        if need != Need::Segments
            && let Ok(made) = &arena
        {
            made.permit();
            near.all(host, true)?;
            made.find_permission();
            if !near.all(host, made.is_permitted())? {
                arena = Err(Why::Denied);
            }
        }
        Ok(TriedNode { near, leaders, arena })
    }
}

/// Returns this process on the device of the choice. A leader also begins to listen.
fn open(choice: DeviceChoice, leads: bool) -> Result<&'static Wire> {
    let wire = Wire::get(choice.kind())?;
    wire.set_lasting_memory(lasting_memory);
    if leads {
        wire.contact()?;
    }
    Ok(wire)
}

/// Returns the address and the bytes of memory of the library that holds a range of addresses: of
/// MPI_Alloc_mem, or of an allocated window.
fn lasting_memory(address: u64, bytes: u64) -> Option<(u64, u64)> {
    heap::allocation(address, bytes).or_else(|| window_memory::in_use(address, bytes))
}

/// Returns the number of nodes.
pub fn count(members: &[Member]) -> u32 {
    members.iter().map(|member| member.node.0 + 1).max().unwrap_or(1)
}

/// Returns the place of each rank. Nodes are numbered in the order of their lowest ranks. `key`
/// is equal on the ranks of one node. Collective.
fn members(host: &Host, comm: Comm, key: u64) -> Result<Vec<Member>> {
    let all = comm.gather_all(host, &[key])?;
    let mut nodes = BTreeMap::new();
    let members = all.iter().map(|[key]| {
        let next = NodeNumber(nodes.len().to_u32());
        let (node, count) = nodes.entry(key).or_insert((next, 0_u32));
        *count += 1;
        Member { node: *node, index: RankOnNode(*count - 1) }
    });
    Ok(members.collect())
}

/// Returns a number that is equal on ranks of one node and differs between nodes.
fn node_key(rank: Rank, apart: Apart) -> u64 {
    let simulated = Config::get().ranks_per_node.map_or(0, |ranks| rank.0 / ranks);
    let mut bytes = process::machine();
    bytes.extend(simulated.to_le_bytes());
    if apart != Apart::Machine {
        bytes.extend(process::place());
    }
    if matches!(apart, Apart::Container | Apart::Rank) {
        bytes.extend(process::mounts());
    }
    if apart == Apart::Rank {
        bytes.extend(rank.0.to_le_bytes());
    }
    process::number_of(&bytes)
}
