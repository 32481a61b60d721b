//! Options of the streams between origin and target, and the system calls on them that do not
//! wait. Invariant: an error of the network, or an unreachable peer, ends a stream within
//! [`SILENT_MAX`].

use std::io::{Error, Result};
use std::os::fd::{AsRawFd, BorrowedFd, OwnedFd};
use std::time::Duration;

use socket2::{SockRef, TcpKeepalive};

/// Time after which a stream ends whose other side does not acknowledge what was sent.
pub const SILENT_MAX: Duration = Duration::from_secs(10);

/// Prepares a stream. A stream within this process has none of the options of TCP.
pub fn prepare(stream: &OwnedFd) -> Result<()> {
    let stream = SockRef::from(stream);
    stream.set_nonblocking(true)?;
    if stream.domain()? == socket2::Domain::UNIX {
        return Ok(());
    }
    stream.set_tcp_nodelay(true)?;
    let interval = SILENT_MAX / 5;
    let keepalive = TcpKeepalive::new().with_time(interval).with_interval(interval);
    stream.set_tcp_keepalive(&keepalive.with_retries(4))?;
    stream.set_tcp_user_timeout(Some(SILENT_MAX))
}

/// Sends bytes without waiting, and returns how many were sent.
///
/// # Safety
/// The memory of the pieces may be read.
pub unsafe fn send(stream: BorrowedFd<'_>, pieces: &[libc::iovec]) -> Result<usize> {
    let mut message = message(pieces);
    // SAFETY: the pieces live during the call, and the caller vouches for their memory.
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

/// Sleeps until bytes have arrived, the stream has ended, or `most` is over.
pub fn wait(stream: &OwnedFd, most: Duration) {
    let mut one = libc::pollfd { fd: stream.as_raw_fd(), events: libc::POLLIN, revents: 0 };
    let nanoseconds = i64::from(most.subsec_nanos());
    let most = libc::timespec { tv_sec: most.as_secs().cast_signed(), tv_nsec: nanoseconds };
    // SAFETY: one element, and a time; both are local variables.
    unsafe { libc::ppoll(&raw mut one, 1, &raw const most, core::ptr::null()) };
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

/// Whether a call has found that it would have to wait, or was interrupted by a signal.
pub fn would_wait(error: &Error) -> bool {
    matches!(error.kind(), std::io::ErrorKind::WouldBlock | std::io::ErrorKind::Interrupted)
}
