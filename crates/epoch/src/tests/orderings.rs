//! The protocols on load and store: under loom every order of two or three threads, within a bound
//! of preemptions, and every stale value that the orderings allow; without loom the same tests on
//! threads of the machine. Memory that a protocol guards is relaxed here, so that only the protocol
//! orders it.

use super::passes::caller;
use crate::error::Result;
use crate::exposure::{Lists, Posted, Started};
use crate::fabric::layout::{self, COMPLETE, LIST, LOCK, WORDS_FAR};
use crate::fabric::shm::doorbell;
use crate::fabric::shm::words::{Cells, Idle, sleep_until};
use crate::fabric::{Fetch, WordAt, WordId, Words};
use crate::fence::BarrierKind;
use crate::lock::{
    Held, Mode, SpareIntent, acquire, lock_all, lock_exclusive, lock_shared,
    passes::{self, Caller},
    release, unlock_all, unlock_exclusive, unlock_shared,
};
use crate::rank_numbers::Rank;
use crate::regions::{Change, Table, change, hold, seen, table};
use crate::sync::{AtomicU64, Ordering::Relaxed};
use crate::{exposure, fence, pscw, regions};
use fompi_simulator::test_overrides::Passed;
use fompi_simulator::thread_words::{self, FarHeapWords, Heap, HeapWords};
use fompi_testkit::model;

#[cfg(loom)]
use loom::{sync::Arc, thread};
#[cfg(not(loom))]
use std::{sync::Arc, thread};

/// Spins practically for ever under loom, which has no clock; on a real machine for a short time.
pub(super) const AWAKE: u32 = if cfg!(loom) { u32::MAX } else { 200 };
/// Sleeps at once.
pub(super) const ASLEEP: u32 = 0;

/// The preemptions that loom tries with two threads, and with three. All possible ones would take
/// too long.
pub(super) const TWO: usize = 5;
pub(super) const THREE: usize = 3;

/// Plain memory of a window.
pub(super) type Memory = Arc<[AtomicU64; 2]>;

pub(super) fn memory() -> Memory {
    Arc::new([AtomicU64::new(0), AtomicU64::new(0)])
}

pub(super) fn increment(cell: &AtomicU64) {
    // Two steps, not one: only a lock makes this right.
    cell.store(cell.load(Relaxed) + 1, Relaxed);
}

/// Runs a body per rank, the last one on this thread, on a window of as many ranks.
fn ranks(spins: u32, bodies: Vec<fn(&HeapWords, &Memory)>) -> Memory {
    let (heap, memory) = (Heap::window(bodies.len() as u32), memory());
    let last = bodies.len() - 1;
    let spawn = |(rank, body): (usize, fn(&HeapWords, &Memory))| {
        let (words, memory) =
            (thread_words::words(&heap, Rank(rank as u32), spins), memory.clone());
        thread::spawn(move || body(&words, &memory))
    };
    let others: Vec<_> = bodies[..last].iter().copied().enumerate().map(spawn).collect();
    bodies[last](&thread_words::words(&heap, Rank(last as u32), spins), &memory);
    others.into_iter().for_each(|thread| thread.join().unwrap());
    memory
}

fn write(words: &impl Words, memory: &Memory) {
    lock_exclusive(words, Rank(0), Held::Nothing, 0).unwrap();
    increment(&memory[0]);
    increment(&memory[1]);
    unlock_exclusive(words, Rank(0), SpareIntent::Release).unwrap();
}

/// [`write`] without the intent: one word only, so that loom explores more.
fn write_one_level(words: &impl Words, memory: &Memory) {
    let at = WordAt { rank: Rank(0), word: LOCK };
    acquire(words, at, Mode::Exclusive, false, 0).unwrap();
    increment(&memory[0]);
    increment(&memory[1]);
    release(words, at, Mode::Exclusive).unwrap();
}

fn read(words: &impl Words, memory: &Memory) {
    lock_shared(words, Rank(0), Held::Nothing, 0).unwrap();
    assert_eq!(memory[0].load(Relaxed), memory[1].load(Relaxed));
    unlock_shared(words, Rank(0)).unwrap();
}

fn read_nested(words: &impl Words, memory: &Memory) {
    lock_shared(words, Rank(0), Held::Shared, 0).unwrap();
    assert_eq!(memory[0].load(Relaxed), memory[1].load(Relaxed));
    unlock_shared(words, Rank(0)).unwrap();
}

pub(super) fn read_all(words: &impl Words, memory: &Memory) {
    lock_all(words, 0).unwrap();
    assert_eq!(memory[0].load(Relaxed), memory[1].load(Relaxed));
    unlock_all(words).unwrap();
}

pub(super) fn increments(memory: &Memory) -> u64 {
    assert_eq!(memory[0].load(Relaxed), memory[1].load(Relaxed));
    memory[0].load(Relaxed)
}

#[test]
fn loom_two_writers_exclude_each_other() {
    model(TWO, || assert_eq!(increments(&ranks(AWAKE, vec![write, write])), 2));
}

#[test]
fn loom_a_writer_comes_back() {
    let twice: fn(&HeapWords, &Memory) = |words, memory| {
        write_one_level(words, memory);
        write_one_level(words, memory);
    };
    model(TWO, move || assert_eq!(increments(&ranks(AWAKE, vec![write_one_level, twice])), 3));
}

#[test]
fn loom_three_writers_exclude_each_other() {
    let bodies = || vec![write_one_level as fn(&HeapWords, &Memory); 3];
    model(THREE, move || assert_eq!(increments(&ranks(ASLEEP, bodies())), 3));
}

#[test]
fn loom_readers_and_a_writer_exclude_each_other() {
    model(THREE, || assert_eq!(increments(&ranks(ASLEEP, vec![read, read, write_one_level])), 1));
}

#[test]
fn loom_a_nested_reader_waits_for_the_holder_only() {
    let bodies = || vec![read_nested as fn(&HeapWords, &Memory), write_one_level, write_one_level];
    model(THREE, move || assert_eq!(increments(&ranks(ASLEEP, bodies())), 2));
}

#[test]
fn loom_lock_all_and_a_writer_exclude_each_other() {
    model(TWO, || assert_eq!(increments(&ranks(AWAKE, vec![read_all, write])), 1));
    model(THREE, || assert_eq!(increments(&ranks(ASLEEP, vec![read_all, read_all, write])), 1));
}

#[test]
fn loom_a_waiting_writer_sleeps_and_is_woken() {
    let bodies = || vec![write_one_level as fn(&HeapWords, &Memory); 2];
    model(TWO, move || assert_eq!(increments(&ranks(ASLEEP, bodies())), 2));
}

/// The barriers of a fence, as types: a body of [`ranks`] has no state.
trait Kind {
    const KIND: BarrierKind;
}
struct Rounds;
impl Kind for Rounds {
    const KIND: BarrierKind = BarrierKind::Rounds;
}
struct Tree;
impl Kind for Tree {
    const KIND: BarrierKind = BarrierKind::Tree { fan_in: 2 };
}

fn fence_once<K: Kind>(words: &HeapWords, memory: &Memory) {
    let me = words.rank().0 as usize;
    if me < 2 {
        memory[me].store(1, Relaxed);
    }
    fence::fence(words, K::KIND, 1, true).unwrap();
    assert_eq!(memory[0].load(Relaxed), 1);
    assert_eq!(memory[1].load(Relaxed), 1);
}

fn fence_twice<K: Kind>(words: &HeapWords, memory: &Memory) {
    fence_once::<K>(words, memory);
    fence::fence(words, K::KIND, 2, true).unwrap();
    memory[words.rank().0 as usize].store(2, Relaxed);
}

#[test]
fn loom_a_fence_shows_what_was_stored_before_it() {
    model(TWO, || drop(ranks(AWAKE, vec![fence_twice::<Rounds>; 2])));
    model(2, || drop(ranks(ASLEEP, vec![fence_once::<Rounds>; 3])));
}

#[test]
fn loom_a_fence_of_a_tree_shows_what_was_stored_before_it() {
    model(TWO, || drop(ranks(AWAKE, vec![fence_twice::<Tree>; 2])));
    model(2, || drop(ranks(ASLEEP, vec![fence_once::<Tree>; 3])));
}

#[test]
fn loom_an_epoch_shows_what_was_put() {
    let target: fn(&HeapWords, &Memory) = |words, memory| {
        for epoch in 1..=2 {
            memory[0].store(epoch, Relaxed);
            pscw::post(words, [Rank(1)]).unwrap();
            pscw::wait(words, epoch).unwrap();
            assert_eq!(memory[1].load(Relaxed), epoch);
        }
    };
    let origin: fn(&HeapWords, &Memory) = |words, memory| {
        for epoch in 1..=2 {
            pscw::start(words, [Rank(0)]).unwrap();
            assert_eq!(memory[0].load(Relaxed), epoch);
            memory[1].store(epoch, Relaxed);
            pscw::complete(words, [Rank(0)]).unwrap();
        }
    };
    model(TWO, move || drop(ranks(AWAKE, vec![target, origin])));
}

/// Runs a body per rank where words are far.
fn ranks_far(spins: u32, bodies: Vec<fn(&FarHeapWords, &Memory)>) -> Memory {
    let (heap, memory) = (Heap::new(bodies.len() as u32, WORDS_FAR), memory());
    let spawn = |(rank, body): (usize, fn(&FarHeapWords, &Memory))| {
        let words = Passed(thread_words::words(&heap, Rank(rank as u32), spins));
        let memory = memory.clone();
        thread::spawn(move || body(&words, &memory))
    };
    let last = bodies.len() - 1;
    let others: Vec<_> = bodies[..last].iter().copied().enumerate().map(spawn).collect();
    bodies[last](&Passed(thread_words::words(&heap, Rank(last as u32), spins)), &memory);
    others.into_iter().for_each(|thread| thread.join().unwrap());
    memory
}

#[test]
fn loom_far_writers_exclude_each_other() {
    let twice: fn(&FarHeapWords, &Memory) = |words, memory| {
        write_one_level(words, memory);
        write_one_level(words, memory);
    };
    model(TWO, move || assert_eq!(increments(&ranks_far(AWAKE, vec![twice, twice])), 4));
    let bodies = || vec![write_one_level as fn(&FarHeapWords, &Memory); 3];
    model(THREE, move || assert_eq!(increments(&ranks_far(ASLEEP, bodies())), 3));
}

#[test]
fn loom_far_writers_of_both_words_and_lock_all_exclude_each_other() {
    let bodies = || vec![write as fn(&FarHeapWords, &Memory), write];
    model(TWO, move || assert_eq!(increments(&ranks_far(AWAKE, bodies())), 2));
    let bodies = || vec![read_all as fn(&FarHeapWords, &Memory), write];
    model(TWO, move || assert_eq!(increments(&ranks_far(AWAKE, bodies())), 1));
    let bodies = || vec![read_all as fn(&FarHeapWords, &Memory), write, write];
    model(2, move || assert_eq!(increments(&ranks_far(ASLEEP, bodies())), 2));
}

#[test]
fn loom_far_readers_and_a_writer_exclude_each_other() {
    let bodies = || vec![read as fn(&FarHeapWords, &Memory), read, write_one_level];
    model(THREE, move || assert_eq!(increments(&ranks_far(ASLEEP, bodies())), 1));
    let bodies =
        || vec![read_nested as fn(&FarHeapWords, &Memory), write_one_level, write_one_level];
    model(THREE, move || assert_eq!(increments(&ranks_far(ASLEEP, bodies())), 2));
}

const BEHIND: WordId = WordId(LIST.0 + 1);

/// Lists of one entry, among the words of their owners.
struct Short<'a>(&'a HeapWords);

impl Lists for Short<'_> {
    fn publish(&self, list: &[u64]) -> Result<()> {
        [LIST, BEHIND].into_iter().for_each(|word| self.0.set_own(word, 0));
        // A rank that reads the new word finds the old one gone, and finds what this rank stored
        // before.
        self.0.order(self.0.rank())?;
        [LIST, BEHIND].into_iter().zip(list).for_each(|(word, value)| self.0.set_own(word, *value));
        Ok(())
    }

    fn read(&self, targets: &[Rank], mut see: impl FnMut(Rank, &[u64])) -> Result<()> {
        for &rank in targets {
            let read = |word| self.0.read(WordAt { rank, word });
            see(rank, &[read(LIST)?, read(BEHIND)?]);
        }
        Ok(())
    }
}

/// Rank 0 is the target and rank 1 the origin of two epochs. `know`: the target has a bit, and the
/// origin knows it.
fn epochs_over_nodes(know: bool) {
    fn target(words: HeapWords, memory: &Memory, mut posted: Posted) {
        for epoch in 1..=2 {
            memory[0].store(epoch, Relaxed);
            exposure::post(&words, &Short(&words), &mut posted, &[Rank(1)]).unwrap();
            pscw::wait(&words, epoch).unwrap();
            assert_eq!(memory[1].load(Relaxed), epoch);
        }
    }
    fn origin(words: HeapWords, memory: &Memory, mut started: Started) {
        for epoch in 1..=2 {
            exposure::start(&words, &Short(&words), &mut started, &[Rank(0)]).unwrap();
            assert_eq!(memory[0].load(Relaxed), epoch);
            memory[1].store(epoch, Relaxed);
            pscw::complete(&words, [Rank(0)]).unwrap();
        }
    }
    model(TWO, move || {
        let (heap, memory) = (Heap::new(2, WORDS_FAR), memory());
        let (posted, started) = match know {
            true => (Posted::with_bit(Rank(1)), Started::with_bit_of(Rank(0))),
            false => Default::default(),
        };
        let (words, same) = (thread_words::words(&heap, Rank(0), AWAKE), memory.clone());
        let other = thread::spawn(move || target(words, &same, posted));
        origin(thread_words::words(&heap, Rank(1), AWAKE), &memory, started);
        other.join().unwrap();
    });
}

#[test]
fn loom_an_epoch_over_nodes_shows_what_was_put() {
    epochs_over_nodes(false);
}

#[test]
fn loom_an_epoch_of_ranks_that_know_their_bits_shows_what_was_put() {
    epochs_over_nodes(true);
}

/// The table, of one slot at most, is the first cell, and the region in it the second.
fn set_regions(words: &HeapWords, memory: &Memory, slots: u64) {
    let work = || {
        memory[0].store(slots, Relaxed);
        Ok((
            Table { address: 0, slots, key: 0 },
            if slots == 0 { Change::Cut } else { Change::Added },
        ))
    };
    change(words, 0, work).unwrap();
}

fn attach_and_detach(words: &HeapWords, memory: &Memory) {
    set_regions(words, memory, 1);
    set_regions(words, memory, 0);
    memory[1].store(7, Relaxed);
}

fn access(words: &HeapWords, memory: &Memory) {
    hold(words, Rank(0), 0).unwrap();
    let id = seen(words, Rank(0)).unwrap();
    let (Table { slots, .. }, is_longer) = table(words, Rank(0), 0).unwrap();
    assert_eq!((slots, is_longer), [(0, true), (1, true), (0, false)][id as usize]);
    assert_eq!(slots, memory[0].load(Relaxed));
    if slots == 1 {
        memory[1].store(3, Relaxed);
    }
    regions::release(words, Rank(0)).unwrap();
}

#[test]
fn loom_a_detach_that_has_returned_excludes_all_accesses() {
    let private = |memory: Memory| assert_eq!(memory[1].load(Relaxed), 7);
    model(TWO, move || private(ranks(AWAKE, vec![attach_and_detach, access])));
    model(THREE, move || private(ranks(ASLEEP, vec![attach_and_detach, access, access])));
}

/// Two words of accumulates.
fn element(index: u32) -> WordAt {
    WordAt { rank: Rank(0), word: layout::fence(index) }
}

/// Does `work`, a call on both, as a rank that withdraws passes and does not close the target.
fn on_both<R>(words: &HeapWords, work: impl FnOnce() -> Result<R>) -> R {
    let at = (Rank(0), caller(words, u64::MAX));
    passes::several(words, at, 2, 0, |_| work()).unwrap()
}

fn add_to_both(words: &HeapWords, _: &Memory) {
    let add = |index| words.fetch(element(index), Fetch::Add(1));
    on_both(words, || add(0).and(add(1)));
}

/// Reads both words by one call on both; `FIRST` is added to before the other one.
fn read_both<const FIRST: u32>(words: &HeapWords, _: &Memory) {
    let read = |index| words.read(element(index));
    let both = on_both(words, || Ok([read(0)?, read(1)?]));
    assert!(both[FIRST as usize] >= both[1 - FIRST as usize], "{both:?}");
}

/// The caller at rank 0, where a rank has a pass before its call.
fn with_pass(words: &HeapWords) -> (Rank, Caller) {
    let caller = caller(words, 1);
    passes::single(words, (Rank(0), caller), 0, || Ok(())).unwrap();
    (Rank(0), caller)
}

/// Reads one of the words, and then the other: what was added to both is there.
fn read_each<const FIRST: u32>(words: &HeapWords, _: &Memory) {
    let at = with_pass(words);
    let read = |index| passes::single(words, at, 0, || words.read(element(index))).unwrap();
    let first = read(FIRST);
    assert!(read(1 - FIRST) >= first, "a part of a call on both");
}

fn add_to_each<const FIRST: u32>(words: &HeapWords, _: &Memory) {
    let at = with_pass(words);
    for index in [FIRST, 1 - FIRST] {
        let add = || words.fetch(element(index), Fetch::Add(1));
        passes::single(words, at, 0, add).unwrap();
    }
}

#[test]
fn loom_a_call_on_two_words_is_seen_whole_by_calls_on_one() {
    model(TWO, || drop(ranks(AWAKE, vec![add_to_both, read_each::<0>])));
    model(TWO, || drop(ranks(AWAKE, vec![add_to_both, read_each::<1>])));
    model(2, || drop(ranks(ASLEEP, vec![add_to_both, read_each::<0>, read_each::<1>])));
}

#[test]
fn loom_a_call_that_reads_two_words_sees_calls_on_one_in_their_order() {
    model(TWO, || drop(ranks(AWAKE, vec![read_both::<0>, add_to_each::<0>])));
    model(TWO, || drop(ranks(AWAKE, vec![read_both::<1>, add_to_each::<1>])));
}

#[test]
fn loom_a_sleeper_is_woken_by_a_post() {
    model(TWO, || {
        let wait: fn(&HeapWords, &Memory) = |words, _| {
            words.wait_own(COMPLETE, |count| count == 2).unwrap();
        };
        let post: fn(&HeapWords, &Memory) = |words, _| {
            words.post(WordAt { rank: Rank(0), word: COMPLETE }, 1).unwrap();
            words.post(WordAt { rank: Rank(0), word: COMPLETE }, 1).unwrap();
        };
        ranks(ASLEEP, vec![wait, post]);
    });
}

#[test]
fn loom_two_threads_that_sleep_at_one_doorbell_are_woken() {
    model(THREE, || {
        let heap = Heap::window(2);
        let sleepers = [layout::fence(0), layout::fence(1)].map(|word| {
            let words = thread_words::words(&heap, Rank(0), ASLEEP);
            thread::spawn(move || words.wait_own(word, |value| value == 1).unwrap())
        });
        let words = thread_words::words(&heap, Rank(1), ASLEEP);
        for word in [layout::fence(0), layout::fence(1)] {
            words.post(WordAt { rank: Rank(0), word }, 1).unwrap();
        }
        sleepers.into_iter().for_each(|sleeper| assert_eq!(sleeper.join().unwrap(), 1));
    });
}

/// A rank of a window over several nodes sleeps until both a rank of its node and the service
/// thread, on behalf of a rank of another node, have added to its word.
#[test]
fn loom_a_sleeper_is_woken_by_its_node_and_by_the_service_thread() {
    model(THREE, || {
        let heap = Heap::new(1, WORDS_FAR);
        let posts = [1, 1 << 32].map(|add| {
            let words = thread_words::words(&heap, Rank(0), ASLEEP);
            thread::spawn(move || {
                let cells = words.cells();
                let cell = cells.cell(WordAt { rank: Rank(0), word: COMPLETE });
                let bell = cells.doorbell(Rank(0));
                doorbell::add_and_ring(cell, add, bell, |bell| words.idle().wake(bell))
            })
        });
        let words = thread_words::words(&heap, Rank(0), ASLEEP);
        let cells = words.cells();
        let cell = cells.cell(WordAt { rank: Rank(0), word: COMPLETE });
        let until = |value| value == 1 << 32 | 1;
        let sleeper = (words.idle(), &mut ());
        sleep_until((cell, cells.doorbell(Rank(0))), &until, sleeper, 1, || Ok(())).unwrap();
        let before: u64 = posts.into_iter().map(|post| post.join().unwrap()).sum();
        assert!(before == 1 || before == 1 << 32, "one of them came first");
    });
}
