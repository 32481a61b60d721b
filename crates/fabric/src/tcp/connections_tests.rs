//! Who serves the connections of a process: the service thread, or a rank that waits.

use std::io::Write;
use std::net::{Shutdown, TcpListener, TcpStream};
use std::os::fd::{AsRawFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::time::{Duration, Instant};

use super::frames::{Detail, RequestKind, TcpRequest};
use super::origin_end::TcpLink;
use super::tcp_device::TcpDevice;
use crate::remote::Remote;
use crate::request::{Local, MemoryOf, Order, Work};

/// Time after which a test gives up.
const WATCHDOG: Duration = Duration::from_secs(60);
const WORDS: usize = 1000;

/// An origin and a target in one process, with memory of the target.
struct Pair {
    link: TcpLink,
    target: TcpDevice,
    _origin: TcpDevice,
    there: Box<[u64]>,
    here: Box<[u64]>,
    key: u32,
    number: u64,
}

impl Pair {
    fn new() -> Pair {
        let (ours, theirs) = UnixStream::pair().unwrap();
        Pair::over(ours.into(), theirs.into())
    }

    fn over(ours: OwnedFd, theirs: OwnedFd) -> Pair {
        let (origin, target) = (TcpDevice::open(), TcpDevice::open());
        let mut there = vec![0; WORDS].into_boxed_slice();
        let at = there.as_mut_ptr().expose_provenance() as u64;
        let key = target.expose(at, 8 * WORDS as u64, MemoryOf::Library).unwrap();
        target.accept().unwrap();
        target.adopt(theirs);
        let link = origin.begin().unwrap().connect(ours).unwrap();
        let here = (1..=WORDS as u64).collect();
        Pair { link, target, _origin: origin, there, here, key, number: 0 }
    }

    /// Posts a request about the first words.
    fn post(&mut self, work: Work, words: usize, signaled: bool) {
        self.number += 1;
        let there = self.there.as_mut_ptr().expose_provenance() as u64;
        let here = self.here.as_mut_ptr().expose_provenance() as u64;
        let to = Remote { at: there, key: self.key.into() };
        let from = Local { at: here, bytes: 8 * words as u32, key: 0 };
        let order = Order { number: self.number, ..Order::new(work, to, from, signaled) };
        // SAFETY: the memory lives as long as the link.
        unsafe { self.link.post(&[order]) };
    }

    /// Calls `work` until the last request is done.
    fn wait(&mut self, mut work: impl FnMut()) {
        let began = Instant::now();
        while self.link.poll().unwrap() != Some(self.number) {
            assert!(began.elapsed() < WATCHDOG);
            work();
        }
    }

    fn first(&self) -> u64 {
        // SAFETY: the target's memory, which another thread has changed before it answered.
        unsafe { self.there.as_ptr().read_volatile() }
    }
}

#[test]
fn the_rank_serves_while_it_waits_and_the_service_thread_before_and_afterwards() {
    let mut pair = Pair::new();
    for round in 1..=200 {
        pair.post(Work::Add(1), 1, true);
        pair.wait(std::thread::yield_now);
        pair.post(Work::Add(1), 1, true);
        let mut serving = pair.target.serving().unwrap();
        let most = i32::from(round % 2 == 0);
        pair.wait(|| _ = serving.step(most));
        drop(serving);
        assert_eq!(pair.first(), 2 * round);
    }
}

/// Number of segments of a stream that the other end has not acknowledged.
fn unacknowledged(stream: &TcpStream) -> u32 {
    // SAFETY: plain data, for which zero is a value.
    let mut info: libc::tcp_info = unsafe { core::mem::zeroed() };
    let (place, mut bytes) = ((&raw mut info).cast(), size_of_val(&info) as u32);
    let (level, option) = (libc::IPPROTO_TCP, libc::TCP_INFO);
    // SAFETY: a local variable and its length.
    let told = unsafe { libc::getsockopt(stream.as_raw_fd(), level, option, place, &mut bytes) };
    assert_eq!(told, 0);
    info.tcpi_unacked
}

#[test]
fn a_rank_with_nothing_to_do_acknowledges_what_it_has_received() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let ours = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
    let theirs = listener.accept().unwrap().0;
    let sender = ours.try_clone().unwrap();
    let mut pair = Pair::over(ours.into(), theirs.into());
    let mut serving = pair.target.serving().unwrap();
    // The system acknowledges the first segments of a stream at once.
    for _ in 0..100 {
        pair.post(Work::Add(1), 1, true);
        pair.wait(|| _ = serving.step(0));
    }
    let (mut awaited, mut prompt) = (0, 0);
    for round in 1..=20 {
        pair.here[0] = 1000 + round;
        pair.post(Work::Write, 1, false);
        while pair.first() < 1000 + round {
            serving.step(0);
        }
        awaited += unacknowledged(&sender);
        while serving.step(0) {}
        prompt += u32::from(unacknowledged(&sender) == 0);
    }
    assert!(awaited > 0, "the system has acknowledged each segment at once");
    // On a loaded machine the service thread may have taken a turn. Every second one is
    // acknowledged by the system.
    assert!(prompt > 15, "{prompt} of 20");
}

#[test]
fn the_service_thread_serves_again_if_the_rank_makes_no_step() {
    let mut pair = Pair::new();
    let mut serving = pair.target.serving().unwrap();
    for round in 1..=3 {
        pair.post(Work::Add(1), 1, true);
        pair.wait(std::thread::yield_now);
        assert_eq!(pair.first(), 2 * round - 1);
        pair.post(Work::Add(1), 1, true);
        pair.wait(|| _ = serving.step(1));
    }
}

#[test]
fn what_a_turn_leaves_in_the_stream_is_served_without_another_event() {
    let mut pair = Pair::new();
    for round in 0..20 {
        let serving = pair.target.serving().unwrap();
        // More bytes than a turn receives are in the stream when the turn begins.
        for _ in 0..18 {
            pair.post(Work::Write, WORDS, false);
        }
        pair.post(Work::Read, 1, true);
        if round % 2 == 0 {
            drop(serving);
            pair.wait(std::thread::yield_now);
        } else {
            let mut serving = serving;
            serving.step(1);
            drop(serving);
            pair.wait(std::thread::yield_now);
        }
    }
    assert_eq!(pair.there, pair.here);
}

#[test]
fn an_origin_that_has_ended_its_half_and_reads_no_answer_takes_no_time_of_the_server() {
    let pair = Pair::new();
    let mut serving = pair.target.serving().unwrap();
    let (ours, theirs) = UnixStream::pair().unwrap();
    pair.target.adopt(theirs.into());
    let read = TcpRequest {
        kind: RequestKind::Read,
        answered: true,
        guarded: false,
        detail: Detail::Nothing,
        key: pair.key,
        at: pair.there.as_ptr().expose_provenance() as u64,
        first: 8 * WORDS as u64,
        second: 0,
    };
    ours.set_nonblocking(true).unwrap();
    // Until the target has no room for answers, and takes no more requests.
    while (&ours).write_all(&read.bytes()).is_ok() {
        serving.step(1);
    }
    ours.shutdown(Shutdown::Write).unwrap();
    let rests = (0..100).filter(|_| !serving.step(1)).count();
    assert!(rests > 50, "{rests} of 100 steps found nothing to do");
}

#[test]
fn a_stream_that_ends_behind_its_last_request_is_closed_when_that_is_carried_out() {
    for round in 0..100 {
        let mut pair = Pair::new();
        pair.post(Work::Add(1), 1, true);
        pair.wait(std::thread::yield_now);
        let serving = pair.target.serving().unwrap();
        pair.post(Work::Write, 1, false);
        let Pair { link, target, there, here: _here, .. } = pair;
        drop(link);
        // Request and end have arrived when they are looked at.
        if round % 2 == 0 {
            let mut serving = serving;
            serving.step(1);
        } else {
            drop(serving);
        }
        let began = Instant::now();
        while target.accepted() > 0 {
            assert!(began.elapsed() < WATCHDOG);
            std::thread::yield_now();
        }
        // The write was of what the addition had found.
        // SAFETY: as in `first`.
        assert_eq!(unsafe { there.as_ptr().read_volatile() }, 0);
    }
}

#[test]
fn the_service_thread_ends_though_it_takes_that_event_with_one_for_a_connection() {
    let (ended, all) = std::sync::mpsc::channel();
    std::thread::spawn(move || {
        for round in 0..3000 {
            let target = TcpDevice::open();
            target.accept().unwrap();
            let (_ours, theirs) = UnixStream::pair().unwrap();
            target.adopt(theirs.into());
            // The thread wakes up meanwhile.
            let began = Instant::now();
            while began.elapsed() < Duration::from_nanos(round % 300 * 1000) {}
            drop(target);
        }
        ended.send(()).unwrap();
    });
    all.recv_timeout(WATCHDOG).expect("a service thread has ended");
}
