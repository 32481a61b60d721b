//! Map from the ranks of a window to what a process knows of them. A value is computed at the first
//! access to its rank, and usually found without a lock afterwards. Ranks that the process has not
//! accessed use no memory.

use crate::error::Result;
use crate::number::Number;
use crate::rank_numbers::ProcessNumber;
use crate::sync::{AtomicPtr, Ordering};
use core::ptr;
use parking_lot::Mutex;
use std::collections::BTreeMap;
use std::sync::Arc;

/// Places for ranks that are found without a lock. A rank's place is its number modulo this.
const RECENT: usize = 8;

struct Entry<K, T> {
    key: K,
    value: T,
}

/// A `T` for each rank that this process has accessed.
pub struct Known<K, T> {
    /// for each place, the entry of its rank that was looked up last; a pointer into `all`
    recent: [AtomicPtr<Entry<K, T>>; RECENT],
    /// never shrinks, and its entries never move. No boxes: a map that grows moves them, and a box
    /// that is moved is the only way to what it holds, also for the compiler
    all: Mutex<BTreeMap<K, Arc<Entry<K, T>>>>,
}

impl<K, T> Default for Known<K, T> {
    fn default() -> Known<K, T> {
        Known { recent: Default::default(), all: Mutex::default() }
    }
}

impl<K: ProcessNumber, T> Known<K, T> {
    /// Returns the value for a rank, if there is one.
    #[inline]
    pub fn find(&self, rank: K) -> Option<&T> {
        self.recent(rank).or_else(|| self.look_up(rank))
    }

    /// Returns the value for a rank, any number as a rank, if it is found without a lock.
    #[inline(always)]
    pub fn recent(&self, rank: K) -> Option<&T> {
        // Acquire: pairs with the Release in `remember`.
        let recent = self.recent[rank.number().to_usize() % RECENT].load(Ordering::Acquire);
        // SAFETY: null, or an entry of `all`, which lives as long as `self` and does not change.
        let recent = unsafe { recent.as_ref() }?;
        (recent.key.number() == rank.number()).then_some(&recent.value)
    }

    /// Returns all ranks that have a value, and their values.
    pub fn all(&self) -> Vec<(K, &T)> {
        let all = self.all.lock();
        let known = |entry: &Entry<K, T>| {
            // SAFETY: as in `look_up`.
            let entry = unsafe { &*ptr::from_ref(entry) };
            (entry.key, &entry.value)
        };
        all.values().map(|entry| known(entry)).collect()
    }

    #[cold]
    fn look_up(&self, rank: K) -> Option<&T> {
        let all = self.all.lock();
        let found = ptr::from_ref(&**all.get(&rank)?);
        // SAFETY: the entries of `all` live as long as `self` and do not move.
        Some(self.remember(unsafe { &*found }))
    }

    /// Returns the value for a rank, which `compute` returns the first time. No lock is held
    /// meanwhile. If two threads compute the value at the same time, the first one to store it
    /// counts.
    #[inline]
    pub fn get(&self, rank: K, compute: impl FnOnce() -> Result<T>) -> Result<&T> {
        match self.find(rank) {
            Some(value) => Ok(value),
            None => Ok(self.insert(rank, compute()?)),
        }
    }

    /// Returns the value for a rank, the default one the first time.
    #[inline]
    pub fn get_or_default(&self, rank: K) -> &T
    where
        T: Default,
    {
        self.find(rank).unwrap_or_else(|| self.insert(rank, T::default()))
    }

    #[cold]
    fn insert(&self, rank: K, value: T) -> &T {
        let mut all = self.all.lock();
        let found = all.entry(rank).or_insert_with(|| Arc::new(Entry { key: rank, value }));
        let found = ptr::from_ref(&**found);
        // SAFETY: as in `look_up`.
        self.remember(unsafe { &*found })
    }

    fn remember<'a>(&'a self, entry: &'a Entry<K, T>) -> &'a T {
        // Release: pairs with the Acquire in `find`.
        let recent = &self.recent[entry.key.number().to_usize() % RECENT];
        recent.store(ptr::from_ref(entry).cast_mut(), Ordering::Release);
        &entry.value
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;
    use crate::error::Error;
    use crate::rank_numbers::Rank;

    #[test]
    fn each_value_is_computed_once_and_does_not_move() {
        let known = Known::default();
        let ranks = || (0..4 * RECENT as u32).chain([u32::MAX]).map(Rank);
        let places: Vec<_> =
            ranks().map(|rank| ptr::from_ref(known.get(rank, || Ok(rank)).unwrap())).collect();
        for (rank, place) in ranks().zip(places) {
            let found = known.get(rank, || unreachable!("it is known")).unwrap();
            assert_eq!((*found, ptr::from_ref(found)), (rank, place));
            assert_eq!(known.find(rank), Some(found));
            assert_eq!(known.recent(rank), Some(found));
            // A rank of the same place.
            assert_eq!(known.recent(Rank(rank.0 ^ RECENT as u32)), None);
        }
        assert_eq!(known.find(Rank(4 * RECENT as u32)), None);
    }

    #[test]
    fn a_value_whose_computation_failed_is_computed_again() {
        let known = Known::default();
        assert_eq!(known.get(Rank(3), || Err(Error::NoMemory { bytes: 1 })).ok(), None);
        assert_eq!(known.get(Rank(3), || Ok(5)), Ok(&5));
    }

    #[test]
    fn threads_that_compute_at_the_same_time_get_the_same_value() {
        let known = Known::default();
        let start = std::sync::Barrier::new(4);
        let places: Vec<_> = std::thread::scope(|scope| {
            let compute = |thread: u32| {
                let (known, start) = (&known, &start);
                move || {
                    let slow = || {
                        start.wait();
                        Ok(thread)
                    };
                    ptr::from_ref(known.get(Rank(7), slow).unwrap()).addr()
                }
            };
            let threads: Vec<_> = (0..4).map(|thread| scope.spawn(compute(thread))).collect();
            threads.into_iter().map(|thread| thread.join().unwrap()).collect()
        });
        assert!(places.iter().all(|place| *place == places[0]));
    }
}
