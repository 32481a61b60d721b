//! What a process may access in a window now: one word in the record of each target, and one of the
//! window. Calls read them without the bookkeeping of `state`, which alone changes them. They are
//! for this process only, so their accesses are Relaxed.
//!
//! | word of a target | state                                                      |
//! |------------------|------------------------------------------------------------|
//! | 0                | closed                                                     |
//! | `UNKNOWN`        | not a record of a target: always closed, never locked      |
//! | [`Hold`]         | locked, or in the group of MPI_Win_start                   |
//! | `ASKED` + [`Hold`] without its lower bits | to be locked at the first use     |
//!
//! The word of the window is the access epoch ([`Access`]). A target is open if either word says
//! so.

use crate::sync::{AtomicU8, Ordering};

/// The target may be accessed.
const OPEN: u8 = 1;
/// It is in a passive target epoch, and so it is open.
const PASSIVE: u8 = 2;
/// Of a window: some targets are locked.
const LOCKED: u8 = 4;
/// Of a window: between MPI_Win_start and MPI_Win_complete.
const STARTED: u8 = 8;
/// Of a window: a fence without an operation since.
const FENCED: u8 = 16;
/// Of a target: this is no record.
const UNKNOWN: u8 = 64;
/// Of a target: its lock was asked for, and is taken at its first use.
const ASKED: u8 = 128;

/// The access epoch that a process is in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Access {
    /// none
    None = 0,
    /// fenced, nothing issued yet
    FenceIdle = FENCED,
    /// fenced
    Fence = OPEN,
    /// between start and complete
    Start = STARTED,
    /// holding locks of single targets
    Lock = LOCKED,
    /// between lock_all and unlock_all
    LockAll = OPEN | PASSIVE,
}

/// The way in which a target is held in an epoch of locks or of MPI_Win_start.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Hold {
    /// in the group of MPI_Win_start
    Started = OPEN,
    /// locked with MPI_MODE_NOCHECK: no lock was taken
    Unchecked = OPEN | PASSIVE,
    /// MPI_LOCK_SHARED
    Shared = 16 | OPEN | PASSIVE,
    /// MPI_LOCK_EXCLUSIVE
    Exclusive = 32 | OPEN | PASSIVE,
}

/// Returns the word of a target whose lock was asked for.
fn as_asked(hold: Hold) -> u8 {
    hold as u8 & !(OPEN | PASSIVE) | ASKED
}

/// How a process holds one target. In the record of that target.
#[derive(Debug, Default)]
pub struct TargetAccess(AtomicU8);

impl TargetAccess {
    /// Closed.
    pub const fn closed() -> TargetAccess {
        TargetAccess(AtomicU8::new(0))
    }

    /// That of no target.
    pub const fn unknown() -> TargetAccess {
        TargetAccess(AtomicU8::new(UNKNOWN))
    }

    #[inline(always)]
    fn get(&self) -> u8 {
        self.0.load(Ordering::Relaxed)
    }

    /// Returns how the target is held.
    #[inline(always)]
    pub fn hold(&self) -> Option<Hold> {
        match self.get() {
            at if at == Hold::Started as u8 => Some(Hold::Started),
            at if at == Hold::Unchecked as u8 => Some(Hold::Unchecked),
            at if at == Hold::Shared as u8 => Some(Hold::Shared),
            at if at == Hold::Exclusive as u8 => Some(Hold::Exclusive),
            _ => None,
        }
    }

    /// Returns how the target is locked, if a lock was taken for it.
    #[inline(always)]
    pub(super) fn lock_taken(&self) -> Option<Hold> {
        match self.get() {
            at if at == Hold::Shared as u8 => Some(Hold::Shared),
            at if at == Hold::Exclusive as u8 => Some(Hold::Exclusive),
            _ => None,
        }
    }

    /// Returns how the target is to be locked, if its lock was asked for and is not taken.
    pub fn asked(&self) -> Option<Hold> {
        [Hold::Shared, Hold::Exclusive].into_iter().find(|hold| self.get() == as_asked(*hold))
    }

    /// Records that a lock was asked for.
    pub(super) fn ask(&self, hold: Hold) {
        debug_assert!(self.get() & UNKNOWN == 0, "a record");
        self.0.store(as_asked(hold), Ordering::Relaxed);
    }

    /// Whether it is a record of a target that is not held.
    #[inline(always)]
    pub fn is_closed(&self) -> bool {
        self.get() == 0
    }

    /// Whether the target is held in this way.
    #[inline(always)]
    pub(super) fn is(&self, hold: Hold) -> bool {
        self.get() == hold as u8
    }

    /// Records how the target is held.
    #[inline(always)]
    pub(super) fn open(&self, hold: Hold) {
        debug_assert!(self.get() & UNKNOWN == 0, "a record");
        self.0.store(hold as u8, Ordering::Relaxed);
    }

    /// Records that the target is not held any more.
    #[inline(always)]
    pub(super) fn close(&self) {
        self.0.store(0, Ordering::Relaxed);
    }
}

/// The access epoch of a process on a window.
#[derive(Debug)]
pub struct WindowAccess(AtomicU8);

impl WindowAccess {
    /// Returns that of a new window.
    pub(super) const fn none() -> WindowAccess {
        WindowAccess(AtomicU8::new(Access::None as u8))
    }

    #[inline(always)]
    fn word(&self) -> u8 {
        self.0.load(Ordering::Relaxed)
    }

    /// Returns the epoch.
    #[inline(always)]
    pub(super) fn get(&self) -> Access {
        const EPOCHS: [Access; 5] =
            [Access::None, Access::FenceIdle, Access::Fence, Access::Start, Access::Lock];
        let is_it = |epoch: &&Access| self.word() == **epoch as u8;
        EPOCHS.iter().find(is_it).copied().unwrap_or(Access::LockAll)
    }

    /// Whether it is this epoch.
    #[inline(always)]
    pub(super) fn is(&self, epoch: Access) -> bool {
        self.word() == epoch as u8
    }

    /// Begins or ends an epoch.
    #[inline(always)]
    pub(super) fn set(&self, epoch: Access) {
        self.0.store(epoch as u8, Ordering::Relaxed);
    }

    /// Whether a lock of a target may begin, as far as the window is concerned: no epoch is open,
    /// or one of locks.
    #[inline(always)]
    pub(super) fn may_lock(&self) -> bool {
        self.word() & (OPEN | STARTED) == 0
    }

    /// Whether a new access epoch may begin: no other one is open.
    #[inline(always)]
    pub(super) fn is_idle(&self) -> bool {
        self.word() & (OPEN | STARTED | LOCKED) == 0
    }

    /// Whether any target is in a passive target epoch.
    #[inline(always)]
    pub fn is_any_passive(&self) -> bool {
        self.word() & (PASSIVE | LOCKED) != 0
    }

    /// Whether a target is open. Its word is asked for only if that of the window does not say so.
    #[inline(always)]
    pub fn opens<'a>(&self, target: impl FnOnce() -> &'a TargetAccess) -> bool {
        self.0.load(Ordering::Relaxed) & OPEN != 0 || target().get() & OPEN != 0
    }

    /// Whether a target is in a passive target epoch; the arguments are those of `opens`.
    #[inline(always)]
    pub fn locks<'a>(&self, target: impl FnOnce() -> &'a TargetAccess) -> bool {
        self.word() & PASSIVE != 0 || target().get() & PASSIVE != 0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_target_is_open_by_its_own_word_or_by_that_of_the_window() {
        let (window, target) = (WindowAccess::none(), TargetAccess::closed());
        assert!(!window.opens(|| &target) && !window.locks(|| &target) && target.is_closed());
        let holds = [Hold::Started, Hold::Unchecked, Hold::Shared, Hold::Exclusive];
        for hold in holds {
            target.open(hold);
            assert_eq!(target.hold(), Some(hold));
            assert!(window.opens(|| &target) && !target.is_closed());
            assert_eq!(window.locks(|| &target), hold != Hold::Started);
            assert_eq!(target.is(Hold::Exclusive), hold == Hold::Exclusive);
        }
        target.close();
        for hold in [Hold::Shared, Hold::Exclusive] {
            target.ask(hold);
            assert_eq!((target.asked(), target.hold()), (Some(hold), None));
            assert!(!window.opens(|| &target) && !window.locks(|| &target) && !target.is_closed());
            assert!(target.lock_taken().is_none());
            target.open(hold);
            assert!(target.asked().is_none());
        }
        target.close();
        let unknown = TargetAccess::unknown();
        assert!(unknown.hold().is_none() && !unknown.is_closed());
        let epochs = [
            (Access::None, [false, false, false, true, true]),
            (Access::FenceIdle, [false, false, false, true, true]),
            (Access::Start, [false; 5]),
            (Access::Lock, [false, false, true, true, false]),
            (Access::Fence, [true, false, false, false, false]),
            (Access::LockAll, [true, true, true, false, false]),
        ];
        for (epoch, [open, passive, any, locks, idle]) in epochs {
            window.set(epoch);
            assert_eq!((window.get(), window.is(epoch)), (epoch, true));
            assert_eq!((window.opens(|| &target), window.locks(|| &target)), (open, passive));
            assert_eq!(window.opens(|| &unknown), open);
            assert_eq!((window.locks(|| &unknown), window.is_any_passive()), (passive, any));
            assert_eq!((window.may_lock(), window.is_idle()), (locks, idle));
        }
    }
}
