//! Transfers of many runs by the device: as they are, or several of them in one message. The three
//! strategies of foMPI's paper on datatypes (§2), chosen by the size and the places of the runs:
//!
//! - *maximal block*: each run is a message. No copy, and the least to do before the call returns.
//! - *fixed buffer*: runs that follow each other at the target are gathered in a buffer and are one
//!   message; a get takes short gaps along. What is too long for that goes by itself.
//! - *target block*: the same, with a buffer as long as what follows each other at the target. The
//!   fewest messages, and memory without a bound; so it is there to be measured, not chosen.
//!
//! On paper a message of eight bytes costs the device and its queue as much as one of some hundred,
//! and a copy of as many bytes by the processor ten nanoseconds.

use super::unmapped::transfer;
use crate::config::{Config, Strategy};
use crate::error::Result;
use crate::fabric::Way;
use crate::fabric::verbs::{BLOCK_BYTES, Remote, Run};
use crate::window::wide::address::Distant;
use core::ptr;

/// Bytes from which on a run is a message by itself: a copy of it would cost more than one.
const LONG: u64 = 2 << 10;
/// Bytes of a message with several runs: the road takes so many along without a registration.
const MESSAGE: u64 = BLOCK_BYTES as u64;
/// Bytes of gets that are under way at once.
const UNDER_WAY: usize = 128 << 10;
/// Runs that are remembered at once.
const PARTS: usize = 4 << 10;
/// Short runs of a put that are gathered.
const RUNS: usize = 64;
/// Bytes between two runs of a get that are read along.
const GAP_MAX: u64 = 256;

/// A run in the buffer.
#[derive(Clone, Copy)]
struct Part {
    here: *mut u8,
    at: usize,
    bytes: usize,
}

/// A transfer of many runs that is under way.
pub struct Coalesce<'a> {
    target: Distant<'a>,
    way: Way,
    strategy: Strategy,
    buffer: Vec<u8>,
    parts: Vec<Part>,
    /// the message that is being gathered: its first part, where it begins in the buffer and at the
    /// target, and how long it is
    first: usize,
    at: usize,
    there: u64,
    bytes: u64,
    /// runs of a put that are short enough to leave in one chain, and how long they may be
    short: Vec<Run>,
    short_max: u64,
    /// what became of the messages before
    done: Result<()>,
}

impl<'a> Coalesce<'a> {
    /// None yet.
    pub fn new(target: Distant<'a>, way: Way) -> Coalesce<'a> {
        Coalesce {
            target,
            way,
            strategy: Config::get().strategy,
            buffer: Vec::new(),
            parts: Vec::new(),
            first: 0,
            at: 0,
            there: 0,
            bytes: 0,
            short: Vec::new(),
            short_max: if way == Way::Put { target.peer.run_bytes_max() } else { 0 },
            done: Ok(()),
        }
    }

    /// The longest message with several runs.
    fn message_max(&self) -> u64 {
        if self.strategy == Strategy::TargetBlock { u64::MAX } else { MESSAGE }
    }

    /// Adds a run.
    ///
    /// # Safety
    /// Until a flush behind `finish`, the bytes at `here` may be read or written; those at the
    /// target, and what lies between the runs there, are inside of the window.
    pub unsafe fn push(&mut self, here: *mut u8, there: u64, bytes: u64) {
        let goes_alone = match self.strategy {
            Strategy::Auto => bytes >= LONG,
            Strategy::MaximalBlock => true,
            Strategy::FixedBuffer => bytes > MESSAGE,
            Strategy::TargetBlock => false,
        };
        if goes_alone {
            // SAFETY: the caller's promise.
            unsafe { self.send_run(here, there, bytes) };
            return;
        }
        let gap_max = if self.way == Way::Get { GAP_MAX } else { 0 };
        let gap = there.checked_sub(self.there + self.bytes).filter(|gap| *gap <= gap_max);
        let goes_on = self.parts.len() > self.first
            && gap.is_some_and(|gap| self.bytes + gap + bytes <= self.message_max());
        if !goes_on {
            // SAFETY: the caller's promise, for the runs before.
            unsafe { self.close() };
            (self.there, self.bytes) = (there, 0);
        }
        let at = self.at + (there - self.there) as usize;
        self.parts.push(Part { here, at, bytes: bytes as usize });
        self.bytes = there - self.there + bytes;
    }

    /// Sends a run as it is. Short ones of a put leave with others: a device is told of a chain of
    /// requests at the price of one.
    ///
    /// # Safety
    /// As for `push`.
    unsafe fn send_run(&mut self, here: *mut u8, there: u64, bytes: u64) {
        if bytes > self.short_max {
            // SAFETY: the caller's promise.
            return unsafe { self.send(here, there, bytes) };
        }
        let to = Remote { at: there, ..self.target.at };
        self.short.push(Run { to, from: here, bytes });
        if self.short.len() == RUNS {
            // SAFETY: the caller's promise.
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
            self.done = unsafe { self.target.peer.put_runs(&self.short) };
        }
        self.short.clear();
    }

    /// Sends bytes as they are.
    ///
    /// # Safety
    /// As for `push`.
    unsafe fn send(&mut self, here: *mut u8, there: u64, bytes: u64) {
        if self.done.is_ok() {
            let at = Remote { at: there, ..self.target.at };
            let target = Distant { at, ..self.target };
            // SAFETY: the caller's promise.
            self.done = unsafe { transfer(self.way, target, here, bytes) };
        }
    }

    /// Sends the message that was gathered.
    ///
    /// # Safety
    /// As for `push`.
    unsafe fn close(&mut self) {
        let (at, there, bytes) = (self.at, self.there, self.bytes);
        match self.parts.len() - self.first {
            0 => return,
            1 => {
                let here = self.parts.pop().map_or(ptr::null_mut(), |part| part.here);
                // SAFETY: the caller's promise.
                return unsafe { self.send_run(here, there, bytes) };
            }
            _ => {}
        }
        let end = at + bytes as usize;
        if end > self.buffer.len() {
            // Gets that are under way write into it where it is.
            if self.way == Way::Get && at > 0 {
                // SAFETY: the caller's promise.
                return unsafe {
                    self.arrive();
                    self.close()
                };
            }
            self.buffer.resize(end.max(room(self.way)), 0);
        }
        let buffer = self.buffer.as_mut_ptr();
        if self.way == Way::Put {
            for part in &self.parts {
                // SAFETY: the caller vouches for the run, and the buffer has room for it.
                unsafe { ptr::copy_nonoverlapping(part.here, buffer.add(part.at), part.bytes) };
            }
            self.parts.clear();
            // SAFETY: the buffer is ours; longer messages are waited for.
            unsafe { self.send(buffer, there, bytes) };
            if bytes > MESSAGE && self.done.is_ok() {
                self.done = self.target.peer.flush_local();
            }
            return;
        }
        // SAFETY: the buffer is ours and stays until `arrive`.
        unsafe { self.send(buffer.wrapping_add(at), there, bytes) };
        (self.first, self.at) = (self.parts.len(), end);
        if end + MESSAGE as usize > self.buffer.len() || self.parts.len() >= PARTS {
            // SAFETY: the caller's promise.
            unsafe { self.arrive() };
        }
    }

    /// Waits for the gets under way, and scatters what they brought. The message that is being
    /// gathered moves to the front.
    ///
    /// # Safety
    /// As for `push`.
    unsafe fn arrive(&mut self) {
        if self.first > 0 {
            // Whatever failed before: a get that is under way writes into the buffer.
            let came = self.target.peer.flush_local();
            self.done = self.done.clone().and(came);
        }
        if self.done.is_ok() {
            for part in &self.parts[..self.first] {
                let from = self.buffer.as_ptr().wrapping_add(part.at);
                // SAFETY: the bytes are there, and the caller vouches for the run.
                unsafe { ptr::copy_nonoverlapping(from, part.here, part.bytes) };
            }
        }
        self.parts.drain(..self.first);
        for part in &mut self.parts {
            part.at -= self.at;
        }
        (self.first, self.at) = (0, 0);
    }

    /// All runs have been sent on their way.
    ///
    /// # Safety
    /// As for `push`.
    pub unsafe fn finish(mut self) -> Result<()> {
        // SAFETY: the caller's promise.
        unsafe {
            self.close();
            self.arrive();
            self.send_short();
        }
        self.done
    }
}

/// Bytes of the buffer, at least.
fn room(way: Way) -> usize {
    match way {
        Way::Put => MESSAGE as usize,
        Way::Get => UNDER_WAY,
    }
}
