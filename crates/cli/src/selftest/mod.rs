//! `fompi selftest`: the checks of the crate `fompi-selftest`, in the ranks of a job. As a rank of
//! a launcher it runs them; alone it starts a job for each transport of this machine.

pub mod mpi_libraries;
mod test_summary;
mod transport_jobs;

use crate::command_line::SelftestOptions;
use crate::found_library::find_library;
use crate::launched_job::is_rank;
use crate::output::print_lines;
use fompi_selftest::RankOptions;
use fompi_selftest::job_report::JobReport;
use std::process::ExitCode;
use std::time::Duration;
use test_summary::TestSummary;

/// The status if the checks could not run.
const COULD_NOT_RUN: u8 = 2;

/// Runs the checks and prints the results. Status 1: a check failed.
pub fn start(options: &SelftestOptions) -> ExitCode {
    let failed = if options.child || is_rank() {
        run_rank(options)
    } else {
        transport_jobs::run_all(options).map(|summary| {
            print(&summary, options.json);
            summary.failed > 0
        })
    };
    match failed {
        Ok(failed) => ExitCode::from(u8::from(failed)),
        Err(why) => {
            eprintln!("fompi selftest: could not run: {why}");
            ExitCode::from(COULD_NOT_RUN)
        }
    }
}

/// Runs the checks as a rank. Returns whether one failed, on rank 0; `fompi selftest` reads the
/// report of a job that it has started, and not its status.
fn run_rank(options: &SelftestOptions) -> Result<bool, String> {
    let libraries = match &options.library {
        Some(path) => vec![path.clone()],
        None => mpi_libraries::candidates(),
    };
    let write = match (options.child, options.json) {
        (true, _) => print_report,
        (false, true) => print_as_json,
        (false, false) => print_as_text,
    };
    let failed = fompi_selftest::run(&RankOptions {
        fompi: &find_library().map_err(|why| why.to_string())?,
        libraries: &libraries,
        limit: Duration::from_secs(options.limit),
        libfabric: &options.libfabric,
        is_child: options.child,
        skipped: &options.skip,
        write,
    })?;
    Ok(failed && !options.child)
}

fn print_report(report: &JobReport) {
    print_lines(&[serde_json::to_string(report).unwrap_or_default()]);
}

fn print_as_json(report: &JobReport) {
    print(&TestSummary::of(vec![report.clone()], Vec::new()), true);
}

fn print_as_text(report: &JobReport) {
    print(&TestSummary::of(vec![report.clone()], Vec::new()), false);
}

fn print(summary: &TestSummary, json: bool) {
    if json {
        crate::output::print_json(summary);
    } else {
        print_lines(&summary.lines());
    }
}
