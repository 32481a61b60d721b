//! What the library says by itself: a line per window if FOMPI_VERBOSE is set, and once per job
//! that windows are delegated. On standard error, from rank 0 of the window, one write per line.

use super::Flavor;
use crate::config::{Config, Fallback};
use crate::error::{Error, Result};
use crate::mpi::Host;
use crate::sync::{AtomicBool, Ordering};
use std::io::Write;

/// Why a window is left to the MPI underneath.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Why {
    /// the flavor is not ours yet
    Flavor,
    /// the processes share no memory
    NoRoad,
    /// a process has the run-time library of a GPU loaded
    Gpu,
}

impl Why {
    fn text(self) -> &'static str {
        match self {
            Why::Flavor => "this kind of window is not carried out by libfompi yet",
            Why::NoRoad => "its processes share no memory, and there is no other road yet",
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
pub fn made(host: &Host, flavor: Flavor, ranks: u32, bytes: u64) {
    if Config::get().verbose {
        let (call, abi) = (flavor.call(), host.abi_name());
        say(&format!("{call}: {ranks} ranks, {bytes} bytes, road: shared memory ({abi})"));
    }
}

/// Says that a window is delegated, or refuses that. Collective in its effect: the settings of all
/// ranks are the same, and so is `why`.
pub fn delegated(flavor: Flavor, why: Why, rank: u32) -> Result<()> {
    static SAID: AtomicBool = AtomicBool::new(false);
    let config = Config::get();
    if config.fallback == Fallback::Error {
        return Err(Error::Unsupported(why.text()));
    }
    // Relaxed: the flag orders nothing.
    let first = !SAID.swap(true, Ordering::Relaxed);
    if rank == 0 && (config.verbose || first && config.fallback == Fallback::Warn) {
        let (call, why) = (flavor.call(), why.text());
        say(&format!("{call}: delegated to the MPI underneath: {why}"));
    }
    Ok(())
}
