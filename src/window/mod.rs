//! The object: a window, and all that is known of it without asking anybody. `registry` finds it,
//! `create` makes and frees it, `address` is where every bounds check of the library lives,
//! `synchronise` holds the calls that open and close epochs, `attributes` what a program keeps with
//! windows.

pub mod address;
pub mod arena;
pub mod attached;
pub mod attributes;
pub mod blocks;
pub mod common;
pub mod create;
pub mod idle;
pub mod info;
pub mod nodes;
pub mod regions;
pub mod registry;
pub mod report;
pub mod synchronise;
pub mod waits;
pub mod wide;

use crate::epoch::state::Epochs;
use crate::fabric::shm::words::CpuWords;
use crate::memory::View;
use crate::mpi::Handle;
use crate::mpi::comm::{Comm, Group};
use crate::sync::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use crate::util::known::Known;
use arena::Arena;
use attributes::Attributes;
use blocks::Blocks;
use common::Common;
use core::ffi::c_int;
use idle::NodeIdle;
use parking_lot::Mutex;
use regions::Regions;
use std::sync::Arc;
use wide::WideWindow;

/// How a window came to be (MPI-4.1 §12.2).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Flavor {
    /// MPI_Win_create
    Create,
    /// MPI_Win_allocate
    Allocate,
    /// MPI_Win_allocate_shared
    Shared,
    /// MPI_Win_create_dynamic
    Dynamic,
}

impl Flavor {
    /// The call that makes it.
    pub fn call(self) -> &'static str {
        match self {
            Flavor::Create => "MPI_Win_create",
            Flavor::Allocate => "MPI_Win_allocate",
            Flavor::Shared => "MPI_Win_allocate_shared",
            Flavor::Dynamic => "MPI_Win_create_dynamic",
        }
    }
}

/// A window.
pub struct Window {
    /// its handle, see `registry`
    pub handle: u32,
    /// the epochs that this process is in
    pub epochs: Epochs,
    /// who carries it out
    pub carrier: Carrier,
    /// what its attributes say
    pub facts: Facts,
    /// the error handler: a handle of the MPI underneath
    pub errhandler: AtomicUsize,
    /// its name (MPI_Win_set_name), bytes as given
    pub name: Mutex<Vec<u8>>,
    /// the hints that the user gave
    pub info: Mutex<info::Hints>,
    /// what the program keeps with it
    pub attributes: Attributes,
}

/// The predefined attributes (MPI-4.1 §12.2.6), at addresses that last as long as the window.
pub struct Facts {
    /// MPI_WIN_BASE
    pub base: usize,
    /// MPI_WIN_SIZE, in bytes
    pub size: isize,
    /// MPI_WIN_DISP_UNIT, as Fortran gets it
    pub disp_unit: isize,
    /// the same in C: where a unit is no int, what MPI_Win_shared_query says then
    pub disp_unit_in_c: c_int,
    /// MPI_WIN_CREATE_FLAVOR, as a number of the ABI
    pub create_flavor: c_int,
    /// MPI_WIN_MODEL, as a number of the ABI
    pub model: c_int,
    /// the flavor
    pub flavor: Flavor,
}

impl Window {
    /// From now on several threads of this process may call at once.
    pub fn several_threads(&self) {
        self.epochs.several_threads();
        if let Carrier::Node(node) | Carrier::Wide(node) = &self.carrier
            && let Memory::Attached(regions) = &node.memory
        {
            regions.several_threads();
        }
    }
}

/// Who carries a window out.
pub enum Carrier {
    /// this library, in memory that the ranks share
    Node(LocalWindow),
    /// this library, over several nodes
    Wide(LocalWindow),
    /// the MPI underneath
    Host(Delegated),
}

/// A window of the MPI underneath, under a handle of ours.
pub struct Delegated {
    /// its handle there
    pub native: Handle,
}

/// A window that this library carries out.
pub struct LocalWindow {
    /// this process, in the window
    pub rank: u32,
    /// number of processes of the window
    pub size: u32,
    /// where the common memory of all ranks begins, if there is any
    data: *mut u8,
    /// its control blocks
    pub blocks: Blocks,
    /// the control words in them, as protocols use them
    pub words: CpuWords<Blocks, NodeIdle>,
    /// how many fences and barriers there were
    fences: AtomicU64,
    /// how many MPI_Win_complete of others this process has waited for or still expects
    completes: AtomicU64,
    /// queue nodes in use
    nodes: nodes::Used,
    /// whether MPI_Win_free was called
    ending: AtomicBool,
    slot: u32,
    /// what it has beside this node, if its ranks are on several; goes before `memory`
    pub wide: Option<Box<WideWindow>>,
    memory: Memory,
}

/// The memory of a window.
enum Memory {
    /// one range for all ranks (MPI_Win_allocate, MPI_Win_allocate_shared)
    Common(Common),
    /// what each rank had (MPI_Win_create)
    Owned(Known<View>),
    /// what each rank attaches (MPI_Win_create_dynamic)
    Attached(Regions),
}

// SAFETY: `data` points into `memory`; what is there is reached by copies and atomics only.
unsafe impl Send for LocalWindow {}
// SAFETY: likewise; all else is atomic or locked.
unsafe impl Sync for LocalWindow {}

impl LocalWindow {
    /// The window in `slot` of an arena, which this process has entered; with the common memory of
    /// all ranks if it has any, and what it has beside this node if its ranks are on several.
    pub fn new(
        arena: &Arc<Arena>,
        slot: u32,
        flavor: Flavor,
        common: Option<Common>,
        threads: bool,
        wide: Option<WideWindow>,
    ) -> LocalWindow {
        let (mut rank, mut size, mut nic) = (arena.rank, arena.size, None);
        if let Some(WideWindow { wide, .. }) = &wide {
            (rank, size, nic) = (wide.rank, wide.size, Some(wide.nic));
        }
        let data = common.as_ref().map_or(core::ptr::null_mut(), Common::base);
        let memory = match (common, flavor) {
            (Some(common), _) => Memory::Common(common),
            (None, Flavor::Dynamic) => Memory::Attached(Regions::new(threads, nic)),
            (None, _) => Memory::Owned(Known::default()),
        };
        let blocks = arena.blocks(slot);
        LocalWindow {
            rank,
            size,
            data,
            words: CpuWords::new(blocks.clone(), NodeIdle::new(arena.clone())),
            blocks,
            fences: AtomicU64::new(0),
            completes: AtomicU64::new(0),
            nodes: nodes::Used::default(),
            ending: AtomicBool::new(false),
            slot,
            wide: wide.map(Box::new),
            memory,
        }
    }

    /// MPI_Win_free was called.
    fn end(&self) {
        // Relaxed: for reports.
        self.ending.store(true, Ordering::Relaxed);
    }

    /// Whether MPI_Win_free was called.
    fn is_ending(&self) -> bool {
        self.ending.load(Ordering::Relaxed)
    }

    /// The arena that it is part of.
    pub fn arena(&self) -> &Arc<Arena> {
        self.blocks.arena()
    }

    /// A communicator of all ranks, for the library.
    #[inline]
    pub fn comm(&self) -> Comm {
        self.wide.as_ref().map_or(self.arena().comm, |part| part.wide.comm)
    }

    /// Its group.
    pub fn group(&self) -> Group {
        self.wide.as_ref().map_or(self.arena().group, |part| part.wide.group)
    }

    /// Bytes that all ranks of this node expose, and whether others reach all of them by load and
    /// store.
    pub fn exposed(&self) -> (u64, bool) {
        match &self.memory {
            Memory::Common(common) => (common.bytes(), true),
            Memory::Attached(_) => (0, false),
            Memory::Owned(_) => (0..self.arena().size).fold((0, true), |(bytes, mapped), rank| {
                let exposed = self.blocks.descriptor(rank);
                let reached = exposed.exposed == 0 || exposed.is_in_heap();
                (exposed.exposed.saturating_add(bytes), mapped && reached)
            }),
        }
    }
}

impl Drop for LocalWindow {
    fn drop(&mut self) {
        self.arena().slots.leave(self.slot);
    }
}

/// Runs a protocol on the control words that all ranks of a window have in common.
macro_rules! on_words {
    ($node:expr, |$words:ident| $protocol:expr) => {
        match &$node.wide {
            None => {
                let $words = &$node.words;
                $protocol
            }
            Some(part) => {
                let $words = &part.far($node);
                $protocol
            }
        }
    };
}
pub(crate) use on_words;
