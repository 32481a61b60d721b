//! The memory of allocated windows that is kept when they are freed, for later windows of their
//! communicator. New memory is the largest cost of a window: system calls, barriers until all ranks
//! have mapped it, and a page fault for each page that is touched. An arena keeps the memory of a
//! few windows. Not for the agreement on its use (`create::reuse`), and not for memory that goes
//! back to a heap (`memory::retention`).
//!
//! Kept memory is bounded: at most [`kept_max`] bytes for each rank, in all arenas whose rank 0 is
//! one process. Rank 0 decides when the window is made, so that all ranks keep its memory or none
//! does, and gives up the oldest memory if the bound would be exceeded.

#[cfg(doc)]
use crate::retention::kept_max;
use crate::sync::{AtomicU64, Ordering};

/// The number of windows whose memory an arena keeps.
const WINDOWS_MAX: usize = 4;

/// The bytes per rank that are reserved now, for existing windows and for kept memory.
static RESERVED: AtomicU64 = AtomicU64::new(0);

/// A share of [`kept_max`], until it is dropped.
pub struct Share(u64);

impl Share {
    /// Reserves a share for memory of `total` bytes for `ranks` ranks, if no more than `max` bytes
    /// per rank are reserved then.
    pub fn reserve(total: u64, ranks: u32, max: u64) -> Option<Share> {
        if total == 0 {
            return None;
        }
        let bytes = total.div_ceil(u64::from(ranks));
        let add = |reserved: u64| {
            let sum = reserved.checked_add(bytes)?;
            (sum <= max).then_some(sum)
        };
        // Relaxed: a sum that orders nothing.
        let reserved = RESERVED.fetch_update(Ordering::Relaxed, Ordering::Relaxed, add);
        reserved.ok().map(|_| Share(bytes))
    }
}

impl Drop for Share {
    fn drop(&mut self) {
        // Relaxed: as in `reserve`.
        RESERVED.fetch_sub(self.0, Ordering::Relaxed);
    }
}

/// Kept memory, in the order in which it was kept. `M` has a [`Keep`].
pub struct KeptList<M> {
    list: Vec<M>,
}

impl<M: HasKeep> KeptList<M> {
    /// Keeps nothing.
    pub const NONE: KeptList<M> = KeptList { list: Vec::new() };

    /// Adds memory. Returns the oldest if that is too many.
    pub fn add(&mut self, memory: M) -> Option<M> {
        self.list.push(memory);
        if self.list.len() > WINDOWS_MAX { self.take_oldest() } else { None }
    }

    /// Takes the memory that was added last among those that fit a request.
    pub fn take(&mut self, bytes: u64, alignment: u64) -> Option<M> {
        let fits = |memory: &M| memory.keep().is_some_and(|keep| keep.fits(bytes, alignment));
        self.list.iter().rposition(fits).map(|at| self.list.remove(at))
    }

    /// Takes the memory that was made first.
    pub fn take_oldest(&mut self) -> Option<M> {
        let (at, _) = self.list.iter().enumerate().min_by_key(|(_, memory)| id_of(*memory))?;
        Some(self.list.remove(at))
    }

    /// Returns the number of the memory that was made first.
    pub fn oldest(&self) -> Option<u64> {
        self.list.iter().map(id_of).min()
    }

    /// Takes all memory that was made before that with the number `id`.
    pub fn take_before(&mut self, id: u64) -> Vec<M> {
        self.list.extract_if(.., |memory| id_of(memory) < id).collect()
    }
}

/// Memory that may be kept.
pub trait HasKeep {
    /// Returns the facts about it, if it is kept when its window is freed.
    fn keep(&self) -> Option<&Keep>;
}

fn id_of<M: HasKeep>(memory: &M) -> u64 {
    memory.keep().map_or(0, |keep| keep.id)
}

/// The part of a rank in the memory of an allocated window.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OwnPart {
    /// bytes that the rank asked for
    pub bytes: u64,
    /// the alignment that the rank asked for, as its exchange record has it
    pub alignment: u64,
    /// the offset of its part
    pub offset: u64,
}

/// The facts about kept memory by which a rank knows whether it fits its request.
pub struct Keep {
    /// the number of the window that it was made for, among all of the arena; from 1
    pub id: u64,
    /// this rank's part
    pub part: OwnPart,
    /// the finding when the memory was reused
    pub touch: TouchState,
    /// on rank 0
    _share: Option<Share>,
}

/// The finding when memory was reused, which decides what is done the next time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TouchState {
    /// it was never reused, or not touched: rank 0 checks
    Untouched,
    /// it was touched
    Touched {
        /// all pages of this rank's part have memory, and keep it
        all: bool,
    },
}

impl Keep {
    /// Memory that is going to be kept; `turn`: the creation number of its first window.
    pub fn new(turn: u64, part: OwnPart, share: Option<Share>) -> Keep {
        Keep { id: turn + 1, part, touch: TouchState::Untouched, _share: share }
    }

    /// Whether a request of this rank gets the same part again, if those of all ranks do.
    pub fn fits(&self, bytes: u64, alignment: u64) -> bool {
        (self.part.bytes, self.part.alignment) == (bytes, alignment)
    }
}

/// The content of kept memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Content {
    /// no page has memory: all bytes are zero
    Nothing,
    /// some pages have memory
    Some,
    /// all pages have memory
    All,
}

/// The word by which a rank announces the memory that it has kept; 0: none that fits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct KeptWord(pub u64);

/// The bits of a word below the number of the memory: for the content.
const CONTENT_BITS: u32 = 2;

impl KeptWord {
    /// The word for memory with this number. Rank 0 adds the content.
    pub fn new(id: u64, content: Option<Content>) -> KeptWord {
        KeptWord(id << CONTENT_BITS | content.map_or(0, |content| content as u64))
    }

    /// Whether another rank has kept the same memory.
    pub fn agrees(self, other: KeptWord) -> bool {
        self.0 >> CONTENT_BITS == other.0 >> CONTENT_BITS
    }

    /// Returns the content, in a word of rank 0.
    pub fn content(self) -> Content {
        match self.0 & ((1 << CONTENT_BITS) - 1) {
            0 => Content::Nothing,
            1 => Content::Some,
            _ => Content::All,
        }
    }
}

/// Returns the content of memory with its own file: `backed` of `bytes` bytes have pages. `None`:
/// too few to reuse it, because finding them costs more than new memory.
pub fn content_of_file(backed: u64, bytes: u64) -> Option<Content> {
    match backed {
        0 => Some(Content::Nothing),
        _ if backed >= bytes => Some(Content::All),
        _ if backed >= bytes / 2 => Some(Content::Some),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_word_has_the_number_and_the_content() {
        let mine = KeptWord::new(77, None);
        for content in [Content::Nothing, Content::Some, Content::All] {
            let word = KeptWord::new(77, Some(content));
            assert!(word.agrees(mine) && word.content() == content);
            assert!(!word.agrees(KeptWord::new(78, Some(content))) && !word.agrees(KeptWord(0)));
        }
    }

    #[test]
    fn no_more_is_kept_than_the_bound() {
        const MAX: u64 = 1 << 20;
        let shares: Vec<_> = (0..10).map(|_| Share::reserve(MAX, 4, MAX)).collect();
        assert_eq!(shares.iter().flatten().count(), 4);
        assert!(Share::reserve(1, 1, MAX).is_none());
        drop(shares);
        assert!(Share::reserve(MAX + 1, 1, MAX).is_none());
        assert!(Share::reserve(0, 1, MAX).is_none());
        assert!(Share::reserve(MAX, 1, MAX).is_some());
    }

    impl HasKeep for Keep {
        fn keep(&self) -> Option<&Keep> {
            Some(self)
        }
    }

    #[test]
    fn the_last_memory_that_fits_is_taken_and_the_first_is_given_up() {
        let mut list = KeptList::NONE;
        let keep = |turn, bytes| Keep::new(turn, OwnPart { bytes, alignment: 1, offset: 0 }, None);
        for (turn, bytes) in [(5, 10), (2, 20), (9, 10), (7, 10)] {
            assert!(list.add(keep(turn, bytes)).is_none());
        }
        assert_eq!(list.oldest(), Some(3));
        assert_eq!(list.take(10, 1).map(|keep| keep.id), Some(8));
        assert!(list.take(10, 2).is_none() && list.take(30, 1).is_none());
        assert!(list.add(keep(12, 30)).is_none());
        assert_eq!(list.add(keep(11, 30)).map(|keep| keep.id), Some(3));
        let before: Vec<_> = list.take_before(12).iter().map(|keep| keep.id).collect();
        assert_eq!(before, [6, 10]);
        assert_eq!(list.take_oldest().map(|keep| keep.id), Some(12));
        assert_eq!(list.oldest(), Some(13));
    }

    #[test]
    fn a_file_with_few_pages_is_not_used_again() {
        assert_eq!(content_of_file(0, 1 << 20), Some(Content::Nothing));
        assert_eq!(content_of_file(4096, 1 << 20), None);
        assert_eq!(content_of_file(1 << 19, 1 << 20), Some(Content::Some));
        assert_eq!(content_of_file(1 << 20, 1 << 20), Some(Content::All));
    }
}
