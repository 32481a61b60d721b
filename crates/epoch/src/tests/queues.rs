//! Fairness of locks on the simulator: no waiting rank is overtaken for ever.

use crate::fabric::layout::{self, LOCK, LOCKS, NODES_PER_RANK, REGIONS, RENDEZVOUS_SLOTS};
use crate::fabric::{WordAt, WordId, Words};
use crate::lock::{
    self, Held, Mode, SpareIntent, lock_all, lock_exclusive, lock_shared, unlock_all,
    unlock_exclusive, unlock_shared,
};
use crate::rank_numbers::Rank;
use crate::regions::{Change, Table, change, hold, release};
use fompi_simulator::{FAR, FLAT, Fault, PROFILES, Sim, View, every, run};
use std::cell::Cell;

const TARGET: Rank = Rank(1);

/// Whether node 0 of the rank is the first waiter of a lock word.
fn is_first<const V: usize>(sim: &Sim, at: WordAt, rank: Rank) -> bool {
    let id = 1 + u64::from(rank.0 * NODES_PER_RANK);
    let (word, mask) = (sim.peek_at(V, at), (1 << 22) - 1);
    word & mask == id || V == FAR && word >> 22 & mask == id
}

/// Rank 0 takes a lock once. All others take theirs again and again; one that asks while rank 0
/// waits as the first must not enter before it.
fn one_against_many<const V: usize>(
    at: WordAt,
    one: fn(&View<V>),
    take: fn(&View<V>),
    give: fn(&View<V>),
) -> impl Fn(&Sim) + 'static {
    let entered = Cell::new(false);
    move |sim| {
        let words = &sim.view::<V>(Fault::Nothing);
        if sim.index() == Rank(0) {
            one(words);
            entered.set(true);
            return;
        }
        for _ in 0..8 {
            let behind = is_first::<V>(sim, at, Rank(0)) && !entered.get();
            take(words);
            // Rank 0 releases before it sets `entered`: the word shows that it has entered.
            assert!(!behind || entered.get() || !is_first::<V>(sim, at, Rank(0)), "overtaken");
            give(words);
        }
    }
}

#[test]
fn a_writer_is_not_starved_by_readers() {
    fn body<const V: usize>() -> impl Fn(&Sim) + 'static {
        one_against_many::<V>(
            WordAt { rank: TARGET, word: LOCK },
            |words| {
                lock_exclusive(words, TARGET, Held::Nothing, 0).unwrap();
                unlock_exclusive(words, TARGET, SpareIntent::Release).unwrap();
            },
            |words| lock_shared(words, TARGET, Held::Nothing, 0).unwrap(),
            |words| unlock_shared(words, TARGET).unwrap(),
        )
    }
    every(5, body::<FLAT>, |_| {});
    every(5, body::<FAR>, |_| {});
}

#[test]
fn lock_all_is_not_starved_by_writers() {
    fn body<const V: usize>() -> impl Fn(&Sim) + 'static {
        one_against_many::<V>(
            layout::global(),
            |words| {
                lock_all(words, 0).unwrap();
                unlock_all(words).unwrap();
            },
            |words| {
                let target = Rank(words.rank().0 % 3);
                lock_exclusive(words, target, Held::Nothing, 0).unwrap();
            },
            |words| {
                unlock_exclusive(words, Rank(words.rank().0 % 3), SpareIntent::Release).unwrap()
            },
        )
    }
    every(5, body::<FLAT>, |_| {});
    every(5, body::<FAR>, |_| {});
}

#[test]
fn writers_are_not_starved_by_lock_all() {
    fn body<const V: usize>() -> impl Fn(&Sim) + 'static {
        one_against_many::<V>(
            layout::global(),
            |words| {
                lock_exclusive(words, TARGET, Held::Nothing, 0).unwrap();
                unlock_exclusive(words, TARGET, SpareIntent::Release).unwrap();
            },
            |words| lock_all(words, 0).unwrap(),
            |words| unlock_all(words).unwrap(),
        )
    }
    every(5, body::<FLAT>, |_| {});
    every(5, body::<FAR>, |_| {});
}

#[test]
fn a_reader_is_not_starved_by_writers() {
    fn body<const V: usize>() -> impl Fn(&Sim) + 'static {
        one_against_many::<V>(
            WordAt { rank: TARGET, word: LOCK },
            |words| {
                lock_shared(words, TARGET, Held::Nothing, 0).unwrap();
                unlock_shared(words, TARGET).unwrap();
            },
            |words| {
                lock_exclusive(words, TARGET, Held::Nothing, 0).unwrap();
            },
            |words| unlock_exclusive(words, TARGET, SpareIntent::Release).unwrap(),
        )
    }
    every(5, body::<FLAT>, |_| {});
    every(5, body::<FAR>, |_| {});
}

#[test]
fn a_nested_writer_is_not_starved_by_readers() {
    fn body<const V: usize>() -> impl Fn(&Sim) + 'static {
        one_against_many::<V>(
            WordAt { rank: TARGET, word: LOCK },
            |words| {
                lock_exclusive(words, TARGET, Held::Exclusive, 0).unwrap();
                unlock_exclusive(words, TARGET, SpareIntent::None).unwrap();
            },
            |words| lock_shared(words, TARGET, Held::Nothing, 0).unwrap(),
            |words| unlock_shared(words, TARGET).unwrap(),
        )
    }
    every(5, body::<FLAT>, |_| {});
    every(5, body::<FAR>, |_| {});
}

#[test]
fn an_attach_is_not_starved_by_accesses() {
    fn body<const V: usize>() -> impl Fn(&Sim) + 'static {
        one_against_many::<V>(
            WordAt { rank: Rank(0), word: REGIONS },
            |words| change(words, 0, || Ok((Table::default(), Change::Added))).unwrap(),
            |words| hold(words, Rank(0), 0).unwrap(),
            |words| release(words, Rank(0)).unwrap(),
        )
    }
    every(5, body::<FLAT>, |_| {});
    every(5, body::<FAR>, |_| {});
}

/// When the writer of rank 0 leaves, the readers behind it, all in the queue, enter together.
fn batch<const V: usize>(held: Held) -> impl Fn(&Sim) + 'static {
    let (queued, inside) = (Cell::new(0), Cell::new(0));
    move |sim: &Sim| {
        let words = &sim.view::<V>(Fault::Nothing);
        let at = WordAt { rank: TARGET, word: LOCK };
        // A word that changes with each rank that queues.
        let line = || match V {
            _ if held != Held::Nothing => sim.peek_at(V, at) & ((1 << 22) - 1),
            FAR => sim.peek_at(FAR, WordAt { word: layout::tickets(LOCK), ..at }) >> 32,
            _ => sim.peek(at) >> 22 & ((1 << 22) - 1),
        };
        if sim.index() == Rank(0) {
            lock_exclusive(words, TARGET, Held::Nothing, 0).unwrap();
            let mut last = 0;
            while queued.get() < 3 {
                if line() != last {
                    last = line();
                    queued.set(queued.get() + 1);
                }
                sim.step();
            }
            unlock_exclusive(words, TARGET, SpareIntent::Release).unwrap();
            return;
        }
        // One rank after the other queues, so that each change is seen.
        while queued.get() < sim.index().0 - 1 || sim.peek_at(V, at) == 0 && queued.get() == 0 {
            sim.step();
        }
        lock_shared(words, TARGET, held, 0).unwrap();
        inside.set(inside.get() + 1);
        while inside.get() < 3 {
            sim.step();
        }
        unlock_shared(words, TARGET).unwrap();
    }
}

#[test]
fn readers_behind_a_writer_enter_as_a_batch() {
    for held in [Held::Nothing, Held::Shared] {
        every(4, || batch::<FLAT>(held), |_| {});
        every(4, || batch::<FAR>(held), |_| {});
    }
}

/// Rank 0 holds a lock, and rank 1 waits for it. Before rank 0 releases it, all ranks but rank 1
/// take another lock of the same rank, so often that its tickets use each slot again.
fn across<const V: usize>(held: WordId, other: WordId) -> impl Fn(&Sim) + 'static {
    let (is_held, is_waited_for, through) = (Cell::new(false), Cell::new(false), Cell::new(0));
    move |sim: &Sim| {
        let words = &sim.view::<V>(Fault::Nothing);
        let (held, other) =
            (WordAt { rank: TARGET, word: held }, WordAt { rank: TARGET, word: other });
        let free = |at, mode| lock::release(words, at, mode).unwrap();
        match sim.index().0 {
            0 => {
                lock::acquire(words, held, Mode::Shared, false, 0).unwrap();
                is_held.set(true);
                while sim.peek_at(V, held) & ((1 << 44) - 1) == 0 {
                    sim.step();
                }
                is_waited_for.set(true);
            }
            1 => {
                while !is_held.get() {
                    sim.step();
                }
                lock::acquire(words, held, Mode::Exclusive, false, 0).unwrap();
                return free(held, Mode::Exclusive);
            }
            _ => {}
        }
        while !is_waited_for.get() {
            sim.step();
        }
        for _ in 0..RENDEZVOUS_SLOTS {
            lock::acquire(words, other, Mode::Exclusive, false, 0).unwrap();
            free(other, Mode::Exclusive);
        }
        through.set(through.get() + 1);
        if sim.index() == Rank(0) {
            while through.get() < 3 {
                sim.step();
            }
            free(held, Mode::Shared);
        }
    }
}

#[test]
fn a_waiter_for_a_lock_blocks_no_request_for_another() {
    let pairs = LOCKS.into_iter().flat_map(|held| LOCKS.map(|other| (held, other)));
    for (held, other) in pairs.filter(|(held, other)| held != other) {
        for (seed, profile) in (0..2).flat_map(|seed| PROFILES.map(|profile| (seed, profile))) {
            let near = run(4, profile, seed, across::<FLAT>(held, other));
            let far = run(4, profile, seed, across::<FAR>(held, other));
            assert_eq!(near.and(far).err(), None, "{held:?}, {other:?}, {seed}, {profile:?}");
        }
    }
}
