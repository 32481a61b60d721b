//! Accumulates on single words by the device that no call has waited for. Such an accumulate is
//! settled when this process has read the accumulate lock of its target after it
//! (`epoch::lock::whole`), which happens before a call that completes it at the target. Not for
//! accumulates with an answer: those have read the lock when they return.

use super::WideWindow;
use crate::epoch::lock::whole;
use crate::error::Result;
use crate::fabric::far::word_in;
use crate::fabric::remote::Remote;
use crate::fabric::remote::{Bytes, Network};
use crate::rank_numbers::Rank;
use crate::window::LocalWindow;
use crate::window::wanted::Wanted;
use parking_lot::Mutex;
use std::collections::BTreeSet;

/// The targets of unsettled accumulates.
#[derive(Default)]
pub struct Unsettled(Mutex<BTreeSet<Rank>>);

impl WideWindow {
    /// Returns the address of the accumulate lock of a rank.
    pub fn accumulate_lock(&self, node: &LocalWindow, rank: Rank) -> Result<Remote> {
        let target = self.target(node, rank)?;
        Ok(word_in(target.block, whole::word(rank).word))
    }

    /// Notes that an accumulate on a word of a rank was sent and no call waits for it.
    pub fn note_unsettled(&self, rank: Rank) {
        self.unsettled.0.lock().insert(rank);
    }

    /// Settles the accumulates on words of a rank.
    pub fn settle(&self, node: &LocalWindow, rank: Rank) -> Result<()> {
        match self.unsettled.0.lock().remove(&rank) {
            true => self.settle_ranks(node, &[rank]),
            false => Ok(()),
        }
    }

    /// Settles the accumulates on words of all ranks.
    pub fn settle_all(&self, node: &LocalWindow) -> Result<()> {
        let ranks = core::mem::take(&mut *self.unsettled.0.lock());
        match ranks.is_empty() {
            true => Ok(()),
            false => self.settle_ranks(node, &Vec::from_iter(ranks)),
        }
    }

    /// Reads the locks of all `ranks` at once, and waits while one is held. Reads all locks, also
    /// after an error, and returns the first error.
    fn settle_ranks(&self, node: &LocalWindow, ranks: &[Rank]) -> Result<()> {
        let begin = |rank: Rank| {
            let (peer, lock) = (&self.target(node, rank)?.peer, self.accumulate_lock(node, rank)?);
            peer.order();
            let read = peer.begin_read(lock)?;
            // All reads leave before the first wait.
            peer.send_gathered();
            Ok((rank, peer, read))
        };
        let reads: Vec<Result<_>> = ranks.iter().map(|rank| begin(*rank)).collect();
        let mut done = Ok(());
        for read in reads {
            let settled = read.and_then(|(rank, peer, ticket)| {
                let lock = peer.finish(ticket)?;
                let nodes = node.nodes_for(Wanted::Accumulate(rank));
                whole::wait_if_held(&self.far(node), rank, nodes, lock)
            });
            done = done.and(settled);
        }
        done
    }
}
