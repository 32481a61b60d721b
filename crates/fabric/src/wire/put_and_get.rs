//! Puts and gets of bytes. Depending on their length, the bytes are sent inline with the request,
//! copied through a block, or sent from the user's memory. Words are in `peer`, and so is waiting
//! for completion. Invariant: memory that the device accesses after a call has returned is held by
//! its request.

use super::fault::Fault;
use super::peer::Peer;
use super::pool::BLOCK_BYTES;
use super::queue::{Kept, Queue};
use crate::error::Result;
use crate::number::Number;
use crate::remote::Remote;
use crate::request::{CHAIN_MAX, Local, Order, Work};

/// Bytes of this process that are to be put.
#[derive(Clone, Copy)]
pub struct Run {
    /// destination
    pub to: Remote,
    /// source
    pub from: *const u8,
    /// length in bytes
    pub bytes: u64,
}

impl Peer {
    /// Copies bytes to the peer's memory. Up to [`BLOCK_BYTES`] are copied at once; a longer buffer
    /// is in use until [`Peer::flush_local`] or [`Peer::flush`].
    ///
    /// # Safety
    /// The caller guarantees that `bytes` bytes at `from` can be read, and that they are not
    /// changed or unmapped while they are in use. The caller also decides that the bytes at the
    /// peer may be written.
    pub(super) unsafe fn put(&self, to: Remote, from: *const u8, bytes: u64) -> Result<()> {
        if bytes == 0 {
            return Ok(());
        }
        self.with(|queue| {
            if bytes > queue.inline_bytes_max() {
                // SAFETY: the caller's duty.
                return unsafe { self.put_long(queue, to, from, bytes) };
            }
            self.room(queue, 1)?;
            queue.count().inline += 1;
            let from = Local { at: from as u64, bytes: bytes.low_u32(), key: 0 };
            let order = Order::new(Work::WriteInline, to, from, false);
            // SAFETY: inline; the caller guarantees the bytes.
            unsafe { queue.post_gathered(order) }?;
            Ok(())
        })
    }

    /// [`Peer::put`] of more bytes than a request carries inline.
    ///
    /// # Safety
    /// As for [`Peer::put`].
    #[inline(never)]
    unsafe fn put_long(
        &self,
        queue: &mut Queue,
        to: Remote,
        from: *const u8,
        bytes: u64,
    ) -> core::result::Result<(), Fault> {
        if bytes > BLOCK_BYTES.to_u64() {
            queue.count().lent += 1;
            // SAFETY: the caller guarantees the bytes.
            return unsafe { self.lend(queue, Work::Write, to, from as u64, bytes) };
        }
        self.room(queue, 1)?;
        let block = self.block(queue)?;
        queue.count().copied += 1;
        let leaving = self.core.blocks.at(block);
        // SAFETY: the caller guarantees the bytes; the block belongs to this call and is long
        // enough.
        unsafe { core::ptr::copy_nonoverlapping(from, leaving, bytes.to_usize()) };
        let from = self.block_local(block, bytes);
        // Signaled; otherwise a thread that waits for the block might never see a completion.
        let order = Order::new(Work::Write, to, from, true);
        // SAFETY: the block is registered, and the request holds it.
        unsafe { queue.post(order, Kept::Leaving(block)) }?;
        Ok(())
    }

    /// Copies runs of bytes to the peer, each short enough for inline data. They are posted in
    /// chains.
    ///
    /// # Safety
    /// The caller guarantees that the bytes of all runs can be read; otherwise as for
    /// [`Peer::put`].
    pub unsafe fn put_runs(&self, runs: &[Run]) -> Result<()> {
        self.with(|queue| {
            for runs in runs.chunks(queue.chain_max()) {
                let mut orders = [Order::ping(); CHAIN_MAX];
                for (order, run) in orders.iter_mut().zip(runs) {
                    assert!(run.bytes <= queue.inline_bytes_max());
                    let from = Local { at: run.from as u64, bytes: run.bytes.low_u32(), key: 0 };
                    let work = Work::WriteInline;
                    *order = Order::new(work, run.to, from, false);
                }
                self.room(queue, runs.len())?;
                queue.count().inline += runs.len().to_u64();
                // SAFETY: inline; the caller guarantees the bytes.
                unsafe { queue.post_chain(&mut orders[..runs.len()], Kept::Nothing) }?;
            }
            Ok(())
        })
    }

    /// Copies bytes from the peer's memory. They have arrived after [`Peer::flush_local`], after
    /// [`Peer::flush`], or when the answer of a request arrives that was sent after them and after
    /// [`Peer::order`].
    ///
    /// # Safety
    /// The caller guarantees that `bytes` bytes at `to` can be written, and that nothing else uses
    /// them until they have arrived.
    pub(super) unsafe fn get(&self, to: *mut u8, from: Remote, bytes: u64) -> Result<()> {
        if bytes == 0 {
            return Ok(());
        }
        self.with(|queue| {
            queue.count().gets += 1;
            if bytes > BLOCK_BYTES.to_u64() {
                // SAFETY: the caller guarantees the bytes.
                return unsafe { self.lend(queue, Work::Read, from, to as u64, bytes) };
            }
            self.room(queue, 1)?;
            if let Some(region) = self.core.device.unregistered() {
                let here = Local { at: to as u64, bytes: bytes.low_u32(), key: region.local_key() };
                let order = Order::new(Work::Read, from, here, true);
                let held = Kept::Buffer { _region: region };
                // SAFETY: the caller guarantees the bytes.
                unsafe { queue.post(Order { gathered: true, ..order }, held) }?;
                return Ok(());
            }
            let block = self.block(queue)?;
            queue.count().gets_copied += 1;
            let here = self.block_local(block, bytes);
            let order = Order::new(Work::Read, from, here, true);
            // SAFETY: the block is registered, and the request holds it.
            unsafe { queue.post(order, Kept::Arriving { block, to, bytes: bytes.low_u32() }) }?;
            Ok(())
        })
    }

    pub(super) fn block_local(&self, block: u32, bytes: u64) -> Local {
        let blocks = &self.core.blocks;
        Local { at: blocks.at(block) as u64, bytes: bytes.low_u32(), key: blocks.key() }
    }

    /// Sends from the user's memory, or receives into it, in as many messages as needed.
    ///
    /// # Safety
    /// As for [`Peer::put`] or [`Peer::get`].
    unsafe fn lend(
        &self,
        queue: &mut Queue,
        work: Work,
        to: Remote,
        at: u64,
        bytes: u64,
    ) -> core::result::Result<(), Fault> {
        let region = self.core.device.buffer(at, bytes, work == Work::Read)?;
        let message = self.core.message_bytes_max();
        let key = region.local_key();
        let part = |offset: u64| {
            let length = message.min(bytes - offset);
            let from = Local { at: at + offset, bytes: length.low_u32(), key };
            let to = to.offset(offset.cast_signed());
            Order::new(work, to, from, offset + length == bytes)
        };
        let mut offset = 0;
        while offset < bytes {
            let mut orders = [part(offset); CHAIN_MAX];
            let left =
                (bytes - offset).div_ceil(message).min(queue.chain_max().to_u64()).to_usize();
            for (index, order) in orders[..left].iter_mut().enumerate() {
                *order = part(offset + index.to_u64() * message);
            }
            orders[left - 1].signaled = true;
            self.room(queue, left)?;
            queue.count().pieces += left.to_u64() - u64::from(offset == 0);
            let held = Kept::Buffer { _region: region.clone() };
            // SAFETY: the region is registered, and the request holds it.
            unsafe { queue.post_chain(&mut orders[..left], held) }?;
            offset += left.to_u64() * message;
        }
        Ok(())
    }
}
