//! Texts of the errors: what is wrong, the value, the limit, and the remedy where there is one. Not
//! for their classes, which are in [`crate::error`].

use crate::error::{Error, Fact};
use crate::number::Number;
use crate::rank_numbers::Rank;
use core::fmt;

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Error::TargetRank { rank, size } => {
                write!(f, "target rank {rank} is invalid: the window has {size} ranks")
            }
            Error::OutsideWindow { rank, first, end, bytes } => {
                write!(f, "bytes {first} to {end} are outside of the window: ")?;
                write!(f, "rank {rank} exposes {bytes} bytes")
            }
            Error::Overlap { base, bytes, attached_base, attached_bytes } => {
                write!(f, "{bytes} bytes at {base:#x} overlap the region of ")?;
                write!(f, "{attached_bytes} bytes at {attached_base:#x}, which is attached")
            }
            Error::NotAttached { base } => write!(f, "no region at {base:#x} is attached"),
            Error::NotInRegion { rank, first, bytes, address } => {
                write!(f, "address {address:#x} of rank {rank} is not attached: ")?;
                write!(f, "the access has {bytes} bytes at {first:#x}")
            }
            Error::Argument(_, what, value) => write!(f, "{what} {value}"),
            Error::DataTooLarge { count, item_bytes } => data_too_large(f, *count, *item_bytes),
            Error::SpanTooLarge { count } => {
                write!(f, "{count} items of this datatype span more than 2^63 - 1 bytes")
            }
            Error::InsideAllocation { address } => {
                write!(f, "address {address:#x} is inside an allocation, not at its beginning")
            }
            Error::Truncated { bytes, room } => {
                write!(f, "data of {bytes} bytes do not fit into a buffer of {room} bytes")
            }
            Error::Unsupported(what) => write!(f, "not supported: {what}"),
            Error::NotDelegated(why) => not_delegated(f, why),
            Error::Epoch(what) | Error::Wrong(_, what) => write!(f, "{what}"),
            Error::System { call, errno } => system(f, call, *errno),
            Error::Runtime { call, code } => write!(f, "{call} failed with error {code}"),
            Error::NoMemory { bytes } => write!(f, "no memory for {bytes} bytes on this node"),
            Error::TooMuch { own, all, limit, of } => too_much(f, *own, *all, *limit, of),
            Error::Died { rank, pid } => write!(f, "rank {rank} (process {pid}) died"),
            Error::Fault { rank, address } => fault(f, *address, format_args!("rank {rank}")),
            Error::OriginFault { address } => fault(f, *address, format_args!("the origin")),
            Error::Forbidden { call, rank, pid } => forbidden(f, call, *rank, *pid),
            Error::Refused { rank, class } => write!(f, "{} on rank {rank}", class.name()),
            Error::Differs { fact, rank, there, here } => differs(f, *fact, *rank, *there, *here),
            Error::NoListener(what) => write!(f, "cannot listen for other processes: {what}"),
            Error::NoVerbs(what) => write!(f, "no usable RDMA device: {what}"),
            Error::Registration { bytes, errno, limit } => registration(f, *bytes, *errno, *limit),
            Error::Lost { rank, node, pid, cause } => {
                process_of(f, *rank, node, *pid, format_args!("cannot be reached: {cause}"))
            }
            Error::NoAccess { rank, node, pid } => {
                let what = format_args!("has an inaccessible page in the accessed range");
                process_of(f, *rank, node, *pid, what)
            }
            Error::Unanswered { rank, node, pid, cause } => {
                let what = "did not respond (the next operation retries)";
                process_of(f, *rank, node, *pid, format_args!("{what}: {cause}"))
            }
            Error::Host(code) => write!(f, "error code {code} of the host MPI"),
        }
    }
}

/// Writes why libfompi does not make a window, and the setting that forbids another one.
fn not_delegated(f: &mut fmt::Formatter<'_>, why: &str) -> fmt::Result {
    write!(f, "libfompi cannot serve the window: {why}; FOMPI_FALLBACK=error forbids the host MPI")
}

/// Writes the data of a call that are more than the standard's types count.
fn data_too_large(f: &mut fmt::Formatter<'_>, count: u64, item_bytes: u64) -> fmt::Result {
    write!(f, "the data are too large: {count} items of {item_bytes} bytes exceed 2^63 - 1 bytes")
}

/// Writes an address of a process that the call cannot use.
fn fault(f: &mut fmt::Formatter<'_>, address: u64, process: fmt::Arguments<'_>) -> fmt::Result {
    write!(f, "address {address:#x} of {process} cannot be read or written")
}

/// Writes whose memory the system does not let this process copy, and the remedies.
fn forbidden(f: &mut fmt::Formatter<'_>, call: &str, rank: Rank, pid: i32) -> fmt::Result {
    write!(f, "{call}: permission denied for rank {rank} (process {pid}): allow ptrace between ")?;
    write!(f, "ranks (kernel.yama.ptrace_scope=0, or SYS_PTRACE in containers), ")?;
    write!(f, "or use MPI_Win_allocate")
}

/// Writes the amount of memory that was requested, and the limit.
fn too_much(
    f: &mut fmt::Formatter<'_>,
    own: u64,
    all: u64,
    limit: u64,
    of: &'static str,
) -> fmt::Result {
    write!(f, "{} requested on this rank, ", Amount(own))?;
    if all != own {
        write!(f, "{} by the ranks of this node together, ", Amount(all))?;
    }
    write!(f, "and {of} has {}", Amount(limit))
}

/// Bytes as people write them: rounded, in the largest unit that is not larger than the number.
struct Amount(u64);

/// Writes which system call failed, and the reason.
fn system(f: &mut fmt::Formatter<'_>, call: &str, errno: i32) -> fmt::Result {
    match errno {
        libc::EMFILE => write!(f, "{call}: this process has no file descriptor left (ulimit -n)"),
        libc::ENFILE => write!(f, "{call}: this node has no file descriptor left (fs.file-max)"),
        _ => write!(f, "{call} failed: {}", std::io::Error::from_raw_os_error(errno)),
    }
}

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

/// Writes in which property ranks differ, and the remedy.
fn differs(
    f: &mut fmt::Formatter<'_>,
    fact: Fact,
    rank: Rank,
    there: u32,
    here: u32,
) -> fmt::Result {
    let value = |number: u32| match number {
        0 => String::from("not set"),
        number => number.to_string(),
    };
    match fact {
        Fact::Library => {
            write!(
                f,
                "some ranks are without this libfompi.so: start all ranks with it, as fompirun does"
            )
        }
        Fact::Build => {
            write!(f, "libfompi.so is build {there:08x} on rank {rank}, {here:08x} here: ")?;
            write!(f, "start all ranks with the same file")
        }
        Fact::Setting(name) => {
            write!(f, "{name} is {} on rank {rank}, {} here: ", value(there), value(here))?;
            write!(f, "start all ranks with the same value")
        }
    }
}

/// Writes a process of another node, by its rank if that is known.
fn process_of(
    f: &mut fmt::Formatter<'_>,
    rank: Option<Rank>,
    node: &str,
    pid: i32,
    what: fmt::Arguments<'_>,
) -> fmt::Result {
    match rank {
        Some(rank) => write!(f, "rank {rank} (process {pid} on node {node}) {what}"),
        None => write!(f, "process {pid} on node {node} {what}"),
    }
}

/// Writes why memory cannot be kept in place, with the limit and the remedy.
fn registration(f: &mut fmt::Formatter<'_>, bytes: u64, errno: i32, limit: u64) -> fmt::Result {
    write!(
        f,
        "the RDMA device may not use {bytes} bytes of memory (errno {errno}): locked memory "
    )?;
    match limit {
        u64::MAX => write!(f, "is not limited, so the device or the node has run out of memory"),
        limit => write!(f, "is limited to {limit} bytes (RLIMIT_MEMLOCK); raise it by `ulimit -l`"),
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
        ];
        for (error, text) in texts {
            assert_eq!(error.to_string(), text);
        }
    }
}
