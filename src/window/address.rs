//! Translation of rank, displacement and extent to memory of the window. All bounds checks are
//! here; a [`Location`] proves that one was made.

#[cfg(any(test, fuzzing))]
mod descriptor_fuzz;
#[cfg(fuzzing)]
pub use descriptor_fuzz::descriptors;

use super::quick_window::{Extent, Target, WideRecord};
use super::wide::WideWindow;
use super::{LocalWindow, Memory, Window, registry};
use crate::arena::descriptor::Descriptor;
use crate::arena::mapped_bytes::MappedBytes;
use crate::epoch::access::{Hold, TargetAccess};
use crate::error::{Error, Result};
use crate::fabric::cma::{Gathering, Process};
use crate::fabric::location::{Distant, Location, Unmapped};
use crate::fabric::{WordAt, layout};
use crate::memory::HeapView;
use crate::messages;
use crate::number::Number;
use crate::rank_numbers::{Rank, RankOnNode};
use crate::sync::Ordering;
use core::ptr;

/// The bytes that a transfer touches, relative to the displacement.
#[derive(Clone, Copy, Debug)]
pub struct Reach {
    /// from the displacement to the first byte touched; negative for types with such a lower bound
    pub first: i64,
    /// from there to one past the last byte touched
    pub bytes: u64,
}

/// The access to memory that a call needs.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum By {
    /// the fastest access of this process: load and store on its own node
    Own,
    /// the access that all ranks can use, so that their operations are atomic with each other
    All,
}

/// The record of a target. A call looks it up once.
#[derive(Clone, Copy)]
pub enum TargetRecord<'a> {
    /// of a window whose ranks are all on this node
    OneNode(&'a Target),
    /// of a window over several nodes
    ManyNodes(&'a WideWindow, &'a WideRecord),
}

impl<'a> TargetRecord<'a> {
    /// Returns how this process may access the target now.
    #[inline(always)]
    pub fn access(self) -> &'a TargetAccess {
        match self {
            TargetRecord::OneNode(target) => &target.access,
            TargetRecord::ManyNodes(_, record) => &record.access,
        }
    }
}

impl Descriptor {
    /// Returns the offset of the first byte of `reach` at displacement `disp` in the memory that a
    /// rank exposes.
    ///
    /// # Errors
    /// MPI_ERR_DISP if `disp` is negative, MPI_ERR_RMA_RANGE if a byte is outside.
    #[inline(always)]
    pub fn find(&self, rank: Rank, disp: i64, reach: Reach) -> Result<u64> {
        let start = disp.cast_unsigned().checked_mul(self.disp_unit);
        let first = start.and_then(|start| start.checked_add_signed(reach.first));
        if let Some(first) = first
            && let Some(left) = self.exposed.checked_sub(first)
            && disp >= 0
            && reach.bytes <= left
        {
            return Ok(first);
        }
        Err(self.outside(rank, disp, reach))
    }

    #[cold]
    fn outside(&self, rank: Rank, disp: i64, reach: Reach) -> Error {
        if disp < 0 {
            return Error::Argument(&messages::TARGET_DISP, disp);
        }
        let first = i128::from(disp) * i128::from(self.disp_unit) + i128::from(reach.first);
        let end = first + i128::from(reach.bytes);
        Error::OutsideWindow { rank, first, end, bytes: self.exposed }
    }
}

impl LocalWindow {
    /// Does `work` with the location of `reach` at displacement `disp` of `rank` (MPI-4.1 §12.3.1:
    /// the address is `window_base + target_disp × disp_unit`, with the target's own unit).
    ///
    /// # Errors
    /// MPI_ERR_DISP if `disp` is negative, MPI_ERR_RMA_RANGE if a byte is outside of the memory
    /// that `rank` exposes or has attached.
    #[inline]
    pub fn at<R>(
        &self,
        target: (Rank, TargetRecord<'_>),
        place: (i64, Reach),
        by: By,
        work: impl FnOnce(Location<'_>) -> Result<R>,
    ) -> Result<R> {
        match self.at_once(target, place) {
            Some(location) => work(location),
            None => self.at_length(target, place, by, work),
        }
    }

    /// Returns the location of most accesses: memory of a window of one node that is mapped here,
    /// or memory of another node that was not attached and is known.
    #[inline(always)]
    pub fn at_once<'a>(
        &'a self,
        (rank, record): (Rank, TargetRecord<'a>),
        (disp, reach): (i64, Reach),
    ) -> Option<Location<'a>> {
        debug_assert!(rank.0 < self.size);
        let bytes = (reach.first, reach.bytes);
        match record {
            TargetRecord::OneNode(target) => target.extent.reach(disp, bytes).map(Location::Mapped),
            TargetRecord::ManyNodes(_, record) => record.distant.get()?.location(disp, bytes),
        }
    }

    /// Implements [`LocalWindow::at`] for all other accesses.
    #[inline(never)]
    fn at_length<R>(
        &self,
        (rank, record): (Rank, TargetRecord<'_>),
        (disp, reach): (i64, Reach),
        by: By,
        work: impl FnOnce(Location<'_>) -> Result<R>,
    ) -> Result<R> {
        match (self.locate((rank, record), (disp, reach), by)?, &self.memory) {
            (None, Memory::Attached(regions)) => {
                self.at_attached(regions, (rank, disp, reach), by, work)
            }
            (location, _) => work(location.expect("it is not dynamic")),
        }
    }

    /// Returns the location of `reach` at displacement `disp` of `rank`; `None` if the window is
    /// dynamic. A target on this node is reached by load and store, any other target by the device;
    /// later calls find that one in its record.
    ///
    /// # Errors
    /// As for [`LocalWindow::at`].
    pub fn locate<'a>(
        &'a self,
        (rank, record): (Rank, TargetRecord<'a>),
        (disp, reach): (i64, Reach),
        by: By,
    ) -> Result<Option<Location<'a>>> {
        let (part, record) = match (record, &self.memory) {
            (_, Memory::Attached(_)) => return Ok(None),
            (TargetRecord::OneNode(_), _) => {
                let index = rank.on_only_node();
                let exposed = self.blocks.descriptor(index);
                let first = exposed.find(rank, disp, reach)?;
                return self.location(index, exposed, (first, reach.bytes)).map(Some);
            }
            (TargetRecord::ManyNodes(part, record), _) => (part, record),
        };
        let target = part.target_of(self, (rank, record))?;
        let data = part.data(self, target)?;
        let exposed = data.descriptor.get();
        let first = exposed.find(rank, disp, reach)?;
        if target.member.node != part.wide.node {
            // Relaxed: set before a call can use the window.
            record.note_distant(part.handle.load(Ordering::Relaxed), target, data);
        } else if by == By::Own || part.wide.coherent {
            match self.location(target.member.index, exposed, (first, reach.bytes))? {
                // Atomic instructions do not reach this memory: the common access is by the device.
                Location::Own(_) if by == By::All => {}
                Location::Unmapped(unmapped) if by == By::All => unmapped.send_gathered(),
                location => return Ok(Some(location)),
            }
        }
        let at = data.at.offset(first.cast_signed());
        Ok(Some(Location::Unmapped(Unmapped::Distant(Distant { peer: &target.peer, at }))))
    }

    /// Returns the mappable bytes of the memory of a rank of this node in a created window, if any.
    #[inline]
    pub(super) fn mapped(&self, rank: RankOnNode) -> Option<&MappedBytes> {
        Some(self.blocks.mapped_bytes(rank)).filter(|mapped| mapped.is_any())
    }

    /// Returns a process of this node whose memory the kernel copies.
    #[inline]
    pub(super) fn process(&self, rank: RankOnNode) -> Process<'_> {
        self.arena().memory_of(rank)
    }

    /// Returns the location of `bytes` bytes from byte `first` of a rank's part. The caller has
    /// checked that they are inside.
    #[inline]
    pub(super) fn location(
        &self,
        rank: RankOnNode,
        exposed: &Descriptor,
        (first, bytes): (u64, u64),
    ) -> Result<Location<'_>> {
        let views = match &self.memory {
            Memory::Common(_) => {
                let at = self.data.wrapping_add((exposed.offset + first).to_usize());
                return Ok(Location::Mapped(at));
            }
            Memory::Owned(views) => views,
            Memory::Attached(_) => {
                return Err(Error::Wrong(&messages::WIN_DYNAMIC));
            }
        };
        let mapped = self.mapped(rank);
        let is_mapped = mapped.is_some_and(|mapped| mapped.maps(first, bytes));
        let address = exposed.address + first;
        if rank == self.arena().rank {
            let own = ptr::with_exposed_provenance_mut(address.to_usize());
            return Ok(if is_mapped { Location::Mapped(own) } else { Location::Own(own) });
        }
        // Calls on a mapped part do not complete pending puts, so the puts from before the memory
        // moved are sent first.
        let Some(mapped) = mapped else {
            return Ok(Location::Unmapped(Unmapped::Process(self.gathering(rank), address)));
        };
        self.send_puts_to(rank);
        if !is_mapped {
            let process = Gathering::nothing(self.arena().memory_of(rank));
            return Ok(Location::Unmapped(Unmapped::Process(process, address)));
        }
        let view = views.get(rank, || HeapView::of(&mapped.place, mapped.end - mapped.first))?;
        Ok(Location::Mapped(view.base().wrapping_add((first - mapped.first).to_usize())))
    }

    /// Returns how many of `count` elements of `extent` bytes, from the offset `there` past the
    /// displacement, are before, inside and after the mapped part of a created window. The bounds
    /// have been checked.
    pub fn split(
        &self,
        (rank, disp): (Rank, i64),
        there: i64,
        (extent, count): (u64, u64),
    ) -> Result<[u64; 3]> {
        if self.spans_nodes() || !matches!(self.memory, Memory::Owned(_)) {
            return Ok([count, 0, 0]);
        }
        let exposed = self.blocks.descriptor(rank.on_only_node());
        let reach = Reach { first: there, bytes: extent * count };
        let first = exposed.find(rank, disp, reach)?;
        let mapped = self.mapped(rank.on_only_node());
        Ok(mapped.map_or([count, 0, 0], |mapped| mapped.split(first, extent, count)))
    }

    /// Returns whether some of the bytes are mapped, and others are not.
    ///
    /// # Errors
    /// As for [`LocalWindow::at`].
    #[inline]
    pub fn is_mixed(&self, rank: Rank, disp: i64, reach: Reach) -> Result<bool> {
        if self.spans_nodes() || !matches!(self.memory, Memory::Owned(_)) {
            return Ok(false);
        }
        let Some(mapped) = self.mapped(rank.on_only_node()) else { return Ok(false) };
        let first = self.blocks.descriptor(rank.on_only_node()).find(rank, disp, reach)?;
        Ok(mapped.is_mixed(first, reach.bytes))
    }

    /// Returns the memory that `rank` exposes, as this process reaches it by load and store:
    /// address, bytes, displacement unit (MPI-4.1 §12.2.3). Without such memory, the number of
    /// bytes is 0, and the address null except in a contiguous shared window. Fails for a dynamic
    /// window, which may have many parts.
    pub fn part(&self, rank: Rank) -> Result<(*mut u8, u64, u64)> {
        if let Memory::Attached(_) = &self.memory {
            return Err(Error::Wrong(&messages::WIN_DYNAMIC));
        }
        let (index, exposed) = match self.many_nodes() {
            None => (Some(rank.on_only_node()), *self.blocks.descriptor(rank.on_only_node())),
            Some(many) => many.part.exposed_by(self, rank)?,
        };
        let unit = exposed.disp_unit;
        let Some(index) = index.filter(|_| exposed.exposed > 0) else {
            return Ok((self.empty_part(&exposed), 0, unit));
        };
        if let Some(own) = self.symmetric.as_ref().filter(|_| rank == self.rank) {
            return Ok((own.base(), exposed.exposed, unit));
        }
        Ok(match self.location(index, &exposed, (0, exposed.exposed))? {
            Location::Mapped(base) | Location::Own(base) => (base, exposed.exposed, unit),
            Location::Unmapped(_) => (ptr::null_mut(), 0, unit),
        })
    }

    /// Returns the address of a part without bytes. In a shared window with consecutive parts it is
    /// the end of the preceding part (MPI-4.1 §12.2.3); elsewhere it is null.
    fn empty_part(&self, exposed: &Descriptor) -> *mut u8 {
        match &self.memory {
            Memory::Common(all) if self.is_consecutive && all.bytes() > 0 => {
                self.data.wrapping_add(exposed.offset.to_usize())
            }
            _ => ptr::null_mut(),
        }
    }

    /// Returns the address of this rank's own part (MPI_WIN_BASE).
    pub fn base(&self) -> usize {
        let own = self.blocks.descriptor(self.arena().rank);
        if own.exposed == 0 && matches!(self.memory, Memory::Common(_)) {
            return self.empty_part(own).addr();
        }
        match &self.symmetric {
            Some(mapping) => mapping.base().expose_provenance(),
            None => own.address.to_usize(),
        }
    }

    /// Returns this rank's own part as all ranks of its node map it, and its bytes.
    pub fn own_part(&self) -> (*mut u8, u64) {
        let own = self.blocks.descriptor(self.arena().rank);
        (ptr::with_exposed_provenance_mut(own.address.to_usize()), own.exposed)
    }

    /// Returns the first rank that exposes memory, for MPI_Win_shared_query of MPI_PROC_NULL. Over
    /// several nodes it reads the descriptors of the ranks one after the other until it finds one.
    pub fn first_with_memory(&self) -> Result<Option<Rank>> {
        if let Some(many) = self.many_nodes() {
            for rank in Rank::all(self.size) {
                if many.part.exposed_by(self, rank)?.1.exposed > 0 {
                    return Ok(Some(rank));
                }
            }
            return Ok(None);
        }
        Ok(Rank::all(self.size)
            .find(|rank| self.blocks.descriptor(rank.on_only_node()).exposed > 0))
    }

    /// Checks a rank that the user gave as a target.
    #[inline]
    pub fn target(&self, rank: i32) -> Result<Rank> {
        if rank.cast_unsigned() < self.size {
            return Ok(Rank(rank.cast_unsigned()));
        }
        Err(Error::TargetRank { rank: i64::from(rank), size: self.size })
    }
}

impl Target {
    /// Returns the record of a target of a window whose ranks are all on this node, and whether
    /// fast-path transfers may use it: its memory is mapped here, or it exposes none.
    fn of(node: &LocalWindow, rank: RankOnNode) -> (Target, bool) {
        let exposed = node.blocks.descriptor(rank);
        if exposed.exposed == 0 {
            // Only calls without elements succeed there; they need no byte.
            return (Target::unmapped(), true);
        }
        let mapped = match &node.memory {
            Memory::Common(_) => Some((0, exposed.exposed)),
            Memory::Owned(_) => node.mapped(rank).map(|mapped| (mapped.first, mapped.end)),
            Memory::Attached(_) => None,
        };
        let unmapped = || (Target::unmapped(), false);
        let Some(mapped) = mapped.filter(|(first, end)| first < end) else { return unmapped() };
        let part = (mapped.0, mapped.1 - mapped.0);
        // The full call reports an error.
        let Ok(Location::Mapped(at)) = node.location(rank, exposed, part) else {
            return unmapped();
        };
        let own = node.arena().rank.in_node_words();
        let pass = layout::pass(layout::bit_of(own).0, node.size);
        let pass = node.blocks.word(WordAt { rank: rank.in_node_words(), word: pass });
        let extent = Extent::new(at, mapped, exposed.disp_unit);
        // SAFETY: a word of the target, mapped as long as the window.
        let target = unsafe { Target::new(extent, ptr::from_ref(pass)) };
        let is_mapped = target.is_mapped();
        (target, is_mapped)
    }
}

impl Window {
    /// Returns the record of a rank of the window. The first call makes it: fast-path calls find
    /// the target by it.
    #[inline(always)]
    pub fn record<'a>(&'a self, node: &'a LocalWindow, rank: Rank) -> TargetRecord<'a> {
        match node.wide.as_deref() {
            Some(part) => TargetRecord::ManyNodes(part, part.records.get_or_default(rank)),
            None => TargetRecord::OneNode(self.near_record(rank)),
        }
    }

    /// Returns the record of a rank of the window, whose ranks are all on this node.
    #[inline(always)]
    fn near_record(&self, rank: Rank) -> &Target {
        let known = self.targets.find(rank.on_only_node());
        known.unwrap_or_else(|| self.new_record(rank))
    }

    #[cold]
    #[inline(never)]
    fn new_record(&self, rank: Rank) -> &Target {
        let node = self.local().expect("its ranks are on this node");
        let (target, is_quick) = Target::of(node, rank.on_only_node());
        let record = self.targets.get(rank.on_only_node(), || target);
        if is_quick {
            registry::serve_transfers(self.handle);
        }
        record
    }

    /// Whether a flush of a rank of the window is legal now.
    #[inline]
    pub fn may_flush(&self, rank: Rank) -> Result<()> {
        self.epochs.may_flush(|| self.access_of(rank))
    }

    /// Returns how this process may access a rank of the window now.
    #[inline]
    pub fn access_of(&self, rank: Rank) -> &TargetAccess {
        match self.is_on_one_node() {
            true => &self.near_record(rank).access,
            false => self.wide_access_of(rank),
        }
    }

    #[inline(never)]
    fn wide_access_of(&self, rank: Rank) -> &TargetAccess {
        let part = self.local().and_then(|node| node.wide.as_deref());
        part.map_or(&UNKNOWN_TARGET, |part| &part.records.get_or_default(rank).access)
    }

    /// Returns the ranks that this process holds, and how. For a report.
    pub fn holds(&self) -> Vec<(Rank, Hold)> {
        if self.as_duplicate().is_some() {
            return Vec::new();
        }
        if self.is_on_one_node() {
            let of = |(rank, target): (RankOnNode, &Target)| {
                Some((rank.in_node_words(), target.access.hold()?))
            };
            return self.targets.all().filter_map(of).collect();
        }
        let part = self.local().and_then(|node| node.wide.as_deref());
        let all = part.map_or(Vec::new(), |part| part.records.all());
        all.into_iter().filter_map(|(rank, record)| Some((rank, record.access.hold()?))).collect()
    }
}

/// The access of a target that this process has not used.
static UNKNOWN_TARGET: TargetAccess = TargetAccess::unknown();
