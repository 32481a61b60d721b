//! MPI_Win_fence: completes all operations, then runs a barrier. Not for the asserts of the call,
//! which `state` checks.
//!
//! Where each rank has a core of its own, and between nodes, it is a dissemination barrier (foMPI
//! paper, section 2.3):
//!
//! | word of round k | meaning                                                              |
//! |-----------------|----------------------------------------------------------------------|
//! | n               | the rank 2^k below, and the 2^k - 1 below it, have entered barrier n |
//!
//! The rank 2^k below adds 1 per barrier. After ceil(log2 p) rounds a rank knows that all have
//! entered. The numbers only grow and are never reset, so one word per round is enough: a rank may
//! be one barrier before another, and the other waits for *at least n*. The additions may arrive
//! in any order: n of them are n barriers. The rank above waits for each of them, so that no flush
//! has to: a fence without operations waits for one way in each round, and for no answer.
//!
//! # Where ranks share cores
//!
//! In each round of a dissemination barrier a rank may have to wait for a rank that needs its core,
//! so a barrier takes each rank up to ceil(log2 p) turns on a core. There a [`tree`] of counters
//! takes one or two. All ranks of a node must use the same barrier: the first of them chooses
//! when they make their arena.
//!
//! Microseconds per fence on two cores, medians of five runs in turns. The fence of MPICH takes
//! milliseconds there.
//!
//! | ranks, over       | in rounds | tree  | MPI alone |
//! |-------------------|-----------|-------|-----------|
//! | 8, Open MPI 4.1   | 16        | 7     | 21        |
//! | 8, Open MPI 5.0   | 16        | 8     | 16        |
//! | 8, MPICH 4.0      | 20        | 14    |           |
//! | 32, Open MPI 4.1  | 154       | 57    | 162       |
//! | 32, Open MPI 5.0  | 180       | 71    | 177       |
//! | 32, MPICH 4.0     | 600       | 210 to 280 |      |
//!
//! MPICH makes a session of each rank, so that a yield does not reach the other ranks
//! (`sys::process::yields_reach`): a waiting rank sleeps, and each sleep takes a wake. A smaller
//! fan-in adds levels, and each level takes one more turn: with 16 instead of 64, 32 ranks over
//! Open MPI take 84.
//!
//! # Over many nodes
//!
//! A barrier over nodes is three barriers: of the ranks of each node, of the nodes' leaders (the
//! first rank of each), and of the ranks of each node again. Only posts of the second one go
//! through devices: ceil(log2 nodes) of each leader, none of other ranks. In the words of a node a
//! barrier over nodes is two barriers: its number n is numbers 2n - 1 and 2n there.
//!
//! Up to [`DIRECT_NODES_MAX`] nodes the leaders tell each other at once, in one trip, and no rank
//! waits for an acknowledgement of its puts. A rank that is no leader sends a [`mark`] behind its
//! puts to the process that serves a node. The leader of a node tells each other leader, behind its
//! own puts, how many ranks of its node have sent a mark there, and waits for as many marks as it
//! was told of.
//!
//! | word, for odd and for even barriers | meaning                                              |
//! |-------------------------------------|------------------------------------------------------|
//! | [`MARKED`], of a node               | bit j: this rank has sent a mark to node j           |
//! | [`arrivals`], bits 0 to 39          | the leaders that have told this one, ever            |
//! | [`arrivals`], bits 40 to 63         | the marks that they have named, ever                 |
//! | [`marks`]                           | the marks that have come, ever                       |
//!
//! A leader may be one barrier before another, never two: the other one has told it in the barrier
//! between. So the words of odd barriers show those of one barrier alone.
//!
//! A fence with MPI_MODE_NOPRECEDE ends no epoch, so it need not be a barrier (MPI-4.1 §12.5.1): a
//! rank that is alone on its node tells the others ([`OpeningFence`]), and waits for them at its
//! first access, or when it enters the next fence. Without the latter it could be two barriers
//! before another one.
//!
//! [`arrivals`]: layout::arrivals
//! [`marks`]: layout::marks

pub mod tree;

use crate::error::Result;
use crate::fabric::layout::{self, ENTERED, MARKED};
use crate::fabric::{WordAt, Words};
use crate::rank_numbers::Rank;
use crate::sync::{AtomicU64, Ordering};

/// The barrier that the ranks of some words use. All of them use the same one, always.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BarrierKind {
    /// dissemination, in rounds
    Rounds,
    /// a [`tree`] whose counters count this many ranks at most
    Tree {
        /// at least 2
        fan_in: u32,
    },
}

/// The most nodes whose leaders tell each other at once.
pub const DIRECT_NODES_MAX: u32 = 8;
/// Bits of a word that count the leaders that have told this one.
const ARRIVAL_BITS: u32 = 40;

impl BarrierKind {
    /// The barrier of ranks that share cores.
    pub const OF_SHARED_CORES: BarrierKind = BarrierKind::Tree { fan_in: 64 };
}

/// Waits until all ranks have entered the barrier number `number`. The first is 1, and each rank
/// enters all of them, in their order.
#[inline]
pub fn barrier(words: &impl Words, kind: BarrierKind, number: u64) -> Result<()> {
    assert!(number > 0);
    match kind {
        BarrierKind::Rounds => in_rounds(words, number),
        BarrierKind::Tree { fan_in } => tree::barrier(words, fan_in, number),
    }
}

/// [`barrier`] by dissemination.
fn in_rounds(words: &impl Words, number: u64) -> Result<()> {
    let (me, size) = (words.rank().0, words.size());
    for round in 0..rounds(size) {
        // No overflow: ranks are at most `RANKS_MAX`, and 2^round is less than twice that.
        let (rank, word) = (Rank((me + (1 << round)) % size), layout::fence(round));
        words.post_awaited(WordAt { rank, word }, 1)?;
        words.wait_own(word, |reached| reached >= number)?;
    }
    Ok(())
}

/// Returns the ranks that have made fewer calls than this one, each of `per_call` barriers, as far
/// as this rank knows now. `words` reads the words of all ranks.
pub fn absent(words: &impl Words, per_call: u64) -> Vec<Rank> {
    let size = words.size();
    let read = |rank, word| words.read(WordAt { rank, word }).unwrap_or(u64::MAX);
    let entered = |rank: Rank| {
        // One rank alone changes the word of round 0, once per barrier. A tree does not use it, and
        // dissemination does not use the other word.
        let by_rounds = read(Rank((rank.0 + 1) % size), layout::fence(0));
        by_rounds.max(read(rank, layout::ENTERED)).div_ceil(per_call)
    };
    let here = entered(words.rank());
    Rank::all(size).filter(|rank| size > 1 && entered(*rank) < here).collect()
}

/// MPI_Win_fence (MPI-4.1 §12.5.1): the end of the epoch before and the begin of the next.
/// `precede` is false (MPI_MODE_NOPRECEDE) if no operation was sent since the last synchronisation.
pub fn fence(words: &impl Words, kind: BarrierKind, number: u64, precede: bool) -> Result<()> {
    if precede {
        words.flush_all()?;
    }
    barrier(words, kind, number)
}

/// [`fence`] over nodes, after the operations of this rank are done at their targets, but for puts
/// behind which it has sent a [`mark`]: bit j of `marked` stands for node j. `near` reaches the
/// ranks of this node, `leads` the leaders of all nodes. `opening`: the fence before, if it has not
/// waited. `kind`: the barrier of the ranks of this node.
pub fn fence_over_nodes(
    (near, leads): (&impl Words, &impl Words),
    opening: &OpeningFence,
    (kind, number): (BarrierKind, u64),
    marked: u64,
) -> Result<()> {
    opening.end(leads)?;
    near.set_own(MARKED, marked);
    barrier(near, kind, 2 * number - 1)?;
    match (near.rank() == Rank(0), leads.size() <= DIRECT_NODES_MAX) {
        (true, true) => directly(near, leads, number)?,
        (true, false) => in_rounds(leads, number)?,
        (false, _) => {}
    }
    barrier(near, kind, 2 * number)
}

/// Lets the fence `number` wait for all puts of this rank to the process that serves a node.
/// Returns whether this took a mark. There are at most [`DIRECT_NODES_MAX`] nodes.
pub fn mark((near, leads): (&impl Words, &impl Words), node: Rank, number: u64) -> Result<bool> {
    leads.order(node)?;
    if near.rank() == Rank(0) {
        // What it tells the leader of that node arrives behind them.
        return Ok(false);
    }
    let at = WordAt { rank: node, word: layout::marks(number) };
    leads.post_awaited(at, 1).map(|()| true)
}

/// A fence of this rank that has not waited for the other ranks.
#[derive(Default)]
pub struct OpeningFence {
    /// its number, or 0
    number: AtomicU64,
}

impl OpeningFence {
    /// Enters the fence `number`, to which this rank has sent no operation since the one before
    /// (MPI_MODE_NOPRECEDE), and waits for no rank: a call that accesses a target waits by
    /// [`OpeningFence::end`]. Returns whether the window lets it do so: if the rank is alone on its
    /// node, and there are at most [`DIRECT_NODES_MAX`] nodes. Otherwise does nothing.
    pub fn begin(
        &self,
        (near, leads): (&impl Words, &impl Words),
        kind: BarrierKind,
        number: u64,
    ) -> Result<bool> {
        if near.size() > 1 || leads.size() > DIRECT_NODES_MAX {
            return Ok(false);
        }
        self.end(leads)?;
        near.set_own(MARKED, 0);
        // Both wait for no rank; a tree counts the barriers.
        barrier(near, kind, 2 * number - 1)?;
        tell_leaders(near, leads, number)?;
        barrier(near, kind, 2 * number)?;
        // Relaxed, as in `end`: one thread of this process is in a collective call on the window.
        self.number.store(number, Ordering::Relaxed);
        Ok(true)
    }

    /// Waits until all ranks have entered the fence, if no call has waited for them. Threads that
    /// access targets at the same time all wait.
    pub fn end(&self, leads: &impl Words) -> Result<()> {
        let number = self.number.load(Ordering::Relaxed);
        if number > 0 {
            await_leaders(leads, number)?;
            self.number.store(0, Ordering::Relaxed);
        }
        Ok(())
    }
}

/// The barrier of few leaders: each tells all others, and waits for their marks.
fn directly(near: &impl Words, leads: &impl Words, number: u64) -> Result<()> {
    tell_leaders(near, leads, number)?;
    await_leaders(leads, number)
}

fn tell_leaders(near: &impl Words, leads: &impl Words, number: u64) -> Result<()> {
    let (me, nodes) = (leads.rank().0, leads.size());
    leads.set_own(ENTERED, number);
    for node in (1..nodes).map(|above| (me + above) % nodes) {
        let mut marks = 0;
        for rank in Rank::all(near.size()) {
            marks += near.read(WordAt { rank, word: MARKED })? >> node & 1;
        }
        let at = WordAt { rank: Rank(node), word: layout::arrivals(number) };
        leads.post_awaited(at, 1 + (marks << ARRIVAL_BITS))?;
    }
    Ok(())
}

fn await_leaders(leads: &impl Words, number: u64) -> Result<()> {
    let (others, turn) = (u64::from(leads.size() - 1), number.div_ceil(2));
    let told = leads.wait_own(layout::arrivals(number), |told| {
        told & ((1 << ARRIVAL_BITS) - 1) >= others * turn
    })?;
    let behind = |marks: u64| (told >> ARRIVAL_BITS).wrapping_sub(marks) << ARRIVAL_BITS;
    leads.wait_own(layout::marks(number), |marks| behind(marks) == 0).map(|_| ())
}

/// The number of rounds until a rank knows that all have entered: the logarithm of the size,
/// rounded up.
#[inline]
fn rounds(size: u32) -> u32 {
    size.next_power_of_two().trailing_zeros()
}
