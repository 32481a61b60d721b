//! Memory of a created window that its owner may move while the window is in use, to where other
//! processes reach it by load and store (`memory::adopted`). Until then the kernel copies it
//! (process_vm), and no copy may be under way while pages move: it could write to the page that has
//! moved away. Not for the move, nor for the bytes that are mapped then, which the window keeps.
//!
//! | [`ROAD`] | meaning                                          | an access to the memory       |
//! |----------|--------------------------------------------------|-------------------------------|
//! | FIXED    | it does not move: the window says what is mapped | needs no hold                 |
//! | PRIVATE  | no byte is mapped; it may move                   | holds [`REGIONS`] shared      |
//!
//! The owner alone changes the word: to PRIVATE before another rank may read it, and back to FIXED
//! once, while it holds [`REGIONS`] exclusively. It does so by an addition, which releases: a rank
//! that reads FIXED without a hold sees what the owner has written ahead of it. So the road changes
//! once in the life of a window, from process_vm to mapped memory, or to process_vm for ever.
//!
//! # No access uses two roads, and no two accesses differ
//!
//! An access decides by the word while it holds, or after it has seen FIXED. Take an access that
//! holds, and the change. By the group lock one of them held first. *The access first:* the change
//! begins when the access is over, so the access has found the memory private, and its copy has
//! read or written the page that moves later. *The change first:* the access acquires behind the
//! release of the change, reads FIXED, and finds what is mapped. So at any time all ranks change an
//! element by the same way: under the accumulate lock, or by atomic instructions; also the owner,
//! whose accumulates on its own memory hold like those of others. Its plain loads and stores need
//! no hold: its own pages change under it (`sys::adopt`).
//!
//! # It cannot deadlock
//!
//! As for tables of regions ([`super::regions`]): a thread holds for one access, and waits during
//! it for nothing but ACC of that target, or for threads of its own process that hold, too. The
//! owner's thread waits during a move for nothing that another rank does.
//!
//! # When
//!
//! | [`LEFT`] | meaning                                                                      |
//! |----------|------------------------------------------------------------------------------|
//! | n > 0    | nanoseconds that copies may cost before a move is worth its price            |
//! | n <= 0   | the owner moves the memory in its next call                                  |
//!
//! Origins subtract from it what their copies cost. It is a hint: any value is right.

use super::lock::{Mode, Nodes, acquire, release};
use super::regions;
use crate::error::Result;
use crate::fabric::layout::{LEFT, REGIONS, ROAD};
use crate::fabric::{WordAt, WordId, Words};
use crate::rank_numbers::Rank;

/// The memory does not move any more.
const FIXED: u64 = 0;
/// The memory may move.
const PRIVATE: u64 = 1;

fn at(target: Rank) -> WordAt {
    WordAt { rank: target, word: ROAD }
}

/// Returns the first values of the words of a rank whose memory may move, as soon as copies have
/// cost `price` nanoseconds. The rank stores them before another rank may access its memory.
pub fn first_values(price: u64) -> [(WordId, u64); 2] {
    [(ROAD, PRIVATE), (LEFT, price)]
}

/// Returns whether the memory of `target` may move, so that it is private. Without a hold the
/// answer `false` stays true, and `true` may be out of date.
#[inline]
pub fn is_private(words: &impl Words, target: Rank) -> Result<bool> {
    Ok(words.read(at(target))? == PRIVATE)
}

/// Begins an access to the memory of `target`, which does not move until [`end`]. The access waits
/// for ACC of `target` and for nothing else. Returns whether the memory is held, for `end`.
#[inline]
pub fn begin(words: &impl Words, target: Rank, nodes: impl Nodes) -> Result<bool> {
    let is_held = is_private(words, target)?;
    if is_held {
        regions::hold(words, target, nodes)?;
    }
    Ok(is_held)
}

/// Ends an access. Operations that were sent to the target are done there, if it was held.
#[inline]
pub fn end(words: &impl Words, target: Rank, is_held: bool) -> Result<()> {
    if is_held { regions::release(words, target) } else { Ok(()) }
}

/// The result of an attempt to move the memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Attempt {
    /// it has moved, or it never will
    Ended,
    /// it did not move now; another attempt is worth it when copies have cost this much, in
    /// nanoseconds
    Later(u64),
}

/// Whether copies have cost what a move costs.
#[inline]
pub fn is_due(words: &impl Words) -> bool {
    words.own(LEFT).cast_signed() <= 0
}

/// Lets `work` move the memory of this rank, while no other thread accesses it by process_vm or
/// accumulates. Does nothing if the memory does not move any more.
pub fn attempt(
    words: &impl Words,
    nodes: impl Nodes,
    work: impl FnOnce() -> Attempt,
) -> Result<()> {
    let mine = WordAt { rank: words.rank(), word: REGIONS };
    acquire(words, mine, Mode::Exclusive, false, nodes)?;
    let mut done = Ok(());
    if words.own(ROAD) == PRIVATE {
        match work() {
            Attempt::Ended => done = words.post(at(words.rank()), FIXED.wrapping_sub(PRIVATE)),
            Attempt::Later(price) => {
                let now = words.own(LEFT);
                let left = WordAt { rank: words.rank(), word: LEFT };
                done = words.post(left, price.wrapping_sub(now));
            }
        }
    }
    done.and(release(words, mine, Mode::Exclusive))
}
