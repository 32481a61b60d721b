//! What a caller and the process that it calls say to each other, as bytes and as two state
//! machines without sockets: four messages, each of a fixed length. Both sides show by tags
//! ([`secret`](super::secret)) that they know the secret of the job, and that they have said and
//! heard the same so far. What is asked and answered is the affair of others. Invariant: no message
//! is good for another call, because a number of each side that is used once is in its tag.
//!
//! | message    | from   | its parts, of 8 bytes where nothing is said                         |
//! |------------|--------|---------------------------------------------------------------------|
//! | greeting   | caller | `MAGIC`, name of the secret, called process, caller, number (16)    |
//! | challenge  | called | number (16), tag (16) of greeting and number                        |
//! | request    | caller | question (48), tag (16) of greeting, challenge's number, question   |
//! | answer     | called | answer (48), tag (16) of those three and the answer                 |
//!
//! The caller asks nothing before the called process has shown that it knows the secret; that one
//! reads no question of a caller that has not.

use super::secret::{Part, Secret, TAG_BYTES};
use crate::error::Result;
use crate::sys::random;

/// Bytes of a question and of an answer.
pub const BYTES: usize = 48;
/// Bytes of the longest message.
pub const MESSAGE_BYTES_MAX: usize = BYTES + TAG_BYTES;

const MAGIC: u64 = u64::from_be_bytes(*b"fompi-h1");
const NUMBER_BYTES: usize = 16;
const GREETING_BYTES: usize = 4 * 8 + NUMBER_BYTES;
const CHALLENGE_BYTES: usize = NUMBER_BYTES + TAG_BYTES;

type Greeting = [u8; GREETING_BYTES];
type Number = [u8; NUMBER_BYTES];

/// A message that comes in pieces.
struct Message {
    bytes: [u8; MESSAGE_BYTES_MAX],
    count: usize,
}

impl Message {
    const NOTHING: Message = Message { bytes: [0; MESSAGE_BYTES_MAX], count: 0 };

    /// Takes what `read` reads of a message of so many bytes; whether it is whole.
    fn take<E>(
        &mut self,
        length: usize,
        read: impl FnOnce(&mut [u8]) -> core::result::Result<usize, E>,
    ) -> core::result::Result<bool, E> {
        let count = read(&mut self.bytes[self.count..length])?;
        self.count += count;
        Ok(self.count == length)
    }

    /// The bytes from one place on.
    fn part<const N: usize>(&self, at: usize) -> [u8; N] {
        self.bytes[at..at + N].try_into().expect("so many bytes")
    }
}

/// Two parts as one message.
fn join<const N: usize>(first: &[u8], second: &[u8]) -> [u8; N] {
    let mut bytes = [0; N];
    bytes[..first.len()].copy_from_slice(first);
    bytes[first.len()..].copy_from_slice(second);
    bytes
}

/// What the called process does next.
#[derive(Debug, PartialEq, Eq)]
pub enum Then {
    /// waits for the rest of a message
    Listen,
    /// sends a challenge and waits for the question
    Challenge([u8; CHALLENGE_BYTES]),
    /// sends an answer and is done
    Answer([u8; MESSAGE_BYTES_MAX]),
    /// is done with somebody who does not know the secret, or talks nonsense
    Refuse,
}

/// The side of the called process, for one caller.
pub struct Called {
    heard: Message,
    /// what the caller has said when it has greeted, and the number that it was given
    greeted: Option<(Secret, Greeting, Number)>,
}

impl Called {
    /// Somebody has called.
    pub fn new() -> Called {
        Called { heard: Message::NOTHING, greeted: None }
    }

    /// Whether the caller has named the secret and this process.
    pub fn is_greeted(&self) -> bool {
        self.greeted.is_some()
    }

    /// Reads once. `known` finds the secret of a name, `uid` is the number of this process,
    /// `answer` answers a question.
    pub fn step<E>(
        &mut self,
        read: impl FnOnce(&mut [u8]) -> core::result::Result<usize, E>,
        known: impl FnOnce(u64) -> Option<Secret>,
        uid: u64,
        answer: impl FnOnce(&[u8; BYTES]) -> Option<[u8; BYTES]>,
    ) -> core::result::Result<Then, E> {
        let Some((secret, greeting, number)) = &self.greeted else {
            let whole = self.heard.take(GREETING_BYTES, read)?;
            return Ok(if whole { self.greet(known, uid) } else { Then::Listen });
        };
        if !self.heard.take(MESSAGE_BYTES_MAX, read)? {
            return Ok(Then::Listen);
        }
        let (question, tag) = (self.heard.part::<BYTES>(0), self.heard.part(BYTES));
        if !secret.has_made(&tag, Part::Request, &[greeting, number, &question]) {
            return Ok(Then::Refuse);
        }
        let Some(answer) = answer(&question) else { return Ok(Then::Refuse) };
        let tag = secret.tag(Part::Answer, &[greeting, number, &question, &answer]);
        Ok(Then::Answer(join(&answer, &tag)))
    }

    /// The challenge for who has greeted this process.
    fn greet(&mut self, known: impl FnOnce(u64) -> Option<Secret>, uid: u64) -> Then {
        let greeting: Greeting = self.heard.part(0);
        let word = |index: usize| u64::from_le_bytes(self.heard.part(8 * index));
        if word(0) != MAGIC || word(2) != uid {
            return Then::Refuse;
        }
        let (Some(secret), Ok(number)) = (known(word(1)), random::bytes()) else {
            return Then::Refuse;
        };
        self.greeted = Some((secret, greeting, number));
        self.heard = Message::NOTHING;
        let tag = secret.tag(Part::Challenge, &[&greeting, &number]);
        Then::Challenge(join(&number, &tag))
    }
}

/// What the caller does next.
#[derive(Debug, PartialEq, Eq)]
pub enum Next {
    /// waits for the rest of a message
    Listen,
    /// sends its question and waits for the answer
    Ask([u8; MESSAGE_BYTES_MAX]),
    /// has the answer
    Done([u8; BYTES]),
    /// is done with somebody who does not know the secret, or talks nonsense
    Stranger,
}

/// The side of the caller.
pub struct Caller {
    secret: Secret,
    greeting: Greeting,
    question: [u8; BYTES],
    heard: Message,
    /// of the called process, when it has shown that it knows the secret
    number: Option<Number>,
}

impl Caller {
    /// The process `from` has a question for the process `to`.
    pub fn new(secret: Secret, to: u64, from: u64, question: [u8; BYTES]) -> Result<Caller> {
        let mut greeting = [0; GREETING_BYTES];
        for (place, word) in greeting.chunks_exact_mut(8).zip([MAGIC, secret.name(), to, from]) {
            place.copy_from_slice(&word.to_le_bytes());
        }
        greeting[GREETING_BYTES - NUMBER_BYTES..].copy_from_slice(&random::bytes::<16>()?);
        Ok(Caller { secret, greeting, question, heard: Message::NOTHING, number: None })
    }

    /// What it says first.
    pub fn greeting(&self) -> &[u8] {
        &self.greeting
    }

    /// Whether the called process has shown that it knows the secret.
    pub fn is_met(&self) -> bool {
        self.number.is_some()
    }

    /// Reads once.
    pub fn step<E>(
        &mut self,
        read: impl FnOnce(&mut [u8]) -> core::result::Result<usize, E>,
    ) -> core::result::Result<Next, E> {
        let (secret, greeting, question) = (self.secret, &self.greeting, &self.question);
        let length = if self.is_met() { MESSAGE_BYTES_MAX } else { CHALLENGE_BYTES };
        if !self.heard.take(length, read)? {
            return Ok(Next::Listen);
        }
        if let Some(number) = &self.number {
            let (answer, tag) = (self.heard.part::<BYTES>(0), self.heard.part(BYTES));
            let said: [&[u8]; 4] = [greeting, number, question, &answer];
            let is_right = secret.has_made(&tag, Part::Answer, &said);
            return Ok(if is_right { Next::Done(answer) } else { Next::Stranger });
        }
        let (number, tag) = (self.heard.part::<NUMBER_BYTES>(0), self.heard.part(NUMBER_BYTES));
        if !secret.has_made(&tag, Part::Challenge, &[greeting, &number]) {
            return Ok(Next::Stranger);
        }
        let tag = secret.tag(Part::Request, &[greeting, &number, question]);
        (self.number, self.heard) = (Some(number), Message::NOTHING);
        Ok(Next::Ask(join(question, &tag)))
    }
}
