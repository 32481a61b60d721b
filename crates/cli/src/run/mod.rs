//! `fompirun`: mpirun with libfompi preloaded into the ranks, and into no other process.

pub mod check;
pub mod launcher;
mod launcher_options;
pub mod linked;
mod named_program;

use crate::command_line::{Fompirun, RunOptions};
use crate::found_library::{find_library, has_text, own_folder, version_line};
use crate::output::print_lines;
use crate::python_module::MpiModule;
use crate::searched_path::in_path;
use clap::{CommandFactory, Parser};
use fompi_base::messages::{self, Line, filled};
use launcher::{
    FIRST_IN_PATH, Launcher, LauncherFamily, interpreter_of, is_intel_library, path_for,
};
use linked::{is_elf, libraries_of};
use named_program::{find_program, look_at};
use std::env;
use std::ffi::{OsStr, OsString};
use std::fmt::Display;
use std::io::{Write, stdout};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};

/// Runs `fompirun` with these arguments.
pub fn start(words: Vec<OsString>) -> ExitCode {
    serve(words).unwrap_or_else(|why| {
        eprintln!("fompirun: {why}");
        ExitCode::from(2)
    })
}

fn serve(words: Vec<OsString>) -> Result<ExitCode, Line> {
    let (own, words) = split(words)?;
    let options = Fompirun::try_parse_from(own).map_err(|error| command_line_error(&error))?;
    let options = options.options;
    if options.help {
        let mut lines = vec![Fompirun::command().render_help().to_string()];
        lines.extend(find_library().ok().map(|library| version_line(&library)));
        return Ok(print_lines(&lines));
    }
    if let Some(program) = &options.check {
        return check_program(program, &words);
    }
    if options.version {
        return print_versions(&options);
    }
    if words.is_empty() {
        eprint!("{}", Fompirun::command().render_help());
        return Ok(ExitCode::from(2));
    }
    launch(&options, &find_library()?, &words)
}

fn print_versions(options: &RunOptions) -> Result<ExitCode, Line> {
    let library = version_line(&find_library()?);
    let launcher = match options.mpi.as_deref().filter(|name| !name.is_empty()) {
        Some(name) => Launcher::named(name),
        None => Launcher::by_default(None).ok_or_else(no_launcher),
    };
    let version = launcher.as_ref().ok().and_then(Launcher::version_line);
    let printed = print_lines(&[library].into_iter().chain(version).collect::<Vec<_>>());
    launcher.map(|_| printed)
}

fn no_launcher() -> Line {
    filled!(messages::NO_LAUNCHER).line()
}

fn command_line_error(why: &dyn Display) -> Line {
    filled!(messages::COMMAND_LINE; why).line()
}

/// Splits the words into the options of fompirun, which come first, and those of the launcher.
fn split(mut words: Vec<OsString>) -> Result<(Vec<OsString>, Vec<OsString>), Line> {
    let command = Fompirun::command();
    let mut own = 0;
    while let Some(word) = words.get(own).and_then(|word| word.to_str()) {
        let option = command.get_arguments().find(|argument| {
            let long = argument.get_long().map(|name| format!("--{name}"));
            let short = argument.get_short().map(|letter| format!("-{letter}"));
            let with_value = long.as_ref().map(|long| format!("{long}="));
            let takes_value = argument.get_action().takes_values();
            [long, short].contains(&Some(word.to_owned()))
                || takes_value && with_value.is_some_and(|start| word.starts_with(&start))
        });
        let Some(option) = option else { break };
        own += 1;
        if option.get_action().takes_values() && !word.contains('=') {
            if own == words.len() {
                let value = if word == "--mpi" { "a name or a path" } else { "a program" };
                return Err(filled!(messages::OPTION_VALUE; option = word, value).line());
            }
            own += 1;
        }
        if word.starts_with("--check") {
            break;
        }
    }
    let rest = words.split_off(own);
    Ok((words, rest))
}

fn check_program(program: &Path, more: &[OsString]) -> Result<ExitCode, Line> {
    if !more.is_empty() {
        let (option, value) = ("--check", "a program");
        return Err(filled!(messages::OPTION_VALUE; option, value).line());
    }
    if !program.is_file() {
        let program = program.display();
        return Err(filled!(messages::PROGRAM_ABSENT; program, searched = "").line());
    }
    let (uses, lines) = check::check(program);
    let printed = print_lines(&lines);
    Ok(if uses { printed } else { ExitCode::FAILURE })
}

/// What a program needs.
pub struct Needs {
    /// the launcher
    pub launcher: Launcher,
    /// its family
    pub family: LauncherFamily,
    /// libraries that are preloaded in front of all
    sanitizers: Vec<PathBuf>,
}

/// Fails if LD_PRELOAD cannot name a library.
pub fn is_preloadable(library: &Path) -> Result<(), Line> {
    match library.as_os_str().as_bytes().iter().any(|byte| b": ".contains(byte)) {
        true => Err(filled!(messages::PRELOAD_PATH; path = library.display()).line()),
        false => Ok(()),
    }
}

/// Returns the library with the names of the MPI Forum's proposal, in the folder of libfompi.so.
fn next_library(library: &Path) -> Result<PathBuf, Line> {
    let next = library.with_file_name("libfompi_next.so");
    let folder = library.parent().unwrap_or(Path::new("/")).display();
    match next.is_file() {
        true => Ok(next),
        false => Err(filled!(messages::NEXT_ABSENT; folder).line()),
    }
}

fn launch(options: &RunOptions, library: &Path, words: &[OsString]) -> Result<ExitCode, Line> {
    is_preloadable(library)?;
    let mut libraries = vec![library.to_owned()];
    if options.mpi_next {
        libraries.insert(0, next_library(library)?);
    }
    let named = options.mpi.as_deref().filter(|name| !name.is_empty());
    let named = named.map(Launcher::named).transpose()?;
    let program = find_program(words)?;
    if let Some(path) = &program.path {
        look_at(path)?;
    }
    let needs = needs_of(program.path.as_deref(), named, library)?;
    // Open MPI's launchers search in the working folder, too; Hydra does not.
    if let (Some(name), LauncherFamily::Hydra) = (&program.only_in_folder, needs.family) {
        return Err(filled!(messages::PROGRAM_NOT_IN_PATH; program = name).line());
    }
    let command = command_line(&needs, &libraries, words);
    if options.print {
        let line = shlex::bytes::try_join(command.iter().map(|word| word.as_bytes()));
        let line = line.map_err(|error| command_line_error(&error))?;
        let _ = stdout().write_all(&[&line[..], b"\n"].concat());
        return Ok(ExitCode::SUCCESS);
    }
    Err(execute(&needs, &command))
}

/// Replaces this process by the launcher; returns only if that fails.
fn execute(needs: &Needs, command: &[OsString]) -> Line {
    let mut job = Command::new(&command[0]);
    job.args(&command[1..]).env_remove("FOMPI_LIB"); // which means nothing to the library itself
    if let Some(path) = path_for(&needs.launcher.path) {
        job.env("PATH", path);
    }
    // Without this, Open MPI 5 starts what the ranks spawn without what -x says.
    let inherits = "PRTE_MCA_rmaps_default_inherit";
    if needs.family == LauncherFamily::OpenMpi
        && env::var_os(inherits).is_none_or(|value| value.is_empty())
    {
        job.env(inherits, "1");
    }
    let (launcher, cause) = (command[0].display(), job.exec());
    filled!(messages::LAUNCHER_FAILS; launcher, cause).line()
}

/// The command that starts the ranks with libraries of ours.
fn command_line(needs: &Needs, own: &[PathBuf], words: &[OsString]) -> Vec<OsString> {
    let present = env::var_os("LD_PRELOAD").filter(|present| !present.is_empty());
    let sanitizers = needs.sanitizers.iter().rev().map(|path| path.as_os_str().to_owned());
    let own = own.iter().map(|path| path.as_os_str().to_owned());
    let libraries: Vec<OsString> = sanitizers.chain(present).chain(own).collect();
    let preload = libraries.join(OsStr::new(":"));
    let mut command = vec![needs.launcher.path.clone().into_os_string()];
    if needs.family == LauncherFamily::Hydra {
        command.extend(["-genv".into(), "LD_PRELOAD".into(), preload]);
        command.extend_from_slice(words);
        return command;
    }
    let mut preloaded = OsString::from("LD_PRELOAD=");
    preloaded.push(preload);
    let mut settings = vec![OsString::from("-x"), preloaded];
    // Hydra passes the environment on to other nodes, Open MPI only what it is told to.
    for name in own_variables().filter(|name| name != "FOMPI_LIB") {
        settings.extend(["-x".into(), name.into()]);
    }
    command.extend_from_slice(&settings);
    for word in words {
        command.push(word.clone());
        // What -x says holds for one program of several.
        if word == ":" {
            command.extend_from_slice(&settings);
        }
    }
    command
}

/// The names of the FOMPI_ variables of this process, sorted.
fn own_variables() -> impl Iterator<Item = String> {
    let names = env::vars_os().filter_map(|(name, _)| name.into_string().ok());
    let mut names: Vec<String> = names.filter(|name| name.starts_with("FOMPI_")).collect();
    names.sort();
    names.into_iter()
}

/// Chooses the launcher of the program's own MPI, and finds the run-time of AddressSanitizer.
pub fn needs_of(
    program: Option<&Path>,
    named: Option<Launcher>,
    library: &Path,
) -> Result<Needs, Line> {
    let is_named = named.is_some();
    let launcher = named.or_else(|| Launcher::by_default(program));
    let libraries = match program.filter(|path| is_elf(path)) {
        Some(path) => libraries_of(path),
        None => Vec::new(),
    };
    let is_sanitizer =
        |name: &str| name.starts_with("libasan.so") || name.starts_with("libclang_rt.asan");
    let sanitizers = libraries.iter().filter(|needed| is_sanitizer(&needed.name));
    let sanitizers = sanitizers.filter_map(|needed| needed.path.clone()).collect();
    let mpi = libraries
        .iter()
        .find(|needed| needed.name.starts_with("libmpi") && needed.name.contains(".so"));
    let launcher = match (program, mpi) {
        (Some(program), Some(mpi)) => {
            let path = mpi.path.as_deref().unwrap_or(Path::new(""));
            suited(program, &mpi.name, path, launcher, is_named)?
        }
        (Some(program), None)
            if is_elf(program) && !is_own(program) && has_text(program, "MPI_Win_create") =>
        {
            let program = program.display();
            eprintln!("fompirun: {}", filled!(messages::STATIC_MPI; program).line());
            launcher.ok_or_else(no_launcher)?
        }
        _ => of_python(program.filter(|_| !is_named), launcher).ok_or_else(no_launcher)?,
    };
    let family = launcher.family().ok_or_else(|| not_known(&launcher, library))?;
    Ok(Needs { launcher, family, sanitizers })
}

/// Whether a program is `fompi`, which opens an MPI at run time for its selftest.
fn is_own(program: &Path) -> bool {
    let real = |path: &Path| path.canonicalize().ok();
    real(program).is_some() && real(program) == real(&own_folder().join("fompi"))
}

/// Returns the launcher of the MPI that mpi4py takes in a Python, in place of one of another MPI
/// that is only the first one in PATH.
fn of_python(program: Option<&Path>, launcher: Option<Launcher>) -> Option<Launcher> {
    let is_only_first = launcher.as_ref().is_none_or(|launcher| launcher.why == FIRST_IN_PATH);
    let python = program.filter(|_| is_only_first).and_then(interpreter_of);
    let library = python.and_then(|python| MpiModule::of(&python).ok()?.library);
    let other = library.and_then(|library| {
        let family = LauncherFamily::of_library(library.file_name()?.to_str()?)?;
        let suits = launcher.as_ref().and_then(Launcher::family) == Some(family);
        let mut other = Launcher::of_installation(family, &library).filter(|_| !suits)?;
        other.why = "it belongs to the MPI that mpi4py takes";
        Some(other)
    });
    other.or(launcher)
}

fn not_known(launcher: &Launcher, library: &Path) -> Line {
    let (launcher, library) = (launcher.path.display(), library.display());
    filled!(messages::LAUNCHER_UNKNOWN; launcher, library).line()
}

/// Returns a launcher of the MPI that a program is linked with: the given one if it is of that
/// family.
fn suited(
    program: &Path,
    mpi: &str,
    path: &Path,
    launcher: Option<Launcher>,
    is_named: bool,
) -> Result<Launcher, Line> {
    let Some(wanted) = LauncherFamily::of_library(mpi) else {
        return launcher.ok_or_else(no_launcher);
    };
    let family = launcher.as_ref().and_then(Launcher::family);
    let program = program.display();
    if let Some(launcher) = launcher.as_ref().filter(|_| family == Some(wanted)) {
        if is_named || !is_intel_library(path) || launcher.is_intel() {
            return Ok(launcher.clone());
        }
        return Launcher::of_installation(wanted, path).ok_or_else(|| {
            let launcher = launcher.path.display();
            filled!(messages::LAUNCHER_OF_INTEL; program, launcher).line()
        });
    }
    let other = Launcher::of_installation(wanted, path);
    match (launcher, other) {
        (_, Some(other)) if !is_named => Ok(other),
        (None, _) => Err(no_launcher()),
        // Of no family: said by the caller.
        (Some(launcher), _) if family.is_none() => Ok(launcher),
        (Some(launcher), other) => {
            let (launcher, remedy) = (launcher.path.display(), remedy(other.as_ref()));
            let owner = family.map_or("", LauncherFamily::owner);
            Err(filled!(messages::LAUNCHER_DIFFERS; program, mpi, launcher, owner, remedy).line())
        }
    }
}

/// The option that names another launcher.
fn remedy(other: Option<&Launcher>) -> String {
    let Some(path) = other.map(|other| other.path.as_path()) else {
        return "name that of the program's MPI with --mpi".into();
    };
    let name = path.file_name().and_then(OsStr::to_str).unwrap_or_default();
    let name = name.strip_prefix("mpirun.").filter(|_| in_path(name).as_deref() == Some(path));
    match name {
        Some(name) => format!("use --mpi {name}"),
        None => format!("use --mpi {}", path.display()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(line: &str) -> Vec<OsString> {
        line.split_whitespace().map(OsString::from).collect()
    }

    #[test]
    fn own_options_end_at_the_first_word_of_the_launcher() {
        for (line, own) in [
            ("--mpi mpich -n 2 ./put", 2),
            ("--mpi=mpich --print --mpi x ./put", 4),
            ("--mpi-next --mpi mpich -n 2 ./put", 3),
            ("-hosts a -n 1 ./put", 0),
            ("-n 1 --print ./put", 0),
            ("--version", 1),
            ("--check ./put --print", 2),
            ("./put --mpi x", 0),
        ] {
            let (found, rest) = split(words(line)).unwrap();
            assert_eq!((found.len(), rest.len()), (own, words(line).len() - own), "{line}");
        }
        for line in ["--mpi", "--print --check"] {
            assert!(split(words(line)).is_err(), "{line}");
        }
    }

    #[test]
    fn each_program_of_open_mpi_gets_the_settings() {
        let family = LauncherFamily::OpenMpi;
        let launcher = Launcher::at("/nonexistent/mpirun".into(), "a test");
        let needs = Needs { launcher, family, sanitizers: vec!["/a.so".into(), "/b.so".into()] };
        let command = command_line(&needs, &["/lib.so".into()], &words("-n 1 ./a : -n 2 ./b"));
        let preloads: Vec<_> = command
            .iter()
            .filter_map(|word| word.to_str()?.strip_prefix("LD_PRELOAD="))
            .map(|libraries| {
                libraries.ends_with("/lib.so") && libraries.starts_with("/b.so:/a.so:")
            })
            .collect();
        assert_eq!(preloads, [true, true]);
    }
}
