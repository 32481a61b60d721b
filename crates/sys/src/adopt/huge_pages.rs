//! Check whether pages of this process are parts of huge pages.

use super::kept_file::KeptFile;
use crate::number::Number;
use std::fs;

const PAGEMAP_SCAN: libc::c_ulong = 0xc060_6610;
/// PAGE_IS_HUGE
const IS_HUGE: u64 = 1 << 6;

/// Returns whether a range has a huge page. `pagemap`: /proc/self/pagemap.
pub fn any(pagemap: &KeptFile, address: u64, bytes: u64) -> bool {
    let (end, size) = (address + bytes, 96);
    let mut found = [0_u64; 3];
    let (vector, length) = (found.as_mut_ptr().expose_provenance().to_u64(), 1);
    let mut scan = [size, 0, address, end, 0, vector, length, 0, 0, IS_HUGE, 0, IS_HUGE];
    // SAFETY: a struct pm_scan_arg, with room for one answer.
    match unsafe { libc::ioctl(pagemap.descriptor(), PAGEMAP_SCAN, scan.as_mut_ptr()) } {
        0 => false,
        answer if answer > 0 => true,
        _ => in_text(&fs::read_to_string("/proc/self/smaps").unwrap_or_default(), address, end),
    }
}

/// For Linux before 6.7, by the text of /proc/self/smaps: whether an area that overlaps the range
/// has a huge page.
fn in_text(text: &str, address: u64, end: u64) -> bool {
    let mut overlaps = false;
    text.lines().any(|line| {
        let word = line.split_ascii_whitespace().next().unwrap_or_default();
        if let Some((first, last)) = word.split_once('-') {
            let number = |text| u64::from_str_radix(text, 16).unwrap_or(0);
            overlaps = number(first) < end && number(last) > address;
        }
        let kinds = ["AnonHugePages:", "ShmemPmdMapped:"];
        let bytes = kinds.iter().find_map(|kind| line.strip_prefix(kind));
        overlaps && bytes.is_some_and(|bytes| !bytes.trim().starts_with("0 "))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_text_tells_it_of_each_area() {
        let text = "1000-5000 rw-p 00000000 00:00 0\nSize: 16 kB\nAnonHugePages:         0 kB\n\
                    5000-9000 rw-p 00000000 00:00 0\nSize: 16 kB\nAnonHugePages:      2048 kB\n";
        assert!(!in_text(text, 0x1000, 0x5000));
        assert!(in_text(text, 0x1000, 0x5001));
        assert!(in_text(text, 0x8000, 0x9000));
        assert!(!in_text(text, 0x9000, 0xa000));
    }
}
