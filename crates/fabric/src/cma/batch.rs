//! Transfers of many contiguous runs: lists of runs on the stack, and as few system calls as
//! possible. Invariant: both lists have the same number of bytes, in the same order.
//!
//! The kernel's time depends on the number of runs more than on their bytes. Two ways reduce that
//! number. A get also reads short gaps between runs of the target, so that these are one run. And
//! this process gathers or scatters short runs of the origin itself, in a buffer on the stack. In
//! ns for each of a thousand runs of eight bytes, by `cargo bench --bench process_vm` (see
//! [`super`]):
//!
//! | stride: origin | target | put, lists | put, batch | get, lists | get, batch |
//! |---|---|---|---|---|---|
//! | 8 | 16 | 150 | 144 | 148 | 11 |
//! | 16 | 8 | 150 | 7 | 148 | 7 |
//! | 8 | 1,024 | 153 | 148 | 157 | 74 |
//! | 1,024 | 8 | 157 | 8 | 152 | 9 |
//! | 8 | 8,192 | 152 | 151 | 213 | 209 |
//! | 8,192 | 8 | 171 | 12 | 171 | 15 |
//!
//! Reading a gap of two KiB costs as much as the run that it saves. Longer lists than these save
//! nothing.

use super::{BYTES_MAX, Process, Way};
use crate::error::{Error, Result};
use crate::number::{Number, Offset};
use crate::sys::PAGE_BYTES_MIN;
use crate::sys::vm::{self, IoVec};
use core::cell::UnsafeCell;
use core::mem::MaybeUninit;
use core::ptr;
use smallvec::{Array, SmallVec};

/// Runs of the target in one call.
const THERE: usize = 128;
/// Runs of the origin in one call, the gaps between them included.
const HERE: usize = 256;
const _: () = assert!(THERE <= vm::RUNS_MAX && HERE <= vm::RUNS_MAX);
const _: () = assert!(size_of::<Batch>() <= 8192);

/// The longest gap between two runs that a get reads too. It is less than a page, so that no page
/// is touched without data of the get.
const GAP_MAX: u64 = 1024;
const _: () = assert!(GAP_MAX < PAGE_BYTES_MIN);
/// The fewest runs of the origin, gaps included, that may be copied through the stack buffer.
const SHORT_RUNS: usize = 8;
/// The most bytes of such runs, on average.
const SHORT_BYTES: u64 = 512;
/// The size of the stack buffer, in bytes.
const STACK_BYTES: usize = 16 << 10;

/// Memory to which the kernel writes the bytes of gaps. No code reads it. It is one byte longer
/// than any gap, so that no run of a user begins where a gap ends.
#[expect(clippy::cast_possible_truncation)] // a small constant
struct Trash(UnsafeCell<[u8; GAP_MAX as usize + 1]>);

// SAFETY: only ever written, by the kernel.
unsafe impl Sync for Trash {}

#[expect(clippy::cast_possible_truncation)] // a small constant
static TRASH: Trash = Trash(UnsafeCell::new([0; GAP_MAX as usize + 1]));

#[inline(always)]
fn trash() -> *mut u8 {
    TRASH.0.get().cast()
}

/// Adds a run to those of one side. Runs that follow each other without a gap are merged.
#[inline]
fn add<List: Array<Item = IoVec>>(runs: &mut SmallVec<List>, run: IoVec) {
    match runs.last_mut() {
        Some(last) if end(last) == run.iov_base.addr().to_u64() => last.iov_len += run.iov_len,
        _ => runs.push(run),
    }
}

/// Returns the address one past the last byte of a run.
#[inline]
pub(super) fn end(run: &IoVec) -> u64 {
    run.iov_base.addr().wrapping_add(run.iov_len).to_u64()
}

/// A transfer of many runs, in the order in which they are pushed. It is given to the kernel in
/// pieces, and stops at its first error. When `finish` returns, the laws of [`Process`] hold for
/// the whole transfer. This process copies short runs of the origin itself: if their memory is not
/// mapped, that is a signal, as for any load or store.
#[must_use = "runs are copied when `finish` is called"]
pub struct Batch<'a> {
    process: Process<'a>,
    way: Way,
    /// bytes of the waiting runs, the same in both lists
    bytes: u64,
    here: SmallVec<[IoVec; HERE]>,
    there: SmallVec<[IoVec; THERE]>,
    error: Option<Error>,
}

impl<'a> Batch<'a> {
    /// Creates an empty transfer.
    #[inline]
    pub fn new(process: Process<'a>, way: Way) -> Batch<'a> {
        let (here, there) = (SmallVec::new(), SmallVec::new());
        Batch { process, way, bytes: 0, here, there, error: None }
    }

    /// Adds a run of `bytes` bytes between `here` and the address `there` of the process.
    ///
    /// # Safety
    /// Until `finish` returns, the caller must own the bytes at `here` for reading (put) or writing
    /// (get), and for a put also the bytes at `there` in that process: no Rust reference to them
    /// may be live there. Invalid addresses of the process are only an error.
    #[inline]
    pub unsafe fn push(&mut self, here: *mut u8, there: u64, bytes: u64) {
        if !self.has_room(bytes) {
            // SAFETY: the caller's promise, for the runs before.
            unsafe { self.flush() };
            if bytes > BYTES_MAX {
                // SAFETY: guaranteed by the caller.
                return unsafe { self.push_large(here, there, bytes) };
            }
        }
        if self.way == Way::Get {
            self.bridge(there);
        }
        add(&mut self.here, vm::own_run(here, bytes));
        add(&mut self.there, vm::run(there, bytes));
        self.bytes += bytes;
    }

    /// Returns whether a run, and a gap before it, can be added to the lists. If the runs are
    /// short, they must also fit into the stack buffer.
    #[inline]
    fn has_room(&self, bytes: u64) -> bool {
        let limit = if self.is_short() { STACK_BYTES.to_u64() - GAP_MAX } else { BYTES_MAX };
        let has_entries = self.here.len() + 2 <= HERE && self.there.len() < THERE;
        has_entries && bytes <= limit.saturating_sub(self.bytes)
    }

    /// Returns whether the runs of the origin are many and short, so that the kernel would spend
    /// its time on them. For a put to as many runs of the target they do not matter: the target's
    /// runs cost much more.
    #[inline]
    fn is_short(&self) -> bool {
        let (here, there) = (self.here.len(), self.there.len());
        let is_origin = self.way == Way::Get || here / 4 >= there;
        is_origin && here >= SHORT_RUNS && self.bytes <= here.to_u64() * SHORT_BYTES
    }

    /// Adds the gap between the last run of the target and the next one at `there` to a get, if it
    /// is short.
    #[inline]
    fn bridge(&mut self, there: u64) {
        let Some(last) = self.there.last_mut() else { return };
        let gap = there.wrapping_sub(end(last));
        if (1..=GAP_MAX).contains(&gap) {
            last.iov_len += gap.to_usize();
            add(&mut self.here, vm::own_run(trash(), gap));
            self.bytes += gap;
        }
    }

    /// Copies the runs that are not copied yet, and returns the first error. The batch is empty
    /// afterwards. (It is not taken by value: that would copy the lists.)
    ///
    /// # Safety
    /// As for `push`.
    #[inline]
    pub unsafe fn finish(&mut self) -> Result<()> {
        // SAFETY: guaranteed by the caller.
        unsafe { self.flush() };
        self.error.take().map_or(Ok(()), Err)
    }

    /// Copies a run that needs several system calls.
    ///
    /// # Safety
    /// As for `push`.
    #[cold]
    unsafe fn push_large(&mut self, here: *mut u8, there: u64, bytes: u64) {
        if self.error.is_none() {
            // SAFETY: guaranteed by the caller.
            self.error = unsafe { self.process.copy(self.way, here, there, bytes) }.err();
        }
    }

    /// Copies all waiting runs, and empties the lists.
    ///
    /// # Safety
    /// As for `push`.
    #[inline(never)]
    unsafe fn flush(&mut self) {
        if self.error.is_none() && self.bytes > 0 {
            // SAFETY: guaranteed by the caller.
            let moved = unsafe {
                match self.is_short() && self.bytes <= STACK_BYTES.to_u64() {
                    true => self.by_way_of_the_stack(),
                    false => self.by_lists(),
                }
            };
            if moved != self.bytes.cast_signed().to_isize() {
                // SAFETY: guaranteed by the caller.
                self.error = unsafe { self.one_by_one(moved) }.err();
            }
        }
        self.bytes = 0;
        self.here.clear();
        self.there.clear();
    }

    /// Makes one system call with both lists, and returns its result.
    ///
    /// # Safety
    /// As for `push`.
    unsafe fn by_lists(&self) -> isize {
        // SAFETY: guaranteed by the caller.
        unsafe { self.process.call_lists(self.way, &self.here, &self.there) }
    }

    /// Makes one system call with a buffer on the stack in place of the runs of the origin, and
    /// returns its result. For a put the runs are copied to the buffer before the call, for a get
    /// from the buffer after it. A get copies nothing if the call has read fewer bytes.
    ///
    /// # Safety
    /// As for `push`; at most `STACK_BYTES` bytes may be waiting.
    #[inline(never)]
    unsafe fn by_way_of_the_stack(&self) -> isize {
        let mut stack = [const { MaybeUninit::<u8>::uninit() }; STACK_BYTES];
        let stack = stack.as_mut_ptr().cast::<u8>();
        let (all, there) = (vm::own_run(stack, self.bytes), &self.there[..]);
        if self.way == Way::Put {
            // SAFETY: by the caller's promise the runs may be read; they have `bytes` bytes in all.
            self.each_with(stack, |run, stack, bytes| unsafe { copy(stack, run, bytes) });
            // SAFETY: guaranteed by the caller.
            return unsafe { self.process.call_lists(Way::Put, vm::one(&all), there) };
        }
        // SAFETY: the buffer has at least `bytes` bytes.
        let moved = unsafe { self.process.call_lists(Way::Get, vm::one(&all), there) };
        if moved != self.bytes.cast_signed().to_isize() {
            return moved.min(0);
        }
        // SAFETY: the call has filled the buffer; by the caller's promise the runs may be written.
        self.each_with(stack, |run, stack, bytes| unsafe { copy(run, stack, bytes) });
        moved
    }

    /// Does `work` with each run of the origin, except for gaps, and its bytes in `stack`.
    #[inline]
    fn each_with(&self, mut stack: *mut u8, work: impl Fn(*mut u8, *mut u8, usize)) {
        for run in &self.here {
            let (address, bytes) = (run.iov_base.cast(), run.iov_len);
            if address != trash() {
                work(address, stack, bytes);
            }
            stack = stack.wrapping_add(bytes);
        }
    }

    /// Copies the waiting runs one at a time, starting after the first `moved` bytes. The error is
    /// that of the run that fails.
    ///
    /// # Safety
    /// As for `push`.
    #[cold]
    unsafe fn one_by_one(&self, moved: isize) -> Result<()> {
        let mut moved = moved.max(0).cast_unsigned().to_u64();
        let (mut here, mut there) = (Rest::new(&self.here), Rest::new(&self.there));
        while here.skip_done() && there.skip_done() {
            let bytes = here.bytes.min(there.bytes);
            let done = bytes.min(moved);
            moved -= done;
            if done < bytes && !here.is_gap {
                let to = here.address.wrapping_add(done.to_usize());
                let from = there.address.addr().wrapping_add(done.to_usize()).to_u64();
                // SAFETY: guaranteed by the caller.
                unsafe { self.process.copy(self.way, to, from, bytes - done)? };
            }
            here.take(bytes);
            there.take(bytes);
        }
        Ok(())
    }
}

/// Copies a short run; most short runs are one number.
///
/// # Safety
/// The caller must own `bytes` bytes at `from` for reading and at `to` for writing.
#[inline(always)]
pub(super) unsafe fn copy(to: *mut u8, from: *const u8, bytes: usize) {
    // SAFETY: guaranteed by the caller.
    unsafe {
        match bytes {
            8 => to.cast::<u64>().write_unaligned(from.cast::<u64>().read_unaligned()),
            _ => ptr::copy_nonoverlapping(from, to, bytes),
        }
    }
}

/// The rest of the runs of one side.
struct Rest<'a> {
    /// address of the rest of the current run
    address: *mut u8,
    /// bytes of the rest of the current run
    bytes: u64,
    /// whether the current run is a gap
    is_gap: bool,
    /// the runs after the current one
    runs: &'a [IoVec],
}

impl<'a> Rest<'a> {
    fn new(runs: &'a [IoVec]) -> Rest<'a> {
        Rest { address: ptr::null_mut(), bytes: 0, is_gap: false, runs }
    }

    /// Goes on to the next run if the current one is complete. Returns false at the end.
    fn skip_done(&mut self) -> bool {
        while self.bytes == 0 {
            let Some((next, runs)) = self.runs.split_first() else { return false };
            (self.address, self.bytes) = (next.iov_base.cast(), next.iov_len.to_u64());
            (self.is_gap, self.runs) = (self.address == trash(), runs);
        }
        true
    }

    fn take(&mut self, bytes: u64) {
        self.address = self.address.wrapping_add(bytes.to_usize());
        self.bytes -= bytes;
    }
}
