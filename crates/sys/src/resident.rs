//! The resident part of a range of addresses (mincore(2)).

use crate::number::Number;
use crate::page_bytes;

/// The most pages that one call asks for.
const PAGES: usize = 64 << 10;

/// Returns how many of the `bytes` bytes from `base` are not resident. A range that is not mapped
/// as a whole counts as having it: the caller checks that elsewhere.
pub fn missing(base: u64, bytes: u64) -> u64 {
    let first = base & !(page_bytes() - 1);
    let end = base.saturating_add(bytes);
    let (mut at, mut missing) = (first, 0);
    let mut pages = vec![0_u8; PAGES.min((bytes / page_bytes() + 2).to_usize())];
    while at < end {
        let count = (end - at).div_ceil(page_bytes()).to_usize().min(pages.len());
        let length = count * page_bytes().to_usize();
        let start = core::ptr::with_exposed_provenance_mut(at.to_usize());
        // SAFETY: one byte for each page; addresses that are not mapped are only an error.
        if unsafe { libc::mincore(start, length, pages.as_mut_ptr()) } != 0 {
            return 0;
        }
        missing +=
            pages[..count].iter().filter(|page| **page & 1 == 0).count().to_u64() * page_bytes();
        at += length.to_u64();
    }
    missing
}

/// A range shorter than this is written as a whole: asking costs as much as a few page faults.
const ASKED: usize = 64 << 10;

/// Zeroes a range of memory that processes share. Writes to pages that have memory, because that is
/// cheaper than to take new ones. Other pages are not touched, and take no memory. Returns whether
/// every page of the range has memory now.
///
/// # Safety
/// The range is mapped from a memfd, may be written, and no other thread or process uses it
/// meanwhile.
pub unsafe fn clear(base: *mut u8, bytes: usize) -> bool {
    let page = page_bytes().to_usize();
    let skipped = (base.addr().next_multiple_of(page) - base.addr()).min(bytes);
    let count = (bytes - skipped) / page;
    let mut there = vec![1_u8; if bytes < ASKED { 0 } else { count }];
    let first = base.wrapping_add(skipped);
    // SAFETY: one byte for each of these pages, which are mapped.
    if unsafe { libc::mincore(first.cast(), there.len() * page, there.as_mut_ptr()) } != 0 {
        there.clear();
    }
    let (mut at, mut all) = (first, true);
    for run in there.chunk_by(|one, next| one & 1 == next & 1) {
        let length = run.len() * page;
        let is_there = run[0] & 1 != 0;
        // A page that has no memory may have been swapped out: it must be removed, too.
        // SAFETY: whole pages of the range.
        if is_there || unsafe { libc::madvise(at.cast(), length, libc::MADV_REMOVE) } != 0 {
            // SAFETY: whole pages of the range.
            unsafe { at.write_bytes(0, length) };
        } else {
            all = false;
        }
        at = at.wrapping_add(length);
    }
    let done = at.addr() - base.addr();
    // SAFETY: the parts of the range before these pages and after them.
    unsafe {
        base.write_bytes(0, skipped);
        at.write_bytes(0, bytes - done);
    }
    all
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::segment::Segment;

    #[test]
    fn what_is_cleared_is_zero_and_only_what_was_there_takes_memory() {
        let pages = 100;
        let segment = Segment::create(pages * page_bytes()).unwrap();
        let map = segment.map().unwrap();
        let at = |byte: u64| map.base().wrapping_add(byte as usize);
        let not_there = || missing(map.base() as u64, pages * page_bytes());
        for (first, bytes) in [
            (100, 90 * page_bytes()),
            (0, 70 * page_bytes() + 1),
            (page_bytes() + 5, 300),
            (page_bytes() - 1, 2),
        ] {
            segment.give_back(&map, 0, pages * page_bytes()).unwrap();
            let written = [
                0,
                99,
                100,
                page_bytes() - 1,
                page_bytes(),
                page_bytes() + 400,
                50 * page_bytes(),
                80 * page_bytes(),
                95 * page_bytes(),
            ];
            // SAFETY: inside of the mapping, which no other code uses.
            written.iter().for_each(|byte| unsafe { at(*byte).write(7) });
            let before = not_there();
            // SAFETY: inside of the mapping, which no other code uses.
            let all = unsafe { clear(at(first), bytes as usize) };
            assert!(!all || bytes < 64 * page_bytes(), "pages that were not there have no memory");
            for byte in written {
                let inside = (first..first + bytes).contains(&byte);
                // SAFETY: inside of the mapping.
                let found = unsafe { at(byte).read() };
                assert_eq!(found, if inside { 0 } else { 7 }, "{first} {byte}");
            }
            assert!(not_there() + 2 * page_bytes() >= before, "but for the ends");
        }
    }

    #[test]
    fn what_was_touched_is_there() {
        let bytes = 64 * page_bytes() as usize;
        let (kind, rights) =
            (libc::MAP_PRIVATE | libc::MAP_ANONYMOUS, libc::PROT_READ | libc::PROT_WRITE);
        // SAFETY: a new mapping at an address that the system chooses.
        let base = unsafe { libc::mmap(core::ptr::null_mut(), bytes, rights, kind, -1, 0) };
        assert_ne!(base, libc::MAP_FAILED);
        let address = base.expose_provenance() as u64;
        assert_eq!(missing(address, bytes as u64), 64 * page_bytes());
        // SAFETY: inside of the mapping.
        unsafe { base.cast::<u8>().add(3 * page_bytes() as usize).write(1) };
        assert_eq!(missing(address, bytes as u64), 63 * page_bytes());
        assert_eq!(missing(address + 3 * page_bytes() + 5, 10), 0);
        // SAFETY: an object of this library, not used again.
        assert_eq!(unsafe { libc::munmap(base, bytes) }, 0);
        assert_eq!(missing(address, bytes as u64), 0);
    }
}
