//! The free ranges of a chunk. Pure bookkeeping: it touches no memory and knows no chunk.
//!
//! | state of a free range | meaning                                                         |
//! |-----------------------|-----------------------------------------------------------------|
//! | fresh                 | whole pages without memory behind them; they read as zero       |
//! | used                  | granules that may have memory behind them, and all other ranges |
//!
//! Invariant: free ranges do not overlap, and two neighbours differ in their state.

use crate::sys::page_bytes;
use std::collections::{BTreeMap, BTreeSet};

/// Ranges begin and end at multiples of this: a cache line, so that no two of them share one.
pub const GRANULE: u64 = 64;

/// The state of a free range: see the table above.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RangeState {
    /// no memory behind it
    Fresh,
    /// perhaps memory behind it
    Used,
}

/// The free ranges of one chunk, by their offsets in it.
pub struct Ranges {
    /// the address of the chunk, because alignment is one of addresses
    origin: u64,
    /// length and state by offset
    free: BTreeMap<u64, (u64, RangeState)>,
    /// (length, offset) by state, to find the smallest range that is large enough
    by_size: [BTreeSet<(u64, u64)>; 2],
    /// bytes of the whole pages inside of used ranges
    retained: u64,
}

/// Returns offset and bytes of the whole pages in a range; the bytes may be 0.
fn whole_pages(offset: u64, bytes: u64) -> (u64, u64) {
    let first = offset.next_multiple_of(page_bytes());
    let end = (offset + bytes) / page_bytes() * page_bytes();
    (first, end.saturating_sub(first))
}

impl Ranges {
    /// A chunk of `bytes` bytes at the address `origin` (whole pages), all of it fresh.
    pub fn new(origin: u64, bytes: u64) -> Ranges {
        let (free, by_size) = (BTreeMap::new(), [BTreeSet::new(), BTreeSet::new()]);
        let mut ranges = Ranges { origin, free, by_size, retained: 0 };
        ranges.give(0, bytes, RangeState::Fresh);
        ranges
    }

    /// Takes `bytes` bytes whose address is a multiple of `alignment` (a power of two) out of the
    /// smallest range of that state in which they fit.
    pub fn take(&mut self, bytes: u64, alignment: u64, state: RangeState) -> Option<u64> {
        let unit = unit_of(state);
        debug_assert!(bytes > 0 && bytes.is_multiple_of(unit));
        let alignment = alignment.max(unit);
        let origin = self.origin;
        let first = |offset: u64| (origin + offset).next_multiple_of(alignment) - origin;
        let (length, offset) = *self.by_size[state as usize]
            .range((bytes, 0)..)
            .find(|(length, offset)| first(*offset) + bytes <= offset + length)?;
        let at = first(offset);
        self.carve(offset, length, at, bytes, state);
        Some(at)
    }

    /// Takes the whole pages of the longest used range that has any: offset and bytes.
    pub fn take_retained(&mut self) -> Option<(u64, u64)> {
        let (length, offset) = *self.by_size[RangeState::Used as usize]
            .iter()
            .rev()
            .find(|(length, offset)| whole_pages(*offset, *length).1 > 0)?;
        let (at, bytes) = whole_pages(offset, length);
        self.carve(offset, length, at, bytes, RangeState::Used);
        Some((at, bytes))
    }

    /// Returns the bytes of the whole pages that [`Ranges::take_retained`] could take.
    pub fn retained(&self) -> u64 {
        self.retained
    }

    /// Frees a range that was taken, or a part of one.
    pub fn give(&mut self, offset: u64, bytes: u64, state: RangeState) {
        debug_assert!((offset | bytes).is_multiple_of(unit_of(state)));
        if bytes == 0 {
            return;
        }
        let (mut first, mut end) = (offset, offset + bytes);
        if let Some((&before, &(length, its))) = self.free.range(..offset).next_back() {
            assert!(before + length <= offset, "a range is given back once");
            if before + length == offset && its == state {
                self.remove(before, length, state);
                first = before;
            }
        }
        if let Some((&behind, &(length, its))) = self.free.range(offset..).next() {
            assert!(end <= behind, "a range is given back once");
            if end == behind && its == state {
                self.remove(behind, length, state);
                end = behind + length;
            }
        }
        self.insert(first, end - first, state);
    }

    /// Takes `bytes` bytes from `at` out of the free range (offset, length).
    fn carve(&mut self, offset: u64, length: u64, at: u64, bytes: u64, state: RangeState) {
        self.remove(offset, length, state);
        self.insert(offset, at - offset, state);
        self.insert(at + bytes, offset + length - at - bytes, state);
    }

    fn insert(&mut self, offset: u64, length: u64, state: RangeState) {
        if length == 0 {
            return;
        }
        self.free.insert(offset, (length, state));
        self.by_size[state as usize].insert((length, offset));
        if state == RangeState::Used {
            self.retained += whole_pages(offset, length).1;
        }
    }

    fn remove(&mut self, offset: u64, length: u64, state: RangeState) {
        self.free.remove(&offset);
        self.by_size[state as usize].remove(&(length, offset));
        if state == RangeState::Used {
            self.retained -= whole_pages(offset, length).1;
        }
    }
}

/// Returns the unit in which ranges of a state begin and end.
fn unit_of(state: RangeState) -> u64 {
    match state {
        RangeState::Fresh => page_bytes(),
        RangeState::Used => GRANULE,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use fompi_testkit::Random;

    /// An address that is a multiple of pages, but of nothing larger.
    fn origin() -> u64 {
        0x7f00_0000_0000 + page_bytes()
    }

    /// A chunk as a map of its granules: `None` for those that are taken.
    struct Model(Vec<Option<RangeState>>);

    impl Model {
        fn set(
            &mut self,
            offset: u64,
            bytes: u64,
            from: Option<RangeState>,
            to: Option<RangeState>,
        ) {
            for granule in offset / GRANULE..(offset + bytes) / GRANULE {
                let granule = &mut self.0[granule as usize];
                assert_eq!(*granule, from);
                *granule = to;
            }
        }

        /// The maximal runs of one state, as (offset, bytes, state).
        fn runs(&self) -> Vec<(u64, u64, RangeState)> {
            let mut runs: Vec<(u64, u64, RangeState)> = Vec::new();
            for (granule, state) in self.0.iter().enumerate() {
                let (offset, Some(state)) = (granule as u64 * GRANULE, *state) else { continue };
                match runs.last_mut() {
                    Some(last) if last.0 + last.1 == offset && last.2 == state => last.1 += GRANULE,
                    _ => runs.push((offset, GRANULE, state)),
                }
            }
            runs
        }

        fn fits(&self, bytes: u64, alignment: u64, state: RangeState) -> bool {
            self.runs().iter().any(|(offset, length, its)| {
                let first = (origin() + offset).next_multiple_of(alignment);
                *its == state && first + bytes <= origin() + offset + length
            })
        }
    }

    /// Checks that `ranges` and the model agree.
    fn compare(ranges: &Ranges, model: &Model) {
        let free = ranges.free.iter().map(|(offset, (bytes, state))| (*offset, *bytes, *state));
        let runs = model.runs();
        assert_eq!(free.collect::<Vec<_>>(), runs);
        let used = runs.iter().filter(|run| run.2 == RangeState::Used);
        assert_eq!(ranges.retained(), used.map(|run| whole_pages(run.0, run.1).1).sum::<u64>());
        for state in [RangeState::Fresh, RangeState::Used] {
            let count = runs.iter().filter(|run| run.2 == state).count();
            assert_eq!(ranges.by_size[state as usize].len(), count);
        }
    }

    /// One step: takes, gives back, or turns used pages into fresh ones.
    fn step(ranges: &mut Ranges, model: &mut Model, taken: &mut Vec<(u64, u64)>, r: &mut Random) {
        let choice = r.below(8);
        if choice < 4 {
            let state = if choice < 2 { RangeState::Fresh } else { RangeState::Used };
            let bytes = (1 + r.below(6)) * unit_of(state);
            let alignment = 1 << r.below(15);
            let fits = model.fits(bytes, alignment.max(unit_of(state)), state);
            let found = ranges.take(bytes, alignment, state);
            assert_eq!(found.is_some(), fits, "{bytes} at {alignment} of {state:?}");
            if let Some(offset) = found {
                assert!((origin() + offset).is_multiple_of(alignment));
                model.set(offset, bytes, Some(state), None);
                taken.push((offset, bytes));
            }
        } else if choice < 7 && !taken.is_empty() {
            let (offset, bytes) = taken.swap_remove(r.below(taken.len() as u64) as usize);
            let fresh = (offset | bytes).is_multiple_of(page_bytes()) && r.below(2) == 0;
            let state = if fresh { RangeState::Fresh } else { RangeState::Used };
            ranges.give(offset, bytes, state);
            model.set(offset, bytes, None, Some(state));
        } else if let Some((offset, bytes)) = ranges.take_retained() {
            model.set(offset, bytes, Some(RangeState::Used), None);
            ranges.give(offset, bytes, RangeState::Fresh);
            model.set(offset, bytes, None, Some(RangeState::Fresh));
        } else {
            assert_eq!(ranges.retained(), 0);
        }
    }

    #[test]
    fn ranges_agree_with_a_map_of_granules() {
        let all = 32 * page_bytes();
        for seed in 1..=if cfg!(miri) { 1 } else { 40_u64 } {
            let mut r = Random(seed);
            let mut ranges = Ranges::new(origin(), all);
            let mut model = Model(vec![Some(RangeState::Fresh); (all / GRANULE) as usize]);
            let mut taken = Vec::new();
            for _ in 0..300 {
                step(&mut ranges, &mut model, &mut taken, &mut r);
                compare(&ranges, &model);
            }
        }
    }

    #[test]
    fn the_smallest_range_that_is_large_enough_is_taken() {
        let mut ranges = Ranges::new(origin(), 8 * page_bytes());
        assert_eq!(ranges.take(8 * page_bytes(), 1, RangeState::Fresh), Some(0));
        ranges.give(0, 4 * GRANULE, RangeState::Used);
        ranges.give(page_bytes(), 2 * GRANULE, RangeState::Used);
        assert_eq!(ranges.take(2 * GRANULE, 1, RangeState::Used), Some(page_bytes()));
        assert_eq!(ranges.take(2 * GRANULE, 1, RangeState::Used), Some(0));
        assert_eq!(ranges.take(4 * GRANULE, 1, RangeState::Used), None);
    }

    #[test]
    #[should_panic(expected = "given back once")]
    fn giving_back_twice_is_noticed() {
        let mut ranges = Ranges::new(origin(), 8 * page_bytes());
        let offset = ranges.take(page_bytes(), 1, RangeState::Fresh).unwrap();
        ranges.give(offset, page_bytes(), RangeState::Used);
        ranges.give(offset, page_bytes(), RangeState::Used);
    }
}
