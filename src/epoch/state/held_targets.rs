//! The targets that a process holds in an epoch of locks or of MPI_Win_start. Not for whether a
//! call is legal, which [`super`] decides. Invariant: no target is in it twice.

use crate::rank_numbers::Rank;
use core::mem::replace;
use smallvec::SmallVec;
use std::collections::BTreeMap;

/// No rank.
pub(super) const NOBODY: Rank = Rank(u32::MAX);

/// Ranks of a group; a few of them need no allocation.
pub type RankList = SmallVec<[Rank; 16]>;

/// The way in which a target is held in an epoch of `Lock` or `Start`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Hold {
    /// MPI_LOCK_SHARED
    Shared,
    /// MPI_LOCK_EXCLUSIVE
    Exclusive,
    /// locked with MPI_MODE_NOCHECK: no lock was taken
    Unchecked,
    /// in the group of MPI_Win_start
    Started,
}

/// Targets by rank. The first needs no allocation, because most programs hold one at a time.
pub(super) struct Targets {
    /// `NOBODY`: no first
    pub(super) first: Rank,
    /// `Unchecked` if there is no first: a quick call may ask for any number as a rank
    pub(super) first_hold: Hold,
    pub(super) more: BTreeMap<Rank, Hold>,
}

impl Targets {
    pub(super) const NONE: Targets =
        Targets { first: NOBODY, first_hold: Hold::Unchecked, more: BTreeMap::new() };

    #[inline]
    pub(super) fn is_empty(&self) -> bool {
        self.first == NOBODY && self.more.is_empty()
    }

    #[inline]
    pub(super) fn get(&self, rank: Rank) -> Option<Hold> {
        if self.first == rank {
            return Some(self.first_hold);
        }
        if self.more.is_empty() { None } else { self.more.get(&rank).copied() }
    }

    #[inline]
    pub(super) fn insert(&mut self, rank: Rank, hold: Hold) {
        if self.first == NOBODY {
            (self.first, self.first_hold) = (rank, hold);
        } else {
            self.more.insert(rank, hold);
        }
    }

    #[inline]
    pub(super) fn remove(&mut self, rank: Rank) -> Option<Hold> {
        if self.first == rank {
            self.first = NOBODY;
            return Some(replace(&mut self.first_hold, Hold::Unchecked));
        }
        if self.more.is_empty() { None } else { self.more.remove(&rank) }
    }

    pub(super) fn ranks(&self) -> RankList {
        let more = self.more.keys().copied();
        Some(self.first).into_iter().filter(|first| *first != NOBODY).chain(more).collect()
    }
}
