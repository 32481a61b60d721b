//! Other threads of this process: whether there are any, and whether they are helpers that never
//! touch memory of the program. A helper is a thread whose start routine is in a library by which
//! an MPI talks to its launcher or to a network ([`LIBRARIES`]), or in this library:
//!
//! | library       | what its thread does                                                        |
//! |---------------|-----------------------------------------------------------------------------|
//! | libucs        | sleeps in epoll_wait, and tends timers and connections of UCX               |
//! | libpmix       | sleeps in epoll_wait or poll, and talks to the launcher                     |
//! | libopen-pal   | sleeps in epoll_wait or poll, for the launcher, too                         |
//! | this library  | serves other nodes: it reaches memory of the program by windows alone       |
//!
//! None of them receives or sends data of messages: a thread that does, such as those of
//! asynchronous progress (MPICH, Intel MPI) and of the TCP transport of Open MPI, begins in another
//! library, and counts as a thread of the program.
//!
//! A helper must not run a signal handler of the program either. So it begins with all signals
//! blocked but those of its own faults, and each check tests that it still blocks them.

use crate::dl;
use crate::proc_text;
use crate::signals::{Blocked, FAULTS};
use crate::sync::{AtomicU64, Ordering};
use core::ffi::{c_int, c_void};
use std::fs;

/// The beginnings of the file names of such libraries.
const LIBRARIES: [&str; 3] = ["libucs.so", "libpmix.so", "libopen-pal.so"];
/// Helpers that can be known at once. An MPI has three at most.
const HELPERS: usize = 64;
/// Bits of a start time in an entry. They hold the ticks of a thousand years.
const TIME_BITS: u32 = 42;

/// The helpers: thread id above start time; 0: none. An entry counts only for the thread with both.
static KNOWN: [AtomicU64; HELPERS] = [const { AtomicU64::new(0) }; HELPERS];

/// The start routine of a thread.
pub type StartRoutine = unsafe extern "C-unwind" fn(*mut c_void) -> *mut c_void;
/// pthread_create(3).
pub type Create = unsafe extern "C-unwind" fn(
    *mut libc::pthread_t,
    *const libc::pthread_attr_t,
    StartRoutine,
    *mut c_void,
) -> c_int;

/// The other threads of this process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OtherThreads {
    /// there is no other thread
    None,
    /// all are helpers
    Helpers,
    /// one is not, or it is unknown
    Unknown,
}

/// Whether a thread with this start routine is a helper.
pub fn begins_helper(start: StartRoutine) -> bool {
    let own = OtherThreads::of_tasks as *const () as usize;
    let start = start as *const () as usize;
    dl::object_at(start).is_some_and(|(path, base)| {
        let name = dl::file_name(&path);
        LIBRARIES.iter().any(|library| name.starts_with(library))
            || dl::object_at(own).is_some_and(|(_, own)| own == base)
    })
}

/// What a helper begins with. In this order: c-tests/profiler/inject.c reads the first word.
#[repr(C)]
struct Begin {
    start: StartRoutine,
    argument: *mut c_void,
}

/// Makes a helper by the next pthread_create, and records it.
///
/// # Safety
/// The arguments are those of a call of pthread_create(3), and `next` is that function.
pub unsafe fn create(
    next: Create,
    thread: *mut libc::pthread_t,
    attributes: *const libc::pthread_attr_t,
    start: StartRoutine,
    argument: *mut c_void,
) -> c_int {
    let begin = Box::into_raw(Box::new(Begin { start, argument }));
    // SAFETY: the caller's promise; `run` takes the box over.
    let answer = unsafe { next(thread, attributes, run, begin.cast()) };
    if answer != 0 {
        // SAFETY: no thread was made, so it is still this function's.
        drop(unsafe { Box::from_raw(begin) });
    }
    answer
}

/// The start routine of a helper.
///
/// # Safety
/// `begin` is the box that `create` made, which no other code uses.
unsafe extern "C-unwind" fn run(begin: *mut c_void) -> *mut c_void {
    // SAFETY: the box that `create` made, once.
    let Begin { start, argument } = *unsafe { Box::from_raw(begin.cast::<Begin>()) };
    core::mem::forget(Blocked::all_but(&FAULTS));
    let own = record_own();
    // SAFETY: the start routine of the thread, with its argument.
    let result = unsafe { start(argument) };
    // Relaxed: as in `record_own`. A thread that ends otherwise keeps its entry.
    own.inspect(|entry| entry.store(0, Ordering::Relaxed));
    result
}

/// Records that the calling thread is a helper, and returns its entry. Without room for it, the
/// thread counts as any other.
fn record_own() -> Option<&'static AtomicU64> {
    // SAFETY: a system call that writes to no memory of this process.
    let own = unsafe { libc::syscall(libc::SYS_gettid) };
    let entry = fs::read(format!("/proc/self/task/{own}/stat"));
    let entry = entry.ok().and_then(|stat| entry_of(own, &stat))?;
    // Relaxed: an entry is a number by itself; a thread that reads none counts this one as any
    // other.
    let take = |place: &&AtomicU64| {
        place.compare_exchange(0, entry, Ordering::Relaxed, Ordering::Relaxed).is_ok()
    };
    KNOWN.iter().find(take)
}

/// Returns the entry of a thread by its file `stat`: the start time is the 22nd word.
fn entry_of(thread: i64, stat: &[u8]) -> Option<u64> {
    let time: u64 = proc_text::stat_fields(stat)?.nth(19)?.parse().ok()?;
    Some(thread.cast_unsigned() << TIME_BITS | time & ((1 << TIME_BITS) - 1))
}

/// Whether a thread, by its file `status`, blocks all signals for which the process has a handler,
/// but those of faults and those of the C library itself (32 and 33).
fn blocks_handled(status: &str) -> bool {
    let mask = |name| u64::from_str_radix(proc_text::behind(status, name)?, 16).ok();
    let bit = |signal: c_int| 1_u64 << (signal - 1);
    let faults = FAULTS.iter().fold(bit(32) | bit(33), |all, fault| all | bit(*fault));
    mask("SigCgt:")
        .zip(mask("SigBlk:"))
        .is_some_and(|(caught, blocked)| caught & !blocked & !faults == 0)
}

impl OtherThreads {
    /// Checks all threads of the process.
    pub fn now() -> OtherThreads {
        OtherThreads::of_tasks().unwrap_or(OtherThreads::Unknown)
    }

    fn of_tasks() -> Option<OtherThreads> {
        // SAFETY: a system call that writes to no memory of this process.
        let own = unsafe { libc::syscall(libc::SYS_gettid) };
        let mut others = OtherThreads::None;
        for task in fs::read_dir("/proc/self/task").ok()? {
            let task = task.ok()?;
            let thread: i64 = task.file_name().to_str()?.parse().ok()?;
            if thread == own {
                continue;
            }
            let stat = fs::read(task.path().join("stat")).ok()?;
            let entry = entry_of(thread, &stat)?;
            // Relaxed: as in `record_own`.
            let is_known = KNOWN.iter().any(|known| known.load(Ordering::Relaxed) == entry);
            if !is_known || !blocks_handled(&fs::read_to_string(task.path().join("status")).ok()?) {
                return None;
            }
            others = OtherThreads::Helpers;
        }
        Some(others)
    }
}

/// Returns how many other threads there are.
#[cfg(test)]
pub fn count() -> usize {
    fs::read_dir("/proc/self/task").map_or(usize::MAX, |tasks| tasks.count() - 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_entry_is_thread_and_start_time() {
        let stat = b"77 (a ) b) S 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 4242 20\n";
        assert_eq!(entry_of(77, stat), Some(77 << TIME_BITS | 4242));
        assert_eq!(entry_of(77, b"77 (a) S 1"), None);
    }

    #[test]
    fn a_thread_that_may_run_a_handler_is_no_helper() {
        let of = |blocked: u64, caught: u64| {
            blocks_handled(&format!("Name:\ta\nSigBlk:\t{blocked:016x}\nSigCgt:\t{caught:016x}\n"))
        };
        let alarm = 1 << (libc::SIGALRM - 1);
        let fault = 1 << (libc::SIGSEGV - 1);
        assert!(of(0, 0) && of(0, fault | 1 << 31 | 1 << 32) && of(alarm, alarm));
        assert!(!of(0, alarm) && !of(fault, alarm | fault));
        assert!(!blocks_handled("Name:\ta\n"));
    }

    /// What a helper says, its thread id, and what it waits for before it ends.
    struct Talk {
        own: std::sync::mpsc::Sender<i64>,
        wait: std::sync::mpsc::Receiver<()>,
    }

    /// # Safety
    /// `talk` is a box that no other code uses.
    unsafe extern "C-unwind" fn talks(talk: *mut c_void) -> *mut c_void {
        // SAFETY: the box of the test, which no other code uses.
        let talk = unsafe { Box::from_raw(talk.cast::<Talk>()) };
        // SAFETY: a system call that writes to no memory of this process.
        talk.own.send(unsafe { libc::syscall(libc::SYS_gettid) }).unwrap();
        let _ = talk.wait.recv();
        core::ptr::null_mut()
    }

    #[test]
    fn threads_of_this_library_are_helpers_and_block_signals() {
        let (stop, wait) = std::sync::mpsc::channel::<()>();
        let (sender, own) = std::sync::mpsc::channel();
        let talk = Box::into_raw(Box::new(Talk { own: sender, wait }));
        assert!(begins_helper(talks));
        // SAFETY: the C library's function, which has this type.
        let next =
            unsafe { core::mem::transmute::<usize, Create>(dl::next_symbol(c"pthread_create")) };
        let mut thread = 0;
        // SAFETY: a thread that takes the box over and is joined below.
        let made = unsafe { create(next, &mut thread, core::ptr::null(), talks, talk.cast()) };
        assert_eq!(made, 0);
        let own = own.recv().unwrap();
        let path = format!("/proc/self/task/{own}");
        let stat = fs::read(format!("{path}/stat")).unwrap();
        let entry = entry_of(own, &stat).unwrap();
        assert!(KNOWN.iter().any(|known| known.load(Ordering::Relaxed) == entry));
        assert!(blocks_handled(&fs::read_to_string(format!("{path}/status")).unwrap()));
        assert!(count() >= 1 && OtherThreads::now() != OtherThreads::None);
        drop(stop);
        // SAFETY: the thread that was made above.
        assert_eq!(unsafe { libc::pthread_join(thread, core::ptr::null_mut()) }, 0);
    }
}
