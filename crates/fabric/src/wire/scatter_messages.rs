//! Messages of several parts, which are contiguous at the peer and scattered in this process. A
//! message takes one request, and one copy between the user's memory and a block. The caller
//! decides which parts form a message.

use super::peer::Peer;
use super::pool::{BLOCK_BYTES, Kept, Part};
use crate::error::Result;
use crate::number::Number;
use crate::remote::Remote;
use crate::request::{Leaves, Order, Work};

impl Peer {
    /// Copies parts to the peer's memory, where they are contiguous, as one message of at most
    /// [`BLOCK_BYTES`]. The parts may be changed as soon as the call returns.
    ///
    /// # Safety
    /// The caller guarantees that each part can be read, and that together the parts are the bytes
    /// `0..bytes` of the message.
    pub unsafe fn put_gathered(&self, to: Remote, parts: &[Part], bytes: u64) -> Result<()> {
        assert!(bytes <= BLOCK_BYTES.to_u64());
        self.with(|queue| {
            self.receive_answer(queue)?;
            self.room(queue, 1)?;
            let block = self.block(queue)?;
            let leaving = self.core.blocks.at(block);
            for part in parts {
                assert!(part.end() <= BLOCK_BYTES);
                let to = leaving.wrapping_add(part.at.to_usize());
                // SAFETY: the caller guarantees the part; the block belongs to this call and is
                // long enough.
                unsafe { core::ptr::copy_nonoverlapping(part.here, to, part.bytes.to_usize()) };
            }
            let from = self.block_local(block, bytes);
            if bytes <= queue.inline_bytes_max() {
                queue.count().inline += 1;
                let order = Order::new(Work::WriteInline, to, from, false);
                let order = Order { leaves: Leaves::IfFirst, ..order };
                // SAFETY: inline, from a block that belongs to this call.
                let posted = unsafe { queue.post(order, Kept::Nothing) };
                self.core.blocks.give_back(block);
                posted?;
            } else {
                queue.count().copied += 1;
                let order = Order::new(Work::Write, to, from, true);
                // SAFETY: the block is registered, and the request holds it.
                unsafe { queue.post(order, Kept::Leaving(block)) }?;
            }
            Ok(())
        })
    }

    /// Copies `bytes` bytes of the peer's memory, at most [`BLOCK_BYTES`], into parts. They have
    /// arrived at the same time as those of `Peer::get`.
    ///
    /// # Safety
    /// The caller guarantees that each part lies within the message and can be written, and that
    /// nothing else uses it until the bytes have arrived.
    pub unsafe fn get_scattered(&self, from: Remote, parts: Box<[Part]>, bytes: u64) -> Result<()> {
        assert!(bytes <= BLOCK_BYTES.to_u64());
        self.with(|queue| {
            self.room(queue, 1)?;
            let block = self.block(queue)?;
            queue.count().gets += 1;
            queue.count().gets_copied += 1;
            let here = self.block_local(block, bytes);
            let order = Order::new(Work::Read, from, here, true);
            // SAFETY: the block is registered, and the request holds it.
            unsafe { queue.post(order, Kept::Scattering { block, parts }) }?;
            Ok(())
        })
    }
}
