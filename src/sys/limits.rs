//! What memory the node can give: to all, by the kernel's count, and to this process, by the limits
//! of its control groups.

use super::cgroup;
pub use super::cgroup::Limit;
use crate::error::Error;
use parking_lot::Mutex;
use std::path::Path;
use std::sync::OnceLock;

/// The node is left at least this share of its memory.
const SPARE: u64 = 32;

/// Memory and swap of the node, in bytes; u64::MAX if it does not say.
fn node_bytes() -> u64 {
    // SAFETY: plain numbers, of which zero is one.
    let mut info: libc::sysinfo = unsafe { core::mem::zeroed() };
    // SAFETY: a place for the answer.
    if unsafe { libc::sysinfo(&mut info) } != 0 {
        return u64::MAX;
    }
    (info.totalram + info.totalswap).saturating_mul(u64::from(info.mem_unit))
}

/// Bytes that this process cannot have, however much of them is free: more than one of these.
pub struct Limits {
    /// of the node
    pub node: u64,
    /// of the control groups of this process
    pub groups: Vec<Limit>,
}

impl Limits {
    /// As they are now. Some files are read.
    pub fn now() -> Limits {
        Limits { node: node_bytes(), groups: cgroup::limits(Path::new("/")) }
    }

    /// The smallest.
    pub fn least(&self) -> u64 {
        self.groups.iter().map(|limit| limit.bytes).fold(self.node, u64::min)
    }
}

/// What has the memory and swap of the node, for people.
pub const NODE: &str = "the node (memory and swap)";
/// What has the memory of a limit of a control group.
pub const GROUP: &str = "the control group of this process (memory.max)";

/// Bytes that this process can have at most, as they were when somebody asked first, or since then
/// when something was refused: asking takes some fifty system calls.
pub fn least() -> u64 {
    *KNOWN.lock().get_or_insert_with(|| Limits::now().least())
}

/// Whether this process can ever have so many bytes. Looks again before it says no.
pub fn fits(bytes: u64) -> bool {
    bytes <= least() || {
        let now = Limits::now().least();
        *KNOWN.lock() = Some(now);
        bytes <= now
    }
}

/// Why this process can never have so many bytes.
#[cold]
pub fn too_much(bytes: u64) -> Error {
    let now = Limits::now();
    let limit = now.least();
    let of = if limit == now.node { NODE } else { GROUP };
    Error::TooMuch { own: bytes, all: bytes, limit, of }
}

/// What `least` has found.
static KNOWN: Mutex<Option<u64>> = Mutex::new(None);

/// Whether the node can give `bytes` bytes to this process now without swapping, and keep something
/// for others. Yes if it does not say. Asking costs some ten microseconds.
pub fn is_available(bytes: u64) -> bool {
    let text = std::fs::read_to_string("/proc/meminfo").unwrap_or_default();
    let field = |name: &str| {
        let line = text.lines().find_map(|line| line.strip_prefix(name))?;
        Some(line.split_whitespace().next()?.parse::<u64>().ok()? * 1024)
    };
    let node = field("MemTotal:").zip(field("MemAvailable:"));
    let groups = cgroup::limits(Path::new("/"));
    let groups = groups.iter().map(|limit| (limit.bytes, limit.available()));
    let is_in = |(all, left): (u64, u64)| bytes.saturating_add(all / SPARE) <= left;
    node.into_iter().chain(groups).all(is_in)
}

/// Whether memory that nobody has touched yet may be refused when somebody does, by a signal: where
/// the kernel gives out no more than it has (vm.overcommit_memory=2), it counts the pages of a
/// segment one by one. Read once.
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
