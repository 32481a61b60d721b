//! Memory that the node can provide: to all processes, by the kernel's count, and to this process,
//! by the limits of its control groups.

pub use super::cgroup::Limit;
use super::{cgroup, proc_text};
use crate::error::Error;
use parking_lot::Mutex;
use std::path::Path;
use std::sync::OnceLock;

/// The share of its memory that the node keeps at least.
const SPARE: u64 = 32;

/// Returns memory and swap of the node, in bytes; u64::MAX if the system does not say.
fn node_bytes() -> u64 {
    // SAFETY: plain numbers, for which zero is valid.
    let mut info: libc::sysinfo = unsafe { core::mem::zeroed() };
    // SAFETY: a place for the answer.
    if unsafe { libc::sysinfo(&mut info) } != 0 {
        return u64::MAX;
    }
    (info.totalram + info.totalswap).saturating_mul(u64::from(info.mem_unit))
}

/// Upper limits in bytes: this process cannot have more than any of them, however much is free.
pub struct Limits {
    /// of the node
    pub node: u64,
    /// of the control groups of this process
    pub groups: Vec<Limit>,
}

impl Limits {
    /// Returns them as they are now. Reads some files.
    pub fn now() -> Limits {
        Limits { node: node_bytes(), groups: cgroup::limits(Path::new("/")) }
    }

    /// Returns the smallest.
    pub fn least(&self) -> u64 {
        self.groups.iter().map(|limit| limit.bytes).fold(self.node, u64::min)
    }
}

/// The owner of the memory and swap of the node, in messages.
pub const NODE: &str = "the node (memory and swap)";
/// The owner of the memory of a control group's limit, in messages.
pub const GROUP: &str = "the control group of this process (memory.max)";

/// Returns the bytes that this process can have at most, as read at the first call, or later when a
/// request was refused: reading takes some fifty system calls.
pub fn least() -> u64 {
    *KNOWN.lock().get_or_insert_with(|| Limits::now().least())
}

/// Whether this process can ever have `bytes` bytes. Reads the limits again before it answers no.
pub fn fits(bytes: u64) -> bool {
    bytes <= least() || {
        let now = Limits::now().least();
        *KNOWN.lock() = Some(now);
        bytes <= now
    }
}

/// Returns the error that this process can never have `bytes` bytes, with the limit.
#[cold]
pub fn too_much(bytes: u64) -> Error {
    let now = Limits::now();
    let limit = now.least();
    let of = if limit == now.node { NODE } else { GROUP };
    Error::TooMuch { own: bytes, all: bytes, limit, of }
}

/// The result of `least`.
static KNOWN: Mutex<Option<u64>> = Mutex::new(None);

/// Whether the node can give `bytes` bytes to this process now without swapping, and keep a share
/// for others. True if the system does not say. Costs some ten microseconds.
pub fn is_available(bytes: u64) -> bool {
    let text = std::fs::read_to_string("/proc/meminfo").unwrap_or_default();
    let field = |name: &str| {
        let kib = proc_text::behind(&text, name)?.split_whitespace().next()?;
        Some(kib.parse::<u64>().ok()? * 1024)
    };
    let node = field("MemTotal:").zip(field("MemAvailable:"));
    let groups = cgroup::limits(Path::new("/"));
    let groups = groups.iter().map(|limit| (limit.bytes, limit.available()));
    let is_in = |(all, left): (u64, u64)| bytes.saturating_add(all / SPARE) <= left;
    node.into_iter().chain(groups).all(is_in)
}

/// Whether the kernel may refuse untouched memory by a signal when it is touched: if it gives out
/// no more than it has (vm.overcommit_memory=2), it counts the pages of a segment one by one. Read
/// once.
pub fn are_strict() -> bool {
    static STRICT: OnceLock<bool> = OnceLock::new();
    *STRICT.get_or_init(|| {
        let policy = std::fs::read_to_string("/proc/sys/vm/overcommit_memory");
        policy.is_ok_and(|policy| policy.trim() == "2")
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn more_than_the_node_has_never_fits() {
        assert!(fits(1 << 20));
        assert!(!fits(1 << 50));
        assert!(fits(1 << 20));
        assert!(is_available(1 << 20));
        assert!(!is_available(1 << 50));
    }
}
