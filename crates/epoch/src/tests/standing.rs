//! Exclusive locks under the standing intent, on the simulator: processes that keep their epochs as
//! a window does; and proof that these tests notice steps that the protocol leaves out.

use super::locks::{Oracle, get};
use crate::access::TargetAccess;
use crate::fabric::WordAt;
use crate::fabric::layout::{self, GLOBAL, LOCK, STANDING};
use crate::fabric::{Fetch, Words};
use crate::lock::{
    Held, Intent, SpareIntent, Tried, give_back_late, lock_all, lock_exclusive, lock_shared,
    standing, try_lock_all, try_lock_alone, try_lock_exclusive, unlock_all, unlock_exclusive,
    unlock_shared,
};
use crate::rank_numbers::Rank;
use crate::state::{Epochs, Hold};
use fompi_simulator::faults::{CUT, Faulty};
use fompi_simulator::thread_words::{Heap, HeapWords, words};
use fompi_simulator::{FLAT, Fault, FinalState, Sim, SimCounts, SimShape, View, every, is_caught};
use std::cell::Cell;
use std::rc::Rc;

/// The number of times of each case.
#[derive(Default)]
struct Cases {
    /// locks under the standing intent
    standing: Cell<u32>,
    /// locks with an intent that was taken while the process held locks under the standing one
    nested: Cell<u32>,
    /// quick locks that came too late
    late: Cell<u32>,
    /// intents that were left to stand
    left: Cell<u32>,
}

fn count(cell: &Cell<u32>) {
    cell.set(cell.get() + 1);
}

/// The processes of a window.
struct Processes {
    epochs: Vec<Epochs>,
    /// of each process, the words of its targets
    targets: Vec<Vec<TargetAccess>>,
    oracle: Oracle,
    cases: Rc<Cases>,
}

impl Processes {
    /// Each process offers an intent after this number of exclusive locks.
    fn new(shape: SimShape, offers_after: u32, cases: &Rc<Cases>) -> Processes {
        let epochs = || Epochs::new(shape.threads > 1).offering_after(offers_after);
        let epochs = (0..shape.ranks).map(|_| epochs()).collect();
        let words = || (0..shape.ranks).map(|_| TargetAccess::closed()).collect();
        let targets = (0..shape.ranks).map(|_| words()).collect();
        Processes { epochs, targets, oracle: Oracle::default(), cases: cases.clone() }
    }

    fn of(&self, sim: &Sim) -> &Epochs {
        &self.epochs[sim.index().0 as usize]
    }

    /// The word of a target.
    fn word(&self, sim: &Sim, target: Rank) -> &TargetAccess {
        &self.targets[sim.index().0 as usize][target.0 as usize]
    }

    /// The fast path, which a process with one thread may try.
    fn try_alone(&self, words: &View, target: Rank) -> Option<Intent> {
        match try_lock_alone(words, target).unwrap() {
            Tried::Held => return Some(Intent::Standing),
            Tried::TwoWords => {
                return try_lock_exclusive(words, target).unwrap().then_some(Intent::Own);
            }
            Tried::Late => {
                count(&self.cases.late);
                give_back_late(words, target).unwrap();
            }
            Tried::Busy => {}
        }
        None
    }

    fn lock(&self, words: &View, target: Rank, hold: Hold) {
        let (sim, epochs) = (words.sim, self.of(words.sim));
        let word = self.word(sim, target);
        if hold == Hold::Exclusive && sim.threads() == 1 && sim.random(2) == 0 {
            let take = || self.try_alone(words, target).map(|intent| (hold, intent));
            if epochs.lock_quick(word, take) {
                return self.oracle.enter_exclusive(target);
            }
        }
        let held = epochs.lock(word, hold).unwrap();
        if hold == Hold::Shared {
            lock_shared(words, target, held, sim.thread()).unwrap();
            return self.oracle.enter_shared(target);
        }
        let intent = lock_exclusive(words, target, held, sim.thread()).unwrap();
        epochs.locked_exclusive(intent);
        match intent {
            Intent::Standing => count(&self.cases.standing),
            Intent::Own if held == Held::Shared => count(&self.cases.nested),
            _ => {}
        }
        self.oracle.enter_exclusive(target);
    }

    /// Reads the target, and adds to it if it is locked exclusively, before it unlocks it.
    fn unlock(&self, words: &View, target: Rank) {
        let sim = words.sim;
        let value = get(sim, target);
        let (hold, spare) = self.of(sim).unlock(self.word(sim, target)).unwrap();
        if hold == Hold::Shared {
            assert_eq!(value, self.oracle.written(target));
            self.oracle.leave_shared(target);
            return unlock_shared(words, target).unwrap();
        }
        assert_eq!(value + 1, self.oracle.written(target));
        sim.put(target, 0, value + 1);
        self.oracle.leave_exclusive(target);
        let before = sim.peek(layout::standing());
        unlock_exclusive(words, target, spare).unwrap();
        if spare == SpareIntent::Offer && before == 0 && sim.peek(layout::standing()) & 1 == 1 {
            count(&self.cases.left);
        }
    }

    fn read_all(&self, words: &View, target: Rank) {
        let sim = words.sim;
        // Another thread of the process may be in an epoch.
        if self.of(sim).lock_all(true).is_err() {
            return;
        }
        if !(sim.random(2) == 0 && try_lock_all(words).unwrap()) {
            lock_all(words, sim.thread()).unwrap();
        }
        self.oracle.enter_all();
        assert_eq!(get(sim, target), self.oracle.written(target));
        self.oracle.leave_all();
        self.of(sim).unlock_all().unwrap();
        unlock_all(words).unwrap();
    }

    /// One or two targets, in the order of their ranks, that no other thread of the process locks.
    fn write(&self, words: &View) {
        let (sim, threads) = (words.sim, words.sim.threads());
        let hold = |sim: &Sim| if sim.random(4) == 0 { Hold::Shared } else { Hold::Exclusive };
        let first = Rank(sim.random(2) * threads + sim.thread());
        // Another thread of the process may be in an epoch of lock_all.
        if self.of(sim).access.locks(|| self.word(sim, first)) {
            return;
        }
        self.lock(words, first, hold(sim));
        let second = Rank(first.0 + threads);
        let both = second.0 < sim.shape().ranks && sim.random(2) == 0;
        if both {
            self.lock(words, second, hold(sim));
        }
        let late = sim.random(2) == 0;
        if !late {
            self.unlock(words, first);
        }
        if both {
            self.unlock(words, second);
        }
        if late {
            self.unlock(words, first);
        }
    }
}

/// Each thread takes locks of one or two targets, or lock_all.
fn mixture(shape: SimShape, fault: Fault, cases: &Rc<Cases>) -> impl Fn(&Sim) + 'static {
    let processes = Processes::new(shape, 2, cases);
    move |sim| {
        let words = sim.view::<FLAT>(fault);
        for _ in 0..8 {
            match sim.random(5) {
                0 => processes.read_all(&words, Rank(sim.random(2))),
                _ => processes.write(&words),
            }
        }
    }
}

/// No lock is held or waited for, and the global word counts the standing intent alone.
fn only_the_intent_is_left(end: &FinalState) {
    for rank in end.ranks() {
        assert_eq!(end.word_of(FLAT, WordAt { rank, word: LOCK }), 0);
    }
    let standing = end.word_of(FLAT, layout::standing());
    assert!(standing <= 1, "a lock_all is counted still");
    let intent = (standing << 44).wrapping_neg();
    assert_eq!(end.word_of(FLAT, layout::global()), intent);
}

#[test]
fn locks_under_the_standing_intent_exclude_and_publish() {
    let cases = Rc::new(Cases::default());
    for (ranks, threads) in [(3, 1), (4, 1), (6, 1), (4, 2)] {
        let shape = SimShape { threads, ..SimShape::from(ranks) };
        every(shape, || mixture(shape, Fault::Nothing, &cases), only_the_intent_is_left);
    }
    // The seeds lead to every case.
    let Cases { standing, nested, late, left } = &*cases;
    for (case, times) in
        [("standing", standing), ("nested", nested), ("late", late), ("left", left)]
    {
        assert!(times.get() >= 20, "{case}: {} times", times.get());
    }
}

#[test]
fn what_the_standing_intent_forgets_is_noticed() {
    let cases = Rc::new(Cases::default());
    for fault in [
        Fault::ReadOnce(STANDING), // no second look at the standing intent
        Fault::Unread(LOCK),       // it ends without a look at the targets
        Fault::Order,
        Fault::Atomicity,
        Fault::Post(layout::go(0)),
    ] {
        let shape = SimShape::from(4);
        assert!(is_caught(4, || mixture(shape, fault, &cases)), "{fault:?} is not noticed");
    }
}

/// Rank 0 holds a target under the standing intent and wants another one, which rank 1 has now and
/// then, while several ranks want lock_all.
fn second_lock(second: Held) -> impl Fn(&Sim) + 'static {
    move |sim: &Sim| {
        let words = &sim.view::<FLAT>(Fault::Nothing);
        let (a, b) = (Rank(0), Rank(1));
        let spare = |intent| match intent {
            Intent::Own => SpareIntent::Offer,
            Intent::Standing | Intent::Earlier => SpareIntent::None,
        };
        for _ in 0..4 {
            match sim.index().0 {
                0 => {
                    let first = lock_exclusive(words, a, Held::Nothing, 0).unwrap();
                    let held = if first == Intent::Own { Held::Exclusive } else { second };
                    let then = lock_exclusive(words, b, held, 0).unwrap();
                    let one = spare(first);
                    let other =
                        if one == SpareIntent::None { spare(then) } else { SpareIntent::None };
                    // The intent, whichever lock took it, is kept until both have ended.
                    unlock_exclusive(words, a, SpareIntent::None).unwrap();
                    let kept = if one == SpareIntent::None { other } else { one };
                    unlock_exclusive(words, b, kept).unwrap();
                }
                1 => {
                    let intent = lock_exclusive(words, b, Held::Nothing, 0).unwrap();
                    unlock_exclusive(words, b, spare(intent)).unwrap();
                }
                _ => {
                    lock_all(words, 0).unwrap();
                    unlock_all(words).unwrap();
                }
            }
        }
    }
}

#[test]
fn a_process_gets_a_second_lock_while_the_standing_intent_ends() {
    for ranks in [3, 4, 5] {
        every(ranks, || second_lock(Held::Shared), only_the_intent_is_left);
    }
    assert!(is_caught(4, || second_lock(Held::Nothing)), "fairness alone deadlocks");
}

/// All ranks but the first lock targets exclusively until rank 0 had lock_all twice.
#[test]
fn lock_all_is_not_starved_under_the_standing_intent() {
    let body = || {
        let times = Cell::new(0);
        let processes = Processes::new(SimShape::from(4), 1, &Rc::default());
        move |sim: &Sim| {
            let words = &sim.view::<FLAT>(Fault::Nothing);
            while times.get() < 2 {
                if sim.index() == Rank(0) {
                    processes.read_all(words, Rank(1));
                    count(&times);
                } else {
                    processes.write(words);
                }
            }
        }
    };
    every(4, body, only_the_intent_is_left);
}

/// Makes an intent stand.
fn stand(words: &impl Words) {
    assert_eq!(lock_exclusive(words, Rank(0), Held::Nothing, 0), Ok(Intent::Own));
    unlock_exclusive(words, Rank(0), SpareIntent::Offer).unwrap();
    assert_eq!(standing::stands(words), Ok(true));
}

#[test]
fn an_exclusive_lock_under_the_standing_intent_is_two_fetches() {
    let body = || {
        |sim: &Sim| {
            if sim.index() != Rank(0) {
                return;
            }
            stand(sim);
            let before = sim.counts();
            assert_eq!(lock_exclusive(sim, Rank(1), Held::Nothing, 0), Ok(Intent::Standing));
            unlock_exclusive(sim, Rank(1), SpareIntent::None).unwrap();
            let after = sim.counts();
            assert_eq!((after.fetch - before.fetch, after.read - before.read), (2, 2));
            // The end of the standing intent: a look at each rank.
            lock_all(sim, 0).unwrap();
            unlock_all(sim).unwrap();
            let SimCounts { fetch, read, .. } = sim.counts();
            assert_eq!((fetch - after.fetch, read - after.read), (1 + 1 + 2 + 1 + 1 + 1, 2));
            lock_all(sim, 0).unwrap();
            unlock_all(sim).unwrap();
            assert_eq!(sim.counts().fetch - fetch, 2);
        }
    };
    every(2, body, |end| assert_eq!(end.word_of(FLAT, layout::standing()), 0));
}

#[test]
fn no_intent_is_left_to_stand_while_a_lock_all_waits() {
    let heap = Heap::window(2);
    let words = words(&heap, Rank(1), 10);
    words.fetch(layout::standing(), Fetch::Add(2)).unwrap();
    assert_eq!(lock_exclusive(&words, Rank(0), Held::Nothing, 0), Ok(Intent::Own));
    unlock_exclusive(&words, Rank(0), SpareIntent::Offer).unwrap();
    assert_eq!(words.read(layout::standing()), Ok(2));
    assert_eq!(words.read(layout::global()), Ok(0));
}

/// A lock_all that fails anywhere, because a rank was lost, is not counted any more, and the next
/// one may end the standing intent.
#[test]
fn a_lock_all_that_fails_is_not_counted() {
    let heap = Heap::window(3);
    let cut: Faulty<HeapWords> = Faulty::new(words(&heap, Rank(2), 10), Fault::Nothing);
    stand(&cut);
    cut.set(Fault::Lost(Rank(1)));
    assert_eq!(lock_all(&cut, 0), Err(CUT));
    cut.set(Fault::Nothing);
    assert_eq!(cut.read(layout::standing()), Ok(1));
    assert_eq!(cut.read(WordAt { rank: Rank(0), word: GLOBAL }), Ok((1_u64 << 44).wrapping_neg()));
    lock_all(&cut, 0).unwrap();
    unlock_all(&cut).unwrap();
    assert_eq!(cut.read(layout::standing()), Ok(0));
}
