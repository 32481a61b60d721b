//! The one error type of the crate. A variant is a mistake of the user or a refusal of the system;
//! its message ([`messages`]) has the MPI error class and the text. The function that finds the
//! cause makes the `Error`, its callers pass it on by `?`, and only `abi` turns it into an error
//! code (MPI-4.1 §12.6.1, §9.4).

pub use crate::error_class::Class;

use crate::messages::{self, Message};
use crate::rank_numbers::Rank;

/// Keeps a text until the process ends, for an error that is made once per process or connection.
/// An `Error` owns nothing, so that the path without an error has nothing to drop.
pub fn kept(text: impl Into<String>) -> &'static str {
    Box::leak(text.into().into_boxed_str())
}

/// The result of everything that can fail inside the crate.
pub type Result<T> = core::result::Result<T, Error>;

/// A property that must be equal on all ranks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fact {
    /// this library
    Library,
    /// the build of it
    Build,
    /// the value of an environment variable, 0 where it is not set
    Setting(&'static str),
}

/// The cause of a failed call.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Error {
    /// A target rank outside of the window's group.
    TargetRank {
        /// the rank that the user gave
        rank: i64,
        /// number of processes of the window
        size: u32,
    },
    /// A transfer that would leave the target's part of the window.
    OutsideWindow {
        /// the target's rank
        rank: Rank,
        /// first byte, relative to the window's base at the target
        first: i128,
        /// one past the last byte, relative to the window's base at the target
        end: i128,
        /// bytes that the target exposes
        bytes: u64,
    },
    /// A transfer that would leave the memory of a handle.
    OutsideHandle {
        /// the rank that has exposed it
        rank: Rank,
        /// first byte, relative to the base of the handle
        first: i128,
        /// one past the last byte, relative to the base of the handle
        end: i128,
        /// bytes of the handle
        bytes: u64,
    },
    /// An access that conflicts with an earlier one of the epoch (MPI-4.1 §12.3).
    Conflict {
        /// the access, in words
        access: &'static str,
        /// the earlier one
        other: &'static str,
        /// the target's rank
        rank: Rank,
        /// the first byte that both use
        first: u64,
        /// one past the last such byte
        end: u64,
    },
    /// A region to attach that overlaps an attached one (MPI-4.1 §12.2.4).
    Overlap {
        /// address of its first byte
        base: u64,
        /// its length
        bytes: u64,
        /// address of the region that it overlaps
        attached_base: u64,
        /// length of that region
        attached_bytes: u64,
    },
    /// A region to detach that is not attached.
    NotAttached {
        /// the address that the user gave
        base: u64,
    },
    /// A transfer to memory that is not attached at the target.
    NotInRegion {
        /// the target's rank
        rank: Rank,
        /// address of the first byte of the transfer
        first: u64,
        /// bytes of the transfer
        bytes: u64,
        /// address of the first of them that is not attached
        address: u64,
    },
    /// An argument that is wrong in any context: a message whose placeholder is `value`, and the
    /// value.
    Argument(&'static Message, i64),
    /// An error that its message states in full. For a call that is not legal in the epoch that the
    /// process is in (MPI-4.1 §12.5); for an argument whose value means nothing to people, such as
    /// a handle; for a resource that a process of the window has run out of; and for what the
    /// standard offers and this library does not.
    Wrong(&'static Message),
    /// More data than 64 bits count.
    DataTooLarge {
        /// number of items
        count: u64,
        /// bytes of data of each item
        item_bytes: u64,
    },
    /// Items that lie further apart than 64 bits count.
    SpanTooLarge {
        /// number of items
        count: u64,
    },
    /// A counter of notifications that a rank does not have.
    NoCounter {
        /// the rank
        rank: Rank,
        /// the index that the user gave
        index: i64,
        /// the number of its counters
        counters: u32,
    },
    /// An address inside an allocation, where its beginning is needed.
    InsideAllocation {
        /// the address that the user gave
        address: u64,
    },
    /// Data that do not fit into the buffer that receives them.
    Truncated {
        /// bytes that are sent
        bytes: u64,
        /// room for data in bytes
        room: u64,
    },
    /// A window that only the host MPI could make, with FOMPI_FALLBACK=error: the reason.
    NotDelegated(&'static str),
    /// A system call that failed.
    System {
        /// its name
        call: &'static str,
        /// `errno`
        errno: i32,
    },
    /// A call of the run-time library of a GPU that failed.
    Runtime {
        /// its name
        call: &'static str,
        /// the library's code of the error
        code: i32,
    },
    /// Not enough memory for a window.
    NoMemory {
        /// bytes requested on this node
        bytes: u64,
    },
    /// More memory than this process can ever have, however much is free.
    TooMuch {
        /// bytes requested by this rank
        own: u64,
        /// bytes requested by the ranks of this node together
        all: u64,
        /// the upper limit
        limit: u64,
        /// the owner of the limit: the node, or a control group
        of: &'static str,
    },
    /// A process for which other ranks wait has died.
    Died {
        /// its rank in the window
        rank: Rank,
        /// its process id
        pid: i32,
    },
    /// Memory of a target that does not exist, or may not be read or written by the call.
    Fault {
        /// the target's rank in the window
        rank: Rank,
        /// the first byte that could not be copied, an address of the target
        address: u64,
    },
    /// Memory of the origin's buffer that does not exist, or may not be read or written by the
    /// call.
    OriginFault {
        /// the first byte that could not be copied
        address: u64,
    },
    /// A process whose memory the system does not allow us to copy.
    Forbidden {
        /// the system call that was refused
        call: &'static str,
        /// its rank in the window
        rank: Rank,
        /// its process id
        pid: i32,
    },
    /// Another rank's refusal of a step that all ranks have to take together.
    Refused {
        /// that rank
        rank: Rank,
        /// the class of its error
        class: Class,
    },
    /// A property that must be equal on all ranks differs between two ranks.
    Differs {
        /// the property
        fact: Fact,
        /// another rank
        rank: Rank,
        /// its value on that rank
        there: u32,
        /// its value on this rank
        here: u32,
    },
    /// A requirement of the transport over an RDMA device that is not met.
    NoVerbs(&'static str),
    /// This process cannot listen for others, and why.
    NoListener(&'static str),
    /// Memory that the RDMA device could not register.
    Registration {
        /// its length
        bytes: u64,
        /// `errno`
        errno: i32,
        /// RLIMIT_MEMLOCK of this process, u64::MAX for none
        limit: u64,
    },
    /// A process that cannot be reached over the RDMA device, or not any more.
    Lost {
        /// its rank in the window, where that is known
        rank: Option<Rank>,
        /// the name of its node
        node: &'static str,
        /// its process id there
        pid: i32,
        /// the reason
        cause: &'static str,
    },
    /// A process on another node that may not read or write memory that it exposes.
    NoAccess {
        /// its rank in the window, where that is known
        rank: Option<Rank>,
        /// the name of its node
        node: &'static str,
        /// its process id there
        pid: i32,
    },
    /// A process that has not answered the first contact in time; the next use tries again.
    Unanswered {
        /// its rank in the window, where that is known
        rank: Option<Rank>,
        /// the name of its node
        node: &'static str,
        /// its process id there
        pid: i32,
        /// the reason
        cause: &'static str,
    },
    /// An error code that the host MPI returned; it is passed on as it is.
    Host(i32),
}

/// A process of the window, this one or another, has no file descriptor left.
pub const NO_DESCRIPTOR: Error = Error::Wrong(&messages::NO_DESCRIPTOR);

impl Error {
    /// Whether a process or the node has run out of file descriptors.
    pub fn is_short_of_descriptors(&self) -> bool {
        matches!(self, Error::System { errno: libc::EMFILE | libc::ENFILE, .. })
            || *self == NO_DESCRIPTOR
    }
}
