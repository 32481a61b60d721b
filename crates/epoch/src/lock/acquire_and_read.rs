//! Acquisition of a group lock and read of the memory that it guards, in one round trip: the first
//! CompareSwap is under way while the memory is read. Not for locks that are held for longer than
//! one operation.
//!
//! A transport may also take a lock, do something under it, and release it by requests. This file
//! has the values of the lock word for that, and the steps after the requests.

use super::{LockWord, Mode, Nodes, acquire_slow, wake_after};
use crate::error::Result;
use crate::fabric::{Fetch, WordAt, Words};

/// Begins to acquire a lock, with a CompareSwap that takes it if it is free. Gets that the caller
/// sends behind this and an `order` read under the lock (law 9) if [`end_acquire`] returns true.
#[inline]
pub fn begin_acquire<W: Words>(words: &W, at: WordAt, mode: Mode) -> Result<W::Ticket> {
    let (expect, new) = (LockWord::FREE.0, LockWord::FREE.with_holder(mode).0);
    words.begin(at, Fetch::CompareSwap { expect, new })
}

/// Ends what [`begin_acquire`] began: the lock is held. Returns whether the first CompareSwap took
/// it; if not, the memory that was read since then may have changed.
#[inline]
pub fn end_acquire<W: Words>(
    words: &W,
    (at, ticket): (WordAt, W::Ticket),
    mode: Mode,
    nested: bool,
    nodes: impl Nodes,
) -> Result<bool> {
    let seen = words.finish(ticket)?;
    if seen != LockWord::FREE.0 {
        acquire_slow(words, at, (mode, nested), LockWord(seen), &nodes)?;
    }
    Ok(seen == LockWord::FREE.0)
}

/// The value of the word of a free lock, and its value once the lock is taken.
pub fn taken(mode: Mode) -> (u64, u64) {
    (LockWord::FREE.0, LockWord::FREE.with_holder(mode).0)
}

/// The number that a release adds to the word of a lock.
pub fn freed(mode: Mode) -> u64 {
    mode.holder().wrapping_neg()
}

/// Ends a release, before which the word was `before`: wakes a waiting rank.
pub fn end_release(words: &impl Words, before: u64) -> Result<()> {
    let before = LockWord(before);
    if before.has_waiter() { wake_after(words, before) } else { Ok(()) }
}
