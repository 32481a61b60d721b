//! General active target synchronisation over many nodes: post and start with memory for the ranks
//! in use, not for all ([`super::pscw`] has complete and wait, and post and start within a node).
//!
//! The paper (section 2.3) keeps the posts that wait for their start in a list at the origin.
//! Posters take the elements of that list from a free storage there. A post then takes several
//! round trips, and blocks when there are more posts than the origin expected. Here the *poster*
//! keeps the list of the origins of its current exposure, in its own memory, and makes it as long
//! as it needs. A post cannot run out of memory at another rank, and waits for nothing.
//!
//! | word     | kind      | meaning                                                            |
//! |----------|-----------|--------------------------------------------------------------------|
//! | list     | owned     | pairs: number of an exposure << 24, rank of an origin; its inverse |
//! | POSTS    | contended | the number of posts that named this rank, ever                     |
//! | COMPLETE | contended | the number of complete access epochs that named this rank, ever    |
//!
//! A post stores the list, then adds 1 to the POSTS of each origin, without an answer. A start of k
//! targets sleeps until POSTS counts k posts that no start has used, then reads the lists of the k
//! targets, all at once. An origin remembers the number that it used last of each target that it
//! has ever started to.
//!
//! *A list need not be read in one step.* It changes while others read it, and a device may copy
//! even a word in parts (decision 0005). But each pair is complete in itself: it says that exposure
//! n is open to rank r, and that is true until rank r has completed, because the poster cannot post
//! again before. So an origin that finds its rank with a number that it has not used yet has found
//! its post, whatever else it read, even if the poster has not finished its list or its posts; and
//! the number that it used last is old. It can find no other number: the words of one list are gone
//! before the first of the next is stored. For the same reason a pair whose words agree was read
//! whole: a mixture of two lists has a word of the first list beside one that was read later, and
//! that word is gone by then; and a mixture of a list with zeros agrees only if no byte differs.
//!
//! *Each missing target will post.* The origin reads POSTS before the lists. A target whose list
//! did not name this rank then had not stored it, so its post is not among those counted. So the
//! origin waits for m missing targets until POSTS has grown by m more, and then reads only their
//! lists again. The wait ends, because these posts will be made.
//!
//! *Few reads are wasted.* A post that wakes a start and is not from one of its targets is from
//! another rank, for a start that is still to come, or from a target whose list was read before the
//! post arrived. Each such post makes at most one list be read once more: a start of k targets
//! costs k reads and one for each such post, and n posts cost at most 2n reads, ever. No read is
//! repeated without a new post.
//!
//! *Numbers* are 40 bits wide: a million posts per second for twelve days.

use crate::error::Result;
use crate::fabric::layout::{COMPLETE, POSTS, RANKS_MAX};
use crate::fabric::{WordAt, Words};
use crate::number::Number;
use crate::rank_numbers::Rank;
use std::collections::BTreeMap;

/// The lists of all ranks.
pub trait Lists {
    /// Stores a list in place of this rank's list. A rank that has read a word of the new list
    /// reads no word of the old one afterwards. Waits for no other rank.
    fn publish(&self, list: &[u64]) -> Result<()>;
    /// Reads the lists of `targets`, all at once, and passes each to `see`. Either one word of a
    /// pair is read completely before the other, or each of the two is read whole.
    fn read(&self, targets: &[Rank], see: impl FnMut(Rank, &[u64])) -> Result<()>;
}

/// The posts that a process has made.
#[derive(Debug, Default)]
pub struct Posted {
    number: u64,
}

/// The posts that the starts of a process have used.
#[derive(Debug, Default)]
pub struct Started {
    /// their number, ever
    count: u64,
    /// the number of the last one of each target
    last: BTreeMap<Rank, u64>,
}

const RANK_BITS: u32 = 24;
const _: () = assert!(RANKS_MAX < 1 << RANK_BITS);

/// The pair of a list that says: the exposure `number` is open to `origin`.
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

/// MPI_Win_start: waits until each rank of `group` (the targets) has posted, and uses these posts.
pub fn start(
    words: &impl Words,
    lists: &impl Lists,
    started: &mut Started,
    group: &[Rank],
) -> Result<()> {
    let mut missing = group.to_vec();
    let mut awaited = started.count + missing.len().to_u64();
    while !missing.is_empty() {
        let posts = words.wait_own(POSTS, |posts| posts >= awaited)?;
        let mut left = Vec::new();
        lists.read(&missing, |target, list| {
            if !started.uses(target, words.rank(), list) {
                left.push(target);
            }
        })?;
        awaited = posts + left.len().to_u64();
        missing = left;
    }
    Ok(())
}

/// MPI_Win_complete: adds to the COMPLETE of each rank of `group` (the targets), behind the data
/// that was sent to it before: one road carries data and words, so a target that sees the addition
/// sees the data. [`super::pscw::complete`] serves any road. Everything is done when this returns,
/// with one wait: gets have arrived, the buffers of puts may be used again, and a target that knows
/// of the complete from elsewhere, from a barrier for example, finds with MPI_Win_test that its
/// exposure is over. After an error the other targets are still notified.
pub fn complete(words: &impl Words, group: &[Rank]) -> Result<()> {
    let tell = |rank: Rank| {
        words.order(rank)?;
        words.post(WordAt { rank, word: COMPLETE }, 1)
    };
    let told = group.iter().map(|rank| tell(*rank)).fold(Ok(()), Result::and);
    let done = group.iter().map(|rank| words.flush(*rank)).fold(Ok(()), Result::and);
    told.and(done)
}

impl Started {
    /// Uses the post of `target` to `me`, if its list has one that is not used.
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

    /// The number of targets that it remembers.
    #[cfg(test)]
    pub fn targets(&self) -> usize {
        self.last.len()
    }
}
