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
        let segment = Segment::create(PAGES * PAGE).unwrap();
        let mapping = segment.map().unwrap();
        let address = fresh(PAGES * PAGE).unwrap();
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
        ptr::with_exposed_provenance_mut((self.address + page * PAGE) as usize)
    }

    fn is_numbered(&self) -> bool {
        // SAFETY: as above.
        (0..PAGES).all(|page| unsafe { self.page(page).read_volatile() } == page + 1)
    }

    fn whole(&self, descriptor: Option<i32>) -> PageMove<'_> {
        let tools = Tools { userfault: &self.userfault, pagemap: &self.pagemap };
        let room = Room { descriptor, offset: 0, mapped: self.mapping.base() };
        PageMove { tools, address: self.address, bytes: PAGES * PAGE, room }
    }

    fn move_in(&self, steps: u32) -> core::result::Result<(), Halted> {
        let mut steps = steps;
        let mut permit = |_, _| {
            steps = steps.saturating_sub(1);
            steps > 0
        };
        let whole = self.whole(Some(self.segment.name().fd));
        // SAFETY: pages of this stage, which no other code uses.
        unsafe { whole.move_in(&[self.address + PAGES * PAGE], &mut permit) }
    }
}

impl Drop for Stage {
    fn drop(&mut self) {
        let (at, bytes) = (self.page(0), (PAGES * PAGE) as usize);
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
            .register(WatchKind::Private, stage.address, PAGE)
            .expect("it is not watched any more");
        other.unregister(stage.address, PAGE).unwrap();
    }
}

#[test]
fn pages_come_back_also_if_the_descriptor_is_closed() {
    let stage = Stage::new();
    for descriptor in [Some(stage.segment.name().fd), None] {
        stage.move_in(100).unwrap();
        assert_eq!(stage.segment.backed_bytes(), Some(PAGES * PAGE));
        // SAFETY: what was just moved.
        unsafe { stage.whole(descriptor).move_back() }.unwrap();
        assert_eq!(stage.segment.backed_bytes(), Some(0));
        assert!(stage.is_numbered());
        assert_eq!(resident::missing(stage.address, PAGES * PAGE), 0);
    }
}
