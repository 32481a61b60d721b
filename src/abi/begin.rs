//! What is said when a program begins, before it has called anything: with FOMPI_VERBOSE that the
//! library is there, and which version; and that it is there in vain, where the program was linked
//! so that the functions of its MPI come before those of this library. No call would tell.

use crate::config::{self, Config, Fallback};
use crate::mpi::Host;
use crate::window::report;

/// The loader calls this after it has loaded the program with its libraries, or a module.
#[used]
#[unsafe(link_section = ".init_array")]
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
