//! The connections that a process serves, and the thread that serves them: the service thread, or a
//! rank that waits for its own words ([`Serving`](super::serving::Serving)). Such a rank wakes up
//! once for a request that changes its word; if the service thread carried it out, both would wake
//! up, one after the other. While the rank serves, no event of a connection wakes the service
//! thread.
//!
//! | `turn`  | meaning                                                                        |
//! |---------|--------------------------------------------------------------------------------|
//! | Thread  | the service thread carries out requests; the rank sets it when its wait ends,  |
//! |         | and the service thread if the rank comes back too late                         |
//! | Rank    | the rank does, which sets it at each step                                      |
//! | Kept    | the wait of the rank has ended, and the rank is expected to wait again soon, as |
//! |         | in a loop of epochs: requests wait for a short time, because two changes of    |
//! |         | threads cost more than the request                                             |
//! | Late    | the service thread carries out requests, because the rank makes no step in its |
//! |         | wait                                                                           |
//!
//! The lock of the table protects it. A rank reads its word after it has set it, and no other
//! thread carries out a request from there on, so the rank sleeps in epoll_wait(2) alone. A rank
//! that makes no step (a handler of a signal of the program runs, say) loses its turn; it reads its
//! word when its bounded wait ends. A timer of the service thread runs while the turn is not its
//! own. Events are reported when they come, not while they last (EPOLLET): a turn ends where the
//! stream is empty or full, and a thread that takes an event serves the connection, or gives the
//! event back. A rank that makes no step may have taken events, so the service thread then asks for
//! those of all connections, each time the timer ends. Streams, events and the timer are behind
//! [`ServedStreams`], so that the model checker runs this file.

use std::collections::VecDeque;
use std::io::Result;
use std::time::{Duration, Instant};

use crate::number::Number;
use crate::sync::{AtomicU64, Mutex, Ordering};

/// Rounds in which connections wait for a lock, and nothing else is served, before a server sleeps
/// between two rounds: the lock is held for the time of one call.
const EAGER_ROUNDS: u32 = 64;
/// That sleep, in milliseconds.
const SLEEP_MS: i32 = 1;

/// Events with which a stream ends.
const ENDED: i32 = libc::EPOLLRDHUP | libc::EPOLLHUP | libc::EPOLLERR;

/// A thread that serves.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Server {
    /// the service thread
    Thread,
    /// a rank that waits
    Rank,
}

/// What a server does next with a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Next {
    /// serves it when more requests have arrived
    Receive,
    /// serves it when there is room for its answers
    Send,
    /// serves it again after the other connections: requests that have arrived are left
    Again,
    /// the same, but it waits for a lock that another connection or a rank holds
    AwaitLock,
    /// closes it
    End,
}

/// The streams of the connections, and the list of their events.
pub trait ServedStreams {
    /// The target's end of a connection.
    type Served;
    /// Bytes of the buffer for a turn.
    const BUFFER_BYTES: usize;
    /// Begins to report these events of a connection with this number; those that are there already
    /// are reported at once.
    fn add(&self, served: &Self::Served, events: i32, number: u64) -> Result<()>;
    /// Reports these events from here on. Those that are there already are reported once more.
    fn change(&self, served: &Self::Served, events: i32, number: u64) -> Result<()>;
    /// Serves a connection once.
    fn serve(&self, served: &mut Self::Served, buffer: &mut [u8]) -> Next;
    /// Acknowledges what a connection has received.
    fn acknowledge(&self, served: &Self::Served);
    /// Wakes the service thread for events of the connections, or not. Events that are there
    /// already wake it at once.
    fn wake_thread(&self, wakes: bool);
    /// Arms the timer. The service thread calls [`Connections::timer_ended`] when it expires.
    fn start_timer(&self, time: Duration);
}

/// The connections.
pub struct Connections<S: ServedStreams> {
    streams: S,
    /// time after which a rank that serves must have made a step
    step_max: Duration,
    /// time in which a rank that has kept the turn must come back
    keep_max: Duration,
    table: Mutex<Table<S::Served>>,
    /// number of connections, with those that are not served yet
    count: AtomicU64,
}

struct Table<C> {
    list: Vec<Option<Entry<C>>>,
    free: Vec<usize>,
    /// those that are to be served again before a server waits, each once
    again: VecDeque<usize>,
    /// those that were served since a rank has acknowledged what they have received, each once
    unacknowledged: Vec<usize>,
    /// rounds in a row in which all that was served waited for a lock
    waiting_rounds: u32,
    buffer: Vec<u8>,
    turn: Turn,
    /// end of the last turn of a rank
    ended: Option<Instant>,
    /// number of steps of ranks, and those before the timer was started
    steps: u64,
    steps_before: u64,
    timer: Timer,
}

/// The timer of the service thread.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Timer {
    Stopped,
    /// ends when a rank that serves must have made a step
    Step,
    /// ends when a rank that has kept the turn must come back, or before; when it was started
    Keep(Instant),
}

/// Whose turn it is to serve.
#[derive(Clone, Copy)]
enum Turn {
    Thread,
    Rank,
    /// since when
    Kept(Instant),
    Late,
}

struct Entry<C> {
    served: C,
    /// the events that are watched for
    watched: i32,
    /// whether it is to be served again
    again: bool,
    /// whether it is in the list of those that are to be acknowledged
    is_unacknowledged: bool,
    /// whether its stream has ended: no other event comes
    ended: bool,
}

impl<S: ServedStreams> Connections<S> {
    /// Starts without any. A rank that serves must make a step in `step_max`, and one that has kept
    /// the turn in `keep_max`.
    pub fn new(streams: S, step_max: Duration, keep_max: Duration) -> Connections<S> {
        let table = Table {
            list: Vec::new(),
            free: Vec::new(),
            again: VecDeque::new(),
            unacknowledged: Vec::new(),
            waiting_rounds: 0,
            buffer: vec![0; S::BUFFER_BYTES],
            turn: Turn::Thread,
            ended: None,
            steps: 0,
            steps_before: 0,
            timer: Timer::Stopped,
        };
        Connections {
            streams,
            step_max,
            keep_max,
            table: Mutex::new(table),
            count: AtomicU64::new(0),
        }
    }

    /// Number of connections.
    pub fn count(&self) -> u64 {
        // Relaxed: a count.
        self.count.load(Ordering::Relaxed)
    }

    /// Counts a connection that is added later.
    pub fn count_one(&self) {
        // Relaxed: a count.
        self.count.fetch_add(1, Ordering::Relaxed);
    }

    /// Begins to serve a connection.
    pub fn add(&self, served: S::Served) {
        let table = &mut *self.table.lock();
        let index = table.free.pop().unwrap_or_else(|| {
            table.list.push(None);
            table.list.len() - 1
        });
        let entry = table.list[index].insert(Entry {
            served,
            watched: libc::EPOLLIN,
            again: false,
            is_unacknowledged: false,
            ended: false,
        });
        let events = reported(entry.watched);
        if self.streams.add(&entry.served, events, index.to_u64()).is_err() {
            // The origin finds the end of the stream.
            self.close(table, index);
        }
    }

    /// Takes an event of a connection.
    pub fn event(&self, by: Server, index: usize, events: u32) {
        let mut table = self.table.lock();
        if table.is_served(by) {
            self.serve_once(&mut table, index, events.cast_signed() & ENDED != 0);
        } else {
            self.give_back(&mut table, index);
        }
    }

    /// Ends the round of a server: serves connections once more that have had their turn.
    pub fn end_round(&self, by: Server) {
        let many = {
            let table = &mut *self.table.lock();
            table.waiting_rounds = table.waiting_rounds.saturating_add(1);
            table.again.len()
        };
        for _ in 0..many {
            let mut table = self.table.lock();
            if !table.is_served(by) {
                break;
            }
            let Some(index) = table.take_again() else { break };
            self.serve_once(&mut table, index, false);
        }
    }

    /// The longest time in milliseconds for which a server may wait for events; -1: any.
    pub fn wait_max(&self, by: Server) -> i32 {
        self.table.lock().longest_wait(by)
    }

    /// Lets a rank serve from here on. Returns how long it may wait for events, as `wait_max`.
    pub fn begin_rank(&self) -> i32 {
        let mut table = self.table.lock();
        self.begin_turn(&mut table);
        table.longest_wait(Server::Rank)
    }

    /// Whether a rank has ended a turn just now: it makes one call after the other.
    pub fn is_busy(&self) -> bool {
        self.table.lock().ended.is_some_and(|ended| ended.elapsed() < self.keep_max / 4)
    }

    /// Records a step of a rank that serves.
    pub fn note_step(&self) {
        let mut table = self.table.lock();
        self.begin_turn(&mut table);
        table.steps += 1;
    }

    /// Acknowledges what was received: the part of a rank that has nothing to do.
    pub fn acknowledge(&self) {
        let table = &mut *self.table.lock();
        for index in table.unacknowledged.drain(..) {
            if let Some(Some(entry)) = table.list.get_mut(index) {
                entry.is_unacknowledged = false;
                self.streams.acknowledge(&entry.served);
            }
        }
    }

    /// Keeps the turn for a rank whose wait has ended, and which is expected to wait again soon.
    pub fn keep_turn(&self) {
        let (mut table, now) = (self.table.lock(), Instant::now());
        table.ended = Some(now);
        if !table.again.is_empty() {
            return self.end_turn(&mut table);
        }
        self.set_turn(&mut table, Turn::Kept(now));
        table.steps += 1;
        // In a loop of short waits it neither ends nor is started for each.
        if !matches!(table.timer, Timer::Keep(since) if now - since < self.keep_max / 2) {
            self.start_timer(&mut table, Timer::Keep(now), self.keep_max);
        }
    }

    /// Lets the service thread serve from here on.
    pub fn end_rank(&self) {
        let mut table = self.table.lock();
        table.ended = Some(Instant::now());
        self.end_turn(&mut table);
    }

    /// Does so if a rank has kept the turn.
    pub fn end_kept_turn(&self) {
        let mut table = self.table.lock();
        if matches!(table.turn, Turn::Kept(_)) {
            self.end_turn(&mut table);
        }
    }

    /// Takes the turn from a rank that is late: the part of the service thread when the timer ends.
    pub fn timer_ended(&self) {
        let mut table = self.table.lock();
        let ended = core::mem::replace(&mut table.timer, Timer::Stopped);
        match table.turn {
            Turn::Thread => {}
            Turn::Late => self.go_on_without_rank(&mut table),
            Turn::Rank if ended == Timer::Step && table.steps == table.steps_before => {
                self.go_on_without_rank(&mut table);
            }
            Turn::Rank => self.start_timer(&mut table, Timer::Step, self.step_max),
            Turn::Kept(since) => match self.keep_max.checked_sub(since.elapsed()) {
                Some(rest) if !rest.is_zero() => {
                    self.start_timer(&mut table, Timer::Keep(since), rest);
                }
                _ => self.end_turn(&mut table),
            },
        }
    }

    /// Number of steps of ranks.
    #[cfg(test)]
    pub fn steps(&self) -> u64 {
        self.table.lock().steps
    }

    fn begin_turn(&self, table: &mut Table<S::Served>) {
        self.set_turn(table, Turn::Rank);
        if table.timer == Timer::Stopped {
            self.start_timer(table, Timer::Step, self.step_max);
        }
    }

    fn end_turn(&self, table: &mut Table<S::Served>) {
        self.set_turn(table, Turn::Thread);
        while let Some(index) = table.take_again() {
            self.give_back(table, index);
        }
    }

    /// Events wake the service thread while it serves, and then alone.
    fn set_turn(&self, table: &mut Table<S::Served>, turn: Turn) {
        let before = table.is_served(Server::Thread);
        table.turn = turn;
        let wakes = table.is_served(Server::Thread);
        if wakes != before {
            self.streams.wake_thread(wakes);
        }
    }

    /// Serves in place of a rank that makes no step. No other event comes for those that it has
    /// taken.
    fn go_on_without_rank(&self, table: &mut Table<S::Served>) {
        (0..table.list.len()).for_each(|index| self.give_back(table, index));
        self.end_turn(table);
        self.set_turn(table, Turn::Late);
        self.start_timer(table, Timer::Step, self.step_max);
    }

    fn start_timer(&self, table: &mut Table<S::Served>, timer: Timer, time: Duration) {
        (table.timer, table.steps_before) = (timer, table.steps);
        self.streams.start_timer(time);
    }

    /// Reports the events of a connection once more, for the other server.
    fn give_back(&self, table: &mut Table<S::Served>, index: usize) {
        let Some(Some(entry)) = table.list.get(index) else { return };
        let events = reported(entry.watched);
        if self.streams.change(&entry.served, events, index.to_u64()).is_err() {
            self.close(table, index);
        }
    }

    /// Serves a connection once. `ended`: its stream may have ended.
    fn serve_once(&self, table: &mut Table<S::Served>, index: usize, ended: bool) {
        let Some(Some(entry)) = table.list.get_mut(index) else { return };
        entry.ended |= ended;
        let next = self.streams.serve(&mut entry.served, &mut table.buffer);
        if !core::mem::replace(&mut entry.is_unacknowledged, true) {
            table.unacknowledged.push(index);
        }
        if next != Next::AwaitLock {
            table.waiting_rounds = 0;
        }
        let events = match next {
            Next::End => return self.close(table, index),
            Next::Again | Next::AwaitLock => return table.serve_again(index),
            Next::Receive if entry.ended => return table.serve_again(index),
            Next::Receive => libc::EPOLLIN,
            Next::Send => libc::EPOLLOUT,
        };
        let before = core::mem::replace(&mut entry.watched, events);
        // A call that sends may also have found no memory; there is room then, which is reported.
        if before != events || events == libc::EPOLLOUT {
            self.give_back(table, index);
        }
    }

    fn close(&self, table: &mut Table<S::Served>, index: usize) {
        if table.list[index].take().is_some() {
            table.free.push(index);
            // Relaxed: a count.
            self.count.fetch_sub(1, Ordering::Relaxed);
        }
    }
}

impl<C> Table<C> {
    fn is_served(&self, by: Server) -> bool {
        matches!(self.turn, Turn::Thread | Turn::Late) == (by == Server::Thread)
    }

    fn longest_wait(&self, by: Server) -> i32 {
        let sleeps = self.waiting_rounds > EAGER_ROUNDS;
        match self.again.is_empty() || !self.is_served(by) {
            true => -1,
            false => i32::from(sleeps) * SLEEP_MS,
        }
    }

    /// Has a connection served again, once: with several turns in a round it would delay the others
    /// by the more, the longer its origin sends.
    fn serve_again(&mut self, index: usize) {
        let Some(Some(entry)) = self.list.get_mut(index) else { return };
        if !core::mem::replace(&mut entry.again, true) {
            self.again.push_back(index);
        }
    }

    /// Takes the first connection that is to be served again.
    fn take_again(&mut self) -> Option<usize> {
        let index = self.again.pop_front()?;
        if let Some(entry) = &mut self.list[index] {
            entry.again = false;
        }
        Some(index)
    }
}

/// The events that are reported where `events` are watched for. The end of the requests is one only
/// while requests are received: behind answers that find no room it would be reported at once,
/// again and again.
fn reported(events: i32) -> i32 {
    let end = if events & libc::EPOLLIN != 0 { libc::EPOLLRDHUP } else { 0 };
    events | end | libc::EPOLLET
}
