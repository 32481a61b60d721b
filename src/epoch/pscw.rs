//! General active target synchronisation: post, start, complete, wait (foMPI paper, section 2.3;
//! MPI-4.1 §12.5.2). Not for deciding whether a call is legal.
//!
//! | word     | kind      | meaning                                                              |
//! |----------|-----------|----------------------------------------------------------------------|
//! | posted   | contended | bit r: rank r has posted to this rank, and this rank has not started |
//! | COMPLETE | contended | the number of complete access epochs that named this rank, ever      |
//!
//! The paper keeps the posts that wait for their start in a list, whose elements come from a free
//! storage at the origin. That takes memory O(k), but a post takes several round trips, and must
//! block if k was guessed too small. On one node a bit per pair of ranks takes less memory than
//! such a list (64 ranks: one word), a post is one addition without an answer, and it can neither
//! block nor run out of elements. A rank posts to the same origin again only after its wait, that
//! is, after that origin's complete and start, and the start took the bit away. So an addition
//! never carries into the next bit. For communicators of many nodes, where a bit per pair is O(p)
//! in each process, [`super::exposure`] takes over.

use crate::error::Result;
use crate::fabric::layout;
use crate::fabric::{Fetch, WordAt, WordId, Words};
use crate::rank_numbers::Rank;

/// MPI_Win_post: notifies each rank of `group` (the origins) that this rank's memory is exposed.
pub fn post(words: &impl Words, group: impl IntoIterator<Item = Rank>) -> Result<()> {
    let (word, bit) = layout::posted(words.rank());
    for rank in group {
        words.post(WordAt { rank, word }, bit)?;
    }
    Ok(())
}

/// MPI_Win_start: waits until each rank of `group` (the targets) has posted, and takes the posts.
/// It waits once, and takes the posts together, for ranks that follow each other in the group and
/// have their bits in one word.
pub fn start(words: &impl Words, group: impl IntoIterator<Item = Rank>) -> Result<()> {
    let mut awaited: Option<(WordId, u64)> = None;
    for rank in group {
        let (word, bit) = layout::posted(rank);
        awaited = match awaited {
            Some((same, bits)) if same == word => Some((word, bits | bit)),
            Some((other, bits)) => {
                take(words, other, bits)?;
                Some((word, bit))
            }
            None => Some((word, bit)),
        };
    }
    awaited.map_or(Ok(()), |(word, bits)| take(words, word, bits))
}

/// Whether `target` has posted to this rank, and this rank has not used the post. For a report.
pub fn has_posted(words: &impl Words, target: Rank) -> bool {
    let (word, bit) = layout::posted(target);
    words.own(word) & bit != 0
}

/// Whether `origin` has used all posts of this rank to it. For a report.
pub fn has_started(words: &impl Words, origin: Rank) -> bool {
    let (word, bit) = layout::posted(words.rank());
    words.read(WordAt { rank: origin, word }).is_ok_and(|posted| posted & bit == 0)
}

fn take(words: &impl Words, word: WordId, bits: u64) -> Result<()> {
    words.wait_own(word, |posted| posted & bits == bits)?;
    let before =
        words.fetch(WordAt { rank: words.rank(), word }, Fetch::Add(bits.wrapping_neg()))?;
    assert!(before & bits == bits);
    Ok(())
}

/// MPI_Win_complete: completes the operations of the epoch, then notifies each rank of `group` (the
/// targets). One flush for all: an access epoch reaches no other rank, and the flushes overlap.
pub fn complete(words: &impl Words, group: impl IntoIterator<Item = Rank>) -> Result<()> {
    words.flush_all()?;
    for rank in group {
        words.post(WordAt { rank, word: layout::COMPLETE }, 1)?;
    }
    Ok(())
}

/// MPI_Win_wait: waits until `complete_count` access epochs that named this rank are complete,
/// counted from the window's creation: the sum of the sizes of all groups that this rank has posted
/// to.
pub fn wait(words: &impl Words, complete_count: u64) -> Result<()> {
    words.wait_own(layout::COMPLETE, |count| count >= complete_count).map(|_| ())
}

/// MPI_Win_test: whether [`wait`] would return at once.
pub fn test(words: &impl Words, complete_count: u64) -> bool {
    words.own(layout::COMPLETE) >= complete_count
}
