//! The records of the targets of a one-node window, and the tables with them. `address` finds the
//! memory of a target, and `quick_window` reads the records.
//!
//! A window has a table with an entry for each target, and an entry leads to a [`Target`]:
//!
//! | entry         | meaning                                                                  |
//! |---------------|--------------------------------------------------------------------------|
//! | [`NO_TARGET`] | this process has neither accessed nor held the target yet                |
//! | another one   | the record of the target, as long as the window lives                    |
//!
//! The first full call on a target makes its record. Until a window has one, it uses the table of
//! its arena, whose entries are all [`NO_TARGET`], so that making a window costs nothing for this.
//! Then it has a table of its own: 8 bytes for each rank of the node, and a cache line for each
//! target that the process has accessed or held.

use super::quick_window::{Extent, Target, Targets};
use crate::epoch::access::TargetAccess;
use crate::number::Number;
use crate::rank_numbers::RankOnNode;
use crate::sync::{AtomicPtr, AtomicU64, Ordering};
use core::ptr;

// SAFETY: addresses of shared memory, which is reached by copies and atomics only.
unsafe impl Send for Target {}
// SAFETY: as for `Send`.
unsafe impl Sync for Target {}

/// A word that no process changes: no rank has a pass.
static ZERO: AtomicU64 = AtomicU64::new(0);

/// The record of a target that was not accessed yet. No byte is inside.
static NO_TARGET: Target = Target { access: TargetAccess::unknown(), ..Target::unmapped() };

impl Target {
    /// Returns the record of a target without memory mapped here.
    pub const fn unmapped() -> Target {
        Target { extent: Extent::NOTHING, pass: &raw const ZERO, access: TargetAccess::closed() }
    }

    /// Returns the record of a target with this memory mapped.
    ///
    /// # Safety
    /// The word is that of the target, and valid as long as the view.
    pub unsafe fn new(extent: Extent, pass: *const AtomicU64) -> Target {
        Target { extent, pass, ..Target::unmapped() }
    }

    /// Whether some byte of it is mapped here.
    pub fn is_mapped(&self) -> bool {
        self.extent.bytes > 0
    }
}

/// The entry of a target.
type Entry = AtomicPtr<Target>;

/// A table without a record.
pub struct NoTargets(Box<[Entry]>);

impl NoTargets {
    /// Returns a table for `size` ranks.
    pub fn new(size: u32) -> NoTargets {
        let none = || Entry::new((&raw const NO_TARGET).cast_mut());
        NoTargets((0..size).map(|_| none()).collect())
    }
}

// SAFETY: addresses of tables whose entries are atomic.
unsafe impl Send for Targets {}
// SAFETY: as for `Send`.
unsafe impl Sync for Targets {}

impl Targets {
    /// Returns the targets of a window that has not all its ranks on this node.
    pub const fn elsewhere() -> Targets {
        Targets { table: AtomicPtr::new(ptr::null_mut()), none: ptr::null(), size: 0 }
    }

    /// Starts without a record.
    ///
    /// # Safety
    /// `none` lives as long as the result.
    pub unsafe fn new(none: &NoTargets) -> Targets {
        let (table, size) = (none.0.as_ptr(), none.0.len().to_u32());
        Targets { table: AtomicPtr::new(table.cast_mut()), none: table, size }
    }

    /// Returns the record of a target, if it has one.
    #[inline(always)]
    pub fn find(&self, rank: RankOnNode) -> Option<&Target> {
        self.of(rank).filter(|known| !ptr::eq(*known, &raw const NO_TARGET))
    }

    /// Returns the record of a target, which `make` makes the first time.
    pub fn get(&self, rank: RankOnNode, make: impl FnOnce() -> Target) -> &Target {
        self.find(rank).unwrap_or_else(|| self.insert(rank, make()))
    }

    /// Sets the record of a target, unless another thread has done so.
    #[cold]
    fn insert(&self, rank: RankOnNode, target: Target) -> &Target {
        let entry = &self.own_table()[rank.0.to_usize()];
        let (none, made) = ((&raw const NO_TARGET).cast_mut(), Box::into_raw(Box::new(target)));
        // Release: pairs with the Acquire in `of`; Acquire: as in `of`.
        let set = entry.compare_exchange(none, made, Ordering::AcqRel, Ordering::Acquire);
        let target = set.map_or_else(|other| other, |_| made);
        if set.is_err() {
            // SAFETY: from the box above, and in no table.
            drop(unsafe { Box::from_raw(made) });
        }
        // SAFETY: the entry of the table, which lives as long as it.
        unsafe { &*target }
    }

    /// Returns the ranks that have a record, and their records.
    pub fn all(&self) -> impl Iterator<Item = (RankOnNode, &Target)> {
        // Acquire: as in `of`.
        let is_any = !ptr::eq(self.table.load(Ordering::Acquire), self.none);
        let ranks = RankOnNode::all(if is_any { self.size } else { 0 });
        ranks.filter_map(|rank| Some((rank, self.find(rank)?)))
    }

    /// Returns the table of this window, and makes it the first time.
    fn own_table(&self) -> &[Entry] {
        let (none, size) = (self.none.cast_mut(), self.size.to_usize());
        // Acquire: pairs with the Release below.
        let mut table = self.table.load(Ordering::Acquire);
        if ptr::eq(table, none) {
            let made = Box::into_raw(NoTargets::new(self.size).0).cast::<Entry>();
            // Release: pairs with the Acquire in `of`; Acquire: as above.
            let (set, failed) = (Ordering::AcqRel, Ordering::Acquire);
            table = match self.table.compare_exchange(none, made, set, failed) {
                Ok(_) => made,
                Err(other) => {
                    // SAFETY: the box made above, which no other thread knows.
                    drop(unsafe { Box::from_raw(ptr::slice_from_raw_parts_mut(made, size)) });
                    other
                }
            };
        }
        // SAFETY: a table of this many entries, which lives as long as `self`.
        unsafe { core::slice::from_raw_parts(table, size) }
    }
}

impl Drop for Targets {
    fn drop(&mut self) {
        // Relaxed: no other thread uses the window while it is freed.
        let table = self.table.load(Ordering::Relaxed);
        if ptr::eq(table, self.none) {
            return;
        }
        // SAFETY: made from a box of this many entries in `own_table`, and not used again.
        let table =
            unsafe { Box::from_raw(ptr::slice_from_raw_parts_mut(table, self.size.to_usize())) };
        for entry in table {
            let target = entry.load(Ordering::Relaxed); // as above
            if !ptr::eq(target, &raw const NO_TARGET) {
                // SAFETY: from the box in `insert`, in this table alone.
                drop(unsafe { Box::from_raw(target) });
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn target(bytes: u64, unit: u64) -> Target {
        let extent = Extent::new(ptr::without_provenance_mut(1 << 40), (0, bytes), unit);
        Target { extent, ..Target::unmapped() }
    }

    #[test]
    fn a_target_of_which_nothing_is_known_has_no_byte() {
        let start = |disp| NO_TARGET.extent.start(disp);
        assert_eq!((start(0), start(1)), (Some((0, 0)), None));
        assert!(!NO_TARGET.is_mapped() && !NO_TARGET.access.is_closed());
    }

    #[test]
    fn a_window_has_the_first_record_of_each_target() {
        let none = NoTargets::new(3);
        // SAFETY: `none` is dropped last.
        let (targets, other) = unsafe { (Targets::new(&none), Targets::new(&none)) };
        let start = |rank| targets.of(RankOnNode(rank)).unwrap().extent.start(1);
        assert!(targets.of(RankOnNode(3)).is_none());
        for made in [target(16, 8), target(32, 16)] {
            assert_eq!(targets.get(RankOnNode(1), || made).extent.start(1), Some((8, 8)));
        }
        assert!(targets.get(RankOnNode(2), Target::unmapped).access.is_closed());
        assert_eq!((start(0), start(1), start(2)), (None, Some((8, 8)), None));
        let known: Vec<u32> = targets.all().map(|(rank, _)| rank.0).collect();
        assert_eq!((&known[..], other.all().count()), (&[1, 2][..], 0), "another window");
    }

    #[test]
    fn threads_that_make_the_table_at_the_same_time_share_it() {
        for _ in 0..100 {
            let none = NoTargets::new(4);
            // SAFETY: `none` is dropped last.
            let targets = unsafe { Targets::new(&none) };
            std::thread::scope(|scope| {
                for rank in 0..4 {
                    let targets = &targets;
                    scope.spawn(move || targets.get(RankOnNode(rank), || target(8, 1)).is_mapped());
                }
            });
            assert_eq!(targets.all().count(), 4);
        }
    }
}
