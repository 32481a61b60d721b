//! Transfers of many runs by the device, as a message for each run or for several runs: the fixed
//! buffer of foMPI's paper on datatypes (§2) where it pays. Runs that follow each other at the
//! target, one after the other, are one message as long as a block of the transport; a get also
//! reads short gaps between them. A run that is too long for that, or has no neighbour, is a
//! message of its own. A few runs that are longer than a block in all, in memory that stays
//! registered, are one message without a copy.
//!
//! A part of a message is a message as well, and each message takes all runs that it can. So no
//! other division of the runs has fewer messages.
//!
//! On paper (decision 0012): a request costs this process some 150 ns, whatever its length up to a
//! block, and a run in a message some 5 ns; the bytes are copied to or from a block in either case.
//! So one message of two runs is cheaper than two messages, as long as its bytes are copied once.

use core::mem;

use super::device::Region;
use super::peer::Peer;
use super::pool::{BLOCK_BYTES, Part};
use crate::Way;
use crate::error::Result;
use crate::number::Number;
use crate::remote::{Bytes, Remote, Runs};

/// The most bytes of a message whose runs are copied.
const MESSAGE: u64 = BLOCK_BYTES as u64;
/// The longest gap between two runs that a get also reads. Its bytes take no longer on a link of 25
/// Gbit/s and up than a request of their own costs.
pub const GAP_MAX: u64 = 512;
/// The number of short runs of a put that are sent as one chain.
const SHORT: usize = 64;

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
    /// the message that is being gathered: its runs, its address at the target, and its length
    parts: Vec<Part>,
    there: u64,
    bytes: u64,
    /// the registered memory of its runs, if they are not copied
    regions: Vec<Region>,
    /// the most runs of a message that is not copied
    sge_max: usize,
    /// runs of a put that are short enough for a chain, and the longest such length
    short: Vec<Run>,
    short_max: u64,
    /// the result of the messages before
    done: Result<()>,
}

impl<'a> Coalesce<'a> {
    /// Starts without runs.
    pub(super) fn new(peer: &'a Peer, within: Remote, way: Way) -> Coalesce<'a> {
        let (inline_max, sge_max) = peer.request_limits(way);
        Coalesce {
            peer,
            within,
            way,
            parts: Vec::new(),
            there: 0,
            bytes: 0,
            regions: Vec::new(),
            sge_max,
            short: Vec::new(),
            short_max: if way == Way::Put { inline_max } else { 0 },
            done: Ok(()),
        }
    }

    /// The longest gap that is sent along with runs.
    fn gap_max(&self) -> u64 {
        if self.way == Way::Get { GAP_MAX } else { 0 }
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
                    way if bytes > MESSAGE => {
                        let regions = mem::take(&mut self.regions).into_boxed_slice();
                        peer.transfer_parts(way, at, &self.parts, regions)
                    }
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
        self.regions.clear();
    }

    /// Whether a run that begins at the target `gap` bytes after the others is part of their
    /// message, which is copied, or lies in memory that stays registered.
    fn takes(&mut self, here: *mut u8, gap: u64, bytes: u64) -> bool {
        let all = self.bytes + gap + bytes;
        if self.parts.is_empty() || all <= MESSAGE {
            return !self.parts.is_empty();
        }
        let core = &self.peer.core;
        if self.parts.len() >= self.sge_max || all > core.message_bytes_max() {
            return false;
        }
        let runs = self.parts.iter().map(|part| (part.here, u64::from(part.bytes)));
        if gap > 0 || runs.clone().map(|(_, bytes)| bytes).sum::<u64>() < self.bytes {
            return false;
        }
        for (here, bytes) in runs.skip(self.regions.len()).chain([(here, bytes)]) {
            let Some(region) = core.device.lasting(here as u64, bytes) else { return false };
            self.regions.push(region);
        }
        true
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
        if bytes > u32::MAX.into() {
            // SAFETY: guaranteed by the caller.
            return unsafe { self.send_run(here, there, bytes) };
        }
        let gap = there.checked_sub(self.there + self.bytes).filter(|gap| *gap <= self.gap_max());
        if !gap.is_some_and(|gap| self.takes(here, gap, bytes)) {
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
