//! The targets that a process holds in an epoch of locks or of MPI_Win_start. Not for whether a
//! call is legal, which [`super`] decides. Invariant: no target is in it twice.

use crate::number::Number;
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

/// Targets by rank. Most programs hold one at a time: that needs no allocation.
pub(super) struct Targets {
    /// `NOBODY`: no first
    pub(super) first: Rank,
    /// `Unchecked` if there is no first: a quick call may ask for any number as a rank
    pub(super) first_hold: Hold,
    /// the number of the others
    pub(super) others: u32,
    /// the others below [`TABLE`], by their rank; it grows to the highest of them
    table: Vec<Option<Hold>>,
    /// the others from there on
    beyond: BTreeMap<Rank, Hold>,
}

/// Ranks that have a place in the table, of a byte each.
const TABLE: usize = 4096;

impl Targets {
    pub(super) const NONE: Targets = Targets {
        first: NOBODY,
        first_hold: Hold::Unchecked,
        others: 0,
        table: Vec::new(),
        beyond: BTreeMap::new(),
    };

    #[inline]
    pub(super) fn is_empty(&self) -> bool {
        self.first == NOBODY && self.others == 0
    }

    #[inline]
    pub(super) fn clear(&mut self) {
        if self.others > 0 {
            self.table.fill(None);
            self.beyond.clear();
            self.others = 0;
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
        match self.table.get(rank.0.to_usize()) {
            Some(hold) => *hold,
            None => self.beyond.get(&rank).copied(),
        }
    }

    /// Holds a target that is not held and has a place in the table, if `take` says how: for a
    /// quick call, without a call of a function.
    #[inline(always)]
    pub(super) fn hold_another(
        &mut self,
        rank: Rank,
        take: impl FnOnce() -> Option<Hold>,
    ) -> Option<()> {
        if self.first == rank {
            return None;
        }
        let place = self.table.get_mut(rank.0.to_usize()).filter(|place| place.is_none())?;
        *place = Some(take()?);
        self.others += 1;
        Some(())
    }

    /// Removes a target that is locked, the first one or one that has a place in the table, and
    /// returns how it was: for a quick call, likewise.
    #[inline(always)]
    pub(super) fn end_another(&mut self, rank: Rank) -> Option<Hold> {
        let locked = |hold: &Hold| matches!(hold, Hold::Shared | Hold::Exclusive);
        if self.first == rank {
            let hold = Some(self.first_hold).filter(locked)?;
            (self.first, self.first_hold) = (NOBODY, Hold::Unchecked);
            return Some(hold);
        }
        let place = self.table.get_mut(rank.0.to_usize())?;
        let hold = place.filter(locked)?;
        *place = None;
        self.others -= 1;
        Some(hold)
    }

    #[inline]
    pub(super) fn insert(&mut self, rank: Rank, hold: Hold) {
        if self.first == NOBODY {
            (self.first, self.first_hold) = (rank, hold);
            return;
        }
        self.others += 1;
        match self.table.get_mut(rank.0.to_usize()) {
            Some(place) => *place = Some(hold),
            None => self.insert_beyond(rank, hold),
        }
    }

    #[cold]
    fn insert_beyond(&mut self, rank: Rank, hold: Hold) {
        let index = rank.0.to_usize();
        if index >= TABLE {
            self.beyond.insert(rank, hold);
            return;
        }
        self.table.resize((index + 1).next_power_of_two(), None);
        self.table[index] = Some(hold);
    }

    #[inline(always)]
    pub(super) fn remove(&mut self, rank: Rank) -> Option<Hold> {
        if self.first == rank {
            self.first = NOBODY;
            let hold = replace(&mut self.first_hold, Hold::Unchecked);
            return (rank != NOBODY).then_some(hold);
        }
        let removed = match self.table.get_mut(rank.0.to_usize()) {
            Some(place) => place.take(),
            None => self.remove_beyond(rank),
        };
        self.others -= u32::from(removed.is_some());
        removed
    }

    #[cold]
    fn remove_beyond(&mut self, rank: Rank) -> Option<Hold> {
        self.beyond.remove(&rank)
    }

    /// The ranks, in their order.
    pub(super) fn ranks(&self) -> RankList {
        if self.others == 0 {
            return Some(self.first).into_iter().filter(|first| *first != NOBODY).collect();
        }
        let table = self.table.iter().zip(0..).filter(|(hold, _)| hold.is_some());
        let others = table.map(|(_, rank)| Rank(rank)).chain(self.beyond.keys().copied());
        let mut ranks: RankList =
            [self.first].into_iter().filter(|first| *first != NOBODY).chain(others).collect();
        ranks.sort_unstable();
        ranks
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quick_calls_hold_targets_that_have_a_place_and_end_those_that_are_locked() {
        let mut targets = Targets::NONE;
        let hold = |targets: &mut Targets, rank| {
            targets.hold_another(Rank(rank), || Some(Hold::Shared)).is_some()
        };
        targets.insert(Rank(2), Hold::Exclusive);
        assert!(!hold(&mut targets, 1), "no table yet");
        targets.insert(Rank(3), Hold::Unchecked);
        assert!(hold(&mut targets, 1) && !hold(&mut targets, 1) && !hold(&mut targets, 2));
        assert!(!hold(&mut targets, 3) && !hold(&mut targets, 4) && !hold(&mut targets, u32::MAX));
        assert_eq!(targets.hold_another(Rank(0), || None), None);
        assert_eq!(targets.ranks()[..], [Rank(1), Rank(2), Rank(3)]);
        assert_eq!(targets.end_another(Rank(2)), Some(Hold::Exclusive));
        assert_eq!(targets.end_another(Rank(1)), Some(Hold::Shared));
        for rank in [Rank(2), Rank(1), Rank(3), Rank(4), NOBODY] {
            assert_eq!(targets.end_another(rank), None, "{rank:?}");
        }
        assert_eq!((targets.ranks()[..] == [Rank(3)], targets.others), (true, 1));
    }

    #[test]
    fn targets_are_held_until_they_are_removed() {
        let (low, last, behind, high) = (Rank(3), Rank(4095), Rank(4096), Rank(40_000));
        let mut targets = Targets::NONE;
        for rank in [Rank(9), last, high, low, behind] {
            assert!(targets.get(rank).is_none());
            targets.insert(rank, if rank == low { Hold::Exclusive } else { Hold::Shared });
            assert!(targets.get(rank).is_some());
        }
        assert_eq!(targets.ranks()[..], [low, Rank(9), last, behind, high]);
        assert_eq!(
            (targets.get(low), targets.get(high)),
            (Some(Hold::Exclusive), Some(Hold::Shared))
        );
        assert_eq!(
            (targets.get(Rank(4)), targets.get(Rank(5000)), targets.get(NOBODY)),
            (None, None, None)
        );
        assert_eq!(targets.remove(Rank(5000)), None);
        // Without the first one, the next one takes its place.
        assert_eq!(targets.remove(Rank(9)), Some(Hold::Shared));
        targets.insert(Rank(7), Hold::Shared);
        assert_eq!(targets.first, Rank(7));
        for rank in [low, last, behind, high, Rank(7)] {
            assert!(targets.remove(rank).is_some());
            assert_eq!((targets.get(rank), targets.remove(rank)), (None, None));
        }
        assert!(targets.is_empty() && targets.ranks().is_empty());
        for rank in [low, last, high] {
            targets.insert(rank, Hold::Started);
        }
        targets.clear();
        assert!(
            targets.is_empty() && [low, last, high].iter().all(|rank| targets.get(*rank).is_none())
        );
    }
}
