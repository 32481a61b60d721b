//! Memory of another process of this node, copied by the kernel: process_vm_readv(2) and
//! process_vm_writev(2). One system call each, the answer as it is; what a short one means is the
//! caller's business (`fabric::cma`).

use super::ancestors;
use core::{ptr, slice};
use parking_lot::Mutex;
use std::path::Path;

/// An address in some process, and a number of bytes: `struct iovec`.
pub type Run = libc::iovec;

/// The most runs on one side of a call (IOV_MAX); the kernel answers EINVAL to more.
pub const RUNS_MAX: usize = libc::UIO_MAXIOV as usize;

/// A run of `bytes` bytes at `address`, which need not be one of this process.
#[inline(always)]
pub fn run(address: u64, bytes: u64) -> Run {
    let iov_base = ptr::without_provenance_mut(address as usize);
    Run { iov_base, iov_len: bytes as usize }
}

/// A run of memory of this process.
#[inline(always)]
pub fn own_run(address: *mut u8, bytes: u64) -> Run {
    Run { iov_base: address.cast(), iov_len: bytes as usize }
}

/// Copies `from` of this process to `to` of process `pid`; as many bytes on either side. Answers
/// the number of bytes, or -1 and [`errno`].
///
/// # Safety
/// Nobody minds that `to` is written. (Bad addresses are only an error.)
#[inline(always)]
pub unsafe fn write(pid: i32, from: &[Run], to: &[Run]) -> isize {
    let (from_count, to_count) = (from.len() as libc::c_ulong, to.len() as libc::c_ulong);
    // SAFETY: both lists are valid, and the kernel checks all that they name.
    unsafe { libc::process_vm_writev(pid, from.as_ptr(), from_count, to.as_ptr(), to_count, 0) }
}

/// Copies `from` of process `pid` to `to` of this process; as many bytes on either side. Answers
/// the number of bytes, or -1 and [`errno`].
///
/// # Safety
/// `to` may be written. (Bad addresses are only an error.)
#[inline(always)]
pub unsafe fn read(pid: i32, to: &[Run], from: &[Run]) -> isize {
    let (to_count, from_count) = (to.len() as libc::c_ulong, from.len() as libc::c_ulong);
    // SAFETY: both lists are valid, the kernel checks all that they name, and the caller vouches
    // for what is written.
    unsafe { libc::process_vm_readv(pid, to.as_ptr(), to_count, from.as_ptr(), from_count, 0) }
}

/// One run as a list.
#[inline(always)]
pub fn one(run: &Run) -> &[Run] {
    slice::from_ref(run)
}

/// `errno` of this thread: why the last call failed.
pub fn errno() -> i32 {
    std::io::Error::last_os_error().raw_os_error().unwrap_or(0)
}

/// The answer of `write` and `read` where there is no process with the number, without asking.
#[cold]
pub fn nobody() -> isize {
    // SAFETY: `errno` of this thread.
    unsafe { *libc::__errno_location() = libc::ESRCH };
    -1
}

/// The process whose descendants may copy our memory; [`ANYBODY`] after all may, 0 before.
static DECLARED: Mutex<i32> = Mutex::new(0);
const ANYBODY: i32 = -1;

/// Lets these processes, one of which may be this one, copy our memory, also where the security
/// module Yama would keep that to our ancestors (ptrace_scope 1): all descendants of their
/// launcher, or of their nearest common ancestor, and of those of earlier calls: a process declares
/// one process at a time. The MPI underneath may have declared everybody for transfers of its own,
/// also to processes that are spawned; these descend from the launcher, too. Where they have no
/// ancestor in common that can be seen, every process may that may send us signals. Without Yama
/// there is nothing to allow, and the kernel answers EINVAL.
pub fn allow(pids: impl IntoIterator<Item = i32>) {
    let mut declared = DECLARED.lock();
    let before = Some(*declared).filter(|pid| *pid > 0);
    if *declared == ANYBODY {
        return;
    }
    let all = pids.into_iter().chain(before);
    let whom = ancestors::common(Path::new("/proc"), all).unwrap_or(ANYBODY);
    if whom == *declared {
        return;
    }
    *declared = if declare(whom) { whom } else { ANYBODY };
    if whom != *declared {
        declare(ANYBODY);
    }
}

/// Whether the kernel took it.
fn declare(pid: i32) -> bool {
    let whom = if pid == ANYBODY { libc::PR_SET_PTRACER_ANY } else { pid as libc::c_ulong };
    // SAFETY: changes only who may look at this process.
    unsafe { libc::prctl(libc::PR_SET_PTRACER, whom, 0, 0, 0) == 0 }
}
