//! Accumulates on single words by the device that are unconfirmed. Such an accumulate is settled
//! when this process has read the accumulate lock of its target after it
//! (`epoch::lock::atomic_calls`). That happens before a call that completes it at the target, and,
//! if it has a result, before a call that completes it at this process: the result, which has
//! arrived by then, shows when it took effect. `epoch::lock::unconfirmed_targets` tracks the
//! targets.

use super::WideWindow;
use super::target_records::WideTarget;
use crate::epoch::lock::atomic_calls;
use crate::epoch::lock::unconfirmed_targets::{UnconfirmedMarks, UnconfirmedTarget};
use crate::epoch::lock::used_nodes::Wanted;
use crate::error::Result;
use crate::fabric::net::Peer;
use crate::fabric::remote::{Bytes, Network};
use crate::rank_numbers::Rank;
use crate::window::LocalWindow;

/// A rank whose lock is being read.
type LockRead<'a> = (&'a WideTarget, <Peer as Network>::Ticket);

impl WideWindow {
    /// Records an unconfirmed accumulate on a word of a rank.
    #[inline]
    pub fn note_unsettled(&self, target: &WideTarget) {
        target.unconfirmed.record(&self.unconfirmed, target.rank());
    }

    /// Records an unconfirmed accumulate with a result.
    #[inline]
    pub fn note_result(&self, target: &WideTarget) {
        target.unconfirmed.record_result(&self.unconfirmed, target.rank());
    }

    fn unconfirmed_marks(&self, rank: Rank) -> Option<&UnconfirmedMarks> {
        self.known_target(rank).map(|target| &target.unconfirmed)
    }

    /// Settles the accumulates on words of a rank.
    pub fn settle(&self, node: &LocalWindow, rank: Rank) -> Result<()> {
        let Some(marks) = self.unconfirmed_marks(rank) else { return Ok(()) };
        let Some(look) = self.unconfirmed.begin(rank, marks) else { return Ok(()) };
        let seen = self.begin_read(node, rank).and_then(|begun| self.finish_read(node, begun));
        self.unconfirmed.end(&look, marks);
        seen
    }

    /// Settles the accumulates on words of all ranks.
    pub fn settle_all(&self, node: &LocalWindow) -> Result<()> {
        let looks = self.unconfirmed.begin_all(|rank| self.unconfirmed_marks(rank));
        match looks.is_empty() {
            true => Ok(()),
            false => self.settle_ranks(node, &looks),
        }
    }

    /// Settles the accumulates on words of a rank if one of them has a result.
    pub fn settle_results(&self, node: &LocalWindow, target: &WideTarget) -> Result<()> {
        match target.unconfirmed.has_results() {
            true => self.settle(node, target.rank()),
            false => Ok(()),
        }
    }

    /// Settles the accumulates on words of all ranks if one of them may have a result.
    pub fn settle_all_results(&self, node: &LocalWindow) -> Result<()> {
        match self.unconfirmed.have_results() {
            true => self.settle_all(node),
            false => Ok(()),
        }
    }

    /// Reads the locks of all ranks at once, and waits while one is held. Reads all locks, also
    /// after an error, and returns the first error.
    fn settle_ranks(&self, node: &LocalWindow, looks: &[UnconfirmedTarget]) -> Result<()> {
        let begin = |look: &UnconfirmedTarget| {
            let begun = self.begin_read(node, look.rank)?;
            // All reads leave before the first wait.
            begun.0.peer.send_gathered();
            Ok(begun)
        };
        let reads: Vec<Result<_>> = looks.iter().map(begin).collect();
        let ends = reads.into_iter().zip(looks).map(|(read, look)| {
            let seen = read.and_then(|begun| self.finish_read(node, begun));
            self.unconfirmed_marks(look.rank).inspect(|marks| self.unconfirmed.end(look, marks));
            seen
        });
        ends.fold(Ok(()), Result::and)
    }

    /// Begins to read the lock of a rank, behind all accumulates that were sent to it.
    fn begin_read(&self, node: &LocalWindow, rank: Rank) -> Result<LockRead<'_>> {
        let target = self.target(node, rank)?;
        target.peer.order();
        Ok((target, target.peer.begin_read(target.accumulate_lock().at)?))
    }

    /// Waits until the lock was read, and while it is held.
    fn finish_read(&self, node: &LocalWindow, (target, ticket): LockRead<'_>) -> Result<()> {
        self.wait_if_held(node, target, target.peer.finish(ticket)?)
    }

    /// Waits once for the accumulate lock of a target, whose word was read as `lock`, if a call
    /// holds it.
    pub fn wait_if_held(&self, node: &LocalWindow, target: &WideTarget, lock: u64) -> Result<()> {
        let rank = target.rank();
        match target.peer.at_target() {
            Some(to) if atomic_calls::is_held(lock) => {
                target.under_lock(to, || Ok(()))?;
                target.peer.flush()
            }
            Some(_) => Ok(()),
            None => {
                let nodes = node.nodes_for(Wanted::Accumulate(rank));
                atomic_calls::wait_if_held(&self.far(node), rank, nodes, lock)
            }
        }
    }
}
