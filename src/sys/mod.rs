//! The metal: what the operating system gives. Thin, typed wrappers over system calls; no policy.

#[cfg(not(loom))]
pub mod ancestors;
pub mod cgroup;
#[cfg(all(test, not(loom)))]
pub mod child;
pub mod dl;
#[cfg(not(loom))]
pub mod fork;
#[cfg(not(loom))]
pub mod futex;
#[cfg(not(loom))]
pub mod ibverbs;
#[cfg(not(loom))]
pub mod job;
#[cfg(not(loom))]
pub mod life;
pub mod limits;
pub mod process;
#[cfg(not(loom))]
pub mod random;
#[cfg(not(loom))]
pub mod resident;
pub mod segment;
pub mod serial;
#[cfg(not(loom))]
pub mod vm;

use crate::error::Error;

/// The error of the system call that just failed.
pub fn last_error(call: &'static str) -> Error {
    let errno = std::io::Error::last_os_error().raw_os_error().unwrap_or(0);
    Error::System { call, errno }
}
