//! Memory handles (docs/decisions/0033): how a rank withdraws memory that others access without an
//! epoch. After a withdrawal no access that began before touches the memory, and none begins.
//!
//! Each handle has a word of its owner, its *validity*:
//!
//! | bits of the word | meaning                                                            |
//! |------------------|--------------------------------------------------------------------|
//! | 24 to 63         | generation of the handle that has the word; 0: of none             |
//! | 0 to 23          | accesses under way that came through a device (they *enter*) |
//!
//! A generation is given once in the life of the owner, so the word of a withdrawn handle never
//! becomes valid for that handle again, although another handle has the word then.
//!
//! # Ranks of the owner's node
//!
//! A rank *announces* an access in one of a few words of its own, and reads the validity behind
//! that. The owner takes its generation out of the validity, and reads the words of all ranks of
//! the node behind that.
//!
//! | word of a rank | meaning                           | next value                           |
//! |----------------|-----------------------------------|--------------------------------------|
//! | even           | nothing is announced              | plus 1, by the thread that announces |
//! | odd            | an access is, and may be under way | plus 1, by the same thread          |
//!
//! Each side stores one word and then loads the other one. One of the two sees the store of the
//! other side if a full barrier is between the store and the load on both sides. The access comes
//! often and the withdrawal seldom, so the barrier of the access is that of membarrier(2), which
//! the owner asks for: [`Fences::ByOwner`]. Where the system refuses it to one of them, the access
//! has a fence of its own: [`Fences::Own`].
//!
//! *The access saw the generation:* its announcement is seen, and the owner waits until that word
//! has another value. The store of that value is a Release, behind all that the access did. *It did
//! not:* it touches nothing. A word that changes never has its old value again, so an owner waits
//! for the accesses under way and for no later one. A process that has died changes its words no
//! more and accesses nothing: it is passed over.
//!
//! # Ranks of other nodes
//!
//! Where a thread of the target serves requests, it holds the table of exposures while it carries
//! one out, and a withdrawal ends the exposure: nothing else is needed. Through an RDMA device an
//! access *enters*: it adds 1 to the validity, and the answer has the generation; it *leaves*
//! behind its last request by the subtraction of 1, for which it does not wait. The owner, which
//! has taken its generation out, waits until the count is 0 and then ends the registration. So no
//! request with an ended key reaches the device, which would break the connection. An access that
//! enters too late leaves at once.
//!
//! # It cannot deadlock
//!
//! A thread that has announced or entered waits for ACC of its target and for answers of devices,
//! and for nothing else. An owner that waits holds nothing.

use crate::sync::{AtomicU64, Ordering, compiler_barrier, full_fence};

/// Bits of the count in a validity.
pub const COUNT_BITS: u32 = 24;

/// The value of a validity of a generation without accesses under way.
#[inline(always)]
pub fn valid(generation: u64) -> u64 {
    generation << COUNT_BITS
}

/// Whether the value of a validity is that of a generation.
#[inline(always)]
pub fn is_valid(word: u64, generation: u64) -> bool {
    word >> COUNT_BITS == generation
}

/// The accesses through a device that are under way.
pub fn under_way(word: u64) -> u64 {
    word & ((1 << COUNT_BITS) - 1)
}

/// What takes the generation out of a validity, as an addition.
pub fn withdrawal(generation: u64) -> u64 {
    valid(generation).wrapping_neg()
}

/// Who orders an announcement before the load of the validity.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fences {
    /// the owner of the memory, by a barrier in all processes
    ByOwner,
    /// the access
    Own,
}

/// An access that is announced. Dropping this ends it.
#[must_use]
pub struct Announced<'a> {
    word: &'a AtomicU64,
}

impl Drop for Announced<'_> {
    #[inline(always)]
    fn drop(&mut self) {
        // Relaxed: this thread alone changes it now. Read again, so that an access keeps no value
        // for it. Release: all that the access did comes before. Pairs with the Acquire of
        // `are_over`.
        self.word.store(self.word.load(Ordering::Relaxed) + 1, Ordering::Release);
    }
}

/// Announces an access in a word of this process, whose one thread accesses memory. `None` if it
/// has announced one already, in a callback of the program.
#[inline(always)]
pub fn announce(word: &AtomicU64) -> Option<Announced<'_>> {
    // Relaxed: this thread alone changes it.
    if word.load(Ordering::Relaxed) & 1 != 0 {
        return None;
    }
    // Release: an owner may see this value, and not that of the end of the access before. Pairs
    // with the Acquire of `are_over`.
    word.store(word.load(Ordering::Relaxed) + 1, Ordering::Release);
    Some(Announced { word })
}

/// Announces an access in one of the words of this process, if several of its threads may access
/// memory. `None` if all words are in use.
pub fn announce_among<'a>(words: impl IntoIterator<Item = &'a AtomicU64>) -> Option<Announced<'a>> {
    words.into_iter().find_map(|word| {
        // Relaxed: only this process changes it, and the exchange decides.
        let before = word.load(Ordering::Relaxed);
        let free = before & 1 == 0;
        // Acquire: the access of the thread that used the word before is done. Release: as above.
        let taken =
            || word.compare_exchange(before, before + 1, Ordering::AcqRel, Ordering::Relaxed);
        (free && taken().is_ok()).then(|| Announced { word })
    })
}

/// Whether a validity is that of a generation, for an access that is announced.
#[inline(always)]
pub fn sees(validity: &AtomicU64, generation: u64, fences: Fences) -> bool {
    match fences {
        // The barrier of the owner is between the two in program order.
        Fences::ByOwner => compiler_barrier(),
        Fences::Own => full_fence(),
    }
    // Acquire: the accesses come behind it.
    is_valid(validity.load(Ordering::Acquire), generation)
}

/// The values of the announcements of a rank, read behind a withdrawal.
pub struct SeenAnnouncements<const WORDS: usize>([u64; WORDS]);

impl<const WORDS: usize> SeenAnnouncements<WORDS> {
    /// Reads the words. The validity is taken out and `barrier` has returned before.
    pub fn of(word: impl Fn(usize) -> u64) -> SeenAnnouncements<WORDS> {
        SeenAnnouncements(core::array::from_fn(word))
    }

    /// Whether the accesses that were announced are over. `word` loads the word of an index
    /// (Acquire).
    pub fn are_over(&self, word: impl Fn(usize) -> u64) -> bool {
        let is_over = |(index, seen): (usize, &u64)| seen & 1 == 0 || word(index) != *seen;
        self.0.iter().enumerate().all(is_over)
    }
}
