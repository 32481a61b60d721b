//! Completion and order of what this process has sent to a rank, in any epoch or in none.

use crate::error::Result;
use crate::fabric::Words;
use crate::fabric::remote::Bytes;
use crate::rank_numbers::Rank;
use crate::sync::full_fence;
use crate::window::protocols::{Protocols, on_protocols};
use crate::window::{LocalWindow, Window, synchronise};

/// Waits until all operations of this process on a rank are done there, as MPI_Win_flush, whatever
/// the epoch is. A put that waits for a lock to be taken leaves with the lock.
pub fn complete(window: &Window, node: &LocalWindow, target: Rank) -> Result<()> {
    if let Err(error) = window.may_flush(target)
        && window.access_of(target).asked().is_some()
    {
        node.needs_asked(window, target, error)?;
    }
    node.complete_puts(target);
    if node.spans_nodes() {
        synchronise::note_target(window, node, target);
    }
    on_protocols!(node, |protocols| {
        protocols.settle(target)?;
        protocols.words().flush(target)
    })?;
    node.take_errors()
}

/// Does [`complete`] for all ranks.
pub fn complete_all(window: &Window, node: &LocalWindow) -> Result<()> {
    node.send_kept_puts(window)?;
    node.complete_all_puts();
    on_protocols!(node, |protocols| {
        protocols.settle_all()?;
        protocols.words().flush_all()
    })?;
    node.take_errors()
}

/// Waits until the buffers of all operations of this process on a rank may be reused, and results
/// have arrived.
pub fn complete_here(node: &LocalWindow, target: Rank) -> Result<()> {
    node.flush_local(target)?;
    node.take_errors()
}

/// Orders later operations of this process on a rank behind earlier ones of the window. Waits only
/// where a rank of this node is reached in two ways.
pub fn order(node: &LocalWindow, target: Rank) -> Result<()> {
    node.complete_puts(target);
    full_fence();
    let Some(part) = node.wide.as_deref() else { return Ok(()) };
    let Some(known) = part.known_target(target) else { return Ok(()) };
    match part.near_index(target) {
        Some(_) => known.peer.flush(),
        None => {
            known.peer.order();
            Ok(())
        }
    }
}
