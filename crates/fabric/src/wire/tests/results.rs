//! Results of accumulates that the target carries out: calls that no call has waited for.

use super::*;
use crate::datatype::basic::Basic;
use crate::datatype::reduce::Op;
use crate::reduction::{Protection, Reduction};
use crate::remote::{AccumulateAt, AtTarget, ElementRuns, Elements, OPERANDS_COPIED_MAX};

/// Begins to add 1 to a word, whose old value goes to `result`.
fn add(peer: &Peer, at: Remote, result: &mut u64) -> Result<()> {
    let what = Reduction::new(Op::Sum, Basic::U64).unwrap();
    let (operands, result) = ((&raw const ONE).cast(), Some(core::ptr::from_mut(result).cast()));
    let runs = ElementRuns::Listed(&[Elements { there: at.at, bytes: 8, operands, result }]);
    let call = AccumulateAt { what, protection: Protection::Atomic, within: at, runs };
    // SAFETY: memory of a side; the test keeps the result until nothing is under way.
    unsafe { peer.accumulate(&call) }
}

/// Begins to swap a word of `width` bytes, whose old value goes to `result`.
fn swap(peer: &Peer, word: (Remote, u8), values: (u64, u64), result: &mut u64) -> Result<()> {
    // SAFETY: memory of a side; the test keeps the result until nothing is under way.
    unsafe { peer.compare_and_swap(word, values, core::ptr::from_mut(result).cast()) }
}

static ONE: u64 = 1;

#[test]
fn results_of_many_calls_take_one_wait() {
    let (origin, target) = (on_tcp(), Side::new(on_tcp, 8));
    let peer = target.seen_by(&origin);
    let waits = || origin.counts().kinds.awaited;
    let mut results = [7u64; 100];
    for round in 0..4 {
        let before = waits();
        for (index, result) in results.iter_mut().enumerate() {
            match index % 2 {
                0 => add(&peer, target.at(0), result).unwrap(),
                _ => swap(&peer, (target.at(1), 8), (0, 0), result).unwrap(),
            }
        }
        assert_eq!(waits(), before);
        assert!(!peer.is_idle());
        if round % 2 == 0 { peer.flush() } else { peer.flush_local() }.unwrap();
        assert_eq!(waits(), before + 1);
        for (index, result) in results.iter().enumerate() {
            let old = if index % 2 == 0 { 50 * round + index as u64 / 2 } else { 0 };
            assert_eq!(*result, old);
        }
    }
}

/// Nothing is sent after it that either flush would wait for.
#[test]
fn a_result_is_waited_for_by_itself() {
    let (origin, target) = (on_tcp(), Side::new(on_tcp, 8));
    let peer = target.seen_by(&origin);
    for round in 0..10 {
        let mut result = 7;
        add(&peer, target.at(0), &mut result).unwrap();
        peer.flush().unwrap();
        assert_eq!(result, 2 * round);
        add(&peer, target.at(0), &mut result).unwrap();
        peer.flush_local().unwrap();
        assert_eq!(result, 2 * round + 1);
    }
}

#[test]
fn a_request_is_complete_when_its_result_is_there() {
    let (origin, target) = (on_tcp(), Side::new(on_tcp, 8));
    let peer = target.seen_by(&origin);
    for round in 0..20 {
        let (before, mut result) = (peer.lent(), 7);
        add(&peer, target.at(0), &mut result).unwrap();
        let mut pending = Pending::of(&peer, before).unwrap();
        until("the result", || pending.as_mut().is_none_or(|all| all.is_done().unwrap()));
        assert_eq!(result, round);
    }
}

#[test]
fn results_of_a_target_that_is_lost_are_an_error_of_each_flush() {
    let (origin, target) = (on_tcp(), Side::new(on_tcp, 8));
    let peer = target.seen_by(&origin);
    let wrong = Remote { key: target.at(0).key ^ 0x5500, ..target.at(0) };
    let (mut results, mut behind) = ([7u64; 20], [7u64; 2]);
    for result in &mut results {
        add(&peer, target.at(0), result).unwrap();
    }
    let before = peer.lent();
    swap(&peer, (wrong, 8), (20, 1), &mut behind[0]).unwrap();
    add(&peer, target.at(0), &mut behind[1]).unwrap();
    for _ in 0..2 {
        assert!(matches!(peer.flush_local(), Err(Error::Lost { .. })));
        assert!(matches!(peer.flush(), Err(Error::Lost { .. })));
    }
    let asked = Pending::of(&peer, before).map(|pending| pending.is_some());
    assert!(matches!(asked, Ok(false) | Err(Error::Lost { .. })));
    assert!(matches!(add(&peer, target.at(0), &mut behind[1]), Err(Error::Lost { .. })));
    // What was answered before the loss is there, and nothing comes after it.
    assert_eq!(results, core::array::from_fn(|index| index as u64));
    assert_eq!((behind, target.word(0)), ([7, 7], 20));
}

/// A request without an answer behind them does not keep a local flush waiting until it pings. On a
/// busy machine another wait may ping, too.
#[test]
fn operands_that_are_lent_are_waited_for_whatever_follows_them() {
    const LONG: usize = 2 * OPERANDS_COPIED_MAX as usize / 8;
    let (origin, target) = (on_tcp(), Side::new(on_tcp, LONG + 1));
    let peer = target.seen_by(&origin);
    let what = Reduction::new(Op::Sum, Basic::U64).unwrap();
    let operands = vec![1u64; LONG + 1];
    let run = |first: usize, words: usize| {
        let (there, operands) = (target.at(first).at, operands[first..].as_ptr().cast());
        Elements { there, bytes: 8 * words as u64, operands, result: None }
    };
    let (protection, within) = (Protection::Alone, target.at(0));
    let mut rounds = 0..20;
    assert!(rounds.any(|_| {
        let pings = origin.counts().kinds.pings;
        for run in [run(0, LONG), run(LONG, 1)] {
            let runs = ElementRuns::Listed(&[run]);
            // SAFETY: memory of a side; the operands stay until nothing is under way.
            unsafe { peer.accumulate(&AccumulateAt { what, protection, within, runs }) }.unwrap();
        }
        peer.flush_local().unwrap();
        origin.counts().kinds.pings == pings
    }));
    peer.flush().unwrap();
    assert!((0..=LONG).all(|index| target.word(index) == rounds.start));
}
