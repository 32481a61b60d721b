//! The part of a window that this process has: its rank, its control blocks, its memory. Not for
//! accesses of other ranks: `address` finds the memory, `synchronise` runs the epochs.

use super::Flavor;
use super::conflicts::Conflicts;
use super::quick_window::WideRecord;
use super::wide::WideWindow;
use super::window_puts::WindowPuts;
use crate::arena::Arena;
use crate::arena::control_blocks::ControlBlocks;
use crate::arena::wait_progress::NodeIdle;
use crate::epoch::lock::overtaking::{self, Overtaking};
use crate::epoch::lock::used_nodes::UsedNodes;
use crate::epoch::regions::tables::Regions;
use crate::fabric::net::Wire;
use crate::fabric::shm::words::CpuWords;
use crate::memory::HeapView;
use crate::memory::own_ranges::OwnRange;
use crate::memory::window_memory::Common;
use crate::memory::window_memory_cache::HasKeep;
use crate::mpi::comm::{Comm, Group};
use crate::rank_numbers::{Rank, RankOnNode, Slot};
use crate::sync::{AtomicBool, AtomicU64, Ordering};
use crate::sys::segment::Mapping;
use crate::util::known::Known;
use core::ptr;
use parking_lot::Mutex;
use std::collections::BTreeMap;
use std::sync::Arc;

/// A window that libfompi implements.
pub struct LocalWindow {
    /// the rank of this process
    pub rank: Rank,
    /// the number of ranks
    pub size: u32,
    /// whether this rank has asked for consecutive parts of all ranks (MPI_Win_allocate_shared)
    pub(super) is_consecutive: bool,
    /// the begin of the common memory of all ranks, if there is any
    pub(super) data: *mut u8,
    /// its control blocks
    pub blocks: ControlBlocks,
    /// the control words in them, as protocols use them
    pub words: CpuWords<ControlBlocks, NodeIdle>,
    /// the number of fences and barriers so far
    pub(super) fences: AtomicU64,
    /// the number of MPI_Win_complete of others that this process has waited for or still expects
    pub(super) completes: AtomicU64,
    /// queue nodes in use
    pub(super) nodes: UsedNodes,
    /// its right to take locks ahead of waiting ranks
    pub(super) overtaking: Overtaking,
    /// whether MPI_Win_free was called
    pub(super) ending: AtomicBool,
    pub(super) slot: Slot,
    /// its state for other nodes, if its ranks are on several nodes; dropped before `memory`
    pub(super) wide: Option<Box<WideWindow>>,
    pub(super) memory: Memory,
    /// a second mapping of the memory of this process, at the address that all processes have in
    /// common (`create::symmetric`)
    pub(super) symmetric: Option<Mapping>,
    /// small puts to targets whose memory the system copies
    pub(super) small_puts: WindowPuts,
    /// its accesses, if it checks for conflicts
    pub conflicts: Option<Conflicts>,
    /// the memory of this process that a created window exposes, unless it lies in the heap. It
    /// ends when no other process accesses it any more
    pub(super) own_range: Option<OwnRange>,
    /// the regions that this rank has attached, by their addresses
    pub(super) attached: Mutex<BTreeMap<u64, OwnRange>>,
}

/// The memory of a window.
pub(super) enum Memory {
    /// one range for all ranks (MPI_Win_allocate, MPI_Win_allocate_shared)
    Common(Common),
    /// memory that each rank had before (MPI_Win_create)
    Owned(Known<RankOnNode, HeapView>),
    /// memory that each rank attaches (MPI_Win_create_dynamic)
    Attached(Regions),
}

// SAFETY: `data` points into `memory`, which is accessed by copies and atomics only.
unsafe impl Send for LocalWindow {}
// SAFETY: as for `Send`; all other fields are atomic or locked.
unsafe impl Sync for LocalWindow {}

impl LocalWindow {
    /// Records the handle of a window over several nodes, and returns the records of its targets;
    /// null: the window is dynamic, or on one node.
    pub(super) fn wide_records(&self, handle: u32) -> *const Known<Rank, WideRecord> {
        match (&self.wide, &self.memory) {
            (None, _) | (_, Memory::Attached(_)) => ptr::null(),
            (Some(wide), _) => {
                // Relaxed: no other thread knows the window.
                wide.handle.store(handle, Ordering::Relaxed);
                ptr::from_ref(&wide.records)
            }
        }
    }

    /// Creates the window in `slot` of an arena, which this process has entered. `common`: the
    /// common memory of all ranks, if it has any. `wide`: its state for other nodes, if its ranks
    /// are on several nodes.
    pub fn new(
        arena: &Arc<Arena>,
        slot: Slot,
        flavor: Flavor,
        common: Option<Common>,
        threads: bool,
        wide: Option<WideWindow>,
    ) -> LocalWindow {
        let (mut rank, mut size, mut wire) = (arena.rank.on_only_node(), arena.size, None);
        if let Some(WideWindow { wide, .. }) = &wide {
            (rank, size, wire) = (wide.rank, wide.size, Some(wide.wire));
        }
        common.iter().for_each(Common::begin_use);
        let data = common.as_ref().map_or(core::ptr::null_mut(), Common::base);
        let memory = match (common, flavor) {
            (Some(common), _) => Memory::Common(common),
            (None, Flavor::Dynamic) => Memory::Attached(Regions::new(threads, wire)),
            (None, _) => Memory::Owned(Known::default()),
        };
        let small_puts = WindowPuts::new(threads, wide.is_some());
        let blocks = ControlBlocks::of(arena, slot);
        LocalWindow {
            rank,
            size,
            is_consecutive: false,
            data,
            words: CpuWords::new(blocks.clone(), NodeIdle::new(arena.clone())),
            blocks,
            fences: AtomicU64::new(0),
            completes: AtomicU64::new(0),
            nodes: UsedNodes::default(),
            overtaking: Overtaking::new(overtaking::TURN),
            ending: AtomicBool::new(false),
            slot,
            wide: wide.map(Box::new),
            memory,
            symmetric: None,
            small_puts,
            conflicts: None,
            own_range: None,
            attached: Mutex::default(),
        }
    }

    /// Lets the window check for conflicts, before any call can use it.
    pub(super) fn check_conflicts(&mut self) {
        self.conflicts = Some(Conflicts::default());
        self.small_puts = WindowPuts::watched(self.spans_nodes());
    }

    /// Takes the common memory out of a window that is freed, if it is kept.
    pub(super) fn take_kept(&mut self) -> Option<Common> {
        match &self.memory {
            Memory::Common(common) if common.keep().is_some() => {}
            _ => return None,
        }
        self.end_use();
        let memory = core::mem::replace(&mut self.memory, Memory::Owned(Known::default()));
        if let Memory::Common(common) = memory { Some(common) } else { None }
    }

    /// Ends the use of the common memory, before it is kept or given back.
    fn end_use(&self) {
        if let Memory::Common(common) = &self.memory {
            let (base, bytes) = common.end_use();
            Wire::opened().for_each(|wire| wire.deregister(base, bytes));
        }
    }

    /// Records that MPI_Win_free was called.
    pub(super) fn end(&self) {
        // Relaxed: for reports.
        self.ending.store(true, Ordering::Relaxed);
    }

    /// Returns whether MPI_Win_free was called.
    pub(super) fn is_ending(&self) -> bool {
        self.ending.load(Ordering::Relaxed)
    }

    /// Returns the arena that it is part of.
    pub fn arena(&self) -> &Arc<Arena> {
        self.blocks.arena()
    }

    /// Returns the library's own communicator of all ranks.
    #[inline]
    pub fn comm(&self) -> Comm {
        self.wide.as_ref().map_or(self.arena().comm, |part| part.wide.comm)
    }

    /// Returns the group of all ranks.
    pub fn group(&self) -> Group {
        self.wide.as_ref().map_or(self.arena().group, |part| part.wide.group)
    }

    /// Returns how many bytes all ranks of this node expose, and whether others reach all of them
    /// by load and store.
    pub fn exposed(&self) -> (u64, bool) {
        if matches!(self.memory, Memory::Attached(_)) {
            return (0, false);
        }
        let is_common = matches!(self.memory, Memory::Common(_));
        RankOnNode::all(self.arena().size).fold((0, true), |(bytes, mapped), rank| {
            let exposed = self.blocks.descriptor(rank).exposed;
            let maps_all = || Some(self.mapped(rank)?.maps(0, exposed));
            let reached = is_common || exposed == 0 || maps_all() == Some(true);
            (exposed.saturating_add(bytes), mapped && reached)
        })
    }

    /// Returns the name of the transport by which its ranks reach each other.
    pub fn transport(&self) -> &'static str {
        match (self.spans_nodes(), self.exposed()) {
            (true, _) => {
                self.many_nodes().map_or("", |many| many.part.wide.wire.kind().transport())
            }
            (false, (_, true)) => "shared memory",
            (false, (_, false)) => "process_vm",
        }
    }

    /// Returns the device by which this process reaches other nodes, if the window has any.
    pub fn way(&self) -> Option<String> {
        let way = self.many_nodes()?.part.wide.wire.way();
        (!way.is_empty()).then_some(way)
    }
}

impl Drop for LocalWindow {
    fn drop(&mut self) {
        self.end_use();
        self.arena().slots.leave(self.slot);
    }
}
