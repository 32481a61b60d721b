//! Connection to a process that has several addresses. Some may lead nowhere: a firewall drops
//! packets, or an interface belongs to a network that this node cannot reach. The addresses are
//! tried in their order, each a moment after the one before it, and the first that accepts is
//! returned first. So an address without an answer costs that moment and not its time limit.

use std::collections::VecDeque;
use std::io::{self, ErrorKind};
use std::net::{SocketAddr, TcpStream};
use std::os::fd::AsRawFd;
use std::time::{Duration, Instant};

use socket2::{Domain, Socket, Type};

use crate::number::Number;
use crate::sys::own_sockets;

/// Time after which the next address is tried, too, while an address has not answered.
const STAGGER: Duration = Duration::from_millis(100);

/// An attempt to connect to one of several addresses.
pub struct Dial<'a> {
    untried: core::slice::Iter<'a, SocketAddr>,
    /// time at which the next address is tried
    due: Instant,
    /// addresses that have not answered yet
    open: Vec<(SocketAddr, Socket)>,
    /// results that were not returned yet
    done: VecDeque<(SocketAddr, io::Result<TcpStream>)>,
    until: Instant,
}

impl<'a> Dial<'a> {
    /// Begins; after `limit` an address that has not answered counts as silent.
    pub fn new(addresses: &'a [SocketAddr], limit: Duration) -> Dial<'a> {
        let (now, done) = (Instant::now(), VecDeque::new());
        Dial { untried: addresses.iter(), due: now, open: Vec::new(), done, until: now + limit }
    }

    /// Tries the next address.
    fn begin(&mut self, address: SocketAddr) {
        self.due = Instant::now() + STAGGER;
        let open = || Socket::new(Domain::for_address(address), Type::STREAM, None);
        let begun = own_sockets::open(open).and_then(|socket| {
            socket.set_nonblocking(true)?;
            match socket.connect(&address.into()) {
                Err(error) if error.raw_os_error() != Some(libc::EINPROGRESS) => Err(error),
                _ => Ok(socket),
            }
        });
        match begun {
            Ok(socket) => self.open.push((address, socket)),
            Err(error) => self.done.push_back((address, Err(error))),
        }
    }

    /// Moves the addresses that have answered to the results, and at the time limit all others.
    fn collect(&mut self) {
        let next = if self.untried.len() > 0 { self.due.min(self.until) } else { self.until };
        let left = next.saturating_duration_since(Instant::now());
        let wait = |(_, socket): &(SocketAddr, Socket)| libc::pollfd {
            fd: socket.as_raw_fd(),
            events: libc::POLLOUT,
            revents: 0,
        };
        let mut ready: Vec<libc::pollfd> = self.open.iter().map(wait).collect();
        let milliseconds = i32::try_from(left.as_millis()).unwrap_or(i32::MAX - 1);
        let milliseconds = milliseconds + i32::from(!left.is_zero());
        // SAFETY: a local vector of that length.
        let count = unsafe { libc::poll(ready.as_mut_ptr(), ready.len().to_u64(), milliseconds) };
        for at in (0..ready.len()).rev().filter(|at| count > 0 && ready[*at].revents != 0) {
            let (address, socket) = self.open.remove(at);
            self.done.push_back((address, connected(socket)));
        }
        if Instant::now() >= self.until {
            let silent = |(address, _)| (address, Err(ErrorKind::TimedOut.into()));
            self.done.extend(self.open.drain(..).map(silent));
        }
    }
}

/// Returns the stream of a socket that has an answer.
fn connected(socket: Socket) -> io::Result<TcpStream> {
    match socket.take_error()? {
        Some(error) => Err(error),
        None => socket.set_nonblocking(false).map(|()| socket.into()),
    }
}

impl Iterator for Dial<'_> {
    type Item = (SocketAddr, io::Result<TcpStream>);

    /// Returns the next address that has accepted or failed.
    fn next(&mut self) -> Option<Self::Item> {
        loop {
            if let Some(done) = self.done.pop_front() {
                return Some(done);
            }
            let idle = self.open.is_empty();
            if (idle || Instant::now() >= self.due)
                && let Some(address) = self.untried.next()
            {
                self.begin(*address);
            } else if idle {
                return None;
            } else {
                self.collect();
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::TcpListener;

    fn listener() -> (TcpListener, SocketAddr) {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        (listener, address)
    }

    /// An address that does not answer: the queue of its listener is full.
    fn silent() -> (Vec<TcpStream>, Socket, SocketAddr) {
        let socket = Socket::new(Domain::IPV4, Type::STREAM, None).unwrap();
        socket.bind(&"127.0.0.1:0".parse::<SocketAddr>().unwrap().into()).unwrap();
        socket.listen(0).unwrap();
        let address = socket.local_addr().unwrap().as_socket().unwrap();
        let connect = || TcpStream::connect_timeout(&address, Duration::from_millis(200)).ok();
        (std::iter::from_fn(connect).collect(), socket, address)
    }

    #[test]
    fn a_silent_address_does_not_keep_from_one_that_answers() {
        let ((_full, _socket, silent), (_listener, there)) = (silent(), listener());
        let addresses = [silent, there];
        let mut dial = Dial::new(&addresses, Duration::from_secs(3600));
        let (first, stream) = dial.next().unwrap();
        assert_eq!((first, stream.unwrap().peer_addr().unwrap()), (there, there));
    }

    #[test]
    fn each_address_gives_one_result() {
        let ((_full, _socket, silent), (_listener, there)) = (silent(), listener());
        let closed = listener().1;
        let addresses = [closed, silent, there];
        let results: Vec<_> = Dial::new(&addresses, Duration::from_millis(300)).collect();
        let kind = |address| {
            let found = results.iter().filter(|(of, _)| *of == address);
            found.map(|(_, result)| result.as_ref().err().map(io::Error::kind)).collect::<Vec<_>>()
        };
        assert_eq!(results.len(), 3);
        assert_eq!(kind(closed), [Some(ErrorKind::ConnectionRefused)]);
        assert_eq!(kind(there), [None]);
        assert_eq!(kind(silent), [Some(ErrorKind::TimedOut)]);
    }

    #[test]
    fn without_an_address_there_is_no_result() {
        assert!(Dial::new(&[], Duration::from_secs(1)).next().is_none());
    }
}
