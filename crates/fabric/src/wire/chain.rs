//! Chains of requests: a device gets several requests at once, by one doorbell.

use core::mem;
use core::result::Result;

use super::fault::Fault;
use super::peer::Peer;
use super::pool::Kept;
use super::queue::Queue;
use crate::request::{CHAIN_MAX, Order};
use smallvec::SmallVec;

/// Requests of one call that wait to be posted as a chain.
pub struct Chain<'a> {
    /// the peer of the call
    pub peer: &'a Peer,
    /// the queue of the call
    pub queue: &'a mut Queue,
    orders: SmallVec<[Order; CHAIN_MAX]>,
    /// what they hold
    held: Kept,
    /// number of the last one that was posted
    number: u64,
}

impl<'a> Chain<'a> {
    /// Starts without requests.
    pub fn new(peer: &'a Peer, queue: &'a mut Queue) -> Chain<'a> {
        Chain { peer, queue, orders: SmallVec::new(), held: Kept::Nothing, number: 0 }
    }

    /// Adds a request, and what it holds: the same for all requests of a call that hold anything.
    ///
    /// # Safety
    /// As for [`Queue::post`].
    pub unsafe fn push(&mut self, order: Order, held: Kept) -> Result<(), Fault> {
        if self.orders.len() == self.queue.chain_max() {
            // SAFETY: guaranteed by the caller.
            unsafe { self.post() }?;
        }
        self.orders.push(order);
        if !matches!(held, Kept::Nothing) {
            self.held = held;
        }
        Ok(())
    }

    /// Posts the requests, also none. Returns the number of the last one.
    ///
    /// # Safety
    /// As for `push`.
    pub unsafe fn post(&mut self) -> Result<u64, Fault> {
        if let Some(last) = self.orders.last_mut() {
            last.signaled |= match self.held {
                Kept::Nothing => false,
                // A flush that follows needs no request of its own; behind a notification it does.
                Kept::Streamed => self.queue.owes_no_answer() && !self.queue.departures.notified,
                // Its completion shows that nothing is held any more.
                _ => true,
            };
            self.peer.room(self.queue, self.orders.len())?;
            // SAFETY: guaranteed by the caller.
            self.number =
                unsafe { self.queue.post_chain(&mut self.orders, &[], mem::take(&mut self.held)) }?;
            self.orders.clear();
        }
        Ok(self.number)
    }
}
