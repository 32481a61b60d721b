//! Ranks that share cores overtake waiters: how often, on the simulator; and that locks exclude
//! each other as before. `overtaking_orderings` has the orderings.

use crate::error::Result;
use crate::fabric::WordAt;
use crate::fabric::layout::LOCK;
use crate::lock::overtaking::{Bound, Overtaking};
use crate::lock::{
    Held, Nodes, SpareIntent, lock_exclusive, lock_shared, unlock_exclusive, unlock_shared,
};
use crate::rank_numbers::Rank;
use core::time::Duration;
use fompi_simulator::{FLAT, Fault, Sim, every};
use std::cell::{Cell, RefCell};
use std::rc::Rc;

const TARGET: Rank = Rank(1);
const AT: WordAt = WordAt { rank: TARGET, word: LOCK };
/// How often a rank of the simulator overtakes others after each turn.
const TIMES: u32 = 2;

/// The only node of a rank that overtakes others.
struct Overtaker(Overtaking);

impl Overtaker {
    fn new(times: u32) -> Overtaker {
        Overtaker(Overtaking::new(Bound { times, lasts: Duration::from_secs(3600) }))
    }
}

impl Nodes for Overtaker {
    fn take(&self) -> Option<u32> {
        Some(0)
    }

    fn give_back(&self, _: u32) {}

    fn pause(&self) -> Result<()> {
        Ok(())
    }

    fn had_turn(&self, at: WordAt) {
        self.0.had_turn(at);
    }

    fn may_overtake(&self, at: WordAt) -> bool {
        self.0.may_overtake(at)
    }
}

/// Whether rank 0 is the first waiter.
fn zero_is_first(sim: &Sim) -> bool {
    sim.peek_at(FLAT, AT) & ((1 << 22) - 1) == 1
}

/// Rank 0 takes a lock once in a while; all others again and again, and overtake it. Returns in
/// `most` how often one rank entered while rank 0 was the first waiter.
fn one_against_many(most: Rc<Cell<u32>>) -> impl Fn(&Sim) + 'static {
    let behind = RefCell::new([0; 8]);
    move |sim| {
        let (words, me) = (&sim.view::<FLAT>(Fault::Nothing), sim.index().0 as usize);
        let node = Overtaker::new(if me == 0 { 0 } else { TIMES });
        for _ in 0..if me == 0 { 4 } else { 24 } {
            lock_exclusive(words, TARGET, Held::Nothing, &node).unwrap();
            match me {
                0 => *behind.borrow_mut() = [0; 8],
                _ if zero_is_first(sim) => behind.borrow_mut()[me] += 1,
                _ => {}
            }
            most.set(most.get().max(behind.borrow()[me]));
            sim.step();
            unlock_exclusive(words, TARGET, SpareIntent::Release).unwrap();
        }
    }
}

#[test]
fn a_waiter_is_overtaken_but_a_bounded_number_of_times() {
    let most = Rc::new(Cell::new(0));
    every(4, || one_against_many(most.clone()), |_| {});
    // One of them is the turn behind which rank 0 has become the first.
    assert_eq!(most.get(), 1 + TIMES);
}

/// Ranks read and write a target, and overtake each other; two of them as if they held another
/// lock.
fn mixture() -> impl Fn(&Sim) + 'static {
    let (readers, writers) = (Cell::new(0), Cell::new(0));
    move |sim| {
        let words = &sim.view::<FLAT>(Fault::Nothing);
        let node = Overtaker::new(TIMES);
        let held = if sim.index().0 < 2 { Held::Shared } else { Held::Nothing };
        for _ in 0..10 {
            let writes = sim.random(2) == 0;
            match writes {
                true => drop(lock_exclusive(words, TARGET, held, &node).unwrap()),
                false => lock_shared(words, TARGET, held, &node).unwrap(),
            }
            let inside = if writes { &writers } else { &readers };
            assert!(writers.get() == 0 && (!writes || readers.get() == 0), "beside a writer");
            inside.set(inside.get() + 1);
            sim.step();
            inside.set(inside.get() - 1);
            match writes {
                true => unlock_exclusive(words, TARGET, SpareIntent::Release).unwrap(),
                false => unlock_shared(words, TARGET).unwrap(),
            }
        }
    }
}

#[test]
fn locks_exclude_each_other_where_ranks_overtake() {
    every(5, mixture, |end| assert_eq!(end.word_of(FLAT, AT), 0));
}
