//! What a process tells of its waiting when FOMPI_VERBOSE=2 asks for it: a line by a rank that
//! waits long for others in a call on a window ([`text`]), with the deadlock of locks that it is
//! part of ([`claims`]), and a table at the end of the job ([`table`]). Nothing here changes what a
//! protocol does, and without that setting nothing here runs. Not for the calls that make and free
//! windows, which [`late`](super::late) serves.

mod claims;
mod table;
mod text;

pub use table::{freed, leave, print};

use super::Road;
use super::idle::NodeIdle;
use super::registry;
use super::report::say;
use super::{Node, Window};
use crate::fabric::WordId;
use crate::sync::{AtomicU64, Ordering};
use crate::sys::notes::Note;
use std::time::{Duration, Instant};

/// A rank that has waited so long says so; then again each time that it has waited twice as long.
const PATIENCE: Duration = Duration::from_secs(5);
/// A rank that has waited so long for a lock shows others on the node which locks it holds: before
/// it looks for theirs.
const SHOWN: Duration = Duration::from_secs(4);

/// How long a process has waited for others in one window.
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
    /// after so long the thread says next that it waits
    due: Duration,
    /// what others on the node see of the locks of this process
    shown: Option<Note>,
}

impl Waiting {
    /// A wait that begins now.
    pub fn new(word: WordId) -> Waiting {
        Waiting { word, began: Instant::now(), due: PATIENCE, shown: None }
    }

    /// Says that the thread waits, and for whom, if it is time. Once in a while, by that thread.
    pub fn look(&mut self, idle: &NodeIdle) {
        let waited = self.began.elapsed();
        if waited < SHOWN {
            return;
        }
        let Some((window, node)) = window_of(idle) else { return };
        let call = text::Call::of(node, self.word);
        if self.shown.is_none() {
            self.shown = claims::show(window, node, call);
        }
        if waited >= self.due {
            self.due *= 2;
            text::line(window, node, call, waited).inspect(|line| say(line));
        }
    }
}

/// The window in whose words a thread waits.
fn window_of(idle: &NodeIdle) -> Option<(&'static Window, &'static Node)> {
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

/// What this library keeps of a window, if it carries it out.
fn node_of(window: &Window) -> Option<&Node> {
    match &window.road {
        Road::Node(node) | Road::Wide(node) => Some(node),
        Road::Host(_) => None,
    }
}

/// How a line names a window: by the name that the program gave it, or else by its handle.
fn label(window: &Window) -> String {
    let name = window.name.lock();
    let call = window.facts.flavor.call();
    match name.is_empty() {
        true => format!("window {:#x} of {call}", window.handle),
        false => format!("window \"{}\"", printable(&name)),
    }
}

/// A name that a program gave, in one line of a report.
fn printable(name: &[u8]) -> String {
    let text = String::from_utf8_lossy(name);
    text.chars().map(|c| if c.is_control() { ' ' } else { c }).collect()
}
