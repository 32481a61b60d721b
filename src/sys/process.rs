//! Processes of this node: who this is, and whether another one still lives.

use std::hash::{BuildHasher, RandomState};
use std::sync::OnceLock;

/// This process, for others on the node.
pub fn id() -> i32 {
    std::process::id() as i32
}

/// A number that no other process has at that address: where it is, and the number.
pub fn cookie() -> (u64, u64) {
    static COOKIE: OnceLock<u64> = OnceLock::new();
    let cookie = COOKIE.get_or_init(|| RandomState::new().hash_one(id()));
    ((&raw const *cookie).addr() as u64, *cookie)
}

/// Bytes that processes have in common if they see the same processes of the same machine since it
/// was started, and no others: its name, the number of its start, and the namespace of processes.
pub fn place() -> Vec<u8> {
    let mut place = std::fs::read("/proc/sys/kernel/random/boot_id").unwrap_or_default();
    place.extend(std::fs::read("/proc/sys/kernel/hostname").unwrap_or_default());
    let namespace = std::fs::read_link("/proc/self/ns/pid").unwrap_or_default();
    place.extend(namespace.into_os_string().into_encoded_bytes());
    place
}

/// Whether process `pid` has not ended. A zombie has. A process that we may not look at counts as
/// alive.
pub fn alive(pid: i32) -> bool {
    // SAFETY: a plain system call; it returns a descriptor or fails.
    let fd = unsafe { libc::syscall(libc::SYS_pidfd_open, pid, 0) } as i32;
    if fd < 0 {
        return std::io::Error::last_os_error().raw_os_error() != Some(libc::ESRCH);
    }
    let mut ended = libc::pollfd { fd, events: libc::POLLIN, revents: 0 };
    // SAFETY: one valid pollfd; zero milliseconds: it does not wait.
    let ready = unsafe { libc::poll(&mut ended, 1, 0) };
    // SAFETY: `fd` is ours and is not used again.
    unsafe { libc::close(fd) };
    ready <= 0
}

/// Cores of this node that may run the job: those of the machine, because a rank that is bound to
/// one core does not share it, or this process's own where it may use several but not all.
pub fn cores() -> usize {
    static CORES: OnceLock<usize> = OnceLock::new();
    *CORES.get_or_init(|| {
        // SAFETY: a plain question.
        let online = unsafe { libc::sysconf(libc::_SC_NPROCESSORS_ONLN) }.max(1) as usize;
        match std::thread::available_parallelism().map_or(1, |n| n.get()) {
            1 => online,
            mine => mine,
        }
    })
}
