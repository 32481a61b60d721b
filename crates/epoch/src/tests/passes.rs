//! Calls on several words as plain loops against calls on single words, in the simulator and under
//! loom: no change is lost, with or without passes.

use super::orderings::{ASLEEP, AWAKE};
use crate::error::Result;
use crate::fabric::layout::{self, COMPLETE, fence};
use crate::fabric::{Fetch, WordAt, Words};
use crate::lock::passes::{Caller, Others, SwitchLimits, several, single};
use crate::rank_numbers::Rank;
use fompi_simulator::thread_words::{self, Heap, HeapWords};
use fompi_simulator::{FLAT, Fault, Sim, SimShape, View, every, is_caught};
use fompi_testkit::model;

#[cfg(loom)]
use loom::thread;
#[cfg(not(loom))]
use std::thread;

/// The rank that owns the words.
const TARGET: Rank = Rank(1);
/// The words. A call on several changes two that follow each other.
const WORDS: u32 = 4;
const TIMES: u64 = 6;

/// A caller that withdraws passes after this number of elements, and closes a target for one call.
pub(super) fn caller(words: &impl Words, elements: u64) -> Caller {
    let limits = SwitchLimits { elements, calls: 1 };
    Caller { rank: words.rank(), threads: false, fences: 0, limits }
}

fn data(target: Rank, index: u32) -> WordAt {
    WordAt { rank: target, word: fence(index) }
}

/// Stores a value whatever the word holds, as a plain store does.
fn store(words: &impl Words, at: WordAt, value: u64) -> Result<()> {
    let mut seen = words.read(at)?;
    loop {
        match words.fetch(at, Fetch::CompareSwap { expect: seen, new: value })? {
            before if before == seen => return Ok(()),
            before => seen = before,
        }
    }
}

/// Adds 1 to two words: by a plain loop where no other rank changes them.
fn add_to_two(words: &impl Words, target: Rank, first: u32, others: Others) -> Result<()> {
    for index in first..first + 2 {
        let at = data(target, index);
        match others {
            Others::None => store(words, at, words.read(at)? + 1)?,
            Others::OnSingleWords => words.fetch(at, Fetch::Add(1)).map(drop)?,
        }
    }
    Ok(())
}

/// A fault in the calls, if any.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Slip {
    Nothing,
    /// a plain loop in any case
    Plain,
    /// a call on a single word does not ask for its pass
    NoPass,
    /// a rank with several threads says that it has one
    Threads,
}

/// Each rank calls on single words and on several, at random, and counts what it has added.
fn calls(slip: Slip) -> impl Fn(&Sim) + 'static {
    move |sim| {
        let words = &sim.view::<FLAT>(Fault::Nothing);
        let threads = sim.threads() > 1 && slip != Slip::Threads;
        let caller = Caller { threads, ..caller(words, 4) };
        let mut added = [0; WORDS as usize];
        for _ in 0..TIMES {
            call(sim, words, (slip, caller), &mut added);
        }
        // The sums of all ranks arrive in words of their own.
        for index in 0..WORDS {
            let to = data(TARGET, WORDS + index);
            words.fetch(to, Fetch::Add(added[index as usize])).unwrap();
        }
        words.post(WordAt { rank: Rank(0), word: COMPLETE }, 1).unwrap();
        if words.rank() == Rank(0) && sim.thread() == 0 {
            let all = u64::from(words.size() * sim.threads());
            words.wait_own(COMPLETE, |ended| ended == all).unwrap();
            for index in 0..WORDS {
                let sum = words.read(data(TARGET, index)).unwrap();
                let added = words.read(data(TARGET, WORDS + index)).unwrap();
                assert_eq!(sum, added, "a change is lost");
            }
        }
    }
}

fn call(
    sim: &Sim,
    words: &View<FLAT>,
    (slip, caller): (Slip, Caller),
    added: &mut [u64; WORDS as usize],
) {
    let at = (TARGET, caller);
    if sim.random(2) == 0 {
        let plain = |others| if slip == Slip::Plain { Others::None } else { others };
        let first = sim.random(WORDS - 1);
        let work = |others| add_to_two(words, TARGET, first, plain(others));
        several(words, at, 2, sim.thread(), work).unwrap();
        [first, first + 1].into_iter().for_each(|index| added[index as usize] += 1);
        return;
    }
    let index = sim.random(WORDS);
    let add = || words.fetch(data(TARGET, index), Fetch::Add(1));
    match slip {
        Slip::NoPass => add(),
        _ => single(words, at, sim.thread(), add),
    }
    .unwrap();
    added[index as usize] += 1;
}

fn right() -> impl Fn(&Sim) + 'static {
    calls(Slip::Nothing)
}

#[test]
fn plain_loops_lose_no_change() {
    for ranks in [2, 3, 5] {
        every(ranks, right, |_| {});
    }
    every(SimShape { threads: 2, ..SimShape::from(3) }, right, |_| {});
}

#[test]
fn lost_changes_are_noticed() {
    assert!(is_caught(3, || calls(Slip::Plain)), "plain loops beside calls on single words");
    assert!(is_caught(3, || calls(Slip::NoPass)), "calls on single words without a pass");
    let threads = SimShape { threads: 3, ..SimShape::from(2) };
    assert!(is_caught(threads, || calls(Slip::Threads)), "threads that are not counted");
}

/// What a call on several words of rank 0 finds.
fn others(words: &HeapWords, caller: Caller, elements: u64) -> Others {
    several(words, (Rank(0), caller), elements, 0, Ok).unwrap()
}

/// A call on a single word of rank 0.
fn change(words: &HeapWords, caller: Caller) {
    single(words, (Rank(0), caller), 0, || Ok(())).unwrap();
}

/// Whether a rank of three has a pass at rank 0.
fn has_pass(words: &HeapWords, rank: u32) -> bool {
    let (index, bit) = layout::bit_of(Rank(rank));
    words.read(WordAt { rank: Rank(0), word: layout::pass(index, 3) }).unwrap() & bit != 0
}

#[test]
fn a_target_switches_after_calls_that_were_slow() {
    let heap = Heap::window(3);
    let words = [0, 1, 2].map(|rank| thread_words::words(&heap, Rank(rank), 10));
    let [a, b, c] = [0, 1, 2].map(|rank| {
        let limits = SwitchLimits { elements: 10, calls: 2 };
        Caller { limits, ..caller(&words[rank], 0) }
    });
    let pass = |rank| has_pass(&words[0], rank);
    let add = |rank: usize, caller| change(&words[rank], caller);
    assert_eq!(others(&words[0], a, 100), Others::None);
    add(0, a);
    assert!(pass(0), "an open target");
    assert_eq!(others(&words[0], a, 100), Others::None, "the caller's own pass");
    assert_eq!(others(&words[1], b, 4), Others::OnSingleWords);
    assert!(!pass(0), "calls on single words wait for calls on several");
    add(0, a);
    assert!(pass(0), "few elements so far");
    assert_eq!(others(&words[1], b, 6), Others::OnSingleWords);
    assert_eq!(others(&words[2], c, 1), Others::OnSingleWords, "rank 0 owes its pass");
    add(0, a);
    assert!(!pass(0), "as many as a switch costs: a closed target");
    assert_eq!(others(&words[2], c, 1), Others::None);
    add(0, a);
    assert!(!pass(0), "the call on several words has restarted the count");
    add(1, b);
    assert!(!pass(0) && pass(1), "open again after two calls");
    let later = Caller { fences: 1, ..c };
    assert_eq!(others(&words[2], c, 10), Others::OnSingleWords);
    assert_eq!(others(&words[2], later, 1), Others::None, "a fence later");
}

#[test]
fn a_rank_with_threads_keeps_its_target_open() {
    let heap = Heap::window(2);
    let words = [0, 1].map(|rank| thread_words::words(&heap, Rank(rank), 10));
    let threads = Caller { threads: true, ..caller(&words[0], 1) };
    for fences in [0, 1] {
        change(&words[0], threads);
        assert_eq!(others(&words[0], threads, 100), Others::OnSingleWords, "another thread of it");
        change(&words[0], threads);
        assert_ne!(words[0].own(layout::pass(0, 2)), 0, "open");
        let later = Caller { fences, ..caller(&words[1], 1) };
        assert_eq!(others(&words[1], later, 100), Others::OnSingleWords);
        assert_eq!(others(&words[1], later, 100), Others::OnSingleWords, "for ever");
    }
}

#[test]
fn each_rank_has_a_pass_of_its_own() {
    let heap = Heap::window(130);
    let words = |rank| thread_words::words(&heap, Rank(rank), 10);
    for rank in [0, 63, 64, 129] {
        let add = || change(&words(rank), caller(&words(rank), 1));
        add();
        assert_eq!(others(&words(5), caller(&words(5), 1), 1), Others::OnSingleWords);
        assert_eq!(others(&words(5), caller(&words(5), 1), 1), Others::OnSingleWords, "owed");
        add();
        assert_eq!(others(&words(5), caller(&words(5), 1), 1), Others::OnSingleWords, "a pass");
        let later = Caller { fences: 1 + u64::from(rank), ..caller(&words(rank), 1) };
        assert_eq!(others(&words(rank), later, 1), Others::None);
    }
}

/// Rank 0 makes two calls on two words from `first` on, each other rank one on each single word.
fn loops_beside(callers: u32, spins: u32, first: u32, single_words: [u32; 2]) {
    let heap = Heap::window(callers);
    let run = |rank: u32| {
        let words = thread_words::words(&heap, Rank(rank), spins);
        move || {
            let at = (Rank(0), caller(&words, 1));
            if rank == 0 {
                for _ in 0..2 {
                    let work = |others| add_to_two(&words, Rank(0), first, others);
                    several(&words, at, 2, 0, work).unwrap();
                }
                return;
            }
            for index in single_words {
                let add = || words.fetch(data(Rank(0), index), Fetch::Add(1));
                single(&words, at, 0, add).unwrap();
            }
        }
    };
    let others: Vec<_> = (1..callers).map(|rank| thread::spawn(run(rank))).collect();
    run(0)();
    others.into_iter().for_each(|other| other.join().unwrap());
    let words = thread_words::words(&heap, Rank(0), 0);
    for index in 0..WORDS {
        let looped = if (first..first + 2).contains(&index) { 2 } else { 0 };
        let times = single_words.iter().filter(|word| **word == index).count() as u64;
        let sum = looped + u64::from(callers - 1) * times;
        assert_eq!(words.own(fence(index)), sum, "a change of word {index} is lost");
    }
}

#[test]
fn loom_a_plain_loop_and_calls_on_single_words_lose_no_change() {
    model(4, || loops_beside(2, AWAKE, 0, [0, 0]));
    model(2, || loops_beside(3, ASLEEP, 0, [0, 0]));
}
