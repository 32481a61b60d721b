//! The regions of a dynamic window: the table of those that this rank has attached, and copies of
//! the tables of others (MPI-4.1 §12.2.4). When a table may be changed and looked at is for
//! `epoch::regions` to say; how the bytes of another process are read is the caller's. No unsafe,
//! no MPI.
//!
//! A table is an array of [`Entry`], in any order and without gaps: an attach adds one at the end,
//! a detach moves the last one to where it leaves a gap. So a copy is as long as there are regions
//! now, and grows by what was attached since, if nothing was detached. Regions without bytes are
//! in no table: nobody can access them, and they overlap nothing.
//!
//! Invariant: regions of a table do not overlap, so each byte is in one region, and is reached in
//! one way, as long as it is attached.

use crate::epoch::lock::Nodes;
use crate::epoch::regions::{self, Change, Table};
use crate::error::{Class, Error, Result};
use crate::fabric::verbs::Nic;
use crate::fabric::{Rank, Words};
use crate::sys::segment::Name;
use crate::sys::serial::Serial;
use exposure::{Exposure, Run};
use std::collections::BTreeMap;

/// A region, as others read it from the memory of its owner.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(C)]
pub struct Entry {
    /// its address at its owner
    pub base: u64,
    /// how long it is
    pub bytes: u64,
    /// where it begins in the segment
    pub offset: u64,
    /// the segment that it lies in; without bytes: it lies in none that others can map
    pub name: Name,
    /// what the device of ranks of other nodes must know to reach it, and all that it goes on in
    pub key: u64,
}

const _: () = assert!(size_of::<Entry>() == 64);

impl Entry {
    fn end(&self) -> u64 {
        self.base + self.bytes
    }

    fn is_mapped(&self) -> bool {
        self.name.bytes > 0
    }

    /// Whether `next`, which begins where this one ends, goes on in the same segment.
    fn goes_on_in(&self, next: &Entry) -> bool {
        next.name == self.name && next.offset == self.offset + self.bytes
    }
}

/// The regions that this rank has attached.
#[derive(Default)]
pub struct Book {
    /// what others read
    table: Vec<Entry>,
    /// which slot of the table is whose, by base
    slots: BTreeMap<u64, u32>,
    /// how many regions without bytes were attached at an address
    empty: BTreeMap<u64, u32>,
    /// what ranks of other nodes reach, if there are any
    exposure: Option<Exposure>,
}

impl Book {
    /// What is published of the table.
    pub fn table(&self) -> Table {
        let address = self.table.as_ptr().expose_provenance() as u64;
        let key = self.exposure.as_ref().map_or(0, Exposure::table_key);
        Table { address, slots: self.table.len() as u64, key }
    }

    /// Attaches `size` bytes from `base`, which lie in a segment at an offset if `place` says so.
    ///
    /// # Errors
    /// MPI_ERR_SIZE if the size is negative; MPI_ERR_RMA_ATTACH if it leads beyond the last address
    /// or a byte is attached already.
    pub fn attach(&mut self, base: u64, size: i64, place: Option<(Name, u64)>) -> Result<Change> {
        let bytes = u64::try_from(size);
        let bytes = bytes.map_err(|_| Error::Argument(Class::Size, "region size", size))?;
        let beyond =
            Error::Argument(Class::RmaAttach, "memory beyond the last address, size", size);
        // No process has memory in the upper half of the addresses.
        let end = base.checked_add(bytes).filter(|end| *end <= i64::MAX as u64).ok_or(beyond)?;
        if bytes == 0 {
            *self.empty.entry(base).or_default() += 1;
            return Ok(Change::Added);
        }
        // The last region that begins before the end; those before it end before it begins.
        let below = self.slots.range(..end).next_back().map(|(_, slot)| self.table[*slot as usize]);
        if let Some(other) = below.filter(|other| other.end() > base) {
            let (attached_base, attached_bytes) = (other.base, other.bytes);
            return Err(Error::Overlap { base, bytes, attached_base, attached_bytes });
        }
        let (name, offset) = place.unwrap_or_default();
        let Some(exposure) = &mut self.exposure else {
            self.slots.insert(base, self.table.len() as u32);
            self.table.push(Entry { base, bytes, offset, name, key: 0 });
            return Ok(Change::Added);
        };
        exposure.make_room(&mut self.table)?;
        let run = exposure.join(base, end)?;
        self.slots.insert(base, self.table.len() as u32);
        self.table.push(Entry { base, bytes, offset, name, key: run.key });
        let alone = (run.first, run.end) == (base, end);
        self.renew_keys(&run);
        Ok(if alone { Change::Added } else { Change::Cut })
    }

    /// Notes how the regions of a run are reached from now on.
    fn renew_keys(&mut self, run: &Run) {
        for slot in self.slots.range(run.first..run.end).map(|(_, slot)| *slot) {
            self.table[slot as usize].key = run.key;
        }
    }

    /// Detaches the region that begins at `base`. Of two, the one without bytes goes first: what
    /// the program may still access stays.
    ///
    /// # Errors
    /// MPI_ERR_RMA_ATTACH if there is none. The standard asks for the base of an earlier
    /// MPI_Win_attach and names no class; this is the one of attached memory (MPI_ERR_BASE is that
    /// of MPI_Free_mem).
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
            let runs = exposure.part(base, self.table[slot as usize].end())?;
            runs.iter().flatten().for_each(|run| self.renew_keys(run));
        }
        self.slots.remove(&base);
        self.table.swap_remove(slot as usize);
        if let Some(moved) = self.table.get(slot as usize) {
            self.slots.insert(moved.base, slot);
        }
        Ok(Change::Cut)
    }
}

/// Where bytes of a target are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Where {
    /// in memory of its own: the kernel copies them, at their addresses there
    Private,
    /// in one segment, without a gap
    Segment {
        /// which
        name: Name,
        /// where they begin in it
        offset: u64,
    },
    /// Across memory of its own and a segment, or across two segments. They are copied as if
    /// private. Not for accumulates: by themselves the parts are changed in other ways than this
    /// whole (docs/decisions/0004).
    Mixed,
}

/// A copy of a target's table.
#[derive(Default)]
pub struct Seen {
    /// the number of the table; 0 is the empty one
    id: u64,
    /// the regions by base; as many as the table has slots
    regions: BTreeMap<u64, Entry>,
}

impl Seen {
    /// Makes this the copy of table number `id`, which is at `table` in memory of its owner.
    /// `is_longer`: its first slots are those of the copy. `read` gets the part that is new.
    /// After an error the copy is as it was.
    pub fn renew(
        &mut self,
        id: u64,
        (table, is_longer): (Table, bool),
        read: impl FnOnce(Table, &mut [Entry]) -> Result<()>,
    ) -> Result<()> {
        let kept = if is_longer { self.regions.len() as u64 } else { 0 };
        assert!(kept <= table.slots);
        let slots = table.slots - kept;
        let mut added = vec![Entry::default(); slots as usize];
        if slots > 0 {
            let address = table.address + kept * size_of::<Entry>() as u64;
            read(Table { address, slots, ..table }, &mut added)?;
        }
        if kept == 0 {
            self.regions.clear();
        }
        self.regions.extend(added.into_iter().map(|entry| (entry.base, entry)));
        self.id = id;
        Ok(())
    }

    /// Where `bytes` bytes from the address `first` are, if regions cover them without a gap, and
    /// the key of the device for them. A range may go on from one region into the next: that these
    /// were attached one by one does not make their bytes less attached.
    ///
    /// # Errors
    /// MPI_ERR_RMA_RANGE, with the first byte that is in no region.
    pub fn find(&self, rank: u32, first: u64, bytes: u64) -> Result<(Where, u64)> {
        debug_assert!(bytes > 0);
        let outside = |address| Error::NotInRegion { rank, first, bytes, address };
        let end = first.checked_add(bytes).ok_or(outside(u64::MAX))?;
        let below = self.regions.range(..=first).next_back().map(|(_, region)| region);
        let start = below.filter(|region| region.end() > first).ok_or(outside(first))?;
        let (mut last, mut is_private, mut is_one) = (start, !start.is_mapped(), true);
        while last.end() < end {
            let next = self.regions.get(&last.end()).ok_or(outside(last.end()))?;
            is_private &= !next.is_mapped();
            is_one &= last.goes_on_in(next);
            last = next;
        }
        let place = match (is_private, is_one) {
            (true, _) => Where::Private,
            (false, true) => {
                Where::Segment { name: start.name, offset: start.offset + (first - start.base) }
            }
            (false, false) => Where::Mixed,
        };
        Ok((place, start.key))
    }
}

/// What this process knows of the regions of a dynamic window: its own, and those of the targets
/// that it has accessed.
pub struct Regions {
    /// changed and looked at by the holder of the own table, exclusively, and by nobody else: who
    /// holds it shared, this process too, would wait in vain
    own: Serial<Book>,
    seen: Serial<BTreeMap<u32, Seen>>,
}

impl Regions {
    /// None at all. `threads`: whether several threads may call; `nic`: by which device ranks of
    /// other nodes reach them, if there are any.
    pub fn new(threads: bool, nic: Option<&'static Nic>) -> Regions {
        let book = Book { exposure: nic.map(Exposure::new), ..Book::default() };
        Regions { own: Serial::new(threads, book), seen: Serial::new(threads, BTreeMap::new()) }
    }

    /// From now on several threads may call.
    pub fn several_threads(&self) {
        self.own.several_threads();
        self.seen.several_threads();
    }

    /// MPI_Win_attach, see [`Book::attach`]. Waits for the accesses to this rank under way.
    pub fn attach(
        &self,
        words: &impl Words,
        nodes: impl Nodes,
        (base, size): (u64, i64),
        place: Option<(Name, u64)>,
    ) -> Result<()> {
        self.change(words, nodes, |book| book.attach(base, size, place))
    }

    /// MPI_Win_detach, see [`Book::detach`]. When it returns, no access to the region is under way,
    /// and none begins. Waits for the accesses to this rank under way.
    pub fn detach(&self, words: &impl Words, nodes: impl Nodes, base: u64) -> Result<()> {
        self.change(words, nodes, |book| book.detach(base))
    }

    fn change(
        &self,
        words: &impl Words,
        nodes: impl Nodes,
        work: impl FnOnce(&mut Book) -> Result<Change>,
    ) -> Result<()> {
        regions::change(words, nodes, || {
            self.own.with(|book| work(book).map(|change| (book.table(), change)))
        })
    }

    /// Where `bytes` bytes from `first` are at `rank`, whose table this thread holds: the answer
    /// lasts as long as the hold ([`regions::while_held`]). `read` fills the entries from that part
    /// of the table in memory of `rank`; it is called if the table has changed since the
    /// last time, for this process's own table too.
    ///
    /// # Errors
    /// As for [`Seen::find`]; and those of `read`.
    #[inline]
    pub fn locate(
        &self,
        words: &impl Words,
        rank: u32,
        (first, bytes): (u64, u64),
        read: impl FnOnce(Table, &mut [Entry]) -> Result<()>,
    ) -> Result<(Where, u64)> {
        let id = regions::seen(words, Rank(rank))?;
        self.seen.with(|seen| {
            let copy = seen.entry(rank).or_default();
            if copy.id != id {
                copy.renew(id, regions::table(words, Rank(rank), copy.id)?, read)?;
            }
            copy.find(rank, first, bytes)
        })
    }
}

mod exposure;
#[cfg(test)]
mod tests;
