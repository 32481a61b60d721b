//! The FOMPI_ variables of this process, read once: those of the environment, and those of the
//! configuration files. The environment wins. A variable or value that is not known gives one
//! warning and is then ignored; nothing in the environment or in a file can make the library fail.

pub use crate::adopt_setting::Adopt;
pub use crate::config_files::{GivenValue, ValueSource, files};
pub use crate::net_settings::{Net, NetSettings, Ports, Verbs};
pub use crate::settings::{Config, Fallback};

use crate::config_files;
use crate::known_names::unknown;
use crate::messages::{self, Filled, Line, filled};
use crate::object_at::object_at;
use crate::variables::{self, LOADS_A_FILE, OF_TESTS, VARIABLES};
use parking_lot::Mutex;
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::sync::OnceLock;

/// The variables in which launchers give a process its rank.
const RANKS: [&str; 4] = ["PMI_RANK", "PMIX_RANK", "OMPI_COMM_WORLD_RANK", "SLURM_PROCID"];

/// Values and warnings.
type Read = (Vec<GivenValue>, Vec<Line>);

/// The settings that values ask for.
pub struct Applied {
    /// the settings
    pub config: Config,
    /// the values in force, at most one for each variable; the others have their defaults
    pub in_force: Vec<GivenValue>,
    /// what is ignored, and why
    pub warnings: Vec<Line>,
}

impl Config {
    /// Returns the settings. The first call reads them.
    pub fn get() -> &'static Config {
        CONFIG.get_or_init(|| {
            let (config, warnings) = Config::read();
            print_new(&warnings);
            config
        })
    }

    /// Returns the present settings, and warnings. A program may change its variables until its
    /// first call, so only the contents of files are kept.
    pub fn read() -> (Config, Vec<Line>) {
        let files = FILES.get_or_init(|| {
            let own = object_at(Config::read as *const () as usize);
            let path = own.as_ref().map(|(path, _)| Path::new(OsStr::from_bytes(path.to_bytes())));
            from_files(path)
        });
        let applied = apply(files.clone(), is_privileged());
        (applied.config, applied.warnings)
    }
}

/// Prints the warnings that this process has not printed before, if it is rank 0.
pub fn print_new(warnings: &[Line]) {
    static PRINTED: Mutex<Vec<Line>> = Mutex::new(Vec::new());
    let mut printed = PRINTED.lock();
    for warning in warnings {
        if is_first_rank() && !printed.contains(warning) {
            warning.print();
            printed.push(warning.clone());
        }
    }
}

/// The settings of this process, once they are read.
static CONFIG: OnceLock<Config> = OnceLock::new();

/// What the files say, once they are read.
static FILES: OnceLock<Read> = OnceLock::new();

/// Returns the settings of a process that loads the library at a path and has the environment of
/// this one. In a program, they are also what [`Config::get`] returns, if this is called first; the
/// caller then prints the warnings.
pub fn settings_with(library: Option<&Path>) -> Applied {
    let applied = apply(FILES.get_or_init(|| from_files(library)).clone(), is_privileged());
    CONFIG.get_or_init(|| applied.config.clone());
    applied
}

/// Returns the values in the configuration files of the library at a path.
fn from_files(library: Option<&Path>) -> Read {
    let files = files(library);
    let read = files.iter().map(|path| config_files::read(path, is_privileged()));
    read.fold((Vec::new(), Vec::new()), |(mut values, mut warnings), more| {
        values.extend(more.0);
        warnings.extend(more.1);
        (values, warnings)
    })
}

/// Applies the values of files, then those of the environment.
fn apply((mut values, mut warnings): Read, privileged: bool) -> Applied {
    let variables = std::env::vars_os().filter_map(|(name, value)| {
        let (name, value) = (name.into_string().ok()?, value.to_string_lossy().into_owned());
        Some(GivenValue { name, value, source: ValueSource::Environment })
    });
    values.extend(variables);
    let mut applied = apply_values(values, privileged);
    warnings.append(&mut applied.warnings);
    Applied { warnings, ..applied }
}

/// Applies values; later ones win. `privileged`: the user that set them has fewer rights than this
/// process, and may not choose what it loads.
fn apply_values(values: Vec<GivenValue>, privileged: bool) -> Applied {
    let (mut config, mut warnings) = (Config::default(), Vec::new());
    let mut in_force: Vec<GivenValue> = Vec::new();
    for given in values.into_iter().filter(|given| given.name.starts_with("FOMPI_")) {
        let GivenValue { name, value, source } = &given;
        let mut warn = |why: Filled<'_>| {
            warnings.push(match source {
                ValueSource::Environment => why.line(),
                ValueSource::File(..) => why.message.line(format_args!("{source}: {why}")),
            });
        };
        if OF_TESTS.contains(&name.as_str()) {
            continue;
        }
        let Some(variable) = variables::named(name) else {
            unknown(name, &names().collect::<Vec<_>>(), warn);
            continue;
        };
        let is_of_environment = *source == ValueSource::Environment;
        match variable.set {
            None if is_of_environment => {}
            None => {
                warn(filled!(messages::OF_FOMPIRUN; name));
                continue;
            }
            Some(_) if privileged && name == LOADS_A_FILE => {
                warn(filled!(messages::PRIVILEGED; name));
                continue;
            }
            Some(set) if set(&mut config, value).is_none() => {
                let values = variable.values;
                warn(filled!(messages::VALUE_IGNORED; name, value, values));
                continue;
            }
            Some(_) => {}
        }
        in_force.retain(|other| other.name != *name);
        in_force.push(given);
    }
    Applied { config, in_force, warnings }
}

/// Returns the names of all variables.
pub fn names() -> impl Iterator<Item = &'static str> {
    VARIABLES.iter().map(|variable| variable.name)
}

/// Whether there is a variable with a name, of the library, of fompirun or of the tests.
pub fn is_variable(name: &str) -> bool {
    variables::named(name).is_some() || OF_TESTS.contains(&name)
}

/// Whether this process runs with more rights than the user that started it, who chose its
/// environment (setuid, setgid, file capabilities; ld.so(8), secure-execution mode).
#[allow(unsafe_code)]
fn is_privileged() -> bool {
    // SAFETY: a system call that writes to no memory of this process.
    unsafe { libc::getauxval(libc::AT_SECURE) != 0 }
}

/// Whether this is rank 0, as far as launchers say: one warning per job is enough.
pub fn is_first_rank() -> bool {
    rank().is_none_or(|rank| rank == 0)
}

/// The rank of this process in MPI_COMM_WORLD, as far as launchers say.
pub fn rank() -> Option<u32> {
    RANKS.iter().find_map(|name| std::env::var(name).ok()?.parse().ok())
}

/// Returns the variable in which the launcher says that the rank of this process in MPI_COMM_WORLD
/// is `world_rank`.
pub fn rank_variable(world_rank: u32) -> Option<&'static str> {
    let says = |name: &&str| std::env::var(name).is_ok_and(|value| value.parse() == Ok(world_rank));
    RANKS.into_iter().find(says)
}

#[cfg(test)]
mod tests;
