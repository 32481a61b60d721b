//! Tests of adoption as its callers see it.

mod own_process;

use super::*;
use crate::memory::maps;
use crate::sync::{AtomicBool, AtomicU64, Ordering};
use crate::sys::adopt::areas::{AreaContent, MemoryAreas};
use crate::sys::resident;

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
        MemoryAreas::open().unwrap().over(self.at(), self.bytes as u64).unwrap()
    }

    fn is_private(&self) -> bool {
        self.areas().iter().all(|area| area.content == AreaContent::Anonymous && !area.is_shared)
    }
}

impl Drop for Memory {
    fn drop(&mut self) {
        // SAFETY: ours, and not used again.
        unsafe { libc::munmap(self.base.cast(), self.bytes) };
    }
}

/// Whether this process may stop the kernel's own writes; an unprivileged one may not.
fn is_exact() -> bool {
    let mut books = books::lock();
    books.has_tools() && books.tools.as_ref().is_some_and(|tools| tools.is_exact())
}

fn take_all(address: u64, bytes: u64) -> core::result::Result<Adopted, NotAdopted> {
    take(address, bytes, When::Creation, Adopt::Always)
}

#[test]
fn what_is_adopted_is_reached_through_the_heap() {
    let memory = Memory::numbered(5);
    for (skip, less) in [(0, 0), (24, 8), (page_bytes(), 100 * 8)] {
        if (skip | less) % page_bytes() != 0 && !is_exact() {
            continue;
        }
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
        adopted.give_back().unwrap();
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
    adopted.give_back().unwrap();
    assert_eq!(resident::missing(address, bytes), 296 * page_bytes());
    assert!((0..300).all(|page| memory.word(page * 512).load(Ordering::Relaxed)
        == if there(page) { page } else { 0 }));
}

/// Moves memory in and back again and again while threads add to its words. Returns the sum that is
/// there, and the sum of what was added.
fn sums_of_threads(pages: u64, turns: u32) -> (u64, u64) {
    let memory = &Memory::new(pages, RW, PRIVATE);
    let stop = &AtomicBool::new(false);
    let words = memory.bytes as u64 / 8;
    let added = std::thread::scope(|scope| {
        let adder = |thread: u64| {
            let mut added = 0;
            while !stop.load(Ordering::Relaxed) {
                // A plain load and store: the words of a thread are its own.
                let word = memory.word((added * 97 % (words / 2)) * 2 + thread);
                word.store(word.load(Ordering::Relaxed) + 1, Ordering::Relaxed);
                added += 1;
            }
            added
        };
        let adders = [0, 1].map(|thread| scope.spawn(move || adder(thread)));
        for _ in 0..turns {
            take_all(memory.at(), memory.bytes as u64).unwrap().give_back().unwrap();
        }
        stop.store(true, Ordering::Relaxed);
        adders.map(|adder| adder.join().unwrap()).iter().sum::<u64>()
    });
    ((0..words).map(|at| memory.word(at).load(Ordering::Relaxed)).sum(), added)
}

#[test]
fn no_store_of_another_thread_is_lost() {
    for (pages, turns) in [(1, 300), (3, 200), (150, 30)] {
        let (found, added) = sums_of_threads(pages, turns);
        assert_eq!(found, added, "{pages} pages");
    }
}

/// Reads from a pipe into memory that moves. Returns the calls that failed with EFAULT, after it
/// has checked the bytes of the others.
fn reads_during_moves(turns: u32) -> u64 {
    let memory = &Memory::numbered(4);
    let mut ends = [0; 2];
    // SAFETY: a place for two descriptors.
    assert_eq!(unsafe { libc::pipe2(ends.as_mut_ptr(), libc::O_NONBLOCK) }, 0);
    let stop = &AtomicBool::new(false);
    let refused = std::thread::scope(|scope| {
        let reader = scope.spawn(move || {
            let (mut refused, mut number) = (0, 0_u64);
            while !stop.load(Ordering::Relaxed) {
                number += 1;
                let at = number * 31 % (memory.bytes as u64 / 8);
                // SAFETY: eight bytes of a number, and of the memory.
                let (wrote, got) = unsafe {
                    let to = memory.base.wrapping_add(8 * at as usize);
                    let wrote = libc::write(ends[1], (&raw const number).cast(), 8);
                    (wrote, libc::read(ends[0], to.cast(), 8))
                };
                assert_eq!(wrote, 8);
                if got == 8 {
                    assert_eq!(memory.word(at).load(Ordering::Relaxed), number);
                    continue;
                }
                let error = std::io::Error::last_os_error();
                assert_eq!((got, error.raw_os_error()), (-1, Some(libc::EFAULT)));
                refused += 1;
                let mut rest = [0_u64; 2];
                // SAFETY: room for what may be left in the pipe.
                unsafe { libc::read(ends[0], rest.as_mut_ptr().cast(), 16) };
            }
            refused
        });
        for _ in 0..turns {
            let adopted =
                take(memory.at(), 4 * page_bytes(), When::Creation, Adopt::Always).unwrap();
            adopted.give_back().unwrap();
        }
        stop.store(true, Ordering::Relaxed);
        reader.join().unwrap()
    });
    // SAFETY: ours, and not used again.
    ends.iter().for_each(|end| unsafe { _ = libc::close(*end) });
    refused
}

#[test]
fn system_calls_of_other_threads_wait_where_it_is_exact() {
    let refused = reads_during_moves(1000);
    assert!(refused == 0 || !is_exact());
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
    whole.give_back().unwrap();
    again.give_back().unwrap();
    let shared = |page| {
        memory.areas().iter().any(|a| a.is_shared && a.start <= at(page) && a.end > at(page))
    };
    let pages: Vec<u64> = (0..10).filter(|page| shared(*page)).collect();
    assert_eq!(pages, [3, 6, 7, 8, 9], "no page without a window");
    drop(across);
    assert!(shared(3));
    drop(inside);
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
    first.give_back().unwrap();
    assert_eq!(memory.word(512).load(Ordering::Relaxed), 99, "it stays as it was");
    assert_eq!(memory.word(1024).load(Ordering::Relaxed), 1024);
    assert!(memory.is_private());
    assert!(take_all(memory.at(), 4 * page_bytes()).is_ok());
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
    assert_eq!(
        take(at, page_bytes(), When::Creation, Adopt::Never).unwrap_err(),
        NotAdopted::Setting
    );
    // SAFETY: the middle page of the test's memory.
    unsafe { libc::mprotect(memory.base.wrapping_add(page).cast(), page, libc::PROT_READ) };
    assert_eq!(refused(at, 3 * page_bytes()), NotAdopted::Rights, "a range is refused as a whole");
    let bytes = 2 * page_bytes() - 100;
    assert_eq!(take_all(at, bytes).unwrap().inner(), (at, page_bytes()), "an edge is left out");
    // SAFETY: likewise.
    unsafe { libc::munmap(memory.base.wrapping_add(page).cast(), page) };
    assert_eq!(refused(at, 3 * page_bytes()), NotAdopted::NotMapped);
    let heap = heap::take(page_bytes(), page_bytes()).unwrap();
    assert_eq!(refused(heap.base().addr() as u64, 100), NotAdopted::InHeap);
}

#[test]
fn huge_pages_are_huge_again() {
    let memory = Memory::new(3 * 512, RW, PRIVATE);
    // SAFETY: a hint for the test's own memory.
    unsafe { libc::madvise(memory.base.cast(), memory.bytes, libc::MADV_HUGEPAGE) };
    (0..memory.bytes as u64 / 8).for_each(|at| memory.word(at).store(at, Ordering::Relaxed));
    let pagemap = crate::sys::adopt::kept_file::KeptFile::of_process("/proc/self/pagemap").unwrap();
    let is_huge = || huge_pages::any(&pagemap, memory.at(), memory.bytes as u64);
    if !is_huge() {
        return; // the system has none
    }
    let adopted = take_all(memory.at(), memory.bytes as u64).unwrap();
    assert_eq!(adopted.place().offset % HUGE, memory.at() % HUGE);
    assert!(is_huge() && memory.is_numbered());
    adopted.give_back().unwrap();
    assert!(is_huge() && memory.is_numbered());
}

#[test]
fn allocators_get_their_memory_back_as_it_was() {
    if !is_exact() {
        return; // all but whole pages would be refused
    }
    for bytes in [24_usize, 5000, 300_000] {
        for turn in 0..100_u8 {
            // SAFETY: malloc and calloc, with room for these bytes.
            unsafe {
                let block = libc::malloc(bytes).cast::<u8>();
                block.write_bytes(turn, bytes);
                let adopted = take_all(block.expose_provenance() as u64, bytes as u64).unwrap();
                assert!((0..bytes).all(|at| block.add(at).read() == turn));
                adopted.give_back().unwrap();
                let block = libc::realloc(block.cast(), bytes + 1000).cast::<u8>();
                assert!((0..bytes).all(|at| block.add(at).read() == turn));
                libc::free(block.cast());
                let zero = libc::calloc(1, bytes + 1000).cast::<u8>();
                assert!((0..bytes + 1000).all(|at| zero.add(at).read() == 0));
                libc::free(zero.cast());
            }
        }
    }
}
