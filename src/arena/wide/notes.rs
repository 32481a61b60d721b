//! A write-once hash map from ranks to notes, which the ranks of a node share. What one rank has
//! read from a rank of another node, the other ranks of the node need neither read again nor copy.
//! The map has levels, each twice as long as the one before. The process that finds all levels full
//! adds one, from its heap: the map takes no memory before it needs it. Not for values that change:
//! a note is written once and lasts as long as the map. Invariant: no process waits for another
//! one, which may be dead. A process that finds an entry claimed by another process keeps a copy of
//! the value for itself.
//!
//! The keys of entries are those of [`note_keys`]; if an entry is free, no level behind has the
//! note.
//!
//! | state of a level | meaning                                                   |
//! |------------------|-----------------------------------------------------------|
//! | 0                | the level does not exist                                  |
//! | 1                | a process makes it, or has failed to                      |
//! | 2                | the level exists, at `place`                              |

#[cfg(any(test, fuzzing))]
mod notes_fuzz;
#[cfg(fuzzing)]
pub use notes_fuzz::wide_notes;

use crate::epoch::note_keys::{self, NoteKey};
use crate::error::Result;
use crate::memory::heap::{self, HeapRange};
use crate::memory::{HeapPlace, HeapView};
use crate::number::Number;
use crate::rank_numbers::Rank;
use crate::sync::{AtomicU64, Ordering};
use core::cell::UnsafeCell;
use core::marker::PhantomData;
use parking_lot::Mutex;

/// Levels: space for notes about a million ranks.
const LEVELS: usize = 16;
/// Entries of the first level.
const FIRST: u32 = 16;
/// Entries of a level at which the note about a rank may be.
const PROBES: u32 = 8;
/// Alignment of a level.
const ALIGNMENT: u64 = 64;

/// The root of the map, in zeroed memory of the node.
#[repr(C, align(64))]
pub struct Root([Level; LEVELS]);

#[repr(C, align(64))]
struct Level {
    state: AtomicU64,
    place: UnsafeCell<HeapPlace>,
}

#[repr(C)]
struct Entry<T> {
    key: AtomicU64,
    value: UnsafeCell<T>,
}

/// State of a level that exists.
const READY: u64 = 2;

/// The notes about ranks, as one process uses them.
pub struct Notes<T> {
    root: *const Root,
    /// the levels that this process has mapped
    levels: Mutex<Vec<HeapView>>,
    _of: PhantomData<T>,
}

// SAFETY: the shared memory is accessed by the protocol of the tables above.
unsafe impl<T: Send> Send for Notes<T> {}
// SAFETY: as for `Send`.
unsafe impl<T: Sync> Sync for Notes<T> {}

// SAFETY: as for `Notes`.
unsafe impl Sync for Root {}

/// The result of a search.
enum Found<'a, T> {
    Note(*const T),
    /// a free entry for the note
    Free(&'a Entry<T>),
    /// another process writes the note, or the map is full
    Busy,
    /// all entries for the note are in use, on this number of levels: the next level is missing
    Full(usize),
}

impl<T: Copy> Notes<T> {
    /// Returns the notes with this root, which all processes of the node share.
    ///
    /// # Safety
    /// The caller must keep `root` as long as the notes, must have zeroed it before any process
    /// uses it, and must use it for nothing else. Every bit pattern must be a valid `T`.
    pub unsafe fn at(root: *const Root) -> Notes<T> {
        Notes { root, levels: Mutex::default(), _of: PhantomData }
    }

    /// Returns the note about a rank, which is valid and constant as long as the notes.
    pub fn find(&self, rank: Rank) -> Option<*const T> {
        match self.search(&mut self.levels.lock(), rank) {
            Found::Note(note) => Some(note),
            _ => None,
        }
    }

    /// Writes a note about a rank, unless there is one, and returns the note. `None` if the map is
    /// full, or another process writes the note.
    pub fn note(&self, rank: Rank, value: T) -> Option<*const T> {
        let mut levels = self.levels.lock();
        loop {
            match self.search(&mut levels, rank) {
                Found::Note(note) => return Some(note),
                Found::Busy => return None,
                Found::Full(number) => self.add(&mut levels, number)?,
                Found::Free(entry) => {
                    let note = entry.value.get();
                    // SAFETY: only the process that has claimed the entry writes it, and no process
                    // reads it yet.
                    if note_keys::publish(&entry.key, rank, || unsafe { note.write(value) }) {
                        return Some(note.cast_const());
                    }
                }
            }
        }
    }

    fn search<'a>(&self, levels: &mut Vec<HeapView>, rank: Rank) -> Found<'a, T> {
        for number in 0..LEVELS {
            let Some(base) = self.open(levels, number) else { return Found::Full(number) };
            let length = FIRST << number;
            for probe in 0..PROBES {
                let index = (hash(rank) + probe) % length;
                let entry = base.cast::<Entry<T>>().wrapping_add(index.to_usize());
                // SAFETY: the entry is inside the level, which lives as long as the notes.
                let entry = unsafe { &*entry };
                match note_keys::find(&entry.key, rank) {
                    NoteKey::Free => return Found::Free(entry),
                    NoteKey::Writing => return Found::Busy,
                    NoteKey::There => return Found::Note(entry.value.get().cast_const()),
                    NoteKey::Other => {}
                }
            }
        }
        Found::Busy
    }

    fn level(&self, number: usize) -> &Level {
        // SAFETY: the root lives as long as the notes. A state is an atomic. A place is written
        // only by the process that has claimed the level, and read only after the state is 2.
        unsafe { &(*self.root).0[number] }
    }

    /// Returns the address of a level, and maps it if necessary. `None` if the level does not exist
    /// or cannot be mapped.
    fn open(&self, levels: &mut Vec<HeapView>, number: usize) -> Option<*mut u8> {
        if let Some(view) = levels.get(number) {
            return Some(view.base());
        }
        let level = self.level(number);
        // Acquire: pairs with the Release in `add`.
        if level.state.load(Ordering::Acquire) != READY {
            return None;
        }
        // SAFETY: the place was written before the state, and is constant since then.
        let place = unsafe { *level.place.get() };
        // A process that has damaged its memory may have published any offset.
        place.offset.is_multiple_of(ALIGNMENT).then_some(())?;
        levels.push(HeapView::of(&place, Notes::<T>::bytes(number).to_u64()).ok()?);
        levels.last().map(HeapView::base)
    }

    /// Makes a level. `None` if another process makes it, or a process has failed to.
    fn add(&self, levels: &mut Vec<HeapView>, number: usize) -> Option<()> {
        let level = self.level(number);
        // Relaxed: a level that is only claimed has no contents to order yet.
        level.state.compare_exchange(0, 1, Ordering::Relaxed, Ordering::Relaxed).ok()?;
        let lease = Notes::<T>::make(number).ok()?;
        // SAFETY: only the process that has claimed the level writes its place, and no process
        // reads it yet.
        unsafe { level.place.get().write(lease.place()) };
        // Release: pairs with the Acquire in `open`.
        level.state.store(READY, Ordering::Release);
        levels.push(lease.into());
        Some(())
    }

    /// The bytes of a level.
    fn bytes(number: usize) -> usize {
        (FIRST.to_usize() * size_of::<Entry<T>>()) << number
    }

    fn make(number: usize) -> Result<HeapRange> {
        let bytes = Notes::<T>::bytes(number);
        let lease = heap::take(bytes.to_u64(), ALIGNMENT)?;
        // SAFETY: the lease has `bytes` bytes, and no other process knows it yet.
        unsafe { lease.base().write_bytes(0, bytes) };
        Ok(lease)
    }
}

/// Returns a hash that also spreads ranks a power of two apart, such as neighbours in a grid.
fn hash(rank: Rank) -> u32 {
    rank.0.wrapping_mul(0x9e37_79b9) >> 8
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::epoch::note_keys::key_of;

    /// A value of the size of a contact and of a descriptor.
    type Value = [u64; 16];

    fn root() -> &'static Root {
        let lease = Box::leak(Box::new(heap::take(size_of::<Root>() as u64, 64).unwrap()));
        // SAFETY: the lease has the size and alignment of a root, and zeroes are a valid root.
        unsafe {
            lease.base().write_bytes(0, size_of::<Root>());
            &*lease.base().cast::<Root>()
        }
    }

    /// Returns the notes as one process uses them.
    fn notes(root: &'static Root) -> Notes<Value> {
        // SAFETY: the root is zeroed, lives for ever, and is used for these notes only.
        unsafe { Notes::at(root) }
    }

    fn value(rank: Rank) -> Value {
        core::array::from_fn(|word| u64::from(rank.0) << 8 | word as u64)
    }

    fn read(note: *const Value) -> Value {
        // SAFETY: the tests keep the notes.
        unsafe { *note }
    }

    #[test]
    fn what_one_process_notes_all_find_at_one_place() {
        let root = root();
        let (one, other) = (notes(root), notes(root));
        for rank in (0..5000).map(|rank| rank * 64) {
            assert_eq!(other.find(Rank(rank)), None);
            let note = one.note(Rank(rank), value(Rank(rank))).unwrap();
            assert_eq!(read(note), value(Rank(rank)));
            assert_eq!(read(other.find(Rank(rank)).unwrap()), value(Rank(rank)));
            assert_eq!(one.note(Rank(rank), [0; 16]), Some(note), "it is noted once");
        }
        assert!(
            (0..5000)
                .all(|rank| read(other.find(Rank(64 * rank)).unwrap()) == value(Rank(64 * rank)))
        );
        assert_eq!(other.find(Rank(1)), None);
    }

    #[test]
    fn memory_is_taken_as_notes_come() {
        let notes = notes(root());
        assert_eq!(notes.levels.lock().len(), 0);
        notes.note(Rank(7), value(Rank(7))).unwrap();
        assert_eq!(notes.levels.lock().len(), 1);
        assert!((0..1000).all(|rank| notes.note(Rank(rank), value(Rank(rank))).is_some()));
        // At least half of all entries hold one.
        let levels = notes.levels.lock().len();
        assert!((1..=7).contains(&levels), "{levels} levels");
    }

    #[test]
    fn no_process_waits_for_one_that_died_while_it_wrote() {
        let root = root();
        let (one, other) = (notes(root), notes(root));
        let claimed = |notes: &Notes<Value>, rank| {
            let Found::Free(entry) = notes.search(&mut notes.levels.lock(), rank) else {
                panic!("no room")
            };
            entry.key.store(key_of(rank), Ordering::Relaxed);
        };
        one.note(Rank(1), value(Rank(1))).unwrap();
        claimed(&one, Rank(2));
        assert_eq!((other.find(Rank(2)), other.note(Rank(2), value(Rank(2)))), (None, None));
        other.note(Rank(3), value(Rank(3))).unwrap();
        assert_eq!(read(one.find(Rank(3)).unwrap()), value(Rank(3)));
        // A process died while it made a level.
        let number = one.levels.lock().len();
        one.level(number).state.store(1, Ordering::Relaxed);
        let noted =
            (100..200).filter(|rank| other.note(Rank(*rank), value(Rank(*rank))).is_some()).count();
        assert!((8..16).contains(&noted), "{noted} found room on the first level");
    }

    #[test]
    fn processes_note_at_the_same_time() {
        let root = root();
        // A level is memory of the process that has made it, so all of them stay to the end.
        let all: [Notes<Value>; 4] = core::array::from_fn(|_| notes(root));
        std::thread::scope(|scope| {
            for notes in &all {
                scope.spawn(move || {
                    for rank in 0..2000 {
                        let note = notes
                            .note(Rank(rank), value(Rank(rank)))
                            .or_else(|| notes.find(Rank(rank)));
                        assert!(note.is_none_or(|note| read(note) == value(Rank(rank))));
                    }
                });
            }
        });
        // All may have met a level that another one made.
        let is_there =
            |rank| all[0].note(rank, value(rank)).is_some_and(|note| read(note) == value(rank));
        assert!((0..2000).map(Rank).all(is_there));
    }
}
