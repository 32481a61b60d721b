//! A communication call (MPI-4.1 §12.3) on a window of either layer: with or without a request and
//! a notification, and with what a window does to all its calls.

use super::answer::on_window;
use super::request_calls::on_target_with;
use super::{MPI_Request, MPI_Win};
use crate::error::Result;
use crate::mpi::{Handle, Host};
use crate::transfer::Place;
use crate::window::notifications::Notified;
use core::ffi::c_int;

/// A communication call.
pub(super) struct Call {
    pub name: &'static str,
    pub host: &'static Host,
    /// the target
    pub rank: c_int,
    pub win: MPI_Win,
    /// the caller's pointer to a request; `None`: the call has no request
    pub request: Option<*mut MPI_Request>,
    /// what it does
    pub kind: Notified,
    /// what a notified call does, and the index of its counter
    pub notified: Option<(Notified, c_int)>,
}

impl Call {
    /// Returns a call of the accumulate family without a request and a notification.
    #[inline(always)]
    pub fn plain(name: &'static str, rank: c_int, win: MPI_Win) -> Call {
        let (kind, host) = (Notified::Accumulate, Host::get());
        Call { name, host, rank, win, request: None, kind, notified: None }
    }

    /// Executes the call: `ours` if libfompi implements the window, `theirs` otherwise.
    #[inline(always)]
    pub fn carry_out(
        self,
        ours: impl FnOnce(Place<'static>) -> Result<()> + Copy,
        theirs: impl FnOnce(Handle) -> Result<()>,
    ) -> c_int {
        let (rank, kind) = (self.rank, self.kind);
        let Some((kind, index)) = self.notified else {
            return self.on_target(by_window(rank, kind, ours), theirs);
        };
        let counter = (kind, rank, index);
        let notified = move |place: Place<'static>| place.notified(counter, move || ours(place));
        self.on_target(by_window(rank, kind, notified), theirs)
    }

    /// Executes the operation of the call. One that succeeds after a fence opens an epoch; one that
    /// fails does not, nor does one on MPI_PROC_NULL.
    #[inline]
    fn on_target(
        self,
        ours: impl FnOnce(Place<'static>) -> Result<()>,
        theirs: impl FnOnce(Handle) -> Result<()>,
    ) -> c_int {
        let Call { name, host, rank, win, request, .. } = self;
        if let Some(request) = request {
            return on_target_with((name, host), win, rank, request, ours, theirs);
        }
        on_window(
            name,
            host,
            win,
            |window, node| {
                ours(Place { host, window, node, memory: None })?;
                if window.epochs.awaits_operation() && rank != host.constants.proc_null {
                    window.epochs.accessed();
                }
                Ok(())
            },
            theirs,
        )
    }
}

/// Returns a transfer with a rank as its window carries it out. A copy of it: what one call alone
/// shares with a function that is not inlined need not be in memory for all.
#[inline(always)]
fn by_window(
    rank: c_int,
    kind: Notified,
    ours: impl FnOnce(Place<'static>) -> Result<()> + Copy,
) -> impl FnOnce(Place<'static>) -> Result<()> {
    move |place| match place.window.is_special() {
        false => ours(place),
        true => place.by_default(rank, kind, ours),
    }
}
