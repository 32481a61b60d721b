//! userfaultfd(2) with write-protection: threads that store to protected pages wait in the kernel
//! until the pages are woken. No thread reads the events.
//!
//! | kind      | a store of a thread | a system call that writes there | for which process        |
//! |-----------|---------------------|---------------------------------|--------------------------|
//! | exact     | waits               | waits                           | with CAP_SYS_PTRACE; all |
//! |           |                     |                                 | with the setting         |
//! |           |                     |                                 | unprivileged_userfaultfd;|
//! |           |                     |                                 | if it may open           |
//! |           |                     |                                 | /dev/userfaultfd (6.1)   |
//! | user-only | waits               | fails (EFAULT), or is short     | every process (5.11)     |

use super::kept_file::KeptFile;
use crate::error::{Error, Result};
use crate::sys::last_error;
use std::fs::File;

const UFFDIO_API: libc::c_ulong = 0xc018_aa3f;
const UFFDIO_REGISTER: libc::c_ulong = 0xc020_aa00;
const UFFDIO_UNREGISTER: libc::c_ulong = 0x8010_aa01;
const UFFDIO_WAKE: libc::c_ulong = 0x8010_aa02;
const UFFDIO_MOVE: libc::c_ulong = 0xc028_aa05;
const UFFDIO_WRITEPROTECT: libc::c_ulong = 0xc018_aa06;
const USERFAULTFD_IOC_NEW: libc::c_ulong = 0xaa00;

/// The version of the interface.
const API: u64 = 0xaa;
/// UFFD_USER_MODE_ONLY (5.11)
const USER_MODE_ONLY: i32 = 1;
/// UFFD_FEATURE_PAGEFAULT_FLAG_WP, and UFFD_FEATURE_WP_HUGETLBFS_SHMEM (5.19)
const FEATURES: u64 = 1 | 1 << 12;
/// UFFD_FEATURE_MOVE (6.8)
const CAN_MOVE: u64 = 1 << 16;
/// UFFDIO_MOVE_MODE_DONTWAKE, and UFFDIO_MOVE_MODE_ALLOW_SRC_HOLES
const SILENTLY_WITH_HOLES: u64 = 1 | 2;
/// UFFDIO_REGISTER_MODE_MISSING
const MISSING: u64 = 1;
/// UFFDIO_REGISTER_MODE_WP
const WRITE_PROTECT: u64 = 2;
/// UFFDIO_WRITEPROTECT_MODE_WP
const PROTECT: u64 = 1;

/// The kind of memory to watch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WatchKind {
    /// private anonymous memory: also the first access to an untouched page waits
    Private,
    /// a shared segment
    Segment,
}

/// A userfaultfd of this process.
#[derive(Debug)]
pub struct Userfault {
    file: KeptFile,
    exact: bool,
    moves: bool,
}

impl Userfault {
    /// Opens one, an exact one if the system permits it and `exact` asks for it. `None`: the kernel
    /// has no write-protection of shared memory (before 5.19), or a filter refuses the calls.
    pub fn open(exact: bool) -> Option<Userfault> {
        let flags = libc::O_CLOEXEC | libc::O_NONBLOCK;
        // SAFETY: plain system calls; the results are checked.
        let call = |flags: i32| unsafe { libc::syscall(libc::SYS_userfaultfd, flags) };
        if exact {
            let by_file = || {
                let device =
                    File::options().read(true).write(true).open("/dev/userfaultfd").ok()?;
                let device = KeptFile::new(device);
                // SAFETY: the device has this call, whose argument is a number.
                let made = unsafe { libc::ioctl(device.descriptor(), USERFAULTFD_IOC_NEW, flags) };
                KeptFile::of_descriptor(made.into())
            };
            let file = KeptFile::of_descriptor(call(flags)).or_else(by_file);
            if let Some(found) = file.and_then(|file| Userfault::begin(file, true)) {
                return Some(found);
            }
        }
        Userfault::begin(KeptFile::of_descriptor(call(flags | USER_MODE_ONLY))?, false)
    }

    /// Agrees with the kernel on the features.
    fn begin(file: KeptFile, exact: bool) -> Option<Userfault> {
        let mut api = [API, FEATURES, 0];
        // SAFETY: a struct uffdio_api.
        let fine = unsafe { libc::ioctl(file.descriptor(), UFFDIO_API, api.as_mut_ptr()) } == 0;
        // The kernel has stored all features that it has.
        fine.then_some(Userfault { file, exact, moves: api[1] & CAN_MOVE != 0 })
    }

    /// Whether also the kernel's own writes wait.
    pub fn is_exact(&self) -> bool {
        self.exact
    }

    /// Whether it can move pages of this process, so that no access fails meanwhile.
    pub fn can_move(&self) -> bool {
        self.exact && self.moves
    }

    /// Whether its descriptor is still open.
    pub fn is_open(&self) -> bool {
        self.file.is_open()
    }

    /// Returns the device number that files of this kind have.
    pub fn device(&self) -> u64 {
        self.file.device()
    }

    /// Watches whole pages, which lie in one area of memory. Fails with EINVAL if the kind of
    /// memory cannot be watched (private file mappings), with EBUSY if another userfaultfd watches
    /// it.
    pub fn register(&self, kind: WatchKind, address: u64, bytes: u64) -> Result<()> {
        let missing = if kind == WatchKind::Private { MISSING } else { 0 };
        let mut argument = [address, bytes, missing | WRITE_PROTECT, 0];
        // SAFETY: a struct uffdio_register.
        unsafe { self.call(UFFDIO_REGISTER, &mut argument, "ioctl UFFDIO_REGISTER") }
    }

    /// Ends the watch, and wakes all threads that wait.
    pub fn unregister(&self, address: u64, bytes: u64) -> Result<()> {
        // SAFETY: a struct uffdio_range.
        unsafe { self.call(UFFDIO_UNREGISTER, &mut [address, bytes], "ioctl UFFDIO_UNREGISTER") }
    }

    /// From now on stores to these watched pages wait.
    pub fn protect(&self, address: u64, bytes: u64) -> Result<()> {
        let mut argument = [address, bytes, PROTECT];
        // SAFETY: a struct uffdio_writeprotect.
        unsafe { self.call(UFFDIO_WRITEPROTECT, &mut argument, "ioctl UFFDIO_WRITEPROTECT") }
    }

    /// Undoes `protect`, and wakes the threads that wait.
    pub fn release(&self, address: u64, bytes: u64) -> Result<()> {
        let mut argument = [address, bytes, 0];
        // SAFETY: a struct uffdio_writeprotect.
        unsafe { self.call(UFFDIO_WRITEPROTECT, &mut argument, "ioctl UFFDIO_WRITEPROTECT") }
    }

    /// Wakes the threads that wait for these pages; they try again.
    pub fn wake(&self, address: u64, bytes: u64) -> Result<()> {
        // SAFETY: a struct uffdio_range.
        unsafe { self.call(UFFDIO_WAKE, &mut [address, bytes], "ioctl UFFDIO_WAKE") }
    }

    /// Moves private pages to other addresses, which are watched and have no pages. Untouched pages
    /// stay so. Wakes no thread. Returns the bytes that have moved; fails with EBUSY at a page that
    /// is registered with a device or io_uring, or shared with a child.
    pub fn move_pages(&self, to: u64, from: u64, bytes: u64) -> (u64, Result<()>) {
        let mut done = 0;
        while done < bytes {
            let mut argument = [to + done, from + done, bytes - done, SILENTLY_WITH_HOLES, 0];
            // SAFETY: a struct uffdio_move.
            let moved = unsafe { self.call(UFFDIO_MOVE, &mut argument, "ioctl UFFDIO_MOVE") };
            let again = matches!(moved, Err(Error::System { errno: libc::EAGAIN, .. }));
            match moved {
                Ok(()) => return (bytes, Ok(())),
                // How many bytes, or an error.
                Err(_) if again => done += u64::try_from(argument[4].cast_signed()).unwrap_or(0),
                Err(error) => return (done, Err(error)),
            }
        }
        (done, Ok(()))
    }

    /// A call of the kernel without a function in between that could store to protected pages.
    ///
    /// # Safety
    /// The argument has the layout that the call expects.
    unsafe fn call<const WORDS: usize>(
        &self,
        call: libc::c_ulong,
        argument: &mut [u64; WORDS],
        name: &'static str,
    ) -> Result<()> {
        let at = argument.as_mut_ptr();
        // SAFETY: the caller's promise.
        match unsafe { libc::syscall(libc::SYS_ioctl, self.file.descriptor(), call, at) } {
            0 => Ok(()),
            _ => Err(last_error(name)),
        }
    }
}
