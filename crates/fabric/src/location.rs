//! Location of checked bytes of a window, and the transport by which this process accesses them.
//! `window::address` makes the checks; `transfer` copies between mapped memory.

use super::Way;
use super::cma::{Batch, Gathering};
use super::net::Peer;
use super::remote::{Bytes, Network as _, Remote, Runs as _};
use crate::error::Result;
use crate::number::Offset;

/// The location of bytes of a window, and how this process and the others access them.
#[derive(Clone, Copy)]
pub enum Location<'a> {
    /// mapped by all ranks: loads, stores and atomic instructions
    Mapped(*mut u8),
    /// memory of this process that the others have not mapped: loads and stores, but the atomic
    /// instructions of this process are not atomic for the others
    Own(*mut u8),
    /// memory of another process that is not mapped here
    Unmapped(Unmapped<'a>),
}

/// The location of bytes in another process that are not mapped here.
#[derive(Clone, Copy)]
pub enum Unmapped<'a> {
    /// in a process of this node, at an address of that process: the system copies them
    Process(Gathering<'a>, u64),
    /// in a process to which the transport between nodes leads
    Distant(Distant<'a>),
}

/// The location of bytes in a process that the transport between nodes reaches.
#[derive(Clone, Copy)]
pub struct Distant<'a> {
    /// the process that has exposed them
    pub peer: &'a Peer,
    /// their address
    pub at: Remote,
}

impl Distant<'_> {
    /// Returns the location `by` bytes further on.
    #[inline]
    pub fn offset(self, by: i64) -> Self {
        Distant { at: self.at.offset(by), ..self }
    }
}

impl Location<'_> {
    /// Returns the location `by` bytes further on. The caller stays within the checked bytes, or
    /// comes back there.
    #[inline]
    pub fn offset(self, by: i64) -> Self {
        match self {
            Location::Mapped(at) => Location::Mapped(at.wrapping_offset(by.to_isize())),
            Location::Own(at) => Location::Own(at.wrapping_offset(by.to_isize())),
            Location::Unmapped(unmapped) => Location::Unmapped(unmapped.offset(by)),
        }
    }
}

impl<'a> Unmapped<'a> {
    /// Returns the location `by` bytes further on.
    #[inline]
    pub fn offset(self, by: i64) -> Self {
        match self {
            Unmapped::Process(process, at) => {
                Unmapped::Process(process, at.wrapping_add_signed(by))
            }
            Unmapped::Distant(distant) => Unmapped::Distant(distant.offset(by)),
        }
    }

    /// Returns the address in the other process.
    #[inline]
    pub fn address(self) -> u64 {
        match self {
            Unmapped::Process(_, at) => at,
            Unmapped::Distant(distant) => distant.at.at,
        }
    }

    /// Sends the gathered puts, before an access by another transport.
    pub fn send_gathered(self) {
        match self {
            Unmapped::Process(process, _) => process.send(),
            Unmapped::Distant(distant) => distant.peer.send_gathered(),
        }
    }

    /// Returns an empty transfer of many runs, with bytes near this location.
    #[inline]
    pub fn runs(self, way: Way) -> Runs<'a> {
        match self {
            Unmapped::Process(process, _) => Runs::Process(process.runs(way)),
            Unmapped::Distant(Distant { peer, at }) => Runs::Distant(peer, peer.runs(at, way)),
        }
    }
}

/// A transfer of many runs.
#[must_use = "runs move when `finish` is called"]
#[allow(clippy::large_enum_variant)] // it lives on the stack, for one call
pub enum Runs<'a> {
    /// with a process of this node
    Process(Batch<'a>),
    /// with a distant process
    Distant(&'a Peer, <Peer as Bytes>::Runs<'a>),
}

impl Runs<'_> {
    /// Adds a run of `bytes` bytes between `here` and the address `there` of the other process.
    ///
    /// # Safety
    /// As for [`super::remote::Runs::push`].
    #[inline]
    pub unsafe fn push(&mut self, here: *mut u8, there: u64, bytes: u64) {
        // SAFETY: guaranteed by the caller.
        unsafe {
            match self {
                Runs::Process(batch) => batch.push(here, there, bytes),
                Runs::Distant(_, runs) => runs.push(here, there, bytes),
            }
        }
    }

    /// Sends the remaining runs. With a distant process they are done after a flush.
    ///
    /// # Safety
    /// As for `push`.
    pub unsafe fn finish(self) -> Result<()> {
        match self {
            // SAFETY: guaranteed by the caller.
            Runs::Process(mut batch) => unsafe { Batch::finish(&mut batch) },
            // SAFETY: guaranteed by the caller.
            Runs::Distant(_, runs) => unsafe { runs.finish() },
        }
    }

    /// Sends the remaining runs, and waits until the buffers of this process may be used again.
    ///
    /// # Safety
    /// As for `push`.
    pub unsafe fn finish_here(self) -> Result<()> {
        match self {
            // SAFETY: guaranteed by the caller.
            Runs::Process(mut batch) => unsafe { Batch::finish(&mut batch) },
            Runs::Distant(peer, runs) => {
                // SAFETY: guaranteed by the caller.
                let sent = unsafe { runs.finish() };
                // Also after an error, because runs under way use the caller's buffers.
                let arrived = Bytes::flush_local(peer);
                sent.and(arrived)
            }
        }
    }
}
