//! Location of pages in a segment.

use crate::error::{Error, Result};
use crate::number::Number;

/// The part of a segment that pages move into, or lie in.
#[derive(Clone, Copy, Debug)]
pub struct Room {
    /// the descriptor of the segment; `None`: the program has closed it
    pub descriptor: Option<i32>,
    /// the offset of the first page in the segment
    pub offset: u64,
    /// where this process has mapped that page elsewhere
    pub mapped: *mut u8,
}

impl Room {
    /// Returns the descriptor of the segment. Fails if the program has closed it.
    pub fn descriptor(&self) -> Result<i32> {
        self.descriptor.ok_or(Error::System { call: "mmap", errno: libc::EBADF })
    }

    /// Returns the rest of it after `bytes` bytes.
    pub fn behind(&self, bytes: u64) -> Room {
        let mapped = self.mapped.wrapping_add(bytes.to_usize());
        Room { offset: self.offset + bytes, mapped, ..*self }
    }

    /// Gives the memory of `bytes` bytes of it back to the system.
    pub fn punch(&self, bytes: u64) -> bool {
        let (at, length) = (self.mapped, bytes.to_usize());
        // SAFETY: a part of the segment that no code uses any more.
        if unsafe { libc::syscall(libc::SYS_madvise, at, length, libc::MADV_REMOVE) } == 0 {
            return true;
        }
        // Locked mappings refuse it (mlockall).
        let mode = libc::FALLOC_FL_PUNCH_HOLE | libc::FALLOC_FL_KEEP_SIZE;
        let (offset, bytes) = (self.offset.cast_signed(), bytes.cast_signed());
        // SAFETY: the same part of the segment.
        self.descriptor.is_some_and(|fd| unsafe { libc::fallocate(fd, mode, offset, bytes) } == 0)
    }
}
