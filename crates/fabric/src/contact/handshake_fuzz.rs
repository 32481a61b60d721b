//! Made-up messages in a handshake. Messages of strangers and of those that know the secret are
//! mixed: an initiator and a responder exchange messages, which are changed, cut or replaced on
//! their way.

use core::convert::Infallible;

use crate::sys::handshake::{BYTES, Initiator, InitiatorStep, Responder, ResponderStep};
use crate::sys::secret::Secret;
use fompi_testkit::Choices;

const QUESTION: [u8; BYTES] = [5; BYTES];
const ANSWER: [u8; BYTES] = [6; BYTES];
const RESPONDER: u64 = 70;
const INITIATOR: u64 = 71;
/// Messages that a run passes on.
const MESSAGES_MAX: usize = 64;

/// A message on its way, as the next bytes say. Returns whether it is unchanged.
fn changed(message: &mut Vec<u8>, said: &[Vec<u8>], choices: &mut Choices) -> bool {
    let sent = message.clone();
    match choices.below(6) {
        0 | 1 => {}
        2 => {
            let at = choices.below(message.len().max(1));
            if let Some(byte) = message.get_mut(at) {
                *byte ^= choices.byte();
            }
        }
        3 => {
            let count = choices.below(message.len() + 1);
            message.truncate(count);
        }
        4 => {
            let count = choices.below(200);
            *message = choices.part(count).to_vec();
        }
        _ => {
            let earlier = choices.below(said.len().max(1));
            message.clone_from(said.get(earlier).unwrap_or(&sent));
        }
    }
    *message == sent
}

fn read(from: &mut &[u8], to: &mut [u8], piece: usize) -> usize {
    let count = from.len().min(to.len()).min(piece);
    to[..count].copy_from_slice(&from[..count]);
    *from = &from[count..];
    count
}

/// The target `first_contact`: each message takes one byte for the pieces in which it arrives, one
/// for the change, and the bytes that the change needs.
pub fn first_contact(data: &[u8]) {
    let mut choices = Choices::of(data);
    let secret = Secret::from([1, 2]);
    let (mut responder, mut asked) = (Responder::new(), 0);
    let mut initiator = Initiator::new(secret, RESPONDER, INITIATOR, QUESTION).unwrap();
    let mut said = vec![initiator.hello().to_vec()];
    // Whose turn it is, the message to it, and whether all so far have arrived as they were sent.
    let (mut to_responder, mut message, mut honest) = (true, said[0].clone(), true);
    for _ in 0..MESSAGES_MAX {
        let piece = 1 + usize::from(choices.byte());
        honest &= changed(&mut message, &said, &mut choices);
        let (mut rest, mut reply, mut refused) = (&message[..], None, false);
        while !rest.is_empty() && reply.is_none() && !refused {
            let before = rest.len();
            if to_responder {
                let known = |name| (name == secret.name()).then_some(secret);
                let answer = |question: &[u8; BYTES]| {
                    asked += 1;
                    assert_eq!(*question, QUESTION, "only an initiator that knows the secret asks");
                    Some(ANSWER)
                };
                let take = |to: &mut [u8]| Ok::<_, Infallible>(read(&mut rest, to, piece));
                match responder.step(take, known, RESPONDER, answer).unwrap() {
                    ResponderStep::Wait => {}
                    ResponderStep::Challenge(bytes) => reply = Some(bytes.to_vec()),
                    ResponderStep::Answer(bytes) => reply = Some(bytes.to_vec()),
                    ResponderStep::Refuse => refused = true,
                }
            } else {
                let take = |to: &mut [u8]| Ok::<_, Infallible>(read(&mut rest, to, piece));
                match initiator.step(take).unwrap() {
                    InitiatorStep::Wait => {}
                    InitiatorStep::Ask(bytes) => reply = Some(bytes.to_vec()),
                    InitiatorStep::Done(answer) => {
                        assert_eq!((answer, asked), (ANSWER, 1));
                        return;
                    }
                    InitiatorStep::Refuse => refused = true,
                }
            }
            assert!(rest.len() < before, "bytes are taken");
        }
        assert!(!(refused && honest), "what both have said is right");
        if refused || choices.are_used_up() {
            return;
        }
        // A side that waits for more gets the next message, too.
        if let Some(reply) = reply {
            said.push(reply.clone());
            (message, to_responder) = (reply, !to_responder);
        } else {
            message = said[choices.below(said.len())].clone();
            honest = false;
        }
    }
}

#[cfg(test)]
#[test]
fn the_kept_handshakes_end_as_they_must() {
    fompi_testkit::replay("first_contact", first_contact);
}
