//! What is released when a rank is lost: everything that other ranks can still get.

use crate::epoch::lock::{Held, lock_all, lock_exclusive, unlock_all, unlock_exclusive};
use crate::error::{Error, Result};
use crate::fabric::layout::{self, GLOBAL};
use crate::fabric::shm::heap::{Heap, HeapWords, words};
use crate::fabric::{Fetch, Rank, WordAt, WordId, Words};
use std::cell::Cell;

const VICTIM: Rank = Rank(1);
const ERROR: Error = Error::Died { rank: VICTIM.0, pid: 7 };

/// A road on which a rank is lost from some time on.
struct Cut {
    words: HeapWords,
    lost: Cell<bool>,
}

impl Cut {
    fn reach(&self, rank: Rank) -> Result<&HeapWords> {
        if rank == VICTIM && self.lost.get() { Err(ERROR) } else { Ok(&self.words) }
    }
}

impl Words for Cut {
    type Ticket = u64;

    fn rank(&self) -> Rank {
        self.words.rank()
    }

    fn size(&self) -> u32 {
        self.words.size()
    }

    fn fetch(&self, at: WordAt, op: Fetch) -> Result<u64> {
        self.reach(at.rank)?.fetch(at, op)
    }

    fn begin(&self, at: WordAt, op: Fetch) -> Result<u64> {
        self.fetch(at, op)
    }

    fn finish(&self, before: u64) -> Result<u64> {
        Ok(before)
    }

    fn post(&self, at: WordAt, add: u64) -> Result<()> {
        self.reach(at.rank)?.post(at, add)
    }

    fn read(&self, at: WordAt) -> Result<u64> {
        self.reach(at.rank)?.read(at)
    }

    fn own(&self, word: WordId) -> u64 {
        self.words.own(word)
    }

    fn set_own(&self, word: WordId, value: u64) {
        self.words.set_own(word, value);
    }

    fn wait_own(&self, word: WordId, until: impl Fn(u64) -> bool) -> Result<u64> {
        self.words.wait_own(word, until)
    }

    fn order(&self, rank: Rank) -> Result<()> {
        self.reach(rank)?.order(rank)
    }

    fn flush(&self, rank: Rank) -> Result<()> {
        self.reach(rank)?.flush(rank)
    }

    fn flush_all(&self) -> Result<()> {
        (0..self.size()).try_for_each(|rank| self.flush(Rank(rank)))
    }
}

/// Returns the global word after `lock` was taken, the victim was lost, and `unlock` has failed.
fn left_behind(
    lock: impl Fn(&Cut) -> Result<()>,
    unlock: impl Fn(&Cut) -> Result<()>,
) -> (u64, u64) {
    let heap = Heap::new(3, layout::words_per_rank(3));
    let cut = Cut { words: words(&heap, 2, 10), lost: Cell::new(false) };
    let global = || cut.read(WordAt { rank: Rank(0), word: GLOBAL }).unwrap();
    let free = global();
    lock(&cut).unwrap();
    assert_ne!(global(), free);
    cut.lost.set(true);
    assert_eq!(unlock(&cut), Err(ERROR));
    (global(), free)
}

#[test]
fn a_rank_that_has_lost_another_releases_its_lock_all() {
    let (left, free) = left_behind(|words| lock_all(words, 0), unlock_all);
    assert_eq!(left, free);
}

#[test]
fn a_rank_that_has_lost_another_releases_its_intent() {
    let lock = |words: &Cut| lock_exclusive(words, VICTIM, Held::Nothing, 0);
    let unlock = |words: &Cut| unlock_exclusive(words, VICTIM, Held::Nothing);
    let (left, free) = left_behind(lock, unlock);
    assert_eq!(left, free);
}
