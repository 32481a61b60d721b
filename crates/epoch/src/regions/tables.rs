//! The regions of a dynamic window: the table of the regions that this rank has attached, and
//! copies of the tables of other ranks (MPI-4.1 §12.2.4). This file has only the content of the
//! tables: `epoch::regions` decides when a table may be changed and read, and the caller reads the
//! memory of another process. No unsafe, no MPI.
//!
//! A table is an array of [`RegionEntry`], in any order and without gaps: an attach appends an
//! entry, a detach moves the last entry into the gap. So a table is as long as there are regions
//! now, and if no region was detached since a copy was made, the new entries follow those of the
//! copy. Regions without bytes are in no table: they cannot be accessed, and they overlap nothing.
//!
//! Invariant: the regions of a table do not overlap, so each byte is in one region, and is reached
//! in one way as long as it is attached.

#[cfg(any(test, fuzzing))]
mod copies_fuzz;
#[cfg(test)]
mod tests;

pub use super::region::RegionEntry;
#[cfg(fuzzing)]
pub use copies_fuzz::region_tables;

use super::registered::{RegionRun, RegisteredRegions};
use crate::error::{Error, Result};
use crate::fabric::Words;
use crate::fabric::net::Wire;
use crate::lock::Nodes;
use crate::messages;
use crate::number::Number;
use crate::rank_numbers::Rank;
use crate::regions::{self, Change, Table};
use crate::sys::segment::Name;
use crate::util::serial::Serial;
use std::collections::BTreeMap;

/// The regions that this rank has attached.
#[derive(Default)]
pub struct OwnTable {
    /// the table that other ranks read
    table: Vec<RegionEntry>,
    /// the slot of each region in the table, by base
    slots: BTreeMap<u64, u32>,
    /// the number of regions without bytes that are attached at an address
    empty: BTreeMap<u64, u32>,
    /// the registrations with the device, if there are ranks on other nodes
    exposure: Option<RegisteredRegions>,
}

impl OwnTable {
    /// Returns the address, length and key of the table, to be published.
    pub fn table(&self) -> Table {
        let address = self.table.as_ptr().expose_provenance().to_u64();
        let key = self.exposure.as_ref().map_or(0, RegisteredRegions::table_key);
        Table { address, slots: self.table.len().to_u64(), key }
    }

    /// Attaches `size` bytes from `base`. `place`: the segment that they lie in and their offset
    /// there, if they lie in one.
    ///
    /// # Errors
    /// MPI_ERR_SIZE if the size is negative; MPI_ERR_RMA_ATTACH if the region ends beyond the last
    /// address or a byte of it is attached already.
    pub fn attach(&mut self, base: u64, size: i64, place: Option<(Name, u64)>) -> Result<Change> {
        let bytes = u64::try_from(size);
        let bytes = bytes.map_err(|_| Error::Argument(&messages::REGION_SIZE, size))?;
        let beyond = Error::Argument(&messages::REGION_BEYOND, size);
        // No process has memory in the upper half of the address space.
        let end = base.checked_add(bytes).filter(|end| *end <= i64::MAX as u64).ok_or(beyond)?;
        if bytes == 0 {
            *self.empty.entry(base).or_default() += 1;
            return Ok(Change::Added);
        }
        // The last region that begins before the new one ends. All regions before it end before it
        // begins, so that only this one can overlap the new one.
        let below =
            self.slots.range(..end).next_back().map(|(_, slot)| self.table[(*slot).to_usize()]);
        if let Some(other) = below.filter(|other| other.end() > base) {
            let (attached_base, attached_bytes) = (other.base, other.bytes);
            return Err(Error::Overlap { base, bytes, attached_base, attached_bytes });
        }
        let (name, offset) = place.unwrap_or_default();
        let Some(exposure) = &mut self.exposure else {
            self.slots.insert(base, self.table.len().to_u32());
            self.table.push(RegionEntry { base, bytes, offset, name, key: 0 });
            return Ok(Change::Added);
        };
        exposure.make_room(&mut self.table)?;
        let run = exposure.join(base, end)?;
        self.slots.insert(base, self.table.len().to_u32());
        self.table.push(RegionEntry { base, bytes, offset, name, key: run.key });
        let alone = (run.first, run.end) == (base, end);
        self.renew_keys(&run);
        Ok(if alone { Change::Added } else { Change::Cut })
    }

    /// Stores the key of a run in the entries of its regions.
    fn renew_keys(&mut self, run: &RegionRun) {
        for slot in self.slots.range(run.first..run.end).map(|(_, slot)| *slot) {
            self.table[slot.to_usize()].key = run.key;
        }
    }

    /// Detaches the region that begins at `base`. If a region without bytes begins there too, that
    /// one is detached first, so that the program can still access the other one.
    ///
    /// # Errors
    /// MPI_ERR_RMA_ATTACH if no region begins there. The standard requires the base of an earlier
    /// MPI_Win_attach and names no class; this is the class for attached memory (MPI_ERR_BASE is
    /// that of MPI_Free_mem).
    pub fn detach(&mut self, base: u64) -> Result<Change> {
        if let Some(count) = self.empty.get_mut(&base) {
            *count -= 1;
            if *count == 0 {
                self.empty.remove(&base);
            }
            return Ok(Change::Added);
        }
        let slot = *self.slots.get(&base).ok_or(Error::NotAttached { base })?;
        if let Some(exposure) = &mut self.exposure {
            let runs = exposure.part(base, self.table[slot.to_usize()].end())?;
            runs.iter().flatten().for_each(|run| self.renew_keys(run));
        }
        self.slots.remove(&base);
        self.table.swap_remove(slot.to_usize());
        if let Some(moved) = self.table.get(slot.to_usize()) {
            self.slots.insert(moved.base, slot);
        }
        Ok(Change::Cut)
    }
}

/// The location of bytes of a target.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RegionLocation {
    /// in private memory of the target: the kernel copies them, by their addresses there
    Private,
    /// in one segment, without a gap
    Segment {
        /// the segment
        name: Name,
        /// their offset in it
        offset: u64,
    },
    /// across private memory and a segment, or across two segments. A transfer within the node
    /// refuses them: their parts are accessed in different ways, which are not atomic with each
    /// other (docs/decisions/0004)
    Mixed,
}

/// The words or entries that a target has published are corrupt.
const DAMAGED: Error = Error::Wrong(&messages::DAMAGED_REGIONS);

/// A copy of a target's table.
#[derive(Default)]
pub struct TableCopy {
    /// the number of the table; 0 is the empty one
    id: u64,
    /// the regions by base; as many as the table has slots
    regions: BTreeMap<u64, RegionEntry>,
}

impl TableCopy {
    /// Makes this the copy of table number `id`, which is at `table` in memory of its owner.
    /// `is_longer`: the first slots of that table are those of the copy, so that `read` reads only
    /// the slots behind them. After an error the copy is unchanged.
    pub fn renew(
        &mut self,
        id: u64,
        (table, is_longer): (Table, bool),
        read: impl FnOnce(Table, &mut [RegionEntry]) -> Result<()>,
    ) -> Result<()> {
        let kept = if is_longer { self.regions.len().to_u64() } else { 0 };
        let slots = table.slots.checked_sub(kept).ok_or(DAMAGED)?;
        let mut added = Vec::new();
        added.try_reserve_exact(slots.to_usize()).map_err(|_| DAMAGED)?;
        added.resize(slots.to_usize(), RegionEntry::default());
        if slots > 0 {
            let before = kept * size_of::<RegionEntry>().to_u64();
            let address = table.address.checked_add(before).ok_or(DAMAGED)?;
            read(Table { address, slots, ..table }, &mut added)?;
        }
        if !added.iter().all(RegionEntry::may_be) {
            return Err(DAMAGED);
        }
        if kept == 0 {
            self.regions.clear();
        }
        self.regions.extend(added.into_iter().map(|entry| (entry.base, entry)));
        self.id = id;
        Ok(())
    }

    /// Returns the location of `bytes` bytes from the address `first`, and their key for the
    /// device. The range may continue from one region into the next one: bytes that were attached
    /// by several calls are attached.
    ///
    /// # Errors
    /// MPI_ERR_RMA_RANGE with the first byte that is in no region.
    pub fn find(&self, rank: Rank, first: u64, bytes: u64) -> Result<(RegionLocation, u64)> {
        debug_assert!(bytes > 0);
        let outside = |address| Error::NotInRegion { rank, first, bytes, address };
        let end = first.checked_add(bytes).ok_or(outside(u64::MAX))?;
        let below = self.regions.range(..=first).next_back().map(|(_, region)| region);
        let start = below.filter(|region| region.end() > first).ok_or(outside(first))?;
        let (mut last, mut is_private, mut is_one) = (start, !start.is_mapped(), true);
        while last.end() < end {
            let next = self.regions.get(&last.end()).ok_or(outside(last.end()))?;
            is_private &= !next.is_mapped();
            is_one &= last.continues_in(next);
            last = next;
        }
        let place = match (is_private, is_one) {
            (true, _) => RegionLocation::Private,
            (false, true) => RegionLocation::Segment {
                name: start.name,
                offset: start.offset + (first - start.base),
            },
            (false, false) => RegionLocation::Mixed,
        };
        Ok((place, start.key))
    }
}

/// The regions of a dynamic window that this process knows: its own, and those of the targets that
/// it has accessed.
pub struct Regions {
    /// accessed only by a thread that holds the lock of this rank's table exclusively. A thread
    /// that holds that lock shared must not wait for this: the exclusive holder may wait for it
    own: Serial<OwnTable>,
    copies: Serial<BTreeMap<Rank, TableCopy>>,
}

impl Regions {
    /// Creates the regions of a new window, which has none. `threads`: whether several threads may
    /// call; `wire`: the transport by which ranks of other nodes access the regions, if any.
    pub fn new(threads: bool, wire: Option<&'static Wire>) -> Regions {
        let own = OwnTable { exposure: wire.map(RegisteredRegions::new), ..OwnTable::default() };
        Regions { own: Serial::new(threads, own), copies: Serial::new(threads, BTreeMap::new()) }
    }

    /// Prepares for calls of several threads, from now on.
    pub fn several_threads(&self) {
        self.own.several_threads();
        self.copies.several_threads();
    }

    /// Prepares for calls of one thread at a time again.
    pub fn one_thread(&self) {
        self.own.one_thread();
        self.copies.one_thread();
    }

    /// Implements MPI_Win_attach, see [`OwnTable::attach`]. Waits for the accesses to this rank
    /// that are in progress.
    pub fn attach(
        &self,
        words: &impl Words,
        nodes: impl Nodes,
        (base, size): (u64, i64),
        place: Option<(Name, u64)>,
    ) -> Result<()> {
        self.change(words, nodes, |own| own.attach(base, size, place))
    }

    /// Implements MPI_Win_detach, see [`OwnTable::detach`]. Waits for the accesses to this rank
    /// that are in progress. When it returns, no access to the region is in progress, and none
    /// begins. Returns whether the region has bytes.
    pub fn detach(&self, words: &impl Words, nodes: impl Nodes, base: u64) -> Result<bool> {
        let mut has_bytes = false;
        self.change(words, nodes, |own| {
            let change = own.detach(base)?;
            has_bytes = change == Change::Cut;
            Ok(change)
        })?;
        Ok(has_bytes)
    }

    fn change(
        &self,
        words: &impl Words,
        nodes: impl Nodes,
        work: impl FnOnce(&mut OwnTable) -> Result<Change>,
    ) -> Result<()> {
        regions::change(words, nodes, || {
            self.own.with(|own| work(own).map(|change| (own.table(), change)))
        })
    }

    /// Returns the location of `bytes` bytes from `first` at `rank`, and their key for the device.
    /// This thread holds the lock of that rank's table ([`regions::while_held`]): the result is
    /// valid as long as it holds the lock. `read` fills entries from a part of the table in memory
    /// of `rank`. It is called if the table has changed since the last call, also for this
    /// process's own table.
    ///
    /// # Errors
    /// Those of [`TableCopy::find`] and of `read`.
    #[inline]
    pub fn locate(
        &self,
        words: &impl Words,
        rank: Rank,
        (first, bytes): (u64, u64),
        read: impl FnOnce(Table, &mut [RegionEntry]) -> Result<()>,
    ) -> Result<(RegionLocation, u64)> {
        let id = regions::seen(words, rank)?;
        self.copies.with(|copies| {
            let copy = copies.entry(rank).or_default();
            if copy.id != id {
                copy.renew(id, regions::table(words, rank, copy.id)?, read)?;
            }
            copy.find(rank, first, bytes)
        })
    }
}
