//! The FOMPI_ variables: their values, defaults and meanings, and the functions that read them.

use crate::adopt_setting::Adopt;
use crate::net_settings::{Net, Ports};
use crate::settings::{Config, Fallback};

/// Changes the settings as a value says. Returns `None` if the value is not valid, and changes
/// nothing then.
type Set = fn(&mut Config, &str) -> Option<()>;

/// The value of a variable that is not set.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DefaultValue {
    /// the same as with this value
    Is(&'static str),
    /// in words: no value has the same effect on every machine
    Words(&'static str),
}

impl DefaultValue {
    /// The value or the words.
    pub fn text(self) -> &'static str {
        match self {
            DefaultValue::Is(text) | DefaultValue::Words(text) => text,
        }
    }
}

/// One FOMPI_ variable. docs/reference/environment.md has the same texts.
#[derive(Debug)]
pub struct Variable {
    /// its name
    pub name: &'static str,
    /// the valid values, as a warning lists them
    pub values: &'static str,
    /// the value without it
    pub default: DefaultValue,
    /// whether all ranks of a job have to agree on it
    pub is_common: bool,
    /// values, or what they are, each with its meaning
    pub meanings: &'static [(&'static str, &'static str)],
    /// reads a value; `None` for a variable that only fompirun reads
    pub(crate) set: Option<Set>,
}

/// All variables.
pub static VARIABLES: [Variable; 19] = [
    Variable {
        name: "FOMPI_VERBOSE",
        values: "0, 1 or 2",
        default: DefaultValue::Is("0"),
        is_common: false,
        meanings: &[
            (
                "1",
                "prints a line for each kind of window; after 20 s, names ranks that have not \
                 joined the creation of a window",
            ),
            ("2", "as 1, and wait reports"),
        ],
        set: Some(set_verbose),
    },
    Variable {
        name: "FOMPI_DISABLE",
        values: "0 or 1",
        default: DefaultValue::Is("0"),
        is_common: true,
        meanings: &[("1", "passes every call to the host MPI")],
        set: Some(|config, value| switch(value).map(|on| config.disable = on)),
    },
    Variable {
        name: "FOMPI_FALLBACK",
        values: "warn, quiet or error",
        default: DefaultValue::Is("warn"),
        is_common: false,
        meanings: &[
            (
                "warn",
                "prints one line for the first window of a job that falls back to the host MPI",
            ),
            ("quiet", "prints no line"),
            ("error", "a window that would have to fall back is an error"),
        ],
        set: Some(|config, value| choice(value, &FALLBACKS).map(|choice| config.fallback = choice)),
    },
    Variable {
        name: "FOMPI_NET",
        values: "auto, verbs, tcp or off",
        default: DefaultValue::Is("auto"),
        is_common: false,
        meanings: &[
            (
                "auto",
                "windows over several nodes use RDMA if all ranks have a device, otherwise TCP, \
                 unless the host MPI may use a faster network",
            ),
            ("verbs", "they use RDMA, or fall back to the host MPI"),
            ("tcp", "they use TCP on any network"),
            ("off", "they fall back to the host MPI"),
        ],
        set: Some(|config, value| Net::parse(value).map(|choice| config.net.choice = choice)),
    },
    Variable {
        name: "FOMPI_NET_INTERFACE",
        values: "the name of a network interface",
        default: DefaultValue::Words("all interfaces"),
        is_common: false,
        meanings: &[("name", "processes listen and connect on this network interface only (TCP)")],
        set: Some(|config, value| text(value).map(|name| config.net.interface = Some(name))),
    },
    Variable {
        name: "FOMPI_NET_SPIN",
        values: "a number of microseconds",
        default: DefaultValue::Words("50"),
        is_common: false,
        meanings: &[(
            "microseconds",
            "over TCP, the time without a request of another process after which a waiting \
                 rank sleeps. 0: it sleeps at once, as it always does if the node has more ranks \
                 than cores",
        )],
        set: Some(|config, value| value.parse().ok().map(|us: u32| config.net_spin = Some(us))),
    },
    Variable {
        name: "FOMPI_NET_PORTS",
        values: "two ports from 1 to 65535, LOW-HIGH",
        default: DefaultValue::Words("any port"),
        is_common: false,
        meanings: &[("LOW-HIGH", "processes listen on ports of this range, for firewalls")],
        set: Some(|config, value| Ports::parse(value).map(|ports| config.net.ports = Some(ports))),
    },
    Variable {
        name: "FOMPI_NET_TIMEOUT",
        values: "a number of seconds from 1 on",
        default: DefaultValue::Is("10"),
        is_common: false,
        meanings: &[(
            "seconds",
            "over TCP, a process counts as lost if its node acknowledges nothing for this \
                 time. A process that is only stopped is not lost",
        )],
        set: Some(|config, value| positive(value).map(|seconds| config.net_timeout = seconds)),
    },
    Variable {
        name: "FOMPI_VERBS",
        values: "on or off",
        default: DefaultValue::Is("on"),
        is_common: false,
        meanings: &[("off", "no RDMA device is used, unless FOMPI_NET=verbs")],
        set: Some(|config, value| switch(value).map(|on| config.net.verbs.wanted = on)),
    },
    Variable {
        name: "FOMPI_VERBS_DEVICE",
        values: "a device's name, or name:port",
        default: DefaultValue::Words("the first active and suitable one"),
        is_common: false,
        meanings: &[("name or name:port", "the device and port to use")],
        set: Some(set_device),
    },
    Variable {
        name: "FOMPI_VERBS_GID",
        values: "the index of an address, 0 to 255",
        default: DefaultValue::Words("one of RoCE v2 over IPv4, if there is one"),
        is_common: false,
        meanings: &[("index", "the GID of the port to use")],
        set: Some(|config, value| value.parse().ok().map(|gid| config.net.verbs.gid = Some(gid))),
    },
    Variable {
        name: "FOMPI_VERBS_MTU",
        values: "256, 512, 1024, 2048 or 4096",
        default: DefaultValue::Words("that of the port"),
        is_common: false,
        meanings: &[("bytes", "the maximum packet size")],
        set: Some(|config, value| mtu(value).map(|mtu| config.net.verbs.mtu = Some(mtu))),
    },
    Variable {
        name: "FOMPI_VERBS_LIBRARY",
        values: "a path",
        default: DefaultValue::Is("libibverbs.so.1"),
        is_common: false,
        meanings: &[("path", "the libibverbs to load; ignored in a setuid program")],
        set: Some(|config, value| text(value).map(|path| config.net.verbs.library = path)),
    },
    Variable {
        name: "FOMPI_RANKS_PER_NODE",
        values: "a number from 1 on",
        default: DefaultValue::Words("the ranks of each machine"),
        is_common: true,
        meanings: &[(
            "number",
            "each group of this many ranks of a communicator counts as one node, for tests",
        )],
        set: Some(|config, value| positive(value).map(|ranks| config.ranks_per_node = Some(ranks))),
    },
    Variable {
        name: "FOMPI_STRICT",
        values: "0 or 1",
        default: DefaultValue::Is("0"),
        is_common: false,
        meanings: &[("1", "invalid calls that the host MPIs carry out are errors, too")],
        set: Some(|config, value| switch(value).map(|on| config.strict = on)),
    },
    Variable {
        name: "FOMPI_CHECK",
        values: "none or conflicts",
        default: DefaultValue::Is("none"),
        is_common: false,
        meanings: &[(
            "conflicts",
            "accesses of a process to the same bytes in one epoch that conflict are errors; slow",
        )],
        set: Some(|config, value| choice(value, &CHECKS).map(|choice| config.conflicts = choice)),
    },
    Variable {
        name: "FOMPI_ORDER",
        values: "mpi or strict",
        default: DefaultValue::Is("mpi"),
        is_common: false,
        meanings: &[
            ("mpi", "operations take effect in the order that the standard demands"),
            (
                "strict",
                "for debugging: the operations of a process on a rank take effect in the order of \
                 their calls, on windows of libfompi",
            ),
        ],
        set: Some(|config, value| {
            choice(value, &ORDERS).map(|is_strict| config.strict_order = is_strict)
        }),
    },
    Variable {
        name: "FOMPI_ADOPT",
        values: "auto, never or always",
        default: DefaultValue::Is("auto"),
        is_common: false,
        meanings: &[
            (
                "auto",
                "pages under a window of MPI_Win_create become shared memory, if it is proved \
                 that no code can notice; at a limited rate",
            ),
            ("never", "no pages are adopted"),
            ("always", "as auto, without that limit, and on Linux 6.1 to 6.4, too"),
        ],
        set: Some(|config, value| choice(value, &ADOPTIONS).map(|choice| config.adopt = choice)),
    },
    Variable {
        name: "FOMPI_LIB",
        values: "a path",
        default: DefaultValue::Words("libfompi.so of the same installation"),
        is_common: false,
        meanings: &[("path", "for fompirun: the library to preload")],
        set: None,
    },
];

/// The variable that names a file to load. A privileged program ignores it.
pub(crate) const LOADS_A_FILE: &str = "FOMPI_VERBS_LIBRARY";
/// Variables of the tests.
pub(crate) const OF_TESTS: [&str; 3] = ["FOMPI_CACHE", "FOMPI_SEEDS", "FOMPI_TEST_LARGE"];

/// Returns the variable with a name.
pub fn named(name: &str) -> Option<&'static Variable> {
    VARIABLES.iter().find(|variable| variable.name == name)
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

/// The values of FOMPI_FALLBACK.
const FALLBACKS: [(&str, Fallback); 3] =
    [("warn", Fallback::Warn), ("quiet", Fallback::Quiet), ("error", Fallback::Error)];

/// The values of FOMPI_CHECK: whether they include conflicts.
const CHECKS: [(&str, bool); 2] = [("none", false), ("conflicts", true)];

/// The values of FOMPI_ORDER, and whether they ask for the strict one.
const ORDERS: [(&str, bool); 2] = [("mpi", false), ("strict", true)];

/// The values of FOMPI_ADOPT.
pub(crate) const ADOPTIONS: [(&str, Adopt); 3] =
    [("auto", Adopt::Auto), ("never", Adopt::Never), ("always", Adopt::Always)];
