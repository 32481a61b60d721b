//! Policy for when the requests of a connection leave: at once, or gathered with later ones.

use std::time::{Duration, Instant};

use crate::request::{Leaves, Order, Work};

/// Time after which a request that has left is likely to be answered. A burst of puts is shorter.
const ANSWERED_AFTER: Duration = Duration::from_micros(30);

/// Notifications that leave at once between two waits, before others are gathered: a program that
/// exchanges data with another process sends it a few parts, and computes before it waits.
const NOTIFICATIONS_AT_ONCE: u32 = 4;

/// When the requests of a connection leave.
pub struct Departures {
    /// whether the device sends several requests at once
    gathers: bool,
    /// number of the last request that was sent with all before it
    pub sent: u64,
    /// when the last put or get left at once
    left_at: Option<Instant>,
    /// whether the requests leave with the notification of their operation
    pub notified: bool,
    /// the last notification; `None`: there was none
    last: Option<Notification>,
}

/// A notification that was sent.
struct Notification {
    /// the waits of this process before it
    waits: u64,
    /// the last request before it that uses memory of the user
    lent: u64,
    /// how many have left at once since the last wait
    left: u32,
    /// when it left at once, or began to gather others
    at: Instant,
    /// whether it was gathered
    gathered: bool,
}

impl Departures {
    /// Starts without requests. `gathers`: whether the device sends several requests at once.
    pub fn new(gathers: bool) -> Departures {
        Departures { gathers, sent: 0, left_at: None, notified: false, last: None }
    }

    /// Whether the device sends several requests at once.
    pub fn gathers(&self) -> bool {
        self.gathers
    }

    /// Decides when the request `number` leaves. A put or get leaves at once, and is answered, if
    /// no answer is under way (`is_first`). That answer ends the gathering of later ones.
    #[inline(always)]
    pub fn leave(&mut self, order: &mut Order, number: u64, is_first: bool) {
        match order.leaves {
            Leaves::IfFirst | Leaves::AtOnce
                if self.notified && !matches!(order.work, Work::Ping) =>
            {
                order.leaves = Leaves::WithNotification;
            }
            Leaves::IfFirst if is_first && self.gathers => {
                (order.leaves, order.signaled) = (Leaves::AtOnce, true);
                (self.left_at, self.sent) = (Some(Instant::now()), number);
            }
            Leaves::IfFirst => order.leaves = Leaves::Soon,
            Leaves::AtOnce => self.sent = number,
            _ => {}
        }
    }

    /// Decides when the notification of an operation leaves, with the puts and gets of that
    /// operation: at once, unless it is one of a burst. `waits`: the waits of this process so far.
    /// A burst ends with the next wait. [`NOTIFICATIONS_AT_ONCE`] of it have left, the last one in
    /// the last 30 us, or an earlier one still waits among the requests that are not sent
    /// (`unsent`). `lent`: the number of the last request that uses memory of the user: a
    /// notification behind such a one leaves at once.
    pub fn notification_leaves(
        &mut self,
        (waits, lent): (u64, u64),
        unsent: impl FnOnce() -> bool,
    ) -> Leaves {
        self.notified = false;
        if let Some(last) = &mut self.last
            && last.waits == waits
            && last.lent == lent
        {
            if last.left < NOTIFICATIONS_AT_ONCE {
                (last.left, last.at) = (last.left + 1, Instant::now());
                return Leaves::AtOnce;
            }
            if last.gathered && unsent() {
                return Leaves::Soon;
            }
            let now = Instant::now();
            last.gathered = now.duration_since(last.at) < ANSWERED_AFTER;
            last.at = now;
            return if last.gathered { Leaves::Soon } else { Leaves::AtOnce };
        }
        if self.gathers {
            let at = Instant::now();
            self.last = Some(Notification { waits, lent, left: 1, at, gathered: false });
        }
        Leaves::AtOnce
    }

    /// Whether the last put or get that left at once is likely to be answered by now.
    pub fn is_likely_answered(&self) -> bool {
        self.gathers && self.left_at.is_some_and(|at| at.elapsed() >= ANSWERED_AFTER)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::remote::Remote;
    use crate::request::Local;

    fn put() -> Order {
        let order = Order::new(Work::WriteInline, Remote::default(), Local::default(), false);
        Order { leaves: Leaves::IfFirst, ..order }
    }

    fn notified(departures: &mut Departures, waits: u64, unsent: bool) -> Leaves {
        departures.notification_leaves((waits, 4), || unsent)
    }

    #[test]
    fn a_notified_put_leaves_with_its_notification() {
        let mut departures = Departures::new(true);
        let mut order = put();
        departures.notified = true;
        departures.leave(&mut order, 1, true);
        assert_eq!(order.leaves, Leaves::WithNotification);
        let mut lent = Order { leaves: Leaves::AtOnce, ..put() };
        departures.leave(&mut lent, 2, true);
        assert_eq!(lent.leaves, Leaves::WithNotification);
        let mut ping = Order::ping();
        departures.leave(&mut ping, 3, true);
        assert_eq!(ping.leaves, Leaves::AtOnce);
        let leaves = notified(&mut departures, 5, false);
        let mut notification = Order { leaves, ..put() };
        departures.leave(&mut notification, 4, true);
        assert_eq!(notification.leaves, Leaves::AtOnce);
        let mut plain = put();
        departures.notified = false;
        departures.leave(&mut plain, 3, true);
        assert_eq!(plain.leaves, Leaves::AtOnce, "it is no part of it");
    }

    #[test]
    fn a_burst_of_notifications_is_gathered_until_a_wait() {
        let mut departures = Departures::new(true);
        for _ in 0..NOTIFICATIONS_AT_ONCE {
            assert_eq!(notified(&mut departures, 5, false), Leaves::AtOnce);
        }
        // At most 30 us later, unless the machine has stopped meanwhile.
        let in_time = Instant::now();
        let next = notified(&mut departures, 5, false);
        if in_time.elapsed() < ANSWERED_AFTER / 2 {
            assert_eq!(next, Leaves::Soon);
        }
        let lent = departures.notification_leaves((5, 6), || false);
        assert_eq!(lent, Leaves::AtOnce, "lent memory");
        assert_eq!(notified(&mut departures, 6, false), Leaves::AtOnce, "behind a wait");
        std::thread::sleep(2 * ANSWERED_AFTER);
        assert_eq!(notified(&mut departures, 6, true), Leaves::AtOnce, "late");
    }

    #[test]
    fn a_notification_joins_others_that_are_not_sent() {
        let mut departures = Departures::new(true);
        let (left, at) = (NOTIFICATIONS_AT_ONCE, Instant::now());
        let last = Notification { waits: 5, lent: 4, left, at, gathered: true };
        departures.last = Some(last);
        std::thread::sleep(2 * ANSWERED_AFTER);
        assert_eq!(notified(&mut departures, 5, true), Leaves::Soon);
        assert_eq!(notified(&mut departures, 5, false), Leaves::AtOnce, "they have left");
    }

    #[test]
    fn a_device_that_sends_each_request_needs_no_pair() {
        let mut departures = Departures::new(false);
        let mut order = put();
        departures.leave(&mut order, 1, true);
        assert_eq!((order.leaves, order.signaled), (Leaves::Soon, false));
        assert_eq!(notified(&mut departures, 0, false), Leaves::AtOnce);
        assert_eq!(notified(&mut departures, 0, false), Leaves::AtOnce);
    }
}
