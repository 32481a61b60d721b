//! Tests of the transport by process_vm, with a target that is stopped, so that it cannot help, and
//! with this process as its own target.

mod batches;
mod borders;
mod faults;
mod refusals;
mod small_puts;

use super::*;
use crate::rank_numbers::RankOnNode;
use crate::sys::child::Child;
use crate::sys::life::Mark;
use crate::sys::page_bytes;
use core::ptr;
use std::sync::OnceLock;

/// The rank that the tests give their target.
const RANK: RankOnNode = RankOnNode(3);

/// The most pages that a test takes.
const PAGES_MAX: usize = 64;

/// Pages of private memory, at the same address in a child.
struct Pages {
    base: *mut u8,
    bytes: usize,
}

// SAFETY: tests with several threads order the accesses of these.
unsafe impl Sync for Pages {}

impl Pages {
    /// `count` pages, in which the [`marks`] of `seed` stand.
    fn marked(count: usize, seed: usize) -> Pages {
        let bytes = count * page_bytes() as usize;
        let (access, flags) =
            (libc::PROT_READ | libc::PROT_WRITE, libc::MAP_PRIVATE | libc::MAP_ANONYMOUS);
        // SAFETY: a new mapping touches no existing one.
        let base = unsafe { libc::mmap(ptr::null_mut(), bytes, access, flags, -1, 0) };
        assert_ne!(base, libc::MAP_FAILED);
        let pages = Pages { base: base.cast(), bytes };
        pages.fill(seed);
        pages
    }

    /// Marks all bytes.
    fn fill(&self, seed: usize) {
        // SAFETY: inside of the mapping.
        unsafe { self.base.copy_from(marks(seed).as_ptr(), self.bytes) };
    }

    fn at(&self, offset: usize) -> *mut u8 {
        self.base.wrapping_add(offset)
    }

    /// Returns the address of the pages in the target.
    fn address(&self, offset: usize) -> u64 {
        self.at(offset).addr() as u64
    }

    fn bytes(&self, from: usize, to: usize) -> &[u8] {
        // SAFETY: inside the mapping; no process writes to it while a test reads.
        unsafe { core::slice::from_raw_parts(self.at(from), to - from) }
    }

    /// Sets the access rights of one page.
    fn protect(&self, page: usize, rights: i32) {
        let at = self.at(page * page_bytes() as usize);
        // SAFETY: a page of this test, which holds only marks.
        assert_eq!(unsafe { libc::mprotect(at.cast(), page_bytes() as usize, rights) }, 0);
    }

    /// Unmaps one page.
    fn unmap(&self, page: usize) {
        let at = self.at(page * page_bytes() as usize);
        // SAFETY: a page of this test, which holds only marks.
        assert_eq!(unsafe { libc::munmap(at.cast(), page_bytes() as usize) }, 0);
    }
}

impl Drop for Pages {
    fn drop(&mut self) {
        // SAFETY: no address of these pages is kept.
        unsafe { libc::munmap(self.base.cast(), self.bytes) };
    }
}

/// Returns the contents of marked pages.
fn marks(seed: usize) -> &'static [u8] {
    static MARKS: [OnceLock<Vec<u8>>; 3] = [const { OnceLock::new() }; 3];
    let mark = |at: usize| (at.wrapping_mul(0x9e37).wrapping_add(at >> 8) + seed * 101) as u8;
    MARKS[seed].get_or_init(|| (0..PAGES_MAX * page_bytes() as usize).map(mark).collect())
}

/// Returns whether these bytes, which begin at the offset `first` of their pages, are unchanged.
fn are_marks(bytes: &[u8], seed: usize, first: usize) -> bool {
    bytes == &marks(seed)[first..first + bytes.len()]
}

/// Returns a process that lasts as long as the tests run.
fn process(mark: Mark) -> Process<'static> {
    Process::new(RANK, Box::leak(Box::new(Life::new(mark))))
}

fn own() -> Process<'static> {
    static OWN: OnceLock<Process<'static>> = OnceLock::new();
    *OWN.get_or_init(|| process(Mark::of(process::id())))
}

fn target(child: &Child) -> Process<'_> {
    Process::new(RANK, child.life())
}

/// Returns the child as a process with this cookie.
fn with_cookie(child: &Child, cookie_address: u64, cookie: u64) -> Process<'static> {
    process(Mark { cookie_address, cookie, ..*child.life().mark() })
}

/// Returns `count` bytes of the target.
fn seen(target: Process<'_>, there: u64, count: usize) -> Vec<u8> {
    let mut bytes = vec![0; count];
    // SAFETY: a buffer of `count` bytes.
    unsafe { target.get(bytes.as_mut_ptr(), there, count as u64) }.unwrap();
    bytes
}

#[test]
fn a_cookie_is_seen_or_not() {
    let cookie = 0x1234_5678_9abc_def0u64;
    let address = (&raw const cookie).addr() as u64;
    let child = Child::stopped(|| {});
    let shown = |address, cookie| with_cookie(&child, address, cookie).shows_cookie();
    assert!(shown(address, cookie));
    assert!(!shown(address, cookie + 1));
    assert!(!shown(0, cookie));
    child.kill();
    assert!(!shown(address, cookie));
}

#[test]
fn a_target_that_is_stopped_is_written_and_read() {
    let pages = Pages::marked(3, 1);
    let child = Child::stopped(|| {});
    let (from, there) = (*b"from another process", pages.address(4090));
    // SAFETY: the child's copy of the pages.
    unsafe { target(&child).put(there, from.as_ptr(), from.len() as u64) }.unwrap();
    assert_eq!(seen(target(&child), there, from.len()), from);
    assert!(are_marks(pages.bytes(0, pages.bytes), 1, 0), "put into the wrong process");
}
