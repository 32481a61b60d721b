//! The lines that this library writes when a program begins, before its first call. With
//! FOMPI_VERBOSE it writes that it is loaded, and its version. It also writes that it is not used,
//! if calls find the functions of the MPI before those of this library: no later call would show
//! that.

use crate::config::{self, Config, Fallback};
use crate::mpi::Host;
use crate::mpi::host::SearchOrder;
use crate::window::report;

/// The loader calls this after it has loaded the program with its libraries, or a module.
#[used]
#[unsafe(link_section = ".init_array")]
#[cfg(not(miri))]
static BEGIN: extern "C" fn() = begin;

extern "C" fn begin() {
    // Most processes that this library is preloaded into are shells and launchers.
    let Some((name, order)) = Host::seen() else { return };
    let (config, _) = Config::read();
    if !config::is_first_rank() {
        return;
    }
    let warns = config.verbose || config.fallback != Fallback::Quiet && !config.disable;
    match order {
        SearchOrder::InFront if config.verbose => {
            let version = env!("CARGO_PKG_VERSION");
            let idle = if config.disable { ", and FOMPI_DISABLE stops it" } else { "" };
            report::say(&format!("libfompi {version} is loaded in front of {name}{idle}"));
        }
        SearchOrder::Behind if warns => report::say(&format!(
            "{name} comes before libfompi.so in this program, so its own one-sided functions are \
             used: link -lfompi before the MPI, or start the program with fompirun"
        )),
        SearchOrder::Bound(caller) if warns => report::say(&format!(
            "{caller} was loaded before libfompi.so, so its one-sided calls go to {name}: load \
             libfompi.so first, or start the program with fompirun"
        )),
        _ => {}
    }
}
