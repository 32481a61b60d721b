//! Tests of incoming connections: which of them get a place, which are closed, and that strangers
//! cost little.

use super::super::handshake::{BYTES, Initiator, InitiatorStep};
use super::super::incoming::*;
use super::*;
use std::io::{Read, Write};
use std::net::{IpAddr, TcpStream};
use std::os::unix::net::UnixStream;
use std::time::{Duration, Instant};

const QUESTION: [u8; BYTES] = [5; BYTES];

/// A process that answers with the question.
struct Echo(Identity);

impl Service for Echo {
    fn identity(&self) -> &Identity {
        &self.0
    }

    fn answer(&self, question: &[u8; BYTES]) -> Option<[u8; BYTES]> {
        Some(*question)
    }

    fn poll(&self, _: Instant) -> Option<Instant> {
        None
    }
}

fn ip(last: u8) -> IpAddr {
    IpAddr::from([10, 0, 0, last])
}

/// The incoming connections of a process, with a clock of its own.
struct Here {
    incoming: Incoming<UnixStream>,
    service: Echo,
    now: Instant,
}

impl Here {
    fn new() -> Here {
        let service = Echo(Identity::default());
        service.0.admit(secret());
        Here { incoming: Incoming::new(), service, now: Instant::now() }
    }

    /// Connects from an address and sends `said`. Returns the other end.
    fn call(&mut self, from: u8, said: &[u8]) -> UnixStream {
        let (mut theirs, ours) = UnixStream::pair().unwrap();
        ours.set_nonblocking(true).unwrap();
        theirs.set_nonblocking(true).unwrap();
        theirs.write_all(said).unwrap();
        self.incoming.add(ours, ip(from), self.now, &self.service);
        theirs
    }

    /// The side of a process that connects to this one.
    fn initiator(&self) -> Initiator {
        Initiator::new(secret(), self.service.0.uid(), 1, QUESTION).unwrap()
    }

    fn advance(&mut self, later: Duration) {
        self.now += later;
        self.incoming.advance(self.now, |_| true, &self.service);
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

/// Connects as a stranger again and again until told to stop. Returns the number of connections.
fn flood(place: std::net::SocketAddr, done: &AtomicU64, said: &[u8]) -> u64 {
    let (mut incoming, mut open) = (0, std::collections::VecDeque::new());
    while done.load(Ordering::Acquire) == 0 {
        if let Ok(mut stream) = TcpStream::connect_timeout(&place, Duration::from_secs(1)) {
            let _ = stream.write_all(said);
            open.push_back(stream);
            incoming += 1;
        }
        if open.len() > 100 {
            open.pop_front();
        }
    }
    incoming
}

#[test]
fn first_contact_is_made_in_a_crowd_of_strangers() {
    let target = Side::new(on_fake, 1);
    let origins: [Nic; 8] = core::array::from_fn(|_| on_fake());
    let place = target.nic.contact().unwrap().addresses()[0];
    let done = AtomicU64::new(0);
    std::thread::scope(|scope| {
        let floods: [&[u8]; 3] = [b"", b"f", &[b'x'; 48]];
        let floods = floods.map(|said| scope.spawn(|| flood(place, &done, said)));
        for (index, origin) in origins.iter().enumerate() {
            let before = target.seen_by(origin).fetch(target.at(0), Fetch::Add(1));
            assert_eq!(before, Ok(index as u64));
        }
        done.store(1, Ordering::Release);
        floods.into_iter().for_each(|flood| assert!(flood.join().unwrap() > 0));
    });
    assert_eq!(target.nic.counts().accepted, 8);
}

#[test]
fn a_process_that_did_not_answer_in_time_is_called_again() {
    let (origin, target) = (on_fake(), Side::new(on_fake, 1));
    let contact = target.nic.contact().unwrap();
    origin.core.identity.set_contact_limit(Duration::from_secs(2));
    // A socket that accepts connections and sends nothing.
    let silent = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let mut wrong = contact;
    wrong.0[1] = u64::from(silent.local_addr().unwrap().port()) << 32 | contact.0[1] & 0xffff_ffff;
    let peer = origin.peer(&wrong, secret());
    let error = peer.read(target.at(0)).unwrap_err();
    assert!(matches!(error, Error::Unanswered { .. }), "{error}");
    assert_eq!((peer.check(), peer.flush()), (Ok(()), Ok(())), "it is not lost");
    origin.core.identity.set_contact_limit(Duration::from_secs(60));
    // The process answers again: connections to the port are forwarded to it.
    let place = contact.addresses()[0];
    std::thread::scope(|scope| {
        scope.spawn(|| {
            // Connections that the origin has given up come first.
            while let Ok((mut ours, _)) = silent.accept() {
                let mut theirs = TcpStream::connect(place).unwrap();
                let mut back = (theirs.try_clone().unwrap(), ours.try_clone().unwrap());
                let answers = scope.spawn(move || std::io::copy(&mut back.0, &mut back.1));
                let asked = std::io::copy(&mut ours, &mut theirs).unwrap_or(0);
                let _ = theirs.shutdown(std::net::Shutdown::Write);
                let _ = answers.join();
                if asked > 48 {
                    break;
                }
            }
        });
        assert_eq!(peer.read(target.at(0)), Ok(0));
    });
}
