//! The memory that this process had before, and that windows of any communicator expose: which
//! windows are over a page, and which pages are adopted for them (`memory::adopted`).
//!
//! The ranks of a node move their pages while none of them copies memory by process_vm. Other nodes
//! do not stop: a device or the service thread may access a page through another window. So the
//! process has one table:
//!
//! | a range                   | its pages                                                        |
//! |---------------------------|------------------------------------------------------------------|
//! | overlaps no other one     | may move when its window is made                                 |
//! | is inside of adopted ones | are adopted already, and are shared                              |
//! | overlaps in another way   | stay where they are                                              |
//!
//! Adopted pages become private again when the last range over any page of that adoption has ended.

use crate::HeapPlace;
use crate::adopted::{self, Adopted, NotAdopted, Quiet};
use crate::config::{Adopt, Config};
use crate::sys::{page_bytes, process};
use parking_lot::Mutex;
use std::collections::BTreeMap;

/// Pages: the first address, and one past the last.
type Pages = (u64, u64);

/// The table of a process.
struct Table {
    /// the process that it belongs to; 0: none yet
    pid: i32,
    /// the end of each range by its first page and its number
    ranges: BTreeMap<(u64, u64), u64>,
    /// the number of the next range
    next: u64,
    /// the bytes of the longest range ever
    longest: u64,
    adopted: Vec<(Pages, Adopted)>,
}

static TABLE: Mutex<Table> =
    Mutex::new(Table { pid: 0, ranges: BTreeMap::new(), next: 0, longest: 0, adopted: Vec::new() });

impl Table {
    /// Whether a range overlaps these pages.
    fn is_over(&self, pages: Pages) -> bool {
        self.is_another_over(pages, None)
    }

    /// Whether a range other than the one with this key overlaps these pages.
    fn is_another_over(&self, (first, end): Pages, key: Option<(u64, u64)>) -> bool {
        let least = first.saturating_sub(self.longest);
        let mut below = self.ranges.range((least, 0)..(end, 0));
        below.any(|(other, range_end)| *range_end > first && Some(*other) != key)
    }

    fn add(&mut self, (first, end): Pages) -> (u64, u64) {
        let key = (first, self.next);
        self.next += 1;
        self.longest = self.longest.max(end - first);
        self.ranges.insert(key, end);
        key
    }

    /// Returns the adoptions that no range but the one with this key is over.
    fn last_over(&self, key: (u64, u64)) -> Vec<&Adopted> {
        let is_last = |(pages, _): &&(Pages, Adopted)| !self.is_another_over(*pages, Some(key));
        self.adopted.iter().filter(is_last).map(|(_, adopted)| adopted).collect()
    }

    /// Ends a range, and drops the adoptions that no range is over any more.
    fn remove(&mut self, key: (u64, u64)) {
        self.ranges.remove(&key);
        let adopted = std::mem::take(&mut self.adopted);
        self.adopted = adopted.into_iter().filter(|(pages, _)| self.is_over(*pages)).collect();
    }

    /// Whether the pages of the range with this key may be adopted: whether no other range prevents
    /// it.
    fn may_adopt(
        &self,
        (address, bytes): (u64, u64),
        key: Option<(u64, u64)>,
    ) -> core::result::Result<(), NotAdopted> {
        let shares = |(_, other): &(Pages, Adopted)| {
            let (first, bytes_there) = other.inner();
            first <= address && address + bytes <= first + bytes_there
        };
        let is_free = !self.is_another_over(pages_of(address, bytes), key);
        if is_free || self.adopted.iter().any(shares) {
            Ok(())
        } else {
            Err(NotAdopted::OtherWindow)
        }
    }

    /// Adopts the pages of a range, which has this key.
    fn adopt(
        &mut self,
        (address, bytes): (u64, u64),
        key: Option<(u64, u64)>,
        quiet: &Quiet,
    ) -> AdoptionResult {
        self.may_adopt((address, bytes), key)?;
        let adopted = adopted::take(address, bytes, quiet)?;
        let part = MappedPart { inner: adopted.inner(), place: adopted.place() };
        self.adopted.push((pages_of(address, bytes), adopted));
        Ok(part)
    }
}

/// Returns the pages that hold a range.
fn pages_of(address: u64, bytes: u64) -> Pages {
    (
        address / page_bytes() * page_bytes(),
        address.saturating_add(bytes).next_multiple_of(page_bytes()),
    )
}

/// The part of a range that other processes can map.
#[derive(Clone, Copy, Debug)]
pub struct MappedPart {
    /// its address and its bytes
    pub inner: (u64, u64),
    /// its place
    pub place: HeapPlace,
}

/// The result of adopting the pages of a range.
pub type AdoptionResult = core::result::Result<MappedPart, NotAdopted>;

/// A range of this process's memory that a window exposes. It ends on drop: no other process
/// accesses it any more then by this window.
#[derive(Debug)]
pub struct OwnRange {
    key: (u64, u64),
    pid: i32,
    /// address and bytes
    memory: (u64, u64),
    /// the result of adopting its pages; they may be adopted in a quiet part while this is
    /// `Ok(None)`
    adoption: core::result::Result<Option<MappedPart>, NotAdopted>,
}

impl OwnRange {
    /// Begins a range whose pages stay where they are. `None`: no page ever moves, or the range is
    /// empty.
    pub fn new(address: u64, bytes: u64) -> Option<OwnRange> {
        OwnRange::with_consent(address, bytes, Adopt::Never)
    }

    /// Begins a range of a window that is being made. No other process knows the memory by this
    /// window yet. `consent`: whether its pages may be adopted.
    pub fn with_consent(address: u64, bytes: u64, consent: Adopt) -> Option<OwnRange> {
        if Config::get().adopt == Adopt::Never
            || bytes == 0
            || address.checked_add(bytes).is_none_or(|end| end > i64::MAX as u64)
        {
            return None;
        }
        let mut table = TABLE.lock();
        let pid = process::id();
        if table.pid != pid {
            // A child of fork(2) has private copies.
            table.ranges.clear();
            table.adopted.clear();
            table.pid = pid;
        }
        let memory = (address, bytes);
        let adoption = table.may_adopt(memory, None);
        let adoption =
            adoption.and_then(|()| adopted::may_take(address, bytes, consent)).map(|()| None);
        let key = table.add(pages_of(address, bytes));
        Some(OwnRange { key, pid, memory, adoption })
    }

    /// Whether its pages may be adopted, if the ranks of the node are quiet.
    pub fn wants_quiet(&self) -> bool {
        matches!(self.adoption, Ok(None))
    }

    /// Whether pages are to be given back when it ends.
    pub fn leaves_pages(&self) -> bool {
        self.pid == process::id() && adopted::has_unheld(&TABLE.lock().last_over(self.key))
    }

    /// Records why its pages are not moved.
    pub fn not_adopted(&mut self, why: NotAdopted) {
        if self.wants_quiet() {
            self.adoption = Err(why);
        }
    }

    /// Adopts its pages, as far as the policy and other windows permit it.
    pub fn adopt(&mut self, quiet: &Quiet) {
        if self.wants_quiet() {
            let adopted = TABLE.lock().adopt(self.memory, Some(self.key), quiet);
            self.adoption = adopted.map(Some);
        }
    }

    /// Returns the part of it that other processes can map, or why there is none.
    pub fn mapped(&self) -> AdoptionResult {
        self.adoption.and_then(|part| part.ok_or(NotAdopted::Failed))
    }
}

impl Drop for OwnRange {
    fn drop(&mut self) {
        if self.pid != process::id() {
            return;
        }
        TABLE.lock().remove(self.key);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::number::Number;
    use crate::sys::adopt::helper_threads::OtherThreads;

    fn table(ranges: &[Pages]) -> Table {
        let (ranges_of, adopted) = (BTreeMap::new(), Vec::new());
        let mut table = Table { pid: 0, ranges: ranges_of, next: 0, longest: 0, adopted };
        for range in ranges {
            table.add(*range);
        }
        table
    }

    #[test]
    fn a_range_is_over_the_pages_that_it_overlaps() {
        let table = table(&[(0x5000, 0x7000), (0x1000, 0x9000), (0xa000, 0xb000)]);
        for (pages, over) in [
            ((0, 0x1000), false),
            ((0, 0x2000), true),
            ((0x8000, 0x9000), true),
            ((0x9000, 0xa000), false),
            ((0xa000, 0x20000), true),
            ((0xb000, 0x20000), false),
        ] {
            assert_eq!(table.is_over(pages), over, "{pages:x?}");
        }
    }

    #[test]
    #[cfg_attr(miri, ignore = "madvise")]
    fn adopted_pages_stay_until_the_last_range_over_them_ends() {
        let bytes = 4 * page_bytes();
        // SAFETY: new memory.
        let memory = unsafe {
            let (rights, flags) = (libc::PROT_READ | libc::PROT_WRITE, libc::MAP_PRIVATE);
            let flags = flags | libc::MAP_ANONYMOUS;
            libc::mmap(core::ptr::null_mut(), bytes.to_usize(), rights, flags, -1, 0)
        };
        assert_ne!(memory, libc::MAP_FAILED);
        let address = memory.expose_provenance().to_u64();
        let mut table = table(&[]);
        // SAFETY: one thread of this test alone uses the memory.
        let quiet = unsafe { Quiet::begin(OtherThreads::Helpers) };
        let adopt = |table: &mut Table, memory| table.adopt(memory, None, &quiet);
        match adopt(&mut table, (address, bytes)) {
            Ok(part) => assert_eq!(part.inner, (address, bytes)),
            Err(why) => return assert_eq!(why, NotAdopted::NoKernel),
        }
        let first = table.add(pages_of(address, bytes));
        let again = adopt(&mut table, (address + 8, page_bytes())).map(|part| part.inner);
        assert_eq!(again.ok(), Some((address + 8, page_bytes())), "it is inside");
        let inside = table.add(pages_of(address + 8, page_bytes()));
        let across = (address + page_bytes(), bytes);
        let refused = adopt(&mut table, across).map(|part| part.inner);
        assert_eq!(refused, Err(NotAdopted::OtherWindow));
        let over = table.add(pages_of(address + page_bytes(), bytes));
        assert_eq!(table.last_over(first).len(), 0, "another range is over its pages");
        table.remove(first);
        table.remove(inside);
        assert_eq!((table.adopted.len(), table.last_over(over).len()), (2, 2));
        table.remove(over);
        assert!(table.adopted.is_empty() && adopted::has_unheld(&[]));
        adopted::give_back_unheld(&quiet).unwrap();
        // SAFETY: the memory from above; its pages are private again.
        unsafe { libc::munmap(memory, bytes.to_usize()) };
    }

    #[test]
    fn a_page_is_covered_until_its_last_range_ends() {
        let mut table = table(&[]);
        let keys = [table.add((0x1000, 0x3000)), table.add((0x1000, 0x3000))];
        table.remove(keys[0]);
        assert!(table.is_over((0x2000, 0x3000)));
        table.remove(keys[1]);
        assert!(!table.is_over((0x2000, 0x3000)));
    }
}
