//! Transfers of many runs: lists on the stack, and as few calls of the kernel as they fill.
//! Invariant: both lists hold the same number of bytes, which stand in the same order.

use super::{BYTES_MAX, Process, Way};
use crate::error::{Error, Result};
use crate::sys::vm::{self, Run};
use core::mem::MaybeUninit;
use core::{ptr, slice};

/// Runs on one side of a call.
const RUNS: usize = 128;
const _: () = assert!(RUNS <= vm::RUNS_MAX && size_of::<Batch>() <= 8192);

/// Runs of one side, neighbours merged.
struct Runs {
    list: [MaybeUninit<Run>; RUNS],
    count: usize,
}

impl Runs {
    fn is_full(&self) -> bool {
        self.count == RUNS
    }

    fn list(&self) -> &[Run] {
        // SAFETY: `push` has written the first `count`.
        unsafe { slice::from_raw_parts(self.list.as_ptr().cast(), self.count) }
    }

    /// There must be room for one more.
    #[inline]
    fn push(&mut self, run: Run) {
        if let Some(last) = self.count.checked_sub(1) {
            // SAFETY: the one before was written.
            let last = unsafe { self.list[last].assume_init_mut() };
            if last.iov_base.addr().wrapping_add(last.iov_len) == run.iov_base.addr() {
                last.iov_len += run.iov_len;
                return;
            }
        }
        self.list[self.count].write(run);
        self.count += 1;
    }
}

/// A transfer of many runs, in the order in which they are pushed. It goes to the kernel piece by
/// piece, and stops at its first error; the laws of [`Process`] hold for the whole when `finish`
/// returns.
#[must_use = "runs move when `finish` is called"]
pub struct Batch {
    process: Process,
    way: Way,
    /// in either list
    bytes: u64,
    here: Runs,
    there: Runs,
    error: Option<Error>,
}

impl Batch {
    /// An empty one.
    #[inline]
    pub fn new(process: Process, way: Way) -> Batch {
        let none = || Runs { list: [const { MaybeUninit::uninit() }; RUNS], count: 0 };
        Batch { process, way, bytes: 0, here: none(), there: none(), error: None }
    }

    /// Adds a run of `bytes` bytes between `here` and the address `there` of the process.
    ///
    /// # Safety
    /// As for [`Process::put`] or [`Process::get`], until `finish` returns.
    #[inline]
    pub unsafe fn push(&mut self, here: *mut u8, there: u64, bytes: u64) {
        let is_full = self.here.is_full() || self.there.is_full();
        if is_full || bytes > BYTES_MAX - self.bytes {
            // SAFETY: the caller's promise, for the runs before.
            unsafe { self.flush() };
            if bytes > BYTES_MAX {
                // SAFETY: the caller's promise.
                return unsafe { self.push_large(here, there, bytes) };
            }
        }
        self.here.push(vm::own_run(here, bytes));
        self.there.push(vm::run(there, bytes));
        self.bytes += bytes;
    }

    /// Moves what has not moved yet, and says what went wrong first.
    ///
    /// # Safety
    /// As for `push`.
    #[inline]
    pub unsafe fn finish(mut self) -> Result<()> {
        // SAFETY: the caller's promise.
        unsafe { self.flush() };
        self.error.take().map_or(Ok(()), Err)
    }

    /// A run that needs several calls by itself.
    ///
    /// # Safety
    /// As for `push`.
    #[cold]
    unsafe fn push_large(&mut self, here: *mut u8, there: u64, bytes: u64) {
        if self.error.is_none() {
            // SAFETY: the caller's promise.
            self.error = unsafe { self.process.copy(self.way, here, there, bytes) }.err();
        }
    }

    /// Moves all runs that are waiting, and forgets them.
    ///
    /// # Safety
    /// As for `push`.
    #[inline(never)]
    unsafe fn flush(&mut self) {
        let (here, there) = (self.here.list(), self.there.list());
        if self.error.is_none() && self.bytes > 0 {
            // SAFETY: the caller's promise.
            let moved = unsafe {
                match self.way {
                    Way::Put => vm::write(self.process.pid, here, there),
                    Way::Get => vm::read(self.process.pid, here, there),
                }
            };
            if moved != self.bytes as isize {
                // SAFETY: the caller's promise.
                self.error = unsafe { self.one_by_one(moved) }.err();
            }
        }
        (self.bytes, self.here.count, self.there.count) = (0, 0, 0);
    }

    /// The same runs one at a time behind the first `moved` bytes: the one that fails says why.
    ///
    /// # Safety
    /// As for `push`.
    #[cold]
    unsafe fn one_by_one(&self, moved: isize) -> Result<()> {
        let mut moved = moved.max(0) as u64;
        let (mut here, mut there) = (Left::new(self.here.list()), Left::new(self.there.list()));
        while here.skip_done() && there.skip_done() {
            let bytes = here.bytes.min(there.bytes);
            let done = bytes.min(moved);
            moved -= done;
            let from = (here.address.wrapping_add(done as usize), there.address());
            let from = (from.0, from.1.wrapping_add(done));
            if done < bytes {
                // SAFETY: the caller's promise.
                unsafe { self.process.copy(self.way, from.0, from.1, bytes - done)? };
            }
            here.take(bytes);
            there.take(bytes);
        }
        Ok(())
    }
}

/// What is left of one side.
struct Left<'a> {
    /// of the current run
    address: *mut u8,
    /// likewise
    bytes: u64,
    /// behind the current one
    runs: &'a [Run],
}

impl<'a> Left<'a> {
    fn new(runs: &'a [Run]) -> Left<'a> {
        Left { address: ptr::null_mut(), bytes: 0, runs }
    }

    fn address(&self) -> u64 {
        self.address.addr() as u64
    }

    /// Goes on to the next run if the current one is done; false at the end.
    fn skip_done(&mut self) -> bool {
        while self.bytes == 0 {
            let Some((next, runs)) = self.runs.split_first() else { return false };
            (self.address, self.bytes) = (next.iov_base.cast(), next.iov_len as u64);
            self.runs = runs;
        }
        true
    }

    fn take(&mut self, bytes: u64) {
        self.address = self.address.wrapping_add(bytes as usize);
        self.bytes -= bytes;
    }
}
