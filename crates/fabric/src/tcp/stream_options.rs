//! Options of the streams between origin and target, how a thread sleeps on one, and the causes of
//! their ends. Invariant: a stream ends if the node of the other side acknowledges nothing for
//! [`silent_max`], and never because the process there is stopped: a full window is
//! acknowledged, too. TCP_USER_TIMEOUT makes no such difference, so it is not set.

use std::io::{Error, ErrorKind, Result};
use std::os::fd::{AsRawFd, BorrowedFd, OwnedFd};
use std::time::Duration;

use socket2::{SockRef, TcpKeepalive};

use crate::config::Config;
use crate::number::Number;

/// Longest sleep in a call that receives; the system rounds it up to its next tick.
const RECEIVE_MAX: Duration = Duration::from_millis(1);

/// Time after which a stream ends whose other side acknowledges nothing (FOMPI_NET_TIMEOUT).
pub fn silent_max() -> Duration {
    Duration::from_secs(Config::get().net_timeout.into())
}

/// The interval of the system's probes on an idle stream, and their number without an answer after
/// which the stream ends, so that it ends after `limit`. The least interval is a second.
fn probes(limit: Duration) -> (Duration, u32) {
    let interval = Duration::from_secs((limit.as_secs() / 5).max(1));
    let count = (limit.as_secs() / interval.as_secs()).saturating_sub(1).max(1);
    (interval, count.low_u32())
}

/// Prepares a stream. A stream within this process has none of the options of TCP.
pub fn prepare(stream: &OwnedFd) -> Result<()> {
    let stream = SockRef::from(stream);
    stream.set_nonblocking(true)?;
    if stream.domain()? == socket2::Domain::UNIX {
        return Ok(());
    }
    stream.set_tcp_nodelay(true)?;
    let (interval, count) = probes(silent_max());
    let keepalive = TcpKeepalive::new().with_time(interval).with_interval(interval);
    stream.set_tcp_keepalive(&keepalive.with_retries(count))
}

/// What the system knows of the acknowledgements of a stream.
#[derive(Clone, Copy)]
struct Acknowledged {
    /// packets that are sent and not acknowledged
    under_way: u32,
    /// probes of an idle stream, or of a full window, since the last acknowledgement
    probes: u32,
    /// time since the last acknowledgement
    last: Duration,
}

impl Acknowledged {
    /// Whether the other side should have acknowledged something for as long as `limit`. The node
    /// of a stopped process answers each probe, but the pauses between probes grow.
    fn is_overdue(self, limit: Duration) -> bool {
        (self.under_way > 0 || self.probes > 1) && self.last >= limit
    }
}

/// Whether the node of the other side acknowledges nothing any more. False for a stream within this
/// process.
pub fn is_silent(stream: BorrowedFd<'_>) -> bool {
    // SAFETY: plain data, for which zero is a value.
    let mut info: libc::tcp_info = unsafe { core::mem::zeroed() };
    let mut bytes = size_of_val(&info).to_u32();
    let (level, option) = (libc::IPPROTO_TCP, libc::TCP_INFO);
    let place = (&raw mut info).cast();
    // SAFETY: a local variable and its length.
    let told = unsafe { libc::getsockopt(stream.as_raw_fd(), level, option, place, &mut bytes) };
    let last = Duration::from_millis(info.tcpi_last_ack_recv.into());
    let (under_way, probes) = (info.tcpi_unacked, u32::from(info.tcpi_probes));
    told == 0 && Acknowledged { under_way, probes, last }.is_overdue(silent_max())
}

/// Why a stream has ended whose other side acknowledges nothing.
pub fn silence() -> String {
    format!("its node has acknowledged nothing for {} s", silent_max().as_secs())
}

/// Why a stream has ended, as an error of a system call says.
pub fn cause(error: &Error) -> String {
    match error.kind() {
        ErrorKind::ConnectionReset => String::from("it has reset the connection"),
        ErrorKind::BrokenPipe | ErrorKind::UnexpectedEof => {
            String::from("it has closed the connection")
        }
        ErrorKind::TimedOut => silence(),
        ErrorKind::HostUnreachable | ErrorKind::NetworkUnreachable => {
            String::from("there is no route to its node")
        }
        _ => error.to_string(),
    }
}

/// Lets [`receive_asleep`](super::stream_calls::receive_asleep) sleep on a stream; the other calls
/// never wait.
pub fn prepare_to_sleep(stream: &OwnedFd) -> Result<()> {
    let stream = SockRef::from(stream);
    stream.set_read_timeout(Some(RECEIVE_MAX))?;
    stream.set_nonblocking(false)
}

/// Acknowledges what was received. The system does so within recvmsg(2) for each second short
/// segment of a stream on which nothing is sent, ahead of the thread that waits for it.
pub fn acknowledge(stream: &OwnedFd) {
    // An even number acknowledges at once; 0 delays what comes next, whether or not any was due.
    for how in [2 as libc::c_int, 0] {
        let (level, option) = (libc::IPPROTO_TCP, libc::TCP_QUICKACK);
        let (value, bytes) = ((&raw const how).cast(), size_of::<libc::c_int>().to_u32());
        // SAFETY: a local variable and its length.
        unsafe { libc::setsockopt(stream.as_raw_fd(), level, option, value, bytes) };
    }
}

/// Sleeps until bytes have arrived, the stream has ended, or `most` is over.
pub fn wait(stream: &OwnedFd, most: Duration) {
    let mut one = libc::pollfd { fd: stream.as_raw_fd(), events: libc::POLLIN, revents: 0 };
    let nanoseconds = i64::from(most.subsec_nanos());
    let most = libc::timespec { tv_sec: most.as_secs().cast_signed(), tv_nsec: nanoseconds };
    // SAFETY: one element, and a time; both are local variables.
    unsafe { libc::ppoll(&raw mut one, 1, &raw const most, core::ptr::null()) };
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_node_is_silent_if_it_owes_an_acknowledgement_and_not_if_its_process_is_stopped() {
        let limit = Duration::from_secs(10);
        let overdue = |under_way, probes, seconds| {
            let last = Duration::from_secs(seconds);
            Acknowledged { under_way, probes, last }.is_overdue(limit)
        };
        assert!(overdue(1, 0, 10), "data under way");
        assert!(overdue(0, 2, 11), "probes");
        assert!(!overdue(1, 0, 9), "not yet");
        assert!(!overdue(0, 1, 100), "a full window: the probe has just left");
        assert!(!overdue(0, 0, 100), "nothing is owed");
    }

    #[test]
    fn probes_of_an_idle_stream_end_it_in_time() {
        for seconds in [2, 3, 5, 9, 10, 60, 3600] {
            let (interval, count) = probes(Duration::from_secs(seconds));
            let end = interval * (count + 1);
            assert!(
                end <= Duration::from_secs(seconds) && 2 * end.as_secs() > seconds,
                "{seconds}"
            );
        }
    }

    #[test]
    fn a_cause_is_said_in_words() {
        let said = |errno| cause(&Error::from_raw_os_error(errno));
        assert_eq!(said(libc::ECONNRESET), "it has reset the connection");
        assert_eq!(said(libc::EPIPE), "it has closed the connection");
        assert_eq!(said(libc::ETIMEDOUT), "its node has acknowledged nothing for 10 s");
        assert_eq!(said(libc::EHOSTUNREACH), "there is no route to its node");
    }
}
