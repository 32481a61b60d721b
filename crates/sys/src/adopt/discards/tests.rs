//! Tests of discarded pages, without moves.

use super::*;
use crate::segment::{Mapping, Segment};

/// A segment of 8 pages that is mapped twice, as adopted pages are, and noted.
struct Stage {
    lease: Mapping,
    program: Mapping,
}

impl Stage {
    fn new() -> Stage {
        let segment = Segment::create(8 * page_bytes()).unwrap();
        let stage = Stage { lease: segment.map().unwrap(), program: segment.map().unwrap() };
        assert!(note(stage.first(), stage.first() + 8 * page_bytes(), stage.lease.base()));
        (0..8).for_each(|page| stage.at(page).write(page as u8 + 1));
        stage
    }

    fn first(&self) -> u64 {
        self.program.base().expose_provenance() as u64
    }

    fn at(&self, page: u64) -> Byte {
        Byte(self.program.base().wrapping_add((page * page_bytes()) as usize))
    }

    fn pages(&self) -> Vec<u8> {
        (0..8).map(|page| self.at(page).read()).collect()
    }

    fn advise(&self, page: u64, bytes: u64, advice: i32) -> (i32, i32) {
        // SAFETY: pages of this stage, whose content only this test needs.
        unsafe {
            *libc::__errno_location() = 77;
            let answer = advise(bare, self.at(page).0.cast(), bytes as usize, advice);
            (answer, *libc::__errno_location())
        }
    }
}

impl Drop for Stage {
    fn drop(&mut self) {
        forget(self.first(), self.first() + 8 * page_bytes());
    }
}

/// A byte of a mapping.
struct Byte(*mut u8);

impl Byte {
    fn read(&self) -> u8 {
        // SAFETY: a byte of a mapping of the test.
        unsafe { self.0.read_volatile() }
    }

    fn write(&self, value: u8) {
        // SAFETY: as above.
        unsafe { self.0.write_volatile(value) };
    }
}

#[test]
fn discarded_pages_are_zero_and_take_no_memory() {
    let stage = Stage::new();
    assert_eq!(stage.advise(1, page_bytes(), libc::MADV_DONTNEED), (0, 77));
    assert_eq!(
        stage.advise(3, page_bytes() + 1, libc::MADV_FREE).0,
        0,
        "a part of a page is all of it"
    );
    assert_eq!(stage.advise(6, page_bytes(), DONTNEED_LOCKED), (0, 77));
    assert_eq!(stage.pages(), [1, 0, 3, 0, 0, 6, 0, 8]);
    assert_eq!(
        Byte(stage.lease.base().wrapping_add(page_bytes() as usize)).read(),
        0,
        "for others, too"
    );
    assert_eq!(stage.advise(0, 8 * page_bytes(), libc::MADV_COLD), (0, 77));
    assert_eq!(stage.advise(0, 0, libc::MADV_DONTNEED), (0, 77));
    assert_eq!(stage.pages()[0], 1, "no page is meant");
}

#[test]
fn what_the_system_refuses_stays() {
    let stage = Stage::new();
    let odd = stage.at(2).0.wrapping_add(8);
    // SAFETY: an address that is refused.
    let answer = unsafe { advise(bare, odd.cast(), page_bytes() as usize, libc::MADV_DONTNEED) };
    assert_eq!((answer, stage.at(2).read()), (-1, 3));
    assert_eq!(std::io::Error::last_os_error().raw_os_error(), Some(libc::EINVAL));
    // SAFETY: a page of this stage.
    assert_eq!(unsafe { libc::mlock(stage.at(4).0.cast(), page_bytes() as usize) }, 0);
    assert_eq!(stage.advise(4, page_bytes(), libc::MADV_DONTNEED), (-1, libc::EINVAL));
    assert_eq!(stage.pages()[4], 5);
    assert_eq!(stage.advise(4, page_bytes(), DONTNEED_LOCKED), (0, 77));
    assert_eq!(stage.pages()[4], 0);
    // SAFETY: as above.
    unsafe { libc::munmap(stage.at(7).0.cast(), page_bytes() as usize) };
    assert_eq!(stage.advise(6, 2 * page_bytes(), libc::MADV_DONTNEED), (-1, libc::ENOMEM));
    assert_eq!(stage.at(6).read(), 0);
}

#[test]
fn locked_segments_are_cleared() {
    let stage = Stage::new();
    // SAFETY: a mapping of this stage.
    assert_eq!(unsafe { libc::mlock(stage.lease.base().cast(), 8 * page_bytes() as usize) }, 0);
    assert_eq!(stage.advise(2, 2 * page_bytes(), libc::MADV_DONTNEED), (0, 77));
    assert_eq!(stage.pages(), [1, 2, 0, 0, 5, 6, 7, 8]);
}

#[test]
fn only_noted_pages_are_taken_from_the_segment() {
    let stage = Stage::new();
    forget(stage.first() + 2 * page_bytes(), stage.first() + 3 * page_bytes());
    forget(stage.first() + 5 * page_bytes(), stage.first() + 8 * page_bytes());
    assert_eq!(stage.advise(0, 8 * page_bytes(), libc::MADV_DONTNEED), (0, 77));
    assert_eq!(stage.pages(), [0, 0, 3, 0, 0, 6, 7, 8]);
    assert_eq!(
        stage.advise(6, page_bytes(), libc::MADV_FREE),
        (-1, libc::EINVAL),
        "as the system says"
    );
}

#[test]
fn a_child_has_no_noted_pages() {
    let stage = Stage::new();
    let said = crate::child::Child::working(|| {
        let answer = stage.advise(1, page_bytes(), libc::MADV_DONTNEED);
        answer == (0, 77) && stage.at(1).read() == 2
    });
    assert!(said.said_yes());
}

#[test]
fn the_table_has_room_for_many_pages() {
    const MANY: u64 = 2000;
    let far = |at: u64| (1 << 62) + 2 * at * page_bytes();
    let stage = Stage::new();
    for at in 0..MANY {
        assert!(note(far(at), far(at) + page_bytes(), core::ptr::null_mut()));
    }
    assert_eq!(stage.advise(1, page_bytes(), libc::MADV_DONTNEED), (0, 77));
    assert_eq!(stage.pages(), [1, 0, 3, 4, 5, 6, 7, 8]);
    forget(far(0), far(MANY));
    assert_eq!(stage.advise(2, page_bytes(), libc::MADV_DONTNEED), (0, 77));
    assert_eq!(stage.pages()[2], 0);
}
