//! Accumulates on distant elements that this process reads, combines and writes back, in blocks of
//! the transport. It holds the target's accumulate lock or is alone there. The device reads
//! elements into a block, they are combined there, and the device writes them from there.
//!
//! On paper, for each [`BLOCKS`] blocks (64 KiB): all READs after the request for the lock and one
//! wait, then all WRITEs. The release is one wait at the end.

use super::acc::AccLock;
use super::acc_run::AccRun;
use crate::datatype::reduce::{self, Op};
use crate::error::Result;
use crate::fabric::location::{Distant, Unmapped};
use crate::fabric::net::{self, GAP_MAX};
use crate::fabric::remote::{BOUNCE_BYTES, BounceBuffer, Bytes, Network, Remote};
use crate::number::Number;
use core::ops::Range;
use smallvec::SmallVec;

/// The number of blocks that are in use at once.
const BLOCKS: usize = 8;
/// The most runs that one read and one write carry out together.
const RUNS: usize = 128;
/// The address at the target of a block's first byte is a multiple of this, so that elements have
/// the same alignment in the block.
const ALIGNMENT: u64 = 16;

/// A block with runs that lie close to each other at the target.
struct Message<'a> {
    buffer: net::BounceBlock<'a>,
    /// the address at the target of the block's first byte
    zero: u64,
    /// the part of the block that is in use
    part: Range<usize>,
    /// its runs
    runs: Range<usize>,
    /// whether the elements at the target must be read
    reads: bool,
}

impl Message<'_> {
    /// Whether an element at `there` fits into its block, close after the previous elements.
    fn takes(&self, there: u64, extent: u64) -> bool {
        let end = self.zero + self.part.end.to_u64();
        let follows = (end..=end + GAP_MAX).contains(&there);
        follows && there + extent <= self.zero + BOUNCE_BYTES.to_u64()
    }

    /// Whether it overlaps bytes at the target.
    fn overlaps(&self, there: u64, bytes: u64) -> bool {
        let first = self.zero + self.part.start.to_u64();
        there < self.zero + self.part.end.to_u64() && first < there + bytes
    }
}

/// An accumulate of many runs. No two pending runs overlap.
pub struct BlockAcc<'a> {
    target: Distant<'a>,
    op: Op,
    /// the target's lock; `None`: no other call changes the elements
    pub lock: Option<AccLock<'a>>,
    messages: SmallVec<[Message<'a>; BLOCKS]>,
    /// the runs of a message follow each other
    runs: SmallVec<[AccRun; RUNS]>,
    /// a block that is kept for the next read, or was reserved: the holder of the lock does not
    /// wait for a block
    kept: Option<net::BounceBlock<'a>>,
}

impl<'a> BlockAcc<'a> {
    /// Starts without runs.
    pub fn new(target: Distant<'a>, op: Op, lock: Option<AccLock<'a>>) -> BlockAcc<'a> {
        let (messages, runs) = (SmallVec::new(), SmallVec::new());
        BlockAcc { target, op, lock, messages, runs, kept: None }
    }

    /// Adds a run.
    ///
    /// # Safety
    /// As for [`super::combine::UnmappedAcc::push`].
    pub unsafe fn push(&mut self, run: AccRun) -> Result<()> {
        let mut rest = run;
        while rest.count > 0 {
            let extent = rest.basic.extent();
            if self.runs.len() == RUNS || !self.can_take(rest.there, extent.to_u64(), rest.bytes())
            {
                // SAFETY: guaranteed by the caller.
                unsafe { self.finish(false)? };
                continue;
            }
            let op = self.op;
            let Some(message) = self.messages.last_mut() else { unreachable!("it can take") };
            let at = (rest.there - message.zero).to_usize();
            let (run, after) = rest.split(rest.count.min((BOUNCE_BYTES - at) / extent));
            message.part.end = at + run.bytes().to_usize();
            message.reads |= !run.is_overwritten(op);
            self.runs.push(run);
            message.runs.end = self.runs.len();
            rest = after;
        }
        Ok(())
    }

    /// Takes a block before the lock, for runs that may follow. Other threads may have all
    /// blocks and wait for the lock, so the holder of the lock must not wait for a block.
    pub fn reserve(&mut self) {
        if self.lock.is_some() && self.messages.is_empty() && self.kept.is_none() {
            self.kept = Some(self.target.peer.bounce_buffer());
        }
    }

    /// Makes sure that the last message can take an element at `there`. Returns false if all
    /// blocks are in use, or if a pending run overlaps the bytes from there on.
    fn can_take(&mut self, there: u64, extent: u64, bytes: u64) -> bool {
        if self.messages.iter().any(|message| message.overlaps(there, bytes)) {
            return false;
        }
        if self.messages.last().is_some_and(|last| last.takes(there, extent)) {
            return true;
        }
        let buffer = match self.messages.len() {
            BLOCKS => None,
            0 => Some(self.kept.take().unwrap_or_else(|| self.target.peer.bounce_buffer())),
            _ => self.target.peer.try_bounce_buffer(),
        };
        let Some(buffer) = buffer else { return false };
        let zero = there - there % ALIGNMENT;
        let at = (there - zero).to_usize();
        let (part, runs) = (at..at, self.runs.len()..self.runs.len());
        self.messages.push(Message { buffer, zero, part, runs, reads: false });
        true
    }

    /// Carries out the pending runs and releases the lock, also if something failed before.
    ///
    /// # Safety
    /// As for `push`.
    pub unsafe fn done(&mut self, before: Result<()>) -> Result<()> {
        // SAFETY: guaranteed by the caller.
        let done = before.and_then(|()| unsafe { self.finish(true) });
        match &mut self.lock {
            Some(lock) => lock.release().and(done),
            None => done,
        }
    }

    /// Carries out the pending runs; none is left afterwards.
    ///
    /// # Safety
    /// As for `push`.
    unsafe fn finish(&mut self, last: bool) -> Result<()> {
        if self.messages.is_empty() {
            return Ok(());
        }
        self.read()?;
        for (index, message) in core::mem::take(&mut self.messages).into_iter().enumerate() {
            // SAFETY: guaranteed by the caller.
            unsafe { self.combine(&message) };
            self.write(message, index > 0 || last)?;
        }
        self.runs.clear();
        Ok(())
    }

    /// Gets the elements that are needed, and the lock.
    fn read(&mut self) -> Result<()> {
        let (target, messages) = (self.target, &mut self.messages);
        let mut get = || {
            for message in messages.iter_mut().filter(|message| message.reads) {
                let zero = Remote { at: message.zero, ..target.at };
                message.buffer.read(zero, message.part.clone())?;
            }
            // The last one first: when it has arrived the others have, too.
            messages.iter_mut().rev().try_for_each(|message| message.buffer.arrived())
        };
        // WRITEs of the runs before, and atomics of this process, may be under way to the same
        // elements.
        target.peer.order();
        match &mut self.lock {
            Some(lock) => lock.read(Unmapped::Distant(target), get),
            None => get(),
        }
    }

    /// Combines the elements of a message with the operands.
    ///
    /// # Safety
    /// As for `push`.
    unsafe fn combine(&self, message: &Message<'_>) {
        for run in &self.runs[message.runs.clone()] {
            let here = message.buffer.at().wrapping_add((run.there - message.zero).to_usize());
            let AccRun { basic, origin, result, count, .. } = *run;
            // SAFETY: the caller guarantees operands and results; the block is ours, and the
            // elements were read, or are all written now.
            unsafe { reduce::accumulate_exclusive(self.op, basic, here, origin, result, count) };
        }
    }

    /// Writes the elements of a message back. Releases its block with the write, or keeps it.
    fn write(&mut self, message: Message<'a>, leaves: bool) -> Result<()> {
        let Message { buffer, zero, runs, .. } = message;
        let mut parts = SmallVec::<[Range<usize>; RUNS]>::new();
        for run in self.runs[runs].iter().filter(|_| self.op != Op::NoOp) {
            let first = (run.there - zero).to_usize();
            let end = first + run.bytes().to_usize();
            match parts.last_mut() {
                Some(part) if part.end == first => part.end = end,
                _ => parts.push(first..end),
            }
        }
        let there = Remote { at: zero, ..self.target.at };
        if leaves {
            return buffer.write(there, &parts);
        }
        let put = parts.iter().try_for_each(|part| {
            let from = buffer.at().wrapping_add(part.start);
            // SAFETY: a part of our block, which is short enough for one copy.
            unsafe {
                self.target.peer.put(
                    there.offset(part.start.to_u64().cast_signed()),
                    from,
                    part.len().to_u64(),
                )
            }
        });
        self.kept = Some(buffer);
        put
    }
}
