//! Sockets that belong to this process alone: a child of fork(2) gets dead ones in their places. So
//! a stream ends when this process ends, although a child lives on, and a child cannot disturb a
//! stream of its parent by mistake. Programs that are executed inherit none of them. In the child
//! this file allocates nothing: it makes system calls only. Not covered: clone(2) and _Fork, which
//! call no handlers.

#![allow(clippy::missing_safety_doc)] // callbacks: called by the C library at a fork

use super::fork;
use super::kept_file::identity;
use parking_lot::Mutex;
use parking_lot::lock_api::RawMutex as _;
use std::io::Result;
use std::os::fd::{AsRawFd, RawFd};
use std::sync::Once;

/// The descriptors of the sockets, and their devices and inodes: a number of a descriptor may
/// belong to something else later. Held during a fork by the thread that forks.
static SOCKETS: Mutex<Vec<(RawFd, (u64, u64))>> = Mutex::new(Vec::new());

/// Opens a socket that children do not get. `open` does not wait, because a fork waits for it.
pub fn open<T: AsRawFd>(open: impl FnOnce() -> Result<T>) -> Result<T> {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| fork::at_fork(before, in_parent, in_child));
    let mut sockets = SOCKETS.lock();
    let socket = open()?;
    let number = socket.as_raw_fd();
    if let Ok(identity) = identity(number) {
        match sockets.iter_mut().find(|(known, _)| *known == number) {
            Some(known) => known.1 = identity,
            None => sockets.push((number, identity)),
        }
    }
    Ok(socket)
}

unsafe extern "C" fn before() {
    std::mem::forget(SOCKETS.lock()); // until after the fork
}

/// Runs in the parent, also if fork(2) failed.
unsafe extern "C" fn in_parent() {
    // SAFETY: `before` has locked it in this thread.
    unsafe { SOCKETS.force_unlock() };
}

/// Runs in the child, which has no other thread.
unsafe extern "C" fn in_child() {
    // SAFETY: `before` has locked it in this thread.
    let sockets = unsafe { &mut *SOCKETS.data_ptr() };
    let mut ends = [-1; 2];
    let kind = libc::SOCK_STREAM | libc::SOCK_CLOEXEC;
    // SAFETY: a place for two descriptors. Without them the sockets are closed.
    unsafe { libc::socketpair(libc::AF_UNIX, kind, 0, ends.as_mut_ptr()) };
    let [dead, other] = ends;
    close(other);
    for (socket, kept) in sockets.drain(..) {
        if !identity(socket).is_ok_and(|found| found == kept) {
            continue;
        }
        // SAFETY: a socket of ours takes the place of one of ours.
        if unsafe { libc::dup3(dead, socket, libc::O_CLOEXEC) } < 0 {
            close(socket);
        }
    }
    close(dead);
    // No thread waits for the lock here; one of the parent may have.
    // SAFETY: no other thread uses it; the state is consistent, because this thread had locked it.
    unsafe { core::ptr::from_ref(SOCKETS.raw()).cast_mut().write(parking_lot::RawMutex::INIT) };
}

fn close(descriptor: RawFd) {
    if descriptor >= 0 {
        // SAFETY: a descriptor of ours that is not used again.
        unsafe { libc::close(descriptor) };
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::child::Child;
    use std::io::{ErrorKind, Read, Write};
    use std::os::unix::net::UnixStream;

    /// A pair of streams; children do not get the first one.
    fn pair() -> (UnixStream, UnixStream) {
        let mut other = None;
        let first = open(|| {
            let (first, second) = UnixStream::pair()?;
            other = Some(second);
            Ok(first)
        });
        (first.unwrap(), other.unwrap())
    }

    #[test]
    fn a_stream_ends_with_its_process_though_a_child_lives_on() {
        let (ours, mut peer) = pair();
        let child = Child::stopped(|| ());
        drop(ours);
        peer.set_read_timeout(Some(std::time::Duration::from_secs(20))).unwrap();
        assert_eq!(peer.read(&mut [0]).unwrap(), 0, "the end of the stream");
        drop(child);
    }

    #[test]
    fn a_child_reaches_no_stream_of_its_parent() {
        let (mut ours, peer) = pair();
        let (mut copy, mut read) = (ours.try_clone().unwrap(), peer.try_clone().unwrap());
        let copy =
            open(|| copy.try_clone()).map(|ours| core::mem::replace(&mut copy, ours)).unwrap();
        let child = Child::working(|| {
            let flags = libc::MSG_NOSIGNAL;
            // SAFETY: one byte.
            let sent = unsafe { libc::send(ours.as_raw_fd(), c"x".as_ptr().cast(), 1, flags) };
            let error = std::io::Error::last_os_error().kind();
            sent < 0 && error == ErrorKind::BrokenPipe
        });
        assert!(child.said_yes());
        ours.write_all(b"y").unwrap();
        let mut byte = [0];
        read.read_exact(&mut byte).unwrap();
        assert_eq!(byte, *b"y");
        drop((copy, peer));
    }

    #[test]
    fn a_descriptor_that_is_something_else_now_stays_so_in_a_child() {
        let (ours, peer) = pair();
        let number = ours.as_raw_fd();
        drop((ours, peer));
        let (pipe, _write) = std::io::pipe().unwrap();
        // SAFETY: a number that was ours, and is used by nothing else unless another test got it.
        let free = unsafe { libc::fcntl(number, libc::F_GETFD) } < 0;
        if free {
            // SAFETY: as said.
            unsafe { libc::dup2(pipe.as_raw_fd(), number) };
            let child =
                Child::working(|| identity(number).unwrap() == identity(pipe.as_raw_fd()).unwrap());
            assert!(child.said_yes());
            close(number);
        }
    }
}
