//! Tests of adoption as its callers see it.

mod own_process;

use super::*;
use crate::maps;
use crate::sync::{AtomicU64, Ordering};
use crate::sys::adopt::areas::AreaContent;
use crate::sys::adopt::smaps::Smaps;
use crate::sys::kept_file::KeptFile;
use crate::sys::resident;
use std::fs::File;

/// Memory of a test, private or shared, until it is dropped.
struct Memory {
    base: *mut u8,
    bytes: usize,
}

// SAFETY: threads reach the bytes by atomics and system calls only.
unsafe impl Sync for Memory {}

const RW: i32 = libc::PROT_READ | libc::PROT_WRITE;
const PRIVATE: i32 = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS;

impl Memory {
    fn new(pages: u64, rights: i32, flags: i32) -> Memory {
        let bytes = (pages * page_bytes()) as usize;
        // SAFETY: a new mapping at an address of the kernel's choice touches no existing one.
        let base = unsafe { libc::mmap(core::ptr::null_mut(), bytes, rights, flags, -1, 0) };
        assert_ne!(base, libc::MAP_FAILED);
        Memory { base: base.cast(), bytes }
    }

    /// Private memory whose words are their own numbers.
    fn numbered(pages: u64) -> Memory {
        let memory = Memory::new(pages, RW, PRIVATE);
        (0..memory.bytes as u64 / 8).for_each(|at| memory.word(at).store(at, Ordering::Relaxed));
        memory
    }

    fn at(&self) -> u64 {
        self.base.expose_provenance() as u64
    }

    fn word(&self, at: u64) -> &AtomicU64 {
        // SAFETY: inside of the mapping.
        unsafe { &*self.base.wrapping_add(8 * at as usize).cast() }
    }

    fn is_numbered(&self) -> bool {
        (0..self.bytes as u64 / 8).all(|at| self.word(at).load(Ordering::Relaxed) == at)
    }

    fn areas(&self) -> Vec<Area> {
        let maps = KeptFile::new(File::open("/proc/self/maps").unwrap()).unwrap();
        areas::over(&maps, self.at(), self.bytes as u64).unwrap()
    }

    fn is_private(&self) -> bool {
        self.areas().iter().all(|area| area.content == AreaContent::Anonymous && !area.is_shared)
    }
}

impl Drop for Memory {
    fn drop(&mut self) {
        // SAFETY: an object of this library, not used again.
        unsafe { libc::munmap(self.base.cast(), self.bytes) };
    }
}

/// What the ranks of a node promise each other: the threads of other tests use memory of their own.
fn quiet() -> Quiet {
    // SAFETY: see above.
    unsafe { Quiet::begin(OtherThreads::None) }
}

fn take_by(address: u64, bytes: u64, consent: Adopt) -> Adoption<Adopted> {
    may_take(address, bytes, consent)?;
    take(address, bytes, &quiet())
}

fn take_all(address: u64, bytes: u64) -> Adoption<Adopted> {
    take_by(address, bytes, Adopt::Always)
}

fn give_back(adopted: Adopted) -> Adoption<()> {
    drop(adopted);
    give_back_unheld(&quiet())
}

#[test]
fn what_is_adopted_is_reached_through_the_heap() {
    let memory = Memory::numbered(5);
    for (skip, less) in [(0, 0), (24, 8), (page_bytes(), 100 * 8)] {
        let (address, bytes) = (memory.at() + skip, 5 * page_bytes() - skip - less);
        let adopted = take_all(address, bytes).unwrap();
        assert!(memory.is_numbered());
        let (inner, inner_bytes) = adopted.inner();
        assert_eq!((inner, inner_bytes), (address, bytes), "edges move, too");
        let map = maps::map(&adopted.place().name).unwrap();
        let there = map.base().wrapping_add(adopted.place().offset as usize).cast::<AtomicU64>();
        // SAFETY: the place of `inner`.
        let there = unsafe { &*there };
        let here = memory.word(skip / 8);
        assert_eq!(there.load(Ordering::Relaxed), skip / 8);
        there.store(77, Ordering::Relaxed);
        assert_eq!(here.swap(78, Ordering::Relaxed), 77);
        assert_eq!(there.swap(skip / 8, Ordering::Relaxed), 78);
        assert!(!memory.is_private());
        give_back(adopted).unwrap();
        assert!(memory.is_private() && memory.is_numbered());
        assert_eq!(there.load(Ordering::Relaxed), 0, "the lease has no memory any more");
    }
}

#[test]
fn pages_that_were_never_touched_stay_so() {
    let memory = Memory::new(300, RW, PRIVATE);
    let (address, bytes) = (memory.at(), memory.bytes as u64);
    for page in [3, 4, 130, 299] {
        memory.word(page * 512).store(page, Ordering::Relaxed);
    }
    let adopted = take_all(address, bytes).unwrap();
    let has_data = |page: u64| {
        let place = adopted.place();
        let from = (place.offset + page * page_bytes()) as i64;
        // SAFETY: a query.
        unsafe { libc::lseek(place.name.fd, from, libc::SEEK_DATA) == from }
    };
    let there = |page: u64| [3, 4, 130, 299].contains(&page);
    assert!((0..300).all(|page| has_data(page) == there(page)));
    assert_eq!(memory.word(130 * 512).load(Ordering::Relaxed), 130);
    give_back(adopted).unwrap();
    assert_eq!(resident::missing(address, bytes), 296 * page_bytes());
    assert!((0..300).all(|page| memory.word(page * 512).load(Ordering::Relaxed)
        == if there(page) { page } else { 0 }));
}

#[test]
fn windows_over_the_same_pages_share_them() {
    let memory = Memory::numbered(10);
    let at = |page: u64| memory.at() + page * page_bytes();
    let whole = take_all(at(2), 4 * page_bytes()).unwrap();
    let inside = take_all(at(3) + 8, 16).unwrap();
    assert_eq!(inside.inner(), (at(3) + 8, 16));
    assert_eq!(inside.place().offset, whole.place().offset + page_bytes() + 8);
    let again = take_all(at(2), 4 * page_bytes()).unwrap();
    assert_eq!(again.place(), whole.place());
    // Pages 5 to 9: one page of another lease, and four new ones.
    let across = take_all(at(5), 5 * page_bytes()).unwrap();
    assert_eq!(across.inner(), (at(6), 4 * page_bytes()));
    assert!(memory.is_numbered());
    give_back(whole).unwrap();
    give_back(again).unwrap();
    let shared = |page| {
        memory.areas().iter().any(|a| a.is_shared && a.start <= at(page) && a.end > at(page))
    };
    let pages: Vec<u64> = (0..10).filter(|page| shared(*page)).collect();
    assert_eq!(pages, [3, 6, 7, 8, 9], "no page without a window");
    give_back(across).unwrap();
    assert!(shared(3));
    give_back(inside).unwrap();
    assert!(memory.is_private() && memory.is_numbered());
}

#[test]
fn memory_that_was_mapped_anew_is_not_taken_for_the_old_one() {
    let memory = Memory::numbered(4);
    let first = take_all(memory.at(), 4 * page_bytes()).unwrap();
    // SAFETY: replaces pages of the test's own memory.
    let anew = unsafe {
        let flags = PRIVATE | libc::MAP_FIXED;
        libc::mmap(
            memory.base.wrapping_add(page_bytes() as usize).cast(),
            page_bytes() as usize,
            RW,
            flags,
            -1,
            0,
        )
    };
    assert_ne!(anew, libc::MAP_FAILED);
    memory.word(512).store(99, Ordering::Relaxed);
    assert_eq!(take_all(memory.at(), 4 * page_bytes()).err(), Some(NotAdopted::NotMapped));
    give_back(first).unwrap();
    assert_eq!(memory.word(512).load(Ordering::Relaxed), 99, "it stays as it was");
    assert_eq!(memory.word(1024).load(Ordering::Relaxed), 1024);
    assert!(memory.is_private());
    give_back(take_all(memory.at(), 4 * page_bytes()).unwrap()).unwrap();
}

static TABLE: [u64; 2000] = [7; 2000];

#[test]
fn every_other_kind_of_memory_is_refused() {
    let refused = |address: u64, bytes| take_all(address, bytes).unwrap_err();
    let of = |rights, flags| {
        let memory = Memory::new(3, rights, flags);
        refused(memory.at(), 3 * page_bytes())
    };
    assert_eq!(of(RW, libc::MAP_SHARED | libc::MAP_ANONYMOUS), NotAdopted::Shared);
    assert_eq!(of(libc::PROT_READ, PRIVATE), NotAdopted::Rights);
    assert_eq!(of(libc::PROT_NONE, PRIVATE), NotAdopted::Rights);
    assert_eq!(of(RW | libc::PROT_EXEC, PRIVATE), NotAdopted::Rights);
    let local = [1_u64; 2000];
    assert_eq!(refused((&raw const local).addr() as u64, 16000), NotAdopted::Stack);
    assert_eq!(refused((&raw const TABLE).addr() as u64, 16000), NotAdopted::File);
    let memory = Memory::numbered(3);
    let (at, page) = (memory.at(), page_bytes() as usize);
    assert_eq!(refused(at, 0), NotAdopted::Empty);
    assert_eq!(refused(u64::MAX - 5, 10), NotAdopted::Empty);
    assert_eq!(take_by(at, page_bytes(), Adopt::Never).unwrap_err(), NotAdopted::Setting);
    // SAFETY: the middle page of the test's memory.
    unsafe { libc::mprotect(memory.base.wrapping_add(page).cast(), page, libc::PROT_READ) };
    assert_eq!(refused(at, 3 * page_bytes()), NotAdopted::Rights, "a range is refused as a whole");
    let bytes = 2 * page_bytes() - 100;
    let adopted = take_all(at, bytes).unwrap();
    assert_eq!(adopted.inner(), (at, page_bytes()), "an edge is left out");
    give_back(adopted).unwrap();
    // SAFETY: the middle page of the test's memory, which is not used again.
    unsafe { libc::munmap(memory.base.wrapping_add(page).cast(), page) };
    assert_eq!(refused(at, 3 * page_bytes()), NotAdopted::NotMapped);
    let heap = heap::take(page_bytes(), page_bytes()).unwrap();
    assert_eq!(refused(heap.base().addr() as u64, 100), NotAdopted::InHeap);
}

#[test]
fn a_begin_that_may_not_be_read_is_not_read() {
    let memory = Memory::numbered(3);
    // SAFETY: a page of the test.
    assert_eq!(unsafe { libc::mprotect(memory.base.cast(), 4096, libc::PROT_NONE) }, 0);
    // SAFETY: no other thread uses the memory.
    let quiet = unsafe { Quiet::begin(OtherThreads::Helpers) };
    let adopted = take(memory.at() + 16, 2 * page_bytes(), &quiet).unwrap();
    assert_eq!(adopted.inner(), (memory.at() + page_bytes(), page_bytes()));
    give_back(adopted).unwrap();
}

#[test]
fn memory_without_a_reserve_is_one_mapping_again() {
    let memory = Memory::new(3, RW, PRIVATE | libc::MAP_NORESERVE);
    (0..memory.bytes as u64 / 8).for_each(|at| memory.word(at).store(at, Ordering::Relaxed));
    let adopted = take_all(memory.at() + page_bytes(), page_bytes()).unwrap();
    assert_eq!(memory.areas().len(), 3);
    give_back(adopted).unwrap();
    assert!(memory.areas().len() == 1 && memory.is_private() && memory.is_numbered());
}

#[test]
fn huge_pages_are_huge_again() {
    let memory = Memory::new(3 * 512, RW, PRIVATE);
    // SAFETY: a hint for the test's own memory.
    unsafe { libc::madvise(memory.base.cast(), memory.bytes, libc::MADV_HUGEPAGE) };
    (0..memory.bytes as u64 / 8).for_each(|at| memory.word(at).store(at, Ordering::Relaxed));
    let end = memory.at() + memory.bytes as u64;
    let is_huge = || Smaps::read().unwrap().has_huge_page(memory.at(), end);
    if !is_huge() {
        return; // the system has none
    }
    let adopted = take_all(memory.at(), memory.bytes as u64).unwrap();
    assert_eq!(adopted.place().offset % HUGE, memory.at() % HUGE);
    assert!(memory.is_numbered());
    give_back(adopted).unwrap();
    assert!(is_huge() && memory.is_numbered());
}

/// Returns why memory is not adopted after `advise` was called for its first page.
fn reason_after(advise: impl FnOnce(*mut libc::c_void, usize) -> i32) -> NotAdopted {
    let memory = Memory::numbered(3);
    assert_eq!(advise(memory.base.cast(), page_bytes() as usize), 0);
    take_all(memory.at(), 3 * page_bytes()).unwrap_err()
}

#[test]
fn memory_of_which_the_program_has_said_something_stays() {
    for advice in [libc::MADV_DONTDUMP, libc::MADV_DONTFORK, libc::MADV_WIPEONFORK] {
        // SAFETY: the first page of the test's memory.
        let reason = reason_after(|at, bytes| unsafe { libc::madvise(at, bytes, advice) });
        assert_eq!(reason, NotAdopted::Advised);
    }
    // SAFETY: the first page of the test's memory; `munmap` unlocks it.
    let reason = reason_after(|at, bytes| unsafe { libc::mlock(at, bytes) });
    assert_eq!(reason, NotAdopted::Advised);
}

#[test]
fn what_the_program_says_of_adopted_memory_is_kept() {
    let memory = Memory::numbered(6);
    let page = page_bytes() as usize;
    let adopted = take_all(memory.at(), 6 * page_bytes()).unwrap();
    let (third, rights) = (memory.base.wrapping_add(2 * page), libc::PROT_READ);
    // SAFETY: a page of the test's memory.
    assert_eq!(unsafe { libc::mprotect(third.cast(), page, rights) }, 0);
    assert_eq!(give_back(adopted), Err(NotAdopted::Advised));
    let plain: Vec<bool> = memory.areas().iter().map(|area| area.is_plain_data).collect();
    assert_eq!(plain, [true, false, true]);
    assert!(memory.is_numbered());
    // SAFETY: a page of the test's memory.
    assert_eq!(unsafe { libc::mprotect(third.cast(), page, RW) }, 0);
    give_back_unheld(&quiet()).unwrap();
    assert!(memory.is_private() && memory.is_numbered());
}

#[test]
fn memory_that_has_moved_is_private_where_it_is() {
    let memory = Memory::numbered(6);
    let adopted = take_all(memory.at(), 6 * page_bytes()).unwrap();
    let there = Memory::new(2, RW, PRIVATE);
    let (page, flags) = (page_bytes() as usize, libc::MREMAP_MAYMOVE | libc::MREMAP_FIXED);
    let moved = memory.base.wrapping_add(3 * page);
    // SAFETY: two pages of one memory of the test become those of another one.
    let at = unsafe { libc::mremap(moved.cast(), 2 * page, 2 * page, flags, there.base) };
    assert_eq!(at, there.base.cast());
    give_back(adopted).unwrap();
    assert!(memory.is_private() && there.is_private());
    assert_eq!(memory.areas().len(), 2, "what was taken away leaves a hole");
    assert!((0..1024).all(|at| there.word(at).load(Ordering::Relaxed) == at + 3 * 512));
}

#[test]
fn half_a_move_is_undone() {
    let name = "adopted::tests::half_a_move_is_undone";
    crate::sys::child::alone(name, || {
        let memory = Memory::numbered(1100);
        let last = memory.base.wrapping_add(1099 * page_bytes() as usize);
        let part = libc::iovec { iov_base: last.cast(), iov_len: page_bytes() as usize };
        let mut ends = [0; 2];
        // SAFETY: room for two descriptors, and a page of the test's memory, which the pipe holds.
        unsafe {
            assert_eq!(libc::pipe(ends.as_mut_ptr()), 0);
            assert_eq!(libc::vmsplice(ends[1], &part, 1, 0), part.iov_len as isize);
        }
        let taken = take_all(memory.at(), memory.bytes as u64);
        assert!(matches!(taken, Err(NotAdopted::Held | NotAdopted::NoKernel)), "{taken:?}");
        assert!(memory.is_private() && memory.is_numbered());
    });
}
