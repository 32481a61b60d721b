//! Requests of one connection that the system has not taken yet. Small ones are gathered, so that
//! one system call sends many of them. Invariant: the bytes leave in the order of the calls.

use core::ptr;
use std::collections::VecDeque;
use std::io::{Error, Result};
use std::os::fd::{AsFd, OwnedFd};

use parking_lot::Mutex;

use super::stream_calls::{self, piece, would_wait};
use crate::leaves::Leaves;

/// Bytes and requests that are gathered before they are sent.
const GATHERED_BYTES_MAX: usize = 32 << 10;
const GATHERED_MAX: usize = 512;
/// Pieces of one system call.
const PIECES_MAX: usize = 32;
/// Bytes of a connection's own buffer, and pieces for which it keeps room.
const OWN_BYTES: usize = 4 << 10;
const OWN_PIECES: usize = 32;
/// Capacity of the longest buffer that is kept for the connections of this process.
const SPARE_BYTES_MAX: usize = 2 * GATHERED_BYTES_MAX;

/// The buffer for a connection that has gathered more than its own one holds; `None` while one has
/// it. A connection that finds none allocates one, so no connection waits for another.
static SPARE: Mutex<Option<Vec<u8>>> = Mutex::new(None);

/// A stream that takes bytes without waiting.
pub trait RequestStream {
    /// Sends bytes, and returns how many were sent.
    ///
    /// # Safety
    /// The memory of the pieces may be read.
    unsafe fn send(&self, pieces: &[libc::iovec]) -> Result<usize>;
}

impl RequestStream for OwnedFd {
    unsafe fn send(&self, pieces: &[libc::iovec]) -> Result<usize> {
        // SAFETY: guaranteed by the caller.
        unsafe { stream_calls::send(self.as_fd(), pieces) }
    }
}

/// Memory of the user that is sent from its place.
struct Lent {
    /// number of gathered bytes that are sent ahead of it
    ahead: usize,
    at: *const u8,
    bytes: usize,
}

/// The unsent requests, and the stream.
pub struct Unsent<S = OwnedFd> {
    stream: S,
    /// the gathered bytes, in the own buffer or in a long one
    gathered: Vec<u8>,
    /// the own buffer, while there is a long one
    own: Option<Vec<u8>>,
    /// number of gathered bytes that are sent
    sent: usize,
    lent: VecDeque<Lent>,
    /// number of requests since the last one was sent
    requests: usize,
    /// whether the short timer is to send them: for [`HandOver`](super::hand_over::HandOver)
    pub is_timed: bool,
    /// whether the long timer is to
    pub is_timed_long: bool,
    /// whether the last request that takes a lock may have left
    pub has_sent_lock: bool,
    /// whether the next call sends at once: the system had no room at the last attempt, memory was
    /// lent, or the stream has failed
    is_pressing: bool,
    /// `errno` of the first failure: the system reports it once
    failure: Option<i32>,
}

// SAFETY: the pointers are to memory that the user has lent until the requests are done.
unsafe impl<S: Send> Send for Unsent<S> {}

impl<S: RequestStream> Unsent<S> {
    /// Starts with nothing to send.
    pub fn new(stream: S) -> Unsent<S> {
        Unsent {
            stream,
            gathered: Vec::new(),
            own: None,
            sent: 0,
            lent: VecDeque::new(),
            requests: 0,
            is_timed: false,
            is_timed_long: false,
            has_sent_lock: false,
            is_pressing: false,
            failure: None,
        }
    }

    /// The stream.
    pub fn stream(&self) -> &S {
        &self.stream
    }

    /// Adds a request and bytes of the user, which are copied; there may be none.
    ///
    /// # Safety
    /// The bytes may be read.
    #[inline]
    pub unsafe fn add<const BYTES: usize>(
        &mut self,
        request: &[u8; BYTES],
        (at, bytes): (*const u8, usize),
    ) {
        self.requests += 1;
        let end = self.gathered.len();
        if self.gathered.capacity() - end < BYTES + bytes {
            self.grow(end + BYTES + bytes);
        }
        // SAFETY: there is room for both, and the caller guarantees the user's bytes.
        unsafe {
            let to = self.gathered.as_mut_ptr().add(end);
            to.cast::<[u8; BYTES]>().write(*request);
            let to = to.add(BYTES);
            match bytes {
                // A word, which most calls move: no call of memcpy.
                8 => to.cast::<u64>().write_unaligned(at.cast::<u64>().read_unaligned()),
                _ => ptr::copy_nonoverlapping(at, to, bytes),
            }
            self.gathered.set_len(end + BYTES + bytes);
        }
    }

    /// Adds bytes of the user, which are sent from their place.
    ///
    /// # Safety
    /// The bytes may be read until the request is done or the stream is closed.
    pub unsafe fn add_lent(&mut self, at: *const u8, bytes: usize) {
        self.lent.push_back(Lent { ahead: self.gathered.len(), at, bytes });
        self.is_pressing = true;
    }

    /// Makes room for `bytes` gathered bytes: in the own buffer, if it may be as long.
    #[cold]
    fn grow(&mut self, bytes: usize) {
        if self.own.is_none() && bytes > OWN_BYTES {
            let spare = SPARE.try_lock().and_then(|mut spare| spare.take());
            let mut long = spare.unwrap_or_default();
            long.extend_from_slice(&self.gathered);
            self.own = Some(core::mem::replace(&mut self.gathered, long));
        }
        let more = bytes.next_power_of_two() - self.gathered.len();
        self.gathered.reserve_exact(more);
    }

    /// Forgets what is gathered, and goes back to the own buffer.
    fn forget_gathered(&mut self) {
        (self.sent, self.requests) = (0, 0);
        self.is_pressing = self.failure.is_some();
        self.gathered.clear();
        if let Some(mut own) = self.own.take() {
            own.clear();
            let long = core::mem::replace(&mut self.gathered, own);
            if let Some(mut spare) = SPARE.try_lock().filter(|_| long.capacity() <= SPARE_BYTES_MAX)
            {
                *spare = Some(long);
            }
        }
        if self.lent.capacity() > OWN_PIECES {
            self.lent.shrink_to(OWN_PIECES);
        }
    }

    /// Forgets what is not sent, and the memory that the user has lent for it.
    pub fn clear(&mut self) {
        self.lent.clear();
        self.forget_gathered();
    }

    /// Bytes of memory that the connection keeps.
    #[cfg(test)]
    pub fn kept_bytes(&self) -> usize {
        let own = self.own.as_ref().map_or(0, Vec::capacity);
        let lent = self.lent.capacity() * size_of::<Lent>();
        size_of::<Unsent<S>>() + self.gathered.capacity() + own + lent
    }

    /// Whether bytes of the user are sent from their place.
    pub fn lends(&self) -> bool {
        !self.lent.is_empty()
    }

    /// Whether there is anything to send.
    pub fn is_empty(&self) -> bool {
        self.sent == self.gathered.len() && self.lent.is_empty()
    }

    /// Whether what was added, and leaves so, may wait: for the timer that runs for it, or for the
    /// notification. Otherwise [`HandOver::leave`](super::hand_over::HandOver::leave) decides.
    #[inline(always)]
    pub fn may_wait(&self, leaves: Leaves) -> bool {
        let is_awaited = match leaves {
            Leaves::Soon | Leaves::IfFirst => self.is_timed && !self.is_pressing,
            Leaves::WithLater => self.is_timed_long && !self.is_pressing,
            Leaves::WithNotification => true,
            Leaves::WithLock | Leaves::AtOnce => false,
        };
        let bytes = self.gathered.len() - self.sent;
        is_awaited && self.requests < GATHERED_MAX && bytes < GATHERED_BYTES_MAX
    }

    /// Whether enough is gathered, or anything must not wait for more.
    pub fn is_due(&self) -> bool {
        let bytes = self.gathered.len() - self.sent;
        self.is_pressing || self.requests >= GATHERED_MAX || bytes >= GATHERED_BYTES_MAX
    }

    /// Ends the sending. Returns the first failure.
    pub fn fail(&mut self, error: &Error) -> Error {
        let errno = error.raw_os_error().unwrap_or(libc::EPIPE);
        self.is_pressing = true;
        Error::from_raw_os_error(*self.failure.get_or_insert(errno))
    }

    /// Sends what there is. Returns whether all of it was sent; otherwise the system has no room.
    ///
    /// # Errors
    /// The first one of sendmsg(2), or of [`Unsent::fail`]: the connection cannot be used any more.
    pub fn send(&mut self) -> Result<bool> {
        if let Some(errno) = self.failure {
            return Err(Error::from_raw_os_error(errno));
        }
        while !self.is_empty() {
            let (pieces, count) = self.pieces();
            self.has_sent_lock = true;
            // SAFETY: gathered bytes, and bytes that the user has lent.
            match unsafe { self.stream.send(&pieces[..count]) } {
                Ok(sent) => self.advance(sent),
                Err(error) if would_wait(&error) => {
                    self.is_pressing = true;
                    return Ok(false);
                }
                Err(error) => return Err(self.fail(&error)),
            }
        }
        self.forget_gathered();
        Ok(true)
    }

    /// Returns the first pieces of what is to be sent, and their number.
    fn pieces(&self) -> ([libc::iovec; PIECES_MAX], usize) {
        let mut pieces = [piece(ptr::null(), 0); PIECES_MAX];
        let (mut count, mut at) = (0, self.sent);
        let gathered = |from: usize, to: usize| piece(self.gathered[from..to].as_ptr(), to - from);
        for lent in &self.lent {
            if count + 2 > PIECES_MAX {
                return (pieces, count);
            }
            if lent.ahead > at {
                pieces[count] = gathered(at, lent.ahead);
                count += 1;
            }
            pieces[count] = piece(lent.at, lent.bytes);
            (count, at) = (count + 1, lent.ahead);
        }
        if at < self.gathered.len() && count < PIECES_MAX {
            pieces[count] = gathered(at, self.gathered.len());
            count += 1;
        }
        (pieces, count)
    }

    /// Records that the system has taken the first `bytes` bytes.
    fn advance(&mut self, mut bytes: usize) {
        while bytes > 0 {
            let end = self.lent.front().map_or(self.gathered.len(), |lent| lent.ahead);
            let taken = bytes.min(end - self.sent);
            (self.sent, bytes) = (self.sent + taken, bytes - taken);
            if let Some(lent) = self.lent.front_mut().filter(|lent| lent.ahead == self.sent) {
                let taken = bytes.min(lent.bytes);
                (lent.at, lent.bytes) = (lent.at.wrapping_add(taken), lent.bytes - taken);
                bytes -= taken;
                if lent.bytes == 0 {
                    self.lent.pop_front();
                }
            } else if taken == 0 {
                unreachable!("the system takes no more than there is");
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Read;
    use std::os::unix::net::UnixStream;

    #[test]
    fn bytes_leave_in_the_order_of_the_calls_whatever_the_socket_takes() {
        let (here, mut there) = UnixStream::pair().unwrap();
        let mut unsent: Unsent = Unsent::new(here.into());
        let long: Vec<u8> = (0..400_000u32).map(|index| (index % 241) as u8).collect();
        let mut wanted = Vec::new();
        for round in 0..20u8 {
            wanted.extend([round; 32]);
            if round % 3 != 0 {
                // SAFETY: the bytes live until all are sent.
                unsafe {
                    unsent.add(&[round; 32], (ptr::null(), 0));
                    unsent.add_lent(long.as_ptr(), long.len());
                }
                wanted.extend(&long);
            } else {
                let bytes = if round % 2 == 0 { 77 } else { 8 };
                // SAFETY: the bytes are copied.
                unsafe { unsent.add(&[round; 32], (long.as_ptr(), bytes)) };
                wanted.extend(&long[..bytes]);
            }
        }
        let (mut got, mut buffer, mut full) = (Vec::new(), vec![0; 100_000], 0);
        while !unsent.send().unwrap() {
            full += 1;
            let count = there.read(&mut buffer[..1 + full * 7919 % 90_000]).unwrap();
            got.extend(&buffer[..count]);
        }
        assert!(full > 0 && unsent.is_empty() && !unsent.is_due());
        drop(unsent);
        there.read_to_end(&mut got).unwrap();
        assert!(got == wanted);
    }

    #[test]
    fn a_small_request_waits_for_more() {
        let (here, _there) = UnixStream::pair().unwrap();
        let mut unsent: Unsent = Unsent::new(here.into());
        unsent.is_timed = true;
        for requests in 1..=GATHERED_MAX {
            // SAFETY: no bytes.
            unsafe { unsent.add(&[1; 32], (ptr::null(), 0)) };
            assert_eq!(unsent.is_due(), requests == GATHERED_MAX);
            assert_eq!(unsent.may_wait(Leaves::Soon), requests < GATHERED_MAX);
            assert_eq!(unsent.may_wait(Leaves::WithNotification), requests < GATHERED_MAX);
            assert!(!unsent.may_wait(Leaves::WithLater), "its timer does not run");
            assert!(!unsent.may_wait(Leaves::AtOnce));
        }
    }
}
