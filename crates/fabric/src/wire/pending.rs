//! Transfers for MPI requests that use memory of the user and are under way when their call
//! returns. A request tests them; waiting is elsewhere.

use std::sync::Arc;

use super::pause::Pause;
use super::peer::Peer;
use crate::error::Result;

/// Transfers with a peer that are under way.
pub struct Pending {
    peer: Arc<Peer>,
    /// number of the last request of these transfers
    number: u64,
    pause: Pause,
}

impl Pending {
    /// Returns the transfers that use memory of the user and were sent to `peer` after request
    /// `before`, if they are not done.
    pub fn of(peer: &Arc<Peer>, before: u64) -> Result<Option<Pending>> {
        let number = peer.lent();
        if number == before {
            return Ok(None);
        }
        let mut pending = Pending { peer: peer.clone(), number, pause: Pause::default() };
        Ok(if pending.is_done()? { None } else { Some(pending) })
    }

    /// Whether they are done, without waiting: the memory may be used again, and the data of gets
    /// have arrived. Fails if the peer was lost before that.
    pub fn is_done(&mut self) -> Result<bool> {
        let done = self.peer.try_is_released(self.number)?;
        if done {
            self.peer.core.device.sweep();
        } else if self.pause.is_over() {
            self.peer.try_ping();
        }
        Ok(done)
    }

    /// Sleeps until they may be done, for a short time at most, if the device lets a thread sleep.
    /// Returns whether it does.
    pub fn rest(&self) -> bool {
        self.peer.rest()
    }
}
