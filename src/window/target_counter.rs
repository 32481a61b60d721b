//! Counters of targets, as notified operations reach them.

use crate::epoch::notification::DOORBELL;
use crate::fabric::net::Peer;
use crate::fabric::remote::Remote;
use crate::fabric::shm::doorbell;
use crate::number::Number;
use crate::sync::{AtomicU32, AtomicU64};
use crate::sys::futex;

/// A word of a table that is mapped here.
///
/// # Safety
/// The table has the word, and lives longer than the result.
pub(super) unsafe fn word<'a>(table: *mut u8, offset: u64) -> &'a AtomicU64 {
    // SAFETY: guaranteed by the caller; tables begin at a multiple of 8.
    unsafe { AtomicU64::from_ptr(table.wrapping_add(offset.to_usize()).cast()) }
}

/// A counter of a target.
pub enum TargetCounter<'a> {
    /// of a rank of this node
    Mapped {
        /// the word
        word: &'a AtomicU64,
        /// the doorbell of the rank
        bell: &'a AtomicU32,
    },
    /// of a rank of another node
    Elsewhere {
        /// the process that serves the rank
        peer: &'a Peer,
        /// the word
        word: Remote,
        /// the doorbell of the rank
        bell: Remote,
    },
}

impl TargetCounter<'_> {
    /// # Safety
    /// The table at `at` has the word, and lives longer than the result.
    #[inline(always)]
    pub(super) unsafe fn mapped<'a>(at: *mut u8, offset: u64) -> TargetCounter<'a> {
        // SAFETY: guaranteed by the caller; each table begins with its doorbell.
        let (word, bell) = unsafe { (word(at, offset), doorbell::in_word(word(at, DOORBELL))) };
        TargetCounter::Mapped { word, bell }
    }
}

impl TargetCounter<'_> {
    /// Adds 1 to a counter of a rank of this node, behind the stores and loads of this thread.
    #[inline(always)]
    pub fn notify_mapped(self) {
        if let TargetCounter::Mapped { word, bell } = self {
            doorbell::add_and_ring(word, 1, bell, futex::wake);
        }
    }
}
