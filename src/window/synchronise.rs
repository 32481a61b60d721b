//! The calls that open and close epochs on a window of libfompi: first `epoch::state` checks
//! whether the call is legal, then small puts are completed, then the protocol runs, then the state
//! changes (MPI-4.1 §12.5).

use super::countdown::{FAR_WAITS, NEAR_COMPLETIONS};
use super::protocols::{OneNode, Protocols, on_protocols, on_words};
use super::quick_window::QuickWindow;
use super::{LocalWindow, Window, waits};
use crate::arena::barrier::collective_words;
use crate::arena::wait_progress::CollectiveWait;
use crate::epoch::lock::used_nodes::Wanted;
use crate::epoch::lock::{self, SpareIntent};
use crate::epoch::state::Hold;
use crate::epoch::{fence, pscw};
use crate::error::Result;
use crate::fabric::Words;
use crate::mpi::Host;
use crate::mpi::comm::Comm;
use crate::number::Number;
use crate::rank_numbers::Rank;
use crate::sync::{Ordering, full_fence};

/// The asserts by which a call may leave out a part of its work (MPI-4.1 §12.5.5).
#[derive(Clone, Copy, Debug, Default)]
pub struct Asserts {
    /// MPI_MODE_NOCHECK
    pub nocheck: bool,
    /// MPI_MODE_NOPRECEDE
    pub noprecede: bool,
    /// MPI_MODE_NOSUCCEED
    pub nosucceed: bool,
}

/// Records a call that may wait for any ranks of other nodes.
#[inline(always)]
fn note_wait<P: Protocols>(window: &Window, _: &P) {
    if P::Words::FAR {
        window.countdown.hasten(FAR_WAITS);
    }
}

/// Records a call that may wait for a target.
#[inline(always)]
fn note_wait_for<P: Protocols>(window: &Window, _: &P, node: &LocalWindow, target: Rank) {
    if P::Words::FAR {
        note_target(window, node, target);
    }
}

/// Records a call by which a rank may poll a target, on a window over several nodes.
pub fn note_target(window: &Window, node: &LocalWindow, target: Rank) {
    match node.near_index(target) {
        Some(_) => window.countdown.hasten(NEAR_COMPLETIONS),
        None => window.countdown.hasten(FAR_WAITS),
    }
}

/// Implements MPI_Win_fence.
pub fn fence(window: &Window, node: &LocalWindow, asserts: Asserts) -> Result<()> {
    window.epochs.may_fence()?;
    if node.small_puts.may_defer_errors() {
        node.complete_all_puts();
        on_protocols!(node, |protocols| {
            note_wait(window, protocols);
            match (asserts.noprecede, asserts.nosucceed) {
                (true, false) => protocols.opening_fence(),
                (noprecede, _) => protocols.fence(!noprecede),
            }
        })?;
    } else {
        OneNode(node).fence(!asserts.noprecede)?;
    }
    window.epochs.fenced(!asserts.nosucceed);
    node.take_errors()
}

/// At the first access behind a fence, waits for the ranks for which that fence has not waited.
pub fn end_opening(node: &LocalWindow) -> Result<()> {
    node.many_nodes().map_or(Ok(()), |many| many.end_opening())
}

/// Completes the operations of this rank, if it may have sent any (`precede`), and waits until all
/// ranks have called this.
pub fn fence_all(node: &LocalWindow, precede: bool) -> Result<()> {
    on_protocols!(node, |protocols| protocols.fence(precede))
}

/// Implements the fence of MPI_Win_free.
pub fn last_fence(node: &LocalWindow, call: &'static str) -> Result<()> {
    waits::leave(node);
    node.end();
    // No later call can return an error, so the window is freed also after an error.
    node.complete_all_puts();
    if let Some(many) = node.many_nodes() {
        // Nothing may be under way to words that the next window uses.
        many.words.flush_all()?;
        return fence_all(node, true);
    }
    // Stores of this process come before its part in the barrier, wherever the words are.
    let wait = CollectiveWait { slot: node.slot, call, is_quiet: false };
    let words = collective_words(node.arena(), wait);
    fence::fence(&words, node.arena().barrier, node.next_barrier(), true)
}

/// Implements MPI_Win_post. MPI_MODE_NOCHECK has no effect: both sides must give it (MPI-4.1
/// §12.5.5); if only one side does, a start waits for ever, or a post remains and is added to the
/// next one.
pub fn post(window: &Window, node: &LocalWindow, origins: &[Rank]) -> Result<()> {
    window.epochs.post(origins.len().to_u32())?;
    node.send_puts();
    // Relaxed: only this process uses the count.
    node.completes.fetch_add(origins.len().to_u64(), Ordering::Relaxed);
    on_protocols!(node, |protocols| {
        note_wait(window, protocols);
        protocols.post(origins)
    })
}

/// Implements MPI_Win_start. With MPI_MODE_NOCHECK the posts have arrived, so it does not wait.
pub fn start(window: &Window, node: &LocalWindow, targets: &[Rank]) -> Result<()> {
    window.epochs.start(targets, |rank| window.access_of(rank))?;
    let started = on_protocols!(node, |protocols| protocols.start(targets));
    if started.is_err() {
        window.epochs.completed(targets.to_vec(), |rank| window.access_of(rank));
    }
    started
}

/// Implements MPI_Win_complete.
pub fn complete(window: &Window, node: &LocalWindow) -> Result<()> {
    let targets = window.epochs.take_started()?;
    node.complete_all_puts();
    let completed = on_protocols!(node, |protocols| {
        note_wait(window, protocols);
        protocols.complete(&targets)
    });
    if completed.is_err() {
        window.epochs.not_completed(targets);
        return completed;
    }
    window.epochs.completed(targets, |rank| window.access_of(rank));
    node.take_errors()
}

/// Implements MPI_Win_wait.
pub fn wait(window: &Window, node: &LocalWindow) -> Result<()> {
    window.epochs.posted()?;
    node.send_puts();
    let completes = node.completes.load(Ordering::Relaxed);
    on_words!(node, |words| pscw::wait(words, completes))?;
    window.epochs.waited();
    Ok(())
}

/// Implements MPI_Win_test: returns whether the exposure epoch has ended, and closes it then.
/// Fails, like MPI_Win_wait, if a process is lost: a program that repeats the call until it returns
/// true would repeat it for ever.
pub fn test(window: &Window, node: &LocalWindow) -> Result<bool> {
    window.epochs.posted()?;
    node.send_puts();
    let completes = node.completes.load(Ordering::Relaxed);
    let done = on_words!(node, |words| pscw::test(words, completes));
    if done {
        window.epochs.waited();
    } else {
        node.progress();
        node.arena().check_dead_by_the_clock()?;
    }
    Ok(done)
}

/// Implements MPI_Win_lock.
pub fn lock(window: &Window, node: &LocalWindow, target: Rank, hold: Hold) -> Result<()> {
    if let Some(many) = node.many_nodes()
        && many.ask(window, target, hold)?
    {
        return Ok(());
    }
    let access = window.access_of(target);
    let held = window.epochs.lock(access, hold)?;
    node.send_puts();
    let (rank, nodes) = (target, node.nodes_for(Wanted::Lock(target)));
    let taken = on_words!(node, |words| match hold {
        Hold::Exclusive => lock::lock_exclusive(words, rank, held, nodes)
            .map(|intent| window.epochs.locked_exclusive(intent)),
        Hold::Shared => lock::lock_shared(words, rank, held, nodes),
        Hold::Unchecked | Hold::Started => Ok(()),
    });
    if taken.is_err() {
        window.epochs.not_locked(access, held);
    }
    taken
}

/// Implements MPI_Win_unlock.
pub fn unlock(window: &Window, node: &LocalWindow, target: Rank) -> Result<()> {
    match node.many_nodes() {
        Some(many) if many.end_of_asked(window, target)? => {}
        _ => unlock_taken(window, node, target)?,
    }
    node.take_errors()
}

/// Unlocks a target whose lock is held.
#[inline(always)]
fn unlock_taken(window: &Window, node: &LocalWindow, target: Rank) -> Result<()> {
    let (hold, spare) = window.epochs.unlock(window.access_of(target))?;
    node.complete_puts(target);
    on_protocols!(node, |protocols| {
        note_wait_for(window, protocols, node, target);
        // The lock is released even if the target is lost, because other ranks wait for it.
        let settled = protocols.settle(target);
        settled.and(give_back(protocols.words(), target, hold, spare))
    })
}

/// Releases a lock after the operations on the target are done there.
#[inline(always)]
fn give_back(words: &impl Words, target: Rank, hold: Hold, spare: SpareIntent) -> Result<()> {
    match hold {
        Hold::Exclusive => lock::unlock_exclusive(words, target, spare),
        Hold::Shared => lock::unlock_shared(words, target),
        Hold::Unchecked | Hold::Started => words.flush(target),
    }
}

/// Releases the locks of lock_all, if it took any, after all operations are done at their targets.
#[inline(always)]
fn give_all_back(words: &impl Words, locked: bool) -> Result<()> {
    if locked { lock::unlock_all(words) } else { words.flush_all() }
}

/// Implements MPI_Win_lock_all.
#[inline(always)]
pub fn lock_all(window: &Window, node: &LocalWindow, asserts: Asserts) -> Result<()> {
    window.epochs.lock_all(!asserts.nocheck)?;
    if asserts.nocheck {
        return Ok(());
    }
    let taken = on_words!(node, |words| lock::lock_all(words, node.nodes_for(Wanted::LockAll)));
    if taken.is_err() {
        window.epochs.unlock_all()?;
    }
    taken
}

/// Implements MPI_Win_unlock_all.
#[inline(always)]
pub fn unlock_all(window: &Window, node: &LocalWindow) -> Result<()> {
    window.may_have_epochs()?;
    let locked = window.epochs.unlock_all()?;
    node.complete_all_puts();
    on_protocols!(node, |protocols| {
        note_wait(window, protocols);
        // As in `unlock`.
        let settled = protocols.settle_all();
        settled.and(give_all_back(protocols.words(), locked))
    })?;
    node.take_errors()
}

/// Implements MPI_Win_flush: waits until all operations on `target` are done there. Loads and
/// stores are done when they are globally visible.
#[inline(always)]
pub fn flush(window: &Window, node: &LocalWindow, target: Rank) -> Result<()> {
    match window.completing_apart() {
        None => flush_target(window, node, target),
        Some(duplicate) => duplicate.flush(node, Some(target)),
    }
}

fn flush_target(window: &Window, node: &LocalWindow, target: Rank) -> Result<()> {
    window.may_flush(target).or_else(|error| node.needs_asked(window, target, error))?;
    complete_target(window, node, target)
}

/// Waits until all operations of this process on a rank are done there, as [`flush`], whatever the
/// epoch is. A put that waits for a lock to be taken leaves with the lock.
pub fn complete_at(window: &Window, node: &LocalWindow, target: Rank) -> Result<()> {
    if let Some(duplicate) = window.completing_apart() {
        return duplicate.flush(node, Some(target));
    }
    if let Err(error) = window.may_flush(target)
        && window.access_of(target).asked().is_some()
    {
        node.needs_asked(window, target, error)?;
    }
    complete_target(window, node, target)
}

/// Completes the operations on a target whose lock, if any, is taken.
#[inline(always)]
fn complete_target(window: &Window, node: &LocalWindow, target: Rank) -> Result<()> {
    // A flush of this rank's own memory only serves to see changes by others.
    if target == node.rank {
        node.serve_polling();
        node.send_puts();
    }
    node.complete_puts(target);
    on_protocols!(node, |protocols| {
        note_wait_for(window, protocols, node, target);
        protocols.settle(target)?;
        protocols.words().flush(target)
    })?;
    node.take_errors()
}

/// Fast path of MPI_Win_flush, for a target in a passive target epoch, on one node. Returns false
/// in any other case, and if the full call must make progress.
#[inline(always)]
pub fn flush_quick(window: QuickWindow, target: Rank) -> bool {
    window.is_passive(target) && !window.is_due_behind_fence()
}

/// Fast path of MPI_Win_flush_all, in a passive target epoch, on one node. Returns false as
/// [`flush_quick`].
#[inline(always)]
pub fn flush_all_quick(window: QuickWindow) -> bool {
    window.epochs.access.is_any_passive() && !window.is_due_behind_fence()
}

/// Fast path of MPI_Win_flush_local, for a target in a passive target epoch, on one node, where all
/// transfers are complete when their calls return. Returns false as [`flush_quick`].
#[inline(always)]
pub fn flush_local_quick(window: QuickWindow, target: Rank) -> bool {
    window.is_passive(target) && !window.is_due::<1>()
}

/// Fast path of MPI_Win_flush_local_all, in a passive target epoch, on one node. Returns false as
/// [`flush_quick`].
#[inline(always)]
pub fn flush_local_all_quick(window: QuickWindow) -> bool {
    window.epochs.access.is_any_passive() && !window.is_due::<1>()
}

/// Implements MPI_Win_flush_local: waits until the origin's buffers may be reused, which on one
/// node they may after each call.
#[inline(always)]
pub fn flush_local(window: &Window, node: &LocalWindow, target: Rank) -> Result<()> {
    match window.completing_apart() {
        None => flush_target_locally(window, node, target),
        Some(duplicate) => duplicate.flush_local(node, Some(target)),
    }
}

#[inline]
fn flush_target_locally(window: &Window, node: &LocalWindow, target: Rank) -> Result<()> {
    if let Err(error) = window.may_flush(target) {
        // The puts to a target whose lock is not taken are copies.
        let is_asked = window.access_of(target).asked().is_some();
        return if is_asked { Ok(()) } else { Err(error) };
    }
    on_protocols!(node, |protocols| {
        note_wait_for(window, protocols, node, target);
        protocols.flush_local(target)
    })?;
    node.have_arrived(Some(target));
    node.take_errors()
}

/// Implements MPI_Win_flush_local_all.
#[inline(always)]
pub fn flush_local_all(window: &Window, node: &LocalWindow) -> Result<()> {
    match window.completing_apart() {
        None => flush_all_targets_locally(window, node),
        Some(duplicate) => duplicate.flush_local(node, None),
    }
}

#[inline]
fn flush_all_targets_locally(window: &Window, node: &LocalWindow) -> Result<()> {
    window.epochs.may_flush_all()?;
    on_protocols!(node, |protocols| {
        note_wait(window, protocols);
        protocols.flush_local_all()
    })?;
    node.have_arrived(None);
    node.take_errors()
}

/// Implements MPI_Win_flush_all.
#[inline(always)]
pub fn flush_all(window: &Window, node: &LocalWindow) -> Result<()> {
    match window.completing_apart() {
        None => {
            window.epochs.may_flush_all()?;
            complete_all_targets(window, node)
        }
        Some(duplicate) => duplicate.flush(node, None),
    }
}

/// Does [`complete_at`] for all ranks.
pub fn complete_all(window: &Window, node: &LocalWindow) -> Result<()> {
    match window.completing_apart() {
        None => complete_all_targets(window, node),
        Some(duplicate) => duplicate.flush(node, None),
    }
}

#[inline(always)]
fn complete_all_targets(window: &Window, node: &LocalWindow) -> Result<()> {
    node.send_kept_puts(window)?;
    node.complete_all_puts();
    on_protocols!(node, |protocols| {
        note_wait(window, protocols);
        protocols.settle_all()?;
        protocols.words().flush_all()
    })?;
    node.take_errors()
}

/// Implements MPI_Win_sync (MPI-4.1 §12.5.4). The private and public copies of the window are
/// identical in the unified model, so only loads and stores must be ordered. A rank that polls its
/// memory calls it again and again, so some of the calls also serve other processes.
#[inline]
pub fn sync(window: &Window, node: &LocalWindow) -> Result<()> {
    node.send_puts();
    full_fence();
    // Another rank may poll for these puts, and this rank for its answer.
    let sent = node.send_kept_puts(window);
    node.serve_polling();
    sent
}

/// Fast path of MPI_Win_sync, on one node, where no other process must be served. Returns false if
/// the full call must make progress.
#[inline(always)]
pub fn sync_quick(window: QuickWindow) -> bool {
    !window.is_due_behind_fence()
}

impl Window {
    /// Lets the host MPI make progress, and starts the countdown again. Not where a session may
    /// have raised the level of thread support that MPI_Init has given: MPICH 4.0 then makes
    /// progress without its locks, while another thread does.
    #[cold]
    #[inline(never)]
    pub fn countdown_ended(&self) {
        self.countdown.start();
        let host = Host::get();
        if let Some(node) = self.local()
            && (host.threads() || !host.may_have_sessions())
        {
            node.progress();
        }
    }
}

impl LocalWindow {
    /// Returns the number of the next barrier on this window.
    pub(super) fn next_barrier(&self) -> u64 {
        // Relaxed: collective calls on a window are not made by two threads at once.
        self.fences.fetch_add(1, Ordering::Relaxed) + 1
    }

    /// Returns the number of fences and barriers on this window so far.
    #[inline(always)]
    pub fn fences(&self) -> u64 {
        // Relaxed: as in `next_barrier`.
        self.fences.load(Ordering::Relaxed)
    }

    /// Waits until the buffers of all transfers with a rank may be reused.
    #[inline]
    pub fn flush_local(&self, target: Rank) -> Result<()> {
        on_protocols!(self, |protocols| protocols.flush_local(target))
    }

    /// Serves other processes at some of the calls by which a rank polls its memory.
    pub(super) fn serve_polling(&self) {
        if let Some(part) = self.wide.as_deref() {
            part.wide.wire.serve_at_times();
        }
    }

    /// Fails if an operation of this process has failed, and no call has returned its error: a
    /// target on another node was not permitted to access its own memory, or a put was gathered.
    /// The end of an epoch, or a flush, is the first call that knows it.
    #[inline]
    pub(super) fn take_errors(&self) -> Result<()> {
        if self.small_puts.may_defer_errors() { self.take_kept_errors() } else { Ok(()) }
    }

    #[inline(never)]
    fn take_kept_errors(&self) -> Result<()> {
        let refused = self.wide.as_deref().map_or(Ok(()), |part| part.wide.take_refusals());
        self.error_of_puts().and(refused)
    }

    /// Lets the host MPI make progress: of all ranks, also where the window has one. MPICH makes
    /// none in a probe on a communicator of one process, so there the probe is on MPI_COMM_WORLD. A
    /// process with sessions alone has none.
    fn progress(&self) {
        let host = Host::get();
        let is_alone = self.size == 1 && host.initialized();
        let comm = if is_alone { Comm(host.constants.comm_world) } else { self.comm() };
        comm.progress(host);
    }
}
