//! Tests of moves by themselves.

use super::*;
use crate::adopt::areas;
use crate::adopt::smaps::{Smaps, VmFlags};
use crate::resident;
use crate::segment::{Mapping, Segment};
use std::fs::File;
use std::os::fd::{FromRawFd, OwnedFd};

/// More than a step, and than a block of the segment.
const PAGES: u64 = 1200;
/// Bytes before the pages in their segment: they are in the middle of a block.
const AHEAD: u64 = 77 * 4096;

#[test]
fn runs_of_a_set_are_its_pages() {
    let all = |pages: &[(u64, u64)]| {
        let mut set = PageSet::default();
        pages.iter().for_each(|(first, end)| set.add(*first, *end));
        assert_eq!(set.count(), pages.iter().map(|(first, end)| end - first).sum::<u64>());
        set.runs().collect::<Vec<_>>()
    };
    assert_eq!(all(&[]), []);
    assert_eq!(all(&[(0, 512)]), [(0, 512)]);
    assert_eq!(all(&[(0, 1), (4, 6), (60, 70), (511, 512)]), [(0, 1), (4, 2), (60, 10), (511, 1)]);
}

/// Private pages with numbers, a segment for them, and the tools of a move.
struct Stage {
    address: u64,
    segment: Segment,
    mapping: Mapping,
    pagemap: KeptFile,
}

impl Stage {
    fn new() -> Stage {
        let segment = Segment::create(4 * BLOCK).unwrap();
        let mapping = segment.map().unwrap();
        let (rights, flags) = (RIGHTS, libc::MAP_PRIVATE | libc::MAP_ANONYMOUS);
        let bytes = (PAGES * page_bytes()).to_usize();
        // SAFETY: a new mapping.
        let at = unsafe { libc::mmap(ptr::null_mut(), bytes, rights, flags, -1, 0) };
        assert_ne!(at, libc::MAP_FAILED);
        let stage = Stage {
            address: at.expose_provenance() as u64,
            segment,
            mapping,
            pagemap: KeptFile::new(File::open("/proc/self/pagemap").unwrap()).unwrap(),
        };
        // SAFETY: the pages of this stage.
        (0..PAGES).for_each(|page| unsafe { stage.page(page).write(page + 1) });
        stage
    }

    fn page(&self, page: u64) -> *mut u64 {
        ptr::with_exposed_provenance_mut((self.address + page * page_bytes()) as usize)
    }

    fn is_numbered(&self) -> bool {
        // SAFETY: as above.
        (0..PAGES).all(|page| unsafe { self.page(page).read_volatile() } == page + 1)
    }

    fn whole(&self) -> PageMove<'_> {
        let mapped = self.mapping.base().wrapping_add(AHEAD as usize);
        let room = Room { descriptor: Some(self.segment.name().fd), offset: AHEAD, mapped };
        let (address, bytes) = (self.address, PAGES * page_bytes());
        PageMove { pagemap: &self.pagemap, address, bytes, room, kept_flags: KeptFlags::default() }
    }

    fn move_in(&self) -> core::result::Result<(), Halted> {
        // SAFETY: pages of this stage, which no other code uses.
        unsafe { self.whole().move_in(&[self.address + PAGES * page_bytes()]) }
    }

    fn move_back(&self) -> core::result::Result<(), Halted> {
        // SAFETY: pages of this stage, which lie in the segment.
        unsafe { self.whole().move_back() }
    }

    /// Lends a page to a pipe, until that is dropped.
    fn lend(&self, page: u64) -> [OwnedFd; 2] {
        let mut ends = [0; 2];
        let part =
            libc::iovec { iov_base: self.page(page).cast(), iov_len: page_bytes().to_usize() };
        // SAFETY: room for two descriptors, and a page of the stage.
        unsafe {
            assert_eq!(libc::pipe(ends.as_mut_ptr()), 0);
            assert_eq!(libc::vmsplice(ends[1], &part, 1, 0), part.iov_len.cast_signed());
        }
        // SAFETY: both were just made and have no other owner.
        ends.map(|end| unsafe { OwnedFd::from_raw_fd(end) })
    }
}

impl Drop for Stage {
    fn drop(&mut self) {
        let (at, bytes) = (self.page(0), (PAGES * page_bytes()) as usize);
        // SAFETY: an object of this library, not used again.
        unsafe { libc::munmap(at.cast(), bytes) };
    }
}

fn alone(name: &str, body: impl FnOnce()) {
    crate::child::alone(&format!("adopt::page_moves::tests::{name}"), body);
}

/// Runs a test on a stage in a process of its own, where the kernel says what refers to pages.
fn on_stage(name: &str, body: impl FnOnce(Stage)) {
    alone(name, || {
        if unshared::is_answered() {
            body(Stage::new());
        }
    });
}

fn is_held(halted: &Halted) -> bool {
    matches!(halted.error, Error::System { call: unshared::NAME, errno: libc::EAGAIN })
}

#[test]
fn pages_move_there_and_back() {
    if !unshared::is_answered() {
        return;
    }
    let stage = Stage::new();
    for turn in 0..3 {
        stage.move_in().unwrap();
        let backed = stage.segment.backed_bytes().unwrap();
        assert!(backed == PAGES * page_bytes() || turn > 0 && backed <= 4 * BLOCK);
        assert!(stage.is_numbered());
        // SAFETY: a page of the segment, which is the stage's last one.
        let there = unsafe {
            let at = AHEAD + (PAGES - 1) * page_bytes();
            stage.mapping.base().wrapping_add(at as usize).cast::<u64>().read_volatile()
        };
        assert_eq!(there, PAGES);
        stage.move_back().unwrap();
        assert!(stage.is_numbered());
        assert_eq!(resident::missing(stage.address, PAGES * page_bytes()), 0);
    }
}

#[test]
fn pages_that_something_holds_stay_where_they_are() {
    // A child of fork(2), as other tests make, shares pages, and a pipe keeps the copy of before.
    on_stage("pages_that_something_holds_stay_where_they_are", |stage| {
        for page in [0, 70, 510, 511, PAGES - 1] {
            let lent = stage.lend(page);
            let halted = stage.move_in().unwrap_err();
            assert!(is_held(&halted) && halted.left.1 == 0, "{halted:?}");
            assert!(stage.is_numbered());
            drop(lent);
        }
        stage.move_in().unwrap();
        for page in [0, 500, PAGES - 1] {
            let lent = stage.lend(page);
            let halted = stage.move_back().unwrap_err();
            assert!(is_held(&halted), "{halted:?}");
            let (at, bytes) = halted.left;
            assert!(at <= stage.address + page * page_bytes());
            assert_eq!(at + bytes, stage.address + PAGES * page_bytes());
            assert!(stage.is_numbered());
            drop(lent);
            let back = PageMove { address: at, bytes, ..stage.whole() };
            let back = PageMove { room: stage.whole().room.behind(at - stage.address), ..back };
            // SAFETY: what is left in the segment.
            unsafe { back.move_back() }.unwrap();
            assert!(stage.is_numbered());
            stage.move_in().unwrap();
        }
        stage.move_back().unwrap();
        assert!(stage.is_numbered());
    });
}

#[test]
fn pages_that_stay_keep_the_advice_of_the_program() {
    on_stage("pages_that_stay_keep_the_advice_of_the_program", |stage| {
        let (end, bytes) = (stage.address + PAGES * page_bytes(), PAGES * page_bytes());
        let advised = || Smaps::read().unwrap().vm_flags(stage.address, end);
        let kept_flags = KeptFlags { huge: true, no_reserve: false };
        // SAFETY: it changes no byte.
        unsafe { libc::madvise(stage.page(0).cast(), bytes as usize, libc::MADV_HUGEPAGE) };
        assert_eq!(advised(), VmFlags::Plain(kept_flags));
        let whole = PageMove { kept_flags, ..stage.whole() };
        // SAFETY: pages of this stage, which no other code uses.
        unsafe { whole.move_in(&[end]) }.unwrap();
        assert_eq!(advised(), VmFlags::Plain(kept_flags));
        let lent = stage.lend(0);
        // SAFETY: the same pages, which lie in the segment.
        assert!(is_held(&unsafe { whole.move_back() }.unwrap_err()));
        assert_eq!(advised(), VmFlags::Plain(kept_flags));
        drop(lent);
        // SAFETY: as above.
        unsafe { whole.move_back() }.unwrap();
        assert_eq!(advised(), VmFlags::Plain(kept_flags));
    });
}

#[test]
fn pages_of_huge_pages_are_looked_at_one_by_one() {
    // A child of fork(2), as other tests make, shares pages, and a pipe keeps the copy of before.
    alone("pages_of_huge_pages_are_looked_at_one_by_one", || {
        let stage = Stage::new();
        unshared::collapse(stage.address, PAGES * page_bytes());
        if !unshared::is_answered()
            || !Smaps::read()
                .unwrap()
                .has_huge_page(stage.address, stage.address + PAGES * page_bytes())
        {
            return;
        }
        let lent = stage.lend(700);
        assert!(is_held(&stage.move_in().unwrap_err()));
        drop(lent);
        stage.move_in().unwrap();
        stage.move_back().unwrap();
        assert!(stage.is_numbered());
    });
}

#[test]
fn new_memory_joins_the_mappings_around_it() {
    if !unshared::is_answered() {
        return;
    }
    let stage = Stage::new();
    let mappings = || {
        let maps = KeptFile::new(File::open("/proc/self/maps").unwrap()).unwrap();
        areas::over(&maps, stage.address, PAGES * page_bytes()).unwrap().len()
    };
    for (first, end) in [(10, 20), (600, 900), (0, 1), (PAGES - 1, PAGES)] {
        let part = stage.whole().part(first * page_bytes(), (end - first) * page_bytes());
        // SAFETY: pages of this stage.
        unsafe { part.move_in(&[stage.address + end * page_bytes()]) }.unwrap();
        assert!(mappings() > 1);
        // SAFETY: pages of this stage.
        unsafe { part.move_back() }.unwrap();
        assert_eq!(mappings(), 1);
    }
    assert!(stage.is_numbered());
}

#[test]
fn pages_that_a_child_shares_move() {
    if !unshared::is_answered() {
        return;
    }
    let stage = Stage::new();
    // SAFETY: an untouched page again, and one that was only read.
    unsafe {
        let (at, bytes) = (stage.page(5), 2 * page_bytes() as usize);
        libc::madvise(at.cast(), bytes, libc::MADV_DONTNEED);
        assert_eq!(stage.page(6).read_volatile(), 0);
    }
    // SAFETY: the child sleeps until it is ended.
    let child = unsafe { libc::fork() };
    if child == 0 {
        loop {
            // SAFETY: as above.
            unsafe { libc::pause() };
        }
    }
    let moved = stage.move_in();
    // SAFETY: the child of this test.
    unsafe {
        libc::kill(child, libc::SIGKILL);
        libc::waitpid(child, core::ptr::null_mut(), 0);
    }
    assert!(child > 0 && moved.is_ok());
    // SAFETY: as above.
    unsafe {
        assert_eq!(stage.page(5).read_volatile() + stage.page(6).read_volatile(), 0);
        stage.page(5).write(6);
        stage.page(6).write(7);
    }
    assert!(stage.is_numbered());
}

#[test]
#[ignore = "measures"]
fn cost_of_moves() {
    for pages in [1, 16, 256, PAGES] {
        let stage = Stage::new();
        let (mut there, mut back) = (u128::MAX, u128::MAX);
        for _ in 0..50 {
            let part = stage.whole().part(0, pages * page_bytes());
            let start = std::time::Instant::now();
            // SAFETY: pages of this stage.
            unsafe { part.move_in(&[stage.address + pages * page_bytes()]) }.unwrap();
            there = there.min(start.elapsed().as_nanos());
            let start = std::time::Instant::now();
            // SAFETY: as above.
            unsafe { part.move_back() }.unwrap();
            back = back.min(start.elapsed().as_nanos());
        }
        println!("pages: {pages}, ns: {there} there, {back} back");
    }
}
