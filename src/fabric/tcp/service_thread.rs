//! The service thread of a process: it carries out the requests of all connections that the process
//! serves, and sends what a full socket has not taken from an origin of this process. It sleeps in
//! epoll_wait(2) while there is nothing to do. It may run on the processors of all ranks of its
//! node. It never calls MPI, and it handles no signal of the program. Invariant: it waits for
//! nothing else, so no connection delays another one for longer than a turn.

use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, OwnedFd};
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::Duration;

use super::exposures::Exposures;
use super::hand_over::{HandOver, ThreadEvents};
use super::served::{BUFFER_BYTES, Next, Served};
use super::unsent::Unsent;
use crate::error::{Error, Result};
use crate::fabric::contact::without_signals;
use crate::number::Number;
use crate::sync::{AtomicBool, AtomicU64, Mutex, Ordering};
use crate::sys::own_sockets;
use crate::sys::processors::Processors;

const STACK_BYTES: usize = 256 << 10;
/// Events of one call of epoll_wait.
const EVENTS_MAX: usize = 64;
/// The event that wakes the thread for new connections, or to end.
const WAKE: u64 = u64::MAX;
/// The event of the timer.
const TIMER: u64 = u64::MAX - 1;
/// Time after which the thread sends requests that were gathered.
const GATHERED_MAX: Duration = Duration::from_millis(1);
/// The events of an origin of this process have this bit; its number is the others.
const ORIGIN: u64 = 1 << 63;

/// The state that the thread and its callers share.
struct Shared {
    /// what the origins of this process have not sent
    unsent: HandOver<Descriptors>,
    exposures: Arc<Exposures>,
    /// connections that the thread has not begun to serve
    adopted: Mutex<Vec<OwnedFd>>,
    served: AtomicU64,
    /// those on which the thread may run, if they have changed
    processors: Mutex<Option<Processors>>,
    closing: AtomicBool,
}

/// What the thread waits for.
struct Descriptors {
    epoll: OwnedFd,
    wake: OwnedFd,
    timer: OwnedFd,
}

/// The running service thread; dropping it stops the thread.
pub struct ServiceThread {
    shared: Arc<Shared>,
    thread: Option<JoinHandle<()>>,
}

impl ServiceThread {
    /// Starts the thread, which serves this memory.
    pub fn start(exposures: &Arc<Exposures>) -> Result<ServiceThread> {
        let (epoll, wake, timer) = (epoll()?, event()?, timer()?);
        for (descriptor, number) in [(&wake, WAKE), (&timer, TIMER)] {
            watch(&epoll, libc::EPOLL_CTL_ADD, descriptor.as_fd(), libc::EPOLLIN, number)
                .map_err(failed("epoll_ctl"))?;
        }
        let shared = Arc::new(Shared {
            unsent: HandOver::new(Descriptors { epoll, wake, timer }),
            exposures: exposures.clone(),
            adopted: Mutex::default(),
            served: AtomicU64::new(0),
            processors: Mutex::default(),
            closing: AtomicBool::new(false),
        });
        let of_thread = shared.clone();
        let thread = without_signals(|| {
            std::thread::Builder::new()
                .name(String::from("fompi-service"))
                .stack_size(STACK_BYTES)
                .spawn(move || serve(&of_thread))
        });
        Ok(ServiceThread { shared, thread: Some(thread.map_err(failed("pthread_create"))?) })
    }

    /// Serves a connection from here on.
    pub fn adopt(&self, stream: OwnedFd) {
        // Relaxed: a count.
        self.shared.served.fetch_add(1, Ordering::Relaxed);
        self.shared.adopted.lock().push(stream);
        self.shared.descriptors().wake();
    }

    /// Lets the thread run on these processors.
    pub fn run_on(&self, processors: Processors) {
        *self.shared.processors.lock() = Some(processors);
        self.shared.descriptors().wake();
    }

    /// Number of connections that are served.
    pub fn served(&self) -> u64 {
        // Relaxed: a count.
        self.shared.served.load(Ordering::Relaxed)
    }

    /// Sends the requests of an origin of this process.
    pub fn sender(&self, stream: OwnedFd) -> io::Result<Sender> {
        let shared = self.shared.clone();
        let copy = Arc::new(own_sockets::open(|| stream.try_clone())?);
        let (number, unsent) = shared.unsent.add(stream)?;
        Ok(Sender { shared, number, unsent, stream: copy })
    }
}

impl Drop for ServiceThread {
    fn drop(&mut self) {
        // Release: pairs with the Acquire in `serve`.
        self.shared.closing.store(true, Ordering::Release);
        self.shared.descriptors().wake();
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

/// What an origin of this process sends with, and the thread's part in it.
pub struct Sender {
    shared: Arc<Shared>,
    number: u64,
    unsent: Arc<Mutex<Unsent>>,
    stream: Arc<OwnedFd>,
}

impl Sender {
    /// What is not sent.
    pub fn unsent(&self) -> &Arc<Mutex<Unsent>> {
        &self.unsent
    }

    /// The stream.
    pub fn stream(&self) -> &Arc<OwnedFd> {
        &self.stream
    }

    /// Sends what the socket takes; the thread sends the rest.
    pub fn send(&self, unsent: &mut Unsent) -> io::Result<()> {
        self.shared.unsent.send(self.number, unsent)
    }

    /// Sends requests that were added, if they are due or `urgent`; otherwise the thread sends in a
    /// millisecond what is not sent by then. The caller has locked the requests.
    pub fn send_or_leave(&self, unsent: &mut Unsent, urgent: bool) -> io::Result<()> {
        self.shared.unsent.send_or_leave(self.number, unsent, urgent)
    }
}

impl Drop for Sender {
    fn drop(&mut self) {
        self.shared.unsent.close(self.number, &self.unsent);
    }
}

impl ThreadEvents for Descriptors {
    type Stream = OwnedFd;

    fn add(&self, number: u64, stream: &OwnedFd) -> io::Result<()> {
        let (operation, events) = (libc::EPOLL_CTL_ADD, libc::EPOLLONESHOT);
        watch(&self.epoll, operation, stream.as_fd(), events, ORIGIN | number)
    }

    fn await_room(&self, number: u64, stream: &OwnedFd) -> io::Result<()> {
        let (operation, events) = (libc::EPOLL_CTL_MOD, libc::EPOLLOUT | libc::EPOLLONESHOT);
        watch(&self.epoll, operation, stream.as_fd(), events, ORIGIN | number)
    }

    fn end(&self, stream: &OwnedFd) {
        let _ = watch(&self.epoll, libc::EPOLL_CTL_DEL, stream.as_fd(), 0, 0);
        // SAFETY: a socket that is owned by the caller.
        unsafe { libc::shutdown(stream.as_raw_fd(), libc::SHUT_RDWR) };
    }

    fn start_timer(&self) {
        let tv_nsec = i64::from(GATHERED_MAX.subsec_nanos());
        let none = libc::timespec { tv_sec: 0, tv_nsec: 0 };
        let time =
            libc::itimerspec { it_interval: none, it_value: libc::timespec { tv_sec: 0, tv_nsec } };
        let timer = self.timer.as_raw_fd();
        // SAFETY: the time is a local variable.
        unsafe { libc::timerfd_settime(timer, 0, &raw const time, core::ptr::null_mut()) };
    }

    fn take_timer(&self) {
        drain(&self.timer);
    }
}

impl Descriptors {
    fn wake(&self) {
        let one = 1u64;
        // SAFETY: eight bytes of a local variable. The counter of the event does not overflow.
        unsafe { libc::write(self.wake.as_raw_fd(), (&raw const one).cast(), size_of::<u64>()) };
    }
}

impl Shared {
    fn descriptors(&self) -> &Descriptors {
        self.unsent.events()
    }

    fn close(&self, connection: &mut Option<Served>) {
        if connection.take().is_some() {
            // Relaxed: a count.
            self.served.fetch_sub(1, Ordering::Relaxed);
        }
    }
}

/// The connections that the thread serves.
#[derive(Default)]
struct Connections {
    list: Vec<Option<Served>>,
    free: Vec<usize>,
    /// those that are to be served again before the thread sleeps
    again: Vec<usize>,
}

/// Main loop of the thread.
fn serve(shared: &Shared) {
    let mut connections = Connections::default();
    let mut buffer = vec![0; BUFFER_BYTES];
    let mut events = [libc::epoll_event { events: 0, u64: 0 }; EVENTS_MAX];
    loop {
        let timeout = if connections.again.is_empty() { -1 } else { 0 };
        let (place, most) = (events.as_mut_ptr(), EVENTS_MAX.to_i32());
        // SAFETY: the array has that many elements.
        let count = unsafe {
            libc::epoll_wait(shared.descriptors().epoll.as_raw_fd(), place, most, timeout)
        };
        // Acquire: pairs with the Release in `drop`, which precedes the event that wakes this
        // thread.
        if shared.closing.load(Ordering::Acquire) {
            return;
        }
        let again = core::mem::take(&mut connections.again);
        let came = usize::try_from(count).unwrap_or(0);
        for event in &events[..came] {
            let number = event.u64;
            match number {
                WAKE => connections.wake(shared),
                TIMER => shared.unsent.send_gathered(),
                _ if number & ORIGIN != 0 => shared.unsent.send_rest(number & !ORIGIN),
                _ => connections.turn(shared, number.to_usize(), &mut buffer),
            }
        }
        for index in again {
            connections.turn(shared, index, &mut buffer);
        }
    }
}

impl Connections {
    /// Begins to serve connections that were adopted, and runs on new processors.
    fn wake(&mut self, shared: &Shared) {
        drain(&shared.descriptors().wake);
        if let Some(processors) = shared.processors.lock().take() {
            // Without them it runs where it has run.
            let _ = processors.allow();
        }
        let adopted = core::mem::take(&mut *shared.adopted.lock());
        for stream in adopted {
            let index = self.free.pop().unwrap_or_else(|| {
                self.list.push(None);
                self.list.len() - 1
            });
            let served = Served::new(stream);
            let (stream, events) = (served.stream().as_fd(), libc::EPOLLIN);
            let watched = watch(
                &shared.descriptors().epoll,
                libc::EPOLL_CTL_ADD,
                stream,
                events,
                index.to_u64(),
            );
            self.list[index] = Some(served);
            if watched.is_err() {
                // The origin finds the end of the stream.
                self.close(shared, index);
            }
        }
    }

    /// Serves a connection once.
    fn turn(&mut self, shared: &Shared, index: usize, buffer: &mut [u8]) {
        let Some(Some(served)) = self.list.get_mut(index) else { return };
        let next = served.turn(&shared.exposures, buffer);
        let events = match next {
            Next::End => return self.close(shared, index),
            Next::Again => {
                self.again.push(index);
                return;
            }
            Next::Receive => libc::EPOLLIN,
            Next::Send => libc::EPOLLOUT,
        };
        if served.watches(events) {
            return;
        }
        let number = index.to_u64();
        let watched = watch(
            &shared.descriptors().epoll,
            libc::EPOLL_CTL_MOD,
            served.stream().as_fd(),
            events,
            number,
        );
        if watched.is_err() {
            self.close(shared, index);
        }
    }

    fn close(&mut self, shared: &Shared, index: usize) {
        shared.close(&mut self.list[index]);
        self.free.push(index);
    }
}

fn epoll() -> Result<OwnedFd> {
    // SAFETY: a system call without memory.
    owned(unsafe { libc::epoll_create1(libc::EPOLL_CLOEXEC) }).map_err(failed("epoll_create1"))
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

/// Reads the number of events, so that the next one is a new one.
fn drain(descriptor: &OwnedFd) {
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

fn failed(call: &'static str) -> impl Fn(io::Error) -> Error {
    move |error| Error::System { call, errno: error.raw_os_error().unwrap_or(0) }
}

/// Adds, changes or removes what epoll watches a socket for.
fn watch(
    epoll: &OwnedFd,
    operation: i32,
    socket: BorrowedFd<'_>,
    events: i32,
    number: u64,
) -> io::Result<()> {
    let mut event = libc::epoll_event { events: events.cast_unsigned(), u64: number };
    let (epoll, socket) = (epoll.as_raw_fd(), socket.as_raw_fd());
    // SAFETY: the event is a local variable.
    match unsafe { libc::epoll_ctl(epoll, operation, socket, &raw mut event) } {
        0 => Ok(()),
        _ => Err(io::Error::last_os_error()),
    }
}
