//! What a process must not have for its pages to move: locked memory, memory that devices write to,
//! limits. All of it as the system tells it at the moment.

use crate::number::Number;
use crate::sys::dl;
use std::fs;
use std::os::unix::fs::MetadataExt;
use std::sync::OnceLock;

/// Memory of this process that is bound to its pages, in bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Bound {
    /// locked by mlock(2)
    pub locked: u64,
    /// registered with a device or with io_uring
    pub pinned: u64,
}

/// Returns the memory that is bound to its pages; all there is if the system does not tell.
pub fn bound() -> Bound {
    let text = fs::read_to_string("/proc/self/status").unwrap_or_default();
    let field = |name: &str| {
        let line = text.lines().find_map(|line| line.strip_prefix(name))?;
        Some(line.split_whitespace().next()?.parse::<u64>().ok()? * 1024)
    };
    let all = |name| field(name).unwrap_or(u64::MAX);
    Bound { locked: all("VmLck:"), pinned: all("VmPin:") }
}

/// Whether the process has an io_uring or AIO context, by which the kernel may write to memory at
/// any time. `anonymous`: the device number of files like that of a userfaultfd.
pub fn has_direct_io(anonymous: u64) -> bool {
    let Ok(files) = fs::read_dir("/proc/self/fd") else { return true };
    let is_ring = |file: &fs::DirEntry| {
        let device = fs::metadata(file.path()).map(|status| status.dev());
        device.is_ok_and(|device| device == anonymous)
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
        let (before, page) = (bound().locked, vec![1_u8; 3 * 4096]);
        let at = page.as_ptr().wrapping_add(page.as_ptr().align_offset(4096)).cast();
        // SAFETY: a page of the vector.
        let locked = unsafe { libc::mlock(at, 4096) } == 0;
        assert!(!locked || bound().locked > before);
        // SAFETY: likewise.
        unsafe { libc::munlock(at, 4096) };
        assert_eq!(bound().pinned, 0);
    }
}
