//! The locks that this process holds or waits for, for the detection of deadlocks
//! ([`deadlocks`](crate::liveness::deadlocks)).

use crate::config;
use crate::epoch::lock::used_nodes::Wanted;
use crate::epoch::state::Hold;
use crate::liveness::deadlocks::{Claim, Claims, Id, LockKind};
use crate::mpi::Host;
use crate::mpi::comm::Comm;
use crate::rank_numbers::Rank;
use crate::sys::process;
use crate::window::label::label;
use crate::window::{LocalWindow, Window, registry};

/// Returns the claim of MPI_Win_lock on a target.
fn claim((target, hold): (Rank, Hold)) -> Claim {
    let kind = if hold == Hold::Exclusive { LockKind::Exclusive } else { LockKind::Shared };
    Claim { kind, target }
}

/// Returns the lock of a window that a thread waits for; `None` if it waits for something else.
fn wanted_lock(window: &Window, wanted: Wanted) -> Option<Claim> {
    match wanted {
        Wanted::Lock(target) => locks(window).find(|(rank, _)| *rank == target).map(claim),
        Wanted::LockAll => Some(Claim::ALL),
        Wanted::Accumulate(_) | Wanted::Regions(_) => None,
    }
}

fn id(node: &LocalWindow) -> Id {
    (node.arena().id(), node.slot)
}

/// Returns the locks of a window that this process holds or waits for. Leaves out those that were
/// not taken (MPI_MODE_NOCHECK).
pub(super) fn locks(window: &Window) -> impl Iterator<Item = (Rank, Hold)> {
    let is_taken = |lock: &(Rank, Hold)| matches!(lock.1, Hold::Shared | Hold::Exclusive);
    window.holds().into_iter().filter(is_taken)
}

/// Returns the locks of a window that this process holds, without those that its threads wait for.
fn held(window: &Window) -> Vec<(Id, Claim)> {
    let Some(node) = window.local() else { return Vec::new() };
    let wanted = node.nodes.all_wanted();
    let all = window.epochs.locks_all();
    let has = |rank: &Rank| !wanted.contains(&Wanted::Lock(*rank));
    let locks = locks(window).filter(|(rank, _)| has(rank)).map(claim);
    let all = (all && !wanted.contains(&Wanted::LockAll)).then_some(Claim::ALL);
    locks.chain(all).map(|claim| (id(node), claim)).collect()
}

/// Returns the claims of this process, whose calling thread waits for `wanted`. `None`: that is no
/// lock of a window.
pub(super) fn own(window: &Window, node: &LocalWindow, wanted: Wanted) -> Option<Claims> {
    let wants = (id(node), wanted_lock(window, wanted)?);
    let mut holds = Vec::new();
    registry::for_each(|window| holds.extend(held(window)));
    let (pid, threads) = (process::id(), window.epochs.has_threads());
    Some(Claims { pid, world_rank: world_rank(), threads, wants, label: label(window), holds })
}

/// Returns the rank of this process in MPI_COMM_WORLD, if it has one.
fn world_rank() -> Option<u32> {
    let host = Host::get();
    match host.initialized() {
        true => Comm(host.constants.comm_world).rank(host).ok(),
        false => config::rank(),
    }
}
