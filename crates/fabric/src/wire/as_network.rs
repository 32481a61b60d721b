//! [`crate::remote`]'s traits for this transport. Nothing is decided here.

use core::ops::Range;
use std::sync::Arc;

use super::atomic_chains;
use super::atomics::Ticket;
use super::coalesce::Coalesce;
use super::leases::BlockLease;
use super::peer::Peer;
use super::pool::BLOCK_BYTES;
use super::this_process::{Exposed, Wire};
use crate::contact::{Contact, Secret};
use crate::error::Result;
use crate::reduction::Reduction;
use crate::remote::{
    self, AccumulateAt, AtTarget, Bytes, LEASE_BYTES, LockAt, Network, Remote, Transport,
};
use crate::{Fetch, Way};

const _: () = assert!(LEASE_BYTES == BLOCK_BYTES);

impl Bytes for Peer {
    type Runs<'a> = Coalesce<'a>;

    unsafe fn put(&self, to: Remote, from: *const u8, bytes: u64) -> Result<()> {
        // SAFETY: the duties are the same.
        unsafe { self.put(to, from, bytes) }
    }

    unsafe fn get(&self, to: *mut u8, from: Remote, bytes: u64) -> Result<()> {
        // SAFETY: the duties are the same.
        unsafe { self.get(to, from, bytes) }
    }

    fn runs(&self, within: Remote, way: Way) -> Coalesce<'_> {
        Coalesce::new(self, within, way)
    }

    fn order(&self) {
        self.order();
    }

    fn order_puts(&self) {
        self.order_puts();
    }

    fn order_reads(&self) {
        self.order_reads();
    }

    fn flush(&self) -> Result<()> {
        self.flush()
    }

    fn flush_local(&self) -> Result<()> {
        self.flush_local()
    }
}

impl Network for Peer {
    type Ticket = Ticket;
    type Lease<'a> = BlockLease<'a>;
    type AtTarget = Peer;
    const WORDS_MAX: usize = atomic_chains::WORDS_MAX;

    fn is_idle(&self) -> bool {
        self.is_idle()
    }

    fn at_target(&self) -> Option<&Peer> {
        self.accumulates().then_some(self)
    }

    fn begin(&self, at: Remote, op: Fetch) -> Result<Ticket> {
        self.begin(at, op)
    }

    fn begin_read(&self, at: Remote) -> Result<Ticket> {
        self.begin_read(at)
    }

    fn send_gathered(&self) {
        self.send_gathered();
    }

    fn finish(&self, ticket: Ticket) -> Result<u64> {
        self.finish(ticket)
    }

    fn post(&self, at: Remote, add: u64) -> Result<()> {
        self.post(at, add)
    }

    fn post_and_ring(&self, at: Remote, add: u64, doorbell: Remote) -> Result<()> {
        self.post_and_ring(at, add, doorbell)
    }

    fn post_awaited(&self, at: Remote, add: u64, doorbell: Remote) -> Result<()> {
        self.post_awaited(at, add, doorbell)
    }

    fn try_lease(&self) -> Option<BlockLease<'_>> {
        self.try_lease()
    }

    fn lease(&self) -> BlockLease<'_> {
        self.lease()
    }

    fn fetch_all(
        &self,
        which: impl Fn(usize) -> (Remote, Fetch),
        before: &mut [u64],
    ) -> Result<()> {
        self.fetch_all(which, before)
    }

    fn post_all(&self, count: usize, which: impl Fn(usize) -> (Remote, u64)) -> Result<()> {
        self.post_all(count, which)
    }
}

impl AtTarget for Peer {
    unsafe fn accumulate(&self, call: &AccumulateAt<'_>) -> Result<()> {
        // SAFETY: the duties are the same.
        unsafe { self.send_accumulate(call) }
    }

    #[inline]
    unsafe fn accumulate_one(&self, what: Reduction, at: Remote, operand: *const u8) -> Result<()> {
        // SAFETY: the duties are the same.
        unsafe { self.send_one_element(what, at, operand) }
    }

    unsafe fn accumulate_under(&self, call: &AccumulateAt<'_>, lock: LockAt) -> Result<(u64, u64)> {
        // SAFETY: the duties are the same.
        unsafe { self.accumulate_under(call, lock) }
    }

    unsafe fn compare_and_swap(
        &self,
        word: (Remote, u8),
        values: (u64, u64),
        result: *mut u8,
    ) -> Result<()> {
        // SAFETY: the duties are the same.
        unsafe { self.compare_and_swap_at(word, values, result) }
    }
}

impl remote::Lease for BlockLease<'_> {
    fn at(&self) -> *mut u8 {
        self.at()
    }

    fn read(&mut self, zero: Remote, part: Range<usize>) -> Result<()> {
        self.read(zero, part)
    }

    fn arrived(&mut self) -> Result<()> {
        self.arrived()
    }

    fn write(self, zero: Remote, parts: &[Range<usize>]) -> Result<()> {
        self.write(zero, parts)
    }
}

impl Transport for Wire {
    type Peer = Peer;
    type Exposed = Exposed;
    type Address = (Contact, Secret);

    fn expose(&self, base: *mut u8, bytes: u64) -> Result<Exposed> {
        self.expose(base, bytes)
    }

    fn progress(&self) -> u64 {
        self.progress()
    }

    fn connect(&self, (contact, secret): &(Contact, Secret)) -> Arc<Peer> {
        self.peer(contact, *secret)
    }
}

impl remote::Addressed for Exposed {
    fn remote(&self) -> Remote {
        self.remote()
    }
}
