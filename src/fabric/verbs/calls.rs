//! Callers that the connection thread listens to at once: who gets a place among them, who loses
//! it, and for how long. Generic over the stream; the time is told, so that tests have their own.
//! Not for what is said ([`talk`](super::talk)). Invariant: a caller that has not named the job's
//! secret never takes a place from one that has.
//!
//! A process of the job greets with its first bytes, which are there when its call is taken. So who
//! has not greeted by then is a stranger, or very slow: a few of them are listened to, of one
//! address fewer, and the oldest makes room for the next. A caller that has greeted
//! waits for a place of its own.

use std::io::{ErrorKind, Read, Write};
use std::net::IpAddr;
use std::time::{Duration, Instant};

use super::secret::Secret;
use super::talk::{BYTES, Called, Then};

/// Callers that have not greeted: in all, and from one address.
const STRANGERS_MAX: usize = 32;
const STRANGERS_FROM_ONE_MAX: usize = 8;
/// Callers that have greeted.
const GREETED_MAX: usize = 32;
/// All of them.
pub const CALLS_MAX: usize = STRANGERS_MAX + GREETED_MAX;
/// How long a call may take in all.
const PATIENCE: Duration = Duration::from_secs(5);
/// How long who has greeted keeps its place when others want it.
const GRACE: Duration = Duration::from_millis(100);

/// What the called process knows, and how it answers.
pub trait Host {
    /// Its number.
    fn uid(&self) -> u64;
    /// The secret of this name.
    fn secret(&self, name: u64) -> Option<Secret>;
    /// The answer to a question, if it is one.
    fn answer(&self, question: &[u8; BYTES]) -> Option<[u8; BYTES]>;
}

/// A call that is not answered yet.
pub struct Call<S> {
    pub stream: S,
    from: IpAddr,
    began: Instant,
    called: Called,
}

/// What has become of a call.
#[derive(Debug, PartialEq, Eq)]
enum Heard {
    /// nothing yet
    Nothing,
    /// it goes on
    More,
    Answered,
    /// it ended, or was nonsense
    Nonsense,
}

impl<S: Read + Write> Call<S> {
    /// Reads once, and says what there is to say.
    fn step(&mut self, host: &impl Host) -> Heard {
        let stream = &mut self.stream;
        let read = |bytes: &mut [u8]| match stream.read(bytes) {
            Ok(0) => Err(ErrorKind::UnexpectedEof.into()),
            read => read,
        };
        let known = |name| host.secret(name);
        let then = self.called.step(read, known, host.uid(), |question| host.answer(question));
        match then {
            Ok(Then::Listen) => Heard::More,
            Ok(Then::Challenge(bytes)) if self.say(&bytes) => Heard::More,
            Ok(Then::Answer(bytes)) if self.say(&bytes) => Heard::Answered,
            Ok(_) => Heard::Nonsense,
            Err(error) => match error.kind() {
                ErrorKind::WouldBlock | ErrorKind::Interrupted => Heard::Nothing,
                _ => Heard::Nonsense,
            },
        }
    }

    /// A message fits into the socket's buffer of a caller that listens.
    fn say(&mut self, bytes: &[u8]) -> bool {
        self.stream.write_all(bytes).is_ok()
    }
}

/// The callers.
pub struct Calls<S> {
    list: Vec<Call<S>>,
    /// strangers that were met, ever
    strangers: u64,
}

impl<S: Read + Write> Calls<S> {
    /// None yet.
    pub fn new() -> Calls<S> {
        Calls { list: Vec::new(), strangers: 0 }
    }

    /// Those that wait to be heard.
    pub fn list(&self) -> &[Call<S>] {
        &self.list
    }

    /// How often this process has had to do with a stranger, or with somebody who is as slow.
    pub fn strangers(&self) -> u64 {
        self.strangers
    }

    /// When the next one has to go.
    pub fn until(&self) -> Option<Instant> {
        self.list.iter().map(|call| call.began + PATIENCE).min()
    }

    /// Whether one more can be taken. If not, when somebody who has greeted has had its time.
    pub fn room(&mut self, now: Instant) -> Result<(), Instant> {
        let greeted = self.list.iter().enumerate().filter(|(_, call)| call.called.is_greeted());
        if greeted.clone().count() < GREETED_MAX {
            return Ok(());
        }
        let oldest = greeted.min_by_key(|(_, call)| call.began).map(|(index, _)| index);
        let Some(oldest) = oldest else { return Ok(()) };
        let until = self.list[oldest].began + GRACE;
        if now < until {
            return Err(until);
        }
        self.drop_at(oldest);
        Ok(())
    }

    /// Takes a call, for which there is room, and hears what was said at once.
    pub fn take(&mut self, stream: S, from: IpAddr, now: Instant, host: &impl Host) {
        let mut call = Call { stream, from, began: now, called: Called::new() };
        match call.step(host) {
            Heard::Answered => {}
            Heard::Nonsense => self.strangers += 1,
            Heard::Nothing | Heard::More => {
                if !call.called.is_greeted() {
                    self.strangers += 1;
                    self.make_room(from);
                }
                self.list.push(call);
            }
        }
    }

    /// Room for a stranger from an address.
    fn make_room(&mut self, from: IpAddr) {
        let strangers = || self.list.iter().filter(|call| !call.called.is_greeted());
        let whose = |call: &Call<S>| call.from == from;
        if strangers().filter(|call| whose(call)).count() >= STRANGERS_FROM_ONE_MAX {
            self.drop_stranger(whose);
        } else if strangers().count() >= STRANGERS_MAX {
            self.drop_stranger(|_| true);
        }
    }

    /// Drops the oldest of the strangers that `which` chooses; whether there was one.
    fn drop_stranger(&mut self, which: impl Fn(&Call<S>) -> bool) -> bool {
        let strangers = self.list.iter().enumerate();
        let strangers = strangers.filter(|(_, call)| !call.called.is_greeted() && which(call));
        let oldest = strangers.min_by_key(|(_, call)| call.began).map(|(index, _)| index);
        if let Some(index) = oldest {
            self.drop_at(index);
        }
        oldest.is_some()
    }

    /// Drops a stranger, whose descriptor is wanted; whether there was one.
    pub fn give_up_one(&mut self) -> bool {
        self.drop_stranger(|_| true)
    }

    fn drop_at(&mut self, index: usize) {
        self.strangers += 1;
        self.list.remove(index);
    }

    /// Hears those of whom `ready` says, by their place in the list, that there is something to
    /// hear, once each; and drops those that have had their time.
    pub fn hear(&mut self, now: Instant, ready: impl Fn(usize) -> bool, host: &impl Host) {
        let (mut index, mut strangers) = (0, 0);
        self.list.retain_mut(|call| {
            let heard = if ready(index) { call.step(host) } else { Heard::Nothing };
            index += 1;
            let late = now >= call.began + PATIENCE;
            let slow = heard == Heard::More && !call.called.is_greeted();
            let stays = matches!(heard, Heard::Nothing | Heard::More) && !late;
            strangers += u64::from(slow || !stays && heard != Heard::Answered);
            stays
        });
        self.strangers += strangers;
        if self.list.is_empty() {
            // A process that once had many callers at a time does not keep the memory for them.
            self.list = Vec::new();
        }
    }

    /// For how many callers there is memory.
    #[cfg(test)]
    pub fn capacity(&self) -> usize {
        self.list.capacity()
    }
}
