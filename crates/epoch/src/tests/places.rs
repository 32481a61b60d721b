//! More threads want a lock than its word can count, on the simulator: with room for two holders.

use super::super::lock::{
    Held, SpareIntent, acquire, lock_all, lock_exclusive, lock_shared, release, unlock_all,
    unlock_exclusive, unlock_shared,
};
use crate::fabric::layout;
use crate::lock::Mode;
use crate::rank_numbers::Rank;
use crate::sync::{AtomicU64, Ordering::Relaxed};
use fompi_simulator::test_overrides::Passed;
use fompi_simulator::thread_words::{self, Heap, HeapWords};
use fompi_simulator::{FAR, FLAT, Fault, Sim, SimShape, every};
use fompi_testkit::model;
use std::cell::Cell;

use super::locks::{Inside, all_is_free};
use super::orderings::{ASLEEP, AWAKE, THREE};
#[cfg(loom)]
use loom::{sync::Arc, thread};
#[cfg(not(loom))]
use std::{sync::Arc, thread};

/// The number of holders that there is room for.
const PLACES: u64 = 2;

#[test]
fn a_thread_that_finds_all_places_taken_waits_for_one() {
    fn body<const V: usize>() -> impl Fn(&Sim) + 'static {
        let holders = Cell::new(0);
        move |sim: &Sim| {
            let words = &Passed::<_, false, PLACES>(sim.view::<V>(Fault::Nothing));
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
    let shape = SimShape { threads: 2, ..SimShape::from(3) };
    every(shape, body::<FLAT>, all_is_free);
    every(shape, body::<FAR>, all_is_free);
}

#[test]
fn locks_exclude_each_other_where_places_are_few() {
    fn body<const V: usize>() -> impl Fn(&Sim) + 'static {
        let inside = Inside::default();
        move |sim: &Sim| {
            let words = &Passed::<_, false, PLACES>(sim.view::<V>(Fault::Nothing));
            for _ in 0..4 {
                let (lock, target, node) = (sim.random(4), Rank(0), sim.thread());
                match lock {
                    0 => drop(lock_exclusive(words, target, Held::Nothing, node).unwrap()),
                    1 => lock_all(words, node).unwrap(),
                    _ => lock_shared(words, target, Held::Nothing, node).unwrap(),
                }
                inside.stay(sim, lock == 0);
                match lock {
                    0 => unlock_exclusive(words, target, SpareIntent::Release).unwrap(),
                    1 => unlock_all(words).unwrap(),
                    _ => unlock_shared(words, target).unwrap(),
                }
            }
        }
    }
    let shape = SimShape { threads: 2, ..SimShape::from(3) };
    every(shape, body::<FLAT>, all_is_free);
    every(shape, body::<FAR>, all_is_free);
}

/// The rounds of each thread: on a real machine the threads do not meet in each round.
const ROUNDS: u32 = if cfg!(loom) { 1 } else { 50 };

/// Two threads of a process at the last place of a lock, one of them twice. A third thread holds
/// the other places until both have had the last one.
fn at_the_last_place<const FAR: bool>(spins: u32) {
    let (heap, here) = (Heap::new(1, layout::WORDS_FAR), Arc::new(AtomicU64::new(0)));
    let words = || Passed::<_, FAR, PLACES>(thread_words::words(&heap, Rank(0), spins));
    let take = |words: &Passed<HeapWords, FAR, PLACES>, node| {
        acquire(words, layout::global(), Mode::Intent, false, node).unwrap();
    };
    let give_back = |words: &Passed<HeapWords, FAR, PLACES>| {
        release(words, layout::global(), Mode::Intent).unwrap();
    };
    let keeper = words();
    (1..PLACES).for_each(|_| take(&keeper, 0));
    let use_it = |node: u32| {
        let (words, here) = (words(), here.clone());
        move || {
            for _ in 0..node * ROUNDS {
                take(&words, node);
                // Relaxed: the count says how many are here at the same time, and orders nothing.
                assert_eq!(here.fetch_add(1, Relaxed), 0, "more holders than places");
                #[cfg(not(loom))]
                thread::yield_now(); // so that the other one finds it taken
                here.fetch_sub(1, Relaxed);
                give_back(&words);
            }
        }
    };
    let threads = [1, 2].map(|node| thread::spawn(use_it(node)));
    threads.into_iter().for_each(|thread| thread.join().unwrap());
    (1..PLACES).for_each(|_| give_back(&keeper));
}

#[test]
fn loom_two_threads_at_the_last_place_have_it_one_after_the_other() {
    model(THREE, || at_the_last_place::<false>(AWAKE));
    model(THREE, || at_the_last_place::<false>(ASLEEP));
    model(THREE, || at_the_last_place::<true>(ASLEEP));
}
