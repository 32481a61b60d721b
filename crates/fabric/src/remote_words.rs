//! Control words in memory of other processes: [`Words`] over any [`Network`]. A [`Locate`] returns
//! the process that serves a rank, and the location of the rank's words in it. Changes go through
//! the transport, also those of words on this node, because operations of a device need not be
//! atomic with those of a processor (docs/decisions/0005); where they are, the processor changes
//! mapped words. A rank reads its own words by loads.
//!
//! Over TCP a post also rings the doorbell of its rank: a request to the service thread that serves
//! the rank does both, as do the processors of the rank's node. There a waiting rank sleeps on its
//! doorbell, or serves requests itself if nothing else changes its words. No RDMA device rings:
//! there a waiting rank polls, and yields the core or sleeps between two polls, for longer and
//! longer times.

use super::layout::{self, DOORBELL};
use super::net::Serving;
use super::remote::{Bytes, Network, Remote};
use super::shm::doorbell;
use super::shm::words::{self, CHECK_NS, Idle};
use super::{Fetch, WordAt, WordId, Words};
use crate::error::Result;
use crate::number::Number;
use crate::rank_numbers::Rank;
use crate::sync::{AtomicU32, AtomicU64, Ordering, full_fence, spin_hint};
use core::ops::Deref;
use std::time::{Duration, Instant};

/// The locations of the control words of all ranks.
pub trait Locate {
    /// A process that serves a rank.
    type Held: Deref<Target: Network>;
    /// The work of this process while it waits.
    type Idle: Idle;

    /// Returns this rank.
    fn rank(&self) -> Rank;

    /// Returns the number of ranks.
    fn size(&self) -> u32;

    /// Returns a word of this rank.
    fn own(&self, word: WordId) -> &AtomicU64;

    /// Returns a word that this process has mapped, if it has. Loads see what the transport
    /// changes.
    fn mapped(&self, at: WordAt) -> Option<&AtomicU64>;

    /// Whether the processors change mapped words, and not the transport: their operations are
    /// atomic with each other on all nodes.
    fn is_coherent(&self) -> bool;

    /// Returns the process that serves a rank, and the address of the rank's words there.
    fn find(&self, rank: Rank) -> Result<(Self::Held, Remote)>;

    /// Returns the process that serves a rank, if anything may have been sent to it.
    fn known(&self, rank: Rank) -> Option<Self::Held>;

    /// Waits until everything that this process sent is done, but to the process that serves `but`,
    /// if one is given.
    fn flush_all(&self, but: Option<Rank>) -> Result<()>;

    /// Returns how this rank waits for its words.
    fn wait(&self) -> FarWait;

    /// Lets this rank serve other processes while it waits.
    fn serving(&self) -> Option<Serving> {
        None
    }

    /// Whether this rank may sleep while it serves: only requests change its words.
    fn serves_asleep(&self) -> bool {
        true
    }

    /// Returns what this process does while it waits.
    fn idle(&self) -> &Self::Idle;

    /// Lets the host MPI make progress.
    fn progress(&self);

    /// Fails if a process that a waiting rank may depend on is lost. `losses` is 0 at the first
    /// call of a wait, and belongs to this function then.
    fn check(&self, losses: &mut u64) -> Result<()>;
}

/// How a rank waits for its words.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FarWait {
    /// polls: a post does not wake it
    Polls,
    /// spins for this long, and then sleeps until a post rings its doorbell
    Sleeps(Duration),
}

/// The words that a [`Locate`] finds.
#[derive(Clone, Copy)]
pub struct Far<L>(pub L);

/// A change that was begun.
pub enum Begun<H: Deref<Target: Network>> {
    /// it is done; what the word held before
    Done(u64),
    /// the transport will deliver what the word held before
    Sent(H, <H::Target as Network>::Ticket),
}

/// Rounds of polling, each with a yield, before the first sleep.
const AWAKE_ROUNDS: u32 = 100;
/// The first sleep and the longest.
const SLEEP_NS: core::ops::RangeInclusive<u64> = 20_000..=500_000;

/// The longest wait of a rank that serves, in milliseconds.
const SERVE_MS: i32 = 1;
/// Time after which a rank that spins lets the host MPI make progress.
const ADVANCE_AFTER: Duration = Duration::from_millis(1);

/// Returns the address of a word among the words of a rank.
pub fn word_in(words: Remote, word: WordId) -> Remote {
    words.offset(i64::from(word.0) * size_of::<u64>().to_u64().cast_signed())
}

/// Whether both are one process.
fn is_same<H: Deref>(one: &H, other: &H) -> bool {
    core::ptr::addr_eq(&raw const **one, &raw const **other)
}

impl<L: Locate> Far<L> {
    /// Returns a word that the processor may change.
    fn changed_here(&self, at: WordAt) -> Option<&AtomicU64> {
        if self.0.is_coherent() { self.0.mapped(at) } else { None }
    }

    /// Changes two words at once if one process serves both ranks and the transport changes both.
    fn in_one_chain(&self, both: &[(WordAt, Fetch); 2]) -> Result<Option<[u64; 2]>> {
        let [(first, _), (second, _)] = both;
        if self.changed_here(*first).is_some() || self.changed_here(*second).is_some() {
            return Ok(None);
        }
        // An error of one of them says nothing about the other: they are begun one by one then.
        let (Ok(one), Ok(other)) = (self.0.find(first.rank), self.0.find(second.rank)) else {
            return Ok(None);
        };
        if !is_same(&one.0, &other.0) {
            return Ok(None);
        }
        let mut before = [0; 2];
        let words = [word_in(one.1, first.word), word_in(other.1, second.word)];
        one.0.fetch_all(|index| (words[index], both[index].1), &mut before)?;
        Ok(Some(before))
    }

    fn advance(&self, losses: &mut u64) -> Result<()> {
        self.0.check(losses)?;
        self.0.progress();
        Ok(())
    }

    /// Waits until a word of this process, whose changes ring `bell`, satisfies `until`, as
    /// [`Words::wait_own`]. `word`: what a report says that the process waits for.
    pub fn wait_at(
        &self,
        at: (WordId, &AtomicU64, &AtomicU32),
        until: &impl Fn(u64) -> bool,
    ) -> Result<u64> {
        let idle = self.0.idle();
        let mut wait = idle.begin(at.0);
        let value = match self.0.wait() {
            FarWait::Polls => self.poll(at.1, until, &mut wait),
            FarWait::Sleeps(spin) => self.sleep(at, until, (spin, &mut wait)),
        };
        idle.end(wait);
        value
    }

    /// Polls, and yields the core or sleeps between two polls.
    fn poll(
        &self,
        cell: &AtomicU64,
        until: &impl Fn(u64) -> bool,
        wait: &mut <L::Idle as Idle>::Wait,
    ) -> Result<u64> {
        let idle = self.0.idle();
        let (mut rounds, mut sleep, mut checked) = (0, *SLEEP_NS.start(), Instant::now());
        let mut losses = 0;
        loop {
            for _ in 0..idle.spins() {
                // Acquire: data sent before the change of the word are visible after this load.
                let value = cell.load(Ordering::Acquire);
                if until(value) {
                    return Ok(value);
                }
                spin_hint();
            }
            self.advance(&mut losses)?;
            rounds += 1;
            if rounds < AWAKE_ROUNDS {
                std::thread::yield_now();
                continue;
            }
            std::thread::sleep(Duration::from_nanos(sleep));
            sleep = (2 * sleep).min(*SLEEP_NS.end());
            // Measured by the clock, not in rounds: where ranks share cores, a short sleep may last
            // long.
            if checked.elapsed() >= Duration::from_nanos(CHECK_NS) {
                idle.check(wait)?;
                checked = Instant::now();
            }
        }
    }

    /// Spins on a word for a time, then sleeps until a post rings the doorbell of this rank.
    fn sleep(
        &self,
        (word, cell, bell): (WordId, &AtomicU64, &AtomicU32),
        until: &impl Fn(u64) -> bool,
        (spin, wait): (Duration, &mut <L::Idle as Idle>::Wait),
    ) -> Result<u64> {
        let mut losses = 0;
        // Sends what this rank has gathered: another rank may need it before it posts.
        self.0.check(&mut losses)?;
        let asleep = self.0.serves_asleep();
        let mut serving = self.0.serving();
        if let Some(serving) = serving.take_if(|_| asleep) {
            return self.serve((word, cell), until, (spin, wait), serving);
        }
        if let Some(value) = spin_on(cell, until, spin, &mut serving) {
            keep(serving, word);
            return Ok(value);
        }
        drop(serving);
        self.advance(&mut losses)?;
        let idle = (self.0.idle(), wait);
        let first_ns = words::SLEEP_NS_MIN;
        words::sleep_until((cell, bell), until, idle, first_ns, || self.advance(&mut losses))
    }

    /// Serves other processes until one of them has changed a word. Sleeps for requests when none
    /// has arrived for a time.
    fn serve(
        &self,
        (word, cell): (WordId, &AtomicU64),
        until: &impl Fn(u64) -> bool,
        (spin, wait): (Duration, &mut <L::Idle as Idle>::Wait),
        mut serving: Serving,
    ) -> Result<u64> {
        let began = Instant::now();
        let (mut came, mut advanced, mut checked, mut losses) = (began, began, began, 0);
        loop {
            let now = Instant::now();
            let spins = now - came < spin;
            // Acquire: as in `poll`.
            let value = cell.load(Ordering::Acquire);
            if until(value) {
                keep(Some(serving).filter(|_| spins), word);
                return Ok(value);
            }
            if !spins || now - advanced >= ADVANCE_AFTER {
                self.advance(&mut losses)?;
                advanced = now;
            }
            if serving.step(if spins { 0 } else { SERVE_MS }) {
                came = Instant::now();
            } else if spins {
                std::thread::yield_now();
            }
            if now - checked >= Duration::from_nanos(CHECK_NS) {
                self.0.idle().check(wait)?;
                checked = now;
            }
        }
    }
}

/// Leaves requests to the next wait of this rank. The holder of a lock does not wait again soon,
/// but its work may be long.
fn keep(serving: Option<Serving>, word: WordId) {
    if let Some(serving) = serving.filter(|_| !layout::is_of_queue(word)) {
        serving.keep();
    }
}

/// Spins on a word for a time, and serves other processes meanwhile, if this rank can. Yields the
/// core to other ranks each time.
fn spin_on(
    cell: &AtomicU64,
    until: &impl Fn(u64) -> bool,
    spin: Duration,
    serving: &mut Option<Serving>,
) -> Option<u64> {
    let began = Instant::now();
    loop {
        // Acquire: as in `poll`.
        let value = cell.load(Ordering::Acquire);
        if until(value) {
            return Some(value);
        }
        if began.elapsed() >= spin {
            return None;
        }
        if let Some(serving) = serving {
            serving.step(0);
        }
        std::thread::yield_now();
    }
}

impl<L: Locate> Words for Far<L> {
    const FAR: bool = true;
    type Ticket = Begun<L::Held>;

    fn rank(&self) -> Rank {
        self.0.rank()
    }

    fn size(&self) -> u32 {
        self.0.size()
    }

    fn fetch(&self, at: WordAt, op: Fetch) -> Result<u64> {
        self.finish(self.begin(at, op)?)
    }

    fn begin(&self, at: WordAt, op: Fetch) -> Result<Begun<L::Held>> {
        if let Some(cell) = self.changed_here(at) {
            return Ok(Begun::Done(words::fetch(cell, op)));
        }
        let (peer, words) = self.0.find(at.rank)?;
        let ticket = peer.begin(word_in(words, at.word), op)?;
        Ok(Begun::Sent(peer, ticket))
    }

    fn finish(&self, begun: Begun<L::Held>) -> Result<u64> {
        match begun {
            Begun::Done(before) => Ok(before),
            Begun::Sent(peer, ticket) => peer.finish(ticket),
        }
    }

    /// One chain of requests if one process serves both ranks.
    fn fetch_both(&self, both: [(WordAt, Fetch); 2]) -> [Result<u64>; 2] {
        match self.in_one_chain(&both) {
            Ok(Some(before)) => before.map(Ok),
            Ok(None) => {
                let begun = both.map(|(at, op)| self.begin(at, op));
                for begun in begun.iter().flatten() {
                    if let Begun::Sent(peer, _) = begun {
                        peer.send_gathered();
                    }
                }
                begun.map(|ticket| self.finish(ticket?))
            }
            Err(error) => [Err(error.clone()), Err(error)],
        }
    }

    fn post(&self, at: WordAt, add: u64) -> Result<()> {
        if let Some(cell) = self.changed_here(at) {
            let bell = self.0.mapped(WordAt { word: DOORBELL, ..at }).expect("as the word");
            let wake = |bell: &AtomicU32| self.0.idle().wake(bell);
            doorbell::add_and_ring(cell, add, doorbell::in_word(bell), wake);
            return Ok(());
        }
        let (peer, words) = self.0.find(at.rank)?;
        peer.post_and_ring(word_in(words, at.word), add, word_in(words, DOORBELL))
    }

    fn post_awaited(&self, at: WordAt, add: u64) -> Result<()> {
        if self.changed_here(at).is_some() {
            return self.post(at, add);
        }
        let (peer, words) = self.0.find(at.rank)?;
        peer.post_awaited(word_in(words, at.word), add, word_in(words, DOORBELL))
    }

    fn read(&self, at: WordAt) -> Result<u64> {
        if let Some(cell) = self.0.mapped(at) {
            // Acquire: as in `poll`.
            return Ok(cell.load(Ordering::Acquire));
        }
        let (peer, words) = self.0.find(at.rank)?;
        peer.read(word_in(words, at.word))
    }

    fn own(&self, word: WordId) -> u64 {
        // Acquire: as in `poll`.
        self.0.own(word).load(Ordering::Acquire)
    }

    fn set_own(&self, word: WordId, value: u64) {
        // Release: the next process that may change the word learns of this store by a later
        // request of this rank.
        self.0.own(word).store(value, Ordering::Release);
    }

    fn wait_own(&self, word: WordId, until: impl Fn(u64) -> bool) -> Result<u64> {
        let cell = self.0.own(word);
        // Acquire: as in `poll`.
        let value = cell.load(Ordering::Acquire);
        if until(value) {
            return Ok(value);
        }
        self.wait_at((word, cell, doorbell::in_word(self.0.own(DOORBELL))), &until)
    }

    /// Also orders stores of this process to memory of its node. If the processor changes the words
    /// of the rank, waits for the transport's operations on it, because the two ways are not
    /// ordered with each other.
    fn order(&self, rank: Rank) -> Result<()> {
        full_fence();
        let Some(peer) = self.0.known(rank) else { return Ok(()) };
        if self.changed_here(WordAt { rank, word: WordId(0) }).is_some() {
            return peer.flush();
        }
        peer.order();
        Ok(())
    }

    fn is_ordered(&self, before: Rank, next: Rank) -> bool {
        match (self.0.known(before), self.0.known(next)) {
            (None, _) => true,
            // Where the processor changes the words, `order` has flushed the peer.
            (Some(peer), Some(other)) if is_same(&peer, &other) => true,
            (Some(peer), _) => peer.is_idle(),
        }
    }

    fn flush(&self, rank: Rank) -> Result<()> {
        full_fence();
        self.0.known(rank).map_or(Ok(()), |peer| peer.flush())
    }

    fn flush_all(&self) -> Result<()> {
        full_fence();
        self.0.flush_all(None)
    }

    fn flush_others(&self, rank: Rank) -> Result<()> {
        full_fence();
        self.0.flush_all(Some(rank))
    }
}
