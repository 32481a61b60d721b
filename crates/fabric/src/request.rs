//! Requests to the device of the transport between nodes, as plain data: the transport fills them
//! in, and a device carries them out. Which requests are sent, and when, is decided elsewhere.

use core::fmt;

use super::Fetch;
pub use super::leaves::Leaves;
use super::reduction::{Protection, Reduction};
use super::remote::Remote;
use crate::error::Error;

/// Largest number of requests in a chain: a device gets them by one call.
pub const CHAIN_MAX: usize = 16;

/// Largest number of pieces of this process's memory in one request. An entry for a piece has 16
/// bytes, so the entries need no more room in a queue than inline data.
pub const SGE_MAX: usize = 8;

/// Bytes of an end of a connection, as the other end needs to know it. Their meaning is the
/// device's.
pub const END_BYTES: usize = 32;

/// Whose memory a process exposes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MemoryOf {
    /// the library's, which stays mapped and writable until its exposure ends
    Library,
    /// the program's, which may unmap or protect it at any time
    Program,
    /// the program's, under a memory handle: an origin may use the key once it has ended, which no
    /// later exposure has
    Handle,
}

/// Memory of this process, as a request names it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Local {
    /// its address
    pub at: u64,
    /// its length in bytes
    pub bytes: u32,
    /// local key (lkey) of its registration
    pub key: u32,
}

/// The operation of one request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Work {
    /// RDMA WRITE
    Write,
    /// RDMA WRITE with inline data: the bytes are copied when the request is posted
    WriteInline,
    /// RDMA WRITE of zero bytes, which accesses no memory
    Ping,
    /// RDMA READ
    Read,
    /// atomic FETCH_ADD
    Add(u64),
    /// atomic CMP_SWAP
    CompareSwap {
        /// what the word must hold
        expect: u64,
        /// what it then gets
        new: u64,
    },
    /// the same for a word of 1, 2 or 4 bytes; the answer is as wide
    CompareSwapNarrow {
        /// bytes of the word
        width: u8,
        /// what the word must hold
        expect: u64,
        /// what it then gets
        new: u64,
    },
    /// takes a lock: the target repeats a compare-and-swap until it has changed the word, and
    /// carries out no later request before that
    TakeLock {
        /// what the word holds while the lock is free
        expect: u64,
        /// what it then gets
        new: u64,
    },
    /// combines elements at the target with the operands in the memory of this process
    Accumulate {
        /// the operation and the type of the elements
        what: Reduction,
        /// their protection
        protection: Protection,
        /// where the old elements go in this process; 0: they are not wanted
        result: u64,
        /// whether the operands are copied when the request is posted
        inline: bool,
    },
    /// a WRITE, READ or accumulate of many blocks at the target: the memory of this process has
    /// their data, if the request carries any, and behind them their [rows](crate::request_rows);
    /// it is copied when the request is posted
    OverRows {
        /// the operation of an accumulate, the type of the elements, and their protection
        what: Option<(Reduction, Protection)>,
        /// where the data of the blocks go in this process; 0: they are not wanted
        result: u64,
        /// bytes of the data of all blocks
        data: u16,
        /// bytes of the rows
        rows: u16,
    },
}

impl From<Fetch> for Work {
    fn from(op: Fetch) -> Work {
        match op {
            Fetch::Add(add) => Work::Add(add),
            Fetch::CompareSwap { expect, new } => Work::CompareSwap { expect, new },
        }
    }
}

/// One request: its operation, its memory at the target, and its memory in this process.
#[derive(Clone, Copy, Debug)]
pub struct Order {
    /// the operation
    pub work: Work,
    /// the memory at the target
    pub to: Remote,
    /// the memory in this process
    pub from: Local,
    /// whether the device reports the completion of this request
    pub signaled: bool,
    /// whether the request waits for the answers of earlier ones
    pub fenced: bool,
    /// when it is sent
    pub leaves: Leaves,
    /// address of the doorbell that an addition rings, in the same memory, or 0; devices that
    /// cannot wake a thread ignore it
    pub doorbell: u64,
    /// whether it is carried out only if the compare-and-swap before it was carried out and has
    /// changed its word
    pub guarded: bool,
    /// whether the target waits for the effect of the request, so that no flush has to
    pub awaited: bool,
    /// number of the request in its queue, from 1
    pub number: u64,
}

impl Order {
    /// Makes a request for a queue, which numbers it.
    pub fn new(work: Work, to: Remote, from: Local, signaled: bool) -> Order {
        let (fenced, guarded, awaited) = (false, false, false);
        let (leaves, doorbell, number) = (Leaves::AtOnce, 0, 0);
        Order { work, to, from, signaled, fenced, leaves, doorbell, guarded, awaited, number }
    }

    /// Makes a ping.
    pub fn ping() -> Order {
        Order::new(Work::Ping, Remote::default(), Local::default(), true)
    }
}

/// Why a connection cannot be used any more.
#[derive(Debug)]
pub enum Broken {
    /// a request has failed, for this reason
    Request(String),
    /// a call of the device's library has failed
    Call(Error),
    /// the device has failed
    Device,
    /// the device has reported no completion for too long
    Silent,
}

impl fmt::Display for Broken {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Broken::Request(reason) => f.write_str(reason),
            Broken::Call(error) => error.fmt(f),
            Broken::Device => f.write_str("the device of this process has failed"),
            Broken::Silent => {
                f.write_str("the device of this process reports no completions any more")
            }
        }
    }
}
