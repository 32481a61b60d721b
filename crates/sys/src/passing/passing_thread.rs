//! The thread that passes descriptors of this process. It sleeps until another process connects,
//! answers one question per connection, and handles no signal of the program. Bytes of processes
//! that do not prove to know the key reach no further than the handshake. Invariant: the number of
//! open connections, their lifetime and the work between two sleeps have bounds, and a connection
//! that has not named the key never takes the place of one that has.

use super::packets::{PacketSocket, duplicate};
use super::question::{Question, address_of, system, to_bytes};
use crate::error::Result;
use crate::handshake::{BYTES, Responder, ResponderStep};
use crate::is_shortage;
use crate::number::Number;
use crate::process;
use crate::secret::Secret;
use std::io::ErrorKind;
use std::os::fd::OwnedFd;
use std::time::{Duration, Instant};

/// Bounds of connections that have not named the key, and of those that have.
const UNNAMED_MAX: usize = 32;
const NAMED_MAX: usize = 32;
/// Connections that are accepted between two sleeps.
const ACCEPTED_MAX: usize = 32;
/// The time after which any connection is closed.
const LIFETIME_MAX: Duration = Duration::from_secs(2);
/// The time for which the thread rests after a turn in which it closed the connection of a
/// stranger, and for which it waits while no descriptor is free.
const REST: Duration = Duration::from_millis(1);
const SHORTAGE: Duration = Duration::from_millis(20);

/// A connection whose question has not been answered.
struct Asking {
    socket: PacketSocket,
    began: Instant,
    responder: Responder,
}

/// Result of one step of a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Progress {
    /// it goes on
    Waits,
    /// its question was answered
    Answered,
    /// it was closed, or has sent an invalid message
    Invalid,
}

impl Asking {
    fn new(socket: PacketSocket) -> Asking {
        Asking { socket, began: Instant::now(), responder: Responder::new() }
    }

    /// Whether it has named the key.
    fn is_named(&self) -> bool {
        self.responder.is_identified()
    }

    /// Reads once, and sends the next message if there is one.
    fn step(&mut self, key: Secret) -> Progress {
        let (socket, mut passed) = (&self.socket, None);
        let read = |to: &mut [u8]| socket.receive_now(to);
        let known = |name| (name == key.name()).then_some(key);
        let answer = |question: &[u8; BYTES]| {
            let question = Question::of_bytes(question)?;
            passed = descriptor_for(question);
            Some(to_bytes([u64::from(passed.is_some()), 0, 0, 0, 0, 0]))
        };
        match self.responder.step(read, known, key.name(), answer) {
            Ok(ResponderStep::Wait) => Progress::Waits,
            Ok(ResponderStep::Challenge(bytes)) if socket.send(&bytes).is_ok() => Progress::Waits,
            Ok(ResponderStep::Answer(bytes)) => {
                let sent = match &passed {
                    Some(fd) => socket.send_with(&bytes, fd),
                    None => socket.send(&bytes),
                };
                if sent.is_ok() { Progress::Answered } else { Progress::Invalid }
            }
            Ok(_) => Progress::Invalid,
            Err(error) => match error.kind() {
                ErrorKind::WouldBlock | ErrorKind::Interrupted => Progress::Waits,
                _ => Progress::Invalid,
            },
        }
    }
}

/// Returns the descriptor that answers a question.
fn descriptor_for(question: Question) -> Option<OwnedFd> {
    match question {
        Question::File(mark) => duplicate(&mark),
        Question::Process => process::descriptor_of(process::id()),
    }
}

/// The state of the thread.
pub struct PassingThread {
    key: Secret,
    /// `None`: the program has closed it, and it could not be opened again yet
    listening: Option<PacketSocket>,
    list: Vec<Asking>,
}

impl PassingThread {
    /// Begins to listen.
    pub fn new(key: Secret) -> Result<PassingThread> {
        let socket =
            PacketSocket::listen(address_of(key)).map_err(|error| system("listen", &error))?;
        Ok(PassingThread { key, listening: Some(socket), list: Vec::new() })
    }

    /// The descriptor of the listening socket.
    #[cfg(test)]
    pub fn listening_fd(&self) -> i32 {
        self.listening.as_ref().map_or(-1, PacketSocket::fd)
    }

    /// Main loop of the thread.
    pub fn run(mut self) {
        loop {
            let (listening, ready) = self.sleep();
            let mut rests = self.advance(&ready);
            if listening {
                rests |= self.accept();
            }
            if rests {
                std::thread::sleep(REST);
            }
        }
    }

    /// Sleeps until a connection arrives or has data, or one is past its time. Returns whether the
    /// listening socket is ready, and which connections are.
    fn sleep(&mut self) -> (bool, Vec<bool>) {
        self.listen_again();
        let wait = |fd: i32| libc::pollfd { fd, events: libc::POLLIN, revents: 0 };
        let is_full = self.list.iter().filter(|asking| asking.is_named()).count() >= NAMED_MAX;
        let listening = self.listening.as_ref().filter(|_| !is_full).map_or(-1, PacketSocket::fd);
        let asking = self.list.iter().map(|asking| wait(asking.socket.fd()));
        let mut all: Vec<libc::pollfd> = [wait(listening)].into_iter().chain(asking).collect();
        let lifetime = i32::try_from(LIFETIME_MAX.as_millis()).unwrap_or(i32::MAX);
        let ms = match (&self.listening, self.list.is_empty()) {
            (None, _) => lifetime / 100,
            (_, true) => -1,
            (_, false) => lifetime,
        };
        // SAFETY: a list of our own; negative descriptors are ignored.
        let count = unsafe { libc::poll(all.as_mut_ptr(), all.len().to_u64(), ms) };
        if count < 0 {
            // Out of memory for a moment: no socket counts as ready, and other threads run.
            all.iter_mut().for_each(|place| place.revents = 0);
            std::thread::sleep(SHORTAGE);
        }
        (all[0].revents != 0, all[1..].iter().map(|place| place.revents != 0).collect())
    }

    /// Opens the listening socket again if the program has closed it.
    fn listen_again(&mut self) {
        if !self.listening.as_ref().is_some_and(PacketSocket::is_open) {
            self.listening = PacketSocket::listen(address_of(self.key)).ok();
        }
    }

    /// Takes one step of each connection that is ready, and closes those that are past their time.
    /// Returns whether a stranger has caused work.
    fn advance(&mut self, ready: &[bool]) -> bool {
        let (now, key, mut strangers) = (Instant::now(), self.key, false);
        let mut at = 0;
        self.list.retain_mut(|asking| {
            let is_ready = ready[at];
            at += 1;
            let progress = if is_ready { asking.step(key) } else { Progress::Waits };
            let stays = progress == Progress::Waits && now < asking.began + LIFETIME_MAX;
            strangers |= !stays && progress != Progress::Answered;
            stays
        });
        strangers
    }

    /// Accepts connections, and takes their first steps. Returns whether a stranger has caused
    /// work.
    fn accept(&mut self) -> bool {
        let mut strangers = false;
        for _ in 0..ACCEPTED_MAX {
            let Some(listening) = self.listening.as_ref().filter(|socket| socket.is_open()) else {
                break;
            };
            match listening.accept() {
                Ok(socket) => {
                    let mut asking = Asking::new(socket);
                    match asking.step(self.key) {
                        Progress::Waits => {
                            strangers |= self.make_room(asking.is_named());
                            self.list.push(asking);
                        }
                        Progress::Answered => {}
                        Progress::Invalid => strangers = true,
                    }
                }
                Err(error) if error.kind() == ErrorKind::WouldBlock => break,
                Err(error) if error.raw_os_error().is_some_and(is_shortage) => {
                    // Closing the connection of a stranger may free what this one needs.
                    if !self.drop_oldest_unnamed() {
                        std::thread::sleep(SHORTAGE);
                        break;
                    }
                    strangers = true;
                }
                // This connection failed: continue with the next one.
                Err(_) => {}
            }
        }
        strangers
    }

    /// Makes room for one more connection. Returns whether a stranger had to give it.
    fn make_room(&mut self, is_named: bool) -> bool {
        let unnamed = self.list.iter().filter(|asking| !asking.is_named()).count();
        !is_named && unnamed >= UNNAMED_MAX && self.drop_oldest_unnamed()
    }

    fn drop_oldest_unnamed(&mut self) -> bool {
        let oldest = self.list.iter().position(|asking| !asking.is_named());
        oldest.map(|at| self.list.remove(at)).is_some()
    }
}
