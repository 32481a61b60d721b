//! Fences on the simulator, and that these tests notice what a fence might forget.

use crate::epoch::fence::{barrier, fence};
use crate::epoch::layout;
use crate::fabric::sim::{Fault, Sim, Weak, every, is_caught};
use crate::fabric::{Rank, Words};
use std::cell::Cell;

/// In each epoch everyone puts into everyone, and all see it after the fence.
fn puts_between_fences(fault: Fault) -> impl Fn(&Sim) + 'static {
    move |sim| {
        let words = Weak { sim, fault };
        let ranks = || (0..sim.size()).map(Rank);
        for epoch in 1..=5 {
            // Two sets of cells in turn: who is a fence ahead puts into those that I do not load.
            let cell = |origin: Rank| (epoch % 2 * 8) as usize + origin.0 as usize;
            ranks().for_each(|target| sim.put(target, cell(sim.rank()), epoch));
            fence(&words, epoch, true).unwrap();
            assert!(ranks().all(|origin| sim.load(cell(origin)) == epoch), "not there");
        }
    }
}

#[test]
fn a_fence_shows_what_was_put_before_it() {
    for ranks in [1, 2, 3, 5, 8] {
        every(ranks, || puts_between_fences(Fault::Nothing), |_| {});
    }
}

#[test]
fn what_a_fence_forgets_is_noticed() {
    for fault in [
        Fault::Flush,                  // the puts come after the fence
        Fault::Post(layout::fence(0)), // nobody is told
        Fault::Wait,                   // nobody waits
    ] {
        assert!(is_caught(5, || puts_between_fences(fault)), "{fault:?} is not noticed");
    }
}

/// Barriers with nothing in between.
fn barriers(fault: Fault) -> impl Fn(&Sim) + 'static {
    let come = Cell::new(0);
    move |sim| {
        let words = Weak { sim, fault };
        for number in 1..=4 {
            come.set(come.get() + 1);
            barrier(&words, number).unwrap();
            assert!(come.get() >= number as u32 * sim.size(), "left before all had come");
        }
    }
}

#[test]
fn nobody_leaves_a_barrier_before_all_have_come() {
    for ranks in [1, 2, 3, 4, 7, 9] {
        every(ranks, || barriers(Fault::Nothing), |_| {});
    }
}

#[test]
fn what_a_barrier_forgets_is_noticed() {
    for fault in [
        Fault::Post(layout::fence(0)), // nobody is told
        Fault::EveryOtherPost(layout::fence(0)),
        Fault::Wait, // nobody waits
    ] {
        assert!(is_caught(2, || barriers(fault)), "{fault:?} is not noticed");
    }
}
