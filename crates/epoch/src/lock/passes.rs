//! Passes: the right to accumulate without the lock of the target, on one node
//! (docs/decisions/0004). Calls on several words run as plain loops, which vector instructions make
//! fast, while no rank changes single words of the target without the lock. Not for windows over
//! several nodes, and not for the proof that a call is atomic as a whole, which is in
//! [`super::atomic_calls`].
//!
//! A rank changes a single word of a target *without the lock* if it has a *pass* there, a bit of
//! its own. All words below are the target's, and only the holder of its accumulate lock changes
//! them:
//!
//! | word        | meaning                                                                     |
//! |-------------|-----------------------------------------------------------------------------|
//! | pass bit    | this rank may change single words of this target without the lock           |
//! | owed bit    | its pass was withdrawn, and it may still be in a call that has seen the pass |
//! | `MIX`       | which calls this target has had, below                                      |
//! | `WITHDRAWN` | the number of fences of the window when passes were withdrawn last          |
//!
//! | `MIX`                | state                                                              |
//! |----------------------|--------------------------------------------------------------------|
//! | n                    | *open*: a rank that asks gets a pass; n elements changed word by word |
//! | [`CLOSED`] + n       | *closed*: no rank gets a pass before n more calls on single words  |
//! | [`THREADS`] + any    | a rank with several threads has had a pass: never closed again     |
//!
//! What the holder of the lock does; *others* are passes and owed passes of other ranks:
//!
//! | call          | target | others | steps                                                     |
//! |---------------|--------|--------|-----------------------------------------------------------|
//! | single word   | open   |        | the caller owes no pass, and gets one                     |
//! | single word   | closed |        | the caller owes no pass, n counts down                    |
//! | several words |        | none   | plain loop                                                |
//! | several words | open   | a pass | withdraws all, word by word; after some elements: closed  |
//! | several words | closed | owed   | word by word, until each such rank has called, or a fence |
//!
//! A call on several words of a closed target restarts its count.
//!
//! # Why a plain loop is right
//!
//! A rank without a pass holds the lock when it changes a word. So a plain loop loses no change
//! unless another rank has read its pass, and changes a word later. That rank's pass bit is
//! still set, or it was withdrawn after the read, and then the owed bit is set. The rank itself
//! clears its owed bit, when it holds the lock and so is in no other call. A rank with several
//! threads may be in another call at that time: it never clears its owed bit. A call ends before
//! its rank enters a later fence, so a pass that was withdrawn before the last fence is not in use,
//! unless its rank has several threads. The caller's own pass does not count: the caller is in this
//! call, unless it has several threads.
//!
//! # What it costs
//!
//! A call on a single word reads its pass. The first one of each rank at a target takes the lock,
//! as does each one behind a call on several words. A switch costs each rank that had a pass one
//! such call. By the [`SwitchLimits`] a target switches only after calls that were slow for as long
//! as that.

use super::{Nodes, atomic_calls};
use crate::error::Result;
use crate::fabric::layout::{self, MIX, WITHDRAWN};
use crate::fabric::{Fetch, WordAt, WordId, Words};
use crate::rank_numbers::Rank;
use crate::sync::fence_after_rmw;

/// No rank gets a pass.
const CLOSED: u64 = 1 << 63;
/// A rank with several threads has had a pass.
const THREADS: u64 = 1 << 62;
/// The number in `MIX`.
const NUMBER: u64 = THREADS - 1;

/// The values at which a target switches.
#[derive(Clone, Copy, Debug)]
pub struct SwitchLimits {
    /// the elements that calls on several words change word by word before the passes are withdrawn
    pub elements: u64,
    /// the calls on single words under the lock before ranks get passes again
    pub calls: u64,
}

impl SwitchLimits {
    /// The values of a window: about as long as a switch takes.
    pub const USUAL: SwitchLimits = SwitchLimits { elements: 1024, calls: 64 };
}

/// The rank that calls, and the window as it sees it.
#[derive(Clone, Copy, Debug)]
pub struct Caller {
    /// the calling rank
    pub rank: Rank,
    /// whether several of its threads may call
    pub threads: bool,
    /// the number of fences of the window so far, the same at all ranks
    pub fences: u64,
    /// when a target switches
    pub limits: SwitchLimits,
}

/// Whether others change the target while a call on several words runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Others {
    /// a call on a single word may be under way: each word has to be changed by an atomic operation
    OnSingleWords,
    /// no thread: plain loops are right
    None,
}

/// The words of one target, for the holder of its accumulate lock. Functions out of line take it by
/// value, so that it need not be in memory for the quick ones.
struct Passes<'a, W> {
    words: &'a W,
    target: Rank,
    caller: Caller,
}

/// Runs `work`, a call on about `elements` elements, or on one that no atomic operation can change,
/// under the accumulate lock of a target.
#[inline]
pub fn several<R>(
    words: &impl Words,
    (target, caller): (Rank, Caller),
    elements: u64,
    nodes: impl Nodes,
    work: impl FnOnce(Others) -> Result<R>,
) -> Result<R> {
    let at = Passes { words, target, caller };
    atomic_calls::several(words, target, nodes, || work(at.others(elements)?))
}

/// A call on a single word: `work` is one atomic instruction.
#[inline]
pub fn single<R>(
    words: &impl Words,
    (target, caller): (Rank, Caller),
    nodes: impl Nodes,
    work: impl FnOnce() -> Result<R>,
) -> Result<R> {
    let at = Passes { words, target, caller };
    if at.has_pass()? {
        let done = work();
        fence_after_rmw(); // before others learn that this call has ended
        return done;
    }
    atomic_calls::several(words, target, nodes, || {
        at.enter()?;
        work()
    })
}

impl<W> Clone for Passes<'_, W> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<W> Copy for Passes<'_, W> {}

impl<W: Words> Passes<'_, W> {
    #[inline(always)]
    fn at(&self, word: WordId) -> WordAt {
        WordAt { rank: self.target, word }
    }

    #[inline(always)]
    fn read(&self, word: WordId) -> Result<u64> {
        self.words.read(self.at(word))
    }

    /// Stores a value into a word that is `before`, and that the holder of the lock alone changes.
    fn set(&self, word: WordId, before: u64, value: u64) -> Result<()> {
        if value == before {
            return Ok(());
        }
        self.words.fetch(self.at(word), Fetch::Add(value.wrapping_sub(before))).map(drop)
    }

    fn size(&self) -> u32 {
        self.words.size()
    }

    /// Returns the words of the caller's pass and owed bits, and its bit there.
    #[inline(always)]
    fn own(&self) -> (WordId, WordId, u64) {
        let (index, bit) = layout::bit_of(self.caller.rank);
        (layout::pass(index, self.size()), layout::owed(index, self.size()), bit)
    }

    /// Returns the bits of a word of a bitmap that do not count for the caller: its own, unless
    /// another of its threads may use them.
    #[inline(always)]
    fn ignored(&self, index: u32) -> u64 {
        let (own, bit) = layout::bit_of(self.caller.rank);
        if index == own && !self.caller.threads { bit } else { 0 }
    }

    #[inline]
    fn has_pass(&self) -> Result<bool> {
        let (pass, _, bit) = self.own();
        Ok(self.read(pass)? & bit != 0)
    }

    /// Records that the caller is in no call that uses an earlier pass, and gives it a pass if the
    /// target is open, for a call on a single word.
    #[cold]
    fn enter(self) -> Result<()> {
        let (pass, owed, bit) = self.own();
        let (passes, mix) = (self.read(pass)?, self.read(MIX)?);
        self.pay(owed, bit)?;
        if passes & bit != 0 {
            return Ok(());
        }
        let (is_closed, number) = (mix & CLOSED != 0, mix & NUMBER);
        if is_closed && number > 1 {
            return self.set(MIX, mix, mix - 1);
        }
        let threads = if self.caller.threads { THREADS } else { mix & THREADS };
        let elements = if is_closed { 0 } else { number };
        self.set(MIX, mix, threads | elements)?;
        self.set(pass, passes, passes | bit)
    }

    /// Clears the owed bit of the caller, unless another thread of it may use the pass.
    #[inline(always)]
    fn pay(&self, owed: WordId, bit: u64) -> Result<()> {
        let owing = self.read(owed)?;
        if owing & bit == 0 || self.caller.threads {
            return Ok(());
        }
        self.set(owed, owing, owing & !bit)
    }

    /// Decides how a call on several words changes them, and whether the target switches.
    #[inline(always)]
    fn others(&self, elements: u64) -> Result<Others> {
        if layout::bitmap_words(self.size()) == 1 {
            let (passes, owing) = (self.read(layout::pass(0, 1))?, self.read(layout::owed(0, 1))?);
            if passes & !self.ignored(0) == 0 && owing == 0 {
                // The common case.
                let mix = self.read(MIX)?;
                if mix & CLOSED != 0 && mix & NUMBER != self.caller.limits.calls {
                    self.restart(mix)?;
                }
                return Ok(Others::None);
            }
        }
        self.others_in_full(elements)
    }

    /// Lets a closed target stay so for as many calls as before.
    #[cold]
    fn restart(self, mix: u64) -> Result<()> {
        self.set(MIX, mix, mix & (CLOSED | THREADS) | self.caller.limits.calls)
    }

    #[cold]
    fn others_in_full(self, elements: u64) -> Result<Others> {
        let (_, owed, bit) = self.own();
        self.pay(owed, bit)?;
        let mix = self.read(MIX)?;
        let (passes, owes) = (self.anybody(layout::pass)?, self.anybody(layout::owed)?);
        let owes = owes && !self.forgive(mix)?;
        if mix & CLOSED != 0 {
            self.restart(mix)?;
        }
        if !(passes || owes) {
            return Ok(Others::None);
        }
        if mix & (CLOSED | THREADS) == 0 {
            let limits = self.caller.limits;
            match mix.saturating_add(elements) {
                now if now < limits.elements => self.set(MIX, mix, now)?,
                _ => self.set(MIX, mix, CLOSED | limits.calls)?,
            }
        }
        if passes {
            self.withdraw()?;
        }
        Ok(Others::OnSingleWords)
    }

    /// Whether a rank other than the caller has its bit in a bitmap.
    fn anybody(&self, bitmap: fn(u32, u32) -> WordId) -> Result<bool> {
        for index in 0..layout::bitmap_words(self.size()) {
            if self.read(bitmap(index, self.size()))? & !self.ignored(index) != 0 {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// Clears all owed bits if the window has had a fence since the passes were withdrawn, and no
    /// rank with several threads has had one. Returns whether it did.
    fn forgive(&self, mix: u64) -> Result<bool> {
        if mix & THREADS != 0 || self.caller.fences <= self.read(WITHDRAWN)? {
            return Ok(false);
        }
        for index in 0..layout::bitmap_words(self.size()) {
            let owed = layout::owed(index, self.size());
            self.set(owed, self.read(owed)?, 0)?;
        }
        Ok(true)
    }

    /// Withdraws all passes; every rank but the caller owes its pass then.
    fn withdraw(&self) -> Result<()> {
        for index in 0..layout::bitmap_words(self.size()) {
            let (pass, owed) = (layout::pass(index, self.size()), layout::owed(index, self.size()));
            let (passes, owing) = (self.read(pass)?, self.read(owed)?);
            self.set(owed, owing, owing | passes & !self.ignored(index))?;
            self.set(pass, passes, 0)?;
        }
        self.set(WITHDRAWN, self.read(WITHDRAWN)?, self.caller.fences)?;
        fence_after_rmw(); // the passes before what is read without them
        Ok(())
    }
}
