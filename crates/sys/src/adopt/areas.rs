//! Memory areas of this process at given addresses, from /proc/self/maps: one query for each area
//! (PROCMAP_QUERY, Linux 6.11), otherwise one reading of the whole file.

use super::kept_file::KeptFile;
use crate::error::{Error, Result};
use crate::last_error;
use crate::number::Number;
use crate::page_bytes;

const PROCMAP_QUERY: libc::c_ulong = 0xc068_6611;
/// PROCMAP_QUERY_COVERING_OR_NEXT_VMA
const OR_NEXT: u64 = 0x10;
/// Room for the name of an area that is no file's. Longer ones are names of files.
const NAME_BYTES: usize = 128;

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
    /// device of its file, as stat(2) tells it
    pub device: u64,
    /// inode of its file; 0: none
    pub inode: u64,
    /// offset of its first byte in the file
    pub offset: u64,
}

/// Returns what an area holds, by its name and file.
fn content_of(name: &str, inode: u64, bytes_of_page: u64) -> AreaContent {
    if bytes_of_page > page_bytes() || name.starts_with("/anon_hugepage") {
        return AreaContent::HugePages;
    }
    match name {
        _ if inode != 0 => AreaContent::File,
        "" | "[heap]" => AreaContent::Anonymous,
        _ if name.starts_with("[anon:") => AreaContent::Anonymous,
        _ if name.starts_with("[stack") => AreaContent::Stack,
        _ => AreaContent::Special,
    }
}

/// A struct procmap_query.
#[repr(C)]
#[derive(Default)]
struct Query {
    size: u64,
    flags: u64,
    address: u64,
    start: u64,
    end: u64,
    rights: u64,
    page_bytes: u64,
    offset: u64,
    inode: u64,
    device_major: u32,
    device_minor: u32,
    name_size: u32,
    build_id_size: u32,
    name_address: u64,
    build_id_address: u64,
}

const _: () = assert!(size_of::<Query>() == 104);

/// The file /proc/self/maps of this process, kept open.
#[derive(Debug)]
pub struct MemoryAreas {
    file: KeptFile,
    can_query: bool,
}

impl MemoryAreas {
    /// Opens the file.
    pub fn open() -> Option<MemoryAreas> {
        Some(MemoryAreas { file: KeptFile::of_process("/proc/self/maps")?, can_query: true })
    }

    /// Whether its descriptor is still open.
    pub fn is_open(&self) -> bool {
        self.file.is_open()
    }

    /// Returns the areas that overlap a range, in order. They have gaps where nothing is mapped.
    pub fn over(&mut self, address: u64, bytes: u64) -> Result<Vec<Area>> {
        let end = address.saturating_add(bytes);
        if self.can_query {
            let (mut found, mut at) = (Vec::new(), address);
            loop {
                match self.query(at) {
                    Ok(Some(area)) if area.start < end => {
                        at = area.end;
                        found.push(area);
                    }
                    Ok(_) => return Ok(found),
                    Err(_) => break, // ENOTTY before 6.11; a filter may refuse it, too
                }
                if at >= end {
                    return Ok(found);
                }
            }
            self.can_query = false;
        }
        let text = self.read()?;
        let areas = text.lines().filter_map(parse);
        Ok(areas.filter(|area| area.start < end && area.end > address).collect())
    }

    /// Returns the area that holds an address, or the next one.
    fn query(&self, address: u64) -> Result<Option<Area>> {
        let mut name = [0_u8; NAME_BYTES];
        for room in [NAME_BYTES, 0] {
            let mut query = Query {
                size: size_of::<Query>().to_u64(),
                flags: OR_NEXT,
                address,
                name_size: room.to_u32(),
                name_address: if room > 0 {
                    name.as_mut_ptr().expose_provenance().to_u64()
                } else {
                    0
                },
                ..Query::default()
            };
            // SAFETY: a struct procmap_query, with room for a name.
            if unsafe { libc::ioctl(self.file.descriptor(), PROCMAP_QUERY, &mut query) } == 0 {
                let length = query.name_size.to_usize().saturating_sub(1).min(NAME_BYTES);
                let name = str::from_utf8(&name[..length]).unwrap_or("?");
                return Ok(Some(Area {
                    start: query.start,
                    end: query.end,
                    is_plain_data: query.rights & 7 == 3,
                    is_shared: query.rights & 8 != 0,
                    content: content_of(name, query.inode, query.page_bytes),
                    device: libc::makedev(query.device_major, query.device_minor),
                    inode: query.inode,
                    offset: query.offset,
                }));
            }
            match last_error("ioctl PROCMAP_QUERY") {
                Error::System { errno: libc::ENOENT, .. } => return Ok(None),
                Error::System { errno: libc::ENAMETOOLONG, .. } => {}
                error => return Err(error),
            }
        }
        Err(last_error("ioctl PROCMAP_QUERY"))
    }

    /// Returns the text of the file.
    fn read(&self) -> Result<String> {
        let mut text = vec![0_u8; 64 << 10];
        let mut length = 0;
        loop {
            if text.len() - length < 4096 {
                text.resize(2 * text.len(), 0);
            }
            let room = &mut text[length..];
            let (at, bytes) = (room.as_mut_ptr().cast(), room.len());
            let offset = length.to_u64().cast_signed();
            // SAFETY: room for these bytes.
            let got = unsafe { libc::pread(self.file.descriptor(), at, bytes, offset) };
            match usize::try_from(got) {
                Ok(0) => break,
                Ok(got) => length += got,
                Err(_) => return Err(last_error("read /proc/self/maps")),
            }
        }
        text.truncate(length);
        Ok(String::from_utf8_lossy(&text).into_owned())
    }
}

/// Returns the area of a line of /proc/self/maps.
fn parse(line: &str) -> Option<Area> {
    let mut words = line.split_ascii_whitespace();
    let (start, end) = words.next()?.split_once('-')?;
    let rights = words.next()?;
    let offset = words.next()?;
    let (major, minor) = words.next()?.split_once(':')?;
    let inode: u64 = words.next()?.parse().ok()?;
    let number = |text| u64::from_str_radix(text, 16).ok();
    let part = |text| u32::from_str_radix(text, 16).ok();
    Some(Area {
        start: number(start)?,
        end: number(end)?,
        is_plain_data: rights.starts_with("rw-"),
        is_shared: rights.ends_with('s'),
        content: content_of(words.next().unwrap_or(""), inode, page_bytes()),
        device: libc::makedev(part(major)?, part(minor)?),
        inode,
        offset: number(offset)?,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::segment::Segment;

    fn address_of<T>(value: &T) -> u64 {
        (&raw const *value).addr() as u64
    }

    #[test]
    fn queries_and_the_text_tell_the_same() {
        let segment = Segment::create(3 * page_bytes()).unwrap();
        let map = segment.map().unwrap();
        let (shared, local) = (map.base().addr() as u64, 0_u8);
        let (heap, code) = (vec![1_u8; 1 << 20], queries_and_the_text_tell_the_same as fn());
        let mut areas = MemoryAreas::open().unwrap();
        let places = [
            shared + page_bytes(),
            address_of(&local),
            heap.as_ptr().addr() as u64,
            code as usize as u64,
        ];
        for at in places {
            areas.can_query = true;
            let queried = areas.over(at, 1).unwrap();
            areas.can_query = false;
            let read = areas.over(at, 1).unwrap();
            assert_eq!((queried.len(), &queried), (1, &read));
            assert!(queried[0].start <= at && at < queried[0].end);
        }
        let at = |at| areas.over(at, 1).unwrap()[0];
        let [shared_area, _, heap, code] = places.map(at);
        let name = segment.name();
        assert!(shared_area.is_shared && shared_area.content == AreaContent::File);
        assert_eq!((shared_area.inode, shared_area.device), (name.inode, name.device));
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
        let mut areas = MemoryAreas::open().unwrap();
        for can_query in [areas.can_query, false] {
            areas.can_query = can_query;
            let found = areas.over(base, 3 * page_bytes()).unwrap();
            let ends: Vec<_> = found.iter().map(|area| (area.start, area.end - base)).collect();
            assert_eq!(ends[0], (base, page_bytes()));
            assert_eq!(ends.len(), 2);
            assert_eq!(ends[1].0, base + 2 * page_bytes());
        }
    }
}
