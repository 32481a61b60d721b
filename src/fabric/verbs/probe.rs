//! A question at the door of another process, asked by who waits for somebody of its node: whether
//! it is still there, and what it has to say of something that both know. It needs no connection of
//! the device, so that nobody need have contacted the process before. A probe never waits: its
//! steps are taken in between, while its initiator looks at what it waits for.
//!
//! | word | what it holds in a question and in its answer                        |
//! |------|----------------------------------------------------------------------|
//! | 0    | `MAGIC`                                                              |
//! | 1    | the number of the process that says it                               |
//! | 2    | question: what about; answer: the first word of the notices             |
//! | 3    | answer: the second                                                   |
//! | 4, 5 | 0                                                                    |

use std::io::{ErrorKind, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::time::{Duration, Instant};

use socket2::{Domain, Socket, Type};

use super::handshake::{BYTES, Initiator, InitiatorStep};
use super::limits::is_shortage;
use super::secret::Secret;
use super::{Contact, Core};
use crate::error::Result;

const MAGIC: u64 = u64::from_be_bytes(*b"fompi-k1");
/// How long an address may take to let a initiator in: the system does that, not the process.
const CONNECT_MAX: Duration = Duration::from_secs(3);
/// How long the process may take to answer. It may be stopped, and is there all the same.
const ANSWER_MAX: Duration = Duration::from_secs(10);
/// How long all addresses of a node may be silent.
const SILENCE_MAX: Duration = Duration::from_secs(30);

/// What a process has to say of what a number stands for; two words that mean nothing here, zero
/// for no notices. It is asked on the connection thread.
pub type Notices = fn(u64) -> [u64; 2];

/// A question or an answer.
struct Message {
    who: u64,
    words: [u64; 2],
}

impl Message {
    fn bytes(&self) -> [u8; BYTES] {
        let mut bytes = [0; BYTES];
        let words = [MAGIC, self.who, self.words[0], self.words[1]];
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
        (word(0) == MAGIC).then(|| Message { who: word(1), words: [word(2), word(3)] })
    }
}

/// The answer to what a initiator has asked, if it was a question.
pub(super) fn answer(core: &Core, message: &[u8; BYTES]) -> Option<[u8; BYTES]> {
    let question = Message::from(message)?;
    let words = core.notices.get().map_or([0; 2], |notices| notices(question.words[0]));
    Some(Message { who: core.uid(), words }.bytes())
}

/// A question under way.
pub struct Probe {
    contact: Contact,
    secret: Secret,
    /// the number of this process, and what it asks about
    uid: u64,
    about: u64,
    addresses: Vec<SocketAddr>,
    /// the address whose turn it is
    address: usize,
    /// addresses at which nobody listens, or somebody else, and those that did not answer at all
    closed: usize,
    silent: usize,
    began: Instant,
    attempt: Option<Attempt>,
}

/// A attempt at one address.
struct Attempt {
    stream: TcpStream,
    began: Instant,
    connected: bool,
    initiator: Initiator,
}

/// What came of a attempt so far.
enum Outcome {
    Pending,
    Answer([u64; 2]),
    /// nobody listens there, or somebody else
    Closed,
    /// there is no way to it
    Unreachable,
    /// it does not let callers in, nor send them away
    Silent,
}

impl Probe {
    /// Begins to ask the process of a contact.
    pub(super) fn new(contact: &Contact, secret: Secret, uid: u64, about: u64) -> Probe {
        let (contact, addresses, began) = (*contact, contact.addresses(), Instant::now());
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

    /// The question, for a attempt at an address.
    fn initiator(&self) -> Result<Initiator> {
        let question = Message { who: self.uid, words: [self.about, 0] };
        Initiator::new(self.secret, self.contact.uid(), self.uid, question.bytes())
    }

    /// Goes on without waiting: the notices, if they have come. Fails if the process is gone: if
    /// nobody opens any more at any of its addresses (one of them may be that of a bridge, which
    /// each node has), or if none of them answers for long. A process that lets callers in but says
    /// nothing is there: it is stopped, or its node is busy.
    pub fn step(&mut self) -> Result<Option<[u64; 2]>> {
        let Some(address) = self.addresses.get(self.address).copied() else {
            return self.next_round();
        };
        let mut attempt = match self.attempt.take() {
            Some(attempt) => attempt,
            None => match Attempt::to(address, self.initiator()?) {
                Ok(attempt) => attempt,
                // This process has no socket left: no reason to think badly of others.
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

    /// On to the next address.
    fn next_address(&mut self, outcome: Outcome) -> Result<Option<[u64; 2]>> {
        match outcome {
            Outcome::Closed => self.closed += 1,
            Outcome::Silent => self.silent += 1,
            _ => {}
        }
        self.address += 1;
        if self.address < self.addresses.len() { Ok(None) } else { self.next_round() }
    }

    /// All addresses had their turn.
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

/// What an error of a connection says.
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
            // It is who it should be, and has given this attempt up for others.
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
            // It fits into the socket's buffer, which is empty.
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
                // Likewise.
                Ok(InitiatorStep::Ask(bytes)) => self.stream.write_all(&bytes)?,
                Ok(InitiatorStep::Done(answer)) => {
                    let answer =
                        Message::from(&answer).filter(|answer| answer.who == contact.uid());
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
