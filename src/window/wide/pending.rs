//! Transfers with ranks of other nodes that go on when their call has returned, for the calls with
//! a request (MPI-4.1 §12.3.5). Who waits for the request moves them. Not for waiting here.

use super::Wide;
use crate::error::Result;
use crate::fabric::verbs::Pending;
use crate::mpi::pending::Work;
use crate::window::Node;
use std::sync::{Arc, Weak};

/// What one call has begun.
pub struct Transfer {
    pending: Pending,
    /// for the names of who is lost; the window may be freed before somebody waits
    wide: Weak<Wide>,
}

impl Work for Transfer {
    fn is_done(&mut self) -> Result<bool> {
        self.pending.is_done().map_err(|error| match self.wide.upgrade() {
            Some(wide) => wide.named(error),
            None => error,
        })
    }
}

impl Node {
    /// What [`Node::pending`] is asked with behind a transfer with a rank.
    pub fn lent(&self, target: u32) -> u64 {
        match self.wide.as_ref().and_then(|part| part.known_target(target)) {
            None => 0,
            Some(target) => target.peer.lent(),
        }
    }

    /// What was begun with a rank since [`Node::lent`] was `before` and is not done, as far as this
    /// process sees: buffers are in use, or data are not there.
    pub fn pending(&self, target: u32, before: u64) -> Result<Option<Transfer>> {
        let Some(part) = &self.wide else { return Ok(None) };
        let Some(target) = part.known_target(target) else { return Ok(None) };
        let pending = Pending::of(&target.peer, before)?;
        Ok(pending.map(|pending| Transfer { pending, wide: Arc::downgrade(&part.wide) }))
    }
}
