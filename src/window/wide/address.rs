//! Where bytes of a window over many nodes are: by the same checks as on one node
//! (`window::address`), for targets of the own node by load and store, for others by the device.

use super::Part;
use super::targets::{Data, Target};
use crate::error::Result;
use crate::fabric::verbs::{Peer, Remote};
use crate::window::address::{Reach, Spot};
use crate::window::{Memory, Node};

/// Memory of another process, as the device reaches it.
#[derive(Clone, Copy)]
pub struct Distant<'a> {
    /// who has it
    pub peer: &'a Peer,
    /// where it is
    pub at: Remote,
}

impl Distant<'_> {
    /// So many bytes further.
    #[inline]
    pub fn offset(self, by: i64) -> Self {
        Distant { at: self.at.offset(by), ..self }
    }
}

/// By which way a place is wanted.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum By {
    /// that which this process has: load and store on the own node
    Own,
    /// that which all ranks have in common: where they agree on what is atomic
    All,
}

impl Node {
    /// [`Node::at`] of a window over many nodes.
    pub(in crate::window) fn at_wide<R>(
        &self,
        part: &Part,
        (rank, disp, reach): (u32, i64, Reach),
        by: By,
        work: impl FnOnce(Spot<'_>) -> Result<R>,
    ) -> Result<R> {
        if let Memory::Attached(regions) = &self.memory {
            return self.at_attached(regions, (rank, disp, reach), by, work);
        }
        let target = part.target(self, rank)?;
        let data = part.data(self, target)?;
        let first = data.exposed().find(rank, disp, reach)?;
        if target.member.node == part.wide.node && (by == By::Own || part.wide.coherent) {
            match self.spot(target.member.index, data.exposed(), first)? {
                // What cannot be reached by atomic instructions has the device in common.
                Spot::Own(_) | Spot::Foreign(..) if by == By::All => {}
                spot => return work(spot),
            }
        }
        work(distant(target, data, first))
    }
}

fn distant<'a>(target: &'a Target, data: &Data, first: u64) -> Spot<'a> {
    Spot::Distant(Distant { peer: &target.peer, at: data.at.offset(first as i64) })
}
