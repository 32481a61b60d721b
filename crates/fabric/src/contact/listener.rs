//! The connection thread. It sleeps until another process connects. For a process of the job it
//! answers the question of a first contact, as the transport's [`Service`] decides, or a liveness
//! [probe](super::probe). From time to time it lets the service check whether the origins of
//! accepted connections still exist. It never calls MPI, and it handles no signal of the program.
//! How this process connects to others is in [`outgoing`](super::outgoing). Invariant: the work
//! between two sleeps has a bound, and so has the number of open connections
//! ([`incoming`](super::incoming)). Unidentified connections cost a quarter of a core at most.

use std::io::ErrorKind;
use std::net::{TcpListener, TcpStream};
use std::os::fd::AsRawFd;
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use super::incoming::{CONNECTIONS_MAX, Incoming, Service};
use super::record::{ADDRESSES_MAX, Contact, node_addresses};
use super::sockets::ListenPlaces;
use crate::error::{Error, Result};
use crate::number::Number;
use crate::sync::{AtomicBool, Ordering};
use crate::sys::process::without_signals;
use crate::sys::{is_shortage, own_sockets};

/// Connections that are accepted between two sleeps.
const ACCEPTED_MAX: usize = 32;
/// After a turn that handled unidentified connections the thread rests `REST` times as long as the
/// turn took, and at most `REST_MAX`.
const REST: u32 = 3;
const REST_MAX: Duration = Duration::from_millis(20);
const STACK_BYTES: usize = 256 << 10;

/// The running connection thread; dropping it stops the thread.
pub struct Listener {
    contact: Contact,
    closing: Arc<AtomicBool>,
    sockets: Arc<Vec<TcpListener>>,
    thread: Option<JoinHandle<()>>,
}

impl Listener {
    /// Starts the thread, which calls `service`, and listens at these places.
    pub fn start<S: Service + Send + Sync + 'static>(
        service: &Arc<S>,
        places: &ListenPlaces,
    ) -> Result<Listener> {
        let failed = |call| {
            move |error: std::io::Error| Error::System {
                call,
                errno: error.raw_os_error().unwrap_or(0),
            }
        };
        let (interface, mut addresses) = (places.interface(), node_addresses(places.interface())?);
        addresses.truncate(ADDRESSES_MAX);
        let sockets = places.listen(&addresses)?;
        let port = sockets[0].local_addr().map_err(failed("getsockname"))?.port();
        let uid = service.identity().uid();
        let contact = Contact::new(uid, port, &addresses, interface.is_some());
        let closing = Arc::new(AtomicBool::new(false));
        let sockets = Arc::new(sockets);
        let server = Server {
            service: service.clone(),
            sockets: sockets.clone(),
            closing: closing.clone(),
            incoming: Incoming::new(),
            shortage: Shortage::default(),
        };
        let thread = without_signals(|| {
            std::thread::Builder::new()
                .name(String::from("fompi-contact"))
                .stack_size(STACK_BYTES)
                .spawn(move || server.serve())
        });
        let thread = Some(thread.map_err(failed("pthread_create"))?);
        Ok(Listener { contact, closing, sockets, thread })
    }

    /// The contact of this process.
    pub fn contact(&self) -> &Contact {
        &self.contact
    }
}

impl Drop for Listener {
    fn drop(&mut self) {
        // Release: pairs with the Acquire in `serve`.
        self.closing.store(true, Ordering::Release);
        for socket in self.sockets.iter() {
            // A socket that is shut down stays ready, which wakes the thread.
            // SAFETY: a socket that this listener owns.
            unsafe { libc::shutdown(socket.as_raw_fd(), libc::SHUT_RDWR) };
        }
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

/// Back-off while no descriptor or memory is free: the time for which the thread does not accept.
/// Meanwhile new connections wait in the backlog of the system.
#[derive(Default)]
struct Shortage {
    wait: Duration,
    until: Option<Instant>,
}

impl Shortage {
    const LEAST: Duration = Duration::from_millis(20);
    const MOST: Duration = Duration::from_millis(320);

    /// Records that a connection could not be accepted.
    fn begin(&mut self, now: Instant) {
        self.wait = (2 * self.wait).clamp(Shortage::LEAST, Shortage::MOST);
        self.until = Some(now + self.wait);
    }

    /// Records that a connection was accepted.
    fn end(&mut self) {
        *self = Shortage::default();
    }

    /// Time before which accepting is not tried again, if it is still ahead.
    fn until(&self, now: Instant) -> Option<Instant> {
        self.until.filter(|until| now < *until)
    }
}

/// The state of the thread.
struct Server<S> {
    service: Arc<S>,
    sockets: Arc<Vec<TcpListener>>,
    closing: Arc<AtomicBool>,
    incoming: Incoming<TcpStream>,
    shortage: Shortage,
}

/// Result of a sleep: the sockets that are ready, listening ones first, then the connections in
/// their order.
type Ready = [libc::pollfd; ADDRESSES_MAX + CONNECTIONS_MAX];

impl<S: Service> Server<S> {
    /// Main loop of the thread.
    fn serve(mut self) {
        loop {
            let ready = self.sleep();
            // Acquire: pairs with the Release in `drop`, which precedes the event that wakes this
            // thread.
            if self.closing.load(Ordering::Acquire) {
                return;
            }
            let (began, events) = (cpu_time(), self.incoming.stranger_events());
            let is_ready = |index: usize| ready[index].revents != 0;
            let service = self.service.clone();
            let sockets = self.sockets.clone();
            let advances = |index: usize| is_ready(sockets.len() + index);
            self.incoming.advance(Instant::now(), advances, &*service);
            let called = |(index, _): &(usize, _)| is_ready(*index);
            for (_, socket) in sockets.iter().enumerate().filter(called) {
                self.accept_from(socket);
            }
            for stream in self.incoming.take_kept() {
                service.adopt(stream.into());
            }
            if self.incoming.stranger_events() > events {
                std::thread::sleep((REST * (cpu_time() - began)).min(REST_MAX));
            }
        }
    }

    /// Accepts connections whose first bytes have arrived.
    fn accept_from(&mut self, socket: &TcpListener) {
        for _ in 0..ACCEPTED_MAX {
            let now = Instant::now();
            if self.incoming.has_room(now).is_err() {
                return;
            }
            let mut address = None;
            let stream = own_sockets::open(|| {
                let (stream, from) = socket.accept()?;
                address = Some(from);
                Ok(stream)
            });
            match stream.map(|stream| (stream, address.expect("it was accepted"))) {
                Ok((stream, from)) => {
                    self.shortage.end();
                    if stream.set_nonblocking(true).is_ok() {
                        let from = from.ip().to_canonical();
                        self.incoming.add(stream, from, now, &*self.service);
                    }
                }
                Err(error) if error.kind() == ErrorKind::WouldBlock => return,
                Err(error) if error.raw_os_error().is_some_and(is_shortage) => {
                    // The connection still waits in the backlog. Closing an unidentified connection
                    // may free the resource that it needs.
                    if !self.incoming.drop_one_unidentified() {
                        self.shortage.begin(now);
                        return;
                    }
                }
                // This connection failed, or the network did: continue with the next one
                // (accept(2)).
                Err(_) => {}
            }
        }
    }

    /// Sleeps until a connection arrives or has data, a deadline passes, or the service has
    /// something to do.
    fn sleep(&mut self) -> Ready {
        let wait = |fd: i32| libc::pollfd { fd, events: libc::POLLIN, revents: 0 };
        let (mut ready, now): (Ready, _) = ([wait(-1); _], Instant::now());
        let due = self.service.poll(now);
        let full = self.incoming.has_room(now).err().or(self.shortage.until(now));
        if full.is_none() {
            for (place, socket) in ready.iter_mut().zip(self.sockets.iter()) {
                *place = wait(socket.as_raw_fd());
            }
        }
        let sockets = self.sockets.len();
        for (place, connection) in ready[sockets..].iter_mut().zip(self.incoming.list()) {
            *place = wait(connection.stream.as_raw_fd());
        }
        // Only the entries in use: poll(2) takes no more than RLIMIT_NOFILE.
        let places = (sockets + self.incoming.list().len()).to_u64();
        let until = self.incoming.next_deadline().into_iter().chain(full).chain(due).min();
        let until = until.map_or(-1, |until| {
            i32::try_from((until - now).as_millis()).unwrap_or(i32::MAX - 1) + 1
        });
        // SAFETY: the array has at least `places` elements and is a local variable.
        let count = unsafe { libc::poll(ready.as_mut_ptr(), places, until) };
        if count < 0 {
            // poll is out of memory for a moment: no socket counts as ready, and other threads run.
            ready.iter_mut().for_each(|place| place.revents = 0);
            std::thread::sleep(Shortage::LEAST);
        }
        ready
    }
}

/// CPU time that this thread has used.
fn cpu_time() -> Duration {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: `time` is a local variable.
    unsafe { libc::clock_gettime(libc::CLOCK_THREAD_CPUTIME_ID, &mut time) };
    Duration::new(time.tv_sec.cast_unsigned(), time.tv_nsec.cast_unsigned().low_u32())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn without_a_descriptor_the_thread_accepts_more_and_more_rarely() {
        let (mut shortage, began) = (Shortage::default(), Instant::now());
        let (mut now, mut sleeps) = (began, 0);
        while now < began + Duration::from_secs(10) {
            shortage.begin(now);
            sleeps += 1;
            now = shortage.until(now).unwrap();
        }
        assert!(sleeps <= 40, "{sleeps}");
        assert_eq!(shortage.until(now), None);
        shortage.end();
        shortage.begin(now);
        assert_eq!(shortage.until(now), Some(now + Shortage::LEAST));
    }
}
