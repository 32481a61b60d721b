//! The hand-over of requests under loom: every order of the origin's calls and the service thread,
//! within a bound of preemptions; without loom the same tests on threads of the machine. A socket
//! here takes as many bytes as it has room for, and it has more room with each turn of the thread.

use std::io::{Error, Result};
use std::sync::Mutex as Plain;

use super::hand_over::{HandOver, ThreadEvents, TimerKind};
use super::unsent::{RequestStream, Unsent};
use crate::leaves::Leaves;
use crate::sync::Ordering::{AcqRel, Acquire, Release};
use crate::sync::{AtomicBool, AtomicU64, Mutex};
use fompi_testkit::model;

#[cfg(loom)]
use loom::thread;
use std::sync::Arc;
#[cfg(not(loom))]
use std::thread;

/// Bytes of a request, and bytes for which there is more room in each turn of the thread: one less
/// or more than requests have, so that requests are cut.
const REQUEST: usize = 2;
const ROOM: u64 = 3;
/// Turns of the thread while the origins call.
const TURNS: usize = 2;
/// The number of the first request of an origin, so that its bytes are known.
const FIRST: u8 = 10;

/// A socket and its peer. Their memory orders nothing, so the hand-over has to.
struct Socket {
    room: AtomicU64,
    /// whether the thread waits for room
    awaited: AtomicBool,
    /// whether the next call fails: the system reports a failure once, and later only the end
    breaks: AtomicBool,
    has_ended: AtomicBool,
    is_closed: AtomicBool,
    came: Plain<Vec<u8>>,
}

/// The origin's stream.
struct Stream(Arc<Socket>);

impl RequestStream for Stream {
    unsafe fn send(&self, pieces: &[libc::iovec]) -> Result<usize> {
        let socket = &*self.0;
        assert!(!socket.is_closed.load(Acquire), "bytes leave a closed connection");
        if socket.breaks.swap(false, AcqRel) {
            socket.has_ended.store(true, Release);
            return Err(Error::from_raw_os_error(libc::ECONNRESET));
        }
        if socket.has_ended.load(Acquire) {
            return Err(Error::from_raw_os_error(libc::EPIPE));
        }
        let mut room = socket.room.swap(0, AcqRel) as usize;
        let (mut came, mut sent) = (socket.came.lock().unwrap(), 0);
        for piece in pieces {
            let taken = piece.iov_len.min(room);
            // SAFETY: the caller guarantees the memory of the pieces.
            came.extend(unsafe { core::slice::from_raw_parts(piece.iov_base.cast(), taken) });
            (room, sent) = (room - taken, sent + taken);
        }
        socket.room.fetch_add(room as u64, AcqRel);
        if sent == 0 { Err(Error::from_raw_os_error(libc::EAGAIN)) } else { Ok(sent) }
    }
}

/// What the thread waits for: state of the system. A system call sees its last value, so all
/// changes are swaps, which the model checker orders in the same way for all threads.
struct Events {
    short: AtomicBool,
    long: AtomicBool,
}

impl Events {
    fn timer(&self, which: TimerKind) -> &AtomicBool {
        if which == TimerKind::Short { &self.short } else { &self.long }
    }
}

impl ThreadEvents for Events {
    type Stream = Stream;

    fn add(&self, _number: u64, _stream: &Stream) -> Result<()> {
        Ok(())
    }

    fn await_room(&self, _number: u64, stream: &Stream) -> Result<()> {
        stream.0.awaited.swap(true, AcqRel);
        Ok(())
    }

    fn end(&self, stream: &Stream) {
        stream.0.is_closed.store(true, Release);
    }

    fn start_timer(&self, which: TimerKind) {
        self.timer(which).swap(true, AcqRel);
    }

    fn stop_timer(&self) {
        self.short.swap(false, AcqRel);
    }

    fn take_timer(&self, which: TimerKind) {
        self.timer(which).swap(false, AcqRel);
    }
}

/// One origin: its end of the connection, and the socket.
struct Origin {
    all: Arc<HandOver<Events>>,
    number: u64,
    unsent: Arc<Mutex<Unsent<Stream>>>,
    socket: Arc<Socket>,
}

impl Origin {
    fn new(all: &Arc<HandOver<Events>>, breaks: bool) -> Origin {
        let socket = Arc::new(Socket {
            room: AtomicU64::new(0),
            awaited: AtomicBool::new(false),
            breaks: AtomicBool::new(breaks),
            has_ended: AtomicBool::new(false),
            is_closed: AtomicBool::new(false),
            came: Plain::default(),
        });
        let (number, unsent) = all.add(Stream(socket.clone())).unwrap();
        Origin { all: all.clone(), number, unsent, socket }
    }

    /// A call with one request.
    fn post(&self, request: u8, leaves: Leaves) -> Result<()> {
        let mut unsent = self.unsent.lock();
        // SAFETY: no bytes.
        unsafe { unsent.add(&[request; REQUEST], (core::ptr::null(), 0)) };
        match unsent.may_wait(leaves) {
            true => Ok(()),
            false => self.all.leave(self.number, &mut unsent, leaves),
        }
    }

    /// A call that polls.
    fn poll(&self) -> Result<()> {
        self.all.send(self.number, &mut self.unsent.lock())
    }

    /// The bytes of the first `requests` requests.
    fn bytes(requests: usize) -> Vec<u8> {
        (0..requests * REQUEST).map(|at| FIRST + (at / REQUEST) as u8).collect()
    }

    fn came(&self) -> Vec<u8> {
        self.socket.came.lock().unwrap().clone()
    }
}

/// A turn of the thread. Returns whether there was an event.
fn turn(all: &HandOver<Events>, sockets: &[(u64, Arc<Socket>)]) -> bool {
    let mut any = false;
    for which in [TimerKind::Short, TimerKind::Long] {
        if all.events().timer(which).load(Acquire) {
            any = true;
            all.send_gathered(which);
        }
    }
    for (number, socket) in sockets {
        socket.room.fetch_add(ROOM, AcqRel);
        if socket.awaited.swap(false, AcqRel) {
            any = true;
            all.send_rest(*number);
        }
    }
    any
}

/// Runs the calls of origins, the first of them on this thread, together with the service thread.
/// Then the thread runs until it has no event any more.
fn with_the_thread(breaks: bool, calls: &[fn(&Origin)]) -> Vec<Arc<Origin>> {
    let all = Arc::new(HandOver::new(Events {
        short: AtomicBool::new(false),
        long: AtomicBool::new(false),
    }));
    let origins: Vec<_> = calls.iter().map(|_| Arc::new(Origin::new(&all, breaks))).collect();
    let sockets: Vec<_> = origins.iter().map(|o| (o.number, o.socket.clone())).collect();
    let of_thread = (all.clone(), sockets.clone());
    let mut threads = vec![thread::spawn(move || {
        (0..TURNS).for_each(|_| {
            turn(&of_thread.0, &of_thread.1);
        });
    })];
    for (origin, call) in origins.iter().cloned().zip(calls.iter().copied()).skip(1) {
        threads.push(thread::spawn(move || call(&origin)));
    }
    calls[0](&origins[0]);
    threads.into_iter().for_each(|thread| thread.join().unwrap());
    while turn(&all, &sockets) {}
    origins
}

#[test]
fn loom_requests_leave_once_and_in_order_whoever_sends_them() {
    fn call(origin: &Origin) {
        origin.post(FIRST, Leaves::Soon).unwrap();
        origin.post(FIRST + 1, Leaves::AtOnce).unwrap();
        origin.post(FIRST + 2, Leaves::Soon).unwrap();
    }
    model(4, || {
        let origins = with_the_thread(false, &[call]);
        assert_eq!(origins[0].came(), Origin::bytes(3));
    });
}

#[test]
fn loom_gathered_requests_leave_though_no_call_follows() {
    fn call(origin: &Origin) {
        origin.post(FIRST, Leaves::Soon).unwrap();
        origin.post(FIRST + 1, Leaves::Soon).unwrap();
    }
    model(4, || {
        let origins = with_the_thread(false, &[call]);
        assert_eq!(origins[0].came(), Origin::bytes(2));
    });
    model(2, || {
        for origin in
            with_the_thread(false, &[call, |origin| origin.post(FIRST, Leaves::Soon).unwrap()])
        {
            let requests = if origin.number == 0 { 2 } else { 1 };
            assert_eq!(origin.came(), Origin::bytes(requests));
        }
    });
}

#[test]
fn loom_the_timer_runs_only_while_requests_wait_for_it() {
    fn call(origin: &Origin) {
        for request in [FIRST, FIRST + 1] {
            origin.post(request, Leaves::Soon).unwrap();
            origin.poll().unwrap();
            assert!(!origin.all.events().short.load(Acquire));
        }
    }
    model(4, || {
        let origins = with_the_thread(false, &[call]);
        assert_eq!(origins[0].came(), Origin::bytes(2));
    });
}

#[test]
fn loom_a_failure_is_reported_to_the_origin_though_the_thread_has_met_it() {
    fn call(origin: &Origin) {
        let failed = |result: Result<()>| match result {
            Ok(()) => false,
            Err(error) => {
                assert_eq!(error.raw_os_error(), Some(libc::ECONNRESET));
                true
            }
        };
        let at_once = failed(origin.post(FIRST, Leaves::Soon));
        assert!(!at_once, "nothing is sent by it");
        assert!(failed(origin.poll()), "the first call that sends");
    }
    model(4, || {
        let origins = with_the_thread(true, &[call]);
        assert!(origins[0].came().is_empty());
        let later = origins[0].post(FIRST + 1, Leaves::Soon).unwrap_err();
        assert_eq!(later.raw_os_error(), Some(libc::ECONNRESET), "and each later one");
    });
}

#[test]
fn loom_nothing_leaves_a_closed_connection() {
    fn call(origin: &Origin) {
        origin.post(FIRST, Leaves::Soon).unwrap();
        origin.post(FIRST + 1, Leaves::AtOnce).unwrap();
        origin.all.close(origin.number, &origin.unsent);
        origin.socket.came.lock().unwrap().push(0);
    }
    model(4, || {
        let came = with_the_thread(false, &[call])[0].came();
        let end = came.len() - 1;
        assert_eq!((&came[..end], came[end]), (&Origin::bytes(2)[..end], 0));
    });
}
