//! Memory areas of this process at given addresses, from /proc/self/maps.

use crate::error::Result;
use crate::kept_file::KeptFile;
use crate::{last_error, proc_text};
use std::io::{Read, Seek};

/// What lies in an area.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AreaContent {
    /// anonymous memory
    Anonymous,
    /// a stack that the kernel has made
    Stack,
    /// memory of the kernel or of a device
    Special,
    /// reserved huge pages
    HugePages,
    /// a file, or memory that the processes of a node share
    File,
}

/// A contiguous range of addresses that was mapped in one way.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Area {
    /// its first address
    pub start: u64,
    /// one past its last address
    pub end: u64,
    /// whether it may be read and written, and not executed
    pub is_plain_data: bool,
    /// whether stores reach a file or other processes
    pub is_shared: bool,
    /// what lies there
    pub content: AreaContent,
    /// device of its file, as in stat(2)
    pub device: u64,
    /// inode of its file; 0: none
    pub inode: u64,
    /// offset of its first byte in the file
    pub offset: u64,
}

/// Returns what an area holds, by its name and file.
fn content_of(name: &str, inode: u64) -> AreaContent {
    match name {
        _ if name.starts_with("/anon_hugepage") => AreaContent::HugePages,
        _ if inode != 0 => AreaContent::File,
        "" | "[heap]" => AreaContent::Anonymous,
        _ if name.starts_with("[anon:") => AreaContent::Anonymous,
        _ if name.starts_with("[stack") => AreaContent::Stack,
        _ => AreaContent::Special,
    }
}

/// Returns the areas that overlap a range, in order. They have gaps where nothing is mapped.
/// `maps`: /proc/self/maps.
pub fn over(maps: &KeptFile, address: u64, bytes: u64) -> Result<Vec<Area>> {
    let (mut file, mut text, end) = (&**maps, Vec::new(), address.saturating_add(bytes));
    let read = file.rewind().and_then(|()| file.read_to_end(&mut text));
    read.map_err(|_| last_error("read /proc/self/maps"))?;
    let text = String::from_utf8_lossy(&text);
    let areas = text.lines().filter_map(parse);
    Ok(areas.filter(|area| area.start < end && area.end > address).collect())
}

/// Returns the area of a line of /proc/self/maps.
fn parse(line: &str) -> Option<Area> {
    let (start, end) = proc_text::range(line)?;
    let mut words = line.split_ascii_whitespace().skip(1);
    let rights = words.next()?;
    let offset = words.next()?;
    let (major, minor) = words.next()?.split_once(':')?;
    let inode: u64 = words.next()?.parse().ok()?;
    let number = |text| u64::from_str_radix(text, 16).ok();
    let part = |text| u32::from_str_radix(text, 16).ok();
    Some(Area {
        start,
        end,
        is_plain_data: rights.starts_with("rw-"),
        is_shared: rights.ends_with('s'),
        content: content_of(words.next().unwrap_or(""), inode),
        device: libc::makedev(part(major)?, part(minor)?),
        inode,
        offset: number(offset)?,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::page_bytes;
    use crate::segment::Segment;
    use std::fs::File;

    fn address_of<T>(value: &T) -> u64 {
        (&raw const *value).addr() as u64
    }

    #[test]
    fn maps_show_the_content_of_each_area() {
        let segment = Segment::create(3 * page_bytes()).unwrap();
        let map = segment.map().unwrap();
        let (shared, local) = (map.base().addr() as u64, 0_u8);
        let (heap, code) = (vec![1_u8; 1 << 20], maps_show_the_content_of_each_area as fn());
        let maps = KeptFile::new(File::open("/proc/self/maps").unwrap()).unwrap();
        let places = [
            shared + page_bytes(),
            address_of(&local),
            heap.as_ptr().addr() as u64,
            code as usize as u64,
        ];
        let at = |at| {
            let found = over(&maps, at, 1).unwrap();
            assert!(found.len() == 1 && found[0].start <= at && at < found[0].end);
            found[0]
        };
        let [shared_area, _, heap, code] = places.map(at);
        let name = segment.name();
        assert!(shared_area.is_shared && shared_area.content == AreaContent::File);
        assert_eq!((shared_area.inode, shared_area.device), (name.inode, name.device));
        assert_eq!(shared_area.offset, 0);
        assert!(heap.is_plain_data && !heap.is_shared && heap.content == AreaContent::Anonymous);
        assert!(!code.is_plain_data && code.content == AreaContent::File);
    }

    #[test]
    fn a_gap_ends_an_area() {
        let segment = Segment::create(3 * page_bytes()).unwrap();
        let map = segment.map().unwrap();
        let base = map.base().addr() as u64;
        // SAFETY: a page of the mapping, which no other code uses; the mapping's end unmaps all.
        unsafe {
            libc::munmap(
                map.base().wrapping_add(page_bytes() as usize).cast(),
                page_bytes() as usize,
            )
        };
        let maps = KeptFile::new(File::open("/proc/self/maps").unwrap()).unwrap();
        let found = over(&maps, base, 3 * page_bytes()).unwrap();
        let ends: Vec<_> = found.iter().map(|area| (area.start, area.end - base)).collect();
        assert_eq!(ends, [(base, page_bytes()), (base + 2 * page_bytes(), 3 * page_bytes())]);
        assert_eq!(found[1].offset, 2 * page_bytes());
    }
}
