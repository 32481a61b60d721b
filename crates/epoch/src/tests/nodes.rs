//! More threads of a rank wait for locks than it has queue nodes, on the simulator.

use crate::error::Result;
use crate::lock::{
    Held, Nodes, SpareIntent, lock_all, lock_exclusive, lock_shared, unlock_all, unlock_exclusive,
    unlock_shared,
};
use crate::rank_numbers::Rank;
use fompi_simulator::{FAR, FLAT, Fault, Sim, SimShape, every};
use std::cell::Cell;

use super::locks::{Inside, all_is_free};

/// One node for all threads of a rank.
struct One<'a, 'b> {
    sim: &'a Sim<'b>,
    taken: &'a [Cell<bool>; 4],
}

impl One<'_, '_> {
    fn mine(&self) -> &Cell<bool> {
        &self.taken[self.sim.index().0 as usize]
    }
}

impl Nodes for One<'_, '_> {
    fn take(&self) -> Option<u32> {
        (!self.mine().replace(true)).then_some(0)
    }

    fn give_back(&self, _: u32) {
        self.mine().set(false);
    }

    fn pause(&self) -> Result<()> {
        self.sim.step();
        Ok(())
    }
}

#[test]
fn threads_without_a_node_take_locks_as_others_do() {
    const ROUNDS: u32 = 6;
    fn body<const V: usize>() -> impl Fn(&Sim) + 'static {
        let taken: [Cell<bool>; 4] = Default::default();
        let inside = Inside::default();
        move |sim: &Sim| {
            let words = &sim.view::<V>(Fault::Nothing);
            let target = Rank(1);
            for _ in 0..ROUNDS {
                let nodes = One { sim, taken: &taken };
                let lock = sim.random(3);
                match lock {
                    0 => drop(lock_exclusive(words, target, Held::Nothing, nodes).unwrap()),
                    1 => lock_shared(words, target, Held::Nothing, nodes).unwrap(),
                    _ => lock_all(words, nodes).unwrap(),
                }
                inside.stay(sim, lock == 0);
                match lock {
                    0 => unlock_exclusive(words, target, SpareIntent::Release).unwrap(),
                    1 => unlock_shared(words, target).unwrap(),
                    _ => unlock_all(words).unwrap(),
                }
            }
        }
    }
    let shape = SimShape { threads: 3, ..SimShape::from(2) };
    every(shape, body::<FLAT>, all_is_free);
    every(shape, body::<FAR>, all_is_free);
}

/// Thread 0 of rank 1 waits with the only node until thread 1 has taken and released another lock.
#[test]
fn a_thread_without_a_node_does_not_wait_for_those_with_one() {
    fn body<const V: usize>() -> impl Fn(&Sim) + 'static {
        let taken: [Cell<bool>; 4] = Default::default();
        let (held, through) = (Cell::new(false), Cell::new(false));
        move |sim: &Sim| {
            let words = &sim.view::<V>(Fault::Nothing);
            let (kept, other) = (Rank(0), Rank(1));
            match (sim.index().0, sim.thread()) {
                (0, 0) => {
                    lock_exclusive(words, kept, Held::Nothing, 0).unwrap();
                    held.set(true);
                    while !through.get() {
                        sim.step();
                    }
                    unlock_exclusive(words, kept, SpareIntent::Release).unwrap();
                }
                (1, 0) => {
                    while !held.get() {
                        sim.step();
                    }
                    lock_shared(words, kept, Held::Nothing, One { sim, taken: &taken }).unwrap();
                    unlock_shared(words, kept).unwrap();
                }
                (1, _) => {
                    while !taken[1].get() {
                        sim.step();
                    }
                    let nodes = One { sim, taken: &taken };
                    lock_exclusive(words, other, Held::Shared, nodes).unwrap();
                    unlock_exclusive(words, other, SpareIntent::Release).unwrap();
                    through.set(true);
                }
                // Holds the lock that thread 1 of rank 1 wants, now and then.
                _ => {
                    lock_shared(words, other, Held::Shared, 1).unwrap();
                    unlock_shared(words, other).unwrap();
                }
            }
        }
    }
    let shape = SimShape { threads: 2, ..SimShape::from(2) };
    every(shape, body::<FLAT>, all_is_free);
    every(shape, body::<FAR>, all_is_free);
}
