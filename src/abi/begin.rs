//! The lines that this library writes when a program begins, before its first call. With
//! FOMPI_VERBOSE it writes that it is loaded, and its version. It also writes that it is not used,
//! if the program is linked such that the functions of its MPI come before those of this library:
//! no later call would show that.

use crate::config::{self, Config, Fallback};
use crate::mpi::Host;
use crate::window::report;

/// The loader calls this after it has loaded the program with its libraries, or a module.
#[used]
#[unsafe(link_section = ".init_array")]
#[cfg(not(miri))]
static BEGIN: extern "C" fn() = begin;

extern "C" fn begin() {
    // Most processes that this library is preloaded into are shells and launchers.
    let Some((name, is_behind)) = Host::seen() else { return };
    let (config, _) = Config::read();
    if !config::is_first_rank() {
        return;
    }
    if is_behind && (config.verbose || config.fallback != Fallback::Quiet && !config.disable) {
        report::say(&format!(
            "{name} comes before libfompi.so in this program, so its own one-sided functions are \
             used: link -lfompi before the MPI, or start the program with fompirun"
        ));
    } else if config.verbose {
        let version = env!("CARGO_PKG_VERSION");
        let idle = if config.disable { ", and FOMPI_DISABLE stops it" } else { "" };
        report::say(&format!("libfompi {version} is loaded in front of {name}{idle}"));
    }
}
