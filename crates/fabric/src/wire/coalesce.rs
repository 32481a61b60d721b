//! Transfers of many runs by the device, as a message for each run or for several runs. The file
//! has the three strategies of foMPI's paper on datatypes (§2), and one that decides by the size
//! and the places of the runs:
//!
//! - *maximal block*: each run is a message.
//! - *fixed buffer*: runs that follow each other at the target, one after the other, are one
//!   message as long as a block of the transport. A run that is too long for that, or has no
//!   neighbour, is a message of its own.
//! - *target block*: like the fixed buffer, with a buffer as long as the runs that follow one
//!   another at the target. It needs the fewest messages, but memory without a bound: it exists for
//!   measurements only.
//! - *auto*: the fixed buffer, and a get also reads short gaps between the runs.
//!
//! On paper (decision 0012): a request costs this process some 150 ns, whatever its length up to a
//! block, and a run in a message some 5 ns; the bytes are copied to or from a block in either case.
//! So one message of two runs is cheaper than two messages, as long as its bytes are copied once.

use core::{mem, ptr};

use super::peer::Peer;
use super::pool::{BLOCK_BYTES, Part};
use crate::Way;
use crate::config::{Config, Strategy};
use crate::error::Result;
use crate::number::Number;
use crate::remote::{Bytes, Remote, Runs};

/// The most bytes of a message with several runs, except by the strategy target block.
const MESSAGE: u64 = BLOCK_BYTES as u64;
/// The longest gap between two runs that a get also reads. Its bytes take no longer on a link of 25
/// Gbit/s and up than a request of their own costs.
pub const GAP_MAX: u64 = 512;
/// The number of short runs of a put that are sent as one chain.
const SHORT: usize = 64;
/// The most runs of a message of any length.
const RUNS_MAX: usize = 1 << 20;

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

/// A transfer of many runs that is under way.
pub struct Coalesce<'a> {
    peer: &'a Peer,
    /// memory of the target with the key of all runs
    within: Remote,
    way: Way,
    strategy: Strategy,
    /// the message that is being gathered: its runs, its address at the target, and its length
    parts: Vec<Part>,
    there: u64,
    bytes: u64,
    /// runs of a put that are short enough for a chain, and the longest such length
    short: Vec<Run>,
    short_max: u64,
    /// the result of the messages before
    done: Result<()>,
}

impl<'a> Coalesce<'a> {
    /// Starts without runs.
    pub(super) fn new(peer: &'a Peer, within: Remote, way: Way) -> Coalesce<'a> {
        Coalesce {
            peer,
            within,
            way,
            strategy: Config::get().strategy,
            parts: Vec::new(),
            there: 0,
            bytes: 0,
            short: Vec::new(),
            short_max: if way == Way::Put { peer.run_bytes_max() } else { 0 },
            done: Ok(()),
        }
    }

    /// The length of the longest message with several runs.
    fn message_max(&self) -> u64 {
        if self.strategy == Strategy::TargetBlock { u32::MAX.into() } else { MESSAGE }
    }

    /// The longest gap that is sent along with runs.
    fn gap_max(&self) -> u64 {
        if self.way == Way::Get && self.strategy == Strategy::Auto { GAP_MAX } else { 0 }
    }

    /// Returns memory of the target.
    fn at(&self, there: u64) -> Remote {
        Remote { at: there, ..self.within }
    }

    /// Sends a run as a message of its own. Short runs of a put are collected: posting a chain of
    /// requests to the device costs as much as posting one.
    ///
    /// # Safety
    /// As for `push`.
    unsafe fn send_run(&mut self, here: *mut u8, there: u64, bytes: u64) {
        if bytes > self.short_max {
            // SAFETY: guaranteed by the caller.
            return unsafe { self.send(here, there, bytes) };
        }
        let to = self.at(there);
        self.short.push(Run { to, from: here, bytes });
        if self.short.len() == SHORT {
            // SAFETY: guaranteed by the caller.
            unsafe { self.send_short() };
        }
    }

    /// Sends the short runs.
    ///
    /// # Safety
    /// As for `push`.
    unsafe fn send_short(&mut self) {
        if self.done.is_ok() && !self.short.is_empty() {
            // SAFETY: the caller's promise, for each of them.
            self.done = unsafe { self.peer.put_runs(&self.short) };
        }
        self.short.clear();
    }

    /// Sends bytes by themselves.
    ///
    /// # Safety
    /// As for `push`.
    unsafe fn send(&mut self, here: *mut u8, there: u64, bytes: u64) {
        if self.done.is_ok() {
            // SAFETY: guaranteed by the caller.
            self.done = unsafe { self.transfer(there, here, bytes) };
        }
    }

    /// Sends the message that was gathered.
    ///
    /// # Safety
    /// As for `push`.
    unsafe fn close(&mut self) {
        let (there, bytes) = (self.there, self.bytes);
        if let [part] = self.parts[..] {
            // SAFETY: guaranteed by the caller.
            unsafe { self.send_run(part.here, there, bytes) };
        } else if !self.parts.is_empty() && self.done.is_ok() {
            let (peer, at) = (self.peer, self.at(there));
            // SAFETY: the caller's promise, and the runs are parts of the message.
            self.done = unsafe {
                match self.way {
                    _ if bytes > MESSAGE => self.send_long(),
                    Way::Put => peer.put_gathered(at, &self.parts, bytes),
                    Way::Get => {
                        // The next message usually has as many runs.
                        let next = Vec::with_capacity(self.parts.len());
                        let parts = mem::replace(&mut self.parts, next).into_boxed_slice();
                        peer.get_scattered(at, parts, bytes)
                    }
                }
            };
        }
        self.parts.clear();
    }

    /// Sends a message that is longer than a block of the transport, and waits for it.
    ///
    /// # Safety
    /// As for `push`.
    unsafe fn send_long(&self) -> Result<()> {
        let mut buffer = Vec::<u8>::with_capacity(self.bytes.to_usize());
        let buffer = buffer.as_mut_ptr();
        let copy = |part: &Part| {
            let at = buffer.wrapping_add(part.at.to_usize());
            let (from, to) = match self.way {
                Way::Put => (part.here, at),
                Way::Get => (at, part.here),
            };
            // SAFETY: the caller guarantees the run, and the buffer has room for the message.
            unsafe { ptr::copy_nonoverlapping(from, to, part.bytes.to_usize()) };
        };
        if self.way == Way::Put {
            self.parts.iter().for_each(copy);
        }
        // SAFETY: the buffer is ours, and stays until nothing is under way.
        let sent = unsafe { self.transfer(self.there, buffer, self.bytes) };
        let came = self.peer.flush_local();
        sent.and(came)?;
        if self.way == Way::Get {
            self.parts.iter().for_each(copy);
        }
        Ok(())
    }

    /// Sends bytes as they are, even after a failure.
    ///
    /// # Safety
    /// As for `push`.
    unsafe fn transfer(&self, there: u64, here: *mut u8, bytes: u64) -> Result<()> {
        let at = self.at(there);
        // SAFETY: guaranteed by the caller.
        unsafe {
            match self.way {
                Way::Put => self.peer.put(at, here, bytes),
                Way::Get => self.peer.get(here, at, bytes),
            }
        }
    }
}

impl Runs for Coalesce<'_> {
    unsafe fn push(&mut self, here: *mut u8, there: u64, bytes: u64) {
        let longest = self.message_max();
        if self.strategy == Strategy::MaximalBlock || bytes > longest {
            // SAFETY: guaranteed by the caller.
            return unsafe { self.send_run(here, there, bytes) };
        }
        let gap = there.checked_sub(self.there + self.bytes).filter(|gap| *gap <= self.gap_max());
        let goes_on = gap.is_some_and(|gap| self.bytes + gap + bytes <= longest);
        if !goes_on || self.parts.is_empty() || self.parts.len() == RUNS_MAX {
            // SAFETY: the caller's promise, for the runs before.
            unsafe { self.close() };
            self.there = there;
        }
        let at = (there - self.there).low_u32();
        self.parts.push(Part { here, at, bytes: bytes.low_u32() });
        self.bytes = there - self.there + bytes;
    }

    unsafe fn finish(mut self) -> Result<()> {
        // SAFETY: guaranteed by the caller.
        unsafe {
            self.close();
            self.send_short();
        }
        self.done
    }
}
