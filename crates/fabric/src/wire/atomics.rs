//! Operations on single words of a peer: atomics, with an answer or without, and reads. Invariant:
//! a word into which an answer is stored has no other owner until its ticket is finished.

use super::counts::Kinds;
use super::peer::Peer;
use super::pool::Word;
use super::queue::Kept;
use crate::Fetch;
use crate::error::Result;
use crate::remote::Remote;
use crate::request::{Order, Work};
use crate::sync::Ordering;

/// An answer that will arrive; [`Peer::finish`] waits for it.
#[must_use]
#[derive(Debug)]
pub struct Ticket {
    number: u64,
    word: Word,
}

/// Selects the count of a kind of operation.
type Count = fn(&mut Kinds) -> &mut u64;

impl Peer {
    /// Sends a request of 8 bytes. Returns its number.
    fn send(&self, order: Order, count: Count) -> Result<u64> {
        debug_assert!(order.to.at.is_multiple_of(8));
        self.with(|queue| {
            self.room(queue, 1)?;
            *count(queue.count()) += 1;
            // SAFETY: the word is registered and lives as long as the queue.
            Ok(unsafe { queue.post(order, Kept::Nothing) }?)
        })
    }

    fn begin_with(&self, at: Remote, work: Work, count: Count) -> Result<Ticket> {
        let word = self.core.answers.take(&self.core.device)?;
        // The wait for the answer sends the request, so it may leave with later ones.
        let order = Order { gathered: true, ..Order::new(work, at, word.local(), true) };
        match self.send(order, count) {
            Ok(number) => Ok(Ticket { number, word }),
            Err(error) => {
                // The connection is gone, so that no answer arrives any more.
                self.core.answers.give_back(word);
                Err(error)
            }
        }
    }

    /// Begins to change a word of the peer atomically; its address is a multiple of 8.
    /// [`Peer::finish`] returns the old value.
    pub(super) fn begin(&self, at: Remote, op: Fetch) -> Result<Ticket> {
        self.begin_with(at, op.into(), |kinds| &mut kinds.fetches)
    }

    /// Waits for the answer, and returns it.
    pub(super) fn finish(&self, ticket: Ticket) -> Result<u64> {
        let waited = self.wait_for(|_| ticket.number);
        // SAFETY: a word of the pool, which lives as long as the core; aligned.
        // Acquire: pairs with the device's store, which came before its completion.
        let answer = unsafe { (*ticket.word.at).load(Ordering::Acquire) };
        self.core.answers.give_back(ticket.word);
        self.core.device.sweep();
        waited.map(|()| answer)
    }

    /// Adds to a word of the peer, without an answer.
    pub(super) fn post(&self, at: Remote, add: u64) -> Result<()> {
        let from = self.core.answers.scratch().local();
        let order = Order::new(Work::Add(add), at, from, true);
        self.send(order, |kinds| &mut kinds.posts).map(|_| ())
    }

    /// Adds to a word of the peer, without an answer, and rings the doorbell in another word, if
    /// the device can.
    pub(super) fn post_and_ring(&self, at: Remote, add: u64, doorbell: Remote) -> Result<()> {
        self.ring(at, add, doorbell, false)
    }

    /// Does the same where the owner of the word waits for the sum: a flush does not wait for it.
    pub(super) fn post_awaited(&self, at: Remote, add: u64, doorbell: Remote) -> Result<()> {
        self.ring(at, add, doorbell, true)
    }

    fn ring(&self, at: Remote, add: u64, doorbell: Remote, awaited: bool) -> Result<()> {
        debug_assert_eq!(at.key, doorbell.key);
        let from = self.core.answers.scratch().local();
        let order = Order::new(Work::Add(add), at, from, !awaited);
        let order = Order { doorbell: doorbell.at, awaited, ..order };
        self.send(order, |kinds| &mut kinds.posts).map(|_| ())
    }

    /// Begins to read a word of the peer. [`Peer::finish`] returns its value.
    pub(super) fn begin_read(&self, at: Remote) -> Result<Ticket> {
        self.begin_with(at, Work::Read, |kinds| &mut kinds.reads)
    }
}
