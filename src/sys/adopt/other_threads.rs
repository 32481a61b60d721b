//! The other threads of this process: how many there are, and whether all of them sleep in system
//! calls that do not use a range of addresses (/proc/self/task/*/syscall). What they do afterwards
//! is up to the caller.

use std::fs;
use std::os::unix::fs::MetadataExt;

/// The calls in which a thread may sleep.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sleep {
    /// only those that wait for an event: epoll_wait, poll, select, futex, nanosleep
    Event,
    /// any call that reaches memory only by its own arguments
    AnyDirect,
}

/// Calls that wait for an event.
const EVENTS: [i64; 10] = [
    libc::SYS_epoll_pwait,
    libc::SYS_epoll_pwait2,
    libc::SYS_ppoll,
    libc::SYS_pselect6,
    libc::SYS_futex,
    libc::SYS_futex_waitv,
    libc::SYS_nanosleep,
    libc::SYS_clock_nanosleep,
    libc::SYS_rt_sigtimedwait,
    libc::SYS_rt_sigsuspend,
];
/// The same, which not every processor has.
#[cfg(target_arch = "x86_64")]
const OLD_EVENTS: [i64; 4] =
    [libc::SYS_epoll_wait, libc::SYS_poll, libc::SYS_select, libc::SYS_pause];
#[cfg(not(target_arch = "x86_64"))]
const OLD_EVENTS: [i64; 0] = [];
/// Other calls in which threads sleep, and which reach memory only by their own arguments. Their
/// lengths are not looked at, so a buffer that begins ahead of the range is not noticed: for calls
/// that write to a buffer see [`buffer_of`].
const DIRECT: [i64; 8] = [
    libc::SYS_read,
    libc::SYS_pread64,
    libc::SYS_recvfrom,
    libc::SYS_accept,
    libc::SYS_accept4,
    libc::SYS_wait4,
    libc::SYS_waitid,
    libc::SYS_flock,
];
/// A signal handler of a sleeping thread would run this close below its stack pointer.
const FRAME: u64 = 64 << 10;

/// Returns the number of threads of this process; at least 1.
pub fn count() -> u64 {
    // A folder has a link from its parent, one of its own, and one from each folder inside.
    fs::metadata("/proc/self/task").map_or(u64::MAX, |task| task.nlink().saturating_sub(2).max(1))
}

/// Returns buffer and bytes of a call that writes to one, by its arguments.
fn buffer_of(call: i64, arguments: &[u64]) -> Option<(u64, u64)> {
    let second = arguments.get(1).copied()?;
    let third = arguments.get(2).copied()?;
    match call {
        libc::SYS_read | libc::SYS_pread64 | libc::SYS_recvfrom => Some((second, third)),
        libc::SYS_epoll_pwait | libc::SYS_epoll_pwait2 => Some((second, 16 * third)),
        #[cfg(target_arch = "x86_64")]
        libc::SYS_epoll_wait => Some((second, 16 * third)),
        #[cfg(target_arch = "x86_64")]
        libc::SYS_poll => Some((arguments[0], 8 * second)),
        libc::SYS_ppoll => Some((arguments[0], 8 * second)),
        _ => None,
    }
}

/// Whether a thread sleeps and does not use the range, as its file `syscall` tells: the number of
/// the call, six arguments, stack pointer and program counter; or `running`; or -1 and the last
/// two.
fn is_asleep(line: &str, sleep: Sleep, address: u64, bytes: u64) -> bool {
    let mut words = line.split_ascii_whitespace();
    let Some(call) = words.next().and_then(|word| word.parse::<i64>().ok()) else { return false };
    let number = |word: &str| u64::from_str_radix(word.strip_prefix("0x")?, 16).ok();
    let numbers: Vec<u64> = words.filter_map(number).collect();
    let [ref arguments @ .., stack, _] = numbers[..] else { return false };
    let is_event = EVENTS.contains(&call) || OLD_EVENTS.contains(&call);
    if arguments.len() != 6 || !(is_event || sleep == Sleep::AnyDirect && DIRECT.contains(&call)) {
        return false;
    }
    let end = address + bytes;
    let overlaps = |first: u64, length: u64| first < end && first.saturating_add(length) > address;
    // Any argument may be a pointer to a small structure, such as a time.
    let points_there = arguments.iter().any(|argument| overlaps(*argument, 256));
    let buffer = buffer_of(call, arguments).is_some_and(|(first, length)| overlaps(first, length));
    !points_there && !buffer && !overlaps(stack.saturating_sub(FRAME), FRAME + 256)
}

/// Whether all other threads of this process sleep in such calls and do not use the range. False if
/// the system does not tell.
pub fn all_sleep(sleep: Sleep, address: u64, bytes: u64) -> bool {
    // SAFETY: a plain question.
    let own = unsafe { libc::syscall(libc::SYS_gettid) }.cast_unsigned().to_string();
    let Ok(tasks) = fs::read_dir("/proc/self/task") else { return false };
    tasks.flatten().filter(|task| *task.file_name() != *own).all(|task| {
        match fs::read_to_string(task.path().join("syscall")) {
            Ok(line) => is_asleep(&line, sleep, address, bytes),
            // It has ended meanwhile.
            Err(error) => matches!(error.raw_os_error(), Some(libc::ENOENT | libc::ESRCH)),
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const AT: u64 = 0x7000_0000;
    const BYTES: u64 = 0x2000;

    fn asleep(call: i64, arguments: [u64; 6], stack: u64) -> bool {
        let words: Vec<_> = arguments.iter().map(|argument| format!("{argument:#x}")).collect();
        let line = format!("{call} {} {stack:#x} 0x401000\n", words.join(" "));
        is_asleep(&line, Sleep::AnyDirect, AT, BYTES)
    }

    #[test]
    fn a_thread_is_asleep_in_calls_without_a_pointer_into_the_range() {
        let far = 0x1000;
        assert!(asleep(libc::SYS_futex, [far, 0, 2, 0, 0, 0], far));
        assert!(asleep(libc::SYS_read, [3, far, 16, 0, 0, 0], far));
        assert!(!asleep(libc::SYS_read, [3, AT - 100, 4096, 0, 0, 0], far), "a buffer across");
        assert!(asleep(libc::SYS_read, [3, AT + BYTES, 4096, 0, 0, 0], far), "a buffer behind");
        assert!(!asleep(libc::SYS_futex, [AT + 8, 0, 2, 0, 0, 0], far));
        assert!(!asleep(libc::SYS_epoll_pwait, [3, AT - 64, 32, 0, 0, 0], far));
        assert!(!asleep(libc::SYS_readv, [3, far, 1, 0, 0, 0], far), "pointers behind pointers");
        assert!(!asleep(libc::SYS_futex, [far, 0, 2, 0, 0, 0], AT + BYTES + 100), "its stack");
        for line in ["running\n", "-1 0x7ffd 0x40\n", "", "202 0x1"] {
            assert!(!is_asleep(line, Sleep::AnyDirect, AT, BYTES), "{line}");
        }
        let read = format!("{} 0x3 0x10 0x10 0x0 0x0 0x0 0x99 0x98", libc::SYS_read);
        assert!(!is_asleep(&read, Sleep::Event, AT, BYTES));
    }

    #[test]
    fn threads_are_counted() {
        let before = count();
        let (stop, wait) = std::sync::mpsc::channel::<()>();
        let thread = std::thread::spawn(move || wait.recv());
        assert!(before >= 1 && count() >= 2);
        drop(stop);
        let _ = thread.join();
    }
}
