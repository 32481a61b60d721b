//! Tests of adoption that change the process as a whole. Each runs in a process of its own.

use super::*;
use crate::sync::AtomicBool;
use std::os::fd::{FromRawFd, OwnedFd};

fn alone(name: &str, body: impl FnOnce()) {
    crate::sys::child::alone(&format!("adopted::tests::own_process::{name}"), body);
}

#[test]
fn limits_are_respected() {
    alone("limits_are_respected", || {
        let memory = Memory::numbered(2);
        let take = |consent| take_by(memory.at(), page_bytes(), consent).map(drop);
        assert_eq!(take(Adopt::Auto), Ok(()));
        let limit = libc::rlimit { rlim_cur: 1 << 40, rlim_max: libc::RLIM_INFINITY };
        // SAFETY: a valid limit.
        assert_eq!(unsafe { libc::setrlimit(libc::RLIMIT_AS, &limit) }, 0);
        assert_eq!(take(Adopt::Always), Err(NotAdopted::Limited));
    });
}

#[test]
fn edges_move_if_the_process_has_one_thread() {
    alone("edges_move_if_the_process_has_one_thread", || {
        let memory = Memory::numbered(3);
        let of = |others| {
            // SAFETY: no other thread uses the memory.
            let quiet = unsafe { Quiet::begin(others) };
            let bytes = 2 * page_bytes();
            let adopted = take(memory.at() + 64, bytes, &quiet).unwrap();
            let inner = adopted.inner();
            give_back(adopted).unwrap();
            inner
        };
        assert_eq!(of(OtherThreads::None), (memory.at() + 64, 2 * page_bytes()));
        assert_eq!(of(OtherThreads::Helpers), (memory.at() + page_bytes(), page_bytes()));
    });
}

#[test]
fn an_open_ring_keeps_pages_where_they_are() {
    alone("an_open_ring_keeps_pages_where_they_are", || {
        let memory = Memory::numbered(2);
        let open = || {
            // SAFETY: a struct io_uring_params, which has 120 bytes.
            let ring =
                unsafe { libc::syscall(libc::SYS_io_uring_setup, 1, [0_u64; 15].as_mut_ptr()) };
            // SAFETY: it was just made and has no other owner.
            (ring >= 0).then(|| unsafe { OwnedFd::from_raw_fd(ring as i32) })
        };
        let Some(ring) = open() else { return };
        assert_eq!(take_all(memory.at(), page_bytes()).err(), Some(NotAdopted::Device));
        drop(ring);
        let adopted = take_all(memory.at(), page_bytes()).unwrap();
        let ring = open();
        assert_eq!(give_back(adopted), Err(NotAdopted::Device));
        assert!(!memory.is_private() && memory.is_numbered());
        drop(ring);
        assert_eq!(give_back_unheld(&quiet()), Ok(()));
        assert!(memory.is_private() && memory.is_numbered());
    });
}

/// Gives back on a stack in pages that no window is over.
extern "C" fn give_back_below(_: *mut libc::c_void) -> *mut libc::c_void {
    assert_eq!(give_back_unheld(&quiet()), Err(NotAdopted::Stack));
    core::ptr::null_mut()
}

#[test]
fn a_stack_does_not_move_back() {
    alone("a_stack_does_not_move_back", || {
        let memory = Memory::new(512, RW, PRIVATE);
        drop(take_all(memory.at(), 512 * page_bytes()).unwrap());
        // SAFETY: the stack of a thread that ends before this does.
        unsafe {
            let mut attributes = core::mem::zeroed();
            let mut thread = core::mem::zeroed();
            libc::pthread_attr_init(&mut attributes);
            libc::pthread_attr_setstack(&mut attributes, memory.base.cast(), memory.bytes);
            let none = core::ptr::null_mut();
            let made = libc::pthread_create(&mut thread, &attributes, give_back_below, none);
            assert_eq!((made, libc::pthread_join(thread, &mut core::ptr::null_mut())), (0, 0));
        }
        assert!(!memory.is_private());
        assert_eq!(give_back_unheld(&quiet()), Ok(()));
        assert!(memory.is_private());
    });
}

#[test]
fn allocators_get_their_memory_back_as_it_was() {
    alone("allocators_get_their_memory_back_as_it_was", || {
        for bytes in [300_000_usize, 1_500_000] {
            for turn in 0..20_u8 {
                // SAFETY: malloc and calloc, with room for these bytes.
                unsafe {
                    let block = libc::malloc(bytes).cast::<u8>();
                    block.write_bytes(turn, bytes);
                    let adopted = take_all(block.expose_provenance() as u64, bytes as u64).unwrap();
                    assert!((0..bytes).all(|at| block.add(at).read() == turn));
                    give_back(adopted).unwrap();
                    let block = libc::realloc(block.cast(), bytes + 1000).cast::<u8>();
                    assert!((0..bytes).all(|at| block.add(at).read() == turn));
                    libc::free(block.cast());
                    let zero = libc::calloc(1, bytes + 1000).cast::<u8>();
                    assert!((0..bytes + 1000).all(|at| zero.add(at).read() == 0));
                    libc::free(zero.cast());
                }
            }
        }
    });
}

#[test]
fn windows_count_unless_their_pages_are_adopted() {
    alone("windows_count_unless_their_pages_are_adopted", || {
        let memory = Memory::numbered(2);
        let may = |consent| may_take(memory.at(), 2 * page_bytes(), consent);
        let adopted = take_all(memory.at(), 2 * page_bytes()).unwrap();
        assert!((0..100).all(|_| may(Adopt::Auto) == Ok(())));
        give_back(adopted).unwrap();
        let permitted = (0..10_000).filter(|_| may(Adopt::Auto) == Ok(())).count();
        assert!((1..10_000).contains(&permitted), "{permitted}");
        assert_eq!(may(Adopt::Always), Ok(()));
    });
}

#[test]
fn descriptors_that_the_program_closes_are_opened_again() {
    alone("descriptors_that_the_program_closes_are_opened_again", || {
        let memory = Memory::numbered(3);
        let adopted = take_all(memory.at(), 3 * page_bytes()).unwrap();
        // SAFETY: no other code of this process uses descriptors now.
        (3..100).for_each(|descriptor| unsafe { _ = libc::close(descriptor) });
        let given = give_back(adopted);
        assert!(given.is_err() && memory.is_numbered(), "no heap: the pages stay");
        let other = Memory::numbered(3);
        assert_eq!(take_all(other.at(), 3 * page_bytes()).err(), Some(NotAdopted::Failed));
        assert!(other.is_private() && other.is_numbered());
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
            let again = take_all(memory.at(), 3 * page_bytes()).and_then(give_back);
            drop(other);
            copied && again == Ok(()) && memory.word(3).load(Ordering::Relaxed) == 33
        });
        assert!(fine);
        assert!(memory.is_numbered() && !memory.is_private());
        assert_eq!(touched.word(1024).load(Ordering::Relaxed), 0);
        assert_eq!(touched.word(512).load(Ordering::Relaxed), 5);
        give_back(adopted).unwrap();
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
        // Far from the stacks of threads, which may be next to it.
        let memory = &Memory::numbered(100);
        let at = memory.at() + 40 * page_bytes();
        let stop = &AtomicBool::new(false);
        std::thread::scope(|scope| {
            scope.spawn(|| {
                while !stop.load(Ordering::Relaxed) {
                    // While there is a child, neither of the two happens.
                    let _ = take_all(at, 20 * page_bytes()).and_then(give_back);
                }
            });
            for _ in 0..100 {
                assert!(in_child(|| memory.is_private() && memory.is_numbered()));
            }
            stop.store(true, Ordering::Relaxed);
        });
        assert_eq!(give_back_unheld(&quiet()), Ok(()));
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
fn where_the_kernel_does_not_tell_nothing_is_adopted() {
    alone("where_the_kernel_does_not_tell_nothing_is_adopted", || {
        let memory = Memory::numbered(2);
        forbid(libc::SYS_madvise);
        assert_eq!(take_all(memory.at(), page_bytes()).err(), Some(NotAdopted::NoKernel));
        assert!(memory.is_private() && memory.is_numbered());
    });
}

#[test]
fn where_a_step_fails_all_bytes_stay_right() {
    alone("where_a_step_fails_all_bytes_stay_right", || {
        let memory = Memory::numbered(200);
        let (start, page) = (memory.at(), page_bytes());
        let adopted = take_all(start, 100 * page).unwrap();
        forbid(libc::SYS_pread64);
        assert!(give_back(adopted).is_err());
        assert!(memory.is_numbered());
        let again = take_all(start, 100 * page);
        assert!(again.is_ok() && memory.is_numbered(), "it is still adopted");
        memory.word(0).store(1, Ordering::Relaxed);
        memory.word(0).store(0, Ordering::Relaxed);
        forbid(libc::SYS_mremap);
        assert_eq!(take_all(start + 100 * page, 100 * page).err(), Some(NotAdopted::Failed));
        assert!(memory.is_numbered());
    });
}
