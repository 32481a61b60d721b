//! Handshake of two processes that share a secret, as bytes and as two state machines without
//! sockets: four messages of fixed lengths between the initiator, which connects, and the
//! responder. Both sides prove by authentication tags ([`secret`](super::secret)) that they know
//! the secret, and that they have seen the same transcript. The meaning of question and answer is
//! defined elsewhere. Invariant: no message is valid in another handshake, because its tag covers a
//! nonce of each side.
//!
//! | message   | sender    | parts, of 8 bytes each unless noted                           |
//! |-----------|-----------|---------------------------------------------------------------|
//! | hello     | initiator | `MAGIC`, name of the secret, responder, initiator, nonce (16) |
//! | challenge | responder | nonce (16), tag (16) over hello and nonce                     |
//! | request   | initiator | question (48), tag (16) over hello, responder's nonce, question |
//! | answer    | responder | answer (48), tag (16) over those three and the answer         |
//!
//! The initiator sends its question only after the responder has proved that it knows the secret.
//! The responder handles no question of an initiator that has not proved it.

use super::random;
use super::secret::{Secret, TAG_BYTES, TagPurpose};
use crate::error::Result;

/// Bytes of a question and of an answer.
pub const BYTES: usize = 48;
/// Bytes of the longest message.
pub const MESSAGE_BYTES_MAX: usize = BYTES + TAG_BYTES;

const MAGIC: u64 = u64::from_be_bytes(*b"fompi-h1");
const NONCE_BYTES: usize = 16;
const HELLO_BYTES: usize = 4 * 8 + NONCE_BYTES;
const CHALLENGE_BYTES: usize = NONCE_BYTES + TAG_BYTES;

type Hello = [u8; HELLO_BYTES];
type Nonce = [u8; NONCE_BYTES];

/// A message that arrives in pieces.
struct Message {
    bytes: [u8; MESSAGE_BYTES_MAX],
    count: usize,
}

impl Message {
    const NOTHING: Message = Message { bytes: [0; MESSAGE_BYTES_MAX], count: 0 };

    /// Adds the bytes that `read` returns to a message of `length` bytes. Returns whether it is
    /// complete.
    fn take<E>(
        &mut self,
        length: usize,
        read: impl FnOnce(&mut [u8]) -> core::result::Result<usize, E>,
    ) -> core::result::Result<bool, E> {
        let count = read(&mut self.bytes[self.count..length])?;
        self.count += count;
        Ok(self.count == length)
    }

    /// Returns `N` bytes of the message from `at` on.
    fn part<const N: usize>(&self, at: usize) -> [u8; N] {
        self.bytes[at..at + N].try_into().expect("N bytes")
    }
}

/// Joins two parts into one message.
fn join<const N: usize>(first: &[u8], second: &[u8]) -> [u8; N] {
    let mut bytes = [0; N];
    bytes[..first.len()].copy_from_slice(first);
    bytes[first.len()..].copy_from_slice(second);
    bytes
}

/// The next step of the responder.
#[derive(Debug, PartialEq, Eq)]
pub enum ResponderStep {
    /// waits for the rest of a message
    Wait,
    /// sends a challenge and waits for the question
    Challenge([u8; CHALLENGE_BYTES]),
    /// sends an answer and is done
    Answer([u8; MESSAGE_BYTES_MAX]),
    /// closes the connection: the initiator does not know the secret, or the message is invalid
    Refuse,
}

/// The responder's side, for one connection.
pub struct Responder {
    received: Message,
    /// after the hello: the secret that it names, the hello itself, and the responder's nonce
    identified: Option<(Secret, Hello, Nonce)>,
}

impl Responder {
    /// Starts before the hello.
    pub fn new() -> Responder {
        Responder { received: Message::NOTHING, identified: None }
    }

    /// Whether the initiator has named the secret and this process.
    pub fn is_identified(&self) -> bool {
        self.identified.is_some()
    }

    /// Whether two initiators have sent one hello. Each process makes another nonce for each hello,
    /// so that one of them has recorded it.
    pub fn has_hello_of(&self, other: &Responder) -> bool {
        let hello = |one: &Responder| one.identified.as_ref().map(|(_, hello, _)| *hello);
        hello(self).is_some_and(|own| Some(own) == hello(other))
    }

    /// Reads once. `known` finds the secret of a name, `uid` is the number of this process,
    /// `answer` answers a question.
    pub fn step<E>(
        &mut self,
        read: impl FnOnce(&mut [u8]) -> core::result::Result<usize, E>,
        known: impl FnOnce(u64) -> Option<Secret>,
        uid: u64,
        answer: impl FnOnce(&[u8; BYTES]) -> Option<[u8; BYTES]>,
    ) -> core::result::Result<ResponderStep, E> {
        let Some((secret, hello, nonce)) = &self.identified else {
            let whole = self.received.take(HELLO_BYTES, read)?;
            return Ok(if whole { self.check_hello(known, uid) } else { ResponderStep::Wait });
        };
        if !self.received.take(MESSAGE_BYTES_MAX, read)? {
            return Ok(ResponderStep::Wait);
        }
        let (question, tag) = (self.received.part::<BYTES>(0), self.received.part(BYTES));
        if !secret.verifies(&tag, TagPurpose::Request, &[hello, nonce, &question]) {
            return Ok(ResponderStep::Refuse);
        }
        let Some(answer) = answer(&question) else { return Ok(ResponderStep::Refuse) };
        let tag = secret.tag(TagPurpose::Answer, &[hello, nonce, &question, &answer]);
        Ok(ResponderStep::Answer(join(&answer, &tag)))
    }

    /// Checks the hello of the initiator, and returns the challenge.
    fn check_hello(
        &mut self,
        known: impl FnOnce(u64) -> Option<Secret>,
        uid: u64,
    ) -> ResponderStep {
        let hello: Hello = self.received.part(0);
        let word = |index: usize| u64::from_le_bytes(self.received.part(8 * index));
        if word(0) != MAGIC || word(2) != uid {
            return ResponderStep::Refuse;
        }
        let (Some(secret), Ok(nonce)) = (known(word(1)), random::bytes()) else {
            return ResponderStep::Refuse;
        };
        self.identified = Some((secret, hello, nonce));
        self.received = Message::NOTHING;
        let tag = secret.tag(TagPurpose::Challenge, &[&hello, &nonce]);
        ResponderStep::Challenge(join(&nonce, &tag))
    }
}

/// The next step of the initiator.
#[derive(Debug, PartialEq, Eq)]
pub enum InitiatorStep {
    /// waits for the rest of a message
    Wait,
    /// sends its question and waits for the answer
    Ask([u8; MESSAGE_BYTES_MAX]),
    /// has the answer
    Done([u8; BYTES]),
    /// closes the connection: the responder does not know the secret, or the message is invalid
    Refuse,
}

/// The initiator's side.
pub struct Initiator {
    secret: Secret,
    hello: Hello,
    question: [u8; BYTES],
    received: Message,
    /// nonce of the responder, once the responder has proved that it knows the secret
    nonce: Option<Nonce>,
}

impl Initiator {
    /// Makes the initiator's side for a question of process `from` to process `to`.
    pub fn new(secret: Secret, to: u64, from: u64, question: [u8; BYTES]) -> Result<Initiator> {
        let mut hello = [0; HELLO_BYTES];
        for (place, word) in hello.chunks_exact_mut(8).zip([MAGIC, secret.name(), to, from]) {
            place.copy_from_slice(&word.to_le_bytes());
        }
        hello[HELLO_BYTES - NONCE_BYTES..].copy_from_slice(&random::bytes::<16>()?);
        Ok(Initiator { secret, hello, question, received: Message::NOTHING, nonce: None })
    }

    /// The first message.
    pub fn hello(&self) -> &[u8] {
        &self.hello
    }

    /// Whether the responder has proved that it knows the secret.
    pub fn is_verified(&self) -> bool {
        self.nonce.is_some()
    }

    /// Reads once.
    pub fn step<E>(
        &mut self,
        read: impl FnOnce(&mut [u8]) -> core::result::Result<usize, E>,
    ) -> core::result::Result<InitiatorStep, E> {
        let (secret, hello, question) = (self.secret, &self.hello, &self.question);
        let length = if self.is_verified() { MESSAGE_BYTES_MAX } else { CHALLENGE_BYTES };
        if !self.received.take(length, read)? {
            return Ok(InitiatorStep::Wait);
        }
        if let Some(nonce) = &self.nonce {
            let (answer, tag) = (self.received.part::<BYTES>(0), self.received.part(BYTES));
            let transcript: [&[u8]; 4] = [hello, nonce, question, &answer];
            let is_right = secret.verifies(&tag, TagPurpose::Answer, &transcript);
            return Ok(if is_right { InitiatorStep::Done(answer) } else { InitiatorStep::Refuse });
        }
        let (nonce, tag) = (self.received.part::<NONCE_BYTES>(0), self.received.part(NONCE_BYTES));
        if !secret.verifies(&tag, TagPurpose::Challenge, &[hello, &nonce]) {
            return Ok(InitiatorStep::Refuse);
        }
        let tag = secret.tag(TagPurpose::Request, &[hello, &nonce, question]);
        (self.nonce, self.received) = (Some(nonce), Message::NOTHING);
        Ok(InitiatorStep::Ask(join(question, &tag)))
    }
}

#[cfg(test)]
mod tests;
