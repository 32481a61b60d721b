//! The standing intent: an intent on the global word that belongs to no process. While it stands,
//! no lock_all can begin, and an exclusive lock takes the word of its target alone. Not for words
//! that are far: there an exclusive lock sends its requests for both words at once.
//!
//! # The word
//!
//! [`layout::STANDING`] at rank 0 counts in steps of [`WANTED`] above its lowest bit:
//!
//! | value          | meaning                                                             |
//! |----------------|---------------------------------------------------------------------|
//! | 0              | no intent stands: an exclusive lock takes both words                |
//! | `ON`           | an intent stands: an exclusive lock takes one word                  |
//! | `ON`+n`WANTED` | it stands still; n callers of lock_all want it to end, and one ends |
//! |                | it; an exclusive lock takes both words                              |
//! | n`WANTED`      | none stands, and none is left to stand: n callers of lock_all wait  |
//! |                | for the global word, or have just got it                            |
//!
//! | from           | step                                                    | to          |
//! |----------------|---------------------------------------------------------|-------------|
//! | 0              | an unlock leaves its intent on the global word ([`leave`]) | `ON`     |
//! | any            | lock_all finds intents on the global word               | one `WANTED` more |
//! | any            | this lock_all has got the global word, or has failed    | one `WANTED` less |
//! | `ON`+n`WANTED` | the first of the n has found each target free ([`end`]) | n`WANTED`   |
//!
//! # Why that is enough
//!
//! *While the lowest bit is set, the global word counts an intent for it.* A process sets the bit
//! that has an intent, and keeps it there. The bit is cleared before that intent is released.
//!
//! *One process ends it.* It is the process that finds the value `ON` and adds the first `WANTED`.
//! Until it subtracts that again the value is neither `ON` nor 0: no other process finds `ON`, and
//! no intent is left to stand.
//!
//! *An exclusive lock without an intent of its process excludes lock_all.* The process takes the
//! word of the target, and then finds `ON` ([`stands_after_swap`]). The process that ends the
//! standing intent adds `WANTED`, and then reads the word of each target. Each has a full fence
//! between its two steps, so one of them sees the other: either the first process does not find
//! `ON`, or the second one finds the target locked, and waits until it is free. So each lock that
//! was taken under the standing intent is released before that intent is. lock_all sees what was
//! done under the lock: the release, the read, the release of the standing intent and the
//! CompareSwap of lock_all follow each other, each on a word that the one before has changed or
//! read. It does no harm if the intent has ended since the process first read it, and another one
//! stands now: the process has done nothing at the target before its second read.
//!
//! *No deadlock.* The process that ends the standing intent holds no lock. It waits in the queues
//! of the targets, one after the other, and gives each place back at once. A process that holds
//! locks under the standing intent and wants another one does not find `ON`, and so needs an
//! intent. It gets that without a wait: the standing intent cannot end before the first of its
//! locks does, so intents fit, and nested requests overtake the queue. A process that has got the
//! word of its target too late joins the intents if it need not wait for that; otherwise it gives
//! the word back before it waits for the global one.
//!
//! *No starvation.* The queue of each target is fair. While a lock_all is counted, no intent is
//! left to stand, so that the global word works as if there were no standing intents.
//!
//! *A rank that has died* never releases its lock of a target. The process that waits for that lock
//! fails as in every wait, and so do the callers of lock_all that wait for the standing intent to
//! end. Each of them still subtracts its `WANTED`.
//!
//! # When
//!
//! To end a standing intent takes a read of a word of each rank. A process leaves an intent to
//! stand after that many exclusive locks with an intent of its own ([`leaves_after`]), so these
//! have paid for it, however often lock_all is called.

use super::word::LockWord;
use super::{Mode, Nodes, acquire, release};
use crate::error::Result;
use crate::fabric::layout;
use crate::fabric::{Fetch, WordAt, Words};
use crate::rank_numbers::Rank;
use crate::sync::fence_after_rmw;

/// An intent stands, and no lock_all is about.
const ON: u64 = 1;
/// One caller of lock_all.
const WANTED: u64 = 2;

/// The number of exclusive locks with an intent of its own after which a process leaves that.
pub fn leaves_after(ranks: u32) -> u32 {
    ranks.max(64)
}

/// Whether an exclusive lock needs no intent of its own now. A process that has taken the word of
/// its target asks again ([`stands_after_swap`]).
#[inline(always)]
pub fn stands(words: &impl Words) -> Result<bool> {
    Ok(words.read(layout::standing())? == ON)
}

/// [`stands`] after the CompareSwap that took the word of the target.
#[inline(always)]
pub fn stands_after_swap(words: &impl Words) -> Result<bool> {
    fence_after_rmw(); // the CompareSwap before the read; pairs with the fence in `end`
    stands(words)
}

/// Leaves an intent of this process on the global word as the standing one. Returns whether it
/// does; if not, the process still has it.
pub fn leave(words: &impl Words) -> Result<bool> {
    let swap = Fetch::CompareSwap { expect: 0, new: ON };
    Ok(words.fetch(layout::standing(), swap)? == 0)
}

/// Takes the global word in `mode` for lock_all, after it has ended the standing intent.
#[cold]
pub fn acquire_all(words: &impl Words, mode: Mode, nodes: &impl Nodes) -> Result<()> {
    let before = words.fetch(layout::standing(), Fetch::Add(WANTED))?;
    let ended = if before == ON { end(words, nodes) } else { Ok(()) };
    let taken = ended.and_then(|()| acquire(words, layout::global(), mode, false, nodes));
    let counted = words.fetch(layout::standing(), Fetch::Add(WANTED.wrapping_neg()));
    taken.and(counted.map(drop))
}

/// Ends the standing intent: waits until each target was free of exclusive locks once. Locks that
/// are taken from now on have an intent of their own.
fn end(words: &impl Words, nodes: &impl Nodes) -> Result<()> {
    fence_after_rmw(); // the addition before the reads; pairs with the fence in `stands_after_swap`
    for rank in Rank::all(words.size()) {
        let at = WordAt { rank, word: layout::LOCK };
        if LockWord(words.read(at)?).holders() < 0 {
            acquire(words, at, Mode::Shared, false, nodes)?;
            release(words, at, Mode::Shared)?;
        }
    }
    words.fetch(layout::standing(), Fetch::Add(ON.wrapping_neg()))?;
    release(words, layout::global(), Mode::Intent)
}

/// Whether the value of [`layout::STANDING`] says that an intent on the global word is the standing
/// one. For a report.
pub fn is_standing(value: u64) -> bool {
    value & ON != 0
}
