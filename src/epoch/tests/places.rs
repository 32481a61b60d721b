//! More want a lock than its word can count, on the simulator: with room for two holders.

use super::super::layout::{self, GLOBAL, LOCK};
use super::super::lock::{
    Held, acquire, lock_all, lock_exclusive, lock_shared, release, unlock_all, unlock_exclusive,
    unlock_shared,
};
use crate::epoch::lock::Mode;
use crate::error::Result;
use crate::fabric::sim::{End, FAR, FLAT, Fault, Shape, Sim, every};
use crate::fabric::{Fetch, Rank, WordAt, WordId, Words};
use std::cell::Cell;

const PLACES: u64 = 2;

/// Words whose locks count so few holders.
struct Few<W>(W);

impl<W: Words> Words for Few<W> {
    const FAR: bool = W::FAR;
    const HOLDERS_MAX: u64 = PLACES;
    type Ticket = W::Ticket;

    fn rank(&self) -> Rank {
        self.0.rank()
    }

    fn size(&self) -> u32 {
        self.0.size()
    }

    fn fetch(&self, at: WordAt, op: Fetch) -> Result<u64> {
        self.0.fetch(at, op)
    }

    fn begin(&self, at: WordAt, op: Fetch) -> Result<W::Ticket> {
        self.0.begin(at, op)
    }

    fn finish(&self, ticket: W::Ticket) -> Result<u64> {
        self.0.finish(ticket)
    }

    fn post(&self, at: WordAt, add: u64) -> Result<()> {
        self.0.post(at, add)
    }

    fn read(&self, at: WordAt) -> Result<u64> {
        self.0.read(at)
    }

    fn own(&self, word: WordId) -> u64 {
        self.0.own(word)
    }

    fn set_own(&self, word: WordId, value: u64) {
        self.0.set_own(word, value);
    }

    fn wait_own(&self, word: WordId, until: impl Fn(u64) -> bool) -> Result<u64> {
        self.0.wait_own(word, until)
    }

    fn order(&self, rank: Rank) -> Result<()> {
        self.0.order(rank)
    }

    fn flush(&self, rank: Rank) -> Result<()> {
        self.0.flush(rank)
    }

    fn flush_all(&self) -> Result<()> {
        self.0.flush_all()
    }
}

fn all_is_free(end: &End) {
    for (view, rank) in end.ranks().flat_map(|rank| [(FLAT, rank), (FAR, rank)]) {
        assert_eq!(end.word_of(view, WordAt { rank, word: LOCK }), 0);
        assert_eq!(end.word_of(view, WordAt { rank, word: GLOBAL }), 0);
    }
}

#[test]
fn who_finds_all_places_taken_waits_for_one() {
    fn body<const V: usize>() -> impl Fn(&Sim) + 'static {
        let holders = Cell::new(0);
        move |sim: &Sim| {
            let words = &Few(sim.view::<V>(Fault::Nothing));
            for _ in 0..4 {
                // Now and then as a request of a process that holds another lock already.
                let nested = sim.random(3) == 0;
                acquire(words, layout::global(), Mode::Intent, nested, sim.thread()).unwrap();
                assert!(holders.get() < PLACES, "more holders than places");
                holders.set(holders.get() + 1);
                sim.step();
                holders.set(holders.get() - 1);
                release(words, layout::global(), Mode::Intent).unwrap();
            }
        }
    }
    let shape = Shape { threads: 2, ..Shape::from(3) };
    every(shape, body::<FLAT>, all_is_free);
    every(shape, body::<FAR>, all_is_free);
}

#[test]
fn locks_exclude_each_other_where_places_are_few() {
    fn body<const V: usize>() -> impl Fn(&Sim) + 'static {
        let (readers, writers) = (Cell::new(0), Cell::new(0));
        move |sim: &Sim| {
            let words = &Few(sim.view::<V>(Fault::Nothing));
            for _ in 0..4 {
                let (lock, target, node) = (sim.random(4), Rank(0), sim.thread());
                match lock {
                    0 => lock_exclusive(words, target, Held::Nothing, node).unwrap(),
                    1 => lock_all(words, node).unwrap(),
                    _ => lock_shared(words, target, Held::Nothing, node).unwrap(),
                }
                let (mine, others) =
                    if lock == 0 { (&writers, &readers) } else { (&readers, &writers) };
                assert_eq!(others.get(), 0, "a writer beside readers");
                assert!(lock != 0 || mine.get() == 0, "two writers");
                mine.set(mine.get() + 1);
                sim.step();
                mine.set(mine.get() - 1);
                match lock {
                    0 => unlock_exclusive(words, target, Held::Nothing).unwrap(),
                    1 => unlock_all(words).unwrap(),
                    _ => unlock_shared(words, target).unwrap(),
                }
            }
        }
    }
    let shape = Shape { threads: 2, ..Shape::from(3) };
    every(shape, body::<FLAT>, all_is_free);
    every(shape, body::<FAR>, all_is_free);
}
