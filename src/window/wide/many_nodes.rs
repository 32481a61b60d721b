//! The protocols of a window whose ranks are on several nodes: on words that the transport between
//! nodes can access, with a barrier and exposure epochs whose cost does not grow with the ranks of
//! a node.

use super::WideWindow;
use super::word_locations::Ranks;
use crate::arena::wide::Member;
use crate::epoch::lock::passes::{Caller, Others};
use crate::epoch::lock::{Nodes, atomic_calls};
use crate::epoch::{exposure, fence};
use crate::error::{Error, Result};
use crate::fabric::Words;
use crate::fabric::layout::SINGLES;
use crate::fabric::remote::{Bytes, Network};
use crate::fabric::remote_words::Far;
use crate::number::Number;
use crate::rank_numbers::{Rank, RankOnNode};
use crate::sync::{Ordering, full_fence};
use crate::window::protocols::Protocols;
use crate::window::{LocalWindow, Memory};
use core::cell::Cell;

/// The protocols of a window whose ranks are on several nodes.
pub struct ManyNodes<'a> {
    pub(super) node: &'a LocalWindow,
    /// the window's state for other nodes
    pub part: &'a WideWindow,
    /// the words of all ranks
    pub words: Far<Ranks<'a>>,
}

impl<'a> Protocols for ManyNodes<'a> {
    type Words = Far<Ranks<'a>>;

    fn words(&self) -> &Self::Words {
        &self.words
    }

    fn fence(&self, precede: bool) -> Result<()> {
        if precede {
            self.settle_all()?;
        }
        let (node, leads) = (self.node, self.part.leads(self.node));
        let (kind, number) = (node.arena().barrier, node.next_barrier());
        let marked = if precede { self.complete_or_mark(&leads, number)? } else { 0 };
        fence::fence_over_nodes((&node.words, &leads), &self.part.opening, (kind, number), marked)
    }

    fn opening_fence(&self) -> Result<()> {
        let (node, leads) = (self.node, self.part.leads(self.node));
        let (words, opening) = ((&node.words, &leads), &self.part.opening);
        let (kind, number) = (node.arena().barrier, node.next_barrier());
        full_fence(); // stores to memory of this node
        match opening.begin(words, kind, number)? {
            true => Ok(()),
            false => fence::fence_over_nodes(words, opening, (kind, number), 0),
        }
    }

    fn post(&self, origins: &[Rank]) -> Result<()> {
        let (part, lists) = (self.part, &self.part.lists(self.node));
        full_fence(); // a device reads what this process has stored to its own memory
        exposure::post(&self.words, lists, &mut part.posted.lock(), origins)
    }

    fn start(&self, targets: &[Rank]) -> Result<()> {
        let (part, lists) = (self.part, &self.part.lists(self.node));
        exposure::start(&self.words, lists, &mut part.started.lock(), targets)
    }

    fn complete(&self, targets: &[Rank]) -> Result<()> {
        self.settle_all()?;
        let told = exposure::complete(&self.words, targets);
        let end = |rank: &Rank| match self.is_never_refused() {
            true => self.flush_local(*rank),
            false => self.words.flush(*rank),
        };
        told.and(targets.iter().map(end).fold(Ok(()), Result::and))
    }

    fn settle(&self, target: Rank) -> Result<()> {
        self.part.settle(self.node, target)
    }

    fn settle_all(&self) -> Result<()> {
        self.part.settle_all(self.node)
    }

    fn flush_local(&self, target: Rank) -> Result<()> {
        let Some(target) = self.part.known_target(target) else { return Ok(()) };
        self.part.settle_results(self.node, target)?;
        target.peer.flush_local()
    }

    fn flush_local_all(&self) -> Result<()> {
        self.part.settle_all_results(self.node)?;
        self.part.wide.peers.flush_local()
    }

    fn single(
        &self,
        (rank, _): (Rank, Caller),
        nodes: impl Nodes,
        work: impl FnOnce(),
    ) -> Result<()> {
        if self.part.wide.wire.is_served()
            && let Some(near) = self.part.near_index(rank)
        {
            let singles = self.node.blocks.far_word(near, SINGLES);
            // Acquire: pairs with the Release below. It comes behind all changes by plain loops.
            if singles.load(Ordering::Acquire) == 0 {
                return atomic_calls::several(&self.words, rank, nodes, || {
                    singles.store(1, Ordering::Release);
                    work();
                    Ok(())
                });
            }
        }
        work();
        atomic_calls::check_after(&self.words, rank, nodes)
    }

    fn several(
        &self,
        (rank, _): (Rank, Caller),
        _elements: u64,
        nodes: impl Nodes,
        work: impl FnOnce(Others) -> Result<()>,
    ) -> Result<()> {
        let work = || work(Others::OnSingleWords);
        if self.part.near_index(rank).is_none() {
            let target = self.part.target(self.node, rank)?;
            if let Some(to) = target.peer.at_target() {
                return target.under_lock(to, work);
            }
        }
        atomic_calls::several(&self.words, rank, nodes, work)
    }
}

impl ManyNodes<'_> {
    /// Waits for the ranks for which an opening fence has not waited.
    pub fn end_opening(&self) -> Result<()> {
        self.part.opening.end(&self.part.leads(self.node))
    }

    /// Whether all memory of the window is the library's, and the leader of each node serves it. No
    /// access to it is refused, so no call has to wait for answers to return such an error.
    fn is_never_refused(&self) -> bool {
        matches!(self.node.memory, Memory::Common(_))
    }

    /// Completes all operations at this rank, and sends marks for the fence `number` behind the
    /// puts that may not be done at their targets. Returns the nodes to which it has sent one.
    fn complete_or_mark(&self, leads: &impl Words, number: u64) -> Result<u64> {
        let wide = &self.part.wide;
        full_fence(); // stores to memory of this node
        if !self.is_never_refused() || wide.nodes > fence::DIRECT_NODES_MAX {
            return wide.peers.flush().map(|()| 0);
        }
        let is_leader =
            |member: Member| member.index == RankOnNode::LEADER && member.node != wide.node;
        let marked = Cell::new(0);
        wide.peers.complete(is_leader, |member, peer| {
            let (node, written) = (member.node.in_leader_words(), peer.written());
            // Relaxed: one thread of this process is in a collective call on the window.
            let before = self.part.marked[node.0.to_usize()].swap(written, Ordering::Relaxed);
            if before != written && fence::mark((&self.node.words, leads), node, number)? {
                marked.set(marked.get() | 1 << node.0);
            }
            Ok(())
        })?;
        Ok(marked.get())
    }
}

impl LocalWindow {
    /// Returns the protocols of a window whose ranks are on several nodes, if this is one.
    #[inline]
    pub fn many_nodes(&self) -> Option<ManyNodes<'_>> {
        let part = self.wide.as_deref()?;
        Some(ManyNodes { node: self, part, words: part.far(self) })
    }

    /// Whether targets execute accumulates, so that the processor of the target changes elements
    /// for ranks of all nodes.
    pub fn accumulates_at_targets(&self) -> bool {
        self.wide.as_deref().is_some_and(|part| part.wide.wire.is_served())
    }

    /// Whether its ranks are on several nodes, and all of them report how long they waited.
    pub fn report_waits_of_nodes(&self) -> bool {
        self.wide.as_deref().is_some_and(|part| part.wide.report_waits)
    }

    /// Whether its ranks are on several nodes.
    #[inline(always)]
    pub fn spans_nodes(&self) -> bool {
        self.wide.is_some()
    }

    /// Returns an error of a call on this window, with ranks of the window.
    pub fn with_rank(&self, error: Error) -> Error {
        match self.many_nodes() {
            Some(many) => many.part.wide.named(error),
            None => error,
        }
    }
}
