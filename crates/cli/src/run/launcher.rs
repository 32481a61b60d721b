//! Launchers of MPIs: where they are, and the family that each belongs to.

use crate::found_library::{has_text, own_folder};
use crate::searched_path::{in_path, is_executable};
use fompi_base::messages::{self, Line, filled};
use std::env;
use std::ffi::{OsStr, OsString};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// The families of launchers, which differ in how they set a variable for the ranks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LauncherFamily {
    /// MPICH's, and others of its kind
    Hydra,
    /// Open MPI's
    OpenMpi,
}

impl LauncherFamily {
    /// Its name in a message.
    pub fn owner(self) -> &'static str {
        match self {
            LauncherFamily::Hydra => "MPICH's or Intel MPI's",
            LauncherFamily::OpenMpi => "Open MPI's",
        }
    }

    /// Returns the family of the MPI that a library belongs to; `None` if any launcher will do.
    pub fn of_library(name: &str) -> Option<LauncherFamily> {
        let is_shared = |start: &str| name.starts_with(start) && name.contains(".so");
        let has_version = |versions: &[&str]| {
            let rest = name.split_once(".so.").filter(|(start, _)| start.starts_with("libmpi"));
            rest.is_some_and(|(_, rest)| versions.iter().any(|version| rest.starts_with(version)))
        };
        let of_mpich = ["libmpi.so.12", "libmpicxx.so.12", "libmpifort.so.12"];
        if is_shared("libmpich") || of_mpich.iter().any(|start| name.starts_with(start)) {
            Some(LauncherFamily::Hydra)
        } else {
            has_version(&["40", "20", "80"]).then_some(LauncherFamily::OpenMpi)
        }
    }
}

/// The name in the texts of Intel MPI's programs and library.
const INTEL_MPI: &str = "Intel(R) MPI";

/// The reason to choose a launcher that nothing else names.
pub const FIRST_IN_PATH: &str = "it is the first one in PATH";

/// A program that starts the ranks of a job.
#[derive(Clone, Debug)]
pub struct Launcher {
    /// its path
    pub path: PathBuf,
    /// what its `--version` prints
    version: String,
    /// why it is chosen
    pub why: &'static str,
}

impl Launcher {
    /// Asks a program for its version. `why`: the reason to choose it.
    pub fn at(path: PathBuf, why: &'static str) -> Launcher {
        let mut asked = Command::new(&path);
        asked.arg("--version").stdin(Stdio::null());
        if let Some(searched) = path_for(&path) {
            asked.env("PATH", searched);
        }
        let said = asked.output();
        let bytes = said.map(|said| [said.stdout, said.stderr].concat()).unwrap_or_default();
        Launcher { path, version: String::from_utf8_lossy(&bytes).into_owned(), why }
    }

    /// Returns the family; `None` for a program that is no launcher of a known MPI.
    pub fn family(&self) -> Option<LauncherFamily> {
        let has = |names: &[&str]| names.iter().any(|name| self.version.contains(name));
        if has(&["HYDRA", INTEL_MPI]) {
            Some(LauncherFamily::Hydra)
        } else {
            has(&["Open MPI", "OpenRTE", "PRRTE", "prterun"]).then_some(LauncherFamily::OpenMpi)
        }
    }

    /// Whether this is the launcher of Intel MPI.
    pub fn is_intel(&self) -> bool {
        self.version.contains(INTEL_MPI)
    }

    /// The line with its version; MPICH's has it in the second one.
    pub fn version_line(&self) -> Option<String> {
        let has_number = |line: &&str| {
            line.as_bytes()
                .windows(3)
                .any(|part| part[0].is_ascii_digit() && part[1] == b'.' && part[2].is_ascii_digit())
        };
        let line = self.version.lines().find(has_number)?;
        let words: Vec<&str> = line.split_whitespace().collect();
        Some(format!("{}: {}", self.path.display(), words.join(" ")))
    }

    /// Returns the launcher that `--mpi` names.
    pub fn named(name: &OsStr) -> Result<Launcher, Line> {
        let (path, shown) = (Path::new(name), name.display());
        let found = if !name.as_encoded_bytes().contains(&b'/') {
            let programs = ["mpirun", "mpiexec"].map(|start| format!("{start}.{shown}"));
            let found = programs.iter().find_map(in_path);
            found.ok_or_else(|| format!("neither {} nor {} in PATH", programs[0], programs[1]))
        } else if path.is_dir() {
            let found = launcher_in(&path.join("bin")).or_else(|| launcher_in(path));
            found.ok_or_else(|| String::from("no mpirun in it"))
        } else {
            let found = is_executable(path).then(|| path.to_owned());
            found.ok_or_else(|| "no such program".into())
        };
        let found = found.map(|path| Launcher::at(path, "--mpi names it"));
        found.map_err(|why| filled!(messages::LAUNCHER_ABSENT; name = shown, why).line())
    }

    /// Returns the launcher that is used for a program if `--mpi` names none: the one next to
    /// fompirun, the one next to the Python that is started, or the first one in PATH.
    pub fn by_default(program: Option<&Path>) -> Option<Launcher> {
        let at = |why| move |path| Launcher::at(path, why);
        let own = launcher_of_folder(&own_folder()).map(at("it is next to fompirun"));
        let python = || launcher_of_folder(&python_of(program?)?);
        let of_python = || python().map(at("it is next to the Python that is started"));
        let first = || in_path("mpirun").or_else(|| in_path("mpiexec"));
        own.or_else(of_python).or_else(|| first().map(at(FIRST_IN_PATH)))
    }

    /// Returns a launcher of a family, for a program that is linked with the MPI library at a path:
    /// that of the library's own installation; or in the system's folders, which have several MPIs,
    /// the one that is named after the family.
    pub fn of_installation(family: LauncherFamily, library: &Path) -> Option<Launcher> {
        let suits = |path: PathBuf| {
            let launcher = is_executable(&path).then(|| {
                Launcher::at(path, "it belongs to the MPI that the program is linked with")
            });
            launcher.filter(|launcher| launcher.family() == Some(family))
        };
        let is_prefix = |folder: &&Path| !["", "/", "/usr"].map(Path::new).contains(folder);
        let prefixes = library.ancestors().skip(1).take_while(is_prefix);
        let names = [
            "mpirun.mpich",
            "mpirun.openmpi",
            "mpiexec.hydra",
            "mpiexec.mpich",
            "mpiexec.openmpi",
            "mpirun",
            "mpiexec",
        ];
        let own = prefixes.map(|prefix| prefix.join("bin/mpirun")).find_map(suits);
        own.or_else(|| names.iter().filter_map(in_path).find_map(suits))
            .or_else(|| suits("/usr/bin/mpirun".into()))
    }
}

/// Returns a PATH with the folder of a launcher, because launchers that are scripts call their
/// companions by name; `None` if PATH has it.
pub fn path_for(launcher: &Path) -> Option<OsString> {
    let folder = std::path::absolute(launcher).ok()?.parent()?.to_owned();
    let path = env::var_os("PATH").unwrap_or_default();
    if env::split_paths(&path).any(|one| one == folder) {
        return None;
    }
    env::join_paths([folder].into_iter().chain(env::split_paths(&path))).ok()
}

/// Whether a library is Intel MPI's. MPICH's launcher starts its programs, but many ranks crash.
pub fn is_intel_library(path: &Path) -> bool {
    has_text(path, &format!("{INTEL_MPI} Library"))
}

fn launcher_in(folder: &Path) -> Option<PathBuf> {
    ["mpirun", "mpiexec"].map(|name| folder.join(name)).into_iter().find(|at| is_executable(at))
}

/// Returns the launcher in a folder that belongs to one installation. In the folder of the system's
/// programs, PATH decides.
fn launcher_of_folder(folder: &Path) -> Option<PathBuf> {
    let is_system_folder = ["/usr/bin", "/bin"].iter().any(|name| folder == Path::new(name));
    if is_system_folder { None } else { launcher_in(folder) }
}

/// Returns the folder of the Python that a program is, or that a script names in its first line.
fn python_of(program: &Path) -> Option<PathBuf> {
    // Links are not followed: the Python of a virtual environment is a link to another one.
    std::path::absolute(interpreter_of(program)?.parent()?).ok()
}

/// Returns the Python that a program is, or that a script names in its first line: its name alone,
/// if PATH has no such program.
pub fn interpreter_of(program: &Path) -> Option<PathBuf> {
    let is_python = |path: &PathBuf| {
        path.file_name().is_some_and(|name| name.as_encoded_bytes().starts_with(b"python"))
    };
    if is_python(&program.to_owned()) {
        return Some(program.to_owned());
    }
    let start = fs::read(program).ok().filter(|text| text.starts_with(b"#!"))?;
    let line = String::from_utf8_lossy(start.split(|byte| *byte == b'\n').next()?);
    let mut words = line[2..].split_whitespace();
    let interpreter = PathBuf::from(words.next()?);
    let is_setting = |word: &&str| word.starts_with('-') || word.contains('=');
    let python = match interpreter.ends_with("env") {
        true => {
            let name = words.find(|word| !is_setting(word))?;
            in_path(name).unwrap_or_else(|| name.into())
        }
        false => interpreter,
    };
    Some(python).filter(is_python)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_library_of_an_mpi_has_its_family() {
        let of = LauncherFamily::of_library;
        for name in ["libmpich.so.12", "libmpichfort.so.12", "libmpi.so.12", "libmpifort.so.12.5"] {
            assert_eq!(of(name), Some(LauncherFamily::Hydra), "{name}");
        }
        for name in ["libmpi.so.40", "libmpi_mpifh.so.40.30.4", "libmpi.so.20", "libmpi.so.80"] {
            assert_eq!(of(name), Some(LauncherFamily::OpenMpi), "{name}");
        }
        for name in ["libmpi_abi.so.0", "libmpi.so", "libmpi.so.1", "libm.so.40"] {
            assert_eq!(of(name), None, "{name}");
        }
    }

    #[test]
    fn the_version_of_a_launcher_is_its_first_line_with_a_number() {
        let of = |version: &str| Launcher {
            path: "/a/mpirun".into(),
            version: version.into(),
            why: "a test",
        };
        let hydra = of("HYDRA build details:\n    Version:      4.0.2\n    Release: 1.1\n");
        assert_eq!(hydra.version_line().as_deref(), Some("/a/mpirun: Version: 4.0.2"));
        assert_eq!(hydra.family(), Some(LauncherFamily::Hydra));
        assert_eq!(of("mpirun (Open MPI) 4.1.4\n").family(), Some(LauncherFamily::OpenMpi));
        assert_eq!((of("a 1 b").version_line(), of("true 8").family()), (None, None));
    }
}
