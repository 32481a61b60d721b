//! The small puts of a window that are gathered for targets of this node whose memory the system
//! copies, by their target (`fabric::cma::SmallPuts`), and the number of targets that are due: the
//! next call that completes operations there has something to do (`fabric::pending_puts`). Not for
//! the calls that complete puts: `complete_puts` has those.
//!
//! | `due` | meaning                                                                         |
//! |-------|---------------------------------------------------------------------------------|
//! | 0     | no put is pending, and no error is kept; fast-path calls may serve the window   |
//! | n     | n targets are due; fast-path calls, which do not check for puts, do not serve it |
//!
//! | `handle`   | meaning                                            | the fast-path entry       |
//! |------------|----------------------------------------------------|---------------------------|
//! | 0          | there was no small put yet                         | the registry changes it   |
//! | NO_ENTRY   | there was one, or one is about to be made          | there is none             |
//! | the handle | as for NO_ENTRY                                    | changes with `due`        |
//!
//! `due` changes in a turn, together with the entry. So that a call can complete the puts that its
//! thread has made, the entry must not be there while one of them waits: `fabric::pending_puts`
//! shows that the target is counted from before the put returns until it was sent.

use crate::fabric::cma::SmallPuts;
use crate::rank_numbers::RankOnNode;
use crate::sync::{AtomicBool, AtomicU32, Ordering};
use crate::util::known::Known;
use crate::util::serial::Serial;

/// The small puts of a window, by their target.
pub struct WindowPuts {
    /// the handle of the window, see the head of this file
    handle: AtomicU32,
    /// the number of targets that are due
    due: AtomicU32,
    /// for changes of `due`
    turn: Serial<()>,
    /// whether errors of other nodes may be left to the call that completes operations
    spans_nodes: bool,
    /// whether a call that completes puts has found an error
    pub(super) failed: AtomicBool,
    pub(super) targets: Known<RankOnNode, SmallPuts>,
}

/// A value of `handle` that no window has.
const NO_ENTRY: u32 = 1;

impl WindowPuts {
    /// Starts without puts. `threads`: whether several threads may call at once.
    pub fn new(threads: bool, spans_nodes: bool) -> WindowPuts {
        WindowPuts {
            handle: AtomicU32::new(0),
            due: AtomicU32::new(0),
            turn: Serial::new(threads, ()),
            spans_nodes,
            failed: AtomicBool::new(false),
            targets: Known::default(),
        }
    }

    /// Starts for a window that checks for conflicts, as if a target were due for ever: all calls
    /// that complete operations come to `complete_puts`.
    pub fn watched(spans_nodes: bool) -> WindowPuts {
        let (handle, due) = (AtomicU32::new(NO_ENTRY), AtomicU32::new(1));
        WindowPuts { handle, due, ..WindowPuts::new(true, spans_nodes) }
    }

    /// Allows several threads to call at once from now on.
    pub(super) fn several_threads(&self) {
        self.turn.several_threads();
    }

    /// Allows one thread at a time again.
    pub(super) fn one_thread(&self) {
        self.turn.one_thread();
    }

    /// Whether errors may be left to the call that completes operations. If not, the window is on
    /// one node, and no put waits.
    #[inline(always)]
    pub(super) fn may_defer_errors(&self) -> bool {
        self.spans_nodes || self.may_wait()
    }

    /// Whether a target is due, so that puts may wait.
    #[inline(always)]
    pub(super) fn may_wait(&self) -> bool {
        // Acquire: pairs with the Release in `change`. A thread that must complete a put has
        // synchronised with the thread that made it after the change from 0, and the number is 0
        // again only after the put.
        self.due.load(Ordering::Acquire) > 0
    }

    /// Whether there was a small put, so that the entry for fast-path calls changes with them.
    #[inline]
    pub(super) fn have_been_used(&self) -> bool {
        // Acquire: pairs with the Release in `note`, behind the last change by the registry.
        self.handle.load(Ordering::Acquire) != 0
    }

    /// Records that puts may be gathered from now on, and the handle of the window if fast-path
    /// calls can serve it. The registry's lock is held.
    pub(super) fn note(&self, handle: Option<u32>) {
        // Release: pairs with the Acquire in `have_been_used`.
        self.handle.store(handle.unwrap_or(NO_ENTRY), Ordering::Release);
    }

    /// Does `change` in a turn of its own, and adds its answer to the number of targets that are
    /// due. `serve` lets fast-path calls serve the window of this handle, or no longer.
    #[inline]
    pub(super) fn change(&self, change: impl FnOnce() -> i32, serve: impl FnOnce(u32, bool)) {
        self.turn.with(|()| {
            // Relaxed: the turn orders it.
            let before = self.due.load(Ordering::Relaxed);
            let after = before.wrapping_add_signed(change());
            // Release: pairs with the Acquire in `may_wait`.
            self.due.store(after, Ordering::Release);
            // Relaxed: the caller has found it.
            let handle = self.handle.load(Ordering::Relaxed);
            if (before == 0) != (after == 0) && handle != NO_ENTRY {
                serve(handle, after == 0);
            }
        });
    }
}
