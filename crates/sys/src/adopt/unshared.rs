//! Check whether anything but page tables refers to pages: a device, a system call that copies to
//! them, a pipe, a ring of io_uring. The kernel reports this as a by-product of MADV_COLLAPSE
//! (Linux 6.1), which copies the pages of 2 MiB to a huge page and replaces them by it. It does so
//! only if the reference count of each page is the number of its mappings (`is_refcount_suitable`
//! of anonymous pages, `SCAN_PAGE_COUNT` of those of a file, in mm/khugepaged.c), and fails with
//! EAGAIN otherwise. All kinds of references count: those of pin_user_pages, whether the driver
//! accounts for them in VmPin or not, those of get_user_pages, and those of vmsplice(2).
//!
//! The answer holds for the moment of the call. The caller makes sure that no reference
//! begins afterwards.

use crate::error::{Error, Result};
use crate::number::Number;
use crate::{last_error, map_private, page_bytes};
use core::ptr;
use std::sync::OnceLock;

/// Bytes that the kernel collapses at once, and their alignment.
pub const BLOCK: u64 = 2 << 20;
/// MADV_COLLAPSE (6.1)
const COLLAPSE: i32 = 25;
/// Attempts: a page may be locked by the kernel itself for a moment, for its own lists.
const ATTEMPTS: u32 = 4;
/// The call, as errors name it.
pub const NAME: &str = "madvise MADV_COLLAPSE";

/// Fails with EAGAIN if anything but page tables refers to a page of the block at an address, which
/// is one mapping. Any other error: the kernel does not report it.
pub fn check(block: u64) -> Result<()> {
    let mut attempt = 0;
    loop {
        // SAFETY: it changes no byte.
        if unsafe { libc::syscall(libc::SYS_madvise, block, BLOCK, COLLAPSE) } == 0 {
            return Ok(());
        }
        attempt += 1;
        match last_error(NAME) {
            Error::System { errno: libc::EAGAIN, .. } if attempt < ATTEMPTS => {
                // SAFETY: a plain system call; no lock of the C library is taken here.
                unsafe { libc::syscall(libc::SYS_sched_yield) };
            }
            error => return Err(error),
        }
    }
}

/// Makes huge pages of the whole ones in a range, as far as the kernel can.
pub fn collapse(address: u64, bytes: u64) {
    // SAFETY: it changes no byte.
    unsafe { libc::syscall(libc::SYS_madvise, address, bytes.to_usize(), COLLAPSE) };
}

/// Whether the kernel answers at all: tried with a page of this file, until it has answered or said
/// that it never will (EINVAL): before Linux 6.1, without transparent huge pages, or if the process
/// has switched them off (prctl(2)). Other errors are temporary, for example if no huge page is
/// free.
pub fn is_answered() -> bool {
    static ANSWERED: OnceLock<bool> = OnceLock::new();
    if let Some(answered) = ANSWERED.get() {
        return *answered;
    }
    let answer = Addresses::of_block(libc::PROT_READ | libc::PROT_WRITE).and_then(|own| {
        let page = ptr::with_exposed_provenance_mut::<u8>(own.block().to_usize());
        // SAFETY: a page of the new mapping.
        unsafe { page.write_volatile(1) };
        check(own.block())
    });
    match answer {
        Ok(()) => *ANSWERED.get_or_init(|| true),
        Err(Error::System { errno: libc::EINVAL, .. }) => *ANSWERED.get_or_init(|| false),
        Err(_) => false,
    }
}

/// Addresses that hold a whole block, as one mapping that no other code knows. Unmapped on drop.
pub struct Addresses {
    first: u64,
}

impl Addresses {
    /// Reserves them, as private memory with these rights. No memory is taken.
    pub fn of_block(rights: i32) -> Result<Addresses> {
        Ok(Addresses { first: map_private(2 * BLOCK, rights)?.addr().to_u64() })
    }

    /// Returns the first address of the block.
    pub fn block(&self) -> u64 {
        self.first.next_multiple_of(BLOCK)
    }

    /// Maps a block of a segment there, which begins at an offset.
    pub fn show(&self, descriptor: i32, offset: u64) -> Result<()> {
        let (rights, flags) =
            (libc::PROT_READ | libc::PROT_WRITE, libc::MAP_SHARED | libc::MAP_FIXED);
        // SAFETY: it replaces a part of this mapping.
        let shown = unsafe {
            libc::syscall(libc::SYS_mmap, self.block(), BLOCK, rights, flags, descriptor, offset)
        };
        if shown == -1 { Err(last_error("mmap")) } else { Ok(()) }
    }

    /// Takes private pages from `from`, in order, at most a page less than a block: they lie at the
    /// begin of the block afterwards, and the addresses that they come from have no page. The
    /// number keeps a huge page from moving as one, which the kernel would not check.
    pub fn take(&self, from: u64, bytes: u64) -> Result<()> {
        debug_assert!(bytes <= BLOCK - page_bytes());
        // By way of a mapping as long as they are: the first call keeps the old addresses mapped,
        // the second one makes the new mapping as long as a block.
        let way = map_private(bytes, libc::PROT_NONE)?.addr().to_u64();
        let keep = libc::MREMAP_MAYMOVE | libc::MREMAP_FIXED | libc::MREMAP_DONTUNMAP;
        if let Err(error) = remap(from, bytes, bytes, keep, way) {
            unmap(way, bytes);
            return Err(error);
        }
        let longer = libc::MREMAP_MAYMOVE | libc::MREMAP_FIXED;
        let taken = remap(way, bytes, BLOCK, longer, self.block());
        if taken.is_err() {
            let back = remap(way, bytes, bytes, longer, from);
            assert!(back.is_ok(), "mremap puts pages where they were");
        }
        taken
    }

    /// Puts the pages of `take` where they were.
    pub fn bring_back(&self, to: u64, bytes: u64) {
        let how = libc::MREMAP_MAYMOVE | libc::MREMAP_FIXED;
        let back = remap(self.block(), bytes, bytes, how, to);
        assert!(back.is_ok(), "mremap puts pages where they were");
    }
}

impl Drop for Addresses {
    fn drop(&mut self) {
        unmap(self.first, 2 * BLOCK);
    }
}

fn unmap(address: u64, bytes: u64) {
    // SAFETY: a mapping of this file, which no other code knows.
    unsafe { libc::syscall(libc::SYS_munmap, address, bytes) };
}

/// Bare, because libraries that intercept mremap (UCX) lose its fifth argument.
fn remap(from: u64, bytes: u64, new_bytes: u64, how: i32, to: u64) -> Result<()> {
    // SAFETY: between addresses of this file and those of a caller, who guarantees them.
    let moved = unsafe { libc::syscall(libc::SYS_mremap, from, bytes, new_bytes, how, to) };
    if moved == -1 { Err(last_error("mremap")) } else { Ok(()) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::segment::Segment;

    const RW: i32 = libc::PROT_READ | libc::PROT_WRITE;

    /// A pipe that holds a page by reference, until it is dropped.
    struct Pipe([i32; 2]);

    impl Pipe {
        fn holding(page: u64) -> Pipe {
            let mut ends = [0; 2];
            // SAFETY: room for two descriptors; the page is mapped.
            let lent = unsafe {
                assert_eq!(libc::pipe(ends.as_mut_ptr()), 0);
                let at = ptr::with_exposed_provenance_mut(page.to_usize());
                let part = libc::iovec { iov_base: at, iov_len: page_bytes().to_usize() };
                libc::vmsplice(ends[1], &part, 1, 0)
            };
            assert_eq!(lent.cast_unsigned(), page_bytes().to_usize());
            Pipe(ends)
        }
    }

    impl Drop for Pipe {
        fn drop(&mut self) {
            // SAFETY: an object of this library, not used again.
            self.0.iter().for_each(|end| assert_eq!(unsafe { libc::close(*end) }, 0));
        }
    }

    fn store(address: u64, value: u64) {
        // SAFETY: a mapped word of the test.
        unsafe { ptr::with_exposed_provenance_mut::<u64>(address.to_usize()).write(value) };
    }

    fn load(address: u64) -> u64 {
        // SAFETY: a mapped word of the test.
        unsafe { ptr::with_exposed_provenance::<u64>(address.to_usize()).read_volatile() }
    }

    #[test]
    fn a_page_that_a_pipe_holds_is_told_and_brought_back() {
        if !is_answered() {
            return;
        }
        for pages in [1, 3, 511] {
            let bytes = pages * page_bytes();
            let memory = map_private(bytes, RW).unwrap().expose_provenance() as u64;
            (0..pages).for_each(|page| store(memory + page * page_bytes(), page + 7));
            let own = Addresses::of_block(RW).unwrap();
            let pipe = Pipe::holding(memory + (pages - 1) * page_bytes());
            own.take(memory, bytes).unwrap();
            assert_eq!(load(memory), 0, "it is elsewhere");
            let held = check(own.block());
            assert!(matches!(held, Err(Error::System { errno: libc::EAGAIN, .. })), "{held:?}");
            drop(pipe);
            check(own.block()).unwrap();
            own.bring_back(memory, bytes);
            assert!((0..pages).all(|page| load(memory + page * page_bytes()) == page + 7));
            unmap(memory, bytes);
        }
    }

    #[test]
    fn a_page_of_a_segment_that_a_pipe_holds_is_told() {
        let segment = Segment::create(BLOCK).unwrap();
        let mapping = segment.map().unwrap();
        let page = mapping.base().expose_provenance() as u64 + 5 * page_bytes();
        store(page, 9);
        let own = Addresses::of_block(libc::PROT_NONE).unwrap();
        own.show(segment.name().fd, 0).unwrap();
        let pipe = Pipe::holding(page);
        if !is_answered() {
            return;
        }
        let held = check(own.block());
        assert!(matches!(held, Err(Error::System { errno: libc::EAGAIN, .. })), "{held:?}");
        drop(pipe);
        check(own.block()).unwrap();
        assert_eq!((load(page), load(own.block() + 5 * page_bytes())), (9, 9));
    }
}
