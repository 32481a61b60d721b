//! Accumulates on several words against those on single ones, on the simulator: each is atomic as a
//! whole, with words that are near, and with words that are reached by a device. Under loom:
//! `orderings`.

use super::passes::caller;
use crate::error::Result;
use crate::fabric::layout::fence;
use crate::fabric::{Fetch, WordAt, Words};
use crate::lock::atomic_calls::{check_after, several};
use crate::lock::passes;
use crate::rank_numbers::Rank;
use fompi_simulator::{FAR, FLAT, Fault, Sim, View, every, is_caught};

/// The rank that owns the words.
const TARGET: Rank = Rank(1);
/// The number of words that a call on several changes.
const WORDS: u32 = 4;
const TIMES: u64 = 5;
/// The summand of a call on several words; calls on single words add 1.
const SEVERAL: u64 = 1 << 32;

/// A fault in the calls, if any.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Slip {
    Nothing,
    /// several without the lock
    Unlocked,
    /// a single one does not look
    Blind,
    /// half of the single ones look on the other side
    Mixed,
}

fn data(index: u32) -> WordAt {
    WordAt { rank: TARGET, word: fence(index) }
}

/// Adds to all words, all at once, and returns what they held.
fn add_to_all<const VIEW: usize>(words: &View<VIEW>, add: u64) -> Result<[u64; WORDS as usize]> {
    let mut tickets = Vec::new();
    for index in 0..WORDS {
        tickets.push(words.begin(data(index), Fetch::Add(add))?);
    }
    let mut before = [0; WORDS as usize];
    for (before, ticket) in before.iter_mut().zip(tickets) {
        *before = words.finish(ticket)?;
    }
    Ok(before)
}

fn on_several<const VIEW: usize>(words: &View<VIEW>, add: u64, slip: Slip) -> [u64; 4] {
    match slip {
        Slip::Unlocked => add_to_all(words, add),
        _ if VIEW == FAR => several(words, TARGET, 0, || add_to_all(words, add)),
        _ => {
            let at = (TARGET, caller(words, u64::MAX));
            passes::several(words, at, u64::from(WORDS), 0, |_| add_to_all(words, add))
        }
    }
    .unwrap()
}

fn on_one<const VIEW: usize>(words: &View<VIEW>, index: u32, add: u64, slip: Slip) -> u64 {
    let fetch = || {
        // Time passes between a look and the operation.
        words.read(data(index)).and_then(|_| words.read(data(index)))?;
        words.fetch(data(index), Fetch::Add(add))
    };
    let behind = (VIEW == FAR) != (slip == Slip::Mixed && words.sim.random(2) == 0);
    match (slip, behind) {
        (Slip::Blind, _) => fetch(),
        (_, false) => {
            let at = (TARGET, caller(words, u64::MAX));
            passes::single(words, at, 0, fetch)
        }
        (_, true) => {
            // As on a device: the read of the lock is under way behind the operation.
            let ticket = words.begin(data(index), Fetch::Add(add)).unwrap();
            words.order(TARGET).unwrap();
            check_after(words, TARGET, 0).and_then(|()| words.finish(ticket))
        }
    }
    .unwrap()
}

/// Each rank alternates: it changes several words and reads single ones; or it changes single
/// words, the first one before the last, and reads all. The sum of calls on several words that it
/// sees never shrinks, and the single calls of one rank have added at least as much to the first
/// word as to the last.
fn calls<const VIEW: usize>(slip: Slip) -> impl Fn(&Sim) + 'static {
    move |sim| {
        let words = &sim.view::<VIEW>(Fault::Nothing);
        let (mut seen, me) = (0, words.rank().0);
        let mut see = |word: u64| {
            assert!(word / SEVERAL >= seen, "it is seen, and then it is not");
            seen = word / SEVERAL;
        };
        for time in 0..TIMES {
            if (u64::from(me) + time) % 2 == 0 {
                let before = on_several(words, SEVERAL, slip);
                assert!(before.iter().all(|word| word / SEVERAL == before[0] / SEVERAL), "parts");
                assert!(before[0] % SEVERAL >= before[3] % SEVERAL, "the second of two calls");
                see(before[0] + SEVERAL);
            } else {
                see(on_one(words, 0, 1, slip));
                see(on_one(words, 3, 1, slip));
            }
            for _ in 0..3 {
                let index = sim.random(WORDS);
                see(on_one(words, index, 0, slip));
            }
        }
        // No rank leaves while others need its words.
        words.flush_all().unwrap();
    }
}

fn near(slip: Slip) -> impl Fn(&Sim) + 'static {
    calls::<FLAT>(slip)
}

fn far(slip: Slip) -> impl Fn(&Sim) + 'static {
    calls::<FAR>(slip)
}

#[test]
fn accumulates_are_seen_whole() {
    for ranks in [2, 3, 5] {
        every(ranks, || near(Slip::Nothing), |_| {});
        every(ranks, || far(Slip::Nothing), |_| {});
    }
}

#[test]
fn parts_of_accumulates_are_noticed() {
    for slip in [Slip::Unlocked, Slip::Blind, Slip::Mixed] {
        let near = [3, 4, 5].into_iter().any(|ranks| is_caught(ranks, || near(slip)));
        assert!(near, "near: {slip:?} is not noticed");
        assert!(is_caught(4, || far(slip)), "far: {slip:?} is not noticed");
    }
}
