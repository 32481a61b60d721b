//! Tests of the heap as its callers see it: allocation, retention and release.

use super::*;
use crate::maps;
use crate::retention::KEPT_MAX;
use std::os::unix::fs::MetadataExt;

const MIB: u64 = 1 << 20;

fn heap() -> &'static Heap {
    Box::leak(Box::new(Heap::new(|| false)))
}

/// A heap where the kernel would refuse pages by a signal.
fn strict() -> &'static Heap {
    Box::leak(Box::new(Heap::new(|| true)))
}

/// Returns the bytes of memory behind all chunks.
fn backed(heap: &Heap) -> u64 {
    let path = |chunk: &Chunk| format!("/proc/self/fd/{}", chunk.name.fd);
    let blocks = |chunk: &Chunk| std::fs::metadata(path(chunk)).unwrap().blocks();
    heap.state().chunks.iter().map(|(chunk, _)| blocks(chunk) * 512).sum()
}

fn fill(lease: &HeapRange, byte: u8) {
    // SAFETY: the range is this long, and no other code uses it.
    unsafe { lease.base().write_bytes(byte, lease.bytes() as usize) };
}

fn is_full_of(base: *const u8, bytes: u64, byte: u8) -> bool {
    // SAFETY: the tests pass ranges that they hold.
    (0..bytes as usize).all(|at| unsafe { base.add(at).read_volatile() } == byte)
}

#[test]
fn what_was_given_back_is_taken_again() {
    let heap = heap();
    let first = heap.take(3 * page_bytes(), page_bytes()).unwrap();
    assert!(!first.is_dirty() && is_full_of(first.base(), first.bytes(), 0));
    fill(&first, 7);
    let base = first.base();
    drop(first);
    let again = heap.take(3 * page_bytes(), page_bytes()).unwrap();
    assert_eq!(again.base(), base);
    assert!(again.is_dirty());
}

#[test]
fn ranges_are_aligned_and_apart() {
    let heap = heap();
    let mut leases = Vec::new();
    for turn in 0..200_u64 {
        let (bytes, alignment) = (turn * 37 % 9000, 1 << (turn % 26));
        let lease = heap.take(bytes, alignment).unwrap();
        assert!((lease.base().addr() as u64).is_multiple_of(alignment.max(GRANULE)));
        fill(&lease, turn as u8);
        leases.push(lease);
    }
    for (turn, lease) in leases.iter().enumerate() {
        assert!(is_full_of(lease.base(), lease.bytes(), turn as u8), "lease {turn}");
    }
}

#[test]
fn another_mapping_of_the_same_segment_sees_the_bytes() {
    let heap = heap();
    let _before = heap.take(5000, 64).unwrap();
    let lease = heap.take(5000, 64).unwrap();
    fill(&lease, 9);
    let place = lease.place();
    assert_eq!(heap.find(lease.base().addr() as u64, 5000), Some(place));
    let mapping = maps::map(&place.name).unwrap();
    assert_ne!(mapping.base().wrapping_add(place.offset as usize), lease.base());
    assert!(is_full_of(mapping.base().wrapping_add(place.offset as usize), 5000, 9));
}

#[test]
fn a_place_outside_of_its_segment_is_refused() {
    let lease = heap().take(4096, 64).unwrap();
    let HeapPlace { name, offset } = lease.place();
    let is_refused = |offset, bytes| {
        let place = HeapPlace { name, offset };
        let view = crate::HeapView::of(&place, bytes);
        view.is_err_and(|error| error == DAMAGED)
    };
    assert!(!is_refused(offset, 4096) && !is_refused(name.bytes, 0) && !is_refused(0, name.bytes));
    assert!(is_refused(0, name.bytes + 1) && is_refused(name.bytes - 1, 2));
    assert!(is_refused(u64::MAX, 1) && is_refused(1, u64::MAX));
}

#[test]
fn only_whole_ranges_of_a_chunk_are_found() {
    let heap = heap();
    let lease = heap.take(64 * MIB, 64).unwrap();
    let address = lease.base().addr() as u64;
    assert!(heap.find(address, 64 * MIB).is_some());
    assert_eq!(heap.find(address, 64 * MIB + 1), None);
    assert_eq!(heap.find(address - 1, 2), None);
    assert_eq!(heap.find(u64::MAX, u64::MAX), None);
    assert_eq!(heap.find(&raw const *heap as u64, 1), None);
}

#[test]
fn an_allocation_is_found_by_what_it_holds() {
    let heap = heap();
    let base = heap.allocate(10_000, 64).unwrap() as u64;
    assert_eq!(heap.allocation(base, 10_000), Some((base, 10_000)));
    assert_eq!(heap.allocation(base + 9_999, 1), Some((base, 10_000)));
    assert_eq!(heap.allocation(base + 1, 10_000), None);
    assert_eq!(heap.allocation(base - 1, 1), None);
    assert_eq!(heap.allocation(base, u64::MAX), None);
    let lease = heap.take(10_000, 64).unwrap();
    assert_eq!(heap.allocation(lease.base() as u64, 1), None, "a window's memory");
    assert!(heap.release(base as *mut u8));
    assert_eq!(heap.allocation(base, 1), None);
}

#[test]
fn what_is_kept_has_a_bound() {
    let heap = heap();
    let leases: Vec<_> = (0..50).map(|_| heap.take(MIB, 64).unwrap()).collect();
    leases.iter().for_each(|lease| fill(lease, 1));
    assert_eq!(backed(heap), 50 * MIB);
    drop(leases);
    assert!(backed(heap) <= KEPT_MAX);
    let large = heap.take(100 * MIB, 64).unwrap();
    assert!(!large.is_dirty() && is_full_of(large.base(), MIB, 0));
    fill(&large, 1);
    drop(large);
    assert!(backed(heap) <= KEPT_MAX);
}

#[test]
fn memory_is_taken_when_it_is_touched() {
    let heap = heap();
    for bytes in [100, MIB, 24 * MIB, 40 * MIB, 24 * MIB] {
        let lease = heap.take(bytes, 64).unwrap();
        assert_eq!(backed(heap), 0, "{bytes}");
        drop(lease);
        assert_eq!(backed(heap), 0, "{bytes}");
    }
    let lease = heap.take(24 * MIB, 64).unwrap();
    // SAFETY: a byte of what was just taken.
    unsafe { lease.base().wrapping_add(5 << 20).write(1) };
    assert_eq!(backed(heap), page_bytes());
}

#[test]
fn where_pages_may_be_refused_all_have_memory_behind_them() {
    let heap = strict();
    let lease = heap.take(40 * MIB, 64).unwrap();
    assert_eq!(backed(heap), 40 * MIB);
    drop(lease);
    let small = heap.take(100, 64).unwrap();
    assert_eq!(backed(heap), BATCH);
    drop(small);
    // A kept range has its pages, too.
    let again = heap.take(100, 64).unwrap();
    assert!(again.is_dirty() && backed(heap) == BATCH);
}

#[test]
fn a_lease_can_be_backed_later() {
    let heap = heap();
    let _before = heap.take(100, 64).unwrap();
    let lease = heap.take(10 * page_bytes(), 64).unwrap();
    lease.back().unwrap();
    assert!((10 * page_bytes()..=11 * page_bytes()).contains(&backed(heap)));
}

#[test]
fn what_fits_the_bound_stays_for_the_next_request() {
    let heap = heap();
    let bound = heap.state().bound();
    for (bytes, expected) in [(bound, 5), (2 * bound, 0)] {
        let is_kept = |_: &u32| {
            let lease = heap.take(bytes, 64).unwrap();
            fill(&lease, 1);
            lease.is_dirty()
        };
        assert_eq!((0..6).filter(is_kept).count(), expected);
        assert!(backed(heap) <= bound);
    }
}

#[test]
fn thousands_at_once_are_in_a_few_chunks() {
    let heap = heap();
    let sizes = (0..5000_u64).map(|turn| turn * 7919 % 50_000);
    let leases: Vec<_> = sizes.map(|bytes| heap.take(bytes, 64).unwrap()).collect();
    assert!(heap.state().chunks.len() <= 3);
    let asked: u64 = leases.iter().map(|lease| whole(lease.bytes())).sum();
    leases.iter().for_each(|lease| fill(lease, 1));
    assert!(backed(heap) <= asked + asked / 8);
    drop(leases);
    assert!(backed(heap) <= KEPT_MAX + KEPT_MAX / 8, "but for pages with a hole");
}

#[test]
fn memory_is_released_once() {
    let heap = heap();
    let bases: Vec<_> = (0..4).map(|bytes| heap.allocate(bytes, 64).unwrap()).collect();
    assert!(!heap.release(bases[1].wrapping_add(8)), "not where it begins");
    assert!(bases.iter().all(|base| heap.release(*base)));
    assert!(!heap.release(bases[1]), "it was released before");
    assert!(!heap.release(std::ptr::null_mut()));
}

#[test]
fn more_than_the_node_has_is_refused_and_the_rest_stays_usable() {
    let heap = heap();
    for bytes in [1 << 45, 1 << 60, i64::MAX as u64, u64::MAX] {
        let refused = heap.take(bytes, 64).err().unwrap();
        assert_eq!(refused.class(), crate::error::Class::NoMem, "{bytes}");
    }
    assert!(matches!(heap.take(1, 1 << 63), Err(Error::NoMemory { .. })));
    assert!(heap.state().chunks.is_empty());
    fill(&heap.take(page_bytes(), 64).unwrap(), 1);
}

#[test]
fn threads_get_ranges_of_their_own() {
    let heap = heap();
    std::thread::scope(|scope| {
        for thread in 0..4_u8 {
            scope.spawn(move || {
                for turn in 0..300_u64 {
                    let lease = heap.take(turn * 4099 % 200_000, 64).unwrap();
                    fill(&lease, thread);
                    assert!(is_full_of(lease.base(), lease.bytes(), thread));
                }
            });
        }
    });
}

#[test]
fn a_forked_child_leaves_the_memory_of_its_parent_alone() {
    let heap = heap();
    let lease = heap.take(40 * MIB, 64).unwrap();
    let base = heap.allocate(page_bytes(), 64).unwrap();
    fill(&lease, 5);
    // SAFETY: the child calls nothing but this heap, and ends by _exit.
    let child = unsafe { libc::fork() };
    if child == 0 {
        let own = heap.take(page_bytes(), 64).map(|own| own.place().name.pid == process::id());
        let fine = own == Ok(true) && heap.release(base) && heap.find(base as u64, 1).is_none();
        drop(lease);
        // SAFETY: it ends the child.
        unsafe { libc::_exit(i32::from(!fine)) };
    }
    let mut status = 0;
    // SAFETY: a child of this process, and a place for its status.
    assert_eq!(unsafe { libc::waitpid(child, &mut status, 0) }, child);
    assert_eq!(status, 0);
    assert!(is_full_of(lease.base(), lease.bytes(), 5));
    assert!(heap.release(base));
}
