//! Support for fork(2): handlers, and shared memory that becomes the child's own. In the child this
//! file allocates nothing: it makes system calls only.

use super::{kept_file, map_private, uninterrupted};
use crate::data_runs::DataRuns;
use crate::number::Number;
use crate::segment_name::Name;

/// Registers functions that are called around each fork: in the parent before it, in the parent
/// after it, in the child. Children of vfork, posix_spawn, system and popen share their parent's
/// memory until they run another program, and for them no function is called.
pub fn at_fork(
    before: unsafe extern "C" fn(),
    in_parent: unsafe extern "C" fn(),
    in_child: unsafe extern "C" fn(),
) {
    // A system without memory for this has none for a child either.
    // SAFETY: functions that live as long as the process: dlclose leaves the library in place.
    unsafe { libc::pthread_atfork(Some(before), Some(in_parent), Some(in_child)) };
}

/// A part of a segment of this process as it is mapped here: whole pages.
#[derive(Clone, Copy)]
pub struct SegmentPart {
    /// the segment
    pub name: Name,
    /// its offset in the segment
    pub offset: u64,
    /// its address in memory
    pub base: *mut u8,
    /// its bytes
    pub bytes: u64,
}

impl SegmentPart {
    /// Whether the descriptor in the name is still that of the segment: programs close descriptors
    /// that they do not know.
    fn is_open(&self) -> bool {
        let found = kept_file::identity(self.name.fd);
        found.is_ok_and(|found| found == (self.name.device, self.name.inode))
    }

    /// Calls `work` with begin and end, in the segment, of each run of allocated bytes, until it
    /// returns false. All other bytes read as zero.
    fn each_run(&self, mut work: impl FnMut(u64, u64) -> bool) -> bool {
        let (mut runs, mut from) = (DataRuns::of(self.name.fd), self.offset);
        while let Ok(Some((first, end))) = runs.next(from, self.offset + self.bytes) {
            if !work(first, end) {
                return false;
            }
            from = end;
        }
        true
    }

    /// Returns the number of allocated bytes.
    pub fn data_bytes(&self) -> u64 {
        let mut bytes = 0;
        if self.is_open() {
            self.each_run(|first, end| {
                bytes += end - first;
                true
            });
        }
        bytes
    }

    /// Makes the memory this process's own: other processes do not see later stores of this
    /// process. With `copied`, this process does not see their later stores either. Without
    /// `copied`, or if the copy fails, it may see these in pages to which it has not stored.
    /// Returns false if nothing could be done, and the memory is shared as it was.
    ///
    /// # Safety
    /// The part is mapped at `base`, and no other thread of this process uses it.
    pub unsafe fn make_private(&self, copied: bool) -> bool {
        if !self.is_open() {
            return false;
        }
        // SAFETY: guaranteed by the caller.
        if copied && unsafe { self.replace_by_copy() } {
            return true;
        }
        let (rights, length) = (libc::PROT_READ | libc::PROT_WRITE, self.bytes.to_usize());
        let flags = libc::MAP_PRIVATE | libc::MAP_FIXED | libc::MAP_NORESERVE;
        let (base, fd, offset) = (self.base.cast(), self.name.fd, self.offset.cast_signed());
        // SAFETY: it replaces the same pages of the same segment.
        unsafe { libc::mmap(base, length, rights, flags, fd, offset) != libc::MAP_FAILED }
    }

    /// # Safety
    /// As for `make_private`.
    unsafe fn replace_by_copy(&self) -> bool {
        let (rights, length) = (libc::PROT_READ | libc::PROT_WRITE, self.bytes.to_usize());
        let Ok(copy) = map_private(self.bytes, rights) else { return false };
        // SAFETY: it is as long as this part.
        let full = unsafe { self.copy_to(copy) };
        let how = libc::MREMAP_MAYMOVE | libc::MREMAP_FIXED;
        let there: *mut libc::c_void = self.base.cast();
        // SAFETY: the mapping that was just made takes the place of the same bytes. Made as a bare
        // system call, because libraries that intercept mremap (UCX) lose its fifth argument.
        let moved = full
            && unsafe { libc::syscall(libc::SYS_mremap, copy, length, length, how, there) } != -1;
        if !moved {
            // SAFETY: the mapping that was just made, which no other code knows.
            unsafe { libc::munmap(copy.cast(), length) };
        }
        moved
    }

    /// # Safety
    /// `copy` has room for all of it, and is zero.
    unsafe fn copy_to(&self, copy: *mut u8) -> bool {
        self.each_run(|mut from, end| {
            while from < end {
                let (to, bytes) = ((from - self.offset).to_usize(), (end - from).to_usize());
                let (copy, at) = (copy.wrapping_add(to).cast(), from.cast_signed());
                // SAFETY: inside of the room that the caller guarantees.
                let read = || unsafe { libc::pread(self.name.fd, copy, bytes, at) };
                match u64::try_from(uninterrupted(read)) {
                    Ok(0) | Err(_) => return false,
                    Ok(got) => from += got,
                }
            }
            true
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::page_bytes;
    use crate::segment::Segment;

    const PAGES: u64 = 8;

    fn write(base: *mut u8, page: u64, value: u8) {
        // SAFETY: the tests write to pages that they have mapped.
        unsafe { base.wrapping_add((page * page_bytes()) as usize).write_volatile(value) };
    }

    fn read(base: *mut u8, page: u64) -> u8 {
        // SAFETY: the tests read pages that they have mapped.
        unsafe { base.wrapping_add((page * page_bytes()) as usize).read_volatile() }
    }

    /// A segment whose pages 1 and 3 are 1 and 3, and pages 1 to 6 of it, mapped apart.
    fn check(copied: bool) {
        let segment = Segment::create(PAGES * page_bytes()).unwrap();
        let (here, there) = (segment.map().unwrap(), segment.map().unwrap());
        let name = segment.name();
        write(there.base(), 1, 1);
        write(there.base(), 3, 3);
        let base = here.base().wrapping_add(page_bytes() as usize);
        let part = SegmentPart { name, offset: page_bytes(), base, bytes: 6 * page_bytes() };
        assert_eq!(part.data_bytes(), 2 * page_bytes());
        // SAFETY: this test alone uses the mapping.
        assert!(unsafe { part.make_private(copied) });
        assert_eq!(
            (1..7).map(|page| read(here.base(), page)).collect::<Vec<_>>(),
            [1, 0, 3, 0, 0, 0]
        );
        write(here.base(), 1, 11);
        write(here.base(), 2, 12);
        assert_eq!((read(there.base(), 1), read(there.base(), 2)), (1, 0), "its own");
        write(there.base(), 3, 33);
        write(there.base(), 4, 34);
        if copied {
            assert_eq!((read(here.base(), 3), read(here.base(), 4)), (3, 0), "as it was then");
        }
        write(there.base(), 0, 5);
        write(there.base(), 7, 6);
        assert_eq!((read(here.base(), 0), read(here.base(), 7)), (5, 6), "all around it is shared");
    }

    #[test]
    fn what_is_made_private_stays_as_it_was() {
        check(true);
    }

    #[test]
    fn without_a_copy_stores_are_its_own() {
        check(false);
    }

    #[test]
    fn another_file_under_the_descriptor_is_left_alone() {
        let (segment, other) =
            (Segment::create(page_bytes()).unwrap(), Segment::create(page_bytes()).unwrap());
        let here = segment.map().unwrap();
        let name = Name { fd: other.name().fd, ..segment.name() };
        let part = SegmentPart { name, offset: 0, base: here.base(), bytes: page_bytes() };
        // SAFETY: this test alone uses the mapping.
        assert!(!unsafe { part.make_private(true) });
    }
}
