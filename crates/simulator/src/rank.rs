//! A thread of a rank in the simulator: its steps, and the operations that it sends. Protocols use
//! [`View`](super::View) instead.

use super::SimShape;
#[cfg(miri)]
use super::on_threads::Yielder;
use super::transport::{Effect, FLAT, Flush, NEAR, SimCounts, SimTransport, State, WordPlace};
#[cfg(not(miri))]
use corosensei::Yielder;
use fompi_base::rank_numbers::Rank;
use fompi_fabric::{Fetch, WordAt, WordId};
use std::cell::RefCell;
use std::rc::Rc;

/// A thread of a rank in the simulator.
pub struct Sim<'a> {
    state: Rc<RefCell<State>>,
    yielder: &'a Yielder<(), ()>,
    shape: SimShape,
    thread: u32,
}

impl<'a> Sim<'a> {
    pub(super) fn new(
        state: Rc<RefCell<State>>,
        yielder: &'a Yielder<(), ()>,
        shape: SimShape,
        thread: u32,
    ) -> Sim<'a> {
        Sim { state, yielder, shape, thread }
    }
}

impl Sim<'_> {
    /// Returns the index of this thread among the threads of its rank.
    pub fn thread(&self) -> u32 {
        self.thread % self.shape.threads
    }

    /// Returns the number of threads of each rank.
    pub fn threads(&self) -> u32 {
        self.shape.threads
    }

    /// Returns the shape of the world.
    pub fn shape(&self) -> SimShape {
        self.shape
    }

    /// Returns this rank, in the world.
    pub fn index(&self) -> Rank {
        Rank(self.thread / self.shape.threads)
    }

    /// Returns the node of this rank.
    pub fn node(&self) -> u32 {
        self.index().0 / self.shape.per_node
    }

    /// Ends a step: the scheduler may run other threads.
    pub fn step(&self) {
        self.yielder.suspend(());
    }

    /// Returns a random number below `bound`, the same for the same seed.
    pub fn random(&self, bound: u32) -> u32 {
        self.state.borrow_mut().random.index(bound as usize) as u32
    }

    /// Returns the numbers of operations that this rank has sent so far in the view [`FLAT`].
    pub fn counts(&self) -> SimCounts {
        self.counts_of(FLAT)
    }

    /// Returns the numbers of operations that this rank has sent so far in a view.
    pub fn counts_of(&self, view: usize) -> SimCounts {
        self.state.borrow().transport.counts[self.index().0 as usize][view]
    }

    /// Returns the present value of a word of the view [`FLAT`]. For tests only, not for protocols.
    pub fn peek(&self, at: WordAt) -> u64 {
        self.peek_at(FLAT, at)
    }

    /// Returns the present value of a word of a view. For tests only, not for protocols.
    pub fn peek_at(&self, view: usize, at: WordAt) -> u64 {
        self.state.borrow().transport.load(WordPlace::new(view, at))
    }

    /// Sends a put of one cell.
    pub fn put(&self, target: Rank, cell: usize, value: u64) {
        self.send(Effect::Put(target, cell, value));
    }

    /// Begins a get of one cell, and returns its buffer.
    pub fn get(&self, target: Rank, cell: usize) -> usize {
        let buffer = self.state.borrow_mut().transport.buffer();
        self.send(Effect::Get(target, cell, buffer));
        buffer
    }

    /// Returns the contents of the buffer of a get: poison unless the get is complete.
    pub fn got(&self, buffer: usize) -> u64 {
        self.state.borrow().transport.got(buffer)
    }

    /// Loads a cell of this rank.
    pub fn load(&self, cell: usize) -> u64 {
        self.step();
        *self.state.borrow_mut().transport.cell(self.index(), cell)
    }

    /// Stores into a cell of this rank.
    pub fn store(&self, cell: usize, value: u64) {
        self.step();
        *self.state.borrow_mut().transport.cell(self.index(), cell) = value;
    }

    /// Stores into a word of the list of this rank.
    pub fn store_in_list(&self, index: usize, word: u64) {
        self.step();
        let list = &mut self.state.borrow_mut().transport.lists[self.index().0 as usize];
        list.resize(list.len().max(index + 1), 0);
        list[index] = word;
    }

    /// Returns the number of words of this rank's list, stale ones included.
    pub fn list_words(&self) -> usize {
        self.state.borrow().transport.lists[self.index().0 as usize].len()
    }

    /// Reads the list of a rank, one word after the other, and each word in two steps.
    pub fn read_list(&self, view: usize, of: Rank) -> Vec<u64> {
        self.count(view, |counts| counts.read += 1);
        let now = |index: usize| {
            self.step();
            self.state.borrow().transport.lists[of.0 as usize].get(index).copied()
        };
        let word = |index: usize| {
            let (low, split) = (now(index)?, 0xff_ffff);
            Some(low & split | now(index)? & !split)
        };
        (0..).map_while(word).collect()
    }

    fn send(&self, effect: Effect) {
        self.step();
        let mut state = self.state.borrow_mut();
        let changed = state.transport.send(self.index(), effect);
        state.wake(changed);
    }

    fn count(&self, view: usize, one_more: impl FnOnce(&mut SimCounts)) {
        one_more(&mut self.state.borrow_mut().transport.counts[self.index().0 as usize][view]);
    }

    /// Takes a step; then delivers an operation and takes a step until `is_waiting` is false.
    fn drain(&self, is_waiting: impl Fn(&SimTransport) -> bool) {
        self.step();
        while is_waiting(&self.state.borrow().transport) {
            self.state.borrow_mut().deliver();
            self.step();
        }
    }

    /// Waits until all operations that must precede a request to `target` have taken effect.
    fn drain_before(&self, view: usize, target: Rank) {
        self.drain(|transport| view != NEAR && transport.is_before_fetch(self.index(), target));
    }

    fn own(&self, view: usize, word: WordId) -> WordPlace {
        WordPlace::new(view, WordAt { rank: self.index(), word })
    }

    pub(super) fn fetch_word(&self, view: usize, at: WordAt, op: Fetch) -> u64 {
        self.count(view, |counts| counts.fetch += 1);
        self.drain_before(view, at.rank);
        let before = self.state.borrow_mut().transport.fetch(WordPlace::new(view, at), op);
        self.step(); // the answer arrives later
        before
    }

    pub(super) fn begin_fetch(&self, view: usize, at: WordAt, op: Fetch) -> usize {
        self.count(view, |counts| counts.fetch += 1);
        let ticket = self.state.borrow_mut().transport.ticket();
        self.send(Effect::Fetch(WordPlace::new(view, at), op, ticket));
        ticket
    }

    pub(super) fn finish_fetch(&self, ticket: usize) -> u64 {
        self.drain(|transport| transport.answer(ticket).is_none());
        self.state.borrow().transport.answer(ticket).unwrap()
    }

    pub(super) fn post_word(&self, view: usize, at: WordAt, add: u64) {
        self.count(view, |counts| counts.post += 1);
        self.send(Effect::Post(WordPlace::new(view, at), add));
    }

    pub(super) fn post_awaited(&self, view: usize, at: WordAt, add: u64) {
        self.count(view, |counts| counts.post += 1);
        self.send(Effect::PostAwaited(WordPlace::new(view, at), add));
    }

    pub(super) fn read_word(&self, view: usize, at: WordAt) -> u64 {
        self.count(view, |counts| counts.read += 1);
        self.drain_before(view, at.rank);
        let value = self.state.borrow().transport.load(WordPlace::new(view, at));
        self.step();
        value
    }

    pub(super) fn own_word(&self, view: usize, word: WordId) -> u64 {
        self.step();
        self.state.borrow().transport.load(self.own(view, word))
    }

    pub(super) fn set_word(&self, view: usize, word: WordId, value: u64) {
        self.step();
        self.state.borrow_mut().transport.reset(self.own(view, word), value);
    }

    pub(super) fn wait(&self, view: usize, word: WordId, until: impl Fn(u64) -> bool) -> u64 {
        loop {
            let value = self.own_word(view, word);
            if until(value) {
                return value;
            }
            self.state.borrow_mut().parked[self.thread as usize] = Some(self.own(view, word));
            self.step();
        }
    }

    pub(super) fn order_to(&self, view: usize, target: Rank) {
        self.count(view, |counts| counts.order += 1);
        self.state.borrow_mut().transport.order(self.index(), target);
    }

    pub(super) fn flush_to(&self, view: usize, flush: Flush) {
        self.count(view, |counts| match flush {
            Flush::Of(_) => counts.flush += 1,
            Flush::All | Flush::AllBut(_) => counts.flush_all += 1,
        });
        self.drain(|transport| view != NEAR && transport.is_under_way(self.index(), flush));
    }

    /// Whether nothing that this rank has sent to `target` is under way.
    pub(super) fn is_idle(&self, target: Rank) -> bool {
        !self.state.borrow().transport.is_under_way(self.index(), Flush::Of(target))
    }
}
