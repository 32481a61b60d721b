//! The protocols by which the ranks of a window synchronise: those of [`OneNode`] are on words in
//! mapped memory, those of `wide/many_nodes.rs` on words that the transport between nodes reaches.
//! The creation of a window decides which of them it uses; a call selects them by [`on_protocols`].
//! `epoch::state` decides which call is legal.

use super::LocalWindow;
use crate::arena::control_blocks::ControlBlocks;
use crate::arena::wait_progress::NodeIdle;
use crate::epoch::lock::Nodes;
use crate::epoch::lock::passes::{self, Caller, Others};
use crate::epoch::{fence, pscw};
use crate::error::Result;
use crate::fabric::Words;
use crate::fabric::shm::words::CpuWords;
use crate::rank_numbers::Rank;

/// The protocols of the calls that synchronise a window; they depend on where its ranks are.
pub trait Protocols {
    /// The control words that all ranks have in common.
    type Words: Words;

    /// Returns these words.
    fn words(&self) -> &Self::Words;

    /// Waits for all ranks. With `precede`, first waits until the operations of this rank are done.
    fn fence(&self, precede: bool) -> Result<()>;

    /// A fence behind which no operation of this rank is pending, and which may wait for the other
    /// ranks later: at an access, or at the next fence.
    fn opening_fence(&self) -> Result<()> {
        self.fence(false)
    }

    /// Opens an exposure epoch for these origins.
    fn post(&self, origins: &[Rank]) -> Result<()>;

    /// Waits for the posts of these targets.
    fn start(&self, targets: &[Rank]) -> Result<()>;

    /// Completes an access epoch: waits until its operations are done, and notifies the targets.
    fn complete(&self, targets: &[Rank]) -> Result<()>;

    /// Settles unconfirmed accumulates on single words of a target.
    fn settle(&self, target: Rank) -> Result<()>;

    /// Settles the accumulates on single words of all targets.
    fn settle_all(&self) -> Result<()>;

    /// Waits until the buffers of all transfers with a target may be reused.
    fn flush_local(&self, target: Rank) -> Result<()>;

    /// Waits until the buffers of all transfers may be reused.
    fn flush_local_all(&self) -> Result<()>;

    /// Does `work`, a single instruction on a mapped word of a rank, such that each call on several
    /// words sees either all or nothing of it.
    fn single(&self, at: (Rank, Caller), nodes: impl Nodes, work: impl FnOnce()) -> Result<()>;

    /// Does `work`, a call on about `elements` elements of a rank, under its accumulate lock.
    fn several(
        &self,
        at: (Rank, Caller),
        elements: u64,
        nodes: impl Nodes,
        work: impl FnOnce(Others) -> Result<()>,
    ) -> Result<()>;
}

/// The protocols of a window whose ranks are all on this node. Transfers are done when their calls
/// return, except for small puts, which the callers complete (`complete_puts`).
pub struct OneNode<'a>(pub &'a LocalWindow);

impl Protocols for OneNode<'_> {
    type Words = CpuWords<ControlBlocks, NodeIdle>;

    #[inline(always)]
    fn words(&self) -> &Self::Words {
        &self.0.words
    }

    fn fence(&self, precede: bool) -> Result<()> {
        fence::fence(&self.0.words, self.0.arena().barrier, self.0.next_barrier(), precede)
    }

    fn post(&self, origins: &[Rank]) -> Result<()> {
        pscw::post(&self.0.words, origins.iter().copied())
    }

    fn start(&self, targets: &[Rank]) -> Result<()> {
        pscw::start(&self.0.words, targets.iter().copied())
    }

    fn complete(&self, targets: &[Rank]) -> Result<()> {
        pscw::complete(&self.0.words, targets.iter().copied())
    }

    #[inline(always)]
    fn settle(&self, _target: Rank) -> Result<()> {
        Ok(())
    }

    #[inline(always)]
    fn settle_all(&self) -> Result<()> {
        Ok(())
    }

    #[inline(always)]
    fn flush_local(&self, _target: Rank) -> Result<()> {
        Ok(())
    }

    #[inline(always)]
    fn flush_local_all(&self) -> Result<()> {
        Ok(())
    }

    #[inline]
    fn single(&self, at: (Rank, Caller), nodes: impl Nodes, work: impl FnOnce()) -> Result<()> {
        passes::single(&self.0.words, at, nodes, || {
            work();
            Ok(())
        })
    }

    #[inline]
    fn several(
        &self,
        at: (Rank, Caller),
        elements: u64,
        nodes: impl Nodes,
        work: impl FnOnce(Others) -> Result<()>,
    ) -> Result<()> {
        passes::several(&self.0.words, at, elements, nodes, work)
    }
}

/// Does something with the protocols of a window.
macro_rules! on_protocols {
    ($node:expr, |$protocols:ident| $work:expr) => {
        match $node.many_nodes() {
            None => {
                let $protocols = &$crate::window::protocols::OneNode($node);
                $work
            }
            Some(many) => {
                let $protocols = &many;
                $work
            }
        }
    };
}
pub(crate) use on_protocols;

/// Runs a protocol on the control words that all ranks of a window have in common.
macro_rules! on_words {
    ($node:expr, |$words:ident| $protocol:expr) => {
        $crate::window::protocols::on_protocols!($node, |protocols| {
            let $words = $crate::window::protocols::Protocols::words(protocols);
            $protocol
        })
    };
}
pub(crate) use on_words;
