//! The memory that this process exposes, by key. The service thread holds the table for reading
//! while it carries requests out, so memory is not given back under it. Invariant: a key names one
//! exposure; the generation in the key tells an exposure from earlier ones that had its entry. A
//! key of a memory handle is never given again: its entry is for handles alone, and is used no more
//! once it has had all generations. So a request with the key of a handle that was withdrawn is
//! refused and the connection goes on, while a wrong key of other memory ends it.
//!
//! | bits of a key | meaning                       |
//! |---------------|-------------------------------|
//! | 0 to 19       | index of the entry            |
//! | 20 to 31      | generation of the entry       |

use core::cell::Cell;

use parking_lot::{RwLock, RwLockReadGuard};

use super::frames::AnswerStatus;
use super::page_probes::{self, PageAccess};
use crate::error::{Error, Result};
use crate::number::Number;
use crate::request::MemoryOf;
use crate::request_rows::RowBlocks;
use crate::sys::page_bytes;

const INDEX_BITS: u32 = 20;
const ENTRIES_MAX: usize = 1 << INDEX_BITS;
const GENERATION_MASK: u32 = u32::MAX >> INDEX_BITS;

/// Memory under a key, or nothing.
#[derive(Clone, Copy)]
struct Exposure {
    generation: u32,
    /// its first byte and its length in bytes, which is 0 if the entry is free
    at: u64,
    bytes: u64,
    owner: MemoryOf,
}

/// The entries.
#[derive(Default)]
pub struct ExposureTable {
    entries: Vec<Exposure>,
    free: Vec<u32>,
    /// free entries that have been a handle's
    free_of_handles: Vec<u32>,
    /// entries of handles that have had all generations
    used_up: usize,
    /// bytes exposed
    bytes: u64,
}

/// The exposed memory of this process.
#[derive(Default)]
pub struct Exposures(RwLock<ExposureTable>);

impl Exposures {
    /// Exposes memory of at least one byte, and returns its key.
    pub fn add(&self, at: u64, bytes: u64, owner: MemoryOf) -> Result<u32> {
        let mut table = self.0.write();
        let free = match owner {
            MemoryOf::Handle => &mut table.free_of_handles,
            MemoryOf::Library | MemoryOf::Program => &mut table.free,
        };
        let index = match free.pop() {
            Some(index) => index.to_usize(),
            None if table.entries.len() == ENTRIES_MAX => {
                return Err(Error::System { call: "expose", errno: libc::ENOSPC });
            }
            None => {
                table.entries.push(Exposure { generation: 0, at: 0, bytes: 0, owner });
                table.entries.len() - 1
            }
        };
        table.bytes += bytes;
        let entry = &mut table.entries[index];
        entry.generation = (entry.generation + 1) & GENERATION_MASK;
        (entry.at, entry.bytes, entry.owner) = (at, bytes, owner);
        Ok(entry.generation << INDEX_BITS | index.to_u32())
    }

    /// Ends an exposure. Afterwards no request touches the memory.
    pub fn remove(&self, key: u32) {
        let mut table = self.0.write();
        let index = index(key);
        let entry = &mut table.entries[index];
        let (owner, generation) = (entry.owner, entry.generation);
        table.bytes -= core::mem::take(&mut table.entries[index].bytes);
        match owner {
            MemoryOf::Handle if generation == GENERATION_MASK => table.used_up += 1,
            MemoryOf::Handle => table.free_of_handles.push(index.to_u32()),
            MemoryOf::Library | MemoryOf::Program => table.free.push(index.to_u32()),
        }
    }

    /// Locks the table for reading: exposures last as long as the guard.
    pub fn read(&self) -> ExposedMemory<'_> {
        let pages =
            [(PageAccess::Load, Cell::new(u64::MAX)), (PageAccess::Store, Cell::new(u64::MAX))];
        ExposedMemory { table: self.0.read(), pages }
    }

    /// Number of exposures, and their bytes.
    pub fn counts(&self) -> (u64, u64) {
        let table = self.0.read();
        let unused = table.free.len() + table.free_of_handles.len() + table.used_up;
        ((table.entries.len() - unused).to_u64(), table.bytes)
    }
}

fn index(key: u32) -> usize {
    (key.to_usize()) & (ENTRIES_MAX - 1)
}

/// The exposed memory while the table is locked. It is kept for a short time only: the program may
/// unmap or protect its memory, so a page of it is probed again in each turn.
pub struct ExposedMemory<'a> {
    table: RwLockReadGuard<'a, ExposureTable>,
    /// the last page in which each access was permitted
    pages: [(PageAccess, Cell<u64>); 2],
}

impl ExposedMemory<'_> {
    /// Fails unless all of the `bytes` bytes at `at` are exposed under `key`, and permit the
    /// access. Zero bytes need no key.
    #[inline]
    pub fn check(
        &self,
        key: u32,
        at: u64,
        bytes: u64,
        access: PageAccess,
    ) -> core::result::Result<(), AnswerStatus> {
        if bytes == 0 {
            return Ok(());
        }
        let entries = &self.table.entries;
        let entry = entries.get(index(key)).filter(|e| e.generation == key >> INDEX_BITS);
        let inside = entry.and_then(|entry| Some((at.checked_sub(entry.at)?, entry)));
        match inside {
            Some((first, entry)) if first <= entry.bytes && bytes <= entry.bytes - first => {
                match entry.owner == MemoryOf::Library || self.permits(at, bytes, access) {
                    true => Ok(()),
                    false => Err(AnswerStatus::NoPermission),
                }
            }
            _ => Err(self.refusal(key)),
        }
    }

    /// Why memory is not exposed under a key.
    #[cold]
    fn refusal(&self, key: u32) -> AnswerStatus {
        let is_its = |entry: &Exposure| entry.generation == key >> INDEX_BITS && entry.bytes > 0;
        match self.table.entries.get(index(key)) {
            Some(entry) if entry.owner == MemoryOf::Handle && !is_its(entry) => {
                AnswerStatus::NoPermission
            }
            _ => AnswerStatus::NotExposed,
        }
    }

    /// [`ExposedMemory::check`] of all blocks. The memory under a key is contiguous, so blocks are
    /// inside of it if the first and the last one are.
    pub fn check_blocks(
        &self,
        key: u32,
        blocks: &RowBlocks<'_>,
        access: PageAccess,
    ) -> core::result::Result<(), AnswerStatus> {
        let (first, bytes) = blocks.span().ok_or(AnswerStatus::NotExposed)?;
        match *blocks {
            // A short distance leaves out no page.
            RowBlocks::Row(row) if row.stride.unsigned_abs() <= page_bytes() => {
                self.check(key, first, bytes, access)
            }
            _ => {
                self.check(key, first, bytes, PageAccess::BySystem)?;
                let is_of_library = !self.is_of_program(key);
                let each = |n| self.check(key, blocks.place(n), blocks.bytes(), access);
                if is_of_library { Ok(()) } else { (0..blocks.count()).try_for_each(each) }
            }
        }
    }

    /// Whether the memory under a key is the program's, which may take pages away.
    pub fn is_of_program(&self, key: u32) -> bool {
        let entry = self.table.entries.get(index(key));
        entry.is_some_and(|entry| entry.owner != MemoryOf::Library)
    }

    /// Whether all pages of the bytes permit an access.
    #[inline(never)]
    fn permits(&self, at: u64, bytes: u64, access: PageAccess) -> bool {
        let last = self.pages.iter().find(|(known, _)| *known == access);
        last.is_none_or(|(_, last)| {
            page_probes::pages(at, bytes).all(|address| {
                let page = address / page_bytes();
                last.get() == page
                    || page_probes::is_permitted(address, access) && {
                        last.set(page);
                        true
                    }
            })
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_opens_its_memory_and_no_other() {
        let exposures = Exposures::default();
        let add = |at, bytes| exposures.add(at, bytes, MemoryOf::Library).unwrap();
        let (one, other) = (add(100, 50), add(200, 8));
        let check = |key, at, bytes| exposures.read().check(key, at, bytes, PageAccess::Store);
        assert_eq!(check(one, 100, 50), Ok(()));
        assert_eq!(check(one, 149, 1), Ok(()));
        let refused = [(one, 99, 1), (one, 149, 2), (one, 150, 1), (one, 200, 8), (other, 100, 1)];
        for (key, at, bytes) in refused {
            assert_eq!(check(key, at, bytes), Err(AnswerStatus::NotExposed), "{at} {bytes}");
        }
        assert_eq!(check(one, 101, u64::MAX), Err(AnswerStatus::NotExposed));
        assert_eq!(check(one ^ 0x5500, 100, 1), Err(AnswerStatus::NotExposed));
        assert_eq!(check(7, 1, 0), Ok(()), "no bytes");
        assert_eq!(exposures.counts(), (2, 58));
    }

    #[test]
    fn the_key_of_memory_that_was_concealed_opens_nothing() {
        let exposures = Exposures::default();
        let check = |key| exposures.read().check(key, 100, 1, PageAccess::Store);
        let key = exposures.add(100, 50, MemoryOf::Library).unwrap();
        exposures.remove(key);
        assert_eq!(check(key), Err(AnswerStatus::NotExposed));
        let next = exposures.add(100, 50, MemoryOf::Library).unwrap();
        assert_ne!(key, next);
        assert_eq!(check(key), Err(AnswerStatus::NotExposed));
        assert_eq!(check(next), Ok(()));
        assert_eq!(exposures.counts(), (1, 50));
    }

    #[test]
    fn memory_of_the_program_is_probed_and_that_of_the_library_is_not() {
        let exposures = Exposures::default();
        let check = |key, access| exposures.read().check(key, 100, 8, access);
        let of_program = exposures.add(100, 50, MemoryOf::Program).unwrap();
        let of_library = exposures.add(100, 50, MemoryOf::Library).unwrap();
        for access in [PageAccess::Load, PageAccess::Store] {
            assert_eq!(check(of_program, access), Err(AnswerStatus::NoPermission));
            assert_eq!(check(of_library, access), Ok(()));
        }
        assert_eq!(check(of_program, PageAccess::BySystem), Ok(()));
    }

    #[test]
    fn a_page_is_probed_once_while_the_table_is_locked() {
        let words = [0u64; 3 * 512];
        let at = words.as_ptr().expose_provenance().to_u64().next_multiple_of(page_bytes());
        let exposures = Exposures::default();
        let key = exposures.add(at, 2 * page_bytes(), MemoryOf::Program).unwrap();
        let memory = exposures.read();
        assert_eq!(memory.check(key, at + 8, 8, PageAccess::Store), Ok(()));
        assert_eq!(
            memory.pages.each_ref().map(|(_, page)| page.get()),
            [u64::MAX, at / page_bytes()]
        );
        assert_eq!(memory.check(key, at + page_bytes() - 8, 16, PageAccess::Load), Ok(()));
        let pages = [at / page_bytes() + 1, at / page_bytes()];
        assert_eq!(memory.pages.each_ref().map(|(_, page)| page.get()), pages);
    }

    #[test]
    fn the_key_of_a_handle_is_refused_for_ever() {
        let exposures = Exposures::default();
        let words = [0u64; 8];
        let at = words.as_ptr().expose_provenance().to_u64();
        let check = |key| exposures.read().check(key, at, 8, PageAccess::Load);
        let first = exposures.add(at, 64, MemoryOf::Handle).unwrap();
        assert_eq!(check(first), Ok(()));
        exposures.remove(first);
        for _ in 1..2 * GENERATION_MASK {
            assert_eq!(check(first), Err(AnswerStatus::NoPermission));
            let other = exposures.add(at, 64, MemoryOf::Library).unwrap();
            let next = exposures.add(at, 64, MemoryOf::Handle).unwrap();
            assert_ne!(first, next);
            assert_eq!(check(next), Ok(()));
            exposures.remove(next);
            exposures.remove(other);
        }
        assert_eq!(exposures.counts(), (0, 0));
        assert_eq!(exposures.read().check(first, at, 0, PageAccess::Load), Ok(()), "no bytes");
    }
}
