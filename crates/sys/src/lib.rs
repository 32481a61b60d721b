//! Thin, typed wrappers over system calls; no policy.

#![cfg(not(loom))]
#![cfg_attr(test, allow(clippy::pedantic))] // tests cast small numbers

use fompi_base::{error, messages, number, sync};

pub mod adopt;
pub mod ancestors;
pub mod cgroup;
#[cfg(any(test, feature = "test-util"))]
pub mod child;
mod data_runs;
pub mod dl;
pub mod fast_networks;
pub mod fork;
pub mod futex;
pub mod got_slots;
pub mod gpu;
pub mod handshake;
pub mod ibverbs;
pub mod job;
pub mod kept_file;
pub mod life;
pub mod loaded_object;
pub mod membarrier;
pub mod memfd;
pub mod memory_limits;
pub mod own_sockets;
mod page;
pub mod passing;
pub mod proc_notes;
mod proc_text;
pub mod process;
pub mod processors;
pub mod random;
pub mod resident;
pub mod secret;
pub mod segment;
pub mod segment_name;
mod signals;
pub mod vm;

use crate::error::Error;
pub use page::{PAGE_BYTES_MIN, map_private, page_bytes};

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

#[cfg(test)]
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
