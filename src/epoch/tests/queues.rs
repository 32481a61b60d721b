//! Fairness of locks on the simulator: who waits is not overtaken for ever.

use crate::epoch::layout::{self, LOCK, NODES_PER_RANK, REGIONS};
use crate::epoch::lock::{
    Held, lock_all, lock_exclusive, lock_shared, unlock_all, unlock_exclusive, unlock_shared,
};
use crate::epoch::regions::{Change, Table, change, hold, release};
use crate::fabric::sim::{Sim, every};
use crate::fabric::{Rank, WordAt, Words};
use std::cell::Cell;

const TARGET: Rank = Rank(1);

/// Whether node 0 of the rank is the head of the queue at a lock word.
fn is_head(sim: &Sim, at: WordAt, rank: Rank) -> bool {
    let id = 1 + u64::from(rank.0 * NODES_PER_RANK);
    sim.peek(at) & ((1 << 22) - 1) == id
}

/// Rank 0 takes a lock once; all others take theirs again and again, and who asks while rank 0
/// waits at the head of the queue must not enter before it.
fn one_against_many(
    at: WordAt,
    one: fn(&Sim),
    take: fn(&Sim),
    give: fn(&Sim),
) -> impl Fn(&Sim) + 'static {
    let entered = Cell::new(false);
    move |sim| {
        if sim.rank() == Rank(0) {
            one(sim);
            entered.set(true);
            return;
        }
        for _ in 0..8 {
            let behind = is_head(sim, at, Rank(0)) && !entered.get();
            take(sim);
            // Rank 0 releases before it says so: the word tells that it is through.
            assert!(!behind || entered.get() || !is_head(sim, at, Rank(0)), "overtaken");
            give(sim);
        }
    }
}

#[test]
fn a_writer_is_not_starved_by_readers() {
    let body = || {
        one_against_many(
            WordAt { rank: TARGET, word: LOCK },
            |sim| {
                lock_exclusive(sim, TARGET, Held::Nothing, 0).unwrap();
                unlock_exclusive(sim, TARGET, Held::Nothing).unwrap();
            },
            |sim| lock_shared(sim, TARGET, Held::Nothing, 0).unwrap(),
            |sim| unlock_shared(sim, TARGET).unwrap(),
        )
    };
    every(5, body, |_| {});
}

#[test]
fn lock_all_is_not_starved_by_writers() {
    let body = || {
        one_against_many(
            layout::global(),
            |sim| {
                lock_all(sim, 0).unwrap();
                unlock_all(sim).unwrap();
            },
            |sim| lock_exclusive(sim, Rank(sim.rank().0 % 3), Held::Nothing, 0).unwrap(),
            |sim| unlock_exclusive(sim, Rank(sim.rank().0 % 3), Held::Nothing).unwrap(),
        )
    };
    every(5, body, |_| {});
}

#[test]
fn writers_are_not_starved_by_lock_all() {
    let body = || {
        one_against_many(
            layout::global(),
            |sim| {
                lock_exclusive(sim, TARGET, Held::Nothing, 0).unwrap();
                unlock_exclusive(sim, TARGET, Held::Nothing).unwrap();
            },
            |sim| lock_all(sim, 0).unwrap(),
            |sim| unlock_all(sim).unwrap(),
        )
    };
    every(5, body, |_| {});
}

#[test]
fn a_reader_is_not_starved_by_writers() {
    let body = || {
        one_against_many(
            WordAt { rank: TARGET, word: LOCK },
            |sim| {
                lock_shared(sim, TARGET, Held::Nothing, 0).unwrap();
                unlock_shared(sim, TARGET).unwrap();
            },
            |sim| lock_exclusive(sim, TARGET, Held::Nothing, 0).unwrap(),
            |sim| unlock_exclusive(sim, TARGET, Held::Nothing).unwrap(),
        )
    };
    every(5, body, |_| {});
}

#[test]
fn an_attach_is_not_starved_by_accesses() {
    let body = || {
        one_against_many(
            WordAt { rank: Rank(0), word: REGIONS },
            |sim| change(sim, 0, || Ok((Table::default(), Change::Added))).unwrap(),
            |sim| hold(sim, Rank(0), 0).unwrap(),
            |sim| release(sim, Rank(0)).unwrap(),
        )
    };
    every(5, body, |_| {});
}

/// The writer of rank 0 leaves; the readers behind it, all in the queue, are in together.
#[test]
fn readers_behind_a_writer_enter_as_a_batch() {
    let body = || {
        let (queued, inside) = (Cell::new(0), Cell::new(0));
        move |sim: &Sim| {
            let at = WordAt { rank: TARGET, word: LOCK };
            if sim.rank() == Rank(0) {
                lock_exclusive(sim, TARGET, Held::Nothing, 0).unwrap();
                let tail = |word: u64| word >> 22 & ((1 << 22) - 1);
                let mut last = 0;
                while queued.get() < 3 {
                    if tail(sim.peek(at)) != last {
                        last = tail(sim.peek(at));
                        queued.set(queued.get() + 1);
                    }
                    sim.step();
                }
                unlock_exclusive(sim, TARGET, Held::Nothing).unwrap();
                return;
            }
            // One after the other, so that each change of the tail is seen.
            while queued.get() < sim.rank().0 - 1 || sim.peek(at) == 0 && queued.get() == 0 {
                sim.step();
            }
            lock_shared(sim, TARGET, Held::Nothing, 0).unwrap();
            inside.set(inside.get() + 1);
            while inside.get() < 3 {
                sim.step();
            }
            unlock_shared(sim, TARGET).unwrap();
        }
    };
    every(4, body, |_| {});
}
