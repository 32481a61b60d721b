//! The control blocks of one window in mapped memory: who exposes what, and the control words.

use super::arena::Arena;
use crate::fabric::shm::words::Cells;
use crate::fabric::verbs::Remote;
use crate::fabric::{Rank, WordAt, WordId};
use crate::memory::Place;
use crate::sync::{AtomicU32, AtomicU64};
use std::sync::Arc;

/// What a rank exposes. Written by its owner at creation, before anybody else may read it.
///
/// The first line is all that a transfer on an allocated window looks at. Its `bytes` are 0 where
/// the memory is elsewhere, so that nothing is taken for what it is not.
#[repr(C, align(64))]
#[derive(Clone, Copy, Debug, Default)]
pub struct Descriptor {
    /// where it begins in the window's common segment, in bytes
    pub offset: u64,
    /// bytes in the common segment
    pub bytes: u64,
    /// the owner's displacement unit in bytes
    pub disp_unit: u64,
    /// bytes that the rank exposes, wherever they are
    pub exposed: u64,
    /// where they begin in the address space of the owner
    pub address: u64,
    /// where others find them, if they lie in the owner's heap; else no bytes
    pub place: Place,
    /// where the device of ranks of other nodes finds them, if the owner has exposed them itself
    pub remote: Remote,
    /// the same of the owner's control words
    pub words: Remote,
}

const _: () = assert!(size_of::<Descriptor>() == 128);

impl Descriptor {
    /// Memory of the window's common segment.
    pub fn common(offset: u64, address: u64, bytes: u64, disp_unit: u64) -> Descriptor {
        let exposed = bytes;
        Descriptor { offset, bytes, disp_unit, exposed, address, ..Descriptor::default() }
    }

    /// Memory that the owner has: in its heap, or anywhere.
    pub fn owned(address: u64, exposed: u64, disp_unit: u64, place: Option<Place>) -> Descriptor {
        let place = place.unwrap_or_default();
        Descriptor { disp_unit, exposed, address, place, ..Descriptor::default() }
    }

    /// Whether it lies in the owner's heap.
    pub fn is_in_heap(&self) -> bool {
        self.place.name.bytes > 0
    }
}

/// The blocks of one slot of an arena.
pub struct Blocks {
    /// the descriptor of rank 0
    base: *mut u8,
    stride: usize,
    /// bytes of each block that are ahead of its descriptor
    far_bytes: usize,
    size: u32,
    arena: Arc<Arena>,
}

// SAFETY: the blocks are shared memory, reached through atomics and volatile loads only.
unsafe impl Send for Blocks {}
// SAFETY: likewise.
unsafe impl Sync for Blocks {}

impl Blocks {
    /// The blocks at `base`, `stride` bytes each, one per rank of `arena`; the first `far_bytes` of
    /// each are words for ranks of other nodes, and then comes the descriptor.
    pub(super) fn new(base: *mut u8, stride: usize, far_bytes: usize, arena: Arc<Arena>) -> Blocks {
        Blocks { base: base.wrapping_add(far_bytes), stride, far_bytes, size: arena.size, arena }
    }

    /// The arena that they are part of.
    pub fn arena(&self) -> &Arc<Arena> {
        &self.arena
    }

    /// Where the first of them begins.
    pub fn start(&self) -> *mut u8 {
        self.base.wrapping_sub(self.far_bytes)
    }

    /// Where that of this rank begins.
    pub fn own_start(&self) -> *mut u8 {
        self.block(self.arena.rank).wrapping_sub(self.far_bytes)
    }

    /// Bytes of each block that are ahead of its descriptor.
    pub fn far_bytes(&self) -> usize {
        self.far_bytes
    }

    #[inline]
    fn block(&self, rank: u32) -> *mut u8 {
        debug_assert!(rank < self.size);
        // SAFETY: the slot has a block for each rank.
        unsafe { self.base.add(rank as usize * self.stride) }
    }

    /// What `rank` exposes.
    #[inline]
    pub fn descriptor(&self, rank: u32) -> &Descriptor {
        // SAFETY: each block starts with a descriptor, and nobody writes to it any more.
        unsafe { &*self.block(rank).cast::<Descriptor>() }
    }

    /// Makes the own block ready for a new window: all words zero.
    pub fn clear(&self) {
        let block = self.own_start();
        // SAFETY: the block is `stride` bytes long, and between two windows only its owner uses it.
        unsafe { core::ptr::write_bytes(block, 0, self.stride) };
    }

    /// Word `word` of a rank of this node for ranks of other nodes.
    #[inline]
    pub fn far_word(&self, rank: u32, word: WordId) -> &AtomicU64 {
        let offset = word.0 as usize * size_of::<u64>();
        assert!(offset < self.far_bytes);
        let words = self.block(rank).wrapping_sub(self.far_bytes);
        // SAFETY: inside of the rank's block, aligned, and never anything but an atomic.
        unsafe { &*words.add(offset).cast::<AtomicU64>() }
    }

    /// Says what this rank exposes. Before the barrier that ends the making of the window.
    pub fn describe(&self, descriptor: Descriptor) {
        let block = self.block(self.arena.rank).cast::<Descriptor>();
        // SAFETY: the block starts with the descriptor, and nobody reads it yet.
        unsafe { block.write(descriptor) };
    }
}

impl Cells for Blocks {
    #[inline]
    fn cell(&self, at: WordAt) -> &AtomicU64 {
        let word = size_of::<Descriptor>() + at.word.0 as usize * size_of::<u64>();
        debug_assert!(at.rank.0 < self.size && word < self.stride - self.far_bytes);
        // SAFETY: inside of the rank's block, aligned, and never anything but an atomic.
        unsafe { &*self.block(at.rank.0).add(word).cast::<AtomicU64>() }
    }

    #[inline]
    fn rank(&self) -> Rank {
        Rank(self.arena.rank)
    }

    #[inline]
    fn size(&self) -> u32 {
        self.size
    }

    #[inline]
    fn doorbell(&self, rank: Rank) -> &AtomicU32 {
        &self.arena.process(rank.0).doorbell
    }
}
