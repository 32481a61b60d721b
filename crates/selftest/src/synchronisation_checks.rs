//! Checks of the three ways to synchronise, with their variants (MPI-4.1 §12.5): each rank writes
//! to the next one, and looks at what the previous one wrote.

use crate::job_rank::call;
use crate::tested_window::TestedWindow;
use fompi_datatype::reduce::Op;
use fompi_host::handle::Handle;
use std::thread;

/// The number that a rank writes.
fn mark(rank: i32, at: i64) -> i64 {
    1000 + 100 * i64::from(rank) + at
}

/// Fences with each assertion, around puts, gets and accumulates.
pub fn fence(window: &TestedWindow) -> Option<&'static str> {
    let (rank, next, me) = (window.rank, window.next(), window.ranks.me);
    let constants = &rank.mpi.constants;
    window.reset();
    window.fence(constants.mode_noprecede);
    window.put(&[mark(me, 0), mark(me, 1)], next, 0);
    window.accumulate(&[3], next, 2, Op::Sum);
    window.fence(0);
    rank.expect("put", mark(window.previous(), 0), window.own(0));
    rank.expect("put", mark(window.previous(), 1), window.own(1));
    rank.expect("accumulate", 3, window.own(2));
    let mut got = [0; 3];
    window.fence(constants.mode_nostore | constants.mode_noput);
    window.get(&mut got, next, 0);
    window.fence(constants.mode_nosucceed | constants.mode_nostore | constants.mode_noput);
    rank.expect("get", [mark(me, 0), mark(me, 1), 3], got);
    None
}

/// The group of one rank of a window.
fn group_of(window: &TestedWindow, member: i32) -> Handle {
    let (mut all, mut one) = (0, 0);
    call!(window.rank, win_get_group(window.win, &mut all));
    call!(window.rank, more.group_incl(all, 1, &member, &mut one));
    call!(window.rank, group_free(&mut all));
    one
}

/// Post, start, complete and wait, or test in place of wait.
pub fn post_start(window: &TestedWindow) -> Option<&'static str> {
    let (rank, me) = (window.rank, window.ranks.me);
    window.reset();
    let (mut origin, mut target) =
        (group_of(window, window.previous()), group_of(window, window.next()));
    for (slot, tests) in [(0, false), (1, true)] {
        let assertions = if tests { rank.mpi.constants.mode_nostore } else { 0 };
        call!(rank, win_post(origin, assertions, window.win));
        call!(rank, win_start(target, 0, window.win));
        window.put(&[mark(me, 7)], window.next(), slot);
        call!(rank, win_complete(window.win));
        let mut is_done = 0;
        while tests && is_done == 0 && call!(rank, win_test(window.win, &mut is_done)) {
            thread::yield_now();
        }
        if !tests {
            call!(rank, win_wait(window.win));
        }
        rank.expect("put", mark(window.previous(), 7), window.own(slot));
    }
    call!(rank, group_free(&mut origin));
    call!(rank, group_free(&mut target));
    None
}

/// An exclusive lock keeps others out: no increment by get and put is lost.
pub fn exclusive_lock(window: &TestedWindow) -> Option<&'static str> {
    const TURNS: i64 = 10;
    window.reset();
    for _ in 0..TURNS {
        let mut value = [i64::MIN];
        window.lock_exclusive(0);
        window.get(&mut value, 0, 0);
        window.flush(0);
        // SAFETY: a local array, which the call has written.
        let seen = unsafe { (&raw const value[0]).read_volatile() };
        window.put(&[seen + 1], 0, 0);
        window.unlock(0);
    }
    window.barrier();
    if window.ranks.me == 0 {
        let expected = TURNS * i64::from(window.ranks.ranks);
        window.rank.expect("win_lock", [expected], window.own_slots(0));
    }
    None
}

/// Shared locks of several origins.
pub fn shared_lock(window: &TestedWindow) -> Option<&'static str> {
    let rank = window.rank;
    window.reset();
    let slot = usize::try_from(window.ranks.me).unwrap_or(0) % 32;
    window.lock_shared(0);
    window.put(&[mark(window.ranks.me, 1)], 0, slot);
    window.unlock(0);
    window.barrier();
    let mut got = [0];
    window.lock_shared(0);
    window.get(&mut got, 0, slot);
    window.unlock(0);
    if window.ranks.ranks <= 32 {
        rank.expect("win_lock", [mark(window.ranks.me, 1)], got);
    }
    None
}

/// Locks of all ranks, with all kinds of flushes.
pub fn lock_all(window: &TestedWindow) -> Option<&'static str> {
    let (rank, next, me) = (window.rank, window.next(), window.ranks.me);
    window.reset();
    window.lock_all();
    for target in 0..window.ranks.ranks.min(8) {
        window.accumulate(&[1], target, 0, Op::Sum);
    }
    window.put(&[mark(me, 1)], next, 1);
    call!(rank, win_flush_local(next, window.win));
    window.put(&[mark(me, 2)], next, 2);
    call!(rank, win_flush_local_all(window.win));
    call!(rank, win_flush_all(window.win));
    let mut got = [0; 2];
    window.get(&mut got, next, 1);
    window.flush(next);
    rank.expect("win_flush", [mark(me, 1), mark(me, 2)], got);
    window.barrier();
    call!(rank, win_sync(window.win));
    let sum = if me < 8 { i64::from(window.ranks.ranks) } else { 0 };
    rank.expect("win_flush_all", sum, window.own(0));
    rank.expect("win_sync", mark(window.previous(), 1), window.own(1));
    rank.expect("win_sync", mark(window.previous(), 2), window.own(2));
    window.unlock_all();
    None
}

/// Locks that the program promises to be free (MPI_MODE_NOCHECK). The last check, as MPICH takes
/// no further lock of such a window.
pub fn free_locks(window: &TestedWindow) -> Option<&'static str> {
    let (rank, next, me) = (window.rank, window.next(), window.ranks.me);
    let constants = &rank.mpi.constants;
    window.reset();
    call!(rank, win_lock(constants.lock_exclusive, next, constants.mode_nocheck, window.win));
    window.put(&[mark(me, 3)], next, 0);
    window.unlock(next);
    window.barrier();
    call!(rank, win_lock_all(constants.mode_nocheck, window.win));
    let found = window.fetch_and_op(0, next, 0, Op::NoOp);
    window.unlock_all();
    rank.expect("fetch_and_op", mark(me, 3), found);
    None
}
