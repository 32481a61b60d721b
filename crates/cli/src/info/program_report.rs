//! The MPI, the launcher and the layer of one-sided calls that a program gets, and why.

use crate::launched_job::is_rank;
use crate::python_module::MpiModule;
use crate::run::check::check;
use crate::run::launcher::{Launcher, LauncherFamily, interpreter_of, is_intel_library};
use crate::run::linked::{is_elf, libraries_of};
use crate::run::needs_of;
use crate::searched_path::in_path;
use crate::selftest::mpi_libraries;
use fompi_base::messages::{self, Line, filled};
use serde::Serialize;
use std::ffi::OsStr;
use std::path::{Path, PathBuf};

/// What a file is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
enum ProgramKind {
    /// a program that is linked with libraries
    Program,
    /// a Python, or a script for one
    Python,
    /// a script for another interpreter
    Script,
    /// mpirun and the like
    Launcher,
}

/// A program and what it gets.
#[derive(Serialize)]
pub struct ProgramReport {
    path: PathBuf,
    kind: ProgramKind,
    /// of a script for Python
    interpreter: Option<InterpreterReport>,
    mpi: MpiReport,
    launcher: LauncherReport,
    layer: LayerReport,
}

/// The Python that runs a script.
#[derive(Serialize)]
struct InterpreterReport {
    path: PathBuf,
    why: &'static str,
}

/// The MPI library of a program.
#[derive(Default, Serialize)]
struct MpiReport {
    /// its file
    library: Option<PathBuf>,
    abi: Option<&'static str>,
    /// where it comes from
    why: Option<String>,
    why_not: Option<String>,
}

/// The launcher that fompirun takes.
#[derive(Serialize)]
struct LauncherReport {
    path: Option<PathBuf>,
    version: Option<String>,
    why: Option<&'static str>,
    why_not: Option<String>,
}

/// The layer that serves one-sided calls: "libfompi" or "host MPI".
#[derive(Serialize)]
struct LayerReport {
    /// if fompirun starts it
    with_fompirun: &'static str,
    /// if the launcher starts it without LD_PRELOAD
    alone: &'static str,
    why: Vec<String>,
}

const OURS: &str = "libfompi";
const HOSTS: &str = "host MPI";

/// Returns the report about a program, by its path or its name in PATH. `preloaded`: whether the
/// environment preloads libfompi.
pub fn of(name: &Path, library: Option<&Path>, preloaded: bool) -> Result<ProgramReport, Line> {
    let path = match name.components().count() {
        1 if !name.is_file() || name.is_absolute() => in_path(name),
        _ => Some(name.to_owned()),
    };
    let path = path.filter(|path| path.is_file());
    let path = path.ok_or_else(|| {
        filled!(messages::PROGRAM_ABSENT; program = name.display(), searched = "").line()
    })?;
    let interpreter = script_interpreter(&path);
    let python = match &interpreter {
        Some(found) => Some(found.path.clone()),
        None => interpreter_of(&path),
    };
    let kind = match &python {
        _ if is_launcher(&path) => ProgramKind::Launcher,
        Some(_) => ProgramKind::Python,
        None if is_elf(&path) => ProgramKind::Program,
        None => ProgramKind::Script,
    };
    let mpi = match (&python, kind) {
        (_, ProgramKind::Launcher) => mpi_of_launcher(&path),
        (Some(python), _) => MpiModule::of(python).map_or_else(without_mpi, mpi_of_module),
        (None, ProgramKind::Program) => mpi_of_program(&path),
        (None, _) => without_mpi("a script may start any program: name that program".into()),
    };
    let launcher = launcher_of(&path, python.as_deref(), kind, library, &mpi);
    let mut layer = layer_of(&path, kind, library.is_some(), &mpi);
    if preloaded && layer.alone != OURS {
        layer = LayerReport {
            alone: layer.with_fompirun,
            why: vec!["LD_PRELOAD of this environment has libfompi.so".into()],
            ..layer
        };
    }
    Ok(ProgramReport { path, kind, interpreter, mpi, launcher, layer })
}

/// Whether a file has the name of a launcher: others are not asked for their version.
fn is_launcher(path: &Path) -> bool {
    let name = path.file_name().and_then(OsStr::to_str).unwrap_or_default();
    ["mpirun", "mpiexec", "prterun", "orterun"].iter().any(|start| name.starts_with(start))
}

/// Returns the Python that runs a script: that of its first line, or for a source of Python the one
/// that a user most likely names. `None` for other files.
fn script_interpreter(path: &Path) -> Option<InterpreterReport> {
    if let Some(python) = interpreter_of(path) {
        let why = "the first line of the script names it";
        return (python != path).then_some(InterpreterReport { path: python, why });
    }
    let is_source = path.extension().is_some_and(|end| end == "py");
    let why = "the script names none, and this is the python3 of PATH";
    let python = || in_path("python3").unwrap_or_else(|| "python3".into());
    is_source.then(|| InterpreterReport { path: python(), why })
}

fn without_mpi(why_not: String) -> MpiReport {
    MpiReport { why_not: Some(why_not), ..MpiReport::default() }
}

/// The name of the binary interface of an MPI library; `None` if only the library itself tells.
fn abi_of(library: &str) -> Option<&'static str> {
    match LauncherFamily::of_library(library) {
        Some(family) => Some(abi_of_family(family)),
        None => library.starts_with("libmpi_abi.so").then_some("MPI-5 ABI"),
    }
}

fn abi_of_family(family: LauncherFamily) -> &'static str {
    match family {
        LauncherFamily::Hydra => "MPICH ABI",
        LauncherFamily::OpenMpi => "Open MPI ABI",
    }
}

fn mpi_of_program(path: &Path) -> MpiReport {
    let libraries = libraries_of(path);
    let mpi =
        libraries.iter().find(|one| one.name.starts_with("libmpi") && one.name.contains(".so"));
    let Some(mpi) = mpi else {
        return without_mpi("the program is linked with no shared MPI".into());
    };
    let lost = mpi.path.is_none().then(|| format!("the loader does not find {}", mpi.name));
    MpiReport {
        library: mpi.path.clone(),
        abi: abi_of(&mpi.name),
        why: Some(format!("the program is linked with {}", mpi.name)),
        why_not: lost,
    }
}

fn mpi_of_module(module: MpiModule) -> MpiReport {
    let why = format!("mpi4py {} has {}", module.version, module.file.display());
    let Some(library) = module.library else {
        return MpiReport {
            why: Some(why),
            why_not: Some("the loader does not find the MPI of that module".into()),
            ..MpiReport::default()
        };
    };
    let name = library.file_name().and_then(OsStr::to_str).unwrap_or_default();
    // mpi4py may have opened it by a name without a version.
    let of_intel = || is_intel_library(&library).then(|| abi_of_family(LauncherFamily::Hydra));
    let abi = abi_of(name).or_else(of_intel);
    MpiReport { abi, library: Some(library), why: Some(why), why_not: None }
}

fn mpi_of_launcher(path: &Path) -> MpiReport {
    match Launcher::at(path.to_owned(), "it is named").family() {
        Some(family) => MpiReport {
            abi: Some(abi_of_family(family)),
            why: Some("programs have to be linked with the MPI of their launcher".into()),
            ..MpiReport::default()
        },
        None => without_mpi("the launcher is neither MPICH's, Intel MPI's nor Open MPI's".into()),
    }
}

fn launcher_of(
    path: &Path,
    python: Option<&Path>,
    kind: ProgramKind,
    library: Option<&Path>,
    mpi: &MpiReport,
) -> LauncherReport {
    if is_rank()
        && let Some((family, path)) = mpi_libraries::own_launcher()
    {
        return LauncherReport {
            path: Some(path),
            version: None,
            why: Some("it has started this rank"),
            why_not: differs(mpi, Some(family)),
        };
    }
    let found = match kind {
        ProgramKind::Launcher => Ok(Launcher::at(path.to_owned(), "it is named")),
        _ => {
            let program = python.filter(|_| !is_elf(path)).unwrap_or(path);
            let library = library.unwrap_or(Path::new("libfompi.so"));
            needs_of(Some(program), None, library).map(|needs| needs.launcher)
        }
    };
    let launcher = match found {
        Ok(launcher) => launcher,
        Err(why) => {
            let why_not = Some(why.to_string());
            return LauncherReport { path: None, version: None, why: None, why_not };
        }
    };
    LauncherReport {
        why_not: differs(mpi, launcher.family()),
        version: launcher.version_line().map(|line| {
            line.split_once(": ").map_or(line.clone(), |(_, version)| version.to_owned())
        }),
        why: Some(launcher.why),
        path: Some(launcher.path),
    }
}

/// Why a launcher of a family does not suit an MPI.
fn differs(mpi: &MpiReport, launcher: Option<LauncherFamily>) -> Option<String> {
    let (abi, own) = mpi.abi.zip(launcher.map(abi_of_family))?;
    (abi != own && abi != "MPI-5 ABI").then(|| {
        format!("each rank will be alone: the program has the {abi}, the launcher the {own}")
    })
}

fn layer_of(path: &Path, kind: ProgramKind, has_library: bool, mpi: &MpiReport) -> LayerReport {
    let (alone, mut why) = match kind {
        ProgramKind::Program => check(path),
        _ => (false, vec!["nothing loads libfompi in front of the MPI".into()]),
    };
    for line in &mut why {
        let start = format!("fompirun: {} ", path.display());
        *line = line.trim_start_matches(&start).trim_start_matches("fompirun: ").to_owned();
    }
    let is_static = kind == ProgramKind::Program && mpi.library.is_none();
    LayerReport {
        with_fompirun: if has_library && !is_static { OURS } else { HOSTS },
        alone: if alone { OURS } else { HOSTS },
        why,
    }
}

impl ProgramReport {
    /// Returns the MPI library of the program.
    pub fn mpi_library(&self) -> Option<&Path> {
        self.mpi.library.as_deref()
    }

    /// Returns why the launcher does not suit the program, if it does not.
    pub fn launcher_problem(&self) -> Option<&str> {
        self.launcher.why_not.as_deref()
    }

    /// Returns why the program does not run on libfompi, if it does not.
    pub fn problem(&self) -> Option<String> {
        self.mpi.why_not.clone().or_else(|| self.launcher.why_not.clone())
    }

    /// The lines about the program.
    pub fn lines(&self) -> Vec<String> {
        let kind = match self.kind {
            ProgramKind::Program => "a program",
            ProgramKind::Python => "Python",
            ProgramKind::Script => "a script",
            ProgramKind::Launcher => "a launcher",
        };
        let shown = |path: &Option<PathBuf>| {
            path.as_ref().map_or_else(|| "none".into(), |path| path.display().to_string())
        };
        let mut lines = vec![format!("{}: {kind}", self.path.display())];
        let mut add = |name: &str, value: String, why: Option<&str>, why_not: &Option<String>| {
            let why = why.map(|why| format!(", because {why}")).unwrap_or_default();
            lines.push(format!("    {name}: {value}{why}"));
            lines.extend(why_not.iter().map(|why_not| format!("        why not: {why_not}")));
        };
        if let Some(InterpreterReport { path, why }) = &self.interpreter {
            add("interpreter", path.display().to_string(), Some(why), &None);
        }
        let mpi = &self.mpi;
        let abi = mpi.abi.map(|abi| format!(" ({abi})")).unwrap_or_default();
        add("MPI", shown(&mpi.library) + &abi, mpi.why.as_deref(), &mpi.why_not);
        let launcher = &self.launcher;
        let version =
            launcher.version.as_ref().map(|said| format!(" ({said})")).unwrap_or_default();
        add("launcher", shown(&launcher.path) + &version, launcher.why, &launcher.why_not);
        let layer = &self.layer;
        add("one-sided calls under fompirun", layer.with_fompirun.into(), None, &None);
        add("one-sided calls without fompirun", layer.alone.into(), None, &None);
        lines.extend(layer.why.iter().map(|why| format!("        {why}")));
        lines
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_mpi_library_has_the_interface_of_its_family() {
        assert_eq!(abi_of("libmpi.so.12"), Some("MPICH ABI"));
        assert_eq!(abi_of("libmpi.so.40"), Some("Open MPI ABI"));
        assert_eq!(abi_of("libmpi_abi.so.0"), Some("MPI-5 ABI"));
        assert_eq!(abi_of("libmpi.so.1"), None);
    }

    #[test]
    fn a_launcher_is_known_by_its_name() {
        for name in ["/usr/bin/mpirun", "/a/mpiexec.hydra", "prterun"] {
            assert!(is_launcher(Path::new(name)), "{name}");
        }
        assert!(!is_launcher(Path::new("/a/mpi_app")));
    }
}
