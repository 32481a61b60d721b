//! Keys of a map from ranks to notes that several processes write without a lock. A note is written
//! once, and no process waits for another one, which may be dead.
//!
//! | key of an entry | meaning                                                    |
//! |-----------------|------------------------------------------------------------|
//! | 0               | the entry is free                                          |
//! | 2 r + 2         | a process writes the note about rank r                     |
//! | 2 r + 3         | the note about rank r is complete, and will not change     |

use crate::rank_numbers::Rank;
use crate::sync::{AtomicU64, Ordering};

/// Returns the key of an entry while it is written. The key of a complete entry is one more.
pub fn key_of(rank: Rank) -> u64 {
    2 * u64::from(rank.0) + 2
}

/// The state of an entry in a search for the note about a rank.
#[derive(PartialEq, Eq, Debug)]
pub enum NoteKey {
    /// no process has claimed the entry
    Free,
    /// a process writes the note about the rank
    Writing,
    /// the entry is the note about the rank
    There,
    /// the entry is for another rank
    Other,
}

/// Reads the key of an entry in a search for a rank. The note of [`NoteKey::There`] may be read.
pub fn find(key: &AtomicU64, rank: Rank) -> NoteKey {
    // Acquire: pairs with the Release in `publish`.
    match key.load(Ordering::Acquire) {
        0 => NoteKey::Free,
        key if key == key_of(rank) => NoteKey::Writing,
        key if key == key_of(rank) + 1 => NoteKey::There,
        _ => NoteKey::Other,
    }
}

/// Claims an entry for a rank, writes it and marks it complete. Returns false if another process
/// has claimed it.
pub fn publish(key: &AtomicU64, rank: Rank, write: impl FnOnce()) -> bool {
    let writing = key_of(rank);
    // Relaxed: an entry that is only claimed has no contents to order yet.
    if key.compare_exchange(0, writing, Ordering::Relaxed, Ordering::Relaxed).is_err() {
        return false;
    }
    write();
    // Release: pairs with the Acquire in `find`.
    key.store(writing + 1, Ordering::Release);
    true
}

#[cfg(test)]
mod tests {
    use super::*;
    use fompi_testkit::model;
    #[cfg(loom)]
    use loom::{sync::Arc, thread};
    #[cfg(not(loom))]
    use std::{sync::Arc, thread};

    #[test]
    fn loom_a_note_is_there_before_its_key() {
        model(3, || {
            let entry = Arc::new((AtomicU64::new(0), AtomicU64::new(0)));
            let writers: Vec<_> = (0..2)
                .map(|_| {
                    let entry = entry.clone();
                    // Relaxed: only the key orders it.
                    let write = move || publish(&entry.0, Rank(5), || add(&entry.1));
                    thread::spawn(write)
                })
                .collect();
            if find(&entry.0, Rank(5)) == NoteKey::There {
                assert_eq!(entry.1.load(Ordering::Relaxed), 1);
            }
            let wrote: Vec<_> = writers.into_iter().map(|one| one.join().unwrap()).collect();
            assert!(wrote[0] != wrote[1], "one of them");
            assert_eq!(entry.1.load(Ordering::Relaxed), 1);
        });
    }

    fn add(cell: &AtomicU64) {
        cell.store(cell.load(Ordering::Relaxed) + 1, Ordering::Relaxed);
    }
}
