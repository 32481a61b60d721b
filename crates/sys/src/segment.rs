//! Memory shared by the processes of a node: a memfd, which other processes open through
//! `/proc/PID/fd`, or get from its process where that is refused ([`passing`]), and which all of
//! them map. It leaves no file in any file system.

use super::kept_file::KeptFile;
use super::memory_limits::is_available;
use super::passing;
pub use super::segment_name::Name;
use super::{last_error, map_private, memfd, page_bytes, process, uninterrupted};
use crate::error::{Error, Result};
use crate::number::Number;
use core::ptr::{self, NonNull};
use std::fs::File;
use std::os::fd::AsRawFd;
use std::os::unix::fs::MetadataExt;

/// A file in memory.
pub struct Segment {
    file: KeptFile,
    bytes: u64,
}

/// The size from which on memory is backed in steps, with a check of the node's memory before each
/// step.
const STEP: u64 = 16 << 20;
/// The bytes that one call of fallocate(2) backs.
const CALL: u64 = 1 << 20;

impl Segment {
    /// Creates a segment of `bytes` zero bytes, none of them backed by memory yet. Seals forbid all
    /// processes to change its length or its seals: a process that has it mapped would end by a
    /// signal.
    pub fn create(bytes: u64) -> Result<Segment> {
        if process::limit(libc::RLIMIT_FSIZE).is_some_and(|most| bytes > most) {
            // Trying would end the process (SIGXFSZ).
            return Err(Error::System { call: "ftruncate", errno: libc::EFBIG });
        }
        let file = memfd::create(c"fompi")?;
        file.set_len(bytes).map_err(|_| Error::NoMemory { bytes })?;
        let seals = libc::F_SEAL_SHRINK | libc::F_SEAL_GROW | libc::F_SEAL_SEAL;
        // SAFETY: a plain system call on a descriptor that was just made.
        if unsafe { libc::fcntl(file.as_raw_fd(), libc::F_ADD_SEALS, seals) } != 0 {
            return Err(last_error("fcntl F_ADD_SEALS"));
        }
        Segment::of(file, bytes)
    }

    fn of(file: File, bytes: u64) -> Result<Segment> {
        Ok(Segment { file: KeptFile::new(file).map_err(|_| last_error("fstat"))?, bytes })
    }

    /// Returns the name by which other processes find it.
    pub fn name(&self) -> Name {
        let (pid, fd) = (process::id(), self.file.as_raw_fd());
        let ((device, inode), bytes) = (self.file.identity(), self.bytes);
        Name { pid, fd, device, inode, bytes, passer: passing::own_number() }
    }

    /// Whether its descriptor is still open, and still this file's.
    pub fn is_open(&self) -> bool {
        self.file.is_open()
    }

    /// Returns how many bytes are allocated, in memory or in swap space; `None` if its descriptor
    /// is not open any more.
    pub fn backed_bytes(&self) -> Option<u64> {
        let status = self.file.metadata().ok().filter(|_| self.is_open())?;
        Some(512 * status.blocks()) // the unit of stat(2)
    }

    /// Whether any of `bytes` bytes from `first` is allocated, in memory or in swap space; `None`
    /// if its descriptor is not open any more.
    pub fn has_data(&self, first: u64, bytes: u64) -> Option<bool> {
        if !self.is_open() {
            return None;
        }
        let (fd, from) = (self.file.as_raw_fd(), first.cast_signed());
        // SAFETY: a plain system call on a descriptor that is ours; nothing uses its position.
        let found = unsafe { libc::lseek(fd, from, libc::SEEK_DATA) };
        // ENXIO: there are no data up to the end of the file.
        let none = found < 0 && std::io::Error::last_os_error().raw_os_error() == Some(libc::ENXIO);
        let is_after = found >= 0 && found.cast_unsigned() >= first + bytes;
        (found >= 0 || none).then_some(!none && !is_after)
    }

    /// Opens a segment of another process (or of this one). Fails if there is no such process here,
    /// if its files may not be read and it passes none, or if the descriptor is another file's.
    pub fn open(name: &Name) -> Result<Segment> {
        let file = Segment::see(name).or_else(|error| match error {
            error if error.is_short_of_descriptors() => Err(error),
            error => passing::file(name).map_err(|later| match later {
                later if later.is_short_of_descriptors() => later,
                _ => error,
            }),
        })?;
        Segment::of(file, name.bytes)
    }

    /// Opens a file by /proc.
    fn see(name: &Name) -> Result<File> {
        let refused = || Error::System { call: "open /proc/PID/fd", errno: libc::ENOENT };
        let path = format!("/proc/{}/fd/{}", name.pid, name.fd);
        let status = std::fs::metadata(&path).map_err(|_| last_error("stat /proc/PID/fd"))?;
        let found = (status.dev(), status.ino(), status.len());
        if found != (name.device, name.inode, name.bytes) {
            return Err(refused());
        }
        let file = File::options()
            .read(true)
            .write(true)
            .open(&path)
            .map_err(|_| last_error("open /proc/PID/fd"))?;
        let status = file.metadata().map_err(|_| last_error("fstat"))?;
        let same = (status.dev(), status.ino(), status.len()) == found;
        if same { Ok(file) } else { Err(refused()) }
    }

    /// Backs `bytes` bytes from `first`, whole pages, with memory now, near the calling core, so
    /// that touching them later cannot fail. Works in steps, because other processes may take
    /// memory meanwhile, and the system would rather end a process than refuse. A request that is
    /// too large from the beginning takes no memory. `map`: the segment as it is mapped here.
    pub fn back(&self, map: &Mapping, first: u64, bytes: u64) -> Result<()> {
        self.in_steps(bytes, |done, step| {
            match map.advise(libc::MADV_POPULATE_WRITE, first + done, step) {
                Err(Error::System { errno: libc::EINVAL, .. }) if self.is_open() => {
                    self.reserve(first + done, step)
                }
                other => other,
            }
        })
    }

    /// Backs bytes without a mapping. If a signal comes meanwhile, kernels give all memory back
    /// that the call has taken: so a call takes little, and half as much after each signal.
    pub fn reserve(&self, first: u64, bytes: u64) -> Result<()> {
        in_calls(first, bytes, |at, bytes| self.allocate(0, at, bytes))
    }

    /// Calls `work` for steps of `bytes` bytes, with the bytes that are done and the bytes of the
    /// next step. Refuses memory that the node does not have.
    fn in_steps(&self, bytes: u64, work: impl Fn(u64, u64) -> Result<()>) -> Result<()> {
        let mut done = 0;
        while done < bytes {
            let step = STEP.min(bytes - done);
            let asked = if done == 0 { bytes } else { step };
            if bytes >= STEP && !is_available(asked) {
                return Err(Error::NoMemory { bytes });
            }
            work(done, step).map_err(|_| Error::NoMemory { bytes })?;
            done += step;
        }
        Ok(())
    }

    /// Gives the memory of whole pages back to the system. They read as zero from now on, in every
    /// mapping, until they are written again. `map`: the segment as it is mapped here.
    pub fn give_back(&self, map: &Mapping, first: u64, bytes: u64) -> Result<()> {
        let given = map.advise(libc::MADV_REMOVE, first, bytes);
        // If the program has locked all of its memory (mlockall), only the file can do it.
        if given.is_err() && self.is_open() {
            let mode = libc::FALLOC_FL_PUNCH_HOLE | libc::FALLOC_FL_KEEP_SIZE;
            return in_calls(first, bytes, |at, bytes| self.allocate(mode, at, bytes));
        }
        given
    }

    fn allocate(&self, mode: i32, first: u64, bytes: u64) -> Result<()> {
        let fd = self.file.as_raw_fd();
        // SAFETY: a plain system call on a descriptor that is ours.
        match unsafe { libc::fallocate(fd, mode, first.cast_signed(), bytes.cast_signed()) } {
            0 => Ok(()),
            _ => Err(last_error("fallocate")),
        }
    }

    /// Maps the whole segment.
    pub fn map(&self) -> Result<Mapping> {
        let (length, fd) = (self.bytes.to_usize(), self.file.as_raw_fd());
        if length == 0 {
            return Ok(Mapping { base: NonNull::dangling(), length });
        }
        let access = libc::PROT_READ | libc::PROT_WRITE;
        // SAFETY: a new mapping at an address of the kernel's choice touches no existing one.
        let base = unsafe { libc::mmap(ptr::null_mut(), length, access, libc::MAP_SHARED, fd, 0) };
        if base == libc::MAP_FAILED {
            return Err(last_error("mmap"));
        }
        let base = NonNull::new(base.cast()).ok_or(Error::NoMemory { bytes: self.bytes })?;
        Ok(Mapping { base, length })
    }

    /// Maps the whole segment, which is whole pages long, at a multiple of `alignment` (a power of
    /// two, at least a page). The system chooses addresses by pages only: so a larger range is
    /// reserved first, the segment is mapped over a part of it, and the rest is released.
    pub fn map_aligned(&self, alignment: usize) -> Result<Mapping> {
        assert!(alignment.is_power_of_two() && alignment.to_u64() >= page_bytes());
        assert!(self.bytes > 0 && self.bytes.is_multiple_of(page_bytes()));
        let (length, fd) = (self.bytes.to_usize(), self.file.as_raw_fd());
        let room = length.checked_add(alignment).ok_or(Error::NoMemory { bytes: self.bytes })?;
        let start = map_private(room.to_u64(), libc::PROT_NONE)?;
        let before = start.addr().next_multiple_of(alignment) - start.addr();
        let base = start.wrapping_add(before);
        let access = libc::PROT_READ | libc::PROT_WRITE;
        let flags = libc::MAP_SHARED | libc::MAP_FIXED;
        // SAFETY: it replaces a part of the mapping that was just made.
        let mapped = unsafe { libc::mmap(base.cast(), length, access, flags, fd, 0) };
        if mapped == libc::MAP_FAILED {
            let error = last_error("mmap");
            // SAFETY: the mapping that was just made, which no other code knows.
            unsafe { libc::munmap(start.cast(), room) };
            return Err(error);
        }
        let end = base.wrapping_add(length);
        for (rest, bytes) in [(start, before), (end, alignment - before)] {
            if bytes > 0 {
                // SAFETY: a part of the mapping that was just made, outside of the segment.
                unsafe { libc::munmap(rest.cast(), bytes) };
            }
        }
        let base = NonNull::new(base).ok_or(Error::NoMemory { bytes: self.bytes })?;
        Ok(Mapping { base, length })
    }
}

/// Calls `allocate` for parts of a range, smaller ones after each signal.
fn in_calls(
    first: u64,
    bytes: u64,
    mut allocate: impl FnMut(u64, u64) -> Result<()>,
) -> Result<()> {
    let (mut at, end, mut call) = (first, first + bytes, CALL);
    while at < end {
        let now = call.min(end - at);
        match allocate(at, now) {
            Ok(()) => (at, call) = (at + now, (2 * call).min(CALL)),
            Err(Error::System { errno: libc::EINTR, .. }) => call = (call / 2).max(page_bytes()),
            Err(error) => return Err(error),
        }
    }
    Ok(())
}

/// Memory in this process's address space, until it is dropped: a segment, or private memory.
pub struct Mapping {
    base: NonNull<u8>,
    length: usize,
}

// SAFETY: a mapping is an address range; its users read and write the bytes through raw pointers
// and atomics only.
unsafe impl Send for Mapping {}
// SAFETY: as for `Send`.
unsafe impl Sync for Mapping {}

impl Mapping {
    /// Maps private memory: zero bytes that cost when they are touched.
    pub fn private(bytes: usize) -> Result<Mapping> {
        let length = bytes.max(1);
        let base = map_private(length.to_u64(), libc::PROT_READ | libc::PROT_WRITE)?;
        let base = NonNull::new(base).ok_or(Error::NoMemory { bytes: length.to_u64() })?;
        Ok(Mapping { base, length })
    }

    /// Reserves whole pages at this address, without memory. `None` if some of the range is in use,
    /// or is not for user mode.
    pub fn reserve_at(address: usize, length: usize) -> Option<Mapping> {
        let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_NORESERVE;
        let flags = flags | libc::MAP_FIXED_NOREPLACE;
        let at = ptr::with_exposed_provenance_mut(address);
        // SAFETY: with this flag the new mapping replaces no existing one.
        let found = unsafe { libc::mmap(at, length, libc::PROT_NONE, flags, -1, 0) };
        if found == libc::MAP_FAILED {
            return None;
        }
        let base = NonNull::new(found.cast())?;
        let reserved = Mapping { base, length };
        // Linux before 4.17 takes the address as a hint.
        (found.addr() == address).then_some(reserved)
    }

    /// Turns a range of [`Mapping::reserve_at`] into a second mapping of as many bytes of shared
    /// memory.
    ///
    /// # Safety
    /// The bytes at `shared` are whole pages of a mapping of a [`Segment`].
    pub unsafe fn mirror(&mut self, shared: *mut u8) -> Result<()> {
        let flags = libc::MREMAP_MAYMOVE | libc::MREMAP_FIXED;
        let (to, length) = (self.base.as_ptr(), self.length);
        // SAFETY: an old size of 0 copies a shared mapping and leaves it in place (mremap(2)); what
        // it replaces is this mapping, which has no memory. By number: UCX's own mremap drops the
        // new address.
        let at = unsafe { libc::syscall(libc::SYS_mremap, shared, 0_usize, length, flags, to) };
        if at < 0 { Err(last_error("mremap")) } else { Ok(()) }
    }

    /// Returns its address, which is aligned to a page.
    pub fn base(&self) -> *mut u8 {
        self.base.as_ptr()
    }

    /// Its length in bytes.
    pub fn bytes(&self) -> usize {
        self.length
    }

    fn advise(&self, advice: i32, first: u64, bytes: u64) -> Result<()> {
        assert!(first.checked_add(bytes).is_some_and(|end| end <= self.length.to_u64()));
        let at = self.base().wrapping_add(first.to_usize()).cast();
        // SAFETY: inside of this mapping; what the pages hold is up to the caller.
        match uninterrupted(|| unsafe { libc::madvise(at, bytes.to_usize(), advice) }) {
            0 => Ok(()),
            _ => Err(last_error("madvise")),
        }
    }
}

impl Drop for Mapping {
    fn drop(&mut self) {
        if self.length > 0 {
            // SAFETY: mapped by `map` with this length, and no pointer outlives the owner.
            unsafe { libc::munmap(self.base.as_ptr().cast(), self.length) };
        }
    }
}

#[cfg(test)]
mod tests;
