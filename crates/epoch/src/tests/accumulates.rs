//! Accumulates that no single operation can do, on the simulator: the lock and the first read of
//! what it guards in one round trip.

use crate::fabric::layout::ACC;
use crate::fabric::{WordAt, Words};
use crate::lock::acquire_and_read::{begin_acquire, end_acquire};
use crate::lock::{Mode, release};
use crate::rank_numbers::Rank;
use fompi_simulator::{FAR, Fault, Profile, Sim, SimCounts, View, every, is_caught, run};

const AT: WordAt = WordAt { rank: Rank(1), word: ACC };
const TIMES: u64 = 6;

/// A fault in an accumulate, if any.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Slip {
    Nothing,
    /// it reads before it asks for the lock
    Early,
    /// it does not read again when it had to wait for the lock
    Stale,
}

/// Adds 1 to two cells, which are equal under the lock.
fn add(words: &View<FAR>, slip: Slip) {
    let sim = words.sim;
    let get = || [0, 1].map(|cell| sim.get(AT.rank, cell));
    let early = (slip == Slip::Early).then(get);
    let ticket = begin_acquire(words, AT, Mode::Exclusive).unwrap();
    words.order(AT.rank).unwrap();
    let mut got = early.unwrap_or_else(get);
    let is_first = end_acquire(words, (AT, ticket), Mode::Exclusive, false, 0).unwrap();
    if !is_first && slip != Slip::Stale {
        got = get();
    }
    sim.far(Fault::Nothing).flush(AT.rank).unwrap();
    let [one, other] = got.map(|buffer| sim.got(buffer));
    assert_eq!(one, other, "half of an accumulate");
    sim.put(AT.rank, 0, one + 1);
    sim.put(AT.rank, 1, other + 1);
    release(words, AT, Mode::Exclusive).unwrap();
}

fn accumulates(fault: Fault, slip: Slip) -> impl Fn(&Sim) + 'static {
    move |sim| {
        (0..TIMES).for_each(|_| add(&sim.far(fault), slip));
        // All accumulates are done when this rank reads the sum; otherwise the world does not end
        // well.
        while sim.index() == AT.rank && sim.load(0) < TIMES * u64::from(sim.shape().ranks) {
            sim.step();
        }
    }
}

#[test]
fn accumulates_lose_no_addition() {
    for ranks in [2, 3, 6] {
        every(ranks, || accumulates(Fault::Nothing, Slip::Nothing), |_| {});
    }
}

#[test]
fn what_an_accumulate_forgets_is_noticed() {
    for slip in [Slip::Early, Slip::Stale] {
        assert!(is_caught(3, || accumulates(Fault::Nothing, slip)), "{slip:?} is not noticed");
    }
    assert!(is_caught(3, || accumulates(Fault::Order, Slip::Nothing)), "puts after the release");
}

/// Two waits: one for the lock with what it guards, and one for its release with the puts.
#[test]
fn an_accumulate_waits_twice() {
    let body = |sim: &Sim| {
        let words = sim.far(Fault::Nothing);
        if sim.index() == Rank(0) {
            add(&words, Slip::Nothing);
            let paid = SimCounts { fetch: 2, order: 2, flush: 1, ..SimCounts::default() };
            assert_eq!(words.counts(), paid);
        }
    };
    assert_eq!(run(2, Profile::Late, 1, body).err(), None);
}
