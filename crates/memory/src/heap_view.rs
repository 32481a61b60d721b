//! Ranges of the heaps of a node, as one process reaches them: in its own heap, or in that of
//! another process, mapped here. Not for finding a range, nor for its content.

#[cfg(any(test, fuzzing))]
mod heap_view_fuzz;
#[cfg(any(test, fuzzing))]
pub use heap_view_fuzz::heap_places;

use super::heap::{HeapPlace, HeapRange};
use super::maps;
use crate::error::Result;
use crate::number::Number;
use crate::sys::segment::Mapping;
use std::sync::Arc;

/// A range of a heap, which stays valid until this is dropped.
pub struct HeapView {
    base: *mut u8,
    /// the range, if this process has allocated it
    own: Option<HeapRange>,
    /// otherwise where it is mapped
    _map: Option<Arc<Mapping>>,
}

// SAFETY: an address and what keeps it valid; what is done with the bytes is the caller's business.
unsafe impl Send for HeapView {}
// SAFETY: as for Send.
unsafe impl Sync for HeapView {}

impl HeapView {
    /// A range of `bytes` bytes that another process has allocated and keeps.
    pub fn of(place: &HeapPlace, bytes: u64) -> Result<HeapView> {
        let map = maps::map(place.segment_of(bytes)?)?;
        let base = map.base().wrapping_add(place.offset.to_usize());
        Ok(HeapView { base, own: None, _map: Some(map) })
    }

    /// Whether any of its pages has memory or swap space behind it; `None` if that is not known, as
    /// for a range of another process.
    pub fn has_data(&self) -> Option<bool> {
        self.own.as_ref()?.has_data()
    }

    /// Returns its address in this process.
    #[inline]
    pub fn base(&self) -> *mut u8 {
        self.base
    }
}

impl From<HeapRange> for HeapView {
    /// A range that this process has allocated.
    fn from(lease: HeapRange) -> HeapView {
        HeapView { base: lease.base(), own: Some(lease), _map: None }
    }
}
