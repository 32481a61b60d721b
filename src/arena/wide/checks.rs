//! The failure checks of waiting ranks in windows over several nodes. A waiting rank checks the
//! processes of its own node, checks whether the processes that it has contacted still answer, and
//! probes the leader of one other node at a time, which knows the dead processes of its node. Only
//! processes of its own communicator count. A loss is recorded in the arena of the node
//! ([`crate::liveness::losses`]), so that all waiting ranks there report the same loss.

use super::{Member, WideArena};
use crate::arena::OtherNodes;
use crate::error::{Error, Result, kept};
use crate::fabric::net::{Contact, Probe};
use crate::fabric::remote::Transport;
use crate::liveness::losses::{Cause, Loss};
use crate::liveness::watch::Checks;
use crate::rank_numbers::{NodeNumber, Rank, RankOnNode};
use std::time::Instant;

impl OtherNodes for WideArena {
    fn rank_of(&self, index: RankOnNode) -> Rank {
        self.rank_at(self.node, index)
    }

    fn check_nodes(&self, dead: Option<(RankOnNode, i32)>) -> Result<()> {
        let died = |(index, pid)| Loss { rank: self.rank_of(index), pid, cause: Cause::Died };
        let loss = Loss::noted(self.near.lost()).or_else(|| dead.map(died));
        if let Some(loss) = loss {
            return Err(self.lost(loss));
        }
        let notice = self.watch.lock().check(Instant::now(), self);
        match notice.map_err(|error| self.named(error))? {
            Some((node, notice)) => self.take_notice(node, notice),
            None => Ok(()),
        }
    }

    fn keeps_in_place(&self) -> bool {
        self.wire.keeps_in_place()
    }
}

impl Checks for WideArena {
    type Probe = Probe;

    fn ping(&self) -> Result<()> {
        self.wire.progress();
        self.peers.ping()
    }

    /// Begins a probe of the leader of another node.
    fn begin(&self, turn: u32) -> (NodeNumber, Probe) {
        let node = self.node.after(1 + turn % (self.nodes - 1), self.nodes);
        let info = self.info(node);
        (node, self.wire.probe(&info.contact, self.secret, info.first.at))
    }

    fn step(&self, probe: &mut Probe) -> Result<Option<[u64; 2]>> {
        probe.step()
    }
}

impl WideArena {
    /// Fails if the device has lost the connection to one of the processes. `losses` is the number
    /// of lost connections at the last call, and is updated.
    pub fn check(&self, losses: &mut u64) -> Result<()> {
        let now = self.wire.progress();
        if now == core::mem::replace(losses, now) { Ok(()) } else { self.peers.check() }
    }

    /// Fails if a process was not permitted to access its own memory for an operation of this one,
    /// and forgets it.
    pub fn take_refusals(&self) -> Result<()> {
        if self.wire.has_refusals() { self.peers.take_refusals() } else { Ok(()) }
    }

    /// Fails if the failure notice of a node's leader names a lost process of this communicator.
    fn take_notice(&self, node: NodeNumber, [dead, lost]: [u64; 2]) -> Result<()> {
        let of_node = |loss: Loss<RankOnNode>| {
            let Loss { rank, pid, cause } = loss;
            Loss { rank: self.rank_at(node, rank), pid, cause }
        };
        match Loss::from(dead).map(of_node).or(Loss::from(lost)) {
            Some(loss) if loss.rank.0 < self.size => Err(self.lost(loss)),
            _ => Ok(()),
        }
    }

    /// Records a loss for all waiting ranks of this node, and returns the error of the loss that
    /// was recorded first.
    fn lost(&self, loss: Loss) -> Error {
        let Loss { rank, pid, cause } = loss.note(self.near.lost());
        let name = || kept(self.info(self.member(rank).node).contact.node());
        let node = self.lost_node.get_or_init(name);
        Error::Lost { rank: Some(rank), node, pid, cause: cause.text() }
    }

    /// Returns the rank of a process of a node.
    fn rank_at(&self, node: NodeNumber, index: RankOnNode) -> Rank {
        let there = Member { node, index };
        Rank::all(self.size).find(|rank| self.member(*rank) == there).unwrap_or(Rank(self.size))
    }

    /// Returns the rank of a node's leader.
    pub fn first_rank_of(&self, node: NodeNumber) -> Rank {
        self.rank_at(node, RankOnNode::LEADER)
    }

    /// Returns the rank of a process that this one has contacted, or that is a leader.
    fn rank_of_process(&self, node: &str, pid: i32) -> Option<Rank> {
        let is_it = |contact: &Contact| contact.pid() == pid && contact.node() == node;
        let leads = |node: &NodeNumber| is_it(&self.info(*node).contact);
        let leader = || {
            NodeNumber::all(self.nodes)
                .find(leads)
                .map(|node| Member { node, index: RankOnNode::LEADER })
        };
        let found = self.peers.find(is_it).or_else(leader);
        found.map(|member| self.rank_at(member.node, member.index))
    }

    /// Returns an error in terms of the user: with ranks of the window, in place of the indices
    /// within a node and the process ids that the transports know. Records a loss.
    pub fn named(&self, error: Error) -> Error {
        match error {
            Error::Lost { rank: None, node, pid, cause } => {
                let rank = self.rank_of_process(node, pid);
                if let Some(rank) = rank {
                    Loss { rank, pid, cause: Cause::of(cause) }.note(self.near.lost());
                }
                Error::Lost { rank, node, pid, cause }
            }
            // The process may be alive, so no loss is recorded: a later call may reach it.
            Error::Unanswered { rank: None, node, pid, cause } => {
                Error::Unanswered { rank: self.rank_of_process(node, pid), node, pid, cause }
            }
            Error::NoAccess { rank: None, node, pid } => {
                Error::NoAccess { rank: self.rank_of_process(node, pid), node, pid }
            }
            Error::Died { rank, pid } => self.lost(Loss {
                rank: self.rank_of(rank.of_transport_error()),
                pid,
                cause: Cause::Died,
            }),
            Error::Fault { rank, address } => {
                Error::Fault { rank: self.rank_of(rank.of_transport_error()), address }
            }
            Error::Forbidden { call, rank, pid } => {
                Error::Forbidden { call, rank: self.rank_of(rank.of_transport_error()), pid }
            }
            error => error,
        }
    }
}
