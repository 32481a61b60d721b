//! Notes that the ranks of a node share: what one of them has asked of a rank of another node, the
//! others need not ask again, nor keep a copy of. They take memory as they grow and not before:
//! shelves of entries, each twice as long as the one before, from the heap of whoever finds the
//! ones before full. Not for what changes: a note is written once and stays as long as the notes.
//! Invariant: nobody waits for another process, which may be dead: who finds that somebody is about
//! to write keeps what it has asked for itself.
//!
//! | key of an entry | meaning                                                    |
//! |-----------------|------------------------------------------------------------|
//! | 0               | nothing is here, nor on any shelf behind                   |
//! | 2 r + 2         | somebody writes the note about rank r                      |
//! | 2 r + 3         | the note about rank r is here, and will not change         |
//!
//! | state of a shelf | meaning                                                   |
//! |------------------|-----------------------------------------------------------|
//! | 0                | there is none                                             |
//! | 1                | somebody makes it, or could not                           |
//! | 2                | it is where `place` says                                  |

use crate::error::Result;
use crate::memory::heap::{self, Lease};
use crate::memory::{Place, View};
use crate::sync::{AtomicU64, Ordering};
use core::cell::UnsafeCell;
use core::marker::PhantomData;
use parking_lot::Mutex;

/// Shelves: notes about a million ranks.
const SHELVES: usize = 16;
/// Entries of the first.
const FIRST: u32 = 16;
/// Entries of a shelf on which the note about a rank may be.
const PROBES: u32 = 8;

/// Where notes begin, in memory of the node that was zeroed.
#[repr(C, align(64))]
pub struct Root([Shelf; SHELVES]);

#[repr(C, align(64))]
struct Shelf {
    state: AtomicU64,
    place: UnsafeCell<Place>,
}

#[repr(C)]
struct Entry<T> {
    key: AtomicU64,
    value: UnsafeCell<T>,
}

const THERE: u64 = 2;

/// The key of an entry that is written, and one more when it is.
fn key_of(rank: u32) -> u64 {
    2 * u64::from(rank) + 2
}

/// Notes about ranks.
pub struct Notes<T> {
    root: *const Root,
    /// those that this process reaches
    shelves: Mutex<Vec<View>>,
    _of: PhantomData<T>,
}

// SAFETY: shared memory that is reached as the tables above say.
unsafe impl<T: Send> Send for Notes<T> {}
// SAFETY: likewise.
unsafe impl<T: Sync> Sync for Notes<T> {}

// SAFETY: likewise.
unsafe impl Sync for Root {}

/// What a search ends with.
enum Found<'a, T> {
    Note(*const T),
    /// an entry for it, which nobody has taken yet
    Room(&'a Entry<T>),
    /// somebody writes it
    Busy,
    /// all entries are taken on the shelves that there are, so many
    Full(usize),
}

impl<T: Copy> Notes<T> {
    /// The notes that begin at `root`, the same for all processes of the node.
    ///
    /// # Safety
    /// It lives as long as the notes, was zeroed before any process looks, and nobody else uses it.
    /// Any bits of a `T` are a value.
    pub unsafe fn at(root: *const Root) -> Notes<T> {
        Notes { root, shelves: Mutex::default(), _of: PhantomData }
    }

    /// The note about a rank, which stays where it is as long as the notes.
    pub fn find(&self, rank: u32) -> Option<*const T> {
        match self.search(&mut self.shelves.lock(), rank) {
            Found::Note(note) => Some(note),
            _ => None,
        }
    }

    /// Writes what is known of a rank down for all, and returns where; `None` if there is no room,
    /// or somebody else is at it.
    pub fn note(&self, rank: u32, value: T) -> Option<*const T> {
        let mut shelves = self.shelves.lock();
        loop {
            match self.search(&mut shelves, rank) {
                Found::Note(note) => return Some(note),
                Found::Busy => return None,
                Found::Full(number) => self.add(&mut shelves, number)?,
                Found::Room(entry) => {
                    let note = entry.value.get();
                    // SAFETY: who has claimed the entry alone writes it, and nobody reads yet.
                    if publish(&entry.key, rank, || unsafe { note.write(value) }) {
                        return Some(note.cast_const());
                    }
                }
            }
        }
    }

    fn search<'a>(&self, shelves: &mut Vec<View>, rank: u32) -> Found<'a, T> {
        for number in 0..SHELVES {
            let Some(base) = self.open(shelves, number) else { return Found::Full(number) };
            let length = FIRST << number;
            for probe in 0..PROBES {
                let index = (hash(rank) + probe) % length;
                let entry = base.cast::<Entry<T>>().wrapping_add(index as usize);
                // SAFETY: inside of the shelf, which lives as long as the notes.
                let entry = unsafe { &*entry };
                match look(&entry.key, rank) {
                    Key::Free => return Found::Room(entry),
                    Key::Taken => return Found::Busy,
                    Key::There => return Found::Note(entry.value.get().cast_const()),
                    Key::Other => {}
                }
            }
        }
        Found::Busy
    }

    fn shelf(&self, number: usize) -> &Shelf {
        // SAFETY: the root lives as long as the notes, and is reached by atomics; a place by those
        // alone who may.
        unsafe { &(*self.root).0[number] }
    }

    /// Where a shelf is, if there is one and this process can reach it.
    fn open(&self, shelves: &mut Vec<View>, number: usize) -> Option<*mut u8> {
        if let Some(view) = shelves.get(number) {
            return Some(view.base());
        }
        let shelf = self.shelf(number);
        // Acquire: pairs with the Release in `add`.
        if shelf.state.load(Ordering::Acquire) != THERE {
            return None;
        }
        // SAFETY: written before the state, and not changed any more.
        let place = unsafe { *shelf.place.get() };
        shelves.push(View::of(&place).ok()?);
        shelves.last().map(View::base)
    }

    /// Makes a shelf. `None` if somebody else does, or nobody can.
    fn add(&self, shelves: &mut Vec<View>, number: usize) -> Option<()> {
        let shelf = self.shelf(number);
        // Relaxed: what is taken has nothing behind it yet.
        shelf.state.compare_exchange(0, 1, Ordering::Relaxed, Ordering::Relaxed).ok()?;
        let lease = Notes::<T>::make(number).ok()?;
        // SAFETY: who has claimed the shelf alone writes it, and nobody reads yet.
        unsafe { shelf.place.get().write(lease.place()) };
        // Release: pairs with the Acquire in `open`.
        shelf.state.store(THERE, Ordering::Release);
        shelves.push(lease.into());
        Some(())
    }

    fn make(number: usize) -> Result<Lease> {
        let bytes = (FIRST as usize * size_of::<Entry<T>>()) << number;
        let lease = heap::take(bytes as u64, 64)?;
        // SAFETY: the lease is so long, and nobody else has it.
        unsafe { lease.base().write_bytes(0, bytes) };
        Ok(lease)
    }
}

/// Spreads ranks that are a power of two apart, such as neighbours in a grid.
fn hash(rank: u32) -> u32 {
    rank.wrapping_mul(0x9e37_79b9) >> 8
}

/// What an entry is for who looks for the note about a rank.
#[derive(PartialEq, Eq, Debug)]
enum Key {
    Free,
    /// by that rank's note, which is not there yet
    Taken,
    There,
    /// of another rank
    Other,
}

fn look(key: &AtomicU64, rank: u32) -> Key {
    // Acquire: pairs with the Release in `publish`.
    match key.load(Ordering::Acquire) {
        0 => Key::Free,
        key if key == key_of(rank) => Key::Taken,
        key if key == key_of(rank) + 1 => Key::There,
        _ => Key::Other,
    }
}

/// Claims an entry for a rank, writes it and says so. False if somebody else has claimed it.
fn publish(key: &AtomicU64, rank: u32, write: impl FnOnce()) -> bool {
    let writing = key_of(rank);
    // Relaxed: an entry that is taken has nothing in it yet.
    if key.compare_exchange(0, writing, Ordering::Relaxed, Ordering::Relaxed).is_err() {
        return false;
    }
    write();
    // Release: pairs with the Acquire in `look`.
    key.store(writing + 1, Ordering::Release);
    true
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Bytes of a contact and of a descriptor.
    type Value = [u64; 16];

    fn root() -> &'static Root {
        let lease = Box::leak(Box::new(heap::take(size_of::<Root>() as u64, 64).unwrap()));
        // SAFETY: the lease is so long and aligned, and zeroes are a root.
        unsafe {
            lease.base().write_bytes(0, size_of::<Root>());
            &*lease.base().cast::<Root>()
        }
    }

    /// As a process has it.
    fn notes(root: &'static Root) -> Notes<Value> {
        // SAFETY: zeroed, and it lives for ever.
        unsafe { Notes::at(root) }
    }

    fn value(rank: u32) -> Value {
        core::array::from_fn(|word| u64::from(rank) << 8 | word as u64)
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
            assert_eq!(other.find(rank), None);
            let note = one.note(rank, value(rank)).unwrap();
            assert_eq!(read(note), value(rank));
            assert_eq!(read(other.find(rank).unwrap()), value(rank));
            assert_eq!(one.note(rank, [0; 16]), Some(note), "it is noted once");
        }
        assert!((0..5000).all(|rank| read(other.find(64 * rank).unwrap()) == value(64 * rank)));
        assert_eq!(other.find(1), None);
    }

    #[test]
    fn memory_is_taken_as_notes_come() {
        let notes = notes(root());
        assert_eq!(notes.shelves.lock().len(), 0);
        notes.note(7, value(7)).unwrap();
        assert_eq!(notes.shelves.lock().len(), 1);
        assert!((0..1000).all(|rank| notes.note(rank, value(rank)).is_some()));
        // At least half of all entries hold one.
        let shelves = notes.shelves.lock().len();
        assert!((1..=7).contains(&shelves), "{shelves} shelves");
    }

    #[test]
    fn nobody_waits_for_who_died_while_it_wrote() {
        let root = root();
        let (one, other) = (notes(root), notes(root));
        let claimed = |notes: &Notes<Value>, rank| {
            let Found::Room(entry) = notes.search(&mut notes.shelves.lock(), rank) else {
                panic!("no room")
            };
            entry.key.store(key_of(rank), Ordering::Relaxed);
        };
        one.note(1, value(1)).unwrap();
        claimed(&one, 2);
        assert_eq!((other.find(2), other.note(2, value(2))), (None, None));
        other.note(3, value(3)).unwrap();
        assert_eq!(read(one.find(3).unwrap()), value(3));
        // And who died while it made a shelf.
        let number = one.shelves.lock().len();
        one.shelf(number).state.store(1, Ordering::Relaxed);
        let noted = (100..200).filter(|rank| other.note(*rank, value(*rank)).is_some()).count();
        assert!((8..16).contains(&noted), "{noted} found room on the first shelf");
    }

    #[test]
    fn processes_note_at_the_same_time() {
        let root = root();
        std::thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| {
                    let notes = notes(root);
                    for rank in 0..2000 {
                        let note = notes.note(rank, value(rank)).or_else(|| notes.find(rank));
                        assert!(note.is_none_or(|note| read(note) == value(rank)));
                    }
                });
            }
        });
        let notes = notes(root);
        assert!((0..2000).all(|rank| notes.find(rank).is_some_and(|n| read(n) == value(rank))));
    }

    #[cfg(loom)]
    use loom::{sync::Arc as Shared, thread};
    #[cfg(not(loom))]
    use std::{sync::Arc as Shared, thread};

    #[test]
    fn loom_a_note_is_there_before_its_key() {
        let body = || {
            let entry = Shared::new((AtomicU64::new(0), AtomicU64::new(0)));
            let writers: Vec<_> = (0..2)
                .map(|_| {
                    let entry = entry.clone();
                    // Relaxed: only the key orders it.
                    let write = move || publish(&entry.0, 5, || add(&entry.1));
                    thread::spawn(write)
                })
                .collect();
            if look(&entry.0, 5) == Key::There {
                assert_eq!(entry.1.load(Ordering::Relaxed), 1);
            }
            let wrote: Vec<_> = writers.into_iter().map(|one| one.join().unwrap()).collect();
            assert!(wrote[0] != wrote[1], "one of them");
            assert_eq!(entry.1.load(Ordering::Relaxed), 1);
        };
        #[cfg(loom)]
        loom::model(body);
        #[cfg(not(loom))]
        (0..200).for_each(|_| body());
    }

    fn add(cell: &AtomicU64) {
        cell.store(cell.load(Ordering::Relaxed) + 1, Ordering::Relaxed);
    }
}
