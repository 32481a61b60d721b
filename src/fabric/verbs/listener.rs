//! The connection thread: it sleeps until somebody incoming, makes the target's end of a connection
//! for a process of the job, or answers one that [probes](super::probe). Now and then it looks
//! whether those that it has let in are still there ([`accepted`](super::accepted)). It never incoming
//! MPI, and no signal of the program is handled on it. How others are called is in
//! [`call`](super::call).
//! Invariant: what it does between two sleeps has a bound, and so have its callers
//! ([`incoming`](super::incoming)). For unidentified it takes a quarter of a core at most.

use std::io::ErrorKind;
use std::net::{Ipv6Addr, TcpListener, TcpStream};
use std::os::fd::AsRawFd;
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use super::connect::{End, accept};
use super::contact::{self, ADDRESSES_MAX};
use super::handshake::BYTES;
use super::incoming::{CONNECTIONS_MAX, Incoming, Service};
use super::limits::is_shortage;
use super::secret::Secret;
use super::{Contact, Core, probe, sockets};
use crate::error::{Error, Result};
use crate::sync::{AtomicBool, Ordering};

/// Callers that are taken between two sleeps.
const ACCEPTED_MAX: usize = 32;
/// How many times as long as it took does the thread rest behind a turn with unidentified, and how
/// long at most.
const REST: u32 = 3;
const REST_MAX: Duration = Duration::from_millis(20);
const STACK_BYTES: usize = 256 << 10;

/// The thread, until it is dropped.
pub struct Listener {
    contact: Contact,
    closing: Arc<AtomicBool>,
    sockets: Arc<Vec<TcpListener>>,
    thread: Option<JoinHandle<()>>,
}

impl Listener {
    /// Starts the thread; it is called over this interface only, if one is named.
    pub fn start(core: &Arc<Core>, interface: Option<&str>) -> Result<Listener> {
        let failed = |call| {
            move |error: std::io::Error| Error::System {
                call,
                errno: error.raw_os_error().unwrap_or(0),
            }
        };
        let mut addresses = contact::node_addresses(interface)?;
        addresses.truncate(ADDRESSES_MAX);
        let sockets = bind(&addresses, interface.is_some()).map_err(failed("bind"))?;
        let port = sockets[0].local_addr().map_err(failed("getsockname"))?.port();
        let contact = Contact::new(core.uid(), port, &addresses, interface.is_some());
        let closing = Arc::new(AtomicBool::new(false));
        let sockets = Arc::new(sockets);
        let server = Server {
            core: core.clone(),
            sockets: sockets.clone(),
            closing: closing.clone(),
            incoming: Incoming::new(),
            shortage: Shortage::default(),
        };
        let thread = without_signals(|| {
            std::thread::Builder::new()
                .name(String::from("fompi-verbs"))
                .stack_size(STACK_BYTES)
                .spawn(move || server.serve())
        });
        let thread = Some(thread.map_err(failed("pthread_create"))?);
        Ok(Listener { contact, closing, sockets, thread })
    }

    /// What others need to call it.
    pub fn contact(&self) -> &Contact {
        &self.contact
    }
}

fn bind(addresses: &[Ipv6Addr], only: bool) -> std::io::Result<Vec<TcpListener>> {
    if only { sockets::at(addresses) } else { sockets::anywhere() }
}

impl Drop for Listener {
    fn drop(&mut self) {
        // Release: pairs with the Acquire in `serve`.
        self.closing.store(true, Ordering::Release);
        for socket in self.sockets.iter() {
            // A socket that is shut down is ready for ever, which wakes the thread.
            // SAFETY: a socket of ours.
            unsafe { libc::shutdown(socket.as_raw_fd(), libc::SHUT_RDWR) };
        }
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

/// Does something while this thread blocks all signals: a thread that is started then has them
/// blocked for good, and the program's handlers run on the program's threads only.
fn without_signals<T>(work: impl FnOnce() -> T) -> T {
    // SAFETY: plain data, filled in below.
    let (mut all, mut before): (libc::sigset_t, libc::sigset_t) = unsafe { core::mem::zeroed() };
    // SAFETY: both sets are ours.
    unsafe {
        libc::sigfillset(&mut all);
        libc::pthread_sigmask(libc::SIG_SETMASK, &all, &mut before);
    }
    let answer = work();
    // SAFETY: the set that was there before.
    unsafe { libc::pthread_sigmask(libc::SIG_SETMASK, &before, core::ptr::null_mut()) };
    answer
}

impl Service for Core {
    fn uid(&self) -> u64 {
        Core::uid(self)
    }

    fn secret(&self, name: u64) -> Option<Secret> {
        self.secrets.lock().iter().find(|secret| secret.name() == name).copied()
    }

    fn answer(&self, question: &[u8; BYTES]) -> Option<[u8; BYTES]> {
        match End::from(question) {
            Some(origin) => Some(accept(self, &origin).bytes()),
            None => probe::answer(self, question),
        }
    }
}

/// No descriptor or memory is free: for how long the sockets are left alone. Their callers wait
/// in the system meanwhile.
#[derive(Default)]
struct Shortage {
    wait: Duration,
    until: Option<Instant>,
}

impl Shortage {
    const LEAST: Duration = Duration::from_millis(20);
    const MOST: Duration = Duration::from_millis(320);

    /// A caller could not be taken.
    fn begin(&mut self, now: Instant) {
        self.wait = (2 * self.wait).clamp(Shortage::LEAST, Shortage::MOST);
        self.until = Some(now + self.wait);
    }

    /// A caller was taken.
    fn end(&mut self) {
        *self = Shortage::default();
    }

    /// Until when it is no use to poll for callers.
    fn until(&self, now: Instant) -> Option<Instant> {
        self.until.filter(|until| now < *until)
    }
}

/// What the thread works on.
struct Server {
    core: Arc<Core>,
    sockets: Arc<Vec<TcpListener>>,
    closing: Arc<AtomicBool>,
    incoming: Incoming<TcpStream>,
    shortage: Shortage,
}

/// What a sleep has brought: the sockets that are ready, sockets first, then callers in order.
type Ready = [libc::pollfd; ADDRESSES_MAX + CONNECTIONS_MAX];

impl Server {
    /// The life of the thread.
    fn serve(mut self) {
        loop {
            let ready = self.sleep();
            // Acquire: pairs with the Release in `drop`, which is before what wakes this thread.
            if self.closing.load(Ordering::Acquire) {
                return;
            }
            let (began, unidentified) = (cpu_time(), self.incoming.unidentified());
            let is_ready = |index: usize| ready[index].revents != 0;
            let core = &*self.core;
            let sockets = self.sockets.clone();
            self.incoming.advance(Instant::now(), |index| is_ready(sockets.len() + index), core);
            let called = |(index, _): &(usize, _)| is_ready(*index);
            for (_, socket) in sockets.iter().enumerate().filter(called) {
                self.accept_from(socket);
            }
            if self.incoming.unidentified() > unidentified {
                std::thread::sleep((REST * (cpu_time() - began)).min(REST_MAX));
            }
        }
    }

    /// Takes callers that have said something.
    fn accept_from(&mut self, socket: &TcpListener) {
        for _ in 0..ACCEPTED_MAX {
            let now = Instant::now();
            if self.incoming.has_room(now).is_err() {
                return;
            }
            match socket.accept() {
                Ok((stream, from)) => {
                    self.shortage.end();
                    if stream.set_nonblocking(true).is_ok() {
                        let from = from.ip().to_canonical();
                        self.incoming.add(stream, from, now, &*self.core);
                    }
                }
                Err(error) if error.kind() == ErrorKind::WouldBlock => return,
                Err(error) if error.raw_os_error().is_some_and(is_shortage) => {
                    // The caller is still there. A stranger may have what it needs.
                    if !self.incoming.drop_one_unidentified() {
                        self.shortage.begin(now);
                        return;
                    }
                }
                // The caller has gone, or the network has: on to the next one (accept(2)).
                Err(_) => {}
            }
        }
    }

    /// Sleeps until somebody incoming or says something, or somebody has had its time, or it is time
    /// to ask those who were let in.
    fn sleep(&mut self) -> Ready {
        let wait = |fd: i32| libc::pollfd { fd, events: libc::POLLIN, revents: 0 };
        let (mut ready, now): (Ready, _) = ([wait(-1); _], Instant::now());
        let round = self.core.accepted.poll(&self.core.device, now);
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
        // No more than are in use: the system takes none above RLIMIT_NOFILE (poll(2)).
        let places = (sockets + self.incoming.list().len()) as libc::nfds_t;
        let until = self.incoming.next_deadline().into_iter().chain(full).chain(round).min();
        let until = until.map_or(-1, |until| (until - now).as_millis() as i32 + 1);
        // SAFETY: so many elements, all of them ours.
        let count = unsafe { libc::poll(ready.as_mut_ptr(), places, until) };
        if count < 0 {
            // Out of memory for a moment: nobody is ready, and others run.
            ready.iter_mut().for_each(|place| place.revents = 0);
            std::thread::sleep(Shortage::LEAST);
        }
        ready
    }
}

/// What this thread has had of a core.
fn cpu_time() -> Duration {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: `time` is ours.
    unsafe { libc::clock_gettime(libc::CLOCK_THREAD_CPUTIME_ID, &mut time) };
    Duration::new(time.tv_sec as u64, time.tv_nsec as u32)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_has_no_descriptor_looks_for_callers_ever_more_rarely() {
        let (mut shortage, began) = (Shortage::default(), Instant::now());
        let (mut now, mut looks) = (began, 0);
        while now < began + Duration::from_secs(10) {
            shortage.begin(now);
            looks += 1;
            now = shortage.until(now).unwrap();
        }
        assert!(looks <= 40, "{looks}");
        assert_eq!(shortage.until(now), None);
        shortage.end();
        shortage.begin(now);
        assert_eq!(shortage.until(now), Some(now + Shortage::LEAST));
    }
}
