//! The locks of MPI_Win_lock and MPI_Win_lock_all: group locks on two levels, a global word at rank
//! 0 and a word of each target (foMPI paper, section 2.3). Not for the group lock itself, which is
//! in [`super`].
//!
//! | lock                       | word of rank 0 | word of the target | operations              |
//! |----------------------------|----------------|--------------------|-------------------------|
//! | lock, shared               |                | Shared             | 1 to lock + 1 to unlock |
//! | lock, exclusive            | Intent         | Exclusive          | 2 + 2                   |
//! | lock, exclusive; the process has an intent | | Exclusive        | 1 + 1                   |
//! | lock, exclusive; an intent stands | read twice | Exclusive       | 1 + 1                   |
//! | lock_all                   | All            |                    | 1 + 1                   |
//!
//! Intent and All exclude each other, and so do Shared and Exclusive. Shared and All are
//! compatible.
//!
//! While no process holds or waits for lock_all, an intent that belongs to no process may stand on
//! the global word ([`standing`]), so an exclusive lock takes only the word of its target. Only if
//! words are near (`!Words::FAR`: no round trip per operation).
//!
//! # The release of an intent
//!
//! A process counts its exclusive locks and its intents (`epoch::state`), and not which intent
//! belongs to a lock: any intent of the process keeps lock_all from all targets. It releases one
//! at the end of an exclusive lock if fewer exclusive locks are left than intents
//! ([`SpareIntent`]). Thus a process that has an intent keeps one until its last exclusive lock has
//! ended.
//!
//! # Both words at once
//!
//! Where words are far, a process sends its requests for both words of an exclusive lock together,
//! and waits once. If a process P held the target while it waits for the global word, it could wait
//! behind a lock_all, which waits for the intent of a process Q, which waits for the target that P
//! holds: a deadlock. So P, if it has got only the target's word, joins the intents that are there,
//! which needs no wait. If it cannot, it releases the target, and takes the global word and then
//! the target. It has changed nothing at the target meanwhile, so a lock_all at that time does no
//! harm.
//!
//! The unlock sends both releases together if the release of the global word cannot overtake the
//! operations at the target: both words are reached by one ordered connection, or no operation is
//! pending. Otherwise it completes the release at the target first.

use super::standing::{self, stands, stands_after_swap};
use super::tickets::JOINS_MAX;
use super::{
    Held, LockWord, Mode, Nodes, Released, acquire, acquire_slow, begin_release, release, try_free,
    wake_after,
};
use crate::error::Result;
use crate::fabric::layout;
use crate::fabric::{Fetch, WordAt, Words};
use crate::rank_numbers::Rank;

/// The value of a free lock word.
const FREE: u64 = LockWord::FREE.0;

/// The intent that excludes lock_all while an exclusive lock is held.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Intent {
    /// an intent that was taken with it
    Own,
    /// the standing intent
    Standing,
    /// an intent that the process had already
    Earlier,
}

/// What an unlock of an exclusive lock does with an intent of the process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SpareIntent {
    /// none: the remaining exclusive locks need all intents of the process
    None,
    /// releases it
    Release,
    /// leaves it on the global word as the standing one if it can, otherwise releases it
    Offer,
}

pub(super) fn target_word(target: Rank) -> WordAt {
    WordAt { rank: target, word: layout::LOCK }
}

/// MPI_Win_lock, shared (MPI-4.1 §12.5.3).
#[inline]
pub fn lock_shared(words: &impl Words, target: Rank, held: Held, nodes: impl Nodes) -> Result<()> {
    acquire(words, target_word(target), Mode::Shared, held != Held::Nothing, nodes)
}

/// [`lock_shared`] for a process that holds nothing. Returns whether one CompareSwap took the lock.
#[inline(always)]
pub fn try_lock_shared(words: &impl Words, target: Rank) -> Result<bool> {
    try_free(words, target_word(target), Mode::Shared)
}

/// What came of an attempt to take an exclusive lock without an intent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Tried {
    /// the lock is held
    Held,
    /// the target's word is not free
    Busy,
    /// the standing intent is about to end, and the target's word is to be given back
    /// ([`give_back_late`])
    Late,
    /// no intent stands: the lock has two words
    TwoWords,
}

/// [`lock_exclusive`] for a process that holds nothing, by one CompareSwap under the standing
/// intent.
#[inline(always)]
pub fn try_lock_alone(words: &impl Words, target: Rank) -> Result<Tried> {
    if !stands(words)? {
        return Ok(Tried::TwoWords);
    }
    if !try_free(words, target_word(target), Mode::Exclusive)? {
        return Ok(Tried::Busy);
    }
    Ok(if stands_after_swap(words)? { Tried::Held } else { Tried::Late })
}

/// Gives back the word of a target that [`try_lock_alone`] took too late.
pub fn give_back_late(words: &impl Words, target: Rank) -> Result<()> {
    release(words, target_word(target), Mode::Exclusive)
}

/// [`lock_exclusive`] for a process that holds nothing. Returns whether one CompareSwap on each of
/// the two words took the lock.
#[inline]
pub fn try_lock_exclusive(words: &impl Words, target: Rank) -> Result<bool> {
    if !try_free(words, layout::global(), Mode::Intent)? {
        return Ok(false);
    }
    let taken = try_free(words, target_word(target), Mode::Exclusive)?;
    if !taken {
        release(words, layout::global(), Mode::Intent)?;
    }
    Ok(taken)
}

/// MPI_Win_unlock of a shared lock. When this returns, all operations that this process sent to the
/// target are complete there.
#[inline]
pub fn unlock_shared(words: &impl Words, target: Rank) -> Result<()> {
    release(words, target_word(target), Mode::Shared)
}

/// [`unlock_shared`] without the wake-up of a waiter: the caller finishes the [`Released`].
#[inline(always)]
pub fn begin_release_shared(words: &impl Words, target: Rank) -> Result<Released> {
    begin_release(words, target_word(target), Mode::Shared)
}

/// MPI_Win_lock, exclusive (MPI-4.1 §12.5.3). Takes an intent too, unless the process has one or
/// one stands. `held` is at most [`Held::Shared`] where threads may lock and unlock at the same
/// time, so that no lock counts on the intent of another thread.
#[inline]
pub fn lock_exclusive<W: Words>(
    words: &W,
    target: Rank,
    held: Held,
    nodes: impl Nodes,
) -> Result<Intent> {
    let (at, nested) = (target_word(target), held != Held::Nothing);
    if held == Held::Exclusive {
        acquire(words, at, Mode::Exclusive, nested, &nodes)?;
        return Ok(Intent::Earlier);
    }
    if W::FAR {
        lock_both(words, at, nested, &nodes)?;
    } else if stands(words)? {
        acquire(words, at, Mode::Exclusive, nested, &nodes)?;
        if stands_after_swap(words)? {
            return Ok(Intent::Standing);
        }
        let seen = LockWord(words.read(layout::global())?);
        add_intent(words, at, (seen, nested), &nodes)?;
    } else {
        acquire(words, layout::global(), Mode::Intent, nested, &nodes)?;
        acquire(words, at, Mode::Exclusive, nested, &nodes)?;
    }
    Ok(Intent::Own)
}

/// Takes the intent and the lock `at`, whose words are requested at once.
fn lock_both<W: Words>(words: &W, at: WordAt, nested: bool, nodes: &impl Nodes) -> Result<()> {
    let take = |at: WordAt, mode: Mode| {
        (at, Fetch::CompareSwap { expect: FREE, new: LockWord::FREE.with_holder(mode).0 })
    };
    let both = [take(layout::global(), Mode::Intent), take(at, Mode::Exclusive)];
    match words.fetch_both(both) {
        [Ok(FREE), Ok(FREE)] => Ok(()),
        [Ok(FREE), Ok(seen)] => {
            let mode = (Mode::Exclusive, nested);
            release_intent_on_error(words, acquire_slow(words, at, mode, LockWord(seen), nodes))
        }
        [Ok(seen), Ok(FREE)] => add_intent(words, at, (LockWord(seen), nested), nodes),
        [Ok(seen), Ok(_)] => lock_in_order(words, at, (LockWord(seen), nested), nodes),
        [Ok(FREE), Err(error)] => release_intent_on_error(words, Err(error)),
        [Err(error), Ok(FREE)] => release(words, at, Mode::Exclusive).and(Err(error)),
        [Err(error), _] | [_, Err(error)] => Err(error),
    }
}

/// Takes an intent after the lock `at`: together with others if that needs no wait, otherwise both
/// in their order. The process has changed nothing at the target yet. `seen`: the value of the
/// global word.
#[cold]
fn add_intent<W: Words>(
    words: &W,
    at: WordAt,
    (seen, nested): (LockWord, bool),
    nodes: &impl Nodes,
) -> Result<()> {
    match join(words, seen, Mode::Intent, nested) {
        Ok(None) => Ok(()),
        Ok(Some(seen)) => {
            release(words, at, Mode::Exclusive)?;
            lock_in_order(words, at, (seen, nested), nodes)
        }
        Err(error) => release(words, at, Mode::Exclusive).and(Err(error)),
    }
}

/// Takes the global word together with other holders of this mode, if that needs no wait. `seen`:
/// the value of that word. Returns `None` if this process holds it now, otherwise the value last
/// seen.
pub(super) fn join<W: Words>(
    words: &W,
    mut seen: LockWord,
    mode: Mode,
    nested: bool,
) -> Result<Option<LockWord>> {
    for _ in 0..JOINS_MAX {
        if !seen.fits::<W>(mode) || !nested && seen.has_waiter() {
            break;
        }
        let swap = Fetch::CompareSwap { expect: seen.0, new: seen.with_holder(mode).0 };
        match LockWord(words.fetch(layout::global(), swap)?) {
            before if before == seen => return Ok(None),
            before => seen = before,
        }
    }
    Ok(Some(seen))
}

/// Takes the intent, on the global word that was read as `seen`, and then the lock `at`.
#[cold]
pub(super) fn lock_in_order<W: Words>(
    words: &W,
    at: WordAt,
    (seen, nested): (LockWord, bool),
    nodes: &impl Nodes,
) -> Result<()> {
    acquire_slow(words, layout::global(), (Mode::Intent, nested), seen, nodes)?;
    release_intent_on_error(words, acquire(words, at, Mode::Exclusive, nested, nodes))
}

/// Releases the intent if the lock of the target could not be taken: others wait for it.
pub(super) fn release_intent_on_error<T>(words: &impl Words, taken: Result<T>) -> Result<T> {
    match taken {
        Ok(taken) => Ok(taken),
        Err(error) => release(words, layout::global(), Mode::Intent).and(Err(error)),
    }
}

/// MPI_Win_unlock of an exclusive lock, and of an intent if the process has one to spare. When this
/// returns, all operations that this process sent to the target are complete there.
#[inline]
pub fn unlock_exclusive<W: Words>(words: &W, target: Rank, spare: SpareIntent) -> Result<()> {
    let (global, at) = (layout::global(), target_word(target));
    if spare == SpareIntent::None {
        return release(words, at, Mode::Exclusive);
    }
    // Orders the releases behind the operations. If that fails, the release below reports it.
    if W::FAR && words.order(target).is_ok() && words.is_ordered(target, global.rank) {
        return unlock_both(words, at);
    }
    let released = release(words, at, Mode::Exclusive);
    if spare == SpareIntent::Offer
        && !W::FAR
        && released.is_ok()
        && standing::leave(words) == Ok(true)
    {
        return Ok(());
    }
    // `and` evaluates both: the global word is released even if the target is lost, because other
    // ranks wait for it.
    released.and(release(words, global, Mode::Intent))
}

/// [`unlock_exclusive`] without an intent to spare, and without the wake-up of a waiter: the caller
/// finishes the [`Released`].
#[inline(always)]
pub fn begin_release_target_only(words: &impl Words, target: Rank) -> Result<Released> {
    begin_release(words, target_word(target), Mode::Exclusive)
}

/// Releases the lock `at` and the intent at once, behind the operations at the target.
fn unlock_both(words: &impl Words, at: WordAt) -> Result<()> {
    let give = |at: WordAt, mode: Mode| (at, Fetch::Add(mode.holder().wrapping_neg()));
    let both = [give(at, Mode::Exclusive), give(layout::global(), Mode::Intent)];
    let released = words.fetch_both(both).map(|before| match LockWord(before?) {
        before if before.has_waiter() => wake_after(words, before),
        _ => Ok(()),
    });
    let [target, global] = released;
    target.and(global)
}

/// MPI_Win_lock_all (MPI-4.1 §12.5.3). A process that calls it holds no lock of the window.
#[inline]
pub fn lock_all<W: Words>(words: &W, nodes: impl Nodes) -> Result<()> {
    let mode = Mode::All;
    if W::FAR {
        return acquire(words, layout::global(), mode, false, nodes);
    }
    match join(words, LockWord::FREE, mode, false)? {
        None => Ok(()),
        Some(_) => standing::acquire_all(words, mode, &nodes),
    }
}

/// [`lock_all`], if one CompareSwap takes the lock. Returns whether it did.
#[inline(always)]
pub fn try_lock_all(words: &impl Words) -> Result<bool> {
    try_free(words, layout::global(), Mode::All)
}

/// [`unlock_all`] for a process that is done with other targets than rank 0, without the wake-up of
/// a waiter: the caller finishes the [`Released`].
#[inline(always)]
pub fn begin_release_all(words: &impl Words) -> Result<Released> {
    begin_release(words, layout::global(), Mode::All)
}

/// MPI_Win_unlock_all. When this returns, all operations that this process sent to any target are
/// complete there. The lock is released even if a target is lost, because other ranks wait for it.
#[inline]
pub fn unlock_all(words: &impl Words) -> Result<()> {
    let global = layout::global();
    // The release is ordered behind the operations at rank 0.
    let flushed = words.flush_others(global.rank);
    flushed.and(release(words, global, Mode::All))
}
