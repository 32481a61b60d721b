//! The epochs that one process is in on one window, and so the calls that are legal now (MPI-4.1
//! §12.5). A pure state machine: it transfers nothing and waits for no other rank.
//!
//! | access    | meaning                                             | ends with            |
//! |-----------|-----------------------------------------------------|----------------------|
//! | None      | no access epoch                                     |                      |
//! | FenceIdle | after a fence; no operation yet, so it is no epoch yet | any opening call  |
//! | Fence     | an operation followed a fence, and succeeded        | fence                |
//! | Start     | between start and complete; targets are in `held`   | complete             |
//! | Lock      | at least one target is locked; they are in `held`   | the last unlock      |
//! | LockAll   | between lock_all and unlock_all                     | unlock_all           |
//!
//! Exposure (post to wait) is independent of it.

use super::known_ranks::{KnownRanks, RankRange};
use super::lock::{Held, Intent, Spare};
use crate::error::{Error, Result};
use crate::rank_numbers::Rank;
use crate::util::serial::Serial;
use core::mem::replace;

mod held_targets;
mod intents;
#[cfg(test)]
mod tests;

pub use held_targets::{Hold, RankList};
use held_targets::{NOBODY, Targets};
use intents::Intents;

/// The access epoch that a process is in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Access {
    /// none
    None,
    /// fenced, nothing issued yet
    FenceIdle,
    /// fenced
    Fence,
    /// between start and complete
    Start,
    /// holding locks of single targets
    Lock,
    /// between lock_all and unlock_all
    LockAll,
}

/// The state that calls which open and close epochs change.
struct Book {
    access: Access,
    held: Targets,
    /// number of origins of the exposure epoch, if there is one
    exposure: Option<u32>,
    /// lock_all took no lock (MPI_MODE_NOCHECK)
    unchecked: bool,
    intents: Intents,
}

/// The epochs of one process on one window.
#[repr(C)]
pub struct Epochs {
    /// what calls may do without a look into `book`; where it knows nothing, the book decides
    pub known: KnownRanks,
    book: Serial<Book>,
}

/// A request in an epoch of a fence or a start.
pub const REQUEST: Error = Error::Epoch("a request is for passive target epochs only");
const NO_EPOCH: &str = "no access epoch is open";
const NOT_LOCKED: &str = "target is not locked";

impl Epochs {
    /// Starts without an epoch, on a window of `size` ranks. `threads`: whether several threads may
    /// call.
    pub fn new(size: u32, threads: bool) -> Epochs {
        let book = Book {
            access: Access::None,
            held: Targets::NONE,
            exposure: None,
            unchecked: false,
            intents: Intents::NONE,
        };
        Epochs { known: KnownRanks::new(size), book: Serial::new(threads, book) }
    }

    /// Offers the intent of every `locks`-th exclusive lock with one of its own to stand.
    pub fn offering_after(self, locks: u32) -> Epochs {
        self.book.with(|book| book.intents.offer_after(locks));
        self
    }

    /// Notes that several threads may call from now on.
    pub fn several_threads(&self) {
        self.book.several_threads();
    }

    /// Notes that one thread at a time calls again.
    pub fn one_thread(&self) {
        self.book.one_thread();
    }

    /// Whether an operation on `rank` is legal now. One load and one compare for the target that
    /// was accessed last.
    #[inline]
    pub fn may_access(&self, rank: Rank) -> Result<()> {
        if self.known.is_open(rank) { Ok(()) } else { self.look_up(rank) }
    }

    #[cold]
    fn look_up(&self, rank: Rank) -> Result<()> {
        self.book.with(|book| {
            match book.access {
                Access::None => return Err(Error::Epoch(NO_EPOCH)),
                // The epoch begins only if the operation succeeds ([`Epochs::accessed`]).
                Access::FenceIdle => {}
                Access::Fence => self.known.set_open(self.known.all()),
                Access::LockAll => self.known.set_passive(self.known.all()),
                Access::Start if book.held.get(rank).is_none() => {
                    return Err(Error::Epoch("target is not in the group of MPI_Win_start"));
                }
                Access::Lock if book.held.get(rank).is_none() => {
                    return Err(Error::Epoch(NOT_LOCKED));
                }
                Access::Start => self.known.set_open(self.known.one(rank)),
                Access::Lock => self.known.set_passive(self.known.passive_with(rank)),
            }
            Ok(())
        })
    }

    /// Notes that an operation was carried out. The first one after a fence begins its epoch.
    #[inline]
    pub fn accessed(&self) {
        if self.known.is_none_open() {
            self.begin_fence_epoch();
        }
    }

    #[cold]
    fn begin_fence_epoch(&self) {
        self.book.with(|book| {
            if book.access == Access::FenceIdle {
                book.access = Access::Fence;
                self.known.set_open(self.known.all());
            }
        });
    }

    /// Whether an operation with a request on `rank` is legal: such operations are for passive
    /// target epochs (MPI-4.1 §12.3.5). The error for an epoch in which it would be legal without a
    /// request is [`REQUEST`].
    #[inline]
    pub fn may_request(&self, rank: Rank) -> Result<()> {
        if self.known.is_passive(rank) { Ok(()) } else { self.look_up_passive(rank) }
    }

    #[cold]
    fn look_up_passive(&self, rank: Rank) -> Result<()> {
        self.look_up(rank)?;
        self.book.with(|book| match book.access {
            Access::LockAll | Access::Lock => Ok(()),
            _ => Err(REQUEST),
        })
    }

    /// Whether this process alone holds `rank`, and has no threads that may access it at the same
    /// time: no other thread accesses it by RMA now.
    #[inline(always)]
    pub fn is_exclusive(&self, rank: Rank) -> bool {
        self.book.with_alone(|book| book.held.get(rank)) == Some(Hold::Exclusive)
    }

    /// Whether a fence is legal now.
    pub fn may_fence(&self) -> Result<()> {
        self.book.with(|book| match book.access {
            _ if book.exposure.is_some() => Err(Error::Epoch("an exposure epoch is open")),
            Access::None | Access::FenceIdle | Access::Fence => Ok(()),
            _ => Err(Error::Epoch("another access epoch is open")),
        })
    }

    /// Notes that a fence has ended; `succeeds`: an epoch may follow.
    pub fn fenced(&self, succeeds: bool) {
        self.book.with(|book| {
            book.access = if succeeds { Access::FenceIdle } else { Access::None };
            self.known.set_open(RankRange::NONE);
        });
    }

    /// Opens an access epoch to `group` (MPI_Win_start).
    pub fn start(&self, group: &[Rank]) -> Result<()> {
        self.book.with(|book| {
            idle(book.access)?;
            book.access = Access::Start;
            group.iter().for_each(|rank| book.held.insert(*rank, Hold::Started));
            if let Some(range) = self.known.range(group) {
                self.known.set_open(range);
            }
            Ok(())
        })
    }

    /// Returns the targets of the open start epoch.
    pub fn started(&self) -> Result<RankList> {
        self.book.with(|book| match book.access {
            Access::Start => Ok(book.held.ranks()),
            _ => Err(Error::Epoch("no MPI_Win_start before it")),
        })
    }

    /// Closes the start epoch.
    pub fn completed(&self) {
        self.book.with(|book| {
            book.held.clear();
            book.access = Access::None;
            self.known.set_open(RankRange::NONE);
        });
    }

    /// Opens an exposure epoch to `origins` processes (MPI_Win_post).
    pub fn post(&self, origins: u32) -> Result<()> {
        self.book.with(|book| {
            if book.exposure.is_some() {
                return Err(Error::Epoch("an exposure epoch is open already"));
            }
            if book.access == Access::Fence {
                return Err(Error::Epoch("a fence epoch is open"));
            }
            book.exposure = Some(origins);
            Ok(())
        })
    }

    /// Returns the number of origins of the open exposure epoch.
    pub fn posted(&self) -> Result<u32> {
        let exposure = self.book.with(|book| book.exposure);
        exposure.ok_or(Error::Epoch("no MPI_Win_post before it"))
    }

    /// Closes the exposure epoch.
    pub fn waited(&self) {
        self.book.with(|book| book.exposure = None);
    }

    /// Notes that `rank` is going to be locked. Returns what this process holds already. Threads
    /// may lock and unlock while another one waits: then no thread may count on the intent of
    /// another.
    #[inline]
    pub fn lock(&self, rank: Rank, hold: Hold) -> Result<Held> {
        self.book.with(|book| {
            if book.access != Access::Lock {
                idle(book.access)?;
            }
            if book.held.get(rank).is_some() {
                return Err(Error::Epoch("target is locked already"));
            }
            let held = match book.held.is_empty() {
                true => Held::Nothing,
                false if book.intents.are_owned() && !self.book.has_threads() => Held::Exclusive,
                false => Held::Shared,
            };
            if hold == Hold::Exclusive && held == Held::Exclusive {
                book.intents.borrow();
            }
            book.access = Access::Lock;
            book.held.insert(rank, hold);
            self.known.set_passive(self.known.passive_with(rank));
            Ok(held)
        })
    }

    /// Notes that an exclusive lock is held, which [`Epochs::lock`] has begun.
    pub fn locked(&self, intent: Intent) {
        self.book.with(|book| book.intents.add(intent));
    }

    /// Notes that `rank` could not be locked, for which [`Epochs::lock`] has returned `held`.
    pub fn not_locked(&self, rank: Rank, held: Held) {
        self.book.with(|book| {
            let hold = book.held.remove(rank);
            if hold == Some(Hold::Exclusive) && held == Held::Exclusive {
                book.intents.give_back();
            }
            self.end_lock(book, rank);
        });
    }

    /// Notes that `rank` is not in the epoch any more, and ends it if no target is locked.
    #[inline(always)]
    fn end_lock(&self, book: &mut Book, rank: Rank) {
        if book.held.is_empty() {
            book.access = Access::None;
        }
        self.known.set_passive(self.known.passive_without(rank));
    }

    /// [`Epochs::lock`] and [`Epochs::locked`] for a process without threads that holds nothing.
    /// `take` tries to get the lock without waiting, and returns how it is held. Returns whether it
    /// is.
    #[inline(always)]
    pub fn lock_first(&self, rank: Rank, take: impl FnOnce() -> Option<(Hold, Intent)>) -> bool {
        let taken = self.book.with_alone(|book| {
            let idle = matches!(book.access, Access::None | Access::FenceIdle);
            let (hold, intent) = if idle { take()? } else { return None };
            book.intents.add(intent);
            book.access = Access::Lock;
            (book.held.first, book.held.first_hold) = (rank, hold);
            self.known.set_passive(self.known.one(rank));
            Some(())
        });
        taken.is_some()
    }

    /// Does what [`Epochs::lock_first`] does, for a process that holds other locks. The argument of
    /// `take` says whether the process has an intent.
    #[inline]
    pub fn lock_another(
        &self,
        rank: Rank,
        take: impl FnOnce(bool) -> Option<(Hold, Intent)>,
    ) -> bool {
        let taken = self.book.with_alone(|book| {
            let Book { access, held, intents, .. } = book;
            if *access != Access::Lock {
                return None;
            }
            held.hold_another(rank, || {
                let (hold, intent) = take(intents.are_owned())?;
                intents.add(intent);
                Some(hold)
            })?;
            self.known.set_passive(self.known.passive_with(rank));
            Some(())
        });
        taken.is_some()
    }

    /// [`Epochs::unlock_last`] of one of several locked targets.
    #[inline(always)]
    pub fn unlock_another(&self, rank: Rank) -> Option<(Hold, Spare)> {
        self.book.with_alone(|book| {
            let hold = book.held.end_another(rank)?;
            let spare = match hold {
                Hold::Exclusive => book.intents.end_lock(),
                _ => Spare::Nothing,
            };
            self.end_lock(book, rank);
            Some((hold, spare))
        })
    }

    /// [`Epochs::unlock`] of the only locked target, in a process without threads. Returns `None`,
    /// and notes nothing, if it is not the only one or no lock was taken for it.
    #[inline(always)]
    pub fn unlock_last(&self, rank: Rank) -> Option<(Hold, Spare)> {
        self.book.with_alone(|book| {
            let only = book.held.first == rank && book.held.others == 0;
            // Then the epoch is one of locks.
            let taken = matches!(book.held.first_hold, Hold::Shared | Hold::Exclusive);
            (only && taken).then(|| {
                debug_assert!(book.access == Access::Lock);
                book.access = Access::None;
                book.held.first = NOBODY;
                self.known.set_passive(RankRange::NONE);
                match replace(&mut book.held.first_hold, Hold::Unchecked) {
                    Hold::Exclusive => (Hold::Exclusive, book.intents.end_last()),
                    hold => (hold, Spare::Nothing),
                }
            })
        })
    }

    /// Notes that `rank` is not locked any more. Returns how it was held, and what becomes of an
    /// intent. Whether threads may call can change while locks are held, so each lock is counted as
    /// it was taken.
    #[inline]
    pub fn unlock(&self, rank: Rank) -> Result<(Hold, Spare)> {
        self.book.with(|book| {
            let known = match book.access {
                Access::Lock => book.held.get(rank),
                _ => None,
            };
            // Another thread may be about to lock it.
            let held = known.filter(|hold| *hold != Hold::Exclusive || !book.intents.has_no_lock());
            let Some(hold) = held else { return Err(Error::Epoch(NOT_LOCKED)) };
            let spare = match hold {
                Hold::Exclusive => book.intents.end_lock(),
                _ => Spare::Nothing,
            };
            book.held.remove(rank);
            self.end_lock(book, rank);
            Ok((hold, spare))
        })
    }

    /// Notes that all targets are going to be locked; `checked`: a lock is taken for it.
    #[inline]
    pub fn lock_all(&self, checked: bool) -> Result<()> {
        self.book.with(|book| {
            idle(book.access)?;
            book.access = Access::LockAll;
            book.unchecked = !checked;
            self.known.set_passive(self.known.all());
            Ok(())
        })
    }

    /// [`Epochs::lock_all`] for a process without threads. `take` tries to get the lock without
    /// waiting, and returns whether it did; so does this.
    #[inline(always)]
    pub fn lock_all_first(&self, take: impl FnOnce() -> bool) -> bool {
        let taken = self.book.with_alone(|book| {
            let idle = matches!(book.access, Access::None | Access::FenceIdle);
            (idle && take()).then(|| {
                (book.access, book.unchecked) = (Access::LockAll, false);
                self.known.set_passive(self.known.all());
            })
        });
        taken.is_some()
    }

    /// [`Epochs::unlock_all`] for a process without threads. Returns false, and notes nothing, if
    /// lock_all has taken no lock.
    #[inline(always)]
    pub fn unlock_all_alone(&self) -> bool {
        let noted = self.book.with_alone(|book| {
            (book.access == Access::LockAll && !book.unchecked).then(|| {
                book.access = Access::None;
                self.known.set_passive(RankRange::NONE);
            })
        });
        noted.is_some()
    }

    /// Notes that the lock_all epoch is over. Returns whether it had taken a lock.
    #[inline]
    pub fn unlock_all(&self) -> Result<bool> {
        self.book.with(|book| {
            if book.access != Access::LockAll {
                return Err(Error::Epoch("no MPI_Win_lock_all before it"));
            }
            self.known.set_passive(RankRange::NONE);
            book.access = Access::None;
            Ok(!book.unchecked)
        })
    }

    /// Whether a flush of `rank` is legal: it is in a passive target epoch.
    #[inline]
    pub fn may_flush(&self, rank: Rank) -> Result<()> {
        self.book.with(|book| match book.access {
            Access::LockAll => Ok(()),
            Access::Lock if book.held.get(rank).is_some() => Ok(()),
            _ => Err(Error::Epoch(NOT_LOCKED)),
        })
    }

    /// Whether a flush of all targets, or a sync in the middle of a passive epoch, is legal.
    pub fn may_flush_all(&self) -> Result<()> {
        self.book.with(|book| match book.access {
            Access::LockAll | Access::Lock => Ok(()),
            _ => Err(Error::Epoch("no target is locked")),
        })
    }

    /// Returns the locks that this process holds or waits for, by their targets, and whether it has
    /// called MPI_Win_lock_all. Leaves out locks that were not taken (MPI_MODE_NOCHECK). For a
    /// report.
    pub fn locks(&self) -> (Vec<(Rank, Hold)>, bool) {
        self.book.with(|book| {
            let of = |rank: Rank| Some((rank, book.held.get(rank)?));
            let held = book.held.ranks().into_iter().filter_map(of);
            let taken = |lock: &(Rank, Hold)| matches!(lock.1, Hold::Shared | Hold::Exclusive);
            (held.filter(taken).collect(), book.access == Access::LockAll && !book.unchecked)
        })
    }

    /// Whether several threads may call.
    pub fn has_threads(&self) -> bool {
        self.book.has_threads()
    }

    /// Whether the window may be freed: nothing is locked, started or posted.
    pub fn may_free(&self) -> Result<()> {
        self.book.with(|book| match book.access {
            _ if book.exposure.is_some() => Err(Error::Epoch("an exposure epoch is open")),
            Access::None | Access::FenceIdle | Access::Fence => Ok(()),
            _ => Err(Error::Epoch("an access epoch is open")),
        })
    }
}

/// Whether a new access epoch may begin: no other one is open.
#[inline]
fn idle(access: Access) -> Result<()> {
    match access {
        Access::None | Access::FenceIdle => Ok(()),
        _ => Err(Error::Epoch("another access epoch is open")),
    }
}
