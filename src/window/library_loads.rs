//! Libraries that are loaded while windows exist.
//!
//! One of them may be a GPU runtime, and buffers of later calls may be GPU memory. Fast-path calls
//! do not check for that, so they serve no window from the moment at which a library may be loaded
//! until a full call has found that it is not a GPU runtime (`memory::gpu`). Without a GPU runtime
//! a fast-path call has no cost.
//!
//! One of them may begin a session that raises the level of thread support (`mpi::level`). So
//! windows that exist lock their state from that moment on, until a full call has found that no
//! library names MPI_Session_init. Later windows lock theirs if one does.

use super::registry;
use crate::error::Result;
use crate::memory::gpu::{self, Presence};
use crate::mpi::{EntryName, Host};
use crate::number::Number;
pub use crate::sys::gpu::CopyDirection;
use crate::sys::gpu::{MemoryKind, Runtimes};
use crate::sys::page_bytes;
use crate::sys::segment::Mapping;

/// Prepares for a library that this thread is about to load.
pub fn may_load() {
    gpu_may_come();
    if Host::known(EntryName::Pmpi).is_some_and(Host::has_sessions) {
        registry::session_may_come();
    }
}

/// Withdraws all windows from fast-path transfers.
fn gpu_may_come() {
    gpu::may_come();
    registry::withdraw_transfers();
}

/// Whether a session may raise the level of thread support to MPI_THREAD_MULTIPLE. Otherwise
/// [`may_load`] comes first.
pub fn may_have_sessions(host: &Host) -> bool {
    host.has_sessions() && {
        gpu(); // notes it if the announced loads are over
        matches!(gpu::known(), Presence::Unsure) || host.may_have_sessions()
    }
}

/// The run-time libraries of GPUs, as calls with buffers use them.
#[derive(Clone, Copy)]
pub struct Gpu(&'static Runtimes);

/// Returns the libraries, if one is loaded.
#[inline]
pub fn gpu() -> Option<Gpu> {
    match gpu::known() {
        Presence::Absent | Presence::Watched => None,
        Presence::Present(runtimes) => Some(Gpu(runtimes)),
        Presence::Unsure => look(),
    }
}

/// A transfer that takes the way of `transfer::staged`: with the libraries of a GPU, or because a
/// window of this process checks for conflicts, has attributes or is a duplicate.
#[derive(Clone, Copy)]
pub struct Diverted(pub Option<Gpu>);

/// Returns whether a transfer takes that way.
#[inline]
pub fn diverted() -> Option<Diverted> {
    match gpu::known() {
        Presence::Absent => None,
        Presence::Watched => Some(Diverted(None)),
        Presence::Present(runtimes) => Some(Diverted(Some(Gpu(runtimes)))),
        Presence::Unsure => look_for_diversion(),
    }
}

#[cold]
fn look_for_diversion() -> Option<Diverted> {
    let found = look();
    let is_watched = gpu::is_watched();
    (found.is_some() || is_watched).then_some(Diverted(found))
}

#[cold]
fn look() -> Option<Gpu> {
    let times = registry::times_raised();
    let found = gpu::search();
    if gpu::are_absent() {
        registry::serve_transfers_again();
    }
    // The loads that were announced until then are over, or it is not known.
    let are_over = times > 0 && !matches!(gpu::known(), Presence::Unsure);
    if are_over && Host::known(EntryName::Pmpi).is_some_and(|host| !host.may_have_sessions()) {
        registry::no_session_came(times);
    }
    found.map(Gpu)
}

/// Returns whether the host MPI has to make a window, as [`gpu::needs_mpi`]. Finds libraries that
/// were loaded by a function other than dlopen, too.
pub fn needs_mpi(memory: Option<(u64, u64)>) -> bool {
    if gpu::is_loaded() && gpu::are_absent() {
        gpu_may_come();
    }
    gpu::needs_mpi(memory)
}

impl Gpu {
    /// Whether a byte is memory that loads and stores of this process may not reach.
    pub fn is_device(self, address: u64) -> bool {
        self.0.kind(address) == MemoryKind::Device
    }

    /// Copies between `here`, memory of the host, and `there`, memory of a GPU.
    ///
    /// # Safety
    /// `bytes` bytes on both sides may be read or written, as the direction needs it.
    pub unsafe fn copy(
        self,
        way: CopyDirection,
        here: *mut u8,
        there: *mut u8,
        bytes: u64,
    ) -> Result<()> {
        let (here, there) = (here.expose_provenance(), there.expose_provenance());
        // SAFETY: guaranteed by the caller.
        unsafe { self.0.copy(way, here.to_u64(), there.to_u64(), bytes.to_usize()) }
    }

    /// Takes memory of the host for a copy of `bytes` bytes at an address. The copy begins at the
    /// same offset in its page, so that elements keep their alignment.
    pub fn room(self, address: *const u8, bytes: u64) -> Result<HostRoom> {
        let offset = address.addr().to_u64() % page_bytes();
        let pages = Mapping::private((offset + bytes).to_usize())?;
        Ok(HostRoom { pages, offset: offset.to_usize() })
    }
}

/// Memory of the host for a copy.
pub struct HostRoom {
    pages: Mapping,
    /// where the copy begins
    offset: usize,
}

impl HostRoom {
    /// Returns the address of the first byte of the copy.
    pub fn begin(&self) -> *mut u8 {
        self.pages.base().wrapping_add(self.offset)
    }
}

/// The kind of the page that was queried last: a page has one kind.
pub struct PageKinds {
    gpu: Gpu,
    page: u64,
    is_device: bool,
}

impl PageKinds {
    /// Starts without a page.
    pub fn new(gpu: Gpu) -> PageKinds {
        PageKinds { gpu, page: u64::MAX, is_device: false }
    }

    /// Does the same as [`Gpu::is_device`].
    pub fn is_device(&mut self, address: u64) -> bool {
        if self.page != address / page_bytes() {
            (self.page, self.is_device) = (address / page_bytes(), self.gpu.is_device(address));
        }
        self.is_device
    }
}
