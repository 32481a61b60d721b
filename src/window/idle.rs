//! What a process does while it waits for another one of its node: it lets the MPI underneath make
//! progress, because its partner may sit in a large receive from it; it sleeps on its doorbell; and
//! it looks now and then whether everybody is still alive.

use super::arena::Arena;
use super::late::Meeting;
use super::waits::{Total, Waiting};
use crate::config::Config;
use crate::error::Result;
use crate::fabric::WordId;
use crate::fabric::shm::words::Idle;
use crate::mpi::Host;
use crate::sync::AtomicU32;
use crate::sys::{futex, process};
use std::sync::Arc;

/// Looks at a word before anything else is tried, where every rank has a core of its own:
/// a few microseconds.
const SPINS: u32 = 300;
/// The same where ranks share cores: who is waited for may need this one.
const SPINS_SHARED: u32 = 20;

/// Waiting inside of libfompi.
pub struct NodeIdle {
    arena: Arc<Arena>,
    spins: u32,
    /// how long this process has waited for words of the window; none: nobody asks
    total: Option<Total>,
}

impl NodeIdle {
    /// For the processes of `arena`.
    pub fn new(arena: Arc<Arena>) -> NodeIdle {
        let spins = if arena.size as usize > process::cores() { SPINS_SHARED } else { SPINS };
        let total = Config::get().reports_waits.then(Total::default);
        NodeIdle { arena, spins, total }
    }

    /// The arena of the processes.
    pub fn arena(&self) -> &Arc<Arena> {
        &self.arena
    }

    /// How long this process has waited for words of the window; none: nobody asks.
    pub fn total(&self) -> Option<&Total> {
        self.total.as_ref()
    }
}

impl Idle for NodeIdle {
    type Wait = Option<Waiting>;

    fn begin(&self, word: WordId) -> Option<Waiting> {
        self.total.is_some().then(|| Waiting::new(word))
    }

    fn end(&self, wait: Option<Waiting>) {
        if let (Some(total), Some(wait)) = (&self.total, wait) {
            total.add(&wait);
        }
    }

    fn progress(&self) {
        self.arena.comm.progress(Host::get());
    }

    fn check(&self, wait: &mut Option<Waiting>) -> Result<()> {
        self.arena.check_dead()?;
        if let Some(wait) = wait {
            wait.look(self);
        }
        Ok(())
    }

    fn sleep(&self, doorbell: &AtomicU32, value: u32, ns: u64) {
        futex::wait(doorbell, value, ns);
    }

    fn wake(&self, doorbell: &AtomicU32) {
        futex::wake(doorbell);
    }

    fn spins(&self) -> u32 {
        self.spins
    }
}

/// The same in a call that makes or frees a window: a rank that waits long there may say for whom.
pub struct Collective {
    idle: NodeIdle,
    slot: u32,
    call: &'static str,
}

impl Collective {
    /// In the barrier of a slot.
    pub fn new(arena: Arc<Arena>, slot: u32, call: &'static str) -> Collective {
        Collective { idle: NodeIdle::new(arena), slot, call }
    }
}

impl Idle for Collective {
    type Wait = Meeting;

    fn begin(&self, _word: WordId) -> Meeting {
        Meeting::default()
    }

    fn end(&self, _wait: Meeting) {}

    fn progress(&self) {
        self.idle.progress();
    }

    fn check(&self, wait: &mut Meeting) -> Result<()> {
        self.idle.arena.check_dead()?;
        wait.look(&self.idle.arena, self.slot, self.call);
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
}
