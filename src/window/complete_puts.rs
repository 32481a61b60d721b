//! The calls that complete the small puts that are gathered (`window_puts`). Invariant: when a call
//! that completes operations at a target returns, no put of this window waits there.
//!
//! Quick calls do not look for such puts, so no quick call serves the window from its first small
//! put by process_vm on (`registry::withdraw`). A window to which this never happens pays nothing
//! for it in a quick call.

use super::{LocalWindow, Window, registry};
use crate::error::Result;
use crate::fabric::cma::{Gathering, Process, SmallPuts};
use crate::rank_numbers::{Rank, RankOnNode};
use crate::sync::Ordering;

impl Window {
    /// Prepares for a small put by process_vm.
    #[inline]
    pub fn may_gather(&self, node: &LocalWindow) {
        // Acquire: pairs with the Release in `note`, behind which no quick call finds the window.
        if !node.small_puts.may_wait.load(Ordering::Acquire) {
            registry::withdraw(self, &node.small_puts);
        }
    }
}

impl LocalWindow {
    /// Returns a process of this node, with the small puts to it that are gathered.
    #[inline]
    pub(super) fn gathering(&self, rank: RankOnNode) -> Gathering<'_> {
        let small_puts = self.small_puts.targets.get(rank, || Ok(SmallPuts::default())).ok();
        Gathering { process: self.arena().memory_of(rank), small_puts }
    }

    /// Completes the small puts to a target, ahead of the protocol of a call that completes all
    /// operations there. [`LocalWindow::error_of_puts`] behind the protocol returns their error:
    /// the protocol runs also then, because other ranks wait for it.
    #[inline]
    pub(super) fn complete_puts(&self, target: Rank) {
        if self.small_puts.may_wait() {
            self.complete_waiting(target);
        }
    }

    #[cold]
    fn complete_waiting(&self, target: Rank) {
        let Some(rank) = self.near_index(target) else { return };
        let puts = self.small_puts.targets.find(rank);
        if puts.is_some_and(|puts| puts.complete(self.arena().memory_of(rank))) {
            self.small_puts.note_error();
        }
    }

    /// Completes the small puts to all targets, as [`LocalWindow::complete_puts`].
    #[inline]
    pub(super) fn complete_all_puts(&self) {
        if self.small_puts.may_wait() {
            self.each_target(SmallPuts::complete);
        }
    }

    /// Sends the small puts to all targets, in a call that need not complete them: a rank that
    /// waits or polls in this call may wait for what another rank does with them.
    #[inline]
    pub(super) fn send_puts(&self) {
        if self.small_puts.may_wait() {
            self.each_target(SmallPuts::send);
        }
    }

    #[cold]
    fn each_target(&self, work: impl Fn(&SmallPuts, Process<'_>) -> bool) {
        for (rank, puts) in self.small_puts.targets.all() {
            if work(puts, self.arena().memory_of(rank)) {
                self.small_puts.note_error();
            }
        }
    }

    /// Returns the error of a small put that no call has returned, if there is one.
    pub(super) fn error_of_puts(&self) -> Result<()> {
        // Relaxed: the flag is of this thread, or of one that it has met.
        match self.small_puts.failed.load(Ordering::Relaxed) {
            true => self.take_errors_of_puts(),
            false => Ok(()),
        }
    }

    #[cold]
    fn take_errors_of_puts(&self) -> Result<()> {
        // Relaxed: likewise.
        self.small_puts.failed.store(false, Ordering::Relaxed);
        let targets = self.small_puts.targets.all();
        targets.into_iter().map(|(_, puts)| puts.take_error()).fold(Ok(()), Result::and)
    }
}
