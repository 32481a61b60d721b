//! Output of the library: one line for all windows with equal lines if FOMPI_VERBOSE is set, and
//! one per job if windows are delegated. Rank 0 of the window prints them on standard error, by one
//! write per line. Invariant: without FOMPI_VERBOSE each line has the code of a message.

pub mod collective_outcome;
pub mod lone_rank_warning;
pub mod missing_ranks;

use crate::config::{Config, Fallback};
use crate::error::{Error, NO_DESCRIPTOR, Result};
use crate::fabric::layout::RANKS_MAX;
use crate::memory::adopted::NotAdopted;
use crate::memory::own_ranges::OwnRange;
use crate::messages::{self, Filled, Line, Message, fill, filled, print_without_code};
use crate::mpi::Flavor;
use crate::rank_numbers::Rank;
use crate::sync::{AtomicBool, Ordering};
use core::fmt::Display;
use parking_lot::Mutex;
use std::time::Duration;

/// Prints whether the memory that a rank exposes in a created window was adopted, if FOMPI_VERBOSE
/// is set.
pub fn adoption(flavor: Flavor, rank: Rank, range: Option<&OwnRange>) {
    let Some(range) = range.filter(|_| Config::get().verbose) else { return };
    let (call, rank) = (flavor.call(), rank.0);
    inform_once(match range.mapped() {
        Ok(part) => format!("{call}: rank {rank}: {} bytes adopted as shared memory", part.inner.1),
        Err(why) => format!("{call}: rank {rank}: process_vm, its memory is not adopted: {why}"),
    });
}

/// Prints once why memory of freed windows stays shared memory, if FOMPI_VERBOSE is set.
pub fn kept(given: core::result::Result<(), NotAdopted>) {
    static SAID: AtomicBool = AtomicBool::new(false);
    // Relaxed: at worst two threads print.
    let config = Config::get();
    if let Err(why) = given
        && config.verbose
        && !SAID.swap(true, Ordering::Relaxed)
    {
        let what = "MPI_Win_free: adopted memory of this process stays shared memory";
        inform(config, &format!("{what}: {why}"));
    }
}

/// The reason why a window is delegated to the host MPI.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Why {
    /// the processes share no memory
    NoTransport,
    /// the processes are on several nodes, and one has no RDMA device: the whole [`reason`]
    NoDevice(&'static str),
    /// the processes are on several nodes, one node has a fast network, and verbs are not used: the
    /// whole [`reason`]
    FastNetwork(&'static str),
    /// the processes share no memory, and FOMPI_NET=off
    NetOff,
    /// some have InfiniBand, others RoCE
    Links,
    /// a node cannot reach the next one by its device
    NoContact,
    /// a process has no place to listen at
    NoListener,
    /// more processes than control words have numbers for
    TooMany,
    /// memory of the window that the RDMA device cannot register
    Unregistered,
    /// more memory than a node can lock
    TooLarge,
    /// MPI_Win_allocate_shared for processes on several nodes
    Apart,
    /// memory of a GPU, or a GPU run-time library that cannot identify its memory
    Gpu,
    /// a process may not access the memory of another
    Denied,
    /// a process has no descriptor left for a segment
    Descriptors,
    /// there is no memory for the control words
    Memory,
}

// The number in the text of TOO_MANY_RANKS.
const _: () = assert!(RANKS_MAX == 40_329);

/// How the text of each reason begins.
const DELEGATED: &str = "{call}: delegated to the host MPI: ";

/// Returns the reason in the text of a message, without what all reasons begin with.
fn reason(message: &'static Message) -> &'static str {
    message.text.strip_prefix(DELEGATED).unwrap_or(message.text)
}

/// Returns such a reason with its values.
pub fn filled_reason(filled: &Filled<'_>) -> String {
    let mut text = String::new();
    // A String takes everything.
    let _ = fill(&mut text, reason(filled.message), filled.values);
    text
}

impl Why {
    fn message(self) -> &'static Message {
        match self {
            Why::NoTransport => &messages::NO_TRANSPORT,
            Why::NoDevice(_) => &messages::NO_DEVICE,
            Why::FastNetwork(_) => &messages::FAST_NETWORK,
            Why::NetOff => &messages::NET_OFF,
            Why::Links => &messages::LINKS_DIFFER,
            Why::NoContact => &messages::NO_CONTACT,
            Why::NoListener => &messages::CANNOT_LISTEN,
            Why::TooMany => &messages::TOO_MANY_RANKS,
            Why::Unregistered => &messages::UNREGISTERED,
            Why::TooLarge => &messages::TOO_LARGE,
            Why::Apart => &messages::APART,
            Why::Denied => &messages::DENIED,
            Why::Descriptors => &messages::DESCRIPTORS,
            Why::Memory => &messages::MEMORY,
            Why::Gpu => &messages::GPU,
        }
    }

    /// Returns the reason, with its values.
    fn text(self) -> &'static str {
        match self {
            Why::NoDevice(text) | Why::FastNetwork(text) => text,
            why => reason(why.message()),
        }
    }
}

impl Why {
    /// Returns whether the reason may be gone when the next window is made.
    pub fn may_pass(self) -> bool {
        matches!(self, Why::Descriptors | Why::Memory)
    }

    /// Returns the reason for an error of the system that allows no segment.
    pub fn no_segment(error: &Error) -> Why {
        match error {
            error if error.is_short_of_descriptors() => Why::Descriptors,
            Error::NoMemory { .. }
            | Error::TooMuch { .. }
            | Error::System { errno: libc::ENOMEM | libc::ENOSPC, .. } => Why::Memory,
            _ => Why::NoTransport,
        }
    }

    /// Returns the reason for the error of a process that cannot use its device.
    pub fn no_wire(error: &Error) -> Why {
        match error {
            Error::NoListener(_) => Why::NoListener,
            error => Why::no_segment(error),
        }
    }

    /// Returns the reason for the error of a node that does not reach the next one.
    pub fn no_contact(error: &Error) -> Why {
        if error.is_short_of_descriptors() { Why::Descriptors } else { Why::NoContact }
    }

    /// Fails if the host MPI cannot make the window either, because it needs the same missing
    /// resource to allocate memory: in such a call some MPIs never return.
    pub fn refuses(self, flavor: Flavor) -> Result<()> {
        match (self, flavor) {
            (Why::Descriptors, Flavor::Allocate | Flavor::Shared) => Err(NO_DESCRIPTOR),
            (Why::Memory, Flavor::Allocate | Flavor::Shared) => {
                Err(Error::Wrong(&messages::NO_CONTROL_MEMORY))
            }
            _ => Ok(()),
        }
    }
}

/// Prints a line of information if these settings have FOMPI_VERBOSE.
pub fn inform(config: &Config, text: &str) {
    if config.verbose {
        print_without_code(text);
    }
}

/// The lines about windows that this process has printed, and how often there was reason to.
static SAID: Mutex<Vec<(String, u64)>> = Mutex::new(Vec::new());
/// The most lines that are kept there. Further ones are printed each time.
const SAID_MAX: usize = 100;

/// Prints a line of information about a window if FOMPI_VERBOSE is set, unless it was printed
/// before: then it only counts.
pub fn inform_once(text: String) {
    let config = Config::get();
    if config.verbose && is_new(&mut SAID.lock(), &text) {
        inform(config, &text);
    }
}

/// Prints a warning about a window, unless it was printed before: then it only counts.
fn print_once(line: &Line) {
    if is_new(&mut SAID.lock(), &line.to_string()) {
        line.print();
    }
}

/// Counts a line, and returns whether it is to be printed.
fn is_new(said: &mut Vec<(String, u64)>, line: &str) -> bool {
    if let Some((_, times)) = said.iter_mut().find(|(known, _)| known == line) {
        *times += 1;
        return false;
    }
    if said.len() < SAID_MAX {
        said.push((line.to_owned(), 1));
    }
    true
}

/// Prints how often each line came that was not printed again. Call in MPI_Finalize.
pub fn print_repeats() {
    for (line, times) in SAID.lock().drain(..).filter(|(_, times)| *times > 1) {
        print_without_code(&format!("{times} times: {line}"));
    }
}

/// The most processes that a report names.
const NAMED_MAX: usize = 6;

/// Returns a text that names ranks, and their processes where they are known; `None` for no ranks.
pub fn named(processes: Vec<(Rank, Option<i32>)>) -> Option<String> {
    let one = |(rank, pid): &(Rank, Option<i32>)| match pid {
        Some(pid) => format!("rank {rank} (process {pid})"),
        None => format!("rank {rank}"),
    };
    let names: Vec<String> = processes.iter().take(NAMED_MAX).map(one).collect();
    let more = processes.len() - names.len();
    let more = if more > 0 { format!(" and {more} more") } else { String::new() };
    (!names.is_empty()).then(|| names.join(", ") + &more)
}

/// Returns a name that a program gave, without characters that would break the line.
pub fn printable(name: &[u8]) -> String {
    let text = String::from_utf8_lossy(name);
    text.chars().map(|c| if c.is_control() { ' ' } else { c }).collect()
}

/// Prints the error that ends the job, with the rank if the launcher has passed it to the process.
/// Gives the launcher time to read the line: MPICH's launcher loses lines if several ranks end the
/// job at once (4 of 60 jobs of three ranks).
pub fn print_fatal(message: &Message, text: impl Display) {
    let rank = crate::config::rank().map(|rank| format!("rank {rank}: ")).unwrap_or_default();
    let end = "the error handler ends the job by MPI_Abort";
    message.line(format_args!("{rank}{text}; {end}")).print();
    std::thread::sleep(READ_TIME);
}

/// The time in which a launcher reads a line.
const READ_TIME: Duration = Duration::from_millis(200);

/// Fails if the settings of this rank do not allow to delegate a window.
pub fn may_delegate(why: Why) -> Result<()> {
    match Config::get().fallback {
        Fallback::Error => Err(Error::NotDelegated(why.text())),
        Fallback::Warn | Fallback::Quiet => Ok(()),
    }
}

/// Prints that a window is delegated. Call when the ranks have agreed on that.
pub fn delegated(flavor: Flavor, why: Why, rank: Rank) {
    static SAID: AtomicBool = AtomicBool::new(false);
    let config = Config::get();
    // Relaxed: the flag orders nothing.
    let first = !SAID.swap(true, Ordering::Relaxed);
    if rank == Rank::FIRST && (config.verbose || first && config.fallback == Fallback::Warn) {
        let (call, why, message) = (flavor.call(), why.text(), why.message());
        print_once(&message.line(format_args!("{call}: delegated to the host MPI: {why}")));
    }
}

/// An incorrect call that the library still executes (docs/decisions/0016).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Wrong {
    /// a communication call with a request in an epoch of a fence or a start
    Request,
    /// an operation on elements with which the standard does not pair it
    Pair,
}

/// Decides about a wrong call: the library carries it out, and the first rank writes a line once;
/// with `FOMPI_STRICT` the call fails with this error.
#[cold]
pub fn carry_out(call: &'static str, wrong: Wrong, error: Error) -> Result<()> {
    static SAID: [AtomicBool; 2] = [const { AtomicBool::new(false) }; 2];
    let config = Config::get();
    if config.strict {
        return Err(error);
    }
    // Relaxed: the flag orders nothing.
    let first = !SAID[wrong as usize].swap(true, Ordering::Relaxed);
    if first && config.fallback != Fallback::Quiet && crate::config::is_first_rank() {
        match wrong {
            Wrong::Request => filled!(messages::CARRIED_REQUEST; call).line().print(),
            Wrong::Pair => filled!(messages::CARRIED_PAIR; call).line().print(),
        }
    }
    Ok(())
}

/// Prints why this rank cannot reach another node, or cannot be reached: no other rank knows the
/// cause.
pub fn own_cause(rank: Rank, error: &Error) {
    warn(&error.message().line(format_args!("rank {rank}: {error}")));
}

/// Prints once that ranks have different settings.
pub fn differ(line: &Line) {
    static SAID: AtomicBool = AtomicBool::new(false);
    // Relaxed: the flag orders nothing.
    if !SAID.swap(true, Ordering::Relaxed) {
        warn(line);
    }
}

fn warn(line: &Line) {
    let config = Config::get();
    if config.verbose || config.fallback != Fallback::Quiet {
        line.print();
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    #[test]
    fn a_line_is_printed_once_and_counted() {
        let mut said = Vec::new();
        let printed = ["a", "b", "a", "a"].map(|line| is_new(&mut said, line));
        assert_eq!(printed, [true, true, false, false]);
        assert_eq!(said, [(String::from("a"), 3), (String::from("b"), 1)]);
        let many = (0..2 * SAID_MAX).filter(|line| is_new(&mut said, &line.to_string())).count();
        assert_eq!((many, said.len()), (2 * SAID_MAX, SAID_MAX));
    }

    #[test]
    fn a_reason_is_the_end_of_the_text_of_its_message() {
        for why in [Why::NoTransport, Why::NoDevice(""), Why::FastNetwork(""), Why::Gpu] {
            assert!(why.message().text.starts_with(DELEGATED));
        }
        let expected = "its processes share no memory, and FOMPI_NET=off";
        assert_eq!(Why::NetOff.text(), expected);
        assert_eq!(Why::NoDevice("cause").text(), "cause");
    }

    #[test]
    fn a_node_that_cannot_ask_another_one_names_the_cause() {
        let short = Error::System { call: "socket", errno: libc::EMFILE };
        assert_eq!(Why::no_contact(&short), Why::Descriptors);
        let silent = Error::System { call: "connect", errno: libc::EHOSTUNREACH };
        assert_eq!(Why::no_contact(&silent), Why::NoContact);
    }
}
