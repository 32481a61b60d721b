//! A non-blocking TCP liveness probe of another process, sent by a waiting rank that may depend on
//! a rank of that process's node. The answer says that the process is still there, and carries the
//! failure notice about a subject that both processes know. A probe needs no connection of a
//! device, so the two processes need not have been in contact. The waiting rank advances the probe
//! step by step, and never blocks in it.
//!
//! | word | contents in a question and in its answer                        |
//! |------|-----------------------------------------------------------------|
//! | 0    | `MAGIC`                                                         |
//! | 1    | number of the sending process                                   |
//! | 2    | question: the subject; answer: first word of the failure notice |
//! | 3    | answer: second word of the failure notice                       |
//! | 4, 5 | 0                                                               |

use std::io::{ErrorKind, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::time::{Duration, Instant};

use socket2::{Domain, Socket, Type};

use super::identity::Identity;
use super::outgoing::exchange;
use super::record::Contact;
use crate::error::Result;
use crate::sys::handshake::{BYTES, Initiator, InitiatorStep};
use crate::sys::is_shortage;
use crate::sys::secret::Secret;

const MAGIC: u64 = u64::from_be_bytes(*b"fompi-k1");
/// Time limit for connecting to an address. The system accepts a connection, not the process.
const CONNECT_MAX: Duration = Duration::from_secs(3);
/// Time limit for the answer. A process that exceeds it may be stopped, and counts as alive.
const ANSWER_MAX: Duration = Duration::from_secs(10);
/// Time after which a node is lost if none of its addresses accepts or refuses a connection.
const SILENCE_MAX: Duration = Duration::from_secs(30);

/// A question or an answer.
struct Message {
    uid: u64,
    words: [u64; 2],
}

impl Message {
    fn bytes(&self) -> [u8; BYTES] {
        let mut bytes = [0; BYTES];
        let words = [MAGIC, self.uid, self.words[0], self.words[1]];
        for (to, word) in bytes.chunks_exact_mut(8).zip(words) {
            to.copy_from_slice(&word.to_le_bytes());
        }
        bytes
    }

    fn from(bytes: &[u8; BYTES]) -> Option<Message> {
        let word = |index: usize| {
            let bytes = bytes[8 * index..][..8].try_into().expect("eight bytes");
            u64::from_le_bytes(bytes)
        };
        (word(0) == MAGIC).then(|| Message { uid: word(1), words: [word(2), word(3)] })
    }
}

/// Returns the answer to a message, or `None` if the message is not a question of a probe.
pub fn answer(identity: &Identity, message: &[u8; BYTES]) -> Option<[u8; BYTES]> {
    let question = Message::from(message)?;
    let words = identity.notice(question.words[0]);
    Some(Message { uid: identity.uid(), words }.bytes())
}

/// Asks the process of a contact, as a first contact does, and waits for the answer. Returns the
/// address that answers. The error has the cause for each address.
pub fn reach(identity: &Identity, contact: &Contact, secret: Secret) -> Result<SocketAddr> {
    let question = Message { uid: identity.uid(), words: [0; 2] }.bytes();
    let (_, stream) = exchange(identity, contact, secret, &question, Message::from, false)?;
    stream.peer_addr().map_err(|error| contact.lost(error.to_string()))
}

/// A probe under way.
pub struct Probe {
    contact: Contact,
    secret: Secret,
    /// number of this process, and the subject of the question
    uid: u64,
    about: u64,
    addresses: Vec<SocketAddr>,
    /// index of the address that is being tried
    address: usize,
    /// addresses that refused, or that belong to another process; and addresses that did not react
    closed: usize,
    silent: usize,
    began: Instant,
    attempt: Option<Attempt>,
}

/// An attempt at one address.
struct Attempt {
    stream: TcpStream,
    began: Instant,
    connected: bool,
    initiator: Initiator,
}

/// Result of an attempt so far.
enum Outcome {
    Pending,
    Answer([u64; 2]),
    /// the address refuses connections, or another process listens there
    Closed,
    /// there is no route to the address
    Unreachable,
    /// the address neither accepts nor refuses connections
    Silent,
}

impl Probe {
    /// Begins to probe the process of a contact.
    pub fn new(identity: &Identity, contact: &Contact, secret: Secret, about: u64) -> Probe {
        let (contact, addresses, began) = (*contact, contact.addresses(), Instant::now());
        let uid = identity.uid();
        let (address, closed, silent) = (0, 0, 0);
        Probe {
            contact,
            secret,
            uid,
            about,
            addresses,
            address,
            closed,
            silent,
            began,
            attempt: None,
        }
    }

    /// The handshake with the question, for one attempt.
    fn initiator(&self) -> Result<Initiator> {
        let question = Message { uid: self.uid, words: [self.about, 0] };
        Initiator::new(self.secret, self.contact.uid(), self.uid, question.bytes())
    }

    /// Advances the probe without waiting. Returns the failure notice when it has arrived. Fails if
    /// the process has ended. That is so if in a round over all addresses at least one address was
    /// closed and none was silent (one address may belong to a bridge, which every node has), or if
    /// no round got an answer for a long time. If the node of a process accepts the connection but
    /// the process does not answer, the process is alive: it is stopped, or its node is busy.
    pub fn step(&mut self) -> Result<Option<[u64; 2]>> {
        let Some(address) = self.addresses.get(self.address).copied() else {
            return self.next_round();
        };
        let mut attempt = match self.attempt.take() {
            Some(attempt) => attempt,
            None => match Attempt::to(address, self.initiator()?) {
                Ok(attempt) => attempt,
                // This process has no free socket, which says nothing about the probed process.
                Err(error) if error.raw_os_error().is_some_and(is_shortage) => {
                    return Ok(Some([0; 2]));
                }
                Err(error) => return self.next_address(outcome_of(&error)),
            },
        };
        match attempt.step(&self.contact) {
            Outcome::Pending => {
                self.attempt = Some(attempt);
                Ok(None)
            }
            Outcome::Answer(words) => Ok(Some(words)),
            other => self.next_address(other),
        }
    }

    /// Continues with the next address.
    fn next_address(&mut self, outcome: Outcome) -> Result<Option<[u64; 2]>> {
        match outcome {
            Outcome::Closed => self.closed += 1,
            Outcome::Silent => self.silent += 1,
            _ => {}
        }
        self.address += 1;
        if self.address < self.addresses.len() { Ok(None) } else { self.next_round() }
    }

    /// Decides after a round over all addresses.
    fn next_round(&mut self) -> Result<Option<[u64; 2]>> {
        if self.addresses.is_empty() {
            return Ok(Some([0; 2]));
        }
        if self.closed > 0 && self.silent == 0 {
            return Err(self.contact.lost("its connection thread is gone"));
        }
        if self.began.elapsed() >= SILENCE_MAX {
            return Err(self.contact.lost("its node does not answer"));
        }
        (self.address, self.closed, self.silent) = (0, 0, 0);
        Ok(None)
    }
}

/// Maps an error of a connection to a result.
fn outcome_of(error: &std::io::Error) -> Outcome {
    match error.kind() {
        ErrorKind::ConnectionRefused | ErrorKind::ConnectionReset | ErrorKind::BrokenPipe => {
            Outcome::Closed
        }
        ErrorKind::TimedOut => Outcome::Silent,
        _ => Outcome::Unreachable,
    }
}

impl Attempt {
    /// Begins to connect.
    fn to(address: SocketAddr, initiator: Initiator) -> std::io::Result<Attempt> {
        let socket = Socket::new(Domain::for_address(address), Type::STREAM, None)?;
        socket.set_nonblocking(true)?;
        match socket.connect(&address.into()) {
            Err(error) if error.raw_os_error() != Some(libc::EINPROGRESS) => return Err(error),
            _ => {}
        }
        Ok(Attempt { stream: socket.into(), began: Instant::now(), connected: false, initiator })
    }

    fn step(&mut self, contact: &Contact) -> Outcome {
        match self.receive(contact) {
            Ok(Some(outcome)) => outcome,
            Ok(None) if self.connected && self.began.elapsed() >= ANSWER_MAX => {
                Outcome::Answer([0; 2])
            }
            Ok(None) if !self.connected && self.began.elapsed() >= CONNECT_MAX => Outcome::Silent,
            Ok(None) => Outcome::Pending,
            // The process is the right one, and has closed this connection to make room for others.
            Err(_) if self.initiator.is_verified() => Outcome::Answer([0; 2]),
            Err(error) => outcome_of(&error),
        }
    }

    fn receive(&mut self, contact: &Contact) -> std::io::Result<Option<Outcome>> {
        if !self.connected {
            if let Some(error) = self.stream.take_error()? {
                return Err(error);
            }
            match self.stream.peer_addr() {
                Err(error) if error.kind() == ErrorKind::NotConnected => return Ok(None),
                connected => connected?,
            };
            // It fits into the buffer of the socket, which is empty.
            self.stream.write_all(self.initiator.hello())?;
            self.connected = true;
        }
        loop {
            let stream = &mut self.stream;
            let next = self.initiator.step(|bytes| match stream.read(bytes) {
                Ok(0) => Err(ErrorKind::ConnectionReset.into()),
                read => read,
            });
            match next {
                Ok(InitiatorStep::Wait) => {}
                // The message fits into the buffer, as the hello does.
                Ok(InitiatorStep::Ask(bytes)) => self.stream.write_all(&bytes)?,
                Ok(InitiatorStep::Done(answer)) => {
                    let answer =
                        Message::from(&answer).filter(|answer| answer.uid == contact.uid());
                    let outcome =
                        answer.map_or(Outcome::Closed, |answer| Outcome::Answer(answer.words));
                    return Ok(Some(outcome));
                }
                Ok(InitiatorStep::Refuse) => return Ok(Some(Outcome::Closed)),
                Err(error) if error.kind() == ErrorKind::WouldBlock => return Ok(None),
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
    }
}
