//! Made-up descriptors and mapped bytes of other ranks, and made-up calls on them, full and quick.
//! What is accessed lies inside of what the rank exposes, and of what is mapped.

use crate::arena::descriptor::Descriptor;
use crate::arena::mapped_bytes::MappedBytes;
use crate::error::Error;
use crate::memory::HeapPlace;
use crate::rank_numbers::Rank;
use crate::window::address::Reach;
use crate::window::quick_window::Extent;
use core::ptr;
use fompi_testkit::Choices;

/// Where memory begins.
const AT: usize = 1 << 40;

/// A number: mostly a small one, or one at a border.
fn number(choices: &mut Choices) -> u64 {
    match choices.below(8) {
        0 => choices.word(),
        1 => u64::MAX - u64::from(choices.byte()),
        2 => (1 << 63) + u64::from(choices.byte()),
        3 => u64::from(choices.byte()) << 56,
        _ => u64::from(choices.byte()),
    }
}

/// A full call: the place is inside, or the call fails as the standard says. The extent that is
/// kept of a rank of another node finds the same place, or nothing.
fn full_call(exposed: &Descriptor, disp: i64, reach: Reach) {
    let first = i128::from(disp) * i128::from(exposed.disp_unit) + i128::from(reach.first);
    let is_inside = first >= 0 && first + i128::from(reach.bytes) <= i128::from(exposed.exposed);
    match exposed.find(Rank(3), disp, reach) {
        Ok(found) => assert!(disp >= 0 && is_inside && i128::from(found) == first),
        Err(error @ Error::Argument(..)) => assert!(disp < 0, "{error}"),
        // No memory is as long as half of the numbers.
        Err(error) => assert!(!is_inside || exposed.exposed > i64::MAX as u64, "{error}"),
    }
    let at = ptr::without_provenance_mut(AT);
    let extent = Extent::new(at, (0, exposed.exposed), exposed.disp_unit);
    let found = extent
        .reach(disp, (reach.first, reach.bytes))
        .map(|found| found.addr().wrapping_sub(AT) as u64);
    let wanted = exposed.find(Rank(3), disp, reach).ok();
    assert!(found.is_none() || found == wanted);
    assert!(found == wanted || reach.first < 0, "only a negative lower bound takes the long way");
}

/// A fast-path call on the bytes from `first` to `end`, which are mapped at an address.
fn quick_call((first, end): (u64, u64), disp_unit: u64, disp: i64) {
    let view = Extent::new(ptr::without_provenance_mut(AT), (first, end), disp_unit);
    let Some((offset, bytes_left)) = view.start(disp) else { return };
    if bytes_left == 0 {
        // No byte is accessed there.
        return;
    }
    let begin = view.at.addr().wrapping_sub(AT) as u64;
    let inside = begin.wrapping_add(offset);
    let wanted = i128::from(disp) * i128::from(disp_unit) - i128::from(first);
    assert!(disp >= 0 && wanted == i128::from(inside));
    assert_eq!(i128::from(inside) + i128::from(bytes_left), i128::from(end) - i128::from(first));
}

/// The target `descriptors`: a descriptor, mapped bytes, and calls.
pub fn descriptors(data: &[u8]) {
    let mut choices = Choices::of(data);
    let exposed = number(&mut choices);
    let owned = Descriptor::owned(number(&mut choices), exposed, number(&mut choices));
    let mut place = HeapPlace::default();
    place.name.bytes = choices.below(2) as u64;
    let mapped = MappedBytes { place, first: number(&mut choices), end: number(&mut choices) };
    while !choices.are_used_up() {
        let disp = number(&mut choices).cast_signed();
        let reach =
            Reach { first: number(&mut choices).cast_signed(), bytes: number(&mut choices) };
        full_call(&owned, disp, reach);
        if mapped.is_any() && mapped.first < mapped.end {
            quick_call((mapped.first, mapped.end), owned.disp_unit, disp);
        }
        let Ok(first) = owned.find(Rank(3), disp, reach) else { continue };
        let end = first + reach.bytes;
        let is_inside = mapped.is_any() && first >= mapped.first && end <= mapped.end;
        assert_eq!(mapped.maps(first, reach.bytes), is_inside);
        let extent = 1 + u64::from(choices.byte());
        let parts = mapped.split(first, extent, reach.bytes / extent);
        assert_eq!(parts.iter().sum::<u64>(), reach.bytes / extent);
        assert!(parts[1] == 0 || mapped.maps(first + parts[0] * extent, parts[1] * extent));
    }
}

#[cfg(test)]
#[test]
fn the_kept_descriptors_let_nothing_outside_be_accessed() {
    fompi_testkit::replay("descriptors", descriptors);
}
