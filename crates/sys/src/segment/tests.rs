//! Segments as their users see them: bytes, allocated memory, names, seals and descriptors.

use super::*;
use crate::child::Child;

#[test]
fn what_one_mapping_writes_another_reads() {
    let segment = Segment::create(2 * page_bytes()).unwrap();
    let other = Segment::open(&segment.name()).unwrap();
    let (here, there) = (segment.map().unwrap(), other.map().unwrap());
    assert_ne!(here.base(), there.base());
    // SAFETY: both mappings are two pages long, and no other code uses them.
    unsafe {
        here.base().add(5000).write_volatile(7);
        assert_eq!(there.base().add(5000).read_volatile(), 7);
    }
}

#[test]
fn another_file_under_the_same_name_is_refused() {
    let segment = Segment::create(page_bytes()).unwrap();
    let mut name = segment.name();
    name.inode += 1;
    assert!(Segment::open(&name).is_err());
}

#[test]
fn an_aligned_mapping_shows_the_same_bytes() {
    const ALIGNMENT: usize = 2 << 20;
    let segment = Segment::create(3 * page_bytes()).unwrap();
    let (here, there) = (segment.map_aligned(ALIGNMENT).unwrap(), segment.map().unwrap());
    assert!(here.base().addr().is_multiple_of(ALIGNMENT));
    assert_eq!(here.bytes() as u64, 3 * page_bytes());
    // SAFETY: both mappings are three pages long, and no other code uses them.
    unsafe {
        here.base().add(3 * page_bytes() as usize - 1).write_volatile(7);
        assert_eq!(there.base().add(3 * page_bytes() as usize - 1).read_volatile(), 7);
    }
}

#[test]
fn a_reserved_range_mirrors_shared_memory_and_replaces_nothing() {
    let page = page_bytes() as usize;
    let segment = Segment::create(3 * page_bytes()).unwrap();
    let here = segment.map().unwrap();
    // One that the system gives to no other mapping.
    let address = 0x20_0000_0000;
    let mut there = Mapping::reserve_at(address, 2 * page).unwrap();
    assert!(Mapping::reserve_at(address - page, 2 * page).is_none());
    assert!(Mapping::reserve_at(usize::MAX - page + 1, page).is_none());
    // SAFETY: the last two pages of the segment, which no other code uses.
    unsafe {
        there.mirror(here.base().add(page)).unwrap();
        assert_eq!(there.base().addr(), address);
        there.base().add(page).write_volatile(7);
        assert_eq!(here.base().add(2 * page).read_volatile(), 7);
        drop(there);
        assert_eq!(here.base().add(2 * page).read_volatile(), 7);
    }
}

#[test]
fn what_is_given_back_is_zero_and_takes_no_memory() {
    let segment = Segment::create(4 * page_bytes()).unwrap();
    segment.reserve(0, 4 * page_bytes()).unwrap();
    let here = segment.map().unwrap();
    assert_eq!(backed(&segment), 4 * page_bytes());
    // SAFETY: the mapping is four pages long, and no other code uses it.
    unsafe {
        here.base().add(page_bytes() as usize).write_volatile(7);
        here.base().write_volatile(8);
    }
    segment.give_back(&here, page_bytes(), 2 * page_bytes()).unwrap();
    assert_eq!(backed(&segment), 2 * page_bytes());
    // SAFETY: inside of the mapping, which no other code uses.
    unsafe {
        assert_eq!(here.base().add(page_bytes() as usize).read_volatile(), 0);
        assert_eq!(here.base().read_volatile(), 8);
    }
}

#[test]
fn more_than_the_node_has_is_no_memory() {
    let bytes = 1 << 50;
    let segment = Segment::create(bytes).unwrap();
    let work = |_, _| panic!("nothing is taken");
    assert_eq!(segment.in_steps(bytes, work), Err(Error::NoMemory { bytes }));
}

fn backed(segment: &Segment) -> u64 {
    segment.file.metadata().unwrap().blocks() * 512
}

#[test]
fn memory_is_backed_where_it_is_asked_for_and_no_more() {
    let segment = Segment::create(64 * page_bytes()).unwrap();
    let here = segment.map().unwrap();
    assert_eq!(backed(&segment), 0);
    segment.back(&here, page_bytes(), 10 * page_bytes()).unwrap();
    assert_eq!(backed(&segment), 10 * page_bytes());
    segment.reserve(20 * page_bytes(), 10 * page_bytes()).unwrap();
    assert_eq!(backed(&segment), 20 * page_bytes());
}

#[test]
fn a_segment_keeps_its_length() {
    let segment = Segment::create(2 * page_bytes()).unwrap();
    let other = Segment::open(&segment.name()).unwrap();
    assert!(other.file.set_len(page_bytes()).is_err());
    assert!(other.file.set_len(3 * page_bytes()).is_err());
    // SAFETY: a plain system call on a descriptor of this test.
    let sealed = unsafe { libc::fcntl(other.file.as_raw_fd(), libc::F_ADD_SEALS, 8) };
    assert_eq!(sealed, -1, "nobody can forbid to write it either");
}

/// A kernel that never finishes a call for more than four pages, because of signals.
#[test]
fn calls_become_short_enough_where_signals_undo_them() {
    let (mut calls, mut next) = (0, page_bytes());
    let allocate = |at, bytes| {
        calls += 1;
        assert!(at == next && calls < 10_000, "no progress");
        if bytes > 4 * page_bytes() {
            return Err(Error::System { call: "fallocate", errno: libc::EINTR });
        }
        next += bytes;
        Ok(())
    };
    in_calls(page_bytes(), 4 * CALL, allocate).unwrap();
    assert_eq!(next, page_bytes() + 4 * CALL);
}

/// Signals arrive all the time; on some kernels each signal undoes a call that is under way.
#[test]
fn memory_is_backed_while_signals_come() {
    extern "C" fn nothing(_: i32) {}
    let child = Child::working(|| {
        let handler: extern "C" fn(i32) = nothing;
        // SAFETY: the handler does nothing.
        unsafe { libc::signal(libc::SIGALRM, handler as libc::sighandler_t) };
        let often = libc::timeval { tv_sec: 0, tv_usec: 200 };
        let often = libc::itimerval { it_interval: often, it_value: often };
        // SAFETY: a timer of this process, and no place for the one before.
        unsafe { libc::setitimer(libc::ITIMER_REAL, &often, ptr::null_mut()) };
        let segment = Segment::create(2 * STEP).unwrap();
        segment.reserve(0, 2 * STEP).unwrap();
        backed(&segment) == 2 * STEP
    });
    assert!(child.said_yes());
}

#[test]
fn a_descriptor_that_the_program_uses_again_stays_open_and_whole() {
    let child = Child::working(|| {
        let segment = Segment::create(2 * page_bytes()).unwrap();
        let here = segment.map().unwrap();
        // SAFETY: the mapping is two pages long, and no other code uses it.
        unsafe { here.base().write_volatile(7) };
        let fd = segment.file.as_raw_fd();
        let other = Segment::create(2 * page_bytes()).unwrap();
        other.reserve(0, 2 * page_bytes()).unwrap();
        // SAFETY: plain system calls on descriptors of this process.
        let moved = unsafe { libc::dup2(other.file.as_raw_fd(), fd) } == fd;
        let given = segment.give_back(&here, 0, 2 * page_bytes()).is_ok();
        // SAFETY: as above.
        let is_gone = unsafe { here.base().read_volatile() } == 0;
        let is_open = segment.is_open();
        drop(segment);
        // SAFETY: a plain system call.
        let stays = unsafe { libc::fcntl(fd, libc::F_GETFD) } >= 0;
        moved && given && is_gone && !is_open && stays && backed(&other) == 2 * page_bytes()
    });
    assert!(child.said_yes());
}

#[test]
fn private_memory_may_be_more_than_the_node_has() {
    let memory = Mapping::private(1 << 40).unwrap();
    // SAFETY: its first and its last byte.
    unsafe {
        memory.base().write(1);
        memory.base().add((1 << 40) - 1).write(2);
    }
}
