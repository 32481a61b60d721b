//! Moves of whole pages: from private anonymous memory into a shared segment at the same addresses,
//! and back. Both go in steps. A step write-protects its pages, so that threads that store there
//! wait; copies what was ever touched; puts the copy at the same addresses in one call of the
//! kernel; and wakes these threads. So no store is lost, and no page is ever missing. Pages that
//! were never touched take no memory, before and afterwards.
//!
//! While pages are protected, the moving thread must not store to one of them: it would wait for
//! itself. So between `protect` and `wake` there are system calls and the stack of this thread
//! only: no signal handler, no lock, no allocation, and no function that another library
//! intercepts. Caches of registered memory, which intercept mmap(2) of the C library, learn of the
//! new pages by a call of it on all of the range: after a move in, before a move back. It replaces
//! the pages by themselves.

use super::kept_file::KeptFile;
use super::memory_nodes::{self, NodePolicy, PageNodes};
use super::set_aside::Aside;
use super::step_lock::StepLock;
use super::userfault::{Userfault, WatchKind};
use crate::error::{Error, Result};
use crate::number::Number;
use crate::sys::{last_error, page_bytes};
use core::ptr;
use data_runs::DataRuns;

/// Pages of a step: as many as a mask has bits.
const STEP_PAGES: usize = 64;
/// Rights of all pages that move.
const RIGHTS: i32 = libc::PROT_READ | libc::PROT_WRITE;
/// Bytes of a huge page.
pub const HUGE: u64 = 2 << 20;
/// Entries of /proc/self/pagemap that are in memory or in swap space.
const THERE: u64 = 3 << 62;
/// MADV_COLLAPSE (6.1)
const COLLAPSE: i32 = 25;

/// Returns the bytes of a step.
fn step_bytes() -> u64 {
    STEP_PAGES.to_u64() * page_bytes()
}

/// What a move needs of its process.
#[derive(Clone, Copy)]
pub struct Tools<'a> {
    /// a userfaultfd
    pub userfault: &'a Userfault,
    /// /proc/self/pagemap
    pub pagemap: &'a KeptFile,
}

/// A range of addresses, whole pages, and the part of a segment with its pages.
#[derive(Clone, Copy)]
pub struct PageMove<'a> {
    /// what it is done with
    pub tools: Tools<'a>,
    /// the first address
    pub address: u64,
    /// the bytes
    pub bytes: u64,
    /// the part of the segment
    pub room: Room,
    /// whether a move in fails if a device or io_uring uses a page. To be asked for only if the
    /// userfaultfd can move pages.
    pub finds_users: bool,
}

/// A move that has ended too early.
#[derive(Debug)]
pub struct Halted {
    /// the reason
    pub error: Error,
    /// address and bytes of what lies in the segment now, to be moved back later
    pub left: (u64, u64),
}

/// The runs of set bits of a mask: first and number.
fn runs(mask: u64) -> impl Iterator<Item = (u64, u64)> {
    let mut rest = mask;
    core::iter::from_fn(move || {
        let first = rest.trailing_zeros();
        let length = (rest.checked_shr(first)?).trailing_ones();
        let run = u64::MAX.checked_shr(64 - length).unwrap_or(0) << first;
        rest &= !run;
        Some((first.into(), length.into()))
    })
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

/// A step that was moved, and which of its pages had memory.
struct Touched {
    address: u64,
    bytes: u64,
    mask: u64,
}

impl Touched {
    fn end(&self) -> u64 {
        self.address + self.bytes
    }

    /// Enters the pages that had memory into the page table.
    fn populate(&self) {
        for (first, count) in runs(self.mask) {
            populate(self.address + first * page_bytes(), count * page_bytes());
        }
    }
}

impl PageMove<'_> {
    /// Moves the pages into the segment, where they have no memory yet. `areas`: where the areas of
    /// memory in the range end, the last one with it. `permit` is asked before each step, with its
    /// address and bytes; if it says no, the error is EAGAIN. Returns how many pages had memory.
    ///
    /// # Safety
    /// The range is private anonymous memory that may be read and written. No other code maps or
    /// unmaps anything there meanwhile, and no other process copies to it. No other code uses the
    /// part of the segment. The stack and the thread-local variables of this thread lie elsewhere.
    pub unsafe fn move_in(
        &self,
        areas: &[u64],
        permit: &mut dyn FnMut(u64, u64) -> bool,
    ) -> core::result::Result<u64, Halted> {
        memory_nodes::are_several(); // allocates, so not between `protect` and `wake`
        let Some(descriptor) = self.room.descriptor else {
            let error = Error::System { call: "mmap", errno: libc::EBADF };
            return Err(Halted { error, left: (self.address, 0) });
        };
        let mut touched =
            Vec::with_capacity((self.bytes / step_bytes()).to_usize() + 1 + areas.len());
        let mut done = 0;
        let aside = if self.finds_users { self.aside().map(Some) } else { Ok(None) };
        let moved = aside.and_then(|aside| {
            self.watch(areas)?;
            let moved = self.steps_in(areas, descriptor, aside.as_ref(), permit, &mut touched);
            done = touched.last().map_or(0, |step| step.end() - self.address);
            if done < self.bytes {
                let _ = self.tools.userfault.unregister(self.address + done, self.bytes - done);
            }
            moved.and_then(|()| self.notify_caches(descriptor))
        });
        let Err(error) = moved else {
            touched.iter().for_each(Touched::populate);
            return Ok(touched.iter().map(|step| u64::from(step.mask.count_ones())).sum());
        };
        // SAFETY: what was moved just now.
        let left = match unsafe { self.part(0, done).move_back() } {
            Ok(_) => (self.address, 0),
            Err(halted) => halted.left,
        };
        Err(Halted { error, left })
    }

    /// Makes all steps, and notes those that are done.
    fn steps_in(
        &self,
        areas: &[u64],
        descriptor: i32,
        aside: Option<&Aside<'_>>,
        permit: &mut dyn FnMut(u64, u64) -> bool,
        touched: &mut Vec<Touched>,
    ) -> Result<()> {
        let mut done = 0;
        for end in areas {
            let end = end - self.address;
            while done < end {
                let step = self.part(done, step_bytes().min(end - done));
                if !permit(step.address, step.bytes) {
                    return Err(Error::System { call: "a move", errno: libc::EAGAIN });
                }
                let mask = match aside {
                    Some(aside) => step.step_in_aside(descriptor, aside)?,
                    None => step.step_in(descriptor)?,
                };
                touched.push(Touched { address: step.address, bytes: step.bytes, mask });
                done += step.bytes;
            }
        }
        Ok(())
    }

    /// A part of it.
    fn part(&self, from: u64, bytes: u64) -> PageMove<'_> {
        PageMove { address: self.address + from, bytes, room: self.room.behind(from), ..*self }
    }

    /// Watches the range, each area by itself: Linux 6.1 protects no range over several ones.
    fn watch(&self, areas: &[u64]) -> Result<()> {
        let mut from = self.address;
        for end in areas {
            let watched = self.tools.userfault.register(WatchKind::Private, from, end - from);
            if watched.is_err() {
                if from > self.address {
                    let _ = self.tools.userfault.unregister(self.address, from - self.address);
                }
                return watched;
            }
            from = *end;
        }
        Ok(())
    }

    /// Moves the pages of a step. Returns which of them had memory.
    fn step_in(&self, descriptor: i32) -> Result<u64> {
        let _lock = StepLock::take();
        self.tools.userfault.protect(self.address, self.bytes)?;
        let mask = self
            .copy_in(descriptor, self.address)
            .and_then(|mask| self.lay(descriptor).map(|()| mask));
        let woken = match mask {
            Ok(_) => self.tools.userfault.wake(self.address, self.bytes),
            Err(_) => self.tools.userfault.release(self.address, self.bytes),
        };
        mask.and_then(|mask| woken.map(|()| mask))
    }

    /// Returns addresses for pages that are set aside, after it has made all pages of the range
    /// this process's own: a child of fork(2) shares them until one of the two stores to them.
    fn aside(&self) -> Result<Aside<'_>> {
        for done in (0..self.bytes).step_by(step_bytes().to_usize()) {
            let (address, bytes) = (self.address + done, step_bytes().min(self.bytes - done));
            Touched { address, bytes, mask: self.mask(address, bytes)? }.populate();
        }
        Aside::new(self.tools.userfault, fresh(step_bytes())?, step_bytes())
    }

    /// The same as `step_in`, but the pages lie aside while they are copied.
    fn step_in_aside(&self, descriptor: i32, aside: &Aside<'_>) -> Result<u64> {
        let _lock = StepLock::take();
        let moved = aside.take(self.address, self.bytes).and_then(|()| {
            let copied = self.copy_in(descriptor, aside.address());
            let laid = copied.and_then(|mask| self.lay(descriptor).map(|()| mask));
            if laid.is_err() {
                aside.bring_back(self.address, self.bytes);
            }
            laid
        });
        let woken = self.tools.userfault.wake(self.address, self.bytes);
        aside.clear();
        moved.and_then(|mask| woken.map(|()| mask))
    }

    /// Returns which pages of a step have memory.
    fn mask(&self, address: u64, bytes: u64) -> Result<u64> {
        let mut entries = [0_u64; STEP_PAGES];
        let pages = bytes / page_bytes();
        read_entries(self.tools.pagemap, address, &mut entries[..pages.to_usize()])?;
        let there = |page: u64| u64::from(entries[page.to_usize()] & THERE != 0) << page;
        Ok((0..pages).fold(0, |mask, page| mask | there(page)))
    }

    /// Copies the pages of a step that have memory into the segment. They lie at `address` now.
    fn copy_in(&self, descriptor: i32, address: u64) -> Result<u64> {
        let mask = self.mask(address, self.bytes)?;
        let nodes = PageNodes::of(address, self.bytes);
        let copy = |first: u64, count: u64| {
            let (from, to) =
                (address + first * page_bytes(), self.room.offset + first * page_bytes());
            // A copy by the kernel: it takes the pages of the segment without clearing them first,
            // and no tool checks the bytes for objects of the program.
            // SAFETY: reads memory of the range.
            all_bytes(count * page_bytes(), "pwrite", |done, bytes| unsafe {
                libc::syscall(libc::SYS_pwrite64, descriptor, from + done, bytes, to + done)
            })
        };
        runs(mask).try_for_each(|(first, count)| nodes.each(first, count, copy)).map(|()| mask)
    }

    /// Maps the part of the segment at the addresses.
    fn lay(&self, descriptor: i32) -> Result<()> {
        let (at, length, offset) = (self.address, self.bytes.to_usize(), self.room.offset);
        let flags = libc::MAP_SHARED | libc::MAP_FIXED;
        let policy = memory_nodes::policy_of(at);
        // SAFETY: it replaces pages that the caller of the move has vouched for.
        match unsafe {
            libc::syscall(libc::SYS_mmap, at, length, RIGHTS, flags, descriptor, offset)
        } {
            -1 => Err(last_error("mmap")),
            _ => {
                policy.inspect(|policy| policy.bind(at, self.bytes));
                Ok(())
            }
        }
    }

    /// Maps the segment over itself by the C library, for code that intercepts this.
    fn notify_caches(&self, descriptor: i32) -> Result<()> {
        let at = ptr::with_exposed_provenance_mut(self.address.to_usize());
        let (length, offset) = (self.bytes.to_usize(), self.room.offset.cast_signed());
        let flags = libc::MAP_SHARED | libc::MAP_FIXED;
        // SAFETY: it replaces pages by themselves.
        let mapped = unsafe { libc::mmap(at, length, RIGHTS, flags, descriptor, offset) };
        if mapped == libc::MAP_FAILED { Err(last_error("mmap")) } else { Ok(()) }
    }

    /// Moves the pages back: from the segment into private anonymous memory. Their part of the
    /// segment has no memory afterwards. Returns how many pages had memory.
    ///
    /// # Safety
    /// The pages of the segment lie at the addresses. No other code maps or unmaps anything there
    /// meanwhile, and no other process accesses the part of the segment. The stack and the
    /// thread-local variables of this thread lie elsewhere.
    pub unsafe fn move_back(&self) -> core::result::Result<u64, Halted> {
        if self.bytes == 0 {
            return Ok(0);
        }
        memory_nodes::are_several(); // as in `move_in`
        let halted = |error, done| {
            let left = (self.address + done, self.bytes - done);
            Err(Halted { error, left })
        };
        // If this fails, caches may keep what they know of the pages; the move counts more.
        let _ = self.room.descriptor.map(|descriptor| self.notify_caches(descriptor));
        let fresh = match fresh(self.bytes) {
            Ok(fresh) => fresh,
            Err(error) => return halted(error, 0),
        };
        let (mut done, mut copied) = (0, 0);
        let mut data = DataRuns::of(self.room.descriptor.unwrap_or(-1));
        let watched = self.tools.userfault.register(WatchKind::Segment, self.address, self.bytes);
        let is_watched = watched.is_ok();
        let moved = watched.and_then(|()| {
            while done < self.bytes {
                let step = self.part(done, step_bytes().min(self.bytes - done));
                copied += step.step_back(fresh + done, &mut data)?;
                step.room.punch(step.bytes);
                done += step.bytes;
            }
            Ok(())
        });
        let Err(error) = moved else { return Ok(copied.div_ceil(page_bytes())) };
        let (rest, length) = (fresh + done, (self.bytes - done).to_usize());
        if is_watched {
            let _ = self.tools.userfault.unregister(self.address + done, self.bytes - done);
        }
        // SAFETY: the part of the new mapping that has not moved, which no other code knows.
        unsafe { libc::syscall(libc::SYS_munmap, rest, length) };
        halted(error, done)
    }

    /// Moves the pages of a step back, over new memory at the address `fresh`. Returns the bytes
    /// that had memory.
    fn step_back(&self, fresh: u64, data: &mut DataRuns) -> Result<u64> {
        let _lock = StepLock::take();
        self.tools.userfault.protect(self.address, self.bytes)?;
        let moved = self.copy_back(fresh, data).and_then(|copied| {
            if let Some(policy) = memory_nodes::policy_of(self.address) {
                policy.bind(fresh, self.bytes);
                NodePolicy::DEFAULT.bind(self.address, self.bytes); // the segment's, for later use
            }
            let (bytes, how) = (self.bytes, libc::MREMAP_MAYMOVE | libc::MREMAP_FIXED);
            // Bare, because libraries that intercept mremap (UCX) lose its fifth argument.
            // SAFETY: new memory replaces pages that the caller has vouched for.
            match unsafe { libc::syscall(libc::SYS_mremap, fresh, bytes, bytes, how, self.address) }
            {
                -1 => Err(last_error("mremap")),
                _ => Ok(copied),
            }
        });
        if moved.is_err() {
            // Kernels may have unmapped the pages before they fail.
            let _ = self.room.descriptor.map(|descriptor| self.lay(descriptor));
            let _ = self.tools.userfault.release(self.address, self.bytes);
        }
        let woken = self.tools.userfault.wake(self.address, self.bytes);
        moved.and_then(|copied| woken.map(|()| copied))
    }

    /// Copies all bytes of a step that have memory to the address `fresh`, which is zero. Returns
    /// their number.
    fn copy_back(&self, fresh: u64, data: &mut DataRuns) -> Result<u64> {
        let Some(descriptor) = self.room.descriptor else {
            let from = self.room.mapped.addr().to_u64();
            let copied = all_bytes(self.bytes, "process_vm_readv", |done, bytes| {
                let to = [fresh.to_usize() + done.to_usize(), bytes];
                let from = [from.to_usize() + done.to_usize(), bytes];
                // SAFETY: reads the segment, writes to new memory, both as long; two struct iovec.
                unsafe {
                    let own = libc::syscall(libc::SYS_getpid);
                    let (to, from) = (to.as_ptr(), from.as_ptr());
                    libc::syscall(
                        libc::SYS_process_vm_readv,
                        own,
                        to,
                        1_usize,
                        from,
                        1_usize,
                        0_usize,
                    )
                }
            });
            return copied.map(|()| self.bytes);
        };
        let nodes = PageNodes::of(self.address, self.bytes);
        let copy = |first: u64, count: u64| {
            let (to, from) =
                (fresh + first * page_bytes(), self.room.offset + first * page_bytes());
            populate(to, count * page_bytes());
            // SAFETY: writes to new memory.
            all_bytes(count * page_bytes(), "pread", |done, bytes| unsafe {
                libc::syscall(libc::SYS_pread64, descriptor, to + done, bytes, from + done)
            })
        };
        let (begin, mut done, mut copied) = (self.room.offset, 0, 0);
        while let Some((first, end)) = data.next(begin + done, begin + self.bytes)? {
            nodes.each((first - begin) / page_bytes(), (end - first) / page_bytes(), copy)?;
            (done, copied) = (end - begin, copied + (end - first));
        }
        Ok(copied)
    }
}

/// Reads an entry of /proc/self/pagemap for each page from an address on.
fn read_entries(pagemap: &KeptFile, address: u64, entries: &mut [u64]) -> Result<()> {
    let (pagemap, at) = (pagemap.descriptor(), address / page_bytes() * 8);
    all_bytes(8 * entries.len().to_u64(), "read /proc/self/pagemap", |done, bytes| {
        let place = entries.as_mut_ptr().cast::<u8>().wrapping_add(done.to_usize());
        // SAFETY: room for an entry of each page.
        unsafe { libc::syscall(libc::SYS_pread64, pagemap, place, bytes, at + done) }
    })
}

/// Returns how many of the pages from an address on were ever touched.
pub fn touched(pagemap: &KeptFile, address: u64, pages: u64) -> Result<u64> {
    let (mut entries, mut touched) = ([0_u64; 512], 0);
    for done in (0..pages).step_by(entries.len()) {
        let entries = &mut entries[..(pages - done).min(512).to_usize()];
        read_entries(pagemap, address + done * page_bytes(), entries)?;
        touched += entries.iter().filter(|entry| **entry & THERE != 0).count().to_u64();
    }
    Ok(touched)
}

/// Enters pages into the page table, which is cheaper than a page fault for each. Where that fails,
/// the page faults come.
fn populate(address: u64, bytes: u64) {
    let (at, length) = (address, bytes.to_usize());
    // SAFETY: it changes no byte.
    unsafe { libc::syscall(libc::SYS_madvise, at, length, libc::MADV_POPULATE_WRITE) };
}

/// Returns the address of new private memory.
fn fresh(bytes: u64) -> Result<u64> {
    let (length, nowhere) = (bytes.to_usize(), ptr::null_mut::<u8>());
    let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS;
    // SAFETY: a new mapping at an address of the kernel's choice touches no existing one.
    let at = unsafe { libc::syscall(libc::SYS_mmap, nowhere, length, RIGHTS, flags, -1, 0_u64) };
    if at == -1 { Err(last_error("mmap")) } else { Ok(at.cast_unsigned()) }
}

/// Makes huge pages of the whole ones in a range, as far as the kernel can (6.1).
pub fn collapse(address: u64, bytes: u64) {
    // SAFETY: it changes no byte.
    unsafe { libc::syscall(libc::SYS_madvise, address, bytes.to_usize(), COLLAPSE) };
}

mod data_runs;
mod room;
pub use room::Room;

#[cfg(test)]
mod tests;
