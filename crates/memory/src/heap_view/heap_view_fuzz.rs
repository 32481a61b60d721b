//! Made-up places of memory, as other processes publish them. A range that is taken is mapped, and
//! one that lies in a segment is taken.

use super::HeapView;
use crate::HeapPlace;
use crate::sys::segment::Segment;
use fompi_testkit::Choices;
use std::sync::OnceLock;

/// Bytes of the segments.
const SEGMENTS: [u64; 3] = [4096, 8192, 100];

fn number(choices: &mut Choices) -> u64 {
    match choices.below(4) {
        0 => choices.word(),
        1 => u64::MAX - u64::from(choices.byte()),
        2 => u64::from(choices.byte()),
        _ => u64::from(choices.byte()) * 64,
    }
}

/// The target `heap_places`: places, one after the other, each with the bytes that are wanted.
pub fn heap_places(data: &[u8]) {
    static KEPT: OnceLock<Vec<Segment>> = OnceLock::new();
    let made = || SEGMENTS.map(|bytes| Segment::create(bytes).unwrap()).into_iter().collect();
    let segments = KEPT.get_or_init(made);
    let mut choices = Choices::of(data);
    while !choices.are_used_up() {
        let which = choices.below(SEGMENTS.len());
        let (mut name, mut is_right) = (segments[which].name(), true);
        let change = choices.below(8);
        match change {
            0 => name.bytes = number(&mut choices),
            1 => name.inode = number(&mut choices),
            2 => name.device = number(&mut choices),
            _ => {}
        }
        is_right &= name == segments[which].name();
        let (offset, bytes) = (number(&mut choices), number(&mut choices));
        let fits = u128::from(offset) + u128::from(bytes) <= u128::from(SEGMENTS[which]);
        match HeapView::of(&HeapPlace { name, offset }, bytes) {
            Ok(view) => {
                assert!(fits, "{bytes} bytes at {offset} of {}", SEGMENTS[which]);
                if bytes > 0 {
                    // SAFETY: all bytes are inside of the mapping, which the view keeps.
                    unsafe { view.base().add((bytes - 1) as usize).write_volatile(1) };
                }
            }
            Err(error) => assert!(!(fits && is_right), "{error}"),
        }
    }
}

#[cfg(test)]
#[test]
fn the_kept_places_are_taken_or_refused() {
    fompi_testkit::replay("heap_places", heap_places);
}
