//! The group lock where its word is a round trip away ([`Words::FAR`]): taken with a bounded
//! number of operations, however many want it. Within a node a repetition of a CompareSwap costs
//! next to nothing; over a network each costs a round trip, and with n contenders who all enter
//! one queue by CompareSwap each repeats it up to n times, and for ever if others come and go.
//!
//! Here nobody repeats. Who does not get the lock at once draws a *ticket*, by an addition, which
//! always succeeds. Holders of neighbouring tickets meet at a place of a small ring, by one
//! CompareSwap each, and whoever comes second knows both and makes the link. From then on each
//! waits in its own memory for the one in front of it to pass the *turn* on. Who has the turn is
//! alone: it adds itself to the lock word as its one waiter, which also keeps newcomers out, takes
//! the lock when that can be held, and passes the turn on.
//!
//! | bits of the lock | holds   | meaning                                                      |
//! |------------------|---------|--------------------------------------------------------------|
//! | 44..64           | holders | as in [`super`]                                              |
//! | 22..44           | waiter  | who has the turn, 0 if nobody has                            |
//! | 0..22            | nested  | the first of the nested requests that wait, 0 if none do     |
//!
//! | bits of the tickets | meaning                                                             |
//! |---------------------|---------------------------------------------------------------------|
//! | 32..64              | how many were drawn, ever                                           |
//! | 0..32               | the ticket that has the turn; if it is not drawn, nobody has        |
//!
//! | bits of a meeting place | meaning                                                         |
//! |-------------------------|-----------------------------------------------------------------|
//! | 32..64                  | the ticket of the one in front                                  |
//! | 22..24                  | what came first: the one behind; the one in front; or the turn  |
//! | 0..22                   | the waiter that came first; 0: the place is empty               |
//!
//! | bits of a node's `go` | meaning                                                           |
//! |-----------------------|-------------------------------------------------------------------|
//! | 32..64                | rings: look at the lock word, as in [`super`]                     |
//! | 0..32                 | turns that were passed to this waiter, ever                       |
//!
//! A node's `next` is the waiter behind: of a ticket, set by that one; of a nested request, set by
//! itself.
//!
//! # Why it is right
//!
//! *The turn is one's alone.* It goes from ticket to ticket: n + 1 gets it from n, or finds at its
//! drawing that it is its already, because n had passed it on to nobody. Both cannot be: the word
//! of the tickets is one. So `waiter` is changed by one process at a time, from 0 by an addition
//! and back to 0 by the CompareSwap that takes the lock.
//!
//! *A turn is never late.* One waits for each, and for nothing else, until it comes. (A ring may
//! be late, and is a reason to look only, as in [`super`].)
//!
//! *Two meet.* The place of ticket n is used by n and n + 1, by each once and only if there is an
//! n + 1 or n waits itself; the second empties it. A place that is still in use by tickets of an
//! older round is left alone and tried again: that takes more tickets than there are places
//! between two steps of somebody, the drawing and the meeting.
//!
//! *Nobody waits for another lock there.* The last in the queue of a lock leaves a note, which
//! stays as long as that one waits: it may be for an epoch of the holder, who takes other locks of
//! the same rank meanwhile (an accumulate under MPI_Win_lock). So each lock has a ring of its own.
//! In it a note of n keeps later rounds from the place until n + 1 has come. They were drawn behind
//! n + 1, which waits for older tickets alone: so there is no circle.
//!
//! *No ring is lost.* The last holder rings the first nested request or else the waiter; a nested
//! request that takes the lock and can share it rings the next of them, or else the waiter.
//!
//! # What it costs
//!
//! Of a writer, on one word: at most seven fetches (the first CompareSwap, the ticket, two meetings
//! at once, the waiter, the CompareSwap that takes the lock, the end of the turn) and four posts
//! (two places emptied, the link, the turn passed on); nothing while it waits. A reader first tries
//! [`JOINS_MAX`] times more; and if it enters beside h readers it may see each of them leave, and
//! try again, h times. Nested requests, which pass (see [`super`]), may each make one try again.
//! They themselves, and threads without a node, repeat as in [`super`]. `epoch/tests/bounds.rs`
//! counts. A free lock costs what it costs near: one CompareSwap.
//!
//! # Fairness
//!
//! Tickets are in order. A newcomer can be faster than a turn that is under way while the lock is
//! free; not than a waiter.

use super::{ID, ID_BITS, MODE_BITS, Nodes, Request, Waiter, Word};
use crate::epoch::layout;
use crate::error::Result;
use crate::fabric::{Fetch, WordAt, Words};

/// How often one tries to get a lock that is free or held in the same mode, after the first time
/// and before it draws a ticket.
pub const JOINS_MAX: u32 = 2;

/// The longest pause before a place is looked at again.
const PAUSES_MAX: u32 = 1 << 10;

/// Where tickets drawn and rings are counted, above the ticket that has the turn and the turns.
const UPPER: u64 = 1 << 32;

/// What came first to a meeting place.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Came {
    /// the one behind
    Behind = 1,
    /// the one in front, which waits for its turn
    Front = 2,
    /// the one in front, which passes its turn on
    Turn = 3,
}

/// The part of a note that both who meet know: the ticket.
const SUBJECT: u64 = !0 << 32;

fn came(note: u64) -> Came {
    match note >> ID_BITS & 3 {
        1 => Came::Behind,
        2 => Came::Front,
        _ => Came::Turn,
    }
}

/// Tells a waiter to look at the lock word.
fn ring(words: &impl Words, waiter: u64) -> Result<()> {
    Waiter::of(waiter).tell(words, UPPER)
}

/// Rings whom a release that left no holder has to wake.
#[cold]
pub(super) fn ring_first(words: &impl Words, before: Word) -> Result<()> {
    ring(words, if before.head() == 0 { before.tail() } else { before.head() })
}

impl<W: Words> Request<'_, W> {
    /// Takes the lock, which was seen as `seen`: at once if that is fair, else with a ticket.
    pub(super) fn contend_far(&self, mut seen: Word, nodes: &impl Nodes) -> Result<()> {
        for _ in 0..JOINS_MAX {
            if !seen.fits::<W>(self.mode) || !self.nested && !seen.nobody_waits() {
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

    fn place_of(&self, ticket: u32) -> WordAt {
        WordAt { rank: self.at.rank, word: layout::meeting(self.at.word, ticket) }
    }

    /// What a meeting place holds if this one came first.
    fn note(&self, ticket: u32, came: Came) -> u64 {
        u64::from(ticket) << 32 | (came as u64) << ID_BITS | self.me.id()
    }

    /// Draws a ticket, waits for its turn, and uses it.
    fn wait_for_turn(&self, nodes: &impl Nodes) -> Result<()> {
        self.words.set_own(self.me.next().word, 0);
        let told = self.words.own(layout::go(self.me.node));
        let before = self.words.fetch(self.tickets(), Fetch::Add(UPPER))?;
        let (ticket, turn) = ((before >> 32) as u32, before as u32);
        let behind = match ticket == turn {
            true => None,
            false => Some(self.queue(ticket, told, nodes)?),
        };
        let behind = self.take_in_turn(ticket, behind, nodes)?;
        self.pass_on(ticket, behind, nodes)
    }

    /// Waits until the one in front has passed its turn on. Returns who is behind, if that one came
    /// first where they meet, else 0.
    fn queue(&self, ticket: u32, told: u64, nodes: &impl Nodes) -> Result<u64> {
        let front = ticket.wrapping_sub(1);
        let in_front = self.begin_meeting(front, Came::Behind)?;
        let behind = self.begin_meeting(ticket, Came::Front)?;
        let in_front = self.end_meeting(front, Came::Behind, in_front, nodes)?;
        let behind = self.end_meeting(ticket, Came::Front, behind, nodes)?;
        match in_front {
            0 => {}
            note if came(note) == Came::Turn => return Ok(behind & ID),
            note => self.words.post(Waiter::of(note & ID).next(), self.me.id())?,
        }
        let turns = told as u32;
        self.words.wait_own(layout::go(self.me.node), |go| go as u32 != turns)?;
        Ok(behind & ID)
    }

    fn begin_meeting(&self, ticket: u32, came: Came) -> Result<W::Ticket> {
        let swap = Fetch::CompareSwap { expect: 0, new: self.note(ticket, came) };
        self.words.begin(self.place_of(ticket), swap)
    }

    /// What the other one left where holders of tickets meet; 0: it has not come yet.
    fn end_meeting(
        &self,
        ticket: u32,
        came: Came,
        mut begun: W::Ticket,
        nodes: &impl Nodes,
    ) -> Result<u64> {
        let subject = self.note(ticket, came) & SUBJECT;
        let mut pauses = 1;
        loop {
            let note = self.words.finish(begun)?;
            if note == 0 {
                return Ok(0);
            }
            if note & SUBJECT == subject {
                self.words.post(self.place_of(ticket), note.wrapping_neg())?;
                return Ok(note);
            }
            // Others meet there.
            for _ in 0..pauses {
                nodes.pause()?;
            }
            pauses = PAUSES_MAX.min(2 * pauses);
            begun = self.begin_meeting(ticket, came)?;
        }
    }

    /// Meets the one behind, or leaves a note for it.
    fn meet_behind(&self, ticket: u32, came: Came, nodes: &impl Nodes) -> Result<u64> {
        let begun = self.begin_meeting(ticket, came)?;
        Ok(self.end_meeting(ticket, came, begun, nodes)? & ID)
    }

    /// Takes the lock as the one whose turn it is. Who is behind is as in `pass_on`; it must not
    /// wait for this one where they meet as long as this one waits for the lock.
    fn take_in_turn(
        &self,
        ticket: u32,
        mut behind: Option<u64>,
        nodes: &impl Nodes,
    ) -> Result<Option<u64>> {
        let mut told = self.words.own(layout::go(self.me.node)); // before the look
        let me = self.me.id() << ID_BITS;
        let before = Word(self.words.fetch(self.at, Fetch::Add(me))?);
        assert!(before.tail() == 0);
        let mut seen = Word(before.0 + me);
        loop {
            while seen.head() == 0 && seen.fits::<W>(self.mode) {
                match self.replace(seen, Word(seen.0 - me).with_holder(self.mode))? {
                    None => return Ok(behind),
                    Some(now) => seen = now,
                }
            }
            if behind.is_none() {
                behind = Some(self.meet_behind(ticket, Came::Front, nodes)?);
            }
            told = self.wait_for_ring(told)?;
            seen = Word(me); // the guess: the holders are gone
        }
    }

    fn wait_for_ring(&self, told: u64) -> Result<u64> {
        self.words.wait_own(layout::go(self.me.node), |go| go >> 32 != told >> 32)
    }

    /// Ends the turn of `ticket`. `behind`: who is known to be behind, 0 if that one is going to
    /// link itself; none if they have not tried to meet.
    fn pass_on(&self, ticket: u32, behind: Option<u64>, nodes: &impl Nodes) -> Result<()> {
        // The lower half goes around without a carry.
        let turn = if ticket == u32::MAX { 1u64.wrapping_sub(UPPER) } else { 1 };
        let before = self.words.fetch(self.tickets(), Fetch::Add(turn))?;
        assert!(before as u32 == ticket);
        let next = ticket.wrapping_add(1);
        let is_last = (before >> 32) as u32 == next;
        let behind = match behind {
            None if is_last => return Ok(()),
            None => match self.meet_behind(ticket, Came::Turn, nodes)? {
                0 => return Ok(()), // it finds its turn there
                behind => behind,
            },
            Some(0) if is_last => {
                // Nobody will come to where this one has left its note.
                let note = self.note(ticket, Came::Front);
                return self.words.post(self.place_of(ticket), note.wrapping_neg());
            }
            Some(0) => self.words.wait_own(self.me.next().word, |next| next != 0)?,
            Some(behind) => behind,
        };
        Waiter::of(behind).tell(self.words, 1)
    }

    /// Waits as a nested request, in front of all that wait already.
    fn wait_nested(&self, mut seen: Word) -> Result<()> {
        let mut told;
        loop {
            told = self.words.own(layout::go(self.me.node)); // before the look
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
            told = self.wait_for_ring(told)?;
            let mut seen = Word::FREE.with_queue(self.me.id(), seen.tail());
            while seen.head() == self.me.id() && seen.fits::<W>(self.mode) {
                let left = seen.with_queue(next, seen.tail());
                match self.replace(seen, left.with_holder(self.mode))? {
                    None if self.mode.alone() || left.nobody_waits() => return Ok(()),
                    None => return ring_first(self.words, left),
                    Some(now) => seen = now,
                }
            }
        }
    }
}
