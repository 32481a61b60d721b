//! Every wait of an origin for the answers of a peer.

use std::time::{Duration, Instant};

use super::device_link::News;
use super::pause::{Pause, SLEEP_MAX, SLEEP_OF_MANY};
use super::peer::{Peer, State};
use super::queue::Queue;
use crate::error::Result;
use crate::sync::Ordering;
use crate::tcp::TcpDevice;

/// Whether a wait for the request of this number is over.
type Condition = fn(&Queue, u64) -> bool;

/// Time after which a thread that serves others checks whether its own peer is alive.
const SPIN_MAX: Duration = Duration::from_millis(20);

impl Peer {
    /// Waits until a request is done. `which` gives its number from the queue, once at the
    /// beginning.
    pub(super) fn wait_for(&self, which: impl Fn(&Queue) -> u64) -> Result<()> {
        self.wait_until(Queue::is_done, which)
    }

    /// Waits until no request uses memory of the user.
    pub(super) fn wait_until_released(&self) -> Result<()> {
        if self.with(|queue| Ok(queue.is_streaming()))? {
            // Nothing wakes this thread when the stream takes the rest, but an answer behind it.
            self.flush_begin()?;
        }
        self.wait_until(Queue::is_released, Queue::lent)
    }

    /// Waits until a condition holds for a request. `which` gives its number from the queue, once
    /// at the beginning.
    fn wait_until(&self, holds: Condition, which: impl Fn(&Queue) -> u64) -> Result<()> {
        let awaited = self.with(|queue| {
            let number = which(queue);
            if holds(queue, number) {
                return Ok(None);
            }
            if queue.waits_anew() {
                queue.kinds.awaited += 1;
                // Relaxed: a count.
                self.core.waits.fetch_add(1, Ordering::Relaxed);
            }
            Ok(Some(number))
        })?;
        let Some(number) = awaited else { return Ok(()) };
        let (spin, is_over) = (self.core.wait_policy.spin(), |queue: &Queue| holds(queue, number));
        match self.spin_serving(is_over, spin)? {
            Some(true) => Ok(()),
            Some(false) => self.sleep_until(is_over, Duration::ZERO),
            None => self.sleep_until(is_over, spin),
        }
    }

    /// Spins until a condition holds, and then sleeps.
    fn sleep_until(&self, is_over: impl Fn(&Queue) -> bool, spin: Duration) -> Result<()> {
        let mut pause = Pause::spinning(spin);
        // Another thread that waits may receive the answer that this one waits for.
        // Relaxed: a count, which only decides how long a thread sleeps.
        self.waiting.fetch_add(1, Ordering::Relaxed);
        let waited = loop {
            let step = self.with(|queue| {
                if is_over(queue) {
                    return Ok(None);
                }
                let (blocks, news) = (&self.core.blocks, queue.news());
                let alone = self.core.wait_policy.is_alone() && matches!(news, News::Stream(_));
                let asleep = alone && !pause.spins();
                if asleep { queue.poll_asleep(blocks) } else { queue.poll(blocks) }?;
                let news = if alone { News::Asked } else { news };
                Ok(if is_over(queue) { None } else { Some(news) })
            });
            let others = self.waiting.load(Ordering::Relaxed) > 1;
            let most = if others { SLEEP_OF_MANY } else { SLEEP_MAX };
            match step {
                Ok(Some(news)) if !pause.pause_for(&news, most) => {}
                Ok(Some(_)) => {
                    if let Err(error) = self.ping() {
                        break Err(error);
                    }
                }
                Ok(None) => break Ok(()),
                Err(error) => break Err(error),
            }
        };
        self.waiting.fetch_sub(1, Ordering::Relaxed);
        waited
    }

    /// Spins until a condition holds, and serves other processes meanwhile: they may wait for this
    /// one, too, and no thread has to be woken for them. Ends when none has asked for anything for
    /// the time `spin`. Yields the core to other ranks each time.
    /// Returns whether the condition holds, or `None` if this process cannot serve in this way.
    fn spin_serving(
        &self,
        is_over: impl Fn(&Queue) -> bool,
        spin: Duration,
    ) -> Result<Option<bool>> {
        if spin.is_zero() {
            // While this thread sleeps, the service thread may leave no requests to it.
            if let Some(service) = self.core.device.service() {
                service.end_kept_turn();
            }
            return Ok(None);
        }
        let alone = self.core.wait_policy.is_alone();
        let service = self.core.device.service().filter(|_| alone);
        let Some(mut serving) = service.and_then(TcpDevice::serving) else { return Ok(None) };
        let (began, mut came) = (Instant::now(), Instant::now());
        while came.elapsed() < spin && began.elapsed() < SPIN_MAX {
            if self.is_over_now(&is_over)? {
                serving.keep_if_busy();
                return Ok(Some(true));
            }
            if serving.step(0) {
                came = Instant::now();
            } else {
                std::thread::yield_now();
            }
        }
        Ok(Some(false))
    }

    /// Returns whether a condition holds, if need be after a poll.
    fn is_over_now(&self, is_over: impl Fn(&Queue) -> bool) -> Result<bool> {
        self.with(|queue| {
            if !is_over(queue) {
                queue.poll(&self.core.blocks)?;
            }
            Ok(is_over(queue))
        })
    }

    /// Sleeps until answers may have come, for a short time at most, if the device lets a thread
    /// sleep. Returns whether it does.
    pub(super) fn rest(&self) -> bool {
        let news = match &*self.state.lock() {
            State::Up(queue) => queue.news(),
            State::Fresh | State::Lost(..) => return false,
        };
        news.wait(SLEEP_OF_MANY);
        matches!(news, News::Stream(_))
    }
}
