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
use crate::output::{print_json, print_lines};
use findings::{FileRoot, Finding, Severity};
use fompi_base::config;
use serde::Serialize;
use std::process::ExitCode;

/// The answer, as `--json` prints it.
#[derive(Serialize)]
struct Report {
    findings: Vec<Finding>,
    /// the nodes of the job, if this process is a rank of one
    #[serde(skip_serializing_if = "Vec::is_empty")]
    nodes: Vec<String>,
}

/// Runs all checks, and prints what they have found. Status 1: an error or a warning.
pub fn print(options: &DoctorOptions) -> ExitCode {
    let library = find_library();
    // The settings are those that the library itself would have.
    let settings = config::settings_with(library.as_deref().ok());
    let root = FileRoot("/".into());
    let mut findings = program_checks::of_library(library.as_ref());
    findings.extend(program_checks::of_variables(&settings));
    findings
        .extend(program_checks::of_program(options.program.as_deref(), library.as_deref().ok()));
    findings.extend(program_checks::of_gpus(&root));
    findings.extend(kernel_checks::all(&root));
    findings.extend(memory_checks::all(&root));
    findings.extend(network_checks::all(&root));
    let mut nodes = Vec::new();
    if is_rank() {
        // Rank 0 prints.
        let Some(found) = job_checks::all(findings, library.as_deref().ok()) else {
            return ExitCode::SUCCESS;
        };
        (findings, nodes) = (found.findings, found.nodes);
    }
    findings.sort_by_key(|finding| finding.severity);
    let is_well = findings.iter().all(|finding| finding.severity == Severity::Note);
    let report = Report { findings, nodes };
    let printed = if options.json { print_json(&report) } else { print_lines(&report.lines()) };
    if is_well { printed } else { ExitCode::FAILURE }
}

impl Report {
    fn lines(&self) -> Vec<String> {
        let mut lines: Vec<_> = self.findings.iter().flat_map(Finding::lines).collect();
        let on = match self.nodes.as_slice() {
            [] => String::new(),
            nodes => format!(" on {}", nodes.join(", ")),
        };
        lines.push(match self.findings.len() {
            0 => format!("no problem found{on}"),
            1 => format!("1 finding{on}"),
            count => format!("{count} findings{on}"),
        });
        lines
    }
}
