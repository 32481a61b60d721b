//! The window object: the state of a window that this process has, for use without a call of
//! another rank or of the host MPI. `registry` finds it, `create` makes and frees it, `address`
//! makes every bounds check of the library, `synchronise` has the calls that open and close epochs,
//! and `attributes` keeps the attributes of the program.

pub mod address;
pub mod attached;
mod complete_puts;
pub mod conflicts;
pub mod countdown;
pub mod create;
pub mod duplicate;
pub mod handles;
mod in_use;
pub mod label;
pub mod library_loads;
mod local;
pub mod lock_nodes;
pub mod notifications;
pub mod protocols;
pub mod quick_locks;
pub mod quick_window;
pub mod registry;
pub mod synchronise;
pub mod target;
pub mod target_counter;
pub mod waits;
pub mod wide;
mod window_puts;

pub use crate::mpi::Flavor;
pub use local::LocalWindow;
use local::Memory;

use crate::epoch::notification::{CounterOffsets, Table};
use crate::memory::own_ranges::OwnRange;
use crate::mpi::Handle;
use crate::mpi::attributes::Attributes;
use crate::mpi::hints::Hints;
use crate::mpi::transfer_attributes::TransferAttributes;
use crate::rank_numbers::Rank;
use crate::sync::{AtomicBool, AtomicU32, AtomicUsize, Ordering};
use core::any::Any;
use core::ffi::c_int;
use core::mem::offset_of;
use core::ops::Deref;
use in_use::InUse;
use parking_lot::Mutex;
use quick_window::{QuickWindow, WindowHead};
use std::collections::BTreeMap;

/// A window. Fast-path calls that move data read its head only.
#[repr(C)]
pub struct Window {
    /// the state that all calls use
    pub head: WindowHead,
    /// its implementation
    pub carrier: Carrier,
    /// the values of its predefined attributes
    pub facts: Facts,
    /// the error handler: a handle of the host MPI
    pub errhandler: AtomicUsize,
    /// its name (MPI_Win_set_name), bytes as given
    pub name: Mutex<Vec<u8>>,
    /// the hints that the user gave
    pub info: Mutex<Hints>,
    /// the attributes that the program has set
    pub attributes: Attributes,
    /// the attributes that all its transfers have
    pub defaults: TransferAttributes,
    /// the number of its duplicates
    pub duplicates: AtomicU32,
    /// the counters of notifications
    pub notifications: InUse<Notifications>,
    /// whether it is for several threads only because a library may have been loaded
    pub raised: AtomicBool,
}

/// The values of the predefined attributes (MPI-4.1 §12.2.6). Their addresses are valid as long as
/// the window exists.
pub struct Facts {
    /// MPI_WIN_BASE
    pub base: usize,
    /// MPI_WIN_SIZE, in bytes
    pub size: isize,
    /// MPI_WIN_DISP_UNIT, as Fortran gets it
    pub disp_unit: isize,
    /// MPI_WIN_DISP_UNIT, as C gets it: MPI_UNDEFINED if the unit does not fit an int
    pub disp_unit_in_c: c_int,
    /// MPI_WIN_CREATE_FLAVOR, as a number of the ABI
    pub create_flavor: c_int,
    /// MPI_WIN_MODEL, as a number of the ABI
    pub model: c_int,
    /// the flavor
    pub flavor: Flavor,
}

const _: () = assert!(offset_of!(Window, head) == 0);

impl Deref for Window {
    type Target = WindowHead;

    #[inline(always)]
    fn deref(&self) -> &WindowHead {
        &self.head
    }
}

impl QuickWindow {
    /// Returns the whole window.
    #[inline(always)]
    pub fn whole(self) -> &'static Window {
        // SAFETY: the tables of `quick_window` have windows, which begin with their head.
        unsafe { self.0.cast().as_ref() }
    }

    /// Returns the part that this process has.
    #[inline(always)]
    pub fn node(self) -> &'static LocalWindow {
        let node = match &self.whole().carrier {
            Carrier::Own(node) => Some(node),
            _ => None,
        };
        // SAFETY: the callers have it of `EPOCHS`, which has no other windows. A branch to a panic
        // would need a frame in each call.
        unsafe { node.unwrap_unchecked() }
    }
}

impl Window {
    /// Whether all its ranks are on this node, and the library implements it.
    #[inline]
    fn is_on_one_node(&self) -> bool {
        self.targets.size > 0
    }

    /// Returns the part of the window that this process has; `None` if the host MPI implements the
    /// window.
    #[inline]
    pub fn local(&self) -> Option<&LocalWindow> {
        self.local_or_host().ok()
    }

    /// Returns the part of the window that this process has, or the window of the host MPI that
    /// implements it.
    #[inline]
    pub fn local_or_host(&self) -> core::result::Result<&LocalWindow, &Delegated> {
        match &self.carrier {
            Carrier::Own(node) => Ok(node),
            Carrier::Duplicate(duplicate) => Ok(duplicate.node),
            Carrier::Host(delegated) => Err(delegated),
        }
    }

    /// Whether its communication calls do more than those of most windows: by default attributes,
    /// or because it is a duplicate.
    #[inline(always)]
    pub fn is_special(&self) -> bool {
        !self.defaults.is_none() || self.as_duplicate().is_some()
    }

    /// Returns what it has as a duplicate of another window.
    #[inline(always)]
    pub fn as_duplicate(&self) -> Option<&Duplicate> {
        match &self.carrier {
            Carrier::Duplicate(duplicate) => Some(duplicate),
            _ => None,
        }
    }

    /// Prepares for calls of several threads, from now on.
    pub fn several_threads(&self) {
        self.epochs.several_threads();
        let Some(node) = self.local() else { return };
        node.small_puts.several_threads();
        if let Memory::Attached(regions) = &node.memory {
            regions.several_threads();
        }
        if let Some(many) = node.many_nodes() {
            many.part.wide.wire.several_threads();
        }
    }
}

/// Libraries that may begin a session. Both functions are called under the lock of the registry.
impl Window {
    /// Prepares for calls of several threads, until [`Window::no_session_came`].
    fn session_may_come(&self) {
        if !self.epochs.has_threads() {
            // Relaxed: the lock orders it.
            self.raised.store(true, Ordering::Relaxed);
            self.several_threads();
        }
    }

    /// Prepares for calls of one thread at a time again, if the window was for one before. Objects
    /// that serve other nodes are not changed.
    fn no_session_came(&self) {
        // Relaxed: the lock orders it.
        if !self.raised.swap(false, Ordering::Relaxed) {
            return;
        }
        self.epochs.one_thread();
        let Some(node) = self.local() else { return };
        node.small_puts.one_thread();
        if let Memory::Attached(regions) = &node.memory {
            regions.one_thread();
        }
    }
}

/// The layer that implements a window.
#[allow(clippy::large_enum_variant)] // most windows are of the first kind
pub enum Carrier {
    /// libfompi
    Own(LocalWindow),
    /// libfompi, as another window over the same memory
    Duplicate(Duplicate),
    /// the host MPI
    Host(Delegated),
}

/// What a duplicate of a window has of its own ([`duplicate`]).
pub struct Duplicate {
    /// the window that has the memory, which may be a duplicate, too
    pub of: &'static Window,
    /// the part of it that this process has
    pub node: &'static LocalWindow,
    /// the memory of its targets, if it was made from handles: a [`duplicate::Memories`]
    memories: Option<Box<dyn Any + Send + Sync>>,
    /// the ranks with operations that may not be complete there, and their number so far
    sent: Mutex<BTreeMap<Rank, u64>>,
}

/// A window of the host MPI, under a handle of libfompi.
pub struct Delegated {
    /// its handle there
    pub native: Handle,
    /// the memory of this process that it is over
    pub _range: Option<OwnRange>,
}

/// The counters of a window that are in use ([`notifications`]).
pub struct Notifications {
    /// the table: a window of the library's own
    table: &'static Window,
    /// the layout of this rank's counters
    own: Table,
    /// where they are
    at: *mut u8,
    offsets: CounterOffsets,
    /// the number of times that this rank has polled a counter
    polls: AtomicU32,
    /// whether they are in use no longer
    ended: AtomicBool,
}
