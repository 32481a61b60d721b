//! The lists of [`crate::epoch::exposure`]: the origins that a rank has posted to, in its control
//! words. A list that does not fit there lies in an *area*, which is memory that the rank registers
//! itself, and a control word holds the area and the length:
//!
//! | word            | meaning                                                                   |
//! |-----------------|---------------------------------------------------------------------------|
//! | list            | an entry of the list, or 0                                                |
//! | first of a list | or: the list is in area a and n words long (`a << 48`, `n << 24`, ones)   |
//! | second          | then: the inverse of the first, by which a reader knows that it has read  |
//! |                 | both words of one list                                                    |
//! | areas           | address and key of each area; stored once, before the first list there    |
//!
//! An area lasts as long as its window, so that a process that has read its address may read the
//! area at any time. There are four areas, each eight times as long as the one before. Together
//! they are less than ten times as long as the longest list was, and short lists need none.

#[cfg(any(test, fuzzing))]
mod lists_fuzz;
#[cfg(fuzzing)]
pub use lists_fuzz::post_lists;

use super::WideWindow;
use super::word_locations::Ranks;
use crate::arena::wide::AREA_WORDS;
use crate::epoch::exposure::Lists;
use crate::error::{Error, Result};
use crate::fabric::layout::{LIST, LIST_WORDS, RANKS_MAX, WORDS_FAR};
use crate::fabric::net::{Exposed, Peer};
use crate::fabric::remote::{Addressed, Bytes, Remote, Transport};
use crate::fabric::remote_words::Far;
use crate::fabric::{WordId, Words};
use crate::messages;
use crate::number::Number;
use crate::rank_numbers::Rank;
use crate::sync::{AtomicU64, Ordering};
use crate::window::LocalWindow;
use parking_lot::Mutex;
use std::sync::Arc;

const AREAS: usize = AREA_WORDS as usize / 2;
/// Words of the first area.
const AREA_FIRST: usize = 256;
const AREA_GROWTH: usize = 8;
/// Words of a list for each rank in it.
const WORDS_PER_RANK: usize = 2;
#[expect(clippy::cast_possible_truncation)] // a small constant
const _: () =
    assert!(AREA_FIRST * AREA_GROWTH.pow(AREAS as u32 - 1) > WORDS_PER_RANK * RANKS_MAX as usize);

/// Lists that are read with one wait.
const AT_ONCE: usize = 64;
const WORDS: usize = LIST_WORDS as usize;

/// The low bits of a word that locates a long list, all ones. The lowest 16 bits of an entry are a
/// rank, and no rank is so large.
const LONG: u64 = (1 << LENGTH_AT) - 1;
const LENGTH_AT: u32 = 24;
const AREA_AT: u32 = 48;

/// The words of an area.
fn area_length(area: usize) -> usize {
    AREA_FIRST * AREA_GROWTH.pow(area.to_u32())
}

/// The location of a list that does not fit into the control words.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct LongList {
    area: usize,
    /// in words
    length: usize,
}

impl LongList {
    /// Returns the first two words of such a list.
    fn words(self) -> [u64; 2] {
        let (area, length) = (self.area.to_u64(), self.length.to_u64());
        let place = area << AREA_AT | length << LENGTH_AT | LONG;
        [place, !place]
    }

    /// Returns the location in the words of a list, if it has one. Fails if no area is long enough:
    /// the target has damaged its memory.
    fn of(words: &[u64; WORDS]) -> Result<Option<LongList>> {
        let [place, inverse, ..] = *words;
        if place & LONG != LONG || place != !inverse {
            return Ok(None);
        }
        let area = (place >> AREA_AT).to_usize();
        let length = (place >> LENGTH_AT & LONG).to_usize();
        if area >= AREAS || length > area_length(area) {
            return Err(Error::Wrong(&messages::DAMAGED_POSTS));
        }
        Ok(Some(LongList { area, length }))
    }
}

/// The areas of this rank.
#[derive(Default)]
pub struct Areas(Mutex<[Option<Area>; AREAS]>);

struct Area {
    _exposed: Exposed,
    words: Box<[AtomicU64]>,
}

/// The lists of a window over several nodes.
pub struct FarLists<'a> {
    part: &'a WideWindow,
    node: &'a LocalWindow,
}

impl WideWindow {
    /// Returns the lists of the window `node`, which this is a part of.
    pub fn lists<'a>(&'a self, node: &'a LocalWindow) -> FarLists<'a> {
        FarLists { part: self, node }
    }
}

/// Returns the control word for the entry `index` of a list.
fn list(index: usize) -> WordId {
    WordId(LIST.0 + index.to_u32())
}

/// Returns the control words for the address and the key of an area.
fn area_words(area: usize) -> [WordId; 2] {
    let first = WORDS_FAR + 2 * area.to_u32();
    [WordId(first), WordId(first + 1)]
}

impl Lists for FarLists<'_> {
    fn publish(&self, entries: &[u64]) -> Result<()> {
        let far = self.part.far(self.node);
        let mut areas = self.part.areas.0.lock();
        // Clear the old list first.
        (0..WORDS).for_each(|index| far.set_own(list(index), 0));
        for area in areas.iter().flatten() {
            // Release: as for `set_own`.
            area.words.iter().for_each(|word| word.store(0, Ordering::Release));
        }
        if entries.len() <= WORDS {
            for (index, entry) in entries.iter().enumerate() {
                far.set_own(list(index), *entry);
            }
            return Ok(());
        }
        let fits = |area: &usize| area_length(*area) >= entries.len();
        let number = (0..AREAS).find(fits).unwrap_or(AREAS - 1);
        let area = match &mut areas[number] {
            Some(area) => area,
            none => none.insert(self.new_area(&far, number)?),
        };
        for (word, entry) in area.words.iter().zip(entries) {
            // Release: as for `set_own`.
            word.store(*entry, Ordering::Release);
        }
        let [place, inverse] = LongList { area: number, length: entries.len() }.words();
        far.set_own(list(1), inverse);
        far.set_own(list(0), place);
        Ok(())
    }

    fn read(&self, targets: &[Rank], mut see: impl FnMut(Rank, &[u64])) -> Result<()> {
        for targets in targets.chunks(AT_ONCE) {
            let lists = self.short(targets)?;
            for (target, words) in targets.iter().zip(&lists) {
                match LongList::of(words)? {
                    Some(list) => see(*target, &self.long(*target, list)?),
                    None => see(*target, words),
                }
            }
        }
        Ok(())
    }
}

impl FarLists<'_> {
    /// Makes an area, and stores its address and key.
    fn new_area(&self, far: &Far<Ranks<'_>>, number: usize) -> Result<Area> {
        let wide = &self.part.wide;
        let length = area_length(number);
        let words: Box<[AtomicU64]> = (0..length).map(|_| AtomicU64::new(0)).collect();
        let base = words.as_ptr().cast_mut().cast::<u8>();
        let exposed = wide.wire.expose(base, size_of_val(&*words).to_u64())?;
        wide.near.process(wide.near.rank).set_contact(&wide.wire.contact()?);
        let remote = exposed.remote();
        let [at, key] = area_words(number);
        far.set_own(at, remote.at);
        far.set_own(key, remote.key);
        Ok(Area { _exposed: exposed, words })
    }

    /// Reads the lists in the control words of some targets.
    fn short(&self, targets: &[Rank]) -> Result<Vec<[u64; WORDS]>> {
        let mut lists = vec![[0; WORDS]; targets.len()];
        let mut peers: Vec<&Arc<Peer>> = Vec::new();
        let asked = targets.iter().zip(&mut lists).try_for_each(|(target, words)| {
            peers.extend(self.read_words(*target, list(0), words)?);
            Ok(())
        });
        // All gets are waited for, also after an error: a pending get writes into the lists.
        let arrived = peers.iter().map(|peer| peer.flush_local()).fold(asked, Result::and);
        arrived.map(|()| lists)
    }

    /// Reads consecutive words of a target's block. Words of this node are read at once; others
    /// have arrived when the caller has flushed the peer that is returned.
    fn read_words(
        &self,
        rank: Rank,
        first: WordId,
        words: &mut [u64],
    ) -> Result<Option<&Arc<Peer>>> {
        if let Some(index) = self.part.near_index(rank) {
            for (word, to) in (first.0..).zip(words) {
                // Acquire: pairs with the Release of `set_own`.
                *to = self.node.blocks.far_word(index, WordId(word)).load(Ordering::Acquire);
            }
            return Ok(None);
        }
        let target = self.part.target(self.node, rank)?;
        let at = target.block.offset(i64::from(first.0) * size_of::<u64>().to_u64().cast_signed());
        let (to, bytes) = (words.as_mut_ptr().cast(), size_of_val(words).to_u64());
        // SAFETY: the callers keep the words until the peer is flushed.
        unsafe { target.peer.get(to, at, bytes)? };
        Ok(Some(&target.peer))
    }

    /// Reads a list that lies in an area of its rank.
    fn long(&self, rank: Rank, LongList { area, length }: LongList) -> Result<Vec<u64>> {
        let mut found = [0; 2];
        if let Some(peer) = self.read_words(rank, area_words(area)[0], &mut found)? {
            peer.flush_local()?;
        }
        let [at, key] = found;
        let owner = self.part.owner(rank)?;
        let mut words = vec![0; length];
        // SAFETY: `words` has `8 * length` bytes, and is kept until the get has completed.
        unsafe { owner.get(words.as_mut_ptr().cast(), Remote { at, key }, 8 * length.to_u64())? };
        owner.flush_local()?;
        Ok(words)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_list_for_which_no_area_has_room_is_refused() {
        let read = |area, length| {
            let mut words = [0; WORDS];
            [words[0], words[1]] = LongList { area, length }.words();
            LongList::of(&words)
        };
        for area in 0..AREAS {
            for length in [WORDS + 1, area_length(area)] {
                assert_eq!(read(area, length), Ok(Some(LongList { area, length })));
            }
            assert!(read(area, area_length(area) + 1).is_err());
        }
        assert!(read(AREAS, WORDS + 1).is_err() && read(0xffff, 0).is_err());
        assert_eq!(LongList::of(&[7; WORDS]), Ok(None));
    }
}
