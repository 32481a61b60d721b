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

pub mod tree;

use crate::error::Result;
use crate::fabric::layout;
use crate::fabric::{WordAt, Words};
use crate::rank_numbers::Rank;

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

/// [`barrier`] over nodes: `near` reaches the ranks of this node, `leads` the leaders of all nodes;
/// only a leader has `leads`. `kind`: the barrier of the ranks of this node.
pub fn barrier_over_nodes<N: Words, L: Words>(
    near: &N,
    leads: Option<&L>,
    kind: BarrierKind,
    number: u64,
) -> Result<()> {
    assert!(leads.is_some() == (near.rank() == Rank(0)));
    barrier(near, kind, 2 * number - 1)?;
    if let Some(leads) = leads {
        in_rounds(leads, number)?;
    }
    barrier(near, kind, 2 * number)
}

/// [`fence`] over nodes: `far` is all connections of this process to other nodes. Its flush waits
/// only where operations are under way.
pub fn fence_over_nodes<N: Words, F: Words, L: Words>(
    (near, far, leads): (&N, &F, Option<&L>),
    kind: BarrierKind,
    number: u64,
    precede: bool,
) -> Result<()> {
    if precede {
        near.flush_all()?;
        far.flush_all()?;
    }
    barrier_over_nodes(near, leads, kind, number)
}

/// The number of rounds until a rank knows that all have entered: the logarithm of the size,
/// rounded up.
#[inline]
fn rounds(size: u32) -> u32 {
    size.next_power_of_two().trailing_zeros()
}
