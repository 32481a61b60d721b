//! The memory that this process had before, and that windows of any communicator expose: which
//! windows are over a page, and which pages are adopted for them (`memory::adopted`).
//!
//! Pages move only while no other process may copy to them by process_vm, since the kernel would
//! write to the page that has moved away. When a window is made, no process knows its memory, but
//! it may know the same page by another window. So this is one table of the process:
//!
//! | a new range               | its pages                                                        |
//! |---------------------------|------------------------------------------------------------------|
//! | overlaps no other one     | may move                                                         |
//! | is inside of adopted ones | are adopted already, and are shared                              |
//! | overlaps in another way   | stay where they are                                              |
//!
//! Adopted pages become private again when the last range over any page of that adoption ends.

use crate::config::{Adopt, Config};
use crate::memory::HeapPlace;
use crate::memory::adopted::{self, Adopted, NotAdopted, When};
use crate::sys::{PAGE, process};
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
    fn is_over(&self, (first, end): Pages) -> bool {
        let least = first.saturating_sub(self.longest);
        let mut below = self.ranges.range((least, 0)..(end, 0));
        below.any(|(_, range_end)| *range_end > first)
    }

    fn add(&mut self, (first, end): Pages) -> (u64, u64) {
        let key = (first, self.next);
        self.next += 1;
        self.longest = self.longest.max(end - first);
        self.ranges.insert(key, end);
        key
    }

    /// Ends a range, and returns the adoptions that no range is over any more.
    fn remove(&mut self, key: (u64, u64)) -> Vec<(Pages, Adopted)> {
        self.ranges.remove(&key);
        let adopted = std::mem::take(&mut self.adopted);
        let (kept, unheld) = adopted.into_iter().partition(|(pages, _)| self.is_over(*pages));
        self.adopted = kept;
        unheld
    }

    fn adopt(
        &mut self,
        (address, bytes): (u64, u64),
        consent: Adopt,
    ) -> core::result::Result<MappedPart, NotAdopted> {
        let pages = pages_of(address, bytes);
        let shares = |(_, other): &(Pages, Adopted)| {
            let (first, bytes_there) = other.inner();
            first <= address && address + bytes <= first + bytes_there
        };
        if self.is_over(pages) && !self.adopted.iter().any(shares) {
            return Err(NotAdopted::OtherWindow);
        }
        let adopted = adopted::take(address, bytes, When::Creation, consent)?;
        let part = MappedPart { inner: adopted.inner(), place: adopted.place() };
        self.adopted.push((pages, adopted));
        Ok(part)
    }
}

/// Returns the pages that hold a range.
fn pages_of(address: u64, bytes: u64) -> Pages {
    (address / PAGE * PAGE, address.saturating_add(bytes).next_multiple_of(PAGE))
}

/// The part of a range that other processes can map.
#[derive(Clone, Copy, Debug)]
pub struct MappedPart {
    /// its address and its bytes
    pub inner: (u64, u64),
    /// its place
    pub place: HeapPlace,
}

/// A range of this process's memory that a window exposes. It ends on drop: no other process
/// accesses it any more then by this window.
#[derive(Debug)]
pub struct OwnRange {
    key: (u64, u64),
    pid: i32,
    /// what became of its pages
    pub fate: core::result::Result<MappedPart, NotAdopted>,
}

impl OwnRange {
    /// Begins a range whose pages stay where they are. `None`: no page ever moves, or the range is
    /// empty.
    pub fn new(address: u64, bytes: u64) -> Option<OwnRange> {
        OwnRange::with_consent(address, bytes, Adopt::Never)
    }

    /// Begins a range of a window that is being made, and adopts its pages as far as `consent`, the
    /// policy and other windows permit it. No other process knows the memory by this window yet.
    pub fn adopt(address: u64, bytes: u64, consent: Adopt) -> Option<OwnRange> {
        OwnRange::with_consent(address, bytes, consent)
    }

    fn with_consent(address: u64, bytes: u64, consent: Adopt) -> Option<OwnRange> {
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
        let fate = match consent {
            Adopt::Never => Err(NotAdopted::Setting),
            consent => table.adopt((address, bytes), consent),
        };
        let key = table.add(pages_of(address, bytes));
        Some(OwnRange { key, pid, fate })
    }
}

impl Drop for OwnRange {
    fn drop(&mut self) {
        if self.pid != process::id() {
            return;
        }
        let mut table = TABLE.lock();
        // Under the lock: another thread that makes a window over these pages waits.
        drop(table.remove(self.key));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::number::Number;

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
    fn adopted_pages_stay_until_the_last_range_over_them_ends() {
        let bytes = 4 * PAGE;
        // SAFETY: new memory.
        let memory = unsafe {
            let (rights, flags) = (libc::PROT_READ | libc::PROT_WRITE, libc::MAP_PRIVATE);
            let flags = flags | libc::MAP_ANONYMOUS;
            libc::mmap(core::ptr::null_mut(), bytes.to_usize(), rights, flags, -1, 0)
        };
        assert_ne!(memory, libc::MAP_FAILED);
        let address = memory.expose_provenance().to_u64();
        let mut table = table(&[]);
        match table.adopt((address, bytes), Adopt::Always) {
            Ok(part) => assert_eq!(part.inner, (address, bytes)),
            Err(why) => return assert!(adopted::price(address, bytes).is_none(), "{why}"),
        }
        let first = table.add(pages_of(address, bytes));
        let again = table.adopt((address + 8, PAGE), Adopt::Always).map(|part| part.inner);
        assert_eq!(again.ok(), Some((address + 8, PAGE)), "it is inside");
        let inside = table.add(pages_of(address + 8, PAGE));
        let across = (address + PAGE, bytes);
        let refused = table.adopt(across, Adopt::Always).map(|part| part.inner);
        assert_eq!(refused, Err(NotAdopted::OtherWindow));
        let over = table.add(pages_of(address + PAGE, bytes));
        assert_eq!(table.remove(first).len(), 0, "a range is over its pages");
        assert_eq!(table.remove(inside).len(), 0, "and over one of these");
        assert_eq!(table.remove(over).len(), 2);
        // SAFETY: the memory from above; its pages are private again.
        unsafe { libc::munmap(memory, bytes.to_usize()) };
    }

    #[test]
    fn a_page_is_covered_until_its_last_range_ends() {
        let mut table = table(&[]);
        let keys = [table.add((0x1000, 0x3000)), table.add((0x1000, 0x3000))];
        assert!(table.remove(keys[0]).is_empty() && table.is_over((0x2000, 0x3000)));
        assert!(table.remove(keys[1]).is_empty() && !table.is_over((0x2000, 0x3000)));
    }
}
