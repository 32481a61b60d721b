//! Order without completion, completion on several windows, and completion by all ranks: issues 135
//! and 47 of the MPI Forum, and MPI_RMA_order and MPI_RMA_complete_collective of the strawman
//! interface. All names are libfompi's own.

use super::MPI_Win;
use super::answer::{on_window, raise_alone};
use super::handle_calls::{ALL_RANKS, handle_entries, unsupported};
use crate::error::{Error, Result};
use crate::messages;
use crate::mpi::{Handle, Host};
use crate::number::Number;
use crate::transfer::Place;
use crate::window::handles::completion;
use crate::window::{LocalWindow, Window, synchronise};
use core::ffi::c_int;

/// Completes the operations on a rank of a window, or on all, as MPI_Win_flush.
fn flush((window, node): (&Window, &LocalWindow), host: &Host, rank: c_int) -> Result<()> {
    match rank {
        ALL_RANKS => synchronise::flush_all(window, node),
        _ if rank == host.constants.proc_null => Ok(()),
        _ => synchronise::flush(window, node, node.target(rank)?),
    }
}

/// Executes FOMPI_Win_nflush on `count` windows; `at` returns their handles. Returns the first
/// error.
pub(super) fn nflush(
    rank: c_int,
    count: c_int,
    is_null: bool,
    at: impl Fn(usize) -> Handle,
) -> c_int {
    let (call, host) = ("FOMPI_Win_nflush", Host::get());
    let Ok(length) = usize::try_from(count) else {
        return raise_alone(call, host, Error::Argument(&messages::WINDOWS, i64::from(count)));
    };
    if length > 0 && is_null {
        return raise_alone(call, host, Error::Wrong(&messages::NULL_WINDOWS));
    }
    let flush_one = |win| {
        let ours = |window, node| flush((window, node), host, rank);
        on_window(call, host, win, ours, |_| unsupported())
    };
    (0..length).map(at).map(flush_one).fold(0, |first, code| if first == 0 { code } else { first })
}

handle_entries! {
    /// Orders operations (issue 135 of the MPI Forum): what this process sends to a rank of `win`
    /// behind this call takes effect there behind what it has sent there before. `rank` is a rank,
    /// MPI_PROC_NULL, or FOMPI_ALL_RANKS for each rank by itself. An access epoch for the rank is
    /// open, or FOMPI_ALL_RANKS is given. Completes nothing at the origin or the target. Cost: a
    /// fence of the processor within a node; nothing between nodes, but a round trip if accumulates
    /// on single elements are not confirmed. Any thread may call; it orders operations whose calls
    /// have returned. Errors: MPI_ERR_WIN, MPI_ERR_RANK, MPI_ERR_RMA_SYNC without an access epoch,
    /// MPI_ERR_OTHER if the target is lost, MPI_ERR_UNSUPPORTED_OPERATION on a window of the host
    /// MPI.
    FOMPI_Win_order [win] (rank: c_int, win: MPI_Win) {
        let host = Host::get();
        on_window("FOMPI_Win_order", host, win, |window, node| match rank {
            ALL_RANKS => completion::order_all(window, node),
            _ => Place { host, window, node, memory: None }.order(rank),
        }, |_| unsupported())
    }

    /// Completes all operations on a rank, or on all ranks for FOMPI_ALL_RANKS, at the target, on
    /// each of `count` windows (issue 47 of the MPI Forum), as MPI_Win_flush on each. Windows whose
    /// `rank` is the same process cost one round trip together, since one connection carries their
    /// operations. Any thread may call. Errors of a window go to its handler, and the others are
    /// flushed nevertheless: those of MPI_Win_flush, MPI_ERR_UNSUPPORTED_OPERATION on a window of
    /// the host MPI; MPI_ERR_COUNT for a negative count, MPI_ERR_ARG for a null pointer as the
    /// windows.
    FOMPI_Win_nflush [0] (rank: c_int, count: c_int, wins: *const MPI_Win) {
        let host = Host::get();
        let width = host.constants.handle_bytes.cast_unsigned().to_usize();
        // SAFETY: the caller's array of handles, of the MPI's own width.
        let at = |number| unsafe { host.fetch(wins.byte_add(number * width)) };
        nflush(rank, count, wins.is_null(), at)
    }

    /// Completes all operations of this process at their targets, and waits until all processes of
    /// the window have called this (MPI_RMA_complete_collective of the strawman interface): behind
    /// it, each process sees in its memory what all have sent to it. Collective; no epoch is
    /// needed, none begins and none ends, so that it is legal between MPI_Win_lock_all and
    /// MPI_Win_unlock_all. Cost: that of MPI_Win_fence. Errors: MPI_ERR_WIN, MPI_ERR_OTHER if a
    /// process is lost, MPI_ERR_UNSUPPORTED_OPERATION on a window of the host MPI.
    FOMPI_Complete_collective [win] (win: MPI_Win) {
        let host = Host::get();
        on_window("FOMPI_Complete_collective", host, win,
            completion::complete_collectively, |_| unsupported())
    }
}
