//! Synchronisation calls (MPI-4.1 §12.5).

use super::answer::{asserts, check_output, on_window, raise};
use super::{MPI_Group, MPI_Win};
use crate::epoch::lock::{Released, SpareIntent, Tried};
use crate::epoch::state::Hold;
use crate::error::{Error, Result};
use crate::messages;
use crate::mpi::Host;
use crate::mpi::comm::Group;
use crate::mpi::constants::Constants;
use crate::rank_numbers::Rank;
use crate::window::quick_locks::{self, QuickLock, QuickUnlock};
use crate::window::quick_window::{EPOCHS, QuickWindow};
use crate::window::{LocalWindow, Window, synchronise};
use core::ffi::c_int;

type Modes = [fn(&Constants) -> c_int];
const NOCHECK: fn(&Constants) -> c_int = |c| c.mode_nocheck;
const NOSTORE: fn(&Constants) -> c_int = |c| c.mode_nostore;
const NOPUT: fn(&Constants) -> c_int = |c| c.mode_noput;
const NOPRECEDE: fn(&Constants) -> c_int = |c| c.mode_noprecede;
const NOSUCCEED: fn(&Constants) -> c_int = |c| c.mode_nosucceed;

/// The asserts of each call (MPI-4.1 §12.5.5).
const FENCE: &Modes = &[NOSTORE, NOPUT, NOPRECEDE, NOSUCCEED];
const POST: &Modes = &[NOCHECK, NOSTORE, NOPUT];
const START: &Modes = &[NOCHECK];
const LOCK: &Modes = &[NOCHECK];

/// Calls `work` with the window ranks of a user's group.
#[inline]
fn with_members(
    host: &Host,
    node: &LocalWindow,
    group: MPI_Group,
    work: impl FnOnce(&[Rank]) -> Result<()>,
) -> Result<()> {
    let group = host.handle(group);
    if group == host.constants.group_null || group == 0 {
        return Err(Error::Wrong(&messages::GROUP_NULL));
    }
    Group(group).with_ranks_in(host, node.group(), work)
}

/// Returns the kind of hold that a lock type and its asserts request.
fn hold(host: &Host, lock_type: c_int, assert: c_int) -> Result<Hold> {
    let nocheck = asserts(host, assert, LOCK)?.nocheck;
    match lock_type {
        kind if kind == host.constants.lock_exclusive || kind == host.constants.lock_shared => {
            Ok(match (nocheck, kind == host.constants.lock_exclusive) {
                (true, _) => Hold::Unchecked,
                (false, true) => Hold::Exclusive,
                (false, false) => Hold::Shared,
            })
        }
        other => Err(Error::Argument(&messages::LOCK_TYPE, i64::from(other))),
    }
}

/// Does `work` for the target of a passive call; MPI_PROC_NULL has no effect.
#[inline]
fn on_target(
    host: &Host,
    node: &LocalWindow,
    rank: c_int,
    work: impl FnOnce(Rank) -> Result<()>,
) -> Result<()> {
    match node.target(rank) {
        Err(_) if rank == host.constants.proc_null => Ok(()),
        other => other.and_then(work),
    }
}

/// Completes a fast-path release. Returns the code of the call.
#[cold]
#[inline(never)]
fn finish(call: &'static str, host: &'static Host, window: &Window, rest: Released) -> c_int {
    let finished = window.local().map_or(Ok(()), |node| rest.finish(&node.words));
    finished.map_or_else(|error| raise(call, host, window, error), |()| 0)
}

/// Whether a lock of this type without asserts results in this hold.
#[inline(always)]
fn is_of_type(host: &Host, lock_type: c_int, hold: Hold) -> bool {
    match hold {
        Hold::Shared => lock_type == host.constants.lock_shared,
        Hold::Exclusive => lock_type == host.constants.lock_exclusive,
        Hold::Unchecked | Hold::Started => false,
    }
}

/// Completes a fast-path MPI_Win_lock without asserts, or executes the whole call if that is not
/// enough.
#[inline(never)]
unsafe fn lock_rest(
    lock_type: c_int,
    rank: c_int,
    win: MPI_Win,
    window: QuickWindow,
    tried: Tried,
    in_full: unsafe extern "C-unwind" fn(c_int, c_int, c_int, MPI_Win) -> c_int,
) -> c_int {
    if quick_locks::lock_rest(window, Rank(rank.cast_unsigned()), tried) {
        return 0;
    }
    // SAFETY: the caller's arguments.
    unsafe { in_full(lock_type, rank, 0, win) }
}

/// Completes a fast-path MPI_Win_unlock. Returns the code of the call, or `None` if nothing was
/// done.
#[inline(always)]
fn end_unlock(window: QuickWindow, target: Rank, unlocked: QuickUnlock) -> Option<c_int> {
    let (host, window) = (window.host(), window.whole());
    match unlocked {
        QuickUnlock::Rest(rest) if rest.is_done() => Some(0),
        QuickUnlock::Rest(rest) => Some(finish("MPI_Win_unlock", host, window, rest)),
        QuickUnlock::Both(spare) => Some(release_both(host, window, target, spare)),
        QuickUnlock::All => None,
    }
}

/// Ends a fast-path MPI_Win_unlock that has two words to release.
#[inline(never)]
fn release_both(host: &'static Host, window: &Window, target: Rank, spare: SpareIntent) -> c_int {
    let of = |node| quick_locks::release_both(node, target, spare);
    let released = window.local().map_or(Ok(()), of);
    released.map_or_else(|error| raise("MPI_Win_unlock", host, window, error), |()| 0)
}

entry! {
    /// Ends the preceding epoch and begins the next one (MPI-4.1 §12.5.1): completes all operations
    /// of this rank, then runs a dissemination barrier on the control words of the window, within
    /// each node and between their leaders. Waits for all ranks. Errors: MPI_ERR_WIN,
    /// MPI_ERR_ASSERT, MPI_ERR_RMA_SYNC within another kind of epoch, MPI_ERR_OTHER if a rank has
    /// died.
    MPI_Win_fence PMPI_Win_fence (assert: c_int, win: MPI_Win) {
        serve!(host, on_window, "MPI_Win_fence", win, |window, node| {
            synchronise::fence(window, node, asserts(host, assert, FENCE)?)
        }, win_fence |native| (assert, native))
    }

    /// Exposes this rank's memory to the ranks of a group (MPI-4.1 §12.5.2). Local: sets a bit in a
    /// control word of each origin on one node; over several nodes, stores the list of origins and
    /// increments a word of each. Errors: MPI_ERR_WIN, MPI_ERR_ASSERT, MPI_ERR_GROUP,
    /// MPI_ERR_RMA_SYNC within an exposure epoch or a fence epoch.
    MPI_Win_post PMPI_Win_post (group: MPI_Group, assert: c_int, win: MPI_Win) {
        serve!(host, on_window, "MPI_Win_post", win, |window, node| {
            window.may_have_epochs()?;
            asserts(host, assert, POST)?;
            with_members(host, node, group, |ranks| synchronise::post(window, node, ranks))
        }, win_post |native| (host.handle(group), assert, native))
    }

    /// Opens an access epoch to the ranks of a group (MPI-4.1 §12.5.2). Waits until each of them
    /// has posted, on control words of this rank. Errors: MPI_ERR_WIN, MPI_ERR_ASSERT,
    /// MPI_ERR_GROUP, MPI_ERR_RMA_SYNC within another access epoch, MPI_ERR_OTHER if a rank has
    /// died.
    MPI_Win_start PMPI_Win_start (group: MPI_Group, assert: c_int, win: MPI_Win) {
        serve!(host, on_window, "MPI_Win_start", win, |window, node| {
            asserts(host, assert, START)?;
            with_members(host, node, group, |ranks| synchronise::start(window, node, ranks))
        }, win_start |native| (host.handle(group), assert, native))
    }

    /// Ends the access epoch of MPI_Win_start (MPI-4.1 §12.5.2): completes its operations, then
    /// increments a control word of each target, ordered after the data on the same transport. Does
    /// not wait for MPI_Win_wait. Errors: MPI_ERR_WIN, MPI_ERR_RMA_SYNC without MPI_Win_start,
    /// MPI_ERR_OTHER if a target is lost.
    MPI_Win_complete PMPI_Win_complete (win: MPI_Win) {
        serve!(host, on_window, "MPI_Win_complete", win, synchronise::complete,
            win_complete |native| (native))
    }

    /// Ends the exposure epoch of MPI_Win_post (MPI-4.1 §12.5.2): waits on a control word of this
    /// rank until all origins have completed. Their data are then in this rank's memory. Errors:
    /// MPI_ERR_WIN, MPI_ERR_RMA_SYNC without MPI_Win_post, MPI_ERR_OTHER if a rank has died.
    MPI_Win_wait PMPI_Win_wait (win: MPI_Win) {
        serve!(host, on_window, "MPI_Win_wait", win, synchronise::wait,
            win_wait |native| (native))
    }

    /// Returns whether all origins of the exposure epoch have completed, and ends the epoch if so
    /// (MPI-4.1 §12.5.2). Local: reads a control word of this rank; lets the host MPI make progress
    /// if they have not. Errors: MPI_ERR_WIN, MPI_ERR_RMA_SYNC without MPI_Win_post, MPI_ERR_ARG
    /// for a null pointer, MPI_ERR_OTHER if a rank has died.
    MPI_Win_test PMPI_Win_test (win: MPI_Win, flag: *mut c_int) {
        serve!(host, on_window, "MPI_Win_test", win, |window, node| {
            check_output(flag)?;
            let done = synchronise::test(window, node)?;
            // SAFETY: the caller's pointer.
            unsafe { flag.write(c_int::from(done)) };
            Ok(())
        }, win_test |native| (native, flag))
    }
}

quick_entry! {
    /// Locks one target, shared or exclusively (MPI-4.1 §12.5.3). Acquires group locks by atomic
    /// operations on control words: that of the target, and for an exclusive lock also an intent on
    /// the global word at rank 0, unless a standing intent is there. Waits while other ranks hold
    /// them in a conflicting mode. Over TCP, the first call that uses a target on another node
    /// acquires its lock, and MPI_Win_unlock may acquire and release it in one round trip. The fast
    /// path acquires free locks on one node. Errors: MPI_ERR_WIN, MPI_ERR_RANK, MPI_ERR_LOCKTYPE,
    /// MPI_ERR_ASSERT, MPI_ERR_RMA_SYNC, MPI_ERR_OTHER if a rank has died.
    MPI_Win_lock PMPI_Win_lock (lock_type: c_int, rank: c_int, assert: c_int, win: MPI_Win) {
        let target = Rank(rank.cast_unsigned());
        if assert != 0 {
            false
        } else if let Some(window) = EPOCHS.find(win, ENTRY)
            && !window.is_due::<1>()
        {
            let host = window.host();
            let is = |hold: Hold| is_of_type(host, lock_type, hold);
            match quick_locks::lock_quick(window, target, is) {
                QuickLock::Nothing => true,
                // SAFETY: the caller's arguments.
                QuickLock::Rest(tried) => return unsafe {
                    lock_rest(lock_type, rank, win, window, tried, in_full)
                },
                QuickLock::All => false,
            }
        } else {
            false
        }
    } {
        serve!(host, on_window, "MPI_Win_lock", win, |window, node| {
            let hold = hold(host, lock_type, assert)?;
            on_target(host, node, rank, |target| synchronise::lock(window, node, target, hold))
        }, win_lock |native| (lock_type, rank, assert, native))
    }

    /// Unlocks one target (MPI-4.1 §12.5.3): completes all operations on it at the target, then
    /// releases the lock by one atomic operation on each word that MPI_Win_lock acquired. The fast
    /// path serves one node. Errors: MPI_ERR_WIN, MPI_ERR_RANK, MPI_ERR_RMA_SYNC if the target is
    /// not locked, MPI_ERR_OTHER if the target is lost.
    MPI_Win_unlock PMPI_Win_unlock (rank: c_int, win: MPI_Win) {
        let target = Rank(rank.cast_unsigned());
        match EPOCHS.find(win, ENTRY) {
            Some(window) => {
                let unlocked = quick_locks::unlock_quick(window, target);
                match end_unlock(window, target, unlocked) {
                    Some(code) => return code,
                    None => false,
                }
            }
            None => false,
        }
    } {
        serve!(host, on_window, "MPI_Win_unlock", win, |window, node| {
            on_target(host, node, rank, |target| synchronise::unlock(window, node, target))
        }, win_unlock |native| (rank, native))
    }

    /// Locks all targets, shared (MPI-4.1 §12.5.3): acquires the group lock on the global word at
    /// rank 0 by one atomic operation, after it has ended the standing intent, if any. Waits while
    /// other ranks hold exclusive locks. With MPI_MODE_NOCHECK it acquires no lock. The fast path
    /// acquires a free lock on one node. Errors: MPI_ERR_WIN, MPI_ERR_ASSERT, MPI_ERR_RMA_SYNC
    /// within another access epoch, MPI_ERR_OTHER if a rank has died.
    MPI_Win_lock_all PMPI_Win_lock_all (assert: c_int, win: MPI_Win) {
        let window = EPOCHS.find(win, ENTRY).filter(|window| assert == 0 && !window.is_due::<1>());
        window.is_some_and(|window| quick_locks::lock_all_quick(window.whole(), window.node()))
    } {
        serve!(host, on_window, "MPI_Win_lock_all", win, |window, node| {
            synchronise::lock_all(window, node, asserts(host, assert, LOCK)?)
        }, win_lock_all |native| (assert, native))
    }

    /// Ends the epoch of MPI_Win_lock_all (MPI-4.1 §12.5.3): completes all operations at their
    /// targets, then releases the lock, even if a target is lost. Errors: MPI_ERR_WIN,
    /// MPI_ERR_RMA_SYNC without MPI_Win_lock_all, MPI_ERR_OTHER if a target is lost.
    MPI_Win_unlock_all PMPI_Win_unlock_all (win: MPI_Win) {
        match EPOCHS.find(win, ENTRY) {
            Some(window) => match quick_locks::unlock_all_quick(window.whole(), window.node()) {
                QuickUnlock::Rest(rest) if rest.is_done() => true,
                QuickUnlock::Rest(rest) => {
                    let host = window.host();
                    return finish("MPI_Win_unlock_all", host, window.whole(), rest);
                }
                QuickUnlock::Both(_) | QuickUnlock::All => false,
            },
            None => false,
        }
    } {
        serve!(host, on_window, "MPI_Win_unlock_all", win, synchronise::unlock_all,
            win_unlock_all |native| (native))
    }

    /// Completes all operations on one target, at the target (MPI-4.1 §12.5.4): a full fence for
    /// load, store and process_vm, a system call for pending small puts by process_vm, and on the
    /// RDMA device a wait until all requests are complete. Errors: MPI_ERR_WIN, MPI_ERR_RANK,
    /// MPI_ERR_RMA_SYNC if the target is not locked, MPI_ERR_OTHER if the target is lost.
    MPI_Win_flush PMPI_Win_flush (rank: c_int, win: MPI_Win) {
        let window = EPOCHS.find(win, ENTRY);
        let target = Rank(rank.cast_unsigned());
        window.is_some_and(|window| synchronise::flush_quick(window, target))
    } {
        serve!(host, on_window, "MPI_Win_flush", win, |window, node| {
            on_target(host, node, rank, |target| synchronise::flush(window, node, target))
        }, win_flush |native| (rank, native))
    }

    /// Completes all operations on one target at the origin, so that their buffers may be reused
    /// (MPI-4.1 §12.5.4). On one node the buffers are reusable when the operation returns; on the
    /// RDMA device the call waits until the device has read and written them. Errors: MPI_ERR_WIN,
    /// MPI_ERR_RANK, MPI_ERR_RMA_SYNC if the target is not locked, MPI_ERR_OTHER if the target is
    /// lost.
    MPI_Win_flush_local PMPI_Win_flush_local (rank: c_int, win: MPI_Win) {
        let window = EPOCHS.find(win, ENTRY);
        let target = Rank(rank.cast_unsigned());
        window.is_some_and(|window| synchronise::flush_local_quick(window, target))
    } {
        serve!(host, on_window, "MPI_Win_flush_local", win, |window, node| {
            on_target(host, node, rank, |target| synchronise::flush_local(window, node, target))
        }, win_flush_local |native| (rank, native))
    }

    /// Completes all operations of this rank at their targets (MPI-4.1 §12.5.4): a full fence
    /// within the node, and a wait for the RDMA device if requests are pending. Errors:
    /// MPI_ERR_WIN, MPI_ERR_RMA_SYNC if no target is locked, MPI_ERR_OTHER if a target is lost.
    MPI_Win_flush_all PMPI_Win_flush_all (win: MPI_Win) {
        EPOCHS.find(win, ENTRY).is_some_and(synchronise::flush_all_quick)
    } {
        serve!(host, on_window, "MPI_Win_flush_all", win, synchronise::flush_all,
            win_flush_all |native| (native))
    }

    /// Completes all operations of this rank at the origin, so that their buffers may be reused
    /// (MPI-4.1 §12.5.4). Waits only for the RDMA device. Errors: MPI_ERR_WIN, MPI_ERR_RMA_SYNC if
    /// no target is locked, MPI_ERR_OTHER if a target is lost.
    MPI_Win_flush_local_all PMPI_Win_flush_local_all (win: MPI_Win) {
        EPOCHS.find(win, ENTRY).is_some_and(synchronise::flush_local_all_quick)
    } {
        serve!(host, on_window, "MPI_Win_flush_local_all", win, synchronise::flush_local_all,
            win_flush_local_all |native| (native))
    }

    /// Orders loads and stores of this process (MPI-4.1 §12.5.4): a full fence. The private and
    /// public copies of a window are identical (MPI_WIN_UNIFIED). Legal in every epoch. Over TCP it
    /// also sends puts that are kept for a lock, and waits for the lock. Errors: MPI_ERR_WIN,
    /// MPI_ERR_OTHER if a target of such puts is lost.
    MPI_Win_sync PMPI_Win_sync (win: MPI_Win) {
        EPOCHS.find(win, ENTRY).is_some_and(synchronise::sync_quick)
    } {
        serve!(host, on_window, "MPI_Win_sync", win, synchronise::sync,
            win_sync |native| (native))
    }
}
