//! Another process, or this one, as an origin uses it: the connection, operations on words, and
//! every wait for the device; how bytes travel is in `bytes`, `gathered` and `leases`. The
//! connection is made by the first operation. Invariant: a peer that was lost stays lost, and says
//! why each time.

use std::sync::Arc;
use std::time::{Duration, Instant};

use parking_lot::Mutex;

use super::counts::Kinds;
use super::pool::Word;
use super::queue::{Broken, End, Held, Order, Queue, Work};
use super::{Contact, Core, Remote, Secret, connect};
use crate::error::{Error, Result};
use crate::fabric::Fetch;
use crate::sync::{AtomicBool, Ordering, spin_hint};

/// Looks at a queue before a wait gives the core away.
const SPINS: u32 = 16;
/// How long a wait may take until the device is reminded of what it is for, and so many pauses lie
/// between two looks at the clock.
const PING_AFTER: Duration = Duration::from_millis(if cfg!(test) { 20 } else { 1000 });
const PAUSES: u32 = 64;

/// A process that is reached over the device.
pub struct Peer {
    pub(super) core: Arc<Core>,
    contact: Contact,
    /// what both processes know
    secret: Secret,
    /// whether something was sent that is not known to be done
    dirty: AtomicBool,
    link: Mutex<Link>,
}

/// The state of the connection.
enum Link {
    /// not made yet
    Fresh,
    Up(Queue),
    Lost(Error, End),
}

/// An answer that will come. It is asked for by [`Peer::finish`].
#[must_use]
#[derive(Debug)]
pub struct Ticket {
    number: u64,
    word: Word,
}

/// The count of a kind of operation.
type Count = fn(&mut Kinds) -> &mut u64;

/// What ends an operation: the connection, or something of this process alone.
pub(super) enum Fault {
    Broken(Broken),
    Own(Error),
}

impl From<Broken> for Fault {
    fn from(broken: Broken) -> Fault {
        Fault::Broken(broken)
    }
}

impl From<Error> for Fault {
    fn from(error: Error) -> Fault {
        Fault::Own(error)
    }
}

/// A wait: a few looks, then others may run.
#[derive(Default)]
pub(super) struct Pause {
    pauses: u32,
    /// since when nobody has been reminded
    since: Option<Instant>,
}

impl Pause {
    /// One of them. Whether it is time to remind whoever is waited for.
    pub(super) fn pause(&mut self) -> bool {
        if self.pauses < SPINS {
            self.pauses += 1;
            spin_hint();
            return false;
        }
        std::thread::yield_now();
        self.is_over()
    }

    /// The same without a pause, for who comes back by itself.
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

    /// Who it is.
    pub fn contact(&self) -> &Contact {
        &self.contact
    }

    /// Does `work` with the queue of a connection that stands.
    pub(super) fn with<T>(
        &self,
        work: impl FnOnce(&mut Queue) -> core::result::Result<T, Fault>,
    ) -> Result<T> {
        let mut link = self.link.lock();
        if matches!(*link, Link::Fresh) {
            match connect::to(&self.core, &self.contact, self.secret) {
                Ok(queue) => *link = Link::Up(queue),
                Err(error @ Error::Lost { .. }) => return Err(self.lose(&mut link, error)),
                // Something of this process, or there was no answer in time: the peer is not to
                // blame, and the next use tries again.
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
            Err(Fault::Own(error)) => Err(error),
            Err(Fault::Broken(broken)) => {
                let cause = self.cause(&broken);
                let error = self.contact.lost(cause);
                Err(self.lose(&mut link, error))
            }
        }
    }

    /// Notes whether something is under way, and ends registrations that nothing needs.
    fn note(&self, queue: &Queue) {
        let quiet = queue.is_quiet();
        // Relaxed: a note of the threads of this process that send to this peer; who asks on
        // behalf of another thread has met it.
        self.dirty.store(!quiet, Ordering::Relaxed);
        if quiet {
            self.core.registrations.sweep();
        }
    }

    /// Why a connection broke, in words.
    fn cause(&self, broken: &Broken) -> String {
        match broken {
            Broken::Status(status) => self.core.device.domain.device().library().status(*status),
            Broken::Call(error) => error.to_string(),
            Broken::Device => String::from("the device of this process has failed"),
            Broken::Silent => {
                String::from("the device of this process reports no completions any more")
            }
        }
    }

    /// This peer is lost from here on.
    fn lose(&self, link: &mut Link, error: Error) -> Error {
        let before = core::mem::replace(link, Link::Fresh);
        let end = match before {
            Link::Up(queue) => queue.end(&self.core.blocks),
            Link::Fresh => End::default(),
            Link::Lost(_, end) => end,
        };
        *link = Link::Lost(error.clone(), end);
        self.dirty.store(true, Ordering::Relaxed);
        // The user hears that operations have ended.
        self.core.registrations.sweep();
        self.core.count_loss();
        error
    }

    /// Fails if it is lost.
    pub fn check(&self) -> Result<()> {
        match &*self.link.lock() {
            Link::Lost(error, _) => Err(error.clone()),
            Link::Fresh | Link::Up(_) => Ok(()),
        }
    }

    /// Whether there is a connection that may stand; one to who is gone breaks before long, because
    /// this asks, if nothing under way does.
    pub(super) fn is_worth_keeping(&self) -> bool {
        let asked = match &*self.link.lock() {
            Link::Up(queue) => queue.is_under_way(),
            Link::Fresh | Link::Lost(..) => return false,
        };
        asked || self.ping().is_ok()
    }

    /// Waits until so many requests fit.
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

    /// A block, waited for if all are in use: by this queue, or by others.
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

    /// Takes completions if nobody else is at it.
    pub(super) fn try_poll(&self) {
        self.try_with(|queue| queue.poll(&self.core.blocks).map(|_| ()));
    }

    /// Reminds the device of what is under way, if nobody else is at it.
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
                let error = self.contact.lost(self.cause(&broken));
                self.lose(&mut link, error);
            }
        }
    }

    /// Bytes of a run for [`Peer::put_runs`] at most; 0 before there is a connection.
    pub fn run_bytes_max(&self) -> u64 {
        match &*self.link.lock() {
            Link::Up(queue) => queue.inline_bytes_max(),
            _ => 0,
        }
    }

    /// Sends a request whose answer of 8 bytes goes to a word.
    fn ask(&self, at: Remote, work: Work, word: Word, count: Count) -> Result<u64> {
        debug_assert!(at.at.is_multiple_of(8));
        self.with(|queue| {
            self.room(queue, 1)?;
            *count(queue.count()) += 1;
            let from = word.piece();
            let order = Order { work, to: at, from, signaled: true };
            // SAFETY: the word is registered and lives as long as the queue.
            Ok(unsafe { queue.post(&order, Held::Nothing) }?)
        })
    }

    fn begin_with(&self, at: Remote, work: Work, count: Count) -> Result<Ticket> {
        let word = self.core.answers.take()?;
        match self.ask(at, work, word, count) {
            Ok(number) => Ok(Ticket { number, word }),
            Err(error) => {
                // The connection is gone, so that nothing comes here any more.
                self.core.answers.give_back(word);
                Err(error)
            }
        }
    }

    /// Changes a word of the peer, whose address is a multiple of 8. [`Peer::finish`] knows what it
    /// held before.
    pub fn begin(&self, at: Remote, op: Fetch) -> Result<Ticket> {
        self.begin_with(at, op.into(), |kinds| &mut kinds.fetches)
    }

    /// Waits for the answer.
    pub fn finish(&self, ticket: Ticket) -> Result<u64> {
        let waited = self.wait_for(|_| ticket.number);
        // SAFETY: a word of the pool, which lives as long as the core; aligned.
        // Acquire: pairs with the device's store, which was before its completion.
        let answer = unsafe { (*ticket.word.at).load(Ordering::Acquire) };
        self.core.answers.give_back(ticket.word);
        self.core.registrations.sweep();
        waited.map(|()| answer)
    }

    /// Changes a word of the peer and waits for what it held before.
    pub fn fetch(&self, at: Remote, op: Fetch) -> Result<u64> {
        self.finish(self.begin(at, op)?)
    }

    /// Adds to a word of the peer, without an answer.
    pub fn post(&self, at: Remote, add: u64) -> Result<()> {
        let nowhere = self.core.answers.nowhere();
        self.ask(at, Work::Add(add), nowhere, |kinds| &mut kinds.posts).map(|_| ())
    }

    /// Begins to read a word of the peer. [`Peer::finish`] knows its value.
    pub fn begin_read(&self, at: Remote) -> Result<Ticket> {
        self.begin_with(at, Work::Read, |kinds| &mut kinds.reads)
    }

    /// Waits for the value of a word of the peer.
    pub fn read(&self, at: Remote) -> Result<u64> {
        self.finish(self.begin_read(at)?)
    }

    /// Changes a word of the peer, and reads another one behind that: what the first held before,
    /// and what the second holds. One wait.
    pub fn fetch_and_read(&self, at: Remote, op: Fetch, other: Remote) -> Result<(u64, u64)> {
        let changed = self.begin(at, op)?;
        self.order();
        let read = self.read(other);
        // It is done by now, or never will be.
        let before = self.finish(changed);
        Ok((before?, read?))
    }

    /// What is sent next is done after what was sent before, gets too.
    pub fn order(&self) {
        if self.is_idle() {
            return;
        }
        if let Link::Up(queue) = &mut *self.link.lock() {
            queue.order();
        }
    }

    /// Waits until what was sent is done in the peer's memory.
    pub fn flush(&self) -> Result<()> {
        let waited = match self.is_idle() {
            true => Ok(()),
            false => self.flush_begin().and_then(|()| self.wait_for(|queue| queue.last_signaled())),
        };
        self.core.registrations.sweep();
        waited
    }

    /// Sends what a flush needs, without waiting for it.
    pub(super) fn flush_begin(&self) -> Result<()> {
        let nowhere = self.core.answers.nowhere().piece();
        self.with(|queue| {
            if queue.needs_proof() {
                self.room(queue, 1)?;
                queue.count().proofs += 1;
                let order = queue.proof(nowhere);
                // SAFETY: the word is registered and lives as long as the queue.
                unsafe { queue.post(&order, Held::Nothing) }?;
            }
            Ok(())
        })
    }

    /// Waits until buffers that were given to `put` may be used again and gets have arrived.
    pub fn flush_local(&self) -> Result<()> {
        let waited = if self.is_idle() { Ok(()) } else { self.wait_for(|queue| queue.lent()) };
        self.core.registrations.sweep();
        waited
    }

    /// The number of the last request that uses memory of the user; 0 if there was none.
    pub fn lent(&self) -> u64 {
        match &*self.link.lock() {
            Link::Up(queue) => queue.lent(),
            Link::Fresh | Link::Lost(..) => 0,
        }
    }

    /// Whether request `number` is done, if nobody else is at it. Fails if it never will be.
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

    /// Asks whether the process still answers, without waiting for it: if it does not, it is lost
    /// after a while. And reminds the device of what is under way.
    pub fn ping(&self) -> Result<()> {
        self.with(|queue| Ok(queue.ping(&self.core.blocks)?))
    }

    /// The same if it was contacted before.
    pub(super) fn ping_if_up(&self) -> Result<()> {
        let fresh = matches!(*self.link.lock(), Link::Fresh);
        if fresh { Ok(()) } else { self.ping() }
    }

    /// Whether nothing was sent that is not known to be done in the peer's memory.
    pub fn is_idle(&self) -> bool {
        // Relaxed: as where it is stored.
        !self.dirty.load(Ordering::Relaxed)
    }

    /// Waits until the request is done whose number `which` finds in the queue now.
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

    /// What was counted, and whether there is or was a connection.
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
            self.core.registrations.sweep();
        }
    }
}
