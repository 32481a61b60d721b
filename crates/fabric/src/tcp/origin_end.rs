//! The origin's end of a connection: requests leave by the calls of the origin, and answers arrive
//! when it polls. What a full socket does not take, the service thread sends later. Invariant:
//! answers come in the order of the requests, so the number of the last one is enough.

use core::mem::MaybeUninit;
use core::{ptr, slice};
use std::collections::VecDeque;
use std::io::ErrorKind;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::Arc;

use super::frames::{ANSWER_BYTES, Answer, AnswerStatus, Detail, RequestKind, TcpRequest};
use super::service_thread::Sender;
use super::stream_calls::{self, piece, would_wait};
use super::stream_options;
use super::unsent::Unsent;
use crate::number::Number;
use crate::request::{Broken, Leaves, Order, Work};
use crate::sync::Mutex;

/// Number of requests that can be under way.
pub const PLACES: usize = 1024;
/// Largest number of bytes that are copied when a request is posted.
pub const INLINE_BYTES_MAX: u64 = 8 << 10;
const DONE: u32 = AnswerStatus::Done as u32;
const PARTIAL: u32 = AnswerStatus::Partial as u32;
const SKIPPED: u32 = AnswerStatus::Skipped as u32;
const NO_PERMISSION: u32 = AnswerStatus::NoPermission as u32;
/// Answers for which an idle connection keeps room.
const EXPECTED_KEPT: usize = 64;
/// Bytes that are received at once.
const RECEIVED: usize = 16 << 10;

/// One of the calls that receive.
type Receive = unsafe fn(BorrowedFd<'_>, &[libc::iovec]) -> std::io::Result<usize>;

/// A request whose answer has not arrived.
struct Expected {
    number: u64,
    /// address and length of the memory for what it asked for
    to: u64,
    bytes: u32,
    /// whether the target may skip it
    guarded: bool,
}

/// The origin's end of a connection.
pub struct TcpLink {
    /// shared with the service thread
    sender: Sender,
    unsent: Arc<Mutex<Unsent>>,
    expected: VecDeque<Expected>,
    /// the answer that is arriving, and how many of its bytes have arrived
    answer: [u8; ANSWER_BYTES],
    received: usize,
    /// what has not come of the data of the first expected answer, once the answer has arrived
    data: Option<(u64, usize)>,
    /// whether more follows these data in another answer
    partial: bool,
    done: u64,
    /// whether a request has met a page that the target's process may not access, and the user has
    /// not learnt of it
    pub is_refused: bool,
    /// why nothing can be sent any more; answers that have arrived are received
    unsendable: Option<String>,
    /// why the connection cannot be used any more
    failed: Option<String>,
    /// whether the target's node was silent at the last check
    was_silent: bool,
}

impl TcpLink {
    /// Makes the end of a connection whose requests `sender` sends.
    pub fn new(sender: Sender) -> TcpLink {
        TcpLink {
            unsent: sender.unsent().clone(),
            sender,
            expected: VecDeque::new(),
            answer: [0; ANSWER_BYTES],
            received: 0,
            data: None,
            partial: false,
            done: 0,
            is_refused: false,
            unsendable: None,
            failed: None,
            was_silent: false,
        }
    }

    /// The stream on which answers come.
    pub fn stream(&self) -> &Arc<OwnedFd> {
        self.sender.stream()
    }

    /// Whether the socket has yet to take bytes of the user from their place.
    pub fn lends(&self) -> bool {
        self.unsent.lock().lends()
    }

    /// Whether requests that were posted have not left.
    pub fn has_unsent(&self) -> bool {
        !self.unsent.lock().is_empty()
    }

    /// Posts requests, which leave as [`Leaves`] says. A poll reports why they cannot be sent.
    ///
    /// # Safety
    /// The memory that they name may be read or written until they are done. Inline data may be
    /// read now.
    #[inline(always)]
    pub unsafe fn post(&mut self, orders: &[Order]) {
        let mut unsent = self.unsent.lock();
        let mut leaves = Leaves::WithNotification;
        for order in orders {
            leaves = leaves.max(order.leaves);
            let request = request(order, order.from.bytes.into());
            let bytes = order.from.bytes.to_usize();
            let at = ptr::with_exposed_provenance::<u8>(order.from.at.to_usize());
            if let Work::TakeLock { .. } = order.work {
                unsent.has_sent_lock = false;
            }
            let (copied, lent) = match order.work {
                Work::OverRows { .. } => (bytes, 0),
                _ if request.data_bytes() == 0 => (0, 0),
                Work::WriteInline | Work::Accumulate { inline: true, .. } => (bytes, 0),
                _ => (0, bytes),
            };
            // SAFETY: the caller guarantees the bytes, and those that are lent until the request is
            // done.
            unsafe {
                unsent.add(&request.bytes(), (at, copied));
                if lent > 0 {
                    unsent.add_lent(at, lent);
                }
            }
            if request.answered {
                self.expected.push_back(expected(order));
            }
        }
        if !unsent.may_wait(leaves)
            && let Err(error) = self.sender.leave(&mut unsent, leaves)
        {
            self.unsendable = Some(stream_options::cause(&error));
        }
    }

    /// Sends what was gathered, and receives answers. Returns the number of the last request that
    /// is known to be done, if there is a new one.
    pub fn poll(&mut self) -> Result<Option<u64>, Broken> {
        self.poll_by(false)
    }

    /// [`TcpLink::poll`] that sleeps until bytes come, for a few milliseconds at most: one system
    /// call, where a poll and a sleep are two.
    pub fn poll_asleep(&mut self) -> Result<Option<u64>, Broken> {
        self.poll_by(true)
    }

    fn poll_by(&mut self, asleep: bool) -> Result<Option<u64>, Broken> {
        if self.failed.is_none() {
            let before = self.done;
            self.failed = self.advance(asleep).err();
            if self.expected.is_empty() && self.expected.capacity() > EXPECTED_KEPT {
                self.expected.shrink_to(EXPECTED_KEPT);
            }
            if self.done > before {
                return Ok(Some(self.done));
            }
        }
        self.failed.as_ref().map_or(Ok(None), |why| Err(Broken::Request(why.clone())))
    }

    /// `asleep`: whether the first call that receives may sleep.
    fn advance(&mut self, asleep: bool) -> Result<(), String> {
        let mut unsent = self.unsent.lock();
        if !unsent.is_empty() {
            let sent = self.sender.send(&mut unsent);
            self.unsendable = sent.err().as_ref().map(stream_options::cause);
            if unsent.is_empty() && !asleep {
                // Nothing of what was just sent is answered yet; the next poll receives.
                return Ok(());
            }
        }
        drop(unsent);
        let mut receive: Receive =
            if asleep { stream_calls::receive_asleep } else { stream_calls::receive };
        let mut buffer = MaybeUninit::<[u8; RECEIVED]>::uninit();
        while !self.expected.is_empty() {
            // What was asked for arrives in its place, what follows in the buffer.
            let (to, left) = self.data.unwrap_or_default();
            let to = ptr::with_exposed_provenance_mut::<u8>(to.to_usize());
            let pieces = [piece(to, left), piece(buffer.as_mut_ptr().cast(), RECEIVED)];
            // SAFETY: the memory of a request that is not done, and a local variable.
            let came = match unsafe { receive(self.sender.stream().as_fd(), &pieces) } {
                Ok(0) => return Err(stream_options::cause(&ErrorKind::UnexpectedEof.into())),
                Ok(came) => came,
                Err(error) if would_wait(&error) => break,
                Err(error) => return Err(stream_options::cause(&error)),
            };
            receive = stream_calls::receive;
            self.note_data(came.min(left));
            let more = came.saturating_sub(left);
            // SAFETY: the system has written these bytes of the buffer.
            self.take(unsafe { slice::from_raw_parts(buffer.as_ptr().cast(), more) })?;
            if came < left + RECEIVED && self.unsendable.is_none() {
                break;
            }
        }
        self.unsendable.clone().map_or(Ok(()), Err)
    }

    /// Fails if the target's node acknowledges nothing any more, at two checks: a process that was
    /// stopped itself finds acknowledgements a moment later.
    pub fn check(&mut self) -> Result<(), Broken> {
        let is_silent = stream_options::is_silent(self.sender.stream().as_fd());
        match core::mem::replace(&mut self.was_silent, is_silent) && is_silent {
            true => Err(Broken::Request(stream_options::silence())),
            false => Ok(()),
        }
    }

    /// Bytes of memory that the connection keeps.
    #[cfg(test)]
    pub fn kept_bytes(&self) -> usize {
        let expected = self.expected.capacity() * size_of::<Expected>();
        size_of::<TcpLink>() + expected + self.unsent.lock().kept_bytes()
    }

    /// Records that bytes have arrived of what the first expected request asked for.
    fn note_data(&mut self, bytes: usize) {
        if let Some((to, left)) = &mut self.data {
            (*to, *left) = (*to + bytes.to_u64(), *left - bytes);
            if *left == 0 && !core::mem::take(&mut self.partial) {
                self.finish();
            } else if *left == 0 {
                self.data = None;
            }
        }
    }

    /// Takes bytes of answers.
    fn take(&mut self, mut bytes: &[u8]) -> Result<(), String> {
        while !bytes.is_empty() {
            if let Some((to, left)) = self.data {
                let count = left.min(bytes.len());
                let to = ptr::with_exposed_provenance_mut::<u8>(to.to_usize());
                // SAFETY: the memory of a request that is not done, which is that long.
                unsafe { ptr::copy_nonoverlapping(bytes.as_ptr(), to, count) };
                self.note_data(count);
                bytes = &bytes[count..];
                continue;
            }
            let count = (ANSWER_BYTES - self.received).min(bytes.len());
            self.answer[self.received..self.received + count].copy_from_slice(&bytes[..count]);
            (self.received, bytes) = (self.received + count, &bytes[count..]);
            if self.received == ANSWER_BYTES {
                self.received = 0;
                self.begin_answer()?;
            }
        }
        Ok(())
    }

    /// Begins with the data of the answer that has arrived.
    fn begin_answer(&mut self) -> Result<(), String> {
        let answer = Answer::from(self.answer);
        if answer == Answer::new(AnswerStatus::NoPermissionBefore, 0) {
            self.is_refused = true;
            return Ok(());
        }
        let refused = || String::from(AnswerStatus::reason(answer.status));
        let expected = self.expected.front_mut().ok_or_else(refused)?;
        let (to, wanted, bytes) = (expected.to, expected.bytes, answer.bytes);
        match answer.status {
            PARTIAL if (1..=wanted).contains(&bytes) => {
                expected.to += u64::from(bytes);
                expected.bytes -= bytes;
                (self.data, self.partial) = (Some((to, bytes.to_usize())), true);
            }
            DONE if bytes == wanted && bytes > 0 => self.data = Some((to, bytes.to_usize())),
            DONE if bytes == wanted => self.finish(),
            SKIPPED if expected.guarded && bytes == 0 => self.finish(),
            NO_PERMISSION if bytes == 0 => {
                self.is_refused = true;
                self.finish();
            }
            _ => return Err(refused()),
        }
        Ok(())
    }

    /// Records that the first expected request is done.
    fn finish(&mut self) {
        self.data = None;
        self.done = self.expected.pop_front().map_or(self.done, |expected| expected.number);
    }
}

/// Returns the place for what an order asks for.
fn expected(order: &Order) -> Expected {
    let (to, bytes) = match order.work {
        Work::Write | Work::WriteInline | Work::Ping | Work::TakeLock { .. } => (0, 0),
        Work::Accumulate { result: 0, .. } | Work::OverRows { result: 0, .. } => (0, 0),
        Work::OverRows { result, data, .. } => (result, data.into()),
        Work::Add(_) if order.doorbell != 0 => (0, 0),
        Work::Accumulate { result, .. } => (result, order.from.bytes),
        _ => (order.from.at, order.from.bytes),
    };
    Expected { number: order.number, to, bytes, guarded: order.guarded }
}

/// Makes the request of an order with this many bytes. What has a result is always answered.
#[inline(always)]
fn request(order: &Order, bytes: u64) -> TcpRequest {
    let nothing = Detail::Nothing;
    let (kind, detail, first, second) = match order.work {
        Work::Write | Work::WriteInline => (RequestKind::Write, nothing, bytes, 0),
        Work::Read => (RequestKind::Read, nothing, bytes, 0),
        Work::Add(add) if order.doorbell != 0 => {
            (RequestKind::AddAndRing, nothing, add, order.doorbell)
        }
        Work::Add(add) => (RequestKind::Add, nothing, add, 0),
        Work::CompareSwap { expect, new } => {
            (RequestKind::CompareSwap, Detail::Width(8), expect, new)
        }
        Work::CompareSwapNarrow { width, expect, new } => {
            (RequestKind::CompareSwap, Detail::Width(width), expect, new)
        }
        Work::Ping => (RequestKind::Ping, nothing, 0, 0),
        Work::TakeLock { expect, new } => (RequestKind::TakeLock, nothing, expect, new),
        Work::Accumulate { what, protection, result, .. } => {
            let kind = match result {
                0 => RequestKind::Accumulate,
                _ => RequestKind::FetchAccumulate,
            };
            (kind, Detail::Reduction(what), bytes, protection as u64)
        }
        Work::OverRows { what, result, data, rows } => {
            let kind = match (what, result) {
                (None, 0) => RequestKind::WriteRows,
                (None, _) => RequestKind::ReadRows,
                (Some(_), 0) => RequestKind::AccumulateRows,
                (Some(_), _) => RequestKind::FetchAccumulateRows,
            };
            let detail = what.map_or(nothing, |(what, _)| Detail::Reduction(what));
            let protection = what.map_or(0, |(_, protection)| protection as u64);
            (kind, detail, data.into(), u64::from(rows) << 8 | protection)
        }
    };
    let answered = order.signaled || kind.fetches();
    let (guarded, key, at) = (order.guarded, order.to.key.low_u32(), order.to.at);
    TcpRequest { kind, answered, guarded, detail, key, at, first, second }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::remote::Remote;
    use crate::request::Local;
    use crate::tcp::exposures::Exposures;
    use crate::tcp::frames::REQUEST_BYTES;
    use crate::tcp::service_thread::ServiceThread;
    use std::os::unix::net::UnixDatagram;

    /// The length of the datagram, which is one system call, that has a post and a put before it.
    fn put_and_post(link: &mut TcpLink, there: &UnixDatagram, number: u64) -> usize {
        let (word, to) = (7u64, Remote::default());
        let from = Local { at: (&raw const word).expose_provenance() as u64, bytes: 8, key: 0 };
        let put = Order::new(Work::WriteInline, to, from, false);
        let put = Order { leaves: Leaves::WithLater, ..put };
        let post = Order { doorbell: 8, number, ..Order::new(Work::Add(1), to, from, true) };
        for order in [put, post] {
            // SAFETY: the word is read now; no answer comes.
            unsafe { link.post(&[order]) };
        }
        let mut bytes = [0; 4096];
        let first = there.recv(&mut bytes).unwrap();
        // The service thread may have sent the put, if this thread was slow.
        let sent = if first < 2 * REQUEST_BYTES { there.recv(&mut bytes).unwrap() } else { 0 };
        assert_eq!(first + sent, 2 * REQUEST_BYTES + 8);
        first
    }

    #[test]
    fn a_put_leaves_with_the_post_behind_it_and_waits_for_nothing() {
        let thread = ServiceThread::start(&Arc::new(Exposures::default())).unwrap();
        let (here, there) = UnixDatagram::pair().unwrap();
        let mut link = TcpLink::new(thread.sender(here.into()).unwrap());
        let both = 2 * REQUEST_BYTES + 8;
        assert!((1..=1000).any(|number| put_and_post(&mut link, &there, number) == both));
    }
}
