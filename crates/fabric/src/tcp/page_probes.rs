//! Probes of pages of this process: whether the system permits to read or write them. The program
//! may have unmapped or protected its memory, and a thread that loads from or stores to it must not
//! fault. Invariant: a probe changes no byte.

use std::io;

use crate::number::Number;
use crate::sys::page_bytes;

/// What a request does with memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PageAccess {
    /// loads from it
    Load,
    /// stores to it, too
    Store,
    /// lets the system copy, which reports what it cannot access
    BySystem,
}

/// Returns addresses in the pages of `bytes` bytes at `at`, at least one: the first byte, and the
/// first ones of the pages behind it.
pub fn pages(at: u64, bytes: u64) -> impl Iterator<Item = u64> {
    let (page, last) = (page_bytes().to_u64(), at.saturating_add(bytes - 1));
    (at / page..=last / page).map(move |number| at.max(number * page))
}

/// Whether the page of an address permits an access.
pub fn is_permitted(address: u64, access: PageAccess) -> bool {
    match access {
        PageAccess::Load => is_readable(address),
        PageAccess::Store => is_writable(address),
        PageAccess::BySystem => true,
    }
}

/// Whether a byte can be read: the system reads the new mask of signals before it refuses the way
/// to combine it with the old one.
pub fn is_readable(address: u64) -> bool {
    const MASK_BYTES: usize = 8;
    const NO_WAY: i64 = -1;
    let mask = address & !(MASK_BYTES.to_u64() - 1);
    let (call, none) = (libc::SYS_rt_sigprocmask, core::ptr::null::<u8>());
    // SAFETY: the call changes nothing, whatever it finds at the address.
    let answer = unsafe { libc::syscall(call, NO_WAY, mask, none, MASK_BYTES) };
    answer == 0 || !is_fault()
}

/// Whether a byte can be written: the system adds 0 to the word of four bytes around it. A thread
/// that sleeps on that word may wake; such a thread checks the word again.
fn is_writable(address: u64) -> bool {
    const ADD_AND_WAKE: i32 = libc::FUTEX_WAKE_OP | libc::FUTEX_PRIVATE_FLAG;
    let add_zero = libc::FUTEX_OP_ADD << 28 | libc::FUTEX_OP_CMP_LT << 24;
    let nobody = 0_u32;
    let (call, nobody, word) = (libc::SYS_futex, &raw const nobody, address & !3);
    // SAFETY: the call adds 0 to a word of this process, or finds that it may not.
    let answer = unsafe { libc::syscall(call, nobody, ADD_AND_WAKE, 0, 0_usize, word, add_zero) };
    answer >= 0 || !is_fault()
}

fn is_fault() -> bool {
    io::Error::last_os_error().raw_os_error() == Some(libc::EFAULT)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn first_fault(at: u64, bytes: u64, access: PageAccess) -> Option<u64> {
        pages(at, bytes).find(|address| !is_permitted(*address, access))
    }

    /// Three pages: usable, read-only, unmapped.
    fn three_pages() -> u64 {
        let (page, access) = (page_bytes().to_usize(), libc::PROT_READ | libc::PROT_WRITE);
        let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS;
        let none = core::ptr::null_mut();
        // SAFETY: a new mapping, whose last two pages nothing uses.
        let base = unsafe {
            let base = libc::mmap(none, 3 * page, access, flags, -1, 0);
            assert_ne!(base, libc::MAP_FAILED);
            assert_eq!(libc::mprotect(base.byte_add(page), page, libc::PROT_READ), 0);
            // Nothing is there, and no other thread gets the page.
            assert_eq!(libc::mprotect(base.byte_add(2 * page), page, libc::PROT_NONE), 0);
            base
        };
        base.expose_provenance().to_u64()
    }

    #[test]
    fn a_probe_finds_the_first_page_without_permission() {
        let base = three_pages();
        let (page, end) = (page_bytes(), base + 3 * page_bytes());
        assert_eq!(first_fault(base + 9, page - 9, PageAccess::Store), None);
        assert_eq!(first_fault(base + 9, page - 8, PageAccess::Store), Some(base + page));
        assert_eq!(first_fault(base + page + 5, 1, PageAccess::Store), Some(base + page + 5));
        assert_eq!(first_fault(base, 2 * page, PageAccess::Load), None);
        assert_eq!(first_fault(base, 3 * page, PageAccess::Load), Some(base + 2 * page));
        assert_eq!(first_fault(end - 1, 1, PageAccess::Load), Some(end - 1));
        assert_eq!(first_fault(base, 3 * page, PageAccess::BySystem), None);
        assert_eq!(first_fault(8, 1, PageAccess::Load), Some(8));
        assert_eq!(first_fault(u64::MAX - 3, 9, PageAccess::Store), Some(u64::MAX - 3));
    }

    #[test]
    fn a_probe_changes_no_byte() {
        let words = [u64::MAX, 1, 1 << 63];
        for word in &words {
            let at = (&raw const *word).expose_provenance().to_u64();
            for byte in at..at + 8 {
                assert_eq!(first_fault(byte, 1, PageAccess::Store), None);
            }
        }
        assert_eq!(words, [u64::MAX, 1, 1 << 63]);
    }
}
