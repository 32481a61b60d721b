//! Processes that have ended, or that the system does not allow this process to copy.

use super::*;

/// Returns whether a get of one byte fails with `expected`.
fn fails_with(target: Process<'_>, expected: &Error) -> bool {
    let (mut byte, there) = (0u8, 0u8);
    // SAFETY: `byte` is this function's own.
    let got = unsafe { target.get(&raw mut byte, (&raw const there).addr() as u64, 1) };
    got.as_ref() == Err(expected)
}

#[test]
fn a_process_that_died_is_named() {
    let child = Child::stopped(|| {});
    let target = process(*child.life().mark()); // outlives the child
    let died = Error::Died { rank: RANK.in_error_of_transport(), pid: target.life.mark().pid };
    assert!(!fails_with(target, &died));
    child.kill();
    assert!(fails_with(target, &died), "a zombie");
    drop(child);
    assert!(fails_with(target, &died), "no process");
    let byte = 0u8;
    // SAFETY: the process has ended.
    assert_eq!(unsafe { target.put(4096, &raw const byte, 1) }, Err(died.clone()));
    let mut batch = Batch::new(target, Way::Put);
    // SAFETY: the process has ended.
    let put = unsafe {
        batch.push((&raw const byte).cast_mut(), 4096, 1);
        batch.finish()
    };
    assert_eq!(put, Err(died));
}

#[test]
fn the_error_names_what_the_system_forbids() {
    // The target is a process that other processes may not trace; the origin is a process without
    // the privilege to do so nevertheless.
    let target = Child::stopped(|| {
        // SAFETY: plain system call.
        unsafe { libc::prctl(libc::PR_SET_DUMPABLE, 0) };
    });
    let target = super::target(&target);
    let (rank, pid) = (RANK.in_error_of_transport(), target.life.mark().pid);
    let forbidden = Error::Forbidden { call: "process_vm_readv", rank, pid };
    let origin = Child::working(|| {
        const NOBODY: u32 = 65534;
        // SAFETY: plain system calls; without privileges they change nothing.
        let id = unsafe {
            libc::setresuid(NOBODY, NOBODY, NOBODY);
            libc::geteuid()
        };
        id != 0 && fails_with(target, &forbidden)
    });
    assert!(origin.said_yes());
}

#[test]
fn a_process_that_is_not_an_ancestor_copies_after_permission() {
    let scope = std::fs::read_to_string("/proc/sys/kernel/yama/ptrace_scope").unwrap_or_default();
    if matches!(scope.trim(), "2" | "3") {
        return; // for the administrator to change
    }
    let cookie = 0x0123_4567_89ab_cdefu64;
    let address = (&raw const cookie).addr() as u64;
    let reached = |exposed: Child| {
        let exposed = with_cookie(&exposed, address, cookie);
        Child::working(|| exposed.shows_cookie()).said_yes()
    };
    let (own, above) = (process::id(), Child::stopped(|| {}));
    assert!(reached(Child::stopped(|| allow([own, above.pid()]))));
    // SAFETY: a system call that writes to no memory of this process.
    let may_all = unsafe { libc::geteuid() } == 0;
    if scope.trim() == "1" && !may_all {
        assert!(!reached(Child::stopped(|| {})), "Yama is there, and does not mind");
        // Only descendants of the common ancestor have access, until another ancestor is named.
        let alone = || process::id();
        assert!(!reached(Child::stopped(|| allow([alone(), alone()]))));
        assert!(reached(Child::stopped(|| {
            allow([alone()]);
            allow([alone(), own]);
        })));
    }
}

/// Forbids this process one system call from now on, without privileges, as containers do.
fn forbid(call: libc::c_long) {
    let statement = |code: u32, jt, jf, k| libc::sock_filter { code: code as u16, jt, jf, k };
    // The number of the call is the first word of what a filter sees.
    let mut filter = [
        statement(libc::BPF_LD | libc::BPF_W | libc::BPF_ABS, 0, 0, 0),
        statement(libc::BPF_JMP | libc::BPF_JEQ | libc::BPF_K, 0, 1, call as u32),
        statement(libc::BPF_RET | libc::BPF_K, 0, 0, libc::SECCOMP_RET_ERRNO | libc::EPERM as u32),
        statement(libc::BPF_RET | libc::BPF_K, 0, 0, libc::SECCOMP_RET_ALLOW),
    ];
    let program = libc::sock_fprog { len: filter.len() as u16, filter: filter.as_mut_ptr() };
    // SAFETY: changes only what this process may do; the filter outlives the call.
    let answers = unsafe {
        (
            libc::prctl(libc::PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0),
            libc::prctl(libc::PR_SET_SECCOMP, libc::SECCOMP_MODE_FILTER, &raw const program),
        )
    };
    assert_eq!(answers, (0, 0));
}

#[test]
fn a_filter_of_one_of_the_two_calls_is_noticed_before_it_is_needed() {
    let cookie = 0x0123_4567_89ab_cdefu64;
    let address = (&raw const cookie).addr() as u64;
    let own = process::id();
    let exposed = Child::stopped(|| allow([own]));
    let exposed = with_cookie(&exposed, address, cookie);
    for call in [libc::SYS_process_vm_readv, libc::SYS_process_vm_writev] {
        let origin = Child::working(|| {
            let before = exposed.shows_cookie();
            forbid(call);
            before && !exposed.shows_cookie()
        });
        assert!(origin.said_yes());
    }
}
