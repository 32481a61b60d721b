//! The control blocks of one window in mapped memory: for each rank, its [`Descriptor`], its
//! [`MappedBytes`] and its control words.

use super::Arena;
use super::descriptor::Descriptor;
use super::mapped_bytes::{MappedBytes, WORDS_AT};
use crate::fabric::shm::words::Cells;
use crate::fabric::{WordAt, WordId};
use crate::number::Number;
use crate::rank_numbers::{Rank, RankOnNode, Slot};
use crate::sync::{AtomicU32, AtomicU64, computed};
use std::sync::Arc;

/// The blocks of one slot of an arena.
#[derive(Clone)]
pub struct ControlBlocks {
    /// the descriptor of rank 0
    base: *mut u8,
    /// bytes from the descriptor of a rank to that of the next one
    stride: usize,
    /// bytes of each block ahead of its descriptor
    far_bytes: usize,
    size: u32,
    arena: Arc<Arena>,
}

// SAFETY: the blocks are shared memory, reached through atomics and volatile loads only.
unsafe impl Send for ControlBlocks {}
// SAFETY: as for `Send`.
unsafe impl Sync for ControlBlocks {}

impl ControlBlocks {
    /// Returns the blocks of a slot whose chunk is mapped. The first bytes of each block are words
    /// for ranks of other nodes, if there are any, and then comes the descriptor.
    pub fn of(arena: &Arc<Arena>, slot: Slot) -> ControlBlocks {
        let (stride, far_bytes, size) = (arena.stride, arena.far_bytes, arena.size);
        let base = arena.base_of(slot).wrapping_add(far_bytes);
        ControlBlocks { base, stride, far_bytes, size, arena: arena.clone() }
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
    fn block(&self, rank: RankOnNode) -> *mut u8 {
        debug_assert!(rank.0 < self.size);
        self.base.wrapping_add(rank.0.to_usize() * self.stride)
    }

    /// Returns the descriptor of `rank`.
    #[inline]
    pub fn descriptor(&self, rank: RankOnNode) -> &Descriptor {
        // SAFETY: the slot has a block for each rank, and `arena` keeps it mapped. It begins with a
        // descriptor, which no process changes any more.
        unsafe { &*self.block(rank).cast::<Descriptor>() }
    }

    /// Returns the bytes of the memory of `rank` that can be mapped. They do not change once the
    /// window is made.
    #[inline]
    pub fn mapped_bytes(&self, rank: RankOnNode) -> &MappedBytes {
        let at = self.block(rank).wrapping_add(size_of::<Descriptor>()).cast::<MappedBytes>();
        // SAFETY: as in `descriptor`; every bit pattern is a valid value.
        unsafe { &*at }
    }

    /// Writes the bytes of this rank's memory that can be mapped, before the barrier that ends the
    /// creation of the window.
    pub fn set_mapped_bytes(&self, mapped: MappedBytes) {
        let block = self.block(self.arena.rank).wrapping_add(size_of::<Descriptor>());
        // SAFETY: the address is that of the value in this rank's block.
        unsafe { block.cast::<MappedBytes>().write_volatile(mapped) };
    }

    /// Returns a control word of a rank of this node.
    #[inline]
    pub fn word(&self, at: WordAt) -> &AtomicU64 {
        let word = WORDS_AT + at.word.0.to_usize() * size_of::<u64>();
        debug_assert!(word < self.stride - self.far_bytes);
        let block = computed!(self.block(at.rank.of_node_words()));
        // SAFETY: the word is inside the rank's block, which `arena` keeps mapped, aligned, and
        // only ever used as an atomic.
        unsafe { &*block.wrapping_add(word).cast::<AtomicU64>() }
    }

    /// Zeroes this rank's block for a new window.
    pub fn clear(&self) {
        let block = self.own_start();
        // SAFETY: the block has `stride` bytes, and between two windows only its owner uses it.
        unsafe { core::ptr::write_bytes(block, 0, self.stride) };
    }

    /// Returns the word `word` for ranks of other nodes, in the block of a rank of this node.
    #[inline]
    pub fn far_word(&self, rank: RankOnNode, word: WordId) -> &AtomicU64 {
        let offset = word.0.to_usize() * size_of::<u64>();
        assert!(offset < self.far_bytes);
        let words = self.block(rank).wrapping_sub(self.far_bytes);
        // SAFETY: the word is inside the rank's block, aligned, and only ever used as an atomic.
        unsafe { &*words.add(offset).cast::<AtomicU64>() }
    }

    /// Writes this rank's descriptor. Call before the barrier that ends the creation of the window.
    pub fn describe(&self, descriptor: Descriptor) {
        let block = self.block(self.arena.rank).cast::<Descriptor>();
        // SAFETY: the address is that of the descriptor, which no other process reads yet.
        unsafe { block.write(descriptor) };
    }
}

impl Cells for ControlBlocks {
    #[inline]
    fn cell(&self, at: WordAt) -> &AtomicU64 {
        self.word(at)
    }

    #[inline]
    fn rank(&self) -> Rank {
        self.arena.rank.in_node_words()
    }

    #[inline]
    fn size(&self) -> u32 {
        self.size
    }

    #[inline]
    fn doorbell(&self, rank: Rank) -> &AtomicU32 {
        &self.arena.process(rank.of_node_words()).doorbell
    }
}
