//! Operations on words of a peer: atomics, with an answer or without, and reads; many of them are
//! posted in chains with one wait for all, in an order that is undefined. Invariant: a word into
//! which an answer is stored has no other owner until its ticket is finished.

use super::bounce_buffers::BounceBlock;
use super::chain::Chain;
use super::counts::Kinds;
use super::device_link::News;
use super::peer::{Peer, State};
use super::pool::{Kept, Word};
use crate::Fetch;
use crate::error::Result;
use crate::number::Number;
use crate::remote::{Behind, Network, Remote};
use crate::request::{Leaves, Order, Work};
use crate::sync::Ordering;

/// An answer that will arrive; [`Network::finish`] waits for it.
#[must_use]
#[derive(Debug)]
pub struct Ticket {
    number: u64,
    word: Word,
}

/// Selects the count of a kind of operation.
type Count = fn(&mut Kinds) -> &mut u64;

impl Network for Peer {
    type Ticket = Ticket;
    type BounceBuffer<'a> = BounceBlock<'a>;
    type AtTarget = Peer;
    const WORDS_MAX: usize = 128;

    fn is_idle(&self) -> bool {
        // Acquire: pairs with the Release in `record`. A thread that needs to know that the peer is
        // dirty has recorded it itself, or has synchronised with the thread that did.
        !self.dirty.load(Ordering::Acquire)
    }

    #[inline]
    fn at_target(&self) -> Option<&Peer> {
        self.core.device.service().map(|_| self)
    }

    fn begin(&self, at: Remote, op: Fetch) -> Result<Ticket> {
        self.begin_with(at, op.into(), |kinds| &mut kinds.fetches)
    }

    fn begin_read(&self, at: Remote) -> Result<Ticket> {
        self.begin_with(at, Work::Read, |kinds| &mut kinds.reads)
    }

    /// Over TCP a poll sends; a queue pair gathers nothing.
    fn send_gathered(&self) {
        self.try_with(|queue| match queue.news() {
            News::Asked | News::Polled => Ok(()),
            News::Stream(_) => queue.poll(&self.core.blocks).map(|_| ()),
        });
    }

    fn finish(&self, ticket: Ticket) -> Result<u64> {
        let waited = self.wait_for(|_| ticket.number);
        // SAFETY: a word of the pool, which lives as long as the core; aligned.
        // Acquire: pairs with the device's store, which came before its completion.
        let answer = unsafe { (*ticket.word.at).load(Ordering::Acquire) };
        self.core.answers.give_back(ticket.word);
        self.core.device.sweep();
        waited.map(|()| answer)
    }

    fn post(&self, at: Remote, add: u64) -> Result<()> {
        self.send(self.addition(at, add), |kinds| &mut kinds.posts).map(drop)
    }

    fn post_and_ring(&self, at: Remote, add: u64, doorbell: Remote) -> Result<()> {
        debug_assert_eq!(at.key, doorbell.key);
        let order = Order { doorbell: doorbell.at, ..self.addition(at, add) };
        self.send(order, |kinds| &mut kinds.posts).map(drop)
    }

    fn post_awaited(&self, at: Remote, add: u64, doorbell: Remote) -> Result<()> {
        debug_assert_eq!(at.key, doorbell.key);
        let order = self.addition(at, add);
        let order = Order { doorbell: doorbell.at, awaited: true, signaled: false, ..order };
        self.send(order, |kinds| &mut kinds.posts).map(drop)
    }

    fn begin_notified(&self) {
        // Relaxed: a hint. A request of another thread at this time leaves with the notification.
        self.notified.store(self.core.device.service().is_some(), Ordering::Relaxed);
    }

    fn cancel_notified(&self) {
        self.notified.store(false, Ordering::Relaxed);
        if let State::Up(queue) = &mut *self.state.lock() {
            // It sends what has waited for the notification; the next request finds a failure.
            let _ = queue.ping(&self.core.blocks);
        }
    }

    fn notify(&self, at: Remote, doorbell: Remote, behind: Behind) -> Result<()> {
        debug_assert_eq!(at.key, doorbell.key);
        debug_assert!(at.at.is_multiple_of(8));
        self.with(|queue| {
            match behind {
                Behind::Puts => queue.order_puts(),
                Behind::All => queue.order(),
            }
            self.room(queue, 1)?;
            queue.kinds.posts += 1;
            self.notified.store(false, Ordering::Relaxed);
            let addition = Order { doorbell: doorbell.at, ..self.addition(at, 1) };
            let order = queue.notification(addition);
            // SAFETY: the word is registered and lives as long as the queue.
            unsafe { queue.post_small(order) }?;
            Ok(())
        })
    }

    fn try_bounce_buffer(&self) -> Option<BounceBlock<'_>> {
        BounceBlock::try_new(self)
    }

    fn bounce_buffer(&self) -> BounceBlock<'_> {
        BounceBlock::new(self)
    }

    fn fetch_all(
        &self,
        which: impl Fn(usize) -> (Remote, Fetch),
        before: &mut [u64],
    ) -> Result<()> {
        if let [before] = before {
            let (at, op) = which(0);
            *before = self.fetch(at, op)?;
            return Ok(());
        }
        assert!(before.len() <= Peer::WORDS_MAX);
        let mut words = [self.core.answers.scratch(); Peer::WORDS_MAX];
        let words = &mut words[..before.len()];
        self.core.answers.take_all(&self.core.device, words)?;
        let order = |index: usize| {
            let (to, op) = which(index);
            (to, op.into(), words[index])
        };
        let sent = self.ask_all((words.len(), Leaves::AtOnce), order, |kinds| &mut kinds.fetches);
        // If sending failed the connection is gone, and no answer arrives any more.
        let done = sent.and_then(|number| self.wait_for(|_| number));
        for (before, word) in before.iter_mut().zip(&*words) {
            // SAFETY: a word of the pool, which lives as long as the core; aligned.
            // Acquire: pairs with the device's store, which came before its completion.
            *before = unsafe { (*word.at).load(Ordering::Acquire) };
        }
        self.core.answers.give_all_back(words);
        self.core.device.sweep();
        done
    }

    fn post_all(&self, count: usize, which: impl Fn(usize) -> (Remote, u64)) -> Result<()> {
        let scratch = self.core.answers.scratch();
        let order = |index| {
            let (to, add) = which(index);
            (to, Work::Add(add), scratch)
        };
        self.ask_all((count, Leaves::WithLater), order, |kinds| &mut kinds.posts).map(drop)
    }
}

impl Peer {
    /// Returns the request for an addition without an answer.
    pub(super) fn addition(&self, at: Remote, add: u64) -> Order {
        Order::new(Work::Add(add), at, self.core.answers.scratch().local(), true)
    }

    /// Sends a request of 8 bytes. Returns its number.
    fn send(&self, order: Order, count: Count) -> Result<u64> {
        debug_assert!(order.to.at.is_multiple_of(8));
        self.with(|queue| {
            self.room(queue, 1)?;
            *count(&mut queue.kinds) += 1;
            // SAFETY: the word is registered and lives as long as the queue.
            Ok(unsafe { queue.post(order, Kept::Nothing) }?)
        })
    }

    fn begin_with(&self, at: Remote, work: Work, count: Count) -> Result<Ticket> {
        let word = self.core.answers.take(&self.core.device)?;
        // The wait for the answer sends the request, so it may leave with later ones.
        let order = Order { leaves: Leaves::WithLater, ..Order::new(work, at, word.local(), true) };
        match self.send(order, count) {
            Ok(number) => Ok(Ticket { number, word }),
            Err(error) => {
                // The connection is gone, so that no answer arrives any more.
                self.core.answers.give_back(word);
                Err(error)
            }
        }
    }

    /// Sends requests whose answers of 8 bytes are stored into words. Returns the number of the
    /// last one.
    fn ask_all(
        &self,
        (count, leaves): (usize, Leaves),
        order: impl Fn(usize) -> (Remote, Work, Word),
        counted: Count,
    ) -> Result<u64> {
        self.with(|queue| {
            *counted(&mut queue.kinds) += count.to_u64();
            let (most, mut chain) = (queue.chain_max(), Chain::new(self, queue));
            for index in 0..count {
                let (to, work, word) = order(index);
                debug_assert!(to.at.is_multiple_of(8));
                let signaled = index + 1 == count || (index + 1).is_multiple_of(most);
                let order = Order { leaves, ..Order::new(work, to, word.local(), signaled) };
                // SAFETY: the words are registered and live as long as the queue.
                unsafe { chain.push(order, Kept::Nothing) }?;
            }
            // SAFETY: as above.
            unsafe { chain.post() }
        })
    }
}
