//! Counters of notifications: each notified operation adds 1 to a counter of its target, behind its
//! data (issue 59 of the MPI Forum; docs/decisions/0032). The counters of a rank are a table in
//! memory of that rank, which only additions of 1 change:
//!
//! | words           | changed by                  | content                                  |
//! |-----------------|-----------------------------|------------------------------------------|
//! | [`DOORBELL`]    | every rank                  | where the threads of the rank sleep      |
//! | [`Table::near`] | processors of its node      | notifications by ranks of its node, ever |
//! | [`Table::far`]  | the transport between nodes | notifications by other ranks, ever       |
//!
//! Each counter is two words because the atomic operations of a device need not be atomic with
//! those of a processor (docs/decisions/0005). A counter never decreases: its owner keeps how much
//! of it resets have taken off ([`CounterOffsets`]). So a reset needs no atomic operation on the
//! table and loses no notification.

use crate::number::Number;
use crate::sync::{AtomicU64, Mutex, Ordering};

/// Byte of the table at which the word of the doorbell begins. It is on a cache line of its own.
pub const DOORBELL: u64 = 0;
/// The first word of the counters.
const FIRST: u64 = 8;
/// Bytes of a word.
const WORD: u64 = 8;

/// The layout of a table with this many counters.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Table(pub u32);

impl Table {
    /// Returns the layout of a table of `bytes` bytes.
    #[inline(always)]
    pub fn of_bytes(bytes: u64) -> Table {
        Table(((bytes / WORD).saturating_sub(FIRST) / 2).low_u32())
    }

    /// Bytes of the table.
    pub fn bytes(self) -> u64 {
        WORD * (FIRST + 2 * self.0.to_u64())
    }

    /// Byte of the table at which the word begins that ranks of the owner's node increment.
    #[inline(always)]
    pub fn near(self, index: u32) -> u64 {
        debug_assert!(index < self.0);
        WORD * (FIRST + index.to_u64())
    }

    /// Byte of the table at which the word begins that ranks of other nodes increment.
    #[inline(always)]
    pub fn far(self, index: u32) -> u64 {
        debug_assert!(index < self.0);
        WORD * (FIRST + self.0.to_u64() + index.to_u64())
    }
}

/// What resets have taken off the counters of this rank.
#[derive(Debug)]
pub struct CounterOffsets {
    offsets: Box<[AtomicU64]>,
    /// held by a thread that resets a counter
    resetting: Mutex<()>,
}

impl CounterOffsets {
    /// Starts with counters that are not reset.
    pub fn new(counters: u32) -> CounterOffsets {
        let offsets = (0..counters).map(|_| AtomicU64::new(0)).collect();
        CounterOffsets { offsets, resetting: Mutex::new(()) }
    }

    /// Returns the value of a counter. `sum`: reads its words. Acquire, if that does.
    #[inline]
    pub fn value(&self, index: u32, sum: impl FnOnce() -> u64) -> u64 {
        // Acquire: pairs with the Release in `set`. It comes first, so that the sum is not smaller.
        let offset = self.offsets[index.to_usize()].load(Ordering::Acquire);
        sum().wrapping_sub(offset)
    }

    /// Sets the value of a counter, and returns its value before: no notification is lost.
    pub fn set(&self, index: u32, value: u64, sum: impl FnOnce() -> u64) -> u64 {
        let _turn = self.resetting.lock();
        let sum = sum();
        // Release: pairs with the Acquire in `value`. The lock orders two resets.
        let offset = self.offsets[index.to_usize()].swap(sum.wrapping_sub(value), Ordering::AcqRel);
        sum.wrapping_sub(offset)
    }
}
