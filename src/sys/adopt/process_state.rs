//! What a process must not have for its pages to move: locked memory, memory that devices write to,
//! limits. All of it as the system tells it at the moment.

use super::kept_file::{KeptFile, device_of};
use crate::number::Number;
use crate::sys::{dl, page_bytes};
use std::fs;
use std::sync::OnceLock;

/// Returns the bytes of this process that are registered with devices or with io_uring; all there
/// is if the system does not tell. `status`: /proc/self/status, kept open.
pub fn pinned_bytes(status: &KeptFile) -> u64 {
    let mut text = [0_u8; 4096];
    let (at, room) = (text.as_mut_ptr().cast(), text.len());
    // SAFETY: room for these bytes.
    let got = unsafe { libc::pread(status.descriptor(), at, room, 0) };
    let text = String::from_utf8_lossy(&text[..usize::try_from(got).unwrap_or(0)]);
    let line = text.lines().find_map(|line| line.strip_prefix("VmPin:"));
    let kib = line.and_then(|line| line.split_whitespace().next()?.parse::<u64>().ok());
    kib.map_or(u64::MAX, |kib| 1024 * kib)
}

/// Whether the area with the page at an address is locked (mlock(2)). The kernel takes no hints
/// about such pages.
pub fn is_locked(page: u64) -> bool {
    // SAFETY: a hint, which changes no byte.
    let answer = unsafe { libc::syscall(libc::SYS_madvise, page, page_bytes(), libc::MADV_COLD) };
    answer != 0 && std::io::Error::last_os_error().raw_os_error() == Some(libc::EINVAL)
}

/// Whether the process has an io_uring or AIO context, by which the kernel may write to memory at
/// any time. `anonymous`: the device number of files like that of a userfaultfd.
pub fn has_direct_io(anonymous: u64) -> bool {
    let Ok(files) = fs::read_dir("/proc/self/fd") else { return true };
    let is_ring = |file: &fs::DirEntry| {
        let number = file.file_name().to_str().and_then(|name| name.parse().ok());
        number.and_then(device_of) == Some(anonymous)
            && fs::read_link(file.path())
                .is_ok_and(|link| link.to_str() == Some("anon_inode:[io_uring]"))
    };
    if files.flatten().any(|file| is_ring(&file)) {
        return true;
    }
    // The number of AIO requests that all processes have room for: usually none.
    let number = fs::read_to_string("/proc/sys/fs/aio-nr");
    number.is_ok_and(|number| number.trim() != "0")
        && fs::read_to_string("/proc/self/maps").is_ok_and(|maps| maps.contains("/[aio]"))
}

/// Whether a limit of the process bounds its memory or the size of its files.
pub fn is_limited() -> bool {
    let bounds = |resource| {
        let mut limit = libc::rlimit { rlim_cur: 0, rlim_max: 0 };
        // SAFETY: a plain question with a place for its answer.
        let told = unsafe { libc::getrlimit(resource, &mut limit) } == 0;
        !told || limit.rlim_cur != libc::RLIM_INFINITY
    };
    bounds(libc::RLIMIT_AS) || bounds(libc::RLIMIT_FSIZE)
}

/// Returns the most mappings that a process may have (vm.max_map_count). Read once.
pub fn mappings_max() -> u64 {
    static MAX: OnceLock<u64> = OnceLock::new();
    *MAX.get_or_init(|| {
        let text = fs::read_to_string("/proc/sys/vm/max_map_count");
        text.ok().and_then(|text| text.trim().parse().ok()).unwrap_or(65_530)
    })
}

/// Returns the stack of the calling thread, address and bytes, unless the kernel has made it (that
/// of the first thread).
pub fn own_stack() -> Option<(u64, u64)> {
    // SAFETY: plain questions.
    let (thread, process) = unsafe { (libc::syscall(libc::SYS_gettid), libc::getpid()) };
    if thread == process.into() {
        return None;
    }
    // SAFETY: plain data, for which zero is a value; it is initialised by the C library and
    // destroyed.
    unsafe {
        let mut attributes: libc::pthread_attr_t = core::mem::zeroed();
        if libc::pthread_getattr_np(libc::pthread_self(), &mut attributes) != 0 {
            return None;
        }
        let (mut at, mut bytes) = (core::ptr::null_mut(), 0);
        let told = libc::pthread_attr_getstack(&attributes, &mut at, &mut bytes) == 0;
        libc::pthread_attr_destroy(&mut attributes);
        told.then_some((at.addr().to_u64(), bytes.to_u64()))
    }
}

/// Returns addresses at which the C library and the kernel keep state of the calling thread: the
/// begin and the end of its descriptor, `errno`, and where the kernel writes the number of its core
/// (rseq).
pub fn own_state() -> [u64; 4] {
    /// No descriptor of a thread is longer.
    const DESCRIPTOR: u64 = 2304;
    static RSEQ: OnceLock<Option<i64>> = OnceLock::new();
    let offset = RSEQ.get_or_init(|| {
        let at = core::ptr::with_exposed_provenance::<isize>(dl::global_symbol(c"__rseq_offset"));
        // SAFETY: a constant of the C library with this type (glibc 2.35), or NULL.
        unsafe { at.as_ref() }.map(|offset| *offset as i64)
    });
    // SAFETY: plain questions.
    let (own, errno) = unsafe { (libc::pthread_self(), libc::__errno_location().addr().to_u64()) };
    let rseq = own.wrapping_add_signed(offset.unwrap_or(0));
    [own, own + DESCRIPTOR, errno, rseq]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_state_of_a_thread_lies_at_its_descriptor_and_its_stack_at_its_variables() {
        let local = 0_u8;
        let (stack, bytes) = own_stack().expect("tests run on threads of their own");
        assert!((stack..stack + bytes).contains(&((&raw const local).addr() as u64)));
        let [own, end, errno, rseq] = own_state();
        assert!(own < end && errno.abs_diff(own) < 1 << 20 && rseq.abs_diff(own) < 1 << 20);
    }

    #[test]
    fn locked_memory_is_told() {
        let page = vec![1_u8; 3 * page_bytes() as usize];
        let at = page.as_ptr().wrapping_add(page.as_ptr().align_offset(page_bytes() as usize));
        assert!(!is_locked(at.addr() as u64));
        // SAFETY: a page of the vector.
        let locked = unsafe { libc::mlock(at.cast(), page_bytes() as usize) } == 0;
        assert_eq!(is_locked(at.addr() as u64), locked);
        // SAFETY: likewise.
        unsafe { libc::munlock(at.cast(), page_bytes() as usize) };
        assert!(!is_locked(at.addr() as u64));
    }

    #[test]
    fn a_ring_is_noticed() {
        let status = KeptFile::of_process("/proc/self/status").unwrap();
        // Another test of this process may have pinned some pages.
        assert!(pinned_bytes(&status) < 1 << 20);
        // SAFETY: an event descriptor is a file of the same device.
        let event = unsafe { libc::eventfd(0, 0) };
        let device = device_of(event).unwrap();
        // SAFETY: a struct io_uring_params, which has 120 bytes.
        let ring = unsafe { libc::syscall(libc::SYS_io_uring_setup, 1, [0_u64; 15].as_mut_ptr()) };
        let ring = KeptFile::of_descriptor(ring);
        if let Some(ring) = ring.filter(|ring| ring.device() == device) {
            assert!(has_direct_io(device));
            drop(ring);
        }
        // SAFETY: ours, and not used again.
        unsafe { libc::close(event) };
        assert!(!has_direct_io(u64::MAX));
    }
}
