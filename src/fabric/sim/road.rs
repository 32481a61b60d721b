//! What is between the ranks of the simulator: their words and cells, and what is under way to
//! them. Not for the question who runs when.

use super::{Profile, Shape};
use crate::epoch::layout;
use crate::fabric::{Fetch, Kind, Rank, WordAt};

/// What a get shows before its value is there.
pub const POISON: u64 = 0xdead_beef_dead_beef;
/// Cells of window memory that each rank exposes.
const CELLS: usize = 16;

/// A generator of random numbers (splitmix64): small, and the same everywhere.
pub struct Random(pub u64);

impl Random {
    pub fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ mixed >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ mixed >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ mixed >> 31
    }

    pub fn below(&mut self, bound: usize) -> usize {
        (self.next() % bound as u64) as usize
    }
}

/// What a rank has sent, by kind.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
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

/// Something that is under way.
#[derive(Clone, Copy, Debug)]
pub enum Effect {
    Post(WordAt, u64),
    Put(Rank, usize, u64),
    Get(Rank, usize, usize),
}

impl Effect {
    fn target(self) -> Rank {
        match self {
            Effect::Post(at, _) => at.rank,
            Effect::Put(target, ..) | Effect::Get(target, ..) => target,
        }
    }
}

struct Sent {
    origin: Rank,
    effect: Effect,
    /// how many `order` the origin had called for the target
    batch: u32,
}

/// Memory of all ranks, and what is under way to it.
pub struct Road {
    profile: Profile,
    ranks: u32,
    words: Vec<u64>,
    cells: Vec<u64>,
    gets: Vec<u64>,
    sent: Vec<Sent>,
    batches: Vec<u32>,
    pub counts: Vec<Counts>,
}

impl Road {
    pub fn new(shape: Shape, profile: Profile) -> Road {
        let ranks = shape.ranks as usize;
        let words = ranks * layout::words_per_rank(shape.ranks) as usize;
        Road {
            profile,
            ranks: shape.ranks,
            words: vec![0; words],
            cells: vec![0; ranks * CELLS],
            gets: Vec::new(),
            sent: Vec::new(),
            batches: vec![0; ranks * ranks],
            counts: vec![Counts::default(); ranks],
        }
    }

    fn word_index(&self, at: WordAt) -> usize {
        let per_rank = layout::words_per_rank(self.ranks);
        assert!(at.rank.0 < self.ranks && at.word.0 < per_rank);
        (at.rank.0 * per_rank + at.word.0) as usize
    }

    /// Where a word is that is about to be changed by `fetch` or `post`.
    fn changed(&self, at: WordAt) -> usize {
        assert!(layout::kind(at.word) != Kind::Owned, "{at:?} is its owner's, but sent to");
        self.word_index(at)
    }

    pub fn load(&self, at: WordAt) -> u64 {
        self.words[self.word_index(at)]
    }

    /// The owner's store into its word.
    pub fn reset(&mut self, at: WordAt, value: u64) {
        assert!(layout::kind(at.word) != Kind::Contended, "{at:?} is contended, but stored into");
        let is_sent_to = |sent: &Sent| matches!(sent.effect, Effect::Post(to, _) if to == at);
        assert!(!self.sent.iter().any(is_sent_to), "{at:?} is reset, but sent to");
        let index = self.word_index(at);
        self.words[index] = value;
    }

    pub fn fetch(&mut self, at: WordAt, op: Fetch) -> u64 {
        let index = self.changed(at);
        let before = self.words[index];
        match op {
            Fetch::Add(add) => self.words[index] = before.wrapping_add(add),
            Fetch::CompareSwap { expect, new } if before == expect => self.words[index] = new,
            Fetch::CompareSwap { .. } => {}
        }
        before
    }

    /// Sends an effect. Returns a word that changed at once.
    pub fn send(&mut self, origin: Rank, effect: Effect) -> Option<WordAt> {
        match effect {
            Effect::Post(at, _) => assert!(self.changed(at) < self.words.len()),
            Effect::Put(_, cell, _) | Effect::Get(_, cell, _) => assert!(cell < CELLS),
        }
        if self.profile == Profile::Prompt {
            return self.apply(effect);
        }
        let batch = self.batches[self.pair(origin, effect.target())];
        self.sent.push(Sent { origin, effect, batch });
        None
    }

    fn pair(&self, origin: Rank, target: Rank) -> usize {
        assert!(target.0 < self.ranks);
        (origin.0 * self.ranks + target.0) as usize
    }

    pub fn order(&mut self, origin: Rank, target: Rank) {
        let pair = self.pair(origin, target);
        self.batches[pair] += 1;
    }

    /// A buffer for a get.
    pub fn buffer(&mut self) -> usize {
        self.gets.push(POISON);
        self.gets.len() - 1
    }

    pub fn got(&self, buffer: usize) -> u64 {
        self.gets[buffer]
    }

    pub fn cell(&mut self, rank: Rank, cell: usize) -> &mut u64 {
        assert!(cell < CELLS);
        &mut self.cells[rank.0 as usize * CELLS + cell]
    }

    fn apply(&mut self, effect: Effect) -> Option<WordAt> {
        match effect {
            Effect::Post(at, add) => {
                let index = self.word_index(at);
                self.words[index] = self.words[index].wrapping_add(add);
                Some(at)
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

    /// Whether something sent must land before a `fetch` or `read` that is sent to `target` now.
    pub fn is_before_fetch(&self, origin: Rank, target: Rank) -> bool {
        let batch = self.batches[self.pair(origin, target)];
        self.sent.iter().any(|sent| {
            (sent.origin, sent.effect.target()) == (origin, target)
                && (self.profile == Profile::Late || sent.batch < batch)
        })
    }

    /// Whether something that `origin` sent to `target`, or to anyone, is under way.
    pub fn is_under_way(&self, origin: Rank, target: Option<Rank>) -> bool {
        self.sent.iter().any(|sent| {
            sent.origin == origin && target.is_none_or(|target| sent.effect.target() == target)
        })
    }

    /// Lets one thing that is under way take effect. Returns the word that changed.
    pub fn deliver(&mut self, random: &mut Random) -> Option<WordAt> {
        let first = random.below(self.sent.len());
        let candidates = (first..self.sent.len()).chain(0..first);
        let chosen = { candidates }.find(|&index| self.may_land(index));
        let sent = self.sent.remove(chosen.expect("the oldest of all may land"));
        self.apply(sent.effect)
    }

    fn may_land(&self, index: usize) -> bool {
        let this = &self.sent[index];
        let pair = (this.origin, this.effect.target());
        self.sent[..index].iter().all(|sent| {
            (sent.origin, sent.effect.target()) != pair
                || self.profile == Profile::Reordered && sent.batch == this.batch
        })
    }
}
