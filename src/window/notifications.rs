//! Notified operations on a window: where the counters of its ranks are, additions to them, and
//! waits for them (issue 59 of the MPI Forum; docs/decisions/0032). `epoch::notification` has the
//! layout of the counters and what a reset does.
//!
//! The counters of all ranks are the memory of a second window, which the program does not see: the
//! table. A window has one from its first FOMPI_Win_set_num_notify on, and each later call makes
//! another. The table is over the same processes, and the process that serves a rank of the window
//! serves the rank's counters, so that a notification follows its data over the same connection.
//! So its memory is allocated where that of the window is, and otherwise each rank's own.

use super::quick_window::{Extent, Quick};
use super::target_counter::{TargetCounter, word};
use super::wide::WideWindow;
use super::{Carrier, LocalWindow, Notifications, Window};
use crate::epoch::notification::{CounterOffsets, DOORBELL, Table};
use crate::error::{Error, Result};
use crate::fabric::remote::{Behind, Bytes, Network};
use crate::fabric::shm::doorbell;
use crate::fabric::{Way, layout};
use crate::messages;
use crate::mpi::grequests::RequestWork;
use crate::number::Number;
use crate::rank_numbers::{Rank, RankOnNode};
use crate::sync::{AtomicBool, AtomicU32, AtomicU64, Ordering, full_fence};
use crate::sys::futex;
use crate::window::protocols::{Protocols, on_protocols};
use core::cell::Cell;
use core::ops::Range;
use core::ptr;
use std::sync::Arc;

// SAFETY: the address is of shared memory, which is reached by atomic operations only.
unsafe impl Send for Notifications {}
// SAFETY: as for `Send`.
unsafe impl Sync for Notifications {}

/// A wait of the calling thread for counters of its rank.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AwaitedCounters {
    /// the user's call
    pub call: &'static str,
    first: u32,
    last: u32,
    threshold: i64,
}

thread_local! {
    /// what the thread waits for, for a report; `None`: it does not wait
    static AWAITED: Cell<Option<AwaitedCounters>> = const { Cell::new(None) };
}

impl AwaitedCounters {
    /// Returns what the calling thread, which waits for notifications, waits for.
    pub fn of_this_thread() -> AwaitedCounters {
        AWAITED.get().expect("set by the wait that asks")
    }

    /// Returns this as text, with the present value of the counter, or of the highest of them.
    pub fn text(self, window: &Window) -> String {
        let AwaitedCounters { first, last, threshold, .. } = self;
        // Signed, as in `reached`.
        let value = |counters: &Notifications, index| counters.value(index).cast_signed();
        let values = |counters| (first..=last).map(|index| value(counters, index)).max();
        let highest = window.notifications.get().and_then(values).unwrap_or(0);
        match first == last {
            true => format!(", for counter {first}, which is {highest}, to reach {threshold}"),
            false => format!(
                ", for one of counters {first} to {last}, the highest of which is {highest}, to \
                 reach {threshold}"
            ),
        }
    }
}

/// One in this many polls of a counter reads the clock: that takes longer than the poll.
const POLLS_PER_CHECK: u32 = 64;

impl Notifications {
    /// Starts with a table whose counters are all 0.
    pub(super) fn new(table: &'static Window) -> Notifications {
        let own = Table::of_bytes(table.facts.size.cast_unsigned().to_u64());
        Notifications {
            table,
            own,
            at: ptr::with_exposed_provenance_mut(table.facts.base),
            offsets: CounterOffsets::new(own.0),
            polls: AtomicU32::new(0),
            ended: AtomicBool::new(false),
        }
    }

    /// Ends their use, and returns the table, which the caller frees.
    pub(super) fn end(&self) -> &'static Window {
        // Release: pairs with the Acquire in `is_done`.
        self.ended.store(true, Ordering::Release);
        self.table
    }

    /// Returns the part of the table that this process has.
    fn node(&self) -> &'static LocalWindow {
        let Carrier::Own(node) = &self.table.carrier else { unreachable!("made by the library") };
        node
    }

    /// Counts a poll. Returns whether it is time to read the clock.
    fn is_check_due(&self) -> bool {
        // Relaxed: it decides nothing else; an update may be lost.
        let polls = self.polls.load(Ordering::Relaxed);
        self.polls.store(polls.wrapping_add(1), Ordering::Relaxed);
        polls.is_multiple_of(POLLS_PER_CHECK)
    }

    /// The word of a counter of this rank that ranks of its node increment.
    #[inline(always)]
    fn near(&self, index: u32) -> &AtomicU64 {
        // SAFETY: this rank has the counter, and its part of the table.
        unsafe { word(self.at, self.own.near(index)) }
    }

    /// The word that ranks of other nodes increment.
    #[inline(always)]
    fn far(&self, index: u32) -> &AtomicU64 {
        // SAFETY: as in `near`.
        unsafe { word(self.at, self.own.far(index)) }
    }

    /// The notifications for a counter of this rank, ever.
    #[inline(always)]
    fn sum(&self, index: u32) -> u64 {
        // Acquire: pairs with the Release of the addition, or with that of the device.
        self.near(index)
            .load(Ordering::Acquire)
            .wrapping_add(self.far(index).load(Ordering::Acquire))
    }

    /// The value of a counter that this rank has.
    #[inline(always)]
    fn value(&self, index: u32) -> u64 {
        self.offsets.value(index, || self.sum(index))
    }

    /// Returns one of these counters of this rank that has reached a threshold.
    fn reached(&self, mut indices: Range<u32>, threshold: i64) -> Option<u32> {
        // Signed: a program may have set a counter below 0 (MPIX_Win_set_notify).
        indices.find(|index| self.value(*index).cast_signed() >= threshold)
    }

    /// The doorbell of this rank.
    fn doorbell(&self) -> &AtomicU32 {
        // SAFETY: as in `near`: each table begins with its doorbell.
        doorbell::in_word(unsafe { word(self.at, DOORBELL) })
    }

    /// Returns the number of counters of a rank.
    fn counters_of(&self, rank: Rank) -> Result<u32> {
        let node = self.node();
        let bytes = match node.many_nodes() {
            None => node.blocks.descriptor(rank.on_only_node()).exposed,
            Some(many) => many.part.exposed_by(node, rank)?.1.exposed,
        };
        Ok(Table::of_bytes(bytes).0)
    }

    /// Finds a counter of a rank.
    fn counter(&self, rank: Rank, index: i64) -> Result<TargetCounter<'_>> {
        let node = self.node();
        if let Some(part) = node.wide.as_deref() {
            let target = part.target(node, rank)?;
            if target.member.node != part.wide.node {
                let data = part.data(node, target)?;
                let (table, index) = counter_of(data.descriptor.get().exposed, rank, index)?;
                let at = |byte: u64| data.at.offset(byte.cast_signed());
                let (word, bell) = (at(table.far(index)), at(DOORBELL));
                return Ok(TargetCounter::Elsewhere { peer: &target.peer, word, bell });
            }
        }
        self.table.record(node, rank); // for the fast path
        let (at, bytes, _) = node.part(rank)?;
        let (table, index) = counter_of(bytes, rank, index)?;
        // SAFETY: the rank has the counter, and this process has mapped its part of the table.
        Ok(unsafe { TargetCounter::mapped(at, table.near(index)) })
    }
}

/// Returns the layout of a table of `bytes` bytes, and an index if it has that counter.
#[inline]
fn counter_of(bytes: u64, rank: Rank, index: i64) -> Result<(Table, u32)> {
    let table = Table::of_bytes(bytes);
    let known = u32::try_from(index).ok().filter(|index| *index < table.0);
    let none = || Error::NoCounter { rank, index, counters: table.0 };
    known.map(|index| (table, index)).ok_or_else(none)
}

/// The kind of a notified operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Notified {
    /// MPI_Put
    Put,
    /// MPI_Get
    Get,
    /// MPI_Accumulate and MPI_Get_accumulate
    Accumulate,
}

impl From<Way> for Notified {
    fn from(way: Way) -> Notified {
        match way {
            Way::Put => Notified::Put,
            Way::Get => Notified::Get,
        }
    }
}

/// A notification that an operation is about to send.
pub struct Notification<'a> {
    node: &'a LocalWindow,
    rank: Rank,
    counter: TargetCounter<'a>,
}

impl Notification<'_> {
    /// Carries out the operation, and notifies its target behind it.
    pub fn behind(self, kind: Notified, operation: impl FnOnce() -> Result<()>) -> Result<()> {
        if let TargetCounter::Elsewhere { peer, .. } = self.counter {
            peer.begin_notified();
        }
        let done = operation().and_then(|()| self.send(kind));
        if let (Err(_), TargetCounter::Elsewhere { peer, .. }) = (&done, &self.counter) {
            peer.cancel_notified();
        }
        done
    }

    /// Adds 1 to the counter, behind the operation.
    fn send(&self, kind: Notified) -> Result<()> {
        match self.counter {
            TargetCounter::Mapped { word, bell } => {
                self.node.complete_puts(self.rank);
                if let Some(part) = self.node.wide.as_deref() {
                    part.end_transfers(self.rank)?;
                }
                doorbell::add_and_ring(word, 1, bell, futex::wake);
                Ok(())
            }
            TargetCounter::Elsewhere { peer, word, bell } => {
                if kind == Notified::Accumulate {
                    on_protocols!(self.node, |protocols| protocols.settle(self.rank))?;
                }
                let behind = if kind == Notified::Put { Behind::Puts } else { Behind::All };
                peer.notify(word, bell, behind)
            }
        }
    }
}

impl WideWindow {
    /// Ends the operations of this process on a rank of its node that go through the transport.
    fn end_transfers(&self, rank: Rank) -> Result<()> {
        full_fence();
        self.known_target(rank).map_or(Ok(()), |target| target.peer.flush())
    }
}

impl Window {
    /// Returns the notification for an operation on a rank, after all checks of its index and its
    /// epoch. Takes a lock that was asked for.
    pub fn notification<'a>(
        &'a self,
        node: &'a LocalWindow,
        rank: Rank,
        index: i64,
    ) -> Result<Notification<'a>> {
        if let Err(error) = self.epochs.may_notify(|| self.access_of(rank)) {
            node.needs_asked(self, rank, error)?;
        }
        self.notification_of(node, rank, index)
    }

    /// Returns the notification for an operation on a rank that asks no epoch, after all checks of
    /// its index.
    pub fn notification_of<'a>(
        &'a self,
        node: &'a LocalWindow,
        rank: Rank,
        index: i64,
    ) -> Result<Notification<'a>> {
        let Some(notifications) = self.notifications.get() else {
            return Err(Error::NoCounter { rank, index, counters: 0 });
        };
        Ok(Notification { node, rank, counter: notifications.counter(rank, index)? })
    }

    /// Returns the number of counters of a rank.
    pub fn counters_of(&self, rank: Rank) -> Result<u32> {
        self.notifications.get().map_or(Ok(0), |notifications| notifications.counters_of(rank))
    }

    /// Returns the counters of this rank, if it has these.
    fn own_counters(&self, node: &LocalWindow, first: i64, number: i64) -> Result<OwnCounters<'_>> {
        let found = self.notifications.get();
        let counters = found.map_or(0, |notifications| notifications.own.0);
        let last = first.saturating_add(number) - 1;
        let index = if first < 0 { first } else { last };
        let none = Error::NoCounter { rank: node.rank, index, counters };
        let (Some(notifications), true) = (found, first >= 0 && last < i64::from(counters)) else {
            return Err(none);
        };
        let first = u32::try_from(first).map_err(|_| none.clone())?;
        let indices = first..u32::try_from(last + 1).map_err(|_| none)?;
        Ok(OwnCounters { notifications, indices })
    }

    /// Returns the value of a counter of this rank, which may be polled: some of the calls also
    /// serve other processes.
    pub fn polled_notify_value(&self, node: &LocalWindow, index: i64) -> Result<i64> {
        let OwnCounters { notifications, indices } = self.own_counters(node, index, 1)?;
        let value = notifications.value(indices.start).cast_signed();
        node.send_puts();
        node.send_kept_puts(self)?;
        if let Some(part) = node.wide.as_deref() {
            part.wide.wire.note_wait();
            node.serve_polling();
        }
        // As MPI_Win_test does: a program that polls would do so for ever.
        if notifications.is_check_due() {
            node.arena().check_dead_by_the_clock()?;
        }
        Ok(value)
    }

    /// Sets the value of a counter of this rank, and returns its value before.
    pub fn set_notify_value(&self, node: &LocalWindow, index: i64, value: i64) -> Result<i64> {
        let own = self.own_counters(node, index, 1)?;
        let (counters, index) = (own.notifications, own.indices.start);
        let before = counters.offsets.set(index, value.cast_unsigned(), || counters.sum(index));
        Ok(before.cast_signed())
    }

    /// Waits in the user's call `call` until one of the counters of this rank from `first` on has
    /// reached a threshold, and returns its index.
    pub fn wait_notify(
        &self,
        node: &LocalWindow,
        call: &'static str,
        (first, number): (i64, i64),
        threshold: i64,
    ) -> Result<u32> {
        let OwnCounters { notifications, indices } = self.own_counters(node, first, number)?;
        if let Some(index) = notifications.reached(indices.clone(), threshold) {
            return Ok(index);
        }
        // Another rank may wait for these before it notifies this one.
        node.send_puts();
        node.send_kept_puts(self)?;
        // Kept when it is found: another thread may reset the counter at once.
        let found = Cell::new(None);
        let until = |_| {
            found.set(notifications.reached(indices.clone(), threshold));
            found.get().is_some()
        };
        let word = notifications.near(indices.start);
        let at = (layout::NOTIFICATIONS, word, notifications.doorbell());
        let (first, last) = (indices.start, indices.end - 1);
        // A callback of the host MPI may wait meanwhile.
        let before = AWAITED.replace(Some(AwaitedCounters { call, first, last, threshold }));
        let waited = match node.many_nodes() {
            None => node.words.wait_at(at, &until),
            Some(many) => {
                many.part.wide.wire.note_wait();
                many.words.wait_at(at, &until)
            }
        };
        AWAITED.set(before);
        waited?;
        Ok(found.get().expect("the wait has ended"))
    }

    /// Returns the work of a request that is complete once a counter of this rank has reached a
    /// threshold.
    pub fn notify_request(
        &self,
        node: &LocalWindow,
        index: i64,
        threshold: i64,
    ) -> Result<ThresholdRequest> {
        let indices = self.own_counters(node, index, 1)?.indices;
        let notifications = self.notifications.shared().expect("found above");
        Ok(ThresholdRequest { notifications, index: indices.start, threshold })
    }
}

/// Counters of this rank.
struct OwnCounters<'a> {
    notifications: &'a Notifications,
    indices: Range<u32>,
}

/// The work of a request that waits for a counter.
pub struct ThresholdRequest {
    notifications: Arc<Notifications>,
    index: u32,
    threshold: i64,
}

impl ThresholdRequest {
    /// Whether the counter has reached its threshold.
    pub fn is_reached(&self) -> bool {
        self.notifications.reached(self.index..self.index + 1, self.threshold).is_some()
    }
}

impl RequestWork for ThresholdRequest {
    fn is_done(&mut self) -> Result<bool> {
        // Acquire: pairs with the Release in `end`. A program that frees the window while another
        // thread completes the request is erroneous.
        if self.notifications.ended.load(Ordering::Acquire) {
            return Err(Error::Wrong(&messages::WIN_INVALID));
        }
        let node = self.notifications.node();
        match self.is_reached() {
            true => Ok(true),
            false => {
                node.serve_polling();
                node.arena().check_dead_by_the_clock().map(|()| false)
            }
        }
    }

    fn rest(&self) {
        std::thread::yield_now();
    }
}

impl Quick {
    /// Returns a counter of the target, whose rank is given again, any number as an index, if it
    /// may be notified now.
    #[inline(always)]
    pub fn counter(&self, rank: i32, index: i32) -> Option<TargetCounter<'static>> {
        let notifications = self.window.whole().notifications.get()?;
        let rank = RankOnNode(rank.cast_unsigned());
        let Extent { at, bytes, .. } = notifications.table.targets.of(rank)?.extent;
        let table = Table::of_bytes(bytes);
        let index = index.cast_unsigned();
        // SAFETY: the rank has the counter, and this process has mapped its part of the table.
        let counter = || unsafe { TargetCounter::mapped(at, table.near(index)) };
        (index < table.0 && self.is_passive()).then(counter)
    }
}
