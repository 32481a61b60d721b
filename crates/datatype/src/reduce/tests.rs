//! Every legal pair of op and type against `model`, which computes with bytes in the slowest and
//! plainest way, and all calls against each other under contention.

mod contention;
mod model;
#[cfg(target_arch = "x86_64")]
mod versions;

use super::*;
use model::{Random, element, expected, same};

/// Aligned memory with a margin on both sides that must stay as it is.
struct Memory(Vec<u128>);

const MARGIN: usize = 32;

impl Memory {
    fn new(bytes: usize, random: &mut Random) -> Memory {
        let words = (bytes + 2 * MARGIN).div_ceil(16) + 1;
        Memory((0..words).map(|_| u128::from(random.next()) << 32).collect())
    }

    /// `shift` bytes after an address that suits every type.
    fn at(&mut self, shift: usize) -> *mut u8 {
        self.0.as_mut_ptr().cast::<u8>().wrapping_add(MARGIN + shift)
    }

    fn bytes(&self) -> &[u8] {
        // SAFETY: the vector's own memory, seen as bytes, while it is borrowed.
        unsafe { core::slice::from_raw_parts(self.0.as_ptr().cast(), self.0.len() * 16) }
    }

    fn fill(&mut self, shift: usize, content: &[u8]) {
        assert!(MARGIN + shift + content.len() <= self.0.len() * 16);
        // SAFETY: inside of the vector, as just seen.
        unsafe { self.at(shift).copy_from(content.as_ptr(), content.len()) }
    }
}

type Way = unsafe fn(Op, Basic, *mut u8, *const u8, Option<*mut u8>, usize);

#[derive(Clone, Copy, PartialEq)]
enum Answer {
    None,
    Apart,
    InOrigin,
}

struct Case {
    op: Op,
    basic: Basic,
    count: usize,
    target_shift: usize,
    answer: Answer,
}

/// Runs one call and compares target, result and all that lies around with the model.
fn check(way: Way, case: &Case, random: &mut Random) {
    let &Case { op, basic, count, target_shift, answer } = case;
    let extent = basic.extent();
    let mut content = || (0..count).flat_map(|_| element(op, basic, random)).collect::<Vec<u8>>();
    let (old, operand) = (content(), content());

    let mut target = Memory::new(old.len() + 16, random);
    let mut origin = Memory::new(old.len() + 16, random);
    let mut result = Memory::new(old.len() + 16, random);
    let (origin_shift, result_shift) = (random.below(16), random.below(16));
    target.fill(target_shift, &old);
    origin.fill(origin_shift, &operand);
    let (target_before, result_before) = (target.bytes().to_vec(), result.bytes().to_vec());

    let result_at = match answer {
        Answer::None => None,
        Answer::Apart => Some(result.at(result_shift)),
        Answer::InOrigin => Some(origin.at(origin_shift)),
    };
    let no_origin = op == Op::NoOp && answer != Answer::InOrigin;
    let origin_at =
        if no_origin { core::ptr::null() } else { origin.at(origin_shift).cast_const() };
    // SAFETY: all three hold `count` elements after their shift, and no other code knows them; the
    // callers of `check` choose an address that suits the way.
    unsafe { way(op, basic, target.at(target_shift), origin_at, result_at, count) };

    let mut wanted = target_before;
    for i in 0..count {
        let range = i * extent..(i + 1) * extent;
        let new = expected(op, basic, &old[range.clone()], &operand[range.clone()]);
        let at = MARGIN + target_shift + range.start;
        let found = &target.bytes()[at..at + extent];
        assert!(same(op, basic, found, &new), "{op:?} {basic:?}: {found:?} is not {new:?}");
        wanted[at..at + extent].copy_from_slice(found);
    }
    assert_eq!(target.bytes(), wanted, "{op:?} {basic:?} wrote around the target");

    let (mut wanted, place, shift) = match answer {
        Answer::InOrigin => (origin.bytes().to_vec(), &origin, origin_shift),
        _ => (result_before, &result, result_shift),
    };
    for i in 0..if answer == Answer::None { 0 } else { count } {
        let at = MARGIN + shift + i * extent;
        for member in model::data(basic) {
            let bytes = &old[i * extent..][member.clone()];
            wanted[at + member.start..at + member.end].copy_from_slice(bytes);
        }
    }
    assert_eq!(place.bytes(), wanted, "{op:?} {basic:?} returned something else");
}

fn legal() -> impl Iterator<Item = (Op, Basic)> {
    let ops = OPS.iter().map(|known| known.op);
    ops.flat_map(|op| Basic::ALL.iter().map(move |&basic| (op, basic)))
        .filter(|&(op, basic)| pairs(op, basic))
        .filter(|&(_, basic)| !cfg!(miri) || !is_long_double(basic))
}

/// Whether it is computed with by instructions that Miri does not know.
fn is_long_double(basic: Basic) -> bool {
    matches!(basic, Basic::LongDouble | Basic::ComplexLongDouble | Basic::LongDoubleInt)
}

fn check_all(way: Way, suits: impl Fn(Basic, usize) -> bool) {
    let mut random = Random::new(7);
    for (op, basic) in legal() {
        for count in (0..=17).step_by(if cfg!(miri) { 8 } else { 1 }) {
            for answer in [Answer::None, Answer::Apart, Answer::InOrigin] {
                let target_shift = random.below(16);
                for target_shift in [0, target_shift] {
                    if suits(basic, target_shift) {
                        let case = Case { op, basic, count, target_shift, answer };
                        check(way, &case, &mut random);
                    }
                }
            }
        }
    }
}

#[test]
fn atomics_compute_what_the_model_does() {
    check_all(accumulate, |basic, shift| !needs_lock(basic, core::ptr::without_provenance(shift)));
}

#[test]
fn plain_loops_compute_what_the_model_does_at_any_address() {
    check_all(accumulate_exclusive, |_, _| true);
}

#[test]
fn calls_under_the_lock_compute_what_the_model_does_at_any_address() {
    check_all(accumulate_locked, |_, _| true);
}

#[test]
#[cfg_attr(miri, ignore = "too many elements")]
fn a_long_call_under_the_lock_computes_what_the_model_does() {
    let mut random = Random::new(17);
    for (op, basic) in legal() {
        for (target_shift, count) in [(0, 513), (basic.extent().min(8), 600), (3, 530)] {
            for answer in [Answer::None, Answer::Apart, Answer::InOrigin] {
                check(
                    accumulate_locked,
                    &Case { op, basic, count, target_shift, answer },
                    &mut random,
                );
            }
        }
    }
}

/// As many elements as wide vectors need, and some more.
#[test]
fn a_long_plain_loop_computes_what_the_model_does() {
    let mut random = Random::new(19);
    for (op, basic) in legal() {
        for (target_shift, count) in [(0, 32), (8, 45), (3, 77)] {
            for answer in [Answer::None, Answer::Apart, Answer::InOrigin] {
                let case = Case { op, basic, count, target_shift, answer };
                check(accumulate_exclusive, &case, &mut random);
            }
        }
    }
}

/// Calls the function for one element.
///
/// # Safety
/// As for [`accumulate`].
unsafe fn one(
    op: Op,
    basic: Basic,
    target: *mut u8,
    origin: *const u8,
    result: Option<*mut u8>,
    count: usize,
) {
    assert_eq!(count, 1);
    let kernel = match result {
        Some(_) => fetch_kernel(op, basic),
        None => change_kernel(op, basic),
    };
    // SAFETY: guaranteed by the caller.
    unsafe { kernel.unwrap()(origin, result.unwrap_or_default(), target) };
}

#[test]
fn the_functions_for_one_element_agree_with_the_model() {
    let mut random = Random::new(11);
    let ops = OPS.iter().map(|known| known.op);
    for (op, &basic) in ops.flat_map(|op| Basic::ALL.iter().map(move |basic| (op, basic))) {
        let is_word = basic.extent() <= 8 && basic.size() == basic.extent();
        let fetches = pairs(op, basic) && is_word;
        let changes = fetches && op != Op::NoOp;
        assert_eq!(fetch_kernel(op, basic).is_some(), fetches, "{op:?} {basic:?}");
        assert_eq!(change_kernel(op, basic).is_some(), changes, "{op:?} {basic:?}");
        for round in 0..if cfg!(miri) { 2 } else { 64 } {
            for answer in [Answer::None, Answer::Apart, Answer::InOrigin] {
                if if answer == Answer::None { changes } else { fetches } {
                    let target_shift = round % 2 * basic.extent();
                    let case = Case { op, basic, count: 1, target_shift, answer };
                    check(one, &case, &mut random);
                }
            }
        }
    }
}

#[test]
fn compare_and_swap_stores_only_when_equal() {
    let mut random = Random::new(13);
    for &basic in Basic::ALL.iter().filter(|basic| basic.compares()) {
        let extent = basic.extent();
        for round in 0..if cfg!(miri) { 2 } else { 64 } {
            let equal = round % 2 == 0;
            let old = element(Op::Replace, basic, &mut random);
            let new = element(Op::Replace, basic, &mut random);
            let mut compare = old.clone();
            compare[random.below(extent)] ^= u8::from(!equal) << random.below(8);
            let shift = if extent == 16 { 3 } else { 16 * (round % 3 / 2) };
            let mut target = Memory::new(64, &mut random);
            target.fill(shift, &old);
            let lock = needs_lock(basic, target.at(shift));
            assert_eq!(lock, extent == 16);
            let swap = if lock { compare_and_swap_exclusive } else { compare_and_swap };
            let mut result = vec![0; extent];
            // SAFETY: all hold one element, and no other code knows them.
            unsafe {
                swap(basic, target.at(shift), compare.as_ptr(), new.as_ptr(), result.as_mut_ptr());
            }
            assert_eq!(result, old);
            let held = &target.bytes()[MARGIN + shift..][..extent];
            assert_eq!(held, if equal { &new } else { &old });
        }
    }
}

#[test]
fn compare_and_swap_works_alone_at_any_address() {
    for (shift, basic) in [(1, Basic::U64), (2, Basic::I32), (3, Basic::U16), (5, Basic::Byte)] {
        let mut target = Memory::new(64, &mut Random::new(17));
        target.fill(shift, &[5; 8]);
        let mut result = [0; 8];
        // SAFETY: all hold one element, and no other code knows them.
        unsafe {
            let (five, six) = ([5; 8].as_ptr(), [6; 8].as_ptr());
            compare_and_swap_exclusive(basic, target.at(shift), five, six, result.as_mut_ptr());
        }
        assert_eq!(result[..basic.extent()], [5; 8][..basic.extent()]);
        assert_eq!(target.bytes()[MARGIN + shift..][..basic.extent()], [6; 8][..basic.extent()]);
    }
}

#[test]
fn the_lock_is_asked_for_by_type_and_address_alone() {
    let at = core::ptr::without_provenance;
    assert!(!needs_lock(Basic::U8, at(0x1001)));
    assert!(!needs_lock(Basic::F64, at(0x1008)));
    assert!(needs_lock(Basic::F64, at(0x1004)));
    assert!(!needs_lock(Basic::F32, at(0x1004)));
    assert!(needs_lock(Basic::I16, at(0x1001)));
    assert!(!needs_lock(Basic::Complex32, at(0x1008)));
    assert!(needs_lock(Basic::Complex32, at(0x1004)));
    assert!(!needs_lock(Basic::TwoInt, at(0x1008)) && !needs_lock(Basic::ShortInt, at(0x1008)));
    for &basic in Basic::ALL {
        assert_eq!(needs_lock(basic, at(0x1000)), basic.extent() > 8, "{basic:?}");
    }
}

/// The result of one op on two values, by both ways.
fn both<const N: usize>(op: Op, basic: Basic, target: [u8; N], origin: [u8; N]) -> [u8; N] {
    let mut results = [target, target];
    let mut memory = Memory::new(N, &mut Random::new(1));
    memory.fill(0, &target);
    // SAFETY: all hold one element, and no other code knows them.
    unsafe {
        let plain = results[0].as_mut_ptr();
        accumulate_exclusive(op, basic, plain, origin.as_ptr(), None, 1);
        if !needs_lock(basic, memory.at(0)) {
            accumulate(op, basic, memory.at(0), origin.as_ptr(), None, 1);
            results[1].copy_from_slice(&memory.bytes()[MARGIN..][..N]);
            assert_eq!(results[0], results[1]);
        }
    }
    results[0]
}

#[test]
fn a_nan_compares_as_in_c() {
    let (nan, one) = (f64::NAN.to_ne_bytes(), 1f64.to_ne_bytes());
    assert_eq!(both(Op::Max, Basic::F64, nan, one), one);
    assert_eq!(both(Op::Max, Basic::F64, one, nan), nan);
    assert_eq!(both(Op::Min, Basic::F64, nan, one), one);
    assert_eq!(both(Op::Min, Basic::F64, one, nan), nan);
}

#[test]
fn signed_sums_wrap_and_signs_decide_the_maximum() {
    let bytes = i32::to_ne_bytes;
    assert_eq!(both(Op::Sum, Basic::I32, bytes(i32::MAX), bytes(1)), bytes(i32::MIN));
    assert_eq!(both(Op::Prod, Basic::I32, bytes(-3), bytes(5)), bytes(-15));
    assert_eq!(both(Op::Max, Basic::I32, bytes(-1), bytes(1)), bytes(1));
    assert_eq!(both(Op::Max, Basic::U32, bytes(-1), bytes(1)), bytes(-1));
}

#[test]
fn ties_of_minloc_and_maxloc_take_the_lower_index() {
    let pair = |value: i32, index: i32| {
        let mut bytes = [0; 8];
        bytes[..4].copy_from_slice(&value.to_ne_bytes());
        bytes[4..].copy_from_slice(&index.to_ne_bytes());
        bytes
    };
    for op in [Op::MaxLoc, Op::MinLoc] {
        assert_eq!(both(op, Basic::TwoInt, pair(3, 7), pair(3, 2)), pair(3, 2));
        assert_eq!(both(op, Basic::TwoInt, pair(3, 2), pair(3, 7)), pair(3, 2));
    }
    assert_eq!(both(Op::MaxLoc, Basic::TwoInt, pair(3, 2), pair(4, 7)), pair(4, 7));
    assert_eq!(both(Op::MinLoc, Basic::TwoInt, pair(3, 2), pair(4, 7)), pair(3, 2));
}

#[cfg(target_arch = "x86_64")]
#[test]
#[cfg_attr(miri, ignore = "x87 instructions")]
fn long_double_keeps_64_bits_and_compares_nans_as_in_c() {
    // An integer of 64 bits with the highest one set is a significand as it is.
    let number = |significand: u64| {
        let mut bytes = [0xaa; 16];
        bytes[..8].copy_from_slice(&significand.to_ne_bytes());
        bytes[8..10].copy_from_slice(&(16383u16 + 63).to_ne_bytes());
        bytes
    };
    let mut one = number(1 << 63);
    one[8..10].copy_from_slice(&16383u16.to_ne_bytes());
    let mut nan = number(3 << 62);
    nan[8..10].copy_from_slice(&0x7fffu16.to_ne_bytes());
    let large = number((1 << 63) + 12345);
    let basic = Basic::LongDouble;
    assert_eq!(both(Op::Sum, basic, large, one), number((1 << 63) + 12346));
    assert_eq!(both(Op::Prod, basic, large, one), large);
    assert_eq!(both(Op::Max, basic, large, one), large);
    assert_eq!(both(Op::Min, basic, large, one), one);
    assert_eq!(both(Op::Max, basic, nan, one), one);
    assert_eq!(both(Op::Max, basic, one, nan), nan);
    assert_eq!(both(Op::Min, basic, nan, one), one);
}

#[cfg(target_arch = "aarch64")]
#[test]
fn long_double_keeps_113_bits_and_compares_nans_as_in_c() {
    let number =
        |exponent: u128, fraction: u128| ((16383 + exponent) << 112 | fraction).to_ne_bytes();
    let (one, large) = (number(0, 0), number(112, 12345));
    let (nan, infinity) = (number(16384, 1), number(16384, 0));
    let minus = |bytes: [u8; 16]| (u128::from_ne_bytes(bytes) | 1 << 127).to_ne_bytes();
    let basic = Basic::LongDouble;
    assert_eq!(both(Op::Sum, basic, large, one), number(112, 12346));
    assert_eq!(both(Op::Sum, basic, large, minus(one)), number(112, 12344));
    assert_eq!(both(Op::Prod, basic, large, minus(one)), minus(large));
    assert_eq!(both(Op::Max, basic, large, one), large);
    assert_eq!(both(Op::Max, basic, minus(large), minus(one)), minus(one));
    assert_eq!(both(Op::Min, basic, minus(infinity), one), minus(infinity));
    assert_eq!(both(Op::Max, basic, [0; 16], minus([0; 16])), minus([0; 16]), "equal");
    assert_eq!(both(Op::Max, basic, nan, one), one);
    assert_eq!(both(Op::Max, basic, one, nan), nan);
    assert_eq!(both(Op::Min, basic, nan, one), one);
}

#[test]
#[should_panic(expected = "does not go with")]
fn an_op_that_does_not_go_with_the_type_is_caught() {
    both(Op::Max, Basic::Char, [1], [1]);
}
