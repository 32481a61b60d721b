//! Small puts to one process that are gathered: this process copies their bytes, and gives many
//! puts to the kernel in one call. The target takes no part in it. MPI permits that a put begins as
//! late as at the call that completes it (MPI-4.1 §12.7.3). Invariant: nothing else is sent to the
//! process before a put that was gathered before it.
//!
//! All small puts are gathered until the next completing call, or until one of these is sent to the
//! process: a get, a put that is not small, a transfer of many runs. So a put and its flush are one
//! system call, whose error is the answer of the flush.
//!
//! In ns for each of a thousand puts, by `cargo bench --bench process_vm`, on a machine where a
//! system call for 8 bytes takes 1,490, and one for 1 KiB 1,500:
//!
//! | bytes | one after the other  | 8 KiB apart |
//! |-------|----------------------|-------------|
//! | 8     | 8                    | 343         |
//! | 1,024 | 136                  | 415         |
//!
//! A caller counts the processes for which puts may wait ([`PendingCount`]).

use super::batch::{self, Batch};
use super::{Process, Way};
use crate::error::{Error, Result};
use crate::number::Number;
use crate::pending_puts::{Left, PendingCount, PendingPuts};
use crate::sys::vm::{self, IoVec};

/// The most bytes of a put that is gathered: their copy takes much less time than the system call
/// that it saves.
pub const SMALL_BYTES_MAX: u64 = 1 << 10;
/// The most bytes that wait.
const BYTES: usize = 32 << 10;
/// The most runs of the target that wait. Longer lists save nothing.
const RUNS: usize = 128;
const _: () = assert!(RUNS <= vm::RUNS_MAX && SMALL_BYTES_MAX <= BYTES as u64);

/// The small puts of this process to one other process.
#[derive(Default)]
pub struct SmallPuts {
    due: PendingPuts<Gathered>,
}

/// Puts that wait, and the first error of those that were sent.
#[derive(Default)]
struct Gathered {
    /// bytes of all runs, one run after the other
    bytes: Vec<u8>,
    /// where they go; runs that follow each other without a gap are merged
    runs: Vec<IoVec>,
    error: Option<Error>,
}

// SAFETY: the addresses are those of another process: numbers.
unsafe impl Send for Gathered {}

impl SmallPuts {
    /// Gathers a put of at most [`SMALL_BYTES_MAX`] bytes.
    ///
    /// # Safety
    /// The bytes at `here` may be read; the rest is as for [`Process::put`].
    unsafe fn gather(
        &self,
        process: Process<'_>,
        there: u64,
        (here, bytes): (*const u8, u64),
        count: &impl PendingCount,
    ) {
        self.due.gather(count, |gathered| {
            if !gathered.has_room(bytes) {
                gathered.send(process);
            }
            // SAFETY: the caller's promise, and there is room.
            unsafe { gathered.push(there, here, bytes) };
        });
    }

    /// Sends the puts that wait. Returns whether an error is kept, of this call or of an earlier
    /// one.
    #[inline]
    pub fn send(&self, process: Process<'_>) -> bool {
        self.due.send(|gathered| gathered.send(process))
    }

    /// Completes the puts so far: as `send`.
    #[inline]
    pub fn complete(&self, process: Process<'_>, count: &impl PendingCount) -> bool {
        self.due.complete(count, |gathered| {
            let left = gathered.send(process);
            // Between epochs a process keeps no memory for any target; this takes 0.1 us.
            (gathered.bytes, gathered.runs) = (Vec::new(), Vec::new());
            left
        })
    }

    /// Returns whether puts may wait, or an error is kept.
    #[cfg(test)]
    pub fn is_waiting(&self) -> bool {
        self.due.is_due()
    }

    /// Returns the error that is kept, if there is one. The error is not kept any more.
    pub fn take_error(&self, count: &impl PendingCount) -> Result<()> {
        self.due.take(count, |gathered| {
            let error = gathered.error.take().map_or(Ok(()), Err);
            (error, gathered.left())
        })
    }
}

impl Gathered {
    #[inline]
    fn has_room(&self, bytes: u64) -> bool {
        self.runs.len() < RUNS && self.bytes.len() + bytes.to_usize() <= BYTES
    }

    /// Adds a put. There must be room.
    ///
    /// # Safety
    /// The bytes at `here` may be read.
    #[inline]
    unsafe fn push(&mut self, there: u64, here: *const u8, bytes: u64) {
        self.bytes.reserve(bytes.to_usize());
        let (before, all) = (self.bytes.len(), self.bytes.len() + bytes.to_usize());
        // SAFETY: the caller may read the bytes; the buffer has room for them, by `reserve`, and is
        // written ahead of its new length.
        unsafe {
            batch::copy(self.bytes.as_mut_ptr().add(before), here, bytes.to_usize());
            self.bytes.set_len(all);
        }
        match self.runs.last_mut() {
            Some(last) if batch::end(last) == there => last.iov_len += bytes.to_usize(),
            _ if bytes == 0 => {}
            _ => self.runs.push(vm::run(there, bytes)),
        }
    }

    /// Returns whether a completing call has to come back.
    fn left(&self) -> Left {
        match self.runs.is_empty() && self.error.is_none() {
            true => Left::Nothing,
            false => Left::Something,
        }
    }

    /// Gives all puts to the kernel, and keeps the first error. The others arrive also then.
    fn send(&mut self, process: Process<'_>) -> Left {
        if self.runs.is_empty() {
            return self.left();
        }
        let here = vm::own_run(self.bytes.as_mut_ptr(), self.bytes.len().to_u64());
        // SAFETY: the bytes are initialised; the callers of `gather` vouch for the runs.
        let moved = unsafe { process.call_lists(Way::Put, vm::one(&here), &self.runs) };
        if moved != self.bytes.len().cast_signed()
            && let Err(error) = self.one_by_one(process, moved)
        {
            self.error.get_or_insert(error);
        }
        self.bytes.clear();
        self.runs.clear();
        self.left()
    }

    /// Puts the runs one at a time, starting after the first `moved` bytes. Returns the first
    /// error.
    #[cold]
    fn one_by_one(&self, process: Process<'_>, moved: isize) -> Result<()> {
        let (mut moved, mut here) = (moved.max(0).cast_unsigned().to_u64(), self.bytes.as_ptr());
        let mut result = Ok(());
        for run in &self.runs {
            let (there, bytes) = (run.iov_base.addr().to_u64(), run.iov_len.to_u64());
            let done = bytes.min(moved);
            moved -= done;
            let from = here.wrapping_add(done.to_usize());
            // SAFETY: as in `send`.
            let put = unsafe { process.put(there.wrapping_add(done), from, bytes - done) };
            result = result.and(put);
            here = here.wrapping_add(bytes.to_usize());
        }
        result
    }
}

/// A process of this node whose memory can be copied, and the small puts to it that are gathered.
/// The laws of [`Process`] hold, except for a put of [`Gathering::put_later`]: that is done when a
/// later `flush` returns, also if another thread makes it, or after any other call of this type.
/// Its error is the answer of `flush` then. The origin's bytes may be changed at once; if their
/// memory is not mapped, that is a signal, as for any load.
#[derive(Clone, Copy)]
pub struct Gathering<'a> {
    /// the process
    pub process: Process<'a>,
    /// the puts; `None`: each one is made at once
    pub small_puts: Option<&'a SmallPuts>,
}

impl<'a> Gathering<'a> {
    /// A process to which each put is made at once.
    #[inline]
    pub fn nothing(process: Process<'a>) -> Gathering<'a> {
        Gathering { process, small_puts: None }
    }

    /// Puts at most `SMALL_BYTES_MAX` bytes later together with others, otherwise at once.
    /// `prepare` is called before a small put, and returns the count of the processes at which
    /// completing calls have to do their part.
    ///
    /// # Safety
    /// As for [`Process::put`], until the put is done; the bytes at `here` may be read now.
    #[inline(always)]
    pub unsafe fn put_later<'c, Count: PendingCount + 'c>(
        self,
        there: u64,
        here: *const u8,
        bytes: u64,
        prepare: impl FnOnce() -> &'c Count,
    ) -> Result<()> {
        // SAFETY: guaranteed by the caller.
        unsafe {
            match self.small_puts {
                Some(puts) if bytes <= SMALL_BYTES_MAX => {
                    puts.gather(self.process, there, (here, bytes), prepare());
                    Ok(())
                }
                _ => self.put(there, here, bytes),
            }
        }
    }

    /// [`Process::put`] after the gathered puts.
    ///
    /// # Safety
    /// As there.
    #[inline]
    pub unsafe fn put(self, there: u64, here: *const u8, bytes: u64) -> Result<()> {
        self.send();
        // SAFETY: guaranteed by the caller.
        unsafe { self.process.put(there, here, bytes) }
    }

    /// [`Process::get`] after the gathered puts.
    ///
    /// # Safety
    /// As there.
    #[inline]
    pub unsafe fn get(self, here: *mut u8, there: u64, bytes: u64) -> Result<()> {
        self.send();
        // SAFETY: guaranteed by the caller.
        unsafe { self.process.get(here, there, bytes) }
    }

    /// Returns an empty transfer of many runs, after the gathered puts.
    #[inline]
    pub fn runs(self, way: Way) -> Batch<'a> {
        self.send();
        Batch::new(self.process, way)
    }

    /// Sends the gathered puts. An error is kept for the next `flush`.
    #[inline]
    pub fn send(self) {
        if let Some(puts) = self.small_puts {
            let _kept = puts.send(self.process);
        }
    }
}
