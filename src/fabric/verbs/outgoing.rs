//! The first contact, as the origin makes it: a call at the addresses of another process, in turns,
//! until one of them answers. It waits. Not for the other side ([`door`](super::door)), nor for
//! questions in between ([`probe`](super::probe)). Invariant: what comes of it in time is an end of
//! a process that knows the secret, or the process is lost for good; if the time is over, nothing
//! is known of it, and the next use may call again.

use std::io::{ErrorKind, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::time::{Duration, Instant};

use super::connect::End;
use super::handshake::{BYTES, Initiator, InitiatorStep};
use super::limits::is_shortage;
use super::secret::Secret;
use super::{Contact, Core};
use crate::error::{Error, Result, kept};

/// How long an address may take to let a initiator in at first: a node may have addresses that lead
/// nowhere, and another one may lead there at once. And when all have had a turn.
const FIRST_CONNECT_MAX: Duration = Duration::from_secs(3);
const CONNECT_MAX: Duration = Duration::from_secs(20);
/// How long an address may take to answer.
const ANSWER_MAX: Duration = Duration::from_secs(20);
/// After how long nothing is tried again.
pub const LIMIT: Duration = Duration::from_secs(60);
/// How long to wait before all addresses are tried again, at first and at most.
const PAUSE: Duration = Duration::from_millis(10);
const PAUSE_MAX: Duration = Duration::from_secs(1);

/// Why an address did not answer.
enum Failed {
    /// nobody listens there, or there is no way to it
    Closed(std::io::Error),
    /// the process that listens there does not know the secret
    WrongProcess,
    /// it is too busy, or was: it may answer another time
    Late(&'static str),
    /// this process can make no calls
    Local(Error),
}

/// Asks the process of a contact for its end of a connection.
pub fn exchange(core: &Core, contact: &Contact, secret: Secret, origin: &End) -> Result<End> {
    let addresses = contact.addresses();
    let limit = Instant::now() + core.contact_limit();
    let (mut connect, mut pause) = (FIRST_CONNECT_MAX, PAUSE);
    loop {
        let (mut causes, mut late) = (Vec::new(), false);
        for address in &addresses {
            let initiator = Initiator::new(secret, contact.uid(), core.uid(), origin.bytes())?;
            match exchange_at(*address, initiator, connect, limit) {
                Ok(answer) => match End::from(&answer).filter(|end| end.who == contact.uid()) {
                    Some(end) => return Ok(end),
                    None => causes.push(format!("{address} gives no answer to this question")),
                },
                Err(Failed::Local(error)) => return Err(error),
                Err(Failed::Closed(error)) => causes.push(format!("{address}: {error}")),
                Err(Failed::WrongProcess) => causes.push(format!("{address} is somebody else")),
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
            // The system has its own word for what has not come in time.
            _ if matches!(error.kind(), ErrorKind::TimedOut | ErrorKind::WouldBlock) => {
                Failed::Late("does not answer")
            }
            // Nothing is known of the process; its addresses are tried again.
            _ if error.kind() == ErrorKind::Interrupted => Failed::Late("was not asked: a signal"),
            _ => Failed::Closed(error),
        }
    }
}

/// One call, which ends at `limit` at the latest.
fn exchange_at(
    address: SocketAddr,
    mut initiator: Initiator,
    connect: Duration,
    limit: Instant,
) -> core::result::Result<[u8; BYTES], Failed> {
    let left = |until: Instant| until.saturating_duration_since(Instant::now());
    let late = || Failed::Late("does not answer");
    // No time at all would be an error of the call, and not of the address.
    let connect = connect.min(left(limit)).max(PAUSE);
    let mut stream = TcpStream::connect_timeout(&address, connect)?;
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
            Ok(InitiatorStep::Done(answer)) => return Ok(answer),
            Ok(InitiatorStep::Refuse) => return Err(Failed::WrongProcess),
            Err(error) => match error.kind() {
                ErrorKind::Interrupted => {}
                ErrorKind::WouldBlock | ErrorKind::TimedOut => return Err(late()),
                // It is who it should be, and has given this call up for others.
                _ if initiator.is_verified() => return Err(Failed::Late("has too many callers")),
                ErrorKind::UnexpectedEof => return Err(Failed::WrongProcess),
                _ => return Err(error.into()),
            },
        }
    }
}

impl Contact {
    /// The error that this process has not answered, which may be over later.
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
