//! Another process, or this one, as an origin uses it: its operations, how bytes travel, and every
//! wait for the device. The connection is made by the first operation. Invariant: a peer that was
//! lost stays lost, and says why each time.

use std::sync::Arc;

use parking_lot::Mutex;

use super::counts::Kinds;
use super::pool::{BLOCK_BYTES, Word};
use super::queue::{Broken, CHAIN, Held, Order, Queue, Work};
use super::{Card, Core, Remote, connect};
use crate::error::{Error, Result};
use crate::fabric::Fetch;
use crate::sync::{AtomicBool, Ordering, spin_hint};
use crate::sys::ibverbs::types::{ACCESS_LOCAL_WRITE, Piece};

/// Looks at a queue before a wait gives the core away.
const SPINS: u32 = 16;

/// A process that is reached over the device.
pub struct Peer {
    core: Arc<Core>,
    card: Card,
    /// whether something was sent that is not known to be done
    dirty: AtomicBool,
    link: Mutex<Link>,
}

/// The state of the connection.
enum Link {
    /// not made yet
    Fresh,
    Up(Queue),
    Lost(Error, Kinds),
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
enum Fault {
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
struct Pause(u32);

impl Pause {
    fn new() -> Pause {
        Pause(0)
    }

    fn pause(&mut self) {
        self.0 += 1;
        match self.0 < SPINS {
            true => spin_hint(),
            false => std::thread::yield_now(),
        }
    }
}

impl Peer {
    pub(super) fn new(core: Arc<Core>, card: Card) -> Peer {
        Peer { core, card, dirty: AtomicBool::new(false), link: Mutex::new(Link::Fresh) }
    }

    /// Who it is.
    pub fn card(&self) -> &Card {
        &self.card
    }

    /// Does `work` with the queue of a connection that stands.
    fn with<T>(
        &self,
        work: impl FnOnce(&mut Queue) -> core::result::Result<T, Fault>,
    ) -> Result<T> {
        let mut link = self.link.lock();
        if matches!(*link, Link::Fresh) {
            match connect::to(&self.core, &self.card) {
                Ok(queue) => *link = Link::Up(queue),
                Err(error) => return Err(self.lose(&mut link, error)),
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
                let error = self.card.lost(cause);
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
        }
    }

    /// This peer is lost from here on.
    fn lose(&self, link: &mut Link, error: Error) -> Error {
        let before = core::mem::replace(link, Link::Fresh);
        let kinds = match before {
            Link::Up(queue) => queue.end(&self.core.blocks),
            Link::Fresh => Kinds::default(),
            Link::Lost(_, kinds) => kinds,
        };
        *link = Link::Lost(error.clone(), kinds);
        self.dirty.store(true, Ordering::Relaxed);
        self.core.note_lost(&error);
        error
    }

    /// Waits until so many requests fit.
    fn room(&self, queue: &mut Queue, wanted: usize) -> core::result::Result<(), Broken> {
        if queue.room() >= wanted {
            return Ok(());
        }
        queue.count().waits += 1;
        let mut pause = Pause::new();
        while queue.room() < wanted {
            if !queue.poll(&self.core.blocks)? {
                pause.pause();
            }
        }
        Ok(())
    }

    /// A block, waited for if all are in use: by this queue, or by others.
    fn block(&self, queue: &mut Queue) -> core::result::Result<u32, Broken> {
        let blocks = &self.core.blocks;
        let mut pause = Pause::new();
        loop {
            if let Some(block) = blocks.try_take() {
                return Ok(block);
            }
            if !queue.poll(blocks)? {
                self.core.poll_all();
                pause.pause();
            }
        }
    }

    /// Takes completions if nobody else is at it.
    pub(super) fn try_poll(&self) {
        if self.is_idle() {
            return;
        }
        let Some(mut link) = self.link.try_lock() else { return };
        let Link::Up(queue) = &mut *link else { return };
        match queue.poll(&self.core.blocks) {
            Ok(_) => self.note(queue),
            Err(broken) => {
                let error = self.card.lost(self.cause(&broken));
                self.lose(&mut link, error);
            }
        }
    }

    /// Copies bytes to the peer's memory. Up to some thousand bytes are taken along at once; a
    /// longer buffer is in use until [`Peer::flush_local`] or [`Peer::flush`].
    ///
    /// # Safety
    /// `bytes` bytes at `from` can be read, and are not changed or unmapped as long as they are in
    /// use. What is written at the peer is the caller's affair.
    pub unsafe fn put(&self, to: Remote, from: *const u8, bytes: u64) -> Result<()> {
        if bytes == 0 {
            return Ok(());
        }
        let at = from as u64;
        self.with(|queue| {
            if bytes <= queue.inline_bytes_max() {
                self.room(queue, 1)?;
                queue.count().inline += 1;
                let from = Piece { addr: at, length: bytes as u32, lkey: 0 };
                let order = Order { work: Work::WriteInline, to, from, signalled: false };
                // SAFETY: inline; the caller vouches for the bytes.
                unsafe { queue.post(&order, Held::Nothing) }?;
            } else if bytes <= BLOCK_BYTES as u64 {
                self.room(queue, 1)?;
                let block = self.block(queue)?;
                queue.count().copied += 1;
                let leaving = self.core.blocks.at(block);
                // SAFETY: the caller vouches for the bytes, the block is ours and long enough.
                unsafe { core::ptr::copy_nonoverlapping(from, leaving, bytes as usize) };
                let from = self.block_piece(block, bytes);
                // Told, or a block might wait for a request that never comes.
                let order = Order { work: Work::Write, to, from, signalled: true };
                // SAFETY: the block is registered, and held.
                unsafe { queue.post(&order, Held::Leaving(block)) }?;
            } else {
                queue.count().lent += 1;
                // SAFETY: the caller vouches for the bytes.
                unsafe { self.lend(queue, Work::Write, to, at, bytes) }?;
            }
            Ok(())
        })
    }

    /// Copies bytes from the peer's memory. They are here after [`Peer::flush_local`],
    /// [`Peer::flush`], or an answer behind them and [`Peer::order`].
    ///
    /// # Safety
    /// `bytes` bytes at `to` can be written and nobody else uses them until then.
    pub unsafe fn get(&self, to: *mut u8, from: Remote, bytes: u64) -> Result<()> {
        if bytes == 0 {
            return Ok(());
        }
        self.with(|queue| {
            queue.count().gets += 1;
            if bytes > BLOCK_BYTES as u64 {
                // SAFETY: the caller vouches for the bytes.
                return unsafe { self.lend(queue, Work::Read, from, to as u64, bytes) };
            }
            self.room(queue, 1)?;
            let block = self.block(queue)?;
            queue.count().gets_copied += 1;
            let piece = self.block_piece(block, bytes);
            let order = Order { work: Work::Read, to: from, from: piece, signalled: true };
            // SAFETY: the block is registered, and held.
            unsafe { queue.post(&order, Held::Arriving { block, to, bytes: bytes as u32 }) }?;
            Ok(())
        })
    }

    fn block_piece(&self, block: u32, bytes: u64) -> Piece {
        let blocks = &self.core.blocks;
        Piece { addr: blocks.at(block) as u64, length: bytes as u32, lkey: blocks.key() }
    }

    /// Sends out of the user's memory, or into it, in as many messages as it takes.
    ///
    /// # Safety
    /// As for [`Peer::put`] or [`Peer::get`].
    unsafe fn lend(
        &self,
        queue: &mut Queue,
        work: Work,
        to: Remote,
        at: u64,
        bytes: u64,
    ) -> core::result::Result<(), Fault> {
        let access = if matches!(work, Work::Read) { ACCESS_LOCAL_WRITE } else { 0 };
        let region = self.core.registrations.buffer(at, bytes, access)?;
        let message = self.core.message_bytes_max();
        let lkey = region.local_key();
        let part = |offset: u64| {
            let length = message.min(bytes - offset);
            let from = Piece { addr: at + offset, length: length as u32, lkey };
            let to = to.offset(offset as i64);
            Order { work, to, from, signalled: offset + length == bytes }
        };
        let mut offset = 0;
        while offset < bytes {
            let mut orders = [part(offset); CHAIN];
            let left = (bytes - offset).div_ceil(message).min(queue.chain_max() as u64) as usize;
            for (index, order) in orders[..left].iter_mut().enumerate() {
                *order = part(offset + index as u64 * message);
            }
            orders[left - 1].signalled = true;
            self.room(queue, left)?;
            queue.count().pieces += left as u64 - u64::from(offset == 0);
            let held = Held::Buffer { _region: region.clone() };
            // SAFETY: the region is registered, and held.
            unsafe { queue.post_chain(&orders[..left], held) }?;
            offset += left as u64 * message;
        }
        Ok(())
    }

    /// Sends a request whose answer of 8 bytes goes to a word.
    fn ask(&self, at: Remote, work: Work, word: Word, count: Count) -> Result<u64> {
        debug_assert!(at.at.is_multiple_of(8));
        self.with(|queue| {
            self.room(queue, 1)?;
            *count(queue.count()) += 1;
            let from = word.piece();
            let order = Order { work, to: at, from, signalled: true };
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
        let work = match op {
            Fetch::Add(add) => Work::Add(add),
            Fetch::CompareSwap { expect, new } => Work::CompareSwap { expect, new },
        };
        self.begin_with(at, work, |kinds| &mut kinds.fetches)
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

    /// Waits for the value of a word of the peer.
    pub fn read(&self, at: Remote) -> Result<u64> {
        self.finish(self.begin_with(at, Work::Read, |kinds| &mut kinds.reads)?)
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
        if !self.is_idle() {
            self.flush_begin()?;
            self.wait_for(|queue| queue.last_told())?;
        }
        self.core.registrations.sweep();
        Ok(())
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
        if !self.is_idle() {
            self.wait_for(|queue| queue.lent())?;
        }
        self.core.registrations.sweep();
        Ok(())
    }

    /// Asks whether the process still answers, if nothing under way does: an empty WRITE, without
    /// waiting for it. If it does not, [`super::Nic::progress`] fails after a while.
    pub fn probe(&self) -> Result<()> {
        self.with(|queue| {
            if !queue.is_under_way() {
                queue.count().probes += 1;
                let (to, from) = (Remote::default(), Piece::default());
                let order = Order { work: Work::Probe, to, from, signalled: true };
                // SAFETY: no memory.
                unsafe { queue.post(&order, Held::Nothing) }?;
            }
            Ok(())
        })
    }

    /// The same if it was contacted before.
    pub(super) fn probe_if_up(&self) -> Result<()> {
        let fresh = matches!(*self.link.lock(), Link::Fresh);
        if fresh { Ok(()) } else { self.probe() }
    }

    /// Whether nothing was sent that is not known to be done in the peer's memory.
    pub fn is_idle(&self) -> bool {
        // Relaxed: as where it is stored.
        !self.dirty.load(Ordering::Relaxed)
    }

    /// Waits until the request is done whose number `which` finds in the queue now.
    fn wait_for(&self, which: impl Fn(&Queue) -> u64) -> Result<()> {
        let number = self.with(|queue| {
            let number = which(queue);
            queue.count().awaited += u64::from(!queue.is_done(number));
            Ok(number)
        })?;
        let mut pause = Pause::new();
        while !self.with(|queue| {
            Ok(queue.is_done(number) || queue.poll(&self.core.blocks)? && queue.is_done(number))
        })? {
            pause.pause();
        }
        Ok(())
    }

    /// What was counted, and whether there is or was a connection.
    pub(super) fn kinds(&self) -> (bool, Kinds) {
        match &*self.link.lock() {
            Link::Fresh => (false, Kinds::default()),
            Link::Up(queue) => (true, *queue.kinds()),
            Link::Lost(_, kinds) => (false, *kinds),
        }
    }
}
