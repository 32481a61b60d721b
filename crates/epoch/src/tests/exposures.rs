//! Post and start over many nodes on the simulator, their cost, and proof that these tests notice
//! steps that are left out.

use crate::error::Result;
use crate::exposure::{self, BITS, Lists, Posted, Started, post, start};
use crate::fabric::layout::{BITS_TAKEN, COMPLETE, POSTS};
use crate::fabric::{Fetch, WordAt, Words};
use crate::pscw::{complete, test, wait};
use crate::rank_numbers::Rank;
use fompi_simulator::{FAR, Fault, PROFILES, Sim, SimShape, View, every, is_caught, run};
use std::cell::Cell;
use std::collections::BTreeMap;
use std::rc::Rc;

/// A step that the lists leave out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Slip {
    Nothing,
    /// the removal of the old list before the new one is stored
    Clear,
    /// the store of the list before the posts
    Publish,
    /// that a word may be read in parts
    Parts,
}

struct Owners<'a, 'b> {
    sim: &'a Sim<'b>,
    slip: Slip,
    /// the most steps that a store of a word takes
    pause: u32,
}

impl Lists for Owners<'_, '_> {
    fn publish(&self, list: &[u64]) -> Result<()> {
        let length = self.sim.list_words();
        if self.slip == Slip::Publish {
            return Ok(());
        }
        if self.slip != Slip::Clear {
            (0..length).for_each(|index| self.sim.store_in_list(index, 0));
        }
        for index in 0..length.max(list.len()) {
            self.sim.store_in_list(index, list.get(index).copied().unwrap_or(0));
            (0..self.sim.random(self.pause)).for_each(|_| self.sim.step());
        }
        Ok(())
    }

    fn read(&self, targets: &[Rank], mut see: impl FnMut(Rank, &[u64])) -> Result<()> {
        for target in targets {
            let mut list = self.sim.read_list(FAR, *target);
            if self.slip == Slip::Parts {
                list.chunks_exact_mut(2).for_each(|pair| pair[1] = !pair[0]);
            }
            see(*target, &list);
        }
        Ok(())
    }
}

/// One rank's part of active target synchronisation.
struct Process<'a, 'b> {
    words: View<'a, 'b, FAR>,
    lists: Owners<'a, 'b>,
    posted: Posted,
    started: Started,
    complete_count: u64,
}

impl<'a, 'b> Process<'a, 'b> {
    fn new(sim: &'a Sim<'b>, fault: Fault, slip: Slip) -> Self {
        Process {
            words: sim.far(fault),
            lists: Owners { sim, slip, pause: 1 },
            posted: Posted::default(),
            started: Started::default(),
            complete_count: 0,
        }
    }

    fn post(&mut self, origins: &[Rank]) {
        post(&self.words, &self.lists, &mut self.posted, origins).unwrap();
        self.complete_count += origins.len() as u64;
    }

    fn start(&mut self, targets: &[Rank]) {
        start(&self.words, &self.lists, &mut self.started, targets).unwrap();
    }

    fn wait(&self) {
        wait(&self.words, self.complete_count).unwrap();
    }
}

/// The origins of a target in an epoch: a random relation, the same for all ranks.
fn is_origin(origin: Rank, target: Rank, epoch: u64) -> bool {
    let mixed = (u64::from(origin.0) << 40 | u64::from(target.0) << 20 | epoch)
        .wrapping_mul(0x9e37_79b9_7f4a_7c15);
    (mixed ^ mixed >> 31).wrapping_mul(0xbf58_476d_1ce4_e5b9) >> 62 == 0
}

/// The cell that its owner stores into and origins get; the cells below are put into, by rank.
const OWN: usize = 15;

/// How the ranks of random groups start.
#[derive(Clone, Default)]
struct Given {
    /// at each rank these bits are taken
    bits_taken: u64,
    /// the lists that were read more often than the protocol needs
    again: Rc<Cell<u32>>,
    /// completes notify behind the puts, without an answer
    ordered: bool,
}

/// Epochs of random groups, the empty one and this rank itself among them, one after the other; a
/// rank that is not in one goes on to the next.
fn random_groups(fault: Fault, slip: Slip, given: Given) -> impl Fn(&Sim) + 'static {
    move |sim| {
        let mut process = Process::new(sim, fault, slip);
        let (me, all) = (sim.index(), || (0..sim.shape().ranks).map(Rank));
        let bits = WordAt { rank: me, word: BITS_TAKEN };
        process.words.fetch(bits, Fetch::Add(given.bits_taken)).unwrap();
        let (mut met, mut used, mut needed) = (BTreeMap::new(), 0, 0);
        for epoch in 1..=16 {
            let origins: Vec<_> = all().filter(|&rank| is_origin(rank, me, epoch)).collect();
            let targets: Vec<_> = all().filter(|&rank| is_origin(me, rank, epoch)).collect();
            sim.store(OWN, epoch);
            process.post(&origins);
            process.start(&targets);
            for target in &targets {
                let meetings = met.entry(*target).or_insert(0);
                *meetings += 1;
                (used, needed) = (used + 1, needed + u32::from(*meetings <= 3));
            }
            let begin = |&target: &Rank| {
                sim.put(target, me.0 as usize, epoch);
                sim.get(target, OWN)
            };
            let gets: Vec<_> = targets.iter().map(begin).collect();
            match given.ordered {
                true => {
                    exposure::complete(&process.words, &targets).unwrap();
                    process.words.flush_all().unwrap(); // for the gets
                }
                false => complete(&process.words, targets).unwrap(),
            }
            assert!(gets.iter().all(|&buffer| sim.got(buffer) == epoch), "got something else");
            process.wait();
            for origin in origins {
                assert_eq!(sim.load(origin.0 as usize), epoch, "complete, but not there");
            }
        }
        let reads = process.words.counts().read;
        assert!((needed..=2 * used).contains(&reads), "{reads} reads for {used} posts");
        given.again.set(given.again.get() + reads - needed);
    }
}

#[test]
fn epochs_of_random_groups_match_and_show_what_was_put() {
    for ranks in [1, 2, 5, 8] {
        let given = Given::default();
        every(ranks, || random_groups(Fault::Nothing, Slip::Nothing, given.clone()), |_| {});
        // Some runs do read lists twice.
        assert!(ranks < 5 || given.again.get() > 0, "no list was read twice");
    }
}

#[test]
fn epochs_match_where_only_some_ranks_get_a_bit() {
    for left in [0, 2] {
        let given = Given { bits_taken: u64::from(BITS) - left, ..Given::default() };
        every(6, || random_groups(Fault::Nothing, Slip::Nothing, given.clone()), |_| {});
    }
}

#[test]
fn epochs_match_on_nodes_of_many_ranks() {
    let shape = SimShape { per_node: 3, ..SimShape::from(8) };
    every(shape, || random_groups(Fault::Nothing, Slip::Nothing, Given::default()), |_| {});
}

#[test]
fn a_complete_without_an_answer_stays_behind_the_puts() {
    let given = || Given { ordered: true, ..Given::default() };
    for shape in [SimShape::from(5), SimShape { per_node: 3, ..SimShape::from(8) }] {
        every(shape, || random_groups(Fault::Nothing, Slip::Nothing, given()), |_| {});
    }
    let body = || random_groups(Fault::Order, Slip::Nothing, given());
    assert!(is_caught(5, body), "a complete that overtakes is not noticed");
}

#[test]
fn what_posts_and_starts_forget_is_noticed() {
    for fault in [
        Fault::Flush,          // complete is notified before the puts are done
        Fault::Post(COMPLETE), // complete notifies no target
        Fault::Post(POSTS),    // no origin is woken
        Fault::EveryOtherPost(POSTS),
    ] {
        let body = || random_groups(fault, Slip::Nothing, Given::default());
        assert!(is_caught(5, body), "{fault:?} is not noticed");
    }
    for slip in [Slip::Publish, Slip::Parts] {
        let body = || random_groups(Fault::Nothing, slip, Given::default());
        assert!(is_caught(5, body), "{slip:?} is not noticed");
    }
}

/// Rank 0 names rank 1 in the second place, then in the first, while posts of other ranks make rank
/// 1 read the list.
fn the_place_in_the_list_changes(slip: Slip) -> impl Fn(&Sim) + 'static {
    move |sim| {
        let mut process = Process::new(sim, Fault::Nothing, slip);
        process.lists.pause = 100;
        let (first, second) = ([Rank(2), Rank(1)], [Rank(1), Rank(2)]);
        let others: Vec<_> = (3..sim.shape().ranks).map(Rank).collect();
        let exposures = || (1..).zip([first, second, first, second, first, second]);
        match sim.index().0 {
            0 => exposures().for_each(|(epoch, group)| {
                sim.store(OWN, epoch);
                process.post(&group);
                process.wait();
            }),
            1 | 2 => exposures().for_each(|(epoch, _)| {
                process.start(&[Rank(0)]);
                let got = sim.get(Rank(0), OWN);
                complete(&process.words, [Rank(0)]).unwrap();
                assert_eq!(sim.got(got), epoch, "an old post was taken for a new one");
            }),
            _ => {
                (0..sim.random(300)).for_each(|_| sim.step());
                process.post(&[Rank(1)]);
                process.wait();
            }
        }
        if sim.index() == Rank(1) {
            process.start(&others);
            complete(&process.words, others).unwrap();
        }
    }
}

#[test]
fn a_post_that_was_used_is_not_taken_for_a_new_one() {
    every(14, || the_place_in_the_list_changes(Slip::Nothing), |_| {});
    assert!(is_caught(14, || the_place_in_the_list_changes(Slip::Clear)), "no list is cleared");
}

#[test]
fn test_sees_what_wait_waits_for() {
    let body = || {
        |sim: &Sim| {
            let mut process = Process::new(sim, Fault::Nothing, Slip::Nothing);
            let next = [Rank((sim.index().0 + 1) % 3)];
            let before = [Rank((sim.index().0 + 2) % 3)];
            for _ in 0..3 {
                process.post(&next);
                process.start(&before);
                complete(&process.words, before).unwrap();
                while !test(&process.words, process.complete_count) {
                    sim.step();
                }
            }
        }
    };
    every(3, body, |_| {});
}

/// Rank 0 starts to rank 1 while posts wait for a later start: of rank 2, whose bit it knows as
/// that of rank 1, and of rank 4, which has no bit. Then it starts to rank 3, which posts now.
fn others_have_posted() -> impl Fn(&Sim) + 'static {
    const EPOCHS: u64 = 5;
    let (others_posted, starts_next) = (Cell::new(false), Cell::new(false));
    move |sim| {
        let mut process = Process::new(sim, Fault::Nothing, Slip::Nothing);
        let until = |flag: &Cell<bool>| {
            while !flag.get() {
                sim.step();
            }
        };
        let access = |process: &mut Process, targets: &[Rank]| {
            process.start(targets);
            complete(&process.words, targets.iter().copied()).unwrap();
            process.words.counts().read
        };
        let expose = |process: &mut Process, epochs: u64| {
            (0..epochs).for_each(|_| {
                process.post(&[Rank(0)]);
                process.wait();
            });
        };
        match sim.index().0 {
            0 => {
                let known = [Rank(1), Rank(2)];
                let reads = (0..3).map(|_| access(&mut process, &known)).last().unwrap();
                // Both have posted twice without a bit and once with it.
                let is_there = |posts: u64| posts >> BITS == 5 && posts % (1 << BITS) > 0b11;
                while !is_there(sim.peek_at(FAR, WordAt { rank: Rank(0), word: POSTS })) {
                    sim.step();
                }
                others_posted.set(true);
                for _ in 0..EPOCHS {
                    assert_eq!(access(&mut process, &known[..1]), reads, "read for a known bit");
                }
                assert_eq!(access(&mut process, &[Rank(4)]), reads + 1);
                starts_next.set(true);
                assert_eq!(access(&mut process, &[Rank(3)]), reads + 2, "read for another's bit");
                assert_eq!(access(&mut process, &known[1..]), reads + 2);
            }
            1 => {
                expose(&mut process, 3);
                until(&others_posted);
                expose(&mut process, EPOCHS);
            }
            2 => expose(&mut process, 4),
            3 => {
                until(&starts_next);
                (0..sim.random(100)).for_each(|_| sim.step());
                expose(&mut process, 1);
            }
            _ => expose(&mut process, 1),
        }
    }
}

#[test]
fn posts_of_others_make_no_start_read() {
    every(5, others_have_posted, |_| {});
}

/// Each rank exposes to its k neighbours on either side, and counts the cost of each of its four
/// calls.
fn ring_costs(k: u32, epochs: u64) -> impl Fn(&Sim) + 'static {
    move |sim| {
        let mut process = Process::new(sim, Fault::Nothing, Slip::Nothing);
        let (me, size) = (sim.index().0, sim.shape().ranks);
        let origins: Vec<_> = (1..=k).map(|by| Rank((me + by) % size)).collect();
        let targets: Vec<_> = (1..=k).map(|by| Rank((me + size - by) % size)).collect();
        let counts = |process: &Process| process.words.counts();
        for epoch in 1..=epochs as u32 {
            process.post(&origins);
            let posted = counts(&process);
            assert_eq!(posted.post, k * (2 * epoch - 1));
            // The second post takes the bits.
            assert_eq!(posted.fetch, if epoch > 1 { k } else { 0 });
            process.start(&targets);
            let started = counts(&process);
            let reads = k * epoch.min(3) + k.saturating_sub(BITS) * epoch.saturating_sub(3);
            assert_eq!((started.read, started.post), (reads, posted.post));
            complete(&process.words, targets.iter().copied()).unwrap();
            let completed = counts(&process);
            assert_eq!((completed.post, completed.flush_all), (k * 2 * epoch, epoch));
            process.wait();
            let waited = counts(&process);
            assert_eq!((waited, waited.fetch, waited.order), (completed, posted.fetch, 0));
        }
        assert_eq!((process.started.targets(), sim.list_words()), (k as usize, 2 * k as usize));
    }
}

#[test]
fn an_epoch_costs_its_neighbours_whatever_the_number_of_ranks() {
    for (ranks, k) in [(2, 1), (8, 2), (8, 7), (64, 20), (49, 48), (512, 9)] {
        for (seed, profile) in [0, 1, 2].into_iter().flat_map(|seed| PROFILES.map(|p| (seed, p))) {
            assert_eq!(run(ranks, profile, seed, ring_costs(k, 5)).err(), None);
            if ranks > 64 {
                break;
            }
        }
    }
}
