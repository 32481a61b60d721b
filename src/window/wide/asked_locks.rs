//! Locks of targets on other nodes whose MPI_Win_lock has returned before they are taken. Over TCP,
//! such a lock is taken by the first call that needs it, in one round trip with the small puts
//! before it; MPI_Win_unlock also releases it in that round trip
//! ([`in_one_trip`](crate::epoch::lock::in_one_trip)). The puts are kept until then, as copies.
//! Invariant: a target whose lock was not taken is closed, so every call that accesses it comes
//! here first.
//!
//! Locks are taken in the order of their calls, as [`AskedLocks`](crate::epoch::lock::asked) says.
//! That does not include locks of other windows: a lock protects its window only.
//!
//! MPI-4.1 section 12.5.3 lets MPI_Win_lock return before the lock is held. Processes with several
//! threads take each lock at once: a thread that completes its operations must not wait for a place
//! in the queue of a lock that another thread has asked for.

use super::kept_puts::KeptPuts;
use super::many_nodes::ManyNodes;
use crate::epoch::lock::Nodes;
use crate::epoch::lock::asked::Turn;
use crate::epoch::lock::in_one_trip::{
    Before, IntentAt, LockOutcome, Take, Wanted, lock_with_puts,
};
use crate::epoch::lock::used_nodes;
use crate::epoch::state::Hold;
use crate::error::{Error, Result};
use crate::fabric::WordAt;
use crate::fabric::layout;
use crate::fabric::location::Distant;
use crate::fabric::remote::{AtTarget, Bytes, LockAt, Network, PutAt};
use crate::fabric::remote_words::{Locate, word_in};
use crate::rank_numbers::Rank;
use crate::window::synchronise::note_target;
use crate::window::{LocalWindow, Memory, Window};
use core::ptr;

impl ManyNodes<'_> {
    /// Asks for the lock of a target, if it can be taken at its first use. Returns whether it can;
    /// otherwise the caller takes it, after those that were asked for before.
    pub fn ask(&self, window: &Window, target: Rank, hold: Hold) -> Result<bool> {
        window.may_have_epochs()?;
        let can = match hold {
            Hold::Shared => self.takes_later(window, target),
            Hold::Exclusive => {
                self.takes_later(window, target)
                    && self.intent_at(target) != Ok(IntentAt::Elsewhere)
            }
            Hold::Unchecked | Hold::Started => return Ok(false),
        };
        if can {
            window.epochs.ask(window.access_of(target), hold)?;
            self.part.asked.ask(target, KeptPuts::default());
        } else {
            self.take_before(window, &self.part.asked.ranks());
        }
        Ok(can)
    }

    /// Whether the lock of a target may be taken later: the target carries out what follows a lock,
    /// it is reached, and the addresses of its words and memory are known.
    fn takes_later(&self, window: &Window, rank: Rank) -> bool {
        let part = self.part;
        part.wide.wire.is_served()
            && !window.epochs.has_threads()
            && !matches!(self.node.memory, Memory::Attached(_))
            && part.near_index(rank).is_none()
            && part.known_target(rank).is_some_and(|target| target.peer.check().is_ok())
    }

    /// Returns where the intent of an exclusive lock of a target is.
    fn intent_at(&self, target: Rank) -> Result<IntentAt> {
        let rank = layout::global().rank;
        if self.part.near_index(rank).is_some() && self.words.0.is_coherent() {
            return Ok(IntentAt::Here);
        }
        let (of_target, _) = self.words.0.find(target)?;
        let (of_global, _) = self.words.0.find(rank)?;
        let is_same = ptr::eq(of_target, of_global);
        Ok(if is_same { IntentAt::WithTarget } else { IntentAt::Elsewhere })
    }

    /// Takes a lock that was asked for, after those that were asked for before, and carries out the
    /// puts under them.
    ///
    /// # Errors
    /// Those of the lock. It still is to be taken then, without puts.
    fn take_asked(&self, window: &Window, rank: Rank) -> Result<()> {
        self.take_before(window, &self.part.asked.before(rank));
        loop {
            match self.part.asked.begin(rank) {
                Turn::Take(kept) => return self.take(window, rank, &kept, false).map(drop),
                Turn::Wait => self.nodes(rank).pause()?,
                Turn::Nothing => return Ok(()),
            }
        }
    }

    /// Takes locks in this order. Tries all, and returns the first error.
    fn take_each(&self, window: &Window, ranks: &[Rank]) -> Result<()> {
        let take = |rank: &Rank| match self.part.asked.begin(*rank) {
            Turn::Take(kept) => self.take(window, *rank, &kept, false).map(drop),
            Turn::Wait | Turn::Nothing => Ok(()),
        };
        ranks.iter().map(take).fold(Ok(()), Result::and)
    }

    /// Takes locks ahead of another one. A lock that fails is still to be taken, so the next call
    /// that uses it returns the error.
    fn take_before(&self, window: &Window, ranks: &[Rank]) {
        let _ = self.take_each(window, ranks);
    }

    /// Prepares the unlock of a target: takes all locks that were asked for. If that of the target
    /// is the only one, it is also released and its epoch has ended, unless it was held. Returns
    /// whether the epoch has ended.
    ///
    /// # Errors
    /// Those of the lock of the target, whose epoch has ended then.
    pub fn end_of_asked(&self, window: &Window, target: Rank) -> Result<bool> {
        window.may_have_epochs()?;
        let ranks = self.part.asked.ranks();
        match ranks[..] {
            [] => Ok(false),
            [rank] if rank == target => match self.part.asked.begin(rank) {
                Turn::Take(kept) => self.take(window, rank, &kept, true),
                Turn::Wait | Turn::Nothing => self.take_asked(window, rank).map(|()| false),
            },
            _ => {
                self.take_before(window, &ranks);
                Ok(false)
            }
        }
    }

    fn nodes(&self, rank: Rank) -> impl Nodes {
        self.node.nodes_for(used_nodes::Wanted::Lock(rank))
    }

    /// Takes a lock that this thread has begun to take, with its puts. `ends`: also releases it and
    /// ends the epoch, if it was free. Returns whether the epoch has ended; it has after an error,
    /// too.
    fn take(&self, window: &Window, rank: Rank, kept: &KeptPuts, ends: bool) -> Result<bool> {
        let (access, puts) = (window.access_of(rank), kept.requests());
        let Some((hold, held)) = window.epochs.take_asked(access) else {
            unreachable!("what is kept for a lock belongs to a target whose lock was asked for")
        };
        note_target(window, self.node, rank);
        self.node.send_puts();
        let outcome = self.intent_at(rank).and_then(|intent_at| {
            let is_exclusive = hold == Hold::Exclusive;
            let wanted = Wanted { target: rank, is_exclusive, held, intent_at };
            let send = |takes: &[Take]| self.send_under(rank, &puts, takes, ends);
            lock_with_puts(&self.words, wanted, ends, self.nodes(rank), send)
        });
        let ended = match outcome {
            Ok(LockOutcome::Released) => {
                window.epochs.asked_ended(access, (hold, held));
                Ok(true)
            }
            Ok(LockOutcome::Held { intent, done }) => {
                window.epochs.asked_taken(access, hold, intent);
                // Before another thread may complete them. It fails if the target is lost, which
                // the call that completes the puts returns, too.
                let _ = if done { Ok(()) } else { self.put_again(rank, &puts) };
                Ok(false)
            }
            Err(error) if ends => {
                window.epochs.asked_ended(access, (hold, held));
                Err(error)
            }
            Err(error) => {
                window.epochs.asked_failed((hold, held));
                self.part.asked.not_taken(rank, KeptPuts::default());
                return Err(error);
            }
        };
        self.part.asked.taken(rank);
        ended
    }

    /// Sends a chain for a lock.
    fn send_under(&self, rank: Rank, puts: &[PutAt], takes: &[Take], ends: bool) -> Result<Before> {
        let (peer, _) = self.words.0.find(rank)?;
        let lock = |take: &Take| {
            let WordAt { rank, word } = take.at;
            let (_, words) = self.words.0.find(rank)?;
            Ok(LockAt { at: word_in(words, word), take: take.swap, release: take.release })
        };
        let locks = takes.iter().map(lock).collect::<Result<Vec<_>>>()?;
        let side = peer.at_target().expect("`takes_later` has asked for it");
        // SAFETY: copies of bytes; the places were checked when the puts were kept.
        let answers = unsafe { side.put_under(puts, &locks, ends) }?;
        Ok(Before { taken: answers.taken, released: answers.released })
    }

    /// Sends the puts under a lock that is held.
    fn put_again(&self, rank: Rank, puts: &[PutAt]) -> Result<()> {
        let (peer, _) = self.words.0.find(rank)?;
        puts.iter().try_for_each(|put| {
            // SAFETY: as in `send_under`; so few bytes are copied by the call.
            unsafe { Bytes::put(peer, put.to, put.from, put.bytes) }
        })
    }
}

impl LocalWindow {
    /// Takes the lock of a target that is closed, if it was asked for.
    ///
    /// # Errors
    /// `error` if it was not, and those of the lock.
    #[cold]
    pub fn needs_asked(&self, window: &Window, target: Rank, error: Error) -> Result<()> {
        match self.many_nodes() {
            Some(many) if window.access_of(target).asked().is_some() => {
                many.take_asked(window, target)
            }
            _ => Err(error),
        }
    }

    /// Keeps a put to a target until its lock is taken. Returns false if the put must follow the
    /// lock.
    ///
    /// # Safety
    /// `bytes` bytes at `from` can be read, and may be written at `to`.
    pub unsafe fn keep_put(
        &self,
        rank: Rank,
        to: Distant<'_>,
        from: *const u8,
        bytes: u64,
    ) -> bool {
        let Some(part) = self.wide.as_deref() else { return false };
        // SAFETY: guaranteed by the caller.
        let kept = part.asked.with(rank, |kept| unsafe { kept.keep(to.at, from, bytes) });
        kept == Some(true)
    }

    /// Takes the locks that were asked for, if there are puts under one of them. A window on one
    /// node has none.
    #[inline]
    pub fn send_kept_puts(&self, window: &Window) -> Result<()> {
        match self.many_nodes() {
            Some(many) if many.part.asked.any(|kept| !kept.is_empty()) => {
                let window = window.source();
                many.take_each(window, &many.part.asked.ranks())
            }
            _ => Ok(()),
        }
    }
}
