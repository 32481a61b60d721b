//! Tests that the loops for each vector size change the same bits as calls of one element. A debug
//! build has no vector instructions: `cargo test --release` tests those.

use super::*;
use crate::reduce::processor::with_all;

/// Returns the target, the origin and the result after calls on elements whose buffers begin
/// `shifts` bytes after a multiple of 16.
fn outcome(
    (op, basic): (Op, Basic),
    [target, origin, result]: [&[u8]; 3],
    answer: Answer,
    shifts: [usize; 3],
    one_by_one: bool,
) -> [Vec<u8>; 3] {
    let extent = basic.extent();
    let mut memory = [target, origin, result]
        .map(|content| Memory::new(content.len() + 16, &mut Random::new(3)));
    for (at, content) in [target, origin, result].into_iter().enumerate() {
        memory[at].fill(shifts[at], content);
    }
    let [to, from, old] = [0, 1, 2].map(|at| memory[at].at(shifts[at]));
    let old = match answer {
        Answer::None => None,
        Answer::Apart => Some(old),
        Answer::InOrigin => Some(from),
    };
    let count = target.len() / extent;
    let step = if one_by_one { 1 } else { count.max(1) };
    for first in (0..count).step_by(step) {
        let at = first * extent;
        // SAFETY: all three hold `count` elements after their shift, and no other code knows them.
        unsafe {
            let old = old.map(|old| old.add(at));
            accumulate_exclusive(op, basic, to.add(at), from.add(at), old, step);
        }
    }
    memory.map(|memory| memory.bytes().to_vec())
}

/// Checks calls on each of these numbers of elements; a size above 100 is in bytes.
fn check_versions(sizes: &[usize]) {
    let mut random = Random::new(19);
    for (op, basic) in legal() {
        for &size in sizes {
            let count = if size > 100 { size / basic.extent() } else { size };
            let mut content = || {
                let elements = (0..count).flat_map(|_| element(op, basic, &mut random));
                elements.collect::<Vec<u8>>()
            };
            let content = [content(), content(), content()];
            let content = content.each_ref().map(Vec::as_slice);
            let shifts = [random.below(16), random.below(16), random.below(16)];
            for answer in [Answer::None, Answer::Apart, Answer::InOrigin] {
                let wanted = outcome((op, basic), content, answer, shifts, true);
                with_all(|vectors| {
                    let found = outcome((op, basic), content, answer, shifts, false);
                    assert_eq!(found, wanted, "{op:?} {basic:?} {count} {vectors:?}");
                });
            }
        }
    }
}

#[test]
fn calls_of_any_length_change_the_same_bits_with_all_vectors() {
    let step = if cfg!(debug_assertions) { 11 } else { 1 };
    check_versions(&(0..=100).step_by(step).collect::<Vec<_>>());
}

#[test]
fn calls_of_several_pieces_change_the_same_bits_with_all_vectors() {
    check_versions(&[128, 255, 513, 1023, 2200, 4500]);
}
