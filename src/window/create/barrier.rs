//! The barrier of the processes of an arena, in calls that make or free a window.

use super::late::BarrierWait;
use crate::epoch::fence;
use crate::error::Result;
use crate::fabric::WordId;
use crate::fabric::shm::awake::{AwakeLimit, AwakeOutcome};
use crate::fabric::shm::words::{CpuWords, Idle};
use crate::rank_numbers::Slot;
use crate::sync::AtomicU32;
use crate::window::arena::Arena;
use crate::window::control_blocks::ControlBlocks;
use crate::window::idle::NodeIdle;
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
    let idle = Collective { idle: NodeIdle::new(arena.clone()), slot, call };
    CpuWords::new(ControlBlocks::of(arena, slot), idle)
}

/// Returns the words of an arena for a barrier in the user's call `call`, in which the MPI
/// underneath makes no progress.
pub fn quiet_words(arena: &Arc<Arena>, call: &'static str) -> CpuWords<ControlBlocks, Silent> {
    let idle = Collective { idle: NodeIdle::new(arena.clone()), slot: Slot::OF_ARENA, call };
    CpuWords::new(ControlBlocks::of(arena, Slot::OF_ARENA), Silent(idle))
}

/// How this process waits in a quiet part (`create::quiet`): as in the rest of the call, but the
/// MPI underneath makes no progress.
pub struct Silent(Collective);

impl Idle for Silent {
    type Wait = BarrierWait;

    fn begin(&self, word: WordId) -> BarrierWait {
        self.0.begin(word)
    }

    fn end(&self, wait: BarrierWait) {
        self.0.end(wait);
    }

    fn progress(&self) {}

    fn check(&self, wait: &mut BarrierWait) -> Result<()> {
        self.0.check(wait)
    }

    fn sleep(&self, doorbell: &AtomicU32, value: u32, ns: u64) {
        self.0.sleep(doorbell, value, ns);
    }

    fn wake(&self, doorbell: &AtomicU32) {
        self.0.wake(doorbell);
    }

    fn spins(&self) -> u32 {
        self.0.spins()
    }

    fn round(&self, _round: u32) {
        std::thread::yield_now();
    }

    fn awake(&self) -> Option<AwakeLimit> {
        self.0.awake()
    }

    fn was_awake(&self, outcome: AwakeOutcome) {
        self.0.was_awake(outcome);
    }
}

/// How this process waits in a call that makes or frees a window: after a long wait it may report
/// the missing ranks.
pub struct Collective {
    idle: NodeIdle,
    slot: Slot,
    call: &'static str,
}

impl Idle for Collective {
    type Wait = BarrierWait;

    fn begin(&self, _word: WordId) -> BarrierWait {
        BarrierWait::default()
    }

    fn end(&self, _wait: BarrierWait) {}

    fn progress(&self) {
        self.idle.progress();
    }

    fn check(&self, wait: &mut BarrierWait) -> Result<()> {
        self.idle.arena().check_dead()?;
        wait.look(self.idle.arena(), self.slot, self.call);
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
        self.idle.round(round);
    }

    fn awake(&self) -> Option<AwakeLimit> {
        self.idle.awake()
    }

    fn was_awake(&self, outcome: AwakeOutcome) {
        self.idle.was_awake(outcome);
    }
}
