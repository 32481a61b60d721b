//! General active target synchronisation over many nodes: post and start with memory for the ranks
//! in use, not for all ([`super::pscw`] has complete and wait, and post and start within a node).
//!
//! The paper (section 2.3) keeps the posts that wait for their start in a list at the origin, whose
//! elements posters take from a free storage there: a post takes several round trips, and blocks
//! when there are more of them than the origin thought. Here the *poster* keeps the list, in its
//! own memory, which it makes as long as it needs: whom its current exposure names. A post cannot
//! run out of anything, and waits for nothing.
//!
//! | word     | kind      | meaning                                                            |
//! |----------|-----------|--------------------------------------------------------------------|
//! | list     | owned     | pairs: number of an exposure << 24, rank of an origin; its inverse |
//! | POSTS    | contended | the bell: how many posts named this rank, ever                     |
//! | COMPLETE | contended | how many access epochs that named this rank are complete, ever     |
//!
//! Post: the list is stored, then the bell of each origin is rung, without an answer. Start of k
//! targets: sleep until k bells rang that no start has used up, then read the lists of the k
//! targets, all at once. An origin remembers per target that it has ever started to which number
//! it used last.
//!
//! *A list is never whole, and need not be.* It changes while others read it, and a device may copy
//! even a word in parts (decision 0005). But each pair says by itself: exposure n is open to rank
//! r, and it is true until rank r has completed: the poster cannot post again before. So an origin
//! that finds its rank with a number that it has not used yet has found its post, whatever it saw
//! beside it, even if the poster is not done with its list or its bells; and the number that it
//! used last is old. It can see no other: the words of one list are gone before the first of the
//! next is stored. For the same reason a pair that agrees was seen whole: what mixes two lists has
//! a word of the first beside one that was read later, and is gone; and what mixes a list with
//! nothing agrees only if no byte is another for it.
//!
//! *Who is missing will ring.* The bell is read before the lists. A target whose list did not name
//! this rank then had not stored it, so its bell is not among those counted. Thus m missing targets
//! are waited for until m more bells have rung, then only they are read again. It cannot wait in
//! vain: those bells come.
//!
//! *Few are read in vain.* Of the bells that woke a start and were not those of its targets, each
//! is of another rank, which posted for a start that is still to come, or of a target whose post
//! was found before its bell rang. Each of these makes at most one list be read once more: a start
//! of k targets costs k reads and one for each such bell, and n posts cost at most 2n reads, ever.
//! No read is repeated without a bell.
//!
//! *Numbers* are 40 bits wide: a million posts per second for twelve days.

use crate::error::Result;
use crate::fabric::layout::{COMPLETE, POSTS, RANKS_MAX};
use crate::fabric::{Rank, WordAt, Words};
use std::collections::BTreeMap;

/// The lists of all ranks.
pub trait Lists {
    /// Stores a list in place of this rank's list. Nothing of the old one is seen by who has seen
    /// some of the new one. Waits for nobody.
    fn publish(&self, list: &[u64]) -> Result<()>;
    /// Reads the lists of `targets`, all at once, and shows each to `see`. Of the two words of a
    /// pair all of one is read before the other, or each is seen whole.
    fn read(&self, targets: &[Rank], see: impl FnMut(Rank, &[u64])) -> Result<()>;
}

/// What a process remembers of the posts that it made.
#[derive(Debug, Default)]
pub struct Posted {
    number: u64,
}

/// What a process remembers of the posts that its starts have used up.
#[derive(Debug, Default)]
pub struct Started {
    /// how many, ever
    count: u64,
    /// the number of the last one of each target
    last: BTreeMap<Rank, u64>,
}

const RANK_BITS: u32 = 24;
const _: () = assert!(RANKS_MAX < 1 << RANK_BITS);

/// What a list says: the exposure `number` is open to `origin`.
fn entry(number: u64, origin: Rank) -> [u64; 2] {
    let word = number << RANK_BITS | u64::from(origin.0);
    [word, !word]
}

/// MPI_Win_post: opens an exposure epoch to `group` (the origins).
pub fn post(
    words: &impl Words,
    lists: &impl Lists,
    posted: &mut Posted,
    group: &[Rank],
) -> Result<()> {
    posted.number += 1;
    assert!(posted.number < 1 << (u64::BITS - RANK_BITS));
    let list: Vec<u64> = group.iter().flat_map(|origin| entry(posted.number, *origin)).collect();
    lists.publish(&list)?;
    for &rank in group {
        words.post(WordAt { rank, word: POSTS }, 1)?;
    }
    Ok(())
}

/// MPI_Win_start: waits until each rank of `group` (the targets) has posted, and uses the posts up.
pub fn start(
    words: &impl Words,
    lists: &impl Lists,
    started: &mut Started,
    group: &[Rank],
) -> Result<()> {
    let mut missing = group.to_vec();
    let mut awaited = started.count + missing.len() as u64;
    while !missing.is_empty() {
        let bells = words.wait_own(POSTS, |bells| bells >= awaited)?;
        let mut left = Vec::new();
        lists.read(&missing, |target, list| {
            if !started.uses(target, words.rank(), list) {
                left.push(target);
            }
        })?;
        awaited = bells + left.len() as u64;
        missing = left;
    }
    Ok(())
}

/// MPI_Win_complete: `finish` waits until the buffers of the access epoch may be used again, then
/// each rank of `group` (the targets) is told, behind what was sent to it before: one road carries
/// data and words, so who sees the post sees the data; [`super::pscw::complete`] serves any road.
/// All have been told when this returns: a target that hears of it in another way, from a barrier
/// say, finds with MPI_Win_test that its exposure is over.
pub fn complete(
    words: &impl Words,
    finish: impl FnOnce() -> Result<()>,
    group: &[Rank],
) -> Result<()> {
    finish()?;
    for &rank in group {
        words.order(rank)?;
        words.post(WordAt { rank, word: COMPLETE }, 1)?;
    }
    group.iter().try_for_each(|rank| words.flush(*rank))
}

impl Started {
    /// Uses the post of `target` to `me` up, if its list has one that is not used.
    fn uses(&mut self, target: Rank, me: Rank, list: &[u64]) -> bool {
        let last = self.last.get(&target).copied().unwrap_or(0);
        let pairs = list.chunks_exact(2).map(|pair| (pair[0] >> RANK_BITS, pair));
        let mine = pairs.filter(|(number, pair)| **pair == entry(*number, me));
        let found = mine.map(|(number, _)| number).find(|number| *number != last);
        if let Some(number) = found {
            self.last.insert(target, number);
            self.count += 1;
        }
        found.is_some()
    }

    /// How many targets it knows.
    #[cfg(test)]
    pub fn targets(&self) -> usize {
        self.last.len()
    }
}
