//! Random requests at the target's end of a connection, in pieces of any length, against a model
//! that carries them out one after the other; and bytes that no origin sends.

use std::io::{ErrorKind, Read, Write};
use std::os::unix::net::UnixStream;

use socket2::{Domain, Socket, Type};

use super::connections::Next;
use super::exposures::Exposures;
use super::frames::{
    ANSWER_BYTES, Answer, AnswerStatus, Detail, REQUEST_BYTES, RequestKind, TcpRequest,
};
use super::served::{BUFFER_BYTES, Served};
use super::served_model::{BYTES, GUARD, Model, RandomNumbers, WORD, answer_with, blank};
use crate::datatype::basic::Basic;
use crate::datatype::reduce::Op;
use crate::reduction::Reduction;
use crate::request::MemoryOf;
use crate::sys::page_bytes;

/// The seeds of a test: `count`, or FOMPI_SEEDS if that is more.
fn seeds(count: u64) -> core::ops::RangeInclusive<u64> {
    let wanted = std::env::var("FOMPI_SEEDS").ok().and_then(|text| text.parse().ok());
    1..=wanted.unwrap_or(0).max(count)
}

/// Puts the bytes of partial answers together: where an answer is cut depends on the pieces in
/// which operands arrive.
fn merged(mut bytes: &[u8]) -> Vec<u8> {
    let (mut all, mut parts) = (Vec::new(), Vec::new());
    while let Some((header, rest)) = bytes.split_first_chunk::<ANSWER_BYTES>() {
        let Answer { status, bytes: count } = Answer::from(*header);
        let data;
        (data, bytes) = rest.split_at((count as usize).min(rest.len()));
        parts.extend_from_slice(data);
        if status == AnswerStatus::Done as u32 {
            all.extend(answer_with(&core::mem::take(&mut parts)));
        } else if status != AnswerStatus::Partial as u32 {
            all.extend(core::mem::take(&mut parts).iter().chain(header));
        }
    }
    all
}

/// Sends bytes to a connection in pieces, and takes answers now and then. Returns all answers, put
/// together, and whether the connection has ended.
fn play(exposures: &Exposures, bytes: &[u8], numbers: &mut RandomNumbers) -> (Vec<u8>, bool) {
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
    // A turn that waits for a lock is to be served again, without an end.
    while idle < 96 && !ended {
        let piece = bytes.len().min(sent + 1 + numbers.length());
        match here.write(&bytes[sent..piece]) {
            Ok(count) => sent += count,
            Err(error) => assert_eq!(error.kind(), ErrorKind::WouldBlock),
        }
        let next = served.turn(exposures, &mut buffer);
        ended = next == Next::End;
        let takes = numbers.below(4) == 0 || sent == bytes.len();
        let some = takes && take(&mut here, 1 + numbers.below(100_000));
        let passed = if next == Next::Again || next == Next::AwaitLock { 1 } else { 32 };
        idle = if sent < bytes.len() || some { 0 } else { idle + passed };
    }
    while take(&mut here, 1 << 20) {}
    (merged(&answers), ended)
}

#[test]
fn requests_are_carried_out_in_their_order_whatever_the_pieces() {
    for seed in seeds(60) {
        let (exposures, mut numbers) = (Exposures::default(), RandomNumbers(seed * 7919));
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
        let (exposures, mut numbers) = (Exposures::default(), RandomNumbers(seed * 7919));
        let mut model = Model::new(&exposures, seed);
        let count = numbers.below(20);
        let mut requests: Vec<u8> = (0..count).flat_map(|_| model.request(&mut numbers)).collect();
        let sum = Detail::Reduction(Reduction::new(Op::Sum, Basic::F64).unwrap());
        let (kind, detail) = [
            (RequestKind::Write, Detail::Nothing),
            (RequestKind::Read, Detail::Nothing),
            (RequestKind::Add, Detail::Nothing),
            (RequestKind::CompareSwap, Detail::Width(8)),
            (RequestKind::AddAndRing, Detail::Nothing),
            (RequestKind::Accumulate, sum),
            (RequestKind::FetchAccumulate, sum),
        ][numbers.below(7)];
        let rings = kind == RequestKind::AddAndRing;
        let second = if rings { model.at(8) } else { 0 };
        let (key, at) = (model.key, model.at(0));
        let good = TcpRequest { answered: true, detail, key, at, first: 16, second, ..blank(kind) };
        let words = !matches!(kind, RequestKind::Write | RequestKind::Read);
        let long = !words || detail == sum;
        let end = model.at(BYTES);
        let (wrong, status) = match numbers.below(8) {
            0 => (TcpRequest { at: elsewhere, ..good }, AnswerStatus::NotExposed),
            1 => (TcpRequest { at: model.at(0) - 8, ..good }, AnswerStatus::NotExposed),
            2 if long => (TcpRequest { at: end - 8, ..good }, AnswerStatus::NotExposed),
            3 if long => (TcpRequest { first: 1 << 30, ..good }, AnswerStatus::NotExposed),
            4 if words => (TcpRequest { at: model.at(4), ..good }, AnswerStatus::Unaligned),
            6 if rings => (TcpRequest { second: end, ..good }, AnswerStatus::NotExposed),
            7 if rings => (TcpRequest { second: model.at(12), ..good }, AnswerStatus::Unaligned),
            5 => (TcpRequest { key: good.key ^ 1 << 20, ..good }, AnswerStatus::NotExposed),
            _ => (TcpRequest { at: end, ..good }, AnswerStatus::NotExposed),
        };
        requests.extend(wrong.bytes());
        // What comes behind it is not carried out.
        requests.extend([9; 64]);
        requests.extend(TcpRequest { key, at, first: 16, ..blank(RequestKind::Write) }.bytes());
        requests.extend([1; 16]);
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
        let (exposures, mut numbers) = (Exposures::default(), RandomNumbers(seed * 104_729));
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
        assert!(guards(&now) == guards(&model.wanted), "memory around it, seed {seed}");
    }
}

/// Memory of the program: pages that may be used, except for a read-only one and one that is not
/// there.
struct Holes {
    base: u64,
    key: u32,
}

const PAGES: u64 = 160;
const READ_ONLY: u64 = 70;
const GONE: u64 = 150;

impl Holes {
    fn new(exposures: &Exposures) -> Holes {
        let (bytes, access) = ((PAGES * page_bytes()) as usize, libc::PROT_READ | libc::PROT_WRITE);
        let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS;
        // SAFETY: a new mapping at an address of the kernel's choice.
        let base = unsafe { libc::mmap(core::ptr::null_mut(), bytes, access, flags, -1, 0) };
        assert_ne!(base, libc::MAP_FAILED);
        let protect = |page: u64, access| {
            // SAFETY: a page of the new mapping, which nothing else uses. It stays mapped, because
            // another thread might get its address.
            let done =
                unsafe { libc::mprotect(base.byte_add((page * page_bytes()) as usize), 1, access) };
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
        self.request_that(true, kind, page, ahead, bytes)
    }

    /// Makes such a request; `answered`: whether the origin wants an answer.
    fn request_that(
        &self,
        answered: bool,
        kind: RequestKind,
        page: u64,
        ahead: u64,
        bytes: u64,
    ) -> Vec<u8> {
        let at = self.base + page * page_bytes() - ahead;
        let detail = match kind {
            RequestKind::CompareSwap => Detail::Width(8),
            RequestKind::Accumulate | RequestKind::FetchAccumulate => {
                Detail::Reduction(Reduction::new(Op::Bor, Basic::Byte).unwrap())
            }
            _ => Detail::Nothing,
        };
        let (key, first) = (self.key, bytes);
        let request = TcpRequest { answered, detail, key, at, first, ..blank(kind) };
        let data = request.data_bytes();
        request.bytes().into_iter().chain((0..data).map(|_| 1)).collect()
    }
}

#[test]
fn pages_that_the_program_took_away_are_an_error_of_the_origin() {
    use RequestKind::{Accumulate, Add, CompareSwap, FetchAccumulate, Read, Write};
    let long = 80 * page_bytes();
    let cases = [
        (Write, READ_ONLY, 0, 8),
        (Write, READ_ONLY, 8, 16),
        (Write, READ_ONLY, 100, 9000),
        (Write, READ_ONLY, 60 * page_bytes(), long),
        (Write, GONE, 3, 20),
        (Add, READ_ONLY, 0, 1),
        (CompareSwap, READ_ONLY, 0, 1),
        (Add, GONE, 0, 1),
        (Accumulate, READ_ONLY, 0, 1),
        (Accumulate, GONE, 5000, 9000),
        (Accumulate, READ_ONLY, 60 * page_bytes(), long),
        (FetchAccumulate, READ_ONLY, 60 * page_bytes(), long),
        (FetchAccumulate, GONE, 8, 16),
        (Read, GONE, 0, 1),
        (Read, GONE, 100, 3000),
        (Read, GONE, 5000, 9000),
        (Read, GONE, 70 * page_bytes(), long),
        (Read, GONE, 79 * page_bytes(), long),
    ];
    for (kind, page, ahead, bytes) in cases {
        for answered in [true, false] {
            let has_answer = answered || matches!(kind, FetchAccumulate | Read);
            let refused = if has_answer {
                AnswerStatus::NoPermission
            } else {
                AnswerStatus::NoPermissionBefore
            };
            let exposures = Exposures::default();
            let holes = Holes::new(&exposures);
            // What comes ahead of the request is done, and what comes behind it, too.
            let mut requests = holes.request(Write, 1, 0, 8);
            requests.extend(holes.request_that(has_answer, kind, page, ahead, bytes));
            requests.extend(holes.request(Write, 2, 0, 8));
            let mut numbers = RandomNumbers(page * 31 + bytes);
            let (answers, ended) = play(&exposures, &requests, &mut numbers);
            let what = format!("{kind:?} of {bytes} bytes, {ahead} ahead of page {page}");
            assert!(!ended, "{what}");
            assert_eq!(answers[..ANSWER_BYTES], answer_with(&[]), "{what}");
            let last = [Answer::new(refused, 0), Answer::new(AnswerStatus::Done, 0)];
            assert!(answers.ends_with(&last.map(|answer| answer.bytes()).concat()), "{what}");
            let word = |page| {
                let at = (holes.base + page * page_bytes()) as usize;
                let at = core::ptr::with_exposed_provenance::<u64>(at);
                // SAFETY: a word of the mapping.
                unsafe { at.read_volatile() }
            };
            assert_eq!([word(1), word(2)], [0x0101_0101_0101_0101; 2], "{what}");
        }
    }
}

#[test]
fn what_a_lock_guards_is_skipped_if_the_lock_is_on_a_page_that_is_gone() {
    let exposures = Exposures::default();
    let holes = Holes::new(&exposures);
    let (key, word, gone) = (holes.key, holes.base, holes.base + GONE * page_bytes());
    let swap = TcpRequest {
        answered: true,
        detail: Detail::Width(8),
        key,
        second: 1,
        ..blank(RequestKind::CompareSwap)
    };
    let add = TcpRequest {
        answered: true,
        guarded: true,
        key,
        at: word,
        first: 1,
        ..blank(RequestKind::Add)
    };
    // The first one changes its word, and the second one does not.
    let swaps = [TcpRequest { at: word, ..swap }, TcpRequest { at: gone, ..swap }];
    let requests = [swaps[0], swaps[1], add].map(|request| request.bytes()).concat();
    let (answers, _) = play(&exposures, &requests, &mut RandomNumbers(3));
    let refused = [AnswerStatus::NoPermission, AnswerStatus::Skipped];
    let refused = refused.map(|status| Answer::new(status, 0).bytes()).concat();
    assert_eq!(answers, [answer_with(&[0; 8]), refused].concat());
}

#[test]
fn memory_of_the_program_can_be_read_where_it_may_not_be_written() {
    let exposures = Exposures::default();
    let holes = Holes::new(&exposures);
    let lengths = [1, 8, 3000, 9000, 75 * page_bytes()];
    let requests: Vec<u8> = lengths
        .iter()
        .flat_map(|bytes| holes.request(RequestKind::Read, READ_ONLY, 1, *bytes))
        .collect();
    let (answers, ended) = play(&exposures, &requests, &mut RandomNumbers(5));
    assert!(!ended);
    let wanted: Vec<u8> =
        lengths.iter().flat_map(|bytes| answer_with(&vec![0; *bytes as usize])).collect();
    assert!(answers == wanted);
}

/// The target's end of a connection, and the origin's stream.
pub fn connection() -> (Served, UnixStream) {
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
    let request = TcpRequest { answered: true, key, at, first, ..blank(kind) };
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
fn a_page_in_the_middle_of_a_long_put_is_reported_though_nothing_more_arrives() {
    let (exposures, mut buffer) = (Exposures::default(), vec![0; BUFFER_BYTES]);
    let holes = Holes::new(&exposures);
    let (mut served, mut here) = connection();
    let request = holes.request(RequestKind::Write, GONE, 4 * page_bytes(), 8 * page_bytes());
    // Three calls: the system receives the bytes of each as a whole, or none of them.
    let (head, data) = request.split_at(REQUEST_BYTES);
    let (before, behind) = data.split_at(4 * page_bytes() as usize);
    here.write_all(head).unwrap();
    assert_eq!(served.turn(&exposures, &mut buffer), Next::Receive);
    here.write_all(before).unwrap();
    here.write_all(behind).unwrap();
    while served.turn(&exposures, &mut buffer) == Next::Again {}
    let mut answer = Vec::new();
    let _ = here.read_to_end(&mut answer);
    assert_eq!(answer, Answer::new(AnswerStatus::NoPermission, 0).bytes());
}

#[test]
fn a_long_get_ends_with_an_error_if_its_window_is_freed() {
    let (exposures, mut buffer) = (Exposures::default(), vec![0; BUFFER_BYTES]);
    let bytes = 4 << 20;
    let memory = vec![7u8; bytes];
    let at = memory.as_ptr().expose_provenance() as u64;
    let key = exposures.add(at, bytes as u64, MemoryOf::Library).unwrap();
    let (kind, first) = (RequestKind::Read, bytes as u64);
    let request = TcpRequest { answered: true, key, at, first, ..blank(kind) };
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
fn connections_at_one_thread_keep_no_memory_of_their_requests() {
    // Each takes two descriptors; an ordinary user has 1,024.
    const MANY: usize = 100;
    let (exposures, mut buffer) = (Exposures::default(), vec![0; BUFFER_BYTES]);
    let memory = vec![0u64; 1024];
    let at = memory.as_ptr().expose_provenance() as u64;
    let key = exposures.add(at, 8192, MemoryOf::Library).unwrap();
    let mut all: Vec<_> = (0..MANY).map(|_| connection()).collect();
    for (served, here) in &mut all {
        let add = TcpRequest { answered: true, key, at, first: 1, ..blank(RequestKind::Add) };
        let read = TcpRequest { kind: RequestKind::Read, first: 8192, ..add };
        here.write_all(&[add.bytes(), read.bytes()].concat()).unwrap();
        assert_eq!(served.turn(&exposures, &mut buffer), Next::Receive);
        let mut answers = Vec::new();
        let _ = here.read_to_end(&mut answers);
        assert_eq!(answers.len(), 3 * ANSWER_BYTES + 8 + 8192);
        assert!(served.kept_bytes() <= 1 << 10, "{}", served.kept_bytes());
    }
    // SAFETY: a word of the vector, as it is now.
    assert_eq!(unsafe { core::ptr::read_volatile(memory.as_ptr()) }, MANY as u64);
}

#[test]
fn answers_ahead_of_an_accumulate_whose_operands_arrive_leave_with_its_own() {
    let (exposures, mut buffer) = (Exposures::default(), vec![0; BUFFER_BYTES]);
    let model = Model::new(&exposures, 5);
    let (key, at, first) = (model.key, model.at(0), 40 << 10);
    let detail = Detail::Reduction(Reduction::new(Op::Replace, Basic::F64).unwrap());
    let add = TcpRequest { answered: true, key, at, first: 0, ..blank(RequestKind::Add) };
    let sum = TcpRequest { answered: true, detail, first, ..add };
    let sum = TcpRequest { kind: RequestKind::Accumulate, ..sum };
    let requests = [&add.bytes()[..], &sum.bytes(), &[1; 40 << 10], &add.bytes()].concat();
    // Packets, so that the calls that send answers can be counted.
    let kind = Type::SEQPACKET.nonblocking();
    let (here, there) = Socket::pair(Domain::UNIX, kind, None).unwrap();
    let (received_at_once, rest) = requests.split_at(BUFFER_BYTES);
    for packet in [received_at_once, rest] {
        (&here).write_all(packet).unwrap();
    }
    let mut served = Served::new(there.into());
    assert_eq!(served.turn(&exposures, &mut buffer), Next::Receive);
    let mut answers = [0; 1024];
    let word = ANSWER_BYTES + WORD;
    assert_eq!((&here).read(&mut answers).unwrap(), word + ANSWER_BYTES + word);
}

#[test]
fn memory_that_is_given_back_is_not_changed_any_more() {
    for kind in [RequestKind::Accumulate, RequestKind::FetchAccumulate] {
        let exposures = Exposures::default();
        let mut model = Model::new(&exposures, 5);
        let detail = Detail::Reduction(Reduction::new(Op::Replace, Basic::F64).unwrap());
        let (key, at, first) = (model.key, model.at(0), BYTES as u64);
        let request = TcpRequest { answered: true, detail, key, at, first, ..blank(kind) };
        let ((mut served, mut here), mut buffer) = (connection(), vec![0; BUFFER_BYTES]);
        here.write_all(&request.bytes()).unwrap();
        here.write_all(&[7; BYTES / 4]).unwrap();
        while served.turn(&exposures, &mut buffer) == Next::Again {}
        model.wanted[GUARD..GUARD + BYTES / 4].fill(7);
        assert!(model.bytes() == model.wanted, "{kind:?}: the first part is there");
        exposures.remove(key);
        here.write_all(&[8; BYTES / 4]).unwrap();
        while served.turn(&exposures, &mut buffer) == Next::Again {}
        assert!(model.bytes() == model.wanted, "{kind:?}: the second part is not");
        let mut answers = Vec::new();
        let _ = here.read_to_end(&mut answers);
        let refused = Answer::new(AnswerStatus::NotExposed, 0).bytes();
        assert!(answers.ends_with(&refused), "{kind:?}");
    }
}
