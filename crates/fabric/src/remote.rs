//! The second contract of a transport: bytes and words in the memory of one other process. Every
//! such transport implements [`Bytes`]; a transport between nodes also implements [`Network`];
//! [`Transport`] connects processes. `window` and `transfer` access unmapped memory through these
//! traits alone; `crates/simulator/src/conformance` tests the laws on each transport.
//!
//! The laws, numbered after those of [`Words`](super::Words):
//!
//! 10. The origin's bytes of a put or get are in use until `flush_local` or `flush`: nothing else
//!     changes those of a put, and nothing else reads those of a get.
//! 11. After `flush`, everything sent to the process is done there, for readers on every transport.
//! 12. Transfers between two calls of `order` or `flush` take effect in any order and in any parts.
//! 13. Requests after `order` take effect after the requests before it, gets included. Requests
//!     after `order_puts` take effect after the puts before it, and the gets and reads after
//!     `order_reads` after the gets and reads before it. [`device_order`](super::device_order)
//!     lists the requirements on a device.
//! 14. Zero bytes are no transfer, whatever the addresses are.
//! 15. The runs of one transfer are as many puts or gets. A get may also read bytes that lie
//!     between two of its runs at the target; a put changes none of them.
//! 16. An error means that the transfer may be done in part, inside of the given bytes. It is the
//!     answer of the call, or of a later `flush` or `flush_local`.
//! 17. A word is changed atomically with respect to all other changes through [`Network`] of all
//!     processes, its owner included.
//! 18. The answer of a change or read that was sent after `order` proves that everything sent
//!     before that order is done, as after `flush` (law 6).
//! 19. A change without an answer has taken effect after the next `flush` (law 2).
//! 20. A bounce buffer is memory of this process that no other call uses until it is dropped. What
//!     is read into it has arrived after `arrived`.
//!
//! Some transports have work carried out at the target ([`AtTarget`]): TCP does, verbs does not.
//! `transfer` calls [`Network::at_target`] to find out.
//!
//! 21. Each element is changed as its [`Protection`] says: by one atomic operation of the target's
//!     processor, atomic with those of all other processes; or as the holder of the target's
//!     accumulate lock changes it, which the origin or the target may have taken; or by any
//!     instructions.
//! 22. Accumulates to one process through [`AtTarget`] take effect in the order of the calls, also
//!     with respect to earlier and later changes, reads and transfers.
//! 23. The operands are in use, and the results not valid, until `flush_local` or `flush`: nothing
//!     else uses them meanwhile. Operands of a run of up to [`OPERANDS_COPIED_MAX`] bytes, and the
//!     values of a compare-and-swap, may be changed at once.
//! 24. What is sent after [`AtTarget::take_lock`] takes effect once the target has taken the lock,
//!     and before [`AtTarget::release_lock`]. The target waits for the lock, and the calls do not.
//! 25. A call of [`AtTarget::put_under`] takes its locks in their order, each only if all before it
//!     were free. If all were, it carries out the puts, and then the releases from the last lock
//!     to the first; otherwise neither. All of that is done when the call returns.
//!
//! Notifications, on all transports between nodes:
//!
//! 26. A process that sees the word of [`Network::notify`] changed also sees the effect of the
//!     requests that the notification is behind. Each call adds 1, once.

#[cfg(not(loom))]
use super::datatype::type_map::Portion;
#[cfg(not(loom))]
use super::reduction::{Protection, Reduction};
use super::{Fetch, Way};
use crate::error::Result;
use core::ops::Range;
use parking_lot::Mutex;
use std::sync::Arc;

/// Memory of another process, as its transport addresses it.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Remote {
    /// virtual address in the other process
    pub at: u64,
    /// the key by which the other process has exposed it, 32 bits; 0 on transports without keys
    pub key: u64,
}

impl Remote {
    /// Returns the memory `by` bytes further on.
    #[inline]
    pub fn offset(self, by: i64) -> Remote {
        Remote { at: self.at.wrapping_add_signed(by), ..self }
    }
}

/// Bytes in the memory of one other process.
pub trait Bytes {
    /// A transfer of many runs.
    type Runs<'a>: Runs
    where
        Self: 'a;

    /// Copies `bytes` bytes from `from` to the process.
    ///
    /// # Safety
    /// The bytes at `from` can be read, and stay so while they are in use (law 10). The bytes at
    /// `to` may be written: the caller has checked them.
    unsafe fn put(&self, to: Remote, from: *const u8, bytes: u64) -> Result<()>;

    /// Copies `bytes` bytes from the process to `to`.
    ///
    /// # Safety
    /// The bytes at `to` can be written, and nothing else uses them until they have arrived (law
    /// 10).
    unsafe fn get(&self, to: *mut u8, from: Remote, bytes: u64) -> Result<()>;

    /// Returns an empty transfer of many runs with the memory that has the key of `within`.
    fn runs(&self, within: Remote, way: Way) -> Self::Runs<'_>;

    /// Orders later requests after earlier ones (law 13).
    fn order(&self);

    /// Orders later requests after earlier puts (law 13).
    fn order_puts(&self) {
        self.order();
    }

    /// Orders later gets and reads after earlier ones (law 13).
    fn order_reads(&self) {
        self.order();
    }

    /// Waits until everything that was sent is done at the process (law 11).
    fn flush(&self) -> Result<()>;

    /// Waits until the bytes of the origin are not in use any more (law 10).
    fn flush_local(&self) -> Result<()> {
        self.flush()
    }
}

/// A transfer of many runs, all in one direction.
pub trait Runs {
    /// Adds a run of `bytes` bytes between `here` and the address `there` of the process.
    ///
    /// # Safety
    /// As for [`Bytes::put`] or [`Bytes::get`], until a flush after `finish`.
    unsafe fn push(&mut self, here: *mut u8, there: u64, bytes: u64);

    /// Sends the remaining runs. Returns the first error.
    ///
    /// # Safety
    /// As for `push`.
    unsafe fn finish(self) -> Result<()>;
}

/// The operations of a transport between nodes in addition to those on bytes: atomic changes of
/// words (64 bits at a multiple of 8 bytes), and bounce buffers, memory of this process that it
/// transfers without registration.
pub trait Network: Bytes {
    /// An answer that will arrive. It must not be forgotten.
    type Ticket;
    /// Memory of this process that one caller uses.
    type BounceBuffer<'a>: BounceBuffer
    where
        Self: 'a;
    /// The way to have work carried out at the target.
    #[cfg(not(loom))]
    type AtTarget: AtTarget;
    /// Largest number of words for one [`Network::fetch_all`].
    const WORDS_MAX: usize;

    /// Whether everything that was sent is known to be done, as after a flush. A transport that
    /// does not know returns false.
    fn is_idle(&self) -> bool {
        false
    }

    /// Returns the way to have work carried out at the target, if this transport has one.
    #[cfg(not(loom))]
    fn at_target(&self) -> Option<&Self::AtTarget>;

    /// Begins to change a word; [`Network::finish`] returns its earlier value.
    fn begin(&self, at: Remote, op: Fetch) -> Result<Self::Ticket>;

    /// Begins to read a word.
    fn begin_read(&self, at: Remote) -> Result<Self::Ticket>;

    /// Sends the gathered requests of the process, without waiting for answers. A wait for an
    /// answer does so too, but only for its own process.
    fn send_gathered(&self) {}

    /// Waits for an answer, and returns it.
    fn finish(&self, ticket: Self::Ticket) -> Result<u64>;

    /// Adds to a word without an answer (law 19).
    fn post(&self, at: Remote, add: u64) -> Result<()>;

    /// Adds to a word without an answer (law 19), and wakes the threads that sleep on the doorbell
    /// in another word of the same memory, on transports that can wake them.
    fn post_and_ring(&self, at: Remote, add: u64, _doorbell: Remote) -> Result<()> {
        self.post(at, add)
    }

    /// Does the same where the owner of the word waits for the sum: a flush need not wait for it.
    fn post_awaited(&self, at: Remote, add: u64, doorbell: Remote) -> Result<()> {
        self.post_and_ring(at, add, doorbell)
    }

    /// Begins a notified operation. Where the transport gathers requests, those that are sent until
    /// [`Network::notify`] leave with the notification.
    fn begin_notified(&self) {}

    /// Ends a notified operation that has failed, without a notification.
    fn cancel_notified(&self) {}

    /// Adds 1 to a word behind what was sent before (law 26), and wakes the threads that sleep on
    /// the doorbell in another word of the same memory, on transports that can wake them. Does not
    /// wait.
    fn notify(&self, at: Remote, doorbell: Remote, behind: Behind) -> Result<()> {
        match behind {
            Behind::Puts => self.order_puts(),
            Behind::All => self.order(),
        }
        self.post_and_ring(at, 1, doorbell)
    }

    /// Returns a bounce buffer if one is free.
    fn try_bounce_buffer(&self) -> Option<Self::BounceBuffer<'_>> {
        Some(self.bounce_buffer())
    }

    /// Returns a bounce buffer, and waits until one is free. The caller holds none, and nothing
    /// that the holder of one waits for.
    fn bounce_buffer(&self) -> Self::BounceBuffer<'_>;

    /// Changes `before.len()` words, at most [`Network::WORDS_MAX`], in any order, and waits for
    /// what they held before. `which` returns the address and the operation of the n-th.
    fn fetch_all(
        &self,
        which: impl Fn(usize) -> (Remote, Fetch),
        before: &mut [u64],
    ) -> Result<()> {
        for (index, before) in before.iter_mut().enumerate() {
            let (at, op) = which(index);
            *before = self.fetch(at, op)?;
        }
        Ok(())
    }

    /// Adds to `count` words, in any order, without answers.
    fn post_all(&self, count: usize, which: impl Fn(usize) -> (Remote, u64)) -> Result<()> {
        (0..count).map(which).try_for_each(|(at, add)| self.post(at, add))
    }

    /// Changes a word, waits, and returns its earlier value.
    fn fetch(&self, at: Remote, op: Fetch) -> Result<u64> {
        self.finish(self.begin(at, op)?)
    }

    /// Reads a word, and waits for its value.
    fn read(&self, at: Remote) -> Result<u64> {
        self.finish(self.begin_read(at)?)
    }

    /// Changes a word and reads another one after it, with one wait. Returns what the first one
    /// held before, and the value of the second.
    fn fetch_and_read(&self, at: Remote, op: Fetch, other: Remote) -> Result<(u64, u64)> {
        let changed = self.begin(at, op)?;
        self.order();
        let read = self.read(other);
        // The answer is here by now, or will never be.
        let before = self.finish(changed);
        Ok((before?, read?))
    }
}

/// The requests of this process to one other that take effect ahead of a notification.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Behind {
    /// its puts
    Puts,
    /// all of them
    All,
}

/// Bytes of the operands of one run that are copied by the call.
pub const OPERANDS_COPIED_MAX: u64 = 8 << 10;

/// Elements that are contiguous at the target and in this process.
#[cfg(not(loom))]
#[derive(Clone, Copy, Debug)]
pub struct Elements {
    /// address at the target
    pub there: u64,
    /// their bytes; not 0
    pub bytes: u64,
    /// the operands; not used without operands
    pub operands: *const u8,
    /// where the old elements go, if they are wanted
    pub result: Option<*mut u8>,
}

/// An accumulate on elements of one type.
#[cfg(not(loom))]
#[derive(Clone, Copy)]
pub struct AccumulateAt<'a> {
    /// the operation and the type
    pub what: Reduction,
    /// the protection of the elements
    pub protection: Protection,
    /// memory of the target with the key of all elements
    pub within: Remote,
    /// the elements; all with a result, or all without one
    pub runs: ElementRuns<'a>,
}

/// The elements of an accumulate.
#[cfg(not(loom))]
#[derive(Clone, Copy)]
pub enum ElementRuns<'a> {
    /// as they are listed
    Listed(&'a [Elements]),
    /// all blocks of some portions, which are whole elements without padding
    Portions {
        /// the portions; those of this process are operands
        operands: Portions<'a>,
        /// displacement zero of the old elements in this process, whose offsets are those of the
        /// operands, if they are wanted
        result: Option<*mut u8>,
    },
}

/// Blocks of this process and of the target, as portions of two type maps.
#[cfg(not(loom))]
#[derive(Clone, Copy)]
pub struct Portions<'a> {
    /// displacement zero of the target's type map
    pub there: Remote,
    /// displacement zero of this process's type map
    pub here: *mut u8,
    /// the portions
    pub each: &'a EachPortion<'a>,
}

/// Calls its argument with each portion of a transfer.
#[cfg(not(loom))]
pub type EachPortion<'a> = dyn Fn(&mut dyn FnMut(Portion<'_>)) + 'a;

/// A lock word of the target, with the change that takes the lock if it is free, and the one that
/// releases it.
#[derive(Clone, Copy, Debug)]
pub struct LockAt {
    /// the word
    pub at: Remote,
    /// what the word holds while the lock is free, and what it holds once it is taken
    pub take: (u64, u64),
    /// what the release adds
    pub release: u64,
}

/// Bytes that are put under a lock, and copied by the call.
#[derive(Clone, Copy, Debug)]
pub struct PutAt {
    /// where they go
    pub to: Remote,
    /// where they are in this process
    pub from: *const u8,
    /// their number, from 1 to [`OPERANDS_COPIED_MAX`]
    pub bytes: u64,
}

/// The most locks that one call takes.
pub const LOCKS_MAX: usize = 2;

/// Answers of a call that takes locks. Those of a lock that it did not reach have no meaning.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LockAnswers {
    /// what each lock word held before it was taken
    pub taken: [u64; LOCKS_MAX],
    /// what each lock word held before its release
    pub released: [u64; LOCKS_MAX],
}

/// Work that the target carries out without a call of its ranks: puts and gets of many blocks,
/// accumulates, and puts under locks.
#[cfg(not(loom))]
pub trait AtTarget {
    /// Puts or gets all blocks of some portions (laws 10 to 16). The target scatters or gathers
    /// them.
    ///
    /// # Safety
    /// As for [`Bytes::put`] or [`Bytes::get`], for each block.
    unsafe fn transfer(&self, way: Way, portions: &Portions<'_>) -> Result<()>;

    /// Sends an accumulate (laws 21 to 23).
    ///
    /// # Safety
    /// The elements are in memory that may be changed under this protection, at addresses that fit
    /// to it ([`Reduction::fits`]). Operands can be read and results written while they are in use.
    unsafe fn accumulate(&self, call: &AccumulateAt<'_>) -> Result<()>;

    /// Sends an accumulate on one element without padding, by one atomic operation, without a
    /// result. Most accumulates are of this kind. The operand is copied.
    ///
    /// # Safety
    /// The element is in memory that may be changed, at an address that fits to
    /// [`Protection::Atomic`]. There is an operand, which can be read now.
    unsafe fn accumulate_one(&self, what: Reduction, at: Remote, operand: *const u8) -> Result<()>;

    /// Held by the thread that calls `take_lock`, until it has called `release_lock`. So a process
    /// holds one lock of the other one at a time: with two, the requests of two processes could
    /// wait for each other.
    fn locking(&self) -> &Mutex<()>;

    /// Requests a lock that is held for the time of one call (law 24). All processes of the
    /// target's node take it by a compare-and-swap of the free word, and queue for it in no other
    /// way. The caller waits for no other process before it calls `release_lock`.
    fn take_lock(&self, lock: LockAt) -> Result<()>;

    /// Requests the release of the lock.
    fn release_lock(&self, lock: LockAt) -> Result<()>;

    /// Takes locks if they are free, puts bytes, releases the locks if `release`, and waits (law
    /// 25). At most [`LOCKS_MAX`] locks, at least one.
    ///
    /// # Safety
    /// The bytes can be read. The memory where they go may be written: the caller has checked it.
    unsafe fn put_under(
        &self,
        puts: &[PutAt],
        locks: &[LockAt],
        release: bool,
    ) -> Result<LockAnswers>;

    /// Sends a compare-and-swap of a word, whose address and width of 1, 2, 4 or 8 bytes are given.
    /// `values`: what it must hold, and what it gets then. What it held before goes to `result`, as
    /// many bytes (law 23).
    ///
    /// # Safety
    /// The word may be changed by [`Protection::Atomic`]. The result can be written while it is in
    /// use.
    unsafe fn compare_and_swap(
        &self,
        word: (Remote, u8),
        values: (u64, u64),
        result: *mut u8,
    ) -> Result<()>;
}

/// [`BOUNCE_BYTES`] bytes of this process, through which memory of one other process is read,
/// changed and written back without a copy.
pub trait BounceBuffer {
    /// Address of the memory, a multiple of 4096.
    fn at(&self) -> *mut u8;

    /// Begins to read a part of the memory from the process; `zero` is what corresponds there to
    /// the start of the buffer.
    fn read(&mut self, zero: Remote, part: Range<usize>) -> Result<()>;

    /// Waits for what was read.
    fn arrived(&mut self) -> Result<()>;

    /// Writes parts of the memory to the process, and gives the buffer back.
    fn write(self, zero: Remote, parts: &[Range<usize>]) -> Result<()>;
}

/// Bytes of a bounce buffer.
pub const BOUNCE_BYTES: usize = 8 << 10;

/// A way to expose memory of this process and to connect to other processes.
pub trait Transport {
    /// Another process, as this one reaches it.
    type Peer: Network;
    /// Memory of this process that others may access until this is dropped.
    type Exposed: Addressed;
    /// The address by which another process reaches this one: plain data.
    type Address: Clone;

    /// Lets other processes read, write and atomically change memory of this process, until the
    /// returned value is dropped.
    fn expose(&self, base: *mut u8, bytes: u64) -> Result<Self::Exposed>;

    /// Lets operations under way advance, without waiting. Returns how many processes have been
    /// lost so far: a waiting rank checks its own peers when this number has grown.
    fn progress(&self) -> u64;

    /// Returns another process. Nothing is sent before the first operation on it.
    fn connect(&self, address: &Self::Address) -> Arc<Self::Peer>;
}

/// Memory of this process that other processes can address.
pub trait Addressed {
    /// Returns the address of this memory for other processes.
    fn remote(&self) -> Remote;
}
