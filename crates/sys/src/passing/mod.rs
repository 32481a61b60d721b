//! Passing of descriptors to other processes of the job that may not open them by `/proc/PID/fd`:
//! processes of different user namespaces, or users. They ask at a socket of a thread of this
//! process ([`passing_thread`]), and get a descriptor by SCM_RIGHTS. Whether processes need this is
//! decided when ranks first try to share memory. Invariant: no descriptor is passed to a process,
//! and none is taken from one, that has not proved to know the key.
//!
//! The *key* of a process is 128 random bits, which the ranks of a job exchange by the host MPI and
//! in memory that they share; no message contains it. The address of the socket, in the abstract
//! namespace of the network namespace, is a number that follows from the key. Other processes see
//! it; names of segments have it. The first message has another such number, which they do not see.
//! The messages are those of a [handshake](super::handshake), one packet each:
//!
//! | word   | question for a file       | for a process | answer                          |
//! |--------|---------------------------|---------------|---------------------------------|
//! | 0      | 1                         | 2             | 1: a descriptor comes with it   |
//! |        |                           |               | 0: there is none                |
//! | 1      | its descriptor            | 0             | 0                               |
//! | 2 to 4 | its device, inode, length | 0             | 0                               |
//! | 5      | 0                         | 0             | 0                               |
//!
//! The thread takes no lock that a thread which asks may hold, so that two processes can ask each
//! other at the same time.

mod packets;
mod passing_thread;
mod question;
#[cfg(any(test, fuzzing))]
mod question_fuzz;
#[cfg(test)]
mod tests;

use super::handshake::{Initiator, InitiatorStep};
use super::process::without_signals;
use super::secret::Secret;
use super::segment_name::Name;
use crate::error::{Error, Result};
use packets::PacketSocket;
use parking_lot::Mutex;
use passing_thread::PassingThread;
use question::{Question, address_of, system, to_words};
#[cfg(any(test, fuzzing))]
pub use question_fuzz::file_questions;
use std::collections::BTreeMap;
use std::fs::File;
use std::os::fd::OwnedFd;
use std::sync::OnceLock;
use std::time::{Duration, Instant};

/// A key in the form in which processes exchange it; zeros: none.
pub type KeyWords = [u64; 2];

/// The time for which a process asks for a file.
const FILE_PATIENCE: Duration = Duration::from_secs(20);
/// The time for which a process asks for a descriptor of another one, while it waits.
const PROCESS_PATIENCE: Duration = Duration::from_millis(200);
/// The time between two attempts to connect.
const PAUSE: Duration = Duration::from_millis(5);
/// The attempts to connect to a socket that is not there. A process whose program has closed the
/// socket opens it again.
const ATTEMPTS: u32 = 10;
const STACK_BYTES: usize = 256 << 10;

/// The answer of a process that is asked for a descriptor of itself.
#[derive(Debug)]
pub enum Asked {
    /// it runs, and this is a descriptor for it (pidfd)
    Descriptor(OwnedFd),
    /// it runs, and there is no such descriptor
    Runs,
    /// nothing listens for it: it has ended
    Ended,
    /// it has not answered
    Silent,
}

/// Returns the key of this process; zeros if the system gives no random bytes.
pub fn own_key() -> KeyWords {
    static KEY: OnceLock<KeyWords> = OnceLock::new();
    *KEY.get_or_init(|| Secret::fresh().map(Secret::words).unwrap_or_default())
}

/// Returns the number in the address of this process; 0 if it has no key.
pub fn own_number() -> u64 {
    static NUMBER: OnceLock<u64> = OnceLock::new();
    *NUMBER.get_or_init(|| secret_of(own_key()).map_or(0, address_of))
}

/// The keys of other processes, by the numbers in their addresses.
static KEYS: Mutex<BTreeMap<u64, KeyWords>> = Mutex::new(BTreeMap::new());

/// Keeps the key of another process, for questions to it.
pub fn learn(key: KeyWords) {
    if let Ok(secret) = secret_of(key) {
        KEYS.lock().insert(address_of(secret), key);
    }
}

/// Whether this process passes descriptors, once it has begun to.
static SERVES: Mutex<bool> = Mutex::new(false);

/// Begins to pass descriptors to processes that know the key of this one, if this process does not
/// do it yet. A child of fork(2) does not.
pub fn serve() -> Result<()> {
    let mut serves = SERVES.lock();
    if !*serves {
        start(secret_of(own_key())?)?;
        *serves = true;
    }
    Ok(())
}

/// Starts a thread that passes descriptors of this process to processes that know the key.
fn start(key: Secret) -> Result<()> {
    let thread = PassingThread::new(key)?;
    let started = without_signals(|| {
        std::thread::Builder::new()
            .name(String::from("fompi-passing"))
            .stack_size(STACK_BYTES)
            .spawn(move || thread.run())
    });
    started.map(drop).map_err(|error| system("pthread_create", &error))
}

fn secret_of(key: KeyWords) -> Result<Secret> {
    match key {
        [0, 0] => Err(Error::System { call: "getrandom", errno: libc::EAGAIN }),
        key => Ok(Secret::from(key)),
    }
}

/// Returns a file of another process, opened as it is there. Fails if the key of the process is not
/// known, if it passes none, or if it is another file.
pub fn file(name: &Name) -> Result<File> {
    let failed = |errno| Error::System { call: "ask for a file", errno };
    let key = KEYS.lock().get(&name.passer).copied().unwrap_or_default();
    let asked = ask(secret_of(key)?, Question::File(*name), FILE_PATIENCE)?;
    match asked {
        Asked::Descriptor(fd) => {
            let file = File::from(fd);
            if packets::is_file(&file, name) { Ok(file) } else { Err(failed(libc::ENOENT)) }
        }
        Asked::Runs => Err(failed(libc::ENOENT)),
        Asked::Ended => Err(failed(libc::ECONNREFUSED)),
        Asked::Silent => Err(failed(libc::ETIMEDOUT)),
    }
}

/// Asks the process with this key for a descriptor of itself.
pub fn process(key: KeyWords) -> Asked {
    let asked = secret_of(key).and_then(|key| ask(key, Question::Process, PROCESS_PATIENCE));
    asked.unwrap_or(Asked::Silent)
}

/// Asks a process until it answers, at most for a time.
fn ask(key: Secret, question: Question, patience: Duration) -> Result<Asked> {
    let (until, mut refused) = (Instant::now() + patience, 0);
    loop {
        match attempt(key, question, until) {
            Ok(asked) => return Ok(asked),
            Err(error) if error.raw_os_error().is_some_and(super::is_shortage) => {
                return Err(system("ask for a file", &error));
            }
            Err(error) if error.raw_os_error() == Some(libc::ECONNREFUSED) => {
                refused += 1;
                if refused >= ATTEMPTS || !*SERVES.lock() {
                    return Ok(Asked::Ended);
                }
            }
            // Closed early: many strangers connect at once, or the process ends just now.
            Err(_) => {}
        }
        if Instant::now() + PAUSE >= until {
            return Ok(Asked::Silent);
        }
        std::thread::sleep(PAUSE);
    }
}

/// Asks once.
fn attempt(key: Secret, question: Question, until: Instant) -> std::io::Result<Asked> {
    let unproved = || std::io::Error::from_raw_os_error(libc::EPROTO);
    let mut initiator =
        Initiator::new(key, key.name(), 0, question.to_bytes()).map_err(|_| unproved())?;
    let socket = PacketSocket::connect(address_of(key), until)?;
    socket.send(initiator.hello())?;
    loop {
        let mut passed = None;
        let is_last = initiator.is_verified();
        let step = initiator.step(|to| match is_last {
            true => socket.receive_with(to, &mut passed, until),
            false => socket.receive(to, until),
        })?;
        match (step, passed) {
            (InitiatorStep::Wait, None) => {}
            (InitiatorStep::Ask(bytes), None) => socket.send(&bytes)?,
            (InitiatorStep::Done(answer), Some(fd)) if to_words(&answer)[0] == 1 => {
                return Ok(Asked::Descriptor(fd));
            }
            // Without room for one more descriptor the system drops the one that was sent.
            (InitiatorStep::Done(answer), None) if to_words(&answer)[0] == 1 => {
                return Err(std::io::Error::from_raw_os_error(libc::EMFILE));
            }
            (InitiatorStep::Done(_), None) => return Ok(Asked::Runs),
            // Another process has the address now.
            (InitiatorStep::Refuse, _) => return Ok(Asked::Ended),
            _ => return Err(unproved()),
        }
    }
}
