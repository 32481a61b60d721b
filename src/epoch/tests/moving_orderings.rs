//! Memory that its owner moves, on load and store: under loom, and on threads of the machine, as in
//! `orderings.rs`. The first cell stands for the private memory, the second one for the mapped
//! memory.

use super::orderings::{ASLEEP, AWAKE, Memory, THREE, TWO, increment, memory};
use crate::epoch::moving::{Attempt, attempt, begin, end, first_values, is_private};
use crate::fabric::shm::thread_words::{self, Heap, HeapWords};
use crate::fabric::{WordAt, Words};
use crate::rank_numbers::Rank;
use crate::sync::{Ordering::Relaxed, model};

#[cfg(loom)]
use loom::thread;
#[cfg(not(loom))]
use std::thread;

const OWNER: Rank = Rank(0);

/// Runs the owner, which moves its memory once, on this thread, and other ranks that add to it.
/// Returns the sum.
fn ranks(spins: u32, others: u32) -> u64 {
    let (heap, memory) = (Heap::window(others + 1), memory());
    let own = thread_words::words(&heap, OWNER, spins);
    for (word, value) in first_values(1) {
        own.post(WordAt { rank: OWNER, word }, value).unwrap();
    }
    let spawn = |rank| {
        let (words, memory) = (thread_words::words(&heap, Rank(rank), spins), memory.clone());
        thread::spawn(move || add(&words, &memory))
    };
    let others: Vec<_> = (1..=others).map(spawn).collect();
    let work = || {
        memory[1].store(memory[0].load(Relaxed), Relaxed);
        memory[0].store(u64::MAX, Relaxed);
        Attempt::Ended
    };
    attempt(&own, 0, work).unwrap();
    others.into_iter().for_each(|thread| thread.join().unwrap());
    memory[1].load(Relaxed)
}

/// Adds one to the memory of the owner: where it is private, alone, or where all ranks map it.
fn add(words: &HeapWords, memory: &Memory) {
    let is_held = begin(words, OWNER, 0).unwrap();
    match is_private(words, OWNER).unwrap() {
        true => increment(&memory[0]),
        false => drop(memory[1].fetch_add(1, Relaxed)),
    }
    end(words, OWNER, is_held).unwrap();
}

#[test]
fn loom_an_access_and_a_move_exclude_each_other() {
    model(TWO, || assert_eq!(ranks(AWAKE, 1), 1));
    model(TWO, || assert_eq!(ranks(ASLEEP, 1), 1));
}

#[test]
fn loom_two_ranks_add_while_the_owner_moves_its_memory() {
    // Two that hold the memory shared are not alone there: only one of them finds it private.
    model(THREE, || {
        let sum = ranks(ASLEEP, 2);
        assert!(sum == 1 || sum == 2, "{sum}");
    });
}
