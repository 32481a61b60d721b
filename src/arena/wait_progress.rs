//! The work of a process while it waits for another one of its node: it lets the host MPI make
//! progress, because the other process may be blocked in a large receive from it; it sleeps on its
//! doorbell; and it checks from time to time that all processes are alive.

use super::Arena;
use crate::config::Config;
use crate::error::Result;
use crate::fabric::WordId;
use crate::fabric::shm::awake::{AwakeLimit, AwakeOutcome};
use crate::fabric::shm::words::Idle;
use crate::mpi::Host;
use crate::number::Number;
use crate::rank_numbers::Slot;
use crate::sync::{AtomicU32, AtomicU64, Ordering};
use crate::sys::proc_notes::Note;
use crate::sys::{futex, process};
use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};

/// Polls of a word before anything else is tried, where each rank has a core of its own: a few
/// microseconds.
const SPINS: u32 = 300;
/// Polls where ranks share cores: the awaited rank may need the core of the waiting rank.
const SPINS_SHARED: u32 = 20;
/// How long a wait stays awake. A wake takes tens of microseconds, so that it makes a longer wait a
/// twentieth longer at most. The plain MPIs never sleep.
const AWAKE: Duration = Duration::from_millis(1);
/// How many rounds a wait stays awake where ranks share cores. Each yields the core; the awaited
/// ranks have most likely run by then, and that costs much less than a sleep and a wake.
const ROUNDS_YIELDING: u32 = 64;
/// One in this many rounds lets the host MPI make progress; the others yield the core, which is
/// faster.
const ROUNDS_PER_PROGRESS: u32 = 8;
/// The time that a process has waited for other ranks in one window.
#[derive(Default)]
pub struct Total {
    ns: AtomicU64,
}

impl Total {
    /// Adds a wait that has ended, from its start.
    fn add(&self, began: Instant) {
        let ns = u64::try_from(began.elapsed().as_nanos()).unwrap_or(u64::MAX);
        // Relaxed: a sum that nothing depends on.
        self.ns.fetch_add(ns, Ordering::Relaxed);
    }

    /// Nanoseconds, of all threads together.
    pub fn ns(&self) -> u64 {
        self.ns.load(Ordering::Relaxed)
    }
}

/// A wait of one thread for a word of its process.
pub struct Waiting {
    /// the word
    pub word: WordId,
    /// when the wait began; without a [`Total`], when the thread first checked for a report
    pub began: Option<Instant>,
    /// the wait after which the thread prints its next line; `None`: not set yet
    pub due: Option<Duration>,
    /// the locks of this process, for the other ranks of the node
    pub shown: Option<Note>,
}

/// The function that a waiting thread calls periodically.
type Report = fn(&NodeIdle, &mut Waiting);

static REPORT: OnceLock<Report> = OnceLock::new();

/// Sets the function that a waiting thread calls from time to time. Only the first call has an
/// effect.
pub fn report_by(report: Report) {
    REPORT.get_or_init(|| report);
}

/// How this process waits for words of one window.
pub struct NodeIdle {
    arena: Arc<Arena>,
    spins: u32,
    /// whether there are more ranks than cores, so that rounds of a wait yield the core
    is_shared: bool,
    /// how long this process has waited for words of the window; `None` if waits are not reported
    total: Option<Total>,
    /// the call that makes or frees a window, if it waits in one
    collective: Option<CollectiveWait>,
}

/// A wait in a barrier of a call that makes or frees a window.
#[derive(Clone, Copy)]
pub struct CollectiveWait {
    /// the slot with the words of the barrier
    pub slot: Slot,
    /// the user's call
    pub call: &'static str,
    /// whether the host MPI makes no progress meanwhile (`create::quiet`)
    pub is_quiet: bool,
}

impl NodeIdle {
    /// Creates it for a window of the processes of `arena`.
    pub fn new(arena: Arc<Arena>) -> NodeIdle {
        let total = Config::get().reports_waits.then(Total::default);
        NodeIdle::with(arena, total, None)
    }

    /// Creates it for a barrier of the processes of `arena`.
    pub fn of_collective(arena: Arc<Arena>, wait: CollectiveWait) -> NodeIdle {
        NodeIdle::with(arena, None, Some(wait))
    }

    fn with(
        arena: Arc<Arena>,
        total: Option<Total>,
        collective: Option<CollectiveWait>,
    ) -> NodeIdle {
        let is_shared = arena.size.to_usize() > process::cores();
        let spins = if is_shared { SPINS_SHARED } else { SPINS };
        NodeIdle { arena, spins, is_shared, total, collective }
    }

    /// Returns the wait in a call that makes or frees a window, if it is one.
    pub fn collective(&self) -> Option<CollectiveWait> {
        self.collective
    }

    fn is_quiet(&self) -> bool {
        self.collective.is_some_and(|wait| wait.is_quiet)
    }

    /// Returns the arena of the processes that this one waits for.
    pub fn arena(&self) -> &Arc<Arena> {
        &self.arena
    }

    /// Returns whether the ranks of the node share cores.
    pub fn shares_cores(&self) -> bool {
        self.is_shared
    }

    /// Returns how long this process has waited for words of the window; `None` if waits are not
    /// reported.
    pub fn total(&self) -> Option<&Total> {
        self.total.as_ref()
    }
}

impl Idle for NodeIdle {
    type Wait = Waiting;

    fn begin(&self, word: WordId) -> Waiting {
        let began = self.total.as_ref().map(|_| Instant::now());
        Waiting { word, began, due: None, shown: None }
    }

    fn end(&self, wait: Waiting) {
        if let (Some(total), Some(began)) = (&self.total, wait.began) {
            total.add(began);
        }
    }

    fn round(&self, round: u32) {
        let yields = self.is_shared && !(round + 1).is_multiple_of(ROUNDS_PER_PROGRESS);
        if yields || self.is_quiet() {
            std::thread::yield_now();
        } else {
            self.progress();
        }
    }

    fn progress(&self) {
        if !self.is_quiet() {
            self.arena.comm.progress(Host::get());
        }
    }

    fn check(&self, wait: &mut Waiting) -> Result<()> {
        self.arena.check_dead()?;
        if let Some(report) = REPORT.get() {
            report(self, wait);
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

    fn found_at_once(&self) {
        self.arena.awake.add_at_once();
    }

    fn awake(&self) -> Option<AwakeLimit> {
        let rounds = if self.is_shared { ROUNDS_YIELDING } else { u32::MAX };
        if self.is_shared && self.arena.yields_reach_all() {
            return Some(AwakeLimit { rounds, time: Duration::MAX });
        }
        self.arena.awake.next().then_some(AwakeLimit { rounds, time: AWAKE })
    }

    fn was_awake(&self, outcome: AwakeOutcome) {
        self.arena.awake.add(outcome);
    }
}
