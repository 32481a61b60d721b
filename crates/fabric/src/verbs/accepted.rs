//! The target's ends of connections: queue pairs that other processes send to, and when they end.
//! No event reports that an origin has left or died. So the connection thread pings the other ends
//! from time to time with an empty WRITE, as origins ping their targets. When the device gives a
//! ping up, the queue pair is destroyed. The pings become rarer while no new origin connects. The
//! state changes of queue pairs are in [`connect`]. Invariant: a queue pair whose other end answers
//! stays.
//!
//! | state of a queue pair | meaning                                                 |
//! |-----------------------|---------------------------------------------------------|
//! | `ReadyToReceive`      | it receives, and has never sent (RTR)                   |
//! | `ReadyToSend`         | it was pinged before, and has answered (RTS)            |
//! | `Pinged`              | a ping is under way (RTS)                               |

use std::sync::Arc;
use std::time::{Duration, Instant};

use parking_lot::Mutex;

use super::connect;
use super::port::Port;
use crate::error::{Error, Result};
use crate::number::Number;
use crate::sys::ibverbs::verbs::*;
use crate::sys::ibverbs::{Completions, Domain, QueuePair};
use crate::sys::is_shortage;

/// Largest number of pings under way.
const PINGS_MAX: usize = 32;
/// Time from an accepted connection to the next round of pings, and the longest time between two
/// rounds. The first is as long as an origin may take from its answer until its own end receives.
const WAIT: Duration = Duration::from_millis(if cfg!(test) { 100 } else { 2000 });
const WAIT_MAX: Duration = Duration::from_secs(256);
/// Interval of the polls for answers, at first and at most.
const POLL: Duration = Duration::from_millis(1);
const POLL_MAX: Duration = Duration::from_millis(500);

#[derive(Clone, Copy, PartialEq, Eq)]
enum State {
    ReadyToReceive,
    ReadyToSend,
    Pinged,
}

/// One queue pair, with the attributes that it needs to send.
struct Accepted {
    pair: QueuePair,
    psn: u32,
    reads: u8,
    state: State,
}

impl Accepted {
    /// Pings the other end. Returns whether an answer will come.
    fn ping(&mut self, port: &Port) -> Result<bool> {
        if self.state == State::ReadyToReceive {
            connect::to_rts(port, &self.pair, self.psn, self.reads)?;
            self.state = State::ReadyToSend;
        }
        let mut request = ibv_send_wr {
            wr_id: self.pair.number().into(),
            opcode: IBV_WR_RDMA_WRITE,
            send_flags: IBV_SEND_SIGNALED,
            ..ibv_send_wr::default()
        };
        // SAFETY: a chain of one, which names no memory.
        let posted = unsafe { self.pair.post(&mut request) };
        self.state = if posted.is_ok() { State::Pinged } else { State::ReadyToSend };
        Ok(posted.is_ok())
    }
}

/// All queue pairs, and the progress of the current round.
#[derive(Default)]
struct List {
    pairs: Vec<Accepted>,
    /// index of the next queue pair to ping, during a round
    next: Option<usize>,
    /// number of pings under way
    pinged: usize,
    /// start of the next round, and the time between two rounds
    due: Option<Instant>,
    wait: Duration,
    /// current interval of the polls for answers
    poll: Duration,
}

/// The queue pairs that other processes send to.
pub struct Pairs {
    completions: Arc<Completions>,
    list: Mutex<List>,
}

impl Pairs {
    /// Starts without queue pairs.
    pub fn new(domain: &Arc<Domain>) -> Result<Pairs> {
        let completions = Completions::new(domain, PINGS_MAX.to_u32())?;
        Ok(Pairs { completions, list: Mutex::default() })
    }

    /// The completion queue of all of them.
    pub fn completions(&self) -> &Arc<Completions> {
        &self.completions
    }

    /// Number of queue pairs.
    pub fn count(&self) -> u64 {
        self.list.lock().pairs.len().to_u64()
    }

    /// Adds a queue pair. `psn` is the first packet sequence number that it would send, `reads` the
    /// number of READs that the other end executes at once.
    pub fn add(&self, pair: QueuePair, psn: u32, reads: u8) {
        let mut list = self.list.lock();
        list.pairs.push(Accepted { pair, psn, reads, state: State::ReadyToReceive });
        list.wait = WAIT;
        let due = Instant::now() + WAIT;
        list.due = Some(list.due.map_or(due, |before| before.min(due)));
    }

    /// Advances the round: collects answers, drops the queue pairs whose pings failed, and sends
    /// the next pings. Returns the time of the next call.
    pub fn poll(&self, port: &Port, now: Instant) -> Option<Instant> {
        let mut list = self.list.lock();
        let list = &mut *list;
        list.collect(&self.completions);
        if list.next.is_none() && list.due.is_some_and(|due| now >= due) {
            (list.next, list.due, list.poll) = (Some(0), None, POLL);
        }
        let Some(next) = list.next else { return list.due };
        let next = list.ping_from(next, port);
        list.next = Some(next);
        if next < list.pairs.len() || list.pinged > 0 {
            let poll = now + list.poll;
            list.poll = (2 * list.poll).min(POLL_MAX);
            return Some(poll);
        }
        list.next = None;
        if list.pairs.is_empty() {
            list.due = None;
        } else {
            list.due = Some(now + list.wait);
            list.wait = (2 * list.wait).min(WAIT_MAX);
        }
        list.due
    }
}

impl List {
    /// Pings as many queue pairs as may be pinged at once. Returns the index of the next one.
    fn ping_from(&mut self, mut next: usize, port: &Port) -> usize {
        while self.pinged < PINGS_MAX && next < self.pairs.len() {
            match self.pairs[next].ping(port) {
                Ok(pinged) => self.pinged += usize::from(pinged),
                // It is pinged in the next round.
                Err(Error::System { errno, .. }) if is_shortage(errno) => {}
                // A queue pair that cannot send any more is of no use to its other end.
                Err(_) => {
                    self.pairs.swap_remove(next);
                    continue;
                }
            }
            next += 1;
        }
        next
    }

    /// Takes the completions of pings.
    fn collect(&mut self, completions: &Completions) {
        let mut found = [ibv_wc::default(); 16];
        while self.pinged > 0 {
            let Ok(count @ 1..) = completions.poll(&mut found) else { return };
            for completion in &found[..count] {
                let is_it = |one: &Accepted| u64::from(one.pair.number()) == completion.wr_id;
                let Some(index) = self.pairs.iter().position(is_it) else { continue };
                self.pinged -= 1;
                self.pairs[index].state = State::ReadyToSend;
                if completion.status != IBV_WC_SUCCESS {
                    self.pairs.swap_remove(index);
                }
            }
        }
    }
}
