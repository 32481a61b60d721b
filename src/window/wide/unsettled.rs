//! Accumulates on single words of the device that nobody has waited for. They end when the lock of
//! their target was looked at behind them (`epoch::lock::whole`): before a call that completes them
//! at the target. Not for accumulates whose answer was waited for, which have looked already.

use super::Part;
use super::words::word_in;
use crate::epoch::lock::whole;
use crate::error::Result;
use crate::fabric::Rank;
use crate::fabric::verbs::Remote;
use crate::window::Node;
use crate::window::nodes::Wanted;
use parking_lot::Mutex;
use std::collections::BTreeSet;

/// The targets of such accumulates.
#[derive(Default)]
pub struct Unsettled(Mutex<BTreeSet<u32>>);

impl Part {
    /// Where the accumulate lock of a rank is.
    pub fn accumulate_lock(&self, node: &Node, rank: u32) -> Result<Remote> {
        let target = self.target(node, rank)?;
        Ok(word_in(target.block, whole::word(Rank(rank)).word))
    }

    /// An accumulate on a word of a rank was sent, and nobody waits for it.
    pub fn note_unsettled(&self, rank: u32) {
        self.unsettled.0.lock().insert(rank);
    }

    /// Ends the accumulates on words of a rank that nobody has waited for.
    pub fn settle(&self, node: &Node, rank: u32) -> Result<()> {
        match self.unsettled.0.lock().remove(&rank) {
            true => self.settle_these(node, &[rank]),
            false => Ok(()),
        }
    }

    /// The same on words of any rank.
    pub fn settle_all(&self, node: &Node) -> Result<()> {
        let ranks = core::mem::take(&mut *self.unsettled.0.lock());
        match ranks.is_empty() {
            true => Ok(()),
            false => self.settle_these(node, &Vec::from_iter(ranks)),
        }
    }

    /// Looks at the locks of all of them at once, and waits where one is held. All are looked at,
    /// whatever fails; the first error.
    fn settle_these(&self, node: &Node, ranks: &[u32]) -> Result<()> {
        let look = |rank: u32| {
            let (peer, lock) = (&self.target(node, rank)?.peer, self.accumulate_lock(node, rank)?);
            peer.order();
            Ok((rank, peer, peer.begin_read(lock)?))
        };
        let looks: Vec<Result<_>> = ranks.iter().map(|rank| look(*rank)).collect();
        let mut done = Ok(());
        for look in looks {
            let settled = look.and_then(|(rank, peer, ticket)| {
                let lock = peer.finish(ticket)?;
                let nodes = node.nodes_for(Wanted::Accumulate(rank));
                whole::wait_if_held(&self.far(node), Rank(rank), nodes, lock)
            });
            done = done.and(settled);
        }
        done
    }
}
