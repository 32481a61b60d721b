//! Accumulates on single words by the device that no call has waited for. Such an accumulate is
//! settled when this process has read the accumulate lock of its target after it
//! (`epoch::lock::whole`), which happens before a call that completes it at the target. Not for
//! accumulates with an answer: those have read the lock when they return.

use super::WideWindow;
use super::targets::WideTarget;
use crate::epoch::lock::whole;
use crate::error::Result;
use crate::fabric::remote::{Bytes, Network};
use crate::rank_numbers::Rank;
use crate::sync::Ordering;
use crate::window::LocalWindow;
use crate::window::wanted::Wanted;
use parking_lot::Mutex;
use std::collections::BTreeSet;

/// The targets of unsettled accumulates.
#[derive(Default)]
pub struct Unsettled(Mutex<BTreeSet<Rank>>);

impl WideWindow {
    /// Notes that an accumulate on a word of a rank was sent and no call waits for it.
    #[inline]
    pub fn note_unsettled(&self, target: &WideTarget) {
        // Relaxed: a thread that finds the mark has sent its accumulate ahead of the read that a
        // settling thread sends after it has cleared the mark. Both lock the connection to send, so
        // a thread that sends behind the read finds no mark.
        if !target.is_unsettled.load(Ordering::Relaxed) {
            self.mark_unsettled(target);
        }
    }

    #[cold]
    fn mark_unsettled(&self, target: &WideTarget) {
        let mut ranks = self.unsettled.0.lock();
        ranks.insert(target.rank());
        // Relaxed: as in `note_unsettled`; changed under the lock of the ranks alone.
        target.is_unsettled.store(true, Ordering::Relaxed);
    }

    /// Clears the mark of a rank, whose accumulates are settled next. The ranks are locked.
    fn clear_mark(&self, rank: Rank) {
        if let Some(target) = self.known_target(rank) {
            // Relaxed: as in `note_unsettled`.
            target.is_unsettled.store(false, Ordering::Relaxed);
        }
    }

    /// Settles the accumulates on words of a rank.
    pub fn settle(&self, node: &LocalWindow, rank: Rank) -> Result<()> {
        let mut ranks = self.unsettled.0.lock();
        if !ranks.remove(&rank) {
            return Ok(());
        }
        self.clear_mark(rank);
        drop(ranks);
        self.settle_ranks(node, &[rank])
    }

    /// Settles the accumulates on words of all ranks.
    pub fn settle_all(&self, node: &LocalWindow) -> Result<()> {
        let mut unsettled = self.unsettled.0.lock();
        let ranks = core::mem::take(&mut *unsettled);
        ranks.iter().for_each(|rank| self.clear_mark(*rank));
        drop(unsettled);
        match ranks.is_empty() {
            true => Ok(()),
            false => self.settle_ranks(node, &Vec::from_iter(ranks)),
        }
    }

    /// Reads the locks of all `ranks` at once, and waits while one is held. Reads all locks, also
    /// after an error, and returns the first error.
    fn settle_ranks(&self, node: &LocalWindow, ranks: &[Rank]) -> Result<()> {
        let begin = |rank: Rank| {
            let target = self.target(node, rank)?;
            let (peer, lock) = (&target.peer, target.accumulate_lock());
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
