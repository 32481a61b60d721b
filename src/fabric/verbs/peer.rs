//! Another process, or this one, as the origin reaches it: the connection, operations on words, and
//! every wait for the device. How bytes travel is in `bytes`, `gathered` and `leases`. The first
//! operation makes the connection. Invariant: a lost peer stays lost, and each later call fails
//! with the same error.

use std::sync::Arc;
use std::time::{Duration, Instant};

use parking_lot::Mutex;

use super::counts::Kinds;
use super::pool::Word;
use super::queue::{End, Held, Queue};
use super::{Contact, Core, Remote, Secret, greeting};
use crate::error::{Error, Result};
use crate::fabric::Fetch;
use crate::fabric::request::{Broken, Order, Work};
use crate::sync::{AtomicBool, Ordering, spin_hint};

/// Polls of a queue before the waiting thread yields its core.
const SPINS: u32 = 16;
/// Time after which a waiting thread pings, and the number of pauses between two looks at the
/// clock.
const PING_AFTER: Duration = Duration::from_millis(if cfg!(test) { 20 } else { 1000 });
const PAUSES: u32 = 64;

/// A process that is reached over the device.
pub struct Peer {
    pub(super) core: Arc<Core>,
    contact: Contact,
    /// the secret that both processes know
    secret: Secret,
    /// whether anything was sent that is not known to be done
    dirty: AtomicBool,
    link: Mutex<Link>,
}

/// The state of the connection.
enum Link {
    /// not connected yet
    Fresh,
    Up(Queue),
    Lost(Error, End),
}

/// An answer that will arrive; [`Peer::finish`] waits for it.
#[must_use]
#[derive(Debug)]
pub struct Ticket {
    number: u64,
    word: Word,
}

/// Selects the count of a kind of operation.
type Count = fn(&mut Kinds) -> &mut u64;

/// Why an operation has failed: the connection is broken, or this process has a failure of its own.
pub(super) enum Fault {
    Broken(Broken),
    Local(Error),
}

impl From<Broken> for Fault {
    fn from(broken: Broken) -> Fault {
        Fault::Broken(broken)
    }
}

impl From<Error> for Fault {
    fn from(error: Error) -> Fault {
        Fault::Local(error)
    }
}

/// The back-off of a wait: a few polls, then the thread yields its core at each pause.
#[derive(Default)]
pub(super) struct Pause {
    pauses: u32,
    /// time of the last ping, or the start of the wait
    since: Option<Instant>,
}

impl Pause {
    /// Pauses once. Returns whether it is time to ping.
    pub(super) fn pause(&mut self) -> bool {
        if self.pauses < SPINS {
            self.pauses += 1;
            spin_hint();
            return false;
        }
        std::thread::yield_now();
        self.is_over()
    }

    /// Counts a pause without making one, for a caller that comes back by itself. Returns whether
    /// it is time to ping.
    pub(super) fn is_over(&mut self) -> bool {
        self.pauses = self.pauses.wrapping_add(1);
        if !self.pauses.is_multiple_of(PAUSES) {
            return false;
        }
        let now = Instant::now();
        let long = now - *self.since.get_or_insert(now) >= PING_AFTER;
        if long {
            self.since = Some(now);
        }
        long
    }
}

impl Peer {
    pub(super) fn new(core: Arc<Core>, contact: Contact, secret: Secret) -> Peer {
        let (dirty, link) = (AtomicBool::new(false), Mutex::new(Link::Fresh));
        Peer { core, contact, secret, dirty, link }
    }

    /// The contact of the process.
    pub fn contact(&self) -> &Contact {
        &self.contact
    }

    /// Calls `work` with the queue of the connection, which is made first if there is none.
    pub(super) fn with<T>(
        &self,
        work: impl FnOnce(&mut Queue) -> core::result::Result<T, Fault>,
    ) -> Result<T> {
        let mut link = self.link.lock();
        if matches!(*link, Link::Fresh) {
            match greeting::connect(&self.core, &self.contact, self.secret) {
                Ok(queue) => *link = Link::Up(queue),
                Err(error @ Error::Lost { .. }) => return Err(self.lose(&mut link, error)),
                // A failure of this process, or no answer in time: the peer is not lost, and the
                // next use tries again.
                Err(error) => return Err(error),
            }
        }
        let queue = match &mut *link {
            Link::Up(queue) => queue,
            Link::Lost(error, _) => return Err(error.clone()),
            Link::Fresh => unreachable!("it was made"),
        };
        let answer = work(queue);
        self.note(queue);
        match answer {
            Ok(answer) => Ok(answer),
            Err(Fault::Local(error)) => Err(error),
            Err(Fault::Broken(broken)) => {
                let error = self.contact.lost(broken.to_string());
                Err(self.lose(&mut link, error))
            }
        }
    }

    /// Records whether requests are under way, and ends registrations that nothing needs.
    fn note(&self, queue: &Queue) {
        let quiet = queue.is_quiet();
        // Relaxed: only threads of this process that send to this peer use it; a thread that checks
        // on behalf of another thread has synchronised with it.
        self.dirty.store(!quiet, Ordering::Relaxed);
        if quiet {
            self.core.device.registrations().sweep();
        }
    }

    /// Marks this peer as lost.
    fn lose(&self, link: &mut Link, error: Error) -> Error {
        let before = core::mem::replace(link, Link::Fresh);
        let end = match before {
            Link::Up(queue) => queue.end(&self.core.blocks),
            Link::Fresh => End::default(),
            Link::Lost(_, end) => end,
        };
        *link = Link::Lost(error.clone(), end);
        self.dirty.store(true, Ordering::Relaxed);
        // The user learns that operations have ended.
        self.core.device.registrations().sweep();
        self.core.count_loss();
        error
    }

    /// Fails if the peer is lost.
    pub fn check(&self) -> Result<()> {
        match &*self.link.lock() {
            Link::Lost(error, _) => Err(error.clone()),
            Link::Fresh | Link::Up(_) => Ok(()),
        }
    }

    /// Whether there is a connection that may still work. If the process has gone, the connection
    /// breaks soon, because this call pings unless requests are under way already.
    pub(super) fn is_worth_keeping(&self) -> bool {
        let asked = match &*self.link.lock() {
            Link::Up(queue) => queue.is_under_way(),
            Link::Fresh | Link::Lost(..) => return false,
        };
        asked || self.ping().is_ok()
    }

    /// Waits until `wanted` requests fit into the queue.
    pub(super) fn room(
        &self,
        queue: &mut Queue,
        wanted: usize,
    ) -> core::result::Result<(), Broken> {
        if queue.room() >= wanted {
            return Ok(());
        }
        queue.count().waits += 1;
        let mut pause = Pause::default();
        while queue.room() < wanted {
            if !queue.poll(&self.core.blocks)? && pause.pause() {
                queue.ping(&self.core.blocks)?;
            }
        }
        Ok(())
    }

    /// Returns a block. Waits if all are in use, by this queue or by others.
    pub(super) fn block(&self, queue: &mut Queue) -> core::result::Result<u32, Broken> {
        let blocks = &self.core.blocks;
        let mut pause = Pause::default();
        loop {
            if let Some(block) = blocks.try_take() {
                return Ok(block);
            }
            if !queue.poll(blocks)? {
                self.core.poll_all();
                if pause.pause() {
                    queue.ping(&self.core.blocks)?;
                    self.core.ping_all();
                }
            }
        }
    }

    /// Polls for completions if no other thread is using the connection.
    pub(super) fn try_poll(&self) {
        self.try_with(|queue| queue.poll(&self.core.blocks).map(|_| ()));
    }

    /// Pings if requests are under way and no other thread is using the connection.
    pub(super) fn try_ping(&self) {
        self.try_with(|queue| queue.ping(&self.core.blocks));
    }

    fn try_with(&self, work: impl FnOnce(&mut Queue) -> core::result::Result<(), Broken>) {
        if self.is_idle() {
            return;
        }
        let Some(mut link) = self.link.try_lock() else { return };
        let Link::Up(queue) = &mut *link else { return };
        match work(queue) {
            Ok(()) => self.note(queue),
            Err(broken) => {
                let error = self.contact.lost(broken.to_string());
                self.lose(&mut link, error);
            }
        }
    }

    /// Longest run for [`Peer::put_runs`] in bytes; 0 before there is a connection.
    pub fn run_bytes_max(&self) -> u64 {
        match &*self.link.lock() {
            Link::Up(queue) => queue.inline_bytes_max(),
            _ => 0,
        }
    }

    /// Sends a request whose answer of 8 bytes is stored into `word`. Returns its number.
    fn ask(&self, at: Remote, work: Work, word: Word, count: Count) -> Result<u64> {
        debug_assert!(at.at.is_multiple_of(8));
        self.with(|queue| {
            self.room(queue, 1)?;
            *count(queue.count()) += 1;
            let from = word.local();
            let order = Order::new(work, at, from, true);
            // SAFETY: the word is registered and lives as long as the queue.
            Ok(unsafe { queue.post(order, Held::Nothing) }?)
        })
    }

    fn begin_with(&self, at: Remote, work: Work, count: Count) -> Result<Ticket> {
        let word = self.core.answers.take(&self.core.device)?;
        match self.ask(at, work, word, count) {
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
        self.core.device.registrations().sweep();
        waited.map(|()| answer)
    }

    /// Adds to a word of the peer, without an answer.
    pub(super) fn post(&self, at: Remote, add: u64) -> Result<()> {
        let scratch = self.core.answers.scratch();
        self.ask(at, Work::Add(add), scratch, |kinds| &mut kinds.posts).map(|_| ())
    }

    /// Begins to read a word of the peer. [`Peer::finish`] returns its value.
    pub(super) fn begin_read(&self, at: Remote) -> Result<Ticket> {
        self.begin_with(at, Work::Read, |kinds| &mut kinds.reads)
    }

    /// Orders requests: what is sent next is executed after everything that was sent before, gets
    /// included.
    pub(super) fn order(&self) {
        if self.is_idle() {
            return;
        }
        if let Link::Up(queue) = &mut *self.link.lock() {
            queue.order();
        }
    }

    /// Waits until everything that was sent is done in the peer's memory.
    pub(super) fn flush(&self) -> Result<()> {
        let waited = match self.is_idle() {
            true => Ok(()),
            false => self.flush_begin().and_then(|()| self.wait_for(|queue| queue.last_signaled())),
        };
        self.core.device.registrations().sweep();
        waited
    }

    /// Sends the proof that a flush needs, without waiting for it.
    pub(super) fn flush_begin(&self) -> Result<()> {
        let scratch = self.core.answers.scratch().local();
        self.with(|queue| {
            if queue.needs_proof() {
                self.room(queue, 1)?;
                queue.count().proofs += 1;
                let order = queue.proof(scratch);
                // SAFETY: the word is registered and lives as long as the queue.
                unsafe { queue.post(order, Held::Nothing) }?;
            }
            Ok(())
        })
    }

    /// Waits until the buffers of puts may be used again and the data of gets have arrived.
    pub(super) fn flush_local(&self) -> Result<()> {
        let waited = if self.is_idle() { Ok(()) } else { self.wait_for(|queue| queue.lent()) };
        self.core.device.registrations().sweep();
        waited
    }

    /// Number of the last request that uses memory of the user; 0 if there was none.
    pub fn lent(&self) -> u64 {
        match &*self.link.lock() {
            Link::Up(queue) => queue.lent(),
            Link::Fresh | Link::Lost(..) => 0,
        }
    }

    /// Whether request `number` is known to be done; false if another thread is using the
    /// connection. Fails if the request never will be done.
    pub(super) fn try_is_done(&self, number: u64) -> Result<bool> {
        self.try_poll();
        let Some(link) = self.link.try_lock() else { return Ok(false) };
        match &*link {
            Link::Up(queue) => Ok(queue.is_done(number)),
            Link::Lost(_, end) if end.done >= number => Ok(true),
            Link::Lost(error, _) => Err(error.clone()),
            Link::Fresh => Ok(true),
        }
    }

    /// Asks whether the process is still there, without waiting for the answer: if it is not, the
    /// peer is lost after some time. The request also wakes a device that has forgotten earlier
    /// ones.
    pub fn ping(&self) -> Result<()> {
        self.with(|queue| Ok(queue.ping(&self.core.blocks)?))
    }

    /// Pings if there is or was a connection.
    pub(super) fn ping_if_up(&self) -> Result<()> {
        let fresh = matches!(*self.link.lock(), Link::Fresh);
        if fresh { Ok(()) } else { self.ping() }
    }

    /// Whether everything that was sent is known to be done in the peer's memory.
    pub fn is_idle(&self) -> bool {
        // Relaxed: as where it is stored.
        !self.dirty.load(Ordering::Relaxed)
    }

    /// Waits until a request is done. `which` gives its number from the queue, once at the
    /// beginning.
    pub(super) fn wait_for(&self, which: impl Fn(&Queue) -> u64) -> Result<()> {
        let number = self.with(|queue| {
            let number = which(queue);
            queue.count().awaited += u64::from(!queue.is_done(number));
            Ok(number)
        })?;
        let mut pause = Pause::default();
        while !self.with(|queue| {
            Ok(queue.is_done(number) || queue.poll(&self.core.blocks)? && queue.is_done(number))
        })? {
            if pause.pause() {
                self.ping()?;
            }
        }
        Ok(())
    }

    /// Whether there is a connection, and the counts of the connection that there is or was.
    pub(super) fn kinds(&self) -> (bool, Kinds) {
        match &*self.link.lock() {
            Link::Fresh => (false, Kinds::default()),
            Link::Up(queue) => (true, *queue.kinds()),
            Link::Lost(_, end) => (false, end.kinds),
        }
    }
}

impl Drop for Peer {
    fn drop(&mut self) {
        if let Link::Up(queue) = core::mem::replace(self.link.get_mut(), Link::Fresh) {
            queue.end(&self.core.blocks);
            self.core.device.registrations().sweep();
        }
    }
}
