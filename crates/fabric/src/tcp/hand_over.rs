//! Requests that the calls of an origin leave to the service thread of its process: those that are
//! gathered, when a timer has ended, and what a full socket has not taken, when there is room. The
//! events of the thread are behind [`ThreadEvents`], so that the model checker runs this file.
//! Invariant: while there is anything to send, the timer runs, the thread awaits room, or a failure
//! is kept for the origin's next call.
//!
//! | timer | for                   | runs                                                        |
//! |-------|-----------------------|-------------------------------------------------------------|
//! | short | [`Leaves::Soon`]      | while such requests are unsent                              |
//! | long  | [`Leaves::WithLater`] | from the first such request to its end, also if a call has  |
//! |       |                       | sent them: to stop it takes a system call                   |

use std::collections::BTreeMap;
use std::io::Result;
use std::sync::Arc;

use super::unsent::{RequestStream, Unsent};
use crate::leaves::Leaves;
use crate::sync::{AtomicU64, Mutex, Ordering};

/// The events of the service thread that concern unsent requests.
pub trait ThreadEvents {
    /// The stream of a connection.
    type Stream: RequestStream;
    /// Adds a stream, for which no event is wanted yet.
    fn add(&self, number: u64, stream: &Self::Stream) -> Result<()>;
    /// Wants one event when there is room in the stream, or its end; at once if there is now. The
    /// thread then calls [`HandOver::send_rest`].
    fn await_room(&self, number: u64, stream: &Self::Stream) -> Result<()>;
    /// Removes a stream, and ends it.
    fn end(&self, stream: &Self::Stream);
    /// Wants an event of this timer. The thread then calls [`HandOver::send_gathered`].
    fn start_timer(&self, which: TimerKind);
    /// Wants no event of the short timer any more. One that has arrived may stay.
    fn stop_timer(&self);
    /// Takes the event of this timer.
    fn take_timer(&self, which: TimerKind);
}

type Shared<E> = Arc<Mutex<Unsent<<E as ThreadEvents>::Stream>>>;

/// What the origins of this process have not sent, by the number of the connection.
pub struct HandOver<E: ThreadEvents> {
    events: E,
    short: Mutex<Timer>,
    long: Mutex<Timer>,
    origins: Mutex<BTreeMap<u64, Shared<E>>>,
    numbers: AtomicU64,
}

/// The timers of the table above.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TimerKind {
    /// the short timer
    Short,
    /// the long timer
    Long,
}

#[derive(Default)]
struct Timer {
    runs: bool,
    /// of the short timer: the number of connections whose requests it is to send
    connections: usize,
    /// these connections, and others whose requests have been sent since the timer was started
    numbers: Vec<u64>,
}

impl<E: ThreadEvents> HandOver<E> {
    /// Starts without connections.
    pub fn new(events: E) -> HandOver<E> {
        let [short, long] = [Timer::default(), Timer::default()].map(Mutex::new);
        let (origins, numbers) = (Mutex::new(BTreeMap::new()), AtomicU64::new(0));
        HandOver { events, short, long, origins, numbers }
    }

    /// The events of the thread.
    #[cfg(test)]
    pub fn events(&self) -> &E {
        &self.events
    }

    /// Adds a connection, and returns its number.
    pub fn add(&self, stream: E::Stream) -> Result<(u64, Shared<E>)> {
        // Relaxed: only uniqueness matters.
        let number = self.numbers.fetch_add(1, Ordering::Relaxed);
        self.events.add(number, &stream)?;
        let unsent = Arc::new(Mutex::new(Unsent::new(stream)));
        self.origins.lock().insert(number, unsent.clone());
        Ok((number, unsent))
    }

    /// Sends what the socket takes; the thread sends the rest. The caller, which may be the thread,
    /// has locked the requests.
    pub fn send(&self, number: u64, unsent: &mut Unsent<E::Stream>) -> Result<()> {
        let sent = unsent.send();
        // Behind the system call that sends: most callers wait for an answer from here on.
        self.end_timed(unsent);
        if sent? {
            return Ok(());
        }
        let awaited = self.events.await_room(number, unsent.stream());
        awaited.map_err(|error| unsent.fail(&error))
    }

    /// Sends requests that were added and may not wait ([`Unsent::may_wait`]), if they are due or
    /// leave at once; otherwise starts the timer. The caller has locked the requests.
    pub fn leave(&self, number: u64, unsent: &mut Unsent<E::Stream>, leaves: Leaves) -> Result<()> {
        let is_sent = match leaves {
            Leaves::AtOnce | Leaves::WithNotification => true,
            Leaves::WithLock => unsent.has_sent_lock || unsent.is_due(),
            _ => unsent.is_due(),
        };
        if is_sent {
            return self.send(number, unsent);
        }
        match leaves {
            Leaves::Soon | Leaves::IfFirst => self.begin_timed(number, unsent),
            _ if !unsent.is_timed_long => self.begin_timed_long(number, unsent),
            _ => {}
        }
        Ok(())
    }

    fn begin_timed_long(&self, number: u64, unsent: &mut Unsent<E::Stream>) {
        unsent.is_timed_long = true;
        let mut timer = self.long.lock();
        timer.numbers.push(number);
        if !core::mem::replace(&mut timer.runs, true) {
            self.events.start_timer(TimerKind::Long);
        }
    }

    fn begin_timed(&self, number: u64, unsent: &mut Unsent<E::Stream>) {
        unsent.is_timed = true;
        let mut timer = self.short.lock();
        timer.connections += 1;
        timer.numbers.push(number);
        if !core::mem::replace(&mut timer.runs, true) {
            self.events.start_timer(TimerKind::Short);
        }
    }

    /// Ends the waiting of requests for the short timer.
    #[inline]
    fn end_timed(&self, unsent: &mut Unsent<E::Stream>) {
        if core::mem::take(&mut unsent.is_timed) {
            let mut timer = self.short.lock();
            timer.connections -= 1;
            if timer.connections == 0 {
                timer.numbers.clear();
                if core::mem::take(&mut timer.runs) {
                    self.events.stop_timer();
                }
            }
        }
    }

    /// Sends what the origins have gathered: the thread's part when a timer has ended.
    pub fn send_gathered(&self, which: TimerKind) {
        let numbers = {
            let timer = if which == TimerKind::Short { &self.short } else { &self.long };
            let mut timer = timer.lock();
            self.events.take_timer(which);
            timer.runs = false;
            core::mem::take(&mut timer.numbers)
        };
        for number in numbers {
            let Some(unsent) = self.origins.lock().get(&number).cloned() else { continue };
            let mut unsent = unsent.lock();
            let is_wanted = match which {
                TimerKind::Short => unsent.is_timed,
                TimerKind::Long => core::mem::take(&mut unsent.is_timed_long),
            };
            if is_wanted {
                // The failure is kept for the origin's next call.
                let _ = self.send(number, &mut unsent);
            }
        }
    }

    /// Sends what a full socket has not taken: the thread's part when there is room.
    pub fn send_rest(&self, number: u64) {
        let unsent = self.origins.lock().get(&number).cloned();
        // The failure is kept for the origin's next call.
        let _ = unsent.map(|unsent| self.send(number, &mut unsent.lock()));
    }

    /// Ends a connection. Nothing is sent afterwards, and memory that was lent is not read.
    pub fn close(&self, number: u64, unsent: &Mutex<Unsent<E::Stream>>) {
        self.origins.lock().remove(&number);
        // The thread may have found it before; it sends nothing while this is locked, and finds
        // nothing to send afterwards.
        let mut unsent = unsent.lock();
        self.end_timed(&mut unsent);
        unsent.clear();
        self.events.end(unsent.stream());
    }
}
