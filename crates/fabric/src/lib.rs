//! Transports: how a rank accesses control words and bytes of another rank, and the laws that every
//! transport keeps (`docs/internals/architecture.md`). Protocols in `epoch` use [`Words`] alone and
//! do not know the transport. [`remote`] has the traits for bytes, with laws of their own; memory
//! that all ranks map needs no trait (`docs/decisions/0014`).
//!
//! The laws:
//! 1. One word, one transport: all ranks access a contended word in the same way.
//! 2. After `flush(r)`, everything sent to `r` before is done at `r`, for readers on every
//!    transport.
//! 3. Before `flush` or `order`, operations may take effect in any order.
//! 4. The buffer of a get is valid only after the get is known to be complete, or after a flush.
//! 5. Zero lengths and MPI_PROC_NULL never reach a transport.
//! 6. The answer of a `fetch` or `read` that was sent to `r` after `order(r)` proves that
//!    everything sent to `r` before that order is done, gets included, as after `flush(r)`. So a
//!    protocol can order, release a lock, and wait for its answer alone.
//! 7. `post` wakes a rank that waits in `wait_own`; `fetch` does not, so that an uncontended lock
//!    costs no read of its owner's doorbell. No rank waits for a word that only `fetch` changes.
//! 8. A word is read as a whole: `own`, `read` and `wait_own` return a value that was stored, never
//!    parts of two values.
//! 9. `order(r)` also orders after a fetch that was begun and has no answer yet. So a rank can
//!    begin to take a lock, order, read the data that the lock protects, and wait once for both.

// Under the model checker only the words are built.
#![cfg_attr(loom, allow(dead_code, unused_imports))]
#![cfg_attr(test, allow(clippy::pedantic))] // tests cast small numbers

#[cfg(not(loom))]
use fompi_base::config;
use fompi_base::{error, messages, number, rank_numbers, sync};
use fompi_datatype as datatype;
use fompi_sys as sys;

use crate::error::Result;
use crate::rank_numbers::Rank;

#[cfg(not(loom))]
pub mod cma;
#[cfg(not(loom))]
pub mod contact;
#[cfg(not(loom))]
mod device_order;
pub mod layout;
mod leaves;
#[cfg(not(loom))]
pub mod location;
#[cfg(not(loom))]
pub mod net;
#[cfg(not(loom))]
mod packing;
pub mod pending_puts;
#[cfg(not(loom))]
pub mod reduction;
pub mod remote;
#[cfg(not(loom))]
pub mod remote_words;
#[cfg(not(loom))]
pub mod request;
#[cfg(not(loom))]
mod request_rows;
pub mod shm;
mod tcp;
#[cfg(not(loom))]
mod verbs;
#[cfg(not(loom))]
mod wire;
#[cfg(not(loom))]
pub mod word_copies;

#[cfg(all(any(test, fuzzing), not(loom)))]
pub use tcp::{tcp_answers, tcp_requests};
#[cfg(all(any(test, fuzzing), not(loom)))]
pub use wire::greetings;
#[cfg(all(feature = "test-util", not(loom)))]
pub use wire::test_processes;

/// Index of a 64-bit control word inside the control block that each rank owns.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct WordId(pub u32);

/// One control word of one rank.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct WordAt {
    /// whose control block
    pub rank: Rank,
    /// which word of it
    pub word: WordId,
}

/// The direction in which the bytes of a transfer go.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Way {
    /// from the origin to the target
    Put,
    /// from the target to the origin
    Get,
}

/// The two atomic operations that every transport has by nature (InfiniBand's FETCH_ADD and
/// CMP_SWAP).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fetch {
    /// adds, wrapping around; a subtraction is the addition of the negated value
    Add(u64),
    /// stores `new` if the word holds `expect`
    CompareSwap {
        /// what the word must hold
        expect: u64,
        /// what it then gets
        new: u64,
    },
}

/// How a control word may change. The simulator checks that the protocols comply.
#[cfg(any(test, feature = "test-util"))]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WordKind {
    /// by [`Words::fetch`] and [`Words::post`] alone, by its owner too
    Contended,
    /// as `Contended`; and its owner resets it while no other rank can change it
    /// ([`Words::set_own`])
    Link,
    /// only by its owner, by stores; other ranks read it
    Owned,
}

/// The operations that synchronisation needs, on 64-bit control words.
///
/// No rank stores into another rank's word: a reader may see parts of 8 bytes that a device writes,
/// but never parts of an addition. A word is of one `WordKind`; `fabric::layout` has the kind of
/// each word.
pub trait Words {
    /// Whether an operation on another rank's word takes a round trip, so that repetitions are
    /// expensive.
    const FAR: bool = false;
    /// The number of holders that a lock word can count; smaller than its field allows in tests
    /// alone.
    const HOLDERS_MAX: u64 = (1 << 19) - 1;
    /// A `fetch` that is under way.
    type Ticket;
    /// This process.
    fn rank(&self) -> Rank;
    /// Number of ranks.
    fn size(&self) -> u32;
    /// Changes a contended word and returns its earlier value. Acquire and Release. It wakes no
    /// rank (law 7).
    fn fetch(&self, at: WordAt, op: Fetch) -> Result<u64>;
    /// Begins a `fetch`, so that several are under way at once. It takes effect at any time until
    /// it is finished (laws 3 and 6).
    fn begin(&self, at: WordAt, op: Fetch) -> Result<Self::Ticket>;
    /// Ends a `fetch` and returns the earlier value of the word. The caller must end each ticket.
    fn finish(&self, ticket: Self::Ticket) -> Result<u64>;
    /// Changes two contended words at once, in any order, and waits for both answers. One may fail
    /// without the other.
    fn fetch_both(&self, both: [(WordAt, Fetch); 2]) -> [Result<u64>; 2] {
        let begun = both.map(|(at, op)| self.begin(at, op));
        begun.map(|ticket| self.finish(ticket?))
    }
    /// Adds to a contended word without an answer. Release: a rank that sees the sum sees the
    /// effect of everything that was sent to that rank and ordered before.
    fn post(&self, at: WordAt, add: u64) -> Result<()>;
    /// Does the same where the owner of the word waits for this addition, so that no other wait is
    /// needed: a flush need not wait for it.
    fn post_awaited(&self, at: WordAt, add: u64) -> Result<()> {
        self.post(at, add)
    }
    /// Loads a word of any rank. Acquire.
    fn read(&self, at: WordAt) -> Result<u64>;
    /// Loads a word of this rank. Acquire.
    fn own(&self, word: WordId) -> u64;
    /// Stores into an owned word of this rank, or into a link of it while the protocol rules out
    /// that another rank changes it: nothing is under way to it, and no other rank sends to it
    /// before a later `fetch` or `post` of this rank lets it do so.
    fn set_own(&self, word: WordId, value: u64);
    /// Waits until a `post` made a word of this rank satisfy `until`, and returns the word.
    /// Acquire. Many threads of a rank may wait at once. Protocols wait for other ranks here: the
    /// call spins a little, then lets the host MPI make progress, then sleeps; it fails when a
    /// process that it may wait for has ended. A transport whose writers cannot wake a sleeping
    /// rank polls, with sleeps of limited length.
    fn wait_own(&self, word: WordId, until: impl Fn(u64) -> bool) -> Result<u64>;
    /// Orders operations: those that this rank sends to `rank` next take effect there after all
    /// that it sent before.
    fn order(&self, rank: Rank) -> Result<()>;
    /// Whether a call of `order(before)` also orders what this rank sends to `next` afterwards
    /// after what it sent to `before`: both take one way, or nothing is under way to `before`. To
    /// be asked after that call.
    fn is_ordered(&self, before: Rank, next: Rank) -> bool {
        before == next
    }
    /// Waits until everything sent to `rank` is done there.
    fn flush(&self, rank: Rank) -> Result<()>;
    /// Waits until everything sent to any rank is done there.
    fn flush_all(&self) -> Result<()>;
    /// Waits until everything sent to any other rank than `rank` is done there, if it is not
    /// ordered by `order(rank)`.
    fn flush_others(&self, rank: Rank) -> Result<()>;
}
