//! Check whether a process of this node still runs, and whether its process id still means that
//! process, because the system reuses ids. Invariant: a process that has ended here has ended for
//! good.
//!
//! Process ids are those of this process's PID namespace; most processes of one node share it. A
//! zombie has ended, even if its parent has not waited for it yet. A process of another PID
//! namespace is known by a descriptor alone, which it passes itself ([`passing`]): if nothing
//! listens at its address any more, it has ended.
//!
//! A check uses the first of these ways that is possible:
//! 1. a *descriptor* (pidfd) that was opened while the id was known to be the right one; it means
//!    that process for good. One `poll`, for many processes at once. Linux before 5.3 and some
//!    seccomp profiles have none, and this process keeps at most an eighth of the descriptors that
//!    it may have;
//! 2. /proc/PID/task/PID/stat: the process that has the id now was *started* when ours was;
//! 3. if /proc cannot be read, or no descriptor is left to read it with, the *cookie* that ours
//!    left in its memory, by process_vm_readv.
//!
//! The first way is confirmed by the others once in [`SURE_NS`], and whenever it reports an event:
//! a program may have closed all descriptors, ours with them, and have got the number again for a
//! file of its own. A process about which none of the three ways gives an answer counts as running.
//!
//! | `looked` | meaning                              |
//! |----------|--------------------------------------|
//! | 0        | no thread has looked yet             |
//! | n        | it ran at n ns of the monotonic clock |
//! | [`ENDED`] | it has ended; it stays so            |

use super::passing::{self, Asked, KeyWords};
use super::{proc_text, process, uninterrupted, vm};
use crate::number::Number;
use crate::sync::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use parking_lot::Mutex;
use std::collections::BTreeMap;
use std::os::fd::{IntoRawFd, OwnedFd};
use std::sync::{Arc, OnceLock, Weak};

/// The age up to which [`Life::is_there`] uses an earlier check. Linux assigns ids in a cycle: one
/// is reused so soon only if all others (32,768 and more by default) were taken meanwhile.
const FRESH_NS: u64 = 1_000_000;
/// The time for which a descriptor is trusted without another check.
const SURE_NS: u64 = 1_000_000_000;
/// The share of the descriptors of this process that may be pidfds: one in this many.
const SHARE: usize = 8;

const ENDED: u64 = u64::MAX;

/// The values that distinguish a process from all others that ever have its id.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Mark {
    /// its process id
    pub pid: i32,
    /// its start, in ticks since the machine was started; 0: not known
    pub start: u64,
    /// the address of `cookie` in its memory
    pub cookie_address: u64,
    /// a number that no other process has at that address; 0: not known
    pub cookie: u64,
    /// the namespace in which the process id means it; 0: not known
    pub namespace: u64,
    /// the key with which it is asked for a descriptor
    pub key: KeyWords,
}

impl Mark {
    /// Returns the mark of this process.
    pub fn own() -> Mark {
        let (cookie_address, cookie) = process::cookie();
        let key = passing::own_key();
        Mark { cookie_address, cookie, key, ..Mark::of(process::id()) }
    }

    /// Returns the mark of the process that has an id now.
    pub fn of(pid: i32) -> Mark {
        let stat = Stat::of(pid).filter(|_| ticks_are_common());
        let (start, namespace) = (stat.map_or(0, |stat| stat.start), process::pid_namespace());
        Mark { pid, start, cookie_address: 0, cookie: 0, namespace, key: [0; 2] }
    }

    /// Whether the process is in another namespace of processes, so that its id means nothing here.
    pub fn is_elsewhere(&self) -> bool {
        self.namespace != process::pid_namespace() && self.namespace != 0
    }

    /// Whether the memory of the process that has the id now contains the cookie. `None`: the
    /// system does not let this process read it, or there is no cookie.
    pub fn shows_cookie(&self) -> Option<bool> {
        if self.cookie == 0 || self.is_elsewhere() {
            return None;
        }
        let mut seen = !self.cookie;
        let to = vm::own_run((&raw mut seen).cast(), size_of::<u64>().to_u64());
        let from = vm::run(self.cookie_address, size_of::<u64>().to_u64());
        // SAFETY: the eight bytes are ours.
        match uninterrupted(|| unsafe { vm::read(self.pid, vm::one(&to), vm::one(&from)) }) {
            -1 if matches!(vm::errno(), libc::ESRCH | libc::EFAULT) => Some(false),
            -1 => None,
            read => Some(read.cast_unsigned() == size_of::<u64>() && seen == self.cookie),
        }
    }

    /// Whether the process has ended, as far as can be known without a descriptor for it.
    fn has_ended(&self) -> bool {
        let stat = Stat::of(self.pid);
        if let Some(stat) = stat
            && (stat.is_over || self.start != 0 && ticks_are_common())
        {
            return stat.is_over || stat.start != self.start;
        }
        !exists(self.pid) || self.shows_cookie() == Some(false)
    }
}

/// Fields of /proc/PID/task/PID/stat, see proc_pid_stat(5).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Stat {
    /// field 22
    start: u64,
    /// whether it is a zombie, and none of its threads is left
    is_over: bool,
}

impl Stat {
    fn of(pid: i32) -> Option<Stat> {
        if !process::has_own_proc() {
            return None;
        }
        // Of its first thread, which has the same start and is there as long as the process: under
        // qemu-user a process reads in its own /proc/PID/stat a start that no other one sees.
        Stat::parse(&std::fs::read(format!("/proc/{pid}/task/{pid}/stat")).ok()?)
    }

    fn parse(text: &[u8]) -> Option<Stat> {
        let mut fields = proc_text::stat_fields(text)?;
        let state = fields.next()?; // field 3
        let threads = fields.nth(20 - 4)?;
        let start = fields.nth(22 - 21)?.parse().ok()?;
        // A process whose first thread alone has ended is a zombie with more threads.
        let is_over = matches!(state, "Z" | "X" | "x") && matches!(threads, "0" | "1");
        Some(Stat { start, is_over })
    }
}

/// Whether a process has the id.
fn exists(pid: i32) -> bool {
    // SAFETY: no signal is sent.
    let answer = unsafe { libc::kill(pid, 0) };
    answer == 0 || std::io::Error::last_os_error().raw_os_error() != Some(libc::ESRCH)
}

/// Whether this process reads start times in ticks that all processes of the machine have in
/// common: it is in no time namespace that shifts them.
fn ticks_are_common() -> bool {
    static COMMON: OnceLock<bool> = OnceLock::new();
    *COMMON.get_or_init(|| {
        let text = std::fs::read_to_string("/proc/self/timens_offsets").unwrap_or_default();
        let of_boot = proc_text::behind(&text, "boottime");
        of_boot.unwrap_or_default().split_ascii_whitespace().all(|part| part == "0")
    })
}

/// Nanoseconds of the monotonic clock.
#[inline(always)]
pub fn now_ns() -> u64 {
    let mut now = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: a place for the answer.
    unsafe { libc::clock_gettime(libc::CLOCK_MONOTONIC, &mut now) };
    now.tv_sec.cast_unsigned() * 1_000_000_000 + now.tv_nsec.cast_unsigned()
}

/// The number of descriptors of processes.
static KEPT: AtomicUsize = AtomicUsize::new(0);

/// A pidfd. Its number may belong to another file by now, see above.
struct Descriptor(i32);

impl Descriptor {
    /// Keeps one, if there is room.
    fn of_fd(fd: OwnedFd) -> Option<Descriptor> {
        // Relaxed, as for all counters here: nothing is read through them.
        if KEPT.load(Ordering::Relaxed) >= most() {
            return None;
        }
        KEPT.fetch_add(1, Ordering::Relaxed);
        Some(Descriptor(fd.into_raw_fd()))
    }

    /// Whether it is a descriptor of some process.
    fn is_of_a_process(&self) -> bool {
        let (signal, none) = (0, core::ptr::null::<u8>());
        // SAFETY: no signal is sent.
        let sent = unsafe { libc::syscall(libc::SYS_pidfd_send_signal, self.0, signal, none, 0) };
        sent == 0 || vm::errno() != libc::EBADF
    }

    fn open(pid: i32) -> Option<Descriptor> {
        static ABSENT: AtomicBool = AtomicBool::new(false);
        // Relaxed, as above.
        if ABSENT.load(Ordering::Relaxed) || KEPT.load(Ordering::Relaxed) >= most() {
            return None;
        }
        let opened = process::descriptor_of(pid);
        if opened.is_none() {
            let errno = vm::errno();
            ABSENT.fetch_or(matches!(errno, libc::ENOSYS | libc::EPERM), Ordering::Relaxed);
        }
        Descriptor::of_fd(opened?)
    }

    /// Whether it reports no event: its process runs, if it is a descriptor of a process.
    fn is_quiet(&self) -> bool {
        let ended = libc::pollfd { fd: self.0, events: libc::POLLIN, revents: 0 };
        poll_now(&mut [ended]) == 0
    }
}

/// Returns how many of these descriptors report an event, or a negative number, without waiting. A
/// signal interrupts even that, and is no sign of any process.
fn poll_now(list: &mut [libc::pollfd]) -> i32 {
    let count = list.len().to_u64();
    // SAFETY: `count` valid pollfds, and negative ones are ignored; zero milliseconds: it does not
    // wait.
    uninterrupted(|| unsafe { libc::poll(list.as_mut_ptr(), count, 0) })
}

impl Drop for Descriptor {
    fn drop(&mut self) {
        KEPT.fetch_sub(1, Ordering::Relaxed);
        if self.is_of_a_process() {
            // SAFETY: it means a process, so it is ours, and it is not used again.
            unsafe { libc::close(self.0) };
        }
    }
}

/// The most descriptors to keep.
fn most() -> usize {
    process::limit(libc::RLIMIT_NOFILE).map_or(usize::MAX, u64::to_usize) / SHARE
}

/// The descriptor of a life, and how long it is trusted.
#[derive(Default)]
struct Kept {
    descriptor: Option<Descriptor>,
    /// the time at which it has to be confirmed
    sure_until: u64,
}

/// The state of a process: running or ended.
pub struct Life {
    mark: Mark,
    /// see above
    looked: AtomicU64,
    kept: Mutex<Kept>,
}

/// Returns the life of a process; all callers get the same one as long as one of them keeps it.
pub fn of(mark: Mark) -> Arc<Life> {
    static LIVES: Mutex<BTreeMap<Mark, Weak<Life>>> = Mutex::new(BTreeMap::new());
    let mut lives = LIVES.lock();
    if let Some(life) = lives.get(&mark).and_then(Weak::upgrade) {
        return life;
    }
    lives.retain(|_, life| life.strong_count() > 0);
    let life = Arc::new(Life::new(mark));
    lives.insert(mark, Arc::downgrade(&life));
    life
}

/// Returns the index of the first of these processes that has ended. One system call if none has,
/// and there is a descriptor for each.
pub fn first_ended<'a>(lives: impl IntoIterator<Item = &'a Life>) -> Option<usize> {
    let now = now_ns();
    let lives: Vec<&Life> = lives.into_iter().collect();
    let numbers = lives.iter().map(|life| life.descriptor_at(now).unwrap_or(-1));
    let entry = |fd| libc::pollfd { fd, events: libc::POLLIN, revents: 0 };
    let mut list: Vec<libc::pollfd> = numbers.map(entry).collect();
    let polled = poll_now(&mut list);
    let is_quiet = |entry: &libc::pollfd| polled >= 0 && entry.fd >= 0 && entry.revents == 0;
    lives.iter().zip(&list).position(|(life, entry)| !is_quiet(entry) && !life.is_running(now))
}

impl Life {
    /// The life of a process that no other caller checks.
    pub fn new(mark: Mark) -> Life {
        Life { mark, looked: AtomicU64::new(0), kept: Mutex::default() }
    }

    /// The process.
    pub fn mark(&self) -> &Mark {
        &self.mark
    }

    /// Whether the process was there a short time ago (`FRESH_NS`), for a caller that is about to
    /// use its id. Costs the reading of a clock, and a system call after that time.
    #[inline(always)]
    pub fn is_there(&self) -> bool {
        let now = now_ns();
        // Relaxed: the word is the whole state, and nothing is read through it.
        now.wrapping_sub(self.looked.load(Ordering::Relaxed)) < FRESH_NS || self.is_running(now)
    }

    /// Whether the process has ended. A thorough check.
    pub fn has_ended(&self) -> bool {
        self.kept.lock().sure_until = 0;
        !self.is_running(now_ns())
    }

    /// The descriptor, if it can be trusted at this time.
    fn descriptor_at(&self, now: u64) -> Option<i32> {
        let kept = self.kept.lock();
        let descriptor = kept.descriptor.as_ref().filter(|_| now < kept.sure_until);
        descriptor.map(|descriptor| descriptor.0)
    }

    /// Checks, and stores the result. Returns false if the process has ended.
    #[cold]
    #[inline(never)]
    fn is_running(&self, now: u64) -> bool {
        let mut kept = self.kept.lock();
        // Relaxed, as above; the lock keeps other threads from storing.
        if self.looked.load(Ordering::Relaxed) == ENDED {
            return false;
        }
        let is_quiet = kept.descriptor.as_ref().is_some_and(Descriptor::is_quiet);
        let is_sure = is_quiet && now < kept.sure_until;
        let runs = is_sure || self.confirm(&mut kept, is_quiet, now);
        self.looked.store(if runs { now } else { ENDED }, Ordering::Relaxed);
        runs
    }

    /// Whether the process runs, by more than the descriptor. A descriptor that reported an event,
    /// or is missing, is opened again. It is opened before the id is confirmed, and checked
    /// afterwards, so that it means the same process.
    fn confirm(&self, kept: &mut Kept, is_quiet: bool, now: u64) -> bool {
        if self.mark.is_elsewhere() {
            return self.confirm_elsewhere(kept, is_quiet, now);
        }
        if !is_quiet {
            kept.descriptor = None;
            kept.descriptor = Descriptor::open(self.mark.pid);
        }
        kept.sure_until = now + SURE_NS;
        let says_otherwise = |descriptor: &Descriptor| !descriptor.is_quiet();
        let runs = !self.mark.has_ended() && !kept.descriptor.as_ref().is_some_and(says_otherwise);
        if !runs {
            kept.descriptor = None;
        }
        runs
    }

    /// The same for a process of another namespace, which is asked for a descriptor. If it does not
    /// answer, it is asked again after [`SURE_NS`].
    fn confirm_elsewhere(&self, kept: &mut Kept, is_quiet: bool, now: u64) -> bool {
        if is_quiet && kept.descriptor.as_ref().is_some_and(Descriptor::is_of_a_process) {
            kept.sure_until = now + SURE_NS;
            return true;
        }
        if kept.descriptor.is_none() && now < kept.sure_until {
            return true;
        }
        kept.descriptor = None;
        let asked = passing::process(self.mark.key);
        kept.sure_until = now_ns() + SURE_NS;
        if let Asked::Descriptor(passed) = asked {
            kept.descriptor = Descriptor::of_fd(passed);
            return kept.descriptor.as_ref().is_none_or(Descriptor::is_quiet);
        }
        matches!(asked, Asked::Runs | Asked::Silent)
    }
}

#[cfg(test)]
mod tests;
