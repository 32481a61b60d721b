//! Fast path of locks on one node in a process with one thread: one operation on each word. The
//! full calls (`super::synchronise`) handle all other cases.

use super::quick_window::QuickWindow;
use super::{LocalWindow, Window};
use crate::epoch::lock::{self, Intent, Released, SpareIntent, Tried};
use crate::epoch::state::Hold;
use crate::error::Result;
use crate::rank_numbers::Rank;

/// The work that remains for a lock after the fast path.
pub enum QuickLock {
    /// nothing: the lock is held
    Nothing,
    /// [`lock_rest`], and all if that returns false
    Rest(Tried),
    /// all: nothing was done
    All,
}

/// Takes a lock that is free, if it has one word, in a process with one thread. `is`: whether the
/// call asks for a lock of this kind.
#[inline(always)]
pub fn lock_quick(window: QuickWindow, rank: Rank, is: impl Fn(Hold) -> bool) -> QuickLock {
    let words = &window.node().words;
    if is(Hold::Shared) {
        let taken = || lock::try_lock_shared(words, rank) == Ok(true);
        let take = || taken().then_some((Hold::Shared, Intent::Earlier));
        return if locks(window, rank, take) { QuickLock::Nothing } else { QuickLock::All };
    }
    if !is(Hold::Exclusive) {
        return QuickLock::All;
    }
    let mut left = QuickLock::All;
    let take = || match lock::try_lock_alone(words, rank) {
        Ok(Tried::Held) => Some((Hold::Exclusive, Intent::Standing)),
        Ok(tried @ (Tried::TwoWords | Tried::Late)) => {
            left = QuickLock::Rest(tried);
            None
        }
        Ok(Tried::Busy) | Err(_) => None,
    };
    if locks(window, rank, take) { QuickLock::Nothing } else { left }
}

/// Locks a target by `take`, if that is legal now.
#[inline(always)]
fn locks(window: QuickWindow, rank: Rank, take: impl FnOnce() -> Option<(Hold, Intent)>) -> bool {
    let target = window.targets.of(rank.on_only_node());
    target.is_some_and(|target| window.epochs.lock_quick(&target.access, take))
}

/// Completes a fast-path exclusive lock in a process with one thread: takes both words if they are
/// free. Returns false if the lock is not held then.
#[inline(never)]
pub fn lock_rest(window: QuickWindow, rank: Rank, tried: Tried) -> bool {
    let node = window.node();
    match tried {
        Tried::TwoWords => {
            let taken = || lock::try_lock_exclusive(&node.words, rank) == Ok(true);
            locks(window, rank, || taken().then_some((Hold::Exclusive, Intent::Own)))
        }
        Tried::Late => give_back_late(node, rank),
        Tried::Held | Tried::Busy => false,
    }
}

/// Gives back a word that was taken after a conflicting lock. Returns false, because the lock is
/// not held.
fn give_back_late(node: &LocalWindow, target: Rank) -> bool {
    let given_back = lock::give_back_late(&node.words, target);
    assert!(given_back.is_ok(), "words of this node are not lost");
    false
}

/// The work that remains for an unlock after the fast path.
pub enum QuickUnlock {
    /// all: nothing was done
    All,
    /// [`Released::finish`]
    Rest(Released),
    /// [`release_both`]: the state of the epochs has changed already
    Both(SpareIntent),
}

/// Unlocks a target, in a process with one thread.
#[inline(always)]
pub fn unlock_quick(window: QuickWindow, rank: Rank) -> QuickUnlock {
    let target = window.targets.of(rank.on_only_node());
    let ended = target.and_then(|target| window.epochs.unlock_quick(&target.access));
    released(window.node(), rank, ended)
}

/// Releases a lock whose epoch has ended.
#[inline(always)]
fn released(node: &LocalWindow, target: Rank, ended: Option<(Hold, SpareIntent)>) -> QuickUnlock {
    match ended {
        Some((Hold::Shared, _)) => rest(lock::begin_release_shared(&node.words, target)),
        Some((_, SpareIntent::None)) => rest(lock::begin_release_target_only(&node.words, target)),
        Some((_, spare)) => QuickUnlock::Both(spare),
        None => QuickUnlock::All,
    }
}

/// Returns the remaining work after a release on words of this node, which cannot fail.
#[inline(always)]
fn rest(released: Result<Released>) -> QuickUnlock {
    released.map_or(QuickUnlock::All, QuickUnlock::Rest)
}

/// Releases the exclusive lock of `target`, which has an intent to spare.
#[inline(never)]
pub fn release_both(node: &LocalWindow, target: Rank, spare: SpareIntent) -> Result<()> {
    lock::unlock_exclusive(&node.words, target, spare)
}

/// Takes the lock of lock_all if it is free, in a process with one thread and no open epoch.
/// Returns false, and has done nothing, in any other case.
#[inline(always)]
pub fn lock_all_quick(window: &Window, node: &LocalWindow) -> bool {
    window.epochs.lock_all_quick(|| lock::try_lock_all(&node.words) == Ok(true))
}

/// Unlocks all targets in a process with one thread, if lock_all has taken a lock. Loads and stores
/// are done before the release, as in an unlock of one target.
#[inline(always)]
pub fn unlock_all_quick(window: &Window, node: &LocalWindow) -> QuickUnlock {
    match window.epochs.unlock_all_quick() {
        true => rest(lock::begin_release_all(&node.words)),
        false => QuickUnlock::All,
    }
}
