//! What callers say, without sockets: whatever strangers send, nobody who does not know the secret
//! is answered, and nobody believes one who does not.

use super::super::secret::Secret;
use super::super::talk::*;
use super::secret;
use core::convert::Infallible;

const QUESTION: [u8; BYTES] = [5; BYTES];
const ANSWER: [u8; BYTES] = [6; BYTES];
const CALLED: u64 = 70;
const CALLER: u64 = 71;

/// A conversation, each message of which may be changed on its way.
struct Talk {
    secrets: [Secret; 2],
    called: Called,
    caller: Caller,
    /// as they were sent
    messages: Vec<Vec<u8>>,
    asked: u32,
}

impl Talk {
    fn between(caller: Secret, called: Secret) -> Talk {
        Talk {
            secrets: [caller, called],
            called: Called::new(),
            caller: Caller::new(caller, CALLED, CALLER, QUESTION).unwrap(),
            messages: Vec::new(),
            asked: 0,
        }
    }

    /// What the called process does with a message that comes in pieces of so many bytes.
    fn heard_by_called(&mut self, message: &[u8], piece: usize) -> Then {
        let secret = self.secrets[1];
        let (mut rest, mut then) = (message, Then::Listen);
        while then == Then::Listen && !rest.is_empty() {
            let asked = &mut self.asked;
            let read = |to: &mut [u8]| Ok::<_, Infallible>(read(&mut rest, to, piece));
            let known = |name| (name == secret.name()).then_some(secret);
            let answer = |question: &[u8; BYTES]| {
                *asked += 1;
                (*question == QUESTION).then_some(ANSWER)
            };
            then = self.called.step(read, known, CALLED, answer).unwrap();
        }
        then
    }

    /// The same of the caller.
    fn heard_by_caller(&mut self, message: &[u8], piece: usize) -> Next {
        let (mut rest, mut next) = (message, Next::Listen);
        while next == Next::Listen && !rest.is_empty() {
            next = self.caller.step(|to| Ok::<_, Infallible>(read(&mut rest, to, piece))).unwrap();
        }
        next
    }

    /// All of it; the answer that the caller believes.
    fn run(
        &mut self,
        piece: usize,
        mut change: impl FnMut(usize, &mut Vec<u8>),
    ) -> Option<[u8; BYTES]> {
        let mut send = |messages: &mut Vec<Vec<u8>>, message: &[u8]| {
            messages.push(message.to_vec());
            let mut sent = message.to_vec();
            change(messages.len() - 1, &mut sent);
            sent
        };
        let greeting = send(&mut self.messages, self.caller.greeting());
        let Then::Challenge(challenge) = self.heard_by_called(&greeting, piece) else {
            return None;
        };
        let challenge = send(&mut self.messages, &challenge);
        let Next::Ask(question) = self.heard_by_caller(&challenge, piece) else { return None };
        let question = send(&mut self.messages, &question);
        let Then::Answer(answer) = self.heard_by_called(&question, piece) else { return None };
        let answer = send(&mut self.messages, &answer);
        match self.heard_by_caller(&answer, piece) {
            Next::Done(answer) => Some(answer),
            _ => None,
        }
    }
}

fn read(from: &mut &[u8], to: &mut [u8], piece: usize) -> usize {
    let count = from.len().min(to.len()).min(piece);
    to[..count].copy_from_slice(&from[..count]);
    *from = &from[count..];
    count
}

/// Numbers that look like chance, the same in each run.
fn random(state: &mut u64) -> u64 {
    *state = state.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
    *state >> 33
}

#[test]
fn who_knows_the_secret_is_answered_in_pieces_of_any_length() {
    for piece in 1..=MESSAGE_BYTES_MAX {
        let mut talk = Talk::between(secret(), secret());
        assert_eq!(talk.run(piece, |_, _| {}), Some(ANSWER));
        assert_eq!(talk.asked, 1);
    }
}

#[test]
fn one_wrong_bit_anywhere_ends_the_conversation() {
    let lengths: Vec<usize> = {
        let mut talk = Talk::between(secret(), secret());
        talk.run(99, |_, _| {}).unwrap();
        talk.messages.iter().map(Vec::len).collect()
    };
    for (message, length) in lengths.into_iter().enumerate() {
        for bit in 0..8 * length {
            let mut talk = Talk::between(secret(), secret());
            let answer = talk.run(99, |index, bytes| {
                if index == message {
                    bytes[bit / 8] ^= 1 << (bit % 8);
                }
            });
            assert_eq!(answer, None, "bit {bit} of message {message}");
            let reached = u32::from(message == 3);
            assert_eq!(talk.asked, reached, "bit {bit} of message {message}");
        }
    }
}

#[test]
fn another_secret_opens_nothing_on_either_side() {
    let other = Secret::from([3, 5]);
    for (caller, called) in [(secret(), other), (other, secret())] {
        let mut talk = Talk::between(caller, called);
        assert_eq!((talk.run(99, |_, _| {}), talk.asked), (None, 0));
    }
    // One who says the name of the secret, and does not know it.
    let mut talk = Talk::between(other, secret());
    let name = secret().name().to_le_bytes();
    let answer = talk.run(99, |index, bytes| {
        if index == 0 {
            bytes[8..16].copy_from_slice(&name);
        }
    });
    assert_eq!((answer, talk.asked), (None, 0));
    assert_eq!(talk.messages.len(), 2, "the caller asks nothing of who cannot show that he knows");
}

#[test]
fn what_was_said_once_is_no_good_again() {
    let mut talk = Talk::between(secret(), secret());
    talk.run(99, |_, _| {}).unwrap();
    let said = core::mem::take(&mut talk.messages);
    // To the same process, by a stranger who has heard all.
    talk.called = Called::new();
    assert!(matches!(talk.heard_by_called(&said[0], 99), Then::Challenge(_)));
    assert_eq!(talk.heard_by_called(&said[2], 99), Then::Refuse);
    assert_eq!(talk.asked, 1);
    // To a caller, by a stranger in the place of the process.
    let mut talk = Talk::between(secret(), secret());
    assert_eq!(talk.heard_by_caller(&said[1], 99), Next::Stranger);
    // What the caller itself has said is no challenge, nor is the challenge a question.
    let mut talk = Talk::between(secret(), secret());
    assert_eq!(talk.heard_by_caller(&said[2][32..], 99), Next::Stranger);
    let mut echo = said[1].clone();
    echo.resize(MESSAGE_BYTES_MAX, 0);
    assert!(matches!(talk.heard_by_called(&said[0], 99), Then::Challenge(_)));
    assert_eq!(talk.heard_by_called(&echo, 99), Then::Refuse);
}

#[test]
fn what_strangers_send_is_never_answered() {
    let mut state = 7;
    let mut good = Talk::between(secret(), secret());
    good.run(99, |_, _| {}).unwrap();
    for _ in 0..20_000 {
        let mut talk = Talk::between(secret(), secret());
        let mut answered = false;
        // Messages of an earlier call, cut, changed and mixed up, and nonsense.
        for _ in 0..3 {
            let mut bytes = good.messages[random(&mut state) as usize % 4].clone();
            for _ in 0..random(&mut state) % 4 {
                let at = random(&mut state) as usize % bytes.len();
                bytes[at] = random(&mut state) as u8;
            }
            if random(&mut state).is_multiple_of(4) {
                bytes = (0..random(&mut state) % 200).map(|_| random(&mut state) as u8).collect();
            }
            let piece = 1 + random(&mut state) as usize % 80;
            match talk.heard_by_called(&bytes, piece) {
                Then::Answer(_) => answered = true,
                Then::Refuse => break,
                Then::Listen | Then::Challenge(_) => {}
            }
            if talk.heard_by_caller(&bytes, piece) != Next::Listen {
                talk.caller = Caller::new(secret(), CALLED, CALLER, QUESTION).unwrap();
            }
            assert!(!talk.caller.is_met());
        }
        assert!(!answered && talk.asked == 0);
    }
}
