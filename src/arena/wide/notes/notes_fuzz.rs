//! Made-up words in the root, the levels and the entries of notes, as a process of the node may
//! have damaged them. A search ends, and a note that is found lies inside of its level.

use super::{Entry, FIRST, LEVELS, Notes, Root};
use crate::memory::heap::{self, HeapRange};
use crate::memory::{HeapPlace, HeapView};
use crate::rank_numbers::Rank;
use crate::sync::Ordering;
use fompi_testkit::Choices;

/// A note, of the size of a descriptor.
type Value = [u64; 8];

fn rank(choices: &mut Choices) -> Rank {
    Rank(match choices.below(4) {
        0 => choices.word() as u32 / 2,
        _ => u32::from(choices.byte()),
    })
}

fn value(rank: Rank) -> Value {
    core::array::from_fn(|word| u64::from(rank.0) << 8 | word as u64)
}

/// The memory of a root, zeroed.
fn memory() -> HeapRange {
    let lease = heap::take(size_of::<Root>() as u64, 64).unwrap();
    // SAFETY: the lease has these bytes, and nothing else knows it yet.
    unsafe { lease.base().write_bytes(0, size_of::<Root>()) };
    lease
}

/// A place that no level is at, or one with room for a few.
fn place(choices: &mut Choices) -> HeapPlace {
    let mut place = heap::find(memory().base().addr() as u64, 1).unwrap_or_default();
    match choices.below(4) {
        0 => place = HeapPlace::default(),
        1 => place.offset = choices.word(),
        2 => place.offset += 1 + u64::from(choices.byte()),
        _ => place.name.inode ^= 1 + u64::from(choices.byte()),
    }
    place
}

/// Changes what another process may change: the root, or the keys of a level that is mapped.
fn damage(notes: &Notes<Value>, choices: &mut Choices) {
    let number = choices.below(LEVELS);
    let base = notes.levels.lock().get(number).map(HeapView::base);
    match base.filter(|_| choices.below(2) == 0) {
        Some(base) => {
            let index = (choices.word() % u64::from(FIRST << number)) as usize;
            let entry = base.cast::<Entry<Value>>().wrapping_add(index);
            // SAFETY: the entry is inside of the level, and only atomics are accessed.
            unsafe { (*entry).key.store(choices.word() >> choices.below(64), Ordering::Relaxed) };
        }
        None => {
            let level = notes.level(number);
            level.state.store(choices.below(4) as u64, Ordering::Relaxed);
            // SAFETY: no other thread knows these notes.
            unsafe { level.place.get().write(place(choices)) };
        }
    }
}

/// The target `wide_notes`: notes that two processes write and find, and damage.
pub fn wide_notes(data: &[u8]) {
    let (mut choices, root) = (Choices::of(data), memory());
    // SAFETY: the root is zeroed, outlives the notes, and serves nothing else.
    let both = [(); 2].map(|()| unsafe { Notes::<Value>::at(root.base().cast()) });
    let mut is_damaged = false;
    while !choices.are_used_up() {
        let notes = &both[choices.below(2)];
        match choices.below(4) {
            0 if choices.below(4) == 0 => {
                damage(notes, &mut choices);
                is_damaged = true;
            }
            0 | 1 => {
                let rank = rank(&mut choices);
                let noted = notes.note(rank, value(rank));
                assert!(is_damaged || noted.is_some());
            }
            _ => {
                let rank = rank(&mut choices);
                if let Some(note) = notes.find(rank) {
                    // SAFETY: a note is valid as long as the notes.
                    let found = unsafe { note.read() };
                    assert!(is_damaged || found == value(rank));
                }
            }
        }
    }
}

#[cfg(test)]
#[test]
fn the_kept_notes_are_found_or_not() {
    fompi_testkit::replay("wide_notes", wide_notes);
}
