//! The greeting of two processes that connect: the question and the answer of a first contact, from
//! which each makes its end of the connection. The device defines the format of an end.
//!
//! | bytes  | contents of a question and of its answer                              |
//! |--------|-----------------------------------------------------------------------|
//! | 0      | [`NetworkKind`] of the device                                         |
//! | 1      | `VERSION` of this table and of the device's end                       |
//! | 2, 3   | answer: `errno`, why the target's end could not be made, or 0         |
//! | 4..8   | `MAGIC`                                                               |
//! | 8..16  | number of the sending process                                         |
//! | 16..48 | the device's end; 0 if there is none                                  |

use std::net::IpAddr;

use super::device::{Device, NetworkKind};
use super::queue::Queue;
use crate::contact::{self, BYTES, Contact, Identity, Reply, Secret};
use crate::error::{Error, Result};
use crate::number::Number;
use crate::request::END_BYTES;
use crate::sys::is_shortage;
use crate::tcp::TcpDevice;

const MAGIC: [u8; 4] = *b"fomp";
const VERSION: u8 = 2;

/// Returns the name of a [`NetworkKind`] in a message.
fn name(kind: u8) -> &'static str {
    match kind {
        _ if kind == NetworkKind::InfiniBand as u8 => "InfiniBand",
        _ if kind == NetworkKind::Roce as u8 => "RoCE",
        _ if kind == NetworkKind::Tcp as u8 => "TCP",
        _ => "a network that this process does not know",
    }
}

/// A question or an answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Greeting {
    kind: u8,
    version: u8,
    errno: u16,
    uid: u64,
    end: [u8; END_BYTES],
}

impl Greeting {
    fn new(kind: NetworkKind, uid: u64, end: [u8; END_BYTES]) -> Greeting {
        Greeting { end, ..Greeting::refusal(kind, uid, 0) }
    }

    /// Makes the answer of a process whose end could not be made.
    fn refusal(kind: NetworkKind, uid: u64, errno: u16) -> Greeting {
        Greeting { kind: kind as u8, version: VERSION, errno, uid, end: [0; END_BYTES] }
    }

    pub fn bytes(&self) -> [u8; BYTES] {
        let mut bytes = [0; BYTES];
        (bytes[0], bytes[1]) = (self.kind, self.version);
        bytes[2..4].copy_from_slice(&self.errno.to_le_bytes());
        bytes[4..8].copy_from_slice(&MAGIC);
        bytes[8..16].copy_from_slice(&self.uid.to_le_bytes());
        bytes[16..].copy_from_slice(&self.end);
        bytes
    }

    /// Decodes received bytes, or returns `None` if they are not a greeting.
    pub fn from(bytes: &[u8; BYTES]) -> Option<Greeting> {
        (bytes[4..8] == MAGIC).then(|| Greeting {
            kind: bytes[0],
            version: bytes[1],
            errno: u16::from_le_bytes([bytes[2], bytes[3]]),
            uid: u64::from_le_bytes(bytes[8..16].try_into().expect("eight bytes")),
            end: bytes[16..].try_into().expect("the rest"),
        })
    }

    /// Why the end of this greeting cannot be connected with one of kind `own` of this process.
    pub fn obstacle(&self, own: NetworkKind) -> Option<String> {
        if self.version != VERSION {
            return Some(String::from("it runs another version of libfompi"));
        }
        let (own, other) = (own as u8, self.kind);
        (own != other).then(|| format!("it uses {}, this process {}", name(other), name(own)))
    }
}

/// Connects to the process of a contact, which may be this one. Both processes know the secret.
/// `patient`: as for [`contact::exchange`]. Returns the own address of the connection, too, if it
/// is one over TCP.
pub fn connect(
    device: &Device,
    identity: &Identity,
    (contact, secret): (&Contact, Secret),
    patient: bool,
) -> Result<(Queue, Option<IpAddr>)> {
    let (uid, kind) = (identity.uid(), device.kind());
    let begun = device.begin();
    let opening = begun.map_err(|error| local_error(contact, error))?;
    let question = Greeting::new(kind, uid, opening.end()).bytes();
    let read =
        |bytes: &[u8; BYTES]| Greeting::from(bytes).filter(|answer| answer.uid == contact.uid());
    let mut own = None;
    let (answer, stream) = match contact.uid() == uid {
        true => {
            let reply = answer(device, identity, &question).expect("a greeting");
            let service = device.service().filter(|_| reply.keeps_stream);
            let stream = service.map(TcpDevice::stream_to_itself).transpose()?;
            (read(&reply.bytes).expect("a greeting"), stream)
        }
        false => {
            let (answer, stream) =
                contact::exchange(identity, contact, secret, &question, read, patient)?;
            own = stream.local_addr().ok().map(|address| address.ip().to_canonical());
            (answer, Some(stream.into()))
        }
    };
    if let Some(obstacle) = answer.obstacle(kind) {
        return Err(contact.lost(obstacle));
    }
    if answer.errno != 0 {
        let what = format!("it cannot make its end of the connection (errno {})", answer.errno);
        return Err(contact.lost(what));
    }
    let link = opening.connect(&answer.end, stream);
    let queue = link.map(Queue::new).map_err(|error| local_error(contact, error));
    queue.map(|queue| (queue, own))
}

/// The error for a failure of this side: a shortage is an error of this call alone, because a later
/// call may succeed; any other failure means that the other process cannot be reached.
fn local_error(contact: &Contact, error: Error) -> Error {
    match error {
        Error::System { errno, .. } if is_shortage(errno) => error,
        error => contact.lost(error.to_string()),
    }
}

/// Makes the target's end for the origin that sent a question. Returns the answer, or `None` if the
/// bytes are not a question.
pub fn answer(device: &Device, identity: &Identity, question: &[u8; BYTES]) -> Option<Reply> {
    let question = Greeting::from(question)?;
    let (uid, kind) = (identity.uid(), device.kind());
    if question.obstacle(kind).is_some() {
        // The kind and the version in the answer show the cause.
        return Some(Reply { bytes: Greeting::refusal(kind, uid, 0).bytes(), keeps_stream: false });
    }
    let mut keeps_stream = false;
    let answer = match device.accept(&question.end) {
        Ok(end) => {
            keeps_stream = device.service().is_some();
            Greeting::new(kind, uid, end)
        }
        Err(Error::System { errno, .. }) => {
            Greeting::refusal(kind, uid, errno.cast_unsigned().low_u16())
        }
        Err(_) => Greeting::refusal(kind, uid, u16::MAX),
    };
    Some(Reply { bytes: answer.bytes(), keeps_stream })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_greeting_arrives_as_it_was_sent() {
        let (uid, end) = (u64::MAX - 5, core::array::from_fn(|index| index as u8));
        let greeting = Greeting { end, ..Greeting::refusal(NetworkKind::Roce, uid, 12) };
        assert_eq!(Greeting::from(&greeting.bytes()), Some(greeting));
        assert_eq!(Greeting::from(&[0; BYTES]), None);
    }

    #[test]
    fn an_unlike_end_is_refused_with_its_cause() {
        let sent = Greeting::refusal(NetworkKind::Roce, 7, 0);
        assert_eq!(sent.obstacle(NetworkKind::Roce), None);
        assert_eq!(
            sent.obstacle(NetworkKind::InfiniBand).unwrap(),
            "it uses RoCE, this process InfiniBand"
        );
        let unknown = Greeting { kind: 77, ..sent }.obstacle(NetworkKind::Roce).unwrap();
        assert!(unknown.contains("it uses a network that this process does not know"));
        let newer = Greeting { version: VERSION + 1, ..sent }.obstacle(NetworkKind::Roce).unwrap();
        assert_eq!(newer, "it runs another version of libfompi");
    }
}
