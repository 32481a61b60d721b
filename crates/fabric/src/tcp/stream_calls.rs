//! The system calls that send and receive. Not how long a thread may sleep in one: that is an
//! option of the stream.

use std::io::{Error, ErrorKind, Result};
use std::os::fd::{AsRawFd, BorrowedFd};

/// Sends bytes without waiting, and returns how many were sent.
///
/// # Safety
/// The memory of the pieces may be read.
pub unsafe fn send(stream: BorrowedFd<'_>, pieces: &[libc::iovec]) -> Result<usize> {
    let mut message = message(pieces);
    // SAFETY: the pieces live during the call, and the caller guarantees their memory.
    count(unsafe {
        libc::sendmsg(stream.as_raw_fd(), &raw mut message, libc::MSG_DONTWAIT | libc::MSG_NOSIGNAL)
    })
}

/// Receives bytes without waiting, and returns how many have arrived; 0 at the end of the stream.
///
/// # Safety
/// The memory of the pieces may be written.
pub unsafe fn receive(stream: BorrowedFd<'_>, pieces: &[libc::iovec]) -> Result<usize> {
    let mut message = message(pieces);
    // SAFETY: as in `send`.
    count(unsafe { libc::recvmsg(stream.as_raw_fd(), &raw mut message, libc::MSG_DONTWAIT) })
}

/// Receives bytes as [`receive`] does. If there are none, it sleeps until some have arrived, or for
/// a few milliseconds.
///
/// # Safety
/// The memory of the pieces may be written.
pub unsafe fn receive_asleep(stream: BorrowedFd<'_>, pieces: &[libc::iovec]) -> Result<usize> {
    let mut message = message(pieces);
    // SAFETY: as in `send`.
    count(unsafe { libc::recvmsg(stream.as_raw_fd(), &raw mut message, 0) })
}

fn message(pieces: &[libc::iovec]) -> libc::msghdr {
    // SAFETY: plain data; null and zero mean that there is no address and no control data.
    let mut message: libc::msghdr = unsafe { core::mem::zeroed() };
    message.msg_iov = pieces.as_ptr().cast_mut();
    message.msg_iovlen = pieces.len();
    message
}

fn count(answer: isize) -> Result<usize> {
    usize::try_from(answer).map_err(|_| Error::last_os_error())
}

/// Memory as a system call takes it.
pub fn piece(at: *const u8, bytes: usize) -> libc::iovec {
    libc::iovec { iov_base: at.cast_mut().cast(), iov_len: bytes }
}

/// Whether a call has found that nothing has arrived.
pub fn is_empty(error: &Error) -> bool {
    error.kind() == ErrorKind::WouldBlock
}

/// Whether a call succeeds later: it would have had to wait, a signal interrupted it, or the system
/// was short of memory, which says nothing about the stream.
pub fn would_wait(error: &Error) -> bool {
    let waits = matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::Interrupted);
    waits || matches!(error.raw_os_error(), Some(libc::ENOMEM | libc::ENOBUFS))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_call_that_finds_no_memory_is_repeated_and_one_on_an_ended_stream_is_not() {
        let repeats = |errno| would_wait(&Error::from_raw_os_error(errno));
        assert!(repeats(libc::ENOMEM) && repeats(libc::ENOBUFS));
        assert!(repeats(libc::EAGAIN) && repeats(libc::EINTR));
        assert!(!repeats(libc::ECONNRESET) && !repeats(libc::EFAULT) && !repeats(libc::EPIPE));
    }
}
