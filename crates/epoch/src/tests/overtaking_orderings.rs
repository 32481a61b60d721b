//! Ranks that overtake waiters, on load and store: under loom, and on threads of the machine, as in
//! `orderings.rs`.

use super::orderings::{ASLEEP, AWAKE, Memory, THREE, TWO, increment, increments, memory};
use crate::error::Result;
use crate::fabric::WordAt;
use crate::fabric::layout::LOCK;
use crate::lock::{Mode, Nodes, acquire, release};
use crate::rank_numbers::Rank;
use fompi_simulator::thread_words::{self, Heap, HeapWords};
use fompi_testkit::model;
use std::cell::Cell;

#[cfg(loom)]
use loom::thread;
#[cfg(not(loom))]
use std::thread;

const AT: WordAt = WordAt { rank: Rank(0), word: LOCK };

/// The only node of a rank that may still overtake others so often.
struct Left(Cell<u32>);

impl Nodes for Left {
    fn take(&self) -> Option<u32> {
        Some(0)
    }

    fn give_back(&self, _: u32) {}

    fn pause(&self) -> Result<()> {
        Ok(())
    }

    fn may_overtake(&self, _: WordAt) -> bool {
        self.0.replace(self.0.get().saturating_sub(1)) > 0
    }
}

/// Each rank takes the lock in this mode so often, the last one on this thread; this one may
/// overtake others, once.
fn ranks(spins: u32, times: &'static [(Mode, u32)]) -> Memory {
    let (heap, memory) = (Heap::window(times.len() as u32), memory());
    let body = |words: &HeapWords, memory: &Memory, (mode, times): (Mode, u32), left: u32| {
        let node = Left(Cell::new(left));
        for _ in 0..times {
            acquire(words, AT, mode, false, &node).unwrap();
            match mode {
                Mode::Exclusive => memory.iter().for_each(increment),
                _ => drop(increments(memory)),
            }
            release(words, AT, mode).unwrap();
        }
    };
    let last = times.len() - 1;
    let spawn = |(rank, times): (usize, &'static (Mode, u32))| {
        let words = thread_words::words(&heap, Rank(rank as u32), spins);
        let memory = memory.clone();
        thread::spawn(move || body(&words, &memory, *times, 0))
    };
    let others: Vec<_> = times[..last].iter().enumerate().map(spawn).collect();
    let words = thread_words::words(&heap, Rank(last as u32), spins);
    body(&words, &memory, times[last], 1);
    others.into_iter().for_each(|thread| thread.join().unwrap());
    memory
}

#[test]
fn loom_a_writer_that_overtakes_excludes_the_waiter() {
    const TIMES: &[(Mode, u32)] = &[(Mode::Exclusive, 1), (Mode::Exclusive, 2)];
    model(TWO, || assert_eq!(increments(&ranks(AWAKE, TIMES)), 3));
    model(TWO, || assert_eq!(increments(&ranks(ASLEEP, TIMES)), 3));
}

#[test]
fn loom_a_writer_overtakes_two_waiters() {
    const TIMES: &[(Mode, u32)] = &[(Mode::Exclusive, 1), (Mode::Shared, 1), (Mode::Exclusive, 2)];
    model(THREE, || assert_eq!(increments(&ranks(ASLEEP, TIMES)), 3));
}

#[test]
fn loom_a_reader_overtakes_a_writer_that_waits() {
    const TIMES: &[(Mode, u32)] = &[(Mode::Exclusive, 1), (Mode::Exclusive, 1), (Mode::Shared, 2)];
    model(THREE, || assert_eq!(increments(&ranks(ASLEEP, TIMES)), 2));
}
