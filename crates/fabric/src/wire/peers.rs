//! The peers of one communicator that this process has contacted, each under a key that the
//! communicator chooses. Waits and checks cover all of these peers and no others, so that a lost
//! process of another communicator does not matter here.

use std::collections::BTreeMap;
use std::ops::Bound;
use std::sync::Arc;

use parking_lot::Mutex;

use super::peer::Peer;
use crate::contact::Contact;
use crate::error::Result;
use crate::remote::{Bytes, Network};

/// Peers that were contacted, or are about to be.
pub struct Peers<K>(Mutex<BTreeMap<K, Arc<Peer>>>);

impl<K> Default for Peers<K> {
    fn default() -> Peers<K> {
        Peers(Mutex::default())
    }
}

/// Whether anything was sent to the peer that is not known to be done, or never will be.
fn has_work(peer: &Peer) -> bool {
    !peer.is_idle()
}

impl<K: Ord + Copy> Peers<K> {
    /// Returns the peer of a key; the first call makes it with `make`.
    pub fn get(&self, key: K, make: impl FnOnce() -> Arc<Peer>) -> Arc<Peer> {
        self.0.lock().entry(key).or_insert_with(make).clone()
    }

    /// Returns the key of the peer whose contact `is_it` accepts. Processes of different namespaces
    /// may have the same process id. If several peers match, a lost one is preferred.
    pub fn find(&self, is_it: impl Fn(&Contact) -> bool) -> Option<K> {
        let found: Vec<_> = {
            let peers = self.0.lock();
            let found = peers.iter().filter(|(_, peer)| is_it(peer.contact()));
            found.map(|(key, peer)| (*key, peer.clone())).collect()
        };
        let lost = found.iter().find(|(_, peer)| peer.check().is_err());
        lost.or(found.first()).map(|(key, _)| *key)
    }

    /// Calls `work` with each peer that `which` selects, even after an error, and returns the first
    /// error. No lock is held during the calls.
    fn each(
        &self,
        which: impl Fn(&Peer) -> bool,
        work: impl Fn(K, &Peer) -> Result<()>,
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
            done = done.and(work(key, &peer));
            last = Bound::Excluded(key);
        }
    }

    /// Waits until the buffers of all transfers may be used again, and until everything that was
    /// sent is done. Does not wait for the latter at peers that `is_told` selects: `tell` sends
    /// them what shows that it is done.
    pub fn complete(
        &self,
        is_told: impl Fn(K) -> bool,
        tell: impl Fn(K, &Peer) -> Result<()>,
    ) -> Result<()> {
        let begun = self.each(has_work, |key, peer| match is_told(key) {
            true => tell(key, peer),
            false => peer.flush_begin(),
        });
        let done = self.each(has_work, |key, peer| match is_told(key) {
            true => peer.flush_local(),
            false => peer.flush(),
        });
        begun.and(done)
    }

    /// Waits until everything that was sent to any of them is done in its memory, or never will be.
    pub fn flush(&self) -> Result<()> {
        self.flush_those(has_work)
    }

    /// Does the same for all of them but one.
    pub fn flush_but(&self, but: &Peer) -> Result<()> {
        self.flush_those(|peer| has_work(peer) && !core::ptr::eq(but, peer))
    }

    fn flush_those(&self, which: impl Fn(&Peer) -> bool) -> Result<()> {
        let begun = self.each(&which, |_, peer| peer.flush_begin());
        let done = self.each(&which, |_, peer| peer.flush());
        begun.and(done)
    }

    /// Waits until the buffers of all transfers may be used again.
    pub fn flush_local(&self) -> Result<()> {
        self.each(has_work, |_, peer| peer.flush_local())
    }

    /// Fails if one of them could not access its own memory for a request of this process, and
    /// forgets the refusal.
    pub fn take_refusals(&self) -> Result<()> {
        self.each(Peer::is_refused, |_, peer| peer.take_refusal())
    }

    /// Pings all of them that were contacted, without waiting for the answers. A rank that waits
    /// for another process calls this from time to time, because nothing else would show that the
    /// process is gone.
    pub fn ping(&self) -> Result<()> {
        self.each(|_| true, |_, peer| peer.ping_if_up())
    }

    /// Fails if one of them is lost.
    pub fn check(&self) -> Result<()> {
        self.each(|_| true, |_, peer| peer.check())
    }
}
