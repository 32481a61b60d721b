//! Output of the library: one line for all windows with equal lines if FOMPI_VERBOSE is set, and
//! one per job if windows are delegated. Rank 0 of the window prints them on standard error, by one
//! write per line.

pub mod collective_outcome;
pub mod lone_rank_warning;
pub mod missing_ranks;

use crate::config::{Config, Fallback};
use crate::error::{Class, Error, NO_DESCRIPTOR, Result};
use crate::fabric::layout::RANKS_MAX;
use crate::memory::adopted::NotAdopted;
use crate::memory::own_ranges::OwnRange;
use crate::mpi::Flavor;
use crate::rank_numbers::Rank;
use crate::sync::{AtomicBool, Ordering};
use parking_lot::Mutex;
use std::io::Write;
use std::time::Duration;

/// Prints whether the memory that a rank exposes in a created window was adopted, if FOMPI_VERBOSE
/// is set.
pub fn adoption(flavor: Flavor, rank: Rank, range: Option<&OwnRange>) {
    let Some(range) = range.filter(|_| Config::get().verbose) else { return };
    let (call, rank) = (flavor.call(), rank.0);
    say_once(match range.mapped() {
        Ok(part) => format!("{call}: rank {rank}: {} bytes adopted as shared memory", part.inner.1),
        Err(why) => format!("{call}: rank {rank}: process_vm, its memory is not adopted: {why}"),
    });
}

/// Prints once why memory of freed windows stays shared memory, if FOMPI_VERBOSE is set.
pub fn kept(given: core::result::Result<(), NotAdopted>) {
    static SAID: AtomicBool = AtomicBool::new(false);
    // Relaxed: at worst two threads print.
    if let Err(why) = given
        && Config::get().verbose
        && !SAID.swap(true, Ordering::Relaxed)
    {
        say(&format!("MPI_Win_free: adopted memory of this process stays shared memory: {why}"));
    }
}

/// The reason why a window is delegated to the host MPI.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Why {
    /// the processes share no memory
    NoTransport,
    /// the processes are on several nodes, and one has no RDMA device: why
    NoDevice(&'static str),
    /// the processes are on several nodes, one node has a fast network, and verbs are not used
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
    /// more memory than a node can keep in place
    TooLarge,
    /// MPI_Win_allocate_shared for processes on several nodes
    Apart,
    /// memory of a GPU, or a GPU runtime that cannot identify its memory
    Gpu,
    /// a process may not access the memory of another
    Denied,
    /// a process has no descriptor left for a segment
    Descriptors,
    /// there is no memory for the control words
    Memory,
}

// The number in the text below.
const _: () = assert!(RANKS_MAX == 40_329);

impl Why {
    fn text(self) -> &'static str {
        match self {
            Why::NoTransport => "its processes share no memory, and there is no other transport",
            Why::NoDevice(text) | Why::FastNetwork(text) => text,
            Why::NetOff => "its processes share no memory, and FOMPI_NET=off",
            Why::Links => "some of its processes have InfiniBand, others RoCE",
            Why::NoContact => "a node does not reach another one over the network",
            Why::NoListener => {
                "a process cannot listen for others (FOMPI_NET_PORTS, FOMPI_NET_INTERFACE)"
            }
            Why::TooMany => {
                "it has more than 40,329 processes, the most that a lock word can count"
            }
            Why::Unregistered => {
                "the RDMA device cannot register all of its memory: a part may not be written; \
                 FOMPI_NET=tcp registers nothing"
            }
            Why::TooLarge => {
                "a node has less memory than the RDMA device would have to keep in place for it; \
                 FOMPI_NET=tcp keeps none in place"
            }
            Why::Apart => "its processes are on several nodes",
            Why::Denied => {
                "its processes may not copy each other's memory (process_vm_readv and writev)"
            }
            Why::Descriptors => {
                "one of its processes has no file descriptor left (ulimit -n); \
                 the next window tries again"
            }
            Why::Memory => "there is no memory for its control words; the next window tries again",
            Why::Gpu => {
                "it is over memory of a GPU, or a GPU run-time library is loaded that does not say \
                 what is"
            }
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
                Err(Error::Wrong(Class::NoMem, self.text()))
            }
            _ => Ok(()),
        }
    }
}

/// Prints one line.
pub fn say(line: &str) {
    // One write: `eprintln!` makes several, which mix with those of other ranks.
    let _ = std::io::stderr().write_all(format!("fompi: {line}\n").as_bytes());
}

/// The lines about windows that this process has printed, and how often there was reason to.
static SAID: Mutex<Vec<(String, u64)>> = Mutex::new(Vec::new());
/// The most lines that are kept there. Further ones are printed each time.
const SAID_MAX: usize = 100;

/// Prints a line about a window, unless it was printed before: then it only counts.
pub fn say_once(line: String) {
    if is_new(&mut SAID.lock(), &line) {
        say(&line);
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
        say(&format!("{times} times: {line}"));
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
pub fn say_fatal(line: &str) {
    let rank = crate::config::rank().map(|rank| format!("rank {rank}: ")).unwrap_or_default();
    say(&format!("{rank}{line}; the error handler ends the job by MPI_Abort"));
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
        let call = flavor.call();
        say_once(format!("{call}: delegated to the host MPI: {}", why.text()));
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

impl Wrong {
    fn text(self) -> &'static str {
        match self {
            Wrong::Request => "a request outside of a passive target epoch (MPI-4.1 \u{a7}12.3.5)",
            Wrong::Pair => "an operation that does not go with the type (MPI-4.1 \u{a7}6.9.2)",
        }
    }
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
        let what = wrong.text();
        say(&format!("{call}: {what} is carried out as MPIs do; FOMPI_STRICT=1 makes it an error"));
    }
    Ok(())
}

/// Prints why this rank cannot reach another node, or cannot be reached: no other rank knows the
/// cause.
pub fn own_cause(rank: Rank, error: &Error) {
    warn(&format!("rank {rank}: {error}"));
}

/// Prints once that ranks have different settings.
pub fn differ(line: &str) {
    static SAID: AtomicBool = AtomicBool::new(false);
    // Relaxed: the flag orders nothing.
    if !SAID.swap(true, Ordering::Relaxed) {
        warn(line);
    }
}

fn warn(line: &str) {
    let config = Config::get();
    if config.verbose || config.fallback != Fallback::Quiet {
        say(line);
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
    fn a_node_that_cannot_ask_another_one_names_the_cause() {
        let short = Error::System { call: "socket", errno: libc::EMFILE };
        assert_eq!(Why::no_contact(&short), Why::Descriptors);
        let silent = Error::System { call: "connect", errno: libc::EHOSTUNREACH };
        assert_eq!(Why::no_contact(&silent), Why::NoContact);
    }
}
