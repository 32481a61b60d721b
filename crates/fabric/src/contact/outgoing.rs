//! The origin's side of a first contact: a TCP exchange with another process, whose addresses are
//! tried until one of them answers. It blocks. The other side is in
//! [`listener`](super::listener); liveness probes are in [`probe`](super::probe). Invariant: the
//! result is the answer of a process that knows the secret, or the process is lost for good; if
//! the time limit has passed, the state of the process is unknown, and the next use may try again.

use std::io::{ErrorKind, Read, Write};
use std::net::TcpStream;
use std::time::{Duration, Instant};

use super::dial::Dial;
use super::identity::Identity;
use super::record::Contact;
use crate::error::{Error, Result, kept};
use crate::sys::handshake::{BYTES, Initiator, InitiatorStep};
use crate::sys::is_shortage;
use crate::sys::secret::Secret;

/// Time limit for connecting to the addresses of a process: in the first round, because each may
/// have lost a packet; and in later rounds.
const FIRST_CONNECT_MAX: Duration = Duration::from_secs(5);
const CONNECT_MAX: Duration = Duration::from_secs(20);
/// Time limit for the answer of an address.
const ANSWER_MAX: Duration = Duration::from_secs(20);
/// Pause before all addresses are tried again, at first and at most.
const PAUSE: Duration = Duration::from_millis(10);
const PAUSE_MAX: Duration = Duration::from_secs(1);

/// Why an address did not answer.
enum Failed {
    /// the address refuses connections, or there is no route to it
    Closed(std::io::Error),
    /// the process that listens there does not know the secret
    WrongProcess,
    /// the connection ended without an answer: another program listens there, or something between
    /// the nodes ends connections
    Ended,
    /// it neither accepts nor refuses connections
    Silent,
    /// it is or was too busy; it may answer later
    Late(&'static str),
    /// this process cannot open a connection
    Local(Error),
}

/// Sends a question to the process of a contact. Returns the answer as `read` decodes it, and the
/// stream, positioned after the answer. `read` returns `None` if the bytes are not an answer to the
/// question. `patient`: whether addresses that are all silent are tried again; otherwise the
/// process counts as unreachable.
pub fn exchange<T>(
    identity: &Identity,
    contact: &Contact,
    secret: Secret,
    question: &[u8; BYTES],
    read: impl Fn(&[u8; BYTES]) -> Option<T>,
    patient: bool,
) -> Result<(T, TcpStream)> {
    let addresses = contact.addresses();
    let limit = Instant::now() + identity.contact_limit();
    let (mut connect, mut pause) = (FIRST_CONNECT_MAX, PAUSE);
    loop {
        let (mut causes, mut late) = (Vec::new(), false);
        // A time limit of zero would be an error of the call, and not of the address.
        let left = limit.saturating_duration_since(Instant::now()).max(PAUSE);
        for (address, stream) in Dial::new(&addresses, connect.min(left)) {
            let initiator = Initiator::new(secret, contact.uid(), identity.uid(), *question)?;
            match exchange_over(stream, initiator, limit) {
                Ok((answer, stream)) => match read(&answer) {
                    Some(answer) => return Ok((answer, stream)),
                    None => causes.push(format!("{address} gives no answer to this question")),
                },
                Err(Failed::Local(error)) => return Err(error),
                Err(Failed::Closed(error)) => causes.push(format!("{address}: {error}")),
                Err(Failed::Silent) => {
                    late |= patient;
                    causes.push(format!("{address} does not answer"));
                }
                Err(Failed::WrongProcess) => causes.push(format!("{address} is another process")),
                Err(Failed::Ended) => {
                    causes.push(format!("{address} ended the connection without an answer"));
                }
                Err(Failed::Late(why)) => {
                    late = true;
                    causes.push(format!("{address} {why}"));
                }
            }
        }
        let causes = match causes.is_empty() {
            true => String::from("its node has no address"),
            false => causes.join("; "),
        };
        if !late {
            return Err(contact.lost(format!("no first contact: {causes}")));
        }
        if Instant::now() + pause >= limit {
            return Err(contact.unanswered(format!("no first contact in time: {causes}")));
        }
        std::thread::sleep(pause);
        (connect, pause) = (CONNECT_MAX, (2 * pause).min(PAUSE_MAX));
    }
}

impl From<std::io::Error> for Failed {
    fn from(error: std::io::Error) -> Failed {
        match error.raw_os_error() {
            Some(errno) if is_shortage(errno) => {
                Failed::Local(Error::System { call: "socket", errno })
            }
            // The system's own errors for an answer that did not come in time.
            _ if matches!(error.kind(), ErrorKind::TimedOut | ErrorKind::WouldBlock) => {
                Failed::Late("does not answer")
            }
            // The state of the process is unknown; its addresses are tried again.
            _ if error.kind() == ErrorKind::Interrupted => Failed::Late("was not asked: a signal"),
            _ => Failed::Closed(error),
        }
    }
}

/// Makes one exchange over a stream, unless connecting has failed. It ends at `limit` at the
/// latest.
fn exchange_over(
    stream: std::io::Result<TcpStream>,
    mut initiator: Initiator,
    limit: Instant,
) -> core::result::Result<([u8; BYTES], TcpStream), Failed> {
    let left = |until: Instant| until.saturating_duration_since(Instant::now());
    let late = || Failed::Late("does not answer");
    let mut stream = match stream {
        Err(error) if error.kind() == ErrorKind::TimedOut => return Err(Failed::Silent),
        stream => stream?,
    };
    let until = limit.min(Instant::now() + ANSWER_MAX);
    stream.set_nodelay(true)?;
    stream.set_write_timeout(Some(ANSWER_MAX))?;
    stream.write_all(initiator.hello())?;
    loop {
        let wait = left(until);
        if wait.is_zero() {
            return Err(late());
        }
        stream.set_read_timeout(Some(wait))?;
        let next = initiator.step(|bytes| match stream.read(bytes) {
            Ok(0) => Err(ErrorKind::UnexpectedEof.into()),
            read => read,
        });
        match next {
            Ok(InitiatorStep::Wait) => {}
            Ok(InitiatorStep::Ask(bytes)) => stream.write_all(&bytes)?,
            Ok(InitiatorStep::Done(answer)) => return Ok((answer, stream)),
            Ok(InitiatorStep::Refuse) => return Err(Failed::WrongProcess),
            Err(error) => match error.kind() {
                ErrorKind::Interrupted => {}
                ErrorKind::WouldBlock | ErrorKind::TimedOut => return Err(late()),
                // The process is the right one. It may have closed this connection to make room
                // for others.
                _ if initiator.is_verified() => {
                    return Err(Failed::Late("ended the connection before its answer"));
                }
                ErrorKind::UnexpectedEof => return Err(Failed::Ended),
                _ => return Err(error.into()),
            },
        }
    }
}

impl Contact {
    /// The error that this process has not answered; a later attempt may succeed.
    fn unanswered(&self, cause: String) -> Error {
        Error::Unanswered {
            rank: None,
            node: kept(self.node()),
            pid: self.pid(),
            cause: kept(cause),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_call_that_a_signal_interrupts_says_nothing_of_the_process() {
        let failed = |errno| Failed::from(std::io::Error::from_raw_os_error(errno));
        assert!(matches!(failed(libc::EINTR), Failed::Late(_)));
        assert!(matches!(failed(libc::ECONNREFUSED), Failed::Closed(_)));
    }
}
