//! Memory of the window that is not mapped here, because it belongs to another process of the node
//! or to another node. Bytes are transferred in runs, many at once, by the road that reaches them.

use super::coalesce::Coalesce;
use crate::error::Result;
use crate::fabric::Way;
use crate::fabric::cma::{Batch, Process};
use crate::fabric::verbs::Peer;
use crate::window::address::Spot;
use crate::window::wide::address::Distant;

/// The owner of memory that is not mapped here.
#[derive(Clone, Copy)]
pub enum Unmapped<'a> {
    /// a process of this node
    Process(Process<'a>),
    /// memory that the device reaches; the address in it is not used
    Distant(Distant<'a>),
}

/// The way in which this process reaches a spot.
#[derive(Clone, Copy)]
pub enum Reached<'a> {
    /// mapped here
    Here(*mut u8),
    /// in the memory of this owner, at this address there
    There(Unmapped<'a>, u64),
}

impl<'a> Reached<'a> {
    /// Returns the way in which this process reaches `spot`.
    #[inline]
    pub fn of(spot: Spot<'a>) -> Reached<'a> {
        match spot {
            Spot::Mapped(at) | Spot::Own(at) => Reached::Here(at),
            Spot::Foreign(process, at) => Reached::There(Unmapped::Process(process), at),
            Spot::Distant(distant) => Reached::There(Unmapped::Distant(distant), distant.at.at),
        }
    }
}

impl<'a> Unmapped<'a> {
    /// Begins a transfer of many runs.
    #[inline]
    pub fn runs(self, way: Way) -> Runs<'a> {
        match self {
            Unmapped::Process(process) => Runs::Process(Batch::new(process, way)),
            Unmapped::Distant(distant) => Runs::Distant(distant.peer, Coalesce::new(distant, way)),
        }
    }
}

/// A transfer of many runs that is under way.
#[must_use = "runs move when `finish` is called"]
#[allow(clippy::large_enum_variant)] // it lives on the stack, for one call
pub enum Runs<'a> {
    /// with a process of this node
    Process(Batch<'a>),
    /// by the device
    Distant(&'a Peer, Coalesce<'a>),
}

impl Runs<'_> {
    /// Adds a run of `bytes` bytes between `here` and the address `there`.
    ///
    /// # Safety
    /// Until `finish` returns, and on a distant road until a flush, the bytes at `here` may be read
    /// or written, and those at the target are inside of the window.
    #[inline]
    pub unsafe fn push(&mut self, here: *mut u8, there: u64, bytes: u64) {
        // SAFETY: the caller's promise.
        unsafe {
            match self {
                Runs::Process(batch) => batch.push(here, there, bytes),
                Runs::Distant(_, runs) => runs.push(here, there, bytes),
            }
        }
    }

    /// Sends all runs that are not sent yet. On a distant road they are done after a flush.
    ///
    /// # Safety
    /// As for `push`.
    pub unsafe fn finish(self) -> Result<()> {
        match self {
            // SAFETY: the caller's promise.
            Runs::Process(mut batch) => unsafe { batch.finish() },
            // SAFETY: likewise.
            Runs::Distant(_, runs) => unsafe { runs.finish() },
        }
    }

    /// Sends all runs that are not sent yet, and waits until the buffers of this process may be
    /// used again.
    ///
    /// # Safety
    /// As for `push`.
    pub unsafe fn finish_here(self) -> Result<()> {
        match self {
            // SAFETY: the caller's promise.
            Runs::Process(mut batch) => unsafe { batch.finish() },
            Runs::Distant(peer, runs) => {
                // SAFETY: likewise.
                let sent = unsafe { runs.finish() };
                // Also after an error, because requests that are under way use the caller's
                // buffers.
                let came = peer.flush_local();
                sent.and(came)
            }
        }
    }
}

/// Begins a transfer of contiguous bytes.
///
/// # Safety
/// Until a flush, the bytes at `here` may be read or written; those of the target are inside of the
/// window.
#[inline]
pub unsafe fn transfer(way: Way, distant: Distant<'_>, here: *mut u8, bytes: u64) -> Result<()> {
    // SAFETY: the caller's promise.
    unsafe {
        match way {
            Way::Put => distant.peer.put(distant.at, here, bytes),
            Way::Get => distant.peer.get(here, distant.at, bytes),
        }
    }
}
