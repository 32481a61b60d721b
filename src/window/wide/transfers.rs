//! Transfers with ranks of other nodes that continue after their call has returned, for the calls
//! with a request (MPI-4.1 §12.3.5). A call that waits for the request or tests it gives them
//! progress. No function here waits.

use super::WideWindow;
use super::target_records::WideTarget;
use crate::arena::wide::WideArena;
use crate::error::Result;
use crate::fabric::net::Pending;
use crate::mpi::grequests::RequestWork;
use crate::rank_numbers::Rank;
use crate::window::LocalWindow;
use std::sync::{Arc, Weak};

/// A transfer that one call has begun.
pub struct Transfer {
    pending: Pending,
    /// names a lost process in errors; weak, since the window may be freed before the request is
    /// waited for
    wide: Weak<WideArena>,
}

impl RequestWork for Transfer {
    fn is_done(&mut self) -> Result<bool> {
        self.pending.is_done().map_err(|error| match self.wide.upgrade() {
            Some(wide) => wide.named(error),
            None => error,
        })
    }

    fn rest(&self) {
        if !self.pending.rest() {
            std::thread::yield_now();
        }
    }
}

impl LocalWindow {
    /// Returns a rank as a target of another node that this process has contacted, if it is one.
    fn contacted(&self, rank: Rank) -> Option<(&WideWindow, &WideTarget)> {
        let part = self.wide.as_deref()?;
        Some((part, part.known_target(rank)?))
    }

    /// Returns the value for the argument `before` of [`LocalWindow::pending`]. Call before a
    /// transfer with the rank.
    pub fn lent(&self, target: Rank) -> u64 {
        self.contacted(target).map_or(0, |(_, target)| target.peer.lent())
    }

    /// Waits for the results of accumulates on single words of a rank. A call with a request that
    /// has such a result returns after that: its request must not be complete before, and what is
    /// left to do may wait for a lock, which the progress of a request must not.
    pub fn wait_for_results(&self, target: Rank) -> Result<()> {
        self.contacted(target).map_or(Ok(()), |(part, target)| part.settle_results(self, target))
    }

    /// Returns the transfers with a rank that were begun since [`LocalWindow::lent`] returned
    /// `before` and are not complete at this process: their buffers are in use, or their data have
    /// not arrived.
    pub fn pending(&self, target: Rank, before: u64) -> Result<Option<Transfer>> {
        let Some((part, target)) = self.contacted(target) else { return Ok(None) };
        let pending = Pending::of(&target.peer, before)?;
        Ok(pending.map(|pending| Transfer { pending, wide: Arc::downgrade(&part.wide) }))
    }
}
