//! What every road for control words must do, one suite over all roads: the laws of
//! [`super::Words`], as three ranks see them. Not for protocols.

use super::layout::{self, COMPLETE, LOCK};
use super::shm::heap::{self, Heap, HeapWords};
use super::sim::{FAR, Fault, Sim, View, every};
use super::verbs::tests;
use super::{Fetch, Rank, WordAt, WordId, Words};

const RANKS: u32 = 3;

fn above(words: &impl Words, by: u32) -> Rank {
    Rank((words.rank().0 + by) % words.size())
}

fn add(words: &impl Words, rank: Rank, word: WordId, add: u64) -> u64 {
    words.fetch(WordAt { rank, word }, Fetch::Add(add)).unwrap()
}

fn swap(words: &impl Words, rank: Rank, word: WordId, expect: u64, new: u64) -> u64 {
    words.fetch(WordAt { rank, word }, Fetch::CompareSwap { expect, new }).unwrap()
}

fn fetch_answers_what_was_before(words: &impl Words) {
    let rank = above(words, 1);
    assert_eq!(add(words, rank, LOCK, 5), 0);
    assert_eq!(add(words, rank, LOCK, 2u64.wrapping_neg()), 5);
    assert_eq!(swap(words, rank, LOCK, 3, 9), 3);
    assert_eq!(swap(words, rank, LOCK, 3, 1), 9);
    assert_eq!(words.read(WordAt { rank, word: LOCK }).unwrap(), 9);
}

fn an_owner_changes_its_contended_words_by_fetch(words: &impl Words) {
    assert_eq!(add(words, words.rank(), LOCK, u64::MAX), 0);
    assert_eq!(words.own(LOCK), u64::MAX);
    assert_eq!(swap(words, words.rank(), LOCK, u64::MAX, 7), u64::MAX);
    assert_eq!(words.own(LOCK), 7);
}

fn begun_fetches_are_all_answered(words: &impl Words) {
    let targets = || (0..RANKS).map(Rank);
    let at = |rank| WordAt { rank, word: LOCK };
    let begun: Vec<_> =
        targets().map(|rank| words.begin(at(rank), Fetch::Add(1)).unwrap()).collect();
    for ticket in begun {
        assert!(words.finish(ticket).unwrap() < u64::from(RANKS));
    }
    assert!(targets().all(|rank| words.read(at(rank)).unwrap() >= 1));
}

fn the_answer_of_a_begun_fetch_behind_an_order_is_a_flush(words: &impl Words) {
    let (rank, word) = (above(words, 1), layout::fence(0));
    words.post(WordAt { rank, word }, 1).unwrap();
    words.order(rank).unwrap();
    let ticket = words.begin(WordAt { rank, word: LOCK }, Fetch::Add(0)).unwrap();
    words.finish(ticket).unwrap();
    check_by_another(words);
}

fn all_posts_are_counted(words: &impl Words) {
    for _ in 0..50 {
        words.post(WordAt { rank: Rank(0), word: COMPLETE }, 1).unwrap();
    }
    if words.rank() == Rank(0) {
        assert_eq!(words.wait_own(COMPLETE, |count| count >= 150).unwrap(), 150);
    }
}

fn one_compare_swap_wins(words: &impl Words) {
    let lost = swap(words, Rank(0), LOCK, 0, 1) != 0;
    let score = if lost { 1 << 32 } else { 1 };
    words.post(WordAt { rank: Rank(0), word: COMPLETE }, score).unwrap();
    if words.rank() == Rank(0) {
        words.wait_own(COMPLETE, |scores| scores == 2 << 32 | 1).unwrap();
    }
}

fn a_post_arrives_without_a_flush(words: &impl Words) {
    let word = layout::fence(0);
    words.post(WordAt { rank: above(words, 1), word }, 1).unwrap();
    words.wait_own(word, |value| value == 1).unwrap();
}

fn order_keeps_posts_in_order(words: &impl Words) {
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

fn what_is_flushed_is_there_for_all(words: &impl Words) {
    let (rank, word) = (above(words, 1), layout::fence(0));
    words.post(WordAt { rank, word }, 1).unwrap();
    words.flush(rank).unwrap();
    check_by_another(words);
}

fn what_is_flushed_for_all_is_there_for_all(words: &impl Words) {
    let (rank, word) = (above(words, 1), layout::fence(0));
    words.post(WordAt { rank, word }, 1).unwrap();
    words.flush_all().unwrap();
    check_by_another(words);
}

fn an_answer_behind_an_order_is_a_flush(words: &impl Words) {
    let (rank, word) = (above(words, 1), layout::fence(0));
    words.post(WordAt { rank, word }, 1).unwrap();
    words.order(rank).unwrap();
    add(words, rank, LOCK, 0);
    check_by_another(words);
}

/// The rank above the one that this rank posted to is told to look, and finds the 1.
fn check_by_another(words: &impl Words) {
    words.post(WordAt { rank: above(words, 2), word: COMPLETE }, 1).unwrap();
    words.wait_own(COMPLETE, |count| count == 1).unwrap();
    let posted = WordAt { rank: above(words, 2), word: layout::fence(0) };
    assert_eq!(words.read(posted).unwrap(), 1);
}

fn on_sim(case: impl Fn(&Sim) + Copy + 'static) {
    every(RANKS, || case, |_| {});
}

fn on_sim_far(case: impl Fn(&View<FAR>) + Copy + 'static) {
    every(RANKS, || move |sim: &Sim| case(&sim.far(Fault::Nothing)), |_| {});
}

fn on_heap(spins: u32, case: impl Fn(&HeapWords) + Copy + Send) {
    for _ in 0..20 {
        let heap = Heap::window(RANKS);
        std::thread::scope(|scope| {
            for rank in 0..RANKS {
                let words = heap::words(&heap, rank, spins);
                scope.spawn(move || case(&words));
            }
        });
    }
}

/// Ranks that are threads, each with a device of its own as it were.
fn on_verbs(open: tests::Open, case: impl Fn(&tests::words::NicWords) + Copy + Send) {
    // Nobody's memory goes before all are done.
    let ranks = tests::words::window(open, RANKS);
    std::thread::scope(|scope| {
        for words in &ranks {
            scope.spawn(move || case(words));
        }
    });
}

macro_rules! conformance {
    ($($case:ident)*) => {
        mod verbs_fake {
            use super::{on_verbs, tests::on_fake};
            $(#[test] fn $case() { on_verbs(on_fake, |words| super::$case(words)); })*
        }
        mod verbs_device {
            use super::{on_verbs, tests::{on_device, turn}};
            $(
                #[test]
                #[ignore = "needs an RDMA device"]
                fn $case() {
                    let _turn = turn();
                    on_verbs(on_device, |words| super::$case(words));
                }
            )*
        }
        mod sim {
            $(#[test] fn $case() { super::on_sim(|words| super::$case(words)); })*
        }
        mod sim_far {
            $(#[test] fn $case() { super::on_sim_far(|words| super::$case(words)); })*
        }
        mod heap_awake {
            $(#[test] fn $case() { super::on_heap(100, |words| super::$case(words)); })*
        }
        mod heap_asleep {
            $(#[test] fn $case() { super::on_heap(0, |words| super::$case(words)); })*
        }
    };
}

conformance! {
    fetch_answers_what_was_before
    an_owner_changes_its_contended_words_by_fetch
    begun_fetches_are_all_answered
    all_posts_are_counted
    one_compare_swap_wins
    a_post_arrives_without_a_flush
    order_keeps_posts_in_order
    what_is_flushed_is_there_for_all
    what_is_flushed_for_all_is_there_for_all
    an_answer_behind_an_order_is_a_flush
    the_answer_of_a_begun_fetch_behind_an_order_is_a_flush
}
