//! Identity of this process for the other processes of its node, and its cores. `life` checks
//! whether another process still runs.

use crate::messages::{self, filled};
use crate::number::Number;
use crate::signals::Blocked;
use crate::sync::{AtomicU32, Ordering};
use std::hash::{BuildHasher, RandomState};
use std::os::fd::{FromRawFd, OwnedFd};
use std::sync::OnceLock;

/// Returns the id of this process. A system call the first time only.
pub fn id() -> i32 {
    let ask = || std::process::id().cast_signed();
    let Some(kept) = kept() else { return ask() };
    // Relaxed: all threads that store here store the same value.
    match kept.load(Ordering::Relaxed) {
        0 => {
            let id = ask();
            kept.store(id.cast_unsigned(), Ordering::Relaxed);
            id
        }
        id => id.cast_signed(),
    }
}

/// The word in which this process keeps its id, 0 at first. It lies in a page of its own, which a
/// child finds empty (Linux 4.14), however it was forked.
fn kept() -> Option<&'static AtomicU32> {
    static KEPT: OnceLock<usize> = OnceLock::new();
    let at = *KEPT.get_or_init(|| {
        let bytes = super::page_bytes();
        let page = super::map_private(bytes, libc::PROT_READ | libc::PROT_WRITE);
        // SAFETY: the page that was just made.
        let wiped = |page: &*mut u8| unsafe {
            libc::madvise(page.cast(), bytes.to_usize(), libc::MADV_WIPEONFORK) == 0
        };
        page.ok().filter(wiped).map_or(0, |page| page.expose_provenance())
    });
    // SAFETY: a page that is never unmapped, or NULL.
    unsafe { core::ptr::with_exposed_provenance::<AtomicU32>(at).as_ref() }
}

/// Returns a limit of this process (RLIMIT_...); `None` if there is none.
pub fn limit(resource: libc::__rlimit_resource_t) -> Option<u64> {
    let mut limit = libc::rlimit { rlim_cur: 0, rlim_max: 0 };
    // SAFETY: a plain question with a place for its answer.
    unsafe { libc::getrlimit(resource, &mut limit) };
    Some(limit.rlim_cur).filter(|most| *most != libc::RLIM_INFINITY)
}

/// Returns a descriptor (pidfd) of the process that has an id now. Linux before 5.3 has none.
pub fn descriptor_of(pid: i32) -> Option<OwnedFd> {
    // SAFETY: a plain system call; it returns a descriptor or fails.
    let fd = unsafe { libc::syscall(libc::SYS_pidfd_open, pid, 0) };
    let fd = i32::try_from(fd).ok().filter(|fd| *fd >= 0)?;
    // SAFETY: `fd` was just made and has no other owner.
    Some(unsafe { OwnedFd::from_raw_fd(fd) })
}

/// Makes a panic end this process. It must not unwind through frames of C, which are not prepared
/// for it; exceptions of the program may (`extern "C-unwind"`), and run our destructors.
pub fn end_at_panics() {
    let report = std::panic::take_hook();
    std::panic::set_hook(Box::new(move |panic| {
        report(panic);
        let place = panic.location().map_or_else(String::new, ToString::to_string);
        filled!(messages::INTERNAL; place).line().print();
        std::process::abort();
    }));
}

/// Returns an address, and a number that no other process has at that address.
pub fn cookie() -> (u64, u64) {
    static COOKIE: OnceLock<u64> = OnceLock::new();
    let cookie = COOKIE.get_or_init(|| RandomState::new().hash_one(id()));
    ((&raw const *cookie).addr().to_u64(), *cookie)
}

/// Returns bytes that processes have in common if they are on one machine, since it was started;
/// `None` if they cannot be read now.
pub fn boot() -> Option<&'static [u8]> {
    static BOOT: OnceLock<Vec<u8>> = OnceLock::new();
    if let Some(known) = BOOT.get() {
        return Some(known);
    }
    let read = std::fs::read("/proc/sys/kernel/random/boot_id").ok()?;
    Some(BOOT.get_or_init(|| read))
}

/// Returns bytes that processes have in common if and only if they are on one machine, since it was
/// started, and in one network namespace: then they reach each other's sockets in the abstract
/// namespace ([`passing`](super::passing)).
pub fn machine() -> Vec<u8> {
    let mut machine = boot().unwrap_or_default().to_vec();
    machine.extend(namespace("net"));
    machine
}

/// Returns bytes that processes have in common if and only if they see the same processes of the
/// same machine since it was started, and may open their files if they are of one user: its name,
/// the id of its start, and the namespaces of processes and of users.
pub fn place() -> Vec<u8> {
    let mut place = boot().unwrap_or_default().to_vec();
    place.extend(std::fs::read("/proc/sys/kernel/hostname").unwrap_or_default());
    place.extend(namespace("pid"));
    place.extend(namespace("user"));
    place
}

/// Returns bytes that processes of one machine have in common if and only if they are in one mount
/// namespace.
pub fn mounts() -> Vec<u8> {
    namespace("mnt")
}

/// Returns a number that stands for these bytes.
pub fn number_of(bytes: &[u8]) -> u64 {
    let step = |number: u64, byte: &u8| (number ^ u64::from(*byte)).wrapping_mul(0x100_0000_01b3);
    bytes.iter().fold(0xcbf2_9ce4_8422_2325, step)
}

/// Returns the user whose rights this process has.
pub fn user() -> u32 {
    // SAFETY: a system call that writes to no memory of this process.
    unsafe { libc::geteuid() }
}

fn namespace(kind: &str) -> Vec<u8> {
    let namespace = std::fs::read_link(format!("/proc/self/ns/{kind}")).unwrap_or_default();
    namespace.into_os_string().into_encoded_bytes()
}

/// Returns the number of the namespace in which process ids mean this process and those that it
/// sees; 0: not known.
pub fn pid_namespace() -> u64 {
    use std::os::unix::fs::MetadataExt;
    static NAMESPACE: OnceLock<u64> = OnceLock::new();
    *NAMESPACE.get_or_init(|| std::fs::metadata("/proc/self/ns/pid").map_or(0, |ns| ns.ino()))
}

/// Whether /proc shows processes by the ids that this process knows. In a namespace of processes
/// /proc may still be that of another one.
pub fn has_own_proc() -> bool {
    static OWN: OnceLock<bool> = OnceLock::new();
    *OWN.get_or_init(|| {
        let own = std::fs::read_link("/proc/self").unwrap_or_default();
        own.to_str() == Some(&id().to_string())
    })
}

/// Returns the number of cores of this node that may run the job: those of the machine, because a
/// rank that is bound to one core does not share it, or this process's own if it may use several
/// but not all.
pub fn cores() -> usize {
    static CORES: OnceLock<usize> = OnceLock::new();
    *CORES.get_or_init(|| {
        // SAFETY: a system call that writes to no memory of this process.
        let online = (unsafe { libc::sysconf(libc::_SC_NPROCESSORS_ONLN) }.max(1))
            .cast_unsigned()
            .to_usize();
        match std::thread::available_parallelism().map_or(1, |n| n.get()) {
            1 => online,
            mine => mine,
        }
    })
}

/// Returns whether sched_yield of this process can give its core to a process. Where the system
/// makes a group of each session (autogroup, sched(7)), it chooses a group first and then a thread
/// of it: a yield makes way within the own group only. Some launchers make a session of each rank.
pub fn yields_reach(pid: i32) -> bool {
    static GROUPS: OnceLock<bool> = OnceLock::new();
    let are_groups = *GROUPS.get_or_init(|| {
        std::fs::read("/proc/sys/kernel/sched_autogroup_enabled")
            .is_ok_and(|text| text.starts_with(b"1"))
    });
    // SAFETY: plain questions. -1 for a process that is gone or not seen: its session is unknown.
    let (own, other) = unsafe { (libc::getsid(0), libc::getsid(pid)) };
    !are_groups || other == -1 || other == own
}

/// Runs `work` while this thread blocks all signals. A thread that `work` starts inherits the mask,
/// so that the handlers of the program run on the program's own threads only.
pub fn without_signals<T>(work: impl FnOnce() -> T) -> T {
    let _blocked = Blocked::all_but(&[]);
    work()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::process::ExitStatusExt;
    use std::process::Command;

    #[test]
    fn a_panic_ends_the_process() {
        const INSIDE: &str = "A_PANIC_ENDS_THE_PROCESS";
        if std::env::var_os(INSIDE).is_some() {
            end_at_panics();
            let _ = std::panic::catch_unwind(|| panic!("as it must be"));
            return;
        }
        let name = "process::tests::a_panic_ends_the_process";
        let test = std::env::current_exe().unwrap();
        let mut test = Command::new(test);
        test.args(["--exact", name, "--nocapture"]).env(INSIDE, "1");
        let ended = test.output().unwrap();
        assert_eq!(ended.status.signal(), Some(libc::SIGABRT));
        let said = String::from_utf8_lossy(&ended.stderr);
        let place = "fompi: internal error of libfompi at crates/sys/src/process.rs:";
        assert!(said.contains(place) && said.ends_with(" [FOMPI-E116]\n"), "{said}");
    }
}
