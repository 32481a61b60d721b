//! What this process moves pages with: a userfaultfd, and what /proc tells of its memory. Opened
//! once; anew in a child of fork(2), and if the program has closed a descriptor.

use crate::sys::adopt::areas::MemoryAreas;
use crate::sys::adopt::kept_file::KeptFile;
use crate::sys::adopt::page_moves::Tools;
use crate::sys::adopt::userfault::Userfault;

/// The open files.
pub struct OwnTools {
    userfault: Userfault,
    pagemap: KeptFile,
    areas: MemoryAreas,
    status: KeptFile,
}

impl OwnTools {
    /// Opens them; `None` if the system refuses one.
    pub fn open() -> Option<OwnTools> {
        Some(OwnTools {
            userfault: Userfault::open(!is_user_only_test())?,
            pagemap: KeptFile::of_process("/proc/self/pagemap")?,
            areas: MemoryAreas::open()?,
            status: KeptFile::of_process("/proc/self/status")?,
        })
    }

    /// Whether the program has closed none of them.
    pub fn are_open(&self) -> bool {
        let files = [&self.pagemap, &self.status].iter().all(|file| file.is_open());
        files && self.userfault.is_open() && self.areas.is_open()
    }

    /// Whether userfaultfd stops also the kernel's own writes.
    pub fn is_exact(&self) -> bool {
        self.userfault.is_exact()
    }

    /// Whether it can set pages aside, which finds those that devices use.
    pub fn can_move(&self) -> bool {
        self.userfault.can_move()
    }

    /// Returns the device number of files like a userfaultfd.
    pub fn anonymous_device(&self) -> u64 {
        self.userfault.device()
    }

    /// Returns /proc/self/status.
    pub fn status(&self) -> &KeptFile {
        &self.status
    }

    /// Returns what a move needs.
    pub fn for_moves(&self) -> Tools<'_> {
        Tools { userfault: &self.userfault, pagemap: &self.pagemap }
    }

    /// Returns the areas of memory.
    pub fn areas(&mut self) -> &mut MemoryAreas {
        &mut self.areas
    }
}

/// Whether a test wants what an unprivileged process has.
#[cfg(not(test))]
fn is_user_only_test() -> bool {
    false
}

#[cfg(test)]
pub use in_tests::{USER_ONLY, is_user_only_test};

#[cfg(test)]
mod in_tests {
    use crate::sync::{AtomicBool, Ordering};

    /// What a test wants.
    pub static USER_ONLY: AtomicBool = AtomicBool::new(false);

    pub fn is_user_only_test() -> bool {
        USER_ONLY.load(Ordering::Relaxed)
    }
}
