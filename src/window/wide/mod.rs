//! Windows over several nodes: what a window has in addition to the wide arena of its communicator
//! ([`WideArena`]). Per node and window, it has a table of all nodes (32 bytes each). A process
//! keeps nothing per rank, except for the targets that it has contacted ([`targets`]).

mod asked_locks;
pub mod exchange;
mod kept_puts;
pub mod many_nodes;
pub mod post_lists;
pub mod target_records;
pub mod targets;
mod transfers;
mod unconfirmed_accumulates;
pub mod word_locations;

use super::quick_window::WideRecord;
use crate::arena::descriptor::Descriptor;
use crate::arena::wide::notes::Notes;
use crate::arena::wide::shared::Shared;
use crate::arena::wide::{Member, WideArena};
use crate::epoch::exposure::{Posted, Started};
use crate::epoch::fence::{DIRECT_NODES_MAX, OpeningFence};
use crate::epoch::lock::asked::AskedLocks;
use crate::epoch::lock::unconfirmed_targets::UnconfirmedTargets;
use crate::fabric::net::Exposed;
use crate::fabric::remote::Remote;
use crate::number::Number;
use crate::rank_numbers::{NodeNumber, Rank};
use crate::sync::{AtomicU32, AtomicU64};
use crate::util::known::Known;
use kept_puts::KeptPuts;
use parking_lot::Mutex;
use post_lists::Areas;
use std::sync::Arc;

/// The part of a window that only windows over several nodes have.
pub struct WideWindow {
    /// the wide arena of the window's communicator
    pub wide: Arc<WideArena>,
    /// the window's handle, once it has one
    pub handle: AtomicU32,
    /// the descriptors of ranks of other nodes that ranks of this node have read; declared before
    /// `places`, whose table precedes the root of these notes, and so dropped before it
    found: Notes<Descriptor>,
    /// the addresses of each node's memory of the window
    places: Shared<Place>,
    /// the memory that this process has registered for the window
    _exposed: Vec<Exposed>,
    /// what this process knows of the ranks that it has accessed or held; a record is made at the
    /// first access
    pub(super) records: Known<Rank, WideRecord>,
    /// by node, the last put to it behind which this rank has sent a mark
    marked: [AtomicU64; DIRECT_NODES_MAX as usize],
    /// the last fence, if it has not waited for the other ranks
    opening: OpeningFence,
    /// the areas of this rank's long lists of posts
    areas: Areas,
    /// the posts of this rank, for its exposure epochs
    pub posted: Mutex<Posted>,
    /// the posts that this rank has used up in its access epochs
    pub started: Mutex<Started>,
    /// unconfirmed accumulates of this rank
    unconfirmed: UnconfirmedTargets,
    /// locks that are taken at their first use
    asked: AskedLocks<KeptPuts>,
}

/// The addresses by which the device reaches a node's memory of a window.
#[repr(C)]
#[derive(Clone, Copy, Default)]
struct Place {
    /// the control blocks of its ranks
    blocks: Remote,
    /// the memory of an allocated window; of the first node, in a dynamic window: the secret of the
    /// window's memory handles, as `descriptor` has it
    data: Remote,
}

impl WideWindow {
    /// Returns the addresses of a node's memory of the window.
    fn place(&self, node: NodeNumber) -> Place {
        self.places.at(node.0)
    }

    /// Returns the secret of the memory handles of a dynamic window.
    pub(super) fn secret_of_handles(&self) -> Remote {
        self.place(NodeNumber(0)).data
    }

    /// Returns the address at which ranks of other nodes find the control words of a rank.
    fn block(&self, member: Member) -> Remote {
        let stride = self.wide.info(member.node).stride;
        let at = self.place(member.node).blocks;
        at.offset((member.index.0.to_u64() * stride).cast_signed())
    }
}
