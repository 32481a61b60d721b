//! Post, start, complete and wait on the simulator, and proof that these tests notice steps that
//! are left out.

use crate::fabric::layout::{self, COMPLETE};
use crate::fabric::{WordAt, Words};
use crate::pscw::{complete, post, start, test, wait};
use crate::rank_numbers::Rank;
use fompi_simulator::{Fault, PROFILES, Sim, every, is_caught, run};

/// The cell that its owner stores into and origins get; the cells below are put into, by rank.
const OWN: usize = 15;

/// In each epoch every rank is target of the `k` ranks above it and origin to the `k` below.
fn neighbours(fault: Fault, only_test: bool) -> impl Fn(&Sim) + 'static {
    move |sim| {
        let words = sim.weak(fault);
        let (me, size) = (sim.rank().0, sim.size());
        let mut complete_count = 0;
        for epoch in 1..=5 {
            let k = 1 + epoch as u32 % (size - 1).min(4);
            let origins = (1..=k).map(|by| Rank((me + by) % size));
            let targets = (1..=k).map(|by| Rank((me + size - by) % size));
            sim.store(OWN, epoch);
            post(&words, origins.clone()).unwrap();
            start(&words, targets.clone()).unwrap();
            let cell = |origin: Rank| origin.0 as usize % OWN;
            let begin = |target| {
                sim.put(target, cell(sim.rank()), epoch);
                sim.get(target, OWN)
            };
            let gets: Vec<_> = targets.clone().map(begin).collect();
            complete(&words, targets).unwrap();
            assert!(gets.iter().all(|&buffer| sim.got(buffer) == epoch), "got something else");
            complete_count += u64::from(k);
            while only_test && !test(&words, complete_count) {
                sim.step();
            }
            wait(&words, complete_count).unwrap();
            for origin in origins {
                assert_eq!(sim.load(cell(origin)), epoch, "complete, but not there");
            }
        }
    }
}

#[test]
fn epochs_match_and_show_what_was_put() {
    for ranks in [2, 3, 5, 6] {
        every(ranks, || neighbours(Fault::Nothing, false), |_| {});
    }
}

#[test]
fn test_sees_what_wait_waits_for() {
    every(3, || neighbours(Fault::Nothing, true), |_| {});
}

#[test]
fn no_post_is_left() {
    every(
        4,
        || neighbours(Fault::Nothing, false),
        |end| {
            for rank in end.ranks() {
                let word = |word| end.word(WordAt { rank, word });
                let (posted, used) = (layout::posted(Rank(0)).0, layout::used(Rank(0), 4).0);
                assert_eq!(word(posted), word(used));
            }
        },
    );
}

#[test]
fn posts_of_more_ranks_than_a_word_has_bits() {
    for (seed, profile) in [0, 1].into_iter().flat_map(|seed| PROFILES.map(|p| (seed, p))) {
        let end = run(130, profile, seed, neighbours(Fault::Nothing, false));
        assert_eq!(end.err(), None);
    }
}

#[test]
fn a_rank_may_be_its_own_target() {
    let body = || {
        |sim: &Sim| {
            for epoch in 1..=3 {
                post(sim, [sim.rank()]).unwrap();
                start(sim, [sim.rank()]).unwrap();
                sim.put(sim.rank(), 0, epoch);
                complete(sim, [sim.rank()]).unwrap();
                wait(sim, epoch).unwrap();
                assert_eq!(sim.load(0), epoch);
            }
        }
    };
    every(2, body, |_| {});
}

#[test]
fn what_an_epoch_forgets_is_noticed() {
    for fault in [
        Fault::Flush,          // complete is notified before the puts are done
        Fault::Post(COMPLETE), // complete notifies no target
        Fault::Post(layout::posted(Rank(0)).0),
        Fault::Wait, // start and wait return at once
    ] {
        assert!(is_caught(4, || neighbours(fault, false)), "{fault:?} is not noticed");
    }
}
