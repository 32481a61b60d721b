//! Reports of waiting. With FOMPI_VERBOSE=2 a rank that waits long for other ranks in a call on a
//! window prints a line ([`text`]), which names a deadlock of locks if the rank is part of one
//! ([`claims`]), and MPI_Finalize prints a table of the windows and the time that ranks waited in
//! them ([`summary`]). Without that setting a rank prints the line if the deadlock is proved.
//! Nothing here changes what a protocol does. In calls that make and free windows, FOMPI_VERBOSE=1
//! is enough. Not for the first call of a communicator:
//! [`missing_ranks`](crate::report::missing_ranks) reports that.

mod claims;
mod summary;
mod text;

pub use summary::{freed, leave, print};

use super::registry;
use super::{LocalWindow, Window};
use crate::arena::wait_progress::{NodeIdle, Waiting};
use crate::config::Config;
use crate::messages::Line;
use crate::report::missing_ranks::patience;
use std::time::{Duration, Instant};
use text::Call;

/// The wait times after which a rank reports.
struct Times {
    /// the wait for a lock after which it shows the other ranks of its node which locks it holds.
    /// It is shorter than `due`, so that ranks that wait for each other find it in time
    shown: Duration,
    /// the wait after which it prints a line. It prints the next one when it has waited twice as
    /// long, and so on
    due: Duration,
}

/// With FOMPI_VERBOSE=2.
const OF_WAITS: Times = Times { shown: Duration::from_secs(4), due: Duration::from_secs(5) };
/// Without.
const OF_DEADLOCKS: Times = Times { shown: Duration::from_secs(28), due: Duration::from_secs(30) };

/// Prints a line if it is time for one. The waiting thread calls this periodically.
pub fn report_if_due(idle: &NodeIdle, wait: &mut Waiting) {
    let waited = wait.began.get_or_insert_with(Instant::now).elapsed();
    if let Some(collective) = idle.collective() {
        if Config::get().verbose && waited >= *wait.due.get_or_insert_with(patience) {
            wait.due = wait.due.map(|due| due * 2);
            text::collective_line(idle.arena(), collective, waited).inspect(Line::print);
        }
        return;
    }
    let reports_waits = idle.total().is_some();
    let times = if reports_waits { OF_WAITS } else { OF_DEADLOCKS };
    if waited < times.shown {
        return;
    }
    let Some((window, node)) = window_of(idle) else { return };
    let call = Call::of(node, wait.word);
    if wait.shown.is_none()
        && let Call::Queue(wanted) = call
    {
        wait.shown = claims::own(window, node, wanted).and_then(|own| own.show());
    }
    if waited >= *wait.due.get_or_insert(times.due) {
        wait.due = wait.due.map(|due| due * 2);
        if reports_waits || call.is_deadlock(window, node) {
            text::line(window, node, call, waited).inspect(Line::print);
        }
    }
}

/// Returns the window to whose control words `idle` belongs.
fn window_of(idle: &NodeIdle) -> Option<(&'static Window, &'static LocalWindow)> {
    let mut found = None;
    registry::for_each(|window| {
        if window.local().is_some_and(|node| core::ptr::eq(node.words.idle(), idle)) {
            found = Some(core::ptr::from_ref(window));
        }
    });
    // SAFETY: the calling thread is in a call on this window, which lives until MPI_Win_free. A
    // program that frees a window while another of its threads uses it is erroneous (MPI-4.1
    // §11.6.2).
    let window: &'static Window = unsafe { &*found? };
    Some((window, window.local()?))
}
