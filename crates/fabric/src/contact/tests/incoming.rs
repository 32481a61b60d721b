//! Tests of incoming connections: which of them get a place, which are closed, and that strangers
//! cost little.

use super::super::incoming::*;
use super::*;
use crate::sys::handshake::{Initiator, InitiatorStep};
use std::io::{Read, Write};
use std::net::IpAddr;
use std::os::unix::net::UnixStream;
use std::time::Duration;

fn ip(last: u8) -> IpAddr {
    IpAddr::from([10, 0, 0, last])
}

/// The incoming connections of a process, with a clock of its own.
struct Here {
    incoming: Incoming<UnixStream>,
    service: Arc<Echo>,
    now: Instant,
}

impl Here {
    fn new() -> Here {
        Here { incoming: Incoming::new(), service: Echo::new(), now: Instant::now() }
    }

    /// Connects from an address and sends `said`. Returns the other end.
    fn call(&mut self, from: u8, said: &[u8]) -> UnixStream {
        let (mut theirs, ours) = UnixStream::pair().unwrap();
        ours.set_nonblocking(true).unwrap();
        theirs.set_nonblocking(true).unwrap();
        theirs.write_all(said).unwrap();
        self.incoming.add(ours, ip(from), self.now, &*self.service);
        theirs
    }

    /// The side of a process that connects to this one.
    fn initiator(&self) -> Initiator {
        Initiator::new(secret(), self.service.0.uid(), 1, QUESTION).unwrap()
    }

    fn advance(&mut self, later: Duration) {
        self.now += later;
        self.incoming.advance(self.now, |_| true, &*self.service);
    }
}

/// Whether an identified connection gets its answer.
fn is_answered(here: &mut Here, mut theirs: UnixStream, mut initiator: Initiator) -> bool {
    let Ok(InitiatorStep::Ask(question)) = initiator.step(|bytes| theirs.read(bytes)) else {
        return false;
    };
    if theirs.write_all(&question).is_err() {
        return false;
    }
    here.advance(Duration::ZERO);
    let step = initiator.step(|bytes| theirs.read(bytes));
    matches!(step, Ok(InitiatorStep::Done(answer)) if answer == QUESTION)
}

fn is_dropped(theirs: &mut UnixStream) -> bool {
    let waits = |error: std::io::Error| error.kind() == std::io::ErrorKind::WouldBlock;
    !theirs.read(&mut [0; 64]).is_err_and(waits)
}

#[test]
fn strangers_make_room_for_strangers_and_never_for_the_job() {
    let mut here = Here::new();
    let initiator = here.initiator();
    let theirs = here.call(1, initiator.hello());
    let mut strangers: Vec<_> = (0..8).map(|_| here.call(1, b"x")).collect();
    assert_eq!(here.incoming.list().len(), 9);
    // The ninth of an address takes the place of the first.
    strangers.push(here.call(1, b"x"));
    assert_eq!(here.incoming.list().len(), 9);
    assert!(is_dropped(&mut strangers[0]) && !is_dropped(&mut strangers[1]));
    for from in 2..200 {
        strangers.push(here.call(from, b""));
    }
    assert_eq!(here.incoming.list().len(), 33, "all addresses together");
    assert!(is_dropped(&mut strangers[8]) && !is_dropped(strangers.last_mut().unwrap()));
    assert!(here.incoming.stranger_events() >= 207);
    assert!(is_answered(&mut here, theirs, initiator));
    assert_eq!(here.incoming.list().len(), 32);
}

#[test]
fn a_call_has_its_time_and_no_more_however_slow_it_is() {
    let mut here = Here::new();
    let mut slow = here.call(1, b"");
    let hello = here.initiator().hello().to_vec();
    for byte in &hello[..40] {
        let _ = slow.write_all(&[*byte]);
        here.advance(Duration::from_millis(124));
    }
    assert_eq!(here.incoming.list().len(), 1);
    let before = here.incoming.stranger_events();
    here.advance(Duration::from_millis(124));
    assert!(here.incoming.list().is_empty() && here.incoming.stranger_events() > before);
    assert!(is_dropped(&mut slow));
}

#[test]
fn an_identified_connection_keeps_its_place_for_a_moment() {
    let mut here = Here::new();
    let greeted = |here: &mut Here| {
        let initiator = here.initiator();
        (here.call(1, initiator.hello()), initiator)
    };
    let mut first: Vec<_> = (0..32).map(|_| greeted(&mut here)).collect();
    let until = here.incoming.has_room(here.now).unwrap_err();
    assert_eq!(here.incoming.list().len(), 32, "the next one waits in the system");
    let (theirs, initiator) = first.pop().unwrap();
    assert!(is_answered(&mut here, theirs, initiator));
    assert_eq!(here.incoming.has_room(here.now), Ok(()));
    let last = greeted(&mut here);
    here.now = until;
    assert_eq!((here.incoming.has_room(until), here.incoming.list().len()), (Ok(()), 31));
    let another = here.initiator();
    assert!(!is_answered(&mut here, first.swap_remove(0).0, another), "the oldest");
    assert!(is_answered(&mut here, last.0, last.1));
}

#[test]
fn a_recorded_message_takes_one_place_at_most() {
    let mut here = Here::new();
    let recorded = here.initiator().hello().to_vec();
    let mut slow = here.call(2, &recorded[..10]);
    let _strangers: Vec<_> = (0..40).map(|_| here.call(1, &recorded)).collect();
    assert_eq!((here.incoming.list().len(), here.incoming.has_room(here.now)), (2, Ok(())));
    assert!(here.incoming.stranger_events() >= 40);
    slow.write_all(&recorded[10..]).unwrap();
    here.advance(Duration::ZERO);
    assert_eq!(here.incoming.list().len(), 1, "the later one of two");
    let initiator = here.initiator();
    let theirs = here.call(1, initiator.hello());
    assert!(is_answered(&mut here, theirs, initiator));
}

#[test]
fn a_process_keeps_no_memory_for_callers_that_have_gone() {
    let mut here = Here::new();
    let mut called: Vec<_> = (0..17)
        .map(|_| {
            let initiator = here.initiator();
            (here.call(1, initiator.hello()), initiator)
        })
        .collect();
    assert!(here.incoming.capacity() >= 17);
    for (theirs, initiator) in called.drain(..) {
        assert!(is_answered(&mut here, theirs, initiator));
    }
    assert_eq!((here.incoming.list().len(), here.incoming.capacity()), (0, 0));
}

#[test]
fn a_descriptor_that_is_wanted_is_a_strangers() {
    let mut here = Here::new();
    let initiator = here.initiator();
    let theirs = here.call(1, initiator.hello());
    let mut stranger = here.call(1, b"GET / HTTP/1.0\r\n\r\n");
    assert!(here.incoming.drop_one_unidentified() && !here.incoming.drop_one_unidentified());
    assert!(is_dropped(&mut stranger) && is_answered(&mut here, theirs, initiator));
}
