//! A rank that serves the connections of its process while it waits, in place of the service
//! thread. [`super::connections`] has the states, and says how both agree.

use std::sync::Arc;

use super::connections::Server;
use super::epoll::Events;
use super::service_thread::ServiceThread;

/// A rank that serves; dropping it lets the service thread serve again.
pub struct Serving {
    thread: Arc<ServiceThread>,
    events: Events,
    /// how long it may wait for events ([`Connections::wait_max`])
    ///
    /// [`Connections::wait_max`]: super::connections::Connections::wait_max
    wait_max: i32,
    /// whether a step has found nothing since the last one that has found requests
    is_quiet: bool,
    /// whether the turn is kept when this is dropped
    keeps: bool,
}

impl Serving {
    /// Begins to serve in place of a thread, which carries out no requests when this returns.
    pub(super) fn begin(thread: Arc<ServiceThread>) -> Serving {
        let wait_max = thread.connections().begin_rank();
        Serving { thread, events: Events::default(), wait_max, is_quiet: false, keeps: false }
    }

    /// Waits for requests, for at most this number of milliseconds, and carries them out. Returns
    /// whether any came. The first step that finds none acknowledges those before it.
    pub fn step(&mut self, milliseconds: i32) -> bool {
        let most = if self.wait_max < 0 { milliseconds } else { milliseconds.min(self.wait_max) };
        self.events.wait(self.thread.streams(), most);
        let came = !self.events.came().is_empty();
        // A rank that polls again and again makes few steps that found nothing.
        if came || milliseconds > 0 || self.wait_max >= 0 {
            self.thread.connections().note_step();
            self.thread.take(&self.events, Server::Rank);
            self.wait_max = self.thread.connections().wait_max(Server::Rank);
        }
        if !came && !core::mem::replace(&mut self.is_quiet, true) {
            self.thread.connections().acknowledge();
        }
        self.is_quiet &= !came;
        came
    }

    /// Number of steps of ranks that have found requests, and of turns that were kept.
    #[cfg(test)]
    pub fn steps(&self) -> u64 {
        self.thread.connections().steps()
    }

    /// Ends the wait of a rank that is expected to wait again soon. The service thread leaves it
    /// the requests that come before, for a short time.
    pub fn keep(mut self) {
        self.keeps = true;
    }

    /// As [`Serving::keep`], if this rank makes one call after the other; otherwise ends its turn.
    pub fn keep_if_busy(mut self) {
        self.keeps = self.thread.connections().is_busy();
    }
}

impl Drop for Serving {
    fn drop(&mut self) {
        if self.keeps {
            self.thread.connections().keep_turn();
        } else {
            self.thread.connections().end_rank();
        }
    }
}
