//! Tables of regions on the simulator: an access sees the table as it is, and is over when a detach
//! returns; and proof that these tests notice steps that the protocol leaves out.

use crate::fabric::layout::{self, ACC, REGIONS};
use crate::fabric::{WordAt, Words};
use crate::fence::BarrierKind;
use crate::lock::{
    Held, Mode, SpareIntent, acquire, lock_all, lock_exclusive, lock_shared, unlock_all,
    unlock_exclusive, unlock_shared,
};
use crate::rank_numbers::Rank;
use crate::regions::{Change, Table, change, hold, release, seen, table, while_held};
use crate::{fence, lock, pscw};
use fompi_simulator::{
    FAR, FLAT, Fault, FinalState, POISON, Sim, SimShape, View, every, is_caught,
};
use std::cell::RefCell;

/// Regions that a rank may attach: the first cells, one each. The table takes the cells behind.
const REGIONS_MAX: usize = 4;
/// The places where the table may lie.
const PLACES: [usize; 2] = [4, 10];
/// The value that accesses put.
const PUT: u64 = 7;
/// The value that a rank keeps in a cell that it has detached.
const PRIVATE: u64 = 11;

/// The order of the steps of an origin.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Manner {
    /// hold, look, access, release
    Right,
    /// hold, look, release, access: safe only if the number of the table alone were enough
    HoldToLook,
    /// look, then hold, access, release
    LookThenHold,
}

/// A fault in an access or a detach, if any.
#[derive(Clone, Copy, Debug)]
struct Wrong {
    fault: Fault,
    manner: Manner,
    /// the change that a detach publishes
    detach: Change,
}

const NOTHING: Wrong = Wrong { fault: Fault::Nothing, manner: Manner::Right, detach: Change::Cut };

/// The tables of all ranks, kept by hand.
#[derive(Default)]
struct Oracle {
    /// regions in the order of the slots
    slots: RefCell<[Vec<usize>; 4]>,
    place: RefCell<[usize; 4]>,
    /// the number of holders of the table of a rank
    inside: RefCell<[u32; 4]>,
    /// whether a region was put into since it was attached
    put: RefCell<[[bool; REGIONS_MAX]; 4]>,
}

/// A copy of a table.
#[derive(Default)]
struct Copied {
    id: u64,
    slots: Vec<usize>,
}

fn get(sim: &Sim, target: Rank, cell: usize) -> u64 {
    let buffer = sim.get(target, cell);
    // The simulator itself flushes here, so that a fault of the transport does not spoil the get.
    sim.flush(target).unwrap();
    sim.got(buffer)
}

fn look<const V: usize>(words: &View<V>, oracle: &Oracle, target: Rank, copy: &mut Copied) {
    let id = seen(words, target).unwrap();
    if id != copy.id {
        let (Table { address, slots, .. }, is_longer) = table(words, target, copy.id).unwrap();
        copy.slots.truncate(if is_longer { copy.slots.len() } else { 0 });
        for slot in copy.slots.len()..slots as usize {
            copy.slots.push(get(words.sim, target, address as usize + slot) as usize);
        }
        copy.id = id;
    }
    assert_eq!(copy.slots, oracle.slots.borrow()[target.0 as usize], "not the table");
}

/// Accesses a region if the copy has it: a put, and now and then under ACC.
fn touch<const V: usize>(words: &View<V>, oracle: &Oracle, target: Rank, copy: &Copied) {
    let (sim, acc) = (words.sim, WordAt { rank: target, word: ACC });
    let region = sim.random(REGIONS_MAX as u32) as usize;
    if !copy.slots.contains(&region) {
        return;
    }
    let locks = sim.random(4) == 0;
    if locks {
        acquire(words, acc, Mode::Exclusive, false, sim.thread()).unwrap();
    }
    sim.put(target, region, PUT);
    oracle.put.borrow_mut()[target.0 as usize][region] = true;
    if locks {
        lock::release(words, acc, Mode::Exclusive).unwrap();
    }
}

fn access<const V: usize>(
    words: &View<V>,
    oracle: &Oracle,
    target: Rank,
    copy: &mut Copied,
    manner: Manner,
) {
    let (index, node) = (target.0 as usize, words.sim.thread());
    let enter = || {
        hold(words, target, node).unwrap();
        oracle.inside.borrow_mut()[index] += 1;
    };
    let leave = || {
        oracle.inside.borrow_mut()[index] -= 1;
        release(words, target).unwrap();
    };
    enter();
    look(words, oracle, target, copy);
    if manner != Manner::Right {
        leave();
    }
    if manner == Manner::LookThenHold {
        enter();
    }
    touch(words, oracle, target, copy);
    if manner != Manner::HoldToLook {
        leave();
    }
}

/// Changes the slots of this rank, and moves the table now and then.
fn edit<const V: usize>(
    words: &View<V>,
    oracle: &Oracle,
    kind: Change,
    edit: impl FnOnce(&mut Vec<usize>),
) {
    let (sim, me) = (words.sim, words.rank().0 as usize);
    let work = || {
        assert_eq!(oracle.inside.borrow()[me], 0, "another thread holds the table");
        let mut slots = oracle.slots.borrow()[me].clone();
        edit(&mut slots);
        let place = sim.random(2) as usize;
        let left = std::mem::replace(&mut oracle.place.borrow_mut()[me], place);
        if left != place {
            (0..REGIONS_MAX).for_each(|slot| sim.store(PLACES[left] + slot, POISON));
        }
        for (slot, region) in slots.iter().enumerate() {
            sim.store(PLACES[place] + slot, *region as u64);
        }
        let table = Table { address: PLACES[place] as u64, slots: slots.len() as u64, key: 0 };
        oracle.slots.borrow_mut()[me] = slots;
        Ok((table, kind))
    };
    change(words, sim.thread(), work).unwrap();
}

fn attach<const V: usize>(words: &View<V>, oracle: &Oracle, region: usize) {
    words.sim.store(region, 0);
    oracle.put.borrow_mut()[words.rank().0 as usize][region] = false;
    edit(words, oracle, Change::Added, |slots| slots.push(region));
}

fn detach<const V: usize>(words: &View<V>, oracle: &Oracle, region: usize, kind: Change) {
    let (sim, me) = (words.sim, words.rank().0 as usize);
    edit(words, oracle, kind, |slots| {
        let slot = slots.iter().position(|other| *other == region).unwrap();
        slots.swap_remove(slot);
    });
    let expected = if oracle.put.borrow()[me][region] { PUT } else { 0 };
    assert_eq!(sim.load(region), expected, "detached before the puts were done");
    sim.store(region, PRIVATE);
    (0..sim.random(30)).for_each(|_| sim.step());
    assert_eq!(sim.load(region), PRIVATE, "put into after the detach");
}

/// Every thread attaches and detaches regions of its own, and accesses those of all ranks.
fn mixture<const V: usize>(wrong: Wrong) -> impl Fn(&Sim) + 'static {
    let oracle = Oracle::default();
    move |sim| {
        let words = sim.view::<V>(wrong.fault);
        let mut copies: [Copied; 4] = Default::default();
        let mut attached = [false; REGIONS_MAX];
        for _ in 0..10 {
            let region = sim.random(REGIONS_MAX as u32) as usize;
            let is_mine = region as u32 % sim.threads() == sim.thread();
            if is_mine && sim.random(3) == 0 {
                match attached[region] {
                    false => attach(&words, &oracle, region),
                    true => detach(&words, &oracle, region, wrong.detach),
                }
                attached[region] = !attached[region];
            } else {
                let target = Rank(sim.random(sim.size()));
                let copy = &mut copies[target.0 as usize];
                access(&words, &oracle, target, copy, wrong.manner);
            }
        }
    }
}

fn all_is_free(end: &FinalState) {
    for rank in end.ranks() {
        for word in [REGIONS, ACC, layout::LOCK, layout::GLOBAL] {
            assert_eq!(end.word(WordAt { rank, word }), 0);
            assert_eq!(end.word_of(FAR, WordAt { rank, word }), 0);
        }
    }
}

#[test]
fn an_access_sees_the_table_and_is_over_when_a_detach_returns() {
    for ranks in [1, 2, 4] {
        every(ranks, || mixture::<FLAT>(NOTHING), all_is_free);
        every(ranks, || mixture::<FAR>(NOTHING), all_is_free);
    }
}

#[test]
fn threads_of_a_process_attach_and_access_side_by_side() {
    let shape = SimShape { threads: 3, ..SimShape::from(2) };
    every(shape, || mixture::<FLAT>(NOTHING), all_is_free);
    every(shape, || mixture::<FAR>(NOTHING), all_is_free);
}

#[test]
fn what_an_access_or_a_change_forgets_is_noticed() {
    for fault in [
        Fault::Order,                 // the hold is released before the puts are done
        Fault::SetOwn, // the table is not published, or a link of the last wait stays
        Fault::Post(layout::next(0)), // no link to the next waiter
        Fault::Wait,   // no rank waits for the holders
        Fault::Atomicity, // the lock word changes between look and change
        Fault::Post(layout::go(0)),
    ] {
        let wrong = Wrong { fault, ..NOTHING };
        assert!(is_caught(4, || mixture::<FLAT>(wrong)), "{fault:?} is not noticed");
        assert!(is_caught(4, || mixture::<FAR>(wrong)), "{fault:?} is not noticed, far");
    }
}

/// The paper's number alone does not keep a detach from an access that has read it already.
#[test]
fn a_look_that_is_not_held_until_the_access_is_over_is_noticed() {
    for manner in [Manner::HoldToLook, Manner::LookThenHold] {
        let wrong = Wrong { manner, ..NOTHING };
        assert!(is_caught(4, || mixture::<FLAT>(wrong)), "{manner:?} is not noticed");
        assert!(is_caught(4, || mixture::<FAR>(wrong)), "{manner:?} is not noticed, far");
    }
}

#[test]
fn a_cut_that_is_not_published_as_one_is_noticed() {
    assert!(is_caught(4, || mixture::<FLAT>(Wrong { detach: Change::Added, ..NOTHING })));
}

/// A failed change publishes nothing and leaves the lock free.
#[test]
fn a_change_that_fails_is_none() {
    let body = || {
        |sim: &Sim| {
            let refused = crate::error::Error::Wrong(&crate::messages::REQUEST);
            assert_eq!(change(sim, 0, || Err(refused.clone())), Err(refused.clone()));
            assert_eq!(while_held(sim, sim.rank(), 0, || seen(sim, sim.rank())), Ok(0));
            let failed: crate::error::Result<()> =
                while_held(sim, sim.rank(), 0, || Err(refused.clone()));
            assert_eq!(failed, Err(refused));
        }
    };
    every(2, body, all_is_free);
}

/// Window locks of all kinds, with accesses and changes inside of their epochs; then a fence.
fn epochs<const V: usize>() -> impl Fn(&Sim) + 'static {
    let oracle = Oracle::default();
    move |sim| {
        let words = sim.view::<V>(Fault::Nothing);
        let mut copies: [Copied; 4] = Default::default();
        let mut attached = false;
        for number in 1..=4 {
            let (kind, target) = (sim.random(4), Rank(sim.random(sim.size())));
            match kind {
                0 => drop(lock_exclusive(&words, target, Held::Nothing, 0).unwrap()),
                1 => lock_shared(&words, target, Held::Nothing, 0).unwrap(),
                2 => lock_all(&words, 0).unwrap(),
                _ => {}
            }
            for _ in 0..2 {
                let copy = &mut copies[target.0 as usize];
                access(&words, &oracle, target, copy, Manner::Right);
                match attached {
                    false => attach(&words, &oracle, 0),
                    true => detach(&words, &oracle, 0, Change::Cut),
                }
                attached = !attached;
            }
            match kind {
                0 => unlock_exclusive(&words, target, SpareIntent::Release).unwrap(),
                1 => unlock_shared(&words, target).unwrap(),
                2 => unlock_all(&words).unwrap(),
                _ => {}
            }
            fence::fence(&words, BarrierKind::Rounds, number, true).unwrap();
        }
    }
}

#[test]
fn whatever_an_origin_or_an_owner_holds_there_is_no_deadlock() {
    every(4, epochs::<FLAT>, all_is_free);
    every(4, epochs::<FAR>, all_is_free);
}

/// The origin ends its epoch after the owner has detached, as a program may.
fn detach_within_an_epoch(whole_epoch: bool) -> impl Fn(&Sim) + 'static {
    move |sim| {
        let (origin, owner) = (Rank(0), Rank(1));
        let publish = || Ok((Table::default(), Change::Cut));
        if sim.rank() == owner {
            pscw::wait(sim, 1).unwrap(); // the origin is in its epoch
            change(sim, 0, publish).unwrap();
            sim.post(WordAt { rank: origin, word: layout::COMPLETE }, 1).unwrap();
            return;
        }
        lock_exclusive(sim, owner, Held::Nothing, 0).unwrap();
        hold(sim, owner, 0).unwrap();
        if !whole_epoch {
            release(sim, owner).unwrap();
        }
        sim.post(WordAt { rank: owner, word: layout::COMPLETE }, 1).unwrap();
        pscw::wait(sim, 1).unwrap();
        if whole_epoch {
            release(sim, owner).unwrap();
        }
        unlock_exclusive(sim, owner, SpareIntent::Release).unwrap();
    }
}

#[test]
fn a_detach_does_not_wait_for_the_end_of_an_epoch() {
    every(2, || detach_within_an_epoch(false), all_is_free);
    assert!(is_caught(2, || detach_within_an_epoch(true)), "a hold of a whole epoch deadlocks");
}
