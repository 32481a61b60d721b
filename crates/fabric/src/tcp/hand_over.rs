//! Requests that the calls of an origin leave to the service thread of its process: those that are
//! gathered, after a millisecond, and what a full socket has not taken, when there is room. The
//! events of the thread are behind [`ThreadEvents`], so that the model checker runs this file.
//! Invariant: while there is anything to send, the timer runs, the thread awaits room, or a failure
//! is kept for the origin's next call.

use std::collections::BTreeMap;
use std::io::Result;
use std::sync::Arc;

use super::unsent::{RequestStream, Unsent};
use crate::sync::{AtomicBool, AtomicU64, Mutex, Ordering};

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
    /// Wants an event after a millisecond. The thread then calls [`HandOver::send_gathered`].
    fn start_timer(&self);
    /// Takes the event of the timer.
    fn take_timer(&self);
}

type Shared<E> = Arc<Mutex<Unsent<<E as ThreadEvents>::Stream>>>;

/// What the origins of this process have not sent, by the number of the connection.
pub struct HandOver<E: ThreadEvents> {
    events: E,
    /// whether the timer runs
    timed: AtomicBool,
    origins: Mutex<BTreeMap<u64, Shared<E>>>,
    numbers: AtomicU64,
}

impl<E: ThreadEvents> HandOver<E> {
    /// Starts without connections.
    pub fn new(events: E) -> HandOver<E> {
        let (timed, numbers) = (AtomicBool::new(false), AtomicU64::new(0));
        HandOver { events, timed, origins: Mutex::new(BTreeMap::new()), numbers }
    }

    /// The events of the thread.
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
        if unsent.send()? {
            return Ok(());
        }
        let awaited = self.events.await_room(number, unsent.stream());
        awaited.map_err(|error| unsent.fail(&error))
    }

    /// Sends requests that were added, if they are due or `urgent`; otherwise the thread sends in a
    /// millisecond what is not sent by then. The caller has locked the requests.
    #[inline]
    pub fn send_or_leave(
        &self,
        number: u64,
        unsent: &mut Unsent<E::Stream>,
        urgent: bool,
    ) -> Result<()> {
        if urgent || unsent.is_due() {
            return self.send(number, unsent);
        }
        // Either the timer runs from here on, or the thread has not locked the requests yet.
        // Relaxed: if the thread has locked them since its swap in `send_gathered`, that lock
        // orders the swap ahead of this load.
        if !self.timed.load(Ordering::Relaxed) {
            self.run_timer();
        }
        Ok(())
    }

    #[cold]
    fn run_timer(&self) {
        // AcqRel: pairs with the swap in `send_gathered`.
        if !self.timed.swap(true, Ordering::AcqRel) {
            self.events.start_timer();
        }
    }

    /// Sends what the origins have gathered: the thread's part when the timer has ended.
    pub fn send_gathered(&self) {
        // Before the swap: an event of a timer that is started behind it must not be taken here.
        self.events.take_timer();
        self.timed.swap(false, Ordering::AcqRel);
        let origins: Vec<_> =
            self.origins.lock().iter().map(|(number, unsent)| (*number, unsent.clone())).collect();
        for (number, unsent) in origins {
            // The failure is kept for the origin's next call.
            let _ = self.send(number, &mut unsent.lock());
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
        unsent.clear();
        self.events.end(unsent.stream());
    }
}
