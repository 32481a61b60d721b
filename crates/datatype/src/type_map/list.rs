//! List of the blocks of a type map, and the merge of an origin's and a target's list into
//! transfers. For blocks at irregular offsets: many equal blocks at equal distances are faster as a
//! [`Row`].
//!
//! A step covers the longest series of blocks of one length on both sides. Between two blocks, only
//! their data is stored: a cursor in memory would be stored and loaded for each block, and if the
//! processor cannot forward that store, the load waits for all earlier stores to drain.

use super::map::{Map, Row, total};
use super::rows::Rows;
use super::strip::{Offsets, Portion, Scattered, Strip};
use crate::number::Number;
use std::sync::OnceLock;

/// A regular map of more blocks has no list.
const BLOCKS_MAX: u64 = 1024;

/// A map with at most this many blocks per node is irregular.
const BLOCKS_PER_NODE: u64 = 4;

/// The most shorter blocks into which `add` splits a longer block, so that it joins the run before
/// it.
const SPLIT_MAX: u64 = 4;

/// Blocks of equal length that follow each other in a list.
#[derive(Clone, Copy, Debug)]
struct Run {
    /// of each block, not 0
    bytes: u64,
    /// number of blocks, not 0
    blocks: u64,
}

/// The blocks of an item.
#[derive(Clone, Debug)]
pub(super) struct Listed {
    /// where each block begins
    places: Vec<i64>,
    runs: Vec<Run>,
    /// bitwise OR of all places: its lowest set bit is their common alignment
    bits: u64,
    /// whether the map has few blocks per node ([`BLOCKS_PER_NODE`])
    pub is_irregular: bool,
}

/// The list of a layout, made when it is first needed.
#[derive(Clone, Debug, Default)]
pub(super) struct List(OnceLock<Option<Listed>>);

/// Always equal: the list is a cache of what the layout determines.
#[cfg(any(test, feature = "test-util"))]
impl PartialEq for List {
    fn eq(&self, _: &List) -> bool {
        true
    }
}

impl List {
    /// Returns the blocks of a map of bytes; `None` if it has too many, or is a row.
    #[inline]
    pub fn of(&self, map: &Map) -> Option<&Listed> {
        if map.nodes().len() <= 1 {
            return None;
        }
        self.0.get_or_init(|| Listed::of(map)).as_ref()
    }
}

impl Listed {
    /// Makes the list of a map.
    fn of(map: &Map) -> Option<Listed> {
        let (nodes, blocks) = (map.nodes().len().to_u64(), total(map.nodes(), &|row| row.blocks));
        let is_irregular = blocks <= BLOCKS_PER_NODE.saturating_mul(nodes);
        if blocks > BLOCKS_MAX && !is_irregular {
            return None;
        }
        let mut made = Listed { places: Vec::new(), runs: Vec::new(), bits: 0, is_irregular };
        made.places.try_reserve_exact(blocks.to_usize()).ok()?;
        let mut last: Option<(i64, u64)> = None;
        for row in Rows::of(map, 1, 0).map(Row::in_bytes) {
            let (mut offset, bytes) = (row.block.offset, row.block.count);
            for _ in 0..row.blocks {
                last = match last {
                    // Blocks that touch are one.
                    Some((at, before)) if at.wrapping_add_unsigned(before) == offset => {
                        Some((at, before + bytes))
                    }
                    other => {
                        other.map_or(Some(()), |block| made.add(block))?;
                        Some((offset, bytes))
                    }
                };
                // Wraps at most after the last block.
                offset = offset.wrapping_add(row.stride);
            }
        }
        last.map_or(Some(()), |block| made.add(block))?;
        Some(made)
    }

    /// Appends a block: offset and bytes. If the length is a small multiple of the block length of
    /// the last run, the block is appended to that run as several blocks, which is cheaper than a
    /// new run. `None`: out of memory.
    fn add(&mut self, (offset, bytes): (i64, u64)) -> Option<()> {
        let parts = match self.runs.last_mut() {
            Some(run) if bytes.is_multiple_of(run.bytes) && bytes / run.bytes <= SPLIT_MAX => {
                run.blocks += bytes / run.bytes;
                bytes / run.bytes
            }
            _ => {
                self.runs.push(Run { bytes, blocks: 1 });
                1
            }
        };
        self.places.try_reserve(parts.to_usize()).ok()?;
        for part in 0..parts {
            let place = offset.wrapping_add_unsigned(part * (bytes / parts));
            self.bits |= place.cast_unsigned();
            self.places.push(place);
        }
        Some(())
    }
}

/// The data of one side.
#[derive(Clone, Copy)]
pub(super) enum Blocks<'a> {
    /// a row of bytes
    Row(Row),
    /// copies of a list
    Copies(Copies<'a>),
}

/// Copies of a list at equal distances.
#[derive(Clone, Copy)]
pub(super) struct Copies<'a> {
    pub list: &'a Listed,
    /// number of copies that are left, the current one included
    pub left: u64,
    /// bytes from one copy to the next
    pub extent: i64,
}

/// The next block of a side, and those after it.
struct Cursor<'a> {
    /// offsets of the rest of this run
    places: Offsets<'a>,
    /// number of blocks that are left in this run
    blocks: u64,
    /// bytes of each block of this run
    bytes: u64,
    /// bytes of the next block that were already returned
    done: u64,
    /// the later runs of this copy
    runs: &'a [Run],
    /// `None`: the side is a row
    copies: Option<Copies<'a>>,
}

impl<'a> Cursor<'a> {
    /// Begins with the first block, if there is one.
    fn of(blocks: Blocks<'a>) -> Option<Cursor<'a>> {
        match blocks {
            Blocks::Row(Row { block, blocks, stride }) => {
                let places = Offsets::Every { first: block.offset, stride };
                let bytes = block.count;
                Some(Cursor { places, blocks, bytes, done: 0, runs: &[], copies: None })
            }
            Blocks::Copies(copies) => {
                let Copies { list, left, .. } = copies;
                let (run, runs) = list.runs.split_first().filter(|_| left > 0)?;
                let (places, copies) = (&list.places[..], Some(copies));
                let places = Offsets::Listed { places, base: 0, bits: list.bits };
                let Run { bytes, blocks } = *run;
                Some(Cursor { places, blocks, bytes, done: 0, runs, copies })
            }
        }
    }

    /// Bytes of the next block.
    #[inline(always)]
    fn rest(&self) -> u64 {
        self.bytes - self.done
    }

    /// Returns the number of blocks of `bytes` bytes that come next, `most` at most. A longer block
    /// counts as the number of such blocks that fit into it.
    #[inline(always)]
    fn blocks_of(&self, bytes: u64, most: u64) -> u64 {
        match self.rest() {
            _ if most == 1 => 1,
            rest if rest > bytes => (rest / bytes).min(most),
            _ if self.done > 0 => 1, // the rest of a block that was begun
            _ => self.blocks.min(most),
        }
    }

    /// Returns the places of as many blocks as `blocks_of` has returned.
    #[inline(always)]
    fn places_of(&self, bytes: u64) -> Offsets<'a> {
        // Equal only if `done` is 0, because bytes <= rest().
        match self.bytes == bytes {
            true => self.places,
            false => Offsets::Every {
                first: self.places.first().wrapping_add_unsigned(self.done),
                stride: bytes.cast_signed(),
            },
        }
    }

    /// Skips `blocks` blocks of `bytes` bytes, as `blocks_of` has returned them. Returns whether
    /// there is more.
    #[inline(always)]
    fn skip(&mut self, blocks: u64, bytes: u64) -> bool {
        let whole = match self.bytes == bytes {
            true => blocks,
            false => {
                self.done += blocks * bytes;
                if self.done < self.bytes {
                    return true;
                }
                self.done = 0;
                1
            }
        };
        self.blocks -= whole;
        self.places.skip(whole);
        self.blocks > 0 || self.next_run()
    }

    /// Goes on to the next run, or to the next copy. Returns whether there is one.
    #[inline(always)]
    fn next_run(&mut self) -> bool {
        if self.runs.is_empty() && !self.next_copy() {
            return false;
        }
        let [run, runs @ ..] = self.runs else { return false };
        (self.blocks, self.bytes, self.runs) = (run.blocks, run.bytes, runs);
        true
    }

    fn next_copy(&mut self) -> bool {
        let (Some(Copies { list, left, extent }), Offsets::Listed { places, base, .. }) =
            (&mut self.copies, &mut self.places)
        else {
            return false;
        };
        *left -= 1;
        // Wraps at most after the last copy.
        (*places, *base) = (&list.places, base.wrapping_add(*extent));
        self.runs = &list.runs;
        *left > 0
    }
}

/// Does `work` on all data of either side, in the order of the lists. Ends with the shorter of the
/// two.
#[inline]
pub(super) fn merge(origin: Blocks<'_>, target: Blocks<'_>, mut work: impl FnMut(Portion<'_>)) {
    let (Some(mut one), Some(mut two)) = (Cursor::of(origin), Cursor::of(target)) else { return };
    loop {
        let bytes = one.rest().min(two.rest());
        // The side with the shorter block first: it needs no division, and if it has one block, the
        // other side needs none either.
        let blocks = match one.rest() == bytes {
            true => two.blocks_of(bytes, one.blocks_of(bytes, u64::MAX)),
            false => one.blocks_of(bytes, two.blocks_of(bytes, u64::MAX)),
        };
        let (here, there) = (one.places_of(bytes), two.places_of(bytes));
        work(match (blocks, here, there) {
            (1, ..) => Portion::Strip(Strip::single(here.first(), there.first(), bytes)),
            (
                _,
                Offsets::Every { first, stride },
                Offsets::Every { first: there, stride: other },
            ) => {
                let (here_stride, there_stride) = (stride, other);
                Portion::Strip(Strip {
                    here: first,
                    there,
                    bytes,
                    blocks,
                    here_stride,
                    there_stride,
                })
            }
            _ => Portion::Scattered(Scattered { here, there, bytes, blocks }),
        });
        if !one.skip(blocks, bytes) || !two.skip(blocks, bytes) {
            return;
        }
    }
}
