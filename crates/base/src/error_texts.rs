//! Messages of the errors, with their values. The texts are in [`crate::messages`].

use crate::error::{Class, Error, Fact};
use crate::messages::{self, Filled, Message, filled};
use crate::number::Number;
use crate::rank_numbers::Rank;
use core::fmt;

/// What to do with a message and its values.
type Work<'a, T> = &'a mut dyn FnMut(Filled<'_>) -> T;

impl Error {
    /// Returns the message of this error.
    pub fn message(&self) -> &'static Message {
        self.with(&mut |filled| filled.message)
    }

    /// The MPI error class of this error. For `Host` the code itself counts, not this class.
    pub fn class(&self) -> Class {
        match self {
            Error::Refused { class, .. } => *class,
            error => error.message().class.unwrap_or(Class::Other),
        }
    }

    /// Does something with the message of this error and its values.
    fn with<T>(&self, work: Work<'_, T>) -> T {
        match self {
            Error::TargetRank { rank, size } => work(filled!(messages::TARGET_RANK; rank, size)),
            Error::NoCounter { rank, index, counters } => {
                work(filled!(messages::NO_COUNTER; rank, index, counters))
            }
            Error::OutsideWindow { rank, first, end, bytes } => {
                work(filled!(messages::OUTSIDE_WINDOW; rank, first, end, bytes))
            }
            Error::OutsideHandle { rank, first, end, bytes } => {
                work(filled!(messages::MEM_RANGE; rank, first, end, bytes))
            }
            Error::Overlap { base, bytes, attached_base, attached_bytes } => {
                let (base, attached_base) = (Hex(*base), Hex(*attached_base));
                work(filled!(messages::REGION_OVERLAP; base, bytes, attached_base, attached_bytes))
            }
            Error::NotAttached { base } => {
                work(filled!(messages::REGION_NOT_ATTACHED; base = Hex(*base)))
            }
            Error::NotInRegion { rank, first, bytes, address } => {
                let (first, address) = (Hex(*first), Hex(*address));
                work(filled!(messages::NOT_IN_REGION; rank, first, bytes, address))
            }
            Error::Argument(message, value) => {
                work(Filled { message, values: &[("value", value as &dyn fmt::Display)] })
            }
            Error::Wrong(message) => work(Filled { message, values: &[] }),
            Error::DataTooLarge { count, item_bytes } => {
                work(filled!(messages::DATA_TOO_LARGE; count, item_bytes))
            }
            Error::SpanTooLarge { count } => work(filled!(messages::SPAN_TOO_LARGE; count)),
            Error::InsideAllocation { address } => {
                work(filled!(messages::INSIDE_ALLOCATION; address = Hex(*address)))
            }
            Error::Truncated { bytes, room } => work(filled!(messages::TRUNCATED; bytes, room)),
            Error::Fault { rank, address } => {
                work(filled!(messages::FAULT; rank, address = Hex(*address)))
            }
            Error::OriginFault { address } => {
                work(filled!(messages::ORIGIN_FAULT; address = Hex(*address)))
            }
            Error::Host(code) => work(filled!(messages::HOST_ERROR; code)),
            error => error.with_refusal(work),
        }
    }

    /// Does so for a refusal of the system or of another rank.
    fn with_refusal<T>(&self, work: Work<'_, T>) -> T {
        match self {
            Error::NotDelegated(reason) => work(filled!(messages::NOT_DELEGATED; reason)),
            Error::System { call, errno } => system(work, call, *errno),
            Error::Runtime { call, code } => work(filled!(messages::RUNTIME; call, code)),
            Error::NoMemory { bytes } => work(filled!(messages::NO_MEMORY; bytes)),
            Error::TooMuch { own, all, limit, of } if own == all => {
                work(filled!(messages::TOO_MUCH; own = Amount(*own), of, limit = Amount(*limit)))
            }
            Error::TooMuch { own, all, limit, of } => {
                let (own, all, limit) = (Amount(*own), Amount(*all), Amount(*limit));
                work(filled!(messages::TOO_MUCH_TOGETHER; own, all, limit, of))
            }
            Error::Died { rank, pid } => work(filled!(messages::DIED; rank, pid)),
            Error::Forbidden { call, rank, pid } => {
                work(filled!(messages::FORBIDDEN; call, rank, pid))
            }
            Error::Refused { rank, class } => {
                work(filled!(messages::REFUSED; rank, class = class.name()))
            }
            Error::Differs { fact, rank, there, here } => {
                differs(work, *fact, *rank, (*there, *here))
            }
            Error::Conflict { access, other, rank, first, end } => {
                work(filled!(messages::CONFLICT; access, other, rank, first, end))
            }
            Error::NoListener(reason) => work(filled!(messages::NO_LISTENER; reason)),
            Error::NoVerbs(reason) => work(filled!(messages::NO_VERBS; reason)),
            Error::Registration { bytes, errno, limit: u64::MAX } => {
                work(filled!(messages::REGISTRATION_FULL; bytes, errno))
            }
            Error::Registration { bytes, errno, limit } => {
                work(filled!(messages::REGISTRATION_LIMIT; bytes, errno, limit))
            }
            Error::Lost { rank, node, pid, cause } => {
                work(filled!(messages::LOST; process = Process(*rank, node, *pid), cause))
            }
            Error::NoAccess { rank, node, pid } => {
                work(filled!(messages::NO_ACCESS; process = Process(*rank, node, *pid)))
            }
            Error::Unanswered { rank, node, pid, cause } => {
                work(filled!(messages::UNANSWERED; process = Process(*rank, node, *pid), cause))
            }
            error => unreachable!("{error:?} is a mistake of the user"),
        }
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.with(&mut |filled| fmt::Display::fmt(&filled, f))
    }
}

/// The message of a system call that failed.
fn system<T>(work: Work<'_, T>, call: &str, errno: i32) -> T {
    match errno {
        libc::EMFILE => work(filled!(messages::PROCESS_DESCRIPTORS; call)),
        libc::ENFILE => work(filled!(messages::NODE_DESCRIPTORS; call)),
        _ => {
            let reason = std::io::Error::from_raw_os_error(errno);
            work(filled!(messages::SYSTEM; call, reason))
        }
    }
}

/// The message of a property in which ranks differ.
fn differs<T>(work: Work<'_, T>, fact: Fact, rank: Rank, (there, here): (u32, u32)) -> T {
    let value = |number: u32| match number {
        0 => String::from("not set"),
        number => number.to_string(),
    };
    match fact {
        Fact::Library => work(filled!(messages::NO_LIBRARY)),
        Fact::Build => {
            let (there, here) = (format!("{there:08x}"), format!("{here:08x}"));
            work(filled!(messages::BUILD_DIFFERS; there, rank, here))
        }
        Fact::Setting(name) => {
            let (there, here) = (value(there), value(here));
            work(filled!(messages::SETTING_DIFFERS; name, there, rank, here))
        }
    }
}

/// An address.
struct Hex(u64);

impl fmt::Display for Hex {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:#x}", self.0)
    }
}

/// Bytes as people write them: rounded, in the largest unit that is not larger than the number.
struct Amount(u64);

impl fmt::Display for Amount {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        const UNITS: [&str; 7] = ["bytes", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB"];
        let step = self.0.max(1).ilog2() / 10;
        let whole = self.0 >> (10 * step);
        let tenths = ((u128::from(self.0) * 10) >> (10 * step)) % 10;
        let unit = UNITS[step.to_usize()];
        if tenths == 0 { write!(f, "{whole} {unit}") } else { write!(f, "{whole}.{tenths} {unit}") }
    }
}

/// A process of another node, by its rank if that is known, its node and its process id.
struct Process<'a>(Option<Rank>, &'a str, i32);

impl fmt::Display for Process<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Process(rank, node, pid) = self;
        match rank {
            Some(rank) => write!(f, "rank {rank} (process {pid} on node {node})"),
            None => write!(f, "process {pid} on node {node}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn too_much_memory_says_what_was_asked_and_what_there_is() {
        let error =
            |all| Error::TooMuch { own: 1 << 40, all, limit: 25_000_000_000, of: "the node" };
        let text = "1 TiB requested on this rank, 4 TiB by the ranks of this node together, \
                    and the node has 23.2 GiB";
        assert_eq!(error(4 << 40).to_string(), text);
        let text = "1 TiB requested on this rank, and the node has 23.2 GiB";
        assert_eq!(error(1 << 40).to_string(), text);
        assert_eq!(Amount(u64::MAX).to_string(), "15.9 EiB");
        assert_eq!([0, 1023].map(|bytes| Amount(bytes).to_string()), ["0 bytes", "1023 bytes"]);
    }

    #[test]
    fn a_text_has_the_value_and_the_limit_or_the_remedy() {
        let texts = [
            (
                Error::DataTooLarge { count: 9, item_bytes: 1 << 60 },
                "the data are too large: 9 items of 1152921504606846976 bytes exceed 2^63 - 1 \
                 bytes",
            ),
            (
                Error::SpanTooLarge { count: 5 },
                "5 items of this datatype span more than 2^63 - 1 bytes",
            ),
            (
                Error::InsideAllocation { address: 0x7f8b_0c00_1040 },
                "address 0x7f8b0c001040 is inside an allocation, not at its beginning",
            ),
            (
                Error::Forbidden { call: "process_vm_readv", rank: Rank(3), pid: 4711 },
                "process_vm_readv: permission denied for rank 3 (process 4711): allow ptrace \
                 between ranks (kernel.yama.ptrace_scope=0, or SYS_PTRACE in containers), or use \
                 MPI_Win_allocate",
            ),
            (
                Error::NotDelegated("no transport"),
                "libfompi cannot serve the window: no transport; FOMPI_FALLBACK=error forbids the \
                 host MPI",
            ),
            (
                Error::System { call: "socket", errno: libc::EMFILE },
                "socket: this process has no file descriptor left (ulimit -n)",
            ),
            (
                Error::System { call: "socket", errno: libc::ENFILE },
                "socket: this node has no file descriptor left (fs.file-max)",
            ),
            (
                Error::System { call: "bind", errno: libc::EINVAL },
                "bind failed: Invalid argument (os error 22)",
            ),
            (
                Error::Registration { bytes: 9, errno: 12, limit: 8 },
                "the RDMA device cannot register 9 bytes of memory (errno 12): locked memory is \
                 limited to 8 bytes (RLIMIT_MEMLOCK); raise it by `ulimit -l`",
            ),
            (
                Error::Registration { bytes: 9, errno: 12, limit: u64::MAX },
                "the RDMA device cannot register 9 bytes of memory (errno 12): locked memory is \
                 not limited, so the device or the node has run out of memory",
            ),
        ];
        for (error, text) in texts {
            assert_eq!(error.to_string(), text);
        }
    }

    #[test]
    fn ranks_that_differ_are_told_both_values() {
        let text =
            |fact, there| Error::Differs { fact, rank: Rank(3), there, here: 0x1234 }.to_string();
        let build = "libfompi.so is build 00000007 on rank 3, 00001234 here: start all ranks with \
                     the same file";
        assert_eq!(text(Fact::Build, 7), build);
        let setting = "FOMPI_DISABLE is not set on rank 3, 4660 here: start all ranks with the \
                       same value";
        assert_eq!(text(Fact::Setting("FOMPI_DISABLE"), 0), setting);
        let library = "some ranks are without this libfompi.so: start all ranks with it, as \
                       fompirun does";
        assert_eq!(text(Fact::Library, 0), library);
    }

    #[test]
    fn a_process_is_named_by_its_rank_if_that_is_known() {
        let lost = |rank| Error::Lost { rank, node: "n2", pid: 4711, cause: "it has died" };
        let text = "rank 3 (process 4711 on node n2) cannot be reached: it has died";
        assert_eq!(lost(Some(Rank(3))).to_string(), text);
        let text = "process 4711 on node n2 cannot be reached: it has died";
        assert_eq!(lost(None).to_string(), text);
    }

    #[test]
    fn the_class_of_an_error_is_that_of_its_message_or_of_the_other_rank() {
        assert_eq!(Error::Wrong(&messages::NO_EPOCH).class(), Class::RmaSync);
        assert_eq!(Error::Host(1).class(), Class::Other);
        let refused = Error::Refused { rank: Rank(1), class: Class::Disp };
        assert_eq!((refused.class(), refused.message().class), (Class::Disp, None));
        assert_eq!(refused.to_string(), "MPI_ERR_DISP on rank 1");
    }
}
