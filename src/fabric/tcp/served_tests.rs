//! Random requests at the target's end of a connection, in pieces of any length, against a model
//! that carries them out one after the other; and bytes that no origin sends.

use std::io::{ErrorKind, Read, Write};
use std::os::unix::net::UnixStream;

use super::exposures::Exposures;
use super::frames::{ANSWER_BYTES, Answer, AnswerStatus, RequestKind, TcpRequest};
use super::served::{BUFFER_BYTES, Next, Served};
use crate::fabric::request::MemoryOf;

/// Bytes of the exposed memory, and of the memory on either side of it, which must not change.
const BYTES: usize = 64 << 10;
const GUARD: usize = 4 << 10;
/// Bytes that the model needs to be multiples of words.
const WORD: usize = 8;

const KINDS: [RequestKind; 6] = [
    RequestKind::Write,
    RequestKind::Read,
    RequestKind::Add,
    RequestKind::CompareSwap,
    RequestKind::Ping,
    RequestKind::AddAndRing,
];

/// The seeds of a test: `count`, or FOMPI_SEEDS if that is more.
fn seeds(count: u64) -> core::ops::RangeInclusive<u64> {
    let wanted = std::env::var("FOMPI_SEEDS").ok().and_then(|text| text.parse().ok());
    1..=wanted.unwrap_or(0).max(count)
}

/// A generator of numbers that look random.
struct Numbers(u64);

impl Numbers {
    fn below(&mut self, bound: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 >> 11) as usize % bound
    }

    /// Mostly small lengths, sometimes long ones.
    fn length(&mut self) -> usize {
        match self.below(8) {
            0 => 8 << 10,
            1 => self.below(40 << 10),
            2 => 4 << 10,
            _ => self.below(64),
        }
    }
}

/// The exposed memory, what it should hold, and the answers that should come.
struct Model {
    memory: Vec<u64>,
    key: u32,
    wanted: Vec<u8>,
    answers: Vec<u8>,
}

impl Model {
    fn new(exposures: &Exposures, seed: u64) -> Model {
        let words = (BYTES + 2 * GUARD) / WORD;
        let mut numbers = Numbers(seed | 1);
        let memory: Vec<u64> = (0..words).map(|_| numbers.below(usize::MAX) as u64).collect();
        let base = memory.as_ptr().expose_provenance() + GUARD;
        let key = exposures.add(base as u64, BYTES as u64, MemoryOf::Library).unwrap();
        let mut model = Model { memory, key, wanted: Vec::new(), answers: Vec::new() };
        model.wanted = model.bytes();
        model
    }

    fn bytes(&self) -> Vec<u8> {
        self.memory.iter().flat_map(|word| word.to_le_bytes()).collect()
    }

    /// The address of a byte of the exposed memory.
    fn at(&self, offset: usize) -> u64 {
        (self.memory.as_ptr().expose_provenance() + GUARD + offset) as u64
    }

    /// Returns a random request with its data, and carries it out in the model.
    fn request(&mut self, numbers: &mut Numbers) -> Vec<u8> {
        let answered = numbers.below(2) == 0;
        let kind = KINDS[numbers.below(KINDS.len())];
        let length = numbers.length();
        let word = numbers.below(BYTES / WORD) * WORD;
        let offset = if matches!(kind, RequestKind::Write | RequestKind::Read) {
            numbers.below(BYTES - length + 1)
        } else {
            word
        };
        let place = GUARD + offset..GUARD + offset + length;
        let old =
            u64::from_le_bytes(self.wanted[GUARD + word..GUARD + word + WORD].try_into().unwrap());
        let (mut first, mut second, mut data) = (length as u64, 0, Vec::new());
        let mut answer = Vec::new();
        match kind {
            RequestKind::Write => {
                data = (0..length).map(|_| numbers.below(256) as u8).collect();
                self.wanted[place].copy_from_slice(&data);
            }
            RequestKind::Read => answer.extend_from_slice(&self.wanted[place]),
            RequestKind::Add | RequestKind::CompareSwap => {
                (first, second) = (numbers.below(99) as u64, 0);
                let mut new = old.wrapping_add(first);
                if kind == RequestKind::CompareSwap {
                    second = numbers.below(99) as u64;
                    first = if answered { old } else { first };
                    new = if first == old { second } else { old };
                }
                self.wanted[GUARD + word..GUARD + word + WORD].copy_from_slice(&new.to_le_bytes());
                answer.extend_from_slice(&old.to_le_bytes());
            }
            RequestKind::AddAndRing => {
                // Two words: a doorbell that is odd becomes even, in its 32 bits.
                let bell = numbers.below(BYTES / WORD) * WORD;
                (first, second) = (numbers.below(99) as u64, self.at(bell));
                let new = old.wrapping_add(first);
                self.wanted[GUARD + word..GUARD + word + WORD].copy_from_slice(&new.to_le_bytes());
                let bell = GUARD + bell..GUARD + bell + 4;
                let value = u32::from_le_bytes(self.wanted[bell.clone()].try_into().unwrap());
                self.wanted[bell].copy_from_slice(&value.wrapping_add(value % 2).to_le_bytes());
            }
            RequestKind::Ping => first = 0,
        }
        let answered = answered || kind == RequestKind::Read;
        if answered {
            self.answers.extend(answers_with(&answer));
        }
        let at = if kind == RequestKind::Ping { 0 } else { self.at(offset) };
        let key = self.key;
        let request = TcpRequest { kind, answered, key, at, first, second };
        request.bytes().into_iter().chain(data).collect()
    }
}

/// Returns the answers to a request that was done: with these bytes, which come in parts where they
/// are many.
fn answers_with(bytes: &[u8]) -> Vec<u8> {
    let header = |status, bytes: usize| Answer::new(status, bytes as u32).bytes();
    if bytes.len() <= 4 << 10 {
        return [&header(AnswerStatus::Done, bytes.len()), bytes].concat();
    }
    let part = |part: &[u8]| [&header(AnswerStatus::Partial, part.len()), part].concat();
    let mut answers: Vec<u8> = bytes.chunks(256 << 10).flat_map(part).collect();
    answers.extend(header(AnswerStatus::Done, 0));
    answers
}

/// Sends bytes to a connection in pieces, and takes answers now and then. Returns all answers, and
/// whether the connection has ended.
fn play(exposures: &Exposures, bytes: &[u8], numbers: &mut Numbers) -> (Vec<u8>, bool) {
    let (mut here, there) = UnixStream::pair().unwrap();
    for stream in [&here, &there] {
        stream.set_nonblocking(true).unwrap();
    }
    let mut served = Served::new(there.into());
    let (mut buffer, mut answers) = (vec![0; BUFFER_BYTES], Vec::new());
    let (mut sent, mut idle, mut ended) = (0, 0, false);
    let mut take = |here: &mut UnixStream, most: usize| {
        let mut part = vec![0; most];
        let came = here.read(&mut part).unwrap_or(0);
        answers.extend_from_slice(&part[..came]);
        came > 0
    };
    while idle < 3 && !ended {
        let piece = bytes.len().min(sent + 1 + numbers.length());
        match here.write(&bytes[sent..piece]) {
            Ok(count) => sent += count,
            Err(error) => assert_eq!(error.kind(), ErrorKind::WouldBlock),
        }
        let next = served.turn(exposures, &mut buffer);
        ended = next == Next::End;
        let takes = numbers.below(4) == 0 || sent == bytes.len();
        let some = takes && take(&mut here, 1 + numbers.below(100_000));
        idle = if sent < bytes.len() || some || next == Next::Again { 0 } else { idle + 1 };
    }
    while take(&mut here, 1 << 20) {}
    (answers, ended)
}

#[test]
fn requests_are_carried_out_in_their_order_whatever_the_pieces() {
    for seed in seeds(60) {
        let (exposures, mut numbers) = (Exposures::default(), Numbers(seed * 7919));
        let mut model = Model::new(&exposures, seed);
        let count = 1 + numbers.below(200);
        let requests: Vec<u8> = (0..count).flat_map(|_| model.request(&mut numbers)).collect();
        let (answers, ended) = play(&exposures, &requests, &mut numbers);
        assert!(!ended, "seed {seed}");
        assert!(answers == model.answers, "answers of seed {seed}");
        assert!(model.bytes() == model.wanted, "memory of seed {seed}");
    }
}

#[test]
fn what_is_not_exposed_is_refused_and_not_touched() {
    let other = vec![7u64; 16];
    let elsewhere = other.as_ptr().expose_provenance() as u64;
    for seed in seeds(200) {
        let (exposures, mut numbers) = (Exposures::default(), Numbers(seed * 7919));
        let mut model = Model::new(&exposures, seed);
        let count = numbers.below(20);
        let mut requests: Vec<u8> = (0..count).flat_map(|_| model.request(&mut numbers)).collect();
        let good = TcpRequest {
            kind: [
                RequestKind::Write,
                RequestKind::Read,
                RequestKind::Add,
                RequestKind::CompareSwap,
                RequestKind::AddAndRing,
            ][numbers.below(5)],
            answered: true,
            key: model.key,
            at: model.at(0),
            first: 16,
            second: model.at(8),
        };
        let rings = good.kind == RequestKind::AddAndRing;
        let long = matches!(good.kind, RequestKind::Write | RequestKind::Read);
        let end = model.at(BYTES);
        let (wrong, status) = match numbers.below(8) {
            0 => (TcpRequest { at: elsewhere, ..good }, AnswerStatus::NotExposed),
            1 => (TcpRequest { at: model.at(0) - 8, ..good }, AnswerStatus::NotExposed),
            2 if long => (TcpRequest { at: end - 8, ..good }, AnswerStatus::NotExposed),
            3 if long => (TcpRequest { first: 1 << 30, ..good }, AnswerStatus::NotExposed),
            4 if !long => (TcpRequest { at: model.at(4), ..good }, AnswerStatus::Unaligned),
            6 if rings => (TcpRequest { second: end, ..good }, AnswerStatus::NotExposed),
            7 if rings => (TcpRequest { second: model.at(12), ..good }, AnswerStatus::Unaligned),
            5 => (TcpRequest { key: good.key ^ 1 << 20, ..good }, AnswerStatus::NotExposed),
            _ => (TcpRequest { at: end, ..good }, AnswerStatus::NotExposed),
        };
        requests.extend(wrong.bytes());
        // What comes behind it is not carried out.
        requests.extend([9; 64]);
        requests
            .extend(TcpRequest { kind: RequestKind::Write, ..good }.bytes().iter().chain(&[1; 16]));
        let (answers, _) = play(&exposures, &requests, &mut numbers);
        model.answers.extend(Answer::new(status, 0).bytes());
        assert!(answers == model.answers, "answers of seed {seed}: {wrong:?}");
        assert!(model.bytes() == model.wanted, "memory of seed {seed}: {wrong:?}");
        assert_eq!(other, [7; 16]);
    }
}

#[test]
fn bytes_that_are_no_requests_end_the_connection_at_most() {
    for seed in seeds(300) {
        let (exposures, mut numbers) = (Exposures::default(), Numbers(seed * 104_729));
        let mut model = Model::new(&exposures, seed);
        let mut bytes = model.request(&mut numbers);
        // A byte of a request is changed, or bytes of no meaning follow.
        let answers = model.answers.len();
        if numbers.below(2) == 0 {
            let at = numbers.below(bytes.len().min(32));
            bytes[at] ^= 1 << numbers.below(8);
        }
        bytes.extend((0..numbers.below(300)).map(|_| numbers.below(256) as u8));
        let (came, _) = play(&exposures, &bytes, &mut numbers);
        assert!(came.len() <= answers.max(ANSWER_BYTES) + (64 << 10) + ANSWER_BYTES);
        let now = model.bytes();
        let guards = |bytes: &[u8]| [bytes[..GUARD].to_vec(), bytes[GUARD + BYTES..].to_vec()];
        assert!(guards(&now) == guards(&model.wanted), "memory beside it, seed {seed}");
    }
}

/// Memory of the program: pages that may be used, except for a read-only one and one that is not
/// there.
struct Holes {
    base: u64,
    key: u32,
}

const PAGE: u64 = 4 << 10;
const PAGES: u64 = 160;
const READ_ONLY: u64 = 70;
const GONE: u64 = 150;

impl Holes {
    fn new(exposures: &Exposures) -> Holes {
        let (bytes, access) = ((PAGES * PAGE) as usize, libc::PROT_READ | libc::PROT_WRITE);
        let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS;
        // SAFETY: a new mapping at an address of the kernel's choice.
        let base = unsafe { libc::mmap(core::ptr::null_mut(), bytes, access, flags, -1, 0) };
        assert_ne!(base, libc::MAP_FAILED);
        let protect = |page: u64, access| {
            // SAFETY: a page of the new mapping, which nothing else uses. It stays mapped, because
            // another thread might get its address.
            let done = unsafe { libc::mprotect(base.byte_add((page * PAGE) as usize), 1, access) };
            assert_eq!(done, 0);
        };
        protect(READ_ONLY, libc::PROT_READ);
        protect(GONE, libc::PROT_NONE);
        let base = base.expose_provenance() as u64;
        let key = exposures.add(base, bytes as u64, MemoryOf::Program).unwrap();
        Holes { base, key }
    }

    /// A request for `bytes` bytes `ahead` bytes ahead of a page, with its data.
    fn request(&self, kind: RequestKind, page: u64, ahead: u64, bytes: u64) -> Vec<u8> {
        let at = self.base + page * PAGE - ahead;
        let request =
            TcpRequest { kind, answered: true, key: self.key, at, first: bytes, second: 0 };
        let data = if kind == RequestKind::Write { bytes } else { 0 };
        request.bytes().into_iter().chain((0..data).map(|_| 1)).collect()
    }
}

#[test]
fn pages_that_the_program_took_away_are_an_error_of_the_origin() {
    use RequestKind::{Add, CompareSwap, Read, Write};
    let long = 80 * PAGE;
    let refused = Answer::new(AnswerStatus::NoPermission, 0).bytes();
    let cases = [
        (Write, READ_ONLY, 0, 8),
        (Write, READ_ONLY, 8, 16),
        (Write, READ_ONLY, 100, 9000),
        (Write, READ_ONLY, 60 * PAGE, long),
        (Write, GONE, 3, 20),
        (Add, READ_ONLY, 0, 1),
        (CompareSwap, READ_ONLY, 0, 1),
        (Add, GONE, 0, 1),
        (Read, GONE, 0, 1),
        (Read, GONE, 100, 3000),
        (Read, GONE, 5000, 9000),
        (Read, GONE, 70 * PAGE, long),
        (Read, GONE, 79 * PAGE, long),
    ];
    for (kind, page, ahead, bytes) in cases {
        let exposures = Exposures::default();
        let holes = Holes::new(&exposures);
        // What comes ahead of the request is done, and what comes behind it is not.
        let mut requests = holes.request(Write, 1, 0, 8);
        requests.extend(holes.request(kind, page, ahead, bytes));
        requests.extend(holes.request(Write, 2, 0, 8));
        let mut numbers = Numbers(page * 31 + bytes);
        let (answers, _) = play(&exposures, &requests, &mut numbers);
        let what = format!("{kind:?} of {bytes} bytes, {ahead} ahead of page {page}");
        assert_eq!(answers[..ANSWER_BYTES], answers_with(&[]), "{what}");
        assert_eq!(answers[answers.len() - ANSWER_BYTES..], refused, "{what}");
        let word = |page| {
            let at = core::ptr::with_exposed_provenance::<u64>((holes.base + page * PAGE) as usize);
            // SAFETY: a word of the mapping.
            unsafe { at.read_volatile() }
        };
        assert_eq!((word(1), word(2)), (0x0101_0101_0101_0101, 0), "{what}");
    }
}

#[test]
fn memory_of_the_program_can_be_read_where_it_may_not_be_written() {
    let exposures = Exposures::default();
    let holes = Holes::new(&exposures);
    let lengths = [1, 8, 3000, 9000, 75 * PAGE];
    let requests: Vec<u8> = lengths
        .iter()
        .flat_map(|bytes| holes.request(RequestKind::Read, READ_ONLY, 1, *bytes))
        .collect();
    let (answers, ended) = play(&exposures, &requests, &mut Numbers(5));
    assert!(!ended);
    let wanted: Vec<u8> =
        lengths.iter().flat_map(|bytes| answers_with(&vec![0; *bytes as usize])).collect();
    assert!(answers == wanted);
}

/// The target's end of a connection, and the origin's stream.
fn connection() -> (Served, UnixStream) {
    let (here, there) = UnixStream::pair().unwrap();
    there.set_nonblocking(true).unwrap();
    here.set_nonblocking(true).unwrap();
    (Served::new(there.into()), here)
}

#[test]
fn a_long_put_that_arrives_after_its_window_is_freed_writes_nothing_more() {
    let (exposures, mut buffer) = (Exposures::default(), vec![0; BUFFER_BYTES]);
    let memory = vec![0u64; BYTES / WORD];
    let at = memory.as_ptr().expose_provenance() as u64;
    let key = exposures.add(at, BYTES as u64, MemoryOf::Library).unwrap();
    let (kind, first) = (RequestKind::Write, BYTES as u64);
    let request = TcpRequest { kind, answered: true, key, at, first, second: 0 };
    let (mut served, mut here) = connection();
    here.write_all(&request.bytes()).unwrap();
    for arrived in [BYTES / 4, BYTES / 2] {
        here.write_all(&[1; BYTES / 4]).unwrap();
        assert_eq!(served.turn(&exposures, &mut buffer), Next::Receive);
        assert_eq!(memory.iter().filter(|word| **word != 0).count(), arrived / WORD);
    }
    exposures.remove(key);
    here.write_all(&[1; BYTES / 2]).unwrap();
    assert_eq!(served.turn(&exposures, &mut buffer), Next::Receive);
    // SAFETY: the vector lives; its words are read as they are now.
    let words: Vec<u64> =
        memory.iter().map(|word| unsafe { core::ptr::read_volatile(word) }).collect();
    assert!(words[BYTES / 2 / WORD..].iter().all(|word| *word == 0), "nothing came later");
    let mut answer = Vec::new();
    let _ = here.read_to_end(&mut answer);
    assert_eq!(answer, Answer::new(AnswerStatus::NotExposed, 0).bytes());
}

#[test]
fn a_long_get_ends_with_an_error_if_its_window_is_freed() {
    let (exposures, mut buffer) = (Exposures::default(), vec![0; BUFFER_BYTES]);
    let bytes = 4 << 20;
    let memory = vec![7u8; bytes];
    let at = memory.as_ptr().expose_provenance() as u64;
    let key = exposures.add(at, bytes as u64, MemoryOf::Library).unwrap();
    let (kind, first) = (RequestKind::Read, bytes as u64);
    let request = TcpRequest { kind, answered: true, key, at, first, second: 0 };
    let (mut served, mut here) = connection();
    here.write_all(&request.bytes()).unwrap();
    assert_eq!(served.turn(&exposures, &mut buffer), Next::Send, "the socket is full");
    exposures.remove(key);
    drop(memory);
    let (mut answers, mut part) = (Vec::new(), vec![0; 1 << 20]);
    while let Some(count) = here.read(&mut part).ok().filter(|count| *count > 0) {
        answers.extend_from_slice(&part[..count]);
        served.turn(&exposures, &mut buffer);
    }
    assert!(answers.len() < bytes);
    let refused = Answer::new(AnswerStatus::NotExposed, 0).bytes();
    assert_eq!(answers[answers.len() - ANSWER_BYTES..], refused);
}

#[test]
fn a_thousand_connections_at_one_thread_keep_no_memory_of_their_requests() {
    const MANY: usize = 1000;
    let (exposures, mut buffer) = (Exposures::default(), vec![0; BUFFER_BYTES]);
    let memory = vec![0u64; 1024];
    let at = memory.as_ptr().expose_provenance() as u64;
    let key = exposures.add(at, 8192, MemoryOf::Library).unwrap();
    let mut all: Vec<_> = (0..MANY).map(|_| connection()).collect();
    for (served, here) in &mut all {
        let add = |second| TcpRequest {
            kind: RequestKind::Add,
            answered: true,
            key,
            at,
            first: 1,
            second,
        };
        let read = TcpRequest { kind: RequestKind::Read, first: 8192, ..add(0) };
        here.write_all(&[add(0).bytes(), read.bytes()].concat()).unwrap();
        assert_eq!(served.turn(&exposures, &mut buffer), Next::Receive);
        let mut answers = Vec::new();
        let _ = here.read_to_end(&mut answers);
        assert_eq!(answers.len(), 3 * ANSWER_BYTES + 8 + 8192);
        assert!(served.kept_bytes() <= 1 << 10, "{}", served.kept_bytes());
    }
    // SAFETY: a word of the vector, as it is now.
    assert_eq!(unsafe { core::ptr::read_volatile(memory.as_ptr()) }, MANY as u64);
}
