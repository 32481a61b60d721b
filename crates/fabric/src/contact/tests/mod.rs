//! Tests of first contact without a device: processes that answer each question with its own bytes.

mod incoming;
mod listener;
mod probe;

use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::time::Instant;

use super::*;
use crate::error::Result;
pub use crate::wire::test_processes::secret;

const QUESTION: [u8; BYTES] = [5; BYTES];

/// Waits until other threads have done something; fails after two minutes.
pub fn until(what: &str, mut come: impl FnMut() -> bool) {
    let start = Instant::now();
    while !come() {
        assert!(start.elapsed().as_secs() < 120, "timed out: {what}");
        std::thread::yield_now();
    }
}

/// A process of the job that answers with the question.
struct Echo(Identity);

impl Echo {
    fn new() -> Arc<Echo> {
        let identity = Identity::default();
        identity.admit(secret());
        Arc::new(Echo(identity))
    }

    /// Asks the process of a contact. Returns the answer.
    fn ask(&self, contact: &Contact, question: &[u8; BYTES]) -> Result<[u8; BYTES]> {
        exchange(&self.0, contact, secret(), question, |answer| Some(*answer), true)
            .map(|(answer, _)| answer)
    }
}

impl Service for Echo {
    fn identity(&self) -> &Identity {
        &self.0
    }

    fn answer(&self, question: &[u8; BYTES]) -> Option<Reply> {
        Some(Reply { bytes: *question, keeps_stream: false })
    }

    fn adopt(&self, _: OwnedFd) {}

    fn poll(&self, _: Instant) -> Option<Instant> {
        None
    }
}
