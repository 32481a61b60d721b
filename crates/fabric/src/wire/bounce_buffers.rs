//! Bounce buffers: blocks that a caller holds for longer than one request. Memory of a peer is read
//! into a block, changed there, and written back from there, without a copy or a registration.
//! Invariant: half of the blocks are for requests alone, which give them back whatever other
//! threads do; so the holder of such a block may wait for anything except another one.

use core::ops::Range;

use super::pause::Pause;
use super::peer::Peer;
use super::pool::{BLOCK_BYTES, Kept};
use crate::error::Result;
use crate::number::Number;
use crate::remote::{BOUNCE_BYTES, BounceBuffer, Remote};
use crate::request::{CHAIN_MAX, Leaves, Local, Order, Work};

/// A block of the caller, for memory of one peer.
pub struct BounceBlock<'a> {
    peer: &'a Peer,
    /// `None`: a request holds it
    block: Option<u32>,
    /// number of the READ into the block that is under way, or 0
    reading: u64,
}

impl<'a> BounceBlock<'a> {
    /// Returns a block, if more than half of them are free.
    pub fn try_new(peer: &'a Peer) -> Option<BounceBlock<'a>> {
        let block = peer.core.blocks.try_take_spare()?;
        Some(BounceBlock { peer, block: Some(block), reading: 0 })
    }

    /// Returns a block, and waits until one is free, as for
    /// [`crate::remote::Network::bounce_buffer`].
    pub fn new(peer: &'a Peer) -> BounceBlock<'a> {
        let mut pause = Pause::default();
        loop {
            if let Some(buffer) = BounceBlock::try_new(peer) {
                return buffer;
            }
            peer.core.poll_all();
            if pause.pause_for_any(peer.core.device.service().is_some()) {
                peer.core.ping_all();
            }
        }
    }

    fn block(&self) -> u32 {
        self.block.expect("no request has it")
    }

    fn local(&self, part: &Range<usize>) -> Local {
        assert!(part.start <= part.end);
        assert!(part.end <= BLOCK_BYTES);
        let at = self.at() as u64 + part.start as u64;
        Local { at, bytes: part.len().to_u32(), key: self.peer.core.blocks.key() }
    }
}

const _: () = assert!(BOUNCE_BYTES == BLOCK_BYTES);

impl BounceBuffer for BounceBlock<'_> {
    fn at(&self) -> *mut u8 {
        self.peer.core.blocks.at(self.block())
    }

    fn read(&mut self, zero: Remote, part: Range<usize>) -> Result<()> {
        let (to, from) = (zero.offset(part.start.to_u64().cast_signed()), self.local(&part));
        self.reading = self.peer.with(|queue| {
            self.peer.room(queue, 1)?;
            queue.kinds.gets += 1;
            queue.kinds.gets_copied += 1;
            let order = Order::new(Work::Read, to, from, true);
            // SAFETY: the block is registered, and `drop` waits for the READ.
            Ok(unsafe { queue.post(order, Kept::Nothing) }?)
        })?;
        Ok(())
    }

    fn arrived(&mut self) -> Result<()> {
        match core::mem::take(&mut self.reading) {
            0 => Ok(()),
            number => self.peer.wait_for(|_| number),
        }
    }

    /// The block is given back when the parts have been sent.
    fn write(mut self, zero: Remote, parts: &[Range<usize>]) -> Result<()> {
        self.arrived()?;
        self.peer.with(|queue| {
            let inline_max = queue.inline_bytes_max().to_usize();
            let inline = parts.iter().all(|part| part.len() <= inline_max);
            let chain_max = queue.chain_max();
            let chains = parts.len().div_ceil(chain_max);
            for (index, parts) in parts.chunks(chain_max).enumerate() {
                let held = index + 1 == chains && !inline;
                let mut orders = [Order::ping(); CHAIN_MAX];
                let (work, leaves) = match inline {
                    true => (Work::WriteInline, Leaves::WithLater),
                    false => (Work::Write, Leaves::AtOnce),
                };
                for (order, part) in orders.iter_mut().zip(parts) {
                    let (to, from) =
                        (zero.offset(part.start.to_u64().cast_signed()), self.local(part));
                    *order = Order { leaves, ..Order::new(work, to, from, false) };
                }
                // Signaled; otherwise a thread that waits for the block might never see a
                // completion.
                orders[parts.len() - 1].signaled = held;
                self.peer.room(queue, parts.len())?;
                let count = if inline { &mut queue.kinds.inline } else { &mut queue.kinds.copied };
                *count += parts.len().to_u64();
                let held = match held {
                    true => self.block.take().map_or(Kept::Nothing, Kept::Leaving),
                    false => Kept::Nothing,
                };
                // SAFETY: the block is registered; the last request holds it unless the bytes are
                // inline.
                unsafe { queue.post_chain(&mut orders[..parts.len()], &[], held) }?;
            }
            Ok(())
        })
    }
}

impl Drop for BounceBlock<'_> {
    fn drop(&mut self) {
        // If this fails the connection is gone, and nothing arrives in the block any more.
        let _ = self.arrived();
        if let Some(block) = self.block {
            self.peer.core.blocks.give_back(block);
        }
    }
}
