//! The layout of the block of 64-bit control words that each rank owns in each window. All words
//! zero is a fresh window. Before the words of a freed window are zeroed for the next one, every
//! rank has flushed, and a barrier has ended: no request may still be under way to them.
//!
//! | words      | kind      | content                                                            |
//! |------------|-----------|--------------------------------------------------------------------|
//! | [`LOCK`]   | contended | readers and writer of this rank's memory (`epoch::lock`)           |
//! | [`GLOBAL`] | contended | lock_all against exclusive locks; used at rank 0 alone             |
//! | [`STANDING`] | contended | the standing intent (`epoch::lock::standing`); at rank 0 alone |
//! | [`ACC`]    | contended | lock of accumulates that no single instruction can do              |
//! | [`SINGLES`] | contended | whether ranks change single elements (`wide::many_nodes`)         |
//! | [`COMPLETE`] | contended | MPI_Win_complete calls that named this rank (`epoch::pscw`)    |
//! | [`REGIONS`] | contended | accesses to this rank's regions (`epoch::regions`)             |
//! | [`REGIONS_ID`] to [`TABLE_KEY`] | owned | the table of its regions                      |
//! | [`ANNOUNCED`] to the 7th | owned | its accesses by handles (`epoch::memory_handles`) |
//! | [`next`], [`go`] | link, contended | a queue node of each thread that waits for a lock    |
//! | [`fence`]  | contended | one counter per round of the barrier (`epoch::fence`)            |
//! | [`arrived`], [`RELEASED`] | contended | those of a tree, in these words (`fence::tree`) |
//! | [`arrivals`], [`marks`] | contended | those of few leaders, in these words (`epoch::fence`) |
//! | [`ENTERED`] | owned    | the last barrier of a tree, or of few leaders, that it has entered |
//! | [`MARKED`] | owned     | the nodes to which this rank has sent a mark (`epoch::fence`)      |
//! | [`WAITED`] | owned     | how long this rank has waited in the window, for a report         |
//! | [`made`], [`used`] | owned | this rank's posts, and its starts (`epoch::pscw`)               |
//! | [`MIX`], [`WITHDRAWN`] | contended | accumulates without a lock (`lock::passes`)       |
//! | [`posted`] | contended | one bit per rank: whether its posts to this rank are an odd number |
//! | [`pass`], [`owed`] | contended | two bits for each rank from the 65th on                    |
//!
//! From the 65th rank on, the bits of `made` and `used` follow those of `owed`.
//!
//! Words that several nodes access through a device have no such bits, because the number of bits
//! grows with the ranks. They have these words instead ([`WORDS_FAR`]):
//!
//! | words      | kind      | content                                                            |
//! |------------|-----------|--------------------------------------------------------------------|
//! | [`POSTS`]  | contended | the sum of all posts that named this rank, ever (`epoch::exposure`) |
//! | [`BITS_TAKEN`] | contended | requests for a bit of `POSTS`, ever                            |
//! | [`LIST`]   | owned     | the ranks to which this rank has posted last                       |
//! | [`tickets`] | contended | the order of the requests for a lock (`epoch::lock::tickets`)     |
//! | [`rendezvous`] | contended | slots in which holders of consecutive tickets find each other  |
//! | [`DOORBELL`] | doorbell | where this rank sleeps, if posts wake it (`shm::doorbell`)        |
//!
//! Words that different ranks change at the same time for different reasons are on separate cache
//! lines. A rank that holds a table reads its number next, so the words of the table are one line.
//! Queue nodes are used in contention only, one by each process unless it has many threads, and the
//! counters of a barrier are used one after the other: these share lines.

#[cfg(any(test, feature = "test-util"))]
use crate::WordKind;
use crate::number::Number;
use crate::rank_numbers::Rank;
use crate::{WordAt, WordId};

/// Words in a cache line.
const LINE: u32 = 8;

/// The reader and writer lock of this rank's memory.
pub const LOCK: WordId = WordId(0);
/// The window-global lock; rank 0's is used.
pub const GLOBAL: WordId = WordId(LINE);
/// Whether an intent stands on the global lock; rank 0's is used. A process reads it before it
/// takes an intent, so it is next to [`GLOBAL`], after the tickets of that lock.
pub const STANDING: WordId = WordId(LINE + 2);
/// The lock of large accumulates at this rank.
pub const ACC: WordId = WordId(2 * LINE);
/// Whether a rank of this node has changed single elements at this rank without the lock, over
/// several nodes with targets that carry out accumulates. A holder of [`ACC`] sets it.
pub const SINGLES: WordId = WordId(2 * LINE + 2);
/// Bytes from [`ACC`] to [`SINGLES`].
pub const SINGLES_BEHIND_ACC: u64 = (SINGLES.0 - ACC.0) as u64 * 8;
/// The cumulative count of completed access epochs that named this rank.
pub const COMPLETE: WordId = WordId(3 * LINE);

/// The group lock of this rank's table of regions, of a dynamic window. It counts one holder per
/// thread inside of an access.
pub const REGIONS: WordId = WordId(4 * LINE);
/// The number of the table.
pub const REGIONS_ID: WordId = WordId(4 * LINE + 1);
/// The number of the last table that is not its predecessor with slots added.
pub const CUT: WordId = WordId(4 * LINE + 2);
/// The address of the table.
pub const TABLE: WordId = WordId(4 * LINE + 3);
/// The number of slots of the table.
pub const SLOTS: WordId = WordId(4 * LINE + 4);
/// The key with which the devices of ranks of other nodes read the table.
pub const TABLE_KEY: WordId = WordId(4 * LINE + 5);

/// The first word in which this rank announces accesses by memory handles to ranks of its node, of
/// a dynamic window, behind [`COMPLETE`], which changes seldom there.
pub const ANNOUNCED: WordId = WordId(COMPLETE.0 + 1);
/// The number of these words: a thread that accesses memory uses one of them.
pub const ANNOUNCED_WORDS: u32 = LINE - 1;

const NODES: u32 = 5 * LINE;
/// Queue nodes of a rank for the locks of windows: the most of its threads that can stand in the
/// queues of a window.
pub const NODES_FOR_LOCKS: u32 = 8;
/// The number of all queue nodes of a rank. Those after the nodes for the locks of windows are for
/// [`ACC`] and [`REGIONS`].
pub const NODES_PER_RANK: u32 = 12;
const WORDS_PER_NODE: u32 = 2;

const FENCE: u32 = NODES + NODES_PER_RANK * WORDS_PER_NODE;
/// Rounds of the barrier that fit.
pub const ROUNDS_MAX: u32 = 2 * LINE;

/// Nanoseconds that this rank has waited for others in this window. Stored before the last barrier
/// of a window, for a report: no protocol reads it.
pub const WAITED: WordId = WordId(FENCE + ROUNDS_MAX);

/// The number of the last barrier of a tree, or of few leaders, that this rank has entered.
pub const ENTERED: WordId = WordId(WAITED.0 + 3);
/// One bit for each node to which this rank has sent a mark for its last fence.
pub const MARKED: WordId = WordId(WAITED.0 + 4);

/// The first words of [`made`] and of [`used`], on the line of the other words that this rank alone
/// stores into.
const MADE_AND_USED: u32 = WAITED.0 + 1;

/// The first word of [`posted`], and the first one after those that all windows have.
const POSTED: u32 = WAITED.0 + LINE;
/// The mix of the calls on this rank's memory: on single words, and on several elements. This word
/// and those after it are on another line than the lock, which changes with each call on several
/// elements. The posts of the first ranks, which share their line, change once in an epoch.
pub const MIX: WordId = WordId(POSTED + 1);
/// The number of fences of the window when passes were withdrawn last.
pub const WITHDRAWN: WordId = WordId(POSTED + 2);
const PASSES: u32 = POSTED + 3;
/// The first word of the bitmaps for the ranks from the 65th on.
const MORE: u32 = POSTED + LINE;

/// Bits, and so ranks, of a word of the bitmap.
const RANKS_PER_WORD: u32 = 64;

/// The most ranks of a window: a lock word names each node of each process (`epoch::lock`), and
/// counts a holder for each of them and one more. Threads may be more than that; they wait.
pub const RANKS_MAX: u32 = ((1 << 19) - 1) / (NODES_PER_RANK + 1);

const _: () = assert!(RANKS_MAX < 1 << ROUNDS_MAX);
const _: () = assert!(RANKS_MAX * NODES_PER_RANK < 1 << 22);

/// Control words of each rank of a window with `size` ranks: a whole number of cache lines.
pub const fn words_per_rank(size: u32) -> u32 {
    assert!(size <= RANKS_MAX);
    (owned_bitmaps(size) + 2 * (bitmap_words(size) - 1)).next_multiple_of(LINE)
}

/// The first word after the bitmaps that other ranks change: the words of [`made`] and [`used`] for
/// the ranks from the 65th on.
const fn owned_bitmaps(size: u32) -> u32 {
    MORE + 3 * (bitmap_words(size) - 1)
}

/// The words of a bitmap with a bit for each of `size` ranks, at least one.
pub const fn bitmap_words(size: u32) -> u32 {
    if size <= RANKS_PER_WORD { 1 } else { size.div_ceil(RANKS_PER_WORD) }
}

/// Returns the word and the bit of a rank in a bitmap.
pub fn bit_of(rank: Rank) -> (u32, u64) {
    (rank.0 / RANKS_PER_WORD, 1 << (rank.0 % RANKS_PER_WORD))
}

/// Returns how a word may change in a window of `size` ranks; the simulator checks every access.
#[cfg(any(test, feature = "test-util"))]
pub fn kind(word: WordId, size: u32) -> WordKind {
    match word.0 {
        word if (REGIONS_ID.0..=TABLE_KEY.0).contains(&word) => WordKind::Owned,
        word if (ANNOUNCED.0..REGIONS.0).contains(&word) => WordKind::Owned,
        word if (WAITED.0..POSTED).contains(&word) || word >= owned_bitmaps(size) => {
            WordKind::Owned
        }
        word if (NODES..FENCE).contains(&word) => match (word - NODES) % WORDS_PER_NODE {
            0 => WordKind::Link,
            _ => WordKind::Contended,
        },
        _ => WordKind::Contended,
    }
}

/// The link of a queue node: the waiter after it.
pub fn next(queue_node: u32) -> WordId {
    assert!(queue_node < NODES_PER_RANK);
    WordId(NODES + queue_node * WORDS_PER_NODE)
}

/// The wake-up counter of a queue node: how often its waiter was woken.
pub fn go(queue_node: u32) -> WordId {
    assert!(queue_node < NODES_PER_RANK);
    WordId(NODES + queue_node * WORDS_PER_NODE + 1)
}

/// The reason why a rank waits for a word.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Purpose {
    /// a barrier
    Barrier,
    /// the end of an exposure epoch
    Complete,
    /// posts of other ranks
    Posts,
    /// a lock, with this queue node
    Queue(u32),
    /// notifications
    Notifications,
}

/// Not a word of a rank: stands for its counters of notifications, which are in other memory
/// (`epoch::notification`), where a report says what a rank waits for.
pub const NOTIFICATIONS: WordId = WordId(u32::MAX);

/// Returns why a rank waits for one of its words. The simulator calls this at each wait: it panics
/// for a word that no protocol waits for.
pub fn purpose(word: WordId) -> Purpose {
    match word.0 {
        _ if word == COMPLETE => Purpose::Complete,
        _ if word == NOTIFICATIONS => Purpose::Notifications,
        at if is_of_queue(word) => Purpose::Queue((at - NODES) / WORDS_PER_NODE),
        word if (FENCE..WAITED.0).contains(&word) => Purpose::Barrier,
        word if word >= POSTED => Purpose::Posts,
        word => unreachable!("no rank waits for its word {word}"),
    }
}

/// Whether a rank waits for this word as one in the queue of a lock.
pub fn is_of_queue(word: WordId) -> bool {
    (NODES..FENCE).contains(&word.0)
}

/// The counter of a round of the barrier.
#[inline]
pub fn fence(round: u32) -> WordId {
    assert!(round < ROUNDS_MAX);
    WordId(FENCE + round)
}

/// What other leaders have told this one in barriers of even or odd number.
pub fn arrivals(number: u64) -> WordId {
    fence(4 + u32::from(number % 2 == 1))
}

/// The marks that have come for barriers of even or odd number.
pub fn marks(number: u64) -> WordId {
    fence(6 + u32::from(number % 2 == 1))
}

/// The counter of a level of the barrier of a tree, at the first rank of a group.
pub fn arrived(level: u32) -> WordId {
    assert!(level < ROUNDS_MAX - 2, "the first word is for another use, the last is `RELEASED`");
    fence(1 + level)
}

/// The number of times that this rank was released from a barrier of a tree. It is on another
/// line than the counters of the levels that a window has.
pub const RELEASED: WordId = WordId(FENCE + ROUNDS_MAX - 1);

/// Returns the word and the bit for the posts of `from` to this rank.
pub fn posted(from: Rank) -> (WordId, u64) {
    match bit_of(from) {
        (0, bit) => (WordId(POSTED), bit),
        (index, bit) => (WordId(MORE + index - 1), bit),
    }
}

/// Returns the word and the bit for the posts of this rank to `to`, in a window of `size` ranks.
#[inline]
pub fn made(to: Rank, size: u32) -> (WordId, u64) {
    let (index, bit) = bit_of(to);
    assert!(index < bitmap_words(size));
    match index {
        0 => (WordId(MADE_AND_USED), bit),
        _ => (WordId(owned_bitmaps(size) + 2 * (index - 1)), bit),
    }
}

/// Returns the word and the bit for the posts of `from` that this rank has used. The bits of a word
/// stand for the same ranks as those of a word of [`posted`].
#[inline]
pub fn used(from: Rank, size: u32) -> (WordId, u64) {
    let (word, bit) = made(from, size);
    (WordId(word.0 + 1), bit)
}

/// Word `index` of the bitmap of the ranks that may change a single word of this rank without its
/// accumulate lock, in a window of `size` ranks.
#[inline(always)]
pub fn pass(index: u32, size: u32) -> WordId {
    assert!(index < bitmap_words(size));
    match index {
        0 => WordId(PASSES),
        _ => WordId(MORE + (bitmap_words(size) - 1) + 2 * (index - 1)),
    }
}

/// Word `index` of the bitmap of the ranks whose pass was withdrawn, and that may still use it.
#[inline(always)]
pub fn owed(index: u32, size: u32) -> WordId {
    WordId(pass(index, size).0 + 1)
}

/// The sum of all posts that named this rank, ever. This word and those below are reached through a
/// device.
pub const POSTS: WordId = WordId(POSTED);
/// The number of requests for a bit of [`POSTS`], ever.
pub const BITS_TAKEN: WordId = WordId(POSTED + 1);
/// The first word of the list of the ranks to which this rank has posted, two words for each.
pub const LIST: WordId = WordId(POSTED + LINE);
/// The length of that list. A longer list is elsewhere; one word here has its location, because a
/// word is read whole and two are not.
pub const LIST_WORDS: u32 = 4 * LINE;

const RENDEZVOUS: u32 = LIST.0 + LIST_WORDS;
/// Rendezvous slots of a lock.
pub const RENDEZVOUS_SLOTS: u32 = 64;
/// The locks of a rank.
pub const LOCKS: [WordId; 4] = [LOCK, GLOBAL, ACC, REGIONS];

/// The word that holds the doorbell of a rank. No protocol reads or changes it.
#[expect(clippy::cast_possible_truncation)] // a small constant
pub const DOORBELL: WordId = WordId(RENDEZVOUS + LOCKS.len() as u32 * RENDEZVOUS_SLOTS);

/// Control words of each rank that are reached through a device, whatever the number of ranks.
pub const WORDS_FAR: u32 = DOORBELL.0 + LINE;

/// The tickets of a lock, in the word next to it.
pub fn tickets(lock: WordId) -> WordId {
    match lock {
        LOCK | GLOBAL | ACC => WordId(lock.0 + 1),
        REGIONS => WordId(TABLE_KEY.0 + 1),
        _ => panic!("{lock:?} is no lock"),
    }
}

/// Returns the rendezvous slot in which the holders of a ticket for a lock and of the next ticket
/// find each other. Each lock has slots of its own: a thread that waits for a lock may use a slot
/// as long as it waits, and the holder that it waits for may need another lock first.
pub fn rendezvous(lock: WordId, ticket: u32) -> WordId {
    let index = LOCKS.iter().position(|word| *word == lock).expect("a lock").to_u32();
    WordId(RENDEZVOUS + index * RENDEZVOUS_SLOTS + ticket % RENDEZVOUS_SLOTS)
}

/// Returns how a word that is reached through a device may change.
#[cfg(any(test, feature = "test-util"))]
pub fn kind_far(word: WordId) -> WordKind {
    match word.0 {
        word if (LIST.0..LIST.0 + LIST_WORDS).contains(&word) => WordKind::Owned,
        word if word >= POSTED => WordKind::Contended,
        _ => kind(word, 1),
    }
}

/// The global lock word of the window.
pub fn global() -> WordAt {
    WordAt { rank: Rank(0), word: GLOBAL }
}

/// The word of the standing intent of the window.
pub fn standing() -> WordAt {
    WordAt { rank: Rank(0), word: STANDING }
}
