//! The incoming connections that the connection thread serves at once: which of them get a place,
//! which are closed, and when. It is generic over the stream, and the time is passed in, so that
//! tests supply their own. The messages are in [`handshake`](crate::sys::handshake). Invariant: an
//! unidentified connection never takes the place of an identified one.
//!
//! A connection is *identified* when its first message has named the secret of the job and this
//! process. A process of the job sends that message at once, so that it is there when the
//! connection is accepted. A connection without it comes from a stranger or from a very slow
//! process. Few of those are kept, fewer from one address, and the oldest makes room for the next.
//! An identified connection waits for a place of its own. A first message that another connection
//! has sent was recorded, and its connection is closed: it takes no place.

use std::io::{ErrorKind, Read, Write};
use std::net::IpAddr;
use std::os::fd::OwnedFd;
use std::time::{Duration, Instant};

use super::identity::Identity;
use super::probe;
use crate::sys::handshake::{BYTES, Responder, ResponderStep};

/// Bounds of unidentified connections: in all, and from one address.
const UNIDENTIFIED_MAX: usize = 32;
const UNIDENTIFIED_PER_ADDRESS_MAX: usize = 8;
/// Bound of identified connections.
const IDENTIFIED_MAX: usize = 32;
/// Bound of all connections.
pub const CONNECTIONS_MAX: usize = UNIDENTIFIED_MAX + IDENTIFIED_MAX;
/// Time after which any connection is closed.
const LIFETIME_MAX: Duration = Duration::from_secs(5);
/// Time for which an identified connection keeps its place while others wait for one.
const GRACE: Duration = Duration::from_millis(100);

/// The functions that the connection thread calls for the transport of this process.
pub trait Service {
    /// This process, as others know it.
    fn identity(&self) -> &Identity;
    /// Returns the answer to the question of a first contact, or `None` if the bytes are not such a
    /// question. Probes are answered without it.
    fn answer(&self, question: &[u8; BYTES]) -> Option<Reply>;
    /// Takes the stream of a connection whose answer was sent, if the [`Reply`] keeps it.
    fn adopt(&self, stream: OwnedFd);
    /// Does the work that is due for accepted connections, without waiting. Returns the time of the
    /// next call.
    fn poll(&self, now: Instant) -> Option<Instant>;
}

/// The answer to the question of a first contact.
#[derive(Clone, Copy, Debug)]
pub struct Reply {
    /// its bytes
    pub bytes: [u8; BYTES],
    /// whether the transport keeps the stream; otherwise it is closed
    pub keeps_stream: bool,
}

/// A connection whose question has not been answered.
pub struct Connection<S> {
    pub stream: S,
    from: IpAddr,
    began: Instant,
    responder: Responder,
}

/// Result of one step of a connection.
#[derive(Debug, PartialEq, Eq)]
enum Progress {
    /// no data has arrived
    NoData,
    /// data has arrived; the connection stays
    Partial,
    /// the question was answered; the transport keeps the stream
    Kept,
    /// the question was answered
    Answered,
    /// the connection was closed, or has sent an invalid message
    Invalid,
}

impl<S: Read + Write> Connection<S> {
    fn is_identified(&self) -> bool {
        self.responder.is_identified()
    }

    /// Whether its first message is that of another connection.
    fn repeats_one_of(&self, others: &[Connection<S>]) -> bool {
        others.iter().any(|other| self.responder.has_hello_of(&other.responder))
    }

    /// Reads once, and sends the next message if there is one.
    fn step(&mut self, service: &impl Service) -> Progress {
        let stream = &mut self.stream;
        let read = |bytes: &mut [u8]| match stream.read(bytes) {
            Ok(0) => Err(ErrorKind::UnexpectedEof.into()),
            read => read,
        };
        let identity = service.identity();
        let known = |name| identity.secret_named(name);
        let mut keeps = false;
        let answer = |question: &[u8; BYTES]| {
            let reply = || {
                let reply = service.answer(question)?;
                keeps = reply.keeps_stream;
                Some(reply.bytes)
            };
            probe::answer(identity, question).or_else(reply)
        };
        let then = self.responder.step(read, known, identity.uid(), answer);
        match then {
            Ok(ResponderStep::Wait) => Progress::Partial,
            Ok(ResponderStep::Challenge(bytes)) if self.send(&bytes) => Progress::Partial,
            Ok(ResponderStep::Answer(bytes)) if self.send(&bytes) => match keeps {
                true => Progress::Kept,
                false => Progress::Answered,
            },
            Ok(_) => Progress::Invalid,
            Err(error) => match error.kind() {
                ErrorKind::WouldBlock | ErrorKind::Interrupted => Progress::NoData,
                _ => Progress::Invalid,
            },
        }
    }

    /// Sends a message. It fits into the buffer of the socket if the other process reads.
    fn send(&mut self, bytes: &[u8]) -> bool {
        self.stream.write_all(bytes).is_ok()
    }
}

/// The open connections.
pub struct Incoming<S> {
    list: Vec<Connection<S>>,
    /// streams that the transport keeps
    kept: Vec<S>,
    /// events so far that a stranger, or a process as slow as one, has caused
    stranger_events: u64,
}

impl<S: Read + Write> Incoming<S> {
    /// Starts without connections.
    pub fn new() -> Incoming<S> {
        Incoming { list: Vec::new(), kept: Vec::new(), stranger_events: 0 }
    }

    /// The open connections.
    pub fn list(&self) -> &[Connection<S>] {
        &self.list
    }

    /// Returns the streams that the transport keeps, since the last call.
    pub fn take_kept(&mut self) -> Vec<S> {
        core::mem::take(&mut self.kept)
    }

    /// Number of events so far that a stranger, or a process as slow as one, has caused.
    pub fn stranger_events(&self) -> u64 {
        self.stranger_events
    }

    /// Time at which the next connection has to be closed.
    pub fn next_deadline(&self) -> Option<Instant> {
        self.list.iter().map(|connection| connection.began + LIFETIME_MAX).min()
    }

    /// Whether one more connection can be added. If all places are taken, the oldest identified
    /// connection is closed once its grace period is over; before that, returns the end of that
    /// period.
    pub fn has_room(&mut self, now: Instant) -> Result<(), Instant> {
        let identified =
            self.list.iter().enumerate().filter(|(_, connection)| connection.is_identified());
        if identified.clone().count() < IDENTIFIED_MAX {
            return Ok(());
        }
        let oldest =
            identified.min_by_key(|(_, connection)| connection.began).map(|(index, _)| index);
        let Some(oldest) = oldest else { return Ok(()) };
        let deadline = self.list[oldest].began + GRACE;
        if now < deadline {
            return Err(deadline);
        }
        self.drop_at(oldest);
        Ok(())
    }

    /// Adds a connection, for which there is room, and takes its first step.
    pub fn add(&mut self, stream: S, from: IpAddr, now: Instant, service: &impl Service) {
        let mut connection = Connection { stream, from, began: now, responder: Responder::new() };
        match connection.step(service) {
            Progress::Answered => {}
            Progress::Kept => self.kept.push(connection.stream),
            Progress::Invalid => self.stranger_events += 1,
            Progress::Partial if connection.repeats_one_of(&self.list) => self.stranger_events += 1,
            Progress::NoData | Progress::Partial => {
                if !connection.is_identified() {
                    self.stranger_events += 1;
                    self.make_room(from);
                }
                self.list.push(connection);
            }
        }
    }

    /// Makes room for an unidentified connection from an address.
    fn make_room(&mut self, from: IpAddr) {
        let unidentified = || self.list.iter().filter(|connection| !connection.is_identified());
        let whose = |connection: &Connection<S>| connection.from == from;
        if unidentified().filter(|connection| whose(connection)).count()
            >= UNIDENTIFIED_PER_ADDRESS_MAX
        {
            self.drop_unidentified(whose);
        } else if unidentified().count() >= UNIDENTIFIED_MAX {
            self.drop_unidentified(|_| true);
        }
    }

    /// Closes the oldest unidentified connection that `which` selects. Returns whether there was
    /// one.
    fn drop_unidentified(&mut self, which: impl Fn(&Connection<S>) -> bool) -> bool {
        let unidentified = self.list.iter().enumerate();
        let unidentified =
            unidentified.filter(|(_, connection)| !connection.is_identified() && which(connection));
        let oldest =
            unidentified.min_by_key(|(_, connection)| connection.began).map(|(index, _)| index);
        if let Some(index) = oldest {
            self.drop_at(index);
        }
        oldest.is_some()
    }

    /// Closes an unidentified connection to free its descriptor. Returns whether there was one.
    pub fn drop_one_unidentified(&mut self) -> bool {
        self.drop_unidentified(|_| true)
    }

    fn drop_at(&mut self, index: usize) {
        self.stranger_events += 1;
        self.list.remove(index);
    }

    /// Takes one step of each connection for which `ready` is true of its index in the list, and
    /// closes those that are past their time.
    pub fn advance(&mut self, now: Instant, ready: impl Fn(usize) -> bool, service: &impl Service) {
        let mut stay = Vec::new();
        for (index, mut connection) in core::mem::take(&mut self.list).into_iter().enumerate() {
            let progress = if ready(index) { connection.step(service) } else { Progress::NoData };
            let late = now >= connection.began + LIFETIME_MAX;
            let slow = progress == Progress::Partial && !connection.is_identified();
            self.stranger_events += u64::from(slow);
            match progress {
                Progress::Answered => {}
                Progress::Kept => self.kept.push(connection.stream),
                Progress::NoData | Progress::Partial
                    if !late && !connection.repeats_one_of(&stay) =>
                {
                    stay.push(connection);
                }
                _ => self.stranger_events += u64::from(!slow),
            }
        }
        self.list = stay;
    }

    /// Number of connections for which there is memory.
    #[cfg(test)]
    pub fn capacity(&self) -> usize {
        self.list.capacity()
    }
}
