//! Completion of gathered small puts (`window_puts`). Invariant: when a call that completes
//! operations at a target returns, no put of this window to it is pending.
//!
//! Fast-path calls do not check for such puts, so they do not serve a window with *due* targets. A
//! target is due from its first small put by process_vm until a completing call leaves nothing
//! pending (`fabric::pending_puts`). Windows without small puts cost a fast-path call nothing.

use super::window_puts::WindowPuts;
use super::{LocalWindow, Window, registry};
use crate::error::Result;
use crate::fabric::cma::{Gathering, Process, SmallPuts};
use crate::fabric::pending_puts::PendingCount;
use crate::rank_numbers::{Rank, RankOnNode};
use crate::sync::Ordering;

impl Window {
    /// Prepares the window for small puts by process_vm. Returns the count of its due targets.
    #[inline]
    pub fn begin_gathering<'a>(&self, node: &'a LocalWindow) -> &'a WindowPuts {
        if !node.small_puts.have_been_used() {
            registry::leave_entry_to(self, &node.small_puts);
        }
        &node.small_puts
    }
}

impl PendingCount for WindowPuts {
    #[inline]
    fn change(&self, change: impl FnOnce() -> i32) {
        WindowPuts::change(self, change, |handle, serve| match serve {
            true => registry::serve_again(handle),
            false => registry::withdraw(handle),
        });
    }
}

impl LocalWindow {
    /// Returns a process of this node, with the small puts that are gathered for it.
    #[inline]
    pub(super) fn gathering(&self, rank: RankOnNode) -> Gathering<'_> {
        let small_puts = self.small_puts.targets.get(rank, || Ok(SmallPuts::default())).ok();
        Gathering { process: self.process(rank), small_puts }
    }

    /// Completes the small puts to a target, before the protocol of a call that completes all
    /// operations there. [`LocalWindow::error_of_puts`] returns their error after the protocol,
    /// which runs in any case because other ranks wait for it.
    #[inline]
    pub(super) fn complete_puts(&self, target: Rank) {
        if self.small_puts.may_wait() {
            self.complete_waiting(target);
        }
    }

    #[cold]
    fn complete_waiting(&self, target: Rank) {
        self.are_ordered(Some(target));
        let Some(rank) = self.near_index(target) else { return };
        if let Some(puts) = self.small_puts.targets.find(rank) {
            self.record_sent(puts.complete(self.process(rank), &self.small_puts));
        }
    }

    /// Sends the small puts to a target whose memory has moved since they were gathered.
    #[inline]
    pub(super) fn send_puts_to(&self, rank: RankOnNode) {
        if self.small_puts.may_wait()
            && let Some(puts) = self.small_puts.targets.find(rank)
        {
            self.record_sent(puts.send(self.process(rank)));
        }
    }

    /// Records that puts were sent, and whether one of them failed.
    fn record_sent(&self, has_error: bool) {
        if has_error {
            // Relaxed: as in `error_of_puts`.
            self.small_puts.failed.store(true, Ordering::Relaxed);
        }
    }

    /// Completes the small puts to all targets, as [`LocalWindow::complete_puts`].
    #[inline]
    pub(super) fn complete_all_puts(&self) {
        if self.small_puts.may_wait() {
            self.are_ordered(None);
            self.each_target(|puts, process| puts.complete(process, &self.small_puts));
        }
    }

    /// Sends the small puts to all targets, in a call that need not complete them, because a rank
    /// that waits or polls in this call may depend on another rank that uses their data.
    #[inline]
    pub(super) fn send_puts(&self) {
        if self.small_puts.may_wait() {
            self.each_target(SmallPuts::send);
        }
    }

    #[cold]
    fn each_target(&self, work: impl Fn(&SmallPuts, Process<'_>) -> bool) {
        for (rank, puts) in self.small_puts.targets.all() {
            self.record_sent(work(puts, self.process(rank)));
        }
    }

    /// Notes that later accesses to a rank, or to all, are behind the earlier ones.
    #[inline]
    pub fn are_ordered(&self, rank: Option<Rank>) {
        self.conflicts.iter().for_each(|conflicts| conflicts.ordered(rank));
    }

    /// Notes that results of accesses to a rank, or to all, have arrived.
    #[inline]
    pub fn have_arrived(&self, rank: Option<Rank>) {
        self.conflicts.iter().for_each(|conflicts| conflicts.arrived(rank));
    }

    /// Returns an error of a small put that no call has returned yet, if there is one.
    pub(super) fn error_of_puts(&self) -> Result<()> {
        // Relaxed: the flag was set by this thread, or by one that it has synchronised with.
        match self.small_puts.failed.load(Ordering::Relaxed) {
            true => self.take_errors_of_puts(),
            false => Ok(()),
        }
    }

    #[cold]
    fn take_errors_of_puts(&self) -> Result<()> {
        // Relaxed: as in `error_of_puts`.
        self.small_puts.failed.store(false, Ordering::Relaxed);
        let targets = self.small_puts.targets.all();
        targets
            .into_iter()
            .map(|(_, puts)| puts.take_error(&self.small_puts))
            .fold(Ok(()), Result::and)
    }
}
