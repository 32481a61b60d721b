//! Pages that are set aside before they are copied: UFFDIO_MOVE (Linux 6.8) moves private pages of
//! this process to other addresses, and refuses those that a device or io_uring has registered
//! (EBUSY). A page that lies aside has no such user, and gets none, because no code knows its
//! address. At the old address it is missing: each access waits, also a read. So this is for an
//! exact userfaultfd only: with one that is not, reads by the kernel and by other processes fail,
//! such as those of a message that is being sent.

use super::userfault::{Userfault, WatchKind};
use crate::error::Result;
use crate::number::Number;

/// A range of addresses for the pages of a step. Unmapped on drop.
pub struct Aside<'a> {
    userfault: &'a Userfault,
    at: u64,
    bytes: u64,
}

impl Aside<'_> {
    /// Takes over an anonymous private mapping, which is empty.
    pub fn new(userfault: &Userfault, at: u64, bytes: u64) -> Result<Aside<'_>> {
        let aside = Aside { userfault, at, bytes };
        userfault.register(WatchKind::Private, at, bytes)?;
        Ok(aside)
    }

    /// The first address.
    pub fn address(&self) -> u64 {
        self.at
    }

    /// Sets pages aside, in order. They are watched. If one is in use, all stay where they are.
    pub fn take(&self, address: u64, bytes: u64) -> Result<()> {
        let (moved, result) = self.userfault.move_pages(self.at, address, bytes);
        if result.is_err() {
            self.bring_back(address, moved);
        }
        result
    }

    /// Undoes `take`.
    pub fn bring_back(&self, address: u64, bytes: u64) {
        let (moved, result) = self.userfault.move_pages(address, self.at, bytes);
        if result.is_err() {
            let (from, to, rest) = (self.at + moved, address + moved, (bytes - moved).to_usize());
            let how = libc::MREMAP_MAYMOVE | libc::MREMAP_FIXED | libc::MREMAP_DONTUNMAP;
            // SAFETY: it replaces pages that are missing.
            unsafe { libc::syscall(libc::SYS_mremap, from, rest, rest, how, to) };
        }
    }

    /// Gives the pages to the system, which were copied.
    pub fn clear(&self) {
        let (bytes, advice) = (self.bytes.to_usize(), libc::MADV_DONTNEED);
        // SAFETY: a mapping that no other code knows.
        unsafe { libc::syscall(libc::SYS_madvise, self.at, bytes, advice) };
    }
}

impl Drop for Aside<'_> {
    fn drop(&mut self) {
        // SAFETY: a mapping that no other code knows.
        unsafe { libc::syscall(libc::SYS_munmap, self.at, self.bytes.to_usize()) };
    }
}
