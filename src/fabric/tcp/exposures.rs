//! The memory that this process exposes, by key. The service thread holds the table for reading
//! while it carries requests out, so memory is not given back under it. Invariant: a key names one
//! exposure; the generation in the key tells an exposure from earlier ones that had its entry.
//!
//! | bits of a key | meaning                       |
//! |---------------|-------------------------------|
//! | 0 to 19       | index of the entry            |
//! | 20 to 31      | generation of the entry       |

use parking_lot::{RwLock, RwLockReadGuard};

use super::frames::AnswerStatus;
use crate::error::{Error, Result};
use crate::number::Number;

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
}

/// The entries.
#[derive(Default)]
pub struct ExposureTable {
    entries: Vec<Exposure>,
    free: Vec<u32>,
    /// bytes exposed
    bytes: u64,
}

/// The exposed memory of this process.
#[derive(Default)]
pub struct Exposures(RwLock<ExposureTable>);

impl Exposures {
    /// Exposes memory of at least one byte, and returns its key.
    pub fn add(&self, at: u64, bytes: u64) -> Result<u32> {
        let mut table = self.0.write();
        let index = match table.free.pop() {
            Some(index) => index.to_usize(),
            None if table.entries.len() == ENTRIES_MAX => {
                return Err(Error::System { call: "expose", errno: libc::ENOSPC });
            }
            None => {
                table.entries.push(Exposure { generation: 0, at: 0, bytes: 0 });
                table.entries.len() - 1
            }
        };
        table.bytes += bytes;
        let entry = &mut table.entries[index];
        entry.generation = (entry.generation + 1) & GENERATION_MASK;
        (entry.at, entry.bytes) = (at, bytes);
        Ok(entry.generation << INDEX_BITS | index.to_u32())
    }

    /// Ends an exposure. Afterwards no request touches the memory.
    pub fn remove(&self, key: u32) {
        let mut table = self.0.write();
        let index = index(key);
        let bytes = core::mem::take(&mut table.entries[index].bytes);
        table.bytes -= bytes;
        table.free.push(index.to_u32());
    }

    /// Locks the table for reading: exposures last as long as the guard.
    pub fn read(&self) -> RwLockReadGuard<'_, ExposureTable> {
        self.0.read()
    }

    /// Number of exposures, and their bytes.
    pub fn counts(&self) -> (u64, u64) {
        let table = self.read();
        ((table.entries.len() - table.free.len()).to_u64(), table.bytes)
    }
}

fn index(key: u32) -> usize {
    (key.to_usize()) & (ENTRIES_MAX - 1)
}

impl ExposureTable {
    /// Fails unless all of the `bytes` bytes at `at` are exposed under `key`. Zero bytes need no
    /// key.
    pub fn check(&self, key: u32, at: u64, bytes: u64) -> core::result::Result<(), AnswerStatus> {
        if bytes == 0 {
            return Ok(());
        }
        let entry = self.entries.get(index(key)).filter(|e| e.generation == key >> INDEX_BITS);
        let inside = entry.and_then(|entry| Some((at.checked_sub(entry.at)?, entry.bytes)));
        match inside {
            Some((first, length)) if first <= length && bytes <= length - first => Ok(()),
            _ => Err(AnswerStatus::NotExposed),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_opens_its_memory_and_no_other() {
        let exposures = Exposures::default();
        let (one, other) = (exposures.add(100, 50).unwrap(), exposures.add(200, 8).unwrap());
        let check = |key, at, bytes| exposures.read().check(key, at, bytes);
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
        let key = exposures.add(100, 50).unwrap();
        exposures.remove(key);
        assert_eq!(exposures.read().check(key, 100, 1), Err(AnswerStatus::NotExposed));
        let next = exposures.add(100, 50).unwrap();
        assert_ne!(key, next);
        assert_eq!(exposures.read().check(key, 100, 1), Err(AnswerStatus::NotExposed));
        assert_eq!(exposures.read().check(next, 100, 1), Ok(()));
        assert_eq!(exposures.counts(), (1, 50));
    }
}
