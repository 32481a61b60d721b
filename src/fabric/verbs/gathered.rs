//! Messages of several parts, which lie together at the peer and apart here: one request each, and
//! one copy, between the user's memory and the block that the device uses. Which parts go together
//! is the caller's affair.

use super::Remote;
use super::peer::Peer;
use super::pool::BLOCK_BYTES;
use super::queue::{Held, Order, Part, Work};
use crate::error::Result;

impl Peer {
    /// Copies parts to the peer's memory, where they lie side by side, as one message of at most
    /// [`BLOCK_BYTES`]. They are taken along at once.
    ///
    /// # Safety
    /// Each part can be read, and together they are the bytes `0..bytes` of the message.
    pub unsafe fn put_gathered(&self, to: Remote, parts: &[Part], bytes: u64) -> Result<()> {
        assert!(bytes <= BLOCK_BYTES as u64);
        self.with(|queue| {
            self.room(queue, 1)?;
            let block = self.block(queue)?;
            let leaving = self.core.blocks.at(block);
            for part in parts {
                assert!(part.end() <= BLOCK_BYTES);
                let to = leaving.wrapping_add(part.at as usize);
                // SAFETY: the caller vouches for the part; the block is ours, and long enough.
                unsafe { core::ptr::copy_nonoverlapping(part.here, to, part.bytes as usize) };
            }
            let from = self.block_piece(block, bytes);
            if bytes <= queue.inline_bytes_max() {
                queue.count().inline += 1;
                let order = Order { work: Work::WriteInline, to, from, signaled: false };
                // SAFETY: inline, out of a block that is ours.
                let posted = unsafe { queue.post(&order, Held::Nothing) };
                self.core.blocks.give_back(block);
                posted?;
            } else {
                queue.count().copied += 1;
                let order = Order { work: Work::Write, to, from, signaled: true };
                // SAFETY: the block is registered, and held.
                unsafe { queue.post(&order, Held::Leaving(block)) }?;
            }
            Ok(())
        })
    }

    /// Copies `bytes` bytes of the peer's memory, at most [`BLOCK_BYTES`], into parts. They are
    /// here when those of [`Peer::get`] are.
    ///
    /// # Safety
    /// Each part lies in the message, can be written, and nobody else uses it until then.
    pub unsafe fn get_scattered(&self, from: Remote, parts: Box<[Part]>, bytes: u64) -> Result<()> {
        assert!(bytes <= BLOCK_BYTES as u64);
        self.with(|queue| {
            self.room(queue, 1)?;
            let block = self.block(queue)?;
            queue.count().gets += 1;
            queue.count().gets_copied += 1;
            let piece = self.block_piece(block, bytes);
            let order = Order { work: Work::Read, to: from, from: piece, signaled: true };
            // SAFETY: the block is registered, and held.
            unsafe { queue.post(&order, Held::Scattering { block, parts }) }?;
            Ok(())
        })
    }
}
