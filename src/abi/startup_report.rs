//! Messages at program start, before the first MPI call. With FOMPI_VERBOSE libfompi prints that it
//! is loaded, and its version. It warns of variables and values that it ignores. It also reports
//! that it is not used, if the program's calls resolve to functions of the MPI before those of
//! libfompi: no later call could report that.

use crate::config::{self, Config, Fallback};
use crate::messages::{self, filled};
use crate::mpi::Host;
use crate::mpi::host::SearchOrder;
use crate::report;

/// The loader calls this function after it has loaded the program with its libraries, or a module.
#[used]
#[unsafe(link_section = ".init_array")]
#[cfg(not(miri))]
static REPORT: extern "C" fn() = report_startup;

extern "C" fn report_startup() {
    // Most processes into which libfompi is preloaded are shells and launchers.
    let Some((name, order)) = Host::seen() else { return };
    let (config, warnings) = Config::read();
    if !config::is_first_rank() {
        return;
    }
    config::print_new(&warnings);
    let warns = config.verbose || config.fallback != Fallback::Quiet && !config.disable;
    match order {
        SearchOrder::InFront => {
            let version = env!("CARGO_PKG_VERSION");
            let idle = if config.disable { ", and FOMPI_DISABLE stops it" } else { "" };
            let text = format!("libfompi {version} is loaded in front of {name}{idle}");
            report::inform(&config, &text);
        }
        SearchOrder::Behind if warns => filled!(messages::BEHIND; name).line().print(),
        SearchOrder::Bound(caller) if warns => {
            filled!(messages::BOUND; caller, name).line().print();
        }
        SearchOrder::Behind | SearchOrder::Bound(_) => {}
    }
}
