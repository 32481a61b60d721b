//! The work of a process while it waits for another one of its node: it lets the MPI underneath
//! make progress, because the other process may be blocked in a large receive from it; it sleeps on
//! its doorbell; and it checks from time to time that all processes are alive.

use super::arena::Arena;
use super::waits::{Total, Waiting};
use crate::config::Config;
use crate::error::Result;
use crate::fabric::WordId;
use crate::fabric::shm::words::Idle;
use crate::mpi::Host;
use crate::sync::AtomicU32;
use crate::sys::{futex, process};
use std::sync::Arc;

/// Polls of a word before anything else is tried, where each rank has a core of its own: a few
/// microseconds.
const SPINS: u32 = 300;
/// Polls where ranks share cores: the awaited rank may need the core of the waiting rank.
const SPINS_SHARED: u32 = 20;

/// How this process waits for words of one window.
pub struct NodeIdle {
    arena: Arc<Arena>,
    spins: u32,
    /// how long this process has waited for words of the window; `None` if waits are not reported
    total: Option<Total>,
}

impl NodeIdle {
    /// Creates it for a window of the processes of `arena`.
    pub fn new(arena: Arc<Arena>) -> NodeIdle {
        let spins = if arena.size as usize > process::cores() { SPINS_SHARED } else { SPINS };
        let total = Config::get().reports_waits.then(Total::default);
        NodeIdle { arena, spins, total }
    }

    /// Returns the arena of the processes that this one waits for.
    pub fn arena(&self) -> &Arc<Arena> {
        &self.arena
    }

    /// Returns how long this process has waited for words of the window; `None` if waits are not
    /// reported.
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
