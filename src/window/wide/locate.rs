//! Addresses of bytes in windows over several nodes. The checks are those of windows on one node
//! (`window::address`). A target on this node is reached by load and store, any other target by the
//! device.

use super::WideWindow;
use super::targets::{Data, WideTarget};
use crate::error::Result;
use crate::fabric::location::{Distant, Location, Unmapped};
use crate::rank_numbers::Rank;
use crate::window::address::Reach;
use crate::window::{LocalWindow, Memory};

/// The access to memory that a call needs.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum By {
    /// the fastest access of this process: load and store on its own node
    Own,
    /// the access that all ranks can use, so that their operations are atomic with each other
    All,
}

/// A location in the memory of a rank of another node, in a window that is not dynamic.
pub struct Elsewhere<'a> {
    /// the location
    pub at: Distant<'a>,
    part: &'a WideWindow,
    target: &'a WideTarget,
}

impl Elsewhere<'_> {
    /// Records an unconfirmed accumulate on a single element there, which takes no lock:
    /// [`WideWindow::note_unsettled`].
    #[inline]
    pub fn note_unsettled(&self) {
        self.part.note_unsettled(self.target);
    }
}

impl LocalWindow {
    /// Returns the location of `reach` at displacement `disp` of a rank of another node, or `None`
    /// for ranks of this node and for dynamic windows.
    #[inline(always)]
    pub fn elsewhere(&self, rank: Rank, disp: i64, reach: Reach) -> Result<Option<Elsewhere<'_>>> {
        let Some(part) = self.wide.as_deref() else { return Ok(None) };
        if let Memory::Attached(_) = &self.memory {
            return Ok(None);
        }
        let target = part.target(self, rank)?;
        if target.member.node == part.wide.node {
            return Ok(None);
        }
        let data = part.data(self, target)?;
        let first = data.exposed().find(rank, disp, reach)?;
        Ok(Some(Elsewhere { at: distant(target, data, first), part, target }))
    }

    /// Implements [`LocalWindow::at`] for a window over several nodes.
    pub(in crate::window) fn at_wide<R>(
        &self,
        part: &WideWindow,
        (rank, disp, reach): (Rank, i64, Reach),
        by: By,
        work: impl FnOnce(Location<'_>) -> Result<R>,
    ) -> Result<R> {
        if let Memory::Attached(regions) = &self.memory {
            return self.at_attached(regions, (rank, disp, reach), by, work);
        }
        let target = part.target(self, rank)?;
        let data = part.data(self, target)?;
        let first = data.exposed().find(rank, disp, reach)?;
        if target.member.node == part.wide.node && (by == By::Own || part.wide.coherent) {
            match self.location(target.member.index, data.exposed(), (first, reach.bytes))? {
                // Atomic instructions do not reach this memory: the common access is by the device.
                Location::Own(_) if by == By::All => {}
                Location::Unmapped(unmapped) if by == By::All => unmapped.send_gathered(),
                location => return work(location),
            }
        }
        work(Location::Unmapped(Unmapped::Distant(distant(target, data, first))))
    }
}

#[inline]
fn distant<'a>(target: &'a WideTarget, data: &Data, first: u64) -> Distant<'a> {
    Distant { peer: &target.peer, at: data.at.offset(first.cast_signed()) }
}
