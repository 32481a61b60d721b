//! The ranks to which a call is known to be legal, in words that calls read without the book of
//! `state`. The words only repeat what this process has decided, so their accesses are Relaxed.
//!
//! | ranks of the word | lower half, the first rank, negated | upper half, their number |
//! |-------------------|-------------------------------------|--------------------------|
//! | none is known     | 0                                   | 0                        |
//! | one               | 0 - that rank                       | 1                        |
//! | some side by side | 0 - the first of them               | how many                 |
//! | all               | 0                                   | the size of the window   |
//!
//! A call adds its rank to the negated one: a processor adds into a third register by one
//! instruction, and subtracts there by two.
//!
//! Invariant: each rank of a range is a rank of the window. So calls that find a target in a range
//! need not compare it with the size of the window. This is why both halves are in one word: half
//! of one range and half of another one could be a range that the window does not have, and threads
//! may change the word at any time.

use crate::number::Number;
use crate::rank_numbers::Rank;
use crate::sync::{AtomicU64, Ordering, computed};

/// Ranks of a window that follow each other.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct RankRange(u64);

impl RankRange {
    /// No rank.
    pub const NONE: RankRange = RankRange(0);

    /// Returns the range of one rank of a window of `size` ranks.
    #[inline(always)]
    fn one(rank: Rank, size: u32) -> RankRange {
        debug_assert!(rank.0 < size, "{rank:?} is a rank of the window");
        RankRange::of(rank.0, 1)
    }

    /// Returns the range of all ranks of a window of `size` ranks.
    #[inline(always)]
    fn all(size: u32) -> RankRange {
        RankRange::of(0, size)
    }

    #[inline(always)]
    fn of(first: u32, count: u32) -> RankRange {
        RankRange(u64::from(first.wrapping_neg()) | u64::from(count) << 32)
    }

    #[inline(always)]
    fn first(self) -> u32 {
        self.0.low_u32().wrapping_neg()
    }

    #[inline(always)]
    fn count(self) -> u32 {
        (self.0 >> 32).low_u32()
    }

    /// Returns the range with one more rank of the window, of `size` ranks: that rank alone if it
    /// is not beside the others.
    #[inline]
    fn with(self, rank: Rank, size: u32) -> RankRange {
        let (first, count) = (self.first(), self.count());
        match rank.0 {
            _ if self.has(rank) => self,
            _ if count == 0 => RankRange::one(rank, size),
            next if next == first + count => RankRange::of(first, count + 1),
            before if before + 1 == first => RankRange::of(before, count + 1),
            _ => RankRange::one(rank, size),
        }
    }

    /// Returns the range without a rank: no rank at all if it was between the others.
    #[inline]
    fn without(self, rank: Rank) -> RankRange {
        let (first, count) = (self.first(), self.count());
        match rank.0 {
            _ if !self.has(rank) => self,
            _ if count == 1 => RankRange::NONE,
            same if same == first => RankRange::of(first + 1, count - 1),
            last if last == first + count - 1 => RankRange::of(first, count - 1),
            _ => RankRange::NONE,
        }
    }

    /// Returns whether `rank`, which may be any number, is one of them.
    #[inline(always)]
    fn has(self, rank: Rank) -> bool {
        let behind_first = computed!(rank.0.wrapping_add(self.0.low_u32()));
        behind_first < self.count()
    }
}

/// A word with a range.
#[repr(transparent)]
struct RangeWord(AtomicU64);

impl RangeWord {
    #[inline(always)]
    fn get(&self) -> RankRange {
        RankRange(self.0.load(Ordering::Relaxed))
    }

    #[inline(always)]
    fn set(&self, ranks: RankRange) {
        self.0.store(ranks.0, Ordering::Relaxed);
    }
}

/// The ranks of a window to which this process is known to have an epoch. The words come first.
#[repr(C)]
pub struct KnownRanks {
    /// the ranks that may be accessed
    open: RangeWord,
    /// the ranks that are in a passive target epoch
    locked: RangeWord,
    /// the number of ranks of the window
    size: u32,
}

impl KnownRanks {
    /// The bytes of the words.
    pub const WORDS_BYTES: usize = core::mem::offset_of!(KnownRanks, size);

    /// Knows of no epoch, on a window of `size` ranks.
    pub fn new(size: u32) -> KnownRanks {
        let none = || RangeWord(AtomicU64::new(RankRange::NONE.0));
        KnownRanks { open: none(), locked: none(), size }
    }

    /// Returns the range of one rank of the window.
    #[inline(always)]
    pub fn one(&self, rank: Rank) -> RankRange {
        RankRange::one(rank, self.size)
    }

    /// Returns the range of all ranks of the window.
    #[inline(always)]
    pub fn all(&self) -> RankRange {
        RankRange::all(self.size)
    }

    /// Returns the range of these ranks, which differ, if they follow each other.
    #[inline]
    pub fn range(&self, ranks: &[Rank]) -> Option<RankRange> {
        let range = ranks.iter().fold(RankRange::NONE, |range, rank| range.with(*rank, self.size));
        (range.count().to_usize() == ranks.len()).then_some(range)
    }

    /// Returns the ranks that are known to be in a passive target epoch, and `rank`, which is in
    /// one; or that rank alone.
    #[inline]
    pub fn passive_with(&self, rank: Rank) -> RankRange {
        self.locked.get().with(rank, self.size)
    }

    /// Returns the ranks that are known to be in a passive target epoch, without `rank`.
    #[inline]
    pub fn passive_without(&self, rank: Rank) -> RankRange {
        self.locked.get().without(rank)
    }

    /// Whether `rank`, which may be any number, is a rank of the window that is known to be open.
    #[inline(always)]
    pub fn is_open(&self, rank: Rank) -> bool {
        self.open.get().has(rank)
    }

    /// Whether no rank is known to be open.
    #[inline(always)]
    pub fn is_none_open(&self) -> bool {
        self.open.get() == RankRange::NONE
    }

    /// Whether `rank`, which may be any number, is a rank of the window that is known to be in a
    /// passive target epoch.
    #[inline(always)]
    pub fn is_passive(&self, rank: Rank) -> bool {
        self.locked.get().has(rank)
    }

    /// Whether any rank is known to be in a passive target epoch.
    #[inline(always)]
    pub fn is_any_passive(&self) -> bool {
        self.locked.get() != RankRange::NONE
    }

    /// Notes the ranks that are open.
    #[inline(always)]
    pub fn set_open(&self, ranks: RankRange) {
        self.open.set(ranks);
    }

    /// Notes the ranks that are in a passive target epoch, and therefore open.
    #[inline(always)]
    pub fn set_passive(&self, ranks: RankRange) {
        self.open.set(ranks);
        self.locked.set(ranks);
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    #[test]
    fn a_range_has_its_ranks_alone() {
        let numbers = [0, 1, 2, 6, 7, 8, 1 << 31, u32::MAX - 1, u32::MAX];
        for rank in numbers.map(Rank) {
            assert!(!RankRange::NONE.has(rank));
            assert_eq!(RankRange::all(7).has(rank), rank.0 < 7);
            for only in (0..7).map(Rank) {
                assert_eq!(RankRange::one(only, 7).has(rank), rank == only);
            }
        }
    }

    #[test]
    fn ranks_side_by_side_are_one_range() {
        let range = |ranks: &[u32]| {
            ranks.iter().fold(RankRange::NONE, |range, rank| range.with(Rank(*rank), 8))
        };
        let ranks = |range: RankRange| (0..9).filter(|rank| range.has(Rank(*rank))).collect();
        let of = |range: RankRange| -> Vec<u32> { ranks(range) };
        assert_eq!(of(range(&[3, 4, 2, 3, 5])), [2, 3, 4, 5]);
        assert_eq!(of(range(&[3, 4, 6])), [6]);
        assert_eq!(of(range(&[0, 2])), [2]);
        assert_eq!(of(range(&[7, 6, 0])), [0]);
        let some = range(&[3, 4, 5]);
        assert_eq!(of(some.without(Rank(3))), [4, 5]);
        assert_eq!(of(some.without(Rank(5))), [3, 4]);
        assert_eq!(of(some.without(Rank(4))), []);
        assert_eq!(of(some.without(Rank(6))), [3, 4, 5]);
        assert!(range(&[4]).without(Rank(4)) == RankRange::NONE);
        assert!(RankRange::NONE.without(Rank(0)) == RankRange::NONE);
        let known = KnownRanks::new(8);
        let of_group = |ranks: &[u32]| {
            let group: Vec<_> = ranks.iter().map(|rank| Rank(*rank)).collect();
            known.range(&group).map(of)
        };
        assert_eq!(of_group(&[]), Some(vec![]));
        assert_eq!(of_group(&[2, 1, 3]), Some(vec![1, 2, 3]));
        assert_eq!(of_group(&[1, 3]), None);
    }

    /// Threads change the word while another one reads it: a reader sees one of the ranges.
    #[test]
    #[cfg_attr(miri, ignore = "too many rounds")]
    fn no_thread_reads_a_rank_that_the_window_does_not_have() {
        let word = RangeWord(AtomicU64::new(RankRange::NONE.0));
        std::thread::scope(|scope| {
            let change = |ranks: [RankRange; 2]| {
                let word = &word;
                scope.spawn(move || (0..20_000).for_each(|turn| word.set(ranks[turn % 2])));
            };
            change([RankRange::one(Rank(6), 7), RankRange::all(7)]);
            change([RankRange::one(Rank(3), 7), RankRange::NONE]);
            for rank in (0..20_000).map(|turn| Rank(7 + turn % 7)) {
                assert!(!word.get().has(rank));
            }
        });
    }
}
