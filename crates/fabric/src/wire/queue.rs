//! Send queue: the origin's end of a connection with its requests under way, numbered from 1.
//! Requests of one connection complete in their order, so the number of the last completed one is
//! enough. The queue does not wait, and does not decide how bytes travel. Invariant: the queue
//! holds what a request uses until the request is done, or until the queue pair is gone; bytes that
//! a stream copies, until the stream has taken them.

use core::slice;
use std::time::Instant;

use super::counts::{End, Kinds};
use super::device_link::{Link, News};
use super::gathering::Departures;
use super::held::HeldByRequests;
use super::pool::{Blocks, Kept};
use super::silence::Silence;
use crate::Way;
use crate::device_order::{DeviceOrder, Overtakers};
use crate::number::Number;
use crate::remote::Remote;
use crate::request::{Broken, CHAIN_MAX, Local, Order, Work};

/// Places that are reserved for pings, so that a ping can always be sent after overdue requests.
const PINGS: usize = 4;
/// Every `SIGNAL_EVERY`-th request at least is signaled.
const SIGNAL_EVERY: u64 = 32;
/// Empty polls of the completion queue between two checks whether the device has failed.
const DEVICE_CHECK_POLLS: u32 = 1024;

/// The requests of one connection.
pub struct Queue {
    link: Link,
    /// what the requests hold
    held: HeldByRequests,
    /// number of requests that may be under way, and the number of those that are not reserved for
    /// pings, at least 1
    places: u64,
    depth: u64,
    /// a request is signaled if this many were posted since the last signaled one
    signal_every: u64,
    /// largest number of bytes that a request can carry inline
    inline_bytes_max: u64,
    /// number of the last request posted, and of the last one done; at most `places` are between
    /// them
    posted: u64,
    done: u64,
    /// number of the last signaled request; fewer than `SIGNAL_EVERY`, and fewer than `depth`, have
    /// been posted after it, so that a full queue has a signaled request
    signaled: u64,
    /// number of the last request that a flush waits for: not for those that the target waits for
    needed: u64,
    /// number of the last WRITE, and of the last request whose completion shows that all WRITEs up
    /// to it are done in the target's memory: a READ, an atomic, or a WRITE that the target answers
    written: u64,
    answered: u64,
    /// number of the last READ or atomic that later requests may overtake
    overtaken: u64,
    /// what the last WRITE has written, for the READ of its end that proves it
    last_write: (Remote, u32),
    /// the order that the device keeps, and whether a READ and an atomic prove the WRITEs before
    /// them though they are not fenced
    device_order: DeviceOrder,
    reads_prove: bool,
    atomics_prove: bool,
    /// when the requests leave
    pub departures: Departures,
    /// whether the next READ, and the next WRITE or atomic, waits for all requests under way
    fence_read: bool,
    fence_change: bool,
    /// its counts
    pub kinds: Kinds,
    /// whether a request has met memory that the peer may not access, as of the last poll
    refused: bool,
    /// number of waits of this process at the last request but pings, and at this call
    waits_at_request: u64,
    pub waits: u64,
    /// polls that found no completion
    empty_polls: u32,
    silence: Silence,
}

impl Queue {
    /// Makes a queue over a link.
    pub fn new(link: Link) -> Queue {
        let places = link.places().max(1);
        // A small queue gives its entries to requests first.
        let depth = places - PINGS.min(places / 8);
        let (device_order, done_is_seen) = (link.device_order(), link.answers_show_writes());
        let queue = Queue {
            signal_every: SIGNAL_EVERY.min(depth.to_u64()),
            inline_bytes_max: link.inline_bytes_max(),
            held: HeldByRequests::default(),
            places: places.to_u64(),
            depth: depth.to_u64(),
            posted: 0,
            done: 0,
            signaled: 0,
            needed: 0,
            written: 0,
            answered: 0,
            overtaken: 0,
            last_write: (Remote::default(), 0),
            device_order,
            departures: Departures::new(link.gathers()),
            reads_prove: done_is_seen || !device_order.writes.has_reads(),
            atomics_prove: done_is_seen || !device_order.writes.has_changes(),
            fence_read: false,
            fence_change: false,
            kinds: Kinds::default(),
            refused: false,
            waits_at_request: 0,
            waits: 0,
            empty_polls: 0,
            silence: Silence::default(),
            link,
        };
        queue.invariants();
        queue
    }

    /// Checks the relations of the fields, in debug builds. Each method that changes a field calls
    /// it at its end.
    #[inline]
    fn invariants(&self) {
        if cfg!(debug_assertions) {
            assert!((1..=self.places).contains(&self.depth));
            assert!(self.done <= self.posted && self.posted - self.done <= self.places);
            assert!(self.signaled <= self.posted);
            assert!(self.posted - self.signaled < self.signal_every);
            assert!(self.written.max(self.answered).max(self.lent()) <= self.posted);
            assert!(self.written.max(self.lent()) <= self.needed && self.needed <= self.posted);
            assert!(self.overtaken <= self.posted);
            self.held.invariants(self.done, self.posted);
        }
    }

    /// Returns how a thread learns that a poll may find something.
    pub fn news(&self) -> News {
        self.link.news()
    }

    /// Largest number of bytes that a request can carry inline.
    #[inline]
    pub fn inline_bytes_max(&self) -> u64 {
        self.inline_bytes_max
    }

    /// Largest number of pieces of this process's memory in a WRITE or READ.
    pub fn sge_max(&self, way: Way) -> usize {
        self.link.sge_max(way)
    }

    /// Whether the peer may not access the memory of a request, and the user was not told.
    pub fn is_refused(&self) -> bool {
        self.refused
    }

    /// Forgets such requests.
    pub fn forget_refusal(&mut self) {
        self.refused = false;
        self.link.forget_refusal();
    }

    /// Number of requests that can be posted now.
    pub fn room(&self) -> usize {
        self.depth.saturating_sub(self.posted - self.done).to_usize()
    }

    /// Whether a put or get can be posted now, and none of the requests before it can have been
    /// answered since the last poll: they have not all left, or all answers have come.
    #[inline(always)]
    pub fn is_ready(&self) -> bool {
        self.posted - self.done < self.depth
            && (self.departures.sent != self.posted || self.signaled <= self.done)
    }

    /// Largest number of requests in one chain.
    pub fn chain_max(&self) -> usize {
        CHAIN_MAX.min(self.depth.to_usize())
    }

    /// Whether request `number` is known to be done.
    pub fn is_done(&self, number: u64) -> bool {
        self.done >= number
    }

    /// Number of the last WRITE.
    pub fn written(&self) -> u64 {
        self.written
    }

    /// Number of the last request that uses memory of the user.
    pub fn lent(&self) -> u64 {
        self.held.last()
    }

    /// Whether request `number` and those before it use no memory of the user any more.
    pub fn is_released(&self, number: u64) -> bool {
        self.held.is_released(number, self.done)
    }

    /// Whether a stream has yet to take bytes of the user.
    pub fn is_streaming(&mut self) -> bool {
        self.note_taken();
        self.held.is_streaming(self.done)
    }

    /// Records what the stream has taken.
    fn note_taken(&mut self) {
        if self.held.is_streaming(self.done) && !self.link.lends() {
            self.held.note_taken(self.posted);
        }
    }

    /// Whether no answer is under way.
    pub fn owes_no_answer(&self) -> bool {
        self.signaled <= self.done
    }

    /// Whether all is known to be done in the target's memory, but what the target waits for.
    pub fn is_quiet(&self) -> bool {
        self.done >= self.needed && self.written <= self.answered
    }

    /// Returns the request of a notification, which is posted next. Where requests are gathered, it
    /// is not answered: an answer is a system call of the target, and delays the thread that waits
    /// for the notification.
    pub fn notification(&mut self, addition: Order) -> Order {
        let (waits, lent, link) = (self.waits, self.lent(), &self.link);
        let leaves = self.departures.notification_leaves((waits, lent), || link.has_unsent());
        Order { leaves, signaled: !self.departures.gathers(), ..addition }
    }

    /// Whether a wait for the last request takes a round trip of its own: no other wait has begun
    /// since the request was posted.
    pub fn waits_anew(&self) -> bool {
        self.waits_at_request == self.waits
    }

    /// Whether any request is under way.
    pub fn is_under_way(&self) -> bool {
        self.done < self.posted
    }

    /// Orders the requests that are posted next after those under way: fences the next one that may
    /// overtake one of them. After a READ or an atomic that is any request: the sources of verbs do
    /// not agree on the kinds that need no fence there (decision 0005).
    pub fn order(&mut self) {
        let overtaken = self.overtaken > self.done;
        self.fence_read |= overtaken;
        self.fence_change |= overtaken;
        self.order_puts();
    }

    /// Orders the requests that are posted next after the WRITEs under way.
    pub fn order_puts(&mut self) {
        let written = self.written > self.done;
        self.fence_read |= written && self.device_order.writes.has_reads();
        self.fence_change |= written && self.device_order.writes.has_changes();
    }

    /// Orders the READs that are posted next after those under way.
    pub fn order_reads(&mut self) {
        self.fence_read |= self.overtaken > self.done && self.device_order.reads.has_reads();
    }

    /// Whether a proof is needed: no request under way shows by its completion that all WRITEs are
    /// done in the target's memory.
    pub fn needs_proof(&self) -> bool {
        self.written > self.answered
    }

    /// The proof, which is the next request to be posted: a READ of the end of the last WRITE into
    /// the `scratch` word.
    pub fn proof(&mut self, scratch: Local) -> Order {
        self.fence_read |= !self.reads_prove;
        let (to, written) = self.last_write;
        let bytes = written.min(8);
        let end = to.offset(i64::from(written - bytes));
        Order::new(Work::Read, end, Local { bytes, ..scratch }, true)
    }

    /// Number of the last signaled request. If no proof is needed, its completion means that
    /// everything sent is done in the target's memory.
    pub fn last_signaled(&self) -> u64 {
        self.signaled
    }

    /// Posts an empty WRITE, if there is a place for it. Its completion shows that the other
    /// process is still there. It also wakes a device that has forgotten earlier requests:
    /// Soft-RoCE forgets a fenced request (`IBV_SEND_FENCE`) if the last answer that it waits for
    /// arrives while the device checks, until something else is posted.
    pub fn ping(&mut self, blocks: &Blocks) -> Result<(), Broken> {
        self.poll(blocks)?;
        self.link.check()?;
        let is_late = self.silence.is_too_long(Instant::now(), self.done, self.posted);
        if is_late && self.link.ends_in_time() {
            return Err(Broken::Silent);
        }
        if self.posted - self.done == self.places {
            return Ok(());
        }
        self.kinds.pings += 1;
        // SAFETY: the request accesses no memory.
        unsafe { self.post(Order::ping(), Kept::Nothing) }.map(drop)
    }

    /// Posts a request, for which there is room, and returns its number.
    ///
    /// # Safety
    /// The memory of the request is registered with the given key, and stays so until the request
    /// is done, because `held` keeps it or because it outlives the queue. For inline data it is
    /// enough that the memory can be read now.
    pub unsafe fn post(&mut self, mut order: Order, held: Kept) -> Result<u64, Broken> {
        // SAFETY: the caller guarantees the memory.
        unsafe { self.post_chain(slice::from_mut(&mut order), &[], held) }
    }

    /// Posts a small request that no thread waits for: it holds no resource, and has no data or
    /// inline data. Inlined, so that the compiler resolves the branches on its kind.
    ///
    /// # Safety
    /// As for [`Queue::post`].
    #[inline(always)]
    pub unsafe fn post_small(&mut self, mut order: Order) -> Result<(), Broken> {
        self.number(&mut order);
        self.kinds.doorbells += 1;
        // SAFETY: the caller guarantees the memory.
        unsafe {
            match &mut self.link {
                Link::Tcp(link) => link.post(slice::from_ref(&order)),
                Link::Verbs(link) => {
                    // A copy: where no address of the order is passed on, it stays in registers.
                    let order = order;
                    link.post(slice::from_ref(&order), &[])?;
                }
            }
        }
        self.invariants();
        Ok(())
    }

    /// Posts several requests at once, at most [`CHAIN_MAX`], for which there is room. The last of
    /// them holds `held`. Returns its number. `pieces`: the memory of a single request in this
    /// process, if it is several pieces, at most `sge_max`; its own memory has their length.
    ///
    /// # Safety
    /// As for [`Queue::post`].
    pub unsafe fn post_chain(
        &mut self,
        orders: &mut [Order],
        pieces: &[Local],
        held: Kept,
    ) -> Result<u64, Broken> {
        for order in orders.iter_mut() {
            self.number(order);
        }
        assert!(self.posted - self.done <= self.places);
        self.held.add(self.posted, held);
        self.kinds.doorbells += 1;
        // SAFETY: the caller guarantees the memory.
        unsafe { self.link.post(orders, pieces) }?;
        self.invariants();
        Ok(self.posted)
    }

    /// Gives a request the next number, and decides whether it is signaled and fenced.
    #[inline(always)]
    fn number(&mut self, order: &mut Order) {
        self.posted += 1;
        order.number = self.posted;
        if order.work != Work::Ping {
            self.waits_at_request = self.waits;
        }
        // An atomic after WRITEs proves them: a flush waits for it.
        if !order.awaited || self.needs_proof() {
            self.needed = self.posted;
            order.signaled |= order.awaited;
        }
        self.departures.leave(order, self.posted, self.signaled <= self.done);
        order.fenced = match order.work {
            // It accesses no memory, so that its order does not matter.
            Work::Ping => false,
            Work::Read => self.fence_read,
            _ => self.fence_change,
        };
        if order.fenced {
            // Requests after it are ordered, too.
            (self.fence_read, self.fence_change) = (false, false);
            self.kinds.fenced += 1;
        }
        if order.signaled || self.posted - self.signaled >= self.signal_every {
            (order.signaled, self.signaled) = (true, self.posted);
        }
        match order.work {
            Work::Add(_) if order.signaled || order.awaited => self.note_changed(order),
            Work::Add(_)
            | Work::Write
            | Work::WriteInline
            | Work::Accumulate { result: 0, .. }
            | Work::OverRows { result: 0, .. } => {
                let bytes = match order.work {
                    // The address is that of its first block.
                    Work::OverRows { .. } => 1,
                    _ => order.from.bytes,
                };
                (self.written, self.last_write) = (self.posted, (order.to, bytes));
                if order.signaled && self.link.answers_show_writes() {
                    self.answered = self.posted;
                }
            }
            Work::Ping | Work::TakeLock { .. } => {}
            Work::Read => {
                if self.device_order.reads != Overtakers::Nothing {
                    self.overtaken = self.posted;
                }
                if order.fenced || self.reads_prove {
                    self.answered = self.posted;
                }
            }
            Work::CompareSwap { .. }
            | Work::CompareSwapNarrow { .. }
            | Work::Accumulate { .. }
            | Work::OverRows { .. } => self.note_changed(order),
        }
    }

    /// Records an atomic, or an accumulate with a result.
    #[inline(always)]
    fn note_changed(&mut self, order: &Order) {
        // No fence without need: Soft-RoCE sometimes stops at one forever.
        if self.device_order.atomics != Overtakers::Nothing {
            self.overtaken = self.posted;
        }
        if order.fenced || self.atomics_prove {
            self.answered = self.posted;
        }
    }

    /// Polls for completions. Returns whether there were any.
    pub fn poll(&mut self, blocks: &Blocks) -> Result<bool, Broken> {
        self.poll_by(blocks, Link::poll)
    }

    /// [`Queue::poll`] that sleeps for a short time until there is an answer, if the device can.
    pub fn poll_asleep(&mut self, blocks: &Blocks) -> Result<bool, Broken> {
        self.poll_by(blocks, Link::poll_asleep)
    }

    fn poll_by(
        &mut self,
        blocks: &Blocks,
        poll: impl FnOnce(&mut Link) -> Result<Option<u64>, Broken>,
    ) -> Result<bool, Broken> {
        if self.done == self.posted {
            return Ok(false);
        }
        let done = poll(&mut self.link)?;
        self.refused = self.link.is_refused();
        self.note_taken();
        if let Some(number) = done {
            self.finish(number, blocks);
            self.invariants();
            return Ok(true);
        }
        // A device that has failed need not report each request.
        self.empty_polls = self.empty_polls.wrapping_add(1);
        let asks = self.empty_polls.is_multiple_of(DEVICE_CHECK_POLLS);
        if asks && self.link.has_failed() { Err(Broken::Device) } else { Ok(false) }
    }

    /// Marks a request and all before it as done, and releases what they hold.
    fn finish(&mut self, number: u64, blocks: &Blocks) {
        debug_assert!(number <= self.posted);
        self.done = self.done.max(number);
        self.held.finish(number, blocks);
    }

    /// Ends the connection. Requests under way are not executed any more, or their completion is
    /// never known.
    pub fn end(self, blocks: &Blocks) -> End {
        self.invariants();
        let Queue { link, held, kinds, done, .. } = self;
        // From here on the device accesses none of the memory.
        drop(link);
        held.end(blocks);
        End { done, kinds }
    }
}
