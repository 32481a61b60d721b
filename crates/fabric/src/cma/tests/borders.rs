//! Every alignment and length around the borders of pages, and transfers beyond what the kernel
//! copies in one call.

use super::*;
use crate::sys::segment::{Mapping, Segment};

/// Lengths that end before, at and after a border of words and pages.
const LENGTHS: [usize; 16] = [1, 2, 3, 4, 5, 7, 8, 9, 15, 16, 17, 4095, 4096, 4097, 8191, 8193];

/// Offsets around the first border.
fn starts() -> impl Iterator<Item = usize> {
    (0..9).chain(4096 - 17..4096 + 9)
}

#[test]
fn a_put_writes_its_bytes_and_none_around_them() {
    let (here, there) = (Pages::marked(4, 1), Pages::marked(4, 2));
    for (start, bytes) in starts().flat_map(|start| LENGTHS.map(|bytes| (start, bytes))) {
        for from in [0, 1, 4, 4093] {
            there.fill(2);
            // SAFETY: inside of both mappings.
            unsafe { own().put(there.address(start), here.at(from), bytes as u64) }.unwrap();
            let end = start + bytes;
            assert_eq!(there.bytes(start, end), here.bytes(from, from + bytes), "{start} {bytes}");
            assert!(are_marks(there.bytes(0, start), 2, 0), "{start} {bytes}");
            assert!(are_marks(there.bytes(end, there.bytes), 2, end), "{start} {bytes}");
        }
    }
}

#[test]
fn a_get_reads_its_bytes_and_writes_none_around_them() {
    let (here, there) = (Pages::marked(4, 1), Pages::marked(4, 2));
    for (start, bytes) in starts().flat_map(|start| LENGTHS.map(|bytes| (start, bytes))) {
        for from in [0, 1, 4, 4093] {
            here.fill(1);
            // SAFETY: inside of both mappings.
            unsafe { own().get(here.at(start), there.address(from), bytes as u64) }.unwrap();
            let end = start + bytes;
            assert_eq!(here.bytes(start, end), there.bytes(from, from + bytes), "{start} {bytes}");
            assert!(are_marks(here.bytes(0, start), 1, 0), "{start} {bytes}");
            assert!(are_marks(here.bytes(end, here.bytes), 1, end), "{start} {bytes}");
        }
    }
}

/// A range of addresses in which a segment is mapped again and again, and another one at its end:
/// a large buffer in little memory.
struct Tiles {
    base: *mut u8,
    bytes: usize,
    /// of the segment that is repeated, and of the last one
    tile: usize,
    last: Mapping,
}

impl Tiles {
    fn new(tile: usize, count: usize) -> Tiles {
        let (rights, flags) =
            (libc::PROT_READ | libc::PROT_WRITE, libc::MAP_SHARED | libc::MAP_FIXED);
        let bytes = tile * count;
        let reserve = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_NORESERVE;
        // SAFETY: a new mapping touches no existing one.
        let base = unsafe { libc::mmap(ptr::null_mut(), bytes, libc::PROT_NONE, reserve, -1, 0) };
        assert_ne!(base, libc::MAP_FAILED);
        let (repeated, end) = (Segment::create(tile as u64), Segment::create(tile as u64));
        let (repeated, end) = (repeated.unwrap(), end.unwrap());
        for index in 0..count {
            let fd = if index + 1 < count { repeated.name() } else { end.name() }.fd;
            let at = base.wrapping_byte_add(index * tile);
            // SAFETY: inside of the range that was reserved above.
            assert_eq!(unsafe { libc::mmap(at, tile, rights, flags, fd, 0) }, at);
        }
        Tiles { base: base.cast(), bytes, tile, last: end.map().unwrap() }
    }

    fn word(&self, offset: usize) -> *mut u64 {
        self.base.wrapping_add(offset).cast()
    }
}

impl Drop for Tiles {
    fn drop(&mut self) {
        // SAFETY: no address of the range is kept.
        unsafe { libc::munmap(self.base.cast(), self.bytes) };
    }
}

#[test]
#[ignore = "maps a million pages: two seconds and more"]
fn more_than_two_gib_are_moved_in_one_transfer() {
    const TILE: usize = 32 << 20;
    let (here, there) = (Tiles::new(TILE, 65), Tiles::new(TILE, 65));
    let end = here.bytes - here.tile;
    for (origin, target, way) in [(&here, &there, Way::Put), (&there, &here, Way::Get)] {
        let value = |at: usize| (at as u64) << 1 | u64::from(way == Way::Get);
        for at in (0..TILE).step_by(page_bytes() as usize) {
            // SAFETY: inside of the mappings.
            unsafe {
                origin.word(at).write_volatile(value(at));
                origin.word(end + at).write_volatile(value(end + at));
            }
        }
        let (from, to) = (origin.word(0).cast::<u8>(), target.word(0).cast::<u8>());
        let bytes = origin.bytes as u64;
        // SAFETY: both ranges are mapped in full.
        unsafe {
            match way {
                Way::Put => own().put(to.addr() as u64, from, bytes).unwrap(),
                Way::Get => own().get(to, from.addr() as u64, bytes).unwrap(),
            }
        }
        for at in (0..TILE).step_by(page_bytes() as usize) {
            // SAFETY: inside of the mappings.
            unsafe {
                assert_eq!(target.word(at).read_volatile(), value(at));
                assert_eq!(target.last.base().add(at).cast::<u64>().read(), value(end + at));
            }
        }
    }
}
