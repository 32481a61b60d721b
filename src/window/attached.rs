//! Dynamic windows (MPI-4.1 §12.2.4): attach, detach, and access to attached memory. `regions` has
//! the tables of regions; `epoch::regions` keeps a region attached while it is accessed.

use super::address::{By, Reach, TargetRecord};
use super::protocols::on_words;
use super::{LocalWindow, Memory, library_loads};
use crate::epoch::lock::used_nodes::Wanted;
use crate::epoch::regions::tables::{RegionEntry, RegionLocation, Regions};
use crate::epoch::regions::{self, Table};
use crate::error::{Error, Result};
use crate::fabric::cma::Gathering;
use crate::fabric::location::{Distant, Location, Unmapped};
use crate::fabric::net::Peer;
use crate::fabric::remote::{Bytes, Remote};
use crate::memory::own_ranges::OwnRange;
use crate::memory::{heap, maps};
use crate::messages;
use crate::number::Number;
use crate::rank_numbers::{Rank, RankOnNode};
use core::ptr;

/// The ranks have agreed that libfompi implements the window.
const OF_A_GPU: Error = Error::Wrong(&messages::REGION_OF_GPU);

impl LocalWindow {
    /// Implements MPI_Win_attach.
    pub fn attach(&self, base: u64, size: i64) -> Result<()> {
        let regions = self.regions()?;
        if base == 0 && size > 0 {
            return Err(Error::Wrong(&messages::REGION_NULL));
        }
        let last = base.saturating_add(size.max(1).cast_unsigned() - 1);
        if size > 0
            && library_loads::gpu().is_some_and(|gpu| gpu.is_device(base) || gpu.is_device(last))
        {
            return Err(OF_A_GPU);
        }
        let place =
            heap::find(base, size.max(0).cast_unsigned()).map(|place| (place.name, place.offset));
        let nodes = self.nodes_for(Wanted::Regions(self.rank));
        // Added before another rank can know the region.
        let range = match place {
            None => OwnRange::new(base, size.max(0).cast_unsigned()),
            Some(_) => None,
        };
        on_words!(self, |words| regions.attach(words, nodes, (base, size), place))?;
        range.and_then(|range| self.attached.lock().insert(base, range));
        Ok(())
    }

    /// Implements MPI_Win_detach.
    pub fn detach(&self, base: u64) -> Result<()> {
        let regions = self.regions()?;
        let nodes = self.nodes_for(Wanted::Regions(self.rank));
        // Removed first, because another thread may attach memory there right after the detach.
        let range = self.attached.lock().remove(&base);
        let done = on_words!(self, |words| regions.detach(words, nodes, base));
        // A region without bytes was detached, or none, so the entry is restored.
        if let (Some(range), Ok(false) | Err(_)) = (range, &done) {
            self.attached.lock().insert(base, range);
        }
        done.map(drop)
    }

    /// Returns the regions of the window; fails if it is not a dynamic window.
    pub(super) fn regions(&self) -> Result<&Regions> {
        match &self.memory {
            Memory::Attached(regions) => Ok(regions),
            _ => Err(Error::Wrong(&messages::WIN_NOT_DYNAMIC)),
        }
    }

    /// Implements [`LocalWindow::at`] for a dynamic window, whose displacements are addresses at
    /// the target. The target's regions stay attached until `work` has returned.
    pub(super) fn at_attached<R>(
        &self,
        regions: &Regions,
        (rank, disp, reach): (Rank, i64, Reach),
        by: By,
        work: impl FnOnce(Location<'_>) -> Result<R>,
    ) -> Result<R> {
        let range = range(rank, disp, reach)?;
        let (target, nodes) = (rank, self.nodes_for(Wanted::Regions(rank)));
        on_words!(self, |words| {
            regions::while_held(words, target, nodes, || {
                let read =
                    |table, entries: &mut [RegionEntry]| self.read_table(rank, table, entries);
                let found = regions.locate(words, rank, range, read)?;
                self.locate_attached((rank, range.0), found, by, work)
            })
        })
    }

    /// Does `work` while all regions of a rank of a dynamic window stay attached. `work` waits for
    /// the accumulate lock of that rank and for nothing else, and uses [`LocalWindow::at_held`].
    pub fn while_attached<R>(&self, rank: Rank, work: impl FnOnce() -> Result<R>) -> Result<R> {
        let (target, nodes) = (rank, self.nodes_for(Wanted::Regions(rank)));
        on_words!(self, |words| regions::while_held(words, target, nodes, work))
    }

    /// Implements [`LocalWindow::at`] by the access that all ranks can use, for a dynamic window
    /// inside [`LocalWindow::while_attached`].
    pub fn at_held<R>(
        &self,
        (rank, record): (Rank, TargetRecord<'_>),
        (disp, reach): (i64, Reach),
        work: impl FnOnce(Location<'_>) -> Result<R>,
    ) -> Result<R> {
        let Memory::Attached(regions) = &self.memory else {
            return self.at((rank, record), (disp, reach), By::All, work);
        };
        let range = range(rank, disp, reach)?;
        let read = |table, entries: &mut [RegionEntry]| self.read_table(rank, table, entries);
        let found = on_words!(self, |words| regions.locate(words, rank, range, read))?;
        self.locate_attached((rank, range.0), found, By::All, work)
    }

    /// Does `work` with the bytes at a location, by the transport `by`.
    fn locate_attached<R>(
        &self,
        (rank, first): (Rank, u64),
        (location, key): (RegionLocation, u64),
        by: By,
        work: impl FnOnce(Location<'_>) -> Result<R>,
    ) -> Result<R> {
        let Some(index) = self.near_index(rank).filter(|_| by == By::Own || !self.spans_nodes())
        else {
            let at = Remote { at: first, key };
            let distant = Distant { peer: self.peer(rank)?, at };
            return work(Location::Unmapped(Unmapped::Distant(distant)));
        };
        let own = || ptr::with_exposed_provenance_mut::<u8>(first.to_usize());
        match location {
            RegionLocation::Private if rank == self.rank => work(Location::Own(own())),
            RegionLocation::Private => {
                // The region may be detached when this returns, so no put may stay pending.
                let process = Gathering::nothing(self.arena().memory_of(index));
                work(Location::Unmapped(Unmapped::Process(process, first)))
            }
            RegionLocation::Segment { .. } if rank == self.rank => work(Location::Mapped(own())),
            RegionLocation::Segment { name, offset } => {
                let map = maps::map(&name)?;
                work(Location::Mapped(map.base().wrapping_add(offset.to_usize())))
            }
            RegionLocation::Mixed => Err(Error::Wrong(&messages::REGION_MIXED)),
        }
    }

    /// Copies entries of a rank's table, which this thread holds.
    fn read_table(&self, rank: Rank, table: Table, entries: &mut [RegionEntry]) -> Result<()> {
        let (to, bytes) = (entries.as_mut_ptr(), size_of_val(entries).to_u64());
        if rank == self.rank {
            let from = ptr::with_exposed_provenance::<RegionEntry>(table.address.to_usize());
            // SAFETY: this process's own table has at least that many entries, and no thread
            // changes it while this thread holds its lock.
            unsafe { ptr::copy_nonoverlapping(from, to, entries.len()) };
            return Ok(());
        }
        if let Some(index) = self.near_index(rank) {
            // SAFETY: `entries` has `bytes` bytes, and every bit pattern is a valid entry.
            return unsafe { self.arena().memory_of(index).get(to.cast(), table.address, bytes) };
        }
        let peer = self.peer(rank)?;
        // SAFETY: `entries` has `bytes` bytes, and lives until the get has completed.
        unsafe { peer.get(to.cast(), Remote { at: table.address, key: table.key }, bytes)? };
        peer.flush_local()
    }

    /// Returns the index of a rank among the ranks of this node, if it is one of them.
    pub(super) fn near_index(&self, rank: Rank) -> Option<RankOnNode> {
        match self.many_nodes() {
            None => Some(rank.on_only_node()),
            Some(many) => many.part.near_index(rank),
        }
    }

    /// Returns the process that serves a rank of a window over several nodes.
    pub(super) fn peer(&self, rank: Rank) -> Result<&Peer> {
        match self.many_nodes() {
            Some(many) => Ok(&many.part.target(self, rank)?.peer),
            None => Err(Error::Wrong(&messages::NO_PEER)),
        }
    }
}

/// Returns the first address of `reach` at displacement `disp`, which is an address, and the bytes.
#[inline]
fn range(rank: Rank, disp: i64, reach: Reach) -> Result<(u64, u64)> {
    // An address may have its highest bit set, and a type map may begin at any offset from it.
    let first = i128::from(disp) + i128::from(reach.first);
    let Ok(first) = u64::try_from(first) else {
        let (first, bytes) = (disp.cast_unsigned(), reach.bytes);
        return Err(Error::NotInRegion { rank, first, bytes, address: first });
    };
    Ok((first, reach.bytes))
}
