//! Processes that pass descriptors to each other, and strangers that get none. Most of the
//! processes here are threads of this one, each with a key of its own.

use super::packets::duplicate;
use super::*;
use crate::handshake::BYTES;
use crate::life::{Life, Mark};
use crate::page_bytes;
use crate::segment::Segment;
use std::io::{BufRead, BufReader, Write};
use std::os::fd::{AsRawFd, FromRawFd};
use std::process::{Command, Stdio};

/// Starts a process with a new key that others know.
fn started() -> KeyWords {
    let key = Secret::fresh().unwrap().words();
    start(Secret::from(key)).unwrap();
    learn(key);
    key
}

fn number(key: KeyWords) -> u64 {
    address_of(Secret::from(key))
}

/// Names that are equal to those that a question names.
fn mark_of(segment: &Segment) -> Name {
    Name { pid: 0, passer: 0, ..segment.name() }
}

/// Asks the process whose address has a number.
fn file(number: u64, mark: &Name) -> Result<File> {
    super::file(&Name { passer: number, ..*mark })
}

fn soon() -> Instant {
    Instant::now() + Duration::from_secs(20)
}

/// Numbers that look random, by xorshift.
fn next(state: &mut u64) -> u64 {
    *state ^= *state << 13;
    *state ^= *state >> 7;
    *state ^= *state << 17;
    *state
}

#[test]
fn a_process_that_knows_the_key_gets_the_file() {
    let (segment, key) = (Segment::create(page_bytes()).unwrap(), started());
    let file = file(number(key), &mark_of(&segment)).unwrap();
    assert!(packets::is_file(&file, &mark_of(&segment)));
    assert_ne!(file.as_raw_fd(), mark_of(&segment).fd);
    assert!(matches!(process(key), Asked::Descriptor(_)));
}

#[test]
fn a_process_that_does_not_know_the_key_gets_nothing() {
    let (segment, key) = (Segment::create(page_bytes()).unwrap(), started());
    let question = Question::File(mark_of(&segment));
    let other = Secret::fresh().unwrap();
    assert!(file(number(other.words()), &mark_of(&segment)).is_err(), "not known here");
    // At the right address, with another key.
    let mut initiator = Initiator::new(other, other.name(), 0, question.to_bytes()).unwrap();
    let socket = PacketSocket::connect(number(key), soon()).unwrap();
    socket.send(initiator.hello()).unwrap();
    assert!(initiator.step(|to| socket.receive(to, soon())).is_err(), "it is closed");
    // With the right numbers, which are no proof.
    let right = Secret::from(key);
    let mut initiator = Initiator::new(right, right.name(), 0, question.to_bytes()).unwrap();
    let socket = PacketSocket::connect(number(key), soon()).unwrap();
    socket.send(initiator.hello()).unwrap();
    let asks = initiator.step(|to| socket.receive(to, soon())).unwrap();
    let InitiatorStep::Ask(mut bytes) = asks else { panic!("{asks:?}") };
    bytes[BYTES] ^= 1;
    socket.send(&bytes).unwrap();
    let mut passed = None;
    assert!(socket.receive_with(&mut [0; 99], &mut passed, soon()).is_err());
    assert!(passed.is_none());
}

#[test]
fn an_impostor_is_asked_nothing() {
    let key = Secret::fresh().unwrap();
    let impostor = PacketSocket::listen(address_of(key)).unwrap();
    let asked = std::thread::spawn(move || attempt(key, Question::Process, soon()));
    let socket = loop {
        match impostor.accept() {
            Ok(socket) => break socket,
            Err(_) => std::thread::yield_now(),
        }
    };
    let mut hello = [0; 99];
    let count = socket.receive(&mut hello, soon()).unwrap();
    assert!(count > 0 && count < 99);
    socket.send(&[7; 32]).unwrap();
    assert!(matches!(asked.join().unwrap(), Ok(Asked::Ended)), "another process is there");
    assert!(socket.receive(&mut [0; 99], soon()).is_err(), "it sends no question");
}

#[test]
fn only_sealed_files_of_the_mark_are_passed() {
    let (segment, other) =
        (Segment::create(page_bytes()).unwrap(), Segment::create(page_bytes()).unwrap());
    let mark = mark_of(&segment);
    assert!(duplicate(&mark).is_some());
    let wrong = [
        Name { fd: mark_of(&other).fd, ..mark },
        Name { inode: mark.inode + 1, ..mark },
        Name { device: mark.device + 1, ..mark },
        Name { bytes: mark.bytes + page_bytes(), ..mark },
        Name { fd: -1, ..mark },
        Name { fd: i32::MAX, ..mark },
    ];
    for wrong in wrong {
        assert!(duplicate(&wrong).is_none(), "{wrong:?}");
    }
    let plain = File::open(std::env::current_exe().unwrap()).unwrap();
    let status = plain.metadata().unwrap();
    use std::os::unix::fs::MetadataExt;
    let (device, inode, bytes) = (status.dev(), status.ino(), status.len());
    assert!(
        duplicate(&Name { fd: plain.as_raw_fd(), device, inode, bytes, ..Name::default() })
            .is_none()
    );
    let key = started();
    assert!(file(number(key), &wrong[1]).is_err());
}

#[test]
fn what_is_no_question_is_refused() {
    let mut state = 0x1234_5678_9abc_def1;
    for question in [
        Question::Process,
        Question::File(Name { fd: 7, device: 1 << 63, inode: u64::MAX, ..Name::default() }),
    ] {
        let bytes = question.to_bytes();
        assert_eq!(Question::of_bytes(&bytes), Some(question));
        for _ in 0..2000 {
            let mut changed = bytes;
            changed[next(&mut state) as usize % BYTES] ^= 1 << (next(&mut state) % 8);
            let read = Question::of_bytes(&changed);
            assert!(read.is_none_or(|read| read.to_bytes() == changed), "{changed:02x?}");
        }
    }
    for _ in 0..2000 {
        let bytes: [u8; BYTES] = core::array::from_fn(|_| next(&mut state) as u8);
        assert_eq!(Question::of_bytes(&bytes), None);
    }
}

#[test]
fn strangers_hurt_nobody() {
    let (segment, key) = (Segment::create(page_bytes()).unwrap(), started());
    let mark = mark_of(&segment);
    let mut state = 0xfeed_0123_4567_89ab;
    let mut silent = Vec::new();
    for round in 0..200 {
        let Ok(socket) = PacketSocket::connect(number(key), soon()) else { continue };
        let bytes: Vec<u8> = (0..next(&mut state) % 200).map(|_| state as u8).collect();
        match round % 4 {
            0 => drop(socket),
            1 => silent.push(socket),
            _ => {
                let _ = socket.send(&bytes);
                silent.push(socket);
            }
        }
        if round % 20 == 0 {
            assert!(file(number(key), &mark).is_ok(), "round {round}");
        }
    }
    assert!(file(number(key), &mark).is_ok());
    let closed = silent[0].receive(&mut [0; 99], Instant::now() + Duration::from_millis(500));
    let closed = closed.unwrap_err().raw_os_error();
    assert_ne!(closed, Some(libc::ETIMEDOUT), "it has made room for others");
    for socket in silent {
        let closed = socket.receive(&mut [0; 99], soon()).unwrap_err();
        assert_ne!(closed.raw_os_error(), Some(libc::ETIMEDOUT), "it is closed");
    }
}

#[test]
fn many_may_ask_each_other_at_the_same_time() {
    let segment = Segment::create(page_bytes()).unwrap();
    let (keys, mark) = ([started(), started()], mark_of(&segment));
    std::thread::scope(|scope| {
        for thread in 0..8 {
            let key = keys[thread % 2];
            scope.spawn(move || {
                for _ in 0..50 {
                    file(number(key), &mark).unwrap();
                }
            });
        }
    });
}

#[test]
fn a_program_that_closes_the_socket_closes_nothing_for_good() {
    let (segment, secret) = (Segment::create(page_bytes()).unwrap(), Secret::fresh().unwrap());
    let thread = PassingThread::new(secret).unwrap();
    let socket = thread.listening_fd();
    std::thread::spawn(move || thread.run());
    learn(secret.words());
    file(number(secret.words()), &mark_of(&segment)).unwrap();
    // As a program does that closes all descriptors, and opens a file of its own.
    let null = File::open("/dev/null").unwrap();
    // SAFETY: a descriptor of the thread, which notices that.
    assert_eq!(unsafe { libc::dup2(null.as_raw_fd(), socket) }, socket);
    // SAFETY: it is this test's own now.
    let ours = unsafe { OwnedFd::from_raw_fd(socket) };
    serve().unwrap(); // so that this process tries again
    for _ in 0..3 {
        file(number(secret.words()), &mark_of(&segment)).unwrap();
    }
    // SAFETY: a system call that writes to no memory of this process.
    assert!(unsafe { libc::fcntl(ours.as_raw_fd(), libc::F_GETFD) } >= 0, "it was closed");
}

/// A process of another namespace is known by the descriptor that it passes, and by its socket.
#[test]
fn a_process_of_another_namespace_is_seen_to_end() {
    const INSIDE: &str = "A_PROCESS_OF_ANOTHER_NAMESPACE";
    let secret = Secret::fresh().unwrap();
    if let Some(key) = std::env::var_os(INSIDE) {
        let key = key.into_string().unwrap();
        let (low, high) = key.split_once('-').unwrap();
        start(Secret::from([low, high].map(|half| half.parse().unwrap()))).unwrap();
        println!("\nready");
        let _ = std::io::stdin().read_line(&mut String::new());
        return;
    }
    let [low, high] = secret.words();
    let mut process = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "--nocapture"])
        .arg("passing::tests::a_process_of_another_namespace_is_seen_to_end")
        .env(INSIDE, format!("{low}-{high}"))
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let lines = BufReader::new(process.stdout.take().unwrap()).lines();
    assert!(lines.map_while(core::result::Result::ok).any(|line| line == "ready"));
    // Its id means this process here.
    let mark = Mark { namespace: 1, key: secret.words(), ..Mark::own() };
    assert!(mark.is_elsewhere() && mark.shows_cookie().is_none());
    let (known, late) = (Life::new(mark), Life::new(mark));
    let stranger = Life::new(Mark { key: [0; 2], ..mark });
    assert!(known.is_there() && !known.has_ended() && stranger.is_there());
    process.kill().unwrap();
    process.wait().unwrap();
    assert!(known.has_ended() && !known.is_there(), "by the descriptor");
    assert!(late.has_ended(), "by the socket");
    assert!(!stranger.has_ended(), "nothing is known against it");
    let _ = std::io::stdout().flush();
}
