//! Tests of the handshake without sockets: whatever a stranger sends, the responder answers only an
//! initiator that knows the secret, and the initiator accepts only answers of a responder that
//! knows it.

use super::super::secret::Secret;
use super::*;
use core::convert::Infallible;

const QUESTION: [u8; BYTES] = [5; BYTES];
const ANSWER: [u8; BYTES] = [6; BYTES];
const RESPONDER: u64 = 70;
const INITIATOR: u64 = 71;

/// The secret that both sides know.
fn secret() -> Secret {
    Secret::from([3, 4])
}

/// A handshake whose messages may be changed on their way.
struct Handshake {
    secrets: [Secret; 2],
    responder: Responder,
    initiator: Initiator,
    /// the messages as they were sent
    messages: Vec<Vec<u8>>,
    asked: u32,
}

impl Handshake {
    fn between(initiator: Secret, responder: Secret) -> Handshake {
        Handshake {
            secrets: [initiator, responder],
            responder: Responder::new(),
            initiator: Initiator::new(initiator, RESPONDER, INITIATOR, QUESTION).unwrap(),
            messages: Vec::new(),
            asked: 0,
        }
    }

    /// Passes a message to the responder in pieces of `piece` bytes. Returns its last step.
    fn received_by_responder(&mut self, message: &[u8], piece: usize) -> ResponderStep {
        let secret = self.secrets[1];
        let (mut rest, mut then) = (message, ResponderStep::Wait);
        while then == ResponderStep::Wait && !rest.is_empty() {
            let asked = &mut self.asked;
            let read = |to: &mut [u8]| Ok::<_, Infallible>(read(&mut rest, to, piece));
            let known = |name| (name == secret.name()).then_some(secret);
            let answer = |question: &[u8; BYTES]| {
                *asked += 1;
                (*question == QUESTION).then_some(ANSWER)
            };
            then = self.responder.step(read, known, RESPONDER, answer).unwrap();
        }
        then
    }

    /// Passes a message to the initiator in pieces of `piece` bytes. Returns its last step.
    fn received_by_initiator(&mut self, message: &[u8], piece: usize) -> InitiatorStep {
        let (mut rest, mut next) = (message, InitiatorStep::Wait);
        while next == InitiatorStep::Wait && !rest.is_empty() {
            next =
                self.initiator.step(|to| Ok::<_, Infallible>(read(&mut rest, to, piece))).unwrap();
        }
        next
    }

    /// Runs the handshake. Returns the answer that the initiator accepts.
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
        let hello = send(&mut self.messages, self.initiator.hello());
        let ResponderStep::Challenge(challenge) = self.received_by_responder(&hello, piece) else {
            return None;
        };
        let challenge = send(&mut self.messages, &challenge);
        let InitiatorStep::Ask(question) = self.received_by_initiator(&challenge, piece) else {
            return None;
        };
        let question = send(&mut self.messages, &question);
        let ResponderStep::Answer(answer) = self.received_by_responder(&question, piece) else {
            return None;
        };
        let answer = send(&mut self.messages, &answer);
        match self.received_by_initiator(&answer, piece) {
            InitiatorStep::Done(answer) => Some(answer),
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

/// Pseudorandom numbers, the same in each run.
fn random(state: &mut u64) -> u64 {
    *state = state.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
    *state >> 33
}

#[test]
fn a_process_that_knows_the_secret_is_answered_in_pieces_of_any_length() {
    for piece in 1..=MESSAGE_BYTES_MAX {
        let mut handshake = Handshake::between(secret(), secret());
        assert_eq!(handshake.run(piece, |_, _| {}), Some(ANSWER));
        assert_eq!(handshake.asked, 1);
    }
}

#[test]
fn one_wrong_bit_anywhere_ends_the_conversation() {
    let lengths: Vec<usize> = {
        let mut handshake = Handshake::between(secret(), secret());
        handshake.run(99, |_, _| {}).unwrap();
        handshake.messages.iter().map(Vec::len).collect()
    };
    for (message, length) in lengths.into_iter().enumerate() {
        for bit in 0..8 * length {
            let mut handshake = Handshake::between(secret(), secret());
            let answer = handshake.run(99, |index, bytes| {
                if index == message {
                    bytes[bit / 8] ^= 1 << (bit % 8);
                }
            });
            assert_eq!(answer, None, "bit {bit} of message {message}");
            let reached = u32::from(message == 3);
            assert_eq!(handshake.asked, reached, "bit {bit} of message {message}");
        }
    }
}

#[test]
fn another_secret_opens_nothing_on_either_side() {
    let other = Secret::from([3, 5]);
    for (initiator, responder) in [(secret(), other), (other, secret())] {
        let mut handshake = Handshake::between(initiator, responder);
        assert_eq!((handshake.run(99, |_, _| {}), handshake.asked), (None, 0));
    }
    // An initiator that names the secret, but does not know it.
    let mut handshake = Handshake::between(other, secret());
    let name = secret().name().to_le_bytes();
    let answer = handshake.run(99, |index, bytes| {
        if index == 0 {
            bytes[8..16].copy_from_slice(&name);
        }
    });
    assert_eq!((answer, handshake.asked), (None, 0));
    assert_eq!(
        handshake.messages.len(),
        2,
        "the initiator asks nothing of an unverified responder"
    );
}

#[test]
fn what_was_said_once_is_no_good_again() {
    let mut handshake = Handshake::between(secret(), secret());
    handshake.run(99, |_, _| {}).unwrap();
    let said = core::mem::take(&mut handshake.messages);
    // Replayed to the same process by a stranger that has recorded all messages.
    handshake.responder = Responder::new();
    assert!(matches!(handshake.received_by_responder(&said[0], 99), ResponderStep::Challenge(_)));
    assert_eq!(handshake.received_by_responder(&said[2], 99), ResponderStep::Refuse);
    assert_eq!(handshake.asked, 1);
    // Replayed to an initiator by a stranger in the place of the responder.
    let mut handshake = Handshake::between(secret(), secret());
    assert_eq!(handshake.received_by_initiator(&said[1], 99), InitiatorStep::Refuse);
    // A message of the initiator is not a challenge, and the challenge is not a question.
    let mut handshake = Handshake::between(secret(), secret());
    assert_eq!(handshake.received_by_initiator(&said[2][32..], 99), InitiatorStep::Refuse);
    let mut echo = said[1].clone();
    echo.resize(MESSAGE_BYTES_MAX, 0);
    assert!(matches!(handshake.received_by_responder(&said[0], 99), ResponderStep::Challenge(_)));
    assert_eq!(handshake.received_by_responder(&echo, 99), ResponderStep::Refuse);
}

#[test]
fn what_strangers_send_is_never_answered() {
    let mut state = 7;
    let mut good = Handshake::between(secret(), secret());
    good.run(99, |_, _| {}).unwrap();
    for _ in 0..20_000 {
        let mut handshake = Handshake::between(secret(), secret());
        let mut answered = false;
        // Recorded messages that are cut, changed and mixed, and random bytes.
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
            match handshake.received_by_responder(&bytes, piece) {
                ResponderStep::Answer(_) => answered = true,
                ResponderStep::Refuse => break,
                ResponderStep::Wait | ResponderStep::Challenge(_) => {}
            }
            if handshake.received_by_initiator(&bytes, piece) != InitiatorStep::Wait {
                handshake.initiator =
                    Initiator::new(secret(), RESPONDER, INITIATOR, QUESTION).unwrap();
            }
            assert!(!handshake.initiator.is_verified());
        }
        assert!(!answered && handshake.asked == 0);
    }
}
