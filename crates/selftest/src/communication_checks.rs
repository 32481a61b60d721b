//! Checks of the communication calls and of the forms with a request (MPI-4.1 §12.3). Each rank
//! calls them with the next rank as the target, in epochs of a lock.

use crate::job_rank::call;
use crate::tested_window::TestedWindow;
use fompi_base::number::Number;
use fompi_datatype::reduce::{OPS, Op};

/// Puts and gets of one element, of many, of datatypes with gaps, and to MPI_PROC_NULL.
pub fn put_get(window: &TestedWindow) -> Option<&'static str> {
    let (rank, next) = (window.rank, window.next());
    let values_of = |rank: i32| -> [i64; 16] {
        let first = 100 * i64::from(rank);
        std::array::from_fn(|at| first + i64::try_from(at).unwrap_or(0))
    };
    let (values, from_previous) = (values_of(window.ranks.me), values_of(window.previous()));
    window.reset();
    let (mut column, null) = (0, rank.mpi.constants.proc_null);
    call!(rank, more.type_vector(4, 1, 2, rank.word, &mut column));
    call!(rank, more.type_commit(&mut column));
    let mut got = [[-1; 16]; 2];
    window.lock_exclusive(next);
    window.put(&values, next, 0);
    let (from, at) = (values.as_ptr().cast(), window.at(next, 20));
    call!(rank, put(from, 4, rank.word, next, at, 1, column, window.win));
    call!(rank, put(from, 4, rank.word, null, 0, 4, rank.word, window.win));
    window.flush(next);
    window.get(&mut got[0], next, 0);
    let to = got[1].as_mut_ptr().cast();
    call!(rank, get(to, 1, column, next, at, 1, column, window.win));
    window.unlock(next);
    window.barrier();
    let own: [i64; 28] = window.own_slots(0);
    rank.expect("get", values, got[0]);
    for at in 0..8 {
        let sent = at % 2 == 0 && at < 7;
        let (expected, here) = if sent { (from_previous[at / 2], values[at / 2]) } else { (0, -1) };
        rank.expect("put", expected, own[20 + at]);
        rank.expect("get", here, got[1][at]);
    }
    rank.expect("put", &from_previous[..], &own[..16]);
    call!(rank, type_free(&mut column));
    None
}

/// The four calls with a request.
pub fn requests(window: &TestedWindow) -> Option<&'static str> {
    let (rank, next, win) = (window.rank, window.next(), window.win);
    let (word, sum, at) = (rank.word, rank.mpi.op(Op::Sum), window.at(window.next(), 0));
    let (values, ones, mut got, mut fetched) = ([5_i64, 6], [1_i64, 1], [0_i64; 2], [0_i64; 2]);
    window.reset();
    window.lock_all();
    let mut request = 0;
    call!(rank, rput(values.as_ptr().cast(), 2, word, next, at, 2, word, win, &mut request));
    window.wait(request);
    window.flush(next);
    let from = ones.as_ptr().cast();
    call!(rank, raccumulate(from, 2, word, next, at, 2, word, sum, win, &mut request));
    window.wait(request);
    window.flush(next);
    let to = fetched.as_mut_ptr().cast();
    let made = call!(
        rank,
        rget_accumulate(from, 2, word, to, 2, word, next, at, 2, word, sum, win, &mut request)
    );
    if made {
        window.wait(request);
    }
    window.flush(next);
    call!(rank, rget(got.as_mut_ptr().cast(), 2, word, next, at, 2, word, win, &mut request));
    window.wait(request);
    window.unlock_all();
    window.barrier();
    rank.expect("rget_accumulate", [6, 7], fetched);
    rank.expect("rget", [7, 8], got);
    rank.expect("raccumulate", [7, 8], window.own_slots(0));
    None
}

/// The calls with counts of 64 bits.
pub fn large_counts(window: &TestedWindow) -> Option<&'static str> {
    let (rank, next, win) = (window.rank, window.next(), window.win);
    let (word, sum, at) = (rank.word, rank.mpi.op(Op::Sum), window.at(window.next(), 0));
    let call = &rank.mpi.call;
    let (Some(put), Some(get), Some(accumulate), Some(get_accumulate)) =
        (call.put_c, call.get_c, call.accumulate_c, call.get_accumulate_c)
    else {
        return Some("the MPI has none");
    };
    let (values, mut got, mut fetched) = ([5_i64, 6], [0_i64; 2], [0_i64; 2]);
    let from = values.as_ptr().cast();
    window.reset();
    window.lock_exclusive(next);
    rank.begin("put_c");
    // SAFETY: local arrays of two numbers, which live until the epoch ends.
    rank.end("put_c", unsafe { put(from, 2, word, next, at, 2, word, win) });
    window.flush(next);
    rank.begin("accumulate_c");
    // SAFETY: as above.
    rank.end("accumulate_c", unsafe { accumulate(from, 2, word, next, at, 2, word, sum, win) });
    let to = fetched.as_mut_ptr().cast();
    rank.begin("get_accumulate_c");
    // SAFETY: as above.
    let code = unsafe { get_accumulate(from, 2, word, to, 2, word, next, at, 2, word, sum, win) };
    rank.end("get_accumulate_c", code);
    window.flush(next);
    rank.begin("get_c");
    // SAFETY: as above.
    let code = unsafe { get(got.as_mut_ptr().cast(), 2, word, next, at, 2, word, win) };
    rank.end("get_c", code);
    window.unlock(next);
    rank.expect("get_accumulate_c", [10, 12], fetched);
    rank.expect("get_c", [15, 18], got);
    None
}

/// The result of an operation on the target's value and the origin's, as §12.3.4 orders them.
fn result(op: Op, target: i64, origin: i64) -> i64 {
    let logical = i64::from;
    match op {
        Op::Max => target.max(origin),
        Op::Min => target.min(origin),
        Op::Sum => target + origin,
        Op::Prod => target * origin,
        Op::Land => logical(target != 0 && origin != 0),
        Op::Band => target & origin,
        Op::Lor => logical(target != 0 || origin != 0),
        Op::Bor => target | origin,
        Op::Lxor => logical((target != 0) != (origin != 0)),
        Op::Bxor => target ^ origin,
        Op::Replace => origin,
        Op::NoOp => target,
        // Pairs of a value and an index, in the low and in the high half.
        Op::MaxLoc | Op::MinLoc => {
            let [target_value, origin_value] =
                [target, origin].map(|pair| pair.cast_unsigned().low_u32().cast_signed());
            if (origin_value > target_value) == (op == Op::MaxLoc) { origin } else { target }
        }
    }
}

/// Every predefined operation, on numbers or on pairs, and the sum of other types.
pub fn operations(window: &TestedWindow) -> Option<&'static str> {
    const TARGET: i64 = 6;
    const ORIGIN: i64 = 3;
    let (rank, next, win) = (window.rank, window.next(), window.win);
    let pair = rank.mpi.datatype("MPI_2INT");
    let (origin, mut fetched) = (ORIGIN, [-1; OPS.len()]);
    window.reset();
    window.lock_exclusive(next);
    for (slot, known) in OPS.iter().enumerate() {
        let is_pair = matches!(known.op, Op::MaxLoc | Op::MinLoc);
        let (kind, op) = (if is_pair { pair } else { rank.word }, rank.mpi.op(known.op));
        let (from, at) = ((&raw const origin).cast(), window.at(next, slot));
        window.put(&[TARGET], next, slot);
        window.flush(next);
        let to = (&raw mut fetched[slot]).cast();
        call!(rank, get_accumulate(from, 1, kind, to, 1, kind, next, at, 1, kind, op, win));
        window.flush(next);
        // MPI_NO_OP is for the calls that fetch (MPI-4.1 §12.3.4).
        if known.op != Op::NoOp {
            call!(rank, accumulate(from, 1, kind, next, at, 1, kind, op, win));
        }
    }
    window.unlock(next);
    other_types(window);
    window.barrier();
    let own: [i64; OPS.len()] = window.own_slots(0);
    for (slot, known) in OPS.iter().enumerate() {
        let named = |value: i64| (known.name, value);
        rank.expect("get_accumulate", named(TARGET), named(fetched[slot]));
        let expected = result(known.op, result(known.op, TARGET, ORIGIN), ORIGIN);
        rank.expect("accumulate", named(expected), named(own[slot]));
    }
    None
}

/// Sums of MPI_DOUBLE and MPI_INT, by accumulates and by fetching calls.
fn other_types(window: &TestedWindow) {
    let (rank, next, win) = (window.rank, window.next(), window.win);
    let (sum, at, behind) = (rank.mpi.op(Op::Sum), window.at(next, 40), window.at(next, 41));
    let (real, integer) = (rank.mpi.datatype("MPI_DOUBLE"), rank.mpi.datatype("MPI_INT"));
    let (half, seven, mut got_half, mut got_seven) = (0.5_f64, 7_i32, -1.0_f64, -1_i32);
    window.lock_exclusive(next);
    call!(rank, accumulate((&raw const half).cast(), 1, real, next, at, 1, real, sum, win));
    call!(
        rank,
        accumulate((&raw const seven).cast(), 1, integer, next, behind, 1, integer, sum, win)
    );
    window.flush(next);
    let (half_at, seven_at) = ((&raw mut got_half).cast(), (&raw mut got_seven).cast());
    call!(rank, fetch_and_op((&raw const half).cast(), half_at, real, next, at, sum, win));
    let from = (&raw const seven).cast();
    call!(rank, fetch_and_op(from, seven_at, integer, next, behind, sum, win));
    window.unlock(next);
    rank.expect("fetch_and_op", 0.5, got_half);
    rank.expect("fetch_and_op", 7, got_seven);
    window.barrier();
    let own: [i64; 2] = window.own_slots(40);
    rank.expect("accumulate", 1.0, f64::from_bits(own[0].cast_unsigned()));
    rank.expect("accumulate", 14, own[1].cast_unsigned().low_u32());
}
