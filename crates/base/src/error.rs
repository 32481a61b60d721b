//! The one error type of the crate. A variant is a mistake of the user or a refusal of the system;
//! it has an MPI error class, and its text names the value and the limit. The function that finds
//! the cause makes the `Error`, its callers pass it on by `?`, and only `abi` turns it into an
//! error code (MPI-4.1 §12.6.1, §9.4).

use crate::rank_numbers::Rank;

/// Keeps a text until the process ends, for an error that is made once per process or connection.
/// An `Error` owns nothing, so that the path without an error has nothing to drop.
pub fn kept(text: impl Into<String>) -> &'static str {
    Box::leak(text.into().into_boxed_str())
}

/// The result of everything that can fail inside the crate.
pub type Result<T> = core::result::Result<T, Error>;

macro_rules! classes {
    ($($name:ident $doc:literal,)*) => {
        /// MPI error classes that this library raises (MPI-4.1 §9.4); `mpi` knows their number in
        /// each ABI.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        #[repr(u8)]
        pub enum Class {
            $(#[doc = $doc] $name,)*
        }

        impl Class {
            /// All of them, in the order of their numbers here.
            pub const ALL: &[Class] = &[$(Class::$name),*];

            /// Its name in the standard.
            pub fn name(self) -> &'static str {
                match self {
                    $(Class::$name => $doc,)*
                }
            }

            /// Returns the class with a number of ours, which another rank has sent.
            pub fn from_number(number: u8) -> Class {
                Class::ALL.get(number as usize).copied().unwrap_or(Class::Other)
            }
        }
    };
}

classes! {
    Buffer "MPI_ERR_BUFFER",
    Count "MPI_ERR_COUNT",
    Type "MPI_ERR_TYPE",
    Comm "MPI_ERR_COMM",
    Rank "MPI_ERR_RANK",
    Request "MPI_ERR_REQUEST",
    Group "MPI_ERR_GROUP",
    Op "MPI_ERR_OP",
    Arg "MPI_ERR_ARG",
    Truncate "MPI_ERR_TRUNCATE",
    Other "MPI_ERR_OTHER",
    Intern "MPI_ERR_INTERN",
    Keyval "MPI_ERR_KEYVAL",
    NoMem "MPI_ERR_NO_MEM",
    Info "MPI_ERR_INFO",
    Size "MPI_ERR_SIZE",
    Disp "MPI_ERR_DISP",
    LockType "MPI_ERR_LOCKTYPE",
    Assert "MPI_ERR_ASSERT",
    Win "MPI_ERR_WIN",
    RmaConflict "MPI_ERR_RMA_CONFLICT",
    RmaSync "MPI_ERR_RMA_SYNC",
    RmaRange "MPI_ERR_RMA_RANGE",
    RmaAttach "MPI_ERR_RMA_ATTACH",
    RmaShared "MPI_ERR_RMA_SHARED",
    RmaFlavor "MPI_ERR_RMA_FLAVOR",
    Unsupported "MPI_ERR_UNSUPPORTED_OPERATION",
    Base "MPI_ERR_BASE",
}

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
    /// A call that is not legal in the epoch that the process is in (MPI-4.1 §12.5).
    Epoch(&'static str),
    /// An argument that is wrong in any context: its class, its name, and its value.
    Argument(Class, &'static str, i64),
    /// An error that a text states in full: its class, and the text. For an argument whose value
    /// means nothing to people, such as a handle; and for a resource that a process of the window
    /// has run out of.
    Wrong(Class, &'static str),
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
    /// Something that the standard offers and this library does not, yet.
    Unsupported(&'static str),
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
    /// Memory that the RDMA device was not allowed to keep in place.
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

impl Error {
    /// The MPI error class of this error. For `Host` the code itself counts, not this class.
    pub fn class(&self) -> Class {
        match self {
            Error::TargetRank { .. } => Class::Rank,
            Error::OutsideWindow { .. } | Error::NotInRegion { .. } => Class::RmaRange,
            Error::Overlap { .. } | Error::NotAttached { .. } => Class::RmaAttach,
            Error::Epoch(_) => Class::RmaSync,
            Error::Argument(class, ..) | Error::Refused { class, .. } => *class,
            Error::Wrong(class, _) => *class,
            Error::DataTooLarge { .. } | Error::SpanTooLarge { .. } => Class::Count,
            Error::InsideAllocation { .. } => Class::Base,
            Error::Truncated { .. } => Class::Truncate,
            Error::Unsupported(_) | Error::NotDelegated(_) => Class::Unsupported,
            Error::System { .. } | Error::Died { .. } | Error::Host(_) => Class::Other,
            Error::Runtime { .. } => Class::Other,
            Error::NoVerbs(_) | Error::NoListener(_) | Error::Lost { .. } => Class::Other,
            Error::Unanswered { .. } | Error::Differs { .. } => Class::Other,
            Error::NoMemory { .. } | Error::TooMuch { .. } => Class::NoMem,
            Error::Registration { .. } => Class::NoMem,
            Error::Fault { .. } | Error::NoAccess { .. } => Class::RmaRange,
            Error::OriginFault { .. } => Class::Buffer,
            Error::Forbidden { .. } => Class::RmaShared,
        }
    }
}

/// A process of the window, this one or another, has no file descriptor left.
pub const NO_DESCRIPTOR: Error =
    Error::Wrong(Class::Other, "one of its processes has no file descriptor left (ulimit -n)");

impl Error {
    /// Whether a process or the node has run out of file descriptors.
    pub fn is_short_of_descriptors(&self) -> bool {
        matches!(self, Error::System { errno: libc::EMFILE | libc::ENFILE, .. })
            || *self == NO_DESCRIPTOR
    }
}
