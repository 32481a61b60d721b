//! Blocks and words of this process, and memory of the user, that the requests of a queue hold.

use std::collections::VecDeque;

use super::pool::{Blocks, Kept};

/// Requests that hold something, for which an idle queue keeps room.
const KEPT_WHILE_IDLE: usize = 64;

/// The resources and memory that the requests of a queue hold.
#[derive(Default)]
pub struct HeldByRequests {
    /// the resources of requests under way, with the requests' numbers in ascending order; the
    /// other requests hold nothing
    kept: VecDeque<(u64, Kept)>,
    /// number of the last request that uses memory of the user until it is done
    until_done: u64,
    /// number of the last request that uses it until the stream has taken its bytes
    streamed: u64,
    /// number of the last request whose bytes the stream has taken
    taken: u64,
}

impl HeldByRequests {
    /// Keeps what the request `number` holds.
    pub fn add(&mut self, number: u64, held: Kept) {
        match held {
            Kept::Nothing => return,
            Kept::Streamed => return self.streamed = number,
            _ => {}
        }
        if !matches!(held, Kept::Leaving(_)) {
            self.until_done = number;
        }
        self.kept.push_back((number, held));
    }

    /// Releases what request `number` and all before it hold, which are done.
    pub fn finish(&mut self, number: u64, blocks: &Blocks) {
        while self.kept.front().is_some_and(|(held_by, _)| *held_by <= number) {
            if let Some((_, kept)) = self.kept.pop_front() {
                blocks.finish(kept);
            }
        }
        if self.kept.is_empty() && self.kept.capacity() > KEPT_WHILE_IDLE {
            self.kept.shrink_to(KEPT_WHILE_IDLE);
        }
    }

    /// Gives back all blocks, which no device accesses any more.
    pub fn end(self, blocks: &Blocks) {
        for (_, held) in self.kept {
            if let Some(block) = held.block() {
                blocks.give_back(block);
            }
        }
    }

    /// Checks that those that hold anything are after `done` and up to `posted`, in their order.
    pub fn invariants(&self, done: u64, posted: u64) {
        let numbers = || self.kept.iter().map(|(number, _)| *number);
        assert!(numbers().all(|number| done < number && number <= posted));
        assert!(numbers().is_sorted());
        assert!(self.last().max(self.taken) <= posted);
    }

    /// Number of the last request that uses memory of the user, or has used it.
    pub fn last(&self) -> u64 {
        self.until_done.max(self.streamed)
    }

    /// Whether request `number` and those before it use no memory any more, if all requests up to
    /// `done` are done.
    pub fn is_released(&self, number: u64, done: u64) -> bool {
        done >= number || self.taken >= number && done >= self.until_done.min(number)
    }

    /// Whether the stream has yet to take bytes.
    pub fn is_streaming(&self, done: u64) -> bool {
        self.streamed > self.taken.max(done)
    }

    /// Records that the stream has taken the bytes of all requests up to `number`.
    pub fn note_taken(&mut self, number: u64) {
        self.taken = number;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn memory_is_free_when_the_stream_has_taken_it_and_what_was_asked_for_has_arrived() {
        let mut held = HeldByRequests::default();
        held.add(1, Kept::Streamed);
        held.add(2, Kept::of_user());
        held.add(3, Kept::Streamed);
        held.add(4, Kept::Nothing);
        let released = |held: &HeldByRequests, done| [1, 2, 3].map(|n| held.is_released(n, done));
        assert_eq!(held.last(), 3);
        assert!(held.is_streaming(2) && !held.is_streaming(3));
        assert_eq!(released(&held, 0), [false, false, false]);
        assert_eq!(released(&held, 1), [true, false, false]);
        assert_eq!(released(&held, 2), [true, true, false]);
        assert_eq!(released(&held, 3), [true, true, true]);
        held.note_taken(4);
        assert!(!held.is_streaming(0));
        assert_eq!(released(&held, 1), [true, false, false]);
        assert_eq!(released(&held, 2), [true, true, true]);
    }
}
