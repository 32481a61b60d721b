//! Completion and order of what this process has sent to a rank, in any epoch or in none, and
//! completion by all ranks.

use crate::error::Result;
use crate::fabric::remote::Bytes;
use crate::rank_numbers::Rank;
use crate::sync::full_fence;
use crate::window::protocols::{Protocols, on_protocols};
use crate::window::{LocalWindow, Window, synchronise};

/// Waits until the buffers of all operations of this process on a rank may be reused, and results
/// have arrived.
pub fn complete_here(node: &LocalWindow, target: Rank) -> Result<()> {
    node.flush_local(target)?;
    node.have_arrived(Some(target));
    node.take_errors()
}

/// Orders later operations of this process on a rank behind earlier ones of the window. Waits where
/// a rank of this node is reached in two ways, and for accumulates on single words that are not
/// confirmed: they may wait for a lock at the target.
pub fn order(node: &LocalWindow, target: Rank) -> Result<()> {
    // Small puts to a rank of this node leave ahead of any other access to it.
    full_fence();
    node.are_ordered(Some(target));
    let Some(part) = node.wide.as_deref() else { return Ok(()) };
    let Some(known) = part.known_target(target) else { return Ok(()) };
    match part.near_index(target) {
        Some(_) => known.peer.flush(),
        None => {
            on_protocols!(node, |protocols| protocols.settle(target))?;
            known.peer.order();
            Ok(())
        }
    }
}

/// Does [`order`] for each rank that this process has accessed.
pub fn order_all(window: &Window, node: &LocalWindow) -> Result<()> {
    node.send_kept_puts(window)?;
    full_fence();
    node.are_ordered(None);
    match node.wide.as_deref() {
        Some(part) => part.contacted_ranks().into_iter().try_for_each(|rank| order(node, rank)),
        None => Ok(()),
    }
}

/// Completes the operations of this process at all ranks, and waits until all ranks have called
/// this. The epochs of the ranks stay as they are. Waits for the ranks also after an error.
pub fn complete_collectively(window: &Window, node: &LocalWindow) -> Result<()> {
    let completed = synchronise::complete_all(window, node);
    completed.and(synchronise::fence_all(node, true))
}
