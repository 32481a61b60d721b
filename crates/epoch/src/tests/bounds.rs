//! The most operations that a contended lock costs where its word is far: bounds that hold for
//! every run, and that are reached.

use crate::error::Result;
use crate::fabric::layout::{
    DOORBELL, LIST, LIST_WORDS, LOCK, LOCKS, RENDEZVOUS_SLOTS, WORDS_FAR, rendezvous, tickets,
};
use crate::fabric::{Fetch, WordAt, Words};
use crate::lock::tickets::JOINS_MAX;
use crate::lock::{
    Held, Mode, Nodes, SpareIntent, acquire, lock_all, lock_exclusive, release, unlock_all,
    unlock_exclusive,
};
use crate::rank_numbers::Rank;
use fompi_simulator::{
    FAR, FLAT, Fault, PROFILES, Profile, Sim, SimCounts, View, every, run, seeds,
};
use std::cell::Cell;
use std::collections::BTreeSet;
use std::rc::Rc;

const TARGET: WordAt = WordAt { rank: Rank(1), word: LOCK };

/// The fetches of a writer: the first CompareSwap, the ticket, two rendezvous, the waiter, the
/// CompareSwap that takes the lock, the end of the turn.
const FETCHES_MAX: u32 = 1 + 1 + 2 + 1 + 1 + 1;
/// The posts of a writer: the two rendezvous slots that it empties, its link, and the turn that it
/// passes on.
const POSTS_MAX: u32 = 2 + 1 + 1;

/// The cost of the steps of all ranks.
#[derive(Clone, Copy, Default)]
struct Tally {
    fetches_max: u32,
    posts_max: u32,
    fetches: u64,
    times: u64,
}

impl Tally {
    fn add(tally: &Cell<Tally>, before: SimCounts, after: SimCounts) {
        let (fetches, posts) = (after.fetch - before.fetch, after.post - before.post);
        let seen = tally.get();
        tally.set(Tally {
            fetches_max: seen.fetches_max.max(fetches),
            posts_max: seen.posts_max.max(posts),
            fetches: seen.fetches + u64::from(fetches),
            times: seen.times + 1,
        });
    }
}

/// Takes the lock in a mode, and counts the operations.
fn take<const V: usize>(words: &View<V>, mode: Mode, tally: &Cell<Tally>) {
    let before = words.counts();
    acquire(words, TARGET, mode, false, words.sim.thread()).unwrap();
    Tally::add(tally, before, words.counts());
}

/// All ranks take the lock at once, a few times; one of `readers` times, at random, shared.
fn contenders<const V: usize>(ranks: u32, readers: u32, tally: &Rc<Cell<Tally>>) {
    let seeds = 0..if ranks > 16 { 10 } else { seeds().end };
    for (seed, profile) in seeds.flat_map(|seed| PROFILES.map(|profile| (seed, profile))) {
        let tally = tally.clone();
        let body = move |sim: &Sim| {
            let words = sim.view::<V>(Fault::Nothing);
            for _ in 0..4 {
                let is_reader = readers > 0 && sim.random(readers) == 0;
                let mode = if is_reader { Mode::Shared } else { Mode::Exclusive };
                take(&words, mode, &tally);
                release(&words, TARGET, mode).unwrap();
            }
        };
        if let Err(why) = run(ranks, profile, seed, body) {
            panic!("seed {seed}, {profile:?}: {why}");
        }
    }
}

fn tally<const V: usize>(ranks: u32, readers: u32) -> Tally {
    let tally = Rc::default();
    contenders::<V>(ranks, readers, &tally);
    tally.get()
}

#[test]
fn far_words_do_not_grow_with_the_ranks() {
    assert_eq!(WORDS_FAR, 392);
    let slots =
        LOCKS.map(|lock| (0..2 * RENDEZVOUS_SLOTS).map(move |ticket| rendezvous(lock, ticket)));
    let slots = slots.into_iter().flatten().map(|slot| slot.0).collect::<BTreeSet<_>>();
    assert_eq!(slots.len(), LOCKS.len() * RENDEZVOUS_SLOTS as usize); // none is of two locks
    assert!(slots.iter().all(|slot| (LIST.0 + LIST_WORDS..DOORBELL.0).contains(slot)));
}

#[test]
fn a_writer_costs_no_more_however_many_there_are() {
    for ranks in [2, 4, 8, 16, 32, RENDEZVOUS_SLOTS] {
        let far = tally::<FAR>(ranks, 0);
        assert_eq!(far.fetches_max, FETCHES_MAX, "{ranks} ranks");
        assert!(far.posts_max <= POSTS_MAX, "{} posts", far.posts_max);
    }
    // The reason for tickets: where all enter a queue by CompareSwap they repeat it.
    let (flat, far) = (tally::<FLAT>(16, 0), tally::<FAR>(16, 0));
    assert!(flat.fetches_max > 2 * FETCHES_MAX);
    assert!(flat.fetches > far.fetches, "{} against {}", flat.fetches, far.fetches);
}

/// A reader tries to join, too, and then once more for each other reader that leaves meanwhile.
#[test]
fn a_reader_costs_more_only_if_other_readers_leave() {
    for (ranks, readers) in [(4, 2), (16, 4), (16, 2), (16, 1), (RENDEZVOUS_SLOTS, 2)] {
        let far = tally::<FAR>(ranks, readers);
        assert!(far.fetches_max <= FETCHES_MAX + JOINS_MAX + (ranks - 1), "{}", far.fetches_max);
        assert!(far.posts_max <= POSTS_MAX, "{} posts", far.posts_max);
    }
}

#[test]
fn more_contenders_than_rendezvous_slots_all_get_the_lock() {
    for (seed, profile) in (0..4).flat_map(|seed| PROFILES.map(|profile| (seed, profile))) {
        let end = run(2 * RENDEZVOUS_SLOTS + 5, profile, seed, |sim: &Sim| {
            let words = sim.far(Fault::Nothing);
            for _ in 0..3 {
                acquire(&words, TARGET, Mode::Exclusive, false, Waits(sim)).unwrap();
                let value = sim.get(TARGET.rank, 0);
                words.flush(TARGET.rank).unwrap();
                sim.put(TARGET.rank, 0, sim.got(value) + 1);
                release(&words, TARGET, Mode::Exclusive).unwrap();
            }
        });
        assert_eq!(end.unwrap().cell(TARGET.rank, 0), u64::from(3 * (2 * RENDEZVOUS_SLOTS + 5)));
    }
}

/// Tickets are 32 bits wide; the counts of those drawn and of turns go around one after the other.
#[test]
fn tickets_go_around() {
    let body = || {
        let inside = Cell::new(false);
        let is_set = Cell::new(false);
        move |sim: &Sim| {
            let words = sim.far(Fault::Nothing);
            if sim.index() == Rank(0) {
                let drawn = u64::from(u32::MAX - 5);
                let at = WordAt { word: tickets(LOCK), ..TARGET };
                words.fetch(at, Fetch::Add(drawn << 32 | drawn)).unwrap();
                is_set.set(true);
            }
            while !is_set.get() {
                sim.step();
            }
            for _ in 0..6 {
                acquire(&words, TARGET, Mode::Exclusive, false, 0).unwrap();
                assert!(!inside.replace(true), "two writers");
                sim.step();
                inside.set(false);
                release(&words, TARGET, Mode::Exclusive).unwrap();
            }
        }
    };
    every(4, body, |end| {
        let tickets = end.word_of(FAR, WordAt { word: tickets(LOCK), ..TARGET });
        assert_eq!(tickets >> 32, tickets & u64::from(u32::MAX));
    });
}

#[test]
fn a_free_lock_costs_what_it_costs_near() {
    let body = |sim: &Sim| {
        let words = sim.far(Fault::Nothing);
        if sim.index() == Rank(0) {
            lock_exclusive(&words, Rank(1), Held::Nothing, 0).unwrap();
            unlock_exclusive(&words, Rank(1), SpareIntent::Release).unwrap();
            // Both words at once, so that one order is enough.
            assert_eq!(words.counts(), SimCounts { fetch: 4, order: 1, ..SimCounts::default() });
            lock_all(&words, 0).unwrap();
            unlock_all(&words).unwrap();
            let both = SimCounts { fetch: 6, order: 2, flush_all: 1, ..SimCounts::default() };
            assert_eq!(words.counts(), both);
        }
    };
    assert_eq!(run(2, Profile::Late, 1, body).err(), None);
}

/// The node of a rank with one thread. A pause is a step of the simulator.
struct Waits<'a, 'b>(&'a Sim<'b>);

impl Nodes for Waits<'_, '_> {
    fn take(&self) -> Option<u32> {
        Some(0)
    }

    fn give_back(&self, _: u32) {}

    fn pause(&self) -> Result<()> {
        self.0.step();
        Ok(())
    }
}
