//! Memory of another process of this node, copied by the kernel: process_vm_readv(2) and
//! process_vm_writev(2). One system call each, with its unchanged result; the caller handles a
//! short one (`fabric::cma`).

use super::{ancestors, process};
use crate::number::Number;
use core::{ptr, slice};
use parking_lot::Mutex;
use std::path::Path;

/// An address in some process, and a number of bytes: `struct iovec`.
pub type IoVec = libc::iovec;

/// The most runs on one side of a call (IOV_MAX); the kernel returns EINVAL for more.
pub const RUNS_MAX: usize = libc::UIO_MAXIOV as usize;

/// Returns a run of `bytes` bytes at `address`, which may be one of another process.
#[inline(always)]
pub fn run(address: u64, bytes: u64) -> IoVec {
    let iov_base = ptr::without_provenance_mut(address.to_usize());
    IoVec { iov_base, iov_len: bytes.to_usize() }
}

/// A run of memory of this process.
#[inline(always)]
pub fn own_run(address: *mut u8, bytes: u64) -> IoVec {
    IoVec { iov_base: address.cast(), iov_len: bytes.to_usize() }
}

/// Copies `from` of this process to `to` of process `pid`; as many bytes on either side. Returns
/// the number of bytes, or -1 and [`errno`].
///
/// # Safety
/// The caller owns the bytes of `to` in that process, and no Rust reference to them is live there.
/// (Bad addresses are only an error.)
#[inline(always)]
pub unsafe fn write(pid: i32, from: &[IoVec], to: &[IoVec]) -> isize {
    let (from_count, to_count) = (from.len().to_u64(), to.len().to_u64());
    // SAFETY: both lists are valid, and the kernel checks all that they name.
    unsafe { libc::process_vm_writev(pid, from.as_ptr(), from_count, to.as_ptr(), to_count, 0) }
}

/// Copies `from` of process `pid` to `to` of this process; as many bytes on either side. Returns
/// the number of bytes, or -1 and [`errno`].
///
/// # Safety
/// `to` may be written. (Bad addresses are only an error.)
#[inline(always)]
pub unsafe fn read(pid: i32, to: &[IoVec], from: &[IoVec]) -> isize {
    let (to_count, from_count) = (to.len().to_u64(), from.len().to_u64());
    // SAFETY: both lists are valid, the kernel checks all that they name, and the caller vouches
    // for what is written.
    unsafe { libc::process_vm_readv(pid, to.as_ptr(), to_count, from.as_ptr(), from_count, 0) }
}

/// Reads a word of this process by process_vm_readv(2): an error means that the kernel lacks the
/// call, or that a filter of system calls refuses it.
pub fn read_own_word() -> std::io::Result<()> {
    let (mut word, from) = (0_u64, 1_u64);
    let to = own_run(ptr::from_mut(&mut word).cast(), 8);
    let from = run(ptr::from_ref(&from).expose_provenance().to_u64(), 8);
    // SAFETY: `word` is a word of this function.
    match unsafe { read(process::id(), &[to], &[from]) } {
        8 => Ok(()),
        _ => Err(std::io::Error::last_os_error()),
    }
}

/// Returns one run as a list.
#[inline(always)]
pub fn one(run: &IoVec) -> &[IoVec] {
    slice::from_ref(run)
}

/// Returns `errno` of this thread: the reason why the last call failed.
pub fn errno() -> i32 {
    std::io::Error::last_os_error().raw_os_error().unwrap_or(0)
}

/// The result of `write` and `read` if there is no process with the id, without a system call.
#[cold]
pub fn no_process() -> isize {
    // SAFETY: `errno` of this thread.
    unsafe { *libc::__errno_location() = libc::ESRCH };
    -1
}

/// The process whose descendants may copy our memory; [`ANY_PROCESS`] if all may, 0 at first.
static DECLARED: Mutex<i32> = Mutex::new(0);
const ANY_PROCESS: i32 = -1;

/// Allows these processes, which may include this one, to copy our memory, even if the security
/// module Yama reserves that to our ancestors (ptrace_scope 1). A process can declare one process
/// at a time: so this allows all descendants of the launcher of these processes and of those of
/// earlier calls, or of their nearest common ancestor. The host MPI may have allowed all processes
/// for transfers of its own, also to processes that are spawned; these descend from the launcher,
/// too. If the processes have no ancestor in common that can be seen, this allows every process
/// that may send us signals. Without Yama there is nothing to allow, and the kernel returns EINVAL.
pub fn allow(pids: impl IntoIterator<Item = i32>) {
    let mut declared = DECLARED.lock();
    let before = Some(*declared).filter(|pid| *pid > 0);
    if *declared == ANY_PROCESS {
        return;
    }
    let all = pids.into_iter().chain(before);
    let seen = process::has_own_proc().then(|| ancestors::common(Path::new("/proc"), all));
    let whom = seen.flatten().unwrap_or(ANY_PROCESS);
    if whom == *declared {
        return;
    }
    *declared = if declare(whom) { whom } else { ANY_PROCESS };
    if whom != *declared {
        declare(ANY_PROCESS);
    }
}

/// Declares a process; returns whether the kernel accepted that.
fn declare(pid: i32) -> bool {
    let whom =
        if pid == ANY_PROCESS { libc::PR_SET_PTRACER_ANY } else { pid.cast_unsigned().to_u64() };
    // SAFETY: changes only which processes may access this one.
    unsafe { libc::prctl(libc::PR_SET_PTRACER, whom, 0, 0, 0) == 0 }
}
