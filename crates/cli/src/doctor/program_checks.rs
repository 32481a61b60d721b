//! The library, the program, its MPI and launcher, variables, and libraries of GPUs.

use super::findings::{FileRoot, Finding, Severity};
use crate::info::program_report;
use fompi_base::config::Applied;
use fompi_base::messages::Line;
use std::path::{Path, PathBuf};
use std::process::Command;

const TROUBLE: &str = "docs/guide/troubleshooting.md";

/// The library: whether it is there, and whether this machine's loader takes it.
pub fn of_library(library: Result<&PathBuf, &Line>) -> Vec<Finding> {
    let of = |problem: String, remedy: &str| {
        vec![Finding {
            severity: Severity::Error,
            check: "libfompi.so",
            problem,
            remedy: remedy.into(),
            page: TROUBLE,
        }]
    };
    let library = match library {
        Ok(library) => library,
        Err(why) => return of(why.to_string(), "build it, install it, or name it with FOMPI_LIB"),
    };
    let said = Command::new("true").env("LD_PRELOAD", library).output();
    let said = said.map(|said| String::from_utf8_lossy(&said.stderr).into_owned());
    match said.ok().filter(|said| said.contains("ld.so")) {
        Some(said) => of(
            format!("the loader refuses {}: {}", library.display(), said.trim()),
            "use a library that was built for this processor and for the glibc of this machine \
             (scripts/release builds for glibc 2.28 and newer)",
        ),
        None => Vec::new(),
    }
}

/// Unknown variables, and values that are ignored.
pub fn of_variables(settings: &Applied) -> Vec<Finding> {
    let finding = |warning: &Line| Finding {
        severity: Severity::Error,
        check: "variable",
        problem: warning.to_string(),
        remedy: "`fompi env` lists the variables and their values".into(),
        page: "docs/reference/environment.md",
    };
    settings.warnings.iter().map(finding).collect()
}

/// A program, its MPI and its launcher.
pub fn of_program(program: Option<&Path>, library: Option<&Path>) -> Vec<Finding> {
    let Some(program) = program else { return Vec::new() };
    let why = match program_report::of(program, library, false) {
        Ok(report) => report.problem(),
        Err(why) => Some(why.to_string()),
    };
    let finding = |problem| Finding {
        severity: Severity::Error,
        check: "program",
        problem,
        remedy: format!("`fompi info {}` shows the MPI and the launcher", program.display()),
        page: TROUBLE,
    };
    why.map(finding).into_iter().collect()
}

/// Libraries of GPUs that are there, but not for this process.
pub fn of_gpus(root: &FileRoot) -> Vec<Finding> {
    let has_driver = !root.text("proc/driver/nvidia/version").is_empty();
    let has_file = root.names("dev").iter().any(|name| name == "nvidiactl");
    if !has_driver || has_file {
        return Vec::new();
    }
    vec![Finding {
        severity: Severity::Note,
        check: "GPU",
        problem: "the kernel has NVIDIA's driver, and /dev/nvidiactl is absent".into(),
        remedy: "start the container with the GPUs (--gpus all, --nv)".into(),
        page: "docs/reference/limits.md#gpus",
    }]
}
