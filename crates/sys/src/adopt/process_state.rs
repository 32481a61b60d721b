//! Properties of a process that forbid moves of its pages: limits of its memory, processes that may
//! access it, and pages that the moving thread itself uses.

use crate::number::Number;
use crate::{dl, proc_text, process};
use std::fs;
use std::sync::OnceLock;

/// Whether a limit of the process bounds its memory or the size of its files.
pub fn is_limited() -> bool {
    let bounds = |resource| process::limit(resource).is_some();
    bounds(libc::RLIMIT_AS) || bounds(libc::RLIMIT_FSIZE)
}

/// Whether the process has a child, which may copy memory of its parent (process_vm, ptrace), or a
/// process traces it. True if that is unknown.
pub fn is_reached() -> bool {
    // SAFETY: plain data, for which zero is a value.
    let mut info: libc::siginfo_t = unsafe { core::mem::zeroed() };
    let how = libc::WEXITED | libc::WNOHANG | libc::WNOWAIT | libc::__WALL;
    // SAFETY: a question with a place for its answer, which takes no child away.
    let no_child = unsafe { libc::waitid(libc::P_ALL, 0, &mut info, how) } != 0
        && std::io::Error::last_os_error().raw_os_error() == Some(libc::ECHILD);
    let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
    !no_child || proc_text::behind(&status, "TracerPid:") != Some("0")
}

/// Returns the most mappings that a process may have (vm.max_map_count). Read once.
pub fn mappings_max() -> u64 {
    static MAX: OnceLock<u64> = OnceLock::new();
    *MAX.get_or_init(|| {
        let text = fs::read_to_string("/proc/sys/vm/max_map_count");
        text.ok().and_then(|text| text.trim().parse().ok()).unwrap_or(65_530)
    })
}

/// Whether io_uring registers a buffer that lies in private and in adopted pages (Linux 6.5). Linux
/// 6.1 to 6.4 fail with EINVAL there: all pages of a buffer must be of one file, or of none.
pub fn may_register_across() -> bool {
    static MAY: OnceLock<bool> = OnceLock::new();
    *MAY.get_or_init(|| {
        let release = fs::read_to_string("/proc/sys/kernel/osrelease").unwrap_or_default();
        is_version(&release, (6, 5))
    })
}

/// Whether a release of the kernel, such as `6.1.0-28-amd64`, is at least a version.
fn is_version(release: &str, least: (u32, u32)) -> bool {
    let mut numbers = release.split(|byte: char| !byte.is_ascii_digit());
    let mut next = || numbers.next().and_then(|digits| digits.parse().ok());
    next().zip(next()).is_some_and(|version| version >= least)
}

/// Returns the addresses around the stack pointer that a move uses, whatever stack the calling
/// thread has switched to (makecontext(3), user-level threads).
#[inline(never)]
pub fn active_stack() -> (u64, u64) {
    /// More than the frames of a move, and than those of the calls that led to it down to here.
    const USED: u64 = 64 << 10;
    let here = 0_u8;
    let at = core::hint::black_box(&raw const here).addr().to_u64();
    (at.saturating_sub(USED), at.saturating_add(USED))
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
    fn versions_are_compared_as_numbers() {
        for release in ["6.5.0", "6.18.3-arch1-1", "6.5-rc1", "7.0.0", "10.2"] {
            assert!(is_version(release, (6, 5)), "{release}");
        }
        for release in ["6.1.0-28-amd64", "6.4.0-150600-default", "5.14.0-427.el9", "6", "", "x"] {
            assert!(!is_version(release, (6, 5)), "{release}");
        }
    }

    #[test]
    fn the_state_of_a_thread_lies_at_its_descriptor_and_its_stack_at_its_variables() {
        let local = 0_u8;
        let (low, high) = active_stack();
        assert!((low..high).contains(&((&raw const local).addr() as u64)));
        let [own, end, errno, rseq] = own_state();
        assert!(own < end && errno.abs_diff(own) < 1 << 20 && rseq.abs_diff(own) < 1 << 20);
    }

    #[test]
    fn a_child_is_told() {
        crate::child::alone("adopt::process_state::tests::a_child_is_told", || {
            assert!(!is_reached());
            let child = crate::child::Child::stopped(|| {});
            assert!(is_reached());
            drop(child);
            assert!(!is_reached());
        });
    }
}
