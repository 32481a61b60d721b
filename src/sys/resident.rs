//! How much of a range of addresses has memory behind it (mincore(2)).

use crate::sys::segment::PAGE;

/// Pages that are asked for at once.
const PAGES: usize = 64 << 10;

/// Bytes from `base` on, of `bytes`, that would have to be found if all of them were kept in
/// memory. A range that is not mapped as a whole counts as there: that is for others to say.
pub fn missing(base: u64, bytes: u64) -> u64 {
    let first = base & !(PAGE - 1);
    let end = base.saturating_add(bytes);
    let (mut at, mut missing) = (first, 0);
    let mut pages = vec![0_u8; PAGES.min((bytes / PAGE + 2) as usize)];
    while at < end {
        let count = ((end - at).div_ceil(PAGE) as usize).min(pages.len());
        let length = count * PAGE as usize;
        let start = core::ptr::with_exposed_provenance_mut(at as usize);
        // SAFETY: one byte for each page; addresses that are not mapped are only an error.
        if unsafe { libc::mincore(start, length, pages.as_mut_ptr()) } != 0 {
            return 0;
        }
        missing += pages[..count].iter().filter(|page| **page & 1 == 0).count() as u64 * PAGE;
        at += length as u64;
    }
    missing
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_touched_is_there() {
        let bytes = 64 * PAGE as usize;
        let (kind, rights) =
            (libc::MAP_PRIVATE | libc::MAP_ANONYMOUS, libc::PROT_READ | libc::PROT_WRITE);
        // SAFETY: a new mapping, no address is asked for.
        let base = unsafe { libc::mmap(core::ptr::null_mut(), bytes, rights, kind, -1, 0) };
        assert_ne!(base, libc::MAP_FAILED);
        let address = base.expose_provenance() as u64;
        assert_eq!(missing(address, bytes as u64), 64 * PAGE);
        // SAFETY: inside of the mapping.
        unsafe { base.cast::<u8>().add(3 * PAGE as usize).write(1) };
        assert_eq!(missing(address, bytes as u64), 63 * PAGE);
        assert_eq!(missing(address + 3 * PAGE + 5, 10), 0);
        // SAFETY: ours, and not used again.
        assert_eq!(unsafe { libc::munmap(base, bytes) }, 0);
        assert_eq!(missing(address, bytes as u64), 0);
    }
}
