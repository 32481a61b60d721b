//! The size of a page of memory, a power of two. Processors of x86-64 have one size; on AArch64 the
//! kernel is built for 4, 16 or 64 KiB, so the system is asked. All ranks of a node have the same.

use crate::error::Result;
use core::ptr;

/// The size of the smallest pages of any processor.
pub const PAGE_BYTES_MIN: u64 = 4096;

/// Returns the size of a page in bytes.
#[cfg(target_arch = "x86_64")]
#[inline(always)]
pub const fn page_bytes() -> u64 {
    PAGE_BYTES_MIN
}

/// Returns the size of a page in bytes.
#[cfg(not(target_arch = "x86_64"))]
#[inline]
pub fn page_bytes() -> u64 {
    use std::sync::OnceLock;
    static BYTES: OnceLock<u64> = OnceLock::new();
    *BYTES.get_or_init(|| {
        // SAFETY: a system call that writes to no memory of this process.
        let bytes = unsafe { libc::sysconf(libc::_SC_PAGESIZE) }.cast_unsigned();
        assert!(bytes.is_power_of_two() && bytes >= PAGE_BYTES_MIN, "pages of {bytes} bytes");
        bytes
    })
}

/// Maps private memory with these rights at an address of the kernel's choice. None of it is set
/// aside: a page costs when it is touched. A bare system call, which no other library intercepts;
/// allocates nothing.
pub fn map_private(bytes: u64, rights: i32) -> Result<*mut u8> {
    let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_NORESERVE;
    let nowhere = ptr::null_mut::<u8>();
    // SAFETY: a new mapping at an address of the kernel's choice touches no existing one.
    let at = unsafe { libc::syscall(libc::SYS_mmap, nowhere, bytes, rights, flags, -1, 0_u64) };
    match usize::try_from(at) {
        Ok(at) => Ok(ptr::with_exposed_provenance_mut(at)),
        Err(_) => Err(crate::last_error("mmap")),
    }
}

#[cfg(test)]
mod tests {
    #[test]
    fn it_is_the_size_of_the_systems_pages() {
        // SAFETY: a system call that writes to no memory of this process.
        let asked = unsafe { libc::sysconf(libc::_SC_PAGESIZE) };
        assert_eq!(super::page_bytes(), asked as u64);
    }
}
