//! Times of operations from rank 0 to the last rank of a window, and of fences.

use crate::hang_watch;
use crate::job_rank::number;
use crate::job_report::Speed;
use crate::tested_window::{BULK_SLOTS, SLOTS, TestedWindow};
use fompi_datatype::reduce::Op;
use std::cell::Cell;
use std::ffi::c_void;
use std::time::{Duration, Instant};

/// Repeats of an operation: at most, and at least whatever time they take.
const REPEATS_MAX: usize = 1000;
const REPEATS_MIN: usize = 5;
/// The time for one operation.
const TIME: Duration = Duration::from_millis(100);
/// Operations that take fewer seconds are measured in batches.
const QUICK: f64 = 1e-5;
const BATCH: u32 = 100;
/// The elements of a large accumulate. Some devices need a request for each element.
const SUMS: usize = BULK_SLOTS / 16;
/// Fences; all ranks call the same number.
const FENCES: usize = 50;

/// An operation on a number of elements, with its epoch or its flush.
type Operation<'a> = (&'static str, usize, &'a dyn Fn());

/// Measures on a window, and adds the results to the report.
pub fn measure(window: &TestedWindow) -> Option<&'static str> {
    window.reset();
    let bulk = vec![1_i64; BULK_SLOTS];
    if window.ranks.me == 0 {
        one_sided(window, &bulk);
    }
    window.barrier();
    let times = (0..FENCES).map(|_| timed(1, &|| window.fence(0))).collect();
    window.fence(window.rank.mpi.constants.mode_nosucceed);
    add(window, "fence", 0, times);
    None
}

/// Calls a function as often as it is measured: without a note of the call, and with a note of an
/// error. `SAFETY`: pointers among the arguments are to memory as large as the counts say, which
/// lives until the operation is complete.
macro_rules! quick {
    ($window:ident, $errors:ident, $function:ident($($argument:expr),*)) => {{
        // SAFETY: as the macro demands.
        let code = unsafe { ($window.rank.mpi.call.$function)($($argument),*) };
        if code != 0 {
            $errors.set(code);
        }
    }};
}

fn one_sided(window: &TestedWindow, bulk: &[i64]) {
    let (target, word, win) = (window.ranks.ranks - 1, window.rank.word, window.win);
    let (sum, at) = (window.rank.mpi.op(Op::Sum), window.at(target, SLOTS));
    let (mut here, value, errors) = (vec![0_i64; BULK_SLOTS], 1_i64, Cell::new(0));
    let (from, one) = (bulk.as_ptr().cast(), (&raw const value).cast());
    let to: *mut c_void = here.as_mut_ptr().cast();
    let flush = || quick!(window, errors, win_flush(target, win));
    let put = |count| {
        quick!(window, errors, put(from, count, word, target, at, count, word, win));
        flush();
    };
    let get = |count| {
        quick!(window, errors, get(to, count, word, target, at, count, word, win));
        flush();
    };
    let accumulate = |count| {
        quick!(window, errors, accumulate(from, count, word, target, at, count, word, sum, win));
        flush();
    };
    let fetch_and_op = || {
        quick!(window, errors, fetch_and_op(one, to, word, target, at, sum, win));
        flush();
    };
    let compare_and_swap = || {
        quick!(window, errors, compare_and_swap(one, one, to, word, target, at, win));
        flush();
    };
    let many = number(BULK_SLOTS);
    let operations: [Operation; 8] = [
        ("put", 1, &|| put(1)),
        ("get", 1, &|| get(1)),
        ("accumulate", 1, &|| accumulate(1)),
        ("fetch-and-op", 1, &fetch_and_op),
        ("compare-and-swap", 1, &compare_and_swap),
        ("put", BULK_SLOTS, &|| put(many)),
        ("get", BULK_SLOTS, &|| get(many)),
        ("accumulate", SUMS, &|| accumulate(number(SUMS))),
    ];
    window.lock_all();
    for (name, count, operation) in operations {
        add(window, name, 8 * count, repeated(operation));
        window.rank.end(&name.replace("-and-", "_and_"), errors.take());
    }
    window.unlock_all();
    let lock = window.rank.mpi.constants.lock_exclusive;
    let times = repeated(&|| {
        quick!(window, errors, win_lock(lock, target, 0, win));
        quick!(window, errors, put(one, 1, word, target, at, 1, word, win));
        quick!(window, errors, win_unlock(target, win));
    });
    add(window, "lock-put-unlock", 8, times);
    window.rank.end("win_lock", errors.take());
}

/// The time of one of several operations.
fn timed(batch: u32, operation: &dyn Fn()) -> f64 {
    let start = Instant::now();
    (0..batch).for_each(|_| operation());
    start.elapsed().as_secs_f64() / f64::from(batch)
}

/// Measures an operation, a quick one in batches: the clock takes as long as that.
fn repeated(operation: &dyn Fn()) -> Vec<f64> {
    let (start, mut times) = (Instant::now(), Vec::new());
    timed(1, operation);
    let batch = if timed(1, operation) < QUICK { BATCH } else { 1 };
    while times.len() < REPEATS_MIN || times.len() < REPEATS_MAX && start.elapsed() < TIME {
        times.push(timed(batch, operation));
    }
    times
}

fn add(window: &TestedWindow, operation: &str, bytes: usize, mut times: Vec<f64>) {
    times.sort_by(f64::total_cmp);
    let (least, median) = (times[0], times[times.len() / 2]);
    let (operation, transport) = (operation.to_owned(), window.transport.clone());
    let speed = Speed { operation, transport, bytes, least, median };
    hang_watch::report(|report| report.speeds.push(speed));
}
