//! Reports of waiting, for FOMPI_VERBOSE=2. A rank that waits long for other ranks in a call on a
//! window prints a line ([`text`]), which names a deadlock of locks if the rank is part of one
//! ([`claims`]). MPI_Finalize prints a table of the windows and the time that ranks waited in them
//! ([`summary`]). Nothing here changes what a protocol does, and without that setting nothing here
//! runs. Not for the calls that make and free windows: [`late`](super::create::late) reports those.

mod claims;
mod summary;
mod text;

#[cfg(any(test, fuzzing))]
pub use claims::lock_claims;
pub use summary::{freed, leave, print};

use super::idle::{NodeIdle, Waiting};
use super::registry;
use super::report::say;
use super::{LocalWindow, Window};
use std::time::Duration;
use text::Call;

/// The wait after which a rank prints a line. It prints the next one when it has waited twice as
/// long, and so on.
const PATIENCE: Duration = Duration::from_secs(5);
/// The wait for a lock after which a rank shows the other ranks of its node which locks it holds.
/// It is shorter than [`PATIENCE`], so that ranks that wait for each other find what they look for.
const SHOWN: Duration = Duration::from_secs(4);

/// Prints a line if it is time for one. The waiting thread calls this once in a while.
pub fn look(idle: &NodeIdle, wait: &mut Waiting) {
    let waited = wait.began.elapsed();
    if waited < SHOWN {
        return;
    }
    let Some((window, node)) = window_of(idle) else { return };
    let call = Call::of(node, wait.word);
    if wait.shown.is_none()
        && let Call::Queue(wanted) = call
    {
        wait.shown = claims::show(window, node, wanted);
    }
    if waited >= *wait.due.get_or_insert(PATIENCE) {
        wait.due = wait.due.map(|due| due * 2);
        text::line(window, node, call, waited).inspect(|line| say(line));
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
