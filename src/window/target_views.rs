//! What quick calls know of the targets of a window whose ranks are all on this node. Not for
//! finding the memory of a target, which is in `address`.
//!
//! A window has a table with an entry for each target, and an entry leads to a [`TargetView`]:
//!
//! | entry        | meaning                                                                   |
//! |--------------|---------------------------------------------------------------------------|
//! | [`NO_VIEW`]  | not looked at yet, or not mapped here: quick calls refuse the target      |
//! | another view | that of the target, as long as the window lives                           |
//!
//! The first full call on a target that is mapped here makes its view. Until a window has one, it
//! uses the table of its arena, whose entries are all [`NO_VIEW`], so that making a window costs
//! nothing for this. Then it has a table of its own: 8 bytes for each rank of the node, and
//! a cache line for each target that the process has accessed. Quick calls that move data
//! find a window from its first view on (`registry::serve_transfers`).

use crate::number::Number;
use crate::rank_numbers::RankOnNode;
use crate::sync::{AtomicPtr, AtomicU64, Ordering};
use core::ptr;

/// A target whose memory is mapped here, as quick calls read it.
#[repr(C, align(64))]
#[derive(Debug)]
pub struct TargetView {
    /// where its mapped memory begins, at displacement `disp_min`, as this process reaches it
    pub(super) at: *mut u8,
    bytes: u64,
    /// its displacement unit in bytes
    disp_unit: u64,
    /// the first displacement that is mapped
    disp_min: u64,
    /// the largest displacement from there whose first byte is in `bytes`, or right behind them
    disp_max: u64,
    /// its word with the pass of this rank (`epoch::lock::passes`)
    pass: *const AtomicU64,
}

const _: () = assert!(size_of::<TargetView>() == 64);

// SAFETY: addresses of shared memory, which is reached by copies and atomics only.
unsafe impl Send for TargetView {}
// SAFETY: likewise.
unsafe impl Sync for TargetView {}

/// A word that no process changes: no rank has a pass.
static ZERO: AtomicU64 = AtomicU64::new(0);

/// The view of a target that quick calls do not access. No byte is inside.
static NO_VIEW: TargetView = TargetView::without_bytes(&raw const ZERO);

impl TargetView {
    const fn without_bytes(pass: *const AtomicU64) -> TargetView {
        TargetView { at: ptr::null_mut(), bytes: 0, disp_unit: 0, disp_min: 0, disp_max: 0, pass }
    }

    /// Returns the view of a target whose bytes from offset `first` to `end` are mapped, at `at`,
    /// in units of `disp_unit` bytes.
    ///
    /// # Safety
    /// The word is that of the target, and valid as long as the view.
    pub unsafe fn new(
        at: *mut u8,
        (first, end): (u64, u64),
        disp_unit: u64,
        pass: *const AtomicU64,
    ) -> TargetView {
        // With a unit of 0 every displacement is at the begin of the memory.
        let disp_min = first.div_ceil(disp_unit.max(1));
        let begin = disp_min.saturating_mul(disp_unit);
        // Only a rank that has damaged its memory maps bytes behind the last displacement.
        let is_any = begin >= first && disp_min <= DISP_MAX;
        let Some(bytes) = end.checked_sub(begin).filter(|_| is_any) else {
            return TargetView::without_bytes(pass);
        };
        let at = at.wrapping_add((begin - first).to_usize());
        let disp_max = disp_max(bytes, disp_unit).min(DISP_MAX - disp_min);
        let none = TargetView::without_bytes(pass);
        TargetView { at, bytes, disp_unit, disp_min, disp_max, ..none }
    }

    /// Returns the offset of displacement `disp` in the mapped memory, and the bytes from there to
    /// its end; `None` if the displacement is negative, ahead of that memory or behind its end.
    #[inline(always)]
    pub fn start(&self, disp: i64) -> Option<(u64, u64)> {
        // A negative displacement, or one that is ahead, is a number above all maxima here.
        let disp = disp.cast_unsigned().wrapping_sub(self.disp_min);
        if disp > self.disp_max {
            return None;
        }
        // Neither wraps around: up to `disp_max` the product is at most `bytes`.
        let first = disp.wrapping_mul(self.disp_unit);
        Some((first, self.bytes.wrapping_sub(first)))
    }

    /// Returns the word with the pass of this rank.
    #[inline(always)]
    pub fn pass(&self) -> &AtomicU64 {
        // SAFETY: the promise of `new`.
        unsafe { &*self.pass }
    }

    /// Returns the bytes from `first` to the end, if `first` is inside or right behind it.
    #[inline]
    pub fn behind(&self, first: u64) -> Option<u64> {
        self.bytes.checked_sub(first)
    }
}

/// The largest displacement that there is.
const DISP_MAX: u64 = i64::MAX.cast_unsigned();

/// Returns the largest displacement in units of `disp_unit` that is not behind the end of `bytes`
/// bytes. With a unit of 0 every displacement is at their begin.
fn disp_max(bytes: u64, disp_unit: u64) -> u64 {
    bytes.checked_div(disp_unit).unwrap_or(DISP_MAX).min(DISP_MAX)
}

/// The entry of a target.
type Entry = AtomicPtr<TargetView>;

/// A table without a view.
pub struct NoViews(Box<[Entry]>);

impl NoViews {
    /// Returns a table for `size` ranks.
    pub fn new(size: u32) -> NoViews {
        let none = || Entry::new((&raw const NO_VIEW).cast_mut());
        NoViews((0..size).map(|_| none()).collect())
    }
}

/// The views of one window.
#[repr(C)]
pub struct TargetViews {
    /// the table: that of the arena, or one of its own
    table: AtomicPtr<Entry>,
    /// the table of the arena
    none: *const Entry,
    size: u32,
}

// SAFETY: addresses of tables whose entries are atomic.
unsafe impl Send for TargetViews {}
// SAFETY: likewise.
unsafe impl Sync for TargetViews {}

impl TargetViews {
    /// Starts without a view.
    ///
    /// # Safety
    /// `none` lives as long as the result.
    pub unsafe fn new(none: &NoViews) -> TargetViews {
        let (table, size) = (none.0.as_ptr(), none.0.len().to_u32());
        TargetViews { table: AtomicPtr::new(table.cast_mut()), none: table, size }
    }

    /// Returns the view of a target.
    ///
    /// # Safety
    /// The window has this rank.
    #[inline(always)]
    pub unsafe fn of(&self, rank: RankOnNode) -> &TargetView {
        // Acquire: pairs with the Release in `own_table`.
        let table = self.table.load(Ordering::Acquire);
        // SAFETY: a table has an entry for each rank of the window.
        let entry = unsafe { &*table.wrapping_add(rank.0.to_usize()) };
        // Acquire: pairs with the Release in `insert`.
        let view = entry.load(Ordering::Acquire);
        // SAFETY: `NO_VIEW`, or a view that lives as long as this table.
        unsafe { &*view }
    }

    /// Returns whether quick calls may access some target.
    pub fn are_any(&self) -> bool {
        // Acquire: as in `of`.
        !ptr::eq(self.table.load(Ordering::Acquire), self.none)
    }

    /// Returns whether quick calls may access a target.
    #[inline]
    pub fn has(&self, rank: RankOnNode) -> bool {
        debug_assert!(rank.0 < self.size);
        // SAFETY: a rank of the window.
        !ptr::eq(unsafe { self.of(rank) }, &raw const NO_VIEW)
    }

    /// Sets the view of a target, unless another thread has done so.
    pub fn insert(&self, rank: RankOnNode, view: TargetView) {
        let entry = &self.own_table()[rank.0.to_usize()];
        let (none, view) = ((&raw const NO_VIEW).cast_mut(), Box::into_raw(Box::new(view)));
        // Release: pairs with the Acquire in `of`.
        let set = entry.compare_exchange(none, view, Ordering::Release, Ordering::Relaxed);
        if set.is_err() {
            // SAFETY: from the box above, and in no table.
            drop(unsafe { Box::from_raw(view) });
        }
    }

    /// Returns the table of this window, and makes it the first time.
    fn own_table(&self) -> &[Entry] {
        let (none, size) = (self.none.cast_mut(), self.size.to_usize());
        // Acquire: pairs with the Release below.
        let mut table = self.table.load(Ordering::Acquire);
        if ptr::eq(table, none) {
            let made = Box::into_raw(NoViews::new(self.size).0).cast::<Entry>();
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

impl Drop for TargetViews {
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
            let view = entry.load(Ordering::Relaxed); // as above
            if !ptr::eq(view, &raw const NO_VIEW) {
                // SAFETY: from the box in `insert`, in this table alone.
                drop(unsafe { Box::from_raw(view) });
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn view(bytes: u64, unit: u64) -> TargetView {
        part((0, bytes), unit)
    }

    fn part(part: (u64, u64), unit: u64) -> TargetView {
        let zero = &raw const ZERO;
        // SAFETY: a word that lives as long as the process.
        unsafe { TargetView::new(ptr::without_provenance_mut(1 << 40), part, unit, zero) }
    }

    #[test]
    fn a_start_is_inside_of_the_mapped_part_or_at_its_end() {
        for (first, end) in [(0, 4096), (100, 4096), (96, 97), (96, 96), (1 << 40, 1 << 41)] {
            for unit in [0, 1, 8, 12, 5000, 1 << 45, u64::MAX] {
                let view = part((first, end), unit);
                let near = [0, first, first / unit.max(1), end, end / unit.max(1)];
                for disp in near.into_iter().flat_map(|disp| disp.wrapping_sub(3)..=disp + 3) {
                    let byte = i128::from(disp.cast_signed()) * i128::from(unit);
                    let inside =
                        (i128::from(first)..=i128::from(end)).contains(&byte) && disp <= DISP_MAX;
                    let Some((offset, room)) = view.start(disp.cast_signed()) else {
                        assert!(!inside, "{first} {end} {unit} {disp}");
                        continue;
                    };
                    if view.bytes == 0 && room == 0 {
                        continue; // no byte may be accessed
                    }
                    assert!(inside, "{first} {end} {unit} {disp}");
                    assert_eq!(i128::from(room), i128::from(end) - byte);
                    let at = view.at.addr() as u64 + offset - (1 << 40);
                    assert_eq!(i128::from(at), byte - i128::from(first));
                }
            }
        }
        assert_eq!(part((8, 64), 8).start(i64::MIN), None);
    }

    /// Compares [`TargetView::start`] with numbers that cannot overflow.
    fn check(bytes: u64, unit: u64, disp: i64) {
        let first = i128::from(disp) * i128::from(unit);
        let inside = disp >= 0 && first <= i128::from(bytes);
        let expected = inside.then(|| (first as u64, bytes - first as u64));
        let start = view(bytes, unit).start(disp);
        assert_eq!(start, expected, "{bytes} bytes in units of {unit} at {disp}");
    }

    #[test]
    fn a_start_is_inside_of_the_memory_or_at_its_end() {
        let numbers = [0, 1, 2, 3, 7, 8, 9, 4095, 4096, 1 << 31, 1 << 32, 1 << 62, u64::MAX / 2];
        for bytes in numbers.into_iter().chain([1 << 63, u64::MAX]) {
            for unit in numbers.into_iter().chain([1 << 63, u64::MAX]) {
                for near in numbers.into_iter().chain([bytes / unit.max(1)]) {
                    for disp in [near.wrapping_sub(1), near, near.wrapping_add(1)] {
                        check(bytes, unit, disp.cast_signed());
                        check(bytes, unit, disp.cast_signed().wrapping_neg());
                    }
                }
            }
        }
    }

    #[test]
    fn a_target_without_a_view_has_no_byte() {
        assert_eq!((NO_VIEW.start(0), NO_VIEW.start(1)), (Some((0, 0)), None));
    }

    #[test]
    fn a_window_has_the_first_view_of_each_target() {
        let none = NoViews::new(3);
        // SAFETY: `none` is dropped last.
        let (views, other) = unsafe { (TargetViews::new(&none), TargetViews::new(&none)) };
        // SAFETY: a rank of three.
        let start = |rank| unsafe { views.of(RankOnNode(rank)) }.start(1);
        views.insert(RankOnNode(1), view(16, 8));
        views.insert(RankOnNode(1), view(32, 16));
        assert_eq!((start(0), start(1), start(2)), (None, Some((8, 8)), None));
        assert!(views.has(RankOnNode(1)) && !views.has(RankOnNode(2)));
        assert!(RankOnNode::all(3).all(|rank| !other.has(rank)), "another window");
    }

    #[test]
    fn threads_that_make_the_table_at_the_same_time_share_it() {
        for _ in 0..100 {
            let none = NoViews::new(4);
            // SAFETY: likewise.
            let views = unsafe { TargetViews::new(&none) };
            std::thread::scope(|scope| {
                for rank in 0..4 {
                    let views = &views;
                    scope.spawn(move || views.insert(RankOnNode(rank), view(8, 1)));
                }
            });
            assert!(RankOnNode::all(4).all(|rank| views.has(rank)));
        }
    }
}
