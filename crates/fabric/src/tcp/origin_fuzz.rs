//! Made-up answers at the origin's end of a connection, against a model. The answers to requests
//! that a target has carried out are in other tests.

use std::collections::VecDeque;
use std::io::{Read, Write};
use std::os::unix::net::UnixStream;
use std::sync::{Arc, OnceLock};

use super::exposures::Exposures;
use super::frames::{ANSWER_BYTES, Answer, AnswerStatus};
use super::origin_end::TcpLink;
use super::service_thread::ServiceThread;
use crate::remote::Remote;
use crate::request::{Local, Order, Work};
use fompi_testkit::Choices;

/// Bytes of the results of all requests, and of the memory on either side, which must not change.
const BYTES: usize = 4 << 10;
const GUARD: usize = 256;

/// A request whose answer has not come, in the model.
struct Asked {
    number: u64,
    /// the place for its result
    at: usize,
    bytes: usize,
    guarded: bool,
}

/// What the origin should have found.
struct Plain {
    asked: VecDeque<Asked>,
    memory: Vec<u8>,
    done: u64,
    is_refused: bool,
    failed: bool,
}

impl Plain {
    /// Takes the next answer. Returns how many bytes it has, or `None` after the last one.
    fn step(&mut self, bytes: &[u8]) -> Option<usize> {
        let first = self.asked.front_mut()?; // nothing is received without it
        let (header, data) = bytes.split_first_chunk::<ANSWER_BYTES>()?;
        let answer = Answer::from(*header);
        let count = answer.bytes as usize;
        let is = |status: AnswerStatus| answer.status == status as u32;
        if is(AnswerStatus::NoPermissionBefore) && count == 0 {
            self.is_refused = true;
            return Some(ANSWER_BYTES);
        }
        let partial = is(AnswerStatus::Partial) && (1..=first.bytes).contains(&count);
        let done = is(AnswerStatus::Done) && count == first.bytes
            || is(AnswerStatus::Skipped) && count == 0 && first.guarded;
        let no_permission = is(AnswerStatus::NoPermission) && count == 0;
        if !partial && !done && !no_permission {
            self.failed = true;
            return None;
        }
        let came = count.min(data.len());
        self.memory[first.at..first.at + came].copy_from_slice(&data[..came]);
        if came < count {
            return None;
        }
        self.is_refused |= no_permission;
        if partial {
            (first.at, first.bytes) = (first.at + count, first.bytes - count);
        } else {
            self.done = first.number;
            self.asked.pop_front();
        }
        Some(ANSWER_BYTES + count)
    }
}

/// Posts the request that some bytes choose, if there is room for its result.
fn post(link: &mut TcpLink, plain: &mut Plain, base: u64, used: &mut usize, choices: &mut Choices) {
    let (kind, bytes) = (choices.below(7), usize::from(choices.byte()));
    let (guarded, signaled) = (kind == 5, kind != 4);
    let (work, bytes) = match kind {
        0 | 1 => (Work::Read, bytes),
        2 => (Work::CompareSwap { expect: 1, new: 2 }, 8),
        3 => (Work::CompareSwapNarrow { width: 2, expect: 1, new: 2 }, 2),
        4 | 5 => (Work::Add(1), 8),
        _ => (Work::Ping, 0),
    };
    if *used + bytes > BYTES {
        return;
    }
    let at = GUARD + *used;
    *used += bytes;
    let number = plain.done + plain.asked.len() as u64 + 1;
    let local = Local { at: base + at as u64, bytes: bytes as u32, key: 0 };
    let order = Order::new(work, Remote::default(), local, signaled);
    // SAFETY: the memory lives longer than the link.
    unsafe { link.post(&[Order { number, guarded, ..order }]) };
    plain.asked.push_back(Asked { number, at, bytes, guarded });
}

/// The target `tcp_answers`: the first byte is the length of the pieces, the second one the number
/// of requests, of two bytes each; the others are the stream of answers.
pub fn tcp_answers(data: &[u8]) {
    static THREAD: OnceLock<Arc<ServiceThread>> = OnceLock::new();
    let start = || ServiceThread::start(&Arc::new(Exposures::default())).unwrap().into();
    let thread = THREAD.get_or_init(start);
    let mut choices = Choices::of(data);
    let (piece, requests) = (1 + usize::from(choices.byte()), choices.below(32));
    let mut memory = vec![7u8; BYTES + 2 * GUARD];
    let base = memory.as_mut_ptr().expose_provenance() as u64;
    let mut plain = Plain {
        asked: VecDeque::new(),
        memory: memory.clone(),
        done: 0,
        is_refused: false,
        failed: false,
    };
    let (here, mut there) = UnixStream::pair().unwrap();
    for stream in [&here, &there] {
        stream.set_nonblocking(true).unwrap();
    }
    let mut link = TcpLink::new(thread.sender(here.into()).unwrap());
    let mut used = 0;
    for _ in 0..requests {
        post(&mut link, &mut plain, base, &mut used, &mut choices);
    }
    let answers = choices.rest();
    let (mut done, mut failed) = (0, false);
    let mut poll = |link: &mut TcpLink| match link.poll() {
        Ok(Some(number)) => {
            assert!(number > done, "requests are done in their order");
            done = number;
        }
        Ok(None) => {}
        Err(_) => failed = true,
    };
    for part in answers.chunks(piece) {
        // There is no room if nothing is received: nothing is expected, or the link has failed.
        if there.write(part).is_err() {
            break;
        }
        poll(&mut link);
        let _ = there.read(&mut [0; 4096]); // the requests
    }
    // A poll that sends does not receive, and one that receives may leave some behind.
    (0..4).for_each(|_| poll(&mut link));
    let mut taken = 0;
    while let Some(bytes) = plain.step(&answers[taken..]) {
        taken += bytes;
    }
    assert_eq!(done, plain.done);
    // What follows the last answer is not received, unless it arrived together with it.
    if !plain.asked.is_empty() || taken == answers.len() {
        assert_eq!((failed, link.is_refused), (plain.failed, plain.is_refused));
    }
    drop(link);
    // SAFETY: the memory, which nothing writes any more.
    let now: Vec<u8> =
        (0..memory.len()).map(|at| unsafe { memory.as_ptr().add(at).read() }).collect();
    assert!(now == plain.memory, "results");
}

#[cfg(test)]
#[test]
fn the_kept_streams_of_answers_are_taken_as_in_the_model() {
    fompi_testkit::replay("tcp_answers", tcp_answers);
}
