//! How much memory of windows a process may move: [`PER_SECOND`] blocks of 2 MiB for each second
//! since its first created window, and [`AT_ONCE`] more of memory over which none of the last
//! [`WINDOWS`] windows was. A window counts with all blocks that its bytes fill, whether they move
//! or not. A block takes 0.3 to 3 ms to move there and back, so a program that makes windows over
//! the same memory in a loop becomes slower by about 5 %.

/// Bytes of a block: those that the kernel checks at once.
const BLOCK: u64 = 2 << 20;
/// The blocks of each second.
const PER_SECOND: u64 = 20;
/// The further blocks: a benchmark with a window for each size of messages makes fewer windows.
const AT_ONCE: u64 = 32;
/// The windows whose memory is remembered.
const WINDOWS: usize = 4;

/// An address and a number of bytes.
type Memory = (u64, u64);

/// What may move, and what has been asked for. All times are in nanoseconds.
pub struct Allowance {
    /// the time of the first request
    since: Option<u64>,
    /// the blocks of all requests that were permitted
    blocks: u64,
    /// the memory of the last requests
    last: [Memory; WINDOWS],
}

impl Allowance {
    /// A process that has made no window.
    pub const UNUSED: Allowance = Allowance { since: None, blocks: 0, last: [(0, 0); WINDOWS] };

    /// Whether the memory of a window may move at the time `now`. If so, its blocks count.
    pub fn permits(&mut self, memory: Memory, now: u64) -> bool {
        let passed = now - *self.since.get_or_insert(now);
        let is_again = self.last.contains(&memory);
        if !is_again {
            self.last.rotate_right(1);
            self.last[0] = memory;
        }
        let most = passed / (1_000_000_000 / PER_SECOND) + if is_again { 0 } else { AT_ONCE };
        let blocks = self.blocks.saturating_add(memory.1.div_ceil(BLOCK));
        let fits = blocks <= most;
        if fits {
            self.blocks = blocks;
        }
        fits
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: u64 = 1_000_000_000;

    /// Returns how many of 999 windows may move. `step`: the distance between their addresses; 0:
    /// all are over one memory.
    fn windows(allowance: &mut Allowance, step: u64, now: u64) -> usize {
        (1..1000).filter(|turn| allowance.permits((step * turn, 8), now)).count()
    }

    #[test]
    fn windows_in_a_loop_move_at_a_fixed_rate() {
        let mut allowance = Allowance::UNUSED;
        assert_eq!(windows(&mut allowance, 8, 7 * SECOND), 32);
        assert_eq!(windows(&mut allowance, 8, 7 * SECOND + SECOND / 2), 10);
        assert_eq!(windows(&mut allowance, 8, 9 * SECOND), 30);
    }

    #[test]
    fn windows_over_the_same_memory_move_at_that_rate_from_the_second_on() {
        let mut allowance = Allowance::UNUSED;
        assert!(allowance.permits((8, 8), 0));
        assert_eq!(windows(&mut allowance, 0, 0), 1, "the first one");
        assert_eq!(windows(&mut allowance, 0, SECOND), 18);
        assert!(!allowance.permits((8, 8), SECOND) && allowance.permits((8, 9), SECOND));
        (0..WINDOWS as u64).for_each(|turn| _ = allowance.permits((turn, 7), SECOND));
        assert!(allowance.permits((8, 8), SECOND), "others were made since");
    }

    #[test]
    fn a_window_counts_by_its_bytes() {
        let mut allowance = Allowance::UNUSED;
        assert!(!allowance.permits((1, 33 * BLOCK), 0) && !allowance.permits((1, u64::MAX), 0));
        assert!(allowance.permits((1, 31 * BLOCK), 0));
        assert!(!allowance.permits((2, BLOCK + 1), 0) && allowance.permits((2, BLOCK), 0));
        assert!(!allowance.permits((3, 1), 0));
        assert!(allowance.permits((4, 200 * BLOCK), 10 * SECOND));
    }
}
