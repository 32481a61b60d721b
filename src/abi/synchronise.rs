//! Synchronisation calls (MPI-4.1 §12.5).

use super::answer::{asserts, on_window, place_for, raise};
use super::{MPI_Group, MPI_Win};
use crate::epoch::state::Hold;
use crate::error::{Class, Error, Result};
use crate::mpi::Host;
use crate::mpi::comm::Group;
use crate::mpi::constants::Constants;
use crate::window::{Carrier, LocalWindow, registry, synchronise};
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

/// The ranks of a user's group in the window.
fn members(host: &Host, node: &LocalWindow, group: MPI_Group) -> Result<Vec<u32>> {
    let group = host.handle(group);
    if group == host.constants.group_null || group == 0 {
        return Err(Error::Wrong(Class::Group, "MPI_GROUP_NULL"));
    }
    Group(group).ranks_in(host, node.group())
}

/// How a lock type and its asserts hold a target.
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
        other => Err(Error::Argument(Class::LockType, "lock type", i64::from(other))),
    }
}

/// The rank of a passive target; `None` for MPI_PROC_NULL, which is a target like no other.
#[inline]
fn passive(host: &Host, node: &LocalWindow, rank: c_int) -> Result<Option<u32>> {
    match node.target(rank) {
        Err(_) if rank == host.constants.proc_null => Ok(None),
        other => other.map(Some),
    }
}

card! {
    /// MPI-4.1 §12.5.1.
    MPI_Win_fence PMPI_Win_fence (assert: c_int, win: MPI_Win) {
        let host = Host::get();
        on_window("MPI_Win_fence", host, win, |window, node| {
            synchronise::fence(window, node, asserts(host, assert, FENCE)?)
        }, |native| {
            // SAFETY: the caller's arguments, as for the MPI underneath alone.
            unsafe { (host.call.win_fence)(assert, native) }
        })
    }

    /// MPI-4.1 §12.5.2.
    MPI_Win_post PMPI_Win_post (group: MPI_Group, assert: c_int, win: MPI_Win) {
        let host = Host::get();
        on_window("MPI_Win_post", host, win, |window, node| {
            asserts(host, assert, POST)?;
            synchronise::post(window, node, &members(host, node, group)?)
        }, |native| {
            // SAFETY: the caller's arguments, as for the MPI underneath alone.
            unsafe { (host.call.win_post)(host.handle(group), assert, native) }
        })
    }

    /// MPI-4.1 §12.5.2.
    MPI_Win_start PMPI_Win_start (group: MPI_Group, assert: c_int, win: MPI_Win) {
        let host = Host::get();
        on_window("MPI_Win_start", host, win, |window, node| {
            asserts(host, assert, START)?;
            synchronise::start(window, node, &members(host, node, group)?)
        }, |native| {
            // SAFETY: the caller's arguments, as for the MPI underneath alone.
            unsafe { (host.call.win_start)(host.handle(group), assert, native) }
        })
    }

    /// MPI-4.1 §12.5.2.
    MPI_Win_complete PMPI_Win_complete (win: MPI_Win) {
        let host = Host::get();
        on_window("MPI_Win_complete", host, win, synchronise::complete, |native| {
            // SAFETY: the caller's window, as for the MPI underneath alone.
            unsafe { (host.call.win_complete)(native) }
        })
    }

    /// MPI-4.1 §12.5.2.
    MPI_Win_wait PMPI_Win_wait (win: MPI_Win) {
        let host = Host::get();
        on_window("MPI_Win_wait", host, win, synchronise::wait, |native| {
            // SAFETY: the caller's window, as for the MPI underneath alone.
            unsafe { (host.call.win_wait)(native) }
        })
    }

    /// MPI-4.1 §12.5.2.
    MPI_Win_test PMPI_Win_test (win: MPI_Win, flag: *mut c_int) {
        let host = Host::get();
        on_window("MPI_Win_test", host, win, |window, node| {
            place_for(flag)?;
            let done = synchronise::test(window, node)?;
            // SAFETY: the caller's pointer.
            unsafe { flag.write(c_int::from(done)) };
            Ok(())
        }, |native| {
            // SAFETY: the caller's arguments, as for the MPI underneath alone.
            unsafe { (host.call.win_test)(native, flag) }
        })
    }

    /// MPI-4.1 §12.5.3.
    MPI_Win_lock_all PMPI_Win_lock_all (assert: c_int, win: MPI_Win) {
        let host = Host::get();
        on_window("MPI_Win_lock_all", host, win, |window, node| {
            synchronise::lock_all(window, node, asserts(host, assert, LOCK)?)
        }, |native| {
            // SAFETY: the caller's arguments, as for the MPI underneath alone.
            unsafe { (host.call.win_lock_all)(assert, native) }
        })
    }

    /// MPI-4.1 §12.5.3.
    MPI_Win_unlock_all PMPI_Win_unlock_all (win: MPI_Win) {
        let host = Host::get();
        on_window("MPI_Win_unlock_all", host, win, synchronise::unlock_all, |native| {
            // SAFETY: the caller's window, as for the MPI underneath alone.
            unsafe { (host.call.win_unlock_all)(native) }
        })
    }

    /// MPI-4.1 §12.5.4.
    MPI_Win_flush_local PMPI_Win_flush_local (rank: c_int, win: MPI_Win) {
        let host = Host::get();
        on_window("MPI_Win_flush_local", host, win, |window, node| {
            match passive(host, node, rank)? {
                Some(target) => synchronise::flush_local(window, node, target),
                None => Ok(()),
            }
        }, |native| {
            // SAFETY: the caller's arguments, as for the MPI underneath alone.
            unsafe { (host.call.win_flush_local)(rank, native) }
        })
    }

    /// MPI-4.1 §12.5.4.
    MPI_Win_flush_all PMPI_Win_flush_all (win: MPI_Win) {
        let host = Host::get();
        on_window("MPI_Win_flush_all", host, win, synchronise::flush_all, |native| {
            // SAFETY: the caller's window, as for the MPI underneath alone.
            unsafe { (host.call.win_flush_all)(native) }
        })
    }

    /// MPI-4.1 §12.5.4.
    MPI_Win_flush_local_all PMPI_Win_flush_local_all (win: MPI_Win) {
        let host = Host::get();
        on_window("MPI_Win_flush_local_all", host, win, synchronise::flush_local_all, |native| {
            // SAFETY: the caller's window, as for the MPI underneath alone.
            unsafe { (host.call.win_flush_local_all)(native) }
        })
    }

    /// MPI-4.1 §12.5.4.
    MPI_Win_sync PMPI_Win_sync (win: MPI_Win) {
        let host = Host::get();
        on_window("MPI_Win_sync", host, win, |_, _| {
            synchronise::sync();
            Ok(())
        }, |native| {
            // SAFETY: the caller's window, as for the MPI underneath alone.
            unsafe { (host.call.win_sync)(native) }
        })
    }
}

quick_card! {
    /// MPI-4.1 §12.5.3.
    MPI_Win_lock PMPI_Win_lock (lock_type: c_int, rank: c_int, assert: c_int, win: MPI_Win) {
        Host::known(ENTRY).is_some_and(|host| {
            let c = &host.constants;
            let hold = match lock_type {
                kind if kind == c.lock_exclusive => Hold::Exclusive,
                kind if kind == c.lock_shared => Hold::Shared,
                _ => Hold::Unchecked,
            };
            let window = registry::lookup(host.handle(win)).filter(|_| assert == 0);
            window.is_some_and(|window| match &window.carrier {
                Carrier::Node(node) => synchronise::lock_quick(window, node, rank as u32, hold),
                Carrier::Wide(_) | Carrier::Host(_) => false,
            })
        })
    } {
        let host = Host::get();
        on_window("MPI_Win_lock", host, win, |window, node| {
            let hold = hold(host, lock_type, assert)?;
            match passive(host, node, rank)? {
                Some(target) => synchronise::lock(window, node, target, hold),
                None => Ok(()),
            }
        }, |native| {
            // SAFETY: the caller's arguments, as for the MPI underneath alone.
            unsafe { (host.call.win_lock)(lock_type, rank, assert, native) }
        })
    }

    /// MPI-4.1 §12.5.3.
    MPI_Win_unlock PMPI_Win_unlock (rank: c_int, win: MPI_Win) {
        let found = Host::known(ENTRY)
            .and_then(|host| Some((host, registry::lookup(host.handle(win))?)))
            .map(|(host, window)| (host, window, &window.carrier));
        match found {
            Some((host, window, Carrier::Node(node))) => {
                match synchronise::unlock_quick(window, node, rank as u32) {
                    Some(Ok(())) => true,
                    Some(Err(error)) => return raise("MPI_Win_unlock", host, window, error),
                    None => false,
                }
            }
            _ => false,
        }
    } {
        let host = Host::get();
        on_window("MPI_Win_unlock", host, win, |window, node| {
            match passive(host, node, rank)? {
                Some(target) => synchronise::unlock(window, node, target),
                None => Ok(()),
            }
        }, |native| {
            // SAFETY: the caller's arguments, as for the MPI underneath alone.
            unsafe { (host.call.win_unlock)(rank, native) }
        })
    }

    /// MPI-4.1 §12.5.4.
    MPI_Win_flush PMPI_Win_flush (rank: c_int, win: MPI_Win) {
        Host::known(ENTRY).is_some_and(|host| {
            registry::lookup(host.handle(win)).is_some_and(|window| match &window.carrier {
                Carrier::Node(node) => synchronise::flush_quick(window, node, rank as u32),
                Carrier::Wide(_) | Carrier::Host(_) => false,
            })
        })
    } {
        let host = Host::get();
        on_window("MPI_Win_flush", host, win, |window, node| {
            match passive(host, node, rank)? {
                Some(target) => synchronise::flush(window, node, target),
                None => Ok(()),
            }
        }, |native| {
            // SAFETY: the caller's arguments, as for the MPI underneath alone.
            unsafe { (host.call.win_flush)(rank, native) }
        })
    }
}
