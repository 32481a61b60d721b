//! Moves of whole pages: from private anonymous memory into a shared segment at the same addresses,
//! and back. The caller makes sure that no thread, no system call and no other process uses the
//! pages meanwhile. The kernel is asked, for each block of 2 MiB, whether anything but page tables
//! refers to a page ([`unshared`]). If so, the pages stay where they are.
//!
//! In: the pages are set aside, at addresses that no other code knows; if nothing refers to them,
//! they are copied into the segment, which is mapped at the old addresses then. Back: if nothing
//! refers to the pages of the segment, new memory is mapped at the addresses, and filled from the
//! segment. The kernel joins the new memory with the mappings around it. Pages that were never
//! touched take no memory, before and afterwards.
//!
//! In the middle of a step the old addresses have no page, and read as zero. So until its end there
//! are system calls and the stack of this thread only: no signal handler, no lock, no allocation,
//! no memory of the heap, and no function that another library intercepts. Caches of registered
//! memory, which intercept calls of the C library, learn of a move by such a call on the range,
//! before it: the call changes nothing, but they release what they hold.
//!
//! [`unshared`]: super::unshared

use super::memory_nodes::{self, NodePolicy, PageNodes};
use super::move_lock::StepLock;
use super::smaps::KeptFlags;
use super::unshared::{self, Addresses, BLOCK};
use crate::data_runs::DataRuns;
use crate::error::{Error, Result};
use crate::kept_file::KeptFile;
use crate::number::Number;
use crate::{last_error, page_bytes};
use core::ptr;
use std::os::fd::AsRawFd;

/// Pages of a step in: one less than a block has, see [`Addresses::take`].
const STEP_PAGES: usize = 511;
/// Rights of all pages that move.
const RIGHTS: i32 = libc::PROT_READ | libc::PROT_WRITE;
/// Entries of /proc/self/pagemap that are in memory or in swap space.
const THERE: u64 = 3 << 62;
/// Entries of pages that the program has made guards (MADV_GUARD_INSTALL), which a new mapping
/// would lose. Set since Linux 6.15.
const GUARD: u64 = 1 << 58;

/// A range of addresses, whole pages, and the part of a segment with its pages.
#[derive(Clone, Copy)]
pub struct PageMove<'a> {
    /// /proc/self/pagemap
    pub pagemap: &'a KeptFile,
    /// the first address
    pub address: u64,
    /// the bytes
    pub bytes: u64,
    /// the part of the segment
    pub room: Room,
    /// the flags that a new mapping gets
    pub kept_flags: KeptFlags,
}

/// A move that has ended too early.
#[derive(Debug)]
pub struct Halted {
    /// the reason
    pub error: Error,
    /// address and bytes of what lies in the segment now, to be moved back later
    pub left: (u64, u64),
}

/// Pages of a step: a bit for each.
#[derive(Default)]
struct PageSet([u64; 8]);

impl PageSet {
    /// Returns the pages from an address on that have memory.
    fn present(pagemap: &KeptFile, address: u64, bytes: u64) -> Result<PageSet> {
        let (mut found, pages) = (PageSet::default(), bytes / page_bytes());
        for (word, first) in found.0.iter_mut().zip((0..pages).step_by(64)) {
            let mut entries = [0_u64; 64];
            let count = (pages - first).min(64).to_usize();
            read_entries(pagemap, address + first * page_bytes(), &mut entries[..count])?;
            if entries.iter().any(|entry| entry & (THERE | GUARD) == GUARD) {
                return Err(Error::System { call: "move of a guard", errno: libc::EPERM });
            }
            let there = |(entry, bit): (&u64, u32)| u64::from(entry & THERE != 0) << bit;
            *word = entries.iter().zip(0..).map(there).fold(0, core::ops::BitOr::bitor);
        }
        Ok(found)
    }

    fn has(&self, page: u64) -> bool {
        self.0.get((page / 64).to_usize()).is_some_and(|word| word >> (page % 64) & 1 != 0)
    }

    fn add(&mut self, first: u64, end: u64) {
        (first..end).for_each(|page| self.0[(page / 64).to_usize()] |= 1 << (page % 64));
    }

    fn count(&self) -> u64 {
        self.0.iter().map(|word| u64::from(word.count_ones())).sum()
    }

    /// Returns its runs: first page and number.
    fn runs(&self) -> impl Iterator<Item = (u64, u64)> {
        let mut at = 0;
        core::iter::from_fn(move || {
            let first = (at..BLOCK / page_bytes()).find(|page| self.has(*page))?;
            at = first;
            while self.has(at) {
                at += 1;
            }
            Some((first, at - first))
        })
    }
}

/// Makes a system call whose result is a number of bytes until all of them are done.
fn all_bytes(
    bytes: u64,
    name: &'static str,
    mut call: impl FnMut(u64, usize) -> libc::c_long,
) -> Result<()> {
    let mut done = 0;
    while done < bytes {
        match u64::try_from(call(done, (bytes - done).to_usize())) {
            Ok(0) => return Err(Error::System { call: name, errno: libc::EIO }),
            Ok(now) => done += now,
            Err(_) => return Err(last_error(name)),
        }
    }
    Ok(())
}

impl<'a> PageMove<'a> {
    /// Moves the pages into the segment, where they have no memory yet. `areas`: where the areas of
    /// memory in the range end, the last one with it. The error EAGAIN of `madvise MADV_COLLAPSE`:
    /// something refers to a page.
    ///
    /// # Safety
    /// The range is private anonymous memory that may be read and written. Until this returns no
    /// other thread, system call or process uses it, and no code maps or unmaps anything there. No
    /// other code uses the part of the segment. The active part of the stack and the thread-local
    /// variables of this thread lie elsewhere.
    pub unsafe fn move_in(&self, areas: &[u64]) -> core::result::Result<(), Halted> {
        memory_nodes::are_several(); // allocates, so not within a step
        let mut done = 0;
        let Err(error) = self.steps_in(areas, &mut done) else { return Ok(()) };
        // SAFETY: what was moved just now.
        let left = match unsafe { self.part(0, done).move_back() } {
            Ok(()) => (self.address, 0),
            Err(halted) => halted.left,
        };
        Err(Halted { error, left })
    }

    /// Makes all steps. `done`: the bytes that have moved.
    fn steps_in(&self, areas: &[u64], done: &mut u64) -> Result<()> {
        let descriptor = self.room.descriptor()?;
        for end in areas {
            let end = end - self.address;
            let area = self.part(*done, end - *done);
            area.notify_caches_of_private();
            while *done < end {
                let step = self.part(*done, (STEP_PAGES.to_u64() * page_bytes()).min(end - *done));
                step.step_in(descriptor)?;
                *done += step.bytes;
            }
        }
        Ok(())
    }

    /// A part of it.
    fn part(&self, from: u64, bytes: u64) -> PageMove<'a> {
        PageMove { address: self.address + from, bytes, room: self.room.behind(from), ..*self }
    }

    /// Moves the pages of a step.
    fn step_in(&self, descriptor: i32) -> Result<()> {
        let there = PageSet::present(self.pagemap, self.address, self.bytes)?;
        // A child of fork(2) shares pages until one of the two stores to them; others are in swap
        // space.
        there.runs().for_each(|(first, count)| {
            populate(self.address + first * page_bytes(), count * page_bytes());
        });
        let nodes = PageNodes::of(self.address, self.bytes);
        let aside = Addresses::of_block(libc::PROT_NONE)?;
        let _lock = StepLock::take();
        if there.count() > 0 {
            aside.take(self.address, self.bytes)?;
            let copied = unshared::check(aside.block())
                .and_then(|()| self.copy(false, descriptor, aside.block(), &there, &nodes));
            if let Err(error) = copied.and_then(|()| self.lay(descriptor)) {
                aside.bring_back(self.address, self.bytes);
                self.room.punch(self.bytes);
                return Err(error);
            }
        } else {
            self.lay(descriptor)?;
        }
        there.runs().for_each(|(first, count)| {
            populate(self.address + first * page_bytes(), count * page_bytes());
        });
        Ok(())
    }

    /// Copies the pages of a step that have memory from an address into the segment, or back into
    /// new memory there. A copy by the kernel: it takes the pages of the segment without clearing
    /// them first, and no tool checks the bytes for objects of the program.
    fn copy(
        &self,
        is_back: bool,
        descriptor: i32,
        address: u64,
        there: &PageSet,
        nodes: &PageNodes,
    ) -> Result<()> {
        let (number, name) =
            if is_back { (libc::SYS_pread64, "pread") } else { (libc::SYS_pwrite64, "pwrite") };
        let copy = |first: u64, count: u64| {
            let (at, bytes) = (address + first * page_bytes(), count * page_bytes());
            let offset = self.room.offset + first * page_bytes();
            if is_back {
                populate(at, bytes);
            }
            // SAFETY: memory that the caller of the move has vouched for.
            all_bytes(bytes, name, |done, bytes| unsafe {
                libc::syscall(number, descriptor, at + done, bytes, offset + done)
            })
        };
        there.runs().try_for_each(|(first, count)| nodes.each(first, count, copy))
    }

    /// Maps the part of the segment at the addresses.
    fn lay(&self, descriptor: i32) -> Result<()> {
        let flags = libc::MAP_SHARED | libc::MAP_FIXED;
        let policy = memory_nodes::policy_of(self.address);
        self.map_there(flags, descriptor, self.room.offset)?;
        policy.inspect(|policy| policy.bind(self.address, self.bytes));
        Ok(())
    }

    fn map_there(&self, flags: i32, descriptor: i32, offset: u64) -> Result<()> {
        let (at, length) = (self.address, self.bytes.to_usize());
        let flags = if self.kept_flags.no_reserve { flags | libc::MAP_NORESERVE } else { flags };
        // SAFETY: it replaces pages that the caller of the move has vouched for.
        match unsafe {
            libc::syscall(libc::SYS_mmap, at, length, RIGHTS, flags, descriptor, offset)
        } {
            -1 => Err(last_error("mmap")),
            _ => {
                self.advise();
                Ok(())
            }
        }
    }

    /// Gives a new mapping the advice that the program has given the one before.
    fn advise(&self) {
        if self.kept_flags.huge {
            let (at, length) = (self.address, self.bytes.to_usize());
            // SAFETY: it changes no byte.
            unsafe { libc::syscall(libc::SYS_madvise, at, length, libc::MADV_HUGEPAGE) };
        }
    }

    /// Changes nothing about private pages of one area, by a call of the C library that other code
    /// intercepts: mremap(2) in place, of the same length.
    fn notify_caches_of_private(&self) {
        let at = ptr::with_exposed_provenance_mut(self.address.to_usize());
        let length = self.bytes.to_usize();
        // SAFETY: the mapping stays as it is. The call fails where it would span several.
        unsafe { libc::mremap(at, length, length, 0) };
    }

    /// Maps the segment over itself by the C library, for code that intercepts this.
    fn notify_caches(&self, descriptor: i32) {
        let at = ptr::with_exposed_provenance_mut(self.address.to_usize());
        let (length, offset) = (self.bytes.to_usize(), self.room.offset.cast_signed());
        let mut flags = libc::MAP_SHARED | libc::MAP_FIXED;
        if self.kept_flags.no_reserve {
            flags |= libc::MAP_NORESERVE;
        }
        // If this fails, caches keep their registrations of the pages, and the kernel reports it.
        // SAFETY: it replaces pages by themselves.
        unsafe { libc::mmap(at, length, RIGHTS, flags, descriptor, offset) };
        self.advise(); // the pages may have to stay
    }

    /// Moves the pages back: from the segment into private anonymous memory. Their part of the
    /// segment has no memory afterwards. The error EAGAIN of `madvise MADV_COLLAPSE`: something
    /// refers to a page. The blocks of the segment that hold the part belong to no other pages.
    ///
    /// # Safety
    /// The pages of the segment lie at the addresses, and may be read and written. Otherwise as for
    /// `move_in`.
    pub unsafe fn move_back(&self) -> core::result::Result<(), Halted> {
        if self.bytes == 0 {
            return Ok(());
        }
        memory_nodes::are_several(); // as in `move_in`
        let closed = |error| Halted { error, left: (self.address, self.bytes) };
        let descriptor = self.room.descriptor().map_err(closed)?;
        self.notify_caches(descriptor);
        let mut data = DataRuns::of(descriptor);
        let mut done = 0;
        while done < self.bytes {
            let in_block = BLOCK - (self.room.offset + done) % BLOCK;
            let step = self.part(done, in_block.min(self.bytes - done));
            if let Err(error) = step.step_back(descriptor, &mut data) {
                let left = (self.address + done, self.bytes - done);
                return Err(Halted { error, left });
            }
            done += step.bytes;
        }
        Ok(())
    }

    /// Moves the pages of a step back, which lie in one block of the segment.
    fn step_back(&self, descriptor: i32, data: &mut DataRuns) -> Result<()> {
        let (begin, end) = (self.room.offset, self.room.offset + self.bytes);
        let mut there = PageSet::default();
        let mut at = begin;
        // Found ahead: the check gives memory to all pages of the block.
        while let Some((first, stop)) = data.next(at, end)? {
            there.add((first - begin) / page_bytes(), (stop - begin) / page_bytes());
            at = stop;
        }
        PageSet::present(self.pagemap, self.address, self.bytes)?; // fails if there is a guard
        let nodes = PageNodes::of(self.address, self.bytes);
        let policy = memory_nodes::policy_of(self.address);
        let shown = Addresses::of_block(libc::PROT_NONE)?;
        let _lock = StepLock::take();
        if there.count() > 0 {
            shown.show(descriptor, begin - begin % BLOCK)?;
            unshared::check(shown.block())?;
        }
        let private = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_FIXED;
        let filled = self.map_there(private, -1, 0).and_then(|()| {
            policy.inspect(|policy| policy.bind(self.address, self.bytes));
            self.copy(true, descriptor, self.address, &there, &nodes)
        });
        if filled.is_err() {
            self.lay(descriptor)?; // the segment has all bytes
        }
        filled?;
        self.room.punch(self.bytes);
        if policy.is_some() {
            // The segment keeps the policy of a mapping, for whatever comes there next.
            shown.show(descriptor, begin - begin % BLOCK)?;
            NodePolicy::DEFAULT.bind(shown.block(), BLOCK);
        }
        Ok(())
    }
}

/// Reads an entry of /proc/self/pagemap for each page from an address on.
fn read_entries(pagemap: &KeptFile, address: u64, entries: &mut [u64]) -> Result<()> {
    let (pagemap, at) = (pagemap.as_raw_fd(), address / page_bytes() * 8);
    all_bytes(8 * entries.len().to_u64(), "read /proc/self/pagemap", |done, bytes| {
        let place = entries.as_mut_ptr().cast::<u8>().wrapping_add(done.to_usize());
        // SAFETY: room for an entry of each page.
        unsafe { libc::syscall(libc::SYS_pread64, pagemap, place, bytes, at + done) }
    })
}

/// Enters pages into the page table, which is cheaper than a page fault for each. If this fails,
/// page faults do it.
fn populate(address: u64, bytes: u64) {
    let (at, length) = (address, bytes.to_usize());
    // SAFETY: it changes no byte.
    unsafe { libc::syscall(libc::SYS_madvise, at, length, libc::MADV_POPULATE_WRITE) };
}

mod segment_pages;
pub use segment_pages::Room;

#[cfg(test)]
mod tests;
