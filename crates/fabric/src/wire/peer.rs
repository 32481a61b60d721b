//! Peer: another process, or this one, as the target of an origin. It has the connection; all peers
//! share a state. Operations on words are in `atomics`; bytes travel in `put_and_get`,
//! `scatter_messages` and `bounce_buffers`; `answer_waits` has every wait for the device.
//! The first operation makes the connection. Invariant: a lost peer stays lost, and each later call
//! fails with the same error.
//!
//! A peer may refuse requests, because its process may not access a page of its own memory. The
//! connection stays, and the user learns of them at the end of an epoch or at a flush, because a
//! protocol that ended in the middle would leave locks and posts after. Invariant: `refusing` of
//! the core counts the peers whose `refused` is set.

use core::result;
use std::net::IpAddr;
use std::sync::{Arc, OnceLock};

use parking_lot::{Mutex, RwLock};

use super::counts::{End, Kinds};
use super::device::Device;
use super::fault::Fault;
use super::greeting;
use super::pause::{Pause, SLEEP_MAX, SLEEP_OF_MANY, WaitPolicy};
use super::pool::{Answers, Blocks, Kept};
use super::queue::Queue;
use crate::Way;
use crate::contact::{Contact, Identity, Secret};
use crate::error::{Error, Result, kept};
use crate::remote::Network;
use crate::request::Broken;
use crate::sync::{AtomicBool, AtomicU32, AtomicU64, Ordering};

/// The state that all parts of this transport share.
pub(super) struct Core {
    pub(super) blocks: Blocks,
    pub(super) answers: Answers,
    pub(super) device: Device,
    /// all peers, by the number of the process
    pub(super) peers: RwLock<Vec<Arc<Peer>>>,
    pub(super) identity: Identity,
    /// length of the longest message, if it is below the limit of the device
    pub(super) message_bytes_max: AtomicU64,
    /// own address of the first connection that was made
    pub(super) own_address: OnceLock<IpAddr>,
    /// number of peers lost so far
    losses: AtomicU64,
    /// how the threads of this process wait
    pub(super) wait_policy: WaitPolicy,
    /// number of peers with a refused request that has not been reported to the user
    pub(super) refusing: AtomicU64,
    /// number of counted waits so far
    pub(super) waits: AtomicU64,
}

impl Core {
    pub(super) fn new(device: Device) -> Result<Core> {
        Ok(Core {
            blocks: Blocks::new(&device)?,
            answers: Answers::new(&device)?,
            message_bytes_max: AtomicU64::new(device.message_bytes_max()),
            device,
            peers: RwLock::default(),
            identity: Identity::default(),
            own_address: OnceLock::new(),
            losses: AtomicU64::new(0),
            wait_policy: WaitPolicy::default(),
            refusing: AtomicU64::new(0),
            waits: AtomicU64::new(0),
        })
    }

    pub(super) fn message_bytes_max(&self) -> u64 {
        // Relaxed: it changes in tests only, before there are messages.
        self.message_bytes_max.load(Ordering::Relaxed)
    }

    /// Polls the completion queue of each peer that no other thread is polling.
    pub(super) fn poll_all(&self) {
        // Recursive: a thread that flushes all peers may call this on the way.
        for peer in self.peers.read_recursive().iter() {
            peer.try_poll();
        }
    }

    /// Pings every peer that has operations under way. For a thread that has waited long for a
    /// resource that requests hold.
    pub(super) fn ping_all(&self) {
        for peer in self.peers.read_recursive().iter() {
            peer.try_ping();
        }
    }

    fn count_loss(&self) {
        // Release: pairs with the Acquire in `losses`.
        self.losses.fetch_add(1, Ordering::Release);
    }

    /// Number of peers lost so far.
    pub(super) fn losses(&self) -> u64 {
        // Acquire: pairs with the Release in `count_loss`.
        self.losses.load(Ordering::Acquire)
    }

    /// Whether a peer has refused a request, and the user does not know it yet.
    pub(super) fn has_refusals(&self) -> bool {
        // Relaxed: a thread that asks has waited for the answers, which another thread may have
        // received, under the lock of the peer's state or by `is_idle`.
        self.refusing.load(Ordering::Relaxed) > 0
    }

    /// Returns the peer for the process of a contact, which knows this secret. The same process
    /// always gives the same peer.
    pub(super) fn peer(self: &Arc<Core>, contact: &Contact, secret: Secret) -> Arc<Peer> {
        let known = |peers: &[Arc<Peer>]| {
            peers.binary_search_by_key(&contact.uid(), |peer| peer.contact().uid())
        };
        let peers = self.peers.read_recursive();
        if let Ok(index) = known(&peers) {
            return peers[index].clone();
        }
        drop(peers);
        let mut peers = self.peers.write();
        // A peer that is not in use is kept while it answers: it may be used again.
        peers.retain(|peer| Arc::strong_count(peer) > 1 || peer.is_worth_keeping());
        let index = known(&peers).unwrap_or_else(|index| {
            peers.insert(index, Arc::new(Peer::new(self.clone(), *contact, secret)));
            index
        });
        peers[index].clone()
    }
}

/// A process that is reached over the device.
pub struct Peer {
    pub(super) core: Arc<Core>,
    contact: Contact,
    /// the secret that both processes know
    secret: Secret,
    /// whether anything was sent that is not known to be done
    pub(super) dirty: AtomicBool,
    /// whether the next requests belong to a notified operation
    pub(super) notified: AtomicBool,
    /// whether it has refused a request, and the user does not know it yet
    pub(super) refused: AtomicBool,
    /// name of its node, once an error has named it
    pub(super) node: OnceLock<&'static str>,
    /// number of threads that wait for answers
    pub(super) waiting: AtomicU32,
    pub(super) state: Mutex<State>,
    /// held while a call of this process holds a lock of the other one ([`AtTarget::locking`])
    ///
    /// [`AtTarget::locking`]: crate::remote::AtTarget::locking
    pub(super) locking: Mutex<()>,
}

/// The state of the connection.
#[allow(clippy::large_enum_variant)] // most peers are up, and each call uses the queue
pub(super) enum State {
    /// not connected yet
    Fresh,
    Up(Queue),
    Lost(Error, End),
}

impl Peer {
    fn new(core: Arc<Core>, contact: Contact, secret: Secret) -> Peer {
        let [dirty, notified, refused] = [const { AtomicBool::new(false) }; 3];
        let (waiting, state) = (AtomicU32::new(0), Mutex::new(State::Fresh));
        let (node, locking) = (OnceLock::new(), Mutex::new(()));
        Peer { core, contact, secret, dirty, notified, refused, node, waiting, state, locking }
    }

    /// The contact of the process.
    pub fn contact(&self) -> &Contact {
        &self.contact
    }

    /// Calls `work` with the queue of the connection, which is made first if there is none.
    pub(super) fn with<T>(
        &self,
        work: impl FnOnce(&mut Queue) -> result::Result<T, Fault>,
    ) -> Result<T> {
        let mut state = self.state.lock();
        if !matches!(*state, State::Up(_)) {
            self.connect_or_fail(&mut state, true)?;
        }
        let State::Up(queue) = &mut *state else { unreachable!("it was made") };
        // Relaxed: a count, and a hint.
        queue.waits = self.core.waits.load(Ordering::Relaxed);
        queue.departures.notified = self.notified.load(Ordering::Relaxed);
        let answer = work(queue);
        self.record(queue);
        match answer {
            Ok(answer) => Ok(answer),
            Err(Fault::Local(error)) => Err(error),
            Err(Fault::Broken(broken)) => {
                let error = self.contact.lost(broken.to_string());
                Err(self.lose(&mut state, error))
            }
        }
    }

    /// Connects if there is no connection yet. A process all of whose addresses are silent counts
    /// as one that cannot be reached, after a few seconds.
    pub fn meet(&self) -> Result<()> {
        self.connect_or_fail(&mut self.state.lock(), false)
    }

    /// Makes the connection, unless there is one or the peer is lost. `patient`: as for
    /// [`greeting::connect`].
    #[cold]
    fn connect_or_fail(&self, state: &mut State, patient: bool) -> Result<()> {
        match state {
            State::Fresh => {}
            State::Up(_) => return Ok(()),
            State::Lost(error, _) => return Err(error.clone()),
        }
        let Core { device, identity, .. } = &*self.core;
        match greeting::connect(device, identity, (&self.contact, self.secret), patient) {
            Ok((queue, own_address)) => {
                own_address.map(|address| self.core.own_address.set(address));
                *state = State::Up(queue);
                Ok(())
            }
            Err(error @ Error::Lost { .. }) => Err(self.lose(state, error)),
            // A failure of this process, or no answer in time: the peer is not lost, and the next
            // use tries again.
            Err(error) => Err(error),
        }
    }

    /// Records whether requests are under way, and ends registrations that nothing needs.
    #[inline(always)]
    fn record(&self, queue: &Queue) {
        if self.refused.load(Ordering::Relaxed) != queue.is_refused() {
            self.record_refusal(queue.is_refused());
        }
        if queue.is_quiet() {
            self.record_quiet();
        } else {
            self.dirty.store(true, Ordering::Relaxed); // nothing is read after it
        }
    }

    /// Records that nothing is under way.
    #[cold]
    fn record_quiet(&self) {
        // Release: pairs with the Acquire in `is_idle`. A thread that finds the peer idle sees the
        // data that this thread has received for it, and a refusal.
        self.dirty.store(false, Ordering::Release);
        self.core.device.sweep();
    }

    /// Records whether the peer has refused a request, and the user does not know it yet.
    #[cold]
    fn record_refusal(&self, refused: bool) {
        // Relaxed: changed while the state is locked, and before `dirty`.
        if self.refused.load(Ordering::Relaxed) != refused {
            self.refused.store(refused, Ordering::Relaxed);
            let change = if refused { 1 } else { u64::MAX };
            self.core.refusing.fetch_add(change, Ordering::Relaxed);
        }
    }

    /// Fails if the process was not permitted to access memory of its own for a request of this
    /// one, and forgets it.
    pub(super) fn take_refusal(&self) -> Result<()> {
        let mut state = self.state.lock();
        let State::Up(queue) = &mut *state else { return Ok(()) };
        let refused = queue.is_refused();
        queue.forget_refusal();
        self.record_refusal(false);
        if refused { Err(self.no_access()) } else { Ok(()) }
    }

    fn no_access(&self) -> Error {
        let contact = self.contact();
        let node = self.node.get_or_init(|| kept(contact.node()));
        Error::NoAccess { rank: None, node, pid: contact.pid() }
    }

    /// Whether the peer has refused a request, and the user does not know it yet.
    pub(super) fn is_refused(&self) -> bool {
        // Relaxed: as where it is stored.
        self.refused.load(Ordering::Relaxed)
    }

    /// Marks this peer as lost.
    fn lose(&self, state: &mut State, error: Error) -> Error {
        let before = core::mem::replace(state, State::Fresh);
        let end = match before {
            State::Up(queue) => queue.end(&self.core.blocks),
            State::Fresh => End::default(),
            State::Lost(_, end) => end,
        };
        *state = State::Lost(error.clone(), end);
        self.record_refusal(false);
        self.dirty.store(true, Ordering::Relaxed); // nothing is read after it
        // The user learns that operations have ended.
        self.core.device.sweep();
        self.core.count_loss();
        error
    }

    /// Fails if the peer is lost.
    pub fn check(&self) -> Result<()> {
        match &*self.state.lock() {
            State::Lost(error, _) => Err(error.clone()),
            State::Fresh | State::Up(_) => Ok(()),
        }
    }

    /// Whether there is a connection that may still work. If the process has gone, the connection
    /// breaks soon, because this call pings unless requests are under way already.
    fn is_worth_keeping(&self) -> bool {
        let asked = match &*self.state.lock() {
            // No thread waits for the answers of a quiet queue.
            State::Up(queue) => queue.is_under_way() && !queue.is_quiet(),
            State::Fresh | State::Lost(..) => return false,
        };
        asked || self.ping().is_ok()
    }

    /// Before a put or get for which the queue is not ready: receives the answer that lets it leave
    /// at once, if that is likely to have arrived, and waits until it fits into the queue.
    #[cold]
    pub(super) fn make_ready(&self, queue: &mut Queue) -> result::Result<(), Broken> {
        if queue.departures.is_likely_answered() {
            queue.poll(&self.core.blocks)?;
        }
        self.room(queue, 1)
    }

    /// Waits until `wanted` requests fit into the queue.
    #[inline(always)]
    pub(super) fn room(&self, queue: &mut Queue, wanted: usize) -> result::Result<(), Broken> {
        if queue.room() >= wanted { Ok(()) } else { self.make_room(queue, wanted) }
    }

    #[cold]
    fn make_room(&self, queue: &mut Queue, wanted: usize) -> result::Result<(), Broken> {
        queue.kinds.waits += 1;
        let (mut pause, news) = (Pause::default(), queue.news());
        while queue.room() < wanted {
            if !queue.poll(&self.core.blocks)? && pause.pause_for(&news, SLEEP_MAX) {
                queue.ping(&self.core.blocks)?;
            }
        }
        Ok(())
    }

    /// Returns a block. Waits if all are in use, by this queue or by others.
    pub(super) fn block(&self, queue: &mut Queue) -> result::Result<u32, Broken> {
        let blocks = &self.core.blocks;
        let mut pause = Pause::default();
        loop {
            if let Some(block) = blocks.try_take() {
                return Ok(block);
            }
            if !queue.poll(blocks)? {
                self.core.poll_all();
                if pause.pause_for(&queue.news(), SLEEP_OF_MANY) {
                    queue.ping(&self.core.blocks)?;
                    self.core.ping_all();
                }
            }
        }
    }

    /// Polls for completions if no other thread is using the connection.
    fn try_poll(&self) {
        self.try_with(|queue| queue.poll(&self.core.blocks).map(|_| ()));
    }

    /// Pings if requests are under way and no other thread is using the connection.
    pub(super) fn try_ping(&self) {
        self.try_with(|queue| queue.ping(&self.core.blocks));
    }

    pub(super) fn try_with(&self, work: impl FnOnce(&mut Queue) -> result::Result<(), Broken>) {
        if self.is_idle() {
            return;
        }
        let Some(mut state) = self.state.try_lock() else { return };
        let State::Up(queue) = &mut *state else { return };
        match work(queue) {
            Ok(()) => self.record(queue),
            Err(broken) => {
                let error = self.contact.lost(broken.to_string());
                self.lose(&mut state, error);
            }
        }
    }

    /// Longest run for [`Peer::put_runs`] in bytes, and the most parts for
    /// [`Peer::transfer_parts`]; 0 and 1 before there is a connection.
    pub fn request_limits(&self, way: Way) -> (u64, usize) {
        match &*self.state.lock() {
            State::Up(queue) => (queue.inline_bytes_max(), queue.sge_max(way)),
            _ => (0, 1),
        }
    }

    #[inline]
    pub(super) fn order_by(&self, order: impl FnOnce(&mut Queue)) {
        if self.is_idle() {
            return;
        }
        if let State::Up(queue) = &mut *self.state.lock() {
            order(queue);
        }
    }

    /// Sends the proof that a flush needs, without waiting for it.
    pub fn flush_begin(&self) -> Result<()> {
        let scratch = self.core.answers.scratch().local();
        self.with(|queue| {
            if queue.needs_proof() {
                self.room(queue, 1)?;
                queue.kinds.proofs += 1;
                let order = queue.proof(scratch);
                // SAFETY: the word is registered and lives as long as the queue.
                unsafe { queue.post(order, Kept::Nothing) }?;
            }
            Ok(())
        })
    }

    /// Number of the last put, or accumulate without a result; 0 if there was none.
    pub fn written(&self) -> u64 {
        match &*self.state.lock() {
            State::Up(queue) => queue.written(),
            State::Fresh | State::Lost(..) => 0,
        }
    }

    /// Number of the last request that uses memory of the user; 0 if there was none.
    pub fn lent(&self) -> u64 {
        match &*self.state.lock() {
            State::Up(queue) => queue.lent(),
            State::Fresh | State::Lost(..) => 0,
        }
    }

    /// Whether request `number` uses no memory of the user any more; false if another thread is
    /// using the connection. Fails if that is never known.
    pub(super) fn try_is_released(&self, number: u64) -> Result<bool> {
        self.try_poll();
        let Some(state) = self.state.try_lock() else { return Ok(false) };
        match &*state {
            State::Up(queue) if queue.is_released(number) && queue.is_refused() => {
                drop(state);
                self.take_refusal().map(|()| true)
            }
            State::Up(queue) => Ok(queue.is_released(number)),
            State::Lost(_, end) if end.done >= number => Ok(true),
            State::Lost(error, _) => Err(error.clone()),
            State::Fresh => Ok(true),
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
        let fresh = matches!(*self.state.lock(), State::Fresh);
        if fresh { Ok(()) } else { self.ping() }
    }

    /// Whether there is a connection, and the counts of the connection that there is or was.
    pub(super) fn kinds(&self) -> (bool, Kinds) {
        match &*self.state.lock() {
            State::Fresh => (false, Kinds::default()),
            State::Up(queue) => (true, queue.kinds),
            State::Lost(_, end) => (false, end.kinds),
        }
    }
}

impl Drop for Peer {
    fn drop(&mut self) {
        if let State::Up(queue) = core::mem::replace(self.state.get_mut(), State::Fresh) {
            queue.end(&self.core.blocks);
            self.core.device.sweep();
        }
    }
}
