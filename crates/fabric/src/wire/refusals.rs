//! Requests that a peer has not carried out because its process may not access a page of its own
//! memory. The connection stays, and the user learns of them at the end of an epoch or at a flush,
//! because a protocol that ended in the middle would leave locks and posts after. Invariant:
//! `refusing` of the core counts the peers whose `refused` is set.

use super::peer::{Core, Peer, State};
use crate::error::{Error, Result, kept};
use crate::sync::Ordering;

impl Core {
    /// Whether a peer has refused a request, and the user does not know it yet.
    pub(super) fn has_refusals(&self) -> bool {
        // Relaxed: a thread that asks has waited for the answers, which another thread may have
        // received, under the lock of the peer's state or by `is_idle`.
        self.refusing.load(Ordering::Relaxed) > 0
    }
}

impl Peer {
    /// Records whether the peer has refused a request, and the user does not know it yet.
    #[inline]
    pub(super) fn record_refusal(&self, refused: bool) {
        // Relaxed: changed while the state is locked, and before `dirty`.
        if self.refused.load(Ordering::Relaxed) != refused {
            self.refused.store(refused, Ordering::Relaxed);
            let change = if refused { 1 } else { u64::MAX };
            self.core.refusing.fetch_add(change, Ordering::Relaxed);
        }
    }

    /// Fails if the process was not permitted to access memory of its own for a request of this
    /// one, and forgets it.
    pub(super) fn take_refusal(&self) -> Result<()> {
        let mut state = self.state.lock();
        let State::Up(queue) = &mut *state else { return Ok(()) };
        let refused = queue.is_refused();
        queue.forget_refusal();
        self.record_refusal(false);
        if refused { Err(self.no_access()) } else { Ok(()) }
    }

    fn no_access(&self) -> Error {
        let contact = self.contact();
        let node = self.node.get_or_init(|| kept(contact.node()));
        Error::NoAccess { rank: None, node, pid: contact.pid() }
    }

    /// Whether the peer has refused a request, and the user does not know it yet.
    pub(super) fn is_refused(&self) -> bool {
        // Relaxed: as where it is stored.
        self.refused.load(Ordering::Relaxed)
    }
}
