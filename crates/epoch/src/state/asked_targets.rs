//! Targets whose locks MPI_Win_lock has asked for, and that their first use takes: the changes of
//! the state of the epochs. Such a target is closed, but its epoch is open.

use super::Epochs;
use crate::access::{Hold, TargetAccess};
use crate::error::Result;
use crate::lock::{Held, Intent};

impl Epochs {
    /// Records that a target is locked by this process from its first use on, which takes the lock
    /// ([`Epochs::take_asked`]).
    pub fn ask(&self, target: &TargetAccess, hold: Hold) -> Result<()> {
        self.bookkeeping.with(|bookkeeping| {
            self.may_lock(target)?;
            self.begin_lock(bookkeeping, target, hold);
            bookkeeping.asked += 1;
            target.ask(hold);
            Ok(())
        })
    }

    /// Returns how a target is to be locked whose lock was asked for, and what this process holds
    /// already. One of [`Epochs::asked_taken`], [`Epochs::asked_ended`] and
    /// [`Epochs::asked_failed`] follows.
    pub fn take_asked(&self, target: &TargetAccess) -> Option<(Hold, Held)> {
        self.bookkeeping.with(|bookkeeping| {
            let hold = target.asked()?;
            Some((hold, self.take_soon(bookkeeping, hold)))
        })
    }

    /// Records that a lock is held that was asked for.
    pub fn asked_taken(&self, target: &TargetAccess, hold: Hold, intent: Intent) {
        self.bookkeeping.with(|bookkeeping| {
            bookkeeping.asked -= 1;
            bookkeeping.intents.add(intent);
            target.open(hold);
        });
    }

    /// Records that a lock was taken and released that was asked for.
    pub fn asked_ended(&self, target: &TargetAccess, taken: (Hold, Held)) {
        self.asked_failed(taken);
        self.bookkeeping.with(|bookkeeping| {
            bookkeeping.asked -= 1;
            self.end_lock(bookkeeping, target);
        });
    }

    /// Records that a lock could not be taken that was asked for: it still is to be taken.
    pub fn asked_failed(&self, (hold, held): (Hold, Held)) {
        if hold == Hold::Exclusive && held == Held::Exclusive {
            self.bookkeeping.with(|bookkeeping| bookkeeping.intents.give_back());
        }
    }
}
