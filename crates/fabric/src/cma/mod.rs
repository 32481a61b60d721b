//! Transport to unmapped memory of another process of this node: the kernel copies it ("cross
//! memory attach", `sys::vm`) without help of its owner. It serves bytes only: the kernel has no
//! atomic operation for this, so control words never use it. Invariant: when a call returns, its
//! transfer is complete, or the error names the first byte that could not be copied.
//!
//! What it costs, by `cargo bench --bench process_vm` (a virtual machine, Linux 6.18, in ns):
//!
//! | bytes | bare writev | put | bare readv | get |
//! |---|---|---|---|---|
//! | 8 | 471 | 473 | 480 | 475 |
//! | 4 KiB | 493 | 503 | 498 | 493 |
//! | 1 MiB | 62,642 | 63,118 | 68,477 | 68,563 |
//!
//! Each further contiguous run costs 140 ns at the target, because the kernel looks up the target's
//! pages for each run, and 20 ns at the origin. [`Batch`] avoids both costs where it can.
//! [`SmallPuts`] combines puts into runs.

#[cfg(any(test, feature = "test-util"))]
mod as_bytes;
mod batch;
mod small_puts;
#[cfg(test)]
mod tests;

#[cfg(test)]
pub use as_bytes::NoCount;
pub use batch::Batch;
pub use small_puts::{Gathering, SMALL_BYTES_MAX, SmallPuts};

use super::Way;
use crate::error::{Error, Result};
use crate::number::{Number, Offset};
use crate::rank_numbers::RankOnNode;
use crate::sys::life::Life;
use crate::sys::vm::IoVec;
use crate::sys::{process, uninterrupted, vm};

/// A process of this node whose memory can be copied, and its rank in the window, for errors.
///
/// The laws of the transport:
/// 1. When `put` or `get` returns, the transfer is complete: all processes see the bytes of a put,
///    by load and by this transport. There is nothing to flush.
/// 2. The copy is ordered with the loads and stores of the calling thread as if that thread made
///    it: a put sees the thread's earlier stores, and other processes see the put after them.
/// 3. Nothing is atomic. The kernel copies as memcpy does, and a thread that reads or writes the
///    same bytes meanwhile may see parts of an aligned element. (The bench checks aligned words of
///    eight bytes and found no torn word in two million gets; no law follows from that.)
/// 4. Pages are read and written with the rights of the target itself: a page that the target maps
///    read-only can be read by a get but not written by a put. Memory of devices and memory after
///    the end of a mapped file cannot be copied.
/// 5. If a transfer fails, the bytes before the byte that the error names have been copied, and no
///    others.
/// 6. A process that has ended is not confused with another one that has its process id now. The
///    transport checks that the process still runs before each system call, but not twice in a
///    millisecond ([`Life::is_there`]): the id would have to be reused within that time, or while
///    this thread is preempted between the check and the copy.
#[derive(Clone, Copy)]
pub struct Process<'a> {
    /// its rank
    pub rank: RankOnNode,
    /// its identity and liveness; it may be this process
    pub life: &'a Life,
}

/// The most bytes of one system call. The kernel's own limit is 2 GiB - 4 KiB.
const BYTES_MAX: u64 = 1 << 30;

impl<'a> Process<'a> {
    /// Returns the process with this rank.
    pub fn new(rank: RankOnNode, life: &'a Life) -> Process<'a> {
        Process { rank, life }
    }
}

impl Process<'_> {
    /// Copies `bytes` bytes, fewer than 2^63, from `here` to the address `there` of the process.
    ///
    /// # Safety
    /// The caller must own the bytes at `there` in that process: no Rust reference to them may be
    /// live there. Invalid addresses, at either side, are only an error.
    #[inline]
    pub unsafe fn put(self, there: u64, here: *const u8, bytes: u64) -> Result<()> {
        // SAFETY: guaranteed by the caller.
        unsafe { self.copy(Way::Put, here.cast_mut(), there, bytes) }
    }

    /// Copies `bytes` bytes, fewer than 2^63, from the address `there` of the process to `here`.
    ///
    /// # Safety
    /// The caller must own the bytes at `here` for writing. Invalid addresses, at either side, are
    /// only an error.
    #[inline]
    pub unsafe fn get(self, here: *mut u8, there: u64, bytes: u64) -> Result<()> {
        // SAFETY: guaranteed by the caller.
        unsafe { self.copy(Way::Get, here, there, bytes) }
    }

    /// Returns whether this process may copy the memory of the process, and the cookie there proves
    /// that it is the right process. The kernel grants writing together with reading; a write of no
    /// bytes finds out whether a filter of system calls forbids writing.
    pub fn shows_cookie(self) -> bool {
        let mark = self.life.mark();
        // SAFETY: nothing is written.
        let write_nothing = || unsafe { vm::write(mark.pid, &[], &[]) };
        mark.shows_cookie() == Some(true) && uninterrupted(write_nothing) == 0
    }

    /// Does a put or a get.
    ///
    /// # Safety
    /// As for `put` or `get`.
    #[inline]
    unsafe fn copy(self, way: Way, here: *mut u8, there: u64, bytes: u64) -> Result<()> {
        // SAFETY: guaranteed by the caller.
        let moved = unsafe { self.call(way, here, there, bytes) };
        if moved == bytes.cast_signed().to_isize() {
            return Ok(());
        }
        // SAFETY: guaranteed by the caller.
        unsafe { self.rest(way, here, there, bytes, moved) }
    }

    /// Makes one system call, and returns its result.
    ///
    /// # Safety
    /// As for `put` or `get`.
    #[inline(always)]
    unsafe fn call(self, way: Way, here: *mut u8, there: u64, bytes: u64) -> isize {
        debug_assert!(isize::try_from(bytes).is_ok());
        let (here, there) = (vm::own_run(here, bytes), vm::run(there, bytes));
        // SAFETY: guaranteed by the caller.
        unsafe { self.call_lists(way, vm::one(&here), vm::one(&there)) }
    }

    /// Makes one system call for several runs, and returns its result. All access to memory of
    /// another process is made here.
    ///
    /// # Safety
    /// As for `put` or `get`.
    #[inline(always)]
    unsafe fn call_lists(self, way: Way, here: &[IoVec], there: &[IoVec]) -> isize {
        if !self.life.is_there() {
            return vm::no_process();
        }
        let pid = self.life.mark().pid;
        // SAFETY: guaranteed by the caller.
        unsafe {
            match way {
                Way::Put => vm::write(pid, here, there),
                Way::Get => vm::read(pid, here, there),
            }
        }
    }

    /// Completes a transfer whose first system call has returned `first` instead of `bytes`: it
    /// continues after the bytes that were copied. The kernel refuses a call as a whole if its end
    /// is no valid address. So a step that faults is halved until it is one byte, which is then the
    /// byte that cannot be copied.
    ///
    /// # Safety
    /// As for `put` or `get`.
    #[cold]
    #[inline(never)]
    unsafe fn rest(
        self,
        way: Way,
        here: *mut u8,
        there: u64,
        bytes: u64,
        first: isize,
    ) -> Result<()> {
        let (mut answer, mut moved, mut step) = (first, 0, bytes.min(BYTES_MAX));
        loop {
            match u64::try_from(answer).map_err(|_| vm::errno()) {
                Ok(0) | Err(libc::EFAULT) if step > 1 => step /= 2,
                Ok(0) | Err(libc::EFAULT) => {
                    let at = (here.wrapping_add(moved.to_usize()), there.wrapping_add(moved));
                    return Err(self.fault(way, at.0, at.1));
                }
                Ok(more) => moved += more,
                Err(libc::EINTR) => {}
                Err(errno) => return Err(self.refusal(way, errno)),
            }
            if moved == bytes {
                return Ok(());
            }
            step = step.min(bytes - moved);
            let at = (here.wrapping_add(moved.to_usize()), there.wrapping_add(moved));
            // SAFETY: a part of the caller's transfer.
            answer = unsafe { self.call(way, at.0, at.1, step) };
        }
    }

    /// Returns the error for a byte that cannot be copied, which names the side at fault. Finds out
    /// without changing a byte of either side: by reading the origin's byte for a put, and the
    /// target's byte for a get.
    fn fault(self, way: Way, here: *mut u8, there: u64) -> Error {
        if self.life.has_ended() {
            return self.refusal(way, libc::ESRCH); // the memory may be another process's
        }
        let mut byte = 0u8;
        let byte = vm::own_run(&raw mut byte, 1);
        let (here_run, there_run) = (vm::own_run(here, 1), vm::run(there, 1));
        let (own, pid) = (process::id(), self.life.mark().pid);
        // SAFETY: only `byte` on the stack of this thread is written.
        let is_target = unsafe {
            match way {
                Way::Put => vm::write(own, vm::one(&here_run), vm::one(&byte)) == 1,
                Way::Get => vm::read(pid, vm::one(&byte), vm::one(&there_run)) != 1,
            }
        };
        match is_target {
            true => Error::Fault { rank: self.rank.in_error_of_transport(), address: there },
            false => Error::OriginFault { address: here.addr().to_u64() },
        }
    }

    /// Returns the error for an `errno` that is not about addresses.
    fn refusal(self, way: Way, errno: i32) -> Error {
        let (rank, pid) = (self.rank.in_error_of_transport(), self.life.mark().pid);
        let call = match way {
            Way::Put => "process_vm_writev",
            Way::Get => "process_vm_readv",
        };
        match errno {
            libc::ESRCH => Error::Died { rank, pid },
            libc::EPERM if self.life.has_ended() => Error::Died { rank, pid },
            libc::EPERM => Error::Forbidden { call, rank, pid },
            _ => Error::System { call, errno },
        }
    }
}

/// Allows these processes to copy memory of this one, as far as this process can.
pub fn allow(pids: impl IntoIterator<Item = i32>) {
    vm::allow(pids);
}
