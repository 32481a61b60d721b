//! Tests that calls are legal or not at a time, in sequences of calls of one process.

use super::*;

/// The epochs of a process on a window, with the words of its targets.
struct Process {
    epochs: Epochs,
    targets: Vec<TargetAccess>,
}

impl core::ops::Deref for Process {
    type Target = Epochs;

    fn deref(&self) -> &Epochs {
        &self.epochs
    }
}

impl Process {
    fn new(size: u32, threads: bool) -> Process {
        Process::of(Epochs::new(threads), size)
    }

    fn of(epochs: Epochs, size: u32) -> Process {
        Process { epochs, targets: (0..size).map(|_| TargetAccess::closed()).collect() }
    }

    fn word(&self, rank: Rank) -> &TargetAccess {
        &self.targets[rank.0 as usize]
    }

    fn is_open(&self, rank: Rank) -> bool {
        self.access.opens(|| self.word(rank))
    }

    fn is_passive(&self, rank: Rank) -> bool {
        self.access.locks(|| self.word(rank))
    }

    fn may_access(&self, rank: Rank) -> Result<()> {
        self.epochs.may_access(|| self.word(rank))
    }

    fn may_request(&self, rank: Rank) -> Result<()> {
        self.epochs.may_request(|| self.word(rank))
    }

    fn may_flush(&self, rank: Rank) -> Result<()> {
        self.epochs.may_flush(|| self.word(rank))
    }

    fn is_exclusive(&self, rank: Rank) -> bool {
        self.epochs.is_exclusive(|| self.word(rank))
    }

    fn start(&self, group: &[Rank]) -> Result<()> {
        self.epochs.start(group, |rank| self.word(rank))
    }

    fn completed(&self) {
        let targets = self.take_started().unwrap();
        self.epochs.completed(targets, |rank| self.word(rank));
    }

    fn lock(&self, rank: Rank, hold: Hold) -> Result<Held> {
        self.epochs.lock(self.word(rank), hold)
    }

    fn not_locked(&self, rank: Rank, held: Held) {
        self.epochs.not_locked(self.word(rank), held);
    }

    fn lock_quick(&self, rank: Rank, take: impl FnOnce() -> Option<(Hold, Intent)>) -> bool {
        self.epochs.lock_quick(self.word(rank), take)
    }

    fn unlock_quick(&self, rank: Rank) -> Option<(Hold, SpareIntent)> {
        self.epochs.unlock_quick(self.word(rank))
    }

    fn unlock(&self, rank: Rank) -> Result<(Hold, SpareIntent)> {
        self.epochs.unlock(self.word(rank))
    }
}

#[test]
fn nothing_may_be_accessed_outside_an_epoch() {
    let epochs = Process::new(100, false);
    assert!(epochs.may_access(Rank(0)).is_err());
    assert!(epochs.may_flush(Rank(0)).is_err());
    assert!(epochs.may_free().is_ok());
}

#[test]
fn no_target_is_unlocked_that_is_not_locked() {
    let epochs = Process::new(100, false);
    let unknown = TargetAccess::unknown();
    for taken in [(Hold::Shared, Intent::Earlier), (Hold::Exclusive, Intent::Standing)] {
        assert!(epochs.lock_quick(Rank(1), || Some(taken)));
        assert!(!epochs.epochs.lock_quick(&unknown, || Some(taken)));
        assert_eq!(epochs.unlock_quick(Rank(0)), None);
        assert_eq!(epochs.epochs.unlock_quick(&unknown), None);
        assert!(epochs.unlock_quick(Rank(1)).is_some());
        assert_eq!(epochs.unlock_quick(Rank(1)), None);
    }
    assert!(epochs.lock(Rank(3), Hold::Unchecked).is_ok());
    assert_eq!(epochs.unlock_quick(Rank(3)), None, "no lock was taken");
    assert_eq!(epochs.unlock(Rank(3)), Ok((Hold::Unchecked, SpareIntent::None)));
}

#[test]
fn a_lock_opens_its_target_only() {
    let epochs = Process::new(100, false);
    assert_eq!(epochs.lock(Rank(3), Hold::Shared), Ok(Held::Nothing));
    assert_eq!(epochs.lock(Rank(5), Hold::Exclusive), Ok(Held::Shared));
    epochs.locked_exclusive(Intent::Own);
    assert!(epochs.lock(Rank(3), Hold::Shared).is_err());
    for rank in 0..8 {
        assert_eq!(epochs.may_access(Rank(rank)).is_ok(), rank == 3 || rank == 5);
    }
    assert!(epochs.is_exclusive(Rank(5)) && !epochs.is_exclusive(Rank(3)));
    assert_eq!(epochs.unlock(Rank(3)), Ok((Hold::Shared, SpareIntent::None)));
    assert!(epochs.may_access(Rank(3)).is_err() && epochs.may_access(Rank(5)).is_ok());
    assert!(epochs.may_free().is_err());
    assert_eq!(epochs.unlock(Rank(5)), Ok((Hold::Exclusive, SpareIntent::Release)));
    assert!(epochs.may_free().is_ok() && epochs.lock_all(true).is_ok());
}

/// Locks and unlocks targets in an order that a generator makes, by the fast path and others, and
/// compares the legal calls with the set of the locked targets.
#[test]
fn a_lock_that_is_asked_for_opens_its_target_when_it_is_taken() {
    let process = Process::new(4, false);
    let [a, b, c] = [0, 1, 2].map(Rank);
    process.ask(process.word(a), Hold::Exclusive).unwrap();
    assert!(process.ask(process.word(a), Hold::Shared).is_err(), "locked already");
    assert!(process.lock_all(true).is_err(), "another epoch");
    process.ask(process.word(b), Hold::Exclusive).unwrap();
    assert!(!process.is_open(a) && !process.is_passive(a) && process.may_flush_all().is_ok());
    assert!(process.epochs.unlock(process.word(a)).is_err(), "not taken");
    assert_eq!(process.take_asked(process.word(c)), None);
    // What was asked for is not held yet.
    let taken = process.take_asked(process.word(a));
    assert_eq!(taken, Some((Hold::Exclusive, Held::Nothing)));
    process.asked_failed(taken.unwrap());
    assert_eq!(process.take_asked(process.word(a)), taken, "still to be taken");
    process.asked_taken(process.word(a), Hold::Exclusive, Intent::Own);
    assert!(process.is_open(a) && process.is_exclusive(a) && !process.is_open(b));
    // The second one counts on the intent of the first.
    let taken = process.take_asked(process.word(b)).unwrap();
    assert_eq!(taken, (Hold::Exclusive, Held::Exclusive));
    process.asked_failed(taken);
    assert_eq!(process.take_asked(process.word(b)), Some(taken));
    process.asked_ended(process.word(b), taken);
    assert!(process.word(b).is_closed() && process.may_free().is_err());
    let unlocked = process.epochs.unlock(process.word(a));
    assert_eq!(unlocked, Ok((Hold::Exclusive, SpareIntent::Release)));
    assert!(process.may_free().is_ok());
    process.ask(process.word(a), Hold::Shared).unwrap();
    let taken = process.take_asked(process.word(a)).unwrap();
    process.asked_ended(process.word(a), taken);
    assert!(process.may_free().is_ok() && process.lock_all(true).is_ok());
}

#[test]
fn many_locks_open_their_targets_only() {
    const RANKS: u32 = 9;
    let epochs = Process::new(RANKS, false);
    let mut locked = std::collections::BTreeSet::new();
    let mut state = 1_u32;
    for _ in 0..2000 {
        state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        let (rank, is_quick) = (Rank((state >> 16) % RANKS), state >> 30 & 1 == 0);
        if locked.remove(&rank) {
            match is_quick {
                true => assert!(epochs.unlock_quick(rank).is_some()),
                false => assert!(epochs.unlock(rank).is_ok()),
            }
            assert!(epochs.unlock_quick(rank).is_none() && epochs.unlock(rank).is_err());
        } else {
            let take = || Some((Hold::Shared, Intent::Earlier));
            match is_quick {
                true => assert!(epochs.lock_quick(rank, take)),
                false => assert!(epochs.lock(rank, Hold::Shared).is_ok()),
            }
            assert!(!epochs.lock_quick(rank, take));
            locked.insert(rank);
        }
        for rank in (0..RANKS).map(Rank) {
            let (open, passive) = (epochs.is_open(rank), epochs.is_passive(rank));
            let is_locked = locked.contains(&rank);
            assert_eq!((open, passive), (is_locked, is_locked));
            assert_eq!(epochs.may_flush(rank).is_ok(), is_locked);
        }
        let rank = Rank(state % RANKS);
        assert_eq!(epochs.may_access(rank).is_ok(), locked.contains(&rank));
        assert_eq!(epochs.may_free().is_ok(), locked.is_empty());
    }
}

#[test]
fn a_process_with_threads_is_never_known_to_be_alone() {
    let epochs = Process::new(100, true);
    epochs.lock(Rank(5), Hold::Exclusive).unwrap();
    assert!(!epochs.is_exclusive(Rank(5)));
}

#[test]
fn each_intent_is_given_back_once_though_threads_come_while_locks_are_held() {
    let epochs = Process::new(100, false);
    assert!(epochs.lock_quick(Rank(1), || Some((Hold::Exclusive, Intent::Own))));
    assert_eq!(epochs.lock(Rank(2), Hold::Exclusive), Ok(Held::Exclusive));
    epochs.several_threads();
    assert_eq!(epochs.lock(Rank(3), Hold::Exclusive), Ok(Held::Shared));
    epochs.locked_exclusive(Intent::Own);
    // Two intents for three locks: the first lock that ends keeps its intent.
    assert_eq!(epochs.unlock(Rank(1)), Ok((Hold::Exclusive, SpareIntent::None)));
    assert_eq!(epochs.unlock(Rank(3)), Ok((Hold::Exclusive, SpareIntent::Release)));
    assert_eq!(epochs.unlock_quick(Rank(2)), None);
    assert_eq!(epochs.unlock(Rank(2)), Ok((Hold::Exclusive, SpareIntent::Release)));
    assert!(!epochs.lock_quick(Rank(1), || Some((Hold::Exclusive, Intent::Own))));
    assert!(epochs.may_free().is_ok());
}

#[test]
fn a_lock_of_one_thread_is_no_exclusive_one_for_others_when_they_come() {
    let epochs = Process::new(100, false);
    epochs.lock(Rank(5), Hold::Exclusive).unwrap();
    epochs.locked_exclusive(Intent::Own);
    epochs.several_threads();
    assert!(!epochs.is_exclusive(Rank(5)));
    assert_eq!(epochs.lock(Rank(6), Hold::Exclusive), Ok(Held::Shared));
}

#[test]
fn a_fence_without_operations_is_no_epoch() {
    let epochs = Process::new(100, false);
    epochs.fenced(true);
    assert!(epochs.lock(Rank(0), Hold::Shared).is_ok());
    epochs.unlock(Rank(0)).unwrap();
    epochs.fenced(true);
    assert!(epochs.may_access(Rank(1)).is_ok());
    epochs.accessed();
    assert!(epochs.lock(Rank(0), Hold::Shared).is_err() && epochs.start(&[Rank(0)]).is_err());
    assert!(epochs.may_fence().is_ok());
    epochs.fenced(false);
    assert!(epochs.may_access(Rank(1)).is_err());
}

#[test]
fn an_operation_that_failed_after_a_fence_begins_no_epoch() {
    let epochs = Process::new(100, false);
    epochs.fenced(true);
    assert!(epochs.may_access(Rank(1)).is_ok() && !epochs.is_open(Rank(1)));
    assert!(epochs.lock_all(true).is_ok());
    epochs.accessed();
    assert_eq!(epochs.unlock_all(), Ok(true));
    epochs.accessed();
    assert!(epochs.may_access(Rank(1)).is_err());
}

#[test]
fn requests_are_for_passive_target_epochs() {
    let epochs = Process::new(100, false);
    assert_eq!(epochs.may_request(Rank(0)), Err(NO_EPOCH));
    epochs.fenced(true);
    assert_eq!(epochs.may_request(Rank(0)), Err(REQUEST));
    epochs.accessed();
    assert!(epochs.may_request(Rank(0)) == Err(REQUEST) && epochs.may_access(Rank(0)).is_ok());
    epochs.fenced(false);
    assert_eq!(epochs.may_request(Rank(0)), Err(NO_EPOCH));
    epochs.start(&[Rank(0)]).unwrap();
    assert!(epochs.may_request(Rank(0)) == Err(REQUEST) && epochs.may_access(Rank(0)).is_ok());
    assert!(epochs.may_request(Rank(1)).is_err_and(|error| error != REQUEST));
    epochs.completed();
    epochs.lock(Rank(0), Hold::Shared).unwrap();
    assert!(epochs.may_request(Rank(0)).is_ok());
    assert_eq!(epochs.may_request(Rank(1)), Err(NOT_LOCKED));
    epochs.lock(Rank(1), Hold::Shared).unwrap();
    assert!(epochs.may_request(Rank(0)).is_ok() && epochs.may_request(Rank(1)).is_ok());
    epochs.unlock(Rank(0)).unwrap();
    epochs.unlock(Rank(1)).unwrap();
    epochs.lock_all(true).unwrap();
    assert!(epochs.may_request(Rank(7)).is_ok());
}

#[test]
fn start_opens_its_group_and_post_is_independent() {
    let epochs = Process::new(100, false);
    epochs.post(2).unwrap();
    epochs.start(&[Rank(1), Rank(2)]).unwrap();
    assert!(epochs.may_access(Rank(2)).is_ok() && epochs.may_access(Rank(0)).is_err());
    assert!(epochs.may_fence().is_err() && epochs.post(1).is_err());
    assert_eq!(epochs.started()[..], [Rank(1), Rank(2)]);
    epochs.completed();
    assert_eq!(epochs.posted(), Ok(2));
    epochs.waited();
    assert!(epochs.posted().is_err() && epochs.may_fence().is_ok());
}

#[test]
fn lock_all_opens_everything_once() {
    let epochs = Process::new(100, true);
    epochs.lock_all(false).unwrap();
    assert!(epochs.may_access(Rank(77)).is_ok() && epochs.lock(Rank(1), Hold::Shared).is_err());
    assert_eq!(epochs.unlock_all(), Ok(false));
    assert!(epochs.may_access(Rank(77)).is_err() && epochs.unlock_all().is_err());
}

#[test]
fn the_quick_path_of_lock_all_is_for_an_idle_process_with_one_thread() {
    let epochs = Process::new(100, false);
    assert!(!epochs.lock_all_quick(|| false) && epochs.may_free().is_ok());
    assert!(epochs.lock_all_quick(|| true) && epochs.is_passive(Rank(77)));
    assert!(!epochs.lock_all_quick(|| true));
    assert!(epochs.unlock_all_quick() && !epochs.unlock_all_quick());
    epochs.lock_all(false).unwrap();
    assert!(!epochs.unlock_all_quick());
    epochs.unlock_all().unwrap();
    epochs.lock(Rank(1), Hold::Shared).unwrap();
    assert!(!epochs.lock_all_quick(|| true) && !epochs.unlock_all_quick());
    epochs.unlock(Rank(1)).unwrap();
    assert!(epochs.lock_all_quick(|| true));
    epochs.several_threads();
    assert!(!epochs.unlock_all_quick() && epochs.unlock_all() == Ok(true));
    assert!(!epochs.lock_all_quick(|| true));
}

/// Takes an exclusive lock of a rank, and returns what the process held.
fn lock(epochs: &Process, rank: Rank, intent: Intent) -> Held {
    let held = epochs.lock(rank, Hold::Exclusive).unwrap();
    epochs.locked_exclusive(intent);
    held
}

fn spare(epochs: &Process, rank: Rank) -> SpareIntent {
    let (hold, spare) = epochs.unlock(rank).unwrap();
    assert_eq!(hold, Hold::Exclusive);
    spare
}

#[test]
fn an_intent_is_kept_until_the_last_exclusive_lock_ends() {
    let epochs = Process::new(100, false);
    // Two locks under the standing intent, one with an intent, and one that counts on that.
    assert_eq!(lock(&epochs, Rank(1), Intent::Standing), Held::Nothing);
    assert_eq!(lock(&epochs, Rank(2), Intent::Standing), Held::Shared);
    assert_eq!(lock(&epochs, Rank(3), Intent::Own), Held::Shared);
    assert_eq!(lock(&epochs, Rank(4), Intent::Earlier), Held::Exclusive);
    for rank in [3, 1, 4] {
        assert_eq!(spare(&epochs, Rank(rank)), SpareIntent::None);
    }
    assert_eq!(spare(&epochs, Rank(2)), SpareIntent::Release);
    assert_eq!(lock(&epochs, Rank(1), Intent::Standing), Held::Nothing);
    assert_eq!(spare(&epochs, Rank(1)), SpareIntent::None);
    assert!(epochs.may_free().is_ok());
}

#[test]
fn the_quick_path_counts_intents_as_the_other_one_does() {
    let epochs = Process::new(100, false);
    for (intent, left) in
        [(Intent::Standing, SpareIntent::None), (Intent::Own, SpareIntent::Release)]
    {
        assert!(epochs.lock_quick(Rank(1), || Some((Hold::Exclusive, intent))));
        assert_eq!(epochs.unlock_quick(Rank(1)), Some((Hold::Exclusive, left)));
        assert!(epochs.lock_quick(Rank(1), || Some((Hold::Exclusive, intent))));
        assert_eq!(spare(&epochs, Rank(1)), left);
        lock(&epochs, Rank(1), intent);
        assert_eq!(epochs.unlock_quick(Rank(1)), Some((Hold::Exclusive, left)));
    }
}

#[test]
fn a_lock_that_failed_leaves_the_intents_as_they_were() {
    let epochs = Process::new(100, false);
    lock(&epochs, Rank(1), Intent::Own);
    let held = epochs.lock(Rank(2), Hold::Exclusive).unwrap();
    // A thread that unlocks meanwhile must not take the intent away.
    epochs.several_threads();
    assert_eq!(spare(&epochs, Rank(1)), SpareIntent::None);
    epochs.locked_exclusive(Intent::Earlier);
    assert_eq!((held, spare(&epochs, Rank(2))), (Held::Exclusive, SpareIntent::Release));
    lock(&epochs, Rank(1), Intent::Standing);
    let held = epochs.lock(Rank(2), Hold::Exclusive).unwrap();
    assert!(epochs.unlock(Rank(1)).is_ok() && epochs.unlock(Rank(2)).is_err());
    epochs.not_locked(Rank(2), held);
    assert!(epochs.may_free().is_ok() && epochs.unlock(Rank(2)).is_err());
}

#[test]
fn every_so_many_locks_with_an_intent_offer_it() {
    let epochs = Process::of(Epochs::new(false).offering_after(3), 100);
    let times = |intent: Intent| {
        lock(&epochs, Rank(1), intent);
        spare(&epochs, Rank(1))
    };
    assert_eq!(
        [0; 3].map(|_| times(Intent::Own)),
        [SpareIntent::Release, SpareIntent::Release, SpareIntent::Offer]
    );
    assert_eq!([0; 4].map(|_| times(Intent::Standing)), [SpareIntent::None; 4]);
    assert_eq!(
        [0; 3].map(|_| times(Intent::Own)),
        [SpareIntent::Release, SpareIntent::Release, SpareIntent::Offer]
    );
}
