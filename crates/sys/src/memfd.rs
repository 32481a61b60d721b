//! Files in memory. Other processes of the user see the name of such a file in /proc/PID/fd, and
//! open it there. It needs no file system, and is gone when no process has it open or mapped.

use super::last_error;
use crate::error::Result;
use core::ffi::CStr;
use std::fs::File;
use std::os::fd::FromRawFd;

/// Creates an empty file with this name, which may be sealed. A child process that runs another
/// program does not inherit it, and cannot execute it. Linux before 6.3 knows no such files: there
/// the file may be executed.
pub fn create(name: &CStr) -> Result<File> {
    let plain = libc::MFD_CLOEXEC | libc::MFD_ALLOW_SEALING;
    for flags in [plain | libc::MFD_NOEXEC_SEAL, plain] {
        // SAFETY: a valid name; the result is checked.
        let fd = unsafe { libc::memfd_create(name.as_ptr(), flags) };
        if fd >= 0 {
            // SAFETY: `fd` was just made and has no other owner.
            return Ok(unsafe { File::from_raw_fd(fd) });
        }
        if std::io::Error::last_os_error().raw_os_error() != Some(libc::EINVAL) {
            break;
        }
    }
    Err(last_error("memfd_create"))
}
