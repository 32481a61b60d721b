//! Faults as a decorator over any transport, for tests. Calls that are left out or broken prove
//! that the tests of a protocol and the conformance suite detect it; a connection that is cut tests
//! how callers handle its errors.

#[cfg(not(loom))]
use super::simple_parts::Each;
use core::ops::Deref;
use fompi_base::error::{Error, Result};
use fompi_base::rank_numbers::Rank;
use fompi_base::sync::{AtomicU32, Ordering};
#[cfg(not(loom))]
use fompi_fabric::Way;
#[cfg(not(loom))]
use fompi_fabric::remote::{Bytes, Network, Remote};
use fompi_fabric::{Fetch, WordAt, WordId, Words};
use parking_lot::Mutex;

/// The call that a transport leaves out or breaks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    /// none: with it the same test must pass
    Nothing,
    /// leaves out each flush
    Flush,
    /// leaves out each order
    Order,
    /// leaves out the posts to one word
    Post(WordId),
    /// leaves out every other post to one word
    EveryOtherPost(WordId),
    /// carries out each post to one word twice
    PostTwice(WordId),
    /// leaves out each store into a word of this rank
    SetOwn,
    /// returns from each wait at once
    Wait,
    /// does a CompareSwap in two steps
    Atomicity,
    /// returns 0 from each read of one word
    Unread(WordId),
    /// returns the value of the read before from every other read of one word
    ReadOnce(WordId),
    /// fails from this call on, counted from 0
    Cut(u32),
    /// fails calls that reach this rank
    Lost(Rank),
}

/// The error of a transport that is cut.
pub const CUT: Error = Error::Lost { rank: None, node: "far", pid: 1, cause: "cut by the test" };

/// A transport with a fault.
pub struct Faulty<W> {
    transport: W,
    fault: Mutex<Fault>,
    calls: AtomicU32,
    /// of those, the posts that may be left out
    posts: AtomicU32,
    /// the value of the last read, if the next one is to return it
    last_read: Mutex<Option<u64>>,
}

impl<W> Faulty<W> {
    /// Returns the transport with a fault.
    pub fn new(transport: W, fault: Fault) -> Faulty<W> {
        Faulty {
            transport,
            fault: Mutex::new(fault),
            calls: AtomicU32::new(0),
            posts: AtomicU32::new(0),
            last_read: Mutex::new(None),
        }
    }

    /// Changes the fault.
    pub fn set(&self, fault: Fault) {
        *self.fault.lock() = fault;
    }

    fn is(&self, fault: Fault) -> bool {
        *self.fault.lock() == fault
    }

    /// Returns the number of calls so far.
    pub fn calls(&self) -> u32 {
        // Relaxed: a count.
        self.calls.load(Ordering::Relaxed)
    }

    /// Counts a call. Fails if the connection is cut.
    fn call(&self) -> Result<()> {
        // Relaxed: a count.
        let call = self.calls.fetch_add(1, Ordering::Relaxed);
        match *self.fault.lock() {
            Fault::Cut(first) if call >= first => Err(CUT),
            _ => Ok(()),
        }
    }

    /// Counts a call that reaches a rank. Fails if the connection is cut or the rank is lost.
    fn call_to(&self, rank: Rank) -> Result<()> {
        if self.is(Fault::Lost(rank)) { Err(CUT) } else { self.call() }
    }

    fn omits_post(&self, word: WordId) -> bool {
        match *self.fault.lock() {
            Fault::Post(omitted) => omitted == word,
            // Relaxed: a count.
            Fault::EveryOtherPost(omitted) if omitted == word => {
                self.posts.fetch_add(1, Ordering::Relaxed) % 2 == 1
            }
            _ => false,
        }
    }
}

impl<W> Deref for Faulty<W> {
    type Target = W;

    fn deref(&self) -> &W {
        &self.transport
    }
}

impl<W: Words> Words for Faulty<W> {
    const FAR: bool = W::FAR;
    const HOLDERS_MAX: u64 = W::HOLDERS_MAX;
    type Ticket = W::Ticket;

    fn rank(&self) -> Rank {
        self.transport.rank()
    }

    fn size(&self) -> u32 {
        self.transport.size()
    }

    fn fetch(&self, at: WordAt, op: Fetch) -> Result<u64> {
        self.call_to(at.rank)?;
        match op {
            Fetch::CompareSwap { expect, new } if self.is(Fault::Atomicity) => {
                let before = self.transport.fetch(at, Fetch::Add(0))?;
                if before == expect {
                    self.transport.fetch(at, Fetch::Add(new.wrapping_sub(expect)))?;
                }
                Ok(before)
            }
            _ => self.transport.fetch(at, op),
        }
    }

    fn begin(&self, at: WordAt, op: Fetch) -> Result<W::Ticket> {
        self.call_to(at.rank)?;
        self.transport.begin(at, op)
    }

    fn finish(&self, ticket: W::Ticket) -> Result<u64> {
        let before = self.transport.finish(ticket);
        self.call()?;
        before
    }

    fn post(&self, at: WordAt, add: u64) -> Result<()> {
        self.call_to(at.rank)?;
        if self.omits_post(at.word) {
            return Ok(());
        }
        if self.is(Fault::PostTwice(at.word)) {
            self.transport.post(at, add)?;
        }
        self.transport.post(at, add)
    }

    fn post_awaited(&self, at: WordAt, add: u64) -> Result<()> {
        self.call_to(at.rank)?;
        if self.omits_post(at.word) { Ok(()) } else { self.transport.post_awaited(at, add) }
    }

    fn read(&self, at: WordAt) -> Result<u64> {
        self.call_to(at.rank)?;
        let fault = *self.fault.lock();
        match fault {
            Fault::Unread(word) if word == at.word => Ok(0),
            Fault::ReadOnce(word) if word == at.word => {
                let last = self.last_read.lock().take();
                let value = last.map_or_else(|| self.transport.read(at), Ok)?;
                *self.last_read.lock() = last.is_none().then_some(value);
                Ok(value)
            }
            _ => self.transport.read(at),
        }
    }

    fn own(&self, word: WordId) -> u64 {
        self.transport.own(word)
    }

    fn set_own(&self, word: WordId, value: u64) {
        if !self.is(Fault::SetOwn) {
            self.transport.set_own(word, value);
        }
    }

    fn wait_own(&self, word: WordId, until: impl Fn(u64) -> bool) -> Result<u64> {
        self.call()?;
        if self.is(Fault::Wait) { Ok(self.own(word)) } else { self.transport.wait_own(word, until) }
    }

    fn order(&self, rank: Rank) -> Result<()> {
        self.call_to(rank)?;
        if self.is(Fault::Order) { Ok(()) } else { self.transport.order(rank) }
    }

    fn is_ordered(&self, before: Rank, next: Rank) -> bool {
        self.transport.is_ordered(before, next)
    }

    fn flush(&self, rank: Rank) -> Result<()> {
        self.call_to(rank)?;
        if self.is(Fault::Flush) { Ok(()) } else { self.transport.flush(rank) }
    }

    fn flush_all(&self) -> Result<()> {
        (0..self.size()).map(Rank).try_for_each(|rank| self.call_to(rank))?;
        if self.is(Fault::Flush) { Ok(()) } else { self.transport.flush_all() }
    }

    fn flush_others(&self, rank: Rank) -> Result<()> {
        let others = (0..self.size()).map(Rank).filter(|other| *other != rank);
        others.into_iter().try_for_each(|other| self.call_to(other))?;
        if self.is(Fault::Flush) { Ok(()) } else { self.transport.flush_others(rank) }
    }
}

#[cfg(not(loom))]
impl<P: Deref<Target: Bytes>> Bytes for Faulty<P> {
    type Runs<'a>
        = Each<'a, Self>
    where
        Self: 'a;

    unsafe fn put(&self, to: Remote, from: *const u8, bytes: u64) -> Result<()> {
        self.call()?;
        // SAFETY: guaranteed by the caller.
        unsafe { self.transport.put(to, from, bytes) }
    }

    unsafe fn get(&self, to: *mut u8, from: Remote, bytes: u64) -> Result<()> {
        self.call()?;
        // SAFETY: guaranteed by the caller.
        unsafe { self.transport.get(to, from, bytes) }
    }

    fn runs(&self, within: Remote, way: Way) -> Each<'_, Self> {
        Each::new(self, within, way)
    }

    fn order(&self) {
        if !self.is(Fault::Order) {
            self.transport.order();
        }
    }

    fn flush(&self) -> Result<()> {
        self.call()?;
        if self.is(Fault::Flush) { Ok(()) } else { self.transport.flush() }
    }

    fn flush_local(&self) -> Result<()> {
        self.call()?;
        if self.is(Fault::Flush) { Ok(()) } else { self.transport.flush_local() }
    }
}

#[cfg(not(loom))]
impl<P: Deref<Target: Network>> Network for Faulty<P> {
    type Ticket = <P::Target as Network>::Ticket;
    type BounceBuffer<'a>
        = <P::Target as Network>::BounceBuffer<'a>
    where
        Self: 'a;
    type AtTarget = <P::Target as Network>::AtTarget;
    const WORDS_MAX: usize = P::Target::WORDS_MAX;

    fn at_target(&self) -> Option<&Self::AtTarget> {
        self.transport.at_target()
    }

    fn begin(&self, at: Remote, op: Fetch) -> Result<Self::Ticket> {
        self.call()?;
        self.transport.begin(at, op)
    }

    fn begin_read(&self, at: Remote) -> Result<Self::Ticket> {
        self.call()?;
        self.transport.begin_read(at)
    }

    fn finish(&self, ticket: Self::Ticket) -> Result<u64> {
        let answer = self.transport.finish(ticket);
        self.call()?;
        answer
    }

    fn post(&self, at: Remote, add: u64) -> Result<()> {
        self.call()?;
        self.transport.post(at, add)
    }

    fn bounce_buffer(&self) -> Self::BounceBuffer<'_> {
        self.transport.bounce_buffer()
    }
}
