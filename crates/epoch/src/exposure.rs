//! General active target synchronisation over many nodes: post and start with memory for the ranks
//! in use, not for all ([`super::pscw`] has complete and wait, and post and start within a node).
//!
//! The paper (section 2.3) keeps the posts that wait for their start in a list at the origin.
//! Posters take the elements of that list from a free storage there. A post then takes several
//! round trips, and blocks when there are more posts than the origin expected. Here a poster has a
//! *bit* of its own in the word POSTS of the origin, so that a start sees which of its targets have
//! posted, and sends nothing. An origin has [`BITS`] bits. Posts of ranks without a bit are only
//! counted there. The *poster* keeps the list of the origins of its current exposure, in its own
//! memory, and makes it as long as it needs. A start reads the lists of targets without bits. A
//! post cannot run out of memory at another rank.
//!
//! | word       | kind      | meaning                                                             |
//! |------------|-----------|---------------------------------------------------------------------|
//! | list       | owned     | pairs: exposure << 24, bit << 16, rank of an origin; its inverse    |
//! | POSTS      | contended | the sum of all posts that named this rank, ever                     |
//! | BITS_TAKEN | contended | the number of requests for a bit of this rank, ever                 |
//! | COMPLETE   | contended | the number of complete access epochs that named this rank, ever     |
//!
//! | part of POSTS | meaning                                                            |
//! |---------------|--------------------------------------------------------------------|
//! | bits 0 to 46  | to each, its poster adds 1 at each post                            |
//! | bits 47 to 63 | the number of posts of ranks without a bit, signed                 |
//!
//! A post stores the list, then adds to the POSTS of each origin, without an answer. A start waits
//! until POSTS shows the bits of those targets whose bits the origin knows, and as many other posts
//! as it has other targets. Then it reads the lists of the other targets, all at once. An origin
//! remembers of each target that it has ever started to its bit, or the number of the last exposure
//! that it used.
//!
//! *A rank takes a bit at an origin* in its second post to it: a pair of ranks that meets once
//! needs none. The poster adds 1 to BITS_TAKEN at the origin and waits for the answer behind its
//! posts. From its next post on it adds the bit, and its list says so. The origin has to read that
//! list, and so learns the bit. A rank keeps its bit for ever, so an old list says nothing wrong
//! about it.
//!
//! *POSTS less the sum of all posts that the starts have used* shows the posts that are not used. A
//! rank posts to an origin again only after its wait, that is, after that origin's complete and
//! start, and the start used the post. So a rank has at most one unused post to an origin, and its
//! bit is 0 or 1 in the difference. A start uses a bit only when it is 1. So bits never carry or
//! borrow. The count may be negative for a time, because a start may find a post in a list before
//! the post has been added to POSTS. But a start that reads m lists has seen m posts without known
//! bits, and uses at most m. So the count is at least the negative of the number of bits.
//!
//! *A list need not be read in one step.* It changes while others read it, and a device may copy
//! even a word in parts (decision 0005). But each pair is complete in itself: it says that exposure
//! n is open to rank r, and that is true until rank r has completed, because the poster cannot post
//! again before. So an origin that finds its rank with a number that it has not used yet has found
//! its post, whatever else it read, even if the poster has not finished its list or its posts; and
//! the number that it used last is old. It can find no other number: the words of one list are gone
//! before the first of the next is stored. For the same reason a pair whose words agree was read
//! whole: a mixture of two lists has a word of the first list next to one that was read later, and
//! that word is gone by then; and a mixture of a list with zeros agrees only if no byte differs.
//!
//! *Each missing target will post.* The origin reads POSTS before the lists. A target whose list
//! did not name this rank then had not stored it, so its post is not among those in POSTS. So the
//! origin waits for m missing targets until m more posts without known bits have been added, and
//! then reads only their lists again. The wait ends, because these posts will be made.
//!
//! *Few reads are wasted.* A start of k targets reads k lists at most, and then at most one list
//! again for each post that has arrived meanwhile. So n posts cost at most 2n reads, ever. A pair
//! of ranks with a bit costs reads only until the origin knows the bit: in its first three epochs.
//!
//! *Numbers* are 40 bits wide: a million posts per second for twelve days.

#[cfg(all(any(test, fuzzing), not(loom)))]
mod exposure_fuzz;
#[cfg(all(any(test, fuzzing), not(loom)))]
pub use exposure_fuzz::posts;

use crate::error::Result;
use crate::fabric::layout::{BITS_TAKEN, COMPLETE, POSTS, RANKS_MAX};
use crate::fabric::{Fetch, WordAt, Words};
use crate::number::Number;
use crate::rank_numbers::Rank;
use std::collections::BTreeMap;

/// The lists of all ranks.
pub trait Lists {
    /// Stores a list in place of this rank's list. A rank that has read a word of the new list
    /// reads no word of the old one afterwards. Waits for no other rank.
    fn publish(&self, list: &[u64]) -> Result<()>;
    /// Reads the lists of `targets`, all at once, and passes each to `see`. Either one word of a
    /// pair is read completely before the other, or each of the two is read whole.
    fn read(&self, targets: &[Rank], see: impl FnMut(Rank, &[u64])) -> Result<()>;
}

/// The bits of an origin.
pub const BITS: u32 = 47;
/// What the post of a rank without a bit adds to POSTS.
const COUNTED: u64 = 1 << BITS;
/// In a word of a list: where the number of the exposure is, and the bit.
const NUMBER_AT: u32 = 24;
const BIT_AT: u32 = 16;

const _: () = assert!(RANKS_MAX + BITS < 1 << (u64::BITS - BITS - 1));
const _: () = assert!(BITS < 1 << (NUMBER_AT - BIT_AT));
// No rank has all bits set: `window::wide::post_lists` uses such words for itself.
const _: () = assert!(RANKS_MAX < (1 << BIT_AT) - 1);

/// A rank's bit at an origin, counted from 1; 0: it has none.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct PostBit(u64);

/// The posts that a process has made.
#[derive(Debug, Default)]
pub struct Posted {
    number: u64,
    /// its bit at each origin that it has ever posted to; `None` after the first post
    bits: BTreeMap<Rank, Option<PostBit>>,
}

/// What an origin remembers of a target.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Seen {
    /// the last exposure of it that was used
    Number(u64),
    /// its bit
    Bit(PostBit),
}

/// The posts that the starts of a process have used.
#[derive(Debug, Default)]
pub struct Started {
    /// what they added to POSTS, ever
    used: u64,
    /// the bits that it knows
    known: u64,
    targets: BTreeMap<Rank, Seen>,
}

/// MPI_Win_post: opens an exposure epoch to `group` (the origins).
pub fn post(
    words: &impl Words,
    lists: &impl Lists,
    posted: &mut Posted,
    group: &[Rank],
) -> Result<()> {
    posted.number += 1;
    assert!(posted.number < 1 << (u64::BITS - NUMBER_AT));
    let ask = |at| words.begin(WordAt { rank: at, word: BITS_TAKEN }, Fetch::Add(1));
    let asked: Vec<_> = posted.second(group).map(|origin| (origin, ask(origin))).collect();
    let told = tell(words, lists, posted, group);
    // Each ticket has to be finished, also after an error.
    asked.into_iter().fold(told, |told, (origin, ticket)| {
        let taken = ticket.and_then(|ticket| words.finish(ticket))?;
        posted.bits.insert(origin, Some(PostBit::after(taken)));
        told
    })
}

/// Stores the list of the exposure, and posts to its origins.
fn tell(words: &impl Words, lists: &impl Lists, posted: &mut Posted, group: &[Rank]) -> Result<()> {
    let bit = |origin| posted.bits.entry(origin).or_default().unwrap_or_default();
    let bits: Vec<_> = group.iter().copied().map(bit).collect();
    let named = || group.iter().zip(&bits);
    let entries = named().flat_map(|(origin, bit)| entry(posted.number, *bit, *origin));
    lists.publish(&entries.collect::<Vec<u64>>())?;
    for (&rank, bit) in named() {
        words.post_awaited(WordAt { rank, word: POSTS }, bit.post())?;
    }
    Ok(())
}

/// MPI_Win_start: waits until each rank of `group` (the targets) has posted, and uses these posts.
pub fn start(
    words: &impl Words,
    lists: &impl Lists,
    started: &mut Started,
    group: &[Rank],
) -> Result<()> {
    let (mut missing, mut before) = (group.to_vec(), started.used);
    loop {
        let bits = started.take_known(&mut missing);
        let posts = words.wait_own(POSTS, |posts| {
            let unused = posts.wrapping_sub(started.used);
            let others = started.others(posts.wrapping_sub(before));
            unused & bits == bits && others >= missing.len().to_u64().cast_signed()
        })?;
        started.used = started.used.wrapping_add(bits);
        if missing.is_empty() {
            return Ok(());
        }
        before = posts;
        let mut left = Vec::new();
        lists.read(&missing, |target, list| {
            if !started.uses(target, words.rank(), list) {
                left.push(target);
            }
        })?;
        missing = left;
    }
}

/// MPI_Win_complete: adds to the COMPLETE of each rank of `group` (the targets), after the data
/// that was sent to it before: one transport carries data and words, so a target that sees the
/// addition sees the data. [`super::pscw::complete`] serves any transport. It waits for nothing:
/// the caller waits for gets and for the buffers of puts (MPI-4.1 §12.5.2 asks for completion at
/// the origin alone). After an error the other targets are still notified.
pub fn complete(words: &impl Words, group: &[Rank]) -> Result<()> {
    let tell = |rank: Rank| {
        words.order(rank)?;
        words.post_awaited(WordAt { rank, word: COMPLETE }, 1)
    };
    group.iter().map(|rank| tell(*rank)).fold(Ok(()), Result::and)
}

impl PostBit {
    /// The bit of a rank before which `taken` ranks have taken one.
    fn after(taken: u64) -> PostBit {
        PostBit(if taken < u64::from(BITS) { taken + 1 } else { 0 })
    }

    /// What a post adds to POSTS.
    fn post(self) -> u64 {
        match self.0 {
            0 => COUNTED,
            bit => 1 << (bit - 1),
        }
    }
}

/// The pair of a list that says: the exposure `number` is open to `origin`, where the rank of the
/// list has this bit.
fn entry(number: u64, bit: PostBit, origin: Rank) -> [u64; 2] {
    let word = number << NUMBER_AT | bit.0 << BIT_AT | u64::from(origin.0);
    [word, !word]
}

/// Returns the number and the bit in the pair of a list that names `origin`.
fn pair_of(origin: Rank, pair: &[u64]) -> Option<(u64, PostBit)> {
    let number = pair[0] >> NUMBER_AT;
    let bit = PostBit(pair[0] >> BIT_AT & ((1 << (NUMBER_AT - BIT_AT)) - 1));
    (*pair == entry(number, bit, origin) && bit.0 <= u64::from(BITS)).then_some((number, bit))
}

impl Posted {
    /// Returns the ranks of `group` to which this rank has posted once.
    fn second(&self, group: &[Rank]) -> impl Iterator<Item = Rank> {
        group.iter().copied().filter(|origin| self.bits.get(origin) == Some(&None))
    }
}

impl Started {
    /// Takes the targets whose bits are known from `targets`, and returns their bits.
    fn take_known(&self, targets: &mut Vec<Rank>) -> u64 {
        let mut bits = 0;
        targets.retain(|target| match self.targets.get(target) {
            Some(Seen::Bit(bit)) => {
                bits |= bit.post();
                false
            }
            Some(Seen::Number(_)) | None => true,
        });
        bits
    }

    /// Returns the number of posts in `sum`, the difference of two sums of posts, without those
    /// whose bits are known.
    fn others(&self, sum: u64) -> i64 {
        let bits = sum & (COUNTED - 1) & !self.known;
        (sum.cast_signed() >> BITS) + i64::from(bits.count_ones())
    }

    /// Uses the post of `target` to `me` if its list has one that is only counted and not used.
    /// If the list has a bit instead, learns the bit.
    fn uses(&mut self, target: Rank, me: Rank, list: &[u64]) -> bool {
        let last = self.targets.get(&target).copied();
        let pairs = list.chunks_exact(2).filter_map(|pair| pair_of(me, pair));
        let mut seen = pairs.map(|(number, bit)| match bit {
            PostBit(0) => Seen::Number(number),
            bit => Seen::Bit(bit),
        });
        let Some(new) = seen.find(|seen| Some(*seen) != last) else { return false };
        self.targets.insert(target, new);
        match new {
            Seen::Number(_) => self.used = self.used.wrapping_add(COUNTED),
            Seen::Bit(bit) => self.known |= bit.post(),
        }
        matches!(new, Seen::Number(_))
    }
}

#[cfg(test)]
impl Posted {
    /// Posts of a rank that has the first bit of `origin`.
    pub fn with_bit(origin: Rank) -> Posted {
        Posted { number: 2, bits: BTreeMap::from([(origin, Some(PostBit(1)))]) }
    }
}

#[cfg(test)]
impl Started {
    /// Starts of an origin that knows that `target` has its first bit.
    pub fn with_bit_of(target: Rank) -> Started {
        let targets = BTreeMap::from([(target, Seen::Bit(PostBit(1)))]);
        Started { used: 0, known: 1, targets }
    }

    /// The number of targets that it remembers.
    pub fn targets(&self) -> usize {
        self.targets.len()
    }
}
