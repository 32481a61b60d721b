//! Memory that its owner moves while others change it, on the simulator: no change is lost, and all
//! ranks change it by the same road at any time; and proof that these tests notice steps that the
//! protocol leaves out.

use crate::epoch::lock::{Mode, acquire, release};
use crate::epoch::moving::{self, Attempt, is_private};
use crate::epoch::regions;
use crate::error::Result;
use crate::fabric::layout::{self, ACC, LEFT, REGIONS};
use crate::fabric::sim::{FLAT, Fault, FinalState, POISON, Sim, SimShape, View, every, is_caught};
use crate::fabric::{Fetch, WordAt, Words};
use crate::rank_numbers::Rank;
use std::cell::RefCell;

/// The cell with the number of changes, while the memory is private.
const PRIVATE: usize = 0;
/// The cell that says where the memory is once it does not move any more: [`STAYED`] or [`MOVED`].
const PLACE: usize = 1;
const STAYED: u64 = 1;
const MOVED: u64 = 2;
/// The word that stands for the memory that has moved: all ranks change it by one operation.
const SHARED: crate::fabric::WordId = layout::COMPLETE;
const PRICE: u64 = 3;
const TURNS: u32 = 8;
/// Two processes with two threads each.
const THREADS: SimShape = SimShape { ranks: 2, threads: 2, per_node: 1 };

/// A step that an access or a move leaves out, if any.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Slip {
    Nothing,
    /// the access does not hold the memory
    NoHold,
    /// it decides before it holds
    EarlyLook,
    /// the owner moves the memory without the lock
    NoLock,
    /// the owner's own accesses do not hold
    OwnNoHold,
}

/// The state of all ranks, kept by hand.
#[derive(Default)]
struct Oracle {
    /// the changes of the memory of each rank
    changes: RefCell<[u64; 4]>,
    /// the threads that have reached the begin, and the end
    reached: RefCell<[u32; 2]>,
}

impl Oracle {
    /// Waits until all threads have called this.
    fn barrier(&self, sim: &Sim, which: usize) {
        Rank::all(sim.size()).for_each(|rank| sim.flush(rank).unwrap());
        self.reached.borrow_mut()[which] += 1;
        while self.reached.borrow()[which] < sim.size() * sim.threads() {
            sim.step();
        }
    }
}

fn get(sim: &Sim, target: Rank, cell: usize) -> u64 {
    let buffer = sim.get(target, cell);
    sim.flush(target).unwrap();
    sim.got(buffer)
}

/// Returns whether the memory of a rank has moved.
fn has_moved(words: &View<FLAT>, target: Rank) -> bool {
    if is_private(words, target).unwrap() {
        return false;
    }
    let place = get(words.sim, target, PLACE);
    assert!(place == STAYED || place == MOVED, "not published");
    place == MOVED
}

/// Adds one to the memory of a rank, which has moved or not.
fn add(words: &View<FLAT>, target: Rank, has_moved: bool) {
    let (sim, acc) = (words.sim, WordAt { rank: target, word: ACC });
    if has_moved {
        let before = words.fetch(WordAt { rank: target, word: SHARED }, Fetch::Add(1)).unwrap();
        assert!(before < POISON);
        return;
    }
    acquire(words, acc, Mode::Exclusive, false, sim.thread()).unwrap();
    let before = get(sim, target, PRIVATE);
    assert_ne!(before, POISON, "memory that has moved away");
    sim.put(target, PRIVATE, before + 1);
    release(words, acc, Mode::Exclusive).unwrap();
}

fn access(words: &View<FLAT>, target: Rank, slip: Slip) -> Result<()> {
    let thread = words.sim.thread();
    let work = || {
        add(words, target, has_moved(words, target));
        Ok(())
    };
    match slip {
        Slip::NoHold => work(),
        Slip::OwnNoHold if target == words.rank() => work(),
        Slip::EarlyLook if is_private(words, target)? => {
            let early = has_moved(words, target);
            regions::while_held(words, target, thread, || {
                add(words, target, early);
                Ok(())
            })
        }
        _ => {
            let is_held = moving::begin(words, target, thread)?;
            let done = work();
            moving::end(words, target, is_held)?;
            done
        }
    }
}

/// Moves the memory of this rank, or decides that it stays, or tries again later.
fn work(sim: &Sim, words: &View<FLAT>) -> Attempt {
    match sim.random(4) {
        0 => return Attempt::Later(PRICE),
        1 => sim.store(PLACE, STAYED),
        _ => {
            let value = sim.load(PRIVATE);
            sim.step();
            words.post(WordAt { rank: words.rank(), word: SHARED }, value).unwrap();
            sim.store(PRIVATE, POISON);
            sim.store(PLACE, MOVED);
        }
    }
    Attempt::Ended
}

fn mixture(fault: Fault, slip: Slip) -> impl Fn(&Sim) + 'static {
    let oracle = Oracle::default();
    move |sim| {
        let (words, me) = (sim.view::<FLAT>(fault), sim.rank());
        if sim.thread() == 0 {
            for (word, value) in moving::first_values(PRICE) {
                sim.post(WordAt { rank: me, word }, value).unwrap();
            }
        }
        oracle.barrier(sim, 0);
        for _ in 0..TURNS {
            let target = Rank(sim.random(sim.size()));
            access(&words, target, slip).unwrap();
            oracle.changes.borrow_mut()[target.0 as usize] += 1;
            let left = WordAt { rank: target, word: LEFT };
            words.post(left, 1u64.wrapping_neg()).unwrap();
            if moving::is_due(&words) {
                let attempt = || work(sim, &words);
                match slip {
                    Slip::NoLock if is_private(&words, me).unwrap() => {
                        if attempt() == Attempt::Ended {
                            words
                                .post(WordAt { rank: me, word: layout::ROAD }, 1u64.wrapping_neg())
                                .unwrap();
                        }
                    }
                    Slip::NoLock => {}
                    _ => moving::attempt(&words, sim.thread(), attempt).unwrap(),
                }
            }
        }
        oracle.barrier(sim, 1);
        let value = match has_moved(&words, me) {
            true => words.own(SHARED),
            false => sim.load(PRIVATE),
        };
        assert_eq!(value, oracle.changes.borrow()[me.0 as usize], "a change is lost");
    }
}

fn all_is_free(end: &FinalState) {
    for rank in end.ranks() {
        for word in [REGIONS, ACC] {
            assert_eq!(end.word(WordAt { rank, word }), 0);
        }
    }
}

#[test]
fn no_change_is_lost_while_memory_moves() {
    for ranks in [1, 2, 4] {
        every(ranks, || mixture(Fault::Nothing, Slip::Nothing), all_is_free);
    }
    every(THREADS, || mixture(Fault::Nothing, Slip::Nothing), all_is_free);
}

#[test]
fn what_an_access_or_a_move_leaves_out_is_noticed() {
    for slip in [Slip::NoHold, Slip::EarlyLook, Slip::NoLock] {
        assert!(is_caught(4, || mixture(Fault::Nothing, slip)), "{slip:?} is not noticed");
    }
    let own = || mixture(Fault::Nothing, Slip::OwnNoHold);
    assert!(is_caught(THREADS, own), "an access to own memory while another thread moves it");
    for fault in [Fault::Wait, Fault::Atomicity, Fault::Post(layout::ROAD)] {
        assert!(is_caught(4, || mixture(fault, Slip::Nothing)), "{fault:?} is not noticed");
    }
}
