//! Tests of adoption that change the process as a whole. Each runs in a process of its own.

use super::super::own_tools::USER_ONLY;
use super::*;
use std::process::Command;

/// Runs the test of that name in a process of its own, which calls `body`.
fn alone(name: &str, body: impl FnOnce()) {
    const INSIDE: &str = "FOMPI_TEST_ALONE";
    if std::env::var_os(INSIDE).is_some() {
        return body();
    }
    let name = format!("memory::adopted::tests::own_process::{name}");
    let mut test = Command::new(std::env::current_exe().unwrap());
    test.args(["--exact", &name]).env(INSIDE, "1");
    let output = test.output().unwrap();
    let text = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success() && text.contains("1 passed"), "{text}");
}

#[test]
fn without_exactness_no_store_is_lost_and_system_calls_may_fail() {
    alone("without_exactness_no_store_is_lost_and_system_calls_may_fail", || {
        USER_ONLY.store(true, Ordering::Relaxed);
        assert!(reads_during_moves(3000) > 0);
        let memory = Memory::numbered(3);
        let take = |skip, when, consent| {
            take(memory.at() + skip, 2 * page_bytes(), when, consent).map(|adopted| adopted.inner())
        };
        let all = (memory.at(), 2 * page_bytes());
        assert_eq!(take(0, When::Creation, Adopt::Auto), Ok(all), "whole pages move");
        let inner = (memory.at() + page_bytes(), page_bytes());
        assert_eq!(take(64, When::Creation, Adopt::Auto), Ok(inner), "edges do not");
        let both = (memory.at() + 64, 2 * page_bytes());
        assert_eq!(take(64, When::Creation, Adopt::Edges), Ok(both), "the other thread sleeps");
        assert_eq!(take(64, When::MidLife, Adopt::Edges), Ok(both));
        let stop = AtomicBool::new(false);
        std::thread::scope(|scope| {
            scope.spawn(|| {
                while !stop.load(Ordering::Relaxed) {
                    std::hint::spin_loop();
                }
            });
            assert_eq!(take(64, When::Creation, Adopt::Edges), Ok(inner), "a thread runs");
            assert_eq!(take(0, When::MidLife, Adopt::Auto), Err(NotAdopted::Threads));
            assert_eq!(take(0, When::Creation, Adopt::Auto), Ok(all));
            stop.store(true, Ordering::Relaxed);
        });
        assert!(memory.is_private() && memory.is_numbered());
    });
}

#[test]
fn locked_memory_and_limits_are_respected() {
    alone("locked_memory_and_limits_are_respected", || {
        let memory = Memory::numbered(2);
        let take = |consent| take(memory.at(), page_bytes(), When::MidLife, consent).map(drop);
        assert_eq!(take(Adopt::Auto), Ok(()));
        // SAFETY: a page of the test's own memory.
        assert_eq!(unsafe { libc::mlock(memory.base.cast(), page_bytes() as usize) }, 0);
        assert_eq!(take(Adopt::Auto), Err(NotAdopted::Locked));
        // SAFETY: likewise.
        assert_eq!(unsafe { libc::munlock(memory.base.cast(), page_bytes() as usize) }, 0);
        assert_eq!(take(Adopt::Auto), Ok(()));
        assert!(price(memory.at(), page_bytes()).is_some());
        let limit = libc::rlimit { rlim_cur: 1 << 40, rlim_max: libc::RLIM_INFINITY };
        // SAFETY: a valid limit.
        assert_eq!(unsafe { libc::setrlimit(libc::RLIMIT_AS, &limit) }, 0);
        assert_eq!(take(Adopt::Always), Err(NotAdopted::Limited));
        assert_eq!(price(memory.at(), page_bytes()), None);
    });
}

#[test]
fn the_budget_counts_at_creation_alone() {
    alone("the_budget_counts_at_creation_alone", || {
        let (memory, untouched) = (Memory::numbered(2000), Memory::new(20_000, RW, PRIVATE));
        let take_at = |memory: &Memory, pages, when| {
            take(memory.at(), pages * page_bytes(), when, Adopt::Auto).map(drop)
        };
        let take = |pages, when| take_at(&memory, pages, when);
        (0..20).for_each(|_| assert_eq!(take(3, When::MidLife), Ok(())));
        if price(memory.at(), 3 * page_bytes()).unwrap() > 1_000_000 {
            return; // an emulated processor: nothing fits the budget
        }
        // The first eight moves may take long.
        let all = take_at(&untouched, 20_000, When::Creation);
        assert_eq!(all, Ok(()), "pages without memory cost little");
        (1..8).for_each(|_| assert_eq!(take(3, When::Creation), Ok(())));
        assert_eq!(take(2000, When::Creation), Err(NotAdopted::Budget));
        assert_eq!(take(3, When::Creation), Ok(()));
        assert_eq!(take(2000, When::MidLife), Ok(()));
        note_freed((1, 1), Some(false), true);
        assert_eq!(take(3, When::Creation), Err(NotAdopted::Budget));
        assert_eq!(take(3, When::MidLife), Ok(()));
        note_freed((1, 1), Some(true), true);
        assert_eq!(take(3, When::Creation), Ok(()));
        let memory_of_three = (memory.at(), 3 * page_bytes());
        note_freed(memory_of_three, Some(true), true);
        assert_eq!(take(3, When::Creation), Err(NotAdopted::Again));
        assert_eq!((take(2, When::Creation), take(3, When::MidLife)), (Ok(()), Ok(())));
        note_freed(memory_of_three, None, false);
        assert_eq!(take(3, When::Creation), Ok(()));
    });
}

#[test]
fn descriptors_that_the_program_closes_are_opened_again() {
    alone("descriptors_that_the_program_closes_are_opened_again", || {
        let memory = Memory::numbered(3);
        let adopted = take_all(memory.at(), 3 * page_bytes()).unwrap();
        // SAFETY: no other code of this process uses descriptors now.
        (3..100).for_each(|descriptor| unsafe { _ = libc::close(descriptor) });
        adopted.give_back().unwrap();
        assert!(memory.is_private() && memory.is_numbered());
        assert_eq!(
            take_all(memory.at(), 3 * page_bytes()).err(),
            Some(NotAdopted::Failed),
            "no heap"
        );
        assert!(memory.is_private() && memory.is_numbered());
    });
}

/// Ends a child of fork(2) with what a test in it has found, and returns that in the parent.
fn in_child(work: impl FnOnce() -> bool) -> bool {
    crate::sys::child::Child::working(work).said_yes()
}

#[test]
fn a_child_has_private_copies_and_the_parent_keeps_its_pages() {
    alone("a_child_has_private_copies_and_the_parent_keeps_its_pages", || {
        let memory = Memory::numbered(300);
        let touched = Memory::new(200, RW, PRIVATE);
        touched.word(512).store(5, Ordering::Relaxed);
        let adopted = take_all(memory.at() + 8, 100 * page_bytes()).unwrap();
        let other = take_all(touched.at(), 200 * page_bytes()).unwrap();
        let fine = in_child(|| {
            let copied = memory.is_private() && memory.is_numbered() && touched.is_private();
            memory.word(3).store(33, Ordering::Relaxed);
            touched.word(1024).store(44, Ordering::Relaxed);
            let anew = take_all(memory.at(), 3 * page_bytes())
                .and_then(|adopted| adopted.give_back().map_err(|_| NotAdopted::Failed));
            drop(other);
            copied && anew == Ok(()) && memory.word(3).load(Ordering::Relaxed) == 33
        });
        assert!(fine);
        assert!(memory.is_numbered() && !memory.is_private());
        assert_eq!(touched.word(1024).load(Ordering::Relaxed), 0);
        assert_eq!(touched.word(512).load(Ordering::Relaxed), 5);
        adopted.give_back().unwrap();
        assert!(in_child(|| memory.is_private() && memory.is_numbered()));
        assert!(memory.is_private() && memory.is_numbered());
    });
}

#[test]
fn a_bare_fork_copies_too() {
    alone("a_bare_fork_copies_too", || {
        let memory = Memory::numbered(3);
        let _adopted = take_all(memory.at(), 3 * page_bytes()).unwrap();
        // SAFETY: the child makes system calls only, and ends.
        let child = heap::around_fork(|| unsafe {
            libc::syscall(libc::SYS_clone, libc::SIGCHLD, 0_usize, 0_usize, 0_usize, 0_usize) as i32
        });
        if child == 0 {
            memory.word(0).store(9, Ordering::Relaxed);
            // SAFETY: ends the child.
            unsafe { libc::_exit(0) };
        }
        let mut status = 0;
        // SAFETY: a child of this process, and a place for its status.
        assert_eq!(unsafe { libc::waitpid(child, &mut status, 0) }, child);
        assert!(status == 0 && memory.is_numbered() && !memory.is_private());
    });
}

#[test]
fn forks_and_moves_of_other_threads_wait_for_each_other() {
    alone("forks_and_moves_of_other_threads_wait_for_each_other", || {
        let memory = &Memory::numbered(20);
        let stop = &AtomicBool::new(false);
        std::thread::scope(|scope| {
            scope.spawn(|| {
                while !stop.load(Ordering::Relaxed) {
                    take_all(memory.at(), 20 * page_bytes()).unwrap().give_back().unwrap();
                }
            });
            for _ in 0..100 {
                assert!(in_child(|| memory.is_private() && memory.is_numbered()));
            }
            stop.store(true, Ordering::Relaxed);
        });
        assert!(memory.is_private() && memory.is_numbered());
    });
}

/// Makes a system call fail with EPERM from now on, in this process.
fn forbid(call: libc::c_long) {
    let rule = |code: u32, k: u32, jt, jf| libc::sock_filter { code: code as u16, jt, jf, k };
    let filter = [
        rule(libc::BPF_LD | libc::BPF_W | libc::BPF_ABS, 0, 0, 0),
        rule(libc::BPF_JMP | libc::BPF_JEQ | libc::BPF_K, call as u32, 0, 1),
        rule(libc::BPF_RET | libc::BPF_K, libc::SECCOMP_RET_ERRNO | libc::EPERM as u32, 0, 0),
        rule(libc::BPF_RET | libc::BPF_K, libc::SECCOMP_RET_ALLOW, 0, 0),
    ];
    let program = libc::sock_fprog { len: filter.len() as u16, filter: filter.as_ptr().cast_mut() };
    // SAFETY: a valid filter, which lives during the calls.
    unsafe {
        assert_eq!(libc::prctl(libc::PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0), 0);
        assert_eq!(libc::prctl(libc::PR_SET_SECCOMP, 2, &raw const program, 0, 0), 0);
    }
}

#[test]
fn where_a_filter_refuses_userfaultfd_nothing_is_adopted() {
    alone("where_a_filter_refuses_userfaultfd_nothing_is_adopted", || {
        let memory = Memory::numbered(2);
        forbid(libc::SYS_ioctl); // /dev/userfaultfd may serve without the call of that name
        assert_eq!(price(memory.at(), page_bytes()), None);
        assert_eq!(take_all(memory.at(), page_bytes()).err(), Some(NotAdopted::NoUserfaultfd));
        assert!(memory.is_private() && memory.is_numbered());
    });
}

#[test]
fn where_a_step_fails_all_bytes_stay_right() {
    alone("where_a_step_fails_all_bytes_stay_right", || {
        let memory = Memory::numbered(200);
        // Two areas that may move and one that another userfaultfd watches.
        let (start, page) = (memory.at(), page_bytes());
        let other = crate::sys::adopt::userfault::Userfault::open(true).unwrap();
        let kind = crate::sys::adopt::userfault::WatchKind::Private;
        other.register(kind, start + 100 * page, page).unwrap();
        assert_eq!(take_all(start, 200 * page).err(), Some(NotAdopted::Watched));
        assert!(memory.is_private() && memory.is_numbered());
        other.protect(start + 100 * page, page).expect("the other one watches it still");
        drop(other);
        let third = crate::sys::adopt::userfault::Userfault::open(true).unwrap();
        third.register(kind, start, 100 * page).expect("it is not watched any more");
        drop(third);
        assert!(memory.is_numbered());
        // Later calls of mmap fail: the move in, and its undoing.
        let adopted = take_all(start, 100 * page).unwrap();
        forbid(libc::SYS_mremap);
        assert!(adopted.give_back().is_err());
        assert!(memory.is_numbered());
        let again = take_all(start, 100 * page).unwrap();
        assert!(memory.is_numbered() && again.give_back().is_err());
        memory.word(0).store(1, Ordering::Relaxed);
        memory.word(0).store(0, Ordering::Relaxed);
        forbid(libc::SYS_pwrite64);
        assert_eq!(take_all(start + 100 * page, 100 * page).err(), Some(NotAdopted::Failed));
        assert!(memory.is_numbered());
    });
}
