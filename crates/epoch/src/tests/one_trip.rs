//! Locks that are taken together with the puts under them, on the simulator: processes that keep
//! their epochs as a window does, and also take locks in the other ways; and proof that these tests
//! notice what a chain of requests forgets.

use super::locks::{Oracle, all_is_free, get};
use crate::access::TargetAccess;
use crate::fabric::layout::{self, GLOBAL, LOCK};
use crate::fabric::{Fetch, WordAt, Words};
use crate::lock::in_one_trip::{Before, IntentAt, LockOutcome, Take, Wanted, lock_with_puts};
use crate::lock::{
    Held, Intent, SpareIntent, lock_all, lock_exclusive, lock_shared, unlock_all, unlock_exclusive,
    unlock_shared,
};
use crate::rank_numbers::Rank;
use crate::state::{Epochs, Hold};
use fompi_simulator::faults::CUT;
use fompi_simulator::{FAR, Fault, FinalState, Profile, Sim, View, every, is_caught, run};
use std::cell::Cell;
use std::rc::Rc;

/// What a chain or its caller forgets, if anything.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Slip {
    Nothing,
    /// the puts do not depend on the locks
    Unguarded,
    /// the second lock does not depend on the first one
    Both,
    /// the puts do not precede the releases
    Late,
    /// the puts that were not carried out are not sent again
    Lost,
}

/// The processes of a window, each with one target after the other.
struct Processes {
    epochs: Vec<Epochs>,
    targets: Vec<Vec<TargetAccess>>,
    oracle: Oracle,
    slip: Slip,
    /// the number of epochs that have ended in one trip
    ended: Rc<Cell<u32>>,
}

impl Processes {
    fn new(ranks: u32, slip: Slip, ended: &Rc<Cell<u32>>) -> Processes {
        let targets = || (0..ranks).map(|_| TargetAccess::closed()).collect();
        Processes {
            epochs: (0..ranks).map(|_| Epochs::new(false)).collect(),
            targets: (0..ranks).map(|_| targets()).collect(),
            oracle: Oracle::default(),
            slip,
            ended: ended.clone(),
        }
    }

    /// The work under a lock.
    fn access(&self, sim: &Sim, (target, hold): (Rank, Hold), puts: bool) {
        let is_exclusive = hold == Hold::Exclusive;
        let enter = if is_exclusive { Oracle::enter_exclusive } else { Oracle::enter_shared };
        enter(&self.oracle, target);
        let value = get(sim, target);
        if is_exclusive && puts {
            sim.put(target, 0, value + 1);
        }
        assert_eq!(value + u64::from(is_exclusive), self.oracle.written(target));
        let leave = if is_exclusive { Oracle::leave_exclusive } else { Oracle::leave_shared };
        leave(&self.oracle, target);
    }

    /// A chain, whose requests follow each other on one connection.
    fn chain(
        &self,
        words: &View<FAR>,
        (target, hold): (Rank, Hold),
        takes: &[Take],
        ends: bool,
    ) -> Before {
        let (sim, mut before, mut free) = (words.sim, Before::default(), true);
        for (take, before) in takes.iter().zip(&mut before.taken) {
            if free || self.slip == Slip::Both {
                let (expect, new) = take.swap;
                *before = words.fetch(take.at, Fetch::CompareSwap { expect, new }).unwrap();
                free &= *before == expect;
            } else {
                *before = sim.random(2).into(); // has no meaning
            }
        }
        if free || self.slip == Slip::Unguarded {
            self.access(sim, (target, hold), true);
        }
        if ends && free {
            if self.slip != Slip::Late {
                sim.far(Fault::Nothing).flush(target).unwrap();
            }
            for (take, before) in takes.iter().zip(&mut before.released).rev() {
                *before = words.fetch(take.at, Fetch::Add(take.release)).unwrap();
            }
        }
        sim.far(Fault::Nothing).flush(target).unwrap();
        before
    }

    fn epochs(&self, sim: &Sim) -> (&Epochs, &[TargetAccess]) {
        let own = sim.index().0 as usize;
        (&self.epochs[own], &self.targets[own])
    }

    /// Asks for a lock, takes it at its first use, and ends the epoch, maybe at once.
    fn epoch(&self, words: &View<FAR>, target: Rank, hold: Hold, intent_at: IntentAt) {
        let (sim, (epochs, targets)) = (words.sim, self.epochs(words.sim));
        let (access, ends) = (&targets[target.0 as usize], sim.random(2) == 0);
        epochs.ask(access, hold).unwrap();
        let (hold, held) = epochs.take_asked(access).unwrap();
        let is_exclusive = hold == Hold::Exclusive;
        let wanted = Wanted { target, is_exclusive, held, intent_at };
        let send = |takes: &[Take]| Ok(self.chain(words, (target, hold), takes, ends));
        match lock_with_puts(words, wanted, ends, sim.thread(), send).unwrap() {
            LockOutcome::Released => {
                self.ended.set(self.ended.get() + 1);
                return epochs.asked_ended(access, (hold, held));
            }
            LockOutcome::Held { intent, done } => {
                epochs.asked_taken(access, hold, intent);
                if !done {
                    self.access(sim, (target, hold), self.slip != Slip::Lost);
                }
            }
        }
        let (hold, spare) = epochs.unlock(access).unwrap();
        match hold {
            Hold::Shared => unlock_shared(words, target).unwrap(),
            _ => unlock_exclusive(words, target, spare).unwrap(),
        }
    }

    /// A lock in the way of [`super::locks`].
    fn other(&self, words: &View<FAR>, target: Rank) {
        let sim = words.sim;
        match sim.random(3) {
            0 => {
                lock_exclusive(words, target, Held::Nothing, sim.thread()).unwrap();
                self.access(sim, (target, Hold::Exclusive), true);
                unlock_exclusive(words, target, SpareIntent::Release).unwrap();
            }
            1 => {
                lock_shared(words, target, Held::Nothing, sim.thread()).unwrap();
                self.access(sim, (target, Hold::Shared), true);
                unlock_shared(words, target).unwrap();
            }
            _ => {
                lock_all(words, sim.thread()).unwrap();
                self.oracle.enter_all();
                assert_eq!(get(sim, target), self.oracle.written(target));
                self.oracle.leave_all();
                unlock_all(words).unwrap();
            }
        }
    }
}

fn mixture(ranks: u32, slip: Slip, ended: &Rc<Cell<u32>>) -> impl Fn(&Sim) + 'static {
    let processes = Processes::new(ranks, slip, ended);
    move |sim| {
        let words = sim.far(Fault::Nothing);
        for _ in 0..6 {
            let target = Rank(sim.random(2));
            let hold = if sim.random(3) == 0 { Hold::Shared } else { Hold::Exclusive };
            let places = [IntentAt::WithTarget, IntentAt::Here, IntentAt::Elsewhere];
            match sim.random(4) {
                0 => processes.other(&words, target),
                _ => processes.epoch(&words, target, hold, places[sim.random(3) as usize]),
            }
        }
    }
}

#[test]
fn locks_exclude_in_one_trip_and_in_several() {
    let ended = Rc::new(Cell::new(0));
    for ranks in [2, 4, 6] {
        every(ranks, || mixture(ranks, Slip::Nothing, &ended), all_is_free);
    }
    assert!(ended.get() > 1000, "{} epochs in one trip", ended.get());
}

#[test]
fn what_a_chain_forgets_is_noticed() {
    for slip in [Slip::Unguarded, Slip::Both, Slip::Late, Slip::Lost] {
        let ended = Rc::new(Cell::new(0));
        // What is left in the words at the end is an error of the run, too.
        let body = || {
            let work = mixture(4, slip, &ended);
            move |sim: &Sim| {
                work(sim);
                let is_last = |at: WordAt| sim.peek_at(FAR, at) == 0;
                while !(is_last(layout::global()) && is_last(WordAt { rank: Rank(0), word: LOCK }))
                {
                    sim.step();
                }
            }
        };
        assert!(is_caught(4, body), "{slip:?} is not noticed");
    }
}

/// Nothing is sent but chains: one if the words are free, and two if another process has an intent.
#[test]
fn a_free_lock_takes_one_chain_and_a_foreign_intent_a_second_one() {
    for (others, intent_at, chains) in [
        (0, IntentAt::WithTarget, 1),
        (0, IntentAt::Here, 1),
        (1, IntentAt::WithTarget, 2),
        (1, IntentAt::Here, 1),
    ] {
        let body = move |sim: &Sim| {
            let words = sim.far(Fault::Nothing);
            if sim.index() == Rank(0) {
                (0..others).for_each(|_| {
                    lock_exclusive(&words, Rank(0), Held::Nothing, 0).unwrap();
                });
                let processes = Processes::new(2, Slip::Nothing, &Rc::default());
                let (target, mut sent) = (Rank(1), 0);
                let held = Held::Nothing;
                let wanted = Wanted { target, is_exclusive: true, held, intent_at };
                let outcome = lock_with_puts(&words, wanted, true, 0, |takes: &[Take]| {
                    sent += 1;
                    Ok(processes.chain(&words, (target, Hold::Exclusive), takes, true))
                });
                assert_eq!((outcome, sent), (Ok(LockOutcome::Released), chains));
                let spare = SpareIntent::Release;
                (0..others).for_each(|_| unlock_exclusive(&words, Rank(0), spare).unwrap());
            }
        };
        assert_eq!(run(2, Profile::Late, 1, body).err(), None);
    }
}

/// A process that has an intent takes the word of the target alone, and keeps the intent.
#[test]
fn a_process_with_an_intent_takes_one_word() {
    let body = |sim: &Sim| {
        let words = sim.far(Fault::Nothing);
        if sim.index() == Rank(0) {
            let processes = Processes::new(2, Slip::Nothing, &Rc::default());
            let (epochs, targets) = processes.epochs(sim);
            epochs.lock(&targets[0], Hold::Exclusive).unwrap();
            let intent = lock_exclusive(&words, Rank(0), Held::Nothing, 0).unwrap();
            epochs.locked_exclusive(intent);
            for ends in [true, false] {
                epochs.ask(&targets[1], Hold::Exclusive).unwrap();
                let (hold, held) = epochs.take_asked(&targets[1]).unwrap();
                assert_eq!(held, Held::Exclusive);
                let (target, intent_at) = (Rank(1), IntentAt::WithTarget);
                let wanted = Wanted { target, is_exclusive: true, held, intent_at };
                let send = |takes: &[Take]| {
                    assert_eq!((takes.len(), takes[0].at.word), (1, LOCK));
                    Ok(processes.chain(&words, (target, hold), takes, ends))
                };
                let outcome = lock_with_puts(&words, wanted, ends, 0, send).unwrap();
                assert_eq!(sim.peek_at(FAR, layout::global()) >> 44, (1 << 20) - 1, "one intent");
                if ends {
                    assert_eq!(outcome, LockOutcome::Released);
                    epochs.asked_ended(&targets[1], (hold, held));
                } else {
                    assert_eq!(outcome, LockOutcome::Held { intent: Intent::Earlier, done: true });
                    epochs.asked_taken(&targets[1], hold, Intent::Earlier);
                }
            }
            for (rank, wanted) in [(0, SpareIntent::None), (1, SpareIntent::Release)] {
                let (hold, spare) = epochs.unlock(&targets[rank as usize]).unwrap();
                assert_eq!((hold, spare), (Hold::Exclusive, wanted));
                unlock_exclusive(&words, Rank(rank), spare).unwrap();
            }
        }
    };
    let end: FinalState = run(2, Profile::Late, 1, body).unwrap();
    assert_eq!(end.word_of(FAR, WordAt { rank: Rank(0), word: GLOBAL }), 0);
    all_is_free(&end);
}

/// An intent of this node is given back, because others wait for it.
#[test]
fn a_process_whose_target_is_lost_keeps_no_intent() {
    let body = |sim: &Sim| {
        let words = sim.far(Fault::Nothing);
        if sim.index() == Rank(0) {
            let (target, held) = (Rank(1), Held::Nothing);
            for intent_at in [IntentAt::Here, IntentAt::WithTarget] {
                let wanted = Wanted { target, is_exclusive: true, held, intent_at };
                let outcome = lock_with_puts(&words, wanted, true, 0, |_| Err(CUT));
                assert_eq!(outcome, Err(CUT));
            }
        }
    };
    all_is_free(&run(2, Profile::Late, 1, body).unwrap());
}
