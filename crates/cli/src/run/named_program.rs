//! The program among the arguments of a launcher.

use super::launcher_options::values_of;
use crate::command_line::Fompirun;
use crate::searched_path::{in_path, is_executable};
use crate::suggestions::nearest;
use clap::CommandFactory;
use fompi_base::messages::{self, Line, filled};
use std::env;
use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};

/// The first program that a command line of a launcher names.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct NamedProgram {
    /// its path on this node; `None` if a file names the programs, if the launcher is only asked
    /// something, after an option that is not known, and if it is only on other nodes
    pub path: Option<PathBuf>,
    /// its name, if that is found in the working folder only, and not in PATH
    pub only_in_folder: Option<String>,
}

/// Variables that a job of a batch system has: it may start programs on other nodes.
const BATCH_JOBS: [&str; 3] = ["SLURM_JOB_ID", "PBS_JOBID", "LSB_JOBID"];

/// Options after which the programs may be on other nodes, and the beginnings of others.
const OF_OTHER_NODES: [&str; 7] =
    ["-H", "-f", "-machinefile", "--machinefile", "--path", "-path", "--prefix"];
const STARTS_OF_OTHER_NODES: [&str; 3] = ["-host", "-Host", "--host"];

/// Searches for the first program. A program that is not on this node may be on others.
pub fn find_program(words: &[OsString]) -> Result<NamedProgram, Line> {
    let is_set = |name: &str| env::var_os(name).is_some_and(|value| !value.is_empty());
    let mut is_here = !BATCH_JOBS.iter().any(|name| is_set(name));
    let mut folder = PathBuf::from(".");
    let mut at = 0;
    while let Some(word) = words.get(at) {
        // A name that is not UTF-8 is no option.
        let option = word.to_str().unwrap_or_default();
        if !option.starts_with('-') {
            return program_in(&folder, word, is_here);
        }
        refuse_own(option)?;
        match option {
            "--app" | "-app" | "-configfile" | "-info" => return Ok(NamedProgram::default()),
            "-wdir" | "--wdir" | "-wd" | "--wd" => {
                folder = words.get(at + 1).map_or(".".into(), PathBuf::from);
            }
            _ if OF_OTHER_NODES.contains(&option) || option == "-prefix" => is_here = false,
            _ if STARTS_OF_OTHER_NODES.iter().any(|start| option.starts_with(start)) => {
                is_here = false;
            }
            _ => {}
        }
        let Some(values) = values_of(option) else { return Ok(NamedProgram::default()) };
        at += 1 + values;
    }
    Err(filled!(messages::NO_PROGRAM).line())
}

/// Refuses an option of fompirun that comes after one of the launcher, and a misspelled one.
fn refuse_own(option: &str) -> Result<(), Line> {
    let own = Fompirun::command();
    let mut names = own.get_arguments().filter_map(|argument| argument.get_long());
    let name = option.split('=').next().unwrap_or(option);
    if ["--mpi", "--mpi-next", "--check", "--print"].contains(&name) {
        return Err(filled!(messages::OPTION_LATE; option).line());
    }
    let Some(word) = name.strip_prefix("--").filter(|_| values_of(name).is_none()) else {
        return Ok(());
    };
    if names.any(|own| own == word) {
        return Ok(()); // the launcher has it, too
    }
    let names = own.get_arguments().filter_map(|argument| argument.get_long());
    match nearest(word, names) {
        Some(nearest) => Err(filled!(messages::OPTION_UNKNOWN; option = name, nearest).line()),
        None => Ok(()),
    }
}

fn program_in(folder: &Path, word: &OsStr, is_here: bool) -> Result<NamedProgram, Line> {
    let (path, name) = (Path::new(word), word.display());
    let in_folder = folder.join(path);
    let mut only_in_folder = None;
    let found = if word.as_encoded_bytes().contains(&b'/') {
        Some(if folder == Path::new(".") { path.to_owned() } else { in_folder })
    } else {
        in_path(path).or_else(|| {
            let found = in_folder.is_file().then_some(in_folder);
            only_in_folder = found.as_ref().filter(|_| is_here).map(|_| name.to_string());
            found
        })
    };
    let found = found.filter(|path| path.exists());
    if is_here && found.is_none() {
        let searched = match (word.as_encoded_bytes().contains(&b'/'), folder == Path::new(".")) {
            (true, _) => String::new(),
            (false, true) => String::from(" in PATH or in this folder"),
            (false, false) => format!(" in PATH or in {}", folder.display()),
        };
        return Err(filled!(messages::PROGRAM_ABSENT; program = name, searched).line());
    }
    Ok(NamedProgram { path: found, only_in_folder })
}

/// Says what is wrong with a program, if it is that here as well as where it is started.
pub fn look_at(path: &Path) -> Result<(), Line> {
    let program = path.display();
    if path.is_dir() {
        return Err(filled!(messages::PROGRAM_IS_FOLDER; program).line());
    }
    if is_executable(path) {
        return Ok(());
    }
    let refused = |remedy: String| Err(filled!(messages::NOT_EXECUTABLE; program, remedy).line());
    let compiler = match path.extension().and_then(OsStr::to_str) {
        Some("py") => return refused(format!("fompirun ... python3 {program}")),
        Some("c") => "mpicc",
        Some("cc" | "cpp" | "cxx" | "C") => "mpicxx",
        Some("f" | "F" | "f90" | "F90" | "f08" | "F08") => "mpifort",
        _ => return refused("chmod +x, if it is a program".into()),
    };
    let target = path.with_extension("");
    let target = target.display();
    Err(filled!(messages::PROGRAM_IS_SOURCE; program, compiler, target).line())
}
