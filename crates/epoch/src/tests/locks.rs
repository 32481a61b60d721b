//! Locks on the simulator: which exclude each other, and what an unlock has made visible; and proof
//! that these tests notice steps that a protocol leaves out.

use crate::fabric::WordAt;
use crate::fabric::layout::{self, GLOBAL, LOCK};
use crate::lock::{
    Held, SpareIntent, lock_all, lock_exclusive, lock_shared, try_lock_exclusive, try_lock_shared,
    unlock_all, unlock_exclusive, unlock_shared,
};
use crate::rank_numbers::Rank;
use fompi_simulator::{FAR, FLAT, Fault, FinalState, Sim, SimShape, View, every, is_caught};
use std::cell::{Cell, RefCell};
use std::rc::Rc;

/// The holders of a lock of one target now.
#[derive(Default)]
pub(super) struct Inside {
    readers: Cell<u32>,
    writers: Cell<u32>,
}

impl Inside {
    /// The holder of a lock stays for a step; a writer is alone.
    pub(super) fn stay(&self, sim: &Sim, writes: bool) {
        let (mine, others) = match writes {
            true => (&self.writers, &self.readers),
            false => (&self.readers, &self.writers),
        };
        assert_eq!(others.get(), 0, "a writer beside readers");
        assert!(!writes || mine.get() == 0, "two writers");
        mine.set(mine.get() + 1);
        sim.step();
        mine.set(mine.get() - 1);
    }
}

/// The promises of the locks of a window, kept by hand.
#[derive(Default)]
pub(super) struct Oracle {
    readers: RefCell<[u32; 8]>,
    writers: RefCell<[u32; 8]>,
    alls: Cell<u32>,
    increments: RefCell<[u64; 8]>,
}

impl Oracle {
    /// Returns what a reader of a target must find there.
    pub(super) fn written(&self, target: Rank) -> u64 {
        self.increments.borrow()[target.0 as usize]
    }

    pub(super) fn enter_shared(&self, target: Rank) {
        assert_eq!(self.writers.borrow()[target.0 as usize], 0, "reader beside a writer");
        self.readers.borrow_mut()[target.0 as usize] += 1;
    }

    pub(super) fn leave_shared(&self, target: Rank) {
        self.readers.borrow_mut()[target.0 as usize] -= 1;
    }

    pub(super) fn enter_exclusive(&self, target: Rank) {
        assert_eq!(self.readers.borrow()[target.0 as usize], 0, "writer beside a reader");
        assert_eq!(self.writers.borrow()[target.0 as usize], 0, "writer beside a writer");
        assert_eq!(self.alls.get(), 0, "writer beside lock_all");
        self.writers.borrow_mut()[target.0 as usize] += 1;
        self.increments.borrow_mut()[target.0 as usize] += 1;
    }

    pub(super) fn leave_exclusive(&self, target: Rank) {
        self.writers.borrow_mut()[target.0 as usize] -= 1;
    }

    pub(super) fn enter_all(&self) {
        assert!(self.writers.borrow().iter().all(|&writers| writers == 0), "all beside a writer");
        self.alls.set(self.alls.get() + 1);
    }

    pub(super) fn leave_all(&self) {
        self.alls.set(self.alls.get() - 1);
    }
}

pub(super) fn get(sim: &Sim, target: Rank) -> u64 {
    let buffer = sim.get(target, 0);
    // The simulator itself flushes here, so that a fault of the transport does not spoil the get.
    crate::fabric::Words::flush(sim, target).unwrap();
    sim.got(buffer)
}

/// Whether to try first without waiting, which only a rank that holds nothing may do.
fn tries(sim: &Sim, held: Held) -> bool {
    held == Held::Nothing && sim.random(2) == 0
}

fn write_once<const V: usize>(words: &View<V>, oracle: &Oracle, target: Rank, held: Held) {
    let sim = words.sim;
    if !(tries(sim, held) && try_lock_exclusive(words, target).unwrap()) {
        lock_exclusive(words, target, held, sim.thread()).unwrap();
    }
    oracle.enter_exclusive(target);
    let value = get(sim, target);
    sim.put(target, 0, value + 1);
    oracle.leave_exclusive(target);
    unlock_exclusive(words, target, SpareIntent::Release).unwrap();
}

fn read_once<const V: usize>(words: &View<V>, oracle: &Oracle, target: Rank, held: Held) {
    let sim = words.sim;
    if !(tries(sim, held) && try_lock_shared(words, target).unwrap()) {
        lock_shared(words, target, held, sim.thread()).unwrap();
    }
    oracle.enter_shared(target);
    assert_eq!(get(sim, target), oracle.increments.borrow()[target.0 as usize]);
    oracle.leave_shared(target);
    unlock_shared(words, target).unwrap();
}

fn read_all_once<const V: usize>(words: &View<V>, oracle: &Oracle, target: Rank) {
    let sim = words.sim;
    lock_all(words, sim.thread()).unwrap();
    oracle.enter_all();
    assert_eq!(get(sim, target), oracle.increments.borrow()[target.0 as usize]);
    oracle.leave_all();
    unlock_all(words).unwrap();
}

/// Every thread takes every kind of lock on random targets.
fn mixture<const V: usize>(fault: Fault) -> impl Fn(&Sim) + 'static {
    let oracle = Oracle::default();
    move |sim| {
        let words = sim.view::<V>(fault);
        for _ in 0..6 {
            let target = Rank(sim.random(2));
            let held = if sim.random(4) == 0 { Held::Shared } else { Held::Nothing };
            match sim.random(5) {
                0 | 1 => write_once(&words, &oracle, target, held),
                2 | 3 => read_once(&words, &oracle, target, held),
                _ => read_all_once(&words, &oracle, target),
            }
        }
    }
}

/// No lock is held or waited for, and no queue node or slot is left in use.
pub(super) fn all_is_free(end: &FinalState) {
    for (view, rank) in end.ranks().flat_map(|rank| [(FLAT, rank), (FAR, rank)]) {
        assert_eq!(end.word_of(view, WordAt { rank, word: LOCK }), 0);
        assert_eq!(end.word_of(view, WordAt { rank, word: GLOBAL }), 0);
    }
    // Each drawn ticket has had its turn, and no note is left in a rendezvous slot.
    for (rank, lock) in end.ranks().flat_map(|rank| [(rank, LOCK), (rank, GLOBAL)]) {
        let tickets = end.word_of(FAR, WordAt { rank, word: layout::tickets(lock) });
        assert_eq!(tickets >> 32, tickets as u32 as u64);
        for slot in 0..layout::RENDEZVOUS_SLOTS {
            assert_eq!(end.word_of(FAR, WordAt { rank, word: layout::rendezvous(lock, slot) }), 0);
        }
    }
}

#[test]
fn locks_exclude_and_unlocks_publish() {
    every(4, || mixture::<FLAT>(Fault::Nothing), all_is_free);
    for ranks in [4, 6, 8] {
        every(ranks, || mixture::<FAR>(Fault::Nothing), all_is_free);
    }
}

#[test]
fn threads_of_a_process_wait_side_by_side() {
    let shape = SimShape { threads: 3, ..SimShape::from(2) };
    every(shape, || mixture::<FLAT>(Fault::Nothing), all_is_free);
    every(shape, || mixture::<FAR>(Fault::Nothing), all_is_free);
}

/// Every rank increments one cell, so often that more tickets are drawn than there are rendezvous
/// slots.
fn writers<const V: usize>(fault: Fault) -> impl Fn(&Sim) + 'static {
    let oracle = Oracle::default();
    move |sim: &Sim| {
        for _ in 0..20 {
            write_once(&sim.view::<V>(fault), &oracle, Rank(1), Held::Nothing);
        }
    }
}

#[test]
fn writers_lose_no_increment() {
    let check = |end: &FinalState| {
        assert_eq!(end.cell(Rank(1), 0), 100);
        all_is_free(end);
    };
    every(5, || writers::<FLAT>(Fault::Nothing), check);
    every(5, || writers::<FAR>(Fault::Nothing), check);
}

#[test]
fn what_a_lock_forgets_is_noticed() {
    for fault in [
        Fault::Order,                 // unlock releases before the puts are done
        Fault::Post(layout::next(0)), // no link to the next waiter
        Fault::SetOwn,                // a link of the last wait is taken for one of this wait
        Fault::Wait,                  // the head does not wait for the link
        Fault::Atomicity,             // a lock word changes between look and change
        Fault::Post(layout::go(0)),
        Fault::EveryOtherPost(layout::go(0)),
    ] {
        assert!(is_caught(4, || mixture::<FLAT>(fault)), "{fault:?} is not noticed");
        assert!(is_caught(6, || mixture::<FAR>(fault)), "{fault:?} is not noticed, far");
    }
    // A rendezvous slot is not emptied.
    let note = Fault::Post(layout::rendezvous(LOCK, 0));
    assert!(is_caught(5, || writers::<FAR>(note)), "{note:?} is not noticed");
}

/// Rank 1 puts into another rank under a lock; once it is unlocked, the other rank must see the
/// puts.
fn publication<const V: usize>(fault: Fault, all: bool, target: Rank) -> impl Fn(&Sim) + 'static {
    let published = Rc::new(Cell::new(0));
    move |sim| {
        let words = sim.view::<V>(fault);
        for value in 1..=5 {
            if sim.index() == Rank(1) {
                match all {
                    true => lock_all(&words, 0).unwrap(),
                    false => drop(lock_exclusive(&words, target, Held::Nothing, 0).unwrap()),
                }
                sim.put(target, 0, value);
                match all {
                    true => unlock_all(&words).unwrap(),
                    false => unlock_exclusive(&words, target, SpareIntent::Release).unwrap(),
                }
                published.set(value);
            } else if sim.index() == target {
                let value = published.get();
                assert!(sim.load(0) >= value, "unlocked, but not there");
            }
        }
    }
}

#[test]
fn what_is_unlocked_is_there() {
    // At rank 0 the global word is, too.
    let (first, last) = (Rank(0), Rank(2));
    for (all, target) in [(false, first), (false, last), (true, first), (true, last)] {
        every(3, || publication::<FLAT>(Fault::Nothing, all, target), |_| {});
        every(3, || publication::<FAR>(Fault::Nothing, all, target), |_| {});
    }
    let order = Fault::Order;
    assert!(is_caught(3, || publication::<FLAT>(order, false, last)), "unlock forgets to order");
    assert!(is_caught(3, || publication::<FAR>(order, false, first)), "unlock forgets to order");
    assert!(is_caught(3, || publication::<FAR>(order, true, first)), "no order in unlock_all");
    assert!(is_caught(3, || publication::<FLAT>(Fault::Flush, true, last)), "no flush there");
    assert!(is_caught(3, || publication::<FAR>(Fault::Flush, true, last)), "no flush there");
}

/// Rank 0 locks a second target while rank 1 waits for its intent to end, and rank 2 wants that
/// target and an intent.
fn second_targets<const V: usize>(sim: &Sim) {
    let words = &sim.view::<V>(Fault::Nothing);
    let (a, b) = (Rank(0), Rank(1));
    for _ in 0..4 {
        match sim.index().0 {
            0 => {
                lock_exclusive(words, a, Held::Nothing, 0).unwrap();
                lock_exclusive(words, b, Held::Exclusive, 0).unwrap();
                unlock_exclusive(words, a, SpareIntent::None).unwrap();
                unlock_exclusive(words, b, SpareIntent::Release).unwrap();
            }
            1 => {
                lock_all(words, 0).unwrap();
                unlock_all(words).unwrap();
            }
            _ => {
                lock_exclusive(words, b, Held::Nothing, 0).unwrap();
                unlock_exclusive(words, b, SpareIntent::Release).unwrap();
            }
        }
    }
}

#[test]
fn a_rank_that_waits_for_the_intent_holds_no_target() {
    for ranks in [3, 4, 6] {
        every(ranks, || second_targets::<FLAT>, all_is_free);
        every(ranks, || second_targets::<FAR>, all_is_free);
    }
}

/// P reads a and b at once, Q reads b and a at once, and a writer waits between the two locks of
/// each.
fn crossing_readers<const V: usize>(second: Held) -> impl Fn(&Sim) + 'static {
    move |sim| {
        let words = &sim.view::<V>(Fault::Nothing);
        let (a, b) = (Rank(0), Rank(1));
        let read_both = |first: Rank, then: Rank| {
            lock_shared(words, first, Held::Nothing, 0).unwrap();
            lock_shared(words, then, second, 0).unwrap();
            unlock_shared(words, first).unwrap();
            unlock_shared(words, then).unwrap();
        };
        let write = |target: Rank| {
            lock_exclusive(words, target, Held::Nothing, 0).unwrap();
            unlock_exclusive(words, target, SpareIntent::Release).unwrap();
        };
        for _ in 0..3 {
            match sim.index().0 {
                0 => read_both(a, b),
                1 => read_both(b, a),
                2 => write(a),
                _ => write(b),
            }
        }
    }
}

#[test]
fn nested_readers_do_not_wait_for_waiting_writers() {
    every(4, || crossing_readers::<FLAT>(Held::Shared), all_is_free);
    every(4, || crossing_readers::<FAR>(Held::Shared), all_is_free);
    assert!(is_caught(4, || crossing_readers::<FLAT>(Held::Nothing)), "fairness alone deadlocks");
    assert!(is_caught(4, || crossing_readers::<FAR>(Held::Nothing)), "fairness alone deadlocks");
}

#[test]
fn nested_locks_in_one_order_of_targets_do_not_deadlock() {
    fn body<const V: usize>() -> impl Fn(&Sim) + 'static {
        |sim: &Sim| {
            let words = &sim.view::<V>(Fault::Nothing);
            for _ in 0..3 {
                match sim.random(3) {
                    0 => {
                        lock_exclusive(words, Rank(0), Held::Nothing, 0).unwrap();
                        lock_exclusive(words, Rank(1), Held::Exclusive, 0).unwrap();
                        unlock_exclusive(words, Rank(0), SpareIntent::None).unwrap();
                        unlock_exclusive(words, Rank(1), SpareIntent::Release).unwrap();
                    }
                    1 => {
                        lock_shared(words, Rank(0), Held::Nothing, 0).unwrap();
                        lock_exclusive(words, Rank(1), Held::Shared, 0).unwrap();
                        unlock_shared(words, Rank(0)).unwrap();
                        unlock_exclusive(words, Rank(1), SpareIntent::Release).unwrap();
                    }
                    _ => {
                        lock_all(words, 0).unwrap();
                        unlock_all(words).unwrap();
                    }
                }
            }
        }
    }
    every(5, body::<FLAT>, all_is_free);
    every(5, body::<FAR>, all_is_free);
}
