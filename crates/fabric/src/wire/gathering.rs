//! When the requests of a connection leave.

use std::time::{Duration, Instant};

use crate::request::{Leaves, Order};

/// Time after which a request that has left is likely to be answered. A burst of puts is shorter.
const ANSWERED_AFTER: Duration = Duration::from_micros(30);

/// When the requests of a connection leave.
pub struct Departures {
    /// whether the device sends several requests at once
    gathers: bool,
    /// number of the last request that was sent with all before it
    sent: u64,
    /// when the last put or get left at once
    left_at: Option<Instant>,
    /// a notified operation that has begun: whether its notification leaves at once, and the last
    /// request before it that uses memory of the user
    notified: Option<(bool, u64)>,
    /// the last notified operation: the waits of this process before it, and when it began
    last_notified: Option<(u64, Instant)>,
}

impl Departures {
    /// Starts without requests. `gathers`: whether the device sends several requests at once.
    pub fn new(gathers: bool) -> Departures {
        Departures { gathers, sent: 0, left_at: None, notified: None, last_notified: None }
    }

    /// Whether the device sends several requests at once.
    pub fn gathers(&self) -> bool {
        self.gathers
    }

    /// Decides when the request `number` leaves. A put or get leaves at once, and is answered, if
    /// no answer is under way (`is_first`). That answer ends the gathering of later ones.
    #[inline(always)]
    pub fn leave(&mut self, order: &mut Order, number: u64, is_first: bool) {
        if order.leaves == Leaves::IfFirst {
            if self.notified.is_some() {
                order.leaves = Leaves::WithNotification;
                return;
            }
            let is_first = self.gathers && is_first;
            order.leaves = if is_first { Leaves::AtOnce } else { Leaves::Soon };
            order.signaled |= is_first;
            if is_first {
                self.left_at = Some(Instant::now());
            }
        }
        if order.leaves == Leaves::AtOnce {
            self.sent = number;
        }
    }

    /// Begins a notified operation: its puts and gets leave with its notification. That leaves at
    /// once, unless it is one of a burst: another one began in the last 30 us, and this process has
    /// not waited since then. `waits`: the waits of this process so far. `lent`: the number of the
    /// last request that uses memory of the user.
    pub fn begin_notified(&mut self, waits: u64, lent: u64) {
        if !self.gathers {
            return;
        }
        let now = Instant::now();
        let is_of_burst = self
            .last_notified
            .is_some_and(|last| last.0 == waits && now.duration_since(last.1) < ANSWERED_AFTER);
        self.notified = Some((!is_of_burst, lent));
        self.last_notified = Some((waits, now));
    }

    /// Ends a notified operation. Returns when its notification leaves: at once, too, if the
    /// operation sends memory of the user from its place, which leaves at once. `lent`: as above.
    pub fn end_notified(&mut self, lent: u64) -> Leaves {
        match self.notified.take() {
            Some((false, before)) if before == lent => Leaves::Soon,
            _ => Leaves::AtOnce,
        }
    }

    /// Whether all requests up to `posted` have left, the last put or get that left at once long
    /// enough ago that it is likely to be answered.
    #[inline(always)]
    pub fn begins_to_gather(&self, posted: u64) -> bool {
        self.gathers
            && self.sent == posted
            && self.left_at.is_some_and(|at| at.elapsed() >= ANSWERED_AFTER)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::remote::Remote;
    use crate::request::{Local, Work};

    fn put() -> Order {
        let order = Order::new(Work::WriteInline, Remote::default(), Local::default(), false);
        Order { leaves: Leaves::IfFirst, ..order }
    }

    fn notified(departures: &mut Departures, waits: u64, lends: bool) -> (Leaves, Leaves) {
        let mut order = put();
        departures.begin_notified(waits, 4);
        departures.leave(&mut order, 1, true);
        (order.leaves, departures.end_notified(4 + u64::from(lends)))
    }

    #[test]
    fn a_notified_put_leaves_with_its_notification() {
        let mut departures = Departures::new(true);
        let first = notified(&mut departures, 5, false);
        assert_eq!(first, (Leaves::WithNotification, Leaves::AtOnce));
        let mut plain = put();
        departures.leave(&mut plain, 3, true);
        assert_eq!(plain.leaves, Leaves::AtOnce, "it is no part of it");
    }

    #[test]
    fn a_burst_of_notifications_is_gathered_until_a_wait() {
        let mut departures = Departures::new(true);
        assert_eq!(notified(&mut departures, 5, false).1, Leaves::AtOnce);
        // At most 30 us later, unless the machine has stopped meanwhile.
        let in_time = Instant::now();
        let second = notified(&mut departures, 5, false).1;
        if in_time.elapsed() < ANSWERED_AFTER / 2 {
            assert_eq!(second, Leaves::Soon);
        }
        assert_eq!(notified(&mut departures, 5, true).1, Leaves::AtOnce, "lent memory");
        assert_eq!(notified(&mut departures, 6, false).1, Leaves::AtOnce, "behind a wait");
        std::thread::sleep(2 * ANSWERED_AFTER);
        assert_eq!(notified(&mut departures, 6, false).1, Leaves::AtOnce, "late");
    }

    #[test]
    fn a_device_that_sends_each_request_needs_no_pair() {
        let mut departures = Departures::new(false);
        assert_eq!(notified(&mut departures, 0, false), (Leaves::Soon, Leaves::AtOnce));
    }
}
