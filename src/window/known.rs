//! What a process knows of the ranks of a window that it has had to do with: found out at the first
//! access to a rank, then looked up without a lock. Nothing is kept of the others.

use crate::error::Result;
use crate::sync::{AtomicPtr, Ordering};
use core::ptr;
use parking_lot::Mutex;
use std::collections::BTreeMap;

/// Ranks that are found without a lock, if they do not share a place.
const RECENT: usize = 8;

struct Entry<T> {
    rank: u32,
    what: T,
}

/// A `T` for each rank that there was something to do with.
pub struct Known<T> {
    /// the rank that was last looked up of those with the same number modulo [`RECENT`]; points
    /// into `all`
    recent: [AtomicPtr<Entry<T>>; RECENT],
    /// never shrinks, and its boxes stay where they are
    all: Mutex<BTreeMap<u32, Box<Entry<T>>>>,
}

impl<T> Default for Known<T> {
    fn default() -> Known<T> {
        Known { recent: Default::default(), all: Mutex::default() }
    }
}

impl<T> Known<T> {
    /// What is known of a rank.
    #[inline]
    pub fn find(&self, rank: u32) -> Option<&T> {
        // Acquire: pairs with the Release in `remember`.
        let recent = self.recent[rank as usize % RECENT].load(Ordering::Acquire);
        // SAFETY: an entry of `all`, which lives as long as `self` and does not change.
        match unsafe { recent.as_ref() } {
            Some(recent) if recent.rank == rank => Some(&recent.what),
            _ => self.look_up(rank),
        }
    }

    #[cold]
    fn look_up(&self, rank: u32) -> Option<&T> {
        let all = self.all.lock();
        let found = ptr::from_ref(&**all.get(&rank)?);
        // SAFETY: boxes of `all` stay where they are as long as `self`.
        Some(self.remember(unsafe { &*found }))
    }

    /// What is known of a rank; `find_out` says it the first time. Nothing is locked meanwhile, and
    /// of two threads that find out at once the first one counts.
    #[inline]
    pub fn get(&self, rank: u32, find_out: impl FnOnce() -> Result<T>) -> Result<&T> {
        match self.find(rank) {
            Some(what) => Ok(what),
            None => Ok(self.insert(rank, find_out()?)),
        }
    }

    #[cold]
    fn insert(&self, rank: u32, what: T) -> &T {
        let mut all = self.all.lock();
        let found = all.entry(rank).or_insert_with(|| Box::new(Entry { rank, what }));
        let found = ptr::from_ref(&**found);
        // SAFETY: as in `look_up`.
        self.remember(unsafe { &*found })
    }

    fn remember<'a>(&'a self, entry: &'a Entry<T>) -> &'a T {
        // Release: pairs with the Acquire in `find`.
        let recent = &self.recent[entry.rank as usize % RECENT];
        recent.store(ptr::from_ref(entry).cast_mut(), Ordering::Release);
        &entry.what
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;
    use crate::error::Error;

    #[test]
    fn each_rank_is_found_out_once_and_stays_where_it_is() {
        let known = Known::default();
        let ranks = || (0..4 * RECENT as u32).chain([u32::MAX]);
        let places: Vec<_> =
            ranks().map(|rank| ptr::from_ref(known.get(rank, || Ok(rank)).unwrap())).collect();
        for (rank, place) in ranks().zip(places) {
            let found = known.get(rank, || unreachable!("it is known")).unwrap();
            assert_eq!((*found, ptr::from_ref(found)), (rank, place));
            assert_eq!(known.find(rank), Some(found));
        }
        assert_eq!(known.find(4 * RECENT as u32), None);
    }

    #[test]
    fn a_rank_that_could_not_be_found_out_is_asked_again() {
        let known = Known::default();
        assert_eq!(known.get(3, || Err(Error::NoMemory { bytes: 1 })).ok(), None);
        assert_eq!(known.get(3, || Ok(5)), Ok(&5));
    }

    #[test]
    fn threads_that_find_out_at_once_have_the_same() {
        let known = Known::default();
        let start = std::sync::Barrier::new(4);
        let places: Vec<_> = std::thread::scope(|scope| {
            let find_out = |thread: u32| {
                let (known, start) = (&known, &start);
                move || {
                    let slow = || {
                        start.wait();
                        Ok(thread)
                    };
                    ptr::from_ref(known.get(7, slow).unwrap()).addr()
                }
            };
            let threads: Vec<_> = (0..4).map(|thread| scope.spawn(find_out(thread))).collect();
            threads.into_iter().map(|thread| thread.join().unwrap()).collect()
        });
        assert!(places.iter().all(|place| *place == places[0]));
    }
}
