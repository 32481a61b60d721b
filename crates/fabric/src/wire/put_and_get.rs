//! Puts and gets of bytes. Depending on their length, the bytes are sent inline with the request,
//! copied through a block, or sent from the user's memory. Words are in `peer`, and so is waiting
//! for completion. Invariant: memory that the device accesses after a call has returned is held by
//! its request.

use super::chain::Chain;
use super::coalesce::{Coalesce, Run};
use super::fault::Fault;
use super::peer::Peer;
use super::pool::{BLOCK_BYTES, Kept};
use super::queue::Queue;
use crate::Way;
use crate::error::Result;
use crate::number::Number;
use crate::remote::{Bytes, Network, Remote};
use crate::request::{Leaves, Local, Order, Work};

impl Bytes for Peer {
    type Runs<'a> = Coalesce<'a>;

    /// Up to [`BLOCK_BYTES`] are copied at once; a longer buffer is in use until a flush.
    unsafe fn put(&self, to: Remote, from: *const u8, bytes: u64) -> Result<()> {
        if bytes == 0 {
            return Ok(());
        }
        // SAFETY: guaranteed by the caller.
        self.with(|queue| unsafe { self.put_on(queue, to, from, bytes) })
    }

    unsafe fn get(&self, to: *mut u8, from: Remote, bytes: u64) -> Result<()> {
        if bytes == 0 {
            return Ok(());
        }
        // SAFETY: guaranteed by the caller.
        self.with(|queue| unsafe { self.get_on(queue, to, from, bytes) })
    }

    fn runs(&self, within: Remote, way: Way) -> Coalesce<'_> {
        Coalesce::new(self, within, way)
    }

    fn order(&self) {
        self.order_by(Queue::order);
    }

    fn order_puts(&self) {
        self.order_by(Queue::order_puts);
    }

    fn order_reads(&self) {
        self.order_by(Queue::order_reads);
    }

    fn flush(&self) -> Result<()> {
        let waited = match self.is_idle() {
            true => Ok(()),
            false => self.flush_begin().and_then(|()| self.wait_for(|queue| queue.last_signaled())),
        };
        self.core.device.sweep();
        waited
    }

    fn flush_local(&self) -> Result<()> {
        let waited = if self.is_idle() { Ok(()) } else { self.wait_until_released() };
        self.core.device.sweep();
        waited
    }
}

impl Peer {
    /// [`Bytes::put`] of some bytes over the queue of the connection.
    ///
    /// # Safety
    /// As for [`Bytes::put`].
    #[inline(always)]
    pub(super) unsafe fn put_on(
        &self,
        queue: &mut Queue,
        to: Remote,
        from: *const u8,
        bytes: u64,
    ) -> core::result::Result<(), Fault> {
        if bytes > queue.inline_bytes_max() {
            // SAFETY: guaranteed by the caller.
            return unsafe { self.put_long(queue, to, from, bytes) };
        }
        if !queue.is_ready() {
            self.make_ready(queue)?;
        }
        queue.kinds.inline += 1;
        let from = Local { at: from as u64, bytes: bytes.low_u32(), key: 0 };
        let order = Order::new(Work::WriteInline, to, from, false);
        let order = Order { leaves: Leaves::IfFirst, ..order };
        // SAFETY: inline; the caller guarantees the bytes.
        unsafe { queue.post_small(order) }?;
        Ok(())
    }

    /// [`Bytes::get`] of some bytes over the queue of the connection.
    ///
    /// # Safety
    /// As for [`Bytes::get`].
    #[inline(always)]
    pub(super) unsafe fn get_on(
        &self,
        queue: &mut Queue,
        to: *mut u8,
        from: Remote,
        bytes: u64,
    ) -> core::result::Result<(), Fault> {
        queue.kinds.gets += 1;
        if bytes > BLOCK_BYTES.to_u64() {
            // SAFETY: the caller guarantees the bytes.
            return unsafe { self.lend(queue, Work::Read, from, to as u64, bytes) };
        }
        if !queue.is_ready() {
            self.make_ready(queue)?;
        }
        if self.core.device.service().is_some() {
            let here = Local { at: to as u64, bytes: bytes.low_u32(), key: 0 };
            let order = Order::new(Work::Read, from, here, true);
            // SAFETY: the caller guarantees the bytes.
            unsafe { queue.post(Order { leaves: Leaves::IfFirst, ..order }, Kept::of_user()) }?;
            return Ok(());
        }
        let block = self.block(queue)?;
        queue.kinds.gets_copied += 1;
        let here = self.block_local(block, bytes);
        let order = Order::new(Work::Read, from, here, true);
        // SAFETY: the block is registered, and the request holds it.
        unsafe { queue.post(order, Kept::Arriving { block, to, bytes: bytes.low_u32() }) }?;
        Ok(())
    }

    /// [`Bytes::put`] of more bytes than a request carries inline.
    ///
    /// # Safety
    /// As for [`Bytes::put`].
    #[inline(never)]
    unsafe fn put_long(
        &self,
        queue: &mut Queue,
        to: Remote,
        from: *const u8,
        bytes: u64,
    ) -> core::result::Result<(), Fault> {
        if bytes > BLOCK_BYTES.to_u64() {
            queue.kinds.lent += 1;
            // SAFETY: the caller guarantees the bytes.
            return unsafe { self.lend(queue, Work::Write, to, from as u64, bytes) };
        }
        self.room(queue, 1)?;
        let block = self.block(queue)?;
        queue.kinds.copied += 1;
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
    /// [`Bytes::put`].
    pub(super) unsafe fn put_runs(&self, runs: &[Run]) -> Result<()> {
        self.with(|queue| {
            queue.kinds.inline += runs.len().to_u64();
            if !queue.is_ready() {
                self.make_ready(queue)?;
            }
            let mut chain = Chain::new(self, queue);
            for run in runs {
                assert!(run.bytes <= chain.queue.inline_bytes_max());
                let from = Local { at: run.from as u64, bytes: run.bytes.low_u32(), key: 0 };
                let order = Order::new(Work::WriteInline, run.to, from, false);
                let order = Order { leaves: Leaves::IfFirst, ..order };
                // SAFETY: inline; the caller guarantees the bytes.
                unsafe { chain.push(order, Kept::Nothing) }?;
            }
            // SAFETY: as above.
            unsafe { chain.post() }.map(drop)
        })
    }

    pub(super) fn block_local(&self, block: u32, bytes: u64) -> Local {
        let blocks = &self.core.blocks;
        Local { at: blocks.at(block) as u64, bytes: bytes.low_u32(), key: blocks.key() }
    }

    /// Sends from the user's memory, or receives into it, in as many messages as needed.
    ///
    /// # Safety
    /// As for [`Bytes::put`] or [`Bytes::get`].
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
        let (key, pieces) = (region.local_key(), bytes.div_ceil(message));
        queue.kinds.pieces += pieces - 1;
        let mut chain = Chain::new(self, queue);
        for piece in 0..pieces {
            let offset = piece * message;
            let length = message.min(bytes - offset);
            let from = Local { at: at + offset, bytes: length.low_u32(), key };
            let order = Order::new(work, to.offset(offset.cast_signed()), from, false);
            let held = match work {
                Work::Write if self.core.device.service().is_some() => Kept::Streamed,
                _ => Kept::Buffer { _region: region.clone() },
            };
            // SAFETY: the region is registered, and the request holds it.
            unsafe { chain.push(order, held) }?;
        }
        // SAFETY: as above.
        unsafe { chain.post() }.map(drop)
    }
}
