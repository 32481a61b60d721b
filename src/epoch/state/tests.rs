//! Tests of which call is legal when, in sequences of calls of one process.

use super::*;

#[test]
fn nothing_may_be_accessed_outside_an_epoch() {
    let epochs = Epochs::new(false);
    assert!(epochs.may_access(Rank(0)).is_err());
    assert!(epochs.may_flush(Rank(0)).is_err());
    assert!(epochs.may_free().is_ok());
}

#[test]
fn a_lock_opens_its_target_only() {
    let epochs = Epochs::new(false);
    assert_eq!(epochs.lock(Rank(3), Hold::Shared), Ok(Held::Nothing));
    assert_eq!(epochs.lock(Rank(5), Hold::Exclusive), Ok(Held::Shared));
    assert!(epochs.lock(Rank(3), Hold::Shared).is_err());
    for rank in 0..8 {
        assert_eq!(epochs.may_access(Rank(rank)).is_ok(), rank == 3 || rank == 5);
    }
    assert!(epochs.is_exclusive(Rank(5)) && !epochs.is_exclusive(Rank(3)));
    assert_eq!(epochs.unlock(Rank(3)), Ok((Hold::Shared, Held::Exclusive)));
    assert!(epochs.may_access(Rank(3)).is_err() && epochs.may_access(Rank(5)).is_ok());
    assert!(epochs.may_free().is_err());
    assert_eq!(epochs.unlock(Rank(5)), Ok((Hold::Exclusive, Held::Nothing)));
    assert!(epochs.may_free().is_ok() && epochs.lock_all(true).is_ok());
}

#[test]
fn a_process_with_threads_is_never_known_to_be_alone() {
    let epochs = Epochs::new(true);
    epochs.lock(Rank(5), Hold::Exclusive).unwrap();
    assert!(!epochs.is_exclusive(Rank(5)));
}

#[test]
fn each_intent_is_given_back_once_though_threads_come_while_locks_are_held() {
    let epochs = Epochs::new(false);
    assert!(epochs.lock_first(Rank(1), || Some(Hold::Exclusive)));
    assert_eq!(epochs.lock(Rank(2), Hold::Exclusive), Ok(Held::Exclusive));
    epochs.several_threads();
    assert_eq!(epochs.lock(Rank(3), Hold::Exclusive), Ok(Held::Shared));
    // Two intents for three locks: the first lock that ends keeps its intent.
    assert_eq!(epochs.unlock(Rank(1)), Ok((Hold::Exclusive, Held::Exclusive)));
    assert_eq!(epochs.unlock(Rank(3)), Ok((Hold::Exclusive, Held::Shared)));
    assert_eq!(epochs.unlock_last(Rank(2)), None);
    assert_eq!(epochs.unlock(Rank(2)), Ok((Hold::Exclusive, Held::Nothing)));
    assert!(!epochs.lock_first(Rank(1), || Some(Hold::Exclusive)));
    assert!(epochs.may_free().is_ok());
}

#[test]
fn a_lock_of_one_thread_is_no_exclusive_one_for_others_when_they_come() {
    let epochs = Epochs::new(false);
    epochs.lock(Rank(5), Hold::Exclusive).unwrap();
    epochs.several_threads();
    assert!(!epochs.is_exclusive(Rank(5)));
    assert_eq!(epochs.lock(Rank(6), Hold::Exclusive), Ok(Held::Shared));
}

#[test]
fn a_fence_without_operations_is_no_epoch() {
    let epochs = Epochs::new(false);
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
    let epochs = Epochs::new(false);
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
    let epochs = Epochs::new(false);
    assert_eq!(epochs.may_request(Rank(0)), Err(Error::Epoch(NO_EPOCH)));
    epochs.fenced(true);
    assert_eq!(epochs.may_request(Rank(0)), Err(REQUEST));
    epochs.accessed();
    assert!(epochs.may_request(Rank(0)) == Err(REQUEST) && epochs.may_access(Rank(0)).is_ok());
    epochs.fenced(false);
    assert_eq!(epochs.may_request(Rank(0)), Err(Error::Epoch(NO_EPOCH)));
    epochs.start(&[Rank(0)]).unwrap();
    assert!(epochs.may_request(Rank(0)) == Err(REQUEST) && epochs.may_access(Rank(0)).is_ok());
    assert!(epochs.may_request(Rank(1)).is_err_and(|error| error != REQUEST));
    epochs.completed();
    epochs.lock(Rank(0), Hold::Shared).unwrap();
    assert!(epochs.may_request(Rank(0)).is_ok());
    assert_eq!(epochs.may_request(Rank(1)), Err(Error::Epoch(NOT_LOCKED)));
    epochs.lock(Rank(1), Hold::Shared).unwrap();
    assert!(epochs.may_request(Rank(0)).is_ok() && epochs.may_request(Rank(1)).is_ok());
    epochs.unlock(Rank(0)).unwrap();
    epochs.unlock(Rank(1)).unwrap();
    epochs.lock_all(true).unwrap();
    assert!(epochs.may_request(Rank(7)).is_ok());
}

#[test]
fn start_opens_its_group_and_post_is_independent() {
    let epochs = Epochs::new(false);
    epochs.post(2).unwrap();
    epochs.start(&[Rank(1), Rank(2)]).unwrap();
    assert!(epochs.may_access(Rank(2)).is_ok() && epochs.may_access(Rank(0)).is_err());
    assert!(epochs.may_fence().is_err() && epochs.post(1).is_err());
    assert_eq!(epochs.started(), Ok(vec![Rank(1), Rank(2)]));
    epochs.completed();
    assert_eq!(epochs.posted(), Ok(2));
    epochs.waited();
    assert!(epochs.posted().is_err() && epochs.may_fence().is_ok());
}

#[test]
fn lock_all_opens_everything_once() {
    let epochs = Epochs::new(true);
    epochs.lock_all(false).unwrap();
    assert!(epochs.may_access(Rank(77)).is_ok() && epochs.lock(Rank(1), Hold::Shared).is_err());
    assert_eq!(epochs.unlock_all(), Ok(false));
    assert!(epochs.may_access(Rank(77)).is_err() && epochs.unlock_all().is_err());
}

#[test]
fn the_quick_path_of_lock_all_is_for_an_idle_process_with_one_thread() {
    let epochs = Epochs::new(false);
    assert!(!epochs.lock_all_first(|| false) && epochs.may_free().is_ok());
    assert!(epochs.lock_all_first(|| true) && epochs.is_passive(Rank(77)));
    assert!(!epochs.lock_all_first(|| true));
    assert!(epochs.unlock_all_alone() && !epochs.unlock_all_alone());
    epochs.lock_all(false).unwrap();
    assert!(!epochs.unlock_all_alone());
    epochs.unlock_all().unwrap();
    epochs.lock(Rank(1), Hold::Shared).unwrap();
    assert!(!epochs.lock_all_first(|| true) && !epochs.unlock_all_alone());
    epochs.unlock(Rank(1)).unwrap();
    assert!(epochs.lock_all_first(|| true));
    epochs.several_threads();
    assert!(!epochs.unlock_all_alone() && epochs.unlock_all() == Ok(true));
    assert!(!epochs.lock_all_first(|| true));
}
