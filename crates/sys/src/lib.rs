//! Thin, typed wrappers over system calls; no policy.

// Under the model checker most of the items have no users.
#![cfg_attr(loom, allow(dead_code, unused_imports))]
#![cfg_attr(test, allow(clippy::pedantic))] // tests cast small numbers

use fompi_base::{error, number, sync};

#[cfg(not(loom))]
pub mod adopt;
#[cfg(not(loom))]
pub mod ancestors;
pub mod cgroup;
#[cfg(all(any(test, feature = "test-util"), not(loom)))]
pub mod child;
pub mod dl;
pub mod fast_networks;
#[cfg(not(loom))]
pub mod fork;
#[cfg(not(loom))]
pub mod futex;
#[cfg(not(loom))]
pub mod got_slots;
pub mod gpu;
#[cfg(not(loom))]
pub mod handshake;
#[cfg(not(loom))]
pub mod ibverbs;
#[cfg(not(loom))]
pub mod job;
#[cfg(not(loom))]
pub mod life;
pub mod loaded_object;
pub mod memfd;
pub mod memory_limits;
#[cfg(not(loom))]
pub mod own_sockets;
mod page;
#[cfg(not(loom))]
pub mod passing;
pub mod proc_notes;
pub mod process;
#[cfg(not(loom))]
pub mod processors;
#[cfg(not(loom))]
pub mod random;
#[cfg(not(loom))]
pub mod resident;
#[cfg(not(loom))]
pub mod secret;
#[cfg(not(loom))]
pub mod segment;
#[cfg(not(loom))]
pub mod segment_name;
#[cfg(not(loom))]
pub mod vm;

use crate::error::Error;
pub use page::{PAGE_BYTES_MIN, page_bytes};

/// Repeats a system call as long as a signal interrupts it: the program may have handlers that do
/// not restart calls. `call` returns a negative number if it fails, and sets `errno`.
pub fn uninterrupted<T: Default + PartialOrd>(mut call: impl FnMut() -> T) -> T {
    loop {
        let answer = call();
        if answer >= T::default()
            || std::io::Error::last_os_error().kind() != std::io::ErrorKind::Interrupted
        {
            return answer;
        }
    }
}

/// The error of the system call that just failed.
pub fn last_error(call: &'static str) -> Error {
    let errno = std::io::Error::last_os_error().raw_os_error().unwrap_or(0);
    Error::System { call, errno }
}

/// Whether an `errno` means that this process or its node is out of a resource for now: a later
/// attempt may succeed.
pub fn is_shortage(errno: i32) -> bool {
    matches!(errno, libc::EMFILE | libc::ENFILE | libc::ENOMEM | libc::ENOBUFS)
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    /// Answers -1 with these errors, one after the other, and 7 then.
    fn answer(errors: &[i32]) -> (i32, usize) {
        let mut calls = 0;
        let answer = uninterrupted(|| {
            let error = errors.get(calls);
            calls += 1;
            // SAFETY: `errno` of this thread.
            unsafe { *libc::__errno_location() = *error.unwrap_or(&libc::EINTR) };
            if error.is_some() { -1 } else { 7 }
        });
        (answer, calls)
    }

    #[test]
    fn a_call_that_a_signal_interrupts_is_made_again() {
        assert_eq!(answer(&[]), (7, 1));
        assert_eq!(answer(&[libc::EINTR, libc::EINTR]), (7, 3));
        assert_eq!(answer(&[libc::EINTR, libc::EIO, libc::EINTR]), (-1, 2));
    }
}
