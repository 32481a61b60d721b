//! The intents of a process on the global word, which keep lock_all from its exclusive locks. Not
//! for taking and releasing them, which `epoch::lock` does. Invariant: there are as many intents of
//! the process and locks without one, together, as exclusive locks whose calls have returned.
//!
//! An intent is released when fewer of these locks are left than intents, so one is left as long as
//! there are locks that may need it.

use crate::lock::{Intent, SpareIntent};

/// The intents of a process on one window.
pub(super) struct Intents {
    /// intents of this process
    owned: u32,
    /// exclusive locks that took no intent
    borrowed: u32,
    /// intents that were spare since the last one that was offered to stand
    spared: u32,
    /// the number of them after which one is offered
    offers_after: u32,
}

impl Intents {
    pub(super) const NONE: Intents =
        Intents { owned: 0, borrowed: 0, spared: 0, offers_after: u32::MAX };

    /// Offers every `locks`-th intent that is to spare to stand.
    pub(super) fn offer_after(&mut self, locks: u32) {
        self.offers_after = locks;
    }

    /// Whether the process has an intent.
    #[inline]
    pub(super) fn are_owned(&self) -> bool {
        self.owned > 0
    }

    /// Whether no call has returned with an exclusive lock that still exists.
    #[inline]
    pub(super) fn has_no_lock(&self) -> bool {
        self.owned + self.borrowed == 0
    }

    /// Records that an exclusive lock is about to be taken that counts on an intent of this
    /// process. It is counted before it is taken, because another thread may unlock meanwhile.
    pub(super) fn borrow(&mut self) {
        self.borrowed += 1;
    }

    /// Records that such a lock was not taken.
    pub(super) fn give_back(&mut self) {
        self.borrowed -= 1;
    }

    /// Records that an exclusive lock is held.
    #[inline(always)]
    pub(super) fn add(&mut self, intent: Intent) {
        match intent {
            Intent::Own => self.owned += 1,
            Intent::Standing => self.borrowed += 1,
            Intent::Earlier => {}
        }
    }

    /// Records that an exclusive lock ends.
    #[inline(always)]
    pub(super) fn end_lock(&mut self) -> SpareIntent {
        if self.borrowed > 0 {
            self.borrowed -= 1;
            return SpareIntent::None;
        }
        self.spare()
    }

    /// Takes away an intent that is to spare.
    fn spare(&mut self) -> SpareIntent {
        self.owned -= 1;
        self.spared += 1;
        if self.spared < self.offers_after {
            return SpareIntent::Release;
        }
        self.spared = 0;
        SpareIntent::Offer
    }
}
