//! Dynamic windows (MPI-4.1 §12.2.4): attaching, detaching, and the way to memory that somebody has
//! attached. What a region is says `regions`; that it stays while it is accessed, `epoch::regions`.

use super::address::{Reach, Spot};
use super::regions::{Entry, Regions, Where};
use super::{Memory, Node};
use crate::epoch::regions;
use crate::error::{Class, Error, Result};
use crate::fabric::Rank;
use crate::memory::{heap, maps};
use core::ptr;

impl Node {
    /// MPI_Win_attach.
    pub fn attach(&self, base: u64, size: i64) -> Result<()> {
        let regions = self.regions()?;
        if base == 0 && size > 0 {
            return Err(Error::Argument(Class::Buffer, "null pointer as the base of bytes:", size));
        }
        let place = heap::find(base, size.max(0) as u64).map(|place| (place.name, place.offset));
        regions.attach(&self.words, self.nodes_for_operations(), (base, size), place)
    }

    /// MPI_Win_detach.
    pub fn detach(&self, base: u64) -> Result<()> {
        let regions = self.regions()?;
        regions.detach(&self.words, self.nodes_for_operations(), base)
    }

    /// Memory is attached to dynamic windows alone.
    fn regions(&self) -> Result<&Regions> {
        match &self.memory {
            Memory::Attached(regions) => Ok(regions),
            _ => Err(Error::Argument(Class::RmaFlavor, "not a dynamic window,", 0)),
        }
    }

    /// [`Node::at`] of a dynamic window: displacements are addresses at the target. What it has
    /// attached stays attached until `work` has returned.
    pub(super) fn at_attached<R>(
        &self,
        regions: &Regions,
        rank: u32,
        disp: i64,
        reach: Reach,
        work: impl FnOnce(Spot) -> Result<R>,
    ) -> Result<R> {
        // An address may have its highest bit set, and a type map may lead anywhere from it.
        let first = i128::from(disp) + i128::from(reach.first);
        let Ok(first) = u64::try_from(first) else {
            let (first, bytes) = (disp as u64, reach.bytes);
            return Err(Error::NotInRegion { rank, first, bytes, address: first });
        };
        let range = (first, reach.bytes);
        let target = Rank(rank);
        regions::while_held(&self.words, target, self.nodes_for_operations(), || {
            self.spot_attached(regions, rank, range, work)
        })
    }

    /// Finds the bytes, and does `work` there.
    fn spot_attached<R>(
        &self,
        regions: &Regions,
        rank: u32,
        range: (u64, u64),
        work: impl FnOnce(Spot) -> Result<R>,
    ) -> Result<R> {
        let read = |address: u64, entries: &mut [Entry]| self.read_table(rank, address, entries);
        let place = regions.locate(&self.words, rank, range, read)?;
        let own = || ptr::with_exposed_provenance_mut::<u8>(range.0 as usize);
        match place {
            Where::Private if rank == self.rank => work(Spot::Own(own())),
            Where::Private => work(Spot::Foreign(self.arena().memory_of(rank), range.0)),
            Where::Segment { .. } if rank == self.rank => work(Spot::Mapped(own())),
            Where::Segment { name, offset } => {
                let map = maps::map(&name)?;
                work(Spot::Mapped(map.base().wrapping_add(offset as usize)))
            }
            Where::Mixed => Err(Error::Unsupported(
                "one transfer across memory of MPI_Alloc_mem and other memory",
            )),
        }
    }

    /// Copies entries of a rank's table, which this thread holds.
    fn read_table(&self, rank: u32, address: u64, entries: &mut [Entry]) -> Result<()> {
        let (to, bytes) = (entries.as_mut_ptr(), size_of_val(entries) as u64);
        if rank == self.rank {
            let from = ptr::with_exposed_provenance::<Entry>(address as usize);
            // SAFETY: this process's own table of at least so many entries, which nobody changes
            // while it is held.
            unsafe { ptr::copy_nonoverlapping(from, to, entries.len()) };
            return Ok(());
        }
        // SAFETY: so many bytes of entries, for which all bits are values.
        unsafe { self.arena().memory_of(rank).get(to.cast(), address, bytes) }
    }
}
