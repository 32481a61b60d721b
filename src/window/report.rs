//! What the library says by itself: a line per window if FOMPI_VERBOSE is set, and once per job
//! that windows are delegated. On standard error, from rank 0 of the window, one write per line.

use super::{Flavor, Node};
use crate::config::{Config, Fallback};
use crate::epoch::layout::RANKS_MAX;
use crate::error::{Error, Result};
use crate::fabric::verbs::Nic;
use crate::mpi::Host;
use crate::sync::{AtomicBool, Ordering};
use std::io::Write;

/// Why a window is left to the MPI underneath.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Why {
    /// the processes share no memory
    NoRoad,
    /// the processes are on several nodes, and one has no RDMA device
    NoDevice,
    /// some have InfiniBand, others RoCE
    Links,
    /// a node cannot reach the next one by its device
    NoContact,
    /// more processes than control words have numbers for
    TooMany,
    /// memory of the window that the RDMA device cannot register
    Unregistered,
    /// more memory than a node can keep in place
    TooLarge,
    /// MPI_Win_allocate_shared for processes on several nodes
    Apart,
    /// a process has the run-time library of a GPU loaded
    Gpu,
    /// a process may not look into the memory of another
    Denied,
}

/// The number in the text below.
const _: () = assert!(RANKS_MAX == 40_329);

impl Why {
    fn text(self) -> &'static str {
        match self {
            Why::NoRoad => "its processes share no memory, and there is no other road",
            Why::NoDevice => "its processes are on several nodes, and one has no RDMA device",
            Why::Links => "some of its processes have InfiniBand and others RoCE",
            Why::NoContact => "a node does not reach another one by its RDMA device",
            Why::TooMany => {
                "it has more processes than 40,329, which is what a lock word has room for"
            }
            Why::Unregistered => {
                "the RDMA device cannot register all of its memory: a part may not be written"
            }
            Why::TooLarge => {
                "the RDMA device keeps all of its memory in place, and a node has not so much"
            }
            Why::Apart => "its processes are on several nodes",
            Why::Denied => {
                "its processes may not copy each other's memory (process_vm_readv and writev)"
            }
            Why::Gpu => "a GPU run-time library is loaded, and buffers may lie on the GPU",
        }
    }
}

/// Writes one line in one piece.
pub fn say(line: &str) {
    // One write: `eprintln!` makes several, which mix with those of other ranks.
    let _ = std::io::stderr().write_all(format!("fompi: {line}\n").as_bytes());
}

/// Says that a window was made, if that is wanted.
pub fn made(host: &Host, flavor: Flavor, node: &Node) {
    if node.rank == 0 && Config::get().verbose {
        let (call, abi, ranks) = (flavor.call(), host.abi_name(), node.size);
        let (bytes, is_mapped) = node.exposed();
        let road = match (&node.wide, is_mapped) {
            (Some(_), _) => "verbs between nodes",
            (None, true) => "shared memory",
            (None, false) => "process_vm",
        };
        say(&format!("{call}: {ranks} ranks, {bytes} bytes, road: {road} ({abi})"));
    }
}

/// Whether this rank's settings allow to delegate a window.
pub fn may_delegate(why: Why) -> Result<()> {
    match Config::get().fallback {
        Fallback::Error => Err(Error::Unsupported(why.text())),
        Fallback::Warn | Fallback::Quiet => Ok(()),
    }
}

/// Says that a window is delegated, once the ranks have agreed on that.
pub fn delegated(flavor: Flavor, why: Why, rank: u32) {
    static SAID: AtomicBool = AtomicBool::new(false);
    let config = Config::get();
    // Relaxed: the flag orders nothing.
    let first = !SAID.swap(true, Ordering::Relaxed);
    if rank == 0 && (config.verbose || first && config.fallback == Fallback::Warn) {
        let call = flavor.call();
        let line = format!("{call}: delegated to the MPI underneath: {}", why.text());
        // No other reason is worth opening a device for.
        let cause = if why == Why::NoDevice { Nic::get().err() } else { None };
        say(&cause.map_or(line.clone(), |cause| format!("{line} ({cause})")));
    }
}

/// Says why another node cannot be reached, who alone knows it.
pub fn no_contact(rank: u32, error: &Error) {
    let config = Config::get();
    if config.verbose || config.fallback != Fallback::Quiet {
        say(&format!("rank {rank}: {error}"));
    }
}
