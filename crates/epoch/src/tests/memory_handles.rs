//! Memory handles: a withdrawal against accesses, in every order. Each access is a store into
//! memory that the handle exposes; behind the withdrawal the owner stores there itself.

use super::orderings::{THREE, TWO};
use crate::memory_handles::{
    Fences, SeenAnnouncements, announce, announce_among, is_valid, sees, under_way, valid,
    withdrawal,
};
use crate::sync::{AtomicU64, Ordering, full_fence};
use fompi_testkit::model;

#[cfg(loom)]
use loom::{sync::Arc, thread};
#[cfg(not(loom))]
use std::{sync::Arc, thread};

const GENERATION: u64 = 5;

/// The model checker has a fence in place of the owner's barrier; on the machine there is none.
const FENCES: Fences = if cfg!(loom) { Fences::ByOwner } else { Fences::Own };

/// The words of a handle, the announcements of one process, and the memory.
struct Shared {
    validity: AtomicU64,
    announced: [AtomicU64; 2],
    data: AtomicU64,
}

impl Shared {
    fn new() -> Arc<Shared> {
        let announced = [AtomicU64::new(0), AtomicU64::new(0)];
        let (validity, data) = (AtomicU64::new(valid(GENERATION)), AtomicU64::new(0));
        Arc::new(Shared { validity, announced, data })
    }

    fn access(&self, threads: bool) {
        let announced = match threads {
            true => announce_among(&self.announced),
            false => announce(&self.announced[0]),
        };
        if announced.is_some() && sees(&self.validity, GENERATION, FENCES) {
            // Plain data: only the protocol orders them.
            self.data.store(1, Ordering::Relaxed);
        }
    }

    fn withdraw(&self) {
        self.validity.fetch_add(withdrawal(GENERATION), Ordering::AcqRel);
        full_fence();
        let word = |index: usize| self.announced[index].load(Ordering::Acquire);
        let seen = SeenAnnouncements::<2>::of(word);
        while !seen.are_over(word) {
            thread::yield_now();
        }
        self.data.store(2, Ordering::Relaxed);
    }
}

#[test]
fn loom_no_access_touches_memory_that_is_withdrawn() {
    model(TWO, || {
        let shared = Shared::new();
        let origin = {
            let shared = shared.clone();
            thread::spawn(move || {
                for _ in 0..2 {
                    let announced = announce(&shared.announced[0]);
                    if sees(&shared.validity, GENERATION, Fences::Own) {
                        shared.data.store(1, Ordering::Relaxed);
                    }
                    drop(announced);
                }
            })
        };
        shared.withdraw();
        origin.join().unwrap();
        assert_eq!(shared.data.load(Ordering::Relaxed), 2);
    });
}

#[test]
fn loom_threads_of_a_process_announce_in_words_of_their_own() {
    model(THREE, || {
        let shared = Shared::new();
        let origins: Vec<_> = (0..2)
            .map(|_| {
                let shared = shared.clone();
                thread::spawn(move || shared.access(true))
            })
            .collect();
        shared.withdraw();
        origins.into_iter().for_each(|origin| origin.join().unwrap());
        assert_eq!(shared.data.load(Ordering::Relaxed), 2);
    });
}

#[test]
fn loom_an_access_leaves_the_barrier_to_the_owner() {
    model(TWO, || {
        let shared = Shared::new();
        let origin = {
            let shared = shared.clone();
            thread::spawn(move || shared.access(false))
        };
        shared.withdraw();
        origin.join().unwrap();
        assert_eq!(shared.data.load(Ordering::Relaxed), 2);
    });
}

#[test]
fn loom_a_device_enters_before_the_withdrawal_or_not_at_all() {
    model(THREE, || {
        let shared = Shared::new();
        let origins: Vec<_> = (0..2)
            .map(|_| {
                let shared = shared.clone();
                thread::spawn(move || {
                    if is_valid(shared.validity.fetch_add(1, Ordering::AcqRel), GENERATION) {
                        shared.data.store(1, Ordering::Relaxed);
                    }
                    shared.validity.fetch_add(u64::MAX, Ordering::AcqRel);
                })
            })
            .collect();
        shared.validity.fetch_add(withdrawal(GENERATION), Ordering::AcqRel);
        while under_way(shared.validity.load(Ordering::Acquire)) > 0 {
            thread::yield_now();
        }
        shared.data.store(2, Ordering::Relaxed);
        origins.into_iter().for_each(|origin| origin.join().unwrap());
        assert_eq!(shared.data.load(Ordering::Relaxed), 2);
        assert_eq!(shared.validity.load(Ordering::Relaxed), 0);
    });
}

#[test]
fn an_announcement_in_an_announcement_is_none_of_its_own() {
    let shared = Shared::new();
    let outer = announce(&shared.announced[0]);
    assert!(outer.is_some() && announce(&shared.announced[0]).is_none());
    let (first, second) = (announce_among(&shared.announced), announce_among(&shared.announced));
    assert!(first.is_some() && second.is_none(), "all words are in use");
    drop((outer, first));
    let words = shared.announced.each_ref().map(|word| word.load(Ordering::Relaxed));
    assert_eq!(words, [2, 2]);
}

#[test]
fn an_owner_waits_for_no_later_access() {
    let shared = Shared::new();
    let word = |index: usize| shared.announced[index].load(Ordering::Relaxed);
    let before = announce(&shared.announced[1]);
    let seen = SeenAnnouncements::<2>::of(word);
    assert!(!seen.are_over(word));
    drop(before);
    let _later = announce(&shared.announced[1]);
    assert!(seen.are_over(word));
}

#[test]
fn a_validity_is_that_of_one_generation() {
    let of = |word: u64| [4, 5, 6].map(|generation| is_valid(word, generation));
    assert_eq!(of(valid(5)), [false, true, false]);
    assert_eq!(of(valid(5) + 3), [false, true, false]);
    assert_eq!(of((valid(5) + 3).wrapping_add(withdrawal(5))), [false; 3]);
    assert_eq!(under_way((valid(5) + 3).wrapping_add(withdrawal(5))), 3);
}
