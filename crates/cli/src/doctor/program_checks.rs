//! The library, the program, its MPI and launcher, variables, and libraries of GPUs.

use super::findings::{FileRoot, Finding, Severity};
use crate::info::program_report;
use crate::run::launcher::Launcher;
use fompi_base::config::{Applied, GivenValue};
use fompi_base::messages::Line;
use std::ffi::OsStr;
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

/// Unknown variables, values that are ignored, and the one that switches the library off.
pub fn of_variables(settings: &Applied) -> Vec<Finding> {
    let finding = |problem: String, remedy: &str| Finding {
        severity: Severity::Error,
        check: "variable",
        problem,
        remedy: remedy.into(),
        page: "docs/reference/environment.md",
    };
    let list = "`fompi env` lists the variables and their values";
    let ignored = settings.warnings.iter().map(|warning| finding(warning.to_string(), list));
    let disabled = settings.in_force.iter().filter(|one| one.name == "FOMPI_DISABLE");
    let disabled =
        disabled.filter(|_| settings.config.disable).map(|GivenValue { source, .. }| {
            let problem =
                format!("FOMPI_DISABLE=1 (from {source}): the host MPI serves all windows");
            finding(problem, "unset it to use libfompi")
        });
    ignored.chain(disabled).collect()
}

fn file_name(path: &Path) -> &str {
    path.file_name().and_then(OsStr::to_str).unwrap_or_default()
}

/// Libraries of LD_PRELOAD that the loader does not find, and an order or a file of libfompi.so
/// that is not meant. `value`: the value of LD_PRELOAD.
pub fn of_preload(value: &str, library: Option<&Path>) -> Vec<Finding> {
    let paths: Vec<&Path> =
        value.split([':', ' ']).filter(|path| !path.is_empty()).map(Path::new).collect();
    let is_mpi =
        |path: &&&Path| file_name(path).starts_with("libmpi") && file_name(path).contains(".so");
    let finding = |problem, remedy: &str| Finding {
        severity: Severity::Error,
        check: "LD_PRELOAD",
        problem,
        remedy: remedy.into(),
        page: TROUBLE,
    };
    let absent = paths.iter().filter(|path| path.components().count() > 1 && !path.exists());
    let mut findings: Vec<Finding> = absent
        .map(|path| {
            let problem = format!("{}: no such file, so the loader ignores it", path.display());
            finding(problem, "correct the path, or unset LD_PRELOAD and use fompirun")
        })
        .collect();
    let ours = paths.iter().position(|path| file_name(path) == "libfompi.so");
    if let Some(mpi) = paths.iter().take(ours.unwrap_or(0)).find(is_mpi) {
        let problem = format!("{} comes ahead of libfompi.so, which is not used", mpi.display());
        findings.push(finding(problem, "name libfompi.so first"));
    }
    let real = |path: &Path| path.canonicalize().ok();
    if let Some((own, library)) = ours.map(|at| paths[at]).zip(library)
        && real(own).is_some_and(|own| real(library) != Some(own))
    {
        let (own, library) = (own.display(), library.display());
        let problem = format!("it names {own}, and fompirun preloads {library}");
        findings.push(finding(problem, "use the library and the programs of one installation"));
    }
    findings
}

/// The launcher for programs that name none.
pub fn of_launcher() -> Vec<Finding> {
    if Launcher::by_default(None).is_some() {
        return Vec::new();
    }
    vec![Finding {
        severity: Severity::Note,
        check: "launcher",
        problem: "no mpirun or mpiexec is in PATH or next to fompirun".into(),
        remedy: "install an MPI, load its module, or name its launcher by --mpi".into(),
        page: TROUBLE,
    }]
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_and_order_of_preloaded_libraries_are_checked() {
        let found = |value: &str| {
            let findings = of_preload(value, Some(Path::new("/etc/passwd")));
            findings.into_iter().map(|finding| finding.problem).collect::<Vec<_>>()
        };
        assert_eq!(found(""), [""; 0]);
        assert_eq!(found("libfompi.so libm.so.6"), [""; 0]);
        assert_eq!(found("libfompi.so:/etc/hosts"), [""; 0]);
        let absent = "/no/libfompi.so: no such file, so the loader ignores it";
        assert_eq!(found("/etc/hosts:/no/libfompi.so"), [absent]);
        let order = "libmpi.so.12 comes ahead of libfompi.so, which is not used";
        assert_eq!(found("libmpi.so.12:libfompi.so"), [order]);
    }
}
