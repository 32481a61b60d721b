//! The cost of the protocols, counted on the simulator in operations that leave the rank. The
//! numbers are those of docs/decisions/0001.

use crate::fabric::layout::LOCK;
use crate::fabric::{WordAt, Words};
use crate::fence::BarrierKind;
use crate::lock::{
    Held, SpareIntent, lock_all, lock_exclusive, lock_shared, unlock_all, unlock_exclusive,
    unlock_shared,
};
use crate::rank_numbers::Rank;
use crate::regions::{Change, Table, change, hold, release, seen, table};
use crate::{fence, pscw};
use fompi_simulator::{Profile, Sim, SimCounts, run};
use std::cell::Cell;
use std::rc::Rc;

const TARGET: Rank = Rank(1);

/// Returns what `steps` cost the rank.
fn cost(sim: &Sim, steps: impl FnOnce(&Sim)) -> SimCounts {
    let before = sim.counts();
    steps(sim);
    let after = sim.counts();
    SimCounts {
        fetch: after.fetch - before.fetch,
        post: after.post - before.post,
        read: after.read - before.read,
        order: after.order - before.order,
        flush: after.flush - before.flush,
        flush_all: after.flush_all - before.flush_all,
    }
}

fn on_ranks(ranks: u32, body: impl Fn(&Sim) + 'static) {
    assert_eq!(run(ranks, Profile::Prompt, 1, body).err(), None);
}

/// Rank 0 of two ranks runs `steps` alone, which cost `expected`.
fn costs(steps: fn(&Sim), expected: SimCounts) {
    on_ranks(2, move |sim| {
        if sim.rank() == Rank(0) {
            assert_eq!(cost(sim, steps), expected);
        }
    });
}

#[test]
fn a_free_exclusive_lock_and_its_unlock_are_four_fetches() {
    let steps = |sim: &Sim| {
        lock_exclusive(sim, TARGET, Held::Nothing, 0).unwrap();
        unlock_exclusive(sim, TARGET, SpareIntent::Release).unwrap();
    };
    // The read is that of the standing intent.
    costs(steps, SimCounts { fetch: 4, read: 1, order: 2, ..SimCounts::default() });
}

#[test]
fn a_second_exclusive_lock_and_its_unlock_are_two_fetches() {
    let steps = |sim: &Sim| {
        lock_exclusive(sim, TARGET, Held::Exclusive, 0).unwrap();
        unlock_exclusive(sim, TARGET, SpareIntent::None).unwrap();
    };
    costs(steps, SimCounts { fetch: 2, order: 1, ..SimCounts::default() });
}

#[test]
fn a_free_shared_lock_and_its_unlock_are_two_fetches() {
    let steps = |sim: &Sim| {
        lock_shared(sim, TARGET, Held::Nothing, 0).unwrap();
        unlock_shared(sim, TARGET).unwrap();
    };
    costs(steps, SimCounts { fetch: 2, order: 1, ..SimCounts::default() });
}

#[test]
fn lock_all_and_its_unlock_are_two_fetches() {
    let steps = |sim: &Sim| {
        lock_all(sim, 0).unwrap();
        unlock_all(sim).unwrap();
    };
    costs(steps, SimCounts { fetch: 2, order: 1, flush_all: 1, ..SimCounts::default() });
}

/// Each of three ranks takes the lock when the one below holds it and the queue is as long as it
/// gets; each pays for its own steps.
#[test]
fn a_contended_exclusive_lock_costs_three_fetches_more() {
    let (asked, costs) = (Cell::new(0), Cell::new([SimCounts::default(); 3]));
    let at = WordAt { rank: TARGET, word: LOCK };
    on_ranks(3, move |sim| {
        let me = sim.rank().0;
        while asked.get() != me {
            sim.step();
        }
        let paid = cost(sim, |sim| {
            if me == 0 {
                lock_exclusive(sim, TARGET, Held::Nothing, 0).unwrap();
                for behind in 1..3 {
                    let before = sim.peek(at);
                    asked.set(behind);
                    while sim.peek(at) == before {
                        sim.step();
                    }
                }
                // All requests are in the queue; the links arrive.
                (0..1000).for_each(|_| sim.step());
            } else {
                lock_exclusive(sim, TARGET, Held::Nothing, 0).unwrap();
            }
            unlock_exclusive(sim, TARGET, SpareIntent::Release).unwrap();
        });
        let mut all = costs.get();
        all[me as usize] = paid;
        costs.set(all);
        // The last to leave: the holder that wakes, the waiter that is woken, the waiter that
        // linked itself.
        if me == 2 {
            while costs.get().iter().any(|paid| paid.fetch == 0) {
                sim.step();
            }
            let [first, second, third] = costs.get();
            assert_eq!((first.fetch, first.post), (4, 1));
            assert_eq!((second.fetch, second.post), (8, 1));
            assert_eq!((third.fetch, third.post), (7, 1));
        }
    });
}

#[test]
fn a_fence_costs_a_post_per_round() {
    for (ranks, rounds) in [(1, 0), (2, 1), (3, 2), (8, 3), (9, 4)] {
        on_ranks(ranks, move |sim| {
            let paid = cost(sim, |sim| fence::fence(sim, BarrierKind::Rounds, 1, true).unwrap());
            let expected = SimCounts { post: rounds, flush_all: 1, ..SimCounts::default() };
            assert_eq!(paid, expected);
        });
    }
}

/// Each rank adds to one counter, and the last of a group to another one for each; each rank posts
/// to at most `fan_in` ranks of each level.
#[test]
fn a_fence_of_a_tree_costs_a_fetch_per_level_at_most_and_a_release_per_rank() {
    for (ranks, fan_in, fetches) in [(1, 2, 1), (2, 2, 2), (8, 2, 14), (8, 16, 8), (33, 16, 36)] {
        let all = Rc::new(Cell::new(SimCounts::default()));
        let sum = all.clone();
        on_ranks(ranks, move |sim| {
            let kind = BarrierKind::Tree { fan_in };
            let levels = (1..).find(|level| fan_in.pow(*level) >= ranks).unwrap();
            let paid = cost(sim, |sim| fence::fence(sim, kind, 1, true).unwrap());
            assert!((1..=levels).contains(&paid.fetch), "{paid:?}");
            assert!(paid.post <= levels * fan_in, "{paid:?}");
            let before = sum.get();
            let (fetch, post) = (before.fetch + paid.fetch, before.post + paid.post);
            sum.set(SimCounts { fetch, post, flush_all: paid.flush_all, ..before });
        });
        let posts = SimCounts { fetch: fetches, post: ranks, flush_all: 1, ..SimCounts::default() };
        assert_eq!(all.get(), posts);
    }
}

#[test]
fn an_epoch_costs_one_post_per_rank_of_a_group_at_post_and_complete() {
    on_ranks(4, |sim| {
        let others = || (0..4).map(Rank).filter(|&rank| rank != sim.rank());
        let none = SimCounts::default();
        let post = cost(sim, |sim| pscw::post(sim, others()).unwrap());
        assert_eq!(post, SimCounts { post: 3, ..none });
        let start = cost(sim, |sim| pscw::start(sim, others()).unwrap());
        assert_eq!(start, none);
        let complete = cost(sim, |sim| pscw::complete(sim, others()).unwrap());
        assert_eq!(complete, SimCounts { post: 3, flush_all: 1, ..none });
        let wait = cost(sim, |sim| pscw::wait(sim, 3).unwrap());
        assert_eq!(wait, none);
    });
}

#[test]
fn an_access_to_a_region_is_two_fetches_and_a_read() {
    let known = |sim: &Sim| {
        hold(sim, TARGET, 0).unwrap();
        seen(sim, TARGET).unwrap();
        release(sim, TARGET).unwrap();
    };
    costs(known, SimCounts { fetch: 2, read: 1, order: 1, ..SimCounts::default() });
    let changed = |sim: &Sim| {
        hold(sim, TARGET, 0).unwrap();
        let id = seen(sim, TARGET).unwrap();
        table(sim, TARGET, id).unwrap();
        release(sim, TARGET).unwrap();
    };
    costs(changed, SimCounts { fetch: 2, read: 5, order: 1, ..SimCounts::default() });
}

#[test]
fn an_attach_or_a_detach_is_two_fetches_of_the_own_word() {
    let attach = |sim: &Sim| change(sim, 0, || Ok((Table::default(), Change::Cut))).unwrap();
    costs(attach, SimCounts { fetch: 2, order: 1, ..SimCounts::default() });
}
