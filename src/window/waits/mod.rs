//! Reports of waiting, for FOMPI_VERBOSE=2. A rank that waits long for other ranks in a call on a
//! window prints a line ([`text`]), which names a deadlock of locks if the rank is part of one
//! ([`claims`]). MPI_Finalize prints a table of the windows and the time that ranks waited in them
//! ([`table`]). Nothing here changes what a protocol does, and without that setting nothing here
//! runs. Not for the calls that make and free windows: [`late`](super::create::late) reports those.

mod claims;
mod table;
mod text;

pub use table::{freed, leave, print};

use super::Carrier;
use super::idle::NodeIdle;
use super::registry;
use super::report::say;
use super::{LocalWindow, Window};
use crate::fabric::WordId;
use crate::sync::{AtomicU64, Ordering};
use crate::sys::proc_notes::Note;
use std::time::{Duration, Instant};
use text::Call;

/// The wait after which a rank prints a line. It prints the next one when it has waited twice as
/// long, and so on.
const PATIENCE: Duration = Duration::from_secs(5);
/// The wait for a lock after which a rank shows the other ranks of its node which locks it holds.
/// It is shorter than [`PATIENCE`], so that ranks that wait for each other find what they look for.
const SHOWN: Duration = Duration::from_secs(4);

/// The time that a process has waited for other ranks in one window.
#[derive(Default)]
pub struct Total {
    ns: AtomicU64,
}

impl Total {
    /// Adds a wait that is over.
    pub fn add(&self, wait: &Waiting) {
        let ns = wait.began.elapsed().as_nanos() as u64;
        // Relaxed: a sum that nothing depends on.
        self.ns.fetch_add(ns, Ordering::Relaxed);
    }

    /// Nanoseconds, of all threads together.
    pub fn ns(&self) -> u64 {
        self.ns.load(Ordering::Relaxed)
    }
}

/// A wait of one thread for a word of its process.
pub struct Waiting {
    word: WordId,
    began: Instant,
    /// the wait after which the thread prints its next line
    due: Duration,
    /// the locks of this process, for the other ranks of the node
    shown: Option<Note>,
}

impl Waiting {
    /// Returns a wait that begins now.
    pub fn new(word: WordId) -> Waiting {
        Waiting { word, began: Instant::now(), due: PATIENCE, shown: None }
    }

    /// Prints a line if it is time for one. The waiting thread calls this once in a while.
    pub fn look(&mut self, idle: &NodeIdle) {
        let waited = self.began.elapsed();
        if waited < SHOWN {
            return;
        }
        let Some((window, node)) = window_of(idle) else { return };
        let call = Call::of(node, self.word);
        if self.shown.is_none()
            && let Call::Queue(wanted) = call
        {
            self.shown = claims::show(window, node, wanted);
        }
        if waited >= self.due {
            self.due *= 2;
            text::line(window, node, call, waited).inspect(|line| say(line));
        }
    }
}

/// Returns the window to whose control words `idle` belongs.
fn window_of(idle: &NodeIdle) -> Option<(&'static Window, &'static LocalWindow)> {
    let mut found = None;
    registry::for_each(|window| {
        if node_of(window).is_some_and(|node| core::ptr::eq(node.words.idle(), idle)) {
            found = Some(core::ptr::from_ref(window));
        }
    });
    // SAFETY: the calling thread is in a call on this window, which lives until MPI_Win_free. A
    // program that frees a window while another of its threads uses it is erroneous (MPI-4.1
    // §11.6.2).
    let window: &'static Window = unsafe { &*found? };
    Some((window, node_of(window)?))
}

/// Returns the part of a window that this library carries out; `None` if the MPI underneath does.
fn node_of(window: &Window) -> Option<&LocalWindow> {
    match &window.carrier {
        Carrier::Node(node) | Carrier::Wide(node) => Some(node),
        Carrier::Host(_) => None,
    }
}

/// Returns how a line names a window: by the name that the program gave it, or else by its handle.
fn label(window: &Window) -> String {
    let name = window.name.lock();
    let call = window.facts.flavor.call();
    match name.is_empty() {
        true => format!("window {:#x} of {call}", window.handle),
        false => format!("window \"{}\"", printable(&name)),
    }
}

/// Returns a name that a program gave, without characters that would break the line.
fn printable(name: &[u8]) -> String {
    let text = String::from_utf8_lossy(name);
    text.chars().map(|c| if c.is_control() { ' ' } else { c }).collect()
}
