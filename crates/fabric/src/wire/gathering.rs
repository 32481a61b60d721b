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
}

impl Departures {
    /// Starts without requests. `gathers`: whether the device sends several requests at once.
    pub fn new(gathers: bool) -> Departures {
        Departures { gathers, sent: 0, left_at: None }
    }

    /// Decides when the request `number` leaves. A put or get leaves at once, and is answered, if
    /// no answer is under way (`is_first`). That answer ends the gathering of later ones.
    #[inline(always)]
    pub fn leave(&mut self, order: &mut Order, number: u64, is_first: bool) {
        if order.leaves == Leaves::IfFirst {
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

    /// Whether all requests up to `posted` have left, the last put or get that left at once long
    /// enough ago that it is likely to be answered.
    #[inline(always)]
    pub fn begins_to_gather(&self, posted: u64) -> bool {
        self.gathers
            && self.sent == posted
            && self.left_at.is_some_and(|at| at.elapsed() >= ANSWERED_AFTER)
    }
}
