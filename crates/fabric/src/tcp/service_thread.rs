//! The service thread of a process: it carries out the requests of all connections that the process
//! serves, and sends what a full socket has not taken from an origin of this process. It sleeps in
//! epoll_wait(2) while there is nothing to do. It may run on the processors of all ranks of its
//! node. It never calls MPI, and it handles no signal of the program. A rank that waits serves in
//! its place ([`Serving`](super::serving::Serving)). Invariant: it waits for nothing else, so no
//! connection delays another one for longer than a turn.
//!
//! The streams are in a list of epoll of their own. It is one descriptor of the thread's list,
//! which reports no event of it while a rank serves.

use std::io;
use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::os::unix::thread::JoinHandleExt;
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::Duration;

use super::connections::{Connections, Server};
use super::descriptors::{Descriptors, LONG, SHORT, TURN, WAKE, drain, failed, set_timer};
use super::epoll::{Epoll, Events};
use super::exposures::Exposures;
use super::hand_over::{HandOver, ThreadEvents, TimerKind};
use super::served::Served;
use super::served_streams::SystemStreams;
use super::unsent::Unsent;
use crate::error::Result;
use crate::number::Number;
use crate::request::Leaves;
use crate::sync::{AtomicBool, Mutex, Ordering};
use crate::sys::own_sockets;
use crate::sys::process::without_signals;
use crate::sys::processors::Processors;

const STACK_BYTES: usize = 256 << 10;
/// Time after which the thread sends gathered requests. With its wake-up they leave within 50 us.
const SHORT_TIME: Duration = Duration::from_micros(30);
/// The same for requests that leave with later ones.
const LONG_TIME: Duration = Duration::from_millis(1);
/// Time after which a rank that serves must have made a step.
const STEP_MAX: Duration = Duration::from_millis(20);
/// Time in which a rank that has kept the turn to serve must come back. A request of an epoch for
/// which this rank need not call MPI waits for that long at most. In a virtual machine it may take
/// 15 us to start a timer that ends before the next tick of the system.
const KEEP_MAX: Duration = Duration::from_millis(1);
/// The events of an origin of this process have this bit; its number is the others.
const ORIGIN: u64 = 1 << 63;

/// The state that the thread and its callers share.
struct Shared {
    /// what the origins of this process have not sent
    unsent: HandOver<Origins>,
    connections: Arc<Connections<SystemStreams>>,
    descriptors: Arc<Descriptors>,
    /// connections that are not served yet
    adopted: Mutex<Vec<OwnedFd>>,
    closing: AtomicBool,
}

/// The events that concern the origins of this process.
struct Origins {
    descriptors: Arc<Descriptors>,
    connections: Arc<Connections<SystemStreams>>,
}

/// The running service thread; dropping it stops the thread.
pub struct ServiceThread {
    shared: Arc<Shared>,
    thread: Option<JoinHandle<()>>,
}

impl ServiceThread {
    /// Starts the thread, which serves this memory.
    pub fn start(exposures: &Arc<Exposures>) -> Result<ServiceThread> {
        let descriptors = Arc::new(Descriptors::new()?);
        let streams = SystemStreams::new(&descriptors, exposures);
        let connections = Arc::new(Connections::new(streams, STEP_MAX, KEEP_MAX));
        let origins =
            Origins { descriptors: descriptors.clone(), connections: connections.clone() };
        let shared = Arc::new(Shared {
            unsent: HandOver::new(origins),
            connections,
            descriptors,
            adopted: Mutex::default(),
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
        self.shared.connections.count_one();
        self.shared.adopted.lock().push(stream);
        self.shared.descriptors.wake();
    }

    /// Lets the thread run on these processors.
    pub fn run_on(&self, processors: Processors) {
        if let Some(thread) = &self.thread {
            // Without them it runs where it has run.
            let _ = processors.allow_to(thread.as_pthread_t());
        }
    }

    /// Number of connections that are served.
    pub fn served(&self) -> u64 {
        self.shared.connections.count()
    }

    /// The connections.
    pub(super) fn connections(&self) -> &Connections<SystemStreams> {
        &self.shared.connections
    }

    /// The list of the streams.
    pub(super) fn streams(&self) -> &Epoll {
        &self.shared.descriptors.streams
    }

    /// Does what events of streams ask for.
    pub(super) fn take(&self, events: &Events, by: Server) {
        self.shared.take(events, by);
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
        self.shared.descriptors.wake();
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

    /// Sends requests that were added and may not wait ([`Unsent::may_wait`]), if they are due or
    /// leave at once; otherwise starts the timer. The caller has locked the requests.
    #[cold]
    pub fn leave(&self, unsent: &mut Unsent, leaves: Leaves) -> io::Result<()> {
        self.shared.unsent.leave(self.number, unsent, leaves)
    }
}

impl Drop for Sender {
    fn drop(&mut self) {
        self.shared.unsent.close(self.number, &self.unsent);
    }
}

impl ThreadEvents for Origins {
    type Stream = OwnedFd;

    fn add(&self, number: u64, stream: &OwnedFd) -> io::Result<()> {
        self.descriptors.streams.add(stream.as_fd(), libc::EPOLLONESHOT, ORIGIN | number)
    }

    fn await_room(&self, number: u64, stream: &OwnedFd) -> io::Result<()> {
        let events = libc::EPOLLOUT | libc::EPOLLONESHOT;
        self.descriptors.streams.change(stream.as_fd(), events, ORIGIN | number)?;
        // The rank may compute from here on.
        self.connections.end_kept_turn();
        Ok(())
    }

    fn end(&self, stream: &OwnedFd) {
        self.descriptors.streams.remove(stream.as_fd());
        // SAFETY: a socket that is owned by the caller.
        unsafe { libc::shutdown(stream.as_raw_fd(), libc::SHUT_RDWR) };
    }

    fn start_timer(&self, which: TimerKind) {
        let time = if which == TimerKind::Short { SHORT_TIME } else { LONG_TIME };
        set_timer(self.descriptors.timer(which), time);
    }

    fn stop_timer(&self) {
        set_timer(&self.descriptors.short, Duration::ZERO);
    }

    fn take_timer(&self, which: TimerKind) {
        drain(self.descriptors.timer(which));
    }
}

impl Shared {
    /// Does what events of streams ask for.
    fn take(&self, events: &Events, by: Server) {
        for event in events.came() {
            let (number, what) = (event.u64, event.events);
            if number & ORIGIN != 0 {
                self.unsent.send_rest(number & !ORIGIN);
            } else {
                self.connections.event(by, number.to_usize(), what);
            }
        }
        self.connections.end_round(by);
    }

    /// Begins to serve connections that were adopted.
    fn adopt(&self) {
        drain(&self.descriptors.wake);
        for stream in core::mem::take(&mut *self.adopted.lock()) {
            self.connections.add(Served::new(stream));
        }
    }
}

/// Main loop of the thread.
fn serve(shared: &Shared) {
    let (mut events, mut of_streams) = (Events::default(), Events::default());
    let descriptors = &shared.descriptors;
    loop {
        let most = shared.connections.wait_max(Server::Thread);
        events.wait(&descriptors.epoll, most);
        if most == 0 && events.came().is_empty() {
            // A rank that holds a lock may need this core.
            std::thread::yield_now();
        }
        let mut news = most >= 0;
        for event in events.came() {
            match event.u64 {
                WAKE => shared.adopt(),
                SHORT => shared.unsent.send_gathered(TimerKind::Short),
                LONG => shared.unsent.send_gathered(TimerKind::Long),
                TURN => {
                    drain(&descriptors.turn);
                    shared.connections.timer_ended();
                }
                _ => news = true,
            }
        }
        if news {
            of_streams.wait(&descriptors.streams, 0);
            shared.take(&of_streams, Server::Thread);
        }
        // Acquire: pairs with the Release in `drop`, which precedes the event that wakes this
        // thread. Behind the events, because this one comes together with others.
        if shared.closing.load(Ordering::Acquire) {
            return;
        }
    }
}
