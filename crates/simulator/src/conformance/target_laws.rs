//! The laws of work that a target carries out: transfers of portions, and accumulates (10 to 16 and
//! 21 to 24 of [`fompi_fabric::remote`]), as three ranks see them, on the transports that have it.

use super::network_laws::Networked;
use super::ranks::RANKS;
use core::ptr;
use fompi_base::sync::{AtomicU64, Ordering};
use fompi_datatype::basic::Basic;
use fompi_datatype::reduce::{self, Op};
use fompi_datatype::type_map::{Offsets, Portion, Scattered, Strip};
use fompi_fabric::reduction::{Protection, Reduction};
use fompi_fabric::remote::{
    AccumulateAt, AtTarget, Bytes, ElementRuns, Elements, LockAt, Network, OPERANDS_COPIED_MAX,
    Portions, PutAt, Remote,
};
use fompi_fabric::{Fetch, Way};

/// A lock word that is held while it is 1.
const LOCK_WORD: usize = 4000;
const ALL: u32 = 40;

type Side<E> = <<E as super::ranks::Exposing>::Peer as Network>::AtTarget;

/// A rank with the way to its accumulates, and the start of its memory.
fn side<E: Networked>(rank: &E, of: u32) -> (&E::Peer, &Side<E>, Remote) {
    let (peer, memory) = rank.reach(of);
    (peer, peer.at_target().expect("the suite has this transport in its list"), memory)
}

fn next<E: Networked>(rank: &E) -> (&E::Peer, &Side<E>, Remote) {
    side(rank, (rank.rank() + 1) % RANKS)
}

fn sum(basic: Basic) -> Reduction {
    Reduction::new(Op::Sum, basic).unwrap()
}

/// A run of elements at byte `at` of the memory.
fn run<T>(memory: Remote, at: usize, operands: &[T], result: Option<&mut [T]>) -> Elements {
    let result = result.map(|result| result.as_mut_ptr().cast());
    let bytes = size_of_val(operands) as u64;
    Elements { there: memory.at + at as u64, bytes, operands: operands.as_ptr().cast(), result }
}

fn atomic(what: Reduction, within: Remote, runs: &[Elements]) -> AccumulateAt<'_> {
    let runs = ElementRuns::Listed(runs);
    AccumulateAt { what, protection: Protection::Atomic, within, runs }
}

/// Loads the first elements of this rank's memory.
fn own<E: Networked, const N: usize>(rank: &E) -> [f64; N] {
    core::array::from_fn(|index| {
        let mut bytes = [0; 8];
        rank.load(8 * index, &mut bytes);
        f64::from_ne_bytes(bytes)
    })
}

pub fn an_accumulate_changes_its_elements_and_no_others<E: Networked>(rank: &E) {
    let (peer, side, memory) = next(rank);
    let (operands, more) = ([1.5, 2.5], [10.0]);
    for _ in 0..2 {
        let runs = [run(memory, 8, &operands, None), run(memory, 32, &more, None)];
        // SAFETY: inside of the memory; the operands stay.
        unsafe { side.accumulate(&atomic(sum(Basic::F64), memory, &runs)) }.unwrap();
    }
    peer.flush().unwrap();
    rank.meet();
    assert_eq!(own(rank), [0.0, 3.0, 5.0, 0.0, 20.0, 0.0]);
}

pub fn results_are_what_the_elements_were<E: Networked>(rank: &E) {
    let (peer, side, memory) = next(rank);
    for times in 0..3 {
        let (operands, mut old) = ([2f64; 3], [7f64; 3]);
        let runs = [run(memory, 16, &operands, Some(&mut old))];
        // SAFETY: inside of the memory; the buffers stay.
        unsafe { side.accumulate(&atomic(sum(Basic::F64), memory, &runs)) }.unwrap();
        peer.flush_local().unwrap();
        assert_eq!(old, [2.0 * f64::from(times); 3]);
    }
    rank.meet();
}

/// All ranks add to neighbouring elements of one rank at once, which itself does so by its
/// processor.
pub fn no_sum_of_any_rank_is_lost<E: Networked>(rank: &E) {
    let (peer, side, memory) = side(rank, 0);
    let (float, int, double) = ([0.5f32], [1i32], [0.25f64]);
    let here = |at: usize| ptr::with_exposed_provenance_mut::<u8>(memory.at as usize + at);
    for round in 0..ALL {
        let sums = [
            (Basic::F32, run(memory, 0, &float, None)),
            (Basic::I32, run(memory, 4, &int, None)),
            (Basic::F64, run(memory, 8, &double, None)),
        ];
        for (basic, run) in sums {
            let at = Remote { at: run.there, ..memory };
            // SAFETY: inside of the memory, and all change it by atomic instructions.
            unsafe {
                match round % 2 {
                    0 => side.accumulate(&atomic(sum(basic), memory, &[run])).unwrap(),
                    _ => side.accumulate_one(sum(basic), at, run.operands).unwrap(),
                }
                if rank.rank() == 0 {
                    let to = here((run.there - memory.at) as usize);
                    reduce::accumulate(Op::Sum, basic, to, run.operands, None, 1);
                }
            }
        }
    }
    peer.flush().unwrap();
    rank.meet();
    if rank.rank() == 0 {
        let times = f64::from(ALL * (RANKS + 1));
        let mut bytes = [0; 8];
        rank.load(0, &mut bytes);
        let halves = [0, 4].map(|at| bytes[at..at + 4].try_into().unwrap());
        assert_eq!(f64::from(f32::from_ne_bytes(halves[0])), times / 2.0);
        assert_eq!(i32::from_ne_bytes(halves[1]), times as i32);
        assert_eq!(own::<E, 2>(rank)[1], times / 4.0);
    }
    rank.meet();
}

pub fn accumulates_take_effect_in_their_order<E: Networked>(rank: &E) {
    let (peer, side, memory) = next(rank);
    let replace = Reduction::new(Op::Replace, Basic::I64).unwrap();
    for round in 0..20i64 {
        let (new, one, mut old) = ([100 * round], [1i64], [0i64]);
        let mut got = [0i64];
        // SAFETY: inside of the memory; the buffers stay.
        unsafe {
            side.accumulate(&atomic(replace, memory, &[run(memory, 0, &new, None)])).unwrap();
            peer.post(memory, 1).unwrap();
            let runs = [run(memory, 0, &one, Some(&mut old))];
            side.accumulate(&atomic(sum(Basic::I64), memory, &runs)).unwrap();
            peer.get(got.as_mut_ptr().cast(), memory, 8).unwrap();
        }
        peer.flush().unwrap();
        assert_eq!((old[0], got[0]), (100 * round + 1, 100 * round + 2));
    }
    rank.meet();
}

/// Operands that are sent from their place, results that arrive while operands leave, elements
/// that are not aligned, and what only reads.
pub fn long_accumulates_arrive_in_parts<E: Networked>(rank: &E) {
    let (peer, side, memory) = next(rank);
    let count = 3 * OPERANDS_COPIED_MAX as usize / 8 + 5;
    let operands: Vec<f64> = (0..count).map(|index| index as f64).collect();
    let mut old = vec![1.0; count];
    let within = memory;
    for (round, at) in [8, 8, 13, 13].into_iter().enumerate() {
        let runs = [run(memory, at, &operands, Some(&mut old))];
        let protection = [Protection::Atomic, Protection::Locked][usize::from(at == 13)];
        let call = AccumulateAt {
            what: sum(Basic::F64),
            protection,
            within,
            runs: ElementRuns::Listed(&runs),
        };
        // SAFETY: inside of the memory, which no other rank changes; the buffers stay.
        unsafe { side.accumulate(&call) }.unwrap();
        peer.flush_local().unwrap();
        if round % 2 == 1 {
            assert!(old == operands, "round {round}");
        }
        let clear = Reduction::new(Op::Replace, Basic::U8).unwrap();
        let zeros = vec![0u8; 8 * count];
        if round == 1 {
            let runs = [run(memory, at, &zeros, None)];
            // SAFETY: inside of the memory, which no other rank changes; the buffers stay.
            unsafe { side.accumulate(&atomic(clear, memory, &runs)) }.unwrap();
            peer.flush().unwrap();
        }
    }
    let read = Reduction::new(Op::NoOp, Basic::F64).unwrap();
    let runs = [Elements { operands: ptr::null(), ..run(memory, 13, &operands, Some(&mut old)) }];
    let protection = Protection::Locked;
    // SAFETY: inside of the memory, which no other rank changes; there are no operands.
    unsafe {
        side.accumulate(&AccumulateAt {
            what: read,
            protection,
            within,
            runs: ElementRuns::Listed(&runs),
        })
    }
    .unwrap();
    peer.flush().unwrap();
    assert!(old.iter().zip(&operands).all(|(old, operand)| *old == 2.0 * operand));
    rank.meet();
}

/// Results of calls that follow each other without a wait, on one word and on many, between puts
/// and gets: each is what its word held after the calls before it.
pub fn many_results_arrive_at_one_local_flush<E: Networked>(rank: &E) {
    const MANY: usize = 1500; // more than a queue has places
    let (peer, side, memory) = next(rank);
    let counter = |index: usize| 8 * (index % 3);
    let put_at = |index: usize| memory.offset(8 * (64 + index as i64 % 64));
    let (one, mut old, mut swapped) = ([1i64], vec![-1i64; MANY], vec![[0xffu8; 8]; MANY]);
    let mut got = vec![u64::MAX; MANY];
    for index in 0..MANY {
        let runs = [run(memory, counter(index), &one, Some(&mut old[index..=index]))];
        let width = 1u8 << (index % 4);
        let word = memory.offset(8 * (8 + i64::from(width)));
        let now = (index / 4) as u64 & 0x7f;
        let value = index as u64;
        // SAFETY: inside of the memory; the buffers stay.
        unsafe {
            side.accumulate(&atomic(sum(Basic::I64), memory, &runs)).unwrap();
            peer.put(put_at(index), (&raw const value).cast(), 8).unwrap();
            let result = swapped[index].as_mut_ptr();
            let next = (index / 4 + 1) as u64 & 0x7f;
            side.compare_and_swap((word, width), (now, next), result).unwrap();
            peer.get(got[index..].as_mut_ptr().cast(), put_at(index), 8).unwrap();
        }
    }
    peer.flush_local().unwrap();
    for index in 0..MANY {
        assert_eq!(old[index], (index / 3) as i64);
        assert_eq!(got[index], index as u64);
        let width = 1 << (index % 4);
        let mut wanted = [0xff; 8];
        wanted[..width].copy_from_slice(&((index / 4) & 0x7f).to_le_bytes()[..width]);
        assert_eq!(swapped[index], wanted, "a swap of {width} bytes changes as many of the result");
    }
    peer.flush().unwrap();
    rank.meet();
}

/// The words of this rank's memory.
fn own_words<E: Networked>(rank: &E) -> *const AtomicU64 {
    let (.., memory) = side(rank, rank.rank());
    ptr::with_exposed_provenance(memory.at as usize)
}

/// Each rank changes several elements of its neighbour under a lock, many times and without a wait,
/// while the neighbour does the same at times when it holds the lock itself.
pub fn what_follows_the_request_for_a_lock_waits_for_it<E: Networked>(rank: &E) {
    const CALLS: usize = 200;
    let (peer, side, memory) = next(rank);
    let lock = LockAt {
        at: memory.offset(8 * LOCK_WORD as i64),
        take: (0, 1),
        release: 1u64.wrapping_neg(),
    };
    // More runs than there are in a chain.
    let (operands, mut old) = ([1.0f64; 40], vec![[7.0f64; 40]; CALLS]);
    for old in &mut old {
        let result = old.as_mut_ptr();
        let each = |index: usize| Elements {
            result: Some(result.wrapping_add(index).cast()),
            ..run(memory, 8 * (index % 2), &operands[index..=index], None)
        };
        let runs: Vec<Elements> = (0..40).map(each).collect();
        let call = AccumulateAt {
            what: sum(Basic::F64),
            protection: Protection::Alone,
            within: memory,
            runs: ElementRuns::Listed(&runs),
        };
        let _turn = side.locking().lock();
        side.take_lock(lock).unwrap();
        // SAFETY: inside of the memory; the buffers stay.
        unsafe { side.accumulate(&call) }.unwrap();
        side.release_lock(lock).unwrap();
    }
    // The same by this process, at its own memory, between the requests of the other neighbour.
    let here = own_words(rank);
    // SAFETY: a word of the memory of this rank, which lives as long.
    let word = |index: usize| unsafe { &*here.wrapping_add(index) };
    let mut taken = 0;
    while taken < CALLS {
        // Acquire and Release: as the requests of the other side.
        let free = word(LOCK_WORD).compare_exchange(0, 1, Ordering::Acquire, Ordering::Relaxed);
        if free.is_err() {
            std::thread::yield_now();
            continue;
        }
        for at in [0, 1] {
            let value = f64::from_bits(word(at).load(Ordering::Relaxed));
            std::thread::yield_now();
            word(at).store((value + 1.0).to_bits(), Ordering::Relaxed);
        }
        word(LOCK_WORD).fetch_sub(1, Ordering::Release);
        taken += 1;
    }
    peer.flush().unwrap();
    for old in &old {
        let steps = (0..40).all(|at| old[at] == old[at % 2] + (at / 2) as f64);
        assert!(steps && old[0] == old[1], "another call came between the elements of one");
    }
    rank.meet();
    assert_eq!(peer.read(lock.at).unwrap(), 0, "it was released");
    assert_eq!(own(rank), [(21 * CALLS) as f64; 2]);
    rank.meet();
}

/// Puts of all lengths under one lock and under two, more of them than there are in a chain.
pub fn puts_under_locks_are_done_if_all_locks_are_free<E: Networked>(rank: &E) {
    const COUNT: usize = 40;
    let (peer, side, memory) = next(rank);
    let word = |index: usize| memory.offset(8 * (LOCK_WORD + index) as i64);
    let lock = |index| LockAt { at: word(index), take: (0, 1), release: 1u64.wrapping_neg() };
    let (both, one) = ([lock(0), lock(1)], [lock(0)]);
    let read = || [0, 1].map(|index| peer.read(word(index)).unwrap());
    let bytes: Vec<u8> = (0..OPERANDS_COPIED_MAX).map(|index| (index % 251) as u8 + 1).collect();
    let put = |at: usize, length: u64| {
        let to = memory.offset(at as i64);
        PutAt { to, from: bytes.as_ptr(), bytes: length }
    };
    let long = put(16 * COUNT, OPERANDS_COPIED_MAX);
    let puts: Vec<PutAt> = (0..COUNT).map(|at| put(16 * at, 9)).chain([long]).collect();
    // SAFETY: inside of the memory; the bytes stay.
    let under = |puts: &[PutAt], locks: &[LockAt], release| unsafe {
        side.put_under(puts, locks, release).unwrap()
    };
    let got = |at: usize| {
        let mut got = [0u8; 16];
        // SAFETY: inside of the memory; the flush ends the use of the bytes.
        unsafe { peer.get(got.as_mut_ptr(), memory.offset(at as i64), 16).unwrap() };
        peer.flush().unwrap();
        got
    };
    let end = 16 * COUNT + OPERANDS_COPIED_MAX as usize - 16;
    for held in [0, 1] {
        peer.fetch(word(held), Fetch::Add(1)).unwrap();
        let before = under(&puts, &both, true).taken;
        assert_eq!(before[..=held], [0, 1][1 - held..], "lock {held} is held");
        assert_eq!([got(0), got(16 * (COUNT - 1)), got(end)], [[0; 16]; 3]);
        assert_eq!(read(), [1, held as u64], "the one before it stays taken");
        peer.fetch(word(0), Fetch::Add(1u64.wrapping_neg())).unwrap();
        peer.fetch(word(held), Fetch::Add((held as u64).wrapping_neg())).unwrap();
    }
    assert_eq!((under(&[], &one, true).taken[0], read()), (0, [0, 0]));
    assert_eq!((under(&puts[..1], &one, false).taken[0], read()), (0, [1, 0]));
    assert!(peer.is_idle(), "all puts are known to be done");
    assert_eq!(got(0)[..10], [1, 2, 3, 4, 5, 6, 7, 8, 9, 0]);
    peer.fetch(word(0), Fetch::Add(1u64.wrapping_neg())).unwrap();
    let answers = under(&puts, &both, true);
    assert_eq!((answers.taken, answers.released, read()), ([0, 0], [1, 1], [0, 0]));
    assert_eq!(got(16 * (COUNT - 1))[..10], [1, 2, 3, 4, 5, 6, 7, 8, 9, 0]);
    assert_eq!(got(end), bytes[bytes.len() - 16..]);
    rank.meet();
}

/// All ranks swap words of each width in one rank's memory; one of them wins each.
pub fn one_swap_of_each_width_wins<E: Networked>(rank: &E) {
    let (peer, side, memory) = side(rank, 0);
    let mut won = 0;
    for (index, width) in [1u8, 2, 4, 8].into_iter().enumerate() {
        let at = memory.offset(8 * index as i64 + i64::from(8 - width));
        let new = u64::from(rank.rank()) + 1;
        let [mut before, mut now] = [0u64; 2];
        for result in [&mut before, &mut now] {
            let result = ptr::from_mut(result).cast();
            // SAFETY: inside of the memory; the results stay.
            unsafe { side.compare_and_swap((at, width), (0, new), result) }.unwrap();
        }
        peer.flush_local().unwrap();
        won += u64::from(before == 0);
        assert!((1..=u64::from(RANKS)).contains(&now), "{width} bytes: {now}");
        assert!(before == 0 || before == now);
    }
    let wins = memory.offset(8 * LOCK_WORD as i64);
    peer.fetch(wins, Fetch::Add(won)).unwrap();
    rank.meet();
    assert_eq!(peer.read(wins).unwrap(), 4);
    rank.meet();
}

/// Bytes of a block.
type Block = (usize, usize, usize);

/// The blocks of a portion: byte of this process, byte of the memory, length.
fn blocks_of(portion: Portion<'_>) -> Vec<Block> {
    let place = |offsets: Offsets<'_>, n: usize| match offsets {
        Offsets::Every { first, stride } => (first + n as i64 * stride) as usize,
        Offsets::Listed { places, base, .. } => (places[n] + base) as usize,
    };
    match portion {
        Portion::Strip(Strip { here, there, bytes, blocks, here_stride, there_stride }) => {
            let every = |first, stride| Offsets::Every { first, stride };
            let (here, there) = (every(here, here_stride), every(there, there_stride));
            blocks_of(Portion::Scattered(Scattered { here, there, bytes, blocks }))
        }
        Portion::Scattered(Scattered { here, there, bytes, blocks }) => {
            let block = |n| (place(here, n), place(there, n), bytes as usize);
            (0..blocks as usize).map(block).collect()
        }
    }
}

/// Places that no rule gives, at multiples of eight in some bytes, so that no two blocks touch.
fn irregular(count: usize, apart: i64) -> Vec<i64> {
    (0..count as i64).map(|n| n * apart + 8 * (n * n % 3)).collect()
}

/// Portions of each kind, whose blocks do not overlap: short and long blocks, few and many, with
/// distances of either sign, and more of them than one request has. All are elements of 8 bytes.
fn all_portions<'a>(places: &'a [i64], others: &'a [i64]) -> Vec<Portion<'a>> {
    let strip = |here, there, bytes, blocks, here_stride, there_stride| {
        Portion::Strip(Strip { here, there, bytes, blocks, here_stride, there_stride })
    };
    let listed = |places: &'a [i64], base| Offsets::Listed { places, base, bits: 0 };
    let every = |first, stride| Offsets::Every { first, stride };
    let scattered = |here, there| {
        let blocks = places.len() as u64;
        Portion::Scattered(Scattered { here, there, bytes: 8, blocks })
    };
    vec![
        strip(0, 0, 8, 1, 0, 0),
        strip(8, 16, 8, 1040, 8, 16),
        strip(8400, 18_544, 16, 60, 40, -32),
        strip(10_800, 18_576, 4104, 2, 5000, 4200),
        strip(20_000, 26_880, 24, 3, 24, 24),
        scattered(every(20_104, 8), listed(others, 26_960)),
        scattered(listed(places, 20_600), every(28_424, 16)),
        scattered(listed(places, 22_600), listed(others, 29_384)),
    ]
}

/// Bytes on either side of the portions.
const PORTIONS_BYTES: usize = 31_000;

pub fn portions_arrive_and_nothing_around_them<E: Networked>(rank: &E) {
    let (peer, side, memory) = next(rank);
    let (places, others) = (irregular(60, 32), irregular(60, 24));
    let portions = all_portions(&places, &others);
    let each = |work: &mut dyn FnMut(Portion<'_>)| portions.iter().for_each(|each| work(*each));
    let mut here: Vec<u8> = (0..PORTIONS_BYTES).map(|at| (at % 251) as u8 + 1).collect();
    let sent = Portions { there: memory, here: here.as_mut_ptr(), each: &each };
    // SAFETY: inside of the memory and of the buffer, which stays.
    unsafe { side.transfer(Way::Put, &sent) }.unwrap();
    peer.flush().unwrap();
    rank.meet();
    let mut wanted = vec![0; PORTIONS_BYTES];
    for (from, to, bytes) in portions.iter().flat_map(|portion| blocks_of(*portion)) {
        wanted[to..to + bytes].copy_from_slice(&here[from..from + bytes]);
    }
    let mut now = vec![0; PORTIONS_BYTES];
    rank.load(0, &mut now);
    assert!(now == wanted, "what was put");
    let mut back = vec![0; PORTIONS_BYTES];
    let asked = Portions { here: back.as_mut_ptr(), ..sent };
    // SAFETY: inside of the memory and of the buffer, which stays.
    unsafe { side.transfer(Way::Get, &asked) }.unwrap();
    peer.flush_local().unwrap();
    let mut wanted = vec![0; PORTIONS_BYTES];
    for (to, _, bytes) in portions.iter().flat_map(|portion| blocks_of(*portion)) {
        wanted[to..to + bytes].copy_from_slice(&here[to..to + bytes]);
    }
    assert!(back == wanted, "what was got");
    rank.meet();
}

pub fn portions_are_combined_and_answered<E: Networked>(rank: &E) {
    let (peer, side, memory) = next(rank);
    let (places, others) = (irregular(60, 32), irregular(60, 24));
    let portions = all_portions(&places, &others);
    let each = |work: &mut dyn FnMut(Portion<'_>)| portions.iter().for_each(|each| work(*each));
    let mut numbers: Vec<u64> = (1..=PORTIONS_BYTES as u64 / 8).collect();
    let mut old = vec![7u64; PORTIONS_BYTES / 8];
    let operands = Portions { there: memory, here: numbers.as_mut_ptr().cast(), each: &each };
    for round in 0..2 {
        let what = sum(Basic::U64);
        let result = (round == 1).then_some(old.as_mut_ptr().cast());
        let runs = ElementRuns::Portions { operands, result };
        let protection = [Protection::Locked, Protection::Atomic][round];
        let call = AccumulateAt { what, protection, within: memory, runs };
        // SAFETY: inside of the memory and of the buffers, which stay.
        unsafe { side.accumulate(&call) }.unwrap();
    }
    peer.flush().unwrap();
    rank.meet();
    let mut wanted = vec![0; PORTIONS_BYTES];
    let mut fetched = vec![7u64; PORTIONS_BYTES / 8];
    for (from, to, bytes) in portions.iter().flat_map(|portion| blocks_of(*portion)) {
        for at in (0..bytes).step_by(8) {
            let number = numbers[(from + at) / 8];
            wanted[to + at..to + at + 8].copy_from_slice(&(2 * number).to_ne_bytes());
            fetched[(from + at) / 8] = number;
        }
    }
    let mut now = vec![0; PORTIONS_BYTES];
    rank.load(0, &mut now);
    assert!(now == wanted, "the sums");
    assert!(old == fetched, "the old elements");
    rank.meet();
}
