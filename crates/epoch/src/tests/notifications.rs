//! Counters of notifications: what a notification makes visible, and resets.

use super::orderings::{THREE, TWO, memory};
use crate::fabric::shm::doorbell;
use crate::notification::{CounterOffsets, Table};
use crate::sync::{AtomicU32, AtomicU64, Ordering};
use fompi_testkit::model;

#[cfg(loom)]
use loom::{sync::Arc, thread};
#[cfg(not(loom))]
use std::{sync::Arc, thread};

/// The words of one counter, and the doorbell.
struct Words {
    near: AtomicU64,
    far: AtomicU64,
    bell: AtomicU32,
}

impl Words {
    fn new() -> Arc<Words> {
        let (near, far, bell) = (AtomicU64::new(0), AtomicU64::new(0), AtomicU32::new(0));
        Arc::new(Words { near, far, bell })
    }

    fn notify(&self, far: bool) {
        let word = if far { &self.far } else { &self.near };
        doorbell::add_and_ring(word, 1, &self.bell, |_| {});
    }

    fn sum(&self) -> u64 {
        self.near.load(Ordering::Acquire) + self.far.load(Ordering::Acquire)
    }
}

#[test]
fn loom_who_has_seen_a_notification_reads_its_data() {
    model(THREE, || {
        let (words, data, offsets) = (Words::new(), memory(), CounterOffsets::new(1));
        let origins: Vec<_> = [false, true]
            .map(|far| {
                let (words, data) = (words.clone(), data.clone());
                thread::spawn(move || {
                    // Plain data: only the notification orders them.
                    data[usize::from(far)].store(7, Ordering::Relaxed);
                    words.notify(far);
                })
            })
            .into();
        while offsets.value(0, || words.sum()) < 2 {
            thread::yield_now();
        }
        assert!(data.iter().all(|one| one.load(Ordering::Relaxed) == 7));
        origins.into_iter().for_each(|origin| origin.join().unwrap());
    });
}

#[test]
fn loom_resets_lose_no_notification() {
    model(TWO, || {
        let (words, offsets) = (Words::new(), Arc::new(CounterOffsets::new(1)));
        let origin = {
            let words = words.clone();
            thread::spawn(move || {
                words.notify(false);
                words.notify(true);
            })
        };
        let other = {
            let (words, offsets) = (words.clone(), offsets.clone());
            thread::spawn(move || offsets.set(0, 0, || words.sum()))
        };
        let mut taken = offsets.set(0, 0, || words.sum());
        let value = offsets.value(0, || words.sum());
        assert!(value <= 2, "a counter never stands below a reset: {value}");
        taken += other.join().unwrap();
        origin.join().unwrap();
        assert_eq!(taken + offsets.value(0, || words.sum()), 2);
        offsets.set(0, 10, || words.sum());
        words.notify(false);
        assert_eq!(offsets.value(0, || words.sum()), 11);
    });
}

#[test]
fn a_table_has_room_for_its_counters() {
    for counters in [0, 1, 2, 7, 8, 1000, i32::MAX.cast_unsigned()] {
        let table = Table(counters);
        assert_eq!(Table::of_bytes(table.bytes()), table);
        let Some(last) = counters.checked_sub(1) else { continue };
        let words = [table.near(0), table.near(last), table.far(0), table.far(last)];
        assert!(words.windows(2).all(|pair| pair[0] <= pair[1]) && words[0] >= 64);
        assert_eq!(words[3] + 8, table.bytes());
        assert_eq!(table.far(0), table.near(last) + 8);
    }
    assert_eq!(Table::of_bytes(0), Table(0));
}
