//! The FOMPI_ environment variables, read once. A variable or value that is not known gives one
//! warning and is then ignored; nothing in the environment can make the library fail.

pub use crate::adopt_setting::Adopt;
pub use crate::net_settings::{Net, NetSettings, Ports, Verbs};

use std::io::Write;
use std::sync::OnceLock;

/// The action if a window has to be delegated to the host MPI.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fallback {
    /// write a line once per job
    Warn,
    /// write nothing
    Quiet,
    /// refuse to create the window
    Error,
}

/// The way in which data that are not contiguous go to other nodes, see
/// `fabric::wire::coalesce`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Strategy {
    /// chosen for each run
    Auto,
    /// each run by itself
    MaximalBlock,
    /// several runs in a buffer
    FixedBuffer,
    /// in a buffer as long as necessary
    TargetBlock,
}

/// The settings of this process. Ranks may differ in all of them but FOMPI_DISABLE and
/// FOMPI_RANKS_PER_NODE (`window::create::settings_check`). The other settings affect only what a
/// process writes and sends, or the ranks agree on their effect whenever they make a window.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Config {
    /// FOMPI_VERBOSE: one line per window
    pub verbose: bool,
    /// FOMPI_VERBOSE=2: a rank that waits long writes a line, and a table comes at the end of the
    /// job
    pub reports_waits: bool,
    /// FOMPI_DISABLE: the host MPI carries out all calls
    pub disable: bool,
    /// FOMPI_FALLBACK
    pub fallback: Fallback,
    /// FOMPI_NET, FOMPI_VERBS, and the variables whose names begin like them
    pub net: NetSettings,
    /// FOMPI_NET_SPIN: microseconds for which a waiting rank may spin before it sleeps, over TCP
    pub net_spin: Option<u32>,
    /// FOMPI_NET_TIMEOUT: seconds after which a process counts as lost whose node acknowledges
    /// nothing that was sent to it by TCP
    pub net_timeout: u32,
    /// FOMPI_RANKS_PER_NODE: this many ranks of a communicator count as being on one node, for
    /// tests
    pub ranks_per_node: Option<u32>,
    /// FOMPI_DATATYPES
    pub strategy: Strategy,
    /// FOMPI_STRICT: every wrong call is an error, also those that MPIs carry out
    pub strict: bool,
    /// FOMPI_ADOPT
    pub adopt: Adopt,
}

impl Default for Config {
    fn default() -> Config {
        Config {
            verbose: false,
            reports_waits: false,
            disable: false,
            fallback: Fallback::Warn,
            net: NetSettings::default(),
            net_spin: None,
            net_timeout: 10,
            ranks_per_node: None,
            strategy: Strategy::Auto,
            strict: false,
            adopt: Adopt::Auto,
        }
    }
}

/// Changes the settings as a value says. Returns `None` if the value is not valid, and changes
/// nothing then.
type Set = fn(&mut Config, &str) -> Option<()>;

/// One FOMPI_ variable. docs/reference/environment.md has a row for each, too.
struct Variable {
    name: &'static str,
    /// the valid values, as a warning lists them
    values: &'static str,
    set: Set,
}

/// All variables that the library reads.
const VARIABLES: [Variable; 18] = [
    Variable { name: "FOMPI_VERBOSE", values: "0, 1 or 2", set: set_verbose },
    Variable {
        name: "FOMPI_DISABLE",
        values: "0 or 1",
        set: |config, value| switch(value).map(|on| config.disable = on),
    },
    Variable {
        name: "FOMPI_FALLBACK",
        values: "warn, quiet or error",
        set: |config, value| choice(value, &FALLBACKS).map(|choice| config.fallback = choice),
    },
    Variable {
        name: "FOMPI_NET",
        values: "auto, verbs, tcp or off",
        set: |config, value| Net::parse(value).map(|choice| config.net.choice = choice),
    },
    Variable {
        name: "FOMPI_NET_INTERFACE",
        values: "the name of a network interface",
        set: |config, value| text(value).map(|name| config.net.interface = Some(name)),
    },
    Variable {
        name: "FOMPI_NET_SPIN",
        values: "a number of microseconds",
        set: |config, value| value.parse().ok().map(|us: u32| config.net_spin = Some(us)),
    },
    Variable {
        name: "FOMPI_NET_PORTS",
        values: "two ports from 1 to 65535, LOW-HIGH",
        set: |config, value| Ports::parse(value).map(|ports| config.net.ports = Some(ports)),
    },
    Variable {
        name: "FOMPI_NET_TIMEOUT",
        values: "a number of seconds from 1 on",
        set: |config, value| positive(value).map(|seconds| config.net_timeout = seconds),
    },
    Variable {
        name: "FOMPI_VERBS",
        values: "on or off",
        set: |config, value| switch(value).map(|on| config.net.verbs.wanted = on),
    },
    Variable {
        name: "FOMPI_VERBS_DEVICE",
        values: "a device's name, or name:port",
        set: set_device,
    },
    Variable {
        name: "FOMPI_VERBS_GID",
        values: "the index of an address, 0 to 255",
        set: |config, value| value.parse().ok().map(|gid| config.net.verbs.gid = Some(gid)),
    },
    Variable {
        name: "FOMPI_VERBS_MTU",
        values: "256, 512, 1024, 2048 or 4096",
        set: |config, value| mtu(value).map(|mtu| config.net.verbs.mtu = Some(mtu)),
    },
    Variable {
        name: "FOMPI_VERBS_INTERFACE",
        values: "the name of a network interface",
        set: |config, value| text(value).map(|name| config.net.older_interface = Some(name)),
    },
    Variable {
        name: "FOMPI_VERBS_LIBRARY",
        values: "a path",
        set: |config, value| text(value).map(|path| config.net.verbs.library = path),
    },
    Variable {
        name: "FOMPI_RANKS_PER_NODE",
        values: "a number from 1 on",
        set: |config, value| positive(value).map(|ranks| config.ranks_per_node = Some(ranks)),
    },
    Variable {
        name: "FOMPI_DATATYPES",
        values: "auto, block, buffer or target",
        set: |config, value| choice(value, &STRATEGIES).map(|choice| config.strategy = choice),
    },
    Variable {
        name: "FOMPI_STRICT",
        values: "0 or 1",
        set: |config, value| switch(value).map(|on| config.strict = on),
    },
    Variable {
        name: "FOMPI_ADOPT",
        values: "auto, never or always",
        set: |config, value| choice(value, &ADOPTIONS).map(|choice| config.adopt = choice),
    },
];

/// The variable that names a file to load. A privileged program ignores it.
const LOADS_A_FILE: &str = "FOMPI_VERBS_LIBRARY";
/// The variable of fompirun.
const OF_FOMPIRUN: [&str; 1] = ["FOMPI_LIB"];
/// Variables of the tests.
const OF_TESTS: [&str; 3] = ["FOMPI_CACHE", "FOMPI_SEEDS", "FOMPI_TEST_LARGE"];

/// Why a variable that names a file is ignored.
const PRIVILEGED: &str = "has more rights than the user that started it (setuid, for example)";

/// The variables in which launchers give a process its rank.
const RANKS: [&str; 4] = ["PMI_RANK", "PMIX_RANK", "OMPI_COMM_WORLD_RANK", "SLURM_PROCID"];

impl Config {
    /// Returns the settings. The first call reads them.
    pub fn get() -> &'static Config {
        static CONFIG: OnceLock<Config> = OnceLock::new();
        CONFIG.get_or_init(|| {
            let (config, warnings) = Config::read();
            if is_first_rank() {
                let lines: String = warnings.iter().map(|w| format!("fompi: {w}\n")).collect();
                let _ = std::io::stderr().write_all(lines.as_bytes());
            }
            config
        })
    }

    /// Returns the present settings, and warnings. A program may change the variables until its
    /// first call, so nothing is kept.
    pub fn read() -> (Config, Vec<String>) {
        let variables = std::env::vars_os()
            .filter_map(|(name, value)| Some((name.into_string().ok()?, value)))
            .map(|(name, value)| (name, value.to_string_lossy().into_owned()));
        Config::parse(variables, is_privileged())
    }

    /// Returns the settings that variables ask for, and warnings. `privileged`: the user that set
    /// them has fewer rights than this process, and may not choose what it loads.
    fn parse(
        variables: impl Iterator<Item = (String, String)>,
        privileged: bool,
    ) -> (Config, Vec<String>) {
        let mut config = Config::default();
        let mut warnings = Vec::new();
        for (name, value) in variables.filter(|(name, _)| name.starts_with("FOMPI_")) {
            if OF_FOMPIRUN.contains(&name.as_str()) || OF_TESTS.contains(&name.as_str()) {
                continue;
            }
            let Some(variable) = VARIABLES.iter().find(|variable| variable.name == name) else {
                let own = VARIABLES.map(|variable| variable.name);
                let names = [own.as_slice(), &OF_FOMPIRUN].concat().join(", ");
                warnings.push(format!("unknown variable {name}; the known ones are {names}"));
                continue;
            };
            if privileged && name == LOADS_A_FILE {
                warnings.push(format!("{name} is ignored: this program {PRIVILEGED}"));
            } else if (variable.set)(&mut config, &value).is_none() {
                let values = variable.values;
                warnings.push(format!("{name}={value} is ignored: it can be {values}"));
            }
        }
        (config, warnings)
    }
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

fn set_verbose(config: &mut Config, value: &str) -> Option<()> {
    let level = level(value)?;
    (config.verbose, config.reports_waits) = (level > 0, level > 1);
    Some(())
}

fn set_device(config: &mut Config, value: &str) -> Option<()> {
    let (device, port) = match value.split_once(':') {
        Some((device, port)) => (device, Some(port.parse().ok().filter(|port| *port > 0)?)),
        None => (value, None),
    };
    config.net.verbs.device = Some(text(device)?);
    config.net.verbs.port = port;
    Some(())
}

fn text(value: &str) -> Option<String> {
    (!value.is_empty()).then(|| value.to_owned())
}

fn mtu(value: &str) -> Option<u32> {
    value.parse().ok().filter(|mtu| [256, 512, 1024, 2048, 4096].contains(mtu))
}

fn switch(value: &str) -> Option<bool> {
    match value.to_ascii_lowercase().as_str() {
        "1" | "yes" | "on" | "true" => Some(true),
        "0" | "no" | "off" | "false" | "" => Some(false),
        _ => None,
    }
}

fn level(value: &str) -> Option<u32> {
    if value == "2" { Some(2) } else { switch(value).map(u32::from) }
}

fn positive(value: &str) -> Option<u32> {
    value.parse().ok().filter(|number| *number > 0)
}

/// Returns the value that a text names, in letters of either size.
pub(crate) fn choice<T: Copy>(value: &str, of: &[(&str, T)]) -> Option<T> {
    let found = of.iter().find(|(name, _)| name.eq_ignore_ascii_case(value));
    found.map(|(_, value)| *value)
}

/// The values of FOMPI_DATATYPES.
const STRATEGIES: [(&str, Strategy); 4] = [
    ("auto", Strategy::Auto),
    ("block", Strategy::MaximalBlock),
    ("buffer", Strategy::FixedBuffer),
    ("target", Strategy::TargetBlock),
];

/// The values of FOMPI_FALLBACK.
const FALLBACKS: [(&str, Fallback); 3] =
    [("warn", Fallback::Warn), ("quiet", Fallback::Quiet), ("error", Fallback::Error)];

/// The values of FOMPI_ADOPT.
pub(crate) const ADOPTIONS: [(&str, Adopt); 3] =
    [("auto", Adopt::Auto), ("never", Adopt::Never), ("always", Adopt::Always)];

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(variables: &[(&str, &str)]) -> (Config, Vec<String>) {
        parse_for(variables, false)
    }

    fn parse_for(variables: &[(&str, &str)], privileged: bool) -> (Config, Vec<String>) {
        Config::parse(variables.iter().map(|(n, v)| (n.to_string(), v.to_string())), privileged)
    }

    #[test]
    fn the_page_has_a_row_for_each_variable() {
        let readme = std::fs::read_to_string(concat!(
            env!("CARGO_MANIFEST_DIR"),
            "/../../docs/reference/environment.md"
        ));
        let readme = readme.unwrap();
        for name in VARIABLES.map(|variable| variable.name) {
            assert!(readme.contains(&format!("\n| `{name}` |")), "{name}");
        }
    }

    #[test]
    fn what_is_set_is_read() {
        let (config, warnings) = parse(&[("FOMPI_VERBOSE", "1"), ("FOMPI_FALLBACK", "error")]);
        assert!(config.verbose && !config.disable && config.fallback == Fallback::Error);
        assert!(warnings.is_empty());
    }

    #[test]
    fn two_levels_of_talking_are_read() {
        let levels = [("0", (false, false)), ("1", (true, false)), ("2", (true, true))];
        for (value, expected) in levels {
            let (config, warnings) = parse(&[("FOMPI_VERBOSE", value)]);
            assert_eq!((config.verbose, config.reports_waits), expected);
            assert!(warnings.is_empty());
        }
        assert_eq!(parse(&[("FOMPI_VERBOSE", "3")]).1.len(), 1);
    }

    #[test]
    fn what_is_said_of_rdma_devices_is_read() {
        let (config, warnings) = parse(&[
            ("FOMPI_VERBS_DEVICE", "mlx5_0:2"),
            ("FOMPI_VERBS_GID", "3"),
            ("FOMPI_VERBS_MTU", "1024"),
            ("FOMPI_VERBS_LIBRARY", "/opt/libibverbs.so"),
            ("FOMPI_VERBS", "off"),
        ]);
        assert!(warnings.is_empty());
        let expected = Verbs {
            wanted: false,
            library: String::from("/opt/libibverbs.so"),
            device: Some(String::from("mlx5_0")),
            port: Some(2),
            gid: Some(3),
            mtu: Some(1024),
        };
        assert_eq!(config.net.verbs, expected);
    }

    #[test]
    fn what_is_said_of_networks_is_read() {
        for (value, choice) in
            [("auto", Net::Auto), ("verbs", Net::Verbs), ("tcp", Net::Tcp), ("off", Net::Off)]
        {
            let (config, warnings) = parse(&[("FOMPI_NET", value), ("FOMPI_NET_PORTS", "7-70")]);
            assert!(warnings.is_empty());
            assert_eq!((config.net.choice, config.net.ports), (choice, Ports::parse("7-70")));
        }
    }

    #[test]
    fn a_new_name_of_a_setting_wins_over_the_old_one() {
        let (new, old) = (("FOMPI_NET_INTERFACE", "eth0"), ("FOMPI_VERBS_INTERFACE", "eth1"));
        let interface = |variables: &[_]| parse(variables).0.net.interface().map(str::to_owned);
        assert_eq!(interface(&[old]).as_deref(), Some("eth1"));
        for both in [[old, new], [new, old]] {
            assert_eq!(interface(&both).as_deref(), Some("eth0"));
        }
        let off = ("FOMPI_VERBS", "off");
        assert!(!parse(&[off]).0.net.tries_verbs());
        assert!(!parse(&[off, ("FOMPI_NET", "auto")]).0.net.tries_verbs());
        assert!(parse(&[off, ("FOMPI_NET", "verbs")]).0.net.tries_verbs());
    }

    #[test]
    fn nonsense_about_rdma_devices_gives_a_warning_each() {
        let wrong = [
            ("FOMPI_VERBS_DEVICE", "mlx5_0:0"),
            ("FOMPI_VERBS_DEVICE", ":1"),
            ("FOMPI_VERBS_GID", "256"),
            ("FOMPI_VERBS_MTU", "1500"),
            ("FOMPI_VERBS_INTERFACE", ""),
            ("FOMPI_NET", "udp"),
            ("FOMPI_NET_PORTS", "9-8"),
            ("FOMPI_NET_PORTS", "0-8"),
            ("FOMPI_NET_PORTS", "8000"),
            ("FOMPI_VERBS_PORT", "1"),
            ("FOMPI_VERBS", "perhaps"),
        ];
        for one in wrong {
            let (config, warnings) = parse(&[one]);
            assert_eq!((config.net, warnings.len()), (NetSettings::default(), 1), "{one:?}");
        }
    }

    #[test]
    fn a_privileged_program_loads_no_library_of_the_user_that_starts_it() {
        let variables = [("FOMPI_VERBS_LIBRARY", "/tmp/mine.so"), ("FOMPI_VERBOSE", "1")];
        let (config, warnings) = parse_for(&variables, true);
        assert_eq!((config.net, config.verbose), (NetSettings::default(), true));
        assert_eq!(warnings.len(), 1);
        assert_eq!(parse(&variables).0.net.verbs.library, "/tmp/mine.so");
    }

    #[test]
    fn nonsense_gives_a_warning_each_and_changes_nothing() {
        let (config, warnings) =
            parse(&[("FOMPI_VERBOSE", "loud"), ("FOMPI_VERBSE", "1"), ("HOME", "/")]);
        assert_eq!(config, parse(&[]).0);
        assert_eq!(warnings.len(), 2);
        assert!(warnings[1].ends_with(", FOMPI_ADOPT, FOMPI_LIB"), "{}", warnings[1]);
    }
}
