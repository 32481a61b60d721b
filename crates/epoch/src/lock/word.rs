//! The lock word: what its bits mean, and which values follow each other. Not for what a waiter
//! does, which is in [`super`] and [`super::tickets`]. Invariant: head and tail are both 0 or both
//! not, within a node; through a device each of the two fields has a meaning of its own.
//!
//! | holders | head, tail | state                                                                |
//! |---------|------------|----------------------------------------------------------------------|
//! | 0       | 0, 0       | free: one CompareSwap takes the lock                                 |
//! | n > 0   | 0, 0       | n threads hold the lock in mode Shared or All; no waiter             |
//! | n < 0   | 0, 0       | -n threads hold it in mode Exclusive (then n = -1) or Intent         |
//! | n != 0  | h, t       | held, and a queue of waiters from h to t; h = t: one waiter          |
//! | 0       | h, t       | released: waiter h is awake, or will be, and takes the lock          |
//!
//! | from                  | step                                       | to                     |
//! |-----------------------|--------------------------------------------|------------------------|
//! | free, or held; no waiter | CompareSwap of a newcomer that fits     | one holder more        |
//! | held                  | CompareSwap of a newcomer that must wait   | it is the new tail     |
//! | held                  | CompareSwap of a nested request            | it is the new head     |
//! | held                  | addition that releases                     | one holder less        |
//! | any, waiter h fits    | CompareSwap of h                           | one holder more, h gone |

use crate::fabric::Words;

/// The mode in which a thread holds a group lock.
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
    pub(super) fn alone(self) -> bool {
        self == Mode::Exclusive
    }

    /// Returns what one holder of this mode adds to the word.
    pub(super) fn holder(self) -> u64 {
        match self {
            Mode::Shared | Mode::All => HOLDER,
            Mode::Exclusive | Mode::Intent => HOLDER.wrapping_neg(),
        }
    }
}

/// The width of the number of a waiter: [`super::layout::RANKS_MAX`] ranks have fewer nodes.
pub(super) const ID_BITS: u32 = 22;

/// Bits 0..22, the head: the number of the first waiter, or 0 if there is none. A release wakes
/// this waiter alone.
///
/// Through a device: the first of the waiting nested requests, or 0.
pub(super) const ID: u64 = (1 << ID_BITS) - 1;

/// Bits 22..44, the tail: the number of the last waiter, or 0 if there is none. A new waiter takes
/// its place and links itself behind it.
///
/// Through a device: the thread that has the turn, or 0.
const TAIL: u64 = ID << ID_BITS;

/// Bits 44..64, a signed count of holders: this is one of Shared or All, and its negative is one of
/// Exclusive or Intent. The count is uppermost, so that one addition releases the lock in any mode
/// and carries into no other field.
const HOLDER: u64 = 1 << (2 * ID_BITS);

/// The lower bits of a link: the [`Mode`] that the linked waiter wants, or 0 if it is not known.
/// The upper bits are the number of that waiter.
pub(super) const MODE_BITS: u32 = 3;
pub(super) const MODE: u64 = (1 << MODE_BITS) - 1;

/// A value of the lock word.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct LockWord(pub(super) u64);

impl LockWord {
    pub(super) const FREE: LockWord = LockWord(0);

    pub(super) fn holders(self) -> i64 {
        self.0.cast_signed() >> (2 * ID_BITS)
    }

    pub(super) fn head(self) -> u64 {
        self.0 & ID
    }

    pub(super) fn tail(self) -> u64 {
        self.0 >> ID_BITS & ID
    }

    #[inline(always)]
    pub(super) fn has_waiter(self) -> bool {
        self.0 & (HOLDER - 1) != 0
    }

    /// Whether one more thread can hold the lock in this mode: the lock is free, or held in a mode
    /// that others can share, and there is a place for one more holder.
    pub(super) fn fits<W: Words>(self, mode: Mode) -> bool {
        let holders = self.holders();
        let joins = !mode.alone() && (holders > 0) == (mode.holder().cast_signed() > 0);
        holders == 0 || joins && holders.unsigned_abs() < W::HOLDERS_MAX
    }

    /// Whether a release from this value lets a waiter in that did not fit: the last holder leaves,
    /// or all places were taken.
    pub(super) fn makes_room<W: Words>(self) -> bool {
        let holders = self.holders().unsigned_abs();
        holders == 1 || holders == W::HOLDERS_MAX
    }

    pub(super) fn with_queue(self, head: u64, tail: u64) -> LockWord {
        LockWord(self.0 & !(TAIL | ID) | tail << ID_BITS | head)
    }

    /// Returns the word without the head of its queue, whose link is `link`.
    pub(super) fn without_head(self, link: u64) -> LockWord {
        match link {
            0 => self.with_queue(0, 0),
            link => self.with_queue(link >> MODE_BITS, self.tail()),
        }
    }

    pub(super) fn with_holder(self, mode: Mode) -> LockWord {
        LockWord(self.0.wrapping_add(mode.holder()))
    }
}

/// Returns the mode and the number of holders of a lock whose word has this value, or `None` if it
/// is free. For a report. On the global word [`Mode::Shared`] stands for lock_all and
/// [`Mode::Exclusive`] for intents.
pub fn holders(word: u64) -> Option<(Mode, u64)> {
    match LockWord(word).holders() {
        0 => None,
        count if count > 0 => Some((Mode::Shared, count.unsigned_abs())),
        count => Some((Mode::Exclusive, count.unsigned_abs())),
    }
}
