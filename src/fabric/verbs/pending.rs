//! Transfers that use memory of the user and are not done when their call returns, as something
//! that can be asked how it stands: for requests, whose completion somebody waits for elsewhere.
//! Not for waiting here.

use std::sync::Arc;

use super::peer::{Pause, Peer};
use crate::error::Result;

/// Transfers with a peer that are under way.
pub struct Pending {
    peer: Arc<Peer>,
    /// the last of them
    number: u64,
    pause: Pause,
}

impl Pending {
    /// What uses memory of the user and was sent to a peer behind request `before`, if it is not
    /// done.
    pub fn of(peer: &Arc<Peer>, before: u64) -> Result<Option<Pending>> {
        let number = peer.lent();
        if number == before {
            return Ok(None);
        }
        let mut pending = Pending { peer: peer.clone(), number, pause: Pause::default() };
        Ok(if pending.is_done()? { None } else { Some(pending) })
    }

    /// Whether they are done, without waiting: the memory may be used again, and what was got is
    /// there. Fails if the peer was lost before.
    pub fn is_done(&mut self) -> Result<bool> {
        let done = self.peer.try_is_done(self.number)?;
        if done {
            self.peer.core.registrations.sweep();
        } else if self.pause.is_over() {
            self.peer.try_ping();
        }
        Ok(done)
    }
}
