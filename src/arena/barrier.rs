//! The barrier of the processes of an arena, in calls that make or free a window.

use crate::arena::Arena;
use crate::arena::control_blocks::ControlBlocks;
use crate::arena::wait_progress::{CollectiveWait, NodeIdle};
use crate::epoch::fence;
use crate::error::Result;
use crate::fabric::shm::words::CpuWords;
use crate::rank_numbers::Slot;
use std::sync::Arc;

/// Waits until all ranks of an arena have called this, in the user's call `call`.
pub fn barrier(arena: &Arc<Arena>, call: &'static str) -> Result<()> {
    on_arena(arena, call, false)
}

/// Does the same as [`barrier`], while the host MPI makes no progress (`create::quiet`).
pub fn quiet_barrier(arena: &Arc<Arena>, call: &'static str) -> Result<()> {
    on_arena(arena, call, true)
}

fn on_arena(arena: &Arc<Arena>, call: &'static str, is_quiet: bool) -> Result<()> {
    let words = collective_words(arena, CollectiveWait { slot: Slot::OF_ARENA, call, is_quiet });
    fence::barrier(&words, arena.barrier, arena.next_barrier())
}

/// Returns the words of a slot for a barrier in a call that makes or frees a window.
pub fn collective_words(
    arena: &Arc<Arena>,
    wait: CollectiveWait,
) -> CpuWords<ControlBlocks, NodeIdle> {
    let blocks = ControlBlocks::of(arena, wait.slot);
    CpuWords::new(blocks, NodeIdle::of_collective(arena.clone(), wait))
}
