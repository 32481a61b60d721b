//! A target's process without a network, for the tests of the turns to serve a connection: streams
//! to which a test sends, and their list of events. The list reports an event once, to the thread
//! that began to wait last, as epoll(7) does. A wait has no end but an event, so that a thread that
//! misses one stops the test.

use core::mem::take;
use std::io::Result;
use std::sync::Arc;
use std::time::Duration;

use super::connections::{Connections, Next, ServedStreams, Server};
use crate::sync::{Condvar, Mutex};

pub const IN: i32 = libc::EPOLLIN;
const OUT: i32 = libc::EPOLLOUT;
const ENDED: i32 = libc::EPOLLRDHUP;
/// Time after which a test gives up without loom.
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

#[derive(Default)]
pub struct StreamStates {
    pub streams: Vec<Stream>,
    /// those that have news which no thread has taken
    news: Vec<usize>,
    /// threads that wait for news, in the order in which they began
    waiting: Vec<Arc<Condvar>>,
    /// the service thread ends
    is_over: bool,
    /// requests that are answered, and connections that are closed
    answered: usize,
    closed: usize,
}

impl StreamStates {
    /// Reports what has just come, if it is watched for.
    fn report(&mut self, index: usize, what: i32) {
        if what & (self.streams[index].watched | ENDED) == 0 {
            return;
        }
        if !self.news.contains(&index) {
            self.news.push(index);
        }
        if let Some(last) = self.waiting.pop() {
            last.notify_one();
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
    pub state: Mutex<StreamStates>,
    /// the first thread of the model waits for `answered` or `closed`
    progress: Condvar,
}

impl EventList {
    /// Waits for events; does not sleep unless it may.
    pub fn wait(&self, may_sleep: bool) -> Vec<(usize, u32)> {
        let mut state = self.state.lock();
        loop {
            let news = state.take_news();
            if !news.is_empty() || !may_sleep || state.is_over {
                return news;
            }
            let own = Arc::new(Condvar::new());
            state.waiting.push(own.clone());
            while state.waiting.iter().any(|other| Arc::ptr_eq(other, &own)) {
                let (locked, late) = own.wait_for(state, WATCHDOG);
                assert!(!late, "an event is lost");
                state = locked;
            }
        }
    }

    /// Waits until this many requests are answered and connections closed.
    pub fn await_progress(&self, answered: usize, closed: usize) {
        let mut state = self.state.lock();
        while (state.answered, state.closed) != (answered, closed) {
            let (locked, late) = self.progress.wait_for(state, WATCHDOG);
            assert!(!late, "a request is lost");
            state = locked;
        }
    }

    pub fn answered(&self) -> usize {
        self.state.lock().answered
    }

    /// The peer sends a request.
    pub fn send(&self, index: usize) {
        let mut state = self.state.lock();
        state.streams[index].arrived += 1;
        state.report(index, IN);
    }

    /// The peer receives an answer.
    pub fn make_room(&self, index: usize) {
        let mut state = self.state.lock();
        state.streams[index].room += 1;
        state.report(index, OUT);
    }

    /// The peer ends the connection.
    pub fn end(&self, index: usize) {
        let mut state = self.state.lock();
        state.streams[index].has_ended = true;
        state.report(index, IN | ENDED);
    }

    pub fn stop(&self) {
        let mut state = self.state.lock();
        state.is_over = true;
        take(&mut state.waiting).iter().for_each(|waiting| waiting.notify_one());
    }
}

/// The target's end of a connection.
pub struct Served {
    index: usize,
    list: Arc<EventList>,
}

impl Drop for Served {
    fn drop(&mut self) {
        self.list.state.lock().closed += 1;
        self.list.progress.notify_one();
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
        let mut state = self.state.lock();
        let stream = &mut state.streams[served.index];
        stream.watched = events & (IN | OUT);
        let what = stream.events();
        state.report(served.index, what);
        Ok(())
    }

    /// Carries out one request, if the answer of the one before is sent.
    fn serve(&self, served: &mut Served, _buffer: &mut [u8]) -> Next {
        let state = &mut *self.state.lock();
        let stream = &mut state.streams[served.index];
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
            self.progress.notify_one();
        }
        match stream.arrived {
            0 if stream.has_ended && !took => Next::End,
            0 => Next::Receive,
            _ => Next::Again,
        }
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
        let (state, progress) = (Mutex::new(StreamStates::default()), Condvar::new());
        let list = Arc::new(EventList { state, progress });
        let target =
            TargetProcess { connections: Connections::new(list.clone(), step_max, keep_max), list };
        for index in 0..connections {
            target.list.state.lock().streams.push(Stream { room, ..Stream::default() });
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
        while !self.list.state.lock().is_over {
            let events = self.list.wait(self.connections.may_wait());
            self.take(events, Server::Thread);
        }
    }

    /// A step of a rank, which has begun to serve. Returns whether it may wait behind it.
    pub fn step(&self, may_sleep: bool) -> bool {
        let events = self.list.wait(may_sleep);
        self.connections.note_step();
        self.take(events, Server::Rank);
        self.connections.may_wait()
    }

    /// A rank serves, and has no reason to wait any more after a step.
    pub fn serve_once(&self) {
        self.connections.begin_rank();
        self.step(false);
        self.connections.end_rank();
    }

    /// A rank waits until `answered` requests are answered: the last of them changes its word.
    pub fn wait_own(&self, answered: usize) {
        let mut may_sleep = self.connections.begin_rank();
        while self.list.answered() < answered {
            may_sleep = self.step(may_sleep);
        }
        self.connections.end_rank();
    }
}
