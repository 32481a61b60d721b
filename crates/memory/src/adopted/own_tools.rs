//! What this process moves pages with: the files of /proc about its memory. Opened once; again in
//! a child of fork(2), and if the program has closed a descriptor.

use crate::sys::adopt::areas::MemoryAreas;
use crate::sys::adopt::kept_file::KeptFile;

/// The open files.
pub struct OwnTools {
    pagemap: KeptFile,
    areas: MemoryAreas,
}

impl OwnTools {
    /// Opens them; `None` if the system refuses one.
    pub fn open() -> Option<OwnTools> {
        let pagemap = KeptFile::of_process("/proc/self/pagemap")?;
        Some(OwnTools { pagemap, areas: MemoryAreas::open()? })
    }

    /// Whether the program has closed none of them.
    pub fn are_open(&self) -> bool {
        self.pagemap.is_open() && self.areas.is_open()
    }

    /// Returns /proc/self/pagemap.
    pub fn pagemap(&self) -> &KeptFile {
        &self.pagemap
    }

    /// Returns the areas of memory.
    pub fn areas(&mut self) -> &mut MemoryAreas {
        &mut self.areas
    }
}
