//! Who serves a connection, under loom: every order of a rank, the service thread and the peers,
//! within a bound of preemptions; without loom the same tests on threads of the machine. A list
//! here reports an event once, to the thread that began to wait last, as epoll(7) does. A wait has
//! no end but an event, so that a thread that misses one stops the model.

use core::mem::take;
use std::io::Result;
use std::sync::Arc;
use std::time::Duration;

use super::connections::{Connections, Next, ServedStreams, Server};
use crate::sync::{Condvar, Mutex, model};

#[cfg(loom)]
use loom::thread;
#[cfg(not(loom))]
use std::thread;

const IN: i32 = libc::EPOLLIN;
const OUT: i32 = libc::EPOLLOUT;
const ENDED: i32 = libc::EPOLLRDHUP;
/// Time after which a test gives up without loom.
const WATCHDOG: Duration = Duration::from_secs(60);
/// Times in which a rank has to make a step: one that never passes, and one that has passed.
const NEVER: Duration = Duration::from_secs(3600);
const AT_ONCE: Duration = Duration::ZERO;

/// A connection: its peer, and the system's part of it.
#[derive(Default)]
struct Stream {
    /// requests that have arrived
    arrived: usize,
    /// answers for which there is room, and those that wait for it
    room: usize,
    unsent: usize,
    /// attempts to send that find no memory, though there is room
    no_memory: usize,
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
struct State {
    streams: Vec<Stream>,
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

impl State {
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
struct List {
    state: Mutex<State>,
    /// the first thread of the model waits for `answered` or `closed`
    progress: Condvar,
}

impl List {
    /// Waits for events; does not sleep unless it may.
    fn wait(&self, may_sleep: bool) -> Vec<(usize, u32)> {
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
    fn await_progress(&self, answered: usize, closed: usize) {
        let mut state = self.state.lock();
        while (state.answered, state.closed) != (answered, closed) {
            let (locked, late) = self.progress.wait_for(state, WATCHDOG);
            assert!(!late, "a request is lost");
            state = locked;
        }
    }

    fn answered(&self) -> usize {
        self.state.lock().answered
    }

    /// The peer sends a request.
    fn send(&self, index: usize) {
        let mut state = self.state.lock();
        state.streams[index].arrived += 1;
        state.report(index, IN);
    }

    /// The peer receives an answer.
    fn make_room(&self, index: usize) {
        let mut state = self.state.lock();
        state.streams[index].room += 1;
        state.report(index, OUT);
    }

    /// The peer ends the connection.
    fn end(&self, index: usize) {
        let mut state = self.state.lock();
        state.streams[index].has_ended = true;
        state.report(index, IN | ENDED);
    }

    fn stop(&self) {
        let mut state = self.state.lock();
        state.is_over = true;
        take(&mut state.waiting).iter().for_each(|waiting| waiting.notify_one());
    }
}

/// The target's end of a connection.
struct Served {
    index: usize,
    list: Arc<List>,
}

impl Drop for Served {
    fn drop(&mut self) {
        self.list.state.lock().closed += 1;
        self.list.progress.notify_one();
    }
}

impl ServedStreams for Arc<List> {
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
struct Target {
    list: Arc<List>,
    connections: Connections<Arc<List>>,
}

impl Target {
    /// Starts with this number of connections, and room for `room` answers in each.
    fn new(
        (step_max, keep_max): (Duration, Duration),
        connections: usize,
        room: usize,
    ) -> Arc<Target> {
        let (state, progress) = (Mutex::new(State::default()), Condvar::new());
        let list = Arc::new(List { state, progress });
        let target =
            Target { connections: Connections::new(list.clone(), step_max, keep_max), list };
        for index in 0..connections {
            target.list.state.lock().streams.push(Stream { room, ..Stream::default() });
            target.connections.count_one();
            target.connections.add(Served { index, list: target.list.clone() });
        }
        Arc::new(target)
    }

    fn take(&self, events: Vec<(usize, u32)>, by: Server) {
        for (index, what) in events {
            self.connections.event(by, index, what);
        }
        self.connections.end_round(by);
    }

    /// The main loop of the service thread.
    fn thread(&self) {
        while !self.list.state.lock().is_over {
            let events = self.list.wait(self.connections.may_wait());
            self.take(events, Server::Thread);
        }
    }

    /// A step of a rank, which has begun to serve. Returns whether it may wait behind it.
    fn step(&self, may_sleep: bool) -> bool {
        let events = self.list.wait(may_sleep);
        self.connections.note_step();
        self.take(events, Server::Rank);
        self.connections.may_wait()
    }

    /// A rank serves, and has no reason to wait any more after a step.
    fn serve_once(&self) {
        self.connections.begin_rank();
        self.step(false);
        self.connections.end_rank();
    }

    /// A rank waits until `answered` requests are answered: the last of them changes its word.
    fn wait_own(&self, answered: usize) {
        let mut may_sleep = self.connections.begin_rank();
        while self.list.answered() < answered {
            may_sleep = self.step(may_sleep);
        }
        self.connections.end_rank();
    }
}

/// A rank waits in each of two epochs, until `answered` requests are answered, and has kept the
/// turn in between.
fn wait_twice(target: &Target, answered: [usize; 2]) {
    let mut may_sleep = target.connections.begin_rank();
    while target.list.answered() < answered[0] {
        may_sleep = target.step(may_sleep);
    }
    target.connections.keep_turn();
    target.wait_own(answered[1]);
}

/// Runs a rank beside the service thread and a peer, if there is one; then all requests have to be
/// answered by the service thread.
fn beside_the_thread(
    target: &Arc<Target>,
    rank: fn(&Target),
    peer: Option<fn(&List)>,
    (answered, closed): (usize, usize),
) {
    let of_thread = target.clone();
    let service = thread::spawn(move || of_thread.thread());
    let list = target.list.clone();
    let peer = peer.map(|peer| thread::spawn(move || peer(&list)));
    rank(target);
    if let Some(peer) = peer {
        peer.join().unwrap();
    }
    target.list.await_progress(answered, closed);
    target.list.stop();
    service.join().unwrap();
}

#[test]
fn loom_a_rank_that_serves_misses_no_request_though_it_sleeps() {
    fn peer(list: &List) {
        list.send(0);
        list.send(0);
    }
    model(2, || {
        let target = Target::new((NEVER, NEVER), 1, 2);
        beside_the_thread(&target, |target| target.wait_own(2), Some(peer), (2, 0));
    });
}

#[test]
fn loom_the_service_thread_carries_out_what_a_rank_leaves() {
    fn peer(list: &List) {
        // More than an event and the end of its round carry out.
        (0..3).for_each(|_| list.send(0));
    }
    model(2, || {
        let target = Target::new((NEVER, NEVER), 1, 3);
        beside_the_thread(&target, Target::serve_once, Some(peer), (3, 0));
    });
}

#[test]
fn loom_answers_leave_when_there_is_room_whoever_serves_then() {
    fn peer(list: &List) {
        list.send(0);
        (0..2).for_each(|_| list.make_room(0));
        list.send(0);
    }
    model(2, || {
        let target = Target::new((NEVER, NEVER), 1, 0);
        beside_the_thread(&target, Target::serve_once, Some(peer), (2, 0));
    });
}

#[test]
fn loom_a_rank_that_serves_again_finds_what_it_has_left() {
    fn rank(target: &Target) {
        target.serve_once();
        target.wait_own(3);
    }
    model(2, || {
        let target = Target::new((NEVER, NEVER), 1, 3);
        target.list.send(0);
        beside_the_thread(&target, rank, Some(|list| (0..2).for_each(|_| list.send(0))), (3, 0));
    });
}

#[test]
fn loom_an_answer_that_has_found_no_memory_is_sent_again() {
    model(2, || {
        let target = Target::new((NEVER, NEVER), 1, 1);
        target.list.state.lock().streams[0].no_memory = 2;
        beside_the_thread(&target, Target::serve_once, Some(|list| list.send(0)), (1, 0));
    });
}

#[test]
fn loom_a_connection_that_ends_is_closed_behind_its_last_request_whoever_serves() {
    fn peer(list: &List) {
        list.send(0);
        list.end(0);
    }
    model(2, || {
        let target = Target::new((NEVER, NEVER), 1, 1);
        beside_the_thread(&target, Target::serve_once, Some(peer), (1, 1));
        assert_eq!(target.connections.count(), 0);
    });
}

#[test]
fn loom_the_service_thread_serves_what_a_rank_has_taken_that_makes_no_step() {
    fn rank(target: &Target) {
        target.connections.begin_rank();
        target.list.send(0);
        // A handler of a signal begins here, and does not end before the requests are answered.
        target.list.wait(false);
        target.list.send(1);
    }
    model(3, || {
        let target = Target::new((AT_ONCE, NEVER), 2, 1);
        beside_the_thread(&target, rank, None, (2, 0));
    });
}

#[test]
fn loom_a_rank_that_has_kept_the_turn_serves_what_comes_before_its_next_wait() {
    fn peer(list: &List) {
        (0..2).for_each(|_| list.send(0));
    }
    model(2, || {
        let target = Target::new((NEVER, NEVER), 1, 2);
        beside_the_thread(&target, |target| wait_twice(target, [1, 2]), Some(peer), (2, 0));
    });
}

#[test]
fn loom_the_service_thread_serves_if_a_rank_that_has_kept_the_turn_comes_too_late() {
    fn rank(target: &Target) {
        target.connections.begin_rank();
        target.step(false);
        target.connections.keep_turn();
    }
    fn peer(list: &List) {
        (0..3).for_each(|_| list.send(0));
    }
    model(2, || {
        let target = Target::new((NEVER, AT_ONCE), 1, 3);
        beside_the_thread(&target, rank, Some(peer), (3, 0));
    });
}

#[test]
fn a_connection_has_one_turn_in_a_round_besides_its_events() {
    let target = Target::new((NEVER, NEVER), 1, 20);
    (0..20).for_each(|_| target.list.send(0));
    for round in 1..=4 {
        target.take(vec![(0, IN.cast_unsigned())], Server::Thread);
        assert_eq!(target.list.answered(), 2 * round);
    }
}

#[test]
fn the_service_thread_ends_a_long_rest_when_a_rank_keeps_the_turn() {
    let target = Target::new((NEVER, AT_ONCE), 1, 1);
    target.connections.begin_rank();
    let of_thread = target.clone();
    let service = thread::spawn(move || of_thread.thread());
    target.list.send(0);
    // It has given the event back, and rests until the rank ends its wait or makes no step.
    while !target.connections.thread_rests() {
        thread::yield_now();
    }
    target.connections.keep_turn();
    target.list.await_progress(1, 0);
    target.list.stop();
    service.join().unwrap();
}

#[test]
fn a_rank_finds_what_the_service_thread_has_left_while_it_kept_the_turn() {
    let target = Target::new((NEVER, NEVER), 1, 1);
    target.connections.begin_rank();
    target.connections.keep_turn();
    target.list.send(0);
    for (index, what) in target.list.wait(false) {
        target.connections.event(Server::Thread, index, what);
    }
    assert_eq!(target.list.answered(), 0);
    target.serve_once();
    assert_eq!(target.list.answered(), 1);
}
