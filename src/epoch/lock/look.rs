//! A group lock and what it guards in one round trip: the first look at the lock is under way while
//! the memory is read. Not for locks that are held for longer than one operation.

use super::{Mode, Nodes, Word, contend};
use crate::error::Result;
use crate::fabric::{Fetch, WordAt, Words};

/// Begins to acquire a lock, with a look that may take it, so that what it guards can be read in
/// the same round trip (law 9): gets behind this are good if [`end_acquire`] says so.
#[inline]
pub fn begin_acquire<W: Words>(words: &W, at: WordAt, mode: Mode) -> Result<W::Ticket> {
    let (expect, new) = (Word::FREE.0, Word::FREE.with_holder(mode).0);
    words.begin(at, Fetch::CompareSwap { expect, new })
}

/// Ends it: the lock is held. Says whether it was from the first look on; if not, what was read
/// since then may have changed.
#[inline]
pub fn end_acquire<W: Words>(
    words: &W,
    (at, ticket): (WordAt, W::Ticket),
    mode: Mode,
    nested: bool,
    nodes: impl Nodes,
) -> Result<bool> {
    let seen = words.finish(ticket)?;
    if seen != Word::FREE.0 {
        contend(words, at, (mode, nested), Word(seen), &nodes)?;
    }
    Ok(seen == Word::FREE.0)
}
