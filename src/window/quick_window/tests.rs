//! Tests of the displacements that are inside of a target's memory.

use super::*;

fn part(part: (u64, u64), unit: u64) -> Extent {
    Extent::new(ptr::without_provenance_mut(1 << 40), part, unit)
}

#[test]
fn a_start_is_inside_of_the_mapped_part_or_at_its_end() {
    for (first, end) in [(0, 4096), (100, 4096), (96, 97), (96, 96), (1 << 40, 1 << 41)] {
        for unit in [0, 1, 8, 12, 5000, 1 << 45, u64::MAX] {
            let extent = part((first, end), unit);
            let near = [0, first, first / unit.max(1), end, end / unit.max(1)];
            for disp in near.into_iter().flat_map(|disp| disp.wrapping_sub(3)..=disp + 3) {
                let byte = i128::from(disp.cast_signed()) * i128::from(unit);
                let inside =
                    (i128::from(first)..=i128::from(end)).contains(&byte) && disp <= DISP_MAX;
                let Some((offset, room)) = extent.start(disp.cast_signed()) else {
                    assert!(!inside, "{first} {end} {unit} {disp}");
                    continue;
                };
                if extent.bytes == 0 && room == 0 {
                    continue; // no byte may be accessed
                }
                assert!(inside, "{first} {end} {unit} {disp}");
                assert_eq!(i128::from(room), i128::from(end) - byte);
                let at = extent.at.addr() as u64 + offset - (1 << 40);
                assert_eq!(i128::from(at), byte - i128::from(first));
            }
        }
    }
    assert_eq!(part((8, 64), 8).start(i64::MIN), None);
}

/// Compares [`Extent::start`] with numbers that cannot overflow.
fn check(bytes: u64, unit: u64, disp: i64) {
    let first = i128::from(disp) * i128::from(unit);
    let inside = disp >= 0 && first <= i128::from(bytes);
    let expected = inside.then(|| (first as u64, bytes - first as u64));
    let start = part((0, bytes), unit).start(disp);
    assert_eq!(start, expected, "{bytes} bytes in units of {unit} at {disp}");
}

#[test]
fn a_start_is_inside_of_the_memory_or_at_its_end() {
    let numbers = [0, 1, 2, 3, 7, 8, 9, 4095, 4096, 1 << 31, 1 << 32, 1 << 62, u64::MAX / 2];
    for bytes in numbers.into_iter().chain([1 << 63, u64::MAX]) {
        for unit in numbers.into_iter().chain([1 << 63, u64::MAX]) {
            for near in numbers.into_iter().chain([bytes / unit.max(1)]) {
                for disp in [near.wrapping_sub(1), near, near.wrapping_add(1)] {
                    check(bytes, unit, disp.cast_signed());
                    check(bytes, unit, disp.cast_signed().wrapping_neg());
                }
            }
        }
    }
}
