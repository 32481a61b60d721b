//! Control words by the processor's own loads, stores and locked instructions: one implementation
//! of [`Words`], with its orderings, over [`Cells`] (the location of the words) and [`Idle`] (the
//! work while waiting).
//!
//! A rank that waits long sleeps on its [doorbell], one 32-bit word per rank, shared by all words
//! and all threads of that rank. A change of a word rings it.

use super::awake::{AwakeLimit, AwakeOutcome};
use super::doorbell;
use crate::error::Result;
use crate::rank_numbers::Rank;
use crate::sync::{AtomicU32, AtomicU64, Ordering, fence, full_fence, spin_hint};
use crate::{Fetch, WordAt, WordId, Words};
use std::time::{Duration, Instant};

/// The control words of all ranks, mapped in this process.
pub trait Cells {
    /// The control word `at`. It is within the control block: `fabric::layout` made the id.
    fn cell(&self, at: WordAt) -> &AtomicU64;
    /// This process.
    fn rank(&self) -> Rank;
    /// Number of ranks.
    fn size(&self) -> u32;
    /// The [doorbell] of a rank. It may serve many windows.
    fn doorbell(&self, rank: Rank) -> &AtomicU32;
}

/// The work of a process while it waits.
pub trait Idle {
    /// The state of one wait.
    type Wait;
    /// Begins a wait for a word of this process, which was read and does not have the wanted value.
    fn begin(&self, word: WordId) -> Self::Wait;
    /// Ends a wait.
    fn end(&self, wait: Self::Wait);
    /// Lets the host MPI make progress.
    fn progress(&self);
    /// Fails when a process of the node is gone. Called rarely, about every [`CHECK_NS`].
    fn check(&self, wait: &mut Self::Wait) -> Result<()>;
    /// Sleeps while the doorbell is `value`, at most `ns` nanoseconds; may return early.
    fn sleep(&self, doorbell: &AtomicU32, value: u32, ns: u64);
    /// Wakes all threads that sleep on the doorbell.
    fn wake(&self, doorbell: &AtomicU32);
    /// The number of reads of a word before the waiting thread does anything else: large if every
    /// rank has a core of its own, small if ranks share cores.
    fn spins(&self) -> u32;
    /// The work of the waiting thread after the spinning of a round, by the number of that round.
    fn round(&self, round: u32);
    /// Records that a wait found its value in its first round.
    fn found_at_once(&self) {}
    /// How long a wait that found nothing in its first round stays awake before its first sleep.
    /// `None`: it sleeps at once.
    fn awake(&self) -> Option<AwakeLimit> {
        Some(AwakeLimit { rounds: AWAKE_ROUNDS, time: Duration::MAX })
    }
    /// Records the outcome of a wait that stayed awake.
    fn was_awake(&self, _outcome: AwakeOutcome) {}
}

/// Rounds in which a wait most likely finds its value if ranks do not share cores: some
/// microseconds.
const AWAKE_ROUNDS: u32 = 3;
/// The first sleep of a wait: about the cost of a wake, so that short waits do not become long
/// ones.
pub const SLEEP_NS_MIN: u64 = 50_000;
/// The first sleep of a wait that sleeps at once: a timer is not free, and most sleeps end by a
/// wake. The host MPI makes progress less often meanwhile.
const SLEEP_NS_AT_ONCE: u64 = 400_000;
/// The longest sleep: the host MPI makes progress at least this often.
const SLEEP_NS_MAX: u64 = 1_000_000;
/// After this sleep a waiter checks whether the processes of the node are still there.
pub const CHECK_NS: u64 = 100_000_000;

/// [`Words`] by load and store.
pub struct CpuWords<C, I> {
    cells: C,
    idle: I,
}

impl<C: Cells, I: Idle> CpuWords<C, I> {
    /// The words of `cells`, waited for as `idle` says.
    pub fn new(cells: C, idle: I) -> Self {
        assert!(cells.rank().0 < cells.size());
        CpuWords { cells, idle }
    }

    /// Returns the work of a waiting process.
    pub fn idle(&self) -> &I {
        &self.idle
    }

    /// Returns the words as they are mapped.
    pub fn cells(&self) -> &C {
        &self.cells
    }

    fn own_cell(&self, word: WordId) -> &AtomicU64 {
        self.cells.cell(WordAt { rank: self.cells.rank(), word })
    }

    fn spin(&self, cell: &AtomicU64, until: &impl Fn(u64) -> bool) -> Option<u64> {
        for _ in 0..self.idle.spins() {
            // Acquire: pairs with the Release of `add_and_ring`.
            let value = cell.load(Ordering::Acquire);
            if until(value) {
                return Some(value);
            }
            spin_hint();
        }
        None
    }

    /// Waits until a word of this process, whose changes ring `bell`, satisfies `until`, as
    /// [`Words::wait_own`]. `word`: what a report says that the process waits for.
    #[cold]
    pub fn wait_at(
        &self,
        (word, cell, bell): (WordId, &AtomicU64, &AtomicU32),
        until: &impl Fn(u64) -> bool,
    ) -> Result<u64> {
        let mut wait = self.idle.begin(word);
        let value = self.wait_for((cell, bell), until, &mut wait);
        self.idle.end(wait);
        value
    }

    fn wait_for(
        &self,
        (cell, bell): (&AtomicU64, &AtomicU32),
        until: &impl Fn(u64) -> bool,
        wait: &mut I::Wait,
    ) -> Result<u64> {
        if let Some(value) = self.spin(cell, until) {
            self.idle.found_at_once();
            return Ok(value);
        }
        let limit = self.idle.awake();
        if let Some(value) = limit.and_then(|limit| self.stay_awake(cell, until, limit)) {
            return Ok(value);
        }
        let first_ns = if limit.is_some() { SLEEP_NS_MIN } else { SLEEP_NS_AT_ONCE };
        sleep_until((cell, bell), until, (&self.idle, wait), first_ns, || {
            self.idle.progress();
            Ok(())
        })
    }

    /// Reads the word in rounds until a limit is reached.
    fn stay_awake(
        &self,
        cell: &AtomicU64,
        until: &impl Fn(u64) -> bool,
        limit: AwakeLimit,
    ) -> Option<u64> {
        let (mut rounds, began) = (0, Instant::now());
        let (value, awake) = loop {
            self.idle.round(rounds);
            let (value, awake) = (self.spin(cell, until), began.elapsed());
            rounds += 1;
            if value.is_some() || limit.is_reached(rounds, awake) {
                break (value, awake);
            }
        };
        let outcome = limit.outcome(value.is_some(), awake);
        // A wait that found its value early says nothing about long ones.
        if rounds > AWAKE_ROUNDS || outcome != AwakeOutcome::Found {
            self.idle.was_awake(outcome);
        }
        value
    }
}

/// Sleeps on a doorbell until a word satisfies `until`, and returns the word. Calls `advance`
/// before each sleep, and from time to time [`Idle::check`].
pub fn sleep_until<I: Idle>(
    (cell, bell): (&AtomicU64, &AtomicU32),
    until: &impl Fn(u64) -> bool,
    (idle, wait): (&I, &mut I::Wait),
    first_ns: u64,
    mut advance: impl FnMut() -> Result<()>,
) -> Result<u64> {
    let (mut sleep_ns, mut checked) = (first_ns, Instant::now());
    loop {
        let announced = doorbell::announce(bell);
        // Acquire: pairs with the Release of `add_and_ring`.
        let value = cell.load(Ordering::Acquire);
        if until(value) {
            return Ok(value);
        }
        // Before the sleep: most sleeps end by a wake, after which the rank goes on at once.
        advance()?;
        idle.sleep(bell, announced, sleep_ns);
        // Acquire: as above.
        let value = cell.load(Ordering::Acquire);
        if until(value) {
            return Ok(value);
        }
        // Measured by the clock, not in sleeps: where ranks share cores, a short sleep may last
        // long.
        if checked.elapsed() >= Duration::from_nanos(CHECK_NS) {
            idle.check(wait)?;
            checked = Instant::now();
        }
        sleep_ns = SLEEP_NS_MAX.min(2 * sleep_ns);
    }
}

/// [`Words::fetch`] by a locked instruction.
#[inline]
pub fn fetch(cell: &AtomicU64, op: Fetch) -> u64 {
    // AcqRel, and Acquire where nothing is stored: the contract of `fetch`.
    match op {
        Fetch::Add(add) => cell.fetch_add(add, Ordering::AcqRel),
        Fetch::CompareSwap { expect, new } => {
            match cell.compare_exchange(expect, new, Ordering::AcqRel, Ordering::Acquire) {
                Ok(before) | Err(before) => before,
            }
        }
    }
}

impl<C: Cells, I: Idle> Words for CpuWords<C, I> {
    type Ticket = u64;

    #[inline]
    fn rank(&self) -> Rank {
        self.cells.rank()
    }

    #[inline]
    fn size(&self) -> u32 {
        self.cells.size()
    }

    #[inline]
    fn fetch(&self, at: WordAt, op: Fetch) -> Result<u64> {
        Ok(fetch(self.cells.cell(at), op))
    }

    #[inline]
    fn begin(&self, at: WordAt, op: Fetch) -> Result<u64> {
        self.fetch(at, op)
    }

    #[inline]
    fn finish(&self, before: u64) -> Result<u64> {
        Ok(before)
    }

    #[inline]
    fn post(&self, at: WordAt, add: u64) -> Result<()> {
        let (cell, bell) = (self.cells.cell(at), self.cells.doorbell(at.rank));
        doorbell::add_and_ring(cell, add, bell, |bell| self.idle.wake(bell));
        Ok(())
    }

    #[inline]
    fn read(&self, at: WordAt) -> Result<u64> {
        // Acquire: pairs with the Release of the rank that changed the word.
        Ok(self.cells.cell(at).load(Ordering::Acquire))
    }

    #[inline]
    fn own(&self, word: WordId) -> u64 {
        // Acquire: as in `read`.
        self.own_cell(word).load(Ordering::Acquire)
    }

    #[inline]
    fn set_own(&self, word: WordId, value: u64) {
        // Relaxed: the next rank that may change or read it learns of it by a later Release of this
        // rank.
        self.own_cell(word).store(value, Ordering::Relaxed);
    }

    #[inline]
    fn wait_own(&self, word: WordId, until: impl Fn(u64) -> bool) -> Result<u64> {
        let cell = self.own_cell(word);
        // Acquire: as in `spin`.
        let value = cell.load(Ordering::Acquire);
        if until(value) {
            return Ok(value);
        }
        self.wait_at((word, cell, self.cells.doorbell(self.cells.rank())), &until)
    }

    #[inline]
    fn order(&self, _rank: Rank) -> Result<()> {
        // Release: stores and loads before it are done before the change of a word after it.
        fence(Ordering::Release);
        Ok(())
    }

    #[inline]
    fn is_ordered(&self, _before: Rank, _next: Rank) -> bool {
        true
    }

    #[inline]
    fn flush(&self, _rank: Rank) -> Result<()> {
        full_fence();
        Ok(())
    }

    #[inline]
    fn flush_all(&self) -> Result<()> {
        full_fence();
        Ok(())
    }

    #[inline]
    fn flush_others(&self, _rank: Rank) -> Result<()> {
        full_fence();
        Ok(())
    }
}
