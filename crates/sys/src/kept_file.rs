//! A descriptor that stays open between uses. The program may close descriptors that it does not
//! know, and may get the number again for a file of its own. So each use checks first that the
//! number is still this file.

use core::mem::ManuallyDrop;
use core::ops::Deref;
use std::fs::File;
use std::io::{Error, Result};
use std::os::fd::{AsRawFd, RawFd};

/// Returns device and inode of an open file. Allocates nothing.
pub fn identity(descriptor: RawFd) -> Result<(u64, u64)> {
    // SAFETY: plain data, for which zero is a value.
    let mut status: libc::stat = unsafe { core::mem::zeroed() };
    // SAFETY: `status` is ours; any number may be asked for.
    match unsafe { libc::fstat(descriptor, &mut status) } {
        0 => Ok((status.st_dev, status.st_ino)),
        _ => Err(Error::last_os_error()),
    }
}

/// An open file or socket, until it is dropped.
#[derive(Debug)]
pub struct KeptDescriptor<T: AsRawFd> {
    file: ManuallyDrop<T>,
    identity: (u64, u64),
}

/// An open file, until it is dropped.
pub type KeptFile = KeptDescriptor<File>;

impl<T: AsRawFd> KeptDescriptor<T> {
    /// Keeps an open file.
    pub fn new(file: T) -> Result<KeptDescriptor<T>> {
        let identity = identity(file.as_raw_fd())?;
        Ok(KeptDescriptor { file: ManuallyDrop::new(file), identity })
    }

    /// Returns device and inode.
    pub fn identity(&self) -> (u64, u64) {
        self.identity
    }

    /// Whether the descriptor is still this file's.
    pub fn is_open(&self) -> bool {
        identity(self.file.as_raw_fd()).is_ok_and(|found| found == self.identity)
    }
}

/// The file, for a caller that has asked `is_open`.
impl<T: AsRawFd> Deref for KeptDescriptor<T> {
    type Target = T;

    fn deref(&self) -> &T {
        &self.file
    }
}

impl<T: AsRawFd> Drop for KeptDescriptor<T> {
    fn drop(&mut self) {
        // A descriptor about which fstat(2) fails for lack of memory is still this file's.
        let is_ours = match identity(self.file.as_raw_fd()) {
            Ok(found) => found == self.identity,
            Err(error) => error.raw_os_error() != Some(libc::EBADF),
        };
        if is_ours {
            // SAFETY: it is not used again.
            unsafe { ManuallyDrop::drop(&mut self.file) };
        }
    }
}
