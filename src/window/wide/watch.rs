//! Who is lost, for those who wait in a window over many nodes. Who waits looks at its own node,
//! asks the processes that it has contacted whether they still answer, and probes at one node after
//! the other, whose leader knows who is gone there: it may wait for somebody whom it never called.
//! Only processes of its own communicator are minded. What is found is noted in the arena of the
//! node ([`losses`](crate::window::arena::losses)), so that all who wait there tell the same.

use super::{Member, Wide};
use crate::error::{Error, Result, kept};
use crate::fabric::verbs::{Contact, Probe};
use crate::window::Node;
use crate::window::arena::losses::{Cause, Loss};
use std::time::{Duration, Instant};

/// How long it takes until others are asked again.
const QUESTIONS: Duration = Duration::from_secs(1);
/// When nobody has looked for so long, what was asked then is asked again.
const STALE: Duration = Duration::from_secs(20);

/// What those who wait have seen so far.
#[derive(Default)]
pub struct Watch {
    /// when somebody looked last
    last: Option<Instant>,
    /// when others were asked last, or when the first wait began
    asked: Option<Instant>,
    /// how many nodes were asked
    turn: u32,
    /// the node that is asked
    probe: Option<(u32, Probe)>,
}

impl Wide {
    /// One look around by a process that waits, without waiting for an answer. Fails if one of the
    /// processes is lost; `dead` is one of this node that has died, by its index and process id.
    pub fn look(&self, dead: Option<(u32, i32)>) -> Result<()> {
        let died = |(index, pid)| Loss { rank: self.rank_of(index), pid, cause: Cause::Died };
        let loss = Loss::noted(self.near.lost()).or_else(|| dead.map(died));
        if let Some(loss) = loss {
            return Err(self.lost(loss));
        }
        self.ask(&mut self.watch.lock()).map_err(|error| self.named(error))
    }

    fn ask(&self, watch: &mut Watch) -> Result<()> {
        let now = Instant::now();
        if watch.last.replace(now).is_some_and(|last| now - last > STALE) {
            watch.probe = None;
        }
        if now - *watch.asked.get_or_insert(now) >= QUESTIONS {
            watch.asked = Some(now);
            self.nic.progress();
            self.peers.ping()?;
            if watch.probe.is_none() {
                watch.probe = Some(self.probe(self.near.rank.wrapping_add(watch.turn)));
                watch.turn = watch.turn.wrapping_add(1);
            }
        }
        let Some((node, probe)) = &mut watch.probe else { return Ok(()) };
        let (node, news) = (*node, probe.step());
        if !matches!(news, Ok(None)) {
            watch.probe = None;
        }
        news?.map_or(Ok(()), |news| self.hear(node, news))
    }

    /// Fails if one of the processes is lost to the device; `losses` is how many there were when
    /// this was last asked.
    pub fn check(&self, losses: &mut u64) -> Result<()> {
        let now = self.nic.progress();
        if now == core::mem::replace(losses, now) { Ok(()) } else { self.peers.check() }
    }

    /// Begins to ask the leader of another node, one after the other as `turn` grows.
    fn probe(&self, turn: u32) -> (u32, Probe) {
        let node = (self.node + 1 + turn % (self.nodes - 1)) % self.nodes;
        let info = self.infos.at(node);
        (node, self.nic.probe(&info.contact, self.secret, info.first.at))
    }

    /// Fails if the leader of a node has told of a loss.
    fn hear(&self, node: u32, [dead, lost]: [u64; 2]) -> Result<()> {
        let of_node = |loss: Loss| Loss { rank: self.rank_at(node, loss.rank), ..loss };
        match Loss::from(dead).map(of_node).or(Loss::from(lost)) {
            Some(loss) if loss.rank < self.size => Err(self.lost(loss)),
            _ => Ok(()),
        }
    }

    /// Notes a loss for all who wait on this node; the error of the first one that was noted.
    fn lost(&self, loss: Loss) -> Error {
        let Loss { rank, pid, cause } = loss.note(self.near.lost());
        let name = || kept(self.infos.at(self.member(rank).node).contact.node());
        let node = self.lost_node.get_or_init(name);
        Error::Lost { rank: Some(rank), node, pid, cause: cause.text() }
    }

    /// The rank of a process of a node.
    fn rank_at(&self, node: u32, index: u32) -> u32 {
        let there = Member { node, index };
        (0..self.size).find(|rank| self.member(*rank) == there).unwrap_or(self.size)
    }

    /// The rank of a node's leader.
    pub fn first_rank_of(&self, node: u32) -> u32 {
        self.rank_at(node, 0)
    }

    /// The rank of a process of this node.
    pub fn rank_of(&self, index: u32) -> u32 {
        self.rank_at(self.node, index)
    }

    /// The rank of a process that this one has had to do with.
    fn rank_of_process(&self, node: &str, pid: i32) -> Option<u32> {
        let is_it = |contact: &Contact| contact.pid() == pid && contact.node() == node;
        let leads = |node: &u32| is_it(&self.infos.at(*node).contact);
        let leader = || (0..self.nodes).find(leads).map(|node| Member { node, index: 0 });
        let found = self.peers.find(is_it).or_else(leader);
        found.map(|member| self.rank_at(member.node, member.index))
    }

    /// An error as the user is told: with ranks of the window, where the roads know processes of
    /// the node, or contacts. A loss is noted.
    pub(super) fn named(&self, error: Error) -> Error {
        match error {
            Error::Lost { rank: None, node, pid, cause } => {
                let rank = self.rank_of_process(node, pid);
                if let Some(rank) = rank {
                    Loss { rank, pid, cause: Cause::of(cause) }.note(self.near.lost());
                }
                Error::Lost { rank, node, pid, cause }
            }
            // Nothing is known of it: a later call may find it.
            Error::Unanswered { rank: None, node, pid, cause } => {
                Error::Unanswered { rank: self.rank_of_process(node, pid), node, pid, cause }
            }
            Error::Died { rank, pid } => {
                self.lost(Loss { rank: self.rank_of(rank), pid, cause: Cause::Died })
            }
            Error::Fault { rank, address } => Error::Fault { rank: self.rank_of(rank), address },
            Error::Forbidden { rank, pid } => Error::Forbidden { rank: self.rank_of(rank), pid },
            error => error,
        }
    }
}

impl Node {
    /// An error of a call on this window, with the ranks of the window.
    pub fn with_rank(&self, error: Error) -> Error {
        match &self.wide {
            Some(part) => part.wide.named(error),
            None => error,
        }
    }
}
