//! Ranges of the heaps of a node, as one process reaches them: of its own heap, or of another
//! process's, mapped here. Not for finding out which range, nor for what is in it.

use super::heap::{Lease, Place};
use super::maps;
use crate::error::Result;
use crate::sys::segment::Mapping;
use std::sync::Arc;

/// A range of a heap. It is there until this is dropped.
pub struct View {
    base: *mut u8,
    _hold: Hold,
}

/// What keeps it there.
enum Hold {
    Own { _lease: Lease },
    OfAnother { _map: Arc<Mapping> },
}

// SAFETY: an address and what keeps it valid; what is done with the bytes is the caller's business.
unsafe impl Send for View {}
// SAFETY: likewise.
unsafe impl Sync for View {}

impl View {
    /// What another process has taken, which its owner keeps.
    pub fn of(place: &Place) -> Result<View> {
        let map = maps::map(&place.name)?;
        let base = map.base().wrapping_add(place.offset as usize);
        Ok(View { base, _hold: Hold::OfAnother { _map: map } })
    }

    /// Where it begins in this process.
    #[inline]
    pub fn base(&self) -> *mut u8 {
        self.base
    }
}

impl From<Lease> for View {
    /// What this process has taken.
    fn from(lease: Lease) -> View {
        View { base: lease.base(), _hold: Hold::Own { _lease: lease } }
    }
}
