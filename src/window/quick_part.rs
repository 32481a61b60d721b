//! What quick calls read of a window whose ranks are all on this node, beside the ranks that may be
//! accessed now; all of it is in one cache line. `address` has the bounds checks.

use super::LocalWindow;
use super::control_blocks::BlockPlaces;
use crate::fabric::{WordId, layout};
use crate::mpi::Host;
use crate::sync::computed;
use core::ptr;

/// The part of a window for quick calls. Its addresses are valid as long as the window.
#[repr(C)]
pub struct QuickPart {
    /// the handle of the window
    pub(super) handle: u32,
    /// the word of a target with the pass of this rank (`epoch::lock::passes`)
    pub(super) pass_word: WordId,
    /// the bit of the pass in that word
    pub(super) pass: u64,
    /// the MPI underneath, for its datatypes and operations
    host: &'static Host,
    /// where the descriptors and control words are
    pub(super) blocks: BlockPlaces,
    /// the begin of the common memory of all ranks. If there is none, the descriptors say that no
    /// byte is in it.
    pub(super) data: *mut u8,
}

// SAFETY: the addresses are of shared memory, which is reached by copies, by atomics, and by loads
// of descriptors, which no process changes any more.
unsafe impl Send for QuickPart {}
// SAFETY: likewise.
unsafe impl Sync for QuickPart {}

impl QuickPart {
    /// Returns the part of a window whose ranks are all on this node.
    pub fn of(host: &'static Host, handle: u32, node: &LocalWindow) -> QuickPart {
        debug_assert!(!node.spans_nodes());
        let arena = node.arena();
        let (index, pass) = layout::bit_of(arena.rank.in_node_words());
        let (pass_word, blocks) = (layout::pass(index, arena.size), node.blocks.places());
        QuickPart { handle, pass_word, pass, host, blocks, data: node.data }
    }

    /// Returns the MPI underneath.
    #[inline(always)]
    pub fn host(&self) -> &'static Host {
        let host = computed!(ptr::from_ref(self.host));
        // SAFETY: the address of a reference.
        unsafe { &*host }
    }
}
