//! Callers that the connection thread listens to at once: who gets a place among them, who loses
//! it, and for how long. Generic over the stream; the time is told, so that tests have their own.
//! Not for what is said ([`handshake`](super::handshake)). Invariant: a caller that has not named the job's
//! secret never takes a place from one that has.
//!
//! A process of the job greets with its first bytes, which are there when its connection is taken. So who
//! has not identified by then is a stranger, or very slow: a few of them are listened to, of one
//! address fewer, and the oldest makes has_room for the next. A caller that has identified
//! waits for a place of its own.

use std::io::{ErrorKind, Read, Write};
use std::net::IpAddr;
use std::time::{Duration, Instant};

use super::handshake::{BYTES, Responder, ResponderStep};
use super::secret::Secret;

/// Callers that have not identified: in all, and from one address.
const UNIDENTIFIED_MAX: usize = 32;
const UNIDENTIFIED_PER_ADDRESS_MAX: usize = 8;
/// Callers that have identified.
const IDENTIFIED_MAX: usize = 32;
/// All of them.
pub const CONNECTIONS_MAX: usize = UNIDENTIFIED_MAX + IDENTIFIED_MAX;
/// How long a connection may take in all.
const LIFETIME_MAX: Duration = Duration::from_secs(5);
/// How long who has identified keeps its place when others want it.
const GRACE: Duration = Duration::from_millis(100);

/// What the responder process knows, and how it answers.
pub trait Service {
    /// Its number.
    fn uid(&self) -> u64;
    /// The secret of this name.
    fn secret(&self, name: u64) -> Option<Secret>;
    /// The answer to a question, if it is one.
    fn answer(&self, question: &[u8; BYTES]) -> Option<[u8; BYTES]>;
}

/// A connection that is not answered yet.
pub struct Connection<S> {
    pub stream: S,
    from: IpAddr,
    began: Instant,
    responder: Responder,
}

/// What has become of a connection.
#[derive(Debug, PartialEq, Eq)]
enum Progress {
    /// nothing yet
    NoData,
    /// it goes on
    Partial,
    Answered,
    /// it ended, or was nonsense
    Invalid,
}

impl<S: Read + Write> Connection<S> {
    /// Reads once, and says what there is to send.
    fn step(&mut self, service: &impl Service) -> Progress {
        let stream = &mut self.stream;
        let read = |bytes: &mut [u8]| match stream.read(bytes) {
            Ok(0) => Err(ErrorKind::UnexpectedEof.into()),
            read => read,
        };
        let known = |name| service.secret(name);
        let then =
            self.responder.step(read, known, service.uid(), |question| service.answer(question));
        match then {
            Ok(ResponderStep::Wait) => Progress::Partial,
            Ok(ResponderStep::Challenge(bytes)) if self.send(&bytes) => Progress::Partial,
            Ok(ResponderStep::Answer(bytes)) if self.send(&bytes) => Progress::Answered,
            Ok(_) => Progress::Invalid,
            Err(error) => match error.kind() {
                ErrorKind::WouldBlock | ErrorKind::Interrupted => Progress::NoData,
                _ => Progress::Invalid,
            },
        }
    }

    /// A message fits into the socket's buffer of a caller that listens.
    fn send(&mut self, bytes: &[u8]) -> bool {
        self.stream.write_all(bytes).is_ok()
    }
}

/// The callers.
pub struct Incoming<S> {
    list: Vec<Connection<S>>,
    /// unidentified that were met, ever
    unidentified: u64,
}

impl<S: Read + Write> Incoming<S> {
    /// None yet.
    pub fn new() -> Incoming<S> {
        Incoming { list: Vec::new(), unidentified: 0 }
    }

    /// Those that wait to be progress.
    pub fn list(&self) -> &[Connection<S>] {
        &self.list
    }

    /// How often this process has had to do with a stranger, or with somebody who is as slow.
    pub fn unidentified(&self) -> u64 {
        self.unidentified
    }

    /// When the next one has to go.
    pub fn next_deadline(&self) -> Option<Instant> {
        self.list.iter().map(|connection| connection.began + LIFETIME_MAX).min()
    }

    /// Whether one more can be taken. If not, when somebody who has identified has had its time.
    pub fn has_room(&mut self, now: Instant) -> Result<(), Instant> {
        let identified = self
            .list
            .iter()
            .enumerate()
            .filter(|(_, connection)| connection.responder.is_identified());
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

    /// Takes a connection, for which there is has_room, and hears what was said at once.
    pub fn add(&mut self, stream: S, from: IpAddr, now: Instant, service: &impl Service) {
        let mut connection = Connection { stream, from, began: now, responder: Responder::new() };
        match connection.step(service) {
            Progress::Answered => {}
            Progress::Invalid => self.unidentified += 1,
            Progress::NoData | Progress::Partial => {
                if !connection.responder.is_identified() {
                    self.unidentified += 1;
                    self.make_room(from);
                }
                self.list.push(connection);
            }
        }
    }

    /// Room for a stranger from an address.
    fn make_room(&mut self, from: IpAddr) {
        let unidentified =
            || self.list.iter().filter(|connection| !connection.responder.is_identified());
        let whose = |connection: &Connection<S>| connection.from == from;
        if unidentified().filter(|connection| whose(connection)).count()
            >= UNIDENTIFIED_PER_ADDRESS_MAX
        {
            self.drop_unidentified(whose);
        } else if unidentified().count() >= UNIDENTIFIED_MAX {
            self.drop_unidentified(|_| true);
        }
    }

    /// Drops the oldest of the unidentified that `which` chooses; whether there was one.
    fn drop_unidentified(&mut self, which: impl Fn(&Connection<S>) -> bool) -> bool {
        let unidentified = self.list.iter().enumerate();
        let unidentified = unidentified
            .filter(|(_, connection)| !connection.responder.is_identified() && which(connection));
        let oldest =
            unidentified.min_by_key(|(_, connection)| connection.began).map(|(index, _)| index);
        if let Some(index) = oldest {
            self.drop_at(index);
        }
        oldest.is_some()
    }

    /// Drops a stranger, whose descriptor is wanted; whether there was one.
    pub fn drop_one_unidentified(&mut self) -> bool {
        self.drop_unidentified(|_| true)
    }

    fn drop_at(&mut self, index: usize) {
        self.unidentified += 1;
        self.list.remove(index);
    }

    /// Hears those of whom `ready` says, by their place in the list, that there is something to
    /// advance, once each; and drops those that have had their time.
    pub fn advance(&mut self, now: Instant, ready: impl Fn(usize) -> bool, service: &impl Service) {
        let (mut index, mut unidentified) = (0, 0);
        self.list.retain_mut(|connection| {
            let progress = if ready(index) { connection.step(service) } else { Progress::NoData };
            index += 1;
            let late = now >= connection.began + LIFETIME_MAX;
            let slow = progress == Progress::Partial && !connection.responder.is_identified();
            let stays = matches!(progress, Progress::NoData | Progress::Partial) && !late;
            unidentified += u64::from(slow || !stays && progress != Progress::Answered);
            stays
        });
        self.unidentified += unidentified;
        if self.list.is_empty() {
            // A process that once had many callers at a time does not keep the memory for them.
            self.list = Vec::new();
        }
    }

    /// For how many callers there is memory.
    #[cfg(test)]
    pub fn capacity(&self) -> usize {
        self.list.capacity()
    }
}
