//! Open files of this process by which the kernel or a device may begin to use its memory without a
//! system call of the process, or hold it in ways that the kernel does not count.

use std::fs;

/// Devices whose drivers hold memory of processes: adapters of Slingshot and Omni-Path, devices
/// that a program drives by itself, and memory that GPUs share with adapters.
const HOLDERS: [&str; 6] =
    ["/dev/cxi", "/dev/hfi1", "/dev/vfio/", "/dev/uio", "/dev/nvidia", "/dev/iommu"];
/// A ring of io_uring: the kernel carries out what is queued there at any time.
const RING: &str = "anon_inode:[io_uring]";

/// Whether the process has such a file open, or that is unknown.
pub fn may_use_memory() -> bool {
    let Ok(files) = fs::read_dir("/proc/self/fd") else { return true };
    files.flatten().any(|file| {
        // One that another thread has closed meanwhile has no link.
        fs::read_link(file.path()).is_ok_and(|link| link.to_str().is_some_and(is_user))
    })
}

fn is_user(link: &str) -> bool {
    link == RING || HOLDERS.iter().any(|device| link.starts_with(device))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn adapters_and_rings_use_memory() {
        let users = ["/dev/cxi0", "/dev/hfi1_0", "/dev/vfio/12", "/dev/uio0", RING];
        assert!(users.iter().all(|link| is_user(link)));
        let others = ["/dev/null", "/dev/pts/0", "anon_inode:[eventpoll]", "pipe:[7]", "/tmp/cxi"];
        assert!(!others.iter().any(|link| is_user(link)));
    }

    #[test]
    fn this_process_has_none() {
        assert!(!may_use_memory());
    }
}
