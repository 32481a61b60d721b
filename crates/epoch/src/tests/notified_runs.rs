//! Notified operations on the simulator: a pipeline, a halo exchange, gets, resets and changes of
//! the number of counters; and proof that these tests notice a notification that overtakes its
//! data, is lost, is doubled, or arrives behind the end of its counter.
//!
//! A counter is the words of one number in the views of the node and of the device, as the words of
//! a table. They are links, so that the simulator also notices a request that is under way to a
//! counter when its owner gets new counters.

use crate::fabric::layout;
use crate::fabric::{WordAt, WordId, Words};
use crate::fence::{BarrierKind, fence};
use crate::notification::CounterOffsets;
use crate::rank_numbers::Rank;
use fompi_simulator::{FAR, Fault, Sim, SimShape, View, every, is_caught};
use std::cell::Cell;

const COUNTERS: u32 = 2;
const ROUNDS: u64 = 6;

/// The word of a counter, in each view.
fn word(index: u32) -> WordId {
    layout::next(index)
}

/// A rank with counters.
struct Process<'a, 'b> {
    sim: &'a Sim<'b>,
    /// how notifications for other nodes travel
    words: View<'a, 'b, FAR>,
    offsets: CounterOffsets,
    /// the barriers so far
    barriers: Cell<u64>,
}

impl<'a, 'b> Process<'a, 'b> {
    fn new(sim: &'a Sim<'b>, fault: Fault) -> Self {
        let (words, offsets) = (sim.far(fault), CounterOffsets::new(COUNTERS));
        Process { sim, words, offsets, barriers: Cell::new(0) }
    }

    fn is_near(&self, rank: Rank) -> bool {
        rank.0 / self.sim.shape().per_node == self.sim.node()
    }

    /// Notifies a rank behind what was sent to it before: law 26 of `fabric::remote`, by the words
    /// of a transport that does no more than it must.
    fn notify(&self, rank: Rank, index: u32) {
        if self.is_near(rank) {
            let on_node = Rank(rank.0 % self.sim.shape().per_node);
            let at = WordAt { rank: on_node, word: word(index) };
            self.sim.near(Fault::Nothing).post(at, 1).unwrap();
        } else {
            self.words.order(rank).unwrap();
            self.words.post(WordAt { rank, word: word(index) }, 1).unwrap();
        }
    }

    fn put(&self, rank: Rank, cell: usize, value: u64, index: u32) {
        self.sim.put(rank, cell, value);
        self.notify(rank, index);
    }

    /// The notifications for a counter of this rank since it was made.
    fn sum(&self, index: u32) -> u64 {
        let near = self.sim.near(Fault::Nothing).own(word(index));
        near + self.words.own(word(index))
    }

    fn value(&self, index: u32) -> u64 {
        self.offsets.value(index, || self.sum(index))
    }

    fn reset(&self, index: u32) -> u64 {
        self.offsets.set(index, 0, || self.sum(index))
    }

    /// Waits until a counter has reached a threshold, as one that polls.
    fn wait(&self, index: u32, threshold: u64) {
        while self.value(index) < threshold {
            self.sim.step();
        }
    }

    /// Waits for notifications of other nodes, as one that sleeps.
    fn sleep(&self, index: u32, threshold: u64) {
        self.words
            .wait_own(word(index), |sum| self.offsets.value(index, || sum) >= threshold)
            .unwrap();
    }

    /// A barrier that completes no operation.
    fn meet(&self) {
        let number = self.barriers.get() + 1;
        self.barriers.set(number);
        fence(self.sim, BarrierKind::Rounds, number, false).unwrap();
    }
}

/// Rows of ranks hand a value on from the first to the last, `ROUNDS` times, through one cell each.
/// The counter 0 says that the value is there, and the counter 1 of its origin that it is used.
fn pipeline(fault: Fault) -> impl Fn(&Sim) + 'static {
    move |sim| {
        let process = Process::new(sim, fault);
        let Rank(me) = sim.index();
        let last = sim.shape().ranks - 1;
        for round in 1..=ROUNDS {
            let value = if me == 0 {
                100 * round
            } else {
                process.sleep(0, round);
                let value = sim.load(0);
                assert_eq!(value, 100 * round + u64::from(me) - 1);
                process.notify(Rank(me - 1), 1);
                value + 1
            };
            if me < last {
                process.sleep(1, round - 1);
                process.put(Rank(me + 1), 0, value, 0);
            }
        }
        sim.far(Fault::Nothing).flush_all().unwrap();
        process.meet();
        let expected = [(me > 0, 0), (me < last, 1)];
        assert!(
            expected
                .iter()
                .all(|(any, index)| process.value(*index) == if *any { ROUNDS } else { 0 })
        );
    }
}

/// Each rank of a ring puts a value to both neighbours in each step. One counter has the
/// notifications of both; it and the cells alternate, because a neighbour may be one step ahead.
fn halo(fault: Fault) -> impl Fn(&Sim) + 'static {
    move |sim| {
        let process = Process::new(sim, fault);
        let (Rank(me), ranks) = (sim.index(), sim.shape().ranks);
        let (right, left) = (Rank((me + 1) % ranks), Rank((me + ranks - 1) % ranks));
        for step in 0..ROUNDS {
            let turn = (step % 2) as u32;
            let cells = 2 * turn as usize;
            let value = |rank: Rank| 1000 * step + u64::from(rank.0) + 1;
            process.put(right, cells, value(sim.index()), turn);
            process.put(left, cells + 1, value(sim.index()), turn);
            process.wait(turn, 2 * (step / 2 + 1));
            assert_eq!([sim.load(cells), sim.load(cells + 1)], [value(left), value(right)]);
        }
        sim.far(Fault::Nothing).flush_all().unwrap();
        process.meet();
        assert_eq!([process.value(0), process.value(1)], [ROUNDS; 2]);
    }
}

/// The other ranks get a cell of rank 0, which stores into it when they have notified it.
fn gets(fault: Fault) -> impl Fn(&Sim) + 'static {
    move |sim| {
        let process = Process::new(sim, fault);
        for round in 1..=ROUNDS {
            if sim.index() == Rank(0) {
                sim.store(0, round);
                process.meet();
                process.sleep(0, round * u64::from(sim.shape().ranks - 1));
                sim.store(0, u64::MAX);
            } else {
                process.meet();
                let buffer = sim.get(Rank(0), 0);
                process.notify(Rank(0), 0);
                sim.far(Fault::Nothing).flush(Rank(0)).unwrap();
                assert_eq!(sim.got(buffer), round);
            }
            process.meet();
        }
        assert!(
            sim.index() != Rank(0) || process.value(0) == ROUNDS * u64::from(sim.shape().ranks - 1)
        );
    }
}

/// A mistake of a rank.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Slip {
    Nothing,
    /// a reset returns another value than the one that it takes off
    ResetTwice,
    /// a rank gets new counters before all ranks have ended their operations
    BeginEarly,
    /// a rank notifies before all ranks have their new counters
    SendEarly,
}

/// Rank 0 resets its counter while the others notify it. The values that the resets have returned,
/// and the value when all have flushed, are the number of notifications.
fn resets(fault: Fault, slip: Slip) -> impl Fn(&Sim) + 'static {
    move |sim| {
        let process = Process::new(sim, fault);
        let reset = || match slip {
            Slip::ResetTwice => {
                let value = process.value(0);
                process.reset(0);
                value
            }
            _ => process.reset(0),
        };
        let mut taken = 0;
        for _ in 0..ROUNDS {
            match sim.index() {
                Rank(0) => taken += reset(),
                _ => process.notify(Rank(0), 0),
            }
        }
        process.words.flush_all().unwrap();
        process.meet();
        if sim.index() == Rank(0) {
            assert_eq!(taken + process.value(0), ROUNDS * u64::from(sim.shape().ranks - 1));
            assert_eq!(taken + reset(), ROUNDS * u64::from(sim.shape().ranks - 1));
            assert_eq!(process.value(0), 0);
        }
    }
}

/// All ranks notify each other, and then get new counters in the same memory, as
/// FOMPI_Win_set_num_notify does: they end all operations, meet, make the counters, and meet again.
fn changes(fault: Fault, slip: Slip) -> impl Fn(&Sim) + 'static {
    move |sim| {
        let mut process = Process::new(sim, fault);
        for round in 0..ROUNDS {
            for other in (0..sim.shape().ranks).map(Rank) {
                (0..=round % 2).for_each(|_| process.notify(other, 1));
            }
            process.words.flush_all().unwrap();
            if slip != Slip::BeginEarly {
                process.meet();
                assert_eq!(process.value(1), (round % 2 + 1) * u64::from(sim.shape().ranks));
            }
            for index in 0..COUNTERS {
                sim.near(Fault::Nothing).set_own(word(index), 0);
                process.words.set_own(word(index), 0);
            }
            process.offsets = CounterOffsets::new(COUNTERS);
            if slip != Slip::SendEarly {
                process.meet();
            }
        }
    }
}

/// Ranks on as many nodes, and pairs of ranks on two nodes.
fn shapes() -> [SimShape; 2] {
    [SimShape::from(3), SimShape { per_node: 2, ..SimShape::from(4) }]
}

#[test]
fn who_sees_a_notification_sees_its_data() {
    every(4, || pipeline(Fault::Nothing), |_| {});
    every(3, || gets(Fault::Nothing), |_| {});
    for shape in shapes() {
        every(shape, || halo(Fault::Nothing), |_| {});
    }
}

#[test]
fn a_notification_that_overtakes_its_data_is_noticed() {
    assert!(is_caught(4, || pipeline(Fault::Order)));
    assert!(is_caught(3, || gets(Fault::Order)));
    assert!(shapes().iter().all(|shape| is_caught(*shape, || halo(Fault::Order))));
}

#[test]
fn a_notification_that_is_lost_is_noticed() {
    for fault in [Fault::Post, Fault::EveryOtherPost] {
        assert!((0..COUNTERS).all(|index| is_caught(4, || pipeline(fault(word(index))))));
        assert!(is_caught(3, || gets(fault(word(0)))));
        assert!(shapes().iter().all(|shape| is_caught(*shape, || halo(fault(word(1))))));
    }
}

#[test]
fn a_notification_that_is_doubled_is_noticed() {
    assert!((0..COUNTERS).all(|index| is_caught(4, || pipeline(Fault::PostTwice(word(index))))));
    assert!(is_caught(3, || gets(Fault::PostTwice(word(0)))));
    assert!(shapes().iter().all(|shape| is_caught(*shape, || halo(Fault::PostTwice(word(1))))));
}

#[test]
fn resets_lose_no_notification_and_count_none_twice() {
    let caught = |fault, slip| shapes().map(|shape| is_caught(shape, || resets(fault, slip)));
    for shape in shapes() {
        every(shape, || resets(Fault::Nothing, Slip::Nothing), |_| {});
    }
    for fault in [Fault::EveryOtherPost, Fault::PostTwice] {
        assert_eq!(caught(fault(word(0)), Slip::Nothing), [true; 2]);
    }
    assert_eq!(caught(Fault::Nothing, Slip::ResetTwice), [true; 2]);
    // A notification that comes behind the flush, and so behind the last reset.
    assert_eq!(caught(Fault::Flush, Slip::Nothing), [true; 2]);
}

#[test]
fn counters_begin_anew_without_notifications_of_those_before() {
    let caught = |fault, slip| shapes().map(|shape| is_caught(shape, || changes(fault, slip)));
    for shape in shapes() {
        every(shape, || changes(Fault::Nothing, Slip::Nothing), |_| {});
    }
    assert_eq!(caught(Fault::Flush, Slip::Nothing), [true; 2]);
    assert_eq!(caught(Fault::Nothing, Slip::BeginEarly), [true; 2]);
    assert_eq!(caught(Fault::Nothing, Slip::SendEarly), [true; 2]);
}
