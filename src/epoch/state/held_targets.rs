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

/// Targets by rank. Most programs hold one at a time, or a few: they need no allocation.
pub(super) struct Targets {
    /// `NOBODY`: no first
    pub(super) first: Rank,
    /// `Unchecked` if there is no first: a quick call may ask for any number as a rank
    pub(super) first_hold: Hold,
    /// the number of the others
    pub(super) others: u32,
    /// some of the others, in any order; `NOBODY`: a free place
    few: [(Rank, Hold); FEW],
    /// those that found no free place there
    many: BTreeMap<Rank, Hold>,
}

/// Places for others than the first.
const FEW: usize = 4;

impl Targets {
    pub(super) const NONE: Targets = Targets {
        first: NOBODY,
        first_hold: Hold::Unchecked,
        others: 0,
        few: [(NOBODY, Hold::Unchecked); FEW],
        many: BTreeMap::new(),
    };

    #[inline]
    pub(super) fn is_empty(&self) -> bool {
        self.first == NOBODY && self.others == 0
    }

    #[inline]
    pub(super) fn clear(&mut self) {
        if self.others > 0 {
            *self = Targets::NONE;
        }
        (self.first, self.first_hold) = (NOBODY, Hold::Unchecked);
    }

    #[inline(always)]
    pub(super) fn get(&self, rank: Rank) -> Option<Hold> {
        if self.first == rank {
            return Some(self.first_hold);
        }
        if self.others == 0 { None } else { self.get_other(rank) }
    }

    #[inline(never)]
    fn get_other(&self, rank: Rank) -> Option<Hold> {
        let found = self.few.iter().find(|(other, _)| *other == rank);
        found.map(|(_, hold)| *hold).or_else(|| self.many.get(&rank).copied())
    }

    #[inline]
    pub(super) fn insert(&mut self, rank: Rank, hold: Hold) {
        if self.first == NOBODY {
            (self.first, self.first_hold) = (rank, hold);
            return;
        }
        self.others += 1;
        match self.few.iter_mut().find(|(other, _)| *other == NOBODY) {
            Some(free) => *free = (rank, hold),
            None => drop(self.many.insert(rank, hold)),
        }
    }

    #[inline]
    pub(super) fn remove(&mut self, rank: Rank) -> Option<Hold> {
        if self.first == rank {
            self.first = NOBODY;
            return Some(replace(&mut self.first_hold, Hold::Unchecked));
        }
        let removed = match self.few.iter_mut().find(|(other, _)| *other == rank) {
            Some(place) => Some(replace(place, (NOBODY, Hold::Unchecked)).1),
            None => self.many.remove(&rank),
        };
        self.others -= u32::from(removed.is_some());
        removed
    }

    /// The ranks, in their order.
    pub(super) fn ranks(&self) -> RankList {
        if self.others == 0 {
            return Some(self.first).into_iter().filter(|first| *first != NOBODY).collect();
        }
        let few = self.few.iter().map(|(rank, _)| *rank);
        let places = [self.first].into_iter().chain(few).filter(|rank| *rank != NOBODY);
        let mut ranks: RankList = places.chain(self.many.keys().copied()).collect();
        ranks.sort_unstable();
        ranks
    }
}
