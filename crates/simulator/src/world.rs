//! The scheduler of the simulator: it decides which thread runs, and when an operation takes
//! effect. The operations under way are in `transport`.

#[cfg(miri)]
use super::on_threads::{Coroutine, CoroutineResult, DefaultStack};
use super::rank::Sim;
use super::transport::{FLAT, SimTransport, State, WordPlace};
use super::{Profile, SimShape};
#[cfg(not(miri))]
use corosensei::stack::DefaultStack;
#[cfg(not(miri))]
use corosensei::{Coroutine, CoroutineResult};
use fompi_base::rank_numbers::Rank;
use fompi_fabric::WordAt;
use fompi_testkit::Random;
use std::cell::RefCell;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::rc::Rc;

/// The most steps of a run: a run with more steps is taken to have no end.
const STEPS_MAX: u32 = 2_000_000;
const STACK_BYTES: usize = 256 << 10;

/// The final state of a run.
pub struct FinalState {
    state: Rc<RefCell<State>>,
    shape: SimShape,
}

impl FinalState {
    /// Returns the final value of a word of the view [`FLAT`].
    pub fn word(&self, at: WordAt) -> u64 {
        self.word_of(FLAT, at)
    }

    /// Returns the final value of a word of a view.
    pub fn word_of(&self, view: usize, at: WordAt) -> u64 {
        self.state.borrow().transport.load(WordPlace::new(view, at))
    }

    /// Returns the final value of a cell.
    pub fn cell(&self, rank: Rank, cell: usize) -> u64 {
        *self.state.borrow_mut().transport.cell(rank, cell)
    }

    /// Returns all ranks.
    pub fn ranks(&self) -> impl Iterator<Item = Rank> {
        (0..self.shape.ranks).map(Rank)
    }
}

type Thread = Coroutine<(), (), (), DefaultStack>;

thread_local! {
    /// Stacks of runs that have ended, to be used again.
    static STACKS: RefCell<Vec<DefaultStack>> = const { RefCell::new(Vec::new()) };
}

/// The preferences of the scheduler, which depend on the seed.
struct Preferences {
    /// one in this many steps delivers an operation
    deliver_of: usize,
    /// one in this many steps changes to another thread
    change_of: usize,
    /// a thread that runs only in one in 16 of its turns; may be the index of no thread
    slow: usize,
}

/// Does one run to its end, and returns the final state, or the reason why the run failed.
pub fn run(
    shape: impl Into<SimShape>,
    profile: Profile,
    seed: u64,
    body: impl Fn(&Sim) + 'static,
) -> core::result::Result<FinalState, String> {
    let shape = shape.into();
    let count = shape.ranks * shape.threads;
    let state = Rc::new(RefCell::new(State {
        transport: SimTransport::new(shape, profile),
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
                body(&Sim::new(state, yielder, shape, index));
            })
        })
        .collect();
    let outcome = schedule(&state, &mut threads);
    let (done, broken) = threads.into_iter().partition::<Vec<_>, _>(|thread| thread.done());
    STACKS.with_borrow_mut(|stacks| stacks.extend(done.into_iter().map(Thread::into_stack)));
    drop(broken); // unwinds the stacks of the other threads
    outcome.map(|()| FinalState { state, shape })
}

fn schedule(state: &RefCell<State>, threads: &mut [Thread]) -> core::result::Result<(), String> {
    let preferences = {
        let random = &mut state.borrow_mut().random;
        Preferences {
            deliver_of: [2, 8, 64][random.index(3)],
            change_of: [1, 2, 8][random.index(3)],
            slow: random.index(2 * threads.len()),
        }
    };
    let mut last = 0;
    for _ in 0..STEPS_MAX {
        let choice = choose(&mut state.borrow_mut(), &preferences, threads, last);
        let Some(index) = choice else {
            match state.borrow().transport.is_quiet() {
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

/// Returns the thread to run next. `None`: an operation is to be delivered, or no thread can run.
fn choose(
    state: &mut State,
    preferences: &Preferences,
    threads: &[Thread],
    last: usize,
) -> Option<usize> {
    if !state.transport.is_quiet() && state.random.index(preferences.deliver_of) == 0 {
        return None;
    }
    let can_run = |index: usize| state.parked[index].is_none() && !threads[index].done();
    if can_run(last) && state.random.index(preferences.change_of) != 0 {
        return Some(last);
    }
    let first = state.random.index(threads.len());
    let mut turns = { (first..threads.len()).chain(0..first) }.filter(|&index| can_run(index));
    match turns.next() {
        Some(slow) if slow == preferences.slow && state.random.index(16) != 0 => {
            turns.next().or(Some(slow))
        }
        choice => choice,
    }
}

/// Returns the report of a deadlock.
fn deadlock(state: &State, threads: &[Thread]) -> String {
    let mut text = String::from("deadlock:");
    for (index, place) in state.parked.iter().enumerate() {
        if let (Some(place), false) = (place, threads[index].done()) {
            let value = state.transport.load(*place);
            text += &format!(" thread {index} waits for {place:?} = {value:#x};");
        }
    }
    text
}
