//! Memory that the processes of a node share: a memfd, opened by the others through
//! `/proc/PID/fd` and mapped by all. Nothing is ever left in a file system.

use super::last_error;
use crate::error::{Error, Result};
use core::ptr::{self, NonNull};
use std::fs::File;
use std::os::fd::{AsRawFd, FromRawFd};
use std::os::unix::fs::MetadataExt;

/// How another process of the node finds a segment, and knows that it found the right one.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(C)]
pub struct Name {
    /// process that has it open
    pub pid: i32,
    /// descriptor there
    pub fd: i32,
    /// device of the file: a different process under the same number would show another one
    pub device: u64,
    /// its inode
    pub inode: u64,
    /// bytes
    pub bytes: u64,
}

impl Name {
    /// As it is sent to others.
    pub fn to_words(&self) -> [u64; 5] {
        [self.pid as u64, self.fd as u64, self.device, self.inode, self.bytes]
    }

    /// As it was sent.
    pub fn from_words(words: &[u64; 5]) -> Name {
        let [pid, fd, device, inode, bytes] = *words;
        Name { pid: pid as i32, fd: fd as i32, device, inode, bytes }
    }
}

/// A file in memory.
pub struct Segment {
    file: File,
    bytes: u64,
}

/// From so many bytes on it is worth asking the node what it has before taking so much more.
const STEP: u64 = 16 << 20;
/// The node is left at least this share of its memory.
const SPARE: u64 = 32;

/// Size of a page of memory in bytes.
pub const PAGE: u64 = 4096;

impl Segment {
    /// A new segment of `bytes` zero bytes, none of them backed by memory yet.
    pub fn create(bytes: u64) -> Result<Segment> {
        if bytes > file_bytes_max() {
            // Trying would end the process (SIGXFSZ).
            return Err(Error::System { call: "ftruncate", errno: libc::EFBIG });
        }
        let flags = libc::MFD_CLOEXEC;
        // SAFETY: a valid name; the result is checked.
        let fd = unsafe { libc::memfd_create(c"fompi".as_ptr(), flags) };
        if fd < 0 {
            return Err(last_error("memfd_create"));
        }
        // SAFETY: `fd` was just made and belongs to nobody else.
        let file = unsafe { File::from_raw_fd(fd) };
        file.set_len(bytes).map_err(|_| Error::NoMemory { bytes })?;
        Ok(Segment { file, bytes })
    }

    /// How others find it.
    pub fn name(&self) -> Result<Name> {
        let status = self.file.metadata().map_err(|_| last_error("fstat"))?;
        let (pid, fd) = (super::process::id(), self.file.as_raw_fd());
        Ok(Name { pid, fd, device: status.dev(), inode: status.ino(), bytes: self.bytes })
    }

    /// Opens a segment of another process (or of this one). Fails if there is no such process here,
    /// if it may not be looked at, or if what is found is another file.
    pub fn open(name: &Name) -> Result<Segment> {
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
        if (status.dev(), status.ino(), status.len()) != found {
            return Err(refused());
        }
        Ok(Segment { file, bytes: name.bytes })
    }

    /// Backs `bytes` bytes from `first` with memory now, near the calling core, so that touching
    /// them later cannot fail. Step by step, because other processes may take memory meanwhile, and
    /// the system would rather end a process than refuse. What is too much from the beginning takes
    /// nothing from the others.
    pub fn reserve(&self, first: u64, bytes: u64) -> Result<()> {
        let mut done = 0;
        while done < bytes {
            let step = STEP.min(bytes - done);
            let asked = if done == 0 { bytes } else { step };
            if bytes >= STEP && !is_available(asked) {
                return Err(Error::NoMemory { bytes });
            }
            self.allocate(0, first + done, step).map_err(|_| Error::NoMemory { bytes })?;
            done += step;
        }
        Ok(())
    }

    /// Gives the memory behind whole pages back to the system; they read as zero from now on, in
    /// every mapping, until they are backed again.
    pub fn give_back(&self, first: u64, bytes: u64) -> Result<()> {
        self.allocate(libc::FALLOC_FL_PUNCH_HOLE | libc::FALLOC_FL_KEEP_SIZE, first, bytes)
    }

    fn allocate(&self, mode: i32, first: u64, bytes: u64) -> Result<()> {
        let fd = self.file.as_raw_fd();
        loop {
            // SAFETY: a plain system call on a descriptor that is ours.
            match unsafe { libc::fallocate(fd, mode, first as i64, bytes as i64) } {
                0 => return Ok(()),
                _ if std::io::Error::last_os_error().raw_os_error() == Some(libc::EINTR) => {}
                _ => return Err(last_error("fallocate")),
            }
        }
    }

    /// Maps the whole segment.
    pub fn map(&self) -> Result<Mapping> {
        let (length, fd) = (self.bytes as usize, self.file.as_raw_fd());
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
    /// two, at least a page). The system chooses addresses by pages: so room for more is taken
    /// first, the segment laid over a part of it, and the rest given back.
    pub fn map_aligned(&self, alignment: usize) -> Result<Mapping> {
        assert!(alignment.is_power_of_two() && alignment as u64 >= PAGE);
        assert!(self.bytes > 0 && self.bytes.is_multiple_of(PAGE));
        let (length, fd) = (self.bytes as usize, self.file.as_raw_fd());
        let room = length.checked_add(alignment).ok_or(Error::NoMemory { bytes: self.bytes })?;
        let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_NORESERVE;
        // SAFETY: a new mapping at an address of the kernel's choice touches no existing one.
        let start = unsafe { libc::mmap(ptr::null_mut(), room, libc::PROT_NONE, flags, -1, 0) };
        if start == libc::MAP_FAILED {
            return Err(last_error("mmap"));
        }
        let start = start.cast::<u8>();
        let before = start.addr().next_multiple_of(alignment) - start.addr();
        let base = start.wrapping_add(before);
        let access = libc::PROT_READ | libc::PROT_WRITE;
        let flags = libc::MAP_SHARED | libc::MAP_FIXED;
        // SAFETY: it replaces a part of the mapping that was just made.
        let mapped = unsafe { libc::mmap(base.cast(), length, access, flags, fd, 0) };
        if mapped == libc::MAP_FAILED {
            let error = last_error("mmap");
            // SAFETY: the mapping that was just made; nobody else knows of it.
            unsafe { libc::munmap(start.cast(), room) };
            return Err(error);
        }
        let end = base.wrapping_add(length);
        for (rest, bytes) in [(start, before), (end, alignment - before)] {
            if bytes > 0 {
                // SAFETY: a part of the mapping that was just made, beside the segment.
                unsafe { libc::munmap(rest.cast(), bytes) };
            }
        }
        let base = NonNull::new(base).ok_or(Error::NoMemory { bytes: self.bytes })?;
        Ok(Mapping { base, length })
    }
}

/// The size that a file of this process may have (RLIMIT_FSIZE).
fn file_bytes_max() -> u64 {
    let mut limit = libc::rlimit { rlim_cur: libc::RLIM_INFINITY, rlim_max: 0 };
    // SAFETY: a plain question with a place for its answer.
    unsafe { libc::getrlimit(libc::RLIMIT_FSIZE, &mut limit) };
    limit.rlim_cur
}

/// Whether the node can give `bytes` bytes without swapping, and keep something for others. Yes if
/// it does not say. Asking costs a few microseconds.
pub fn is_available(bytes: u64) -> bool {
    let text = std::fs::read_to_string("/proc/meminfo").unwrap_or_default();
    let field = |name: &str| {
        let line = text.lines().find_map(|line| line.strip_prefix(name))?;
        Some(line.split_whitespace().next()?.parse::<u64>().ok()? * 1024)
    };
    let (Some(total), Some(available)) = (field("MemTotal:"), field("MemAvailable:")) else {
        return true;
    };
    bytes.saturating_add(total / SPARE) <= available
}

/// A segment in this process's address space, until it is dropped.
pub struct Mapping {
    base: NonNull<u8>,
    length: usize,
}

// SAFETY: a mapping is an address range; what is done with the bytes is up to those who read
// and write them, through raw pointers and atomics only.
unsafe impl Send for Mapping {}
// SAFETY: likewise.
unsafe impl Sync for Mapping {}

impl Mapping {
    /// Where it starts. Aligned to a page.
    pub fn base(&self) -> *mut u8 {
        self.base.as_ptr()
    }

    /// Its length in bytes.
    pub fn bytes(&self) -> usize {
        self.length
    }
}

impl Drop for Mapping {
    fn drop(&mut self) {
        if self.length > 0 {
            // SAFETY: mapped by `map` with this length, and nobody keeps pointers beyond the owner.
            unsafe { libc::munmap(self.base.as_ptr().cast(), self.length) };
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_one_mapping_writes_another_reads() {
        let segment = Segment::create(2 * PAGE).unwrap();
        segment.reserve(0, 2 * PAGE).unwrap();
        let other = Segment::open(&segment.name().unwrap()).unwrap();
        let (here, there) = (segment.map().unwrap(), other.map().unwrap());
        assert_ne!(here.base(), there.base());
        // SAFETY: both mappings are two pages long, and nobody else uses them.
        unsafe {
            here.base().add(5000).write_volatile(7);
            assert_eq!(there.base().add(5000).read_volatile(), 7);
        }
    }

    #[test]
    fn another_file_under_the_same_name_is_refused() {
        let segment = Segment::create(PAGE).unwrap();
        let mut name = segment.name().unwrap();
        name.inode += 1;
        assert!(Segment::open(&name).is_err());
    }

    #[test]
    fn an_aligned_mapping_shows_the_same_bytes() {
        const ALIGNMENT: usize = 2 << 20;
        let segment = Segment::create(3 * PAGE).unwrap();
        let (here, there) = (segment.map_aligned(ALIGNMENT).unwrap(), segment.map().unwrap());
        assert!(here.base().addr().is_multiple_of(ALIGNMENT));
        assert_eq!(here.bytes() as u64, 3 * PAGE);
        // SAFETY: both mappings are three pages long, and nobody else uses them.
        unsafe {
            here.base().add(3 * PAGE as usize - 1).write_volatile(7);
            assert_eq!(there.base().add(3 * PAGE as usize - 1).read_volatile(), 7);
        }
    }

    #[test]
    fn what_is_given_back_is_zero_and_takes_no_memory() {
        let segment = Segment::create(4 * PAGE).unwrap();
        segment.reserve(0, 4 * PAGE).unwrap();
        let here = segment.map().unwrap();
        let backed = || segment.file.metadata().unwrap().blocks() * 512;
        assert_eq!(backed(), 4 * PAGE);
        // SAFETY: the mapping is four pages long, and nobody else uses it.
        unsafe {
            here.base().add(PAGE as usize).write_volatile(7);
            here.base().write_volatile(8);
        }
        segment.give_back(PAGE, 2 * PAGE).unwrap();
        assert_eq!(backed(), 2 * PAGE);
        // SAFETY: likewise.
        unsafe {
            assert_eq!(here.base().add(PAGE as usize).read_volatile(), 0);
            assert_eq!(here.base().read_volatile(), 8);
        }
    }

    #[test]
    fn more_than_the_node_has_is_no_memory() {
        let bytes = 1 << 50;
        let refused = Segment::create(bytes).and_then(|segment| segment.reserve(0, bytes));
        assert_eq!(refused, Err(Error::NoMemory { bytes }));
    }
}
