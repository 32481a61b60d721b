//! The connections that a process serves, and the thread that serves them: the service thread, or a
//! rank that waits for its own words ([`Serving`](super::serving::Serving)). Such a rank wakes up
//! once for a request that changes its word; if the service thread carried it out, both would wake
//! up, one after the other. Both wait for events of one list of epoll, which wakes the thread that
//! began to wait last: the rank.
//!
//! | `rank_serves` | meaning                                                                  |
//! |---------------|--------------------------------------------------------------------------|
//! | false         | the service thread carries out requests; the rank sets it when its wait  |
//! |               | ends, and the service thread if the rank makes no step                   |
//! | true          | the rank does, which sets it at each step; the service thread gives      |
//! |               | events of connections back, and rests                                    |
//!
//! The lock of the table protects it. A rank looks at its word after it has set it, and no other
//! thread carries out a request from there on, so the rank sleeps in epoll_wait(2) alone. A rank
//! that makes no step (a handler of a signal of the program runs, say) loses its turn; it looks at
//! its word when its bounded wait ends. Events are reported when they come, not while they last
//! (EPOLLET), so that one thread wakes up for each: a turn ends where the stream is empty or full.

use std::os::fd::{AsFd, OwnedFd};
use std::sync::Arc;
use std::time::Duration;

use parking_lot::{Condvar, Mutex};

use super::epoll::Epoll;
use super::exposures::Exposures;
use super::served::{BUFFER_BYTES, Next, Served};
use crate::number::Number;
use crate::sync::{AtomicU64, Ordering};

/// Events with which a stream ends.
const ENDED: i32 = libc::EPOLLRDHUP | libc::EPOLLHUP | libc::EPOLLERR;
/// Time after which a rank that serves must have made a step.
const STEP_MAX: Duration = Duration::from_millis(20);

/// A thread that serves.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Server {
    /// the service thread
    Thread,
    /// a rank that waits
    Rank,
}

/// The connections.
pub struct Connections {
    epoll: Arc<Epoll>,
    exposures: Arc<Exposures>,
    table: Mutex<Table>,
    /// the service thread rests until the rank has ended its wait
    rest: Condvar,
    /// number of connections, with those that are not served yet
    count: AtomicU64,
}

struct Table {
    list: Vec<Option<Served>>,
    free: Vec<usize>,
    /// those that are to be served again before a server waits
    again: Vec<usize>,
    buffer: Vec<u8>,
    rank_serves: bool,
    /// number of steps of ranks
    steps: u64,
    /// whether the service thread rests
    rests: bool,
}

impl Connections {
    /// Starts without any.
    pub fn new(epoll: &Arc<Epoll>, exposures: &Arc<Exposures>) -> Connections {
        let table = Table {
            list: Vec::new(),
            free: Vec::new(),
            again: Vec::new(),
            buffer: vec![0; BUFFER_BYTES],
            rank_serves: false,
            steps: 0,
            rests: false,
        };
        Connections {
            epoll: epoll.clone(),
            exposures: exposures.clone(),
            table: Mutex::new(table),
            rest: Condvar::new(),
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
    pub fn add(&self, stream: OwnedFd) {
        let table = &mut *self.table.lock();
        let index = table.free.pop().unwrap_or_else(|| {
            table.list.push(None);
            table.list.len() - 1
        });
        let served = table.list[index].insert(Served::new(stream));
        let events = watched(libc::EPOLLIN);
        if self.epoll.add(served.stream().as_fd(), events, index.to_u64()).is_err() {
            // The origin finds the end of the stream.
            self.close(table, index);
        }
    }

    /// Takes an event of a connection.
    pub fn event(&self, by: Server, index: usize, events: u32) {
        let mut table = self.table.lock();
        if table.is_served(by) {
            self.turn(&mut table, index, events.cast_signed() & ENDED != 0);
        } else {
            self.give_back(&mut table, index);
        }
    }

    /// Ends the round of a server: serves connections again that have had their turn. The service
    /// thread rests while a rank serves.
    pub fn end_round(&self, by: Server) {
        let again = core::mem::take(&mut self.table.lock().again);
        for index in again {
            let mut table = self.table.lock();
            if table.is_served(by) {
                self.turn(&mut table, index, false);
            } else {
                table.again.push(index);
            }
        }
        if by == Server::Thread {
            self.rest();
        }
    }

    /// Whether a server may wait for events.
    pub fn may_wait(&self) -> bool {
        self.table.lock().again.is_empty()
    }

    /// Lets a rank serve from here on. Returns whether it may wait for events.
    pub fn begin_rank(&self) -> bool {
        let mut table = self.table.lock();
        table.rank_serves = true;
        table.again.is_empty()
    }

    /// Notes a step of a rank that serves.
    pub fn note_step(&self) {
        let mut table = self.table.lock();
        table.rank_serves = true;
        table.steps += 1;
    }

    /// Lets the service thread serve from here on.
    pub fn end_rank(&self) {
        let mut table = self.table.lock();
        table.rank_serves = false;
        if table.rests {
            self.rest.notify_one();
            return;
        }
        for index in core::mem::take(&mut table.again) {
            self.give_back(&mut table, index);
        }
    }

    /// Rests while a rank serves.
    fn rest(&self) {
        let mut table = self.table.lock();
        while table.rank_serves {
            let steps = table.steps;
            table.rests = true;
            let late = self.rest.wait_for(&mut table, STEP_MAX).timed_out();
            if late && table.steps == steps {
                table.rank_serves = false;
            }
        }
        table.rests = false;
    }

    /// Reports the events of a connection once more, for the other server.
    fn give_back(&self, table: &mut Table, index: usize) {
        let Some(Some(served)) = table.list.get(index) else { return };
        let events = watched(served.watched());
        if self.epoll.change(served.stream().as_fd(), events, index.to_u64()).is_err() {
            self.close(table, index);
        }
    }

    /// Serves a connection once. `ended`: its stream may have ended.
    fn turn(&self, table: &mut Table, index: usize, ended: bool) {
        let Some(Some(served)) = table.list.get_mut(index) else { return };
        let events = match served.turn(&self.exposures, &mut table.buffer) {
            Next::End => return self.close(table, index),
            Next::Again => return table.again.push(index),
            // No other event comes for the end of the stream.
            Next::Receive if ended => return table.again.push(index),
            Next::Receive => libc::EPOLLIN,
            Next::Send => libc::EPOLLOUT,
        };
        // A call that sends may also have found no memory; there is room then, which is reported.
        if !served.watches(events) || events == libc::EPOLLOUT {
            self.give_back(table, index);
        }
    }

    fn close(&self, table: &mut Table, index: usize) {
        if table.list[index].take().is_some() {
            table.free.push(index);
            // Relaxed: a count.
            self.count.fetch_sub(1, Ordering::Relaxed);
        }
    }
}

impl Table {
    fn is_served(&self, by: Server) -> bool {
        self.rank_serves == (by == Server::Rank)
    }
}

fn watched(events: i32) -> i32 {
    events | libc::EPOLLRDHUP | libc::EPOLLET
}
