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
    /// the system would rather end a process than refuse.
    pub fn reserve(&self, first: u64, bytes: u64) -> Result<()> {
        let mut done = 0;
        while done < bytes {
            let step = STEP.min(bytes - done);
            if bytes >= STEP && !is_available(step) {
                return Err(Error::NoMemory { bytes });
            }
            self.reserve_step(first + done, step)?;
            done += step;
        }
        Ok(())
    }

    fn reserve_step(&self, first: u64, bytes: u64) -> Result<()> {
        let fd = self.file.as_raw_fd();
        loop {
            // SAFETY: a plain system call on a descriptor that is ours.
            match unsafe { libc::fallocate(fd, 0, first as i64, bytes as i64) } {
                0 => return Ok(()),
                _ if std::io::Error::last_os_error().raw_os_error() == Some(libc::EINTR) => {}
                _ => return Err(Error::NoMemory { bytes }),
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
    fn more_than_the_node_has_is_no_memory() {
        let bytes = 1 << 50;
        let refused = Segment::create(bytes).and_then(|segment| segment.reserve(0, bytes));
        assert_eq!(refused, Err(Error::NoMemory { bytes }));
    }
}
