//! The group lock for words that are a round trip away ([`Words::FAR`]): taken with a bounded
//! number of operations, whatever the number of contenders. Within a node a repeated CompareSwap
//! costs next to nothing. Over a network each one costs a round trip: if n contenders all enter one
//! queue by CompareSwap, each of them repeats it up to n times, and for ever if others come and go.
//!
//! Here no contender repeats an operation. A thread that does not get the lock at once draws a
//! *ticket*, by an addition, which always succeeds. Holders of consecutive tickets find each other
//! in a *rendezvous slot*, a word of a small circular array, by one CompareSwap each: the second to
//! arrive learns of the first and links the two. From then on each thread waits in its own memory
//! until its predecessor passes the *turn* on. Only one thread has the turn: it adds itself to the
//! lock word as the one waiter, which also keeps newcomers out, takes the lock when its mode fits,
//! and passes the turn on.
//!
//! | bits of the lock | holds   | meaning                                                      |
//! |------------------|---------|--------------------------------------------------------------|
//! | 44..64           | holders | as in [`super`]                                              |
//! | 22..44           | waiter  | the thread that has the turn, 0 if there is none             |
//! | 0..22            | nested  | the first of the waiting nested requests, 0 if there is none |
//!
//! | bits of the tickets | meaning                                                             |
//! |---------------------|---------------------------------------------------------------------|
//! | 32..64              | the number of tickets drawn, ever                                   |
//! | 0..32               | the ticket that has the turn; it may not be drawn yet               |
//!
//! | bits of a rendezvous slot | meaning                                                       |
//! |---------------------------|---------------------------------------------------------------|
//! | 32..64                    | the ticket of the predecessor                                 |
//! | 22..24                    | the first arrival: the successor; the predecessor, which      |
//! |                           | waits; or the predecessor, which passes its turn on           |
//! | 0..22                     | the waiter that arrived first; 0: the slot is empty           |
//!
//! | bits of a node's `go` | meaning                                                           |
//! |-----------------------|-------------------------------------------------------------------|
//! | 32..64                | wake-ups: read the lock word again, as in [`super`]                 |
//! | 0..32                 | the number of turns passed to this waiter, ever                   |
//!
//! The `next` of a node is the waiter behind it. For a node with a ticket, the successor sets it;
//! a nested request sets its own.
//!
//! # Why it is right
//!
//! *At most one thread has the turn.* The turn goes from ticket n to ticket n + 1. Either n passes
//! it to the thread that has drawn n + 1; or no thread has drawn n + 1 yet, and the one that does
//! finds that it has the turn. Not both, because the number of tickets drawn and the turn are in
//! one word. So `waiter` is changed by one thread at a time: from 0 by an addition, and back to 0
//! by the CompareSwap that takes the lock.
//!
//! *A turn is never late.* The thread that a turn is passed to waits for it, and for nothing else,
//! until it arrives: no turn arrives in a later wait with the same node. (A wake-up may be late; it
//! is only a reason to check, as in [`super`].)
//!
//! *Neighbours find each other.* The slot of ticket n is used only if there is a ticket n + 1 or n
//! itself waits, and only by these two, by each once. The second to arrive empties it; if n is the
//! first, and no thread has drawn n + 1 when n ends its turn, n empties it. A thread that finds a
//! slot in use by tickets of an earlier round leaves it as it is and tries again: that happens only
//! if more tickets than there are slots are drawn between two steps of a thread, its drawing and
//! its rendezvous.
//!
//! *No thread waits for another lock at a slot.* The last thread in the queue of a lock leaves a
//! note in its slot, which stays as long as that thread waits. That may be as long as an epoch of
//! the holder, which takes other locks of the same rank meanwhile (an accumulate under
//! MPI_Win_lock). So each lock has an array of slots of its own. There, a note of n keeps tickets
//! of later rounds from the slot until n + 1 has arrived. These were drawn after n + 1, and n + 1
//! waits for older tickets only: so there is no circular wait.
//!
//! *No wake-up is lost.* The last holder wakes the first nested request; if there is none, the
//! waiter. A nested request that takes the lock in a mode that others can share wakes the next
//! nested request; if there is none, the waiter.
//!
//! # What it costs
//!
//! A writer needs on one word at most seven fetches (the first CompareSwap, the ticket, two
//! rendezvous at once, the waiter, the CompareSwap that takes the lock, the end of the turn) and
//! four posts (two slots emptied, the link, the turn passed on), and nothing while it waits. A
//! reader first tries [`JOINS_MAX`] more times; and if it enters together with h readers, it may
//! see each of them leave and try again, h times. Nested requests, which overtake (see [`super`]),
//! may each make a thread try again once more. Nested requests themselves, and threads without a
//! node, repeat as in [`super`]. `epoch/tests/bounds.rs` counts. A free lock costs what it costs
//! within a node: one CompareSwap.
//!
//! # Fairness
//!
//! Tickets are served in their order. A newcomer can take a free lock while a turn is on its way,
//! but not while the lock word has a waiter.

use super::{ID, ID_BITS, LockWord, MODE_BITS, Nodes, Request, Waiter};
use crate::error::Result;
use crate::fabric::layout;
use crate::fabric::{Fetch, WordAt, Words};

/// How often a thread tries to take a lock that is free or held in the same mode, after the first
/// attempt and before it draws a ticket.
pub const JOINS_MAX: u32 = 2;

/// The longest pause, in calls of [`Nodes::pause`], before a rendezvous slot is tried again.
const PAUSES_MAX: u32 = 1 << 10;

/// The unit of the upper half of a word: one ticket drawn, or one wake-up. The lower half of the
/// word is the ticket that has the turn, or the number of turns.
const UPPER: u64 = 1 << 32;

/// Returns the upper half of a word, see [`UPPER`].
fn upper(word: u64) -> u32 {
    (word >> 32) as u32
}

/// Returns the lower half of a word, see [`UPPER`].
fn lower(word: u64) -> u32 {
    (word & (UPPER - 1)) as u32
}

/// The first arrival at a rendezvous slot.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Arrival {
    /// the successor
    Successor = 1,
    /// the predecessor, which waits for its turn
    Predecessor = 2,
    /// the predecessor, which passes its turn on
    Turn = 3,
}

/// The part of a note that both threads of a rendezvous know: the ticket of the predecessor.
const TICKET: u64 = !0 << 32;

fn arrival(note: u64) -> Arrival {
    match note >> ID_BITS & 3 {
        1 => Arrival::Successor,
        2 => Arrival::Predecessor,
        _ => Arrival::Turn,
    }
}

/// Wakes a waiter, which then reads the lock word.
fn wake(words: &impl Words, waiter: u64) -> Result<()> {
    Waiter::of(waiter).add_to_go(words, UPPER)
}

/// Wakes the waiter that a release must wake if it leaves no holder: the first nested request, or
/// else the waiter with the turn.
#[cold]
pub(super) fn wake_first(words: &impl Words, before: LockWord) -> Result<()> {
    wake(words, if before.head() == 0 { before.tail() } else { before.head() })
}

impl<W: Words> Request<'_, W> {
    /// Takes the lock, whose word was read as `seen`: at once if that is fair, else with a ticket.
    pub(super) fn acquire_far(&self, mut seen: LockWord, nodes: &impl Nodes) -> Result<()> {
        for _ in 0..JOINS_MAX {
            if !seen.fits::<W>(self.mode) || !self.nested && seen.has_waiter() {
                break;
            }
            match self.replace(seen, seen.with_holder(self.mode))? {
                None => return Ok(()),
                Some(now) => seen = now,
            }
        }
        if self.nested { self.wait_nested(seen) } else { self.wait_for_turn(nodes) }
    }

    fn tickets(&self) -> WordAt {
        WordAt { rank: self.at.rank, word: layout::tickets(self.at.word) }
    }

    /// Returns the rendezvous slot of `ticket` and the next ticket.
    fn slot_of(&self, ticket: u32) -> WordAt {
        WordAt { rank: self.at.rank, word: layout::rendezvous(self.at.word, ticket) }
    }

    /// Returns the value of a rendezvous slot if this thread is the first arrival.
    fn note(&self, ticket: u32, arrival: Arrival) -> u64 {
        u64::from(ticket) << 32 | (arrival as u64) << ID_BITS | self.me.id()
    }

    /// Draws a ticket, waits for its turn, takes the lock, and passes the turn on.
    fn wait_for_turn(&self, nodes: &impl Nodes) -> Result<()> {
        self.words.set_own(self.me.next().word, 0);
        let go = self.words.own(layout::go(self.me.queue_node));
        let before = self.words.fetch(self.tickets(), Fetch::Add(UPPER))?;
        let (ticket, turn) = (upper(before), lower(before));
        let successor = match ticket == turn {
            true => None,
            false => Some(self.wait_for_predecessor(ticket, go, nodes)?),
        };
        let successor = self.take_in_turn(ticket, successor, nodes)?;
        self.pass_on(ticket, successor, nodes)
    }

    /// Waits until the predecessor has passed its turn on. `go`: the value of this node's `go`
    /// before the ticket was drawn. Returns the successor if it was the first arrival at their
    /// slot, else 0.
    fn wait_for_predecessor(&self, ticket: u32, go: u64, nodes: &impl Nodes) -> Result<u64> {
        let previous = ticket.wrapping_sub(1);
        let predecessor = self.begin_rendezvous(previous, Arrival::Successor)?;
        let successor = self.begin_rendezvous(ticket, Arrival::Predecessor)?;
        let predecessor = self.end_rendezvous(previous, Arrival::Successor, predecessor, nodes)?;
        let successor = self.end_rendezvous(ticket, Arrival::Predecessor, successor, nodes)?;
        match predecessor {
            0 => {}
            note if arrival(note) == Arrival::Turn => return Ok(successor & ID),
            note => self.words.post(Waiter::of(note & ID).next(), self.me.id())?,
        }
        let turns = lower(go);
        self.words.wait_own(layout::go(self.me.queue_node), |go| lower(go) != turns)?;
        Ok(successor & ID)
    }

    fn begin_rendezvous(&self, ticket: u32, arrival: Arrival) -> Result<W::Ticket> {
        let swap = Fetch::CompareSwap { expect: 0, new: self.note(ticket, arrival) };
        self.words.begin(self.slot_of(ticket), swap)
    }

    /// Returns the value that the other ticket holder has stored in the rendezvous slot, or 0 if
    /// this thread is the first arrival. `begun`: the result of `begin_rendezvous`.
    fn end_rendezvous(
        &self,
        ticket: u32,
        arrival: Arrival,
        mut begun: W::Ticket,
        nodes: &impl Nodes,
    ) -> Result<u64> {
        let own_ticket = self.note(ticket, arrival) & TICKET;
        let mut pauses = 1;
        loop {
            let note = self.words.finish(begun)?;
            if note == 0 {
                return Ok(0);
            }
            if note & TICKET == own_ticket {
                self.words.post(self.slot_of(ticket), note.wrapping_neg())?;
                return Ok(note);
            }
            // Tickets of another round use the slot.
            for _ in 0..pauses {
                nodes.pause()?;
            }
            pauses = PAUSES_MAX.min(2 * pauses);
            begun = self.begin_rendezvous(ticket, arrival)?;
        }
    }

    /// Meets the successor, or leaves a note for it. Returns the successor, or 0.
    fn meet_successor(&self, ticket: u32, arrival: Arrival, nodes: &impl Nodes) -> Result<u64> {
        let begun = self.begin_rendezvous(ticket, arrival)?;
        Ok(self.end_rendezvous(ticket, arrival, begun, nodes)? & ID)
    }

    /// Takes the lock as the thread that has the turn. `successor`, also returned: the successor,
    /// as in `pass_on`. The successor must not wait at their slot for this thread while this thread
    /// waits for the lock: they meet before that.
    fn take_in_turn(
        &self,
        ticket: u32,
        mut successor: Option<u64>,
        nodes: &impl Nodes,
    ) -> Result<Option<u64>> {
        let mut go = self.words.own(layout::go(self.me.queue_node)); // before reading the lock word
        let me = self.me.id() << ID_BITS;
        let before = LockWord(self.words.fetch(self.at, Fetch::Add(me))?);
        assert!(before.tail() == 0);
        let mut seen = LockWord(before.0 + me);
        loop {
            while seen.head() == 0 && seen.fits::<W>(self.mode) {
                match self.replace(seen, LockWord(seen.0 - me).with_holder(self.mode))? {
                    None => return Ok(successor),
                    Some(now) => seen = now,
                }
            }
            if successor.is_none() {
                successor = Some(self.meet_successor(ticket, Arrival::Predecessor, nodes)?);
            }
            go = self.wait_for_wake(go)?;
            seen = LockWord(me); // a guess: the holders are gone
        }
    }

    /// Waits to be woken after `before`, the value of this node's `go`. Returns the new value.
    fn wait_for_wake(&self, before: u64) -> Result<u64> {
        self.words.wait_own(layout::go(self.me.queue_node), |go| go >> 32 != before >> 32)
    }

    /// Ends the turn of `ticket`, and passes it on. `successor`: the successor; 0 if this thread
    /// was the first arrival at their slot, so that the successor links itself; `None` if this
    /// thread has not been at the slot.
    fn pass_on(&self, ticket: u32, successor: Option<u64>, nodes: &impl Nodes) -> Result<()> {
        // The lower half wraps around without a carry into the upper half.
        let turn = if ticket == u32::MAX { 1u64.wrapping_sub(UPPER) } else { 1 };
        let before = self.words.fetch(self.tickets(), Fetch::Add(turn))?;
        assert!(lower(before) == ticket);
        let next = ticket.wrapping_add(1);
        let is_last = upper(before) == next;
        let successor = match successor {
            None if is_last => return Ok(()),
            None => match self.meet_successor(ticket, Arrival::Turn, nodes)? {
                0 => return Ok(()), // the successor finds its turn in the slot
                successor => successor,
            },
            Some(0) if is_last => {
                // No successor will come to the slot: this thread removes its note.
                let note = self.note(ticket, Arrival::Predecessor);
                return self.words.post(self.slot_of(ticket), note.wrapping_neg());
            }
            Some(0) => self.words.wait_own(self.me.next().word, |next| next != 0)?,
            Some(successor) => successor,
        };
        Waiter::of(successor).add_to_go(self.words, 1)
    }

    /// Waits as a nested request, in front of all requests that wait already.
    fn wait_nested(&self, mut seen: LockWord) -> Result<()> {
        let mut go;
        loop {
            go = self.words.own(layout::go(self.me.queue_node)); // before the CompareSwap
            let queued = if seen.fits::<W>(self.mode) {
                seen.with_holder(self.mode)
            } else {
                self.words.set_own(self.me.next().word, seen.head() << MODE_BITS);
                seen.with_queue(self.me.id(), seen.tail())
            };
            match self.replace(seen, queued)? {
                None if seen.fits::<W>(self.mode) => return Ok(()),
                None => break,
                Some(now) => seen = now,
            }
        }
        let next = self.words.own(self.me.next().word) >> MODE_BITS;
        loop {
            go = self.wait_for_wake(go)?;
            let mut seen = LockWord::FREE.with_queue(self.me.id(), seen.tail());
            while seen.head() == self.me.id() && seen.fits::<W>(self.mode) {
                let left = seen.with_queue(next, seen.tail());
                match self.replace(seen, left.with_holder(self.mode))? {
                    None if self.mode.alone() || !left.has_waiter() => return Ok(()),
                    None => return wake_first(self.words, left),
                    Some(now) => seen = now,
                }
            }
        }
    }
}
