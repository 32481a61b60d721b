//! epoll(7) instances: the descriptors that a thread watches, and their events.

use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, OwnedFd};

use crate::error::{Error, Result};
use crate::number::Number;

/// Events of one call of epoll_wait.
const EVENTS_MAX: usize = 64;

/// An epoll instance.
pub struct Epoll(OwnedFd);

impl Epoll {
    /// Makes an instance that watches nothing.
    pub fn new() -> Result<Epoll> {
        // SAFETY: a system call without memory.
        let descriptor = unsafe { libc::epoll_create1(libc::EPOLL_CLOEXEC) };
        if descriptor < 0 {
            let errno = io::Error::last_os_error().raw_os_error().unwrap_or(0);
            return Err(Error::System { call: "epoll_create1", errno });
        }
        // SAFETY: the system has just opened it.
        Ok(Epoll(unsafe { OwnedFd::from_raw_fd(descriptor) }))
    }

    /// Begins to watch a descriptor for events, which are reported with this number.
    pub fn add(&self, watched: BorrowedFd<'_>, events: i32, number: u64) -> io::Result<()> {
        self.control(libc::EPOLL_CTL_ADD, watched, events, number)
    }

    /// Watches a descriptor for these events from here on. Those that are pending already are
    /// reported.
    pub fn change(&self, watched: BorrowedFd<'_>, events: i32, number: u64) -> io::Result<()> {
        self.control(libc::EPOLL_CTL_MOD, watched, events, number)
    }

    /// Stops watching a descriptor.
    pub fn remove(&self, watched: BorrowedFd<'_>) {
        let _ = self.control(libc::EPOLL_CTL_DEL, watched, 0, 0);
    }

    fn control(
        &self,
        operation: i32,
        watched: BorrowedFd<'_>,
        events: i32,
        number: u64,
    ) -> io::Result<()> {
        let mut event = libc::epoll_event { events: events.cast_unsigned(), u64: number };
        let (list, watched) = (self.0.as_raw_fd(), watched.as_raw_fd());
        // SAFETY: the event is a local variable.
        match unsafe { libc::epoll_ctl(list, operation, watched, &raw mut event) } {
            0 => Ok(()),
            _ => Err(io::Error::last_os_error()),
        }
    }
}

/// It has news, as a descriptor, while one of its own has.
impl AsFd for Epoll {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}

/// Events that have come.
pub struct Events {
    list: [libc::epoll_event; EVENTS_MAX],
    count: usize,
}

impl Default for Events {
    fn default() -> Events {
        Events { list: [libc::epoll_event { events: 0, u64: 0 }; EVENTS_MAX], count: 0 }
    }
}

impl Events {
    /// Waits for events, for at most this number of milliseconds; -1: for ever. A signal ends the
    /// wait.
    pub fn wait(&mut self, epoll: &Epoll, milliseconds: i32) {
        let (place, most) = (self.list.as_mut_ptr(), EVENTS_MAX.to_i32());
        // SAFETY: the array has that many elements.
        let came = unsafe { libc::epoll_wait(epoll.0.as_raw_fd(), place, most, milliseconds) };
        self.count = usize::try_from(came).unwrap_or(0);
    }

    /// The events of the last wait.
    pub fn came(&self) -> &[libc::epoll_event] {
        &self.list[..self.count]
    }
}
