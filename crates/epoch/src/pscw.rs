//! General active target synchronisation: post, start, complete, wait (foMPI paper, section 2.3;
//! MPI-4.1 §12.5.2). Not for deciding whether a call is legal.
//!
//! | word      | kind      | meaning                                                             |
//! |-----------|-----------|---------------------------------------------------------------------|
//! | posted    | contended | bit r: whether rank r has posted to this rank an odd number of times |
//! | made      | owned     | bit r: the same for the posts of this rank to rank r                 |
//! | used      | owned     | bit r: the same for the posts of rank r that this rank has used      |
//! | COMPLETE  | contended | the number of complete access epochs that named this rank, ever     |
//!
//! The paper keeps the posts that wait for their start in a list, whose elements come from a free
//! storage at the origin. That takes memory O(k), but a post takes several round trips, and must
//! block if k was guessed too small. On one node a bit per pair of ranks takes less memory than
//! such a list (64 ranks: one word), a post is one addition without an answer, and it can neither
//! block nor run out of elements. For communicators of many nodes, where a bit per pair is O(p) in
//! each process, [`super::exposure`] takes over.
//!
//! | posted and used, bit r | meaning                                                      |
//! |------------------------|--------------------------------------------------------------|
//! | equal                  | this rank has used all posts of rank r                       |
//! | different              | rank r has posted, and this rank has not started an epoch yet |
//!
//! A rank posts to the same origin again only after its wait, that is, after that origin's complete
//! and start, and the start used the post. So at most one post of a rank is not used. A rank adds
//! its bit with its first, third, .. post to an origin, and takes it away with the others; `made`
//! says which is next. So the bit is 0 or 1, and no addition carries into the next bit. A start
//! changes `used` only, which no other rank waits for. If it took the bits away from `posted`, it
//! would have to fetch a line for itself alone that the poster has just changed.

use crate::error::Result;
use crate::fabric::layout;
use crate::fabric::{WordAt, WordId, Words};
use crate::rank_numbers::Rank;

/// MPI_Win_post: notifies each rank of `group` (the origins) that this rank's memory is exposed,
/// behind what this rank has stored into it.
pub fn post(words: &impl Words, group: impl IntoIterator<Item = Rank>) -> Result<()> {
    let (word, bit) = layout::posted(words.rank());
    for rank in group {
        let (made, to) = layout::made(rank, words.size());
        let before = words.own(made);
        let add = if before & to == 0 { bit } else { bit.wrapping_neg() };
        words.set_own(made, before ^ to);
        words.post(WordAt { rank, word }, add)?;
    }
    Ok(())
}

/// The bits of one word that a start waits for.
#[derive(Clone, Copy)]
struct Awaited {
    posted: WordId,
    used: WordId,
    bits: u64,
}

/// MPI_Win_start: waits until each rank of `group` (the targets) has posted, and uses the posts.
/// It waits once, and uses the posts together, for ranks that follow each other in the group and
/// have their bits in one word.
pub fn start(words: &impl Words, group: impl IntoIterator<Item = Rank>) -> Result<()> {
    let mut awaited: Option<Awaited> = None;
    for rank in group {
        let ((posted, bit), (used, _)) = (layout::posted(rank), layout::used(rank, words.size()));
        awaited = match awaited {
            Some(same) if same.posted == posted => Some(Awaited { bits: same.bits | bit, ..same }),
            other => {
                other.map_or(Ok(()), |other| take(words, other))?;
                Some(Awaited { posted, used, bits: bit })
            }
        };
    }
    awaited.map_or(Ok(()), |awaited| take(words, awaited))
}

/// Waits for the posts, and uses them.
fn take(words: &impl Words, Awaited { posted, used, bits }: Awaited) -> Result<()> {
    let before = words.own(used);
    words.wait_own(posted, |posted| (posted ^ before) & bits == bits)?;
    words.set_own(used, before ^ bits);
    Ok(())
}

/// Whether `target` has posted to this rank, and this rank has not used the post. For a report.
pub fn has_posted(words: &impl Words, target: Rank) -> bool {
    let ((posted, bit), (used, _)) = (layout::posted(target), layout::used(target, words.size()));
    (words.own(posted) ^ words.own(used)) & bit != 0
}

/// Whether `origin` has used all posts of this rank to it. For a report.
pub fn has_started(words: &impl Words, origin: Rank) -> bool {
    let (used, from) = layout::used(words.rank(), words.size());
    let (made, to) = layout::made(origin, words.size());
    let used = words.read(WordAt { rank: origin, word: used });
    used.is_ok_and(|used| (used & from == 0) == (words.own(made) & to == 0))
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
