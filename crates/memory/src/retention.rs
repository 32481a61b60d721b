//! The bound on memory that a process keeps after it was given back, for later requests. Keeping
//! too little costs a system call and a page fault for each page; keeping too much costs memory
//! that other processes could use.

/// The most bytes that a process keeps.
pub const KEPT_MAX: u64 = 32 << 20;
/// All processes of a node together keep at most this share of the memory.
const SHARE: u64 = 16;

/// Returns the bytes that a process keeps at most where `ranks` ranks share `memory` bytes.
pub fn kept_max(memory: u64, ranks: u32) -> u64 {
    (memory / SHARE / u64::from(ranks.max(1))).min(KEPT_MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranks_share_what_may_be_kept() {
        assert_eq!(kept_max(64 << 30, 4), KEPT_MAX);
        assert_eq!(kept_max(32 << 30, 128), 16 << 20);
        assert_eq!(kept_max(300 << 20, 0), (300 << 20) / 16);
    }
}
