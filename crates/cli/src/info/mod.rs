//! `fompi info`: the MPI and the layer that a program gets, and what this machine has for windows,
//! with the reason for each thing that it lacks.

mod job_transports;
pub mod machine_facts;
pub mod program_report;

use crate::command_line::InfoOptions;
use crate::found_library::{find_library, version_of};
use crate::launched_job::is_rank;
use crate::output::{print_json, print_lines};
use crate::run::is_preloadable;
use fompi_base::config;
use fompi_selftest::job_group::SETTINGS;
use job_transports::JobTransports;
use machine_facts::MachineFact;
use program_report::ProgramReport;
use serde::Serialize;
use std::env;
use std::ffi::OsStr;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};

/// The answer, as `--json` prints it.
#[derive(Serialize)]
struct Info<'a> {
    libfompi: &'a LibraryReport,
    #[serde(skip_serializing_if = "Option::is_none")]
    program: Option<&'a ProgramReport>,
    machine: &'a [MachineFact],
    /// the job that this process is a rank of
    #[serde(skip_serializing_if = "Option::is_none")]
    job: Option<JobTransports>,
}

/// The library that fompirun preloads.
#[derive(Serialize)]
struct LibraryReport {
    library: Option<PathBuf>,
    version: Option<String>,
    /// whether LD_PRELOAD has it in the present environment
    preloaded: bool,
    why_not: Option<String>,
}

/// Prints what is known about a program and this machine.
pub fn print(options: &InfoOptions) -> ExitCode {
    let mut libfompi = library_report();
    if is_rank()
        && options.rank.is_none()
        && let Some(library) = libfompi.library.as_deref()
    {
        let error = restart(library, libfompi.preloaded);
        eprintln!("fompi: {error}");
        return ExitCode::FAILURE;
    }
    libfompi.preloaded = options.rank.unwrap_or(libfompi.preloaded);
    // The settings are those that the library itself would have.
    let settings = config::settings_with(libfompi.library.as_deref());
    // The library in a rank prints them itself.
    if options.rank.is_none() {
        config::print_new(&settings.warnings);
    }
    let LibraryReport { library, preloaded, .. } = &libfompi;
    let report = |name| program_report::of(name, library.as_deref(), *preloaded);
    let program = match options.program.as_deref().map(report).transpose() {
        Ok(program) => program,
        Err(why) => {
            eprintln!("fompi: {why}");
            return ExitCode::from(2);
        }
    };
    let machine = if config::is_first_rank() { machine_facts::all() } else { Vec::new() };
    let mpi = match program.as_ref().and_then(ProgramReport::launcher_problem) {
        Some(why) => Err(why),
        None => Ok(program.as_ref().and_then(ProgramReport::mpi_library)),
    };
    let print = |job: Option<JobTransports>| {
        let info = Info { libfompi: &libfompi, program: program.as_ref(), machine: &machine, job };
        if options.json { print_json(&info) } else { print_lines(&info.lines()) }
    };
    if !is_rank() {
        return print(None);
    }
    let on_timeout = |job| {
        print(Some(job));
    };
    // Rank 0 prints.
    let job = job_transports::collect(library.as_deref(), mpi, on_timeout);
    job.map_or(ExitCode::SUCCESS, |job| print(Some(job)))
}

/// Replaces this process by one into which the library is preloaded, as into the ranks of fompirun:
/// what it does with memory depends on that. Returns only if that fails.
fn restart(library: &Path, preloaded: bool) -> String {
    let own = match env::current_exe() {
        Ok(own) => own,
        Err(error) => return error.to_string(),
    };
    if let Err(line) = is_preloadable(library) {
        return line.to_string();
    }
    let mut again = Command::new(own);
    again.args(env::args_os().skip(1)).arg(format!("--rank={preloaded}")).envs(SETTINGS);
    if !preloaded {
        let present = env::var_os("LD_PRELOAD").filter(|present| !present.is_empty());
        let libraries: Vec<_> = present.into_iter().chain([library.into()]).collect();
        again.env("LD_PRELOAD", libraries.join(OsStr::new(":")));
    }
    again.exec().to_string()
}

fn library_report() -> LibraryReport {
    let found = find_library();
    let preload = env::var("LD_PRELOAD").unwrap_or_default();
    let preloaded = preload.split([':', ' ']).any(|path| path.ends_with("/libfompi.so"));
    let version = found.as_ref().ok().and_then(|path| version_of(path));
    let version = version.map(|text| text.trim_start_matches("libfompi version ").to_owned());
    let why_not = match (&found, &version) {
        (Err(why), _) => Some(why.to_string()),
        (Ok(_), None) => Some("the file has no version of libfompi".into()),
        (Ok(_), Some(_)) => None,
    };
    LibraryReport { library: found.ok(), version, preloaded, why_not }
}

impl Info<'_> {
    fn lines(&self) -> Vec<String> {
        let LibraryReport { library, version, preloaded, why_not } = self.libfompi;
        let path = library.as_ref().map(|path| path.display().to_string()).unwrap_or_default();
        let mut lines = vec![match (version, why_not) {
            (Some(version), _) => format!("libfompi: {version} ({path})"),
            (None, why) => format!("libfompi: none: {}", why.as_deref().unwrap_or_default()),
        }];
        if *preloaded {
            lines.push("    LD_PRELOAD has a libfompi.so in this environment".into());
        }
        lines.extend(self.program.iter().flat_map(|program| program.lines()));
        lines.push("this machine:".into());
        lines.extend(self.machine.iter().map(MachineFact::line));
        lines.extend(self.job.iter().flat_map(JobTransports::lines));
        lines
    }
}
