//! Atomicity of accumulates as a whole: each takes effect for all others at one time, however many
//! words it changes (docs/decisions/0004). Not for the operations on the words.
//!
//! A call on *several* words holds the target's accumulate lock exclusively from its beginning to
//! its end, and changes each word by one atomic operation. A call on a *single* word, which is one
//! atomic operation too, takes no lock. It checks whether another call holds the lock:
//!
//! | words are           | a call on a single word                                              |
//! |---------------------|----------------------------------------------------------------------|
//! | on this node        | checks its pass first: without one, the call takes the lock          |
//! | reached by a device | checks the lock afterwards: while it is held, the call waits for it  |
//!
//! On one node ([`super::passes`]) the holder of the lock withdraws the passes before it changes
//! words, and no rank gets a pass while the lock is held. So for these calls a check of the pass is
//! a check of the lock. Calls on single words that take the lock are holders, too.
//!
//! All calls on a window check on the same side of their operation.
//!
//! # Why that is enough
//!
//! Say that X is before Y if X ended before Y began, or if both are on one word and X's operation
//! on it was the first. Calls are atomic as a whole if this relation has no cycle: then there is an
//! order of all calls that agrees with all answers. Calls that hold the lock are in the order of
//! the lock. A cycle of single calls alone is impossible, because "before" agrees with the times of
//! their operations. Take a cycle with one holder L in it, and single calls S1 to Sn between L and
//! L again. All their operations are at times at which L holds the lock: S1 is after an operation
//! of L, Sn before one. As L changes each word once, not all of them are on one word, so some Si
//! has ended before Si+1 began, and that was while L held the lock. *Check first:* Si+1 began, and
//! then checked, while L held the lock. So it has waited for L. *Check afterwards:* Si checked
//! after its operation, so while L held the lock. It has waited for L. Either way they are not both
//! inside of L. Two holders, L and then M, are in no cycle: what leads from M back to L would have
//! a time both after the end of L and before it.
//!
//! It would be wrong if some calls checked first and others afterwards: a call that checks before L
//! ends inside of it, and then another call begins inside, which checks after L.
//!
//! # Requirements on the transport
//!
//! The check and the operation take effect in their order, as do a holder's lock, what it does with
//! the passes, and its operations. This includes words that a holder only reads: a single call
//! writes such a word and ends, and a second one checks. So a full fence stands between what a
//! holder does with the lock and the passes and what it reads, and between the operation of a
//! single call and its end.

use super::{LockWord, Mode, Nodes, acquire, release};
use crate::error::Result;
use crate::fabric::layout::ACC;
use crate::fabric::{WordAt, Words};
use crate::rank_numbers::Rank;
use crate::sync::{fence_after_rmw, full_fence};

/// The accumulate lock of a rank.
pub fn word(target: Rank) -> WordAt {
    WordAt { rank: target, word: ACC }
}

/// A call on several words, or on one that no atomic operation can change: runs `work` under the
/// lock.
#[inline]
pub fn several<R>(
    words: &impl Words,
    target: Rank,
    nodes: impl Nodes,
    work: impl FnOnce() -> Result<R>,
) -> Result<R> {
    // Not nested: the holder of this lock waits for nothing.
    acquire(words, word(target), Mode::Exclusive, false, nodes)?;
    fence_after_rmw(); // the lock before what is read under it
    let done = work();
    release(words, word(target), Mode::Exclusive)?;
    done
}

/// The end of a call on a single word that is reached by a device: waits once for the lock if
/// another call holds it after the operation.
pub fn check_after(words: &impl Words, target: Rank, nodes: impl Nodes) -> Result<()> {
    full_fence(); // the operation before the check; it may be a store of this processor
    wait_if_held(words, target, nodes, words.read(word(target))?)
}

/// The rest of [`check_after`]. `lock`: the value of the lock word, read after the operation.
pub fn wait_if_held(words: &impl Words, target: Rank, nodes: impl Nodes, lock: u64) -> Result<()> {
    if is_held(lock) { several(words, target, nodes, || Ok(())) } else { Ok(()) }
}

/// Whether a call holds the lock, whose word is `lock`. All holders take it exclusively.
#[inline(always)]
pub fn is_held(lock: u64) -> bool {
    LockWord(lock).holders() < 0
}
