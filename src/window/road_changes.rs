//! Where the memory of each rank of a created window is mapped, and moves of this rank's memory
//! while the window is in use. `epoch::moving` has the protocol, `memory::adopted` the move.

use super::mapped_bytes::MappedBytes;
use super::own_ranges::OwnRange;
use super::wanted::Wanted;
use super::{LocalWindow, Memory, report};
use crate::epoch::moving::{self, Attempt};
use crate::error::Result;
use crate::fabric::WordAt;
use crate::fabric::cma::Process;
use crate::fabric::layout::LEFT;
use crate::rank_numbers::{Rank, RankOnNode};

impl LocalWindow {
    /// Returns the bytes that can be mapped of the memory of a rank of this node, in a created
    /// window, if there are any. If there are none, there may be some later, unless the memory is
    /// held.
    #[inline]
    pub(super) fn mapped(&self, rank: RankOnNode) -> Option<&MappedBytes> {
        let is_fixed = !self.is_private(rank);
        is_fixed.then(|| self.blocks.mapped_bytes(rank)).filter(|mapped| mapped.is_any())
    }

    /// Whether a rank's memory may move, so that accesses to it hold it.
    #[inline]
    fn may_move(&self, rank: RankOnNode) -> bool {
        matches!(self.memory, Memory::Owned(_)) && !self.spans_nodes() && self.is_private(rank)
    }

    /// Whether a rank's memory may move, in a created window. No word of this node is ever lost.
    #[inline]
    fn is_private(&self, rank: RankOnNode) -> bool {
        moving::is_private(&self.words, rank.in_node_words()).unwrap_or(false)
    }

    /// Does `work`, an access to the memory of a rank, which does not move meanwhile. `work` waits
    /// for the accumulate lock of that rank and for nothing else, and does not call this again.
    #[inline]
    pub fn while_steady<R>(&self, rank: Rank, work: impl FnOnce() -> Result<R>) -> Result<R> {
        if self.spans_nodes() {
            return work();
        }
        self.while_steady_on_node(rank.on_only_node(), work)
    }

    /// [`LocalWindow::while_steady`] for a rank of this node.
    #[inline]
    pub(super) fn while_steady_on_node<R>(
        &self,
        rank: RankOnNode,
        work: impl FnOnce() -> Result<R>,
    ) -> Result<R> {
        let is_held = self.may_move(rank) && self.hold(rank)?;
        let done = work();
        if is_held {
            moving::end(&self.words, rank.in_node_words(), is_held)?;
        }
        done
    }

    #[inline(never)]
    fn hold(&self, rank: RankOnNode) -> Result<bool> {
        self.move_if_due();
        let nodes = self.nodes_for(Wanted::Regions(rank.on_only_node()));
        moving::begin(&self.words, rank.in_node_words(), nodes)
    }

    /// Returns a process of this node whose memory the kernel copies. Copies count for the decision
    /// when that process moves its memory.
    #[inline]
    pub(super) fn process(&self, rank: RankOnNode) -> Process<'_> {
        let process = self.arena().memory_of(rank);
        match self.may_move(rank) {
            true => {
                let at = WordAt { rank: rank.in_node_words(), word: LEFT };
                process.with_cost(self.blocks.word(at))
            }
            false => process,
        }
    }

    /// Moves the memory of this rank if copies of other ranks have cost what that costs. To be
    /// called ahead of all work of a call.
    #[inline]
    pub(super) fn move_if_due(&self) {
        if let Some(range) = &self.own_range
            && range.may_move()
            && moving::is_due(&self.words)
        {
            self.try_move(range);
        }
    }

    #[cold]
    fn try_move(&self, range: &OwnRange) {
        let Some(mut attempts) = range.attempt() else { return };
        let nodes = self.nodes_for(Wanted::Regions(self.rank));
        let done = moving::attempt(&self.words, nodes, || match range.move_now(&mut attempts) {
            Ok(part) => {
                report::moved(self.rank, Ok(part));
                let base = self.blocks.descriptor(self.arena().rank).address;
                let mapped = MappedBytes::part(base, part.inner, part.place);
                self.blocks.set_mapped_bytes(mapped);
                Attempt::Ended
            }
            Err((why, next)) => {
                why.inspect(|why| report::moved(self.rank, Err(*why)));
                next.map_or(Attempt::Ended, Attempt::Later)
            }
        });
        if done.is_err() || !self.is_private(self.arena().rank) {
            // A rank that is lost may keep its hold for ever.
            range.stays();
        }
    }
}
