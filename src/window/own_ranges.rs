//! The memory that this process had before, and that windows of any communicator expose: which
//! windows are over a page, and which pages are adopted for them (`memory::adopted`).
//!
//! Pages move only while no other process may copy to them by process_vm, since the kernel would
//! write to the page that has moved away. When a window is made, no process knows its memory; later
//! its own ranks are kept away (`epoch::moving`). But processes may know the same page by another
//! window. So this is one table of the process:
//!
//! | a range                   | its pages                                                        |
//! |---------------------------|------------------------------------------------------------------|
//! | overlaps no other one     | may move, now or later                                           |
//! | is inside of adopted ones | are adopted already, and are shared                              |
//! | overlaps in another way   | stay where they are, as long as it does                          |
//!
//! Adopted pages become private again when the last range over any page of that adoption ends.

use crate::config::{Adopt, Config};
use crate::memory::HeapPlace;
use crate::memory::adopted::{self, Adopted, NotAdopted, When};
use crate::sync::{AtomicBool, Ordering};
use crate::sys::{page_bytes, process};
use parking_lot::{Mutex, MutexGuard};
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

    /// Whether a range beside the one with this key overlaps these pages.
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

    /// Ends a range, and returns the adoptions that no range is over any more.
    fn remove(&mut self, key: (u64, u64)) -> Vec<(Pages, Adopted)> {
        self.ranges.remove(&key);
        let adopted = std::mem::take(&mut self.adopted);
        let (kept, unheld) = adopted.into_iter().partition(|(pages, _)| self.is_over(*pages));
        self.adopted = kept;
        unheld
    }

    /// Adopts the pages of a range. `key`: that of a range that has begun already, whose window
    /// keeps its ranks away; `None`: no process knows the range.
    fn adopt(
        &mut self,
        (address, bytes): (u64, u64),
        key: Option<(u64, u64)>,
        consent: Adopt,
    ) -> Fate {
        let pages = pages_of(address, bytes);
        let shares = |(_, other): &(Pages, Adopted)| {
            let (first, bytes_there) = other.inner();
            first <= address && address + bytes <= first + bytes_there
        };
        if self.is_another_over(pages, key) && !self.adopted.iter().any(shares) {
            return Err(NotAdopted::OtherWindow);
        }
        let when = if key.is_some() { When::MidLife } else { When::Creation };
        let adopted = adopted::take(address, bytes, when, consent)?;
        let part = MappedPart { inner: adopted.inner(), place: adopted.place() };
        self.adopted.push((pages, adopted));
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

/// What became of the pages of a range.
pub type Fate = core::result::Result<MappedPart, NotAdopted>;

/// A range of this process's memory that a window exposes. It ends on drop: no other process
/// accesses it any more then by this window.
#[derive(Debug)]
pub struct OwnRange {
    key: (u64, u64),
    pid: i32,
    /// address and bytes
    memory: (u64, u64),
    consent: Adopt,
    /// what became of its pages when it began
    pub fate: Fate,
    /// whether its pages may still move
    may_move: AtomicBool,
    /// locked by the thread that makes an attempt to move them
    attempts: Mutex<Attempts>,
}

/// The attempts to move the pages of a range.
#[derive(Debug, Default)]
pub struct Attempts {
    /// how many have failed
    failed: u32,
    /// what copies have cost before the last one, in nanoseconds
    spent: u64,
    /// what copies were to cost since then until this one
    price: u64,
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
            consent => table.adopt((address, bytes), None, consent),
        };
        let key = table.add(pages_of(address, bytes));
        let may_move = AtomicBool::new(matches!(fate, Err(why) if why.may_pass()));
        let (memory, attempts) = ((address, bytes), Mutex::default());
        Some(OwnRange { key, pid, memory, consent, fate, may_move, attempts })
    }

    /// Returns what copies have to cost in nanoseconds before the first attempt to move its pages
    /// later; `None`: they do not move.
    pub fn first_price(&self) -> Option<u64> {
        let price = adopted::least_price().filter(|_| self.may_move());
        match price {
            Some(price) => self.attempts.lock().price = price,
            None => self.stays(),
        }
        price
    }

    /// Whether its pages may move while its window is in use. A child of fork(2) moves none.
    #[inline]
    pub fn may_move(&self) -> bool {
        // Relaxed: only this process asks.
        self.may_move.load(Ordering::Relaxed)
    }

    /// Notes that its pages do not move any more.
    pub fn stays(&self) {
        self.may_move.store(false, Ordering::Relaxed); // as in `may_move`
    }

    /// Notes that its window is being freed. `contacts`: how many ranks have mapped its memory.
    /// `left`: what copies could still cost before the next attempt to move it.
    pub fn note_freed(&self, contacts: u64, left: u64) {
        let attempts = self.attempts.lock();
        let was_copied = left != attempts.price || attempts.spent > 0;
        let is_used = match self.fate {
            Ok(_) => Some(contacts > 0),
            Err(why) if !why.may_pass() => return,
            // No copy was counted: the window has ranks on several nodes.
            Err(_) if attempts.price == 0 => None,
            Err(_) => Some(contacts > 0 || was_copied),
        };
        adopted::note_freed(self.memory, is_used, self.fate.is_ok());
    }

    /// Begins an attempt to move its pages, unless another thread does so.
    pub fn attempt(&self) -> Option<MutexGuard<'_, Attempts>> {
        if self.pid != process::id() {
            self.stays();
            return None;
        }
        self.attempts.try_lock()
    }

    /// Moves its pages, if copies have cost as much as that costs. No other process copies to them
    /// by its window, until this returns.
    ///
    /// # Errors
    /// The reason why they did not move, if there is one, and what copies have to cost before
    /// another attempt; `None`: no attempt is worth it.
    pub fn move_now(
        &self,
        attempts: &mut Attempts,
    ) -> core::result::Result<MappedPart, (Option<NotAdopted>, Option<u64>)> {
        attempts.spent = attempts.spent.saturating_add(attempts.price);
        let price = adopted::price(self.memory.0, self.memory.1).ok_or((None, None))?;
        let later = |attempts: &mut Attempts, price: u64| {
            attempts.price = price.min(i64::MAX.cast_unsigned());
            Some(attempts.price)
        };
        if attempts.spent < price {
            let missing = price - attempts.spent;
            return Err((None, later(attempts, missing)));
        }
        let fate = TABLE.lock().adopt(self.memory, Some(self.key), self.consent);
        fate.map_err(|why| {
            attempts.failed += 1;
            let next = price.saturating_mul(1 << attempts.failed.min(20));
            (Some(why), why.may_pass().then(|| later(attempts, next)).flatten())
        })
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
        match table.adopt((address, bytes), None, Adopt::Always) {
            Ok(part) => assert_eq!(part.inner, (address, bytes)),
            Err(why) => return assert!(adopted::price(address, bytes).is_none(), "{why}"),
        }
        let first = table.add(pages_of(address, bytes));
        let again =
            table.adopt((address + 8, page_bytes()), None, Adopt::Always).map(|part| part.inner);
        assert_eq!(again.ok(), Some((address + 8, page_bytes())), "it is inside");
        let inside = table.add(pages_of(address + 8, page_bytes()));
        let across = (address + page_bytes(), bytes);
        let refused = table.adopt(across, None, Adopt::Always).map(|part| part.inner);
        assert_eq!(refused, Err(NotAdopted::OtherWindow));
        let over = table.add(pages_of(address + page_bytes(), bytes));
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
