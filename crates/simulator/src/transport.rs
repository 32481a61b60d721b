//! The memory of the ranks of the simulator, which is words and cells, and the operations under way
//! to it; the state of a run. The scheduler is in `world`.

use super::{Profile, SimShape};
use fompi_base::rank_numbers::Rank;
use fompi_fabric::layout;
use fompi_fabric::{Fetch, WordAt, WordKind};
use fompi_testkit::Random;

/// Words that all ranks reach in the same way, with the layout of one node.
pub const FLAT: usize = 0;
/// Words of the ranks of this node. Operations on them take effect at once.
pub const NEAR: usize = 1;
/// Words of all ranks, reached through a device.
pub const FAR: usize = 2;
/// The words of [`FAR`] of the first rank of each node: the ranks of this view are the nodes.
pub const LEADS: usize = 3;
/// The number of views.
pub const VIEWS: usize = 4;

/// The contents of the buffer of a get before its value has arrived.
pub const POISON: u64 = 0xdead_beef_dead_beef;
/// Cells of window memory that each rank exposes.
const CELLS: usize = 64;

/// The numbers of operations that a rank has sent, by kind.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SimCounts {
    /// calls of `fetch`
    pub fetch: u32,
    /// calls of `post`
    pub post: u32,
    /// calls of `read`
    pub read: u32,
    /// calls of `order`
    pub order: u32,
    /// calls of `flush`
    pub flush: u32,
    /// calls of `flush_all`
    pub flush_all: u32,
}

/// A word of a rank of the world, in a view.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WordPlace {
    pub view: usize,
    pub at: WordAt,
}

impl WordPlace {
    /// Creates the place of a word. The views [`FAR`] and [`LEADS`] have the same words, so that
    /// they are one view here.
    pub fn new(view: usize, at: WordAt) -> WordPlace {
        WordPlace { view: view.min(VIEWS - 2), at }
    }

    fn kind(self, shape: SimShape) -> WordKind {
        match self.view {
            ..NEAR => layout::kind(self.at.word, shape.ranks),
            NEAR => layout::kind(self.at.word, shape.per_node),
            _ => layout::kind_far(self.at.word),
        }
    }
}

/// An operation that takes effect at its target.
#[derive(Clone, Copy, Debug)]
pub enum Effect {
    Post(WordPlace, u64),
    /// as `Post`, but no flush waits for it
    PostAwaited(WordPlace, u64),
    Fetch(WordPlace, Fetch, usize),
    Put(Rank, usize, u64),
    Get(Rank, usize, usize),
}

impl Effect {
    fn target(self) -> Rank {
        match self {
            Effect::Post(place, _) | Effect::PostAwaited(place, _) | Effect::Fetch(place, ..) => {
                place.at.rank
            }
            Effect::Put(target, ..) | Effect::Get(target, ..) => target,
        }
    }

    /// Returns the word that it changes.
    fn place(self) -> Option<WordPlace> {
        match self {
            Effect::Post(place, _) | Effect::PostAwaited(place, _) | Effect::Fetch(place, ..) => {
                Some(place)
            }
            _ => None,
        }
    }
}

/// The ranks that a flush is about.
#[derive(Clone, Copy)]
pub enum Flush {
    Of(Rank),
    All,
    AllBut(Rank),
}

/// An operation that is under way.
struct Sent {
    origin: Rank,
    effect: Effect,
    /// the number of `order` calls of the origin for the target before the operation was sent
    batch: u32,
}

/// The memory of all ranks, and the operations that are under way to it.
pub struct SimTransport {
    profile: Profile,
    shape: SimShape,
    /// for each kind of block: the number of words of a rank, and the words of all ranks
    blocks: [(u32, Vec<u64>); VIEWS - 1],
    cells: Vec<u64>,
    gets: Vec<u64>,
    answers: Vec<Option<u64>>,
    sent: Vec<Sent>,
    batches: Vec<u32>,
    /// the list of each rank: the origins that it has posted to
    pub lists: Vec<Vec<u64>>,
    /// the counts of each rank, by view
    pub counts: Vec<[SimCounts; VIEWS]>,
}

impl SimTransport {
    pub fn new(shape: SimShape, profile: Profile) -> SimTransport {
        let ranks = shape.ranks as usize;
        let block = |per_rank: u32| (per_rank, vec![0; ranks * per_rank as usize]);
        SimTransport {
            profile,
            shape,
            blocks: [
                block(layout::words_per_rank(shape.ranks)),
                block(layout::words_per_rank(shape.per_node)),
                block(layout::WORDS_FAR),
            ],
            cells: vec![0; ranks * CELLS],
            gets: Vec::new(),
            answers: Vec::new(),
            sent: Vec::new(),
            batches: vec![0; ranks * ranks],
            lists: vec![Vec::new(); ranks],
            counts: vec![[SimCounts::default(); VIEWS]; ranks],
        }
    }

    fn word(&self, place: WordPlace) -> u64 {
        let (per_rank, words) = &self.blocks[place.view];
        words[self.word_index(place, *per_rank)]
    }

    fn word_mut(&mut self, place: WordPlace) -> &mut u64 {
        let per_rank = self.blocks[place.view].0;
        let index = self.word_index(place, per_rank);
        &mut self.blocks[place.view].1[index]
    }

    fn word_index(&self, place: WordPlace, per_rank: u32) -> usize {
        assert!(place.at.rank.0 < self.shape.ranks);
        assert!(place.at.word.0 < per_rank);
        (place.at.rank.0 * per_rank + place.at.word.0) as usize
    }

    pub fn load(&self, place: WordPlace) -> u64 {
        self.word(place)
    }

    /// Stores into a word of the storing rank.
    pub fn reset(&mut self, place: WordPlace, value: u64) {
        let (at, kind) = (place.at, place.kind(self.shape));
        assert!(kind != WordKind::Contended, "{at:?} is contended, but stored into");
        let is_sent_to = |sent: &Sent| sent.effect.place() == Some(place);
        assert!(!self.sent.iter().any(is_sent_to), "{at:?} is reset, but sent to");
        *self.word_mut(place) = value;
    }

    pub fn fetch(&mut self, place: WordPlace, op: Fetch) -> u64 {
        let kind = place.kind(self.shape);
        assert!(kind != WordKind::Owned, "{:?} is its owner's, but sent to", place.at);
        let word = self.word_mut(place);
        let before = *word;
        match op {
            Fetch::Add(add) => *word = before.wrapping_add(add),
            Fetch::CompareSwap { expect, new } if before == expect => *word = new,
            Fetch::CompareSwap { .. } => {}
        }
        before
    }

    fn are_near(&self, origin: Rank, target: Rank) -> bool {
        origin.0 / self.shape.per_node == target.0 / self.shape.per_node
    }

    /// Returns whether an operation of `origin` takes effect at once, as by load and store.
    fn is_prompt(&self, origin: Rank, effect: Effect) -> bool {
        self.profile == Profile::Prompt
            || match effect.place() {
                Some(place) => place.view == NEAR,
                None => self.shape.per_node > 1 && self.are_near(origin, effect.target()),
            }
    }

    /// Sends an operation. Returns the word that it has changed, if it took effect at once and may
    /// wake a thread.
    pub fn send(&mut self, origin: Rank, effect: Effect) -> Option<WordPlace> {
        match effect {
            Effect::Put(_, cell, _) | Effect::Get(_, cell, _) => assert!(cell < CELLS),
            Effect::Post(place, _) | Effect::PostAwaited(place, _) | Effect::Fetch(place, ..) => {
                assert!(place.view != NEAR || self.are_near(origin, place.at.rank));
            }
        }
        if self.is_prompt(origin, effect) {
            return self.apply(effect);
        }
        let batch = self.batches[self.pair(origin, effect.target())];
        self.sent.push(Sent { origin, effect, batch });
        None
    }

    fn pair(&self, origin: Rank, target: Rank) -> usize {
        assert!(target.0 < self.shape.ranks);
        (origin.0 * self.shape.ranks + target.0) as usize
    }

    pub fn order(&mut self, origin: Rank, target: Rank) {
        let pair = self.pair(origin, target);
        self.batches[pair] += 1;
    }

    /// Creates a buffer for a get.
    pub fn buffer(&mut self) -> usize {
        self.gets.push(POISON);
        self.gets.len() - 1
    }

    pub fn got(&self, buffer: usize) -> u64 {
        self.gets[buffer]
    }

    /// Creates a place for the answer of a fetch that is begun.
    pub fn ticket(&mut self) -> usize {
        self.answers.push(None);
        self.answers.len() - 1
    }

    pub fn answer(&self, ticket: usize) -> Option<u64> {
        self.answers[ticket]
    }

    pub fn cell(&mut self, rank: Rank, cell: usize) -> &mut u64 {
        assert!(cell < CELLS);
        &mut self.cells[rank.0 as usize * CELLS + cell]
    }

    fn apply(&mut self, effect: Effect) -> Option<WordPlace> {
        match effect {
            Effect::Post(place, add) | Effect::PostAwaited(place, add) => {
                self.fetch(place, Fetch::Add(add));
                Some(place)
            }
            Effect::Fetch(place, op, ticket) => {
                self.answers[ticket] = Some(self.fetch(place, op));
                None
            }
            Effect::Put(target, cell, value) => {
                *self.cell(target, cell) = value;
                None
            }
            Effect::Get(target, cell, buffer) => {
                self.gets[buffer] = *self.cell(target, cell);
                None
            }
        }
    }

    pub fn is_quiet(&self) -> bool {
        self.sent.is_empty()
    }

    /// Returns whether an operation under way must take effect before a `fetch` or `read` that is
    /// sent to `target` now.
    pub fn is_before_fetch(&self, origin: Rank, target: Rank) -> bool {
        let batch = self.batches[self.pair(origin, target)];
        self.sent.iter().any(|sent| {
            (sent.origin, sent.effect.target()) == (origin, target)
                && (self.profile == Profile::Late || sent.batch < batch)
        })
    }

    /// Returns whether an operation of `origin` that a flush waits for is under way.
    pub fn is_under_way(&self, origin: Rank, flush: Flush) -> bool {
        self.sent.iter().any(|sent| {
            let target = sent.effect.target();
            sent.origin == origin
                && !matches!(sent.effect, Effect::PostAwaited(..))
                && match flush {
                    Flush::Of(rank) => target == rank,
                    Flush::All => true,
                    Flush::AllBut(rank) => target != rank,
                }
        })
    }

    /// Lets one operation that is under way take effect. Returns the word that has changed, if that
    /// may wake a thread.
    pub fn deliver(&mut self, random: &mut Random) -> Option<WordPlace> {
        let first = random.index(self.sent.len());
        let candidates = (first..self.sent.len()).chain(0..first);
        let chosen = { candidates }.find(|&index| self.may_take_effect(index));
        let sent = self.sent.remove(chosen.expect("the oldest operation may take effect"));
        self.apply(sent.effect)
    }

    fn may_take_effect(&self, index: usize) -> bool {
        let this = &self.sent[index];
        let pair = (this.origin, this.effect.target());
        self.sent[..index].iter().all(|sent| {
            (sent.origin, sent.effect.target()) != pair
                || self.profile == Profile::Reordered && sent.batch == this.batch
        })
    }
}

/// The state of a run.
pub struct State {
    /// the operations under way
    pub transport: SimTransport,
    /// what the scheduler decides by
    pub random: Random,
    /// for each thread: the word that it waits for, if it waits
    pub parked: Vec<Option<WordPlace>>,
    /// number of threads of each rank
    pub threads: u32,
}

impl State {
    /// Lets one operation take effect.
    pub fn deliver(&mut self) {
        let changed = self.transport.deliver(&mut self.random);
        self.wake(changed);
    }

    /// Lets the threads go on that wait for a word.
    pub fn wake(&mut self, changed: Option<WordPlace>) {
        let Some(place) = changed else { return };
        let first = (place.at.rank.0 * self.threads) as usize;
        for parked in &mut self.parked[first..first + self.threads as usize] {
            if *parked == changed {
                *parked = None;
            }
        }
    }
}
