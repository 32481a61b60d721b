//! The origin's end of a connection: which requests leave by the call that posts them, what a poll
//! that sleeps finds, and what an idle connection keeps.

use std::io::{Read, Write};
use std::os::unix::net::UnixStream;
use std::sync::Arc;
use std::time::Duration;

use super::exposures::Exposures;
use super::frames::{Answer, AnswerStatus, REQUEST_BYTES};
use super::origin_end::TcpLink;
use super::service_thread::ServiceThread;
use super::stream_options;
use super::tcp_device::TcpDevice;
use crate::remote::Remote;
use crate::request::{Leaves, Local, MemoryOf, Order, Work};

/// The origin's end of a connection, with its service thread, and the target's stream.
fn link() -> (ServiceThread, TcpLink, UnixStream) {
    let thread = ServiceThread::start(&Arc::new(Exposures::default())).unwrap();
    let (here, there) = UnixStream::pair().unwrap();
    there.set_nonblocking(true).unwrap();
    let link = TcpLink::new(thread.sender(here.into()).unwrap());
    (thread, link, there)
}

#[test]
fn a_post_that_a_rank_waits_for_leaves_at_once() {
    let (_thread, mut link, mut there) = link();
    let answer = Box::new(0u64);
    let local = Local { at: (&raw const *answer).expose_provenance() as u64, bytes: 8, key: 0 };
    for number in 1..=20 {
        let order = Order::new(Work::Add(1), Remote::default(), local, true);
        // SAFETY: the answer lives until the end, and none comes.
        unsafe { link.post(&[Order { number, awaited: true, ..order }]) };
        let mut bytes = [0; 2 * REQUEST_BYTES];
        assert_eq!(there.read(&mut bytes).unwrap(), REQUEST_BYTES);
    }
}

#[test]
fn memory_that_is_sent_from_its_place_leaves_with_its_notification() {
    const BYTES: usize = 10_000;
    let (_thread, mut link, mut there) = link();
    let data = vec![7u8; BYTES];
    let at = data.as_ptr().expose_provenance() as u64;
    let from = Local { at, bytes: BYTES as u32, key: 0 };
    let put = Order::new(Work::Write, Remote::default(), from, false);
    let put = Order { number: 1, leaves: Leaves::WithNotification, ..put };
    let word = Local { bytes: 8, ..from };
    let add = Order::new(Work::Add(1), Remote::default(), word, false);
    let mut bytes = [0; 2 * BYTES];
    // SAFETY: the data live until the end, and no answer comes.
    unsafe { link.post(&[put]) };
    assert!(there.read(&mut bytes).is_err(), "it has left by itself");
    // SAFETY: as above.
    unsafe { link.post(&[Order { number: 2, doorbell: 8, ..add }]) };
    let came = there.read(&mut bytes).unwrap();
    assert_eq!(came, 2 * REQUEST_BYTES + BYTES);
    assert!(bytes[REQUEST_BYTES..REQUEST_BYTES + BYTES] == data);
}

#[test]
fn a_release_waits_to_be_sent_only_if_the_request_for_the_lock_does() {
    let (_thread, mut link, mut there) = link();
    let answer = Box::new(0u64);
    let local = Local { at: (&raw const *answer).expose_provenance() as u64, bytes: 8, key: 0 };
    let mut bytes = [0; 8 * REQUEST_BYTES];
    let mut post = |number, work, leaves| {
        let order = Order::new(work, Remote::default(), local, matches!(work, Work::Add(_)));
        // SAFETY: the answer lives until the end, and none comes; a put reads it now.
        unsafe { link.post(&[Order { number, leaves, ..order }]) };
    };
    let take = Work::TakeLock { expect: 0, new: 1 };
    let mut together = 0;
    for number in (1..=100).map(|turn| 5 * turn) {
        post(number, take, Leaves::WithLater);
        post(number + 1, Work::Add(1), Leaves::WithLock);
        // The service thread sends them if this thread is slow.
        together += u32::from(there.read(&mut bytes).is_err());
        post(number + 2, Work::Ping, Leaves::AtOnce);
        while there.read(&mut bytes).is_ok() {}
        post(number + 3, take, Leaves::WithLater);
        post(number + 4, Work::WriteInline, Leaves::AtOnce);
        while there.read(&mut bytes).is_ok() {}
        post(number + 5, Work::Add(1), Leaves::WithLock);
        assert_eq!(there.read(&mut bytes).unwrap(), REQUEST_BYTES);
    }
    assert!(together > 0);
}

#[test]
fn a_poll_that_sleeps_sends_finds_an_answer_in_pieces_and_ends_with_the_stream() {
    let thread = ServiceThread::start(&Arc::new(Exposures::default())).unwrap();
    let (here, mut there) = UnixStream::pair().unwrap();
    let here = here.into();
    stream_options::prepare_to_sleep(&here).unwrap();
    let mut link = TcpLink::new(thread.sender(here).unwrap());
    let answer = Box::new(0u64);
    let local = Local { at: (&raw const *answer).expose_provenance() as u64, bytes: 8, key: 0 };
    let order = Order::new(Work::Add(1), Remote::default(), local, true);
    // SAFETY: the answer lives until the end.
    unsafe { link.post(&[Order { number: 1, leaves: Leaves::WithLater, ..order }]) };
    let target = std::thread::spawn(move || {
        there.read_exact(&mut [0; REQUEST_BYTES]).unwrap();
        let all = [&Answer::new(AnswerStatus::Done, 8).bytes()[..], &7u64.to_ne_bytes()].concat();
        all.chunks(3).for_each(|bytes| there.write_all(bytes).unwrap());
    });
    while link.poll_asleep().unwrap().is_none() {}
    assert_eq!(*answer, 7);
    target.join().unwrap();
    // SAFETY: as above.
    unsafe { link.post(&[Order { number: 2, ..order }]) };
    let ended = (0..10_000).find_map(|_| link.poll_asleep().err());
    assert!(ended.is_some());
}

/// Bytes that an idle connection may keep at its origin, without the transport's queue.
const KEPT_BYTES_MAX: usize = 7 << 10;

#[test]
fn an_idle_connection_keeps_little_whatever_it_has_sent() {
    let device = TcpDevice::open();
    let mut memory = vec![1u8; 1 << 20];
    let at = memory.as_mut_ptr().expose_provenance() as u64;
    let key = device.expose(at, 1 << 20, MemoryOf::Library).unwrap();
    let to = Remote { at, key: key.into() };
    let own_stream = device.stream_to_itself().unwrap();
    let mut link = device.begin().unwrap().connect(own_stream).unwrap();
    let works = [
        (Work::WriteInline, 8, 1000),
        (Work::WriteInline, 8 << 10, 500),
        (Work::Write, 1 << 20, 20),
        (Work::Write, 16 << 10, 500),
        (Work::Read, 8, 1000),
        (Work::Add(1), 8, 1000),
    ];
    let mut number = 0;
    for (work, bytes, count) in works {
        let local = Local { at, bytes, key: 0 };
        for _ in 0..count {
            number += 1;
            let order = Order::new(work, to, local, true);
            // SAFETY: the memory lives until the link is dropped.
            unsafe { link.post(&[Order { number, leaves: Leaves::WithLater, ..order }]) };
        }
        assert!(count < 500 || link.kept_bytes() > KEPT_BYTES_MAX, "{work:?} under way");
        while link.poll().unwrap() != Some(number) {
            super::wait(&link.stream().clone(), Duration::from_millis(10));
        }
        assert!(link.kept_bytes() <= KEPT_BYTES_MAX, "{work:?}: {}", link.kept_bytes());
    }
}
