//! The control blocks of one window in mapped memory: for each rank, a descriptor of the memory
//! that it exposes, and its control words.

use super::arena::Arena;
use crate::fabric::shm::words::Cells;
use crate::fabric::verbs::Remote;
use crate::fabric::{Rank, WordAt, WordId};
use crate::memory::Place;
use crate::sync::{AtomicU32, AtomicU64};
use std::sync::Arc;

/// A descriptor of the memory that a rank exposes. Its owner writes it at creation, before other
/// ranks may read it.
///
/// A transfer on an allocated window reads only the first cache line. The field `bytes` is 0 where
/// the memory is not in the common segment, so that no transfer takes it to be there.
#[repr(C, align(64))]
#[derive(Clone, Copy, Debug, Default)]
pub struct Descriptor {
    /// offset of the memory in the window's common segment, in bytes
    pub offset: u64,
    /// bytes of the memory in the common segment
    pub bytes: u64,
    /// the owner's displacement unit in bytes
    pub disp_unit: u64,
    /// bytes that the rank exposes, in any memory
    pub exposed: u64,
    /// address of the memory in the owner's process
    pub address: u64,
    /// place of the memory in the owner's heap; a name of no bytes: it is not in the heap
    pub place: Place,
    /// address of the memory for the device, if the owner has registered it itself
    pub remote: Remote,
    /// address of the owner's control words for the device, if the owner has registered them itself
    pub words: Remote,
}

const _: () = assert!(size_of::<Descriptor>() == 128);

impl Descriptor {
    /// Returns a descriptor of memory in the window's common segment.
    pub fn common(offset: u64, address: u64, bytes: u64, disp_unit: u64) -> Descriptor {
        let exposed = bytes;
        Descriptor { offset, bytes, disp_unit, exposed, address, ..Descriptor::default() }
    }

    /// Returns a descriptor of memory that the owner had before, in its heap or elsewhere.
    pub fn owned(address: u64, exposed: u64, disp_unit: u64, place: Option<Place>) -> Descriptor {
        let place = place.unwrap_or_default();
        Descriptor { disp_unit, exposed, address, place, ..Descriptor::default() }
    }

    /// Returns whether the memory lies in the owner's heap.
    pub fn is_in_heap(&self) -> bool {
        self.place.name.bytes > 0
    }
}

/// The blocks of one slot of an arena.
#[derive(Clone)]
pub struct Blocks {
    /// the descriptor of rank 0
    base: *mut u8,
    stride: usize,
    /// bytes of each block ahead of its descriptor
    far_bytes: usize,
    size: u32,
    arena: Arc<Arena>,
}

// SAFETY: the blocks are shared memory, reached through atomics and volatile loads only.
unsafe impl Send for Blocks {}
// SAFETY: likewise.
unsafe impl Sync for Blocks {}

impl Blocks {
    /// Returns the blocks at `base`, one per rank of `arena`, of `stride` bytes each. The first
    /// `far_bytes` of each block are words for ranks of other nodes, and then comes the descriptor.
    pub(super) fn new(base: *mut u8, stride: usize, far_bytes: usize, arena: Arc<Arena>) -> Blocks {
        Blocks { base: base.wrapping_add(far_bytes), stride, far_bytes, size: arena.size, arena }
    }

    /// Returns the arena that they are part of.
    pub fn arena(&self) -> &Arc<Arena> {
        &self.arena
    }

    /// Returns the address of the first block.
    pub fn start(&self) -> *mut u8 {
        self.base.wrapping_sub(self.far_bytes)
    }

    /// Returns the address of this rank's block.
    pub fn own_start(&self) -> *mut u8 {
        self.block(self.arena.rank).wrapping_sub(self.far_bytes)
    }

    /// Returns the bytes of each block ahead of its descriptor.
    pub fn far_bytes(&self) -> usize {
        self.far_bytes
    }

    #[inline]
    fn block(&self, rank: u32) -> *mut u8 {
        debug_assert!(rank < self.size);
        // SAFETY: the slot has a block for each rank.
        unsafe { self.base.add(rank as usize * self.stride) }
    }

    /// Returns the descriptor of `rank`.
    #[inline]
    pub fn descriptor(&self, rank: u32) -> &Descriptor {
        // SAFETY: the address is that of a descriptor, which no process changes any more.
        unsafe { &*self.block(rank).cast::<Descriptor>() }
    }

    /// Returns a control word of a rank of this node.
    #[inline]
    pub fn word(&self, at: WordAt) -> &AtomicU64 {
        let word = size_of::<Descriptor>() + at.word.0 as usize * size_of::<u64>();
        debug_assert!(at.rank.0 < self.size && word < self.stride - self.far_bytes);
        // SAFETY: the word is inside the rank's block, aligned, and only ever used as an atomic.
        unsafe { &*self.block(at.rank.0).add(word).cast::<AtomicU64>() }
    }

    /// Zeroes this rank's block for a new window.
    pub fn clear(&self) {
        let block = self.own_start();
        // SAFETY: the block has `stride` bytes, and between two windows only its owner uses it.
        unsafe { core::ptr::write_bytes(block, 0, self.stride) };
    }

    /// Returns the word `word` for ranks of other nodes, in the block of a rank of this node.
    #[inline]
    pub fn far_word(&self, rank: u32, word: WordId) -> &AtomicU64 {
        let offset = word.0 as usize * size_of::<u64>();
        assert!(offset < self.far_bytes);
        let words = self.block(rank).wrapping_sub(self.far_bytes);
        // SAFETY: the word is inside the rank's block, aligned, and only ever used as an atomic.
        unsafe { &*words.add(offset).cast::<AtomicU64>() }
    }

    /// Writes this rank's descriptor. To be called before the barrier that ends the creation of the
    /// window.
    pub fn describe(&self, descriptor: Descriptor) {
        let block = self.block(self.arena.rank).cast::<Descriptor>();
        // SAFETY: the address is that of the descriptor, which no other process reads yet.
        unsafe { block.write(descriptor) };
    }
}

impl Cells for Blocks {
    #[inline]
    fn cell(&self, at: WordAt) -> &AtomicU64 {
        self.word(at)
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
