//! MPI_Win_fence: everything sent is done, then a dissemination barrier (foMPI paper, section 2.3).
//! Not for the asserts of the call, which `state` judges.
//!
//! | word of round k | meaning                                                              |
//! |-----------------|----------------------------------------------------------------------|
//! | n               | the rank 2^k below, and the 2^k - 1 below it, have entered barrier n |
//!
//! The rank 2^k below adds 1 per barrier. After ceil(log2 p) rounds a rank has heard of all. The
//! numbers only grow and are never reset, so one word per round is enough: a rank may be one
//! barrier ahead of another, and *at least n* is what the other waits for. Additions need no order
//! between them: they may land in any, and n of them are n barriers.
//!
//! # Over many nodes
//!
//! Three barriers: of the ranks of each node, of the nodes' leaders (the first rank of each), and
//! of the ranks of each node again. Through devices go only the second's posts: ceil(log2 nodes) of
//! each leader, none of other ranks. In the words of a node these are two barriers, so number n of
//! all is numbers 2n - 1 and 2n there.

use crate::error::Result;
use crate::fabric::layout;
use crate::fabric::{Rank, WordAt, Words};

/// Waits until all ranks have called the barrier number `number`; the first is 1, and each rank
/// calls them all, in their order.
pub fn barrier(words: &impl Words, number: u64) -> Result<()> {
    assert!(number > 0);
    let (me, size) = (words.rank().0, words.size());
    for round in 0..rounds(size) {
        let above = (u64::from(me) + (1 << round)) % u64::from(size);
        let (rank, word) = (Rank(above as u32), layout::fence(round));
        words.post(WordAt { rank, word }, 1)?;
        words.wait_own(word, |reached| reached >= number)?;
    }
    Ok(())
}

/// The ranks that have made fewer calls than this one, each of `per_call` barriers, as far as it is
/// known now: it may look into the words of all of them.
pub fn absent(words: &impl Words, per_call: u64) -> Vec<u32> {
    let size = words.size();
    // The word of round 0 is changed by one rank alone, once a barrier.
    let entered = |rank: u32| {
        let at = WordAt { rank: Rank((rank + 1) % size), word: layout::fence(0) };
        words.read(at).unwrap_or(u64::MAX).div_ceil(per_call)
    };
    let here = entered(words.rank().0);
    (0..size).filter(|rank| size > 1 && entered(*rank) < here).collect()
}

/// MPI_Win_fence (MPI-4.1 §12.5.1): the end of the epoch before and the begin of the next. Nothing
/// was sent since the last synchronisation if not `precede` (MPI_MODE_NOPRECEDE).
pub fn fence(words: &impl Words, number: u64, precede: bool) -> Result<()> {
    if precede {
        words.flush_all()?;
    }
    barrier(words, number)
}

/// [`barrier`] over nodes: `near` reaches the ranks of this node, `leads` the leaders of all nodes.
/// Only a leader has them.
pub fn barrier_over_nodes<N: Words, L: Words>(
    near: &N,
    leads: Option<&L>,
    number: u64,
) -> Result<()> {
    assert!(leads.is_some() == (near.rank() == Rank(0)));
    barrier(near, 2 * number - 1)?;
    if let Some(leads) = leads {
        barrier(leads, number)?;
    }
    barrier(near, 2 * number)
}

/// [`fence`] over nodes: `far` are all roads of this process to other nodes, and waits only where
/// something is under way.
pub fn fence_over_nodes<N: Words, F: Words, L: Words>(
    (near, far, leads): (&N, &F, Option<&L>),
    number: u64,
    precede: bool,
) -> Result<()> {
    if precede {
        near.flush_all()?;
        far.flush_all()?;
    }
    barrier_over_nodes(near, leads, number)
}

/// Rounds until a rank has heard of all: the logarithm of the size, rounded up.
fn rounds(size: u32) -> u32 {
    size.next_power_of_two().trailing_zeros()
}
