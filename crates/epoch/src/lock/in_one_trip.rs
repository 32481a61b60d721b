//! Locks that are taken at their first use, together with the puts under them, and released with
//! them if the epoch ends: one chain of requests and one wait. For transports that carry out a
//! request only if the lock before it was free (law 25 of `fabric::remote`). Not for words on this
//! node.
//!
//! | lock                                         | chain                                   |
//! |----------------------------------------------|-----------------------------------------|
//! | shared                                       | target, puts, (target)                  |
//! | exclusive, the process has an intent         | target, puts, (target)                  |
//! | exclusive, this node has the words of rank 0 | target, puts, (target)                  |
//! | exclusive, one process serves both words     | intent, target, puts, (target, intent)  |
//!
//! In parentheses: the releases, if the epoch ends. Each request is carried out only if all locks
//! before it were free. If this node has the words of rank 0, the process takes the intent ahead of
//! the chain and releases it behind it, by its processor.
//!
//! *Exclusion.* A put follows all locks of its chain on one ordered connection, and precedes their
//! releases there. An intent on this node is held before the chain is sent, and until its last
//! answer has arrived. So lock_all is kept out while the puts are carried out.
//!
//! *No deadlock.* A chain does not wait. After it, the process holds the whole lock, nothing, or
//! the intent without the target: what it also has after the first step of [`lock_exclusive`]. It
//! goes on in the same way from there, in the call that has sent the chain. Before that call it
//! holds nothing, so no other process waits for it.
//!
//! *Other intents.* Intents of other processes are on the global word most of the time, so the
//! chain is sent again with the value that it found there, if the intent fits to that, at most
//! [`JOINS_MAX`] times. So are chains for shared locks. If both words are to be taken and another
//! process does not fit, the words are taken in their order, as in every exclusive lock.
//!
//! *Rank 0 elsewhere.* If a third process serves the global word, no chain reaches both words. The
//! puts must not be carried out before the intent is known to be held, and its answer comes to this
//! process: two trips, one after the other. Such a lock is taken by
//! [`lock_exclusive`], with both words at once.

use super::acquire_and_read::end_release;
use super::tickets::JOINS_MAX;
use super::two_levels::{join, lock_in_order, release_intent_on_error, target_word};
use super::{Held, Intent, LockWord, Mode, Nodes, acquire_slow, lock_exclusive, release};
use crate::error::Result;
use crate::fabric::layout;
use crate::fabric::{WordAt, Words};
use crate::rank_numbers::Rank;

/// A lock word, and the changes that take and release it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Take {
    /// the word
    pub at: WordAt,
    /// what it must hold, and what it gets then
    pub swap: (u64, u64),
    /// what the release adds
    pub release: u64,
}

/// The values of lock words before they were taken, and before their release. Those of words that
/// the chain did not reach have no meaning.
#[derive(Clone, Copy, Debug, Default)]
pub struct Before {
    /// before they were taken
    pub taken: [u64; 2],
    /// before their release
    pub released: [u64; 2],
}

/// Where the intent of an exclusive lock is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum IntentAt {
    /// on a word that this process changes without a request
    Here,
    /// on a word of the process that serves the target
    WithTarget,
    /// elsewhere
    Elsewhere,
}

/// A lock that was not requested yet.
#[derive(Clone, Copy, Debug)]
pub struct Wanted {
    /// the target
    pub target: Rank,
    /// whether it is exclusive
    pub is_exclusive: bool,
    /// the locks of the process that are taken
    pub held: Held,
    /// where the intent of an exclusive lock is
    pub intent_at: IntentAt,
}

/// What came of a lock with its puts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LockOutcome {
    /// the puts are done, and the lock is released
    Released,
    /// the lock is held with this intent; `done`: so are the puts
    Held {
        /// the intent of an exclusive lock, and [`Intent::Earlier`] for a shared one
        intent: Intent,
        /// whether the puts are done; otherwise none was carried out
        done: bool,
    },
}

fn take(at: WordAt, mode: Mode, seen: LockWord) -> Take {
    let swap = (seen.0, seen.with_holder(mode).0);
    Take { at, swap, release: mode.holder().wrapping_neg() }
}

/// Takes a lock, and the puts that `send` sends under it. `send` sends a chain that takes these
/// words, carries out the puts, and releases the words from the last to the first if `ends`; it
/// waits for the answers.
///
/// # Errors
/// Those of `send`, and those of the locks: the lock is not held then.
pub fn lock_with_puts<W: Words>(
    words: &W,
    wanted: Wanted,
    ends: bool,
    nodes: impl Nodes,
    mut send: impl FnMut(&[Take]) -> Result<Before>,
) -> Result<LockOutcome> {
    let Wanted { target, is_exclusive, held, intent_at } = wanted;
    let (at, nested) = (target_word(target), held != Held::Nothing);
    let mode = if is_exclusive { Mode::Exclusive } else { Mode::Shared };
    let one = Chain { words, ends, nested, nodes: &nodes };
    if !is_exclusive || held == Held::Exclusive {
        return one.on_target(at, mode, Intent::Earlier, &mut send);
    }
    match intent_at {
        IntentAt::Here => one.under_own_intent(at, &mut send),
        IntentAt::WithTarget => one.on_both(at, &mut send),
        IntentAt::Elsewhere => {
            let intent = lock_exclusive(words, target, held, &nodes)?;
            Ok(LockOutcome::Held { intent, done: false })
        }
    }
}

/// A call that sends chains.
struct Chain<'a, W, N> {
    words: &'a W,
    ends: bool,
    nested: bool,
    nodes: &'a N,
}

impl<W: Words, N: Nodes> Chain<'_, W, N> {
    /// Takes the word of the target alone.
    fn on_target(
        &self,
        at: WordAt,
        mode: Mode,
        intent: Intent,
        send: &mut impl FnMut(&[Take]) -> Result<Before>,
    ) -> Result<LockOutcome> {
        let mut seen = LockWord::FREE;
        for _ in 0..=JOINS_MAX {
            let before = send(&[take(at, mode, seen)])?;
            if before.taken[0] == seen.0 {
                return self.taken(intent, &before.released[..1]);
            }
            seen = LockWord(before.taken[0]);
            if !self.fits(seen, mode) {
                break;
            }
        }
        acquire_slow(self.words, at, (mode, self.nested), seen, self.nodes)?;
        Ok(LockOutcome::Held { intent, done: false })
    }

    /// Takes an intent on this node, and then the target.
    fn under_own_intent(
        &self,
        at: WordAt,
        send: &mut impl FnMut(&[Take]) -> Result<Before>,
    ) -> Result<LockOutcome> {
        if let Some(seen) = join(self.words, LockWord::FREE, Mode::Intent, self.nested)? {
            lock_in_order(self.words, at, (seen, self.nested), self.nodes)?;
            return Ok(LockOutcome::Held { intent: Intent::Own, done: false });
        }
        let outcome = self.on_target(at, Mode::Exclusive, Intent::Own, send);
        let outcome = release_intent_on_error(self.words, outcome)?;
        if outcome == LockOutcome::Released {
            release(self.words, layout::global(), Mode::Intent)?;
        }
        Ok(outcome)
    }

    /// Takes the intent and the target.
    fn on_both(
        &self,
        at: WordAt,
        send: &mut impl FnMut(&[Take]) -> Result<Before>,
    ) -> Result<LockOutcome> {
        let (global, intent) = (layout::global(), Intent::Own);
        let mut seen = LockWord::FREE;
        for _ in 0..=JOINS_MAX {
            let both =
                [take(global, Mode::Intent, seen), take(at, Mode::Exclusive, LockWord::FREE)];
            let before = send(&both)?;
            let [of_global, of_target] = before.taken.map(LockWord);
            if of_global != seen {
                seen = of_global;
                if !self.fits(seen, Mode::Intent) {
                    break;
                }
                continue;
            }
            if of_target == LockWord::FREE {
                return self.taken(intent, &before.released);
            }
            let mode = (Mode::Exclusive, self.nested);
            let taken = acquire_slow(self.words, at, mode, of_target, self.nodes);
            release_intent_on_error(self.words, taken)?;
            return Ok(LockOutcome::Held { intent, done: false });
        }
        lock_in_order(self.words, at, (seen, self.nested), self.nodes)?;
        Ok(LockOutcome::Held { intent, done: false })
    }

    /// Whether a lock can be taken without a wait, and without overtaking others unfairly.
    fn fits(&self, seen: LockWord, mode: Mode) -> bool {
        seen.fits::<W>(mode) && (self.nested || !seen.has_waiter())
    }

    /// All words were free. `released`: their values before the releases, if there are any.
    fn taken(&self, intent: Intent, released: &[u64]) -> Result<LockOutcome> {
        if !self.ends {
            return Ok(LockOutcome::Held { intent, done: true });
        }
        let woken = |before: &u64| end_release(self.words, *before);
        released.iter().map(woken).fold(Ok(()), Result::and)?;
        Ok(LockOutcome::Released)
    }
}
