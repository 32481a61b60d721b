//! Tests that need a real device and a second process, which is stopped or killed.

use std::io::{BufRead, BufReader, Read};
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, Stdio};

use super::origin_memory::{NEW, Pages, lasting};
use super::*;

/// Environment variable of the second process.
const SECOND: &str = "TEST_SECOND";
const WORDS: usize = 4096;

/// Runs the second process: it exposes memory, prints its address, and does nothing more.
fn be_second() {
    let side = Side::new(on_device, WORDS);
    let contact = side.wire.contact().unwrap();
    let Remote { at, key } = side.at(0);
    let words: Vec<String> = contact.0.iter().chain([&at, &key]).map(u64::to_string).collect();
    println!("\nsecond: {}", words.join(" "));
    // Until the first process is gone.
    let _ = std::io::stdin().read_to_end(&mut Vec::new());
}

/// Starts the second process: it runs the same test.
fn second(test: &str) -> (Child, Contact, Remote) {
    let mut child = Command::new(std::env::current_exe().unwrap())
        .args(["--ignored", "--exact", "--nocapture", test])
        .env(SECOND, "1")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let lines = BufReader::new(child.stdout.take().unwrap()).lines().map(|line| line.unwrap());
    let said = lines.filter_map(|line| line.strip_prefix("second: ").map(str::to_owned)).next();
    let words: Vec<u64> = said.unwrap().split(' ').map(|word| word.parse().unwrap()).collect();
    let remote = Remote { at: words[16], key: words[17] };
    (child, Contact(words[..16].try_into().unwrap()), remote)
}

fn signal(child: &Child, signal: i32) {
    // SAFETY: a child that has not been waited for.
    assert_eq!(unsafe { libc::kill(child.id() as i32, signal) }, 0);
}

#[test]
#[ignore = "needs an RDMA device"]
fn a_process_that_stands_still_serves_and_one_that_is_killed_is_an_error() {
    if std::env::var_os(SECOND).is_some() {
        return be_second();
    }
    let _turn = turn();
    let name = "a_process_that_stands_still_serves_and_one_that_is_killed_is_an_error";
    let path = module_path!().split_once("::").unwrap().1;
    let (mut child, contact, at) = second(&format!("{path}::{name}"));
    let (origin, other) = (on_device(), Side::new(on_device, 8));
    let peer = origin.connect(&(contact, secret()));
    assert_eq!(peer.fetch(at, Fetch::Add(5)).unwrap(), 0);
    signal(&child, libc::SIGSTOP);
    let (data, mut back) = (numbers(3000, 0), vec![0; 3000]);
    put(&peer, at.offset(8), &data).unwrap();
    peer.flush().unwrap();
    get(&peer, &mut back, at.offset(8)).unwrap();
    peer.flush_local().unwrap();
    assert!(data == back);
    assert_eq!(peer.fetch(at, Fetch::Add(1)).unwrap(), 5);
    signal(&child, libc::SIGKILL);
    child.wait().unwrap();
    // A wait for something else notices the loss by pings, after the transport's time-out. The
    // first pings may still be answered, because the system destroys the queue pair a little later.
    let (mut error, peers) = (None, together(&[&peer]));
    until("the error", || {
        let asked = peers.ping();
        origin.progress();
        error = asked.and(peers.check()).err();
        error.is_some()
    });
    let error = error.unwrap();
    let Error::Lost { pid, cause, .. } = &error else { panic!("{error}") };
    assert_eq!(*pid as u32, child.id());
    assert!(!cause.is_empty());
    assert_eq!(put(&peer, at, &data).and_then(|()| peer.flush()).unwrap_err(), error);
    // A first contact fails at once: the port is closed.
    let another = on_device();
    let error = another.connect(&(contact, secret())).read(at).unwrap_err();
    assert!(error.to_string().contains("no first contact"), "{error}");
    // Other processes are not affected.
    assert_eq!(other.seen_by(&origin).read(other.at(0)).unwrap(), 0);
}

#[test]
#[ignore = "needs an RDMA device"]
fn puts_to_a_process_that_is_killed_end_in_an_error() {
    if std::env::var_os(SECOND).is_some() {
        return be_second();
    }
    let _turn = turn();
    let path = module_path!().split_once("::").unwrap().1;
    let test = format!("{path}::puts_to_a_process_that_is_killed_end_in_an_error");
    let (mut child, contact, at) = second(&test);
    let origin = on_device();
    let peer = origin.connect(&(contact, secret()));
    let data = numbers(WORDS, 0);
    put(&peer, at, &data).unwrap();
    peer.flush().unwrap();
    signal(&child, libc::SIGKILL);
    // The queue fills, and the thread that waits for room gets the error.
    let error = (0..100_000).find_map(|_| put(&peer, at, &data).err());
    let error = error.or_else(|| peer.flush().err()).unwrap();
    assert!(matches!(error, Error::Lost { .. }), "{error}");
    child.wait().unwrap();
}

/// Bytes that a process may lock.
const LIMIT: u64 = 4 << 20;

/// Runs a test again in a process that may lock `LIMIT` bytes, whatever user runs it. Returns what
/// it says as the second process, or all of its output.
fn limited_second(test: &str) -> String {
    let path = module_path!().split_once("::").unwrap().1;
    let test = format!("{path}::{test}");
    let mut command = Command::new(std::env::current_exe().unwrap());
    command.args(["--ignored", "--exact", "--nocapture", &test]).env(SECOND, "1");
    let limited = || {
        let limit = libc::rlimit { rlim_cur: LIMIT, rlim_max: LIMIT };
        // SAFETY: plain system calls. Without CAP_IPC_LOCK (14) the limit applies to root, too.
        let set = unsafe {
            libc::prctl(libc::PR_CAPBSET_DROP, 14, 0, 0, 0);
            libc::setrlimit(libc::RLIMIT_MEMLOCK, &limit)
        };
        if set == 0 { Ok(()) } else { Err(std::io::Error::last_os_error()) }
    };
    // SAFETY: system calls only.
    unsafe { command.pre_exec(limited) };
    let output = command.output().unwrap();
    let text = String::from_utf8_lossy(&output.stdout);
    let said = text.lines().find_map(|line| line.strip_prefix("second: ")).unwrap_or(&text);
    said.to_owned()
}

#[test]
#[ignore = "needs an RDMA device"]
fn a_limit_of_locked_memory_is_told_with_its_remedy() {
    if std::env::var_os(SECOND).is_some() {
        let side = Side::new(on_device, WORDS);
        let mut words = vec![0u64; LIMIT as usize / 8 + WORDS];
        let bytes = 8 * words.len() as u64;
        let error = side.wire.expose(words.as_mut_ptr().cast(), bytes).err().unwrap();
        println!("\nsecond: {error}");
        return;
    }
    let _turn = turn();
    let said = limited_second("a_limit_of_locked_memory_is_told_with_its_remedy");
    for part in ["4227072 bytes", "4194304 bytes (RLIMIT_MEMLOCK)", "`ulimit -l`"] {
        assert!(said.contains(part), "{said}");
    }
}

/// Each memory has room at the limit after the registration of the one before it has ended.
#[test]
#[ignore = "needs an RDMA device"]
fn at_a_limit_of_locked_memory_the_next_memory_has_room() {
    if std::env::var_os(SECOND).is_some() {
        let (side, target) = (Side::new(on_device, 1), Side::new(on_device, WORDS));
        side.wire.set_lasting_memory(lasting);
        let peer = target.seen_by(&side.wire);
        let mut all = [(); 3].map(|()| Pages::lasting(NEW, LIMIT as usize / 4));
        for round in 1..=6 {
            let words = all[round % 3].words();
            words.fill(round as u64);
            put(&peer, target.at(0), &words[..WORDS]).unwrap();
            peer.flush().unwrap();
            assert!((0..WORDS).all(|index| target.word(index) == round as u64));
        }
        println!("\nsecond: {} registrations", side.wire.counts().registrations);
        return;
    }
    let _turn = turn();
    let said = limited_second("at_a_limit_of_locked_memory_the_next_memory_has_room");
    assert_eq!(said, "6 registrations");
}

/// Disables the interface that TEST_CUT names, and enables it again.
#[test]
#[ignore = "needs an RDMA device, and TEST_CUT=interface to cut"]
fn a_link_that_is_cut_is_an_error() {
    let Ok(interface) = std::env::var("TEST_CUT") else {
        println!("skipped: TEST_CUT names no interface");
        return;
    };
    let set = |state: &str| {
        let ip = Command::new("ip").args(["link", "set", &interface, state]).status().unwrap();
        assert!(ip.success());
    };
    let _turn = turn();
    let (origin, target) = (on_device(), Side::new(on_device, WORDS));
    let peer = target.seen_by(&origin);
    let data = numbers(WORDS, 0);
    put(&peer, target.at(0), &data).unwrap();
    peer.flush().unwrap();
    set("down");
    let sent = (0..10_000).find_map(|_| put(&peer, target.at(0), &data).err());
    let error = sent.or_else(|| peer.flush().err()).unwrap();
    let down = Wire::open(DeviceKind::Verbs, &NetSettings::default()).err();
    set("up");
    assert!(matches!(error, Error::Lost { .. }), "{error}");
    println!("{error}; {down:?}");
}
