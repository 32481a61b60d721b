//! Locks after the loss of a rank: a process releases every lock that other ranks can still get.

use crate::error::Result;
use crate::fabric::layout::{self, GLOBAL, LOCK};
use crate::fabric::{WordAt, Words};
use crate::fence::BarrierKind;
use crate::lock::{
    Held, SpareIntent, lock_all, lock_exclusive, lock_shared, unlock_all, unlock_exclusive,
    unlock_shared,
};
use crate::rank_numbers::Rank;
use crate::{fence, pscw};
use fompi_simulator::faults::{CUT, Fault, Faulty};
use fompi_simulator::test_overrides::Passed;
use fompi_simulator::thread_words::{FarHeapWords, Heap, HeapWords, words};

const VICTIM: Rank = Rank(1);

/// Returns the global word after `lock` was taken, the victim was lost, and `unlock` has failed.
fn left_behind(
    lock: impl Fn(&Faulty<HeapWords>) -> Result<()>,
    unlock: impl Fn(&Faulty<HeapWords>) -> Result<()>,
) -> (u64, u64) {
    let heap = Heap::new(3, layout::words_per_rank(3));
    let cut = Faulty::new(words(&heap, Rank(2), 10), Fault::Nothing);
    let global = || cut.read(WordAt { rank: Rank(0), word: GLOBAL }).unwrap();
    let free = global();
    lock(&cut).unwrap();
    assert_ne!(global(), free);
    cut.set(Fault::Lost(VICTIM));
    assert_eq!(unlock(&cut), Err(CUT));
    (global(), free)
}

#[test]
fn a_rank_that_has_lost_another_releases_its_lock_all() {
    let (left, free) = left_behind(|words| lock_all(words, 0), unlock_all);
    assert_eq!(left, free);
}

#[test]
fn a_rank_that_has_lost_another_releases_its_intent() {
    let lock =
        |words: &Faulty<HeapWords>| lock_exclusive(words, VICTIM, Held::Nothing, 0).map(drop);
    let unlock = |words: &Faulty<HeapWords>| unlock_exclusive(words, VICTIM, SpareIntent::Release);
    let (left, free) = left_behind(lock, unlock);
    assert_eq!(left, free);
}

#[test]
fn a_rank_that_cannot_lock_its_target_keeps_no_intent() {
    let heap = Heap::new(3, layout::WORDS_FAR);
    let far: FarHeapWords = Passed(words(&heap, Rank(2), 10));
    let cut = Faulty::new(far, Fault::Lost(VICTIM));
    assert_eq!(lock_exclusive(&cut, VICTIM, Held::Nothing, 0), Err(CUT));
    assert_eq!(cut.read(WordAt { rank: Rank(0), word: GLOBAL }), Ok(0));
    cut.set(Fault::Lost(Rank(0)));
    assert_eq!(lock_exclusive(&cut, VICTIM, Held::Nothing, 0), Err(CUT));
    assert_eq!(cut.read(WordAt { rank: VICTIM, word: LOCK }), Ok(0));
}

/// Every protocol, by a rank that is alone.
fn all_protocols(words: &Faulty<HeapWords>) -> Result<()> {
    let me = Rank(0);
    lock_exclusive(words, me, Held::Nothing, 0)?;
    unlock_exclusive(words, me, SpareIntent::Release)?;
    lock_shared(words, me, Held::Nothing, 0)?;
    unlock_shared(words, me)?;
    lock_all(words, 0)?;
    words.flush_all()?;
    unlock_all(words)?;
    fence::fence(words, BarrierKind::Rounds, 1, true)?;
    fence::fence(words, BarrierKind::OF_SHARED_CORES, 1, true)?;
    pscw::post(words, [me])?;
    pscw::start(words, [me])?;
    pscw::complete(words, [me])?;
    pscw::wait(words, 1)
}

#[test]
fn a_cut_at_any_call_is_the_error_of_the_protocol() {
    let run = |fault| {
        let words = Faulty::new(words(&Heap::window(1), Rank(0), 0), fault);
        (all_protocols(&words), words.calls())
    };
    let (done, calls) = run(Fault::Nothing);
    assert_eq!(done, Ok(()));
    assert!(calls > 12);
    for call in 0..calls {
        assert_eq!(run(Fault::Cut(call)).0, Err(CUT), "call {call} of {calls}");
    }
    assert_eq!(run(Fault::Cut(calls)).0, Ok(()));
}
