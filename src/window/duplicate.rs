//! Duplicates of a window: further windows over the same memory, whose operations complete apart
//! (issue 113 of the MPI Forum; docs/decisions/0035). One may also be made from memory handles;
//! then its targets are their memory. A duplicate is local. Its epoch begins when it is made and
//! ends when it is freed, as that of MPI_Win_lock_all with MPI_MODE_NOCHECK.
//!
//! Control words, connections, records of targets over several nodes, and small puts are those of
//! the window. Between nodes a duplicate knows to which ranks it has sent operations that may not
//! be complete, and its flushes wait for these ranks alone. On one node its operations are complete
//! when their calls return, but for small puts, which any flush of the window or a duplicate sends.

use super::create::insert;
use super::handles::{self, HandleMemory, MemoryHandle};
use super::protocols::{Protocols, on_protocols};
use super::{Carrier, Duplicate, Facts, LocalWindow, Window, registry, synchronise};
use crate::error::{Error, Result};
use crate::fabric::Words;
use crate::messages;
use crate::mpi::{Handle, Host};
use crate::rank_numbers::Rank;
use crate::sync::{Ordering, full_fence};
use parking_lot::Mutex;
use std::collections::BTreeMap;
use std::sync::Arc;

/// The memory of handles, by the rank that has exposed it.
pub type Memories = BTreeMap<Rank, Arc<HandleMemory>>;

impl Duplicate {
    /// Returns the memory of a handle that an access to a rank is on; `None`: that of the window.
    pub fn memory_at(&self, rank: Rank) -> Result<Option<&HandleMemory>> {
        let memories = self.memories.as_ref().and_then(|given| given.downcast_ref::<Memories>());
        let Some(memories) = memories else { return Ok(None) };
        let memory = memories.get(&rank).ok_or(Error::Wrong(&messages::MEM_NOT_IN_WINDOW))?;
        Ok(Some(memory))
    }

    /// Records that an operation was sent to a rank. Behind it: a flush of another thread may take
    /// note of the rank and be over before.
    pub fn note(&self, rank: Rank) {
        if self.node.spans_nodes() {
            *self.sent.lock().entry(rank).or_default() += 1;
        }
    }

    /// Returns the ranks that a flush of `target`, or of all, has to wait for.
    fn pending(&self, target: Option<Rank>) -> Vec<(Rank, u64)> {
        let is_asked = |rank: &Rank| target.is_none_or(|target| *rank == target);
        let sent = self.sent.lock();
        sent.iter().filter(|(rank, _)| is_asked(rank)).map(|(rank, seen)| (*rank, *seen)).collect()
    }

    /// Completes the operations of this duplicate on a rank, or on all, of other nodes or this one.
    pub fn flush(&self, node: &LocalWindow, target: Option<Rank>) -> Result<()> {
        full_fence(); // stores to memory of this node
        let pending = self.pending(target);
        if let Some(part) = node.wide.as_deref().filter(|_| pending.len() > 1) {
            // All requests leave before the first wait.
            pending.iter().filter_map(|(rank, _)| part.known_target(*rank)).for_each(|known| {
                let _ = known.peer.flush_begin(); // the flush below returns the error
            });
        }
        let flush = |(rank, seen): (Rank, u64)| {
            node.complete_puts(rank);
            on_protocols!(node, |protocols| {
                protocols.settle(rank)?;
                protocols.words().flush(rank)
            })?;
            let mut sent = self.sent.lock();
            if sent.get(&rank) == Some(&seen) {
                sent.remove(&rank);
            }
            Ok(())
        };
        let flushed = pending.into_iter().map(flush).fold(Ok(()), Result::and);
        flushed.and(node.take_errors())
    }

    /// Waits until the buffers of the operations of this duplicate on a rank, or on all, may be
    /// reused, and results have arrived.
    pub fn flush_local(&self, node: &LocalWindow, target: Option<Rank>) -> Result<()> {
        let flush = |(rank, _)| node.flush_local(rank);
        let flushed = self.pending(target).into_iter().map(flush).fold(Ok(()), Result::and);
        node.have_arrived(target);
        flushed.and(node.take_errors())
    }
}

impl Window {
    /// Returns the window that has the memory: this one, or the one that it duplicates.
    pub fn source(&self) -> &Window {
        self.as_duplicate().map_or(self, |duplicate| duplicate.of.source())
    }

    /// Returns what it has as a duplicate, if its operations are completed by themselves.
    #[inline(always)]
    pub(super) fn completing_apart(&self) -> Option<&Duplicate> {
        self.as_duplicate().filter(|duplicate| duplicate.node.spans_nodes())
    }

    /// Fails if it is a duplicate, which has no other epoch than its own.
    #[inline(always)]
    pub fn may_have_epochs(&self) -> Result<()> {
        match self.as_duplicate() {
            None => Ok(()),
            Some(_) => Err(Error::Wrong(&messages::DUPLICATE_EPOCH)),
        }
    }

    /// Whether it may be freed, as far as its duplicates are concerned.
    pub fn may_end(&self) -> Result<()> {
        // Relaxed: the program orders its calls.
        match self.duplicates.load(Ordering::Relaxed) {
            0 => Ok(()),
            number => Err(Error::Argument(&messages::HAS_DUPLICATES, number.into())),
        }
    }
}

/// Makes a duplicate of a window of libfompi.
pub fn make(
    host: &'static Host,
    of: &'static Window,
    info: Handle,
    memories: Option<Memories>,
) -> Result<&'static Window> {
    let hints = of.info.lock().clone().of_duplicate(host, info)?;
    let entry = registry::reserve()?;
    let facts = match memories {
        None => Facts { ..of.facts },
        Some(_) => Facts { base: 0, size: 0, disp_unit: 1, disp_unit_in_c: 1, ..of.facts },
    };
    let node = of.local().ok_or(Error::Wrong(&messages::NO_HANDLES))?;
    // Relaxed: as in `may_end`.
    of.duplicates.fetch_add(1, Ordering::Relaxed);
    let memories = memories.map(|memories| Box::new(memories) as _);
    let carrier = Carrier::Duplicate(Duplicate { of, node, memories, sent: Mutex::default() });
    let window = insert(host, entry, hints, facts, carrier);
    window.epochs.lock_all(false)?;
    Ok(window)
}

/// Makes a window whose targets are the memory of these handles, one of each rank at most.
///
/// # Errors
/// MPI_ERR_ARG if they are of different windows, two are of one rank, or there is none.
///
/// # Safety
/// As for [`MemoryHandle::memory`], for each of them.
pub unsafe fn make_from(
    host: &'static Host,
    given: impl Iterator<Item = *const MemoryHandle>,
    info: Handle,
) -> Result<&'static Window> {
    let mut memories = Memories::new();
    let mut of: Option<&'static Window> = None;
    for handle in given {
        // SAFETY: guaranteed by the caller.
        let memory = unsafe { MemoryHandle::memory(handle) }?;
        let window = *of.get_or_insert(memory.window);
        let is_of_it = core::ptr::eq(window.source(), memory.window.source());
        if !is_of_it || memories.insert(memory.rank(), memory).is_some() {
            return Err(Error::Wrong(&messages::MEMS_DIFFER));
        }
    }
    let of = of.ok_or(Error::Wrong(&messages::MEMS_DIFFER))?;
    make(host, of, info, Some(memories))
}

/// Frees a duplicate, after it has completed its operations.
pub fn free(window: &'static Window, duplicate: &Duplicate) -> Result<()> {
    let (of, node) = (duplicate.of, duplicate.node);
    let completed = synchronise::complete_all(window, node);
    handles::end_all(window);
    drop(registry::remove(window));
    // Relaxed: as in `may_end`.
    of.duplicates.fetch_sub(1, Ordering::Relaxed);
    completed
}
