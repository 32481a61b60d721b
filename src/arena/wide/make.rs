//! Creation of a wide arena: the place of each rank, the arena of each node, and the data that the
//! nodes must know of each other. It uses collective calls of the host MPI; the lists of all ranks
//! that these calls return are freed when the wide arena is made.

use super::no_device;
use super::nodes::{Comms, Grouping, Need, count};
use super::shared::Shared;
use super::{Member, NodeInfo, WideArena};
use crate::arena::{Arena, OtherNodes};
use crate::config::Config;
use crate::error::{Error, Result};
use crate::fabric::net::{
    Contact, DeviceChoice, DeviceOffer, Exposed, Peers, SPIN, Secret, Wire, settings_differ,
};
use crate::fabric::remote::{Addressed, Network, Remote, Transport};
use crate::liveness::losses;
use crate::liveness::watch::Watch;
use crate::mpi::Host;
use crate::mpi::comm::Comm;
use crate::number::Number;
use crate::rank_numbers::{NodeNumber, Rank, RankOnNode, Slot};
use crate::report::collective_outcome::{self, CAUSE_ELSEWHERE, StepOutcome};
use crate::report::{self, Why};
use crate::sys::process;
use parking_lot::Mutex;
use std::collections::BTreeMap;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

/// The settings that the ranks have agreed on.
struct Settings {
    coherent: bool,
    report_waits: bool,
    is_apart: bool,
}

impl WideArena {
    /// Makes the wide arena of the processes of a communicator, or returns the reason why there is
    /// none. `need`: what the ranks of one node must be able to do. Collective.
    pub fn make(
        host: &'static Host,
        user: Comm,
        need: Need,
    ) -> Result<core::result::Result<Arc<WideArena>, Why>> {
        let mut comms = Comms::new(host);
        let comm = comms.add(user.duplicate(host)?);
        let rank = Rank(comm.rank(host)?);
        if comm.size(host)? == 1 {
            return Ok(Err(Why::NoTransport));
        }
        let reports_waits = u64::from(Config::get().reports_waits);
        let all = comm.gather_all(host, &[DeviceOffer::own().0, reports_waits])?;
        let mut offers: Vec<_> = all.iter().map(|[offer, _]| DeviceOffer(*offer)).collect();
        if need == (Need::Copies { one_machine: true }) {
            offers.iter_mut().for_each(|offer| *offer = offer.on_one_machine());
        }
        let report_waits = all.iter().all(|[_, reports]| *reports != 0);
        if rank == Rank::FIRST {
            settings_differ(&offers).iter().for_each(report::differ);
        }
        let choice = DeviceChoice::of(&offers);
        if let Some(why) = no_device::refused(host, comm, choice, &offers)? {
            return Ok(Err(why));
        }
        let Grouping { members, near, leaders, arena, wire } =
            match Grouping::find(host, comm, choice, need, &mut comms)? {
                Ok(nodes) => nodes,
                Err(why) => return Ok(Err(why)),
            };
        let Member { node, index } = members[rank.0.to_usize()];
        let nodes = count(&members);
        let all = (comm, near, leaders);
        let secret = share_secret(host, comm, rank, wire)?;
        let settings = Settings {
            coherent: choice.coherent(),
            report_waits,
            is_apart: need != Need::Segments,
        };
        let local = (wire, secret, settings, arena);
        let wide = WideArena::join(host, all, local, (nodes, node), members)?;
        [Some(comm), leaders].into_iter().flatten().for_each(|comm| comms.give_away(comm));
        let contact = if index == RankOnNode::LEADER { wide.contact_next_node() } else { Ok(()) };
        let why = |error: &Error| StepOutcome::why(Why::no_contact(error));
        let mine = contact.as_ref().err().map_or(StepOutcome::FINE, why);
        let all = mine.of_all(host, comm)?;
        contact.unwrap_or_else(|error| report::own_cause(rank, &error));
        Ok(match all.outcome()? {
            None => Ok(wide),
            Some(why) => Err(why),
        })
    }

    /// Reads a word of the next node. Each node contacts one other node, so that nodes without a
    /// network path between them are found before a window relies on the path. A firewall that
    /// drops packets delays the window for a few seconds.
    fn contact_next_node(&self) -> Result<()> {
        let next = self.node.after(1, self.nodes);
        let leader = self.leader(next);
        leader.meet()?;
        leader.read(self.info(next).first).map(|_| ())
    }

    /// Makes the wide arena from the arenas of all nodes and the device. Collective.
    fn join(
        host: &'static Host,
        (comm, near_comm, leaders): (Comm, Comm, Option<Comm>),
        (wire, secret, settings, arena): (&'static Wire, Secret, Settings, Arc<Arena>),
        (nodes, node): (u32, NodeNumber),
        members: Vec<Member>,
    ) -> Result<Arc<WideArena>> {
        let (rank, size) = (Rank(comm.rank(host)?), comm.size(host)?);
        let infos = share_infos(host, wire, &arena, leaders, near_comm, nodes);
        let list = leaders.map(|_| Ok(members));
        let members = Shared::make(host, near_comm, size, list);
        let shared = infos.and_then(|infos| Ok((infos, members?)));
        let ((infos, chunks), members) =
            collective_outcome::all_succeeded(host, comm, rank, shared)?;
        let group = comm.group(host)?;
        // Simulated nodes share the cores of this one.
        let simulated = Config::get().ranks_per_node.is_some();
        let spin = spin_time(if simulated { size } else { arena.size });
        // SAFETY: `WideArena` drops the notes before the table; every bit pattern is a contact.
        let contacts = unsafe { members.notes() };
        let wide = Arc::new(WideArena {
            comm,
            group,
            rank,
            size,
            // Each rank of a node begins with another node.
            watch: Mutex::new(Watch::new(arena.rank.0)),
            near: arena,
            node,
            nodes,
            leaders,
            wire,
            secret,
            infos,
            contacts,
            members,
            chunks: Mutex::new(chunks),
            coherent: settings.coherent,
            report_waits: settings.report_waits,
            is_apart: settings.is_apart,
            spin,
            peers: Peers::default(),
            lost_node: OnceLock::new(),
        });
        // Gives the node's arena a way to this wide arena, so that waits in the node also check for
        // ranks that other nodes have lost.
        let beyond: Arc<dyn OtherNodes> = wide.clone();
        wide.near.set_other_nodes(Arc::downgrade(&beyond));
        wide.near.answer_probes();
        wire.wait_so(spin, host.threads());
        // The launcher may have bound this process to a core that it needs for itself.
        let pids = RankOnNode::all(wide.near.size).filter_map(|near| wide.near.pid_of(near));
        pids.for_each(|pid| wire.serve_on_those_of(pid));
        wire.set_notices(losses::notice);
        Ok(wide)
    }
}

/// Returns how long a rank of a node with this number of ranks may spin before it sleeps: not at
/// all if ranks share cores.
fn spin_time(ranks: u32) -> Duration {
    match Config::get().net_spin {
        Some(us) => Duration::from_micros(us.into()),
        None if ranks.to_usize() <= process::cores() => SPIN,
        None => Duration::ZERO,
    }
}

/// Broadcasts the secret of the job from rank 0, by the host MPI, to all ranks of the communicator,
/// which may make first contact with each other. They do so only after the next collective call,
/// when all of them have the secret.
fn share_secret(host: &Host, comm: Comm, rank: Rank, wire: &Wire) -> Result<Secret> {
    let own = (rank == Rank::FIRST).then(|| wire.secret());
    let mut words = [0; 2];
    if let Some(Ok(secret)) = &own {
        words = secret.words();
    }
    comm.broadcast(host, &mut words)?;
    if words == [0; 2] {
        return own.unwrap_or(Err(CAUSE_ELSEWHERE));
    }
    let secret = Secret::from(words);
    wire.admit(secret);
    Ok(secret)
}

/// Words of an encoded [`NodeInfo`].
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

/// The registered chunks of a node's arena, by their numbers.
type Chunks = BTreeMap<u32, Exposed>;

/// Shares the table of all nodes, which is equal on all ranks. Also returns the registered chunks
/// of this node's arena, which only the leader has. Collective.
fn share_infos(
    host: &Host,
    wire: &Wire,
    arena: &Arena,
    leaders: Option<Comm>,
    near: Comm,
    nodes: u32,
) -> Result<(Shared<NodeInfo>, Chunks)> {
    let mut chunks = Chunks::new();
    let items = leaders.map(|leaders| {
        let own = own_info(wire, arena);
        let encoded = own.as_ref().map_or([0; INFO], |(info, _)| info.encode());
        let all = leaders.gather_all(host, &encoded)?;
        chunks.insert(0, own?.1);
        // A leader that has failed contributes zeros, and a stride is never 0.
        if all.iter().any(|words| words[18] == 0) {
            return Err(CAUSE_ELSEWHERE);
        }
        Ok(all.iter().map(NodeInfo::decode).collect())
    });
    Ok((Shared::make(host, near, nodes, items)?, chunks))
}

/// Registers the first chunk of the node's arena, and returns the leader's information on its node.
fn own_info(wire: &Wire, arena: &Arena) -> Result<(NodeInfo, Exposed)> {
    let (_, base, bytes) = arena.chunk_of(Slot::OF_ARENA);
    let exposed = wire.expose(base, bytes)?;
    let (contact, first, stride) = (wire.contact()?, exposed.remote(), arena.stride.to_u64());
    Ok((NodeInfo { contact, first, stride }, exposed))
}
