//! Calls on several words as plain loops against calls on single words between nodes, on the
//! simulator: no change is lost.

use super::passes::store;
use crate::epoch::lock::passes::Others;
use crate::epoch::lock::singles::{enter, others};
use crate::epoch::lock::whole::{look_behind, several};
use crate::error::Result;
use crate::fabric::layout::{COMPLETE, fence};
use crate::fabric::sim::{FAR, Fault, Sim, View, every, is_caught};
use crate::fabric::{Fetch, WordAt, Words};
use crate::rank_numbers::Rank;

/// The rank that owns the words.
const TARGET: Rank = Rank(1);
/// The words that a call on several changes.
const WORDS: u32 = 2;
const TIMES: u64 = 6;

/// A fault in the calls, if any.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Slip {
    Nothing,
    /// a plain loop in any case
    Plain,
    /// a rank does not prepare its first call on a single word
    NotEntered,
}

fn data(index: u32) -> WordAt {
    WordAt { rank: TARGET, word: fence(index) }
}

/// Adds 1 to all words: by a plain loop where no other rank changes them.
fn add_to_all(words: &View<FAR>, others: Others) -> Result<()> {
    for at in (0..WORDS).map(data) {
        match others {
            Others::None => store(words, at, words.read(at)? + 1)?,
            Others::OnSingleWords => words.fetch(at, Fetch::Add(1)).map(drop)?,
        }
    }
    Ok(())
}

/// Each rank calls on several words, and later on single ones, too; it counts what it has added.
fn calls(slip: Slip) -> impl Fn(&Sim) + 'static {
    move |sim| {
        let words = &sim.view::<FAR>(Fault::Nothing);
        let (mut added, mut has_entered) = ([0; WORDS as usize], false);
        for _ in 0..TIMES {
            if sim.random(3) > 0 {
                let work = || match slip {
                    Slip::Plain => add_to_all(words, Others::None),
                    _ => add_to_all(words, others(words, TARGET)?),
                };
                several(words, TARGET, 0, work).unwrap();
                added.iter_mut().for_each(|added| *added += 1);
                continue;
            }
            if !core::mem::replace(&mut has_entered, true) && slip != Slip::NotEntered {
                enter(words, TARGET, 0).unwrap();
            }
            let index = sim.random(WORDS);
            words.fetch(data(index), Fetch::Add(1)).unwrap();
            look_behind(words, TARGET, 0).unwrap();
            added[index as usize] += 1;
        }
        // The sums of all ranks arrive in words of their own.
        for index in 0..WORDS {
            words.fetch(data(WORDS + index), Fetch::Add(added[index as usize])).unwrap();
        }
        words.post(WordAt { rank: Rank(0), word: COMPLETE }, 1).unwrap();
        if words.rank() == Rank(0) {
            let all = u64::from(words.size());
            words.wait_own(COMPLETE, |ended| ended == all).unwrap();
            for index in 0..WORDS {
                let sum = words.read(data(index)).unwrap();
                assert_eq!(sum, words.read(data(WORDS + index)).unwrap(), "a change is lost");
            }
        }
        // No rank leaves while others need its words.
        words.flush_all().unwrap();
    }
}

#[test]
fn plain_loops_between_nodes_lose_no_change() {
    for ranks in [2, 3, 5] {
        every(ranks, || calls(Slip::Nothing), |_| {});
    }
}

#[test]
fn lost_changes_between_nodes_are_noticed() {
    assert!(is_caught(3, || calls(Slip::Plain)), "plain loops beside calls on single words");
    assert!(is_caught(3, || calls(Slip::NotEntered)), "calls that were not prepared");
}
