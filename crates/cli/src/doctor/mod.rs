//! `fompi doctor`: what keeps libfompi from working here, or from working fast, each with its
//! remedy and the page that explains it.

mod findings;
mod gid_checks;
mod job_checks;
mod kernel_checks;
mod memory_checks;
mod network_checks;
mod program_checks;

use crate::command_line::DoctorOptions;
use crate::found_library::find_library;
use crate::launched_job::is_rank;
use findings::{FileRoot, Report};
use fompi_base::config;
use std::process::ExitCode;

/// Runs all checks, and prints what they have found. Status 1: an error or a warning.
pub fn print(options: &DoctorOptions) -> ExitCode {
    let library = find_library();
    // The settings are those that the library itself would have.
    let settings = config::settings_with(library.as_deref().ok());
    let root = FileRoot("/".into());
    // First: without /proc, no other check finds anything.
    let mut findings = kernel_checks::all(&root);
    findings.extend(program_checks::of_library(library.as_ref()));
    findings.extend(program_checks::of_variables(&settings));
    let preload = std::env::var("LD_PRELOAD").unwrap_or_default();
    findings.extend(program_checks::of_preload(&preload, library.as_deref().ok()));
    let program = options.program.as_deref();
    findings.extend(program_checks::of_program(program, library.as_deref().ok()));
    if program.is_none() && !is_rank() {
        findings.extend(program_checks::of_launcher());
    }
    findings.extend(program_checks::of_gpus(&root));
    findings.extend(memory_checks::all(&root));
    findings.extend(network_checks::all(&root));
    let report = if is_rank() {
        let on_timeout = |report: Report| {
            report.print(options.json);
        };
        // Rank 0 prints.
        let Some(report) = job_checks::all(&findings, library.as_deref().ok(), on_timeout) else {
            return ExitCode::SUCCESS;
        };
        report
    } else {
        Report { findings, nodes: Vec::new() }
    };
    report.print(options.json)
}
