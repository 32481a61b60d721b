//! The options of launchers, as far as they are needed to find the program among their arguments:
//! the number of values of each one. A double hyphen counts as one hyphen and a name with a hyphen.

const WITH_TWO_VALUES: &[&str] = &[
    "genv", "env", "gca", "mca", "-gca", "-mca", "gmca", "-gmca", "-prtemca", "-pmixmca", "-omca",
];

#[rustfmt::skip]
const WITH_ONE_VALUE: &[&str] = &[
    "n", "np", "-n", "-np", "c", "host", "-host", "H", "hosts", "hostfile", "-hostfile",
    "machinefile", "-machinefile", "f", "wdir", "-wdir", "wd", "-wd", "map-by", "-map-by",
    "bind-to", "-bind-to", "rank-by", "-rank-by", "npernode", "-npernode", "N", "-N", "npersocket",
    "-npersocket", "ppn", "perhost", "x", "-x", "path", "-path", "prefix", "-prefix",
    "output-filename", "-output-filename", "-output", "launcher", "launcher-exec", "rmk", "membind",
    "iface", "genvlist", "envlist", "-tune", "am", "-am", "timeout", "-timeout", "stdin", "-stdin",
    "rankfile", "-rankfile", "rf", "-cpu-set", "-cpu-list", "usize", "gpus-per-proc",
    "outfile-pattern", "errfile-pattern", "prepend-pattern", "localhost", "order-nodes", "topolib",
    "-display", "-runtime-options", "-personality", "-report-uri", "-pset",
];

#[rustfmt::skip]
const WITHOUT_VALUE: &[&str] = &[
    "oversubscribe", "-oversubscribe", "nooversubscribe", "-nooversubscribe", "bynode", "-bynode",
    "byslot", "-byslot", "q", "-quiet", "v", "-verbose", "verbose", "-allow-run-as-root",
    "display-map", "-display-map", "-display-allocation", "report-bindings", "-report-bindings",
    "tag-output", "-tag-output", "timestamp-output", "-timestamp-output", "nolocal", "-nolocal",
    "-use-hwthread-cpus", "-enable-recovery", "l", "print-all-exitcodes", "prepend-rank", "envall",
    "envnone", "genvall", "genvnone", "disable-auto-cleanup", "skip-launch-node",
    "disable-hostname-propagation", "profile", "print-rank-map", "rr", "-do-not-launch",
];

/// Returns the number of values of an option; `None` for one that is not known.
pub fn values_of(option: &str) -> Option<usize> {
    let name = option.strip_prefix('-').unwrap_or(option);
    if name.contains('=') {
        return Some(0);
    }
    let lists = [WITHOUT_VALUE, WITH_ONE_VALUE, WITH_TWO_VALUES];
    lists.iter().position(|list| list.contains(&name))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn options_of_launchers_have_their_numbers_of_values() {
        for (option, values) in [("-n", 1), ("--mca", 2), ("-genv", 2), ("-l", 0), ("--x=1", 0)] {
            assert_eq!(values_of(option), Some(values), "{option}");
        }
        for unknown in ["-l2", "--l", "--nosuch", "--"] {
            assert_eq!(values_of(unknown), None, "{unknown}");
        }
    }

    #[test]
    fn no_option_is_in_two_lists() {
        let all = [WITHOUT_VALUE, WITH_ONE_VALUE, WITH_TWO_VALUES].concat();
        for name in &all {
            assert_eq!(all.iter().filter(|other| *other == name).count(), 1, "{name}");
        }
    }
}
