//! Tests of moves by themselves.

use super::*;
use crate::sys::resident;
use crate::sys::segment::{Mapping, Segment};

const PAGES: u64 = 200;

#[test]
fn runs_of_a_mask_are_its_set_bits() {
    let all = |mask| runs(mask).collect::<Vec<_>>();
    assert_eq!(all(0), []);
    assert_eq!(all(u64::MAX), [(0, 64)]);
    assert_eq!(all(0b1011_0001), [(0, 1), (4, 2), (7, 1)]);
    assert_eq!(all(1 << 63), [(63, 1)]);
}

/// Private pages with numbers, a segment for them, and the tools of a move.
struct Stage {
    address: u64,
    segment: Segment,
    mapping: Mapping,
    userfault: Userfault,
    pagemap: KeptFile,
}

impl Stage {
    fn new() -> Stage {
        let segment = Segment::create(PAGES * page_bytes()).unwrap();
        let mapping = segment.map().unwrap();
        let address = fresh(PAGES * page_bytes()).unwrap();
        let stage = Stage {
            address,
            segment,
            mapping,
            userfault: Userfault::open(true).unwrap(),
            pagemap: KeptFile::of_process("/proc/self/pagemap").unwrap(),
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

    fn whole(&self, descriptor: Option<i32>) -> PageMove<'_> {
        let tools = Tools { userfault: &self.userfault, pagemap: &self.pagemap };
        let room = Room { descriptor, offset: 0, mapped: self.mapping.base() };
        PageMove {
            tools,
            address: self.address,
            bytes: PAGES * page_bytes(),
            room,
            finds_users: false,
        }
    }

    fn move_in(&self, steps: u32) -> core::result::Result<u64, Halted> {
        self.move_in_by(false, steps)
    }

    fn move_in_by(&self, finds_users: bool, steps: u32) -> core::result::Result<u64, Halted> {
        let mut steps = steps;
        let mut permit = |_, _| {
            steps = steps.saturating_sub(1);
            steps > 0
        };
        let whole = PageMove { finds_users, ..self.whole(Some(self.segment.name().fd)) };
        // SAFETY: pages of this stage, which no other code uses.
        unsafe { whole.move_in(&[self.address + PAGES * page_bytes()], &mut permit) }
    }
}

impl Drop for Stage {
    fn drop(&mut self) {
        let (at, bytes) = (self.page(0), (PAGES * page_bytes()) as usize);
        // SAFETY: ours, and not used again.
        unsafe { libc::munmap(at.cast(), bytes) };
    }
}

#[test]
fn a_move_that_must_not_go_on_is_undone() {
    let stage = Stage::new();
    for steps in [1, 2, 3] {
        let halted = stage.move_in(steps).unwrap_err();
        assert_eq!(halted.left.1, 0);
        assert!(matches!(halted.error, Error::System { errno: libc::EAGAIN, .. }));
        assert!(stage.is_numbered());
        assert_eq!(stage.segment.backed_bytes(), Some(0), "no page is in the segment");
        let other = Userfault::open(true).unwrap();
        other
            .register(WatchKind::Private, stage.address, page_bytes())
            .expect("it is not watched any more");
        other.unregister(stage.address, page_bytes()).unwrap();
    }
}

#[test]
fn pages_come_back_also_if_the_descriptor_is_closed() {
    let stage = Stage::new();
    for descriptor in [Some(stage.segment.name().fd), None] {
        stage.move_in(100).unwrap();
        assert_eq!(stage.segment.backed_bytes(), Some(PAGES * page_bytes()));
        // SAFETY: what was just moved.
        unsafe { stage.whole(descriptor).move_back() }.unwrap();
        assert_eq!(stage.segment.backed_bytes(), Some(0));
        assert!(stage.is_numbered());
        assert_eq!(resident::missing(stage.address, PAGES * page_bytes()), 0);
    }
}

/// An io_uring with pages of a stage registered as a buffer, if the system permits one.
fn ring_with(stage: &Stage, page: u64, pages: u64) -> Option<KeptFile> {
    // SAFETY: a struct io_uring_params, which has 120 bytes; a struct iovec of the stage's pages.
    unsafe {
        let ring = libc::syscall(libc::SYS_io_uring_setup, 1, [0_u64; 15].as_mut_ptr());
        let ring = KeptFile::of_descriptor(ring)?;
        let buffer = [stage.address + page * page_bytes(), pages * page_bytes()];
        let (call, at) = (libc::SYS_io_uring_register, buffer.as_ptr());
        (libc::syscall(call, ring.descriptor(), 0, at, 1) == 0).then_some(ring)
    }
}

const NAME: &str = "sys::adopt::page_moves::tests::pages_that_io_uring_uses_stay_where_they_are";

#[test]
fn pages_that_io_uring_uses_stay_where_they_are() {
    // Other tests of this process would notice the ring.
    const INSIDE: &str = "FOMPI_TEST_RING";
    if std::env::var_os(INSIDE).is_none() {
        let mut test = std::process::Command::new(std::env::current_exe().unwrap());
        test.args(["--exact", NAME]).env(INSIDE, "1");
        let output = test.output().unwrap();
        let text = String::from_utf8_lossy(&output.stdout);
        return assert!(output.status.success() && text.contains("1 passed"), "{text}");
    }
    let stage = Stage::new();
    if !stage.userfault.can_move() {
        return; // before Linux 6.8, or without the right
    }
    for page in [0, 70, PAGES - 1] {
        let Some(ring) = ring_with(&stage, page, 1) else { return };
        let halted = stage.move_in_by(true, 100).unwrap_err();
        assert!(matches!(halted.error, Error::System { errno: libc::EBUSY, .. }));
        assert_eq!(halted.left.1, 0);
        assert!(stage.is_numbered());
        assert_eq!(stage.segment.backed_bytes(), Some(0));
        let other = Userfault::open(true).unwrap();
        other
            .register(WatchKind::Private, stage.address, PAGES * page_bytes())
            .expect("not watched");
        drop(other);
        drop(ring);
    }
    // A ring lets its pages go a little later.
    let moved = (0..100).any(|_| {
        std::thread::sleep(std::time::Duration::from_millis(20));
        stage.move_in_by(true, 100).is_ok()
    });
    assert!(moved && stage.is_numbered());
    assert_eq!(stage.segment.backed_bytes(), Some(PAGES * page_bytes()));
}

#[test]
fn pages_that_a_child_shares_move() {
    let stage = Stage::new();
    if !stage.userfault.can_move() {
        return;
    }
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
    let moved = stage.move_in_by(true, 100);
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
    for finds_users in [false, true, false, true] {
        for pages in [1, 16, PAGES] {
            let stage = Stage::new();
            let mut best = u128::MAX;
            for _ in 0..50 {
                let part = PageMove {
                    finds_users,
                    bytes: pages * page_bytes(),
                    ..stage.whole(Some(stage.segment.name().fd))
                };
                let start = std::time::Instant::now();
                // SAFETY: pages of this stage.
                unsafe { part.move_in(&[stage.address + pages * page_bytes()], &mut |_, _| true) }
                    .unwrap();
                best = best.min(start.elapsed().as_nanos());
                // SAFETY: as above.
                unsafe { part.move_back() }.unwrap();
            }
            println!("aside: {finds_users}, pages: {pages}, ns: {best}");
        }
    }
}
