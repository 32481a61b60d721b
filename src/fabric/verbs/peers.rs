//! The processes of one communicator that this process has had to do with, each under a key of the
//! communicator's: what waits for all of them, and asks or minds no others. Nobody else's trouble
//! is theirs.

use std::collections::BTreeMap;
use std::ops::Bound;
use std::sync::Arc;

use parking_lot::Mutex;

use super::{Contact, Peer};
use crate::error::Result;

/// Processes that were contacted, or will be.
pub struct Peers<K>(Mutex<BTreeMap<K, Arc<Peer>>>);

impl<K> Default for Peers<K> {
    fn default() -> Peers<K> {
        Peers(Mutex::default())
    }
}

/// Whether something was sent to it that is not known to be done, or will never be.
fn has_work(peer: &Peer) -> bool {
    !peer.is_idle()
}

impl<K: Ord + Copy> Peers<K> {
    /// The one of a key, which `make` finds the first time.
    pub fn get(&self, key: K, make: impl FnOnce() -> Arc<Peer>) -> Arc<Peer> {
        self.0.lock().entry(key).or_insert_with(make).clone()
    }

    /// The key of the process that a contact is of, as far as `is_it` knows.
    pub fn find(&self, is_it: impl Fn(&Contact) -> bool) -> Option<K> {
        let peers = self.0.lock();
        peers.iter().find(|(_, peer)| is_it(peer.contact())).map(|(key, _)| *key)
    }

    /// Does `work` with each of those that `which` chooses, whatever fails; the first error.
    /// Nothing is locked meanwhile.
    fn each(
        &self,
        which: impl Fn(&Peer) -> bool,
        work: impl Fn(&Peer) -> Result<()>,
    ) -> Result<()> {
        let (mut done, mut last) = (Ok(()), Bound::Unbounded);
        loop {
            let next = {
                let peers = self.0.lock();
                let mut others = peers.range((last, Bound::Unbounded));
                let next = others.find(|(_, peer)| which(peer));
                next.map(|(key, peer)| (*key, peer.clone()))
            };
            let Some((key, peer)) = next else { return done };
            done = done.and(work(&peer));
            last = Bound::Excluded(key);
        }
    }

    /// Waits until what was sent to any of them is done in its memory, or never will be.
    pub fn flush(&self) -> Result<()> {
        let begun = self.each(has_work, Peer::flush_begin);
        let done = self.each(has_work, Peer::flush);
        begun.and(done)
    }

    /// Waits until the buffers of all transfers may be used again.
    pub fn flush_local(&self) -> Result<()> {
        self.each(has_work, Peer::flush_local)
    }

    /// Asks all of them that were contacted whether they still answer, without waiting. Who waits
    /// for another process does so now and then, because nothing else would tell that it is gone.
    pub fn ping(&self) -> Result<()> {
        self.each(|_| true, Peer::ping_if_up)
    }

    /// Fails if one of them is lost.
    pub fn check(&self) -> Result<()> {
        self.each(|_| true, Peer::check)
    }
}
