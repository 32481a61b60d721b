//! Accumulates on single words by the device that no call has waited for. Such an accumulate is
//! settled when this process has read the accumulate lock of its target after it
//! (`epoch::lock::whole`). That happens before a call that completes it at the target, and, if it
//! has a result, before a call that completes it at this process: the result, which has arrived by
//! then, shows when it took effect.

use super::WideWindow;
use super::targets::WideTarget;
use crate::epoch::lock::whole;
use crate::error::Result;
use crate::fabric::net::Peer;
use crate::fabric::remote::{Bytes, Network};
use crate::rank_numbers::Rank;
use crate::sync::{AtomicBool, Ordering};
use crate::window::LocalWindow;
use crate::window::wanted::Wanted;
use parking_lot::Mutex;
use std::collections::BTreeSet;

/// A rank whose lock is being read.
type Look<'a> = (Rank, &'a Peer, <Peer as Network>::Ticket);

/// The targets of unsettled accumulates.
#[derive(Default)]
pub struct Unsettled {
    ranks: Mutex<BTreeSet<Rank>>,
    /// whether an accumulate at one of them may have a result
    have_results: AtomicBool,
}

impl WideWindow {
    /// Notes that an accumulate on a word of a rank was sent and no call waits for it.
    #[inline]
    pub fn note_unsettled(&self, target: &WideTarget) {
        // Relaxed: a thread that finds the mark has sent its accumulate ahead of the read that a
        // settling thread sends after it has cleared the mark. Both lock the connection to send, so
        // a thread that sends behind the read finds no mark.
        if !target.is_unsettled.load(Ordering::Relaxed) {
            self.mark_unsettled(target, false);
        }
    }

    /// Notes the same of an accumulate that has a result.
    #[inline]
    pub fn note_result(&self, target: &WideTarget) {
        // Relaxed: as in `note_unsettled`.
        if !target.has_results.load(Ordering::Relaxed) {
            self.mark_unsettled(target, true);
        }
    }

    #[cold]
    fn mark_unsettled(&self, target: &WideTarget, has_result: bool) {
        let mut ranks = self.unsettled.ranks.lock();
        ranks.insert(target.rank());
        // Relaxed: as in `note_unsettled`; changed under the lock of the ranks alone.
        target.is_unsettled.store(true, Ordering::Relaxed);
        if has_result {
            target.has_results.store(true, Ordering::Relaxed);
            self.unsettled.have_results.store(true, Ordering::Relaxed);
        }
    }

    /// Clears the marks of a rank, whose accumulates are settled next. The ranks are locked.
    fn clear_marks(&self, rank: Rank) {
        if let Some(target) = self.known_target(rank) {
            // Relaxed: as in `note_unsettled`.
            target.is_unsettled.store(false, Ordering::Relaxed);
            target.has_results.store(false, Ordering::Relaxed);
        }
    }

    /// Settles the accumulates on words of a rank.
    pub fn settle(&self, node: &LocalWindow, rank: Rank) -> Result<()> {
        let mut ranks = self.unsettled.ranks.lock();
        if !ranks.remove(&rank) {
            return Ok(());
        }
        self.clear_marks(rank);
        drop(ranks);
        self.end_look(node, self.begin_look(node, rank)?)
    }

    /// Settles the accumulates on words of all ranks.
    pub fn settle_all(&self, node: &LocalWindow) -> Result<()> {
        let mut unsettled = self.unsettled.ranks.lock();
        let ranks = core::mem::take(&mut *unsettled);
        ranks.iter().for_each(|rank| self.clear_marks(*rank));
        // Relaxed: as in `note_unsettled`.
        self.unsettled.have_results.store(false, Ordering::Relaxed);
        drop(unsettled);
        match ranks.is_empty() {
            true => Ok(()),
            false => self.settle_ranks(node, &Vec::from_iter(ranks)),
        }
    }

    /// Settles the accumulates on words of a rank if one of them has a result.
    pub fn settle_results(&self, node: &LocalWindow, target: &WideTarget) -> Result<()> {
        // Relaxed: as in `note_unsettled`.
        match target.has_results.load(Ordering::Relaxed) {
            true => self.settle(node, target.rank()),
            false => Ok(()),
        }
    }

    /// Settles the accumulates on words of all ranks if one of them may have a result.
    pub fn settle_all_results(&self, node: &LocalWindow) -> Result<()> {
        // Relaxed: as in `note_unsettled`.
        match self.unsettled.have_results.load(Ordering::Relaxed) {
            true => self.settle_all(node),
            false => Ok(()),
        }
    }

    /// Reads the locks of all `ranks` at once, and waits while one is held. Reads all locks, also
    /// after an error, and returns the first error.
    fn settle_ranks(&self, node: &LocalWindow, ranks: &[Rank]) -> Result<()> {
        let begin = |rank: &Rank| {
            let begun = self.begin_look(node, *rank)?;
            // All reads leave before the first wait.
            begun.1.send_gathered();
            Ok(begun)
        };
        let reads: Vec<Result<_>> = ranks.iter().map(begin).collect();
        let ends = reads.into_iter().map(|read| self.end_look(node, read?));
        ends.fold(Ok(()), Result::and)
    }

    /// Begins to read the lock of a rank, behind all accumulates that were sent to it.
    fn begin_look(&self, node: &LocalWindow, rank: Rank) -> Result<Look<'_>> {
        let target = self.target(node, rank)?;
        target.peer.order();
        Ok((rank, &target.peer, target.peer.begin_read(target.accumulate_lock())?))
    }

    /// Waits until the lock was read, and while it is held.
    fn end_look(&self, node: &LocalWindow, (rank, peer, ticket): Look<'_>) -> Result<()> {
        let lock = peer.finish(ticket)?;
        let nodes = node.nodes_for(Wanted::Accumulate(rank));
        whole::wait_if_held(&self.far(node), rank, nodes, lock)
    }
}
