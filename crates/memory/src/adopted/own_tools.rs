//! What this process moves pages with: the files of /proc about its memory. Opened once; again in
//! a child of fork(2), and if the program has closed a descriptor.

use crate::sys::kept_file::KeptFile;
use std::fs::File;

/// The open files.
pub struct OwnTools {
    /// /proc/self/pagemap
    pub pagemap: KeptFile,
    /// /proc/self/maps
    pub maps: KeptFile,
}

impl OwnTools {
    /// Opens them; `None` if the system refuses one.
    pub fn open() -> Option<OwnTools> {
        let open = |path| KeptFile::new(File::open(path).ok()?).ok();
        Some(OwnTools { pagemap: open("/proc/self/pagemap")?, maps: open("/proc/self/maps")? })
    }

    /// Whether the program has closed none of them.
    pub fn are_open(&self) -> bool {
        self.pagemap.is_open() && self.maps.is_open()
    }
}
