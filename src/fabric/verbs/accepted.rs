//! Queue pairs that other processes send to, and how they go. Nothing tells this process that an
//! origin has left or has died. So its connection thread asks the other ends now and then, by a
//! WRITE of nothing, as origins ping their targets: what does not answer the device has gone, and
//! its queue pair goes too. It asks more and more rarely while nobody new comes. Not for the
//! steps of a queue pair. Invariant: a queue pair whose other end answers stays.
//!
//! | state of a queue pair | meaning                                                 |
//! |-----------------------|---------------------------------------------------------|
//! | `ReadyToReceive`              | it lets in, and has never sent (RTR)                    |
//! | `ReadyToSend`               | it was pinged before, and has answered (RTS)             |
//! | `Pinged`               | it is pinged now                                         |

use std::sync::Arc;
use std::time::{Duration, Instant};

use parking_lot::Mutex;

use super::connect;
use super::device::Device;
use super::limits::is_shortage;
use crate::error::{Error, Result};
use crate::sys::ibverbs::types::*;
use crate::sys::ibverbs::{Completions, Domain, QueuePair};

/// Queue pairs that are pinged at once.
const PINGS_MAX: usize = 32;
/// How long after an accepted call all are pinged, and how rarely at last. The first wait is as
/// long as an origin may take from its answer until its own end listens.
const WAIT: Duration = Duration::from_millis(if cfg!(test) { 100 } else { 2000 });
const WAIT_MAX: Duration = Duration::from_secs(256);
/// How long to wait for answers, at first and at most.
const POLL: Duration = Duration::from_millis(1);
const POLL_MAX: Duration = Duration::from_millis(500);

#[derive(Clone, Copy, PartialEq, Eq)]
enum State {
    ReadyToReceive,
    ReadyToSend,
    Pinged,
}

/// One of them, and what it needs to send.
struct Accepted {
    pair: QueuePair,
    packet: u32,
    reads: u8,
    state: State,
}

impl Accepted {
    /// Asks the other end; whether an answer will come.
    fn ping(&mut self, device: &Device) -> Result<bool> {
        if self.state == State::ReadyToReceive {
            connect::send(device, &self.pair, self.packet, self.reads)?;
            self.state = State::ReadyToSend;
        }
        let mut request = Request {
            wr_id: self.pair.number().into(),
            opcode: WR_RDMA_WRITE,
            send_flags: SEND_SIGNALED,
            ..Request::default()
        };
        // SAFETY: a chain of one, which names no memory.
        let posted = unsafe { self.pair.post(&mut request) };
        self.state = if posted.is_ok() { State::Pinged } else { State::ReadyToSend };
        Ok(posted.is_ok())
    }
}

/// All of them, and how far they have been pinged.
#[derive(Default)]
struct List {
    pairs: Vec<Accepted>,
    /// the next that is pinged, while there is a round
    next: Option<usize>,
    /// how many are pinged now
    pinged: usize,
    /// when the next round begins, and how long it is from one to the next
    due: Option<Instant>,
    wait: Duration,
    /// how long to wait for answers
    poll: Duration,
}

/// Queue pairs that other processes send to.
pub struct Pairs {
    completions: Arc<Completions>,
    list: Mutex<List>,
}

impl Pairs {
    /// None yet.
    pub fn new(domain: &Arc<Domain>) -> Result<Pairs> {
        let completions = Completions::new(domain, PINGS_MAX as u32)?;
        Ok(Pairs { completions, list: Mutex::default() })
    }

    /// Where they tell what is done.
    pub fn completions(&self) -> &Arc<Completions> {
        &self.completions
    }

    /// How many there are.
    pub fn count(&self) -> u64 {
        self.list.lock().pairs.len() as u64
    }

    /// One more: its first packet would have this number, and the other end takes so many READs.
    pub fn add(&self, pair: QueuePair, packet: u32, reads: u8) {
        let mut list = self.list.lock();
        list.pairs.push(Accepted { pair, packet, reads, state: State::ReadyToReceive });
        list.wait = WAIT;
        let due = Instant::now() + WAIT;
        list.due = Some(list.due.map_or(due, |before| before.min(due)));
    }

    /// Asks those whose turn it is, hears those that were pinged, and drops those that do not
    /// answer. When to poll again.
    pub fn poll(&self, device: &Device, now: Instant) -> Option<Instant> {
        let mut list = self.list.lock();
        let list = &mut *list;
        list.collect(&self.completions);
        if list.next.is_none() && list.due.is_some_and(|due| now >= due) {
            (list.next, list.due, list.poll) = (Some(0), None, POLL);
        }
        let Some(next) = list.next else { return list.due };
        let next = list.ping_from(next, device);
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
    /// Asks as many as may be pinged at once; the next one.
    fn ping_from(&mut self, mut next: usize, device: &Device) -> usize {
        while self.pinged < PINGS_MAX && next < self.pairs.len() {
            match self.pairs[next].ping(device) {
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

    /// Takes what those that were pinged have completion.
    fn collect(&mut self, completions: &Completions) {
        let mut found = [Completion::default(); 16];
        while self.pinged > 0 {
            let Ok(count @ 1..) = completions.poll(&mut found) else { return };
            for completion in &found[..count] {
                let is_it = |one: &Accepted| u64::from(one.pair.number()) == completion.wr_id;
                let Some(index) = self.pairs.iter().position(is_it) else { continue };
                self.pinged -= 1;
                self.pairs[index].state = State::ReadyToSend;
                if completion.status != WC_SUCCESS {
                    self.pairs.swap_remove(index);
                }
            }
        }
    }
}
