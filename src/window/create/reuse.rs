//! The use of kept memory for a new allocated window (`window::window_memory_cache`). Before the
//! first barrier of the agreement each rank takes the memory that it has kept, if its request gets
//! the same part of it again, and writes its number to its record. The memory is used if all ranks
//! have written the same number: all of them have it mapped, and know their parts. If one has not,
//! all give it up.
//!
//! Kept memory reads as zero in the new window. Rank 0 checks before the barrier whether it was
//! touched; if so, each rank clears its part after the barrier, and one more barrier follows. A
//! rank writes to kept memory only after all have agreed on it, because rank 0 may have given up
//! memory that another rank still keeps.

use crate::arena::Arena;
use crate::arena::barrier::barrier;
use crate::arena::control_blocks::ControlBlocks;
use crate::arena::descriptor::Descriptor;
use crate::error::Result;
use crate::memory::retention::kept_max;
use crate::memory::window_memory::Common;
use crate::memory::window_memory_cache::{Content, HasKeep, Keep, KeptWord, OwnPart, Share};
use crate::number::Number;
use crate::rank_numbers::RankOnNode;
use crate::sys::memory_limits;
use std::sync::Arc;

/// Kept memory that fits the request of this rank.
pub struct Reuse {
    memory: Common,
    part: OwnPart,
    word: KeptWord,
}

impl Reuse {
    /// Takes the kept memory if it fits a request of this rank: bytes, and alignment as in its
    /// record. Rank 0 gives up memory that costs more to clear than new memory does.
    pub fn of(arena: &Arena, bytes: u64, alignment: u64) -> Option<Reuse> {
        let memory = arena.kept.lock().take(bytes, alignment)?;
        let Keep { id, part, .. } = *memory.keep()?;
        let content = match arena.rank {
            RankOnNode::LEADER => Some(memory.content()?),
            _ => None,
        };
        Some(Reuse { memory, part, word: KeptWord::new(id, content) })
    }

    /// Returns the word for this rank's record.
    pub fn word(&self) -> u64 {
        self.word.0
    }

    /// Describes this rank's part.
    pub fn describe(&self, blocks: &ControlBlocks, disp_unit: u64) {
        let OwnPart { bytes, offset, .. } = self.part;
        let address = self.memory.base().addr().to_u64() + offset;
        blocks.describe(Descriptor::common(offset, address, bytes, disp_unit));
    }

    /// Whether all ranks have kept the same memory. Call after the first barrier.
    pub fn is_agreed(&self, arena: &Arena, turn: u64) -> bool {
        RankOnNode::all(arena.size).all(|rank| self.word.agrees(word_of(arena, turn, rank)))
    }

    /// Returns the memory for the new window, cleared where it was touched.
    pub fn finish(mut self, arena: &Arc<Arena>, turn: u64, call: &'static str) -> Result<Common> {
        let content = word_of(arena, turn, RankOnNode::LEADER).content();
        if content != Content::Nothing {
            self.memory.clear(content);
            barrier(arena, call)?;
        }
        Ok(self.memory)
    }

    /// Continues to keep the memory, because no window was made.
    pub fn give_up(self, arena: &Arena) {
        keep(arena, self.memory);
    }
}

/// Keeps the memory of a window with which all ranks are done.
pub fn keep(arena: &Arena, memory: Common) {
    let oldest = arena.kept.lock().add(memory);
    drop(oldest); // without the lock: giving memory back takes long
}

/// Reserves a share of what may be kept for `total` bytes of new memory, and gives up old memory
/// where necessary. On rank 0. `None`: the new memory is not kept.
pub fn share_of(arena: &Arena, total: u64) -> Option<Share> {
    let max = kept_max(memory_limits::least(), arena.size);
    if total.div_ceil(u64::from(arena.size)) > max {
        return None;
    }
    loop {
        if let Some(share) = Share::reserve(total, arena.size, max) {
            return Some(share);
        }
        let oldest = arena.kept.lock().take_oldest()?;
        drop(oldest);
    }
}

/// Returns the number of the oldest memory that rank 0 still keeps when it makes that with the
/// creation number `turn`.
pub fn oldest(arena: &Arena, turn: u64) -> u64 {
    arena.kept.lock().oldest().unwrap_or(turn + 1)
}

/// Gives up the memory that rank 0 does not keep any more. `oldest`: the result of [`oldest`]
/// there.
pub fn forget(arena: &Arena, oldest: u64) {
    let forgotten = arena.kept.lock().take_before(oldest);
    drop(forgotten);
}

/// Returns the word in the record of a rank.
fn word_of(arena: &Arena, turn: u64, rank: RankOnNode) -> KeptWord {
    // SAFETY: the record was written before a barrier that this rank has passed, and this field
    // does not change until all ranks make the next window.
    KeptWord(unsafe { (&raw const (*arena.record(turn, rank)).kept).read_volatile() })
}
