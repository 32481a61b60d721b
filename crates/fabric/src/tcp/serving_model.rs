//! A target's process without a network, for the tests of the turns to serve a connection: streams
//! to which a test sends, and their list of events. The list reports an event once, as epoll(7)
//! does, and is part of what the service thread waits for. A wait has no end but an event, so that
//! a thread that misses one stops the test.

use core::mem::take;
use std::io::Result;
use std::sync::Arc;
use std::time::Duration;

#[cfg(loom)]
use loom::sync::{Condvar, Mutex, MutexGuard};
#[cfg(not(loom))]
use std::sync::{Condvar, Mutex, MutexGuard};

use super::connections::{Connections, Next, ServedStreams, Server};

pub const IN: i32 = libc::EPOLLIN;
const OUT: i32 = libc::EPOLLOUT;
const ENDED: i32 = libc::EPOLLRDHUP;
/// Time after which a test gives up without loom.
#[cfg(not(loom))]
const WATCHDOG: Duration = Duration::from_secs(60);
/// Times in which a rank has to make a step: one that never passes, and one that has passed.
pub const NEVER: Duration = Duration::from_secs(3600);
pub const AT_ONCE: Duration = Duration::ZERO;

/// A connection: its peer, and the system's part of it.
#[derive(Default)]
pub struct Stream {
    /// requests that have arrived
    arrived: usize,
    /// answers for which there is room, and those that wait for it
    room: usize,
    unsent: usize,
    /// attempts to send that find no memory, though there is room
    pub no_memory: usize,
    has_ended: bool,
    /// whether the next request waits for a lock
    pub awaits_lock: bool,
    watched: i32,
}

impl Stream {
    /// The events that are there and watched for.
    fn events(&self) -> i32 {
        let arrived = if self.arrived > 0 { IN } else { 0 };
        let room = if self.room > 0 { OUT } else { 0 };
        let ended = if self.has_ended { IN | ENDED } else { 0 };
        (arrived | room | ended) & (self.watched | ENDED)
    }
}

/// The timer of the service thread.
#[derive(Default, PartialEq)]
enum ModelTimer {
    #[default]
    Stopped,
    Ended,
    /// the thread handles its end; whether the rank or a peer has acted meanwhile
    Handled(bool),
    /// the thread has started it at its end, so that it ends when the rank or a peer acts
    GoesOn,
}

#[derive(Default)]
pub struct StreamStates {
    pub streams: Vec<Stream>,
    /// those that have news which no thread has taken
    news: Vec<usize>,
    /// whether the service thread does not wait for news, and whether its timer has ended
    pub thread_is_deaf: bool,
    timer: ModelTimer,
    pub timers_started: usize,
    /// the service thread ends
    is_over: bool,
    /// requests that are answered, and connections that are closed
    answered: usize,
    closed: usize,
}

impl StreamStates {
    /// Whether the service thread has to handle the end of its timer.
    pub fn has_timer_ended(&self) -> bool {
        self.timer == ModelTimer::Ended
    }

    /// The rank or a peer acts.
    fn pass_time(&mut self) {
        match self.timer {
            ModelTimer::GoesOn => self.timer = ModelTimer::Ended,
            ModelTimer::Handled(_) => self.timer = ModelTimer::Handled(true),
            ModelTimer::Stopped | ModelTimer::Ended => {}
        }
    }

    /// Reports what has just come, if it is watched for.
    fn report(&mut self, index: usize, what: i32) {
        if what & (self.streams[index].watched | ENDED) == 0 {
            return;
        }
        if !self.news.contains(&index) {
            self.news.push(index);
        }
    }

    fn take_news(&mut self) -> Vec<(usize, u32)> {
        let news = take(&mut self.news).into_iter();
        let events = news.map(|index| (index, self.streams[index].events().cast_unsigned()));
        events.filter(|(_, what)| *what != 0).collect()
    }
}

/// The list of events.
pub struct EventList {
    state: Mutex<StreamStates>,
    /// the state has changed
    changed: Condvar,
}

impl EventList {
    /// Takes the events; waits for some if the caller may sleep.
    pub fn wait(&self, may_sleep: bool) -> Vec<(usize, u32)> {
        let mut events = Vec::new();
        self.wait_until("an event is lost", |state| {
            events = state.take_news();
            !events.is_empty() || !may_sleep
        });
        self.change_state(StreamStates::pass_time);
        events
    }

    /// Waits for what wakes the service thread, if it may sleep. Returns whether its timer has
    /// ended, and the events of the streams.
    pub fn wait_as_thread(&self, may_sleep: bool) -> (bool, Vec<(usize, u32)>) {
        let (mut has_ended, mut events) = (false, Vec::new());
        self.wait_until("an event of the service thread is lost", |state| {
            has_ended = state.timer == ModelTimer::Ended;
            if has_ended {
                state.timer = ModelTimer::Handled(false);
            }
            if !state.thread_is_deaf || !may_sleep {
                events = state.take_news();
            }
            has_ended || !events.is_empty() || !may_sleep || state.is_over
        });
        (has_ended, events)
    }

    /// Waits until this many requests are answered and connections closed.
    pub fn await_progress(&self, answered: usize, closed: usize) {
        self.wait_until("a request is lost", |state| {
            (state.answered, state.closed) == (answered, closed)
        });
    }

    fn wait_until(&self, failure: &str, mut is_so: impl FnMut(&mut StreamStates) -> bool) {
        let mut state = self.state();
        while !is_so(&mut state) {
            state = self.next_state(state, failure);
        }
    }

    /// Waits for a change of the state.
    #[cfg(not(loom))]
    fn next_state<'a>(
        &self,
        state: MutexGuard<'a, StreamStates>,
        failure: &str,
    ) -> MutexGuard<'a, StreamStates> {
        let (state, waited) = self.changed.wait_timeout(state, WATCHDOG).unwrap();
        assert!(!waited.timed_out(), "{failure}");
        state
    }

    /// Waits for a change of the state. The model ends if there is none.
    #[cfg(loom)]
    fn next_state<'a>(
        &self,
        state: MutexGuard<'a, StreamStates>,
        _failure: &str,
    ) -> MutexGuard<'a, StreamStates> {
        self.changed.wait(state).unwrap()
    }

    pub fn state(&self) -> MutexGuard<'_, StreamStates> {
        self.state.lock().unwrap()
    }

    pub fn change_state(&self, change: impl FnOnce(&mut StreamStates)) {
        change(&mut self.state());
        self.changed.notify_all();
    }

    pub fn answered(&self) -> usize {
        self.state().answered
    }

    /// The peer sends a request.
    pub fn send(&self, index: usize) {
        self.change_state(|state| {
            state.pass_time();
            state.streams[index].arrived += 1;
            state.report(index, IN);
        });
    }

    /// The peer receives an answer.
    pub fn make_room(&self, index: usize) {
        self.change_state(|state| {
            state.pass_time();
            state.streams[index].room += 1;
            state.report(index, OUT);
        });
    }

    /// The peer ends the connection.
    pub fn end(&self, index: usize) {
        self.change_state(|state| {
            state.pass_time();
            state.streams[index].has_ended = true;
            state.report(index, IN | ENDED);
        });
    }

    pub fn stop(&self) {
        self.change_state(|state| state.is_over = true);
    }
}

/// The target's end of a connection.
pub struct Served {
    index: usize,
    list: Arc<EventList>,
}

impl Drop for Served {
    fn drop(&mut self) {
        self.list.change_state(|state| state.closed += 1);
    }
}

impl ServedStreams for Arc<EventList> {
    type Served = Served;
    const BUFFER_BYTES: usize = 0;

    fn add(&self, served: &Served, events: i32, number: u64) -> Result<()> {
        assert_eq!(number, served.index as u64);
        self.change(served, events, number)
    }

    fn change(&self, served: &Served, events: i32, _number: u64) -> Result<()> {
        self.change_state(|state| {
            let stream = &mut state.streams[served.index];
            stream.watched = events & (IN | OUT);
            let what = stream.events();
            state.report(served.index, what);
        });
        Ok(())
    }

    /// Carries out one request, if the answer of the one before is sent.
    fn serve(&self, served: &mut Served, _buffer: &mut [u8]) -> Next {
        let state = &mut *self.state();
        let stream = &mut state.streams[served.index];
        if stream.awaits_lock && stream.arrived > 0 {
            return Next::AwaitLock;
        }
        let took = stream.unsent == 0 && stream.arrived > 0;
        if took {
            (stream.arrived, stream.unsent) = (stream.arrived - 1, 1);
        }
        if stream.unsent > 0 && stream.no_memory > 0 {
            stream.no_memory -= 1;
            return Next::Send;
        }
        if stream.unsent > 0 && stream.room == 0 {
            return Next::Send;
        }
        if stream.unsent > 0 {
            (stream.unsent, stream.room) = (0, stream.room - 1);
            state.answered += 1;
            self.changed.notify_all();
        }
        match stream.arrived {
            0 if stream.has_ended && !took => Next::End,
            0 => Next::Receive,
            _ => Next::Again,
        }
    }

    fn acknowledge(&self, _served: &Served) {}

    fn wake_thread(&self, wakes: bool) {
        self.change_state(|state| state.thread_is_deaf = !wakes);
    }

    fn start_timer(&self, time: Duration) {
        self.change_state(|state| {
            state.timers_started += 1;
            state.timer = match state.timer {
                _ if !time.is_zero() => ModelTimer::Stopped,
                ModelTimer::Handled(false) => ModelTimer::GoesOn,
                _ => ModelTimer::Ended,
            };
        });
    }
}

/// The target's process.
pub struct TargetProcess {
    pub list: Arc<EventList>,
    pub connections: Connections<Arc<EventList>>,
}

impl TargetProcess {
    /// Starts with this number of connections, and room for `room` answers in each.
    pub fn new(
        (step_max, keep_max): (Duration, Duration),
        connections: usize,
        room: usize,
    ) -> Arc<TargetProcess> {
        let (state, changed) = (Mutex::new(StreamStates::default()), Condvar::new());
        let list = Arc::new(EventList { state, changed });
        let target =
            TargetProcess { connections: Connections::new(list.clone(), step_max, keep_max), list };
        for index in 0..connections {
            target.list.state().streams.push(Stream { room, ..Stream::default() });
            target.connections.count_one();
            target.connections.add(Served { index, list: target.list.clone() });
        }
        Arc::new(target)
    }

    pub fn take(&self, events: Vec<(usize, u32)>, by: Server) {
        for (index, what) in events {
            self.connections.event(by, index, what);
        }
        self.connections.end_round(by);
    }

    /// The main loop of the service thread.
    pub fn thread(&self) {
        while !self.list.state().is_over {
            self.thread_round();
        }
    }

    /// What the service thread does between two waits.
    pub fn thread_round(&self) {
        let may_wait = self.connections.wait_max(Server::Thread) < 0;
        let (timer_has_ended, events) = self.list.wait_as_thread(may_wait);
        if timer_has_ended {
            self.connections.timer_ended();
            let mut state = self.list.state();
            if let ModelTimer::Handled(_) = state.timer {
                state.timer = ModelTimer::Stopped;
            }
        }
        self.take(events, Server::Thread);
    }

    /// A step of a rank, which has begun to serve. Returns whether it may wait behind it.
    pub fn step(&self, may_sleep: bool) -> bool {
        let events = self.list.wait(may_sleep);
        self.connections.note_step();
        self.take(events, Server::Rank);
        self.connections.wait_max(Server::Rank) < 0
    }

    /// A rank serves, and has no reason to wait any more after a step.
    pub fn serve_once(&self) {
        self.connections.begin_rank();
        self.step(false);
        self.connections.end_rank();
    }

    /// A rank waits until `answered` requests are answered: the last of them changes its word.
    pub fn wait_own(&self, answered: usize) {
        let mut may_sleep = self.connections.begin_rank() < 0;
        while self.list.answered() < answered {
            may_sleep = self.step(may_sleep);
        }
        self.connections.end_rank();
    }
}
