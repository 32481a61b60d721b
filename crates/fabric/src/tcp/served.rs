//! The target's end of a connection, which the service thread serves in turns. It carries out
//! requests while the table of exposures is locked for reading, so no memory is given back under
//! it. Invariant: a turn has a bound and does not wait; while answers wait for room, no request is
//! read. A request for a lock that is held is carried out in a later turn, and so are those behind
//! it.

use core::ptr;
use std::os::fd::{AsFd, AsRawFd, OwnedFd};

use super::connections::Next;
use super::exposures::{ExposedMemory, Exposures};
use super::frames::{AnswerStatus, REQUEST_BYTES, RequestKind, TcpRequest};
use super::page_probes::PageAccess;
use super::served_accumulate::{ServedAccumulate, one_element};
use super::served_lock::HeldLock;
use super::served_parts::{AnswerMemory, AnswerQueue, Stopped};
use super::served_write::{
    BEHIND_LONG_BYTES, MOVED_BYTES_MAX, SMALL_BYTES, ServedWrite, WriteStep,
};
use super::stream_calls::{is_empty, piece, receive, would_wait};
use super::{served_rows, served_words};
use crate::number::Number;
use crate::sync::full_fence;
use crate::word_copies;

/// Bytes of the buffer of the service thread. What it receives of a long WRITE is copied once more.
pub const BUFFER_BYTES: usize = 32 << 10;
/// Reads of the socket in one turn.
const READS_MAX: usize = 4;
/// Longest READ whose bytes are copied by words. A longer one is sent from its place.
const COPIED_BYTES: u64 = 4 << 10;
/// The target's end of a connection.
pub struct Served {
    stream: OwnedFd,
    /// received bytes that are not carried out yet
    input: Vec<u8>,
    /// the WRITE whose bytes arrive
    writing: Option<ServedWrite>,
    /// whether the last bytes that were received are of a long WRITE
    is_behind_long: bool,
    /// the accumulate whose operands arrive
    accumulating: Option<ServedAccumulate>,
    /// whether the last compare-and-swap was carried out and has changed its word
    swapped: bool,
    lock: HeldLock,
    /// whether the next request waits for a lock
    awaits_lock: bool,
    output: AnswerQueue,
    /// what a long READ asked for and is not in the output yet
    reading: Option<AnswerMemory>,
    /// whether received requests wait until answers are sent
    stalled: bool,
    /// bytes of a request that was not carried out, which are still to come
    left_out: u64,
    /// whether a request was refused: nothing is carried out any more
    refused: bool,
}

impl Served {
    /// Starts without requests.
    pub fn new(stream: OwnedFd) -> Served {
        let (input, output) = (Vec::new(), AnswerQueue::default());
        Served {
            stream,
            input,
            writing: None,
            is_behind_long: false,
            accumulating: None,
            swapped: false,
            lock: HeldLock::default(),
            awaits_lock: false,
            output,
            reading: None,
            stalled: false,
            left_out: 0,
            refused: false,
        }
    }

    /// The stream.
    pub fn stream(&self) -> &OwnedFd {
        &self.stream
    }

    /// Bytes of memory that the connection keeps.
    #[cfg(test)]
    pub fn kept_bytes(&self) -> usize {
        size_of::<Served>() + self.input.capacity() + self.output.kept_bytes()
    }

    /// Sends answers, receives requests, carries them out, and sends their answers. A turn ends
    /// where the stream is empty or full, or the connection is to be served again. At its end all
    /// answers are sent that the stream has taken.
    pub fn turn(&mut self, exposures: &Exposures, buffer: &mut [u8]) -> Next {
        let next = self.serve(exposures, buffer);
        if next == Next::End {
            self.lock.give_back(&exposures.read());
        }
        next
    }

    fn serve(&mut self, exposures: &Exposures, buffer: &mut [u8]) -> Next {
        let mut more = true;
        for _ in 0..READS_MAX {
            if !more || !self.awaits_bytes() {
                match self.send(exposures) {
                    Next::Receive if more => {}
                    next => return next,
                }
            }
            let received = match self.writing {
                Some(_) => self.receive_into_place(exposures, buffer),
                None => self.receive(exposures, buffer),
            };
            match received {
                Ok(_) if self.awaits_lock => break,
                Ok(came) => more = came,
                Err(()) => return Next::End,
            }
        }
        match self.send(exposures) {
            Next::Receive if self.awaits_lock => Next::AwaitLock,
            Next::Receive if self.stalled || more => Next::Again,
            next => next,
        }
    }

    /// Whether the rest of a request is received ahead of sending answers: they leave together with
    /// its own, by one system call that wakes the origin once.
    fn awaits_bytes(&self) -> bool {
        (self.writing.is_some() || self.accumulating.is_some()) && !self.is_full()
    }

    /// Receives a part of a long WRITE, and carries out requests behind its end. Returns whether
    /// more may have arrived.
    fn receive_into_place(&mut self, exposures: &Exposures, buffer: &mut [u8]) -> Result<bool, ()> {
        let memory = exposures.read();
        let Some(mut writing) = self.writing.take() else { return Ok(true) };
        let behind = &mut buffer[..BEHIND_LONG_BYTES];
        let received = writing.receive(&memory, self.stream.as_fd(), behind);
        let (answered, left) = (writing.answered, writing.left());
        self.go_on(writing);
        match received {
            Ok((WriteStep::End, _)) => Err(()),
            Ok((step, came)) => {
                self.carry_out_all(&memory, &buffer[..came]);
                Ok(step == WriteStep::Filled || self.stalled)
            }
            Err(status) => {
                self.decline(status, answered, left);
                Ok(true)
            }
        }
    }

    /// Receives requests and carries them out. Returns whether more may have arrived.
    fn receive(&mut self, exposures: &Exposures, buffer: &mut [u8]) -> Result<bool, ()> {
        let before = self.input.len();
        buffer[..before].copy_from_slice(&self.input);
        if self.awaits_lock {
            self.carry_out_all(&exposures.read(), &buffer[..before]);
            // What has arrived meanwhile was not received.
            return Ok(!self.awaits_lock);
        }
        let most = if self.is_behind_long { BEHIND_LONG_BYTES } else { BUFFER_BYTES };
        let room = most.min(buffer.len() - before);
        let place = piece(buffer[before..].as_mut_ptr(), room);
        // SAFETY: inside of the buffer.
        let came = match unsafe { receive(self.stream.as_fd(), &[place]) } {
            Ok(0) => return Err(()),
            Ok(came) => came,
            Err(error) if is_empty(&error) => 0,
            Err(error) if would_wait(&error) => return Ok(true),
            Err(_) => return Err(()),
        };
        self.carry_out_all(&exposures.read(), &buffer[..before + came]);
        self.is_behind_long = self.writing.is_some();
        Ok(came == room || self.stalled || self.writing.is_some())
    }

    /// Carries out the requests in `bytes`, and keeps the rest of them.
    fn carry_out_all(&mut self, memory: &ExposedMemory<'_>, bytes: &[u8]) {
        let used = if self.refused { bytes.len() } else { self.carry_out(memory, bytes) };
        self.input.clear();
        self.input.extend_from_slice(&bytes[used..]);
        if self.input.is_empty() {
            self.input = Vec::new();
        }
    }

    /// Carries out the requests at the beginning of `bytes`. Returns how many bytes were used.
    fn carry_out(&mut self, memory: &ExposedMemory<'_>, bytes: &[u8]) -> usize {
        let mut used = 0;
        (self.stalled, self.awaits_lock) = (false, false);
        while !self.refused {
            match self.step(memory, &bytes[used..]) {
                Some(taken) => used += taken,
                None => break,
            }
        }
        if self.refused { bytes.len() } else { used }
    }

    /// Carries out a request, or a piece of an accumulate. Returns how many bytes were used, or
    /// `None` if more of them or room for answers is needed.
    fn step(&mut self, memory: &ExposedMemory<'_>, bytes: &[u8]) -> Option<usize> {
        if self.left_out > 0 {
            let taken = self.left_out.min(bytes.len().to_u64());
            self.left_out -= taken;
            return (taken > 0).then_some(taken.to_usize());
        }
        if let Some(accumulating) = &self.accumulating {
            if !accumulating.can_advance(bytes.len()) || self.stalls() {
                return None;
            }
            let accumulating = self.accumulating.take()?;
            return Some(self.accumulate(memory, accumulating, bytes));
        }
        let (header, data) = bytes.split_first_chunk::<REQUEST_BYTES>()?;
        let Some(mut request) = TcpRequest::from(header) else {
            self.refuse(AnswerStatus::NoRequest);
            return Some(0);
        };
        if request.is_under_lock() {
            request.set_protection(self.lock.protection());
        }
        if request.kind.is_over_rows() {
            return self.over_rows(memory, &request, data);
        }
        let small = request.data_bytes() <= SMALL_BYTES;
        if small && data.len().to_u64() < request.data_bytes() || self.stalls() {
            return None;
        }
        if request.kind == RequestKind::TakeLock {
            return self.take_lock(memory, &request);
        }
        let data = &data[..data.len().min(request.data_bytes().to_usize())];
        match self.carry_out_one(memory, &request, data) {
            Ok(used) => Some(REQUEST_BYTES + used),
            Err(status) => {
                let left = request.data_bytes() - data.len().to_u64();
                self.decline(status, request.answered, left);
                Some(REQUEST_BYTES + data.len())
            }
        }
    }

    /// Takes a lock. Returns how many bytes were used, or `None` if the lock is held.
    fn take_lock(&mut self, memory: &ExposedMemory<'_>, request: &TcpRequest) -> Option<usize> {
        match self.lock.take(memory, request) {
            Ok(true) => self.end(request.answered, AnswerStatus::Done),
            Ok(false) => self.awaits_lock = true,
            Err(status) => self.refuse(status),
        }
        (!self.awaits_lock).then_some(REQUEST_BYTES)
    }

    /// Whether nothing more is carried out before answers are sent.
    fn stalls(&mut self) -> bool {
        self.stalled = self.is_full();
        self.stalled
    }

    /// Carries out one request. Of a long WRITE or accumulate, `data` may be the beginning. Returns
    /// how many bytes of them were used.
    #[inline]
    fn carry_out_one(
        &mut self,
        memory: &ExposedMemory<'_>,
        request: &TcpRequest,
        data: &[u8],
    ) -> Result<usize, AnswerStatus> {
        let TcpRequest { kind, answered, key, at, first, .. } = *request;
        let skipped = request.guarded && !self.swapped;
        let place = ptr::with_exposed_provenance_mut::<u8>(at.to_usize());
        match kind {
            RequestKind::Write | RequestKind::Add | RequestKind::CompareSwap if skipped => {
                self.end(answered, AnswerStatus::Skipped);
            }
            RequestKind::Write => {
                let writing = ServedWrite::begin(memory, request, data)?;
                self.go_on(writing);
            }
            RequestKind::Read if first > COPIED_BYTES => {
                memory.check(key, at, first, PageAccess::BySystem)?;
                self.reading = Some(AnswerMemory { key, at, left: first });
            }
            RequestKind::Read => {
                memory.check(key, at, first, PageAccess::Load)?;
                self.output.answer(AnswerStatus::Done, first.low_u32());
                // An accumulate ahead of it is done before what is read now, which may be the lock
                // that tells whether a call on several words is under way.
                full_fence();
                // SAFETY: `check` has allowed loads of these bytes.
                unsafe { word_copies::load(self.output.bytes(), place, first.to_usize()) };
            }
            RequestKind::Add | RequestKind::CompareSwap => {
                let is_swap = kind == RequestKind::CompareSwap;
                self.swapped &= !is_swap;
                let old = served_words::change(memory, request)?;
                self.swapped |= is_swap && old == first;
                self.lock.note_change(at);
                if answered {
                    let width = served_words::width(request);
                    self.output.answer(AnswerStatus::Done, width.into());
                    self.output.bytes().extend_from_slice(&old.to_le_bytes()[..width.into()]);
                }
            }
            RequestKind::AddAndRing => {
                served_words::add_and_ring(memory, request)?;
                self.end(answered, AnswerStatus::Done);
            }
            RequestKind::Accumulate | RequestKind::FetchAccumulate => {
                if one_element(memory, request, data)? {
                    self.end(answered, AnswerStatus::Done);
                    return Ok(data.len());
                }
                let begun = ServedAccumulate::begin(memory, request, data.len())?;
                return Ok(self.accumulate(memory, begun, data));
            }
            RequestKind::Ping => self.end(answered, AnswerStatus::Done),
            _ => unreachable!("`over_rows` and `take_lock` carry the others out"),
        }
        Ok(data.len())
    }

    /// Carries out the next piece of an accumulate. Returns how many bytes of operands were used.
    #[inline]
    fn accumulate(
        &mut self,
        memory: &ExposedMemory<'_>,
        mut accumulating: ServedAccumulate,
        operands: &[u8],
    ) -> usize {
        let ServedAccumulate { fetches, answered, .. } = accumulating;
        let answers = fetches.then(|| self.output.bytes());
        let taken = match accumulating.advance(memory, operands, answers) {
            Ok(taken) => taken,
            Err(status) => {
                self.decline(status, answered, accumulating.operands_left());
                return 0;
            }
        };
        match accumulating.is_done() {
            false => self.accumulating = Some(accumulating),
            true => self.end(answered && !fetches, AnswerStatus::Done),
        }
        taken
    }

    /// Carries out a request over rows, if all of its bytes have arrived. Returns how many bytes
    /// were used, or `None` if more of them or room for answers is needed.
    #[inline(never)]
    fn over_rows(
        &mut self,
        memory: &ExposedMemory<'_>,
        request: &TcpRequest,
        data: &[u8],
    ) -> Option<usize> {
        let bytes = (request.data_bytes() + request.rows_bytes()).to_usize();
        let data = data.get(..bytes)?;
        if self.stalls() {
            return None;
        }
        let (answered, fetches) = (request.answered, request.kind.fetches());
        let answers = fetches.then(|| self.output.bytes());
        match served_rows::carry_out(memory, request, data, answers) {
            Ok(()) => self.end(answered && !fetches, AnswerStatus::Done),
            Err(status) => self.decline(status, answered, 0),
        }
        Some(REQUEST_BYTES + bytes)
    }

    /// Waits for the rest of a WRITE, or answers it.
    fn go_on(&mut self, writing: ServedWrite) {
        match writing.is_done() {
            true => self.end(writing.answered, AnswerStatus::Done),
            false => self.writing = Some(writing),
        }
    }

    /// Answers that a request without a result was done, or skipped.
    fn end(&mut self, answered: bool, status: AnswerStatus) {
        if answered {
            self.output.answer(status, 0);
        }
    }

    /// Answers that a request is not carried out, or not to its end, which has `left` bytes more to
    /// come. The connection goes on if only the program keeps its memory from the request; anything
    /// else is a mistake of the other side, which no origin of ours makes.
    fn decline(&mut self, status: AnswerStatus, answered: bool, left: u64) {
        if status != AnswerStatus::NoPermission {
            return self.refuse(status);
        }
        let unasked = AnswerStatus::NoPermissionBefore;
        self.output.answer(if answered { status } else { unasked }, 0);
        (self.writing, self.left_out) = (None, left);
    }

    /// Answers that a request is refused, and ends the connection: the origin gets what was
    /// answered before, then this answer, and then the end of the stream.
    fn refuse(&mut self, status: AnswerStatus) {
        self.output.answer(status, 0);
        (self.refused, self.writing, self.stalled) = (true, None, false);
    }

    /// Whether answers have to be sent before more requests are carried out: memory that a READ
    /// asked for is sent before the next request may change it. Of several parts one is memory,
    /// because bytes are added to bytes.
    #[inline]
    fn is_full(&self) -> bool {
        self.output.is_full() || self.reading.is_some()
    }

    /// Adds the next part of what a long READ asked for to the output.
    fn read_on(&mut self) {
        let Some(place) = self.reading.take() else { return };
        let part = AnswerMemory { left: place.left.min(MOVED_BYTES_MAX), ..place };
        self.output.answer(AnswerStatus::Partial, part.left.low_u32());
        self.output.push_memory(part);
        let rest = place.left - part.left;
        if rest == 0 {
            self.output.answer(AnswerStatus::Done, 0);
        } else {
            self.reading = Some(AnswerMemory { at: place.at + part.left, left: rest, ..place });
        }
    }

    /// Ends a READ whose memory cannot be read any more: zeros take the place of bytes that were
    /// announced, and the refusal follows them.
    fn end_reading(&mut self, status: AnswerStatus) {
        self.output.replace_memory();
        // The last part has the final answer behind it.
        if self.reading.take().is_none() {
            self.output.drop_last();
        }
        self.decline(status, true, 0);
    }

    /// Sends what there is of answers.
    fn send(&mut self, exposures: &Exposures) -> Next {
        loop {
            if self.output.has_room() {
                self.read_on();
            }
            if self.output.is_empty() {
                break;
            }
            match self.output.send(self.stream.as_fd(), &exposures.read()) {
                Ok(()) => {}
                Err(Stopped::Wait) => return Next::Send,
                Err(Stopped::Ended) => return Next::End,
                Err(Stopped::Refused(status)) => self.end_reading(status),
            }
        }
        if self.refused {
            // SAFETY: a socket that is owned here.
            unsafe { libc::shutdown(self.stream.as_raw_fd(), libc::SHUT_WR) };
        }
        Next::Receive
    }
}
