//! The barrier of the processes of an arena, in calls that make or free a window.

use super::missing_ranks::BarrierWait;
use crate::epoch::fence;
use crate::error::Result;
use crate::fabric::WordId;
use crate::fabric::shm::awake::{AwakeLimit, AwakeOutcome};
use crate::fabric::shm::words::{CpuWords, Idle};
use crate::rank_numbers::Slot;
use crate::sync::AtomicU32;
use crate::window::arena::Arena;
use crate::window::control_blocks::ControlBlocks;
use crate::window::wait_progress::NodeIdle;
use std::sync::Arc;

/// Waits until all ranks of an arena have called this, in the user's call `call`.
pub fn barrier(arena: &Arc<Arena>, call: &'static str) -> Result<()> {
    let turn = arena.next_barrier();
    fence::barrier(&collective_words(arena, Slot::OF_ARENA, call), arena.barrier, turn)
}

/// Returns the words of a slot for a barrier in the user's call `call`, which makes or frees a
/// window.
pub fn collective_words(
    arena: &Arc<Arena>,
    slot: Slot,
    call: &'static str,
) -> CpuWords<ControlBlocks, Collective> {
    let idle = Collective { idle: NodeIdle::new(arena.clone()), slot, call, is_quiet: false };
    CpuWords::new(ControlBlocks::of(arena, slot), idle)
}

/// Returns the words of an arena for a barrier in the user's call `call`, in which the host MPI
/// makes no progress.
pub fn quiet_words(arena: &Arc<Arena>, call: &'static str) -> CpuWords<ControlBlocks, Collective> {
    let (idle, slot) = (NodeIdle::new(arena.clone()), Slot::OF_ARENA);
    let idle = Collective { idle, slot, call, is_quiet: true };
    CpuWords::new(ControlBlocks::of(arena, slot), idle)
}

/// How this process waits in a call that makes or frees a window: after a long wait it may report
/// the missing ranks.
pub struct Collective {
    idle: NodeIdle,
    slot: Slot,
    call: &'static str,
    /// whether the host MPI makes no progress meanwhile (`create::quiet`)
    is_quiet: bool,
}

impl Idle for Collective {
    type Wait = BarrierWait;

    fn begin(&self, _word: WordId) -> BarrierWait {
        BarrierWait::default()
    }

    fn end(&self, _wait: BarrierWait) {}

    fn progress(&self) {
        if !self.is_quiet {
            self.idle.progress();
        }
    }

    fn check(&self, wait: &mut BarrierWait) -> Result<()> {
        self.idle.arena().check_dead()?;
        wait.report_if_due(self.idle.arena(), self.slot, self.call);
        Ok(())
    }

    fn sleep(&self, doorbell: &AtomicU32, value: u32, ns: u64) {
        self.idle.sleep(doorbell, value, ns);
    }

    fn wake(&self, doorbell: &AtomicU32) {
        self.idle.wake(doorbell);
    }

    fn spins(&self) -> u32 {
        self.idle.spins()
    }

    fn round(&self, round: u32) {
        if self.is_quiet {
            std::thread::yield_now();
        } else {
            self.idle.round(round);
        }
    }

    fn awake(&self) -> Option<AwakeLimit> {
        self.idle.awake()
    }

    fn was_awake(&self, outcome: AwakeOutcome) {
        self.idle.was_awake(outcome);
    }
}
