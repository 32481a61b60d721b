//! Memory that is not mapped or may not be accessed: the error names the first such byte, and the
//! bytes before it have been copied.

use super::*;
use crate::error::Class;

/// Bytes of a page.
fn p() -> usize {
    page_bytes() as usize
}

/// Distances in bytes between the beginning of a transfer and the page that stops it.
const AHEAD: [usize; 7] = [0, 1, 8, 100, 4095, 4096, 5000];

/// Returns four pages and a target that has changed them with `spoil`.
fn spoilt(spoil: impl FnOnce(&Pages)) -> (Pages, Child) {
    let there = Pages::marked(4, 2);
    let child = Child::stopped(|| spoil(&there));
    (there, child)
}

fn puts_stop_at_page_two(there: &Pages, child: &Child) {
    let here = Pages::marked(4, 1);
    for ahead in AHEAD {
        let (start, bytes) = (2 * p() - ahead, ahead + p() + 100);
        // SAFETY: the child's copy of the pages.
        let error = unsafe { target(child).put(there.address(start), here.at(3), bytes as u64) };
        assert_eq!(
            error,
            Err(Error::Fault {
                rank: RANK.in_error_of_transport(),
                address: there.address(2 * p())
            })
        );
        let moved = seen(target(child), there.address(start), ahead);
        assert_eq!(moved, here.bytes(3, 3 + ahead));
        assert!(are_marks(&seen(target(child), there.address(3 * p()), p()), 2, 3 * p()));
    }
}

fn gets_stop_at_page_two(there: &Pages, child: &Child) {
    for ahead in AHEAD {
        let here = Pages::marked(4, 1);
        let (start, bytes) = (2 * p() - ahead, ahead + p() + 100);
        // SAFETY: inside of the origin's pages.
        let error = unsafe { target(child).get(here.at(3), there.address(start), bytes as u64) };
        assert_eq!(
            error,
            Err(Error::Fault {
                rank: RANK.in_error_of_transport(),
                address: there.address(2 * p())
            })
        );
        assert!(are_marks(here.bytes(0, 3), 1, 0));
        assert!(are_marks(here.bytes(3, 3 + ahead), 2, start));
        assert!(are_marks(here.bytes(3 + ahead, 4 * p()), 1, 3 + ahead));
    }
}

#[test]
fn a_hole_in_the_target_is_named() {
    let (there, child) = spoilt(|there| there.unmap(2));
    puts_stop_at_page_two(&there, &child);
    let (there, child) = spoilt(|there| there.unmap(2));
    gets_stop_at_page_two(&there, &child);
}

#[test]
fn a_page_without_rights_is_named() {
    let (there, child) = spoilt(|there| there.protect(2, libc::PROT_NONE));
    puts_stop_at_page_two(&there, &child);
    let (there, child) = spoilt(|there| there.protect(2, libc::PROT_NONE));
    gets_stop_at_page_two(&there, &child);
}

#[test]
fn a_page_that_is_read_only_can_be_got_but_not_put_to() {
    let (there, child) = spoilt(|there| there.protect(2, libc::PROT_READ));
    assert!(are_marks(&seen(target(&child), there.address(0), 4 * p()), 2, 0));
    puts_stop_at_page_two(&there, &child);
    assert!(are_marks(&seen(target(&child), there.address(2 * p()), p()), 2, 2 * p()));
}

#[test]
fn what_lies_behind_the_end_of_a_file_is_named() {
    let segment = crate::sys::segment::Segment::create(page_bytes()).unwrap();
    let there = Pages::marked(2, 2);
    let (rights, flags) = (libc::PROT_READ | libc::PROT_WRITE, libc::MAP_SHARED | libc::MAP_FIXED);
    let fd = segment.name().fd;
    // SAFETY: over pages of ours.
    let base = unsafe { libc::mmap(there.base.cast(), 2 * p(), rights, flags, fd, 0) };
    assert_eq!(base, there.base.cast());
    let here = Pages::marked(2, 1);
    // SAFETY: a mapping of ours.
    let error = unsafe { own().put(there.address(0), here.base, 2 * page_bytes()) };
    assert_eq!(
        error,
        Err(Error::Fault { rank: RANK.in_error_of_transport(), address: there.address(p()) })
    );
    assert!(are_marks(there.bytes(0, p()), 1, 0));
}

#[test]
fn a_bad_buffer_of_the_origin_is_named() {
    for page in [1, 2] {
        let (here, there) = (Pages::marked(3, 1), Pages::marked(3, 2));
        here.protect(page, libc::PROT_NONE);
        let error = Error::OriginFault { address: here.address(page * p()) };
        // SAFETY: inside of the target's pages.
        let put = unsafe { own().put(there.address(5), here.base, 3 * page_bytes() - 5) };
        assert_eq!(put, Err(error.clone()));
        assert!(are_marks(there.bytes(0, 5), 2, 0));
        assert_eq!(there.bytes(5, 5 + page * p()), here.bytes(0, page * p()));
        assert!(are_marks(there.bytes(5 + page * p(), 3 * p()), 2, 5 + page * p()));
        // SAFETY: inside of the origin's pages.
        let get = unsafe { own().get(here.base, there.address(0), 3 * page_bytes()) };
        assert_eq!(get, Err(error.clone()));
        assert_eq!(here.bytes(0, page * p()), there.bytes(0, page * p()));
        assert_eq!(error.class(), Class::Buffer);
    }
}

#[test]
fn a_buffer_that_is_read_only_can_be_put_but_not_got_into() {
    let (here, there) = (Pages::marked(1, 1), Pages::marked(1, 2));
    here.protect(0, libc::PROT_READ);
    // SAFETY: inside of the target's page.
    unsafe { own().put(there.address(0), here.base, page_bytes()) }.unwrap();
    assert!(are_marks(there.bytes(0, p()), 1, 0));
    // SAFETY: inside of the origin's page.
    let get = unsafe { own().get(here.base, there.address(0), page_bytes()) };
    assert_eq!(get, Err(Error::OriginFault { address: here.address(0) }));
}

#[test]
fn addresses_that_no_process_can_have_are_named() {
    let (here, there) = (Pages::marked(1, 1), Pages::marked(1, 2));
    for bad in [0, 8, 1 << 63, u64::MAX - 100, 0xdead_0000_0000_0000] {
        // SAFETY: nothing is there.
        let put = unsafe { own().put(bad, here.base, 16) };
        assert_eq!(put, Err(Error::Fault { rank: RANK.in_error_of_transport(), address: bad }));
        // SAFETY: inside of the origin's page.
        let get = unsafe { own().get(here.base, bad, 16) };
        assert_eq!(get, Err(Error::Fault { rank: RANK.in_error_of_transport(), address: bad }));
        let origin = ptr::without_provenance_mut(bad as usize);
        // SAFETY: inside of the target's page.
        let put = unsafe { own().put(there.address(0), origin, 16) };
        assert_eq!(put, Err(Error::OriginFault { address: bad }));
        // SAFETY: nothing is there.
        let get = unsafe { own().get(origin, there.address(0), 16) };
        assert_eq!(get, Err(Error::OriginFault { address: bad }));
    }
    assert!(are_marks(here.bytes(0, p()), 1, 0));
    assert!(are_marks(there.bytes(0, p()), 2, 0));
}

#[test]
fn a_length_beyond_all_memory_ends_at_the_first_byte_that_is_not_there() {
    for bytes in [1 << 32, 1 << 47, (1 << 63) - 1] {
        let (here, there) = (Pages::marked(3, 1), Pages::marked(3, 2));
        here.protect(1, libc::PROT_NONE);
        // SAFETY: the origin ends after its first page.
        let put = unsafe { own().put(there.address(0), here.base, bytes) };
        assert_eq!(put, Err(Error::OriginFault { address: here.address(p()) }), "{bytes:#x}");
        assert!(are_marks(there.bytes(0, p()), 1, 0));
        assert!(are_marks(there.bytes(p(), 3 * p()), 2, p()));
    }
}

#[test]
fn the_error_says_what_and_where() {
    let fault = Error::Fault { rank: RANK.in_error_of_transport(), address: 0x7f10 };
    assert_eq!(fault.class(), Class::RmaRange);
    assert_eq!(fault.to_string(), "address 0x7f10 of rank 3 cannot be read or written");
    let fault = Error::OriginFault { address: 0x7f10 };
    assert_eq!(fault.to_string(), "address 0x7f10 of the origin cannot be read or written");
}
