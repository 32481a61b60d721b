//! The laws of control words, as three ranks see them.

use super::ranks::RANKS;
use fompi_base::rank_numbers::Rank;
use fompi_fabric::layout::{self, COMPLETE, LIST, LOCK, WAITED};
use fompi_fabric::{Fetch, WordAt, WordId, Words};

fn above(words: &impl Words, by: u32) -> Rank {
    Rank((words.rank().0 + by) % words.size())
}

fn add(words: &impl Words, rank: Rank, word: WordId, add: u64) -> u64 {
    words.fetch(WordAt { rank, word }, Fetch::Add(add)).unwrap()
}

fn swap(words: &impl Words, rank: Rank, word: WordId, expect: u64, new: u64) -> u64 {
    words.fetch(WordAt { rank, word }, Fetch::CompareSwap { expect, new }).unwrap()
}

pub fn fetch_answers_what_was_before(words: &impl Words) {
    let rank = above(words, 1);
    assert_eq!(add(words, rank, LOCK, 5), 0);
    assert_eq!(add(words, rank, LOCK, 2u64.wrapping_neg()), 5);
    assert_eq!(swap(words, rank, LOCK, 3, 9), 3);
    assert_eq!(swap(words, rank, LOCK, 3, 1), 9);
    assert_eq!(words.read(WordAt { rank, word: LOCK }).unwrap(), 9);
}

pub fn an_owner_changes_its_contended_words_by_fetch(words: &impl Words) {
    assert_eq!(add(words, words.rank(), LOCK, u64::MAX), 0);
    assert_eq!(words.own(LOCK), u64::MAX);
    assert_eq!(swap(words, words.rank(), LOCK, u64::MAX, 7), u64::MAX);
    assert_eq!(words.own(LOCK), 7);
}

pub fn begun_fetches_are_all_answered(words: &impl Words) {
    let targets = || (0..RANKS).map(Rank);
    let at = |rank| WordAt { rank, word: LOCK };
    let begun: Vec<_> =
        targets().map(|rank| words.begin(at(rank), Fetch::Add(1)).unwrap()).collect();
    for ticket in begun {
        assert!(words.finish(ticket).unwrap() < u64::from(RANKS));
    }
    assert!(targets().all(|rank| words.read(at(rank)).unwrap() >= 1));
}

pub fn the_answer_of_a_begun_fetch_behind_an_order_is_a_flush(words: &impl Words) {
    let (rank, word) = (above(words, 1), layout::fence(0));
    words.post(WordAt { rank, word }, 1).unwrap();
    words.order(rank).unwrap();
    let ticket = words.begin(WordAt { rank, word: LOCK }, Fetch::Add(0)).unwrap();
    words.finish(ticket).unwrap();
    check_by_another(words);
}

pub fn all_posts_are_counted(words: &impl Words) {
    for _ in 0..50 {
        words.post(WordAt { rank: Rank(0), word: COMPLETE }, 1).unwrap();
    }
    if words.rank() == Rank(0) {
        assert_eq!(words.wait_own(COMPLETE, |count| count >= 150).unwrap(), 150);
    }
}

pub fn one_compare_swap_wins(words: &impl Words) {
    let lost = swap(words, Rank(0), LOCK, 0, 1) != 0;
    let score = if lost { 1 << 32 } else { 1 };
    words.post(WordAt { rank: Rank(0), word: COMPLETE }, score).unwrap();
    if words.rank() == Rank(0) {
        words.wait_own(COMPLETE, |scores| scores == 2 << 32 | 1).unwrap();
    }
}

pub fn a_post_arrives_without_a_flush(words: &impl Words) {
    let word = layout::fence(0);
    words.post(WordAt { rank: above(words, 1), word }, 1).unwrap();
    words.wait_own(word, |value| value == 1).unwrap();
}

/// A token goes round among the ranks, up and then down: each post finds a rank that sleeps or is
/// about to.
pub fn a_post_wakes_a_rank_that_sleeps(words: &impl Words) {
    for (word, up) in [(layout::fence(0), 1), (layout::fence(1), words.size() - 1)] {
        for round in 1..=100 {
            if words.rank() != Rank(0) {
                words.wait_own(word, |count| count == round).unwrap();
            }
            words.post(WordAt { rank: above(words, up), word }, 1).unwrap();
            if words.rank() == Rank(0) {
                words.wait_own(word, |count| count == round).unwrap();
            }
        }
    }
}

pub fn an_awaited_post_arrives_and_is_ordered(words: &impl Words) {
    let (rank, first, second) = (above(words, 1), layout::fence(0), layout::fence(1));
    for _ in 1..=20 {
        words.post(WordAt { rank, word: first }, 1).unwrap();
        words.order(rank).unwrap();
        words.post_awaited(WordAt { rank, word: second }, 1).unwrap();
    }
    for value in 1..=20 {
        let seen = words.wait_own(second, |seen| seen >= value).unwrap();
        assert!(words.own(first) >= seen);
    }
}

pub fn order_keeps_posts_in_order(words: &impl Words) {
    let (rank, first, second) = (above(words, 1), layout::fence(0), layout::fence(1));
    for _ in 1..=20 {
        words.order(rank).unwrap();
        words.post(WordAt { rank, word: first }, 1).unwrap();
        words.order(rank).unwrap();
        words.post(WordAt { rank, word: second }, 1).unwrap();
    }
    for value in 1..=20 {
        let seen = words.wait_own(second, |seen| seen >= value).unwrap();
        assert!(words.own(first) >= seen);
    }
}

pub fn what_is_flushed_is_there_for_all(words: &impl Words) {
    let (rank, word) = (above(words, 1), layout::fence(0));
    words.post(WordAt { rank, word }, 1).unwrap();
    words.flush(rank).unwrap();
    check_by_another(words);
}

pub fn what_is_flushed_for_all_is_there_for_all(words: &impl Words) {
    let (rank, word) = (above(words, 1), layout::fence(0));
    words.post(WordAt { rank, word }, 1).unwrap();
    words.flush_all().unwrap();
    check_by_another(words);
}

pub fn an_answer_behind_an_order_is_a_flush(words: &impl Words) {
    let (rank, word) = (above(words, 1), layout::fence(0));
    words.post(WordAt { rank, word }, 1).unwrap();
    words.order(rank).unwrap();
    add(words, rank, LOCK, 0);
    check_by_another(words);
}

pub fn two_words_are_changed_at_once(words: &impl Words) {
    let at = |by: u32, word: WordId| WordAt { rank: above(words, by), word };
    let (add, swap) = (Fetch::Add(3), Fetch::CompareSwap { expect: 0, new: 9 });
    // Of one rank, and of two.
    let both = [(at(1, LOCK), add), (at(1, COMPLETE), swap)];
    assert_eq!(words.fetch_both(both), [Ok(0), Ok(0)]);
    assert_eq!(words.fetch_both(both), [Ok(3), Ok(9)]);
    let both = [(at(1, LOCK), add), (at(2, layout::fence(0)), add)];
    assert_eq!(words.fetch_both(both), [Ok(6), Ok(0)]);
    assert_eq!(words.read(at(1, LOCK)), Ok(9));
    assert_eq!(words.read(at(1, COMPLETE)), Ok(9));
    assert_eq!(words.read(at(2, layout::fence(0))), Ok(3));
}

pub fn what_is_ordered_is_there_before_what_follows(words: &impl Words) {
    let (first, word) = (above(words, 1), layout::fence(0));
    let (second, told) = (above(words, 2), layout::fence(1));
    for round in 1..=20 {
        words.post(WordAt { rank: first, word }, 1).unwrap();
        words.order(first).unwrap();
        if !words.is_ordered(first, second) {
            words.flush(first).unwrap();
        }
        words.post(WordAt { rank: second, word: told }, 1).unwrap();
        // The rank above this one has posted to the one below this one.
        words.wait_own(told, |posts| posts >= round).unwrap();
        assert!(words.read(WordAt { rank: above(words, 2), word }).unwrap() >= round);
    }
}

pub fn what_is_flushed_or_ordered_is_there_for_all(words: &impl Words) {
    let (rank, word) = (above(words, 1), layout::fence(0));
    words.post(WordAt { rank, word }, 1).unwrap();
    words.flush_others(above(words, 2)).unwrap();
    words.order(above(words, 2)).unwrap();
    add(words, above(words, 2), LOCK, 0);
    check_by_another(words);
}

/// Asks the rank above the one that this rank posted to for the word: it reads 1.
fn check_by_another(words: &impl Words) {
    words.post(WordAt { rank: above(words, 2), word: COMPLETE }, 1).unwrap();
    words.wait_own(COMPLETE, |count| count == 1).unwrap();
    let posted = WordAt { rank: above(words, 2), word: layout::fence(0) };
    assert_eq!(words.read(posted).unwrap(), 1);
}

pub fn what_an_owner_stores_is_seen_by_others<W: Words>(words: &W) {
    let word = if W::FAR { LIST } else { WAITED };
    words.set_own(word, 7 + u64::from(words.rank().0));
    let rank = above(words, 1);
    words.post(WordAt { rank, word: layout::fence(0) }, 1).unwrap();
    words.wait_own(layout::fence(0), |count| count == 1).unwrap();
    let below = above(words, 2);
    assert_eq!(words.read(WordAt { rank: below, word }).unwrap(), 7 + u64::from(below.0));
}
