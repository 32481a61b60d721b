//! The connection thread: it sleeps until somebody connects, makes the target's end of a
//! connection for whoever knows the word, or answers who [knocks](super::knock), and does nothing
//! else. It never calls MPI, and no signal of the program is handled on it. And the other side: a
//! call at another process's door.
//! Invariant: a stranger, or a caller that says nothing, costs a socket for a while and keeps
//! nobody waiting.

use std::io::{ErrorKind, Read, Write};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, TcpListener, TcpStream};
use std::os::fd::AsRawFd;
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use socket2::{Domain, Socket, Type};

use super::connect::{BYTES, End, accept};
use super::limits::is_shortage;
use super::{Card, Core, knock};
use crate::error::{Error, Result};
use crate::sync::{AtomicBool, Ordering};

/// How long a caller may take to say who it is.
const PATIENCE: Duration = Duration::from_secs(10);
/// Callers that are listened to at once; more of them wait to be accepted.
const CALLERS_MAX: usize = 64;
/// How long a call waits for a connection, at first: a node may have addresses that lead nowhere,
/// and another one may lead there at once. And how long if none does, and for an answer.
const GLANCE: Duration = Duration::from_secs(3);
const CALL: Duration = Duration::from_secs(20);
/// Callers that the system keeps for the thread: all ranks of a job may call one at the same time.
const BACKLOG: i32 = 4096;
/// How long to wait when a caller cannot be let in because the system has nothing left.
const SHORTAGE: Duration = Duration::from_millis(20);
const STACK_BYTES: usize = 256 << 10;

/// The thread, until it is dropped.
pub struct Door {
    port: u16,
    closing: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl Door {
    /// Starts the thread.
    pub fn open(core: &Arc<Core>) -> Result<Door> {
        let failed = |call| move |error: std::io::Error| io_error(call, &error);
        let listener = listen().map_err(failed("bind"))?;
        let port = listener.local_addr().map_err(failed("getsockname"))?.port();
        let closing = Arc::new(AtomicBool::new(false));
        let (core, closed) = (core.clone(), closing.clone());
        let thread = without_signals(|| {
            std::thread::Builder::new()
                .name(String::from("fompi-verbs"))
                .stack_size(STACK_BYTES)
                .spawn(move || serve(&core, &listener, &closed))
        });
        let thread = Some(thread.map_err(failed("pthread_create"))?);
        Ok(Door { port, closing, thread })
    }

    /// Where it listens.
    pub fn port(&self) -> u16 {
        self.port
    }
}

impl Drop for Door {
    fn drop(&mut self) {
        // Release: the thread looks behind the call that it is woken by.
        self.closing.store(true, Ordering::Release);
        let woken = TcpStream::connect((Ipv4Addr::LOCALHOST, self.port)).is_ok();
        if let Some(thread) = self.thread.take().filter(|_| woken) {
            let _ = thread.join();
        }
    }
}

fn io_error(call: &'static str, error: &std::io::Error) -> Error {
    Error::System { call, errno: error.raw_os_error().unwrap_or(0) }
}

/// Listens to callers by IPv6 and by IPv4, whatever `net.ipv6.bindv6only` is here; where there is
/// no IPv6, by IPv4 alone.
fn listen() -> std::io::Result<TcpListener> {
    let both = listen_at(Ipv6Addr::UNSPECIFIED.into());
    both.or_else(|_| listen_at(Ipv4Addr::UNSPECIFIED.into()))
}

fn listen_at(any: IpAddr) -> std::io::Result<TcpListener> {
    let place = SocketAddr::new(any, 0);
    let socket = Socket::new(Domain::for_address(place), Type::STREAM, None)?;
    if place.is_ipv6() {
        socket.set_only_v6(false)?;
    }
    socket.bind(&place.into())?;
    socket.listen(BACKLOG)?;
    socket.set_nonblocking(true)?;
    Ok(socket.into())
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

/// Somebody who has connected and not said all yet.
struct Caller {
    stream: TcpStream,
    said: [u8; BYTES],
    count: usize,
    until: Instant,
}

impl Caller {
    fn new(stream: TcpStream) -> Option<Caller> {
        stream.set_nonblocking(true).ok()?;
        let until = Instant::now() + PATIENCE;
        Some(Caller { stream, said: [0; BYTES], count: 0, until })
    }

    /// Listens and answers; whether this caller is done with, by an answer or without.
    fn listen(&mut self, core: &Core) -> bool {
        while self.count < BYTES {
            match self.stream.read(&mut self.said[self.count..]) {
                Ok(0) => return true,
                Ok(count) => self.count += count,
                Err(error) if error.kind() == ErrorKind::WouldBlock => {
                    return Instant::now() >= self.until;
                }
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(_) => return true,
            }
        }
        let origin = End::from(&self.said).filter(|end| end.who == core.token());
        let answer = match origin {
            Some(origin) => Some(accept(core, &origin).bytes()),
            None => knock::answer(core, &self.said),
        };
        if let Some(answer) = answer {
            // It fits into the socket's buffer, which is empty.
            let _ = self.stream.write_all(&answer);
        }
        true
    }
}

/// The life of the thread.
fn serve(core: &Core, listener: &TcpListener, closing: &AtomicBool) {
    let mut callers: Vec<Caller> = Vec::new();
    // Acquire: pairs with the Release in `drop`. Looked at behind every accept and before every
    // sleep: the call that is to wake this thread may have been taken for a caller.
    while !closing.load(Ordering::Acquire) {
        sleep(listener, &callers);
        callers.retain_mut(|caller| !caller.listen(core));
        while callers.len() < CALLERS_MAX {
            let stream = match listener.accept() {
                Ok((stream, _)) => stream,
                Err(error) if error.kind() == ErrorKind::ConnectionAborted => continue,
                Err(error) => {
                    if error.kind() != ErrorKind::WouldBlock {
                        // No descriptor or memory is free, and the caller is still there.
                        std::thread::sleep(SHORTAGE);
                    }
                    break;
                }
            };
            let Some(mut caller) = Caller::new(stream) else { continue };
            if !caller.listen(core) {
                callers.push(caller);
            }
        }
    }
}

/// Sleeps until somebody connects or says something, or has not for too long.
fn sleep(listener: &TcpListener, callers: &[Caller]) {
    let wait = |fd: i32| libc::pollfd { fd, events: libc::POLLIN, revents: 0 };
    let mut waits = [wait(-1); CALLERS_MAX + 1];
    if callers.len() < CALLERS_MAX {
        waits[0] = wait(listener.as_raw_fd());
    }
    for (place, caller) in waits[1..].iter_mut().zip(callers) {
        *place = wait(caller.stream.as_raw_fd());
    }
    let now = Instant::now();
    let first = callers.iter().map(|caller| caller.until.saturating_duration_since(now)).min();
    let until = first.map_or(-1, |wait| wait.as_millis() as i32 + 1);
    // SAFETY: so many elements, all of them ours.
    let ready = unsafe { libc::poll(waits.as_mut_ptr(), waits.len() as libc::nfds_t, until) };
    if ready < 0 {
        // Out of memory for a moment: not a reason to stop, but to let others run.
        std::thread::yield_now();
    }
}

/// Calls at the door of another process with this end, and returns its end.
pub fn call(card: &Card, greeting: &End) -> Result<End> {
    let places = card.places();
    let mut causes = Vec::new();
    for patience in [GLANCE, CALL] {
        causes.clear();
        let mut late = false;
        for place in &places {
            match call_at(*place, greeting, patience) {
                Ok(Some(end)) if end.who == card.uid() => return Ok(end),
                Ok(_) => causes.push(format!("{place} is somebody else")),
                Err(error) if error.raw_os_error().is_some_and(is_shortage) => {
                    return Err(io_error("socket", &error));
                }
                Err(error) => {
                    // The system has its own word for an answer that has not come in time.
                    late |= matches!(error.kind(), ErrorKind::TimedOut | ErrorKind::WouldBlock);
                    causes.push(format!("{place}: {error}"));
                }
            }
        }
        if !late {
            break;
        }
    }
    if causes.is_empty() {
        causes.push(String::from("its node has no address"));
    }
    Err(card.lost(format!("no first contact: {}", causes.join("; "))))
}

fn call_at(place: SocketAddr, greeting: &End, patience: Duration) -> std::io::Result<Option<End>> {
    let mut stream = TcpStream::connect_timeout(&place, patience)?;
    stream.set_nodelay(true)?;
    stream.set_read_timeout(Some(CALL))?;
    stream.set_write_timeout(Some(CALL))?;
    stream.write_all(&greeting.bytes())?;
    let mut answer = [0; BYTES];
    match stream.read_exact(&mut answer) {
        Ok(()) => Ok(End::from(&answer)),
        Err(error) if error.kind() == ErrorKind::UnexpectedEof => Ok(None),
        Err(error) => Err(error),
    }
}
