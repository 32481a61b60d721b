//! A question at the door of another process, asked by who waits for somebody of its node: whether
//! it is still there, and what it has to say of something that both know. It needs no connection of
//! the device, so that nobody need have contacted the process before. A knock never waits: its
//! steps are taken in between, while its caller looks at what it waits for.
//!
//! | word | what it holds in a question and in its answer                        |
//! |------|----------------------------------------------------------------------|
//! | 0    | `MAGIC`                                                              |
//! | 1    | the number of the process that says it                               |
//! | 2    | question: what about; answer: the first word of the news             |
//! | 3    | answer: the second                                                   |
//! | 4, 5 | 0                                                                    |

use std::io::{ErrorKind, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::time::{Duration, Instant};

use socket2::{Domain, Socket, Type};

use super::limits::is_shortage;
use super::secret::Secret;
use super::talk::{BYTES, Caller, Next};
use super::{Contact, Core};
use crate::error::Result;

const MAGIC: u64 = u64::from_be_bytes(*b"fompi-k1");
/// How long an address may take to let a caller in: the system does that, not the process.
const GLANCE: Duration = Duration::from_secs(3);
/// How long the process may take to answer. It may be stopped, and is there all the same.
const PATIENCE: Duration = Duration::from_secs(10);
/// How long all addresses of a node may be silent.
const SILENCE: Duration = Duration::from_secs(30);

/// What a process has to say of what a number stands for; two words that mean nothing here, zero
/// for no news. It is asked on the connection thread.
pub type News = fn(u64) -> [u64; 2];

/// A question or an answer.
struct Said {
    who: u64,
    words: [u64; 2],
}

impl Said {
    fn bytes(&self) -> [u8; BYTES] {
        let mut bytes = [0; BYTES];
        let words = [MAGIC, self.who, self.words[0], self.words[1]];
        for (to, word) in bytes.chunks_exact_mut(8).zip(words) {
            to.copy_from_slice(&word.to_le_bytes());
        }
        bytes
    }

    fn from(bytes: &[u8; BYTES]) -> Option<Said> {
        let word = |index: usize| {
            let bytes = bytes[8 * index..][..8].try_into().expect("eight bytes");
            u64::from_le_bytes(bytes)
        };
        (word(0) == MAGIC).then(|| Said { who: word(1), words: [word(2), word(3)] })
    }
}

/// The answer to what a caller has asked, if it was a question.
pub(super) fn answer(core: &Core, said: &[u8; BYTES]) -> Option<[u8; BYTES]> {
    let question = Said::from(said)?;
    let words = core.news.get().map_or([0; 2], |news| news(question.words[0]));
    Some(Said { who: core.uid(), words }.bytes())
}

/// A question under way.
pub struct Knock {
    contact: Contact,
    secret: Secret,
    /// the number of this process, and what it asks about
    uid: u64,
    about: u64,
    places: Vec<SocketAddr>,
    /// the address whose turn it is
    place: usize,
    /// addresses at which nobody listens, or somebody else, and those that did not answer at all
    closed: usize,
    silent: usize,
    began: Instant,
    call: Option<Call>,
}

/// A call at one address.
struct Call {
    stream: TcpStream,
    began: Instant,
    connected: bool,
    caller: Caller,
}

/// What came of a call so far.
enum Heard {
    Nothing,
    News([u64; 2]),
    /// nobody listens there, or somebody else
    Closed,
    /// there is no way to it
    Unreached,
    /// it does not let callers in, nor send them away
    Silent,
}

impl Knock {
    /// Begins to ask the process of a contact.
    pub(super) fn new(contact: &Contact, secret: Secret, uid: u64, about: u64) -> Knock {
        let (contact, places, began) = (*contact, contact.addresses(), Instant::now());
        let (place, closed, silent) = (0, 0, 0);
        Knock { contact, secret, uid, about, places, place, closed, silent, began, call: None }
    }

    /// The question, for a call at an address.
    fn caller(&self) -> Result<Caller> {
        let question = Said { who: self.uid, words: [self.about, 0] };
        Caller::new(self.secret, self.contact.uid(), self.uid, question.bytes())
    }

    /// Goes on without waiting: the news, if they have come. Fails if the process is gone: if
    /// nobody opens any more at any of its addresses (one of them may be that of a bridge, which
    /// each node has), or if none of them answers for long. A process that lets callers in but says
    /// nothing is there: it is stopped, or its node is busy.
    pub fn step(&mut self) -> Result<Option<[u64; 2]>> {
        let Some(place) = self.places.get(self.place).copied() else { return self.around() };
        let mut call = match self.call.take() {
            Some(call) => call,
            None => match Call::to(place, self.caller()?) {
                Ok(call) => call,
                // This process has no socket left: no reason to think badly of others.
                Err(error) if error.raw_os_error().is_some_and(is_shortage) => {
                    return Ok(Some([0; 2]));
                }
                Err(error) => return self.go_on(refusal(&error)),
            },
        };
        match call.step(&self.contact) {
            Heard::Nothing => {
                self.call = Some(call);
                Ok(None)
            }
            Heard::News(words) => Ok(Some(words)),
            other => self.go_on(other),
        }
    }

    /// On to the next address.
    fn go_on(&mut self, heard: Heard) -> Result<Option<[u64; 2]>> {
        match heard {
            Heard::Closed => self.closed += 1,
            Heard::Silent => self.silent += 1,
            _ => {}
        }
        self.place += 1;
        if self.place < self.places.len() { Ok(None) } else { self.around() }
    }

    /// All addresses had their turn.
    fn around(&mut self) -> Result<Option<[u64; 2]>> {
        if self.places.is_empty() {
            return Ok(Some([0; 2]));
        }
        if self.closed > 0 && self.silent == 0 {
            return Err(self.contact.lost("its connection thread is gone"));
        }
        if self.began.elapsed() >= SILENCE {
            return Err(self.contact.lost("its node does not answer"));
        }
        (self.place, self.closed, self.silent) = (0, 0, 0);
        Ok(None)
    }
}

/// What an error of a connection says.
fn refusal(error: &std::io::Error) -> Heard {
    match error.kind() {
        ErrorKind::ConnectionRefused | ErrorKind::ConnectionReset | ErrorKind::BrokenPipe => {
            Heard::Closed
        }
        ErrorKind::TimedOut => Heard::Silent,
        _ => Heard::Unreached,
    }
}

impl Call {
    /// Begins to connect.
    fn to(place: SocketAddr, caller: Caller) -> std::io::Result<Call> {
        let socket = Socket::new(Domain::for_address(place), Type::STREAM, None)?;
        socket.set_nonblocking(true)?;
        match socket.connect(&place.into()) {
            Err(error) if error.raw_os_error() != Some(libc::EINPROGRESS) => return Err(error),
            _ => {}
        }
        Ok(Call { stream: socket.into(), began: Instant::now(), connected: false, caller })
    }

    fn step(&mut self, contact: &Contact) -> Heard {
        match self.hear(contact) {
            Ok(Some(heard)) => heard,
            Ok(None) if self.connected && self.began.elapsed() >= PATIENCE => Heard::News([0; 2]),
            Ok(None) if !self.connected && self.began.elapsed() >= GLANCE => Heard::Silent,
            Ok(None) => Heard::Nothing,
            // It is who it should be, and has given this call up for others.
            Err(_) if self.caller.is_met() => Heard::News([0; 2]),
            Err(error) => refusal(&error),
        }
    }

    fn hear(&mut self, contact: &Contact) -> std::io::Result<Option<Heard>> {
        if !self.connected {
            if let Some(error) = self.stream.take_error()? {
                return Err(error);
            }
            match self.stream.peer_addr() {
                Err(error) if error.kind() == ErrorKind::NotConnected => return Ok(None),
                connected => connected?,
            };
            // It fits into the socket's buffer, which is empty.
            self.stream.write_all(self.caller.greeting())?;
            self.connected = true;
        }
        loop {
            let stream = &mut self.stream;
            let next = self.caller.step(|bytes| match stream.read(bytes) {
                Ok(0) => Err(ErrorKind::ConnectionReset.into()),
                read => read,
            });
            match next {
                Ok(Next::Listen) => {}
                // Likewise.
                Ok(Next::Ask(bytes)) => self.stream.write_all(&bytes)?,
                Ok(Next::Done(answer)) => {
                    let answer = Said::from(&answer).filter(|answer| answer.who == contact.uid());
                    let heard = answer.map_or(Heard::Closed, |answer| Heard::News(answer.words));
                    return Ok(Some(heard));
                }
                Ok(Next::Stranger) => return Ok(Some(Heard::Closed)),
                Err(error) if error.kind() == ErrorKind::WouldBlock => return Ok(None),
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
    }
}
