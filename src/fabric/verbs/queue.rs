//! The origin's end of a connection: requests in a ring, numbered from 1, and how far they are
//! done. Requests of one connection complete in their order, so one number says it all. Not for
//! waiting, and not for deciding how bytes travel. Invariant: what a request uses is held by its
//! place in the ring until it is done, or until the queue pair is gone.

use core::ptr;
use std::sync::Arc;
use std::time::Instant;

use super::Remote;
use super::counts::Kinds;
use super::pool::{BLOCK_BYTES, Blocks};
use super::silence::Silence;
use crate::error::Error;
use crate::fabric::Fetch;
use crate::sys::ibverbs::types::*;
use crate::sys::ibverbs::{QueuePair, Region};

/// Requests that a queue holds at most, beside pings.
const DEPTH: usize = 128;
/// Places that are kept for pings, so that one can always be sent behind what is late.
const PINGS: usize = 4;
/// Places of a queue in all.
pub const PLACES_MAX: usize = DEPTH + PINGS;
/// At least each so many-th request tells that it is done.
const SIGNAL_EVERY: u64 = 32;
/// Requests that are given to the device at once.
pub const CHAIN: usize = 16;
/// Looks in vain for each question whether the device is still there.
const DEVICE_CHECK_POLLS: u32 = 1024;
/// Completions that are taken at once.
const POLL: usize = 8;

/// What a request holds until it is done.
#[derive(Default)]
pub enum Held {
    /// nothing
    #[default]
    Nothing,
    /// a block that the device reads
    Leaving(u32),
    /// a block that the device writes, and where its bytes go then
    Arriving { block: u32, to: *mut u8, bytes: u32 },
    /// the same, and where parts of it go
    Scattering { block: u32, parts: Box<[Part]> },
    /// memory of the user
    Buffer { _region: Arc<Region> },
}

// SAFETY: the pointer is to memory of this process that the user has lent until the get is done.
unsafe impl Send for Held {}

/// A part of a message.
#[derive(Clone, Copy, Debug)]
pub struct Part {
    /// where its bytes are here
    pub here: *mut u8,
    /// where they begin in the message
    pub at: u32,
    /// how many there are
    pub bytes: u32,
}

// SAFETY: as for `Held`.
unsafe impl Send for Part {}

impl Part {
    /// Where it ends in the message.
    pub fn end(&self) -> usize {
        self.at as usize + self.bytes as usize
    }
}

/// What the device is to do with one request.
#[derive(Clone, Copy)]
pub enum Work {
    /// WRITE
    Write,
    /// WRITE, the bytes taken along at once
    WriteInline,
    /// WRITE of nothing, which touches no memory
    Ping,
    /// READ
    Read,
    /// FETCH_ADD
    Add(u64),
    /// CMP_SWAP
    CompareSwap { expect: u64, new: u64 },
}

impl From<Fetch> for Work {
    fn from(op: Fetch) -> Work {
        match op {
            Fetch::Add(add) => Work::Add(add),
            Fetch::CompareSwap { expect, new } => Work::CompareSwap { expect, new },
        }
    }
}

/// One request: what, where to, and which memory of this process.
#[derive(Clone, Copy)]
pub struct Order {
    pub work: Work,
    pub to: Remote,
    pub from: Piece,
    /// whether it is told when this one is done
    pub signaled: bool,
}

impl Order {
    /// An order for no bytes, to be replaced.
    pub fn nothing() -> Order {
        let (to, from) = (Remote::default(), Piece::default());
        Order { work: Work::Ping, to, from, signaled: true }
    }
}

/// The queue.
pub struct Queue {
    pair: QueuePair,
    ring: Box<[Held]>,
    /// the number of requests that the ring takes, and without those for pings
    places: u64,
    depth: u64,
    /// number of the last request, and of the last that is done
    posted: u64,
    done: u64,
    /// of the last that was or will be told
    signaled: u64,
    /// of the last WRITE, and of the last READ or atomic
    written: u64,
    answered: u64,
    /// of the last that those behind it may overtake
    overtaken: u64,
    /// of the last that uses memory of the user
    lent: u64,
    /// bytes that were written last, for a READ that proves it
    proof: (Remote, u32),
    /// the next request waits for the answers under way
    fence: bool,
    /// the target does one request after the other
    in_order: bool,
    kinds: Kinds,
    /// looks at completions that found none
    empty_polls: u32,
    silence: Silence,
}

/// What is left of a queue that is of no use any more.
#[derive(Default)]
pub struct End {
    /// the last request that was done
    pub done: u64,
    /// what was counted
    pub kinds: Kinds,
}

/// Why a queue is of no use any more.
#[derive(Debug)]
pub enum Broken {
    /// the status of a completion
    Status(i32),
    /// a call that failed
    Call(Error),
    /// the device
    Device,
    /// the device tells nothing of its requests any more
    Silent,
}

impl Queue {
    /// A queue over a connection. `in_order`: the target does one request after the other.
    pub fn new(pair: QueuePair, in_order: bool) -> Queue {
        let places = (pair.capacity().max_send_wr as usize).clamp(1, PLACES_MAX);
        // A small queue has places for requests first.
        let depth = places - PINGS.min(places / 8);
        Queue {
            pair,
            ring: (0..places).map(|_| Held::Nothing).collect(),
            places: places as u64,
            depth: depth as u64,
            posted: 0,
            done: 0,
            signaled: 0,
            written: 0,
            answered: 0,
            overtaken: 0,
            lent: 0,
            proof: (Remote::default(), 0),
            fence: false,
            in_order,
            kinds: Kinds::default(),
            empty_polls: 0,
            silence: Silence::default(),
        }
    }

    /// Bytes that may be taken along at once.
    pub fn inline_bytes_max(&self) -> u64 {
        self.pair.capacity().max_inline_data.into()
    }

    /// How many requests may be posted now.
    pub fn room(&self) -> usize {
        self.depth.saturating_sub(self.posted - self.done) as usize
    }

    /// How many requests may be posted in one go.
    pub fn chain_max(&self) -> usize {
        CHAIN.min(self.depth as usize)
    }

    /// Whether request `number` is done, as far as was told.
    pub fn is_done(&self, number: u64) -> bool {
        self.done >= number
    }

    /// The last request that uses memory of the user.
    pub fn lent(&self) -> u64 {
        self.lent
    }

    /// Whether all that was sent is done in the target's memory, and known to be.
    pub fn is_quiet(&self) -> bool {
        self.done == self.posted && self.written <= self.answered
    }

    /// Whether something is under way.
    pub fn is_under_way(&self) -> bool {
        self.done < self.posted
    }

    /// What was counted.
    pub fn kinds(&self) -> &Kinds {
        &self.kinds
    }

    /// The same, to count.
    pub fn count(&mut self) -> &mut Kinds {
        &mut self.kinds
    }

    /// What comes next waits until the answers under way have come: behind a READ or an atomic
    /// requests may be done before it (decision 0005).
    pub fn order(&mut self) {
        self.fence |= self.overtaken > self.done;
    }

    /// Whether nothing under way will say that all is done in the target's memory.
    pub fn needs_proof(&self) -> bool {
        self.written > self.answered
    }

    /// The request that will: a READ of what was written last, to `nowhere`.
    pub fn proof(&self, nowhere: Piece) -> Order {
        let (to, length) = self.proof;
        Order { work: Work::Read, to, from: Piece { length, ..nowhere }, signaled: true }
    }

    /// The last request that is told when it is done. When nothing needs a proof, its being done
    /// says that all is.
    pub fn last_signaled(&self) -> u64 {
        self.signaled
    }

    /// Posts an empty WRITE, if there is a place for it. Its answer says that the process is still
    /// there; and it wakes a device that has forgotten what was posted before: Soft-RoCE forgets a
    /// request that waits for answers (`IBV_SEND_FENCE`) if the last of them comes while it is
    /// looking, until something else is posted.
    pub fn ping(&mut self, blocks: &Blocks) -> Result<(), Broken> {
        self.poll(blocks)?;
        if self.silence.is_too_long(Instant::now(), self.done, self.posted) {
            return Err(Broken::Silent);
        }
        if self.posted - self.done < self.places {
            self.kinds.pings += 1;
            // SAFETY: no memory.
            unsafe { self.post(&Order::nothing(), Held::Nothing) }?;
        }
        Ok(())
    }

    /// Gives a request to the device and returns its number. There is room for it.
    ///
    /// # Safety
    /// The piece is registered with this key; `held` keeps it so, or it outlives the queue; if it
    /// is taken along at once, it is memory that can be read now instead.
    pub unsafe fn post(&mut self, order: &Order, held: Held) -> Result<u64, Broken> {
        let mut piece = order.from;
        let mut request = self.request(order);
        request.sg_list = &mut piece;
        // SAFETY: a chain of one; the caller vouches for the memory.
        unsafe { self.give(&mut request, held) }
    }

    /// The same with several at once, at most [`CHAIN`]. The last of them holds `held`.
    ///
    /// # Safety
    /// As for [`Queue::post`].
    pub unsafe fn post_chain(&mut self, orders: &[Order], held: Held) -> Result<u64, Broken> {
        let mut pieces = [Piece::default(); CHAIN];
        let mut chain = [Request::default(); CHAIN];
        let (first, piece) = (chain.as_mut_ptr(), pieces.as_mut_ptr());
        for (index, order) in orders.iter().enumerate() {
            chain[index] = self.request(order);
            pieces[index] = order.from;
            chain[index].sg_list = piece.wrapping_add(index);
            if index + 1 < orders.len() {
                chain[index].next = first.wrapping_add(index + 1);
            }
        }
        // SAFETY: a chain whose last link is null; the caller vouches for the memory.
        unsafe { self.give(first, held) }
    }

    /// Hands a chain over whose last request is the last that was noted.
    ///
    /// # Safety
    /// As for [`Queue::post`].
    unsafe fn give(&mut self, first: *mut Request, held: Held) -> Result<u64, Broken> {
        assert!(self.posted - self.done <= self.places);
        if !matches!(held, Held::Nothing | Held::Leaving(_)) {
            self.lent = self.posted;
        }
        self.ring[(self.posted % self.places) as usize] = held;
        self.kinds.doorbells += 1;
        // SAFETY: the caller vouches for the chain and for the memory.
        unsafe { self.pair.post(first) }.map_err(Broken::Call)?;
        Ok(self.posted)
    }

    /// The next request in the words of verbs, noted.
    fn request(&mut self, order: &Order) -> Request {
        self.posted += 1;
        let mut flags = 0;
        // Nothing is behind a ping that it could come too early for, and it waits for nothing.
        if !matches!(order.work, Work::Ping) && core::mem::take(&mut self.fence) {
            flags |= SEND_FENCE;
            self.kinds.fenced += 1;
        }
        if order.signaled || self.posted - self.signaled >= SIGNAL_EVERY.min(self.depth) {
            flags |= SEND_SIGNALED;
            self.signaled = self.posted;
        }
        let Remote { at: remote_addr, key } = order.to;
        let rkey = key as u32;
        let rdma = Target { rdma: Rdma { remote_addr, rkey } };
        let atomic =
            |compare_add, swap| Target { atomic: Atomic { remote_addr, compare_add, swap, rkey } };
        let (opcode, wr) = match order.work {
            Work::Write | Work::WriteInline | Work::Ping => (WR_RDMA_WRITE, rdma),
            Work::Read => (WR_RDMA_READ, rdma),
            Work::Add(add) => (WR_ATOMIC_FETCH_AND_ADD, atomic(add, 0)),
            Work::CompareSwap { expect, new } => (WR_ATOMIC_CMP_AND_SWP, atomic(expect, new)),
        };
        match order.work {
            Work::Write | Work::WriteInline => {
                let bytes = order.from.length.min(8);
                let last = order.to.offset(i64::from(order.from.length - bytes));
                (self.written, self.proof) = (self.posted, (last, bytes));
            }
            Work::Ping => {}
            Work::Read => (self.answered, self.overtaken) = (self.posted, self.posted),
            Work::Add(_) | Work::CompareSwap { .. } => {
                self.answered = self.posted;
                // An answer that was lost is sent again, not found out again as that of a READ is.
                // Not fenced without need: Soft-RoCE now and then stops at a fence for ever.
                if !self.in_order {
                    self.overtaken = self.posted;
                }
            }
        }
        if matches!(order.work, Work::WriteInline) {
            flags |= SEND_INLINE;
        }
        Request {
            wr_id: self.posted,
            num_sge: i32::from(order.from.length > 0),
            opcode,
            send_flags: flags,
            wr,
            ..Request::default()
        }
    }

    /// Takes what the device tells; whether there was anything.
    pub fn poll(&mut self, blocks: &Blocks) -> Result<bool, Broken> {
        let mut found = [Completion::default(); POLL];
        if self.done == self.posted {
            return Ok(false);
        }
        let count = self.pair.poll(&mut found).map_err(Broken::Call)?;
        if count == 0 {
            // A device that has failed need not say so of each request.
            self.empty_polls = self.empty_polls.wrapping_add(1);
            let asks = self.empty_polls.is_multiple_of(DEVICE_CHECK_POLLS);
            return if asks && self.pair.has_lost_its_device() {
                Err(Broken::Device)
            } else {
                Ok(false)
            };
        }
        for completion in &found[..count] {
            if completion.status != WC_SUCCESS {
                return Err(Broken::Status(completion.status));
            }
            self.finish(completion.wr_id, blocks);
        }
        Ok(true)
    }

    /// Request `number` and all before it are done.
    fn finish(&mut self, number: u64, blocks: &Blocks) {
        debug_assert!(number <= self.posted);
        while self.done < number {
            self.done += 1;
            match core::mem::take(&mut self.ring[(self.done % self.places) as usize]) {
                Held::Nothing | Held::Buffer { .. } => {}
                Held::Leaving(block) => blocks.give_back(block),
                Held::Arriving { block, to, bytes } => {
                    assert!(bytes as usize <= BLOCK_BYTES);
                    // SAFETY: the block is ours and has so many bytes; the get's caller has lent
                    // so many at `to` until it is done, which is now.
                    unsafe { ptr::copy_nonoverlapping(blocks.at(block), to, bytes as usize) };
                    blocks.give_back(block);
                }
                Held::Scattering { block, parts } => {
                    for part in &parts {
                        assert!(part.end() <= BLOCK_BYTES);
                        let from = blocks.at(block).wrapping_add(part.at as usize);
                        // SAFETY: inside of the block, which is ours; the part is lent likewise.
                        unsafe { ptr::copy_nonoverlapping(from, part.here, part.bytes as usize) };
                    }
                    blocks.give_back(block);
                }
            }
        }
    }

    /// Ends the connection: what is under way will not be done, or nobody will know.
    pub fn end(self, blocks: &Blocks) -> End {
        let Queue { pair, mut ring, kinds, done, .. } = self;
        // From here on the device touches nothing of it.
        drop(pair);
        for held in &mut ring {
            match core::mem::take(held) {
                Held::Nothing | Held::Buffer { .. } => {}
                Held::Leaving(block)
                | Held::Arriving { block, .. }
                | Held::Scattering { block, .. } => blocks.give_back(block),
            }
        }
        End { done, kinds }
    }
}
