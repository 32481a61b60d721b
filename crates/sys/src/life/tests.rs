//! Lives of children of this process, by all ways to check.

use super::*;
use crate::child::Child;
use std::io::{Read, Write};
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};

/// The life of a child, for one test only.
fn life_of(child: &Child) -> Life {
    Life::new(Mark::of(child.pid()))
}

fn descriptor(life: &Life) -> i32 {
    life.kept.lock().descriptor.as_ref().expect("it was looked at").0
}

/// Puts another file under the number of a descriptor, as a program does that closes all
/// descriptors.
fn replace(number: i32, file: &impl AsRawFd) -> OwnedFd {
    // SAFETY: both are descriptors of this test.
    assert_eq!(unsafe { libc::dup2(file.as_raw_fd(), number) }, number);
    // SAFETY: it is this test's own now.
    unsafe { OwnedFd::from_raw_fd(number) }
}

#[test]
fn the_name_of_a_program_may_look_like_the_fields_behind_it() {
    let behind = " 1 2 3 0 -1 4 5 6 7 8 9 10 11 12 20 0 1 0 99887 14 15";
    for name in ["sh", "a b", ") Z 1 (", "", "(((", "Z) R"] {
        for (state, is_over) in [("R", false), ("Z", true), ("S", false), ("X", true)] {
            let text = format!("4711 ({name}) {state}{behind}\n");
            assert_eq!(Stat::parse(text.as_bytes()), Some(Stat { start: 99887, is_over }));
        }
    }
    let threads = behind.replace(" 20 0 1 0 ", " 20 0 3 0 ");
    let stat = Stat::parse(format!("1 (x) Z{threads}").as_bytes());
    assert_eq!(stat, Some(Stat { start: 99887, is_over: false }), "threads are left");
    for torn in ["", "1 (x", "1 (x)", "1 (x) R 1 2 3"] {
        assert_eq!(Stat::parse(torn.as_bytes()), None);
    }
}

#[test]
fn a_process_has_ended_when_it_is_a_zombie_and_when_it_is_gone() {
    let child = Child::stopped(|| {});
    let (life, late, mark) = (life_of(&child), life_of(&child), *life_of(&child).mark());
    assert!(life.is_there() && !life.has_ended() && !mark.has_ended());
    child.kill();
    assert!(life.has_ended() && mark.has_ended(), "a zombie");
    assert!(!life.is_there() && !late.is_there());
    drop(child);
    assert!(life.has_ended() && mark.has_ended(), "nobody");
    assert!(life_of(&Child::stopped(|| {})).kept.lock().descriptor.is_none());
}

#[test]
fn a_process_that_was_started_at_another_time_is_another_one() {
    let child = Child::stopped(|| {});
    let mark = *life_of(&child).mark();
    assert!(mark.start > 0);
    let other = Life::new(Mark { start: mark.start + 1, ..mark });
    assert!(!other.is_there() && other.has_ended());
    assert!(Life::new(mark).is_there());
}

#[test]
fn this_process_knows_the_start_of_its_own_that_others_see() {
    let path = format!("/proc/{}/stat", process::id());
    // Another program: qemu-user changes what this one reads.
    let seen = std::process::Command::new("cat").arg(path).output().unwrap().stdout;
    assert_eq!(Stat::parse(&seen).unwrap().start, Mark::own().start);
}

#[test]
fn where_the_start_is_not_known_the_cookie_tells() {
    let cookie = 0x0bad_cafe_0bad_cafe_u64;
    let cookie_address = (&raw const cookie).addr() as u64;
    let child = Child::stopped(|| {});
    let mark = Mark { start: 0, cookie_address, cookie, ..Mark::of(child.pid()) };
    assert!(!mark.has_ended());
    assert!(Mark { cookie: cookie + 1, ..mark }.has_ended());
    assert!(Mark { cookie_address: 8, ..mark }.has_ended());
    assert!(!Mark { cookie: 0, ..mark }.has_ended(), "nothing is known against it");
    child.kill();
    assert!(mark.has_ended());
}

#[test]
fn a_look_is_good_for_a_short_time_only() {
    let child = Child::stopped(|| {});
    let life = life_of(&child);
    assert!(life.is_there());
    let looked = || life.looked.load(Ordering::Relaxed);
    let first = looked();
    while now_ns() - first < FRESH_NS {
        assert!(life.is_there());
    }
    assert!(life.is_there() && looked() >= first + FRESH_NS);
    child.kill();
    while life.is_there() {}
    assert_eq!(looked(), ENDED);
}

#[test]
fn the_first_that_has_ended_is_found_among_many() {
    let children: Vec<Child> = (0..4).map(|_| Child::stopped(|| {})).collect();
    let lives: Vec<Life> = children.iter().map(life_of).collect();
    assert_eq!(first_ended(&lives), None);
    assert_eq!(first_ended(&lives), None, "by their descriptors");
    children[2].kill();
    assert_eq!(first_ended(&lives), Some(2));
    children[1].kill();
    assert_eq!(first_ended(&lives), Some(1));
    assert_eq!(first_ended(&lives), Some(1), "it stays so");
    assert_eq!(first_ended([]), None);
}

#[test]
fn a_descriptor_that_became_another_file_tells_nothing_and_is_left_alone() {
    let child = Child::stopped(|| {});
    let life = life_of(&child);
    assert!(life.is_there());
    let (mut from, mut to) = std::io::pipe().unwrap();
    to.write_all(b"x").unwrap();
    let file = replace(descriptor(&life), &from);
    assert_eq!(first_ended([&life]), None, "the pipe can be read, and nobody has died");
    assert_ne!(descriptor(&life), file.as_raw_fd());
    // SAFETY: a system call that writes to no memory of this process.
    assert!(unsafe { libc::fcntl(file.as_raw_fd(), libc::F_GETFD) } >= 0, "it was closed");
    from.read_exact(&mut [0]).unwrap();
    let file = replace(descriptor(&life), &from);
    assert_eq!(first_ended([&life]), None);
    child.kill();
    assert!(life.has_ended(), "the pipe says nothing");
    // SAFETY: a system call that writes to no memory of this process.
    assert!(unsafe { libc::fcntl(file.as_raw_fd(), libc::F_GETFD) } >= 0, "it was closed");
}

#[test]
fn a_life_is_known_once_and_forgotten_with_the_last_that_asked() {
    let child = Child::stopped(|| {});
    let mark = Mark { cookie: 7, ..*life_of(&child).mark() };
    let (one, other) = (of(mark), of(mark));
    assert!(Arc::ptr_eq(&one, &other));
    assert!(!Arc::ptr_eq(&one, &of(Mark { cookie: 8, ..mark })));
    assert!(one.is_there());
    let known = Arc::downgrade(&one);
    drop((one, other));
    assert!(known.upgrade().is_none());
}

/// Signals arrive all the time, with a handler that does not restart interrupted calls.
#[test]
fn a_poll_that_a_signal_interrupts_finds_no_death() {
    extern "C" fn nothing(_: i32) {}
    let looked_at = Child::stopped(|| {});
    let life = life_of(&looked_at);
    let child = Child::working(|| {
        // SAFETY: plain data, for which zero is a value: a handler without SA_RESTART.
        let mut action: libc::sigaction = unsafe { core::mem::zeroed() };
        let handler: extern "C" fn(i32) = nothing;
        action.sa_sigaction = handler as libc::sighandler_t;
        let often = libc::timeval { tv_sec: 0, tv_usec: 50 };
        let often = libc::itimerval { it_interval: often, it_value: often };
        let none = core::ptr::null_mut();
        // SAFETY: the handler does nothing; the timer is one of this process.
        unsafe {
            libc::sigaction(libc::SIGALRM, &action, core::ptr::null_mut());
            libc::setitimer(libc::ITIMER_REAL, &often, none);
        }
        let began = now_ns();
        while now_ns() - began < SURE_NS {
            if life.has_ended() || first_ended([&life]).is_some() {
                return false;
            }
        }
        true
    });
    assert!(child.said_yes());
}
