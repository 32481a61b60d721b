//! Checks that no update of an accumulate is lost: of one element, which a processor or a device
//! changes in one step, and of several, under the lock of the target (MPI-4.1 §12.7.1). All ranks
//! update rank 0 at the same time. And progress while the target computes.

use crate::tested_window::TestedWindow;
use fompi_datatype::reduce::Op;
use std::hint;
use std::thread;
use std::time::{Duration, Instant};

const TURNS: i64 = 50;
/// The time after which a busy target counts as one that no rank reaches.
const BUSY: Duration = Duration::from_secs(5);

/// Updates of one element: each rank draws numbers, and adds by compare-and-swap.
pub fn single_elements(window: &TestedWindow) -> Option<&'static str> {
    let (rank, ranks) = (window.rank, i64::from(window.ranks.ranks));
    window.reset();
    window.lock_all();
    let mut last = -1;
    for _ in 0..TURNS {
        let drawn = window.fetch_and_op(1, 0, 0, Op::Sum);
        if !(last + 1..TURNS * ranks).contains(&drawn) {
            rank.fail("fetch_and_op", format!("a number above {last}"), drawn);
        }
        last = drawn;
    }
    let mut expected = 0;
    let mut turns = 0;
    while turns < TURNS {
        let found = window.compare_and_swap(expected, expected + 1, 0, 1);
        if !(0..TURNS * ranks).contains(&found) {
            rank.fail("compare_and_swap", format!("0 to {}", TURNS * ranks - 1), found);
            break;
        }
        (turns, expected) =
            if found == expected { (turns + 1, expected + 1) } else { (turns, found) };
    }
    window.unlock_all();
    window.barrier();
    if window.ranks.me == 0 {
        let sums: [i64; 2] = window.own_slots(0);
        rank.expect("fetch_and_op", TURNS * ranks, sums[0]);
        rank.expect("compare_and_swap", TURNS * ranks, sums[1]);
    }
    None
}

/// Updates of several elements, and of one of them meanwhile.
pub fn several_elements(window: &TestedWindow) -> Option<&'static str> {
    let (rank, ranks) = (window.rank, i64::from(window.ranks.ranks));
    let mut fetched = [0; 16];
    window.reset();
    window.lock_all();
    for _ in 0..TURNS {
        window.accumulate(&[1; 16], 0, 0, Op::Sum);
        window.get_accumulate(&[1; 16], &mut fetched, (0, 0), Op::Sum);
        window.accumulate(&[1], 0, 5, Op::Sum);
        window.flush(0);
    }
    window.unlock_all();
    window.barrier();
    if fetched[0] < 2 * TURNS - 1 || fetched[0] > 2 * TURNS * ranks {
        rank.fail("get_accumulate", format!("at least {}", 2 * TURNS - 1), fetched[0]);
    }
    if window.ranks.me == 0 {
        let mut expected = [2 * TURNS * ranks; 16];
        expected[5] += TURNS * ranks;
        rank.expect("accumulate", expected, window.own_slots(0));
    }
    None
}

/// The last rank computes and calls no MPI, while rank 0 writes to it and reads from it.
pub fn busy_target(window: &TestedWindow) -> Option<&'static str> {
    let target = window.ranks.ranks - 1;
    if target == 0 {
        return Some("it needs two ranks");
    }
    window.reset();
    if window.ranks.me == 0 {
        window.lock_exclusive(target);
        window.put(&[41], target, 0);
        window.unlock(target);
        window.lock_shared(target);
        let drawn = window.fetch_and_op(1, target, 0, Op::Sum);
        window.rank.expect("fetch_and_op", 41, drawn);
        window.put(&[1], target, 1);
        window.unlock(target);
    } else if window.ranks.me == target {
        let start = Instant::now();
        while window.own(1) == 0 && start.elapsed() < BUSY {
            // Ranks that share a core need it, too.
            (0..100).for_each(|_| hint::spin_loop());
            thread::yield_now();
        }
        if window.own(1) == 0 {
            let got = format!("none in {} s, as the target called no MPI", BUSY.as_secs());
            window.rank.fail("put", "progress", got);
        }
    }
    window.barrier();
    if window.ranks.me == target {
        window.rank.expect("fetch_and_op", [42], window.own_slots(0));
    }
    None
}
