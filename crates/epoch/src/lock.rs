//! Locks: a fair *group lock* on one contended word. [`two_levels`] makes the locks of MPI_Win_lock
//! and MPI_Win_lock_all from it. Not for deciding whether a call is legal.
//!
//! # The words
//!
//! | bits    | holds   | meaning ([`word`] has the states and the steps between them)        |
//! |---------|---------|---------------------------------------------------------------------|
//! | 44..64  | holders | n > 0: n of Shared or All; n < 0: -n of Exclusive or Intent; 0: free |
//! | 22..44  | tail    | the last waiter, 0 if there is none                                 |
//! | 0..22   | head    | the first waiter, 0 if there is none                                |
//!
//! The number of a waiter is 1 + rank * [`NODES_PER_RANK`] + node. A free word is 0, which is what
//! the first CompareSwap expects.
//!
//! | node word | kind      | meaning                                                            |
//! |-----------|-----------|--------------------------------------------------------------------|
//! | next      | link      | 0: no successor has linked itself; else its number << 3, its mode  |
//! | go        | contended | the number of times that this waiter was woken, ever               |
//!
//! A thread that has to wait takes a node ([`Nodes`]). A rank has few of them. A thread without a
//! node must not wait for one, because the threads with a node may wait for it, in the end. It
//! cannot stand in the queue either: it repeats its CompareSwap, as a nested request does (see
//! below).
//!
//! # The protocol
//!
//! A thread takes a lock by one CompareSwap if its mode fits the holders and there is no waiter.
//! Otherwise the CompareSwap makes the thread the tail of the queue (and its head, if it is alone).
//! The thread adds its number to the `next` of its predecessor, which is 0, and sleeps on its own
//! `go`. Only waiters change the queue. A release is one addition. If it leaves no holder, or the
//! first free place, it wakes the head that it saw, by an addition to the `go` of that node. The
//! head then takes the lock and leaves the queue with one CompareSwap. If others can hold the lock
//! together with it, it wakes the new head, so that neighbours of one mode enter as a batch.
//!
//! *No wake-up is lost.* A waiter reads its `go` before it reads the lock word, and sleeps only
//! while `go` has that value. A thread changes the lock word before it wakes a waiter. So either
//! the waiter saw that change, or the wake-up comes after the waiter has read `go`. `go` only
//! counts upwards and is never reset: two wake-ups never leave the same value.
//!
//! *A late wake-up is harmless.* It may reach a node that waits for another lock by now. A wake-up
//! is only a reason to try a CompareSwap, which succeeds only for the head of a lock that fits.
//!
//! *No link is late.* A node leaves the queue after its successor has linked itself; or as the
//! tail, by a CompareSwap that proves that there is no successor. It clears `next` before it
//! enters.
//!
//! *ABA.* The word is the whole state but for the links, and the result of each CompareSwap depends
//! on the word's value alone: a tail that left and came back has cleared its link, and the link of
//! a node that stays in the queue does not change.
//!
//! # Places
//!
//! The word counts [`Words::HOLDERS_MAX`] holders, including the standing intent. There are
//! fewer processes ([`layout::RANKS_MAX`]), but each of their threads may hold an intent, or access
//! the regions of a rank. A thread that finds all places taken waits as for a lock that is held in
//! another mode.
//! The release of one of these places wakes the head of the queue; the head enters and wakes the
//! next waiter, as after any other release.
//!
//! # Fairness, and where it ends
//!
//! Requests of processes that hold nothing enter in the order of the CompareSwaps that queued them:
//! writers do not starve behind readers, nor lock_all behind exclusive locks. But a process that
//! already holds a lock of the window must not wait behind a request that waits for that lock: P
//! holds shared(a) and wants shared(b), where a writer is queued behind another reader, which waits
//! for a. Such *nested* requests enter if they fit to the holders, even if others wait; if they do
//! not fit, they queue in front. They wait only for holders and other nested requests, as if there
//! were no queue.
//!
//! Where ranks share cores, a process that has had its turn may take a *free* lock again for a
//! bounded time, before waiters that are woken but do not run yet ([`overtaking`]). Its release
//! wakes the head once more, which does not sleep then: an addition.
//!
//! # Far words
//!
//! A thread that enters the queue repeats its CompareSwap while other threads change the word.
//! Where each attempt costs a round trip, [`tickets`] draws a ticket instead, with the same lock
//! word and the same functions.

pub mod acquire_and_read;
pub mod asked;
pub mod atomic_calls;
pub mod in_one_trip;
pub mod overtaking;
pub mod passes;
mod queue_nodes;
pub mod standing;
pub mod tickets;
mod two_levels;
pub mod unconfirmed_targets;
#[cfg(not(loom))]
pub mod used_nodes;
mod word;

use crate::error::Result;
use crate::fabric::layout::{self, NODES_PER_RANK};
use crate::fabric::{Fetch, WordAt, Words};
use crate::rank_numbers::Rank;
pub use queue_nodes::Nodes;
pub use two_levels::{
    Intent, SpareIntent, Tried, begin_release_all, begin_release_shared, begin_release_target_only,
    give_back_late, lock_all, lock_exclusive, lock_shared, try_lock_all, try_lock_alone,
    try_lock_exclusive, try_lock_shared, unlock_all, unlock_exclusive, unlock_shared,
};
use word::{ID, ID_BITS, LockWord, MODE, MODE_BITS};
pub use word::{Mode, holders};

/// The locks of the window that the calling process holds already.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Held {
    /// no lock
    Nothing,
    /// shared locks, or exclusive ones without an intent of the process; or any locks where threads
    /// may change that at the same time
    Shared,
    /// at least one exclusive lock, and an intent of the process on the global word
    Exclusive,
}

/// A waiting thread: its rank, and its queue node there. Its number ([`Waiter::id`]) is never 0.
#[derive(Clone, Copy)]
struct Waiter {
    rank: Rank,
    queue_node: u32,
}

impl Waiter {
    fn id(self) -> u64 {
        1 + u64::from(self.rank.0) * u64::from(NODES_PER_RANK) + u64::from(self.queue_node)
    }

    fn of(id: u64) -> Waiter {
        assert!(id != 0);
        let index = ((id - 1) & ID) as u32;
        Waiter { rank: Rank(index / NODES_PER_RANK), queue_node: index % NODES_PER_RANK }
    }

    fn next(self) -> WordAt {
        WordAt { rank: self.rank, word: layout::next(self.queue_node) }
    }

    /// Adds to the `go` of its node.
    fn add_to_go(self, words: &impl Words, add: u64) -> Result<()> {
        words.post(WordAt { rank: self.rank, word: layout::go(self.queue_node) }, add)
    }

    fn wake(self, words: &impl Words) -> Result<()> {
        self.add_to_go(words, 1)
    }
}

/// Takes the group lock `at`. `nested`: the process already holds a lock of this window. An error
/// (a rank has died) leaves the queue broken, so that the window cannot be used any more.
#[inline]
pub fn acquire(
    words: &impl Words,
    at: WordAt,
    mode: Mode,
    nested: bool,
    nodes: impl Nodes,
) -> Result<()> {
    let (expect, new) = (LockWord::FREE.0, LockWord::FREE.with_holder(mode).0);
    let seen = words.fetch(at, Fetch::CompareSwap { expect, new })?;
    if seen == expect {
        Ok(())
    } else {
        acquire_slow(words, at, (mode, nested), LockWord(seen), &nodes)
    }
}

/// Takes a lock whose word was read as `seen` and is not free.
#[cold]
fn acquire_slow<W: Words>(
    words: &W,
    at: WordAt,
    (mode, nested): (Mode, bool),
    seen: LockWord,
    nodes: &impl Nodes,
) -> Result<()> {
    loop {
        if let Some(queue_node) = nodes.take() {
            let request =
                Request { words, at, mode, nested, me: Waiter { rank: words.rank(), queue_node } };
            let taken = if W::FAR {
                request.acquire_far(seen, nodes)
            } else {
                request.acquire_queued(seen, nodes)
            };
            nodes.give_back(queue_node);
            return taken;
        }
        if try_join(words, at, mode)? {
            return Ok(());
        }
        nodes.pause()?;
    }
}

/// Takes the group lock `at` if it is free and no thread waits for it. One operation.
#[inline(always)]
pub fn try_free(words: &impl Words, at: WordAt, mode: Mode) -> Result<bool> {
    let (expect, new) = (LockWord::FREE.0, LockWord::FREE.with_holder(mode).0);
    Ok(words.fetch(at, Fetch::CompareSwap { expect, new })? == expect)
}

/// Takes the group lock `at` if the mode fits to the holders, even if others wait.
fn try_join<W: Words>(words: &W, at: WordAt, mode: Mode) -> Result<bool> {
    let mut seen = LockWord::FREE;
    while seen.fits::<W>(mode) {
        let (expect, new) = (seen.0, seen.with_holder(mode).0);
        match LockWord(words.fetch(at, Fetch::CompareSwap { expect, new })?) {
            before if before == seen => return Ok(true),
            before => seen = before,
        }
    }
    Ok(false)
}

/// A request for a group lock by a thread that has a queue node.
struct Request<'a, W> {
    words: &'a W,
    at: WordAt,
    mode: Mode,
    nested: bool,
    me: Waiter,
}

impl<W: Words> Request<'_, W> {
    /// Replaces the value `from` of the lock word by `to`. Returns the value if it was another.
    #[inline]
    fn replace(&self, from: LockWord, to: LockWord) -> Result<Option<LockWord>> {
        let swap = Fetch::CompareSwap { expect: from.0, new: to.0 };
        let before = self.words.fetch(self.at, swap)?;
        Ok(if before == from.0 { None } else { Some(LockWord(before)) })
    }

    /// Takes the lock, whose word was read as `seen`: at once if that is fair, or if the process
    /// may overtake others now; else in the queue.
    fn acquire_queued(&self, mut seen: LockWord, nodes: &impl Nodes) -> Result<()> {
        loop {
            let overtakes = || seen.holders() == 0 && nodes.may_overtake(self.at);
            let enters = self.nested || seen.head() == 0 || overtakes();
            let changed = if seen.fits::<W>(self.mode) && enters {
                self.replace(seen, seen.with_holder(self.mode))?
            } else {
                let go = self.words.own(layout::go(self.me.queue_node)); // before the CompareSwap
                let queued = self.place(seen);
                match self.enqueue(seen, queued)? {
                    None => {
                        self.wait_in_queue(queued.tail(), go)?;
                        if !self.nested {
                            nodes.had_turn(self.at);
                        }
                        return Ok(());
                    }
                    changed => changed,
                }
            };
            match changed {
                None => return Ok(()),
                Some(now) => seen = now,
            }
        }
    }

    /// Returns the word with this waiter in the queue: behind all others, or in front if nested.
    fn place(&self, seen: LockWord) -> LockWord {
        assert!((seen.head() == 0) == (seen.tail() == 0));
        match seen.head() {
            0 => seen.with_queue(self.me.id(), self.me.id()),
            _ if self.nested => seen.with_queue(self.me.id(), seen.tail()),
            head => seen.with_queue(head, self.me.id()),
        }
    }

    /// Tries to enter the queue, and links this waiter with its neighbour there.
    fn enqueue(&self, seen: LockWord, queued: LockWord) -> Result<Option<LockWord>> {
        let in_front = queued.tail() != self.me.id();
        // The mode of the old head is not known here: 0, so that it is woken in any case.
        let link = if in_front { seen.head() << MODE_BITS } else { 0 };
        self.words.set_own(self.me.next().word, link);
        let changed = self.replace(seen, queued)?;
        if changed.is_none() && !in_front && seen.tail() != 0 {
            let link = self.me.id() << MODE_BITS | self.mode as u64;
            self.words.post(Waiter::of(seen.tail()).next(), link)?;
        }
        Ok(changed)
    }

    /// Waits in the queue. `tail`: its tail when this waiter entered; `go`: the value of this
    /// node's `go` before that.
    fn wait_in_queue(&self, mut tail: u64, mut go: u64) -> Result<()> {
        let me = self.me.id();
        loop {
            go = self.words.wait_own(layout::go(self.me.queue_node), |now| now != go)?;
            // A guess: the holders are gone, this waiter is the head, and the tail is the same.
            let mut seen = LockWord::FREE.with_queue(me, tail);
            while seen.head() == me && seen.fits::<W>(self.mode) {
                let link = match seen.tail() == me {
                    true => 0,
                    // The next waiter is in the queue and is about to link itself.
                    false => self.words.wait_own(self.me.next().word, |link| link != 0)?,
                };
                match self.replace(seen, seen.without_head(link).with_holder(self.mode))? {
                    None => return self.wake_companion(link),
                    Some(now) => seen = now,
                }
            }
            tail = seen.tail();
        }
    }

    /// Wakes the new head of the queue if it may hold the lock together with this thread.
    fn wake_companion(&self, link: u64) -> Result<()> {
        let mode = link & MODE;
        let may_join = !self.mode.alone() && (mode == 0 || mode == self.mode as u64);
        match link >> MODE_BITS {
            0 => Ok(()),
            head if may_join => Waiter::of(head).wake(self.words),
            _ => Ok(()),
        }
    }
}

/// A lock that was released, and whose head has yet to be woken if it may enter.
#[must_use]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Released(LockWord);

impl Released {
    /// Whether no thread waits for the lock, so that nothing is left to do.
    #[inline(always)]
    pub fn is_done(self) -> bool {
        !self.0.has_waiter()
    }

    /// Does what is left to do.
    #[inline(always)]
    pub fn finish(self, words: &impl Words) -> Result<()> {
        if self.is_done() { Ok(()) } else { wake_after(words, self.0) }
    }
}

/// Releases the group lock `at`, which is held in `mode`. When this returns, all operations that
/// were sent to that rank before are done there (laws 2 and 6 of the transport). The caller flushes
/// other ranks before, if it sent operations to them under this lock.
#[inline(always)]
pub fn release(words: &impl Words, at: WordAt, mode: Mode) -> Result<()> {
    begin_release(words, at, mode)?.finish(words)
}

/// The first part of [`release`], which is all of it if no thread waits.
#[inline(always)]
pub fn begin_release(words: &impl Words, at: WordAt, mode: Mode) -> Result<Released> {
    words.order(at.rank)?;
    let before = LockWord(words.fetch(at, Fetch::Add(mode.holder().wrapping_neg()))?);
    debug_assert!(
        before.holders() != 0 && (before.holders() > 0) == (mode.holder().cast_signed() > 0)
    );
    Ok(Released(before))
}

/// Wakes the head of the queue if it may enter after the release of a lock, whose word was
/// `before`.
#[cold]
fn wake_after<W: Words>(words: &W, before: LockWord) -> Result<()> {
    match before.makes_room::<W>() {
        false => Ok(()),
        true if W::FAR => tickets::wake_first(words, before),
        true => Waiter::of(before.head()).wake(words),
    }
}
