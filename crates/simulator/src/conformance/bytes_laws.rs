//! The laws of bytes (10 to 16 of [`fompi_fabric::remote`]), as three ranks see them.

use super::ranks::{Exposing, RANKS};
use fompi_fabric::Way;
use fompi_fabric::remote::{Bytes, Remote, Runs};

/// The rank after this one, and the one after that.
fn next<E: Exposing>(rank: &E) -> (u32, u32) {
    ((rank.rank() + 1) % RANKS, (rank.rank() + 2) % RANKS)
}

/// Numbers that differ from their neighbours, from those of other seeds, and from zero.
fn pattern(seed: usize, bytes: usize) -> Vec<u8> {
    (0..bytes).map(|at| (at * 7 + at / 256 + 31 * seed) as u8 | 1).collect()
}

/// Offsets and lengths around words, pages and the blocks of transports, as far as a rank has
/// bytes.
fn places<E: Exposing>(rank: &E) -> impl Iterator<Item = (usize, usize)> {
    let all = rank.bytes();
    let starts = [0, 1, 3, 7, 8, 9, 4090, 4096];
    let lengths = [1, 2, 4, 7, 8, 9, 16, 40, 127, 129, 4096, 8191, 8192, 8193, 20_000];
    let pairs = starts.into_iter().flat_map(move |start| lengths.map(|bytes| (start, bytes)));
    // The simulator runs each case hundreds of times.
    let some = if all < 100 { 4 } else { 1 };
    pairs.filter(move |(start, bytes)| start + bytes <= all).step_by(some)
}

fn loaded<E: Exposing>(rank: &E) -> Vec<u8> {
    let mut all = vec![0; rank.bytes()];
    rank.load(0, &mut all);
    all
}

fn put<E: Exposing>(rank: &E, to: u32, at: usize, from: &[u8]) {
    let (peer, memory) = rank.reach(to);
    // SAFETY: the cases stay within the memory, and keep the bytes until a flush.
    unsafe { peer.put(memory.offset(at as i64), from.as_ptr(), from.len() as u64) }.unwrap();
}

fn get<E: Exposing>(rank: &E, to: &mut [u8], from: u32, at: usize) {
    let (peer, memory) = rank.reach(from);
    // SAFETY: the cases stay within the memory, and do not use the bytes until a flush.
    unsafe { peer.get(to.as_mut_ptr(), memory.offset(at as i64), to.len() as u64) }.unwrap();
}

fn got<E: Exposing>(rank: &E, from: u32, at: usize, bytes: usize) -> Vec<u8> {
    let mut to = vec![0; bytes];
    get(rank, &mut to, from, at);
    rank.reach(from).0.flush_local().unwrap();
    to
}

pub fn a_flushed_put_is_there_for_all_and_nothing_around_it<E: Exposing>(rank: &E) {
    let (target, other) = next(rank);
    for (seed, (start, bytes)) in places(rank).enumerate() {
        let before = loaded(rank);
        rank.meet();
        let from = pattern(3 * seed + rank.rank() as usize, bytes);
        put(rank, target, start, &from);
        rank.reach(target).0.flush().unwrap();
        rank.meet();
        let mut expected = before;
        expected[start..start + bytes].copy_from_slice(&pattern(3 * seed + other as usize, bytes));
        assert!(loaded(rank) == expected, "{bytes} bytes at {start}");
        let third = pattern(3 * seed + target as usize, bytes);
        assert!(got(rank, other, start, bytes) == third, "{bytes} bytes at {start}");
        rank.meet();
    }
}

pub fn a_get_arrives_by_a_local_flush_and_nothing_around_it<E: Exposing>(rank: &E) {
    let (target, _) = next(rank);
    rank.store(0, &pattern(rank.rank() as usize, rank.bytes()));
    rank.meet();
    let there = pattern(target as usize, rank.bytes());
    for (start, bytes) in places(rank) {
        let mut to = pattern(5, bytes + 16);
        get(rank, &mut to[8..8 + bytes], target, start);
        rank.reach(target).0.flush_local().unwrap();
        assert!(to[8..8 + bytes] == there[start..start + bytes], "{bytes} bytes at {start}");
        assert_eq!(to[..8], pattern(5, 8));
        assert_eq!(to[8 + bytes..], pattern(5, bytes + 16)[8 + bytes..]);
    }
    rank.meet();
}

pub fn the_bytes_of_a_put_may_be_changed_after_a_local_flush<E: Exposing>(rank: &E) {
    let (target, _) = next(rank);
    let bytes = rank.bytes();
    let mut from = pattern(1, bytes);
    put(rank, target, 0, &from);
    rank.reach(target).0.flush_local().unwrap();
    from.fill(0xee);
    rank.reach(target).0.flush().unwrap();
    rank.meet();
    assert!(loaded(rank) == pattern(1, bytes));
}

pub fn a_put_behind_an_order_is_the_one_that_stays<E: Exposing>(rank: &E) {
    let (target, _) = next(rank);
    let (bytes, puts) = (rank.bytes().min(800) / 8, rank.bytes().min(80) / 4);
    let all: Vec<Vec<u8>> = (0..puts).map(|seed| pattern(seed, bytes)).collect();
    for from in &all {
        rank.reach(target).0.order();
        put(rank, target, 5, from);
    }
    rank.reach(target).0.flush().unwrap();
    rank.meet();
    assert_eq!(loaded(rank)[5..5 + bytes], all[puts - 1]);
}

pub fn a_get_ahead_of_an_order_sees_what_was_there<E: Exposing>(rank: &E) {
    let (target, _) = next(rank);
    let bytes = rank.bytes().min(10_000);
    rank.store(0, &pattern(1, bytes));
    rank.meet();
    let (mut to, from) = (vec![0; bytes], pattern(2, bytes));
    get(rank, &mut to, target, 0);
    rank.reach(target).0.order();
    put(rank, target, 0, &from);
    rank.reach(target).0.flush().unwrap();
    assert!(to == pattern(1, bytes));
    rank.meet();
    assert!(loaded(rank)[..bytes] == from);
}

pub fn a_get_behind_an_order_sees_the_put<E: Exposing>(rank: &E) {
    let (target, _) = next(rank);
    for (seed, (start, bytes)) in places(rank).enumerate() {
        let (from, mut to) = (pattern(seed, bytes), vec![0; bytes]);
        put(rank, target, start, &from);
        rank.reach(target).0.order();
        get(rank, &mut to, target, start);
        rank.reach(target).0.flush().unwrap();
        assert!(to == from, "{bytes} bytes at {start}");
    }
    rank.meet();
}

pub fn no_bytes_are_no_transfer<E: Exposing>(rank: &E) {
    let (target, _) = next(rank);
    let (peer, nowhere) = (rank.reach(target).0, Remote { at: 1, key: 0 });
    // SAFETY: no bytes.
    unsafe {
        peer.put(nowhere, core::ptr::null(), 0).unwrap();
        peer.get(core::ptr::null_mut(), nowhere, 0).unwrap();
    }
    for way in [Way::Put, Way::Get] {
        // SAFETY: no runs.
        unsafe { peer.runs(nowhere, way).finish() }.unwrap();
    }
    peer.flush().unwrap();
    rank.meet();
    assert!(loaded(rank).iter().all(|byte| *byte == 0));
}

/// Distances of runs at the target and in this process, bytes of a run, and number of runs.
const RUNS: [(usize, usize, usize, usize); 5] =
    [(16, 8, 8, 200), (8, 16, 7, 200), (24, 9, 3, 300), (2048, 16, 16, 8), (9, 9, 5, 6)];

/// Moves runs; `here` is the start of the buffer.
fn transfer_runs<E: Exposing>(
    rank: &E,
    way: Way,
    here: *mut u8,
    (there_step, here_step, bytes, count): (usize, usize, usize, usize),
) {
    let (target, _) = next(rank);
    let (peer, memory) = rank.reach(target);
    let mut runs = peer.runs(memory, way);
    for index in 0..count {
        let (here, there) = (here.wrapping_add(index * here_step), index * there_step);
        // SAFETY: the callers' buffers and memories are large enough, and stay until the flush.
        unsafe { runs.push(here, memory.at + there as u64, bytes as u64) };
    }
    // SAFETY: as above.
    unsafe { runs.finish() }.unwrap();
    peer.flush().unwrap();
}

/// The shapes of [`RUNS`] that the memory of a rank has room for.
fn shapes<E: Exposing>(rank: &E) -> impl Iterator<Item = (usize, usize, usize, usize)> {
    let all = rank.bytes();
    RUNS.into_iter().filter(move |(step, _, bytes, count)| step * (count - 1) + bytes <= all)
}

pub fn the_runs_of_a_put_change_nothing_between_them<E: Exposing>(rank: &E) {
    for shape in shapes(rank) {
        let (there_step, here_step, bytes, count) = shape;
        rank.store(0, &vec![0; rank.bytes()]);
        rank.meet();
        let mut from = pattern(3, here_step * count + bytes);
        transfer_runs(rank, Way::Put, from.as_mut_ptr(), shape);
        rank.meet();
        let mut expected = vec![0; rank.bytes()];
        for index in 0..count {
            let run = &from[index * here_step..][..bytes];
            expected[index * there_step..][..bytes].copy_from_slice(run);
        }
        assert!(loaded(rank) == expected, "{shape:?}");
        rank.meet();
    }
}

pub fn the_runs_of_a_get_arrive_where_they_belong<E: Exposing>(rank: &E) {
    let there = pattern(4, rank.bytes());
    rank.store(0, &there);
    rank.meet();
    for shape in shapes(rank) {
        let (there_step, here_step, bytes, count) = shape;
        let mut to = vec![0; here_step * count + bytes];
        transfer_runs(rank, Way::Get, to.as_mut_ptr(), shape);
        let mut expected = vec![0; to.len()];
        for index in 0..count {
            let run = &there[index * there_step..][..bytes];
            expected[index * here_step..][..bytes].copy_from_slice(run);
        }
        assert!(to == expected, "{shape:?}");
    }
    rank.meet();
}

pub fn several_ranks_put_side_by_side<E: Exposing>(rank: &E) {
    let (me, ranks) = (rank.rank() as usize, RANKS as usize);
    let from = [me as u8 + 1; 1];
    for at in (me..rank.bytes().min(600)).step_by(ranks) {
        put(rank, 0, at, &from);
    }
    rank.reach(0).0.flush().unwrap();
    rank.meet();
    let expected = |at: usize| (at % ranks) as u8 + 1;
    let all = got(rank, 0, 0, rank.bytes().min(600));
    assert!(all.iter().enumerate().all(|(at, byte)| *byte == expected(at)));
    rank.meet();
}
