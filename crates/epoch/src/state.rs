//! The epochs that one process is in on one window, and so the calls that are legal now (MPI-4.1
//! §12.5). A pure state machine: it transfers nothing and waits for no other rank. Calls on one
//! target come with the word in the record of that target ([`TargetAccess`]).
//!
//! | access    | meaning                                             | ends with            |
//! |-----------|-----------------------------------------------------|----------------------|
//! | None      | no access epoch                                     |                      |
//! | FenceIdle | after a fence; no operation yet, so it is no epoch yet | any opening call  |
//! | Fence     | an operation followed a fence, and succeeded        | fence                |
//! | Start     | between start and complete; targets are in `started` | complete            |
//! | Lock      | at least one target is locked                       | the last unlock      |
//! | LockAll   | between lock_all and unlock_all                     | unlock_all           |
//!
//! Exposure (post to wait) is independent of it.

use super::access::{Access, TargetAccess, WindowAccess};
use super::lock::{Held, Intent, SpareIntent};
use crate::error::{Error, Result};
use crate::messages;
use crate::rank_numbers::Rank;
use core::mem::take;
use fompi_base::util::serial::Serial;

mod asked_targets;
mod intents;
#[cfg(test)]
mod tests;

pub use super::access::Hold;
use intents::Intents;

/// State that only calls which open or close an epoch use.
struct Bookkeeping {
    /// number of targets that are locked, and of those among them whose lock was asked for and is
    /// not taken
    locked: u32,
    asked: u32,
    /// the group of MPI_Win_start; the next start reuses the allocation
    started: Vec<Rank>,
    /// number of origins of the exposure epoch, if there is one
    exposure: Option<u32>,
    /// lock_all took no lock (MPI_MODE_NOCHECK)
    unchecked: bool,
    intents: Intents,
}

/// The epochs of one process on one window.
#[repr(C)]
pub struct Epochs {
    /// the access epoch; the data path reads it without entering `bookkeeping`
    pub access: WindowAccess,
    bookkeeping: Serial<Bookkeeping>,
}

/// A request in an epoch of a fence or a start.
pub const REQUEST: Error = Error::Wrong(&messages::REQUEST);
const NO_EPOCH: Error = Error::Wrong(&messages::NO_EPOCH);
const NOT_LOCKED: Error = Error::Wrong(&messages::NOT_LOCKED);
const OTHER_EPOCH: Error = Error::Wrong(&messages::OTHER_EPOCH);

impl Epochs {
    /// Starts without an epoch. `threads`: whether several threads may call.
    pub fn new(threads: bool) -> Epochs {
        let bookkeeping = Bookkeeping {
            locked: 0,
            asked: 0,
            started: Vec::new(),
            exposure: None,
            unchecked: false,
            intents: Intents::NONE,
        };
        Epochs { access: WindowAccess::none(), bookkeeping: Serial::new(threads, bookkeeping) }
    }

    /// Every `locks`-th intent that is to spare is left on the global word as the standing intent
    /// ([`SpareIntent::Offer`]) instead of released.
    pub fn offering_after(self, locks: u32) -> Epochs {
        self.bookkeeping.with(|bookkeeping| bookkeeping.intents.offer_after(locks));
        self
    }

    /// Records that several threads may call from now on.
    pub fn several_threads(&self) {
        self.bookkeeping.several_threads();
    }

    /// Records that one thread at a time calls again.
    pub fn one_thread(&self) {
        self.bookkeeping.one_thread();
    }

    /// Whether an operation on a target is legal now. As in all calls of this kind, the word of the
    /// target is asked for only if the epoch depends on it.
    #[inline]
    pub fn may_access<'a>(&self, target: impl FnOnce() -> &'a TargetAccess) -> Result<()> {
        if self.access.opens(target) { Ok(()) } else { self.may_access_unopened() }
    }

    /// Whether an operation on a target that is not open is legal: it may be the first one after a
    /// fence. Then the epoch begins only if the operation succeeds ([`Epochs::accessed`]).
    #[cold]
    fn may_access_unopened(&self) -> Result<()> {
        self.bookkeeping.with(|_| match self.access.get() {
            // Fence, LockAll: another thread has begun it since `opens` read the word.
            Access::FenceIdle | Access::Fence | Access::LockAll => Ok(()),
            Access::None => Err(NO_EPOCH),
            Access::Start => Err(Error::Wrong(&messages::NOT_IN_START_GROUP)),
            Access::Lock => Err(NOT_LOCKED),
        })
    }

    /// Whether an operation would be the first one after a fence, and begin its epoch.
    #[inline]
    pub fn awaits_operation(&self) -> bool {
        self.access.is(Access::FenceIdle)
    }

    /// Records that an operation was carried out. The first one after a fence begins its epoch.
    #[cold]
    pub fn accessed(&self) {
        self.bookkeeping.with(|_| {
            if self.access.is(Access::FenceIdle) {
                self.access.set(Access::Fence);
            }
        });
    }

    /// Whether an operation with a request on a target is legal: such operations are for passive
    /// target epochs (MPI-4.1 §12.3.5). The error for an epoch in which it would be legal without a
    /// request is [`REQUEST`].
    #[inline]
    pub fn may_request<'a>(&self, target: impl Fn() -> &'a TargetAccess) -> Result<()> {
        if self.access.locks(&target) {
            return Ok(());
        }
        self.may_access(&target)?;
        Err(REQUEST)
    }

    /// Whether this process has the exclusive lock of the target and only one thread may call: then
    /// no other thread of any rank accesses the target by RMA.
    #[inline(always)]
    pub fn is_exclusive<'a>(&self, target: impl FnOnce() -> &'a TargetAccess) -> bool {
        self.access.is(Access::Lock)
            && target().is(Hold::Exclusive)
            && !self.bookkeeping.has_threads()
    }

    /// Whether a notified operation on a target is legal now: it is for passive target epochs.
    #[inline]
    pub fn may_notify<'a>(&self, target: impl Fn() -> &'a TargetAccess) -> Result<()> {
        self.may_request(target).map_err(|error| match error {
            REQUEST => Error::Wrong(&messages::NOTIFIED_NOT_PASSIVE),
            error => error,
        })
    }

    /// Whether the number of notifications may change now: no access epoch is open.
    pub fn may_change_counters(&self) -> Result<()> {
        match self.access.is_idle() {
            true => Ok(()),
            false => Err(Error::Wrong(&messages::COUNTERS_IN_EPOCH)),
        }
    }

    /// Whether a fence is legal now.
    #[inline]
    pub fn may_fence(&self) -> Result<()> {
        self.bookkeeping.with(|bookkeeping| match self.access.get() {
            _ if bookkeeping.exposure.is_some() => Err(Error::Wrong(&messages::EXPOSURE_OPEN)),
            Access::None | Access::FenceIdle | Access::Fence => Ok(()),
            _ => Err(OTHER_EPOCH),
        })
    }

    /// Records that a fence has ended.
    #[inline]
    pub fn fenced(&self, epoch_may_follow: bool) {
        let access = if epoch_may_follow { Access::FenceIdle } else { Access::None };
        self.bookkeeping.with(|_| self.access.set(access));
    }

    /// Opens an access epoch to `group` (MPI_Win_start). `word`: the word of a target.
    pub fn start<'a>(&self, group: &[Rank], word: impl Fn(Rank) -> &'a TargetAccess) -> Result<()> {
        self.bookkeeping.with(|bookkeeping| {
            self.may_begin_epoch()?;
            self.access.set(Access::Start);
            bookkeeping.started.clear();
            bookkeeping.started.extend_from_slice(group);
            group.iter().for_each(|rank| word(*rank).open(Hold::Started));
            Ok(())
        })
    }

    /// Returns the targets of the open start epoch. For a report.
    pub fn started(&self) -> Vec<Rank> {
        let is_open = self.access.is(Access::Start);
        if is_open {
            self.bookkeeping.with(|bookkeeping| bookkeeping.started.clone())
        } else {
            Vec::new()
        }
    }

    /// Takes the targets of the open start epoch, which [`Epochs::completed`] closes.
    #[inline]
    pub fn take_started(&self) -> Result<Vec<Rank>> {
        match self.access.is(Access::Start) {
            true => Ok(self.bookkeeping.with(|bookkeeping| take(&mut bookkeeping.started))),
            false => Err(Error::Wrong(&messages::NO_START)),
        }
    }

    /// Records that the epoch to these targets could not be closed.
    pub fn not_completed(&self, targets: Vec<Rank>) {
        self.bookkeeping.with(|bookkeeping| bookkeeping.started = targets);
    }

    /// Closes the start epoch to these targets. `word`: the word of a target.
    #[inline]
    pub fn completed<'a>(&self, targets: Vec<Rank>, word: impl Fn(Rank) -> &'a TargetAccess) {
        self.bookkeeping.with(|bookkeeping| {
            targets.iter().for_each(|rank| word(*rank).close());
            bookkeeping.started = targets;
            self.access.set(Access::None);
        });
    }

    /// Opens an exposure epoch to `origins` processes (MPI_Win_post).
    #[inline]
    pub fn post(&self, origins: u32) -> Result<()> {
        self.bookkeeping.with(|bookkeeping| {
            if bookkeeping.exposure.is_some() {
                return Err(Error::Wrong(&messages::EXPOSURE_OPEN_ALREADY));
            }
            if self.access.is(Access::Fence) {
                return Err(Error::Wrong(&messages::FENCE_OPEN));
            }
            bookkeeping.exposure = Some(origins);
            Ok(())
        })
    }

    /// Returns the number of origins of the open exposure epoch.
    #[inline]
    pub fn posted(&self) -> Result<u32> {
        let exposure = self.bookkeeping.with(|bookkeeping| bookkeeping.exposure);
        exposure.ok_or(Error::Wrong(&messages::NO_POST))
    }

    /// Closes the exposure epoch.
    #[inline]
    pub fn waited(&self) {
        self.bookkeeping.with(|bookkeeping| bookkeeping.exposure = None);
    }

    /// Records that a target is going to be locked. Returns what this process holds already.
    /// If several threads may call, another thread may release its intent while this one waits for
    /// its lock. So the answer is then at most [`Held::Shared`].
    #[inline]
    pub fn lock(&self, target: &TargetAccess, hold: Hold) -> Result<Held> {
        self.bookkeeping.with(|bookkeeping| {
            self.may_lock(target)?;
            let held = self.take_soon(bookkeeping, hold);
            self.begin_lock(bookkeeping, target, hold);
            Ok(held)
        })
    }

    /// Whether a lock of a target is legal now.
    #[inline(always)]
    fn may_lock(&self, target: &TargetAccess) -> Result<()> {
        if !self.access.may_lock() {
            return Err(OTHER_EPOCH);
        }
        if !target.is_closed() {
            return Err(Error::Wrong(&messages::LOCKED_ALREADY));
        }
        Ok(())
    }

    /// Returns what this process holds ahead of a lock that is taken now, and records that the lock
    /// counts on an intent of the process, if it does.
    #[inline(always)]
    fn take_soon(&self, bookkeeping: &mut Bookkeeping, hold: Hold) -> Held {
        let held = match bookkeeping.locked - bookkeeping.asked {
            0 => Held::Nothing,
            _ if bookkeeping.intents.are_owned() && !self.bookkeeping.has_threads() => {
                Held::Exclusive
            }
            _ => Held::Shared,
        };
        if hold == Hold::Exclusive && held == Held::Exclusive {
            bookkeeping.intents.borrow();
        }
        held
    }

    /// Records that a target is in the epoch.
    #[inline(always)]
    fn begin_lock(&self, bookkeeping: &mut Bookkeeping, target: &TargetAccess, hold: Hold) {
        bookkeeping.locked += 1;
        self.access.set(Access::Lock);
        target.open(hold);
    }

    /// Records that a target is not in the epoch any more, and ends it if no target is locked.
    #[inline(always)]
    fn end_lock(&self, bookkeeping: &mut Bookkeeping, target: &TargetAccess) {
        target.close();
        bookkeeping.locked -= 1;
        if bookkeeping.locked == 0 {
            self.access.set(Access::None);
        }
    }

    /// Records that an exclusive lock is held, which [`Epochs::lock`] has begun.
    pub fn locked_exclusive(&self, intent: Intent) {
        self.bookkeeping.with(|bookkeeping| bookkeeping.intents.add(intent));
    }

    /// Records that a target could not be locked, for which [`Epochs::lock`] has returned `held`.
    pub fn not_locked(&self, target: &TargetAccess, held: Held) {
        self.bookkeeping.with(|bookkeeping| {
            if target.is(Hold::Exclusive) && held == Held::Exclusive {
                bookkeeping.intents.give_back();
            }
            self.end_lock(bookkeeping, target);
        });
    }

    /// Takes the lock without waiting, if only one thread may call and the epoch allows it. `take`
    /// tries once: `None` if the lock is not free, otherwise the hold, and the intent
    /// ([`Intent::Earlier`] for a shared lock). Returns whether the lock was taken; if not, nothing
    /// is recorded.
    #[inline(always)]
    pub fn lock_quick(
        &self,
        target: &TargetAccess,
        take: impl FnOnce() -> Option<(Hold, Intent)>,
    ) -> bool {
        let taken = self.bookkeeping.with_alone(|bookkeeping| {
            if !(self.access.may_lock() && target.is_closed()) {
                return None;
            }
            let (hold, intent) = take()?;
            bookkeeping.intents.add(intent);
            self.begin_lock(bookkeeping, target, hold);
            Some(())
        });
        taken.is_some()
    }

    /// [`Epochs::unlock`], if only one thread may call and a lock was taken for the target.
    /// Otherwise returns `None`, and nothing is recorded.
    #[inline(always)]
    pub fn unlock_quick(&self, target: &TargetAccess) -> Option<(Hold, SpareIntent)> {
        self.bookkeeping.with_alone(|bookkeeping| {
            // `end_lock` is repeated in each arm: inlined, the caller's match on the hold then
            // costs no second branch.
            match target.lock_taken()? {
                Hold::Exclusive => {
                    let spare = bookkeeping.intents.end_lock();
                    self.end_lock(bookkeeping, target);
                    Some((Hold::Exclusive, spare))
                }
                hold => {
                    self.end_lock(bookkeeping, target);
                    Some((hold, SpareIntent::None))
                }
            }
        })
    }

    /// Records that a target is not locked any more. Returns how the target was held, and what the
    /// caller does with an intent. Counts locks by how they were taken, because the thread level
    /// may change while they are held.
    #[inline]
    pub fn unlock(&self, target: &TargetAccess) -> Result<(Hold, SpareIntent)> {
        self.bookkeeping.with(|bookkeeping| {
            let known = if self.access.is(Access::Lock) { target.hold() } else { None };
            // `lock` opens the target before it has the lock. If no exclusive lock is held at all,
            // another thread still waits for this one: for the caller it is not locked.
            let held =
                known.filter(|hold| *hold != Hold::Exclusive || !bookkeeping.intents.has_no_lock());
            let Some(hold) = held else { return Err(NOT_LOCKED) };
            let spare = match hold {
                Hold::Exclusive => bookkeeping.intents.end_lock(),
                _ => SpareIntent::None,
            };
            self.end_lock(bookkeeping, target);
            Ok((hold, spare))
        })
    }

    /// Records that all targets are going to be locked; `checked`: a lock is taken for it.
    #[inline]
    pub fn lock_all(&self, checked: bool) -> Result<()> {
        self.bookkeeping.with(|bookkeeping| {
            self.may_begin_epoch()?;
            bookkeeping.unchecked = !checked;
            self.access.set(Access::LockAll);
            Ok(())
        })
    }

    /// Takes the lock of lock_all without waiting, if only one thread may call and no access epoch
    /// is open. `take` tries once, and returns whether it took the lock. Returns whether the lock
    /// was taken; if not, nothing is recorded.
    #[inline(always)]
    pub fn lock_all_quick(&self, take: impl FnOnce() -> bool) -> bool {
        let taken = self.bookkeeping.with_alone(|bookkeeping| {
            (self.access.is_idle() && take()).then(|| {
                bookkeeping.unchecked = false;
                self.access.set(Access::LockAll);
            })
        });
        taken.is_some()
    }

    /// [`Epochs::unlock_all`], if only one thread may call and lock_all has taken a lock. Otherwise
    /// returns false, and nothing is recorded.
    #[inline(always)]
    pub fn unlock_all_quick(&self) -> bool {
        let noted = self.bookkeeping.with_alone(|bookkeeping| {
            let is_taken = self.access.is(Access::LockAll) && !bookkeeping.unchecked;
            is_taken.then(|| self.access.set(Access::None))
        });
        noted.is_some()
    }

    /// Records that the lock_all epoch is over. Returns whether it had taken a lock.
    #[inline]
    pub fn unlock_all(&self) -> Result<bool> {
        self.bookkeeping.with(|bookkeeping| {
            if !self.access.is(Access::LockAll) {
                return Err(Error::Wrong(&messages::NO_LOCK_ALL));
            }
            self.access.set(Access::None);
            Ok(!bookkeeping.unchecked)
        })
    }

    /// Whether a flush of a target is legal: it is in a passive target epoch.
    #[inline]
    pub fn may_flush<'a>(&self, target: impl FnOnce() -> &'a TargetAccess) -> Result<()> {
        if self.access.locks(target) { Ok(()) } else { Err(NOT_LOCKED) }
    }

    /// Whether a flush of all targets, or a sync in the middle of a passive epoch, is legal.
    pub fn may_flush_all(&self) -> Result<()> {
        match self.access.is_any_passive() {
            true => Ok(()),
            false => Err(Error::Wrong(&messages::NO_TARGET_LOCKED)),
        }
    }

    /// Whether this process has called MPI_Win_lock_all, and holds its lock or waits for it. For a
    /// report.
    pub fn locks_all(&self) -> bool {
        self.bookkeeping
            .with(|bookkeeping| self.access.is(Access::LockAll) && !bookkeeping.unchecked)
    }

    /// Whether several threads may call.
    #[inline(always)]
    pub fn has_threads(&self) -> bool {
        self.bookkeeping.has_threads()
    }

    /// Whether the window may be freed: nothing is locked, started or posted.
    pub fn may_free(&self) -> Result<()> {
        self.bookkeeping.with(|bookkeeping| match self.access.get() {
            _ if bookkeeping.exposure.is_some() => Err(Error::Wrong(&messages::EXPOSURE_OPEN)),
            // A fence epoch may be open: MPI_Win_free completes it by a fence.
            Access::None | Access::FenceIdle | Access::Fence => Ok(()),
            _ => Err(Error::Wrong(&messages::ACCESS_OPEN)),
        })
    }

    /// Whether a new access epoch may begin: no other one is open.
    #[inline]
    fn may_begin_epoch(&self) -> Result<()> {
        if self.access.is_idle() { Ok(()) } else { Err(OTHER_EPOCH) }
    }
}
