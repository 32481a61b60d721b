//! Which memory may move: the rules for a process, for areas of memory, and for edges, the pages
//! that a part of a window shares with other objects. `docs/internals/adoption.md` has the reasons.
//!
//! | memory                                     | moves                                          |
//! |--------------------------------------------|------------------------------------------------|
//! | private anonymous, readable and writable:  | whole pages of the part do; edges do if the    |
//! | malloc, new, numpy, .bss but its first page| process has one thread, or nothing else is in  |
//! |                                            | them                                           |
//! | .data, files, shared, read-only, huge pages| never                                          |
//! | stacks, state of the calling thread        | never: the mover uses them                     |
//! | locked, named, advised, watched by a       | never: a new mapping would lose that           |
//! | userfaultfd                                |                                                |
//! | held by a device, a transfer or a pipe     | never: the kernel is asked (`page_moves`)      |

use super::refusal::{Adoption, NotAdopted};
use crate::gpu;
use crate::number::Number;
use crate::sys::adopt::areas::{Area, AreaContent};
use crate::sys::adopt::smaps::{KeptFlags, Smaps, VmFlags};
use crate::sys::adopt::{open_files, process_state};
use crate::sys::{memory_limits, page_bytes, process, vm};

/// Adopted memory may take this share of the mappings that a process may have. Each part of a
/// window splits a mapping in three.
const MAPPINGS_SHARE: u64 = 8;

/// Whether this process may ever move pages: checked without a system call but for limits. `runs`:
/// how many parts are adopted.
pub fn of_process(runs: u64) -> Adoption<()> {
    if gpu::is_loaded() {
        return Err(NotAdopted::Gpu);
    }
    if process_state::is_limited() {
        return Err(NotAdopted::Limited);
    }
    if memory_limits::are_strict() {
        return Err(NotAdopted::Strict);
    }
    if 2 * runs > process_state::mappings_max() / MAPPINGS_SHARE {
        return Err(NotAdopted::ManyMappings);
    }
    Ok(())
}

/// Whether pages of this process may move now, by what it has open and mapped. Returns what the
/// program has said of its memory.
pub fn of_process_now() -> Adoption<Smaps> {
    if is_reached() {
        return Err(NotAdopted::OtherProcesses);
    }
    if open_files::may_use_memory() {
        return Err(NotAdopted::Device);
    }
    let smaps = Smaps::read().ok_or(NotAdopted::Failed)?;
    if smaps.is_valgrind {
        return Err(NotAdopted::Valgrind);
    }
    if smaps.has_device {
        return Err(NotAdopted::Device);
    }
    Ok(smaps)
}

/// Whether the pages from `first` to `end` may move, by the flags of their mappings. Returns the
/// flags that a new mapping there gets.
pub fn of_flags(smaps: &Smaps, first: u64, end: u64) -> Adoption<KeptFlags> {
    match smaps.vm_flags(first, end) {
        VmFlags::Plain(kept_flags) => Ok(kept_flags),
        VmFlags::Other => Err(NotAdopted::Advised),
    }
}

#[cfg(not(test))]
use process_state::is_reached;
/// In a test: other tests of the process have children.
#[cfg(test)]
fn is_reached() -> bool {
    crate::sys::child::is_alone() && process_state::is_reached()
}

/// Whether the pages from `first` to `end` may move. `areas`: those that overlap the pages, and
/// maybe others. Returns where the areas end, the last one with the pages.
pub fn of_areas(areas: &[Area], first: u64, end: u64) -> Adoption<Vec<u64>> {
    let (mut at, mut ends) = (first, Vec::with_capacity(areas.len()));
    for area in areas.iter().filter(|area| area.start < end && area.end > first) {
        if area.start > at {
            break;
        }
        match area.content {
            AreaContent::Stack => return Err(NotAdopted::Stack),
            AreaContent::Special => return Err(NotAdopted::Special),
            AreaContent::HugePages => return Err(NotAdopted::HugePages),
            AreaContent::File if area.is_shared => return Err(NotAdopted::Shared),
            AreaContent::File => return Err(NotAdopted::File),
            AreaContent::Anonymous if area.is_shared => return Err(NotAdopted::Shared),
            AreaContent::Anonymous if !area.is_plain_data => return Err(NotAdopted::Rights),
            AreaContent::Anonymous => at = area.end.min(end),
        }
        ends.push(at);
    }
    if at < end {
        return Err(NotAdopted::NotMapped);
    }
    if is_used_to_move(first, end) { Err(NotAdopted::Stack) } else { Ok(ends) }
}

/// Whether the calling thread uses a page from `first` to `end` while it moves pages: its active
/// stack, or its state in the C library. To be asked back, too: a program may run on memory that it
/// has freed since, and that malloc has given out again.
pub fn is_used_to_move(first: u64, end: u64) -> bool {
    let (low, high) = process_state::active_stack();
    let own_state = process_state::own_state();
    low < end && high > first || own_state.iter().any(|at| (first..end).contains(at))
}

/// Whether the page that holds the begin of `address` to `end` has no other object: the part begins
/// where a chunk of malloc begins that is a mapping of its own, with its header ahead. The kernel
/// reads the header: the program may have made the page a guard (MADV_GUARD_INSTALL).
pub fn is_own_mapping(address: u64, end: u64) -> bool {
    /// The header of such a chunk: an unused length, and the length with a flag in the low bits.
    const HEADER: u64 = 16;
    const IS_MAPPED: u64 = 2;
    if address % page_bytes() != HEADER {
        return false;
    }
    let mut header = [0_u64; 2];
    let to = vm::own_run(header.as_mut_ptr().cast(), HEADER);
    let from = vm::run(address - HEADER, HEADER);
    // SAFETY: room for the header.
    let read = unsafe { vm::read(process::id(), vm::one(&to), vm::one(&from)) };
    if read != HEADER.to_usize().cast_signed() {
        return false;
    }
    let [ahead, length] = header;
    let bytes = length & !7;
    let last = address - HEADER + bytes;
    ahead == 0
        && length & 7 == IS_MAPPED
        && bytes.is_multiple_of(page_bytes())
        && last >= end
        && last - end < page_bytes() + HEADER
}

#[cfg(test)]
mod tests {
    use super::*;

    fn area(start: u64, end: u64) -> Area {
        Area {
            start,
            end,
            is_plain_data: true,
            is_shared: false,
            content: AreaContent::Anonymous,
            device: 0,
            inode: 0,
            offset: 0,
        }
    }

    #[test]
    fn only_private_anonymous_memory_may_move() {
        let kinds = [
            (AreaContent::Stack, false, true, NotAdopted::Stack),
            (AreaContent::Special, false, true, NotAdopted::Special),
            (AreaContent::HugePages, false, true, NotAdopted::HugePages),
            (AreaContent::File, false, true, NotAdopted::File),
            (AreaContent::File, true, true, NotAdopted::Shared),
            (AreaContent::Anonymous, true, true, NotAdopted::Shared),
            (AreaContent::Anonymous, false, false, NotAdopted::Rights),
        ];
        for (content, is_shared, is_plain_data, reason) in kinds {
            let bad = Area { content, is_shared, is_plain_data, ..area(0x2000, 0x3000) };
            assert_eq!(of_areas(&[bad], 0x2000, 0x3000), Err(reason));
            let areas = [area(0x1000, 0x2000), bad, area(0x3000, 0x4000)];
            assert_eq!(of_areas(&areas, 0x1000, 0x4000), Err(reason));
        }
        let fine = [area(0x1000, 0x2000), area(0x2000, 0x9000)];
        assert_eq!(of_areas(&fine, 0x1000, 0x4000), Ok(vec![0x2000, 0x4000]));
        assert_eq!(of_areas(&fine, 0x3000, 0x4000), Ok(vec![0x4000]), "the first one is elsewhere");
        assert_eq!(of_areas(&fine[..1], 0x1000, 0x4000), Err(NotAdopted::NotMapped));
        assert_eq!(of_areas(&fine[1..], 0x1000, 0x4000), Err(NotAdopted::NotMapped));
        assert_eq!(of_areas(&[], 0x1000, 0x4000), Err(NotAdopted::NotMapped));
    }

    #[test]
    fn a_large_chunk_of_malloc_is_a_mapping_of_its_own() {
        for bytes in [200_000_usize, 1 << 20] {
            // SAFETY: malloc; its header is ahead of it.
            let base = unsafe { libc::malloc(bytes) };
            let at = base.expose_provenance() as u64;
            // The C library may raise its threshold, if another test has freed such a chunk.
            if at % page_bytes() == 16 {
                assert!(is_own_mapping(at, at + bytes as u64));
                assert!(!is_own_mapping(at, at + bytes as u64 - 2 * page_bytes()), "a part of it");
            }
            assert!(!is_own_mapping(at + 64, at + bytes as u64));
            // SAFETY: as above.
            unsafe { libc::free(base) };
        }
    }

    #[test]
    fn a_page_that_cannot_be_read_has_no_header() {
        let (rights, flags) = (libc::PROT_NONE, libc::MAP_PRIVATE | libc::MAP_ANONYMOUS);
        // SAFETY: a new mapping.
        let at = unsafe { libc::mmap(core::ptr::null_mut(), 4096, rights, flags, -1, 0) };
        assert_ne!(at, libc::MAP_FAILED);
        let begin = at.expose_provenance() as u64 + 16;
        assert!(!is_own_mapping(begin, begin + 4000));
        // SAFETY: an object of this library, not used again.
        unsafe { libc::munmap(at, 4096) };
    }
}
