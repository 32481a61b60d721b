//! Addresses of bytes in windows over several nodes. The checks are those of windows on one node
//! (`window::address`). A target on this node is reached by load and store, any other target by the
//! device.

use super::WideWindow;
use super::targets::{Data, WideRecord, WideTarget};
use crate::error::Result;
use crate::fabric::location::{Distant, Location, Unmapped};
use crate::rank_numbers::Rank;
use crate::window::LocalWindow;
use crate::window::address::{By, Reach};

impl WideWindow {
    /// Returns the location of `reach` at displacement `disp` of a rank of another node, in a
    /// window that is not dynamic; `None` for a rank of this node.
    #[inline(always)]
    pub(in crate::window) fn elsewhere<'a>(
        &self,
        node: &LocalWindow,
        (rank, record): (Rank, &'a WideRecord),
        (disp, reach): (i64, Reach),
    ) -> Result<Option<Location<'a>>> {
        let target = self.target_of(node, (rank, record))?;
        if target.member.node == self.wide.node {
            return Ok(None);
        }
        let data = self.data(node, target)?;
        let first = data.exposed().find(rank, disp, reach)?;
        Ok(Some(distant(target, data, first)))
    }

    /// Returns the location of `reach` at displacement `disp` of a rank of this node, in a window
    /// that is not dynamic.
    pub(in crate::window) fn locate<'a>(
        &self,
        node: &'a LocalWindow,
        (rank, record): (Rank, &'a WideRecord),
        (disp, reach): (i64, Reach),
        by: By,
    ) -> Result<Location<'a>> {
        let target = self.target_of(node, (rank, record))?;
        let data = self.data(node, target)?;
        let first = data.exposed().find(rank, disp, reach)?;
        if by == By::Own || self.wide.coherent {
            match node.location(target.member.index, data.exposed(), (first, reach.bytes))? {
                // Atomic instructions do not reach this memory: the common access is by the device.
                Location::Own(_) if by == By::All => {}
                Location::Unmapped(unmapped) if by == By::All => unmapped.send_gathered(),
                location => return Ok(location),
            }
        }
        Ok(distant(target, data, first))
    }
}

#[inline(always)]
fn distant<'a>(target: &'a WideTarget, data: &Data, first: u64) -> Location<'a> {
    let at = data.at.offset(first.cast_signed());
    Location::Unmapped(Unmapped::Distant(Distant { peer: &target.peer, at }))
}
