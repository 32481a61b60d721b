//! Locks: a fair *group lock* on one contended word, and the two-level scheme of MPI_Win_lock and
//! MPI_Win_lock_all built of it (foMPI paper, section 2.3). Not for deciding whether a call is
//! legal.
//!
//! # The word
//!
//! | bits    | holds   | meaning                                                             |
//! |---------|---------|---------------------------------------------------------------------|
//! | 44..64  | holders | n > 0: n of Shared or All; n < 0: -n of Exclusive or Intent; 0: free |
//! | 22..44  | tail    | the last waiter, 0 if nobody waits                                  |
//! | 0..22   | head    | the first waiter, 0 if nobody waits                                 |
//!
//! A waiter is named by 1 + rank * 8 + node. The count is signed and uppermost, so that one
//! addition releases the lock, whatever its mode, without touching the queue, and a free word is 0:
//! the guess of the first CompareSwap.
//!
//! | node word | kind      | meaning                                                            |
//! |-----------|-----------|--------------------------------------------------------------------|
//! | next      | link      | 0: nobody linked yet; else waiter behind this one << 3, its mode   |
//! | go        | contended | how often this waiter was told to look at the lock word, ever      |
//!
//! A thread that has to wait takes a node ([`Nodes`]). A rank has some of them only, and what a
//! thread without one wants may be what those with one wait for: it must not wait for a node. So it
//! cannot stand in the queue, and asks again and again, as a nested request does (see below).
//!
//! # The protocol
//!
//! A lock is taken by CompareSwap at once if its mode fits to the holders and nobody waits.
//! Otherwise the CompareSwap makes the caller the tail (and head, if alone), it links itself into
//! its predecessor's `next`, by an addition, for it is 0, and sleeps on its own `go`. Only waiters
//! change the queue. A release is one addition; the release that leaves no holder, or makes the
//! first place where all were taken, rings the `go` of the head that it saw. The head, when rung,
//! takes the lock and itself out of the queue with one CompareSwap; if others can hold the lock
//! together with it, it rings the new head, so that neighbours of one mode enter as a batch.
//!
//! *No ring is lost.* A waiter notes its `go` before it looks at the word, and sleeps only while
//! `go` is what it noted. Who rings has changed the word before, so either the look saw that change
//! or the ring comes after the note. `go` only counts upwards and is never reset: two rings are
//! never one value.
//!
//! *A late ring is harmless.* It may reach a node that waits for another lock by now. A ring is
//! only a reason to look: the look is a CompareSwap that succeeds only for the head of a free lock.
//!
//! *A late link cannot be.* A node leaves the queue after its successor has linked, or as the tail,
//! by a CompareSwap that proves that there is no successor; it clears `next` before it enters.
//!
//! *ABA.* The word is the whole state but for the links, and each CompareSwap depends on the word's
//! value alone: a tail that left and came back has cleared its link, and the link of a node that
//! stays in the queue does not change.
//!
//! # Places
//!
//! The word counts [`Words::HOLDERS_MAX`] holders. Processes are fewer ([`layout::RANKS_MAX`]), but
//! each of their threads may hold an intent, or access the regions of a rank. A thread that finds
//! all places taken waits as for a lock held in another mode: it does not fit. A release from that
//! state rings, so that a thread that saw it is rung, or behind one that is; the one that enters so
//! rings the next one, as after any other.
//!
//! # Fairness, and where it ends
//!
//! Who holds nothing enters in the order of the CompareSwaps that queued: writers do not starve
//! behind readers, nor lock_all behind exclusive locks. But a process that already holds a lock of
//! the window must not wait behind one that waits for it: P holds shared(a) and wants shared(b),
//! where a writer is queued behind another reader, who waits for a. Such *nested* requests enter if
//! they fit to the holders, whoever waits; if not, they queue in front. They wait only for holders
//! and other nested requests, as with no queue at all.
//!
//! # Two levels
//!
//! | lock            | word of rank 0 | word of the target | operations, taken and given back |
//! |-----------------|----------------|--------------------|----------------------------------|
//! | lock, shared    |                | Shared             | 1 + 1                            |
//! | lock, exclusive | Intent         | Exclusive          | 2 + 2; 1 + 1 if Intent is held   |
//! | lock_all        | All            |                    | 1 + 1                            |
//!
//! Intent and All exclude each other, and so do Shared and Exclusive. Shared and All need not.
//!
//! # Far words
//!
//! Who enters the queue repeats a CompareSwap until nobody is faster. Where that costs a round trip
//! each time, [`far`] waits instead, on the same word, and with the same functions.

pub mod far;
pub mod look;
mod nodes;
pub mod whole;

use crate::error::Result;
use crate::fabric::layout::{self, NODES_PER_RANK};
use crate::fabric::{Fetch, Rank, WordAt, Words};
pub use nodes::Nodes;

/// How a group lock is held.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mode {
    /// on a target's word, with other readers
    Shared = 1,
    /// on a target's word, alone
    Exclusive = 2,
    /// on the global word, with other lock_all
    All = 3,
    /// on the global word, with other holders of exclusive locks
    Intent = 4,
}

impl Mode {
    fn alone(self) -> bool {
        self == Mode::Exclusive
    }

    /// What one holder of this mode adds to the word.
    fn holder(self) -> u64 {
        match self {
            Mode::Shared | Mode::All => HOLDER,
            Mode::Exclusive | Mode::Intent => HOLDER.wrapping_neg(),
        }
    }
}

/// What the calling process holds already, of all locks of the window.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Held {
    /// no lock
    Nothing,
    /// shared locks only, or any locks where threads may change that at the same time
    Shared,
    /// at least one exclusive lock, and its intent on the global word
    Exclusive,
}

const ID_BITS: u32 = 22;
const ID: u64 = (1 << ID_BITS) - 1;
const HOLDER: u64 = 1 << (2 * ID_BITS);
const MODE_BITS: u32 = 3;
const MODE: u64 = (1 << MODE_BITS) - 1;

/// A value of the lock word.
#[derive(Clone, Copy, PartialEq, Eq)]
struct Word(u64);

impl Word {
    const FREE: Word = Word(0);

    fn holders(self) -> i64 {
        (self.0 as i64) >> (2 * ID_BITS)
    }

    fn head(self) -> u64 {
        self.0 & ID
    }

    fn tail(self) -> u64 {
        self.0 >> ID_BITS & ID
    }

    #[inline(always)]
    fn nobody_waits(self) -> bool {
        self.0 & (HOLDER - 1) == 0
    }

    /// Whether one more can hold the lock in this mode: it is free, or held by others in the mode,
    /// and there is a place for one more.
    fn fits<W: Words>(self, mode: Mode) -> bool {
        let holders = self.holders();
        let joins = !mode.alone() && (holders > 0) == ((mode.holder() as i64) > 0);
        holders == 0 || joins && holders.unsigned_abs() < W::HOLDERS_MAX
    }

    /// Whether a release, before which the word was this, lets somebody in who did not fit: it was
    /// the last holder, or all places were taken.
    fn makes_room<W: Words>(self) -> bool {
        let holders = self.holders().unsigned_abs();
        holders == 1 || holders == W::HOLDERS_MAX
    }

    fn with_queue(self, head: u64, tail: u64) -> Word {
        Word(self.0 & !(ID << ID_BITS | ID) | tail << ID_BITS | head)
    }

    /// The queue without its head, whose link is `link`.
    fn without_head(self, link: u64) -> Word {
        match link {
            0 => self.with_queue(0, 0),
            link => self.with_queue(link >> MODE_BITS, self.tail()),
        }
    }

    fn with_holder(self, mode: Mode) -> Word {
        Word(self.0.wrapping_add(mode.holder()))
    }
}

/// How a lock is held whose word has this value, for a report: the mode of a target's word, and the
/// number of holders. On the global word [`Mode::Shared`] stands for lock_all, [`Mode::Exclusive`]
/// for intents. `None`: it is free.
pub fn holders(word: u64) -> Option<(Mode, u64)> {
    match Word(word).holders() {
        0 => None,
        count if count > 0 => Some((Mode::Shared, count.unsigned_abs())),
        count => Some((Mode::Exclusive, count.unsigned_abs())),
    }
}

/// A waiter: its rank and node in one number, never 0.
#[derive(Clone, Copy)]
struct Waiter {
    rank: Rank,
    node: u32,
}

impl Waiter {
    fn id(self) -> u64 {
        1 + u64::from(self.rank.0) * u64::from(NODES_PER_RANK) + u64::from(self.node)
    }

    fn of(id: u64) -> Waiter {
        assert!(id != 0);
        let index = (id - 1) as u32;
        Waiter { rank: Rank(index / NODES_PER_RANK), node: index % NODES_PER_RANK }
    }

    fn next(self) -> WordAt {
        WordAt { rank: self.rank, word: layout::next(self.node) }
    }

    /// Adds to the `go` of its node.
    fn tell(self, words: &impl Words, add: u64) -> Result<()> {
        words.post(WordAt { rank: self.rank, word: layout::go(self.node) }, add)
    }

    fn ring(self, words: &impl Words) -> Result<()> {
        self.tell(words, 1)
    }
}

/// Takes the group lock `at`. `nested`: the process already holds a lock of this window. After an
/// error (somebody died) the queue is broken, and the window with it.
#[inline]
pub fn acquire(
    words: &impl Words,
    at: WordAt,
    mode: Mode,
    nested: bool,
    nodes: impl Nodes,
) -> Result<()> {
    let (expect, new) = (Word::FREE.0, Word::FREE.with_holder(mode).0);
    let seen = words.fetch(at, Fetch::CompareSwap { expect, new })?;
    if seen == expect { Ok(()) } else { contend(words, at, (mode, nested), Word(seen), &nodes) }
}

/// Takes a lock that was seen not to be free.
#[cold]
fn contend<W: Words>(
    words: &W,
    at: WordAt,
    (mode, nested): (Mode, bool),
    seen: Word,
    nodes: &impl Nodes,
) -> Result<()> {
    loop {
        if let Some(node) = nodes.take() {
            let request =
                Request { words, at, mode, nested, me: Waiter { rank: words.rank(), node } };
            let taken =
                if W::FAR { request.contend_far(seen, nodes) } else { request.contend(seen) };
            nodes.give_back(node);
            return taken;
        }
        if try_join(words, at, mode)? {
            return Ok(());
        }
        nodes.pause()?;
    }
}

/// Takes the group lock `at` if the mode fits to the holders, whoever waits.
fn try_join<W: Words>(words: &W, at: WordAt, mode: Mode) -> Result<bool> {
    let mut seen = Word::FREE;
    while seen.fits::<W>(mode) {
        let (expect, new) = (seen.0, seen.with_holder(mode).0);
        match Word(words.fetch(at, Fetch::CompareSwap { expect, new })?) {
            before if before == seen => return Ok(true),
            before => seen = before,
        }
    }
    Ok(false)
}

/// A request for a group lock, with a node.
struct Request<'a, W> {
    words: &'a W,
    at: WordAt,
    mode: Mode,
    nested: bool,
    me: Waiter,
}

impl<W: Words> Request<'_, W> {
    /// Replaces the value `from` of the lock by `to`, or says what the lock holds instead.
    #[inline]
    fn replace(&self, from: Word, to: Word) -> Result<Option<Word>> {
        let swap = Fetch::CompareSwap { expect: from.0, new: to.0 };
        let before = self.words.fetch(self.at, swap)?;
        Ok(if before == from.0 { None } else { Some(Word(before)) })
    }

    /// Takes the lock, which was seen as `seen`: at once if that is fair, else through the queue.
    fn contend(&self, mut seen: Word) -> Result<()> {
        loop {
            let changed = if seen.fits::<W>(self.mode) && (self.nested || seen.head() == 0) {
                self.replace(seen, seen.with_holder(self.mode))?
            } else {
                let told = self.words.own(layout::go(self.me.node)); // before the look
                let queued = self.place(seen);
                match self.enqueue(seen, queued)? {
                    None => return self.wait_in_queue(queued.tail(), told),
                    changed => changed,
                }
            };
            match changed {
                None => return Ok(()),
                Some(now) => seen = now,
            }
        }
    }

    /// The lock's value with this waiter in the queue: behind all, or in front if nested.
    fn place(&self, seen: Word) -> Word {
        assert!((seen.head() == 0) == (seen.tail() == 0));
        match seen.head() {
            0 => seen.with_queue(self.me.id(), self.me.id()),
            _ if self.nested => seen.with_queue(self.me.id(), seen.tail()),
            head => seen.with_queue(head, self.me.id()),
        }
    }

    /// Tries to enter the queue, and links this waiter with its neighbour there.
    fn enqueue(&self, seen: Word, queued: Word) -> Result<Option<Word>> {
        let in_front = queued.tail() != self.me.id();
        // The old head's mode is not known: 0, and it will be rung to be sure.
        let link = if in_front { seen.head() << MODE_BITS } else { 0 };
        self.words.set_own(self.me.next().word, link);
        let changed = self.replace(seen, queued)?;
        if changed.is_none() && !in_front && seen.tail() != 0 {
            let link = self.me.id() << MODE_BITS | self.mode as u64;
            self.words.post(Waiter::of(seen.tail()).next(), link)?;
        }
        Ok(changed)
    }

    /// Waits as a member of the queue, whose tail was `tail` and whose `go` was `told` then.
    fn wait_in_queue(&self, mut tail: u64, mut told: u64) -> Result<()> {
        let me = self.me.id();
        loop {
            told = self.words.wait_own(layout::go(self.me.node), |go| go != told)?;
            // The guess: the holders are gone, I am the head, and nobody new has come.
            let mut seen = Word::FREE.with_queue(me, tail);
            while seen.head() == me && seen.fits::<W>(self.mode) {
                let link = match seen.tail() == me {
                    true => 0,
                    // The next waiter is in the queue; it is about to link itself.
                    false => self.words.wait_own(self.me.next().word, |link| link != 0)?,
                };
                match self.replace(seen, seen.without_head(link).with_holder(self.mode))? {
                    None => return self.ring_companion(link),
                    Some(now) => seen = now,
                }
            }
            tail = seen.tail();
        }
    }

    /// Rings the new head of the queue if it may hold the lock together with this process.
    fn ring_companion(&self, link: u64) -> Result<()> {
        let mode = link & MODE;
        let may_join = !self.mode.alone() && (mode == 0 || mode == self.mode as u64);
        match link >> MODE_BITS {
            0 => Ok(()),
            head if may_join => Waiter::of(head).ring(self.words),
            _ => Ok(()),
        }
    }
}

/// Gives the group lock `at` back, held in `mode`. When this returns, everything that was sent to
/// that rank before is done there (laws 2 and 6 of the road); what was sent to other ranks under
/// this lock is for the caller to flush before.
#[inline(always)]
pub fn release<W: Words>(words: &W, at: WordAt, mode: Mode) -> Result<()> {
    words.order(at.rank)?;
    let before = Word(words.fetch(at, Fetch::Add(mode.holder().wrapping_neg()))?);
    debug_assert!(before.holders() != 0 && (before.holders() > 0) == ((mode.holder() as i64) > 0));
    if before.nobody_waits() { Ok(()) } else { ring_after(words, before) }
}

/// Rings whom a release has to wake, where somebody waits.
#[cold]
fn ring_after<W: Words>(words: &W, before: Word) -> Result<()> {
    match before.makes_room::<W>() {
        false => Ok(()),
        true if W::FAR => far::ring_first(words, before),
        true => Waiter::of(before.head()).ring(words),
    }
}

fn target_word(target: Rank) -> WordAt {
    WordAt { rank: target, word: layout::LOCK }
}

/// MPI_Win_lock, shared (MPI-4.1 §12.5.3).
#[inline]
pub fn lock_shared(words: &impl Words, target: Rank, held: Held, nodes: impl Nodes) -> Result<()> {
    acquire(words, target_word(target), Mode::Shared, held != Held::Nothing, nodes)
}

/// Takes the group lock `at` if it is free and nobody waits for it. One operation.
#[inline(always)]
pub fn try_free(words: &impl Words, at: WordAt, mode: Mode) -> Result<bool> {
    let (expect, new) = (Word::FREE.0, Word::FREE.with_holder(mode).0);
    Ok(words.fetch(at, Fetch::CompareSwap { expect, new })? == expect)
}

/// [`lock_shared`] if that needs no waiting and no second look; a process that holds nothing.
#[inline(always)]
pub fn try_lock_shared(words: &impl Words, target: Rank) -> Result<bool> {
    try_free(words, target_word(target), Mode::Shared)
}

/// [`lock_exclusive`] if that needs no waiting and no second look; a process that holds nothing.
#[inline(always)]
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

/// MPI_Win_unlock of a shared lock. What was sent to the target is done there.
#[inline]
pub fn unlock_shared(words: &impl Words, target: Rank) -> Result<()> {
    release(words, target_word(target), Mode::Shared)
}

/// MPI_Win_lock, exclusive (MPI-4.1 §12.5.3). The first exclusive lock of a process takes the
/// intent on the global word too. Threads that lock and unlock at the same time say at most
/// [`Held::Shared`], so that each takes an intent of its own.
#[inline]
pub fn lock_exclusive(
    words: &impl Words,
    target: Rank,
    held: Held,
    nodes: impl Nodes,
) -> Result<()> {
    let nested = held != Held::Nothing;
    if held != Held::Exclusive {
        acquire(words, layout::global(), Mode::Intent, nested, &nodes)?;
    }
    acquire(words, target_word(target), Mode::Exclusive, nested, &nodes)
}

/// MPI_Win_unlock of an exclusive lock. `left`: what the process still holds without this one; the
/// last exclusive lock gives the intent back. What was sent to the target is done there.
#[inline]
pub fn unlock_exclusive(words: &impl Words, target: Rank, left: Held) -> Result<()> {
    let released = release(words, target_word(target), Mode::Exclusive);
    if left == Held::Exclusive {
        return released;
    }
    // Though the target be lost: others wait for this word.
    released.and(release(words, layout::global(), Mode::Intent))
}

/// MPI_Win_lock_all (MPI-4.1 §12.5.3). A process that calls it holds no lock of the window.
#[inline]
pub fn lock_all(words: &impl Words, nodes: impl Nodes) -> Result<()> {
    acquire(words, layout::global(), Mode::All, false, nodes)
}

/// MPI_Win_unlock_all. What was sent to any target is done there. The lock is given back though a
/// target be lost: others wait for it.
#[inline]
pub fn unlock_all(words: &impl Words) -> Result<()> {
    let flushed = words.flush_all();
    flushed.and(release(words, layout::global(), Mode::All))
}
