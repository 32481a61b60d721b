//! Every wait of an origin for the answers of a peer.

use std::time::{Duration, Instant};

use super::device_link::News;
use super::pause::{Pause, SLEEP_MAX, SLEEP_OF_MANY};
use super::peer::{Peer, State};
use super::queue::Queue;
use crate::error::Result;
use crate::sync::Ordering;
use crate::tcp::TcpDevice;

/// Time after which a thread that serves others checks whether its own peer is alive.
const SPIN_MAX: Duration = Duration::from_millis(20);

impl Peer {
    /// Waits until a request is done. `which` gives its number from the queue, once at the
    /// beginning.
    pub(super) fn wait_for(&self, which: impl Fn(&Queue) -> u64) -> Result<()> {
        let awaited = self.with(|queue| {
            let number = which(queue);
            if queue.is_done(number) {
                return Ok(None);
            }
            if queue.waits_anew() {
                queue.count().awaited += 1;
                // Relaxed: a count.
                self.core.waits.fetch_add(1, Ordering::Relaxed);
            }
            Ok(Some(number))
        })?;
        let Some(number) = awaited else { return Ok(()) };
        let spin = self.core.wait_policy.spin();
        match self.spin_serving(number, spin)? {
            Some(true) => Ok(()),
            Some(false) => self.sleep_for(number, Duration::ZERO),
            None => self.sleep_for(number, spin),
        }
    }

    /// Spins until a request is done, and then sleeps.
    fn sleep_for(&self, number: u64, spin: Duration) -> Result<()> {
        let mut pause = Pause::spinning(spin);
        // Another thread that waits may receive the answer that this one waits for.
        // Relaxed: a count, which only decides how long a thread sleeps.
        self.waiting.fetch_add(1, Ordering::Relaxed);
        let waited = loop {
            let step = self.with(|queue| {
                if queue.is_done(number) {
                    return Ok(None);
                }
                let (blocks, news) = (&self.core.blocks, queue.news());
                let alone = self.core.wait_policy.is_alone() && matches!(news, News::Stream(_));
                let asleep = alone && !pause.spins();
                let came = if asleep { queue.poll_asleep(blocks) } else { queue.poll(blocks) }?;
                let news = if alone { News::Asked } else { news };
                Ok(if came && queue.is_done(number) { None } else { Some(news) })
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

    /// Spins until a request is done, and serves other processes meanwhile: they may wait for this
    /// one, too, and no thread has to be woken for them. Ends when none has asked for anything for
    /// the time `spin`. Yields the core to other ranks each time.
    /// Returns whether the request is done, or `None` if this process cannot serve in this way.
    fn spin_serving(&self, number: u64, spin: Duration) -> Result<Option<bool>> {
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
            if self.is_done_now(number)? {
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

    /// Polls once. Returns whether a request is done.
    fn is_done_now(&self, number: u64) -> Result<bool> {
        self.with(|queue| {
            Ok(queue.is_done(number) || queue.poll(&self.core.blocks)? && queue.is_done(number))
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
