//! Tests of the first contact and of failures of another process, on any device.

use std::net::TcpStream;

use super::super::pool::BLOCKS;
use super::*;

pub fn many_contact_one_at_once(open: Open) {
    const MANY: usize = 16;
    let target = Side::new(open, 8);
    let contact = target.wire.contact().unwrap();
    let address = contact.addresses()[0];
    // Strangers: one sends nothing, one sends something else.
    let silent = TcpStream::connect(address).unwrap();
    let mut loud = TcpStream::connect(address).unwrap();
    std::io::Write::write_all(&mut loud, &[b'x'; 200]).unwrap();
    let wires: Vec<Wire> = (0..MANY).map(|_| open()).collect();
    std::thread::scope(|scope| {
        for wire in &wires {
            scope.spawn(|| {
                wire.connect(&(contact, secret())).fetch(target.at(0), Fetch::Add(1)).unwrap()
            });
        }
    });
    assert_eq!((target.word(0), target.wire.counts().accepted), (MANY as u64, MANY as u64));
    // The one that sent something was disconnected without an answer.
    let mut said = Vec::new();
    let _ = std::io::Read::read_to_end(&mut loud, &mut said);
    assert!(said.is_empty());
    drop(silent);
}

pub fn a_process_without_the_secret_is_refused(open: Open) {
    let (origin, target) = (open(), Side::new(open, 8));
    let contact = target.wire.contact().unwrap();
    let error = origin.connect(&(contact, Secret::from([3, 5]))).read(target.at(0)).unwrap_err();
    assert!(error.to_string().contains("no first contact"), "{error}");
    assert_eq!(target.wire.counts().accepted, 0);
}

pub fn a_wrong_key_is_an_error_and_stays_one(open: Open) {
    let (origin, target) = (open(), Side::new(open, 8));
    let peer = target.seen_by(&origin);
    peer.read(target.at(0)).unwrap();
    let wrong = Remote { key: target.at(0).key ^ 0x5500, ..target.at(0) };
    let error = put(&peer, wrong, &[1]).and_then(|()| peer.flush()).unwrap_err();
    let Error::Lost { node, pid, cause, .. } = &error else { panic!("{error}") };
    assert_eq!(**node, *target.wire.contact().unwrap().node());
    assert_eq!(*pid as u32, std::process::id());
    assert!(cause.contains("remote access error"), "{cause}");
    let mut back = [0];
    assert_eq!(peer.read(target.at(0)).unwrap_err(), error);
    assert_eq!(put(&peer, target.at(0), &[1]).unwrap_err(), error);
    assert_eq!(get(&peer, &mut back, target.at(0)).unwrap_err(), error);
    assert_eq!(peer.post(target.at(0), 1).unwrap_err(), error);
    assert_eq!(peer.flush().unwrap_err(), error);
    assert_eq!(peer.flush_local().unwrap_err(), error);
    assert_eq!(peer.check().unwrap_err(), error);
    assert_eq!(origin.progress(), 1);
    // Other processes are still there, and a rank that uses only them gets no error.
    let other = Side::new(open, 1);
    let there = other.seen_by(&origin);
    let (others, both) = (together(&[&there]), together(&[&peer, &there]));
    assert_eq!(there.read(other.at(0)).unwrap(), 0);
    assert_eq!(others.flush().and(others.ping()).and(others.check()), Ok(()));
    put(&there, other.at(0), &[3]).unwrap();
    assert_eq!(both.flush().unwrap_err(), error);
    assert_eq!((there.is_idle(), other.word(0)), (true, 3), "all are waited for");
    put(&there, other.at(0), &[4]).unwrap();
    assert_eq!(both.flush_local().unwrap_err(), error);
    assert_eq!(both.ping().unwrap_err(), error);
    assert_eq!(both.check().unwrap_err(), error);
    there.flush().unwrap();
    assert_eq!(origin.core.blocks.free(), BLOCKS);
}

pub fn memory_that_is_not_exposed_any_more_is_an_error(open: Open) {
    let (origin, target) = (open(), Side::new(open, 2048));
    let peer = target.seen_by(&origin);
    let more = target.wire.expose(target.words.as_ptr().cast_mut().cast(), 64).unwrap();
    let at = more.remote();
    put(&peer, at, &[7]).unwrap();
    peer.flush().unwrap();
    drop(more);
    let error = peer.fetch(at, Fetch::Add(1)).unwrap_err();
    assert!(matches!(error, Error::Lost { .. }), "{error}");
    assert_eq!(target.word(0), 7);
}

pub fn a_bad_buffer_is_the_origins_own_error(open: Open) {
    let (origin, target) = (open(), Side::new(open, 4096));
    let peer = target.seen_by(&origin);
    let nowhere = core::ptr::without_provenance::<u8>(64);
    // SAFETY: nothing can be read there, which the kernel reports.
    let error = unsafe { peer.put(target.at(0), nowhere, 20_000) }.unwrap_err();
    assert_eq!(error, Error::OriginFault { address: 64 });
    assert_eq!(peer.fetch(target.at(0), Fetch::Add(1)).unwrap(), 0);
}

pub fn a_ping_finds_a_process_that_answers(open: Open) {
    let (origin, target) = (open(), Side::new(open, 8));
    let peer = target.seen_by(&origin);
    let peers = together(&[&peer]);
    peers.ping().unwrap();
    assert_eq!(origin.counts().contacted, 0, "no process was contacted yet");
    peer.ping().unwrap();
    peer.ping().unwrap();
    until("the answer", || {
        origin.progress();
        peer.is_idle()
    });
    let pings = origin.counts().kinds.pings;
    assert!((1..=2).contains(&pings), "one at a time: {pings}");
    peers.ping().unwrap();
    assert_eq!(origin.counts().kinds.pings, pings + 1);
    peer.flush().unwrap();
    assert!(peer.is_idle());
}
