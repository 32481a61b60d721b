//! An origin and a target with a proxy between them, which passes bytes one by one, closes the
//! streams after any number of bytes, or closes one direction only; and targets that answer what no
//! request asked for.

use std::io::{Read, Write};
use std::net::Shutdown;
use std::os::unix::net::UnixStream;
use std::time::{Duration, Instant};

use super::frames::{ANSWER_BYTES, Answer, AnswerStatus, REQUEST_BYTES};
use super::origin_end::TcpLink;
use super::tcp_device::TcpDevice;
use crate::remote::Remote;
use crate::request::{Broken, Local, MemoryOf, Order, Work};

/// Time after which a test gives up.
const WATCHDOG: Duration = Duration::from_secs(60);

/// What the proxy does with one direction.
#[derive(Clone, Copy)]
struct Passing {
    /// bytes that are passed at once
    piece: usize,
    /// number of bytes after which it stops
    bytes: usize,
    /// whether it then closes both directions, or only the sending side of this one
    closes_both: bool,
}

const ALL: Passing = Passing { piece: 4096, bytes: usize::MAX, closes_both: false };

fn pass(mut from: UnixStream, mut to: UnixStream, how: Passing) {
    let (mut buffer, mut passed) = (vec![0; how.piece], 0);
    while passed < how.bytes {
        let most = how.piece.min(how.bytes - passed);
        match from.read(&mut buffer[..most]) {
            Ok(0) | Err(_) => break,
            Ok(count) if to.write_all(&buffer[..count]).is_err() => break,
            Ok(count) => passed += count,
        }
    }
    if how.closes_both {
        let _ = from.shutdown(Shutdown::Both);
        let _ = to.shutdown(Shutdown::Both);
    } else {
        let _ = to.shutdown(Shutdown::Write);
    }
}

/// Bytes of the put in the middle of the exchange, and of the answers to it and to what is around
/// it, by their requests.
const PUT: usize = 100;
const ANSWERS: [(u64, usize); 3] =
    [(2, ANSWER_BYTES + 8), (3, ANSWER_BYTES), (5, ANSWER_BYTES + 16)];
/// The ends of the five requests in the stream.
const REQUESTS: [usize; 5] = {
    let [first, second] = [REQUEST_BYTES + 8, 2 * REQUEST_BYTES + 8];
    let third = second + REQUEST_BYTES + PUT;
    [first, second, third, third + REQUEST_BYTES + 8, third + 2 * REQUEST_BYTES + 8]
};

/// Memory of the target that the exchange uses, and of the origin.
struct Exchange {
    there: Box<[u64; 20]>,
    here: Box<[u64; 20]>,
}

impl Exchange {
    fn new() -> Exchange {
        let mut here = Box::new([0; 20]);
        here[0] = 77;
        here[4..17].fill(5);
        Exchange { there: Box::new([0; 20]), here }
    }

    /// A word that is put, an addition, a put of many bytes, a word behind it, and a get of two
    /// words. The first request and the fourth are not answered.
    fn orders(&mut self, key: u32) -> [Order; 5] {
        let here = self.here.as_mut_ptr().expose_provenance() as u64;
        let there = self.there.as_mut_ptr().expose_provenance() as u64;
        let order = |number, work, to: u64, from: u64, bytes, signaled| {
            let to = Remote { at: there + 8 * to, key: key.into() };
            let from = Local { at: here + 8 * from, bytes, key: 0 };
            Order { number, ..Order::new(work, to, from, signaled) }
        };
        [
            order(1, Work::WriteInline, 0, 0, 8, false),
            order(2, Work::Add(3), 1, 1, 8, true),
            order(3, Work::Write, 2, 4, PUT as u32, true),
            order(4, Work::WriteInline, 19, 0, 8, false),
            order(5, Work::Read, 0, 2, 16, true),
        ]
    }

    /// Plays the exchange through a proxy. Returns the number of the last request that is known to
    /// be done, and why the connection cannot be used any more, if that is so.
    fn play(&mut self, to_target: Passing, to_origin: Passing) -> (u64, Option<String>) {
        let (origin, target) = (TcpDevice::open(), TcpDevice::open());
        let at = self.there.as_mut_ptr().expose_provenance() as u64;
        let key = target.expose(at, 160, MemoryOf::Library).unwrap();
        let (ours, near) = UnixStream::pair().unwrap();
        let (far, theirs) = UnixStream::pair().unwrap();
        let copies = (near.try_clone().unwrap(), far.try_clone().unwrap());
        target.accept().unwrap();
        target.adopt(theirs.into());
        let mut link = origin.begin().unwrap().connect(ours.into()).unwrap();
        std::thread::scope(|scope| {
            scope.spawn(|| pass(near, far, to_target));
            scope.spawn(|| pass(copies.1, copies.0, to_origin));
            // SAFETY: the memory lives until the link is dropped.
            unsafe { link.post(&self.orders(key)) };
            let end = wait(&mut link, 5);
            drop(link);
            // What the target has received is carried out when it has been closed.
            let began = Instant::now();
            while target.accepted() > 0 {
                assert!(began.elapsed() < WATCHDOG);
                std::thread::yield_now();
            }
            end
        })
    }
}

/// Waits until request `last` is done or the connection has ended.
fn wait(link: &mut TcpLink, last: u64) -> (u64, Option<String>) {
    let (mut done, began) = (0, Instant::now());
    while done < last {
        match link.poll() {
            Ok(Some(number)) => done = number,
            Ok(None) => super::wait(&link.stream().clone(), Duration::from_millis(10)),
            Err(Broken::Request(why)) => return (done, Some(why)),
            Err(other) => panic!("{other}"),
        }
        assert!(began.elapsed() < WATCHDOG, "neither done nor lost");
    }
    (done, None)
}

fn is_cause(why: &Option<String>) -> bool {
    let known = ["it has closed the connection", "it has reset the connection"];
    why.as_ref().is_some_and(|why| known.contains(&why.as_str()))
}

#[test]
fn bytes_may_come_one_by_one() {
    let mut exchange = Exchange::new();
    let one = Passing { piece: 1, ..ALL };
    assert_eq!(exchange.play(one, one), (5, None));
    assert_eq!((exchange.there[0], exchange.there[1], exchange.there[19]), (77, 3, 77));
    assert_eq!(exchange.there[2..14], [5; 12]);
    assert_eq!(exchange.here[1..4], [0, 77, 3]);
}

#[test]
fn a_link_that_is_cut_anywhere_ends_with_its_cause_and_nothing_before_is_lost() {
    for bytes in 0..REQUESTS[4] {
        for closes_both in [false, true] {
            let mut exchange = Exchange::new();
            let (done, why) = exchange.play(Passing { bytes, closes_both, ..ALL }, ALL);
            assert!(is_cause(&why), "{why:?} after {bytes} bytes");
            let whole = REQUESTS.iter().filter(|end| **end <= bytes).count() as u64;
            let answered = ANSWERS.iter().filter(|(number, _)| *number <= whole);
            let answered = answered.map(|(number, _)| *number).max().unwrap_or(0);
            assert!(done <= answered, "{done} after {bytes} bytes");
            assert!(closes_both || done == answered, "{done} after {bytes} bytes");
            let there = [exchange.there[0], exchange.there[1], exchange.there[19]];
            let wanted = [77 * u64::from(whole >= 1), 3 * u64::from(whole >= 2), 77 * (whole / 4)];
            assert_eq!(there, wanted, "after {bytes} bytes");
        }
    }
}

#[test]
fn answers_that_are_cut_anywhere_end_with_their_cause_and_nothing_before_is_lost() {
    let all = ANSWERS.iter().map(|(_, bytes)| bytes).sum();
    for (bytes, closes_both) in (0..all).flat_map(|bytes| [(bytes, false), (bytes, true)]) {
        let (done, why) = Exchange::new().play(ALL, Passing { bytes, closes_both, ..ALL });
        assert!(is_cause(&why), "{why:?} after {bytes} bytes");
        let (mut end, mut known) = (0, 0);
        for (number, length) in ANSWERS {
            end += length;
            known = if end <= bytes { number } else { known };
        }
        assert_eq!(done, known, "after {bytes} bytes");
    }
}

#[test]
fn a_target_that_answers_what_no_request_asked_for_is_lost_and_writes_nothing_else() {
    let partial = AnswerStatus::Partial;
    let lies: [(&[(AnswerStatus, u32)], &str); 7] = [
        (&[(AnswerStatus::Done, 7)], "invalid answer"),
        (&[(AnswerStatus::Done, 9)], "invalid answer"),
        (&[(partial, 9)], "invalid answer"),
        (&[(partial, 0)], "invalid answer"),
        (&[(partial, u32::MAX)], "invalid answer"),
        (&[(AnswerStatus::Done, 8), (AnswerStatus::Done, 8)], "invalid answer"),
        (&[(AnswerStatus::NotExposed, 0)], "remote access error"),
    ];
    for (answers, cause) in lies {
        let (ours, mut theirs) = UnixStream::pair().unwrap();
        let mut exchange = Exchange::new();
        let device = TcpDevice::open();
        let mut link = device.begin().unwrap().connect(ours.into()).unwrap();
        // SAFETY: the memory lives until the link is dropped.
        unsafe { link.post(&exchange.orders(0)[1..2]) };
        for (status, bytes) in answers {
            theirs.write_all(&Answer::new(*status, *bytes).bytes()).unwrap();
            theirs.write_all(&[9; 16][..(*bytes).min(8) as usize]).unwrap();
        }
        let (_, why) = wait(&mut link, 6);
        assert!(why.as_ref().is_some_and(|why| why.contains(cause)), "{answers:?}: {why:?}");
        drop(link);
        assert_eq!(exchange.here[2..4], [0; 2], "{answers:?}");
    }
}

#[test]
fn a_refusal_is_the_cause_though_nothing_can_be_sent_any_more() {
    let (ours, mut theirs) = UnixStream::pair().unwrap();
    let mut exchange = Exchange::new();
    let device = TcpDevice::open();
    let mut link = device.begin().unwrap().connect(ours.into()).unwrap();
    let orders = exchange.orders(0);
    // SAFETY: the memory lives until the link is dropped.
    unsafe { link.post(&orders[1..2]) };
    theirs.read_exact(&mut [0; REQUEST_BYTES]).unwrap();
    theirs.write_all(&Answer::new(AnswerStatus::NotExposed, 0).bytes()).unwrap();
    drop(theirs);
    // SAFETY: the memory lives until the link is dropped.
    unsafe { link.post(&orders[2..]) };
    assert_eq!(wait(&mut link, 5), (0, Some(String::from("remote access error"))));
}

#[test]
fn programs_that_are_executed_inherit_no_descriptor_of_a_device() {
    let (origin, target) = (TcpDevice::open(), TcpDevice::open());
    let (ours, theirs) = UnixStream::pair().unwrap();
    target.accept().unwrap();
    target.adopt(theirs.into());
    let link = origin.begin().unwrap().connect(ours.into()).unwrap();
    let kinds =
        ["socket:", "anon_inode:[eventpoll]", "anon_inode:[eventfd]", "anon_inode:[timerfd]"];
    let mut found = [0; 4];
    for entry in std::fs::read_dir("/proc/self/fd").unwrap() {
        let path = entry.unwrap().path();
        let what = std::fs::read_link(&path).unwrap_or_default();
        let what = what.to_string_lossy();
        let Some(kind) = kinds.iter().position(|kind| what.starts_with(kind)) else { continue };
        let number: i32 = path.file_name().unwrap().to_str().unwrap().parse().unwrap();
        // SAFETY: a plain question; another test may have closed it.
        let flags = unsafe { libc::fcntl(number, libc::F_GETFD) };
        assert!(flags < 0 || number < 3 || flags & libc::FD_CLOEXEC != 0, "{number}: {what}");
        found[kind] += 1;
    }
    assert!(found.iter().all(|count| *count > 1), "{found:?}");
    drop(link);
}
