//! Segments that are mapped in this process, each once. Successive windows use the same chunks of
//! memory, and mapping one costs two system calls and a page fault per page, so unused mappings are
//! kept for a while. Invariant: the file of a mapping lives, so no other file has its inode, and
//! device and inode identify the mapping.

use crate::error::{Error, Result};
use crate::number::Number;
use crate::sys::segment::{Mapping, Name, Segment};
use parking_lot::Mutex;
use std::sync::Arc;

/// The number of unused mappings that are kept.
const UNUSED_MAX: usize = 32;

/// Mappings by device and inode of their files, the most recently used last.
struct Maps(Vec<(u64, u64, Arc<Mapping>)>);

static MAPS: Mutex<Maps> = Mutex::new(Maps(Vec::new()));

/// Returns the segment of that name, mapped as a whole.
pub fn map(name: &Name) -> Result<Arc<Mapping>> {
    MAPS.lock().map(name)
}

/// Whether an address lies in one of these mappings.
pub fn hold(address: u64) -> bool {
    MAPS.lock().0.iter().any(|(_, _, mapping)| {
        let base = mapping.base().addr().to_u64();
        (base..base + mapping.bytes().to_u64()).contains(&address)
    })
}

impl Maps {
    fn map(&mut self, name: &Name) -> Result<Arc<Mapping>> {
        let is_it = |entry: &(u64, u64, _)| (entry.0, entry.1) == (name.device, name.inode);
        if let Some(at) = self.0.iter().position(is_it) {
            let entry = self.0.remove(at);
            let mapping = entry.2.clone();
            self.0.push(entry);
            if mapping.bytes().to_u64() != name.bytes {
                return Err(Error::System { call: "open /proc/PID/fd", errno: libc::ENOENT });
            }
            return Ok(mapping);
        }
        let mapping = Arc::new(Segment::open(name)?.map()?);
        self.0.push((name.device, name.inode, mapping.clone()));
        self.drop_unused();
        Ok(mapping)
    }

    /// Drops the oldest unused mappings until few enough are left. Only the table holds them, so no
    /// thread can begin to use one meanwhile.
    fn drop_unused(&mut self) {
        let is_unused = |entry: &(u64, u64, Arc<Mapping>)| Arc::strong_count(&entry.2) == 1;
        let unused = self.0.iter().filter(|entry| is_unused(entry)).count();
        let mut surplus = unused.saturating_sub(UNUSED_MAX);
        self.0.retain(|entry| {
            let drop = surplus > 0 && is_unused(entry);
            surplus -= usize::from(drop);
            !drop
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sys::page_bytes;

    fn segment() -> (Segment, Name) {
        let segment = Segment::create(page_bytes()).unwrap();
        let name = segment.name();
        (segment, name)
    }

    #[test]
    fn a_segment_is_mapped_once() {
        let mut maps = Maps(Vec::new());
        let (_segment, name) = segment();
        let (first, second) = (maps.map(&name).unwrap(), maps.map(&name).unwrap());
        assert_eq!(first.base(), second.base());
        assert_eq!(maps.0.len(), 1);
    }

    #[test]
    fn another_length_is_another_file() {
        let mut maps = Maps(Vec::new());
        let (_segment, mut name) = segment();
        let _mapping = maps.map(&name).unwrap();
        name.bytes += page_bytes();
        assert!(maps.map(&name).is_err());
    }

    #[test]
    fn the_oldest_unused_mappings_are_dropped() {
        let mut maps = Maps(Vec::new());
        let segments: Vec<_> = (0..UNUSED_MAX + 10).map(|_| segment()).collect();
        let held = maps.map(&segments[0].1).unwrap();
        for (_, name) in &segments {
            maps.map(name).unwrap();
        }
        let is_there = |maps: &Maps, name: &Name| maps.0.iter().any(|entry| entry.1 == name.inode);
        let there = |maps: &Maps| segments.iter().filter(|s| is_there(maps, &s.1)).count();
        // The last mapping was in use while the others were counted.
        assert_eq!(there(&maps), UNUSED_MAX + 2);
        assert!(is_there(&maps, &segments[0].1), "it is in use");
        assert!(!is_there(&maps, &segments[1].1), "it was the oldest");
        assert!(is_there(&maps, &segments[UNUSED_MAX + 9].1), "it was the last");
        drop(held);
        maps.drop_unused();
        assert_eq!(there(&maps), UNUSED_MAX);
        assert!(!is_there(&maps, &segments[0].1), "it is unused now");
    }

    #[test]
    fn asking_again_makes_a_mapping_young() {
        let mut maps = Maps(Vec::new());
        let segments: Vec<_> = (0..UNUSED_MAX + 1).map(|_| segment()).collect();
        for (_, name) in &segments {
            maps.map(name).unwrap();
        }
        maps.map(&segments[0].1).unwrap();
        let (_last, name) = segment();
        drop(maps.map(&name).unwrap());
        let inodes: Vec<_> = maps.0.iter().map(|entry| entry.1).collect();
        assert!(inodes.contains(&segments[0].1.inode));
        assert!(!inodes.contains(&segments[1].1.inode));
    }
}
