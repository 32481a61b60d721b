//! The standing intent on load and store: under loom, and on threads of the machine, as in
//! `orderings.rs`.

use super::orderings::{
    ASLEEP, AWAKE, Memory, THREE, TWO, increment, increments, memory, read_all,
};
use crate::lock::{Held, Intent, SpareIntent, lock_exclusive, unlock_exclusive};
use crate::rank_numbers::Rank;
use fompi_simulator::thread_words::{self, Heap, HeapWords};
use fompi_testkit::model;

#[cfg(loom)]
use loom::thread;
#[cfg(not(loom))]
use std::thread;

/// Runs a body per rank, the last one on this thread, after a rank has left its intent to stand.
fn ranks(spins: u32, bodies: Vec<fn(&HeapWords, &Memory)>) -> Memory {
    let (heap, memory) = (Heap::window(bodies.len() as u32), memory());
    let last = bodies.len() - 1;
    let own = thread_words::words(&heap, Rank(last as u32), spins);
    lock_exclusive(&own, Rank(0), Held::Nothing, 0).unwrap();
    unlock_exclusive(&own, Rank(0), SpareIntent::Offer).unwrap();
    let spawn = |(rank, body): (usize, fn(&HeapWords, &Memory))| {
        let words = thread_words::words(&heap, Rank(rank as u32), spins);
        let memory = memory.clone();
        thread::spawn(move || body(&words, &memory))
    };
    let others: Vec<_> = bodies[..last].iter().copied().enumerate().map(spawn).collect();
    bodies[last](&own, &memory);
    others.into_iter().for_each(|thread| thread.join().unwrap());
    memory
}

fn write(words: &HeapWords, memory: &Memory) {
    let intent = lock_exclusive(words, Rank(0), Held::Nothing, 0).unwrap();
    increment(&memory[0]);
    increment(&memory[1]);
    let spare = if intent == Intent::Own { SpareIntent::Offer } else { SpareIntent::None };
    unlock_exclusive(words, Rank(0), spare).unwrap();
}

fn read_all_here(words: &HeapWords, memory: &Memory) {
    read_all(words, memory);
}

fn write_twice(words: &HeapWords, memory: &Memory) {
    write(words, memory);
    write(words, memory);
}

#[test]
fn loom_the_end_of_the_standing_intent_and_a_writer_exclude_each_other() {
    let bodies = || vec![write as fn(&HeapWords, &Memory), read_all_here];
    model(TWO, move || assert_eq!(increments(&ranks(AWAKE, bodies())), 1));
    model(TWO, move || assert_eq!(increments(&ranks(ASLEEP, bodies())), 1));
}

#[test]
fn loom_a_writer_comes_back_while_the_standing_intent_ends() {
    let bodies = || vec![write_twice as fn(&HeapWords, &Memory), read_all_here];
    model(THREE, move || assert_eq!(increments(&ranks(ASLEEP, bodies())), 2));
}

#[test]
fn loom_two_that_want_lock_all_end_the_standing_intent_once() {
    let bodies = || vec![write as fn(&HeapWords, &Memory), read_all_here, read_all_here];
    model(2, move || assert_eq!(increments(&ranks(ASLEEP, bodies())), 1));
}

#[test]
fn loom_two_writers_under_the_standing_intent_and_lock_all_exclude_each_other() {
    let bodies = || vec![write as fn(&HeapWords, &Memory), write, read_all_here];
    model(2, move || assert_eq!(increments(&ranks(ASLEEP, bodies())), 2));
}
