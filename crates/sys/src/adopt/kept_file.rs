//! A descriptor that stays open between uses. The program may close descriptors that it does not
//! know, and may get the number again for a file of its own. So each use checks first that the
//! number is still this file.

use core::mem::ManuallyDrop;
use std::fs::File;
use std::os::fd::AsRawFd;
#[cfg(any(test, feature = "test-util"))]
use std::os::fd::FromRawFd;

/// An open file, until it is dropped.
#[derive(Debug)]
pub struct KeptFile {
    file: ManuallyDrop<File>,
    identity: Option<(u64, u64)>,
}

/// Returns device and inode of an open file.
fn identity(descriptor: i32) -> Option<(u64, u64)> {
    // SAFETY: plain data, for which zero is a value.
    let mut status: libc::stat = unsafe { core::mem::zeroed() };
    // SAFETY: `status` is ours; any number may be asked for.
    let told = unsafe { libc::fstat(descriptor, &mut status) } == 0;
    told.then_some((status.st_dev, status.st_ino))
}

impl KeptFile {
    /// Keeps an open file.
    pub fn new(file: File) -> KeptFile {
        let identity = identity(file.as_raw_fd());
        KeptFile { file: ManuallyDrop::new(file), identity }
    }

    /// Opens a file of /proc/self for reading.
    pub fn of_process(path: &str) -> Option<KeptFile> {
        File::open(path).ok().map(KeptFile::new)
    }

    /// Takes a descriptor that a system call has just returned, if it is one.
    #[cfg(any(test, feature = "test-util"))]
    pub fn of_descriptor(descriptor: i64) -> Option<KeptFile> {
        let descriptor = i32::try_from(descriptor).ok().filter(|descriptor| *descriptor >= 0)?;
        // SAFETY: it was just made and has no other owner.
        Some(KeptFile::new(unsafe { File::from_raw_fd(descriptor) }))
    }

    /// Whether the descriptor is still this file's.
    pub fn is_open(&self) -> bool {
        self.identity.is_some() && identity(self.file.as_raw_fd()) == self.identity
    }

    /// Returns the descriptor. The caller has asked `is_open`.
    pub fn descriptor(&self) -> i32 {
        self.file.as_raw_fd()
    }
}

impl Drop for KeptFile {
    fn drop(&mut self) {
        if self.is_open() {
            // SAFETY: it is not used again.
            unsafe { ManuallyDrop::drop(&mut self.file) };
        }
    }
}
