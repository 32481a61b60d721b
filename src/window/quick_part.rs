//! The state of a one-node window that fast-path calls read, in addition to the ranks that may be
//! accessed now; all of it is in one cache line. `address` has the bounds checks.

use super::LocalWindow;
use super::target::{Target, Targets};
use crate::fabric::layout;
use crate::mpi::Host;
use crate::rank_numbers::Rank;
use crate::sync::computed;
use core::ptr;

/// The part of a window for fast-path calls. Its addresses are valid as long as the window.
#[repr(C)]
pub struct QuickPart {
    /// the handle of the window
    pub(super) handle: u32,
    /// the bit of this rank's pass (`epoch::lock::passes`), in the word to which a target leads
    pub pass: u64,
    /// the host MPI, for its datatypes and operations
    host: &'static Host,
    /// the records of its targets
    pub(super) targets: Targets,
}

impl QuickPart {
    /// Returns the part of a window whose ranks are all on this node.
    ///
    /// # Safety
    /// The arena of `node` lives as long as the result.
    pub unsafe fn of(host: &'static Host, handle: u32, node: &LocalWindow) -> QuickPart {
        debug_assert!(!node.spans_nodes());
        let arena = node.arena();
        let (_, pass) = layout::bit_of(arena.rank.in_node_words());
        // SAFETY: the caller guarantees it.
        let targets = unsafe { Targets::new(&arena.no_targets) };
        QuickPart { handle, pass, host, targets }
    }

    /// Returns the host MPI.
    #[inline(always)]
    pub fn host(&self) -> &'static Host {
        let host = computed!(ptr::from_ref(self.host));
        // SAFETY: the address of a reference.
        unsafe { &*host }
    }

    /// Whether the window has this rank.
    #[inline(always)]
    pub fn has(&self, rank: Rank) -> bool {
        rank.0 < self.targets.size
    }

    /// Returns the record of a target.
    ///
    /// # Safety
    /// The window has this rank.
    #[inline(always)]
    pub unsafe fn target(&self, rank: Rank) -> &Target {
        // SAFETY: the caller guarantees it.
        let target = computed!(ptr::from_ref(unsafe { self.targets.of(rank.on_only_node()) }));
        // SAFETY: the address of a reference.
        unsafe { &*target }
    }
}
