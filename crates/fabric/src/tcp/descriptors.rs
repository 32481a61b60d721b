//! File descriptors that the service thread of a process waits on.

use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, OwnedFd};
use std::time::Duration;

use super::epoll::Epoll;
use super::hand_over::TimerKind;
use crate::error::{Error, Result};

/// The event that wakes the thread for new connections, or to end.
pub const WAKE: u64 = u64::MAX;
/// The events of the timers.
pub const SHORT: u64 = u64::MAX - 1;
pub const LONG: u64 = u64::MAX - 2;
pub const TURN: u64 = u64::MAX - 3;
/// The event for news in the list of streams.
pub const STREAMS: u64 = u64::MAX - 4;

/// The descriptors that the thread waits on.
pub struct Descriptors {
    /// the instance on which the thread waits, with all others
    pub(super) epoll: Epoll,
    /// the instance of the streams: those of the connections, and those of the origins that await
    /// room
    pub(super) streams: Epoll,
    pub(super) wake: OwnedFd,
    pub(super) short: OwnedFd,
    pub(super) long: OwnedFd,
    pub(super) turn: OwnedFd,
}

impl Descriptors {
    /// Opens them.
    pub fn new() -> Result<Descriptors> {
        let (epoll, streams, wake) = (Epoll::new()?, Epoll::new()?, event()?);
        let (short, long, turn) = (timer()?, timer()?, timer()?);
        let add = |descriptor: BorrowedFd<'_>, number| {
            epoll.add(descriptor, libc::EPOLLIN, number).map_err(failed("epoll_ctl"))
        };
        add(streams.as_fd(), STREAMS)?;
        for (descriptor, number) in [(&wake, WAKE), (&short, SHORT), (&long, LONG), (&turn, TURN)] {
            add(descriptor.as_fd(), number)?;
        }
        Ok(Descriptors { epoll, streams, wake, short, long, turn })
    }

    /// Wakes the thread for news of streams, or not.
    pub fn wake_for_streams(&self, wakes: bool) {
        let events = if wakes { libc::EPOLLIN } else { 0 };
        // It fails only without memory, which a change does not allocate.
        let _ = self.epoll.change(self.streams.as_fd(), events, STREAMS);
    }

    /// Arms the timer that limits how long a rank serves, or keeps its turn.
    pub fn start_turn_timer(&self, time: Duration) {
        set_timer(&self.turn, time);
    }

    /// The timer.
    pub fn timer(&self, which: TimerKind) -> &OwnedFd {
        if which == TimerKind::Short { &self.short } else { &self.long }
    }

    /// Wakes the thread.
    pub fn wake(&self) {
        let one = 1u64;
        // SAFETY: eight bytes of a local variable. The counter of the event does not overflow.
        unsafe { libc::write(self.wake.as_raw_fd(), (&raw const one).cast(), size_of::<u64>()) };
    }
}

fn event() -> Result<OwnedFd> {
    let flags = libc::EFD_CLOEXEC | libc::EFD_NONBLOCK;
    // SAFETY: a system call without memory.
    owned(unsafe { libc::eventfd(0, flags) }).map_err(failed("eventfd"))
}

fn timer() -> Result<OwnedFd> {
    let flags = libc::TFD_CLOEXEC | libc::TFD_NONBLOCK;
    // SAFETY: a system call without memory.
    owned(unsafe { libc::timerfd_create(libc::CLOCK_MONOTONIC, flags) })
        .map_err(failed("timerfd_create"))
}

/// Sets a timer to this time, of less than a second; zero stops it.
pub fn set_timer(timer: &OwnedFd, time: Duration) {
    let tv_nsec = i64::from(time.subsec_nanos());
    let none = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    let time =
        libc::itimerspec { it_interval: none, it_value: libc::timespec { tv_sec: 0, tv_nsec } };
    // SAFETY: the time is a local variable.
    unsafe { libc::timerfd_settime(timer.as_raw_fd(), 0, &raw const time, core::ptr::null_mut()) };
}

/// Reads the number of events, so that the next one is a new one.
pub fn drain(descriptor: &OwnedFd) {
    let mut count = 0u64;
    // SAFETY: eight bytes of a local variable.
    unsafe { libc::read(descriptor.as_raw_fd(), (&raw mut count).cast(), size_of::<u64>()) };
}

fn owned(descriptor: i32) -> io::Result<OwnedFd> {
    if descriptor < 0 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: the system has just opened it.
    Ok(unsafe { OwnedFd::from_raw_fd(descriptor) })
}

/// Makes the error of a call.
pub fn failed(call: &'static str) -> impl Fn(io::Error) -> Error {
    move |error| Error::System { call, errno: error.raw_os_error().unwrap_or(0) }
}
