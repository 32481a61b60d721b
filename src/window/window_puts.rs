//! The small puts of a window that are gathered for targets of this node whose memory the system
//! copies, by their target (`fabric::cma::SmallPuts`). Not for the calls that complete them:
//! `complete_puts` has those.
//!
//! | `may_wait` | meaning                                                                    |
//! |------------|----------------------------------------------------------------------------|
//! | false      | there was no small put yet; quick calls may serve the window               |
//! | true       | puts may wait; quick calls, which do not look for them, do not serve it    |
//!
//! The first small put counts although it does not wait: the call that completes it has to notice
//! that no other one came.

use crate::fabric::cma::SmallPuts;
use crate::rank_numbers::RankOnNode;
use crate::sync::{AtomicBool, Ordering};
use crate::util::known::Known;

/// The small puts of a window, by their target.
pub struct WindowPuts {
    /// whether one may have been gathered
    pub(super) may_wait: AtomicBool,
    /// whether errors may be left to the call that completes operations: a put may have been
    /// gathered, or the window spans nodes
    may_err: AtomicBool,
    /// whether a call that completes puts has found an error
    pub(super) failed: AtomicBool,
    pub(super) targets: Known<RankOnNode, SmallPuts>,
}

impl WindowPuts {
    /// Starts without puts.
    pub fn new(spans_nodes: bool) -> WindowPuts {
        WindowPuts {
            may_wait: AtomicBool::new(false),
            may_err: AtomicBool::new(spans_nodes),
            failed: AtomicBool::new(false),
            targets: Known::default(),
        }
    }

    /// Whether errors may be left to the call that completes operations. If not, the window is on
    /// one node, and no put was gathered.
    #[inline(always)]
    pub(super) fn may_err(&self) -> bool {
        // Relaxed: as in `may_wait`.
        self.may_err.load(Ordering::Relaxed)
    }

    /// Whether there was a small put, so that others may wait.
    #[inline(always)]
    pub(super) fn may_wait(&self) -> bool {
        // Relaxed: a thread that has to complete a put has met the one that made it.
        self.may_wait.load(Ordering::Relaxed)
    }

    /// Notes that puts may be gathered from now on. Quick calls do not serve the window any more.
    pub(super) fn note(&self) {
        // Relaxed: as in `may_wait`.
        self.may_err.store(true, Ordering::Relaxed);
        // Release: pairs with the Acquire in `may_gather`.
        self.may_wait.store(true, Ordering::Release);
    }

    /// Notes that a call that completes puts has found an error.
    pub(super) fn note_error(&self) {
        // Relaxed: as in `may_wait`.
        self.failed.store(true, Ordering::Relaxed);
    }
}
