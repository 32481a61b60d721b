//! Made-up announcements of slots, as they may stand in the record of a rank 0 that has damaged its
//! memory. A slot that is taken lies inside of a chunk that is mapped.

use super::{Announcement, OUT_OF_DESCRIPTORS, Slots, place};
use crate::number::Number;
use crate::rank_numbers::Slot;
use crate::sys::segment::{Name, Segment};
use fompi_testkit::Choices;
use std::sync::OnceLock;

/// Bytes of a slot: with the first, the files below are chunks.
const SLOT_BYTES: [u64; 4] = [64, 72, 1 << 32, u64::MAX];
/// Bytes of the files whose names are announced: the second and the third chunk, and others.
const FILES: [u64; 5] = [2048, 4096, 8192, 2304, 100];

fn name(choices: &mut Choices) -> Name {
    static KEPT: OnceLock<Vec<Segment>> = OnceLock::new();
    let made = || FILES.map(|bytes| Segment::create(bytes).unwrap()).into_iter().collect();
    let mut name = KEPT.get_or_init(made)[choices.below(FILES.len())].name();
    match choices.below(8) {
        0 => return Name::default(),
        1 => name.bytes = choices.word(),
        2 => name.inode ^= 1 + u64::from(choices.byte()),
        3 => name.fd = i32::from(choices.byte()),
        _ => {}
    }
    name
}

fn slot(choices: &mut Choices) -> u64 {
    match choices.below(8) {
        0 => choices.word(),
        1 => OUT_OF_DESCRIPTORS,
        2 => 1 << 32 | u64::from(choices.byte()),
        _ => u64::from(choices.byte()),
    }
}

/// The target `announcements`: the announcements of windows, one after the other.
pub fn announcements(data: &[u8]) {
    let mut choices = Choices::of(data);
    let slot_bytes = SLOT_BYTES[choices.below(SLOT_BYTES.len())];
    let slots = Slots::new(slot_bytes);
    while !choices.are_used_up() {
        let announced = Announcement { slot: slot(&mut choices), chunk: name(&mut choices) };
        slots.learn(&announced);
        let Ok(next) = slots.next() else { continue };
        assert!(next != Slot::OF_ARENA && u64::from(next.0) == announced.slot);
        // The arena keeps the first chunk.
        if let (chunk @ 1.., _) = place(next) {
            let (_, base, bytes) = slots.chunk(chunk);
            let first = (slots.base(next).addr() - base.addr()).to_u64();
            assert!(first <= bytes && slot_bytes <= bytes - first);
        }
    }
}

#[cfg(test)]
#[test]
fn the_kept_announcements_are_taken_or_refused() {
    fompi_testkit::replay("announcements", announcements);
}
