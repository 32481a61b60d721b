//! Where the heaps of other ranks are mapped in this process, for one window over memory that its
//! ranks had already: found at the first access to a rank, then looked up without a lock. The table
//! has an entry for each rank that was a target, none for the others.

use crate::error::Result;
use crate::memory::{Place, maps};
use crate::sync::{AtomicPtr, Ordering};
use crate::sys::segment::Mapping;
use core::ptr;
use parking_lot::Mutex;
use std::collections::BTreeMap;
use std::collections::btree_map::Entry;
use std::sync::Arc;

/// Targets that are found without a lock, if they do not share a place.
const RECENT: usize = 8;

/// A target's memory.
struct Base {
    rank: u32,
    /// where its part of the window begins here
    base: *mut u8,
    /// keeps it mapped
    _map: Arc<Mapping>,
}

// SAFETY: an address and what keeps it valid; what is done with the bytes is the caller's business.
unsafe impl Send for Base {}

/// The targets of a window.
#[derive(Default)]
pub struct Bases {
    /// the target that was last looked up of those with the same number modulo [`RECENT`]; points
    /// into `known`
    recent: [AtomicPtr<Base>; RECENT],
    /// never shrinks, and its boxes stay where they are
    known: Mutex<BTreeMap<u32, Box<Base>>>,
}

impl Bases {
    /// Where the memory of `rank`, which others find at `place`, begins in this process.
    #[inline]
    pub fn find(&self, rank: u32, place: &Place) -> Result<*mut u8> {
        // Acquire: pairs with the Release in `look_up`.
        let recent = self.recent[rank as usize % RECENT].load(Ordering::Acquire);
        if !recent.is_null() {
            // SAFETY: an entry of `known`, which lives as long as `self` and does not change.
            let recent = unsafe { &*recent };
            if recent.rank == rank {
                return Ok(recent.base);
            }
        }
        self.look_up(rank, place)
    }

    #[cold]
    fn look_up(&self, rank: u32, place: &Place) -> Result<*mut u8> {
        let mut known = self.known.lock();
        let found: &Base = match known.entry(rank) {
            Entry::Occupied(entry) => entry.into_mut(),
            Entry::Vacant(entry) => {
                let map = maps::map(&place.name)?;
                let base = map.base().wrapping_add(place.offset as usize);
                entry.insert(Box::new(Base { rank, base, _map: map }))
            }
        };
        // Release: pairs with the Acquire in `find`.
        let recent = &self.recent[rank as usize % RECENT];
        recent.store(ptr::from_ref(found).cast_mut(), Ordering::Release);
        Ok(found.base)
    }
}
