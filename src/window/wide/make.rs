//! Making a wide arena: who is on which node, the arena of each node, and what the nodes must know
//! of each other. By collective calls of the MPI underneath; the lists of all ranks that these
//! bring are gone when it is made.

use super::said::{self, OTHERS, Said};
use super::shared::Shared;
use super::{FAR_BYTES, Member, NodeInfo, Wide};
use crate::config::Config;
use crate::error::Result;
use crate::fabric::verbs::{Contact, Exposed, Nic, Peers, Remote, Secret};
use crate::memory::heap;
use crate::mpi::Host;
use crate::mpi::comm::Comm;
use crate::sys::process;
use crate::window::arena::{Arena, losses};
use crate::window::report::{self, Why};
use parking_lot::Mutex;
use std::collections::BTreeMap;
use std::sync::{Arc, OnceLock};

/// Communicators that are freed unless a wide arena is made of them, the last one first.
struct Comms {
    host: &'static Host,
    made: Vec<Comm>,
}

impl Comms {
    fn add(&mut self, comm: Comm) -> Comm {
        self.made.push(comm);
        comm
    }
}

impl Drop for Comms {
    fn drop(&mut self) {
        self.made.iter().rev().for_each(|comm| comm.free(self.host));
    }
}

impl Wide {
    /// The wide arena of the processes of a communicator, or why there is none. Collective.
    pub fn make(host: &'static Host, user: Comm) -> Result<core::result::Result<Arc<Wide>, Why>> {
        let mut comms = Comms { host, made: Vec::new() };
        let comm = comms.add(user.duplicate(host)?);
        let rank = comm.rank(host)?;
        let nic = Nic::get().inspect(|nic| nic.set_allocations(heap::allocation));
        let (members, devices) = members(host, comm, rank, Devices::of(&nic))?;
        let nodes = 1 + members.iter().map(|member| member.node).max().unwrap_or(0);
        if nodes == 1 {
            return Ok(Err(Why::NoRoad));
        }
        if let Some(why) = devices.useless() {
            return Ok(Err(why));
        }
        let Member { node, index } = members[rank as usize];
        let near = comms.add(comm.split(host, Some(node))?.ok_or(OTHERS)?);
        let leaders = comm.split(host, (index == 0).then_some(0))?.map(|comm| comms.add(comm));
        let arena = Arena::make(host, near, FAR_BYTES)?;
        let arena = match said::none_has_reasons(host, comm, arena)? {
            Ok(arena) => arena,
            Err(why) => return Ok(Err(why)),
        };
        let all = (comm, near, leaders);
        let nic = nic?;
        let secret = share_secret(host, comm, rank, nic)?;
        let local = (nic, secret, devices.coherent(), arena);
        let wide = Wide::join(host, all, local, (nodes, node), members)?;
        comms.made = vec![near];
        let met = if index == 0 { wide.meet_next() } else { Ok(()) };
        let said = met.as_ref().err().map_or(Said::FINE, |_| Said::why(Why::NoContact));
        let all = said.by_all(host, comm)?;
        met.unwrap_or_else(|error| report::no_contact(rank, &error));
        Ok(match all.verdict()? {
            None => Ok(wide),
            Some(why) => Err(why),
        })
    }

    /// Has to do with the next node, before anybody relies on it: each of the nodes with one other,
    /// so that nodes between which nothing leads do not go unnoticed.
    fn meet_next(&self) -> Result<()> {
        let next = (self.node + 1) % self.nodes;
        self.leader(next).read(self.infos.at(next).first).map(|_| ())
    }

    /// The rest of it, where there are the arenas of all nodes and a device.
    fn join(
        host: &'static Host,
        (comm, near_comm, leaders): (Comm, Comm, Option<Comm>),
        (nic, secret, coherent, arena): (&'static Nic, Secret, bool, Arc<Arena>),
        (nodes, node): (u32, u32),
        members: Vec<Member>,
    ) -> Result<Arc<Wide>> {
        let (rank, size) = (comm.rank(host)?, comm.size(host)?);
        let infos = share_infos(host, nic, &arena, leaders, near_comm, nodes);
        let list = leaders.map(|_| Ok(members));
        let members = Shared::make(host, near_comm, size, list);
        let shared = infos.and_then(|infos| Ok((infos, members?)));
        let ((infos, chunks), members) = said::all_could(host, comm, rank, shared)?;
        let group = comm.group(host)?;
        // SAFETY: they go before the table does; the bits of a contact are all values.
        let contacts = unsafe { members.notes() };
        let wide = Arc::new(Wide {
            comm,
            group,
            rank,
            size,
            near: arena,
            node,
            nodes,
            leaders,
            nic,
            secret,
            infos,
            contacts,
            members,
            chunks: Mutex::new(chunks),
            coherent,
            peers: Peers::default(),
            watch: Mutex::default(),
            lost_node: OnceLock::new(),
        });
        // Who waits for a rank of this node is told here by whom it is missed.
        let _ = wide.near.wide.set(Arc::downgrade(&wide));
        wide.near.tell_losses();
        nic.set_notices(losses::news);
        Ok(wide)
    }
}

/// The secret of the job, as rank 0 knows it: by the MPI underneath it comes to all who may make
/// first contact in this communicator. Before this is over nobody here is called by another rank.
fn share_secret(host: &Host, comm: Comm, rank: u32, nic: &Nic) -> Result<Secret> {
    let own = (rank == 0).then(|| nic.secret());
    let mut words = [0; 2];
    if let Some(Ok(secret)) = &own {
        words = secret.words();
    }
    comm.broadcast(host, &mut words)?;
    if words == [0; 2] {
        return own.unwrap_or(Err(OTHERS));
    }
    let secret = Secret::from(words);
    nic.admit(secret);
    Ok(secret)
}

/// What devices have in common, a bit each: that there is one, that its link is Ethernet, or
/// InfiniBand, and that its atomic operations are atomic with those of the processor.
#[derive(Clone, Copy)]
struct Devices(u64);

impl Devices {
    const THERE: u64 = 1;
    const ETHERNET: u64 = 2;
    const INFINIBAND: u64 = 4;
    const COHERENT: u64 = 8;

    /// The one of this process.
    fn of(nic: &Result<&Nic>) -> Devices {
        Devices(nic.as_ref().map_or(0, |nic| {
            let link = if nic.is_ethernet() { Devices::ETHERNET } else { Devices::INFINIBAND };
            let coherent = if nic.is_coherent() { Devices::COHERENT } else { 0 };
            Devices::THERE | link | coherent
        }))
    }

    /// Why nothing can come of all of them together.
    fn useless(self) -> Option<Why> {
        match self.0 {
            all if all & Devices::THERE == 0 => Some(Why::NoDevice),
            all if all & (Devices::ETHERNET | Devices::INFINIBAND) == 0 => Some(Why::Links),
            _ => None,
        }
    }

    /// Whether all are coherent: one that is not decides for all who changes which word.
    fn coherent(self) -> bool {
        self.0 & Devices::COHERENT != 0
    }
}

/// Where each rank is, and what their devices have in common. Nodes are numbered in the order of
/// their lowest ranks.
fn members(host: &Host, comm: Comm, rank: u32, device: Devices) -> Result<(Vec<Member>, Devices)> {
    let all = comm.gather_all(host, &[node_key(rank), device.0])?;
    let mut nodes = BTreeMap::new();
    let members = all.iter().map(|[key, _]| {
        let next = nodes.len() as u32;
        let (node, count) = nodes.entry(key).or_insert((next, 0_u32));
        *count += 1;
        Member { node: *node, index: *count - 1 }
    });
    let members = members.collect();
    let common = all.iter().fold(u64::MAX, |common, [_, device]| common & device);
    Ok((members, Devices(common)))
}

/// A number that ranks of one node have in common, and no others.
fn node_key(rank: u32) -> u64 {
    let simulated = Config::get().ranks_per_node.map_or(0, |ranks| rank / ranks);
    let mut key = 0xcbf2_9ce4_8422_2325_u64 ^ u64::from(simulated);
    for byte in process::place() {
        key = (key ^ u64::from(byte)).wrapping_mul(0x100_0000_01b3);
    }
    key
}

/// Words of what a leader tells the others.
const INFO: usize = 19;

impl NodeInfo {
    fn encode(&self) -> [u64; INFO] {
        let mut words = [0; INFO];
        words[..16].copy_from_slice(&self.contact.0);
        words[16..].copy_from_slice(&[self.first.at, self.first.key, self.stride]);
        words
    }

    fn decode(words: &[u64; INFO]) -> NodeInfo {
        let mut contact = Contact([0; 16]);
        contact.0.copy_from_slice(&words[..16]);
        let first = Remote { at: words[16], key: words[17] };
        NodeInfo { contact, first, stride: words[18] }
    }
}

/// The chunks of a node's arena that its device knows, by their numbers.
type Chunks = BTreeMap<u32, Exposed>;

/// Tells the nodes of each other. The table is the same on all; the chunks are for the leader.
fn share_infos(
    host: &Host,
    nic: &Nic,
    arena: &Arena,
    leaders: Option<Comm>,
    near: Comm,
    nodes: u32,
) -> Result<(Shared<NodeInfo>, Chunks)> {
    let mut chunks = Chunks::new();
    let items = leaders.map(|leaders| {
        let own = own_info(nic, arena);
        let told = own.as_ref().map_or([0; INFO], |(info, _)| info.encode());
        let all = leaders.gather_all(host, &told)?;
        chunks.insert(0, own?.1);
        // A leader that has none of it has told only zeros.
        if all.iter().any(|words| words[18] == 0) {
            return Err(OTHERS);
        }
        Ok(all.iter().map(NodeInfo::decode).collect())
    });
    Ok((Shared::make(host, near, nodes, items)?, chunks))
}

/// What this node's leader tells the others, and what it has exposed.
fn own_info(nic: &Nic, arena: &Arena) -> Result<(NodeInfo, Exposed)> {
    let (_, base, bytes) = arena.chunk_of(0);
    let exposed = nic.expose(base, bytes)?;
    let (contact, first, stride) = (nic.contact()?, exposed.remote(), arena.stride as u64);
    Ok((NodeInfo { contact, first, stride }, exposed))
}
