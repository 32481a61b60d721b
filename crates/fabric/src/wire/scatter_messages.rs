//! Messages of several parts, which are contiguous at the peer and scattered in this process. A
//! message takes one request, and one copy between the user's memory and a block, or none if the
//! device reads or writes the parts themselves. The caller decides which parts form a message.

use smallvec::SmallVec;

use super::device::Region;
use super::peer::Peer;
use super::pool::{BLOCK_BYTES, Kept, Part};
use crate::Way;
use crate::error::Result;
use crate::number::Number;
use crate::remote::Remote;
use crate::request::{Leaves, Local, Order, SGE_MAX, Work};

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
            if !queue.is_ready() {
                self.make_ready(queue)?;
            }
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
                queue.kinds.inline += 1;
                let order = Order::new(Work::WriteInline, to, from, false);
                let order = Order { leaves: Leaves::IfFirst, ..order };
                // SAFETY: inline, from a block that belongs to this call.
                let posted = unsafe { queue.post(order, Kept::Nothing) };
                self.core.blocks.give_back(block);
                posted?;
            } else {
                queue.kinds.copied += 1;
                let order = Order::new(Work::Write, to, from, true);
                // SAFETY: the block is registered, and the request holds it.
                unsafe { queue.post(order, Kept::Leaving(block)) }?;
            }
            Ok(())
        })
    }

    /// Transfers parts of the user's memory as one message, without a copy. They are in use until a
    /// flush.
    ///
    /// # Safety
    /// The caller guarantees that each part lies in the region of the same index, and follows the
    /// part before it in the message; otherwise as for `Peer::put` or `Peer::get`, for each part.
    pub unsafe fn transfer_parts(
        &self,
        way: Way,
        there: Remote,
        parts: &[Part],
        regions: Box<[Region]>,
    ) -> Result<()> {
        assert_eq!(parts.len(), regions.len());
        let piece = |(part, region): (&Part, &Region)| Local {
            at: part.here as u64,
            bytes: part.bytes,
            key: region.local_key(),
        };
        let pieces: SmallVec<[Local; SGE_MAX]> = parts.iter().zip(&regions).map(piece).collect();
        let bytes = parts.iter().map(|part| part.bytes).sum();
        self.with(|queue| {
            self.room(queue, 1)?;
            let work = match way {
                Way::Put => Work::Write,
                Way::Get => Work::Read,
            };
            let count = &mut queue.kinds;
            *if way == Way::Put { &mut count.lent } else { &mut count.gets } += 1;
            // Signaled: its completion shows that nothing is held any more.
            let order = Order::new(work, there, Local { at: 0, bytes, key: 0 }, true);
            let held = Kept::Buffers { _regions: regions };
            // SAFETY: the regions contain the pieces, and the request holds them.
            unsafe { queue.post_chain(&mut [order], &pieces, held) }?;
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
            queue.kinds.gets += 1;
            queue.kinds.gets_copied += 1;
            let here = self.block_local(block, bytes);
            let order = Order::new(Work::Read, from, here, true);
            // SAFETY: the block is registered, and the request holds it.
            unsafe { queue.post(order, Kept::Scattering { block, parts }) }?;
            Ok(())
        })
    }
}
