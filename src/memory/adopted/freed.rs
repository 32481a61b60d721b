//! The windows that this process has freed last: over which memory they were, and whether other
//! ranks had accessed it. A program that makes a window over the very same memory again may do so
//! in a loop, and may use few of these windows. So that memory moves at creation only if its last
//! [`USES`] windows were used. Else it moves later, when copies have cost as much as the move does.
//! Not for memory of which a window is over a part alone, nor for a window of another length: most
//! programs that make such windows use each of them for long.

/// The number of windows that are remembered.
const WINDOWS: usize = 4;
/// The number of windows over the same memory that must have been used, one after the other.
const USES: u32 = 2;

/// An address and a number of bytes.
type Memory = (u64, u64);

/// The windows that were freed last.
pub struct Freed {
    /// each memory, and how many of its last windows were used
    last: [(Memory, u32); WINDOWS],
    /// the place of the next one that is not there yet
    next: usize,
}

impl Freed {
    /// No window was freed.
    pub const NONE: Freed = Freed { last: [((0, 0), 0); WINDOWS], next: 0 };

    /// Whether the memory of a window that is being made may move.
    pub fn permits(&self, memory: Memory) -> bool {
        self.last.iter().all(|(other, uses)| *other != memory || *uses >= USES)
    }

    /// Notes that a window over this memory is being freed, and whether it was used.
    pub fn note(&mut self, memory: Memory, is_used: bool) {
        let found = self.last.iter().position(|(other, _)| *other == memory);
        let place = found.unwrap_or_else(|| {
            let place = self.next;
            self.last[place] = (memory, 0);
            self.next = (place + 1) % WINDOWS;
            place
        });
        let uses = &mut self.last[place].1;
        *uses = if is_used { uses.saturating_add(1) } else { 0 };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn memory_of_a_freed_window_moves_once_two_were_used() {
        let (mut freed, memory) = (Freed::NONE, (0x1000, 64));
        assert!(freed.permits(memory), "no window was over it");
        for (is_used, permits) in
            [(true, false), (true, true), (true, true), (false, false), (true, false), (true, true)]
        {
            freed.note(memory, is_used);
            assert_eq!(freed.permits(memory), permits);
        }
        freed.note(memory, false);
        assert!(freed.permits((0x1000, 65)) && freed.permits((0x1008, 64)));
    }

    #[test]
    fn the_last_windows_are_remembered() {
        let mut freed = Freed::NONE;
        for turn in 0..10 {
            (0..4).for_each(|at| freed.note((at, 8), turn > 0));
            assert!((0..4).all(|at| freed.permits((at, 8)) == (turn > 1)), "{turn}");
        }
        freed.note((0, 8), false);
        freed.note((9, 8), false);
        assert!(freed.permits((0, 8)), "four others were noted after it was");
        assert!(!freed.permits((9, 8)));
    }
}
