//! Who runs when: the scheduler of the simulator, and the ranks as they see it. Not for what is
//! under way between them.

use super::road::{Counts, Effect, Random, Road};
use super::{Profile, Shape};
use crate::error::Result;
use crate::fabric::{Fetch, Rank, WordAt, WordId, Words};
use corosensei::stack::DefaultStack;
use corosensei::{Coroutine, CoroutineResult, Yielder};
use std::cell::RefCell;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::rc::Rc;

/// So many steps without an end are none.
const STEPS_MAX: u32 = 2_000_000;
const STACK_BYTES: usize = 256 << 10;

struct State {
    road: Road,
    random: Random,
    /// for each thread: the word that it waits for
    parked: Vec<Option<WordId>>,
    threads: u32,
}

impl State {
    fn deliver(&mut self) {
        let changed = self.road.deliver(&mut self.random);
        self.wake(changed);
    }

    fn wake(&mut self, changed: Option<WordAt>) {
        let Some(at) = changed else { return };
        let first = (at.rank.0 * self.threads) as usize;
        for parked in &mut self.parked[first..first + self.threads as usize] {
            if *parked == Some(at.word) {
                *parked = None;
            }
        }
    }
}

/// A thread of a rank in the simulator.
pub struct Sim<'a> {
    state: Rc<RefCell<State>>,
    yielder: &'a Yielder<(), ()>,
    shape: Shape,
    index: u32,
}

/// How a world ended.
pub struct End {
    state: Rc<RefCell<State>>,
    shape: Shape,
}

impl End {
    /// A word, when all is done.
    pub fn word(&self, at: WordAt) -> u64 {
        self.state.borrow().road.load(at)
    }

    /// A cell, when all is done.
    pub fn cell(&self, rank: Rank, cell: usize) -> u64 {
        *self.state.borrow_mut().road.cell(rank, cell)
    }

    /// All ranks.
    pub fn ranks(&self) -> impl Iterator<Item = Rank> {
        (0..self.shape.ranks).map(Rank)
    }
}

impl Sim<'_> {
    /// Which thread of its rank this is.
    pub fn thread(&self) -> u32 {
        self.index % self.shape.threads
    }

    /// How many threads each rank has.
    pub fn threads(&self) -> u32 {
        self.shape.threads
    }

    /// Lets others run.
    pub fn step(&self) {
        self.yielder.suspend(());
    }

    /// A random number below `bound`, the same for the same seed.
    pub fn random(&self, bound: u32) -> u32 {
        self.state.borrow_mut().random.below(bound as usize) as u32
    }

    /// What this rank has sent so far.
    pub fn counts(&self) -> Counts {
        self.state.borrow().road.counts[self.rank().0 as usize]
    }

    /// A word as it is, for the eyes of a test only.
    pub fn peek(&self, at: WordAt) -> u64 {
        self.state.borrow().road.load(at)
    }

    /// Puts one cell.
    pub fn put(&self, target: Rank, cell: usize, value: u64) {
        self.send(Effect::Put(target, cell, value));
    }

    /// Begins to get one cell.
    pub fn get(&self, target: Rank, cell: usize) -> usize {
        let buffer = self.state.borrow_mut().road.buffer();
        self.send(Effect::Get(target, cell, buffer));
        buffer
    }

    /// What a get has brought: poison unless it is done.
    pub fn got(&self, buffer: usize) -> u64 {
        self.state.borrow().road.got(buffer)
    }

    /// Loads a cell of this rank.
    pub fn load(&self, cell: usize) -> u64 {
        self.step();
        *self.state.borrow_mut().road.cell(self.rank(), cell)
    }

    /// Stores into a cell of this rank.
    pub fn store(&self, cell: usize, value: u64) {
        self.step();
        *self.state.borrow_mut().road.cell(self.rank(), cell) = value;
    }

    fn send(&self, effect: Effect) {
        self.step();
        let mut state = self.state.borrow_mut();
        let changed = state.road.send(self.rank(), effect);
        state.wake(changed);
    }

    fn count(&self, one_more: impl FnOnce(&mut Counts)) {
        one_more(&mut self.state.borrow_mut().road.counts[self.rank().0 as usize]);
    }

    /// Takes steps, things landing meanwhile, until the road is as wanted.
    fn drain(&self, is_waiting: impl Fn(&Road) -> bool) {
        self.step();
        while is_waiting(&self.state.borrow().road) {
            self.state.borrow_mut().deliver();
            self.step();
        }
    }
}

impl Words for Sim<'_> {
    fn rank(&self) -> Rank {
        Rank(self.index / self.shape.threads)
    }

    fn size(&self) -> u32 {
        self.shape.ranks
    }

    fn fetch(&self, at: WordAt, op: Fetch) -> Result<u64> {
        self.count(|counts| counts.fetch += 1);
        self.drain(|road| road.is_before_fetch(self.rank(), at.rank));
        let before = self.state.borrow_mut().road.fetch(at, op);
        self.step(); // the answer takes its time
        Ok(before)
    }

    fn post(&self, at: WordAt, add: u64) -> Result<()> {
        self.count(|counts| counts.post += 1);
        self.send(Effect::Post(at, add));
        Ok(())
    }

    fn read(&self, at: WordAt) -> Result<u64> {
        self.count(|counts| counts.read += 1);
        self.drain(|road| road.is_before_fetch(self.rank(), at.rank));
        let value = self.state.borrow().road.load(at);
        self.step();
        Ok(value)
    }

    fn own(&self, word: WordId) -> u64 {
        self.step();
        self.state.borrow().road.load(WordAt { rank: self.rank(), word })
    }

    fn set_own(&self, word: WordId, value: u64) {
        self.step();
        self.state.borrow_mut().road.reset(WordAt { rank: self.rank(), word }, value);
    }

    fn wait_own(&self, word: WordId, until: impl Fn(u64) -> bool) -> Result<u64> {
        loop {
            let value = self.own(word);
            if until(value) {
                return Ok(value);
            }
            self.state.borrow_mut().parked[self.index as usize] = Some(word);
            self.step();
        }
    }

    fn order(&self, rank: Rank) -> Result<()> {
        self.count(|counts| counts.order += 1);
        self.state.borrow_mut().road.order(self.rank(), rank);
        Ok(())
    }

    fn flush(&self, rank: Rank) -> Result<()> {
        self.count(|counts| counts.flush += 1);
        self.drain(|road| road.is_under_way(self.rank(), Some(rank)));
        Ok(())
    }

    fn flush_all(&self) -> Result<()> {
        self.count(|counts| counts.flush_all += 1);
        self.drain(|road| road.is_under_way(self.rank(), None));
        Ok(())
    }
}

type Thread = Coroutine<(), (), (), DefaultStack>;

thread_local! {
    /// Stacks of worlds that have ended, for the next.
    static STACKS: RefCell<Vec<DefaultStack>> = const { RefCell::new(Vec::new()) };
}

/// How the scheduler of this seed prefers.
struct Manner {
    /// one of so many steps lands something
    land_of: usize,
    /// one of so many steps changes the thread
    change_of: usize,
    /// a thread that runs at one of 16 of its turns only
    slow: usize,
}

/// Runs one world to its end, or to the reason why it failed.
pub fn run(
    shape: impl Into<Shape>,
    profile: Profile,
    seed: u64,
    body: impl Fn(&Sim) + 'static,
) -> core::result::Result<End, String> {
    let shape = shape.into();
    let count = shape.ranks * shape.threads;
    let state = Rc::new(RefCell::new(State {
        road: Road::new(shape, profile),
        random: Random(seed),
        parked: vec![None; count as usize],
        threads: shape.threads,
    }));
    let body = Rc::new(body);
    let mut threads: Vec<Thread> = (0..count)
        .map(|index| {
            let (state, body) = (state.clone(), body.clone());
            let stack = STACKS.with_borrow_mut(Vec::pop);
            let stack = stack.unwrap_or_else(|| DefaultStack::new(STACK_BYTES).unwrap());
            Coroutine::with_stack(stack, move |yielder, ()| {
                body(&Sim { state, yielder, shape, index });
            })
        })
        .collect();
    let outcome = schedule(&state, &mut threads);
    let (done, broken) = threads.into_iter().partition::<Vec<_>, _>(|thread| thread.done());
    STACKS.with_borrow_mut(|stacks| stacks.extend(done.into_iter().map(Thread::into_stack)));
    drop(broken); // unwinds them
    outcome.map(|()| End { state, shape })
}

fn schedule(state: &RefCell<State>, threads: &mut [Thread]) -> core::result::Result<(), String> {
    let manner = {
        let random = &mut state.borrow_mut().random;
        Manner {
            land_of: [2, 8, 64][random.below(3)],
            change_of: [1, 2, 8][random.below(3)],
            slow: random.below(2 * threads.len()),
        }
    };
    let mut last = 0;
    for _ in 0..STEPS_MAX {
        let choice = choose(&mut state.borrow_mut(), &manner, threads, last);
        let Some(index) = choice else {
            match state.borrow().road.is_quiet() {
                true if threads.iter().all(|thread| thread.done()) => return Ok(()),
                true => return Err(deadlock(&state.borrow(), threads)),
                false => {}
            }
            state.borrow_mut().deliver();
            continue;
        };
        last = index;
        let step = catch_unwind(AssertUnwindSafe(|| threads[index].resume(())));
        match step {
            Ok(CoroutineResult::Yield(()) | CoroutineResult::Return(())) => {}
            Err(payload) => {
                let text = payload.downcast_ref::<String>().map(String::as_str);
                let text = text.or(payload.downcast_ref::<&str>().copied());
                return Err(format!("thread {index}: {}", text.unwrap_or("panic")));
            }
        }
    }
    Err(format!("no end after {STEPS_MAX} steps"))
}

/// The thread to run next, or none: something lands, or all is over.
fn choose(state: &mut State, manner: &Manner, threads: &[Thread], last: usize) -> Option<usize> {
    if !state.road.is_quiet() && state.random.below(manner.land_of) == 0 {
        return None;
    }
    let can_run = |index: usize| state.parked[index].is_none() && !threads[index].done();
    if can_run(last) && state.random.below(manner.change_of) != 0 {
        return Some(last);
    }
    let first = state.random.below(threads.len());
    let mut turns = { (first..threads.len()).chain(0..first) }.filter(|&index| can_run(index));
    match turns.next() {
        Some(slow) if slow == manner.slow && state.random.below(16) != 0 => {
            turns.next().or(Some(slow))
        }
        choice => choice,
    }
}

fn deadlock(state: &State, threads: &[Thread]) -> String {
    let mut text = String::from("deadlock:");
    for (index, word) in state.parked.iter().enumerate() {
        if let (Some(word), false) = (word, threads[index].done()) {
            let rank = Rank(index as u32 / state.threads);
            let value = state.road.load(WordAt { rank, word: *word });
            text += &format!(" thread {index} of {rank:?} waits for {word:?} = {value:#x};");
        }
    }
    text
}
