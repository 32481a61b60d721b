//! The road to memory of another process of this node that is not mapped here: the kernel copies
//! ("cross memory attach", `sys::vm`), without help of its owner. For bytes only: it knows no
//! atomic operation, so control words never take it. Invariant: a transfer is done when its call
//! returns, or the error names the first byte that could not be copied.
//!
//! What it costs, by `cargo bench --bench process_vm` (a virtual machine, Linux 6.18, in ns):
//!
//! | bytes | bare writev | put | bare readv | get |
//! |---|---|---|---|---|
//! | 8 | 471 | 473 | 480 | 475 |
//! | 4 KiB | 493 | 503 | 498 | 493 |
//! | 1 MiB | 62,642 | 63,118 | 68,477 | 68,563 |
//!
//! A further run costs 140 at the target, whose pages the kernel looks up for each, and 20 at the
//! origin; so [`Batch`] avoids both where it can.

mod batch;
#[cfg(test)]
mod tests;

pub use batch::Batch;

use super::Way;
use crate::error::{Error, Result};
use crate::sys::life::Life;
use crate::sys::vm::Run;
use crate::sys::{process, uninterrupted, vm};

/// A process of this node, and its rank in the window for those who have to name it.
///
/// The laws of its bytes:
/// 1. When `put` or `get` returns, it is done: every process sees the bytes of a put, by load and
///    by this road. There is nothing to flush.
/// 2. What the caller did before, a put sees and is seen after: to the kernel's copy the caller's
///    loads and stores are those of the same thread.
/// 3. Nothing is atomic. The kernel copies as memcpy does, and whoever reads or writes the same
///    bytes meanwhile may see an aligned element in parts. (The bench looks for it in aligned words
///    of eight bytes, and saw none in two million gets; no law follows from that.)
/// 4. Pages are read and written with the rights that the target itself has: a page that it maps
///    read-only can be got but not put to. Memory of devices cannot be copied, nor can what lies
///    behind the end of a mapped file.
/// 5. Of a transfer that fails, what is ahead of the byte that the error names has moved, and
///    nothing else.
/// 6. A process that has ended is not taken for another one that has its number by now. Whether it
///    still runs is looked at before each system call, but not twice in a millisecond
///    ([`Life::is_there`]): the number would have to be given out again within that time, or while
///    this thread is kept from its core between the look and the copy.
#[derive(Clone, Copy)]
pub struct Process<'a> {
    /// its rank
    pub rank: u32,
    /// which one it is; it may be our own
    pub life: &'a Life,
}

/// Bytes of one call at most. The kernel stops at 2 GiB - 4 KiB by itself.
const BYTES_MAX: u64 = 1 << 30;

impl Process<'_> {
    /// Copies `bytes` bytes, fewer than 2^63, from `here` to the address `there` of the process.
    ///
    /// # Safety
    /// Nobody minds that those bytes of the process are written. Bad addresses are only an error.
    #[inline]
    pub unsafe fn put(self, there: u64, here: *const u8, bytes: u64) -> Result<()> {
        let here = here.cast_mut();
        // SAFETY: the caller's promise.
        let moved = unsafe { self.call(Way::Put, here, there, bytes) };
        if moved == bytes as isize {
            return Ok(());
        }
        // SAFETY: the caller's promise.
        unsafe { self.rest(Way::Put, here, there, bytes, moved) }
    }

    /// Copies `bytes` bytes, fewer than 2^63, from the address `there` of the process to `here`.
    ///
    /// # Safety
    /// Those bytes at `here` may be written. Bad addresses are only an error.
    #[inline]
    pub unsafe fn get(self, here: *mut u8, there: u64, bytes: u64) -> Result<()> {
        // SAFETY: the caller's promise.
        let moved = unsafe { self.call(Way::Get, here, there, bytes) };
        if moved == bytes as isize {
            return Ok(());
        }
        // SAFETY: the caller's promise.
        unsafe { self.rest(Way::Get, here, there, bytes, moved) }
    }

    /// Whether it is the process that was meant, by the cookie that it left in its memory, and the
    /// system lets us copy that memory. To the kernel who may read may write, too; what filters of
    /// system calls say of writing is asked with no bytes.
    pub fn shows_cookie(self) -> bool {
        let mark = self.life.mark();
        // SAFETY: nothing is written.
        let write_nothing = || unsafe { vm::write(mark.pid, &[], &[]) };
        mark.shows_cookie() == Some(true) && uninterrupted(write_nothing) == 0
    }

    /// # Safety
    /// As for `put` or `get`.
    #[inline]
    unsafe fn copy(self, way: Way, here: *mut u8, there: u64, bytes: u64) -> Result<()> {
        // SAFETY: the caller's promise.
        unsafe {
            match way {
                Way::Put => self.put(there, here, bytes),
                Way::Get => self.get(here, there, bytes),
            }
        }
    }

    /// One system call, with its answer.
    ///
    /// # Safety
    /// As for `put` or `get`.
    #[inline(always)]
    unsafe fn call(self, way: Way, here: *mut u8, there: u64, bytes: u64) -> isize {
        debug_assert!(isize::try_from(bytes).is_ok());
        let (here, there) = (vm::own_run(here, bytes), vm::run(there, bytes));
        // SAFETY: the caller's promise.
        unsafe { self.call_lists(way, vm::one(&here), vm::one(&there)) }
    }

    /// The same with many runs: the one place from which memory of another process is reached.
    ///
    /// # Safety
    /// As for `put` or `get`.
    #[inline(always)]
    unsafe fn call_lists(self, way: Way, here: &[Run], there: &[Run]) -> isize {
        if !self.life.is_there() {
            return vm::nobody();
        }
        let pid = self.life.mark().pid;
        // SAFETY: the caller's promise.
        unsafe {
            match way {
                Way::Put => vm::write(pid, here, there),
                Way::Get => vm::read(pid, here, there),
            }
        }
    }

    /// The transfer from its first call on, which answered something else than `bytes`: it goes on
    /// behind what moved. A step whose end can be no address of a process is refused as a whole;
    /// so a step that faults is halved until it is one byte, and that one is to blame.
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
                    let at = (here.wrapping_add(moved as usize), there.wrapping_add(moved));
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
            let at = (here.wrapping_add(moved as usize), there.wrapping_add(moved));
            // SAFETY: a part of what the caller vouches for.
            answer = unsafe { self.call(way, at.0, at.1, step) };
        }
    }

    /// Whose byte it is that cannot be copied. Asked without changing one: whether the origin's can
    /// be read before a put, and whether the target's can be read before a get.
    fn fault(self, way: Way, here: *mut u8, there: u64) -> Error {
        if self.life.has_ended() {
            return self.refusal(way, libc::ESRCH); // what faulted is another process's
        }
        let mut byte = 0u8;
        let byte = vm::own_run(&raw mut byte, 1);
        let (here_run, there_run) = (vm::own_run(here, 1), vm::run(there, 1));
        let (own, pid) = (process::id(), self.life.mark().pid);
        // SAFETY: only our own byte on the stack is written.
        let is_target = unsafe {
            match way {
                Way::Put => vm::write(own, vm::one(&here_run), vm::one(&byte)) == 1,
                Way::Get => vm::read(pid, vm::one(&byte), vm::one(&there_run)) != 1,
            }
        };
        match is_target {
            true => Error::Fault { rank: self.rank, address: there },
            false => Error::OriginFault { address: here.addr() as u64 },
        }
    }

    /// The error for an `errno` that is not about addresses.
    fn refusal(self, way: Way, errno: i32) -> Error {
        let (rank, pid) = (self.rank, self.life.mark().pid);
        let call = match way {
            Way::Put => "process_vm_writev",
            Way::Get => "process_vm_readv",
        };
        match errno {
            libc::ESRCH => Error::Died { rank, pid },
            libc::EPERM if self.life.has_ended() => Error::Died { rank, pid },
            libc::EPERM => Error::Forbidden { rank, pid },
            _ => Error::System { call, errno },
        }
    }
}

/// Lets these processes copy memory of this one, as far as it is up to us.
pub fn allow(pids: impl IntoIterator<Item = i32>) {
    vm::allow(pids);
}
