//! The queue nodes of a window, as the locks take them ([`Nodes`]).

use super::LocalWindow;
use crate::epoch::lock::Nodes;
use crate::epoch::lock::used_nodes::Wanted;
use crate::error::Result;
use crate::fabric::WordAt;
use crate::mpi::Host;
use std::time::Duration;

/// The pause before another attempt, where a thread that waits for another node sleeps.
const REST: Duration = Duration::from_micros(50);

/// The nodes for one kind of waiting.
pub struct NodesOf<'a> {
    node: &'a LocalWindow,
    wanted: Wanted,
}

impl LocalWindow {
    /// Returns the nodes for a thread that may have to wait: for a lock of a window, until another
    /// process ends an epoch; for anything else, until another thread or process ends one
    /// operation.
    #[inline]
    pub fn nodes_for(&self, wanted: Wanted) -> NodesOf<'_> {
        NodesOf { node: self, wanted }
    }
}

impl Nodes for NodesOf<'_> {
    /// Returns none for the accumulate lock where targets take it for distant ranks: a request
    /// cannot wake the next rank of a queue, so all take the lock only when it is free.
    fn take(&self) -> Option<u32> {
        match self.wanted {
            Wanted::Accumulate(_) if self.node.accumulates_at_targets() => None,
            wanted => self.node.nodes.take(wanted),
        }
    }

    fn give_back(&self, queue_node: u32) {
        self.node.nodes.give_back(queue_node);
    }

    fn pause(&self) -> Result<()> {
        self.node.comm().progress(Host::get());
        let is_far = !matches!(self.wanted, Wanted::Accumulate(_));
        match is_far && self.node.accumulates_at_targets() {
            // An attempt is a round trip, and answers sleep, too.
            true => std::thread::sleep(REST),
            false => std::thread::yield_now(),
        }
        self.node.arena().check_dead()
    }

    fn had_turn(&self, at: WordAt) {
        if self.node.words.idle().shares_cores() {
            self.node.overtaking.had_turn(at);
        }
    }

    fn may_overtake(&self, at: WordAt) -> bool {
        self.node.words.idle().shares_cores() && self.node.overtaking.may_overtake(at)
    }
}
