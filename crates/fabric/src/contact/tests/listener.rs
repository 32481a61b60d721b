//! Tests of the connection thread: strangers do not delay other processes, and the thread does not
//! disturb its own.

use super::*;
use crate::sync::{AtomicU64, Ordering};
use std::io::{Read, Write};
use std::net::{Ipv6Addr, TcpListener, TcpStream};
use std::time::Duration;

#[test]
fn an_address_that_ends_connections_is_named_with_what_it_did() {
    let stranger = TcpListener::bind((Ipv6Addr::LOCALHOST, 0)).unwrap();
    let port = stranger.local_addr().unwrap().port();
    let contact = Contact::new(7, port, &[Ipv6Addr::LOCALHOST], true);
    let cause = std::thread::scope(|scope| {
        let stranger = scope.spawn(|| {
            // Read first: unread bytes would make the end a reset.
            let (mut stream, _) = stranger.accept().unwrap();
            stream.read(&mut [0; 4096]).map(drop)
        });
        let cause = Echo::new().ask(&contact, &QUESTION).unwrap_err().to_string();
        stranger.join().unwrap().unwrap();
        cause
    });
    assert!(cause.contains("ended the connection without an answer"), "{cause}");
}

/// Connects as a stranger, at least once, until `done` is set. Returns the number of connections.
fn flood(place: std::net::SocketAddr, done: &AtomicU64, said: &[u8]) -> u64 {
    let (mut incoming, mut open) = (0, std::collections::VecDeque::new());
    loop {
        if let Ok(mut stream) = TcpStream::connect_timeout(&place, Duration::from_secs(1)) {
            let _ = stream.write_all(said);
            open.push_back(stream);
            incoming += 1;
        }
        if open.len() > 100 {
            open.pop_front();
        }
        if done.load(Ordering::Acquire) != 0 {
            return incoming;
        }
    }
}

#[test]
fn first_contact_is_made_in_a_crowd_of_strangers() {
    let target = Listener::start(&Echo::new(), &ListenPlaces::default()).unwrap();
    let place = target.contact().addresses()[0];
    let done = AtomicU64::new(0);
    std::thread::scope(|scope| {
        let floods: [&[u8]; 3] = [b"", b"f", &[b'x'; 48]];
        let floods = floods.map(|said| scope.spawn(|| flood(place, &done, said)));
        for origin in 0..8 {
            let question = [origin; BYTES];
            assert_eq!(Echo::new().ask(target.contact(), &question), Ok(question));
        }
        done.store(1, Ordering::Release);
        floods.into_iter().for_each(|flood| assert!(flood.join().unwrap() > 0));
    });
}

#[test]
fn no_signal_is_handled_on_the_connection_thread() {
    let _listener = Listener::start(&Echo::new(), &ListenPlaces::default()).unwrap();
    let mut seen = 0;
    // The thread sets its name itself.
    until("the thread", || {
        for task in std::fs::read_dir("/proc/self/task").unwrap() {
            seen += u32::from(is_deaf(&task.unwrap().path()));
        }
        seen > 0
    });
}

/// Whether a task is a connection thread. Fails if such a thread does not block all signals.
fn is_deaf(task: &std::path::Path) -> bool {
    // Threads of other tests may end in between.
    let text = std::fs::read_to_string(task.join("status")).unwrap_or_default();
    let line = |name: &str| text.lines().find_map(|line| line.strip_prefix(name));
    let found = line("Name:").is_some_and(|name| name.trim() == "fompi-contact");
    if found && let Some(blocked) = line("SigBlk:") {
        let blocked = u64::from_str_radix(blocked.trim(), 16).unwrap();
        // Two that cannot be blocked, and two that the C library uses.
        let open = [libc::SIGKILL, libc::SIGSTOP, 32, 33];
        let mut all = (1..=64).filter(|signal| !open.contains(signal));
        assert!(all.all(|signal| blocked >> (signal - 1) & 1 == 1), "{blocked:#x}");
    }
    found
}

#[test]
fn a_caller_that_says_nothing_keeps_nobody_waiting() {
    let target = Listener::start(&Echo::new(), &ListenPlaces::default()).unwrap();
    let address = target.contact().addresses()[0];
    // Just below the bound: at the bound further connections would wait for a place.
    let silent: Vec<_> = (0..60).map(|_| TcpStream::connect(address).unwrap()).collect();
    assert_eq!(Echo::new().ask(target.contact(), &QUESTION), Ok(QUESTION));
    drop(silent);
}

#[test]
fn a_listener_stops_while_a_connection_is_open() {
    for _ in 0..300 {
        let listener = Listener::start(&Echo::new(), &ListenPlaces::default()).unwrap();
        let address = listener.contact().addresses()[0];
        let mut stranger = TcpStream::connect(address).unwrap();
        stranger.write_all(&[b'x'; 48]).unwrap();
        // After closing this connection the thread accepts the next one, and may take the wake-up
        // for such a connection.
        assert_eq!(stranger.read(&mut [0]).unwrap(), 0);
        drop(listener);
    }
}
