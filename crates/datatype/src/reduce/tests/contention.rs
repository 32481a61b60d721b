//! Several threads on the same elements: no update of any kind of call is lost.

use std::collections::HashSet;
use std::sync::{Barrier, Mutex};
use std::thread;

use super::model::Random;
use super::*;

const THREADS: usize = 4;
const ROUNDS: usize = if cfg!(miri) { 100 } else { 16_000 };
const ELEMENTS: usize = 3;
/// Odd, because an even number of equal operands of exclusive or cancel each other.
const TURNS: usize = 101;

/// The target's memory, as all threads see it.
#[derive(Clone, Copy)]
struct Shared(*mut u8);

// SAFETY: the threads use it through the functions under test only.
unsafe impl Send for Shared {}
// SAFETY: as for `Send`.
unsafe impl Sync for Shared {}

impl Shared {
    fn element(self, basic: Basic, i: usize) -> *mut u8 {
        self.0.wrapping_add(i * basic.extent())
    }
}

/// Runs `work(thread)` in all threads at the same time.
fn at_once<R: Send>(work: impl Fn(usize) -> R + Sync) -> Vec<R> {
    let barrier = Barrier::new(THREADS);
    thread::scope(|scope| {
        let start = |thread| {
            let (barrier, work) = (&barrier, &work);
            scope.spawn(move || {
                barrier.wait();
                work(thread)
            })
        };
        let threads: Vec<_> = (0..THREADS).map(start).collect();
        threads.into_iter().map(|thread| thread.join().unwrap()).collect()
    })
}

/// Returns one as an element; a complex number has it in both parts.
fn one(basic: Basic) -> Vec<u8> {
    number(basic, 1)
}

fn number(basic: Basic, value: u64) -> Vec<u8> {
    let real = value as f64;
    match basic {
        Basic::F32 => (real as f32).to_le_bytes().to_vec(),
        Basic::F64 => real.to_le_bytes().to_vec(),
        Basic::Complex32 => (real as f32).to_le_bytes().repeat(2),
        Basic::Complex64 => real.to_le_bytes().repeat(2),
        _ => value.to_le_bytes()[..basic.extent()].to_vec(),
    }
}

/// Adds one to an element by Compare_and_swap, as users do.
fn add_by_compare_and_swap(basic: Basic, target: *mut u8) {
    let mut expect = 0u64.to_le_bytes();
    loop {
        let new = u64::from_le_bytes(expect).wrapping_add(1).to_le_bytes();
        let mut old = [0; 8];
        // SAFETY: all hold one element; the others use atomics too.
        unsafe {
            compare_and_swap(basic, target, expect.as_ptr(), new.as_ptr(), old.as_mut_ptr());
        }
        if old == expect {
            return;
        }
        expect = old;
    }
}

#[test]
fn mixed_calls_lose_no_sum_on_any_width() {
    use Basic::*;
    for basic in [I8, U8, I16, U16, I32, U32, I64, U64, Aint64, F32, F64, Complex32] {
        let mut memory = vec![0u128; 8];
        let shared = Shared(memory.as_mut_ptr().cast());
        let many = one(basic).repeat(ELEMENTS);
        let added = at_once(|thread| {
            let mut added = [0; ELEMENTS];
            let mut old = [0; 8 * ELEMENTS];
            for round in 0..ROUNDS {
                let i = round % ELEMENTS;
                let (all, target) = (shared.element(basic, 0), shared.element(basic, i));
                let (ones, old) = (many.as_ptr(), old.as_mut_ptr());
                // SAFETY: the memory holds all elements, so do the buffers; only atomics are used.
                let changed = unsafe {
                    match (round + thread) % 5 {
                        0 => accumulate(Op::Sum, basic, all, ones, None, ELEMENTS),
                        1 => accumulate(Op::Sum, basic, all, ones, Some(old), ELEMENTS),
                        2 => accumulate(Op::NoOp, basic, all, ones, Some(old), ELEMENTS),
                        3 if basic.compares() => add_by_compare_and_swap(basic, target),
                        3 => change_kernel(Op::Sum, basic).unwrap()(ones, old, target),
                        _ => fetch_kernel(Op::Sum, basic).unwrap()(ones, old, target),
                    }
                    match (round + thread) % 5 {
                        0 | 1 => 0..ELEMENTS,
                        2 => 0..0,
                        _ => i..i + 1,
                    }
                };
                added[changed].iter_mut().for_each(|added| *added += 1u64);
            }
            added
        });
        for i in 0..ELEMENTS {
            let wanted = number(basic, added.iter().map(|added| added[i]).sum());
            // SAFETY: the threads are gone.
            let found = unsafe {
                core::slice::from_raw_parts(shared.element(basic, i).cast_const(), basic.extent())
            };
            assert_eq!(found, wanted, "element {i} of {basic:?}");
        }
    }
}

#[test]
fn every_fetch_sees_a_value_of_its_own() {
    for basic in [Basic::U16, Basic::U32, Basic::I64] {
        let mut word = 0u64;
        let shared = Shared((&raw mut word).cast());
        let seen = at_once(|thread| {
            let fetch = |round| {
                let (mut old, one) = ([0; 8], one(basic));
                let (target, result) = (shared.element(basic, 0), old.as_mut_ptr());
                // SAFETY: all hold one element; only atomics are used.
                unsafe {
                    if (round + thread) % 2 == 0 {
                        accumulate(Op::Sum, basic, target, one.as_ptr(), Some(result), 1);
                    } else {
                        fetch_kernel(Op::Sum, basic).unwrap()(one.as_ptr(), result, target);
                    }
                }
                u64::from_le_bytes(old)
            };
            (0..ROUNDS).map(fetch).collect::<Vec<_>>()
        });
        assert!(seen.iter().all(|seen| seen.is_sorted()));
        let different: HashSet<u64> = seen.into_iter().flatten().collect();
        assert_eq!(different.len(), THREADS * ROUNDS, "{basic:?}");
    }
}

/// An operand with which the order of calls does not matter.
fn operand(op: Op, basic: Basic, random: &mut Random) -> Vec<u8> {
    let sign = [1f32, -1.][random.below(2)];
    match (op, basic) {
        (Op::Prod, Basic::F32) => sign.to_le_bytes().to_vec(),
        (Op::Prod, Basic::F64) => f64::from(sign).to_le_bytes().to_vec(),
        (Op::Prod, Basic::Complex32) => {
            let parts = [[sign, 0.], [0., sign]][random.below(2)];
            parts.map(f32::to_le_bytes).concat()
        }
        (Op::Prod, _) => number(basic, random.next() | 1),
        (_, Basic::F32 | Basic::F64 | Basic::Complex32) => number(basic, random.next() >> 57),
        (Op::Land, _) => number(basic, u64::from(random.below(1000) > 0)),
        (_, Basic::FloatInt | Basic::TwoReal) => {
            let parts = [random.below(1000) as f32, 0.];
            parts.map(f32::to_le_bytes).concat()
        }
        _ => number(basic, random.next() >> random.below(64)),
    }
}

#[test]
fn every_op_on_words_ends_as_one_after_the_other() {
    let mut random = Random::new(19);
    let ops = legal().filter(|&(op, basic)| {
        basic.extent() <= 8 && !matches!(op, Op::Replace | Op::NoOp) && basic != Basic::ShortInt
    });
    for (op, basic) in ops {
        let first = operand(op, basic, &mut random);
        let mut word = 0u64;
        let shared = Shared((&raw mut word).cast());
        let operands: Vec<Vec<Vec<u8>>> = (0..THREADS)
            .map(|_| (0..100).map(|_| operand(op, basic, &mut random)).collect())
            .collect();
        // SAFETY: all hold one element; while there are several threads, only atomics are used.
        let found = unsafe {
            shared.0.copy_from(first.as_ptr(), first.len());
            at_once(|thread| {
                for operand in operands[thread].iter().cycle().take(TURNS * 100) {
                    accumulate(op, basic, shared.element(basic, 0), operand.as_ptr(), None, 1);
                }
            });
            core::slice::from_raw_parts(shared.0.cast_const(), first.len()).to_vec()
        };
        let mut wanted = first;
        for operand in operands.iter().flatten().cycle().take(TURNS * THREADS * 100) {
            // SAFETY: both hold one element of this thread.
            unsafe {
                let target = wanted.as_mut_ptr();
                accumulate_exclusive(op, basic, target, operand.as_ptr(), None, 1);
            }
        }
        let (found, wanted) =
            (without_negative_zeros(&found, basic), without_negative_zeros(&wanted, basic));
        assert_eq!(found, wanted, "{op:?} {basic:?}");
    }
}

/// The sign of a zero part of a complex product depends on the order.
fn without_negative_zeros(element: &[u8], basic: Basic) -> Vec<u8> {
    match basic {
        Basic::Complex32 => {
            let part = |bytes: &[u8]| f32::from_le_bytes(bytes.try_into().unwrap()) + 0.;
            element.chunks(4).flat_map(|bytes| part(bytes).to_le_bytes()).collect()
        }
        _ => element.to_vec(),
    }
}

#[test]
fn wide_and_unaligned_elements_lose_nothing_under_the_lock() {
    for (basic, shift) in [(Basic::Complex64, 0), (Basic::U64, 4), (Basic::F32, 2)] {
        let mut memory = vec![0u128; 4];
        let shared = Shared(memory.as_mut_ptr().cast::<u8>().wrapping_add(shift));
        assert!(needs_lock(basic, shared.element(basic, 0)));
        let lock = Mutex::new(());
        at_once(|_| {
            for _ in 0..ROUNDS {
                let _held = lock.lock().unwrap();
                let target = shared.element(basic, 0);
                // SAFETY: both hold one element, and the lock is held.
                unsafe {
                    let one = one(basic);
                    accumulate_exclusive(Op::Sum, basic, target, one.as_ptr(), None, 1);
                }
            }
        });
        // SAFETY: the threads are gone.
        let found = unsafe {
            core::slice::from_raw_parts(shared.element(basic, 0).cast_const(), basic.extent())
        };
        assert_eq!(found, number(basic, (THREADS * ROUNDS) as u64), "{basic:?}");
    }
}

/// Threads that do not take the lock stand for calls that read it before another thread took it.
#[test]
fn a_call_under_the_lock_loses_no_change_of_a_word() {
    const BYTES: usize = 100;
    const _: () = assert!(ROUNDS.is_multiple_of(BYTES));
    let mut memory = vec![0u128; 8];
    // Begins and ends inside of a word, where the single calls go on.
    let shared = Shared(memory.as_mut_ptr().cast::<u8>().wrapping_add(3));
    let lock = Mutex::new(());
    at_once(|thread| {
        for round in 0..ROUNDS {
            // SAFETY: inside of the memory, and all but the holder of the lock use atomics.
            unsafe {
                if thread % 2 == 0 {
                    let _held = lock.lock().unwrap();
                    let ones = [1; BYTES];
                    accumulate_locked(
                        Op::Sum,
                        Basic::U8,
                        shared.element(Basic::U8, 0),
                        ones.as_ptr(),
                        None,
                        BYTES,
                    );
                } else {
                    let at = shared.element(Basic::U8, round % BYTES);
                    accumulate(Op::Sum, Basic::U8, at, [1].as_ptr(), None, 1);
                }
            }
        }
    });
    let threads = THREADS / 2;
    // SAFETY: the memory, which no thread uses any more.
    let found = unsafe { core::slice::from_raw_parts(shared.0, BYTES) };
    for (index, byte) in found.iter().enumerate() {
        assert_eq!(usize::from(*byte), threads * (ROUNDS + ROUNDS / BYTES) % 256, "byte {index}");
    }
}
