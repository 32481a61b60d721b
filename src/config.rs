//! The FOMPI_ environment variables, read once. A variable or value that is not known gives one
//! warning and is then ignored; nothing in the environment can make the library fail.

use std::io::Write;
use std::sync::OnceLock;

/// What to do about a window that has to be delegated to the MPI underneath.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fallback {
    /// say so once per job
    Warn,
    /// say nothing
    Quiet,
    /// refuse to create the window
    Error,
}

/// The settings of this process.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Config {
    /// FOMPI_VERBOSE: one line per window
    pub verbose: bool,
    /// FOMPI_DISABLE: everything goes to the MPI underneath
    pub disable: bool,
    /// FOMPI_FALLBACK
    pub fallback: Fallback,
}

const VARIABLES: &str = "FOMPI_VERBOSE, FOMPI_DISABLE, FOMPI_FALLBACK";
/// Variables that belong to the scripts that come with the library, not to the library.
const OTHERS: [&str; 3] = ["FOMPI_LIB", "FOMPI_SEEDS", "FOMPI_TEST_LARGE"];

/// Where launchers tell a process its rank.
const RANKS: [&str; 4] = ["PMI_RANK", "PMIX_RANK", "OMPI_COMM_WORLD_RANK", "SLURM_PROCID"];

impl Config {
    /// The settings, read at the first call.
    pub fn get() -> &'static Config {
        static CONFIG: OnceLock<Config> = OnceLock::new();
        CONFIG.get_or_init(|| {
            let variables = std::env::vars_os()
                .filter_map(|(name, value)| Some((name.into_string().ok()?, value)))
                .map(|(name, value)| (name, value.to_string_lossy().into_owned()));
            let (config, warnings) = Config::parse(variables);
            if is_first_rank() {
                let lines: String = warnings.iter().map(|w| format!("fompi: {w}\n")).collect();
                let _ = std::io::stderr().write_all(lines.as_bytes());
            }
            config
        })
    }

    fn parse(variables: impl Iterator<Item = (String, String)>) -> (Config, Vec<String>) {
        let mut config = Config { verbose: false, disable: false, fallback: Fallback::Warn };
        let mut warnings = Vec::new();
        for (name, value) in variables.filter(|(name, _)| name.starts_with("FOMPI_")) {
            let known = match name.as_str() {
                "FOMPI_VERBOSE" => switch(&value).map(|on| config.verbose = on),
                "FOMPI_DISABLE" => switch(&value).map(|on| config.disable = on),
                "FOMPI_FALLBACK" => fallback(&value).map(|choice| config.fallback = choice),
                other if OTHERS.contains(&other) => Some(()),
                _ => {
                    warnings.push(format!("unknown variable {name}; there are {VARIABLES}"));
                    continue;
                }
            };
            if known.is_none() {
                warnings.push(format!("{name}={value} is not understood and ignored"));
            }
        }
        (config, warnings)
    }
}

/// Whether this is rank 0, as far as launchers say: one warning per job is enough.
fn is_first_rank() -> bool {
    let rank = RANKS.iter().find_map(|name| std::env::var(name).ok());
    rank.is_none_or(|rank| rank == "0")
}

fn switch(value: &str) -> Option<bool> {
    match value.to_ascii_lowercase().as_str() {
        "1" | "yes" | "on" | "true" => Some(true),
        "0" | "no" | "off" | "false" | "" => Some(false),
        _ => None,
    }
}

fn fallback(value: &str) -> Option<Fallback> {
    match value.to_ascii_lowercase().as_str() {
        "warn" => Some(Fallback::Warn),
        "quiet" => Some(Fallback::Quiet),
        "error" => Some(Fallback::Error),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(variables: &[(&str, &str)]) -> (Config, Vec<String>) {
        Config::parse(variables.iter().map(|(n, v)| (n.to_string(), v.to_string())))
    }

    #[test]
    fn what_is_set_is_read() {
        let (config, warnings) = parse(&[("FOMPI_VERBOSE", "1"), ("FOMPI_FALLBACK", "error")]);
        assert!(config.verbose && !config.disable && config.fallback == Fallback::Error);
        assert!(warnings.is_empty());
    }

    #[test]
    fn nonsense_gives_a_warning_each_and_changes_nothing() {
        let (config, warnings) =
            parse(&[("FOMPI_VERBOSE", "loud"), ("FOMPI_VERBSE", "1"), ("HOME", "/")]);
        assert_eq!(config, parse(&[]).0);
        assert_eq!(warnings.len(), 2);
    }
}
