//! Made-up requests at the target's end of a connection, as bytes of the stream, against a model
//! that carries them out one after the other. Not random requests that an origin would send, which
//! are in `served_model`: here most are none, or name memory that is not exposed.

use core::ops::Range;
use std::io::{ErrorKind, Read, Write};
use std::os::unix::net::UnixStream;
use std::sync::{LazyLock, Mutex, MutexGuard};

use super::connections::Next;
use super::exposures::Exposures;
use super::frames::{
    ANSWER_BYTES, Answer, AnswerStatus, Detail, REQUEST_BYTES, RequestKind, TcpRequest,
};
use super::served::{BUFFER_BYTES, Served};
use crate::datatype::reduce;
use crate::layout::SINGLES_BEHIND_ACC;
use crate::reduction::Protection;
use crate::request::MemoryOf;
use crate::request_rows::{LISTED_MAX, RowReader};
use fompi_testkit::Choices;

/// Where the memory is: always there, so that a kept stream names it in each run. The sanitizers
/// permit a mapping there, and nothing else lies so low: the address sanitizer has its memory at
/// random addresses above.
const BASE: usize = 0x2000_0000;
/// Bytes of the exposed memory, and of the memory on either side of it, which must not change.
const BYTES: usize = 16 << 10;
const GUARD: usize = 4 << 10;
const ALL: usize = BYTES + 2 * GUARD;

/// The memory, which one run uses at a time.
static MEMORY: Mutex<bool> = Mutex::new(false);

/// The memory of this run.
struct Memory {
    _used: MutexGuard<'static, bool>,
}

impl Memory {
    fn new() -> Memory {
        let mut used = MEMORY.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
        if !*used {
            let access = libc::PROT_READ | libc::PROT_WRITE;
            let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_FIXED_NOREPLACE;
            let place = core::ptr::without_provenance_mut(BASE);
            // SAFETY: a new mapping where nothing is mapped, or none.
            let found = unsafe { libc::mmap(place, ALL, access, flags, -1, 0) };
            assert_eq!(found.expose_provenance(), BASE);
            *used = true;
        }
        let memory = Memory { _used: used };
        // SAFETY: the mapping, which only this run uses.
        unsafe { memory.base().copy_from_nonoverlapping(pattern().as_ptr(), ALL) };
        memory
    }

    fn base(&self) -> *mut u8 {
        core::ptr::with_exposed_provenance_mut(BASE)
    }

    fn bytes(&self) -> Vec<u8> {
        let mut bytes = vec![0; ALL];
        // SAFETY: the mapping, which only this run uses.
        unsafe { self.base().copy_to_nonoverlapping(bytes.as_mut_ptr(), ALL) };
        bytes
    }
}

/// What the memory holds first.
fn pattern() -> &'static [u8] {
    static PATTERN: LazyLock<Vec<u8>> = LazyLock::new(|| (0..ALL).map(|at| at as u8).collect());
    &PATTERN
}

/// The requests carried out one after the other.
struct Plain {
    key: u32,
    memory: Vec<u8>,
    /// what was there ahead of a refused request over rows, whose first rows are carried out
    before_rows: Option<Vec<u8>>,
    answers: Vec<u8>,
    swapped: bool,
    refused: bool,
    /// whether a request waits for a lock that is held
    waits: bool,
}

impl Plain {
    /// Carries out one request. Returns how many bytes it has, or `None` if there are fewer.
    fn step(&mut self, bytes: &[u8]) -> Option<usize> {
        let (header, data) = bytes.split_first_chunk::<REQUEST_BYTES>()?;
        let Some(request) = TcpRequest::from(header) else {
            return self.refuse(AnswerStatus::NoRequest);
        };
        assert_eq!(request.bytes(), *header, "a request has one form");
        let rows = if request.kind.is_over_rows() { request.rows_bytes() } else { 0 };
        let data = data.get(..usize::try_from(request.data_bytes() + rows).unwrap())?;
        match self.carry_out(&request, data) {
            Ok(()) if self.waits => None,
            Ok(()) => Some(REQUEST_BYTES + data.len()),
            Err(status) => self.refuse(status),
        }
    }

    fn refuse(&mut self, status: AnswerStatus) -> Option<usize> {
        self.answers.extend(Answer::new(status, 0).bytes());
        self.refused = true;
        None
    }

    /// Returns where exposed memory is, if all of it is exposed.
    fn place(&self, request: &TcpRequest, at: u64, bytes: u64) -> Result<usize, AnswerStatus> {
        let exposed = (BASE + GUARD) as u128..(BASE + GUARD + BYTES) as u128;
        let (first, end) = (u128::from(at), u128::from(at) + u128::from(bytes));
        match request.key == self.key && exposed.start <= first && end <= exposed.end {
            true => Ok(at as usize - BASE),
            false if bytes == 0 => Ok(0),
            false => Err(AnswerStatus::NotExposed),
        }
    }

    /// Returns where a word is.
    fn word(&self, request: &TcpRequest, at: u64, width: u64) -> Result<usize, AnswerStatus> {
        match at.is_multiple_of(width) {
            true => self.place(request, at, width),
            false => Err(AnswerStatus::Unaligned),
        }
    }

    fn answer(&mut self, request: &TcpRequest, status: AnswerStatus, data: &[u8]) {
        if request.answered || !data.is_empty() {
            self.answers.extend(Answer::new(status, data.len() as u32).bytes());
            self.answers.extend(data);
        }
    }

    fn load(&self, at: usize, width: usize) -> u64 {
        let mut word = [0; 8];
        word[..width].copy_from_slice(&self.memory[at..at + width]);
        u64::from_le_bytes(word)
    }

    fn carry_out(&mut self, request: &TcpRequest, data: &[u8]) -> Result<(), AnswerStatus> {
        let TcpRequest { at, first, second, guarded, .. } = *request;
        let skipped = guarded && !self.swapped;
        match request.kind {
            RequestKind::Ping => self.answer(request, AnswerStatus::Done, &[]),
            RequestKind::Write => {
                let place = self.place(request, at, first)?;
                self.memory[place..place + data.len()].copy_from_slice(data);
                self.answer(request, AnswerStatus::Done, &[]);
            }
            RequestKind::Read => {
                let place = self.place(request, at, first)?;
                let there = self.memory[place..place + first as usize].to_vec();
                // A READ is answered in any case.
                let request = TcpRequest { answered: true, ..*request };
                self.answer(&request, AnswerStatus::Done, &there);
            }
            RequestKind::Add if skipped => self.answer(request, AnswerStatus::Skipped, &[]),
            RequestKind::Add | RequestKind::CompareSwap => self.change(request)?,
            RequestKind::AddAndRing => {
                let word = self.word(request, at, 8)?;
                let bell = self.word(request, second, 8)?;
                let sum = self.load(word, 8).wrapping_add(first);
                self.memory[word..word + 8].copy_from_slice(&sum.to_le_bytes());
                let value = self.load(bell, 4) as u32;
                let even = value.wrapping_add(value % 2);
                self.memory[bell..bell + 4].copy_from_slice(&even.to_le_bytes());
                self.answer(request, AnswerStatus::Done, &[]);
            }
            RequestKind::Accumulate | RequestKind::FetchAccumulate => {
                self.accumulate(request, data)?;
            }
            RequestKind::TakeLock => {
                self.word(request, at.wrapping_add(SINGLES_BEHIND_ACC), 8)?;
                let place = self.word(request, at, 8)?;
                self.waits = self.load(place, 8) != first;
                if !self.waits {
                    self.memory[place..place + 8].copy_from_slice(&second.to_le_bytes());
                    self.answer(request, AnswerStatus::Done, &[]);
                }
            }
            _ => self.over_rows(request, data)?,
        }
        Ok(())
    }

    /// A request over rows: block by block.
    fn over_rows(&mut self, request: &TcpRequest, data: &[u8]) -> Result<(), AnswerStatus> {
        let (data, rows) = data.split_at(data.len() - request.rows_bytes() as usize);
        let (mut reader, mut old) = (RowReader::new(rows, request.at), Vec::new());
        self.before_rows = Some(self.memory.clone());
        while !reader.is_empty() {
            let mut places = [0; LISTED_MAX];
            let blocks = reader.read(&mut places).ok_or(AnswerStatus::NoRequest)?;
            let left = u128::from(request.first) - old.len() as u128;
            if u128::from(blocks.bytes()) * u128::from(blocks.count()) > left {
                return Err(AnswerStatus::NoRequest);
            }
            if let Detail::Reduction(what) = request.detail {
                let fits = |n| what.fits(request.protection().unwrap(), blocks.place(n));
                if blocks.bytes() % what.extent() != 0 {
                    return Err(AnswerStatus::NoRequest);
                } else if !(0..blocks.count()).all(fits) {
                    return Err(AnswerStatus::Unaligned);
                }
            }
            // All of them are checked before one is changed.
            let at: Vec<usize> = (0..blocks.count())
                .map(|n| self.place(request, blocks.place(n), blocks.bytes()))
                .collect::<Result<_, _>>()?;
            for place in at {
                self.block(request, place..place + blocks.bytes() as usize, data, &mut old);
            }
        }
        if old.len() as u64 != request.first {
            return Err(AnswerStatus::NoRequest);
        }
        self.answer(request, AnswerStatus::Done, if request.kind.fetches() { &old } else { &[] });
        self.before_rows = None;
        Ok(())
    }

    /// Changes a block, and appends what was there.
    fn block(&mut self, request: &TcpRequest, place: Range<usize>, data: &[u8], old: &mut Vec<u8>) {
        let (done, bytes) = (old.len(), place.len());
        let memory = &mut self.memory[place];
        match request.detail {
            Detail::Reduction(what) => {
                old.resize(done + bytes, 0);
                let (target, from) = (memory.as_mut_ptr(), data.as_ptr().wrapping_add(done));
                let (op, basic, to) = (what.op(), what.basic(), old[done..].as_mut_ptr());
                let count = what.elements(bytes as u64) as usize;
                // SAFETY: there is room for the elements in all three.
                unsafe {
                    reduce::accumulate_exclusive(op, basic, target, from, Some(to), count);
                }
            }
            _ => {
                old.extend_from_slice(memory);
                if request.kind == RequestKind::WriteRows {
                    memory.copy_from_slice(&data[done..done + bytes]);
                }
            }
        }
    }

    /// An add or a compare-and-swap.
    fn change(&mut self, request: &TcpRequest) -> Result<(), AnswerStatus> {
        let is_swap = request.kind == RequestKind::CompareSwap;
        let width = if let Detail::Width(width) = request.detail { width.into() } else { 8 };
        let place = self.word(request, request.at, width as u64)?;
        let old = self.load(place, width);
        let new = match (is_swap, old == request.first) {
            (false, _) => old.wrapping_add(request.first),
            (true, true) => request.second,
            (true, false) => old,
        };
        self.memory[place..place + width].copy_from_slice(&new.to_le_bytes()[..width]);
        if is_swap {
            self.swapped = old == request.first;
        }
        if request.answered {
            self.answer(request, AnswerStatus::Done, &old.to_le_bytes()[..width]);
        }
        Ok(())
    }

    fn accumulate(&mut self, request: &TcpRequest, data: &[u8]) -> Result<(), AnswerStatus> {
        let (Detail::Reduction(what), Some(protection)) =
            (request.detail, Protection::from_number(request.second))
        else {
            panic!("an accumulate without an operation");
        };
        if !what.fits(protection, request.at) {
            return Err(AnswerStatus::Unaligned);
        }
        let place = self.place(request, request.at, request.first)?;
        let mut old = vec![0; request.first as usize];
        let fetches = request.kind == RequestKind::FetchAccumulate;
        let (op, basic) = (what.op(), what.basic());
        let (from, to) = (data.as_ptr(), fetches.then_some(old.as_mut_ptr()));
        let count = what.elements(request.first) as usize;
        let target = self.memory[place..place + request.first as usize].as_mut_ptr();
        // SAFETY: there is room for the elements in all three.
        unsafe { reduce::accumulate_exclusive(op, basic, target, from, to, count) };
        self.answer(request, AnswerStatus::Done, if fetches { &old } else { &[] });
        Ok(())
    }
}

/// Puts the bytes of partial answers together: where an answer is cut depends on the pieces in
/// which operands arrive.
fn merged(mut bytes: &[u8]) -> Vec<u8> {
    let (mut all, mut parts) = (Vec::new(), Vec::new());
    while let Some((header, rest)) = bytes.split_first_chunk::<ANSWER_BYTES>() {
        let answer = Answer::from(*header);
        let (data, behind) = rest.split_at((answer.bytes as usize).min(rest.len()));
        (parts, bytes) = ([parts, data.to_vec()].concat(), behind);
        if answer.status != AnswerStatus::Partial as u32 {
            let answer = Answer { bytes: parts.len() as u32, ..answer };
            all.extend(answer.bytes());
            all.append(&mut parts);
        }
    }
    all
}

/// A connection, as its origin sees it.
struct Connection {
    here: UnixStream,
    served: Served,
    buffer: Vec<u8>,
    answers: Vec<u8>,
    ended: bool,
}

impl Connection {
    fn new() -> Connection {
        let (here, there) = UnixStream::pair().unwrap();
        for stream in [&here, &there] {
            stream.set_nonblocking(true).unwrap();
        }
        let (served, buffer) = (Served::new(there.into()), vec![0; BUFFER_BYTES]);
        Connection { here, served, buffer, answers: Vec::new(), ended: false }
    }

    /// Sends bytes in pieces, and receives all answers.
    fn send(&mut self, exposures: &Exposures, bytes: &[u8], piece: usize) {
        let (mut sent, mut idle) = (0, 0);
        // Served again: it goes on, or waits for a lock without an end.
        while idle < 64 && !self.ended {
            let until = bytes.len().min(sent + piece);
            match self.here.write(&bytes[sent..until]) {
                Ok(count) => sent += count,
                Err(error) => assert_eq!(error.kind(), ErrorKind::WouldBlock),
            }
            let next = self.served.turn(exposures, &mut self.buffer);
            self.ended = next == Next::End;
            let came = self.receive();
            let passed = if next == Next::Again || next == Next::AwaitLock { 1 } else { 32 };
            idle = if sent < bytes.len() || came { 0 } else { idle + passed };
        }
        while self.receive() {}
    }

    fn receive(&mut self) -> bool {
        let mut part = [0; 16 << 10];
        let came = self.here.read(&mut part).unwrap_or(0);
        self.answers.extend_from_slice(&part[..came]);
        came > 0
    }
}

/// The target `tcp_requests`: the first byte is the length of the pieces in which the others, the
/// stream, arrive.
pub fn tcp_requests(data: &[u8]) {
    let mut choices = Choices::of(data);
    let piece = match choices.byte() {
        0 => usize::MAX >> 1,
        length => length.into(),
    };
    let stream = choices.rest();
    let memory = Memory::new();
    let exposures = Exposures::default();
    let key = exposures.add((BASE + GUARD) as u64, BYTES as u64, MemoryOf::Library).unwrap();
    let (memory_before, answers) = (pattern().to_vec(), Vec::new());
    let mut plain = Plain {
        key,
        memory: memory_before,
        before_rows: None,
        answers,
        swapped: false,
        refused: false,
        waits: false,
    };
    let mut whole = 0;
    while let Some(bytes) = plain.step(&stream[whole..]) {
        whole += bytes;
    }
    // First what is carried out, then what is refused, or whose bytes have not all come, with what
    // follows it.
    let mut connection = Connection::new();
    connection.send(&exposures, &stream[..whole], piece);
    assert!(!connection.ended, "all these are requests");
    let plain_answers = &plain.answers[..plain.answers.len() - usize::from(plain.refused) * 8];
    assert!(merged(&connection.answers) == plain_answers, "answers");
    assert!(memory.bytes() == *plain.before_rows.as_ref().unwrap_or(&plain.memory), "memory");
    connection.send(&exposures, &stream[whole..], piece);
    let now = memory.bytes();
    if plain.refused {
        let came = merged(&connection.answers);
        assert!(came == plain.answers, "answers at the end");
        assert!(now == plain.memory, "memory after a refusal");
    }
    if plain.waits {
        assert!(now == plain.memory, "memory behind a request for a lock");
    }
    assert!(now[..GUARD] == plain.memory[..GUARD], "memory ahead");
    assert!(now[GUARD + BYTES..] == plain.memory[GUARD + BYTES..], "memory behind");
}

#[cfg(test)]
#[test]
fn the_kept_streams_of_requests_are_carried_out_as_in_the_model() {
    fompi_testkit::replay("tcp_requests", tcp_requests);
}
