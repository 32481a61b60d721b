//! Blocks that a caller has for a while: memory of a peer is read into one, changed there, and
//! written back from there, so that nothing is copied and nothing registered. Invariant: half of
//! the blocks are for requests alone, which give them back whatever other threads do; so who has a
//! lease may wait for anything but another lease.

use core::ops::Range;

use super::Remote;
use super::peer::{Pause, Peer};
use super::pool::BLOCK_BYTES;
use super::queue::{CHAIN, Held, Order, Work};
use crate::error::Result;
use crate::sys::ibverbs::types::Piece;

/// A block of the caller, for memory of one peer.
pub struct Lease<'a> {
    peer: &'a Peer,
    /// `None`: a request has it
    block: Option<u32>,
    /// the READ into it that is under way, or 0
    reading: u64,
}

impl Peer {
    /// A block, if there is one to spare.
    pub fn try_lease(&self) -> Option<Lease<'_>> {
        let block = self.core.blocks.try_lease()?;
        Some(Lease { peer: self, block: Some(block), reading: 0 })
    }

    /// A block, waited for. The caller has none, and nothing that others wait for who have one.
    pub fn lease(&self) -> Lease<'_> {
        let mut pause = Pause::default();
        loop {
            if let Some(lease) = self.try_lease() {
                return lease;
            }
            self.core.poll_all();
            if pause.pause() {
                self.core.ping_all();
            }
        }
    }
}

impl Lease<'_> {
    fn block(&self) -> u32 {
        self.block.expect("no request has it")
    }

    /// Where the block is: [`BLOCK_BYTES`] at a multiple of a page.
    pub fn at(&self) -> *mut u8 {
        self.peer.core.blocks.at(self.block())
    }

    fn piece(&self, part: &Range<usize>) -> Piece {
        assert!(part.start <= part.end);
        assert!(part.end <= BLOCK_BYTES);
        let addr = self.at() as u64 + part.start as u64;
        Piece { addr, length: part.len() as u32, lkey: self.peer.core.blocks.key() }
    }

    /// Begins to read a part of the block from the peer's memory, where `zero` is what the block
    /// begins with. It is here after [`Lease::arrived`].
    pub fn read(&mut self, zero: Remote, part: Range<usize>) -> Result<()> {
        let (to, from) = (zero.offset(part.start as i64), self.piece(&part));
        self.reading = self.peer.with(|queue| {
            self.peer.room(queue, 1)?;
            queue.count().gets += 1;
            queue.count().gets_copied += 1;
            let order = Order { work: Work::Read, to, from, signaled: true };
            // SAFETY: the block is registered, and `drop` waits for the READ.
            Ok(unsafe { queue.post(&order, Held::Nothing) }?)
        })?;
        Ok(())
    }

    /// Waits for what is being read.
    pub fn arrived(&mut self) -> Result<()> {
        match core::mem::take(&mut self.reading) {
            0 => Ok(()),
            number => self.peer.wait_for(|_| number),
        }
    }

    /// Writes parts of the block to the peer's memory, where `zero` is what the block begins with,
    /// and gives the block back when they have left.
    pub fn write(mut self, zero: Remote, parts: &[Range<usize>]) -> Result<()> {
        self.arrived()?;
        self.peer.with(|queue| {
            let inline_max = queue.inline_bytes_max() as usize;
            let inline = parts.iter().all(|part| part.len() <= inline_max);
            let chain_max = queue.chain_max();
            let chains = parts.len().div_ceil(chain_max);
            for (index, parts) in parts.chunks(chain_max).enumerate() {
                let held = index + 1 == chains && !inline;
                let mut orders = [Order::nothing(); CHAIN];
                let work = if inline { Work::WriteInline } else { Work::Write };
                for (order, part) in orders.iter_mut().zip(parts) {
                    let (to, from) = (zero.offset(part.start as i64), self.piece(part));
                    *order = Order { work, to, from, signaled: false };
                }
                // Told, or a block might wait for a request that never comes.
                orders[parts.len() - 1].signaled = held;
                self.peer.room(queue, parts.len())?;
                let count =
                    if inline { &mut queue.count().inline } else { &mut queue.count().copied };
                *count += parts.len() as u64;
                let held = match held {
                    true => self.block.take().map_or(Held::Nothing, Held::Leaving),
                    false => Held::Nothing,
                };
                // SAFETY: the block is registered, and held by the last request if its bytes are
                // not taken along.
                unsafe { queue.post_chain(&orders[..parts.len()], held) }?;
            }
            Ok(())
        })
    }
}

impl Drop for Lease<'_> {
    fn drop(&mut self) {
        // If it fails the connection is gone, and nothing comes here any more.
        let _ = self.arrived();
        if let Some(block) = self.block {
            self.peer.core.blocks.give_back(block);
        }
    }
}
